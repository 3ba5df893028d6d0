// Forms of common operators that take plain lists, with identity work left out. A view of a view is made from where the chain began, so that
// no more than one node is left of it:
//
//   Unsqueeze(Unsqueeze(x, 0), 3)  ->  Unsqueeze(x, [0, 3])      Transpose(Transpose(x, p), inverse of p)  ->  x
#include <algorithm>

#include "ir/sym_facts.h"
#include "onnx/args.h"
#include "onnx/infer.h"
#include "onnx/ort_kernels.h"
#include "onnx/scope.h"
#include "onnx/table.h"

namespace pt2onnx {
namespace {

// Provably the same shape.
bool SameDims(Dims a, Dims b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

// Counted from the front. Out of range only behind a poisoned value, where anything will do.
int64_t Front(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

IntVec FrontAxes(const IntVec& axes, int64_t rank) {
  IntVec out;
  for (int64_t axis : axes) out.push_back(Front(axis, rank));
  return out;
}

bool AllKnown(Dims shape) {
  return std::none_of(shape.begin(), shape.end(), [](const SymExpr& e) { return e.IsUnknown(); });
}

bool IsMadeBy(const Value* value, std::initializer_list<std::string_view> ops) {
  return value->def && std::find(ops.begin(), ops.end(), value->def->op->name) != ops.end();
}

// x, and what it is only another shape of.
std::vector<Value*> OtherShapes(Value* x) {
  std::vector<Value*> out = {x};
  while (IsMadeBy(x, {"onnx::Reshape", "onnx::Unsqueeze", "onnx::Squeeze"})) {
    x = std::get<Value*>(x->def->args[0]);
    if (!x->type.ranked || x->problem) break;
    out.push_back(x);
  }
  return out;
}

// The axes of `large` that are 1 and without which it is `small`.
std::optional<IntVec> AddedOnes(Dims small, Dims large) {
  IntVec axes;
  size_t at = 0;
  for (size_t i = 0; i < large.size(); ++i) {
    if (at < small.size() && small[at] == large[i]) ++at;
    else if (large[i] == SymExpr(1)) axes.push_back(static_cast<int64_t>(i));
    else return std::nullopt;
  }
  return at == small.size() ? std::optional(axes) : std::nullopt;
}

bool AllConst(const DimVec* list) {
  return list && std::all_of(list->begin(), list->end(), [](const SymExpr& e) { return e.IsConst(); });
}

}  // namespace

Val Onnx::Cast(Val x, DType to) {
  if (x.dtype() == to) return x;
  return OnnxOps::Cast(x, {.to = to});
}

Val Onnx::Reshape(Val x, DimVec shape) {
  const std::vector<Value*> origins = OtherShapes(x.value);
  for (Value* origin : origins)
    if (origin->type.ranked && SameDims(origin->type.shape, shape)) return Wrap(origin);
  const auto symbolic = std::count_if(shape.begin(), shape.end(), [](const SymExpr& e) { return !e.IsConst(); });
  for (size_t i = origins.size(); i-- > 0;) {
    if (!origins[i]->type.ranked) continue;
    if (symbolic < 2 && i + 1 < origins.size() && IsMadeBy(origins[i], {"onnx::Reshape"})) continue;  // one Reshape does both
    if (const auto axes = AddedOnes(origins[i]->type.shape, shape)) return OnnxOps::Unsqueeze(Wrap(origins[i]), Ints(*axes));
    if (const auto axes = AddedOnes(shape, origins[i]->type.shape)) return OnnxOps::Squeeze(Wrap(origins[i]), Ints(*axes));
  }
  // allowzero only where it matters: it must not stand beside -1, and older runtimes know the plain form best.
  const bool zero = std::any_of(shape.begin(), shape.end(), [](const SymExpr& e) { return e == SymExpr(0); });
  // Where it can be, a dim that is not constant is written without arithmetic at run time: 0 takes x's dim at that place, -1 is what
  // is left. -1 not beside zeros, where it would be ambiguous.
  if (symbolic < 2) x = Wrap(origins.back());
  else if (IsMadeBy(x.value, {"onnx::Reshape"}) && origins.size() > 1 && !IsMadeBy(std::get<Value*>(x.value->def->args[1]), {"onnx::Constant"}))
    x = Wrap(origins[1]);  // its shape is computed too: no dim of it is kept
  const auto kept = [&](size_t i) { return i < static_cast<size_t>(x.rank()) && shape[i] == x.shape()[i]; };
  int64_t open = 0;
  bool positive = true;
  IntVec target;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool keep = symbolic > 1 && !shape[i].IsConst() && x.value->type.ranked && kept(i);
    if (keep) positive = positive && ProvablyPositive(shape[i]);
    else if (!shape[i].IsConst()) ++open;
    target.push_back(shape[i].IsConst() ? shape[i].Const() : keep ? 0 : -1);
  }
  if (symbolic > 0 && !zero && (open == 0 || (open == 1 && positive))) {
    const Val list = Ints(std::move(target));
    shape_hint_ = std::move(shape);
    return OnnxOps::Reshape(x, list);
  }
  return OnnxOps::Reshape(x, Shape(std::move(shape)), {.allowzero = zero || symbolic > 0});
}

Val Onnx::Expand(Val x, DimVec shape) {
  if (x.value->type.ranked && SameDims(x.shape(), shape)) return x;
  // ONNX Runtime takes an Expand from 1 to 0 for one that does nothing.
  for (const SymExpr& dim : shape)
    if (dim == 0) return ConstantOfShape(Shape(std::move(shape)), 0, x.dtype());
  return OnnxOps::Expand(x, Shape(std::move(shape)));
}

Val Onnx::Transpose(Val x, IntVec perm) {
  perm = FrontAxes(perm, std::ssize(perm));
  while (IsMadeBy(x.value, {"onnx::Transpose"})) {
    const Node& inner = *x.value->def;
    const pt2onnx::Ints* first = std::get_if<pt2onnx::Ints>(&inner.args[1]);
    if (!first || first->size() != perm.size()) break;
    for (int64_t& d : perm) d = (*first)[static_cast<size_t>(d)];
    x = Wrap(std::get<Value*>(inner.args[0]));
  }
  if (std::is_sorted(perm.begin(), perm.end())) return x;
  return OnnxOps::Transpose(x, {.perm = perm});
}

Val Onnx::Unsqueeze(Val x, IntVec axes) {
  if (axes.empty()) return x;
  axes = FrontAxes(axes, x.rank() + std::ssize(axes));
  if (OtherShapes(x.value).size() > 1 && AllKnown(x.shape())) {
    DimVec shape(x.shape());
    std::sort(axes.begin(), axes.end());
    for (int64_t axis : axes) shape.insert(shape.begin() + axis, SymExpr(1));
    return Reshape(x, shape);
  }
  return OnnxOps::Unsqueeze(x, Ints(axes));
}

Val Onnx::Squeeze(Val x, IntVec axes) {
  if (axes.empty()) return x;
  axes = FrontAxes(axes, x.rank());
  if (OtherShapes(x.value).size() > 1 && AllKnown(x.shape())) {
    DimVec shape;
    for (int64_t i = 0; i < x.rank(); ++i)
      if (std::find(axes.begin(), axes.end(), i) == axes.end()) shape.push_back(x.dim(i));
    return Reshape(x, shape);
  }
  return OnnxOps::Squeeze(x, Ints(axes));
}

Val Onnx::Slice(Val x, int64_t axis, SymExpr start, SymExpr end, SymExpr step) {
  axis = Front(axis, x.rank());
  const bool ranked = x.value->type.ranked && axis < x.rank();
  const SymExpr dim = ranked ? x.dim(axis) : SymExpr::Unknown();
  const bool to_end = end == dim || (end.IsConst() && end.Const() == std::numeric_limits<int64_t>::max());
  if (start == SymExpr(0) && to_end && step == SymExpr(1)) return x;
  if (to_end && !end.IsConst()) end = std::numeric_limits<int64_t>::max();  // needs no arithmetic at run time
  // Slices along other axes are one with this.
  DimVec starts = {start}, ends = {end}, axes = {axis}, steps = {step};
  if (IsMadeBy(x.value, {"onnx::Slice"}) && AllConst(&starts) && AllConst(&ends) && AllConst(&steps)) {
    const std::span<const Arg> args = x.value->def->args;
    const auto known = [&](size_t i) { return IsNone(args[i]) ? nullptr : KnownInts(Wrap(std::get<Value*>(args[i]))); };
    const DimVec* inner[] = {known(1), known(2), known(3), known(4)};
    const bool constant = AllConst(inner[0]) && AllConst(inner[1]) && AllConst(inner[2]) && (IsNone(args[4]) || AllConst(inner[3]));
    const auto elsewhere = [&](const SymExpr& e) { return e.Const() >= 0 && e.Const() != axis; };
    if (constant && std::all_of(inner[2]->begin(), inner[2]->end(), elsewhere)) {
      starts.insert(starts.begin(), inner[0]->begin(), inner[0]->end());
      ends.insert(ends.begin(), inner[1]->begin(), inner[1]->end());
      axes.insert(axes.begin(), inner[2]->begin(), inner[2]->end());
      steps.insert(steps.begin(), inner[2]->size(), SymExpr(1));
      if (inner[3]) std::copy(inner[3]->begin(), inner[3]->end(), steps.begin());
      x = Wrap(std::get<Value*>(args[0]));
    }
  }
  const bool by_one = std::all_of(steps.begin(), steps.end(), [](const SymExpr& e) { return e == SymExpr(1); });
  return OnnxOps::Slice(x, Shape(starts), Shape(ends), Shape(axes), by_one ? OptVal() : Shape(steps));
}

Val Onnx::Concat(const Vals& list, int64_t axis) {
  PT2ONNX_CHECK(!list.empty());
  if (list.size() == 1) return list[0];
  return OnnxOps::Concat(list, {.axis = Front(axis, list[0].rank())});
}

Vals Onnx::Split(Val x, const DimVec& sizes, int64_t axis) {
  if (sizes.size() == 1) return {x};
  return OnnxOps::Split(x, Shape(sizes), sizes.size(), {.axis = Front(axis, x.rank())});
}

Val Onnx::Flatten1D(Val x) {
  if (x.rank() == 1 && x.value->type.ranked) return x;
  const Val list = Ints({-1});
  if (x.value->type.ranked) shape_hint_ = {x.numel()};
  return OnnxOps::Reshape(x, list);
}

Val Onnx::Gather(Val x, Val indices, int64_t axis) { return OnnxOps::Gather(x, indices, {.axis = Front(axis, x.rank())}); }

Val Onnx::Select(Val x, int64_t axis, SymExpr index) { return Gather(x, Int(index), axis); }

Val Onnx::Reduce(OnnxOp op, Val x, const IntVec& axes, bool keepdims) {
  if (axes.empty()) return x;
  const Val list = Ints(FrontAxes(axes, x.rank()));
  const Results out = Apply(op, OnnxArgs(context_).In(x).In(list).Attr(int64_t{keepdims}, 1).None().Take(), 1);
  return Wrap(out[0]);
}

Val Onnx::ReduceSum(Val x, IntVec axes, bool keepdims) { return Reduce(OnnxOp::ReduceSum, x, axes, keepdims); }
Val Onnx::ReduceMean(Val x, IntVec axes, bool keepdims) { return Reduce(OnnxOp::ReduceMean, x, axes, keepdims); }
Val Onnx::ReduceMax(Val x, IntVec axes, bool keepdims) { return Reduce(OnnxOp::ReduceMax, x, axes, keepdims); }
Val Onnx::ReduceMin(Val x, IntVec axes, bool keepdims) { return Reduce(OnnxOp::ReduceMin, x, axes, keepdims); }
Val Onnx::ReduceProd(Val x, IntVec axes, bool keepdims) { return Reduce(OnnxOp::ReduceProd, x, axes, keepdims); }
// Over no axis each element is reduced by itself.
Val Onnx::ReduceL1(Val x, IntVec axes, bool keepdims) { return axes.empty() ? Abs(x) : Reduce(OnnxOp::ReduceL1, x, axes, keepdims); }
Val Onnx::ReduceL2(Val x, IntVec axes, bool keepdims) { return axes.empty() ? Abs(x) : Reduce(OnnxOp::ReduceL2, x, axes, keepdims); }
Val Onnx::ReduceLogSum(Val x, IntVec axes, bool keepdims) { return axes.empty() ? Log(x) : Reduce(OnnxOp::ReduceLogSum, x, axes, keepdims); }
Val Onnx::ReduceLogSumExp(Val x, IntVec axes, bool keepdims) { return Reduce(OnnxOp::ReduceLogSumExp, x, axes, keepdims); }
Val Onnx::ReduceSumSquare(Val x, IntVec axes, bool keepdims) {
  return axes.empty() ? Mul(x, x) : Reduce(OnnxOp::ReduceSumSquare, x, axes, keepdims);
}

Val Onnx::Relu(Val x) { return IsIntegral(x.dtype()) ? Max(x, Constant(0, x.dtype())) : OnnxOps::Relu(x); }

// Of int16 the runtime expands Clip into operators that it lacks.
Val Onnx::Clip(Val x, OptVal min, OptVal max) {
  if (x.dtype() != DType::I16 && x.dtype() != DType::U16) return OnnxOps::Clip(x, min, max);
  const Val above = min ? Max(x, *min) : x;
  return max ? Min(above, *max) : above;
}

Val Onnx::NonZero(Val x) { return OnnxOps::NonZero(RuntimeHas("NonZero", opset(), x.dtype()) ? x : Cast(x, DType::Bool)); }

// ONNX Runtime has few combinations of dtypes: int64 throughout, or float32 values. For others the mask picks from the two values.
Val Onnx::OneHot(Val indices, Val depth, Val values, const OneHotAttrs& attrs) {
  const Val i = Cast(indices, DType::I64), n = Cast(depth, DType::I64);
  if (values.dtype() == DType::I64 || values.dtype() == DType::F32) return OnnxOps::OneHot(i, n, values, attrs);
  const Val mask = Cast(OnnxOps::OneHot(i, n, Ints({0, 1}), attrs), DType::Bool);
  const Val off = Select(values, 0, 0), on = Select(values, 0, 1);
  return Where(mask, on, off);
}

// Before opset 21 scale and bias were one number a group: there the normalization is InstanceNormalization of [batch, groups, rest].
Val Onnx::GroupNormalization(Val x, Val scale, Val bias, const GroupNormalizationAttrs& attrs) {
  if (opset() >= 21) return OnnxOps::GroupNormalization(x, scale, bias, attrs);
  const int64_t groups = attrs.num_groups.value;
  const DType dtype = x.dtype();
  const Val grouped = OnnxOps::Reshape(x, Ints({0, groups, -1}));
  const Val normal = InstanceNormalization(grouped, Full({groups}, 1, dtype), Full({groups}, 0, dtype), {.epsilon = attrs.epsilon});
  const Val shape = ShapeOf(x);
  shape_hint_ = DimVec(x.shape());
  const Val whole = OnnxOps::Reshape(normal, shape);
  IntVec spatial;
  for (int64_t i = 1; i + 1 < x.rank(); ++i) spatial.push_back(i);
  return whole * Unsqueeze(scale, spatial) + Unsqueeze(bias, spatial);
}

}  // namespace pt2onnx
