#include "passes/views.h"

#include <algorithm>
#include <numeric>

#include "ir/bind.h"
#include "ir/op_table.h"
#include "ir/sym_facts.h"

namespace pt2onnx {
namespace {

ViewStep Step(Context& context, std::string_view op, std::vector<Arg> args, ViewClass view) {
  return {FindOpInTable(op), context.arena.Copy(args), view};
}

int64_t SplitDim(const OpSchema& op, std::span<const Arg> args, int64_t rank) {
  const int at = op.ArgIndex("dim");
  if (at >= 0) return Normalize(std::get<int64_t>(args[static_cast<size_t>(at)]), rank);
  if (op.name.starts_with("aten::dsplit")) return 2;
  return op.name.starts_with("aten::hsplit") && rank > 1 ? 1 : 0;
}

// A typed view of a step's arguments, with the base in self's place.
template <class Op>
Op Bind(Aten& b, const ViewStep& step, Val base) {
  std::vector<Arg> args(step.args.begin(), step.args.end());
  args[0] = base.value;
  return Op::Bind(FieldReader(b, b.context().arena.Copy(args)));
}

Val Replayed(Aten& b, const ViewStep& step, Val x) {
  std::vector<Arg> args(step.args.begin(), step.args.end());
  args[0] = x.value;
  return b.Emit(*step.op, args)[0];
}

// Where each element of the view lies in the flattened base.
Val Addresses(Aten& b, const Alias& view, Val base) {
  const SymExpr n = base.numel();
  const Val iota = b.Reshape(b(aten::arange{.end = Scalar(n), .dtype = DType::I64}), base.shape());
  return Replayed(b, view.step, iota);
}

// base.flat[at] = v. Where elements of the view are copies of one element, base.flat[at[changed]] = v[changed]: what did not change goes to a
// slot behind the end, so that shapes stay as they are.
Val WriteByIndex(Aten& b, const Alias& view, Val base, Val v, Val old) {
  const SymExpr n = base.numel(), m = v.numel();
  const auto scatter = [&](Val flat, Val at) {
    return b(aten::scatter_src{.self = flat, .dim = 0, .index = b.Reshape(at, {m}), .src = b.Reshape(v, {m})});
  };
  if (!view.overlapping || view.filled) return b.Reshape(scatter(b.Reshape(base, {n}), Addresses(b, view, base)), base.shape());
  Val changed = b(aten::ne_Tensor{.self = v, .other = old});
  if (IsFloat(v.dtype())) {
    const Val both_nan = b(aten::logical_and{.self = b(aten::isnan{.self = v}), .other = b(aten::isnan{.self = old})});
    changed = b(aten::logical_and{.self = changed, .other = b(aten::logical_not{.self = both_nan})});
  }
  const Val at = b(aten::where_self{.condition = changed, .self = Addresses(b, view, base), .other = b.Constant(Scalar(n), DType::I64)});
  const Val room = b.Reshape(b.Constant(Scalar(0), base.dtype()), {1});
  const Val written = scatter(b(aten::cat{.tensors = {b.Reshape(base, {n}), room}, .dim = 0}), at);
  return b.Reshape(b(aten::slice_Tensor{.self = written, .dim = 0, .start = SymExpr(0), .end = n}), base.shape());
}

// All copies agree after a fill: the first of each expanded dim is the base's value.
OptVal FirstCopies(Aten& b, const Alias& view, Val base, Val v) {
  if (view.step.view != ViewClass::Expand || !view.filled || view.step.op->Namespace() != "aten") return std::nullopt;
  const int64_t lead = v.rank() - base.rank();
  for (int64_t d = 0; d < v.rank(); ++d) {
    const bool expanded = d < lead || !(base.dim(d - lead) == v.dim(d));
    if (!expanded) continue;
    if (!ProvablyPositive(v.dim(d))) return std::nullopt;  // no copy to take it from
    v = b(aten::slice_Tensor{.self = v, .dim = d, .start = SymExpr(0), .end = SymExpr(1)});
  }
  return b.Reshape(v, base.shape());
}

Val ScatterPart(Aten& b, Val base, Val v, int64_t part) {  // of real and imag
  const Val pairs = b(aten::view_as_real{.self = base});
  return b(aten::view_as_complex{.self = b(aten::select_scatter{.self = pairs, .src = v, .dim = -1, .index = SymExpr(part)})});
}

std::vector<int64_t> Inverse(const std::vector<int64_t>& perm) {
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return inverse;
}

Val InvertNarrow(Aten& b, const ViewStep& step, Val base, Val v) {
  const auto op = Bind<aten::narrow>(b, step, base);
  SymExpr start = op.start;
  if (BoundsOf(start).hi && *BoundsOf(start).hi < 0) start = start + base.dim(op.dim);
  return b(aten::slice_scatter{.self = base, .src = v, .dim = op.dim, .start = start, .end = start + op.length});
}

}  // namespace

std::vector<ViewStep> StepsOf(Context& context, const Call& call, const Type& self) {
  const int64_t rank = static_cast<int64_t>(self.shape.size());
  std::vector<ViewStep> steps;
  switch (call.op->view) {
    case ViewClass::None: case ViewClass::Sparse: case ViewClass::Nested: case ViewClass::Other: case ViewClass::SliceInverse: return {};
    case ViewClass::Unbind: {
      const int64_t dim = SplitDim(*call.op, call.args, rank);
      for (size_t i = 0; i < call.types.size(); ++i)
        steps.push_back(Step(context, "aten::select.int", {static_cast<Value*>(nullptr), dim, SymExpr(static_cast<int64_t>(i))}, ViewClass::Select));
      return steps;
    }
    case ViewClass::Split: return SplitSteps(context, call, self);
    default: {
      std::vector<Arg> args(call.args.begin(), call.args.end());
      args[0] = static_cast<Value*>(nullptr);
      // reshape_as, view_as, expand_as: the size is another tensor's, which may change: keep the size instead.
      const std::string_view name = call.op->name;
      const bool expand = call.op->view == ViewClass::Expand;
      if (name == "aten::reshape_as" || name == "aten::view_as" || name == "aten::expand_as")
        steps.push_back(expand ? Step(context, "aten::expand", {static_cast<Value*>(nullptr), Dims(context.arena.Copy(call.types[0].shape)), false}, call.op->view)
                               : Step(context, "aten::reshape", {static_cast<Value*>(nullptr), Dims(context.arena.Copy(call.types[0].shape))}, call.op->view));
      else
        steps.push_back({call.op, context.arena.Copy(args), call.op->view});
      return steps;
    }
  }
}

std::vector<ViewStep> SplitSteps(Context& context, const Call& call, const Type& self) {
  const int64_t dim = SplitDim(*call.op, call.args, static_cast<int64_t>(self.shape.size()));
  std::vector<ViewStep> steps;
  SymExpr at = 0;
  for (const Type& type : call.types) {
    const SymExpr end = at + type.shape[static_cast<size_t>(dim)];
    steps.push_back(Step(context, "aten::slice.Tensor", {static_cast<Value*>(nullptr), dim, at, end, SymExpr(1)}, ViewClass::Slice));
    at = end;
  }
  return steps;
}

std::optional<Interval> IntervalOf(const Alias& view) {
  const ViewStep& step = view.step;
  const bool slice = step.view == ViewClass::Slice, select = step.view == ViewClass::Select, narrow = step.op->name == "aten::narrow";
  if ((!slice && !select && !narrow) || !view.parent || view.parent->overlapping) return std::nullopt;
  const Dims shape = view.parent->type.shape;
  const int64_t dim = Normalize(std::get<int64_t>(step.args[1]), static_cast<int64_t>(shape.size()));
  if (dim >= static_cast<int64_t>(shape.size())) return std::nullopt;
  const SymExpr size = shape[static_cast<size_t>(dim)];
  constexpr int64_t kEnd = INT64_MAX;
  // A bound counted from the front; nothing if it isn't constant.
  const auto bound = [&](const Arg& arg, int64_t otherwise) -> std::optional<int64_t> {
    if (IsNone(arg)) return otherwise;
    const SymExpr at = ToSymExpr(arg);
    if (at == size) return kEnd;
    if (!at.IsConst()) return std::nullopt;
    if (at.Const() < 0 && !size.IsConst()) return std::nullopt;
    const int64_t from_front = at.Const() < 0 ? std::max<int64_t>(at.Const() + size.Const(), 0) : at.Const();
    return size.IsConst() && from_front >= size.Const() && !select ? kEnd : from_front;
  };
  const auto begin = bound(step.args[2], 0);
  if (!begin || *begin == kEnd) return std::nullopt;
  if (select) return Interval{dim, *begin, *begin + 1, true};
  std::optional<int64_t> end;
  if (slice && ToSymExpr(step.args[4]) == 1) end = bound(step.args[3], kEnd);
  if (narrow && ToSymExpr(step.args[3]).IsConst()) end = *begin + ToSymExpr(step.args[3]).Const();
  if (!end || *end <= *begin) return std::nullopt;
  return Interval{dim, *begin, *end, false};
}

std::vector<int64_t> Permutation(const OpSchema& op, std::span<const Arg> args, int64_t rank) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  if (rank == 0) return order;
  const auto list = [&](std::string_view name) {
    const Arg& arg = args[static_cast<size_t>(op.ArgIndex(name))];
    std::vector<int64_t> dims;
    if (const int64_t* one = std::get_if<int64_t>(&arg)) dims = {*one};
    else for (int64_t d : std::get<Ints>(arg)) dims.push_back(d);
    for (int64_t& d : dims) d = Normalize(d, rank);
    return dims;
  };
  const std::string_view base = op.name.substr(0, op.name.find('.'));
  if (base == "aten::permute" || base == "prims::transpose") return list(base == "aten::permute" ? "dims" : "permutation");
  if (base == "aten::movedim" || base == "aten::moveaxis") {
    const std::vector<int64_t> from = list("source"), to = list("destination");
    std::vector<int64_t> rest;
    for (int64_t d : order)
      if (std::find(from.begin(), from.end(), d) == from.end()) rest.push_back(d);
    std::vector<int64_t> out(order.size(), -1);
    for (size_t i = 0; i < from.size(); ++i) out[static_cast<size_t>(to[i])] = from[i];
    size_t next = 0;
    for (int64_t& d : out)
      if (d < 0) d = rest[next++];
    return out;
  }
  if (base == "aten::t" || base == "aten::numpy_T") {
    std::reverse(order.begin(), order.end());
    return order;
  }
  int64_t a = -2, b = -1;  // mT, mH, adjoint, matrix_H
  if (op.args.size() == 3) {  // transpose, swapaxes, swapdims
    a = std::get<int64_t>(args[1]);
    b = std::get<int64_t>(args[2]);
  }
  if (rank > 1) std::swap(order[static_cast<size_t>(Normalize(a, rank))], order[static_cast<size_t>(Normalize(b, rank))]);
  return order;
}

