// Functionalize, call by call: ops that change how a tensor lies in memory (t_, set_, resize_), and views of the memory itself (as_strided).
#include <algorithm>

#include "ir/op_table.h"
#include "ir/sym_facts.h"
#include "passes/functionalize.h"
#include "passes/geometry.h"
#include "passes/views.h"
#include "rewrite/call_args.h"

namespace pt2onnx {

// as_strided is of the storage: a view of the root, whose value is first brought into memory order. What shows all of it once is a reshape
// and a permutation.
Alias* Functionalize::AsStrided(Alias* alias, Dims size, Dims stride, SymExpr offset, const Type& type, LocId loc) {
  Alias* root = alias->storage()->root;
  if (root->type.dtype != type.dtype) {  // memory seen as complex, or as its parts: all of it as that dtype
    Alias* whole = alias;
    while (whole->parent && whole->parent->type.dtype == type.dtype) whole = whole->parent;
    const ViewClass view = whole->step.view;
    if (whole->parent != root || whole->type.dtype != type.dtype || (view != ViewClass::AsComplex && view != ViewClass::AsReal)) return nullptr;
    root = whole;
  }
  const std::optional<std::vector<int64_t>> order = MemoryOrder(root->type);
  if (!order) return nullptr;
  const auto packed = [](Type t, Dims shape) {
    t.shape = shape;
    t.strides = {};
    return t;
  };
  const auto inorder = [&](const std::vector<int64_t>& dims, Dims shape) {
    std::vector<SymExpr> sizes;
    for (int64_t d : dims) sizes.push_back(shape[static_cast<size_t>(d)]);
    return Dims(context_.arena.Copy(sizes));
  };
  const auto permuted = [&](Alias* parent, const std::vector<int64_t>& dims, const Type& result) {
    if (std::is_sorted(dims.begin(), dims.end())) return parent;
    const std::vector<Arg> args = {static_cast<Value*>(nullptr), Ints(context_.arena.Copy(dims))};
    return View(parent, {FindOpInTable("aten::permute"), context_.arena.Copy(args), ViewClass::Permute}, result, {}, loc);
  };
  Alias* parent = permuted(root, *order, packed(root->type, inorder(*order, root->type.shape)));
  Type wanted = type;
  wanted.shape = Dims(context_.arena.Copy(size));
  wanted.strides = Dims(context_.arena.Copy(stride));
  wanted.offset = offset;
  const std::optional<std::vector<int64_t>> own = MemoryOrder(wanted);
  if (own && offset == root->type.offset && Product(size) == Product(root->type.shape)) {
    const Dims shape = inorder(*own, wanted.shape);
    if (!SameShape(shape, parent->type.shape)) {
      const std::vector<Arg> args = {static_cast<Value*>(nullptr), shape};
      parent = View(parent, {FindOpInTable("aten::reshape"), context_.arena.Copy(args), ViewClass::Reshape}, packed(wanted, shape), {}, loc);
    }
    std::vector<int64_t> back(own->size());
    for (size_t i = 0; i < own->size(); ++i) back[static_cast<size_t>((*own)[i])] = static_cast<int64_t>(i);
    return permuted(parent, back, wanted);
  }
  const std::vector<Arg> args = {static_cast<Value*>(nullptr), wanted.shape, wanted.strides, offset - root->type.offset};
  return View(parent, {FindOpInTable("aten::as_strided"), context_.arena.Copy(args), ViewClass::AsStrided}, wanted, {}, loc);
}

// resize_: a prefix of the memory, or new memory with the old elements first and zeros after them (PyTorch leaves them undefined).
bool Functionalize::Resize(TensorObject* tensor, Dims size, LocId loc) {
  Alias* alias = tensor->alias;
  if (SameShape(alias->type.shape, size)) return true;
  Type type = alias->type;
  type.shape = Dims(context_.arena.Copy(size));
  type.strides = {};
  const SymExpr room = Product(alias->storage()->root->type.shape) - (alias->type.offset - alias->storage()->root->type.offset);
  const SymExpr wanted = Product(size);
  const bool fits = ProvablyLessEqual(wanted, room), grows = ProvablyLess(room, wanted);
  if (fits) {
    Alias* view = AsStrided(alias, size, context_.arena.Copy(RowMajorStrides(size)), alias->type.offset, type, loc);
    if (view) tensor->alias = view;
    return view;
  }
  const Val old = aten_.Wrap(Read(alias));
  const SymExpr n = old.numel();
  Val flat = aten_.Reshape(old, {n});
  const Val zeros = aten_(aten::full{.size = aten_.Copy(std::vector<SymExpr>{Max(0, wanted - n)}), .fill_value = Scalar(0), .dtype = type.dtype});
  flat = aten_(aten::cat{.tensors = {flat, zeros}, .dim = 0});
  if (!grows) flat = aten_(aten::slice_Tensor{.self = flat, .dim = 0, .start = SymExpr(0), .end = wanted});
  type.offset = 0;
  tensor->alias = Fresh(aten_.Reshape(flat, type.shape).value, type, {})->alias;
  // PyTorch lets the memory itself grow: other tensors in it still see what is written.
  if (!(n == 0)) MayShare(alias, tensor->alias, "a tensor in the same memory was resized");
  return true;
}

// t_, squeeze_, set_, resize_: the tensor gets another geometry; earlier views of it keep theirs.
Results Functionalize::EmitGeometryChange(const Call& call) {
  const std::string_view base = BaseName(*call.op);
  TensorObject* tensor = Tensor(std::get<Value*>(call.args[0]));
  if (base == "aten::detach_") return SameTensor(call, tensor);
  if (base == "aten::set_") {
    if (call.args.size() == 1) {  // empties it
      Type type = call.types[0];
      type.strides = {};
      tensor->alias = Fresh(aten_(aten::full{.size = type.shape, .fill_value = Scalar(0), .dtype = type.dtype}).value, type, {})->alias;
      return SameTensor(call, tensor);
    }
    TensorObject* source = Tensor(TensorArg(call, "source"));
    if (!source) return RefuseWrite(call, {&tensor->alias, 1}, "E0202", "set_ to a storage that is not a tensor of the program", "assign the tensor instead");
    tensor->alias = source->alias;
    if (const Arg* size = FindArg(call, "size")) {
      const Type& type = call.types[0];
      const Arg* stride = FindArg(call, "stride");
      Alias* alias = AsStrided(source->alias, std::get<Dims>(*size), stride ? std::get<Dims>(*stride) : context_.arena.Copy(RowMajorStrides(type.shape)),
                               std::get<SymExpr>(*FindArg(call, "storage_offset")), type, call.loc);
      if (!alias) return RefuseWrite(call, {&tensor->alias, 1}, "E0203", "set_ of a tensor whose memory is not packed", "clone the tensor first");
      tensor->alias = alias;
    }
    return SameTensor(call, tensor);
  }
  if (base == "aten::resize_" || base == "aten::resize_as_") {
    if (Resize(tensor, call.types[0].shape, call.loc)) return SameTensor(call, tensor);
    return RefuseWrite(call, {&tensor->alias, 1}, "E0203", "a change of size of a tensor whose memory is not packed", "clone the tensor first");
  }
  if (call.op->functional < 0) return RefuseWrite(call, {&tensor->alias, 1}, "E0202", "there is no view form of this op", "write it out of place in the model");
  const OpSchema& view = OpTable()[static_cast<size_t>(call.op->functional)];
  const Call forward{&view, call.args, call.types, call.loc, call.names};
  if (view.view == ViewClass::AsStrided) {
    const Arg* at = FindArg(call, "storage_offset");
    Alias* alias = AsStrided(tensor->alias, std::get<Dims>(call.args[1]), std::get<Dims>(call.args[2]),
                             at && !IsNone(*at) ? std::get<SymExpr>(*at) : tensor->alias->type.offset, call.types[0], call.loc);
    if (alias) tensor->alias = alias;
    else return RefuseWrite(call, {&tensor->alias, 1}, "E0203", "as_strided_ of a tensor whose memory is not packed", "clone the tensor first");
    return SameTensor(call, tensor);
  }
  const std::vector<ViewStep> steps = StepsOf(context_, forward, tensor->alias->type);
  if (steps.empty()) return RefuseWrite(call, {&tensor->alias, 1}, "E0202", "this change of a tensor's geometry has no view form", "write it out of place in the model");
  tensor->alias = View(tensor->alias, steps[0], call.types[0], call.names.empty() ? std::string_view() : call.names[0], call.loc);
  return SameTensor(call, tensor);
}

}  // namespace pt2onnx