Val Invert(Aten& b, const Alias& view, Val base, Val v, Val old) {
  const ViewStep& step = view.step;
  switch (step.view) {
    case ViewClass::Identity: return v;
    case ViewClass::Reshape: return b.Reshape(v, base.shape());
    case ViewClass::Permute: return b.Permute(v, Inverse(Permutation(*step.op, step.args, base.rank())));
    case ViewClass::PermuteConj: {
      const Val x = IsComplex(v.dtype()) ? b(aten::conj_physical{.self = v}) : v;
      return b.Permute(x, Inverse(Permutation(*step.op, step.args, base.rank())));
    }
    case ViewClass::Slice: {
      const auto op = Bind<aten::slice_Tensor>(b, step, base);
      return b(aten::slice_scatter{.self = base, .src = v, .dim = op.dim, .start = op.start, .end = op.end, .step = op.step});
    }
    case ViewClass::Narrow: return step.op->name == "aten::narrow" ? InvertNarrow(b, step, base, v) : WriteByIndex(b, view, base, v, old);
    case ViewClass::Select: {
      const auto op = Bind<aten::select_int>(b, step, base);
      return b(aten::select_scatter{.self = base, .src = v, .dim = op.dim, .index = op.index});
    }
    case ViewClass::Diagonal: {
      const auto at = [&](std::string_view name) { return std::get<int64_t>(step.args[static_cast<size_t>(step.op->ArgIndex(name))]); };
      return b(aten::diagonal_scatter{.self = base, .src = v, .offset = at("offset"), .dim1 = at("dim1"), .dim2 = at("dim2")});
    }
    case ViewClass::Bitcast: return b(aten::view_dtype{.self = v, .dtype = base.dtype()});
    case ViewClass::AsReal: return b(aten::view_as_complex{.self = v});
    case ViewClass::AsComplex: return b(aten::view_as_real{.self = v});
    case ViewClass::Real: return IsComplex(base.dtype()) ? ScatterPart(b, base, v, 0) : v;
    case ViewClass::Imag: return ScatterPart(b, base, v, 1);
    case ViewClass::Conj: return IsComplex(v.dtype()) ? b(aten::conj_physical{.self = v}) : v;
    case ViewClass::Neg: return b(aten::neg{.self = v});
    case ViewClass::Expand:
      if (const OptVal first = FirstCopies(b, view, base, v)) return *first;
      return WriteByIndex(b, view, base, v, old);
    case ViewClass::Unfold: case ViewClass::AsStrided: return WriteByIndex(b, view, base, v, old);
    default: PT2ONNX_UNREACHABLE();
  }
}

}  // namespace pt2onnx
