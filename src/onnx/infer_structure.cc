// Shapes of operators that move data: reshape, slice, gather, reduce, concat, and matrix products.
#include <algorithm>

#include "onnx/infer.h"

namespace pt2onnx {
namespace {

const SymExpr kUnknown = SymExpr::Unknown();

void Reshape(InferCall& c) {
  const DimVec* target = c.Known(1);
  if (!target) {
    if (c.Ranked(1) && c.Rank(1) == 1 && c.Shape(1)[0].IsConst()) c.SetRank(0, c.Shape(1)[0].Const());
    return;
  }
  DimVec out = *target;
  const bool allow_zero = c.Int("allowzero", 0) != 0;
  std::optional<size_t> rest;
  SymExpr known = 1;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == SymExpr(0) && !allow_zero) out[i] = c.Ranked(0) && i < c.Shape(0).size() ? c.Shape(0)[i] : kUnknown;
    if (out[i] == SymExpr(-1)) rest = i;
    else known *= out[i];
  }
  if (rest) {
    const auto quotient = c.Ranked(0) ? TryDivideExactly(Product(c.Shape(0)), known) : std::nullopt;
    out[*rest] = quotient && known != SymExpr(0) ? *quotient : kUnknown;
  }
  c.Set(0, out);
}

void Expand(InferCall& c) {
  const DimVec* target = c.Known(1);
  if (target && c.Ranked(0)) {
    c.Set(0, BroadcastDims(c.Shape(0), *target));
  } else if (c.Ranked(0) && c.Ranked(1) && c.Rank(1) == 1 && c.Shape(1)[0].IsConst()) {
    c.SetRank(0, std::max(c.Rank(0), c.Shape(1)[0].Const()));
  }
}

void Transpose(InferCall& c) {
  if (!c.Ranked(0)) return;
  const Ints perm = c.IntList("perm");
  DimVec out(c.Shape(0));
  if (perm.empty()) std::reverse(out.begin(), out.end());
  for (size_t i = 0; i < perm.size() && i < out.size(); ++i) {
    const auto axis = c.Axis(perm[i], c.Rank(0));
    out[i] = axis ? c.Shape(0)[static_cast<size_t>(*axis)] : kUnknown;
  }
  c.Set(0, out);
}

void Unsqueeze(InferCall& c) {
  const auto axes = c.KnownConst(1);
  if (!axes || !c.Ranked(0)) return;
  const int64_t rank = c.Rank(0) + std::ssize(*axes);
  std::vector<bool> is_new(static_cast<size_t>(rank));
  for (int64_t axis : *axes)
    if (const auto a = c.Axis(axis, rank)) is_new[static_cast<size_t>(*a)] = true;
  DimVec out;
  size_t next = 0;
  for (size_t i = 0; i < is_new.size(); ++i) out.push_back(is_new[i] ? SymExpr(1) : next < c.Shape(0).size() ? c.Shape(0)[next++] : kUnknown);
  c.Set(0, out);
}

void Squeeze(InferCall& c) {
  const auto axes = c.KnownConst(1);
  if (!axes || !c.Ranked(0)) return;
  std::vector<bool> gone(c.Shape(0).size());
  for (int64_t axis : *axes)
    if (const auto a = c.Axis(axis, c.Rank(0))) gone[static_cast<size_t>(*a)] = true;
  DimVec out;
  for (size_t i = 0; i < gone.size(); ++i)
    if (!gone[i]) out.push_back(c.Shape(0)[i]);
  c.Set(0, out);
}

void Flatten(InferCall& c) {
  if (!c.Ranked(0)) return c.SetRank(0, 2);
  int64_t axis = c.Int("axis", 1);
  if (axis < 0) axis += c.Rank(0);
  axis = std::clamp<int64_t>(axis, 0, c.Rank(0));
  const Dims shape = c.Shape(0);
  c.Set(0, {Product(shape.first(static_cast<size_t>(axis))), Product(shape.subspan(static_cast<size_t>(axis)))});
}

void Concat(InferCall& c) {
  const auto list = c.List(0);
  if (list.empty() || !std::all_of(list.begin(), list.end(), [](const Type* t) { return t->ranked; })) return;
  DimVec out(list[0]->shape);
  const auto axis = c.Axis(c.Int("axis", 0), std::ssize(out));
  if (!axis) return;
  const size_t at = static_cast<size_t>(*axis);
  for (size_t k = 1; k < list.size(); ++k) {
    const Dims shape = list[k]->shape;
    if (shape.size() != out.size()) return;
    for (size_t i = 0; i < out.size(); ++i) {
      if (i == at) out[i] = out[i].IsUnknown() || shape[i].IsUnknown() ? kUnknown : out[i] + shape[i];
      else if (out[i].IsUnknown() || (!out[i].IsConst() && shape[i].IsConst())) out[i] = shape[i];  // they are equal
    }
  }
  c.Set(0, out);
}

// Number of elements of start:end:step of a dim; all are Python's after ONNX's clamping.
SymExpr SliceLength(SymExpr dim, SymExpr start, SymExpr end, SymExpr step) {
  if (!step.IsConst() || step.Const() == 0 || dim.IsUnknown() || start.IsUnknown() || end.IsUnknown()) return kUnknown;
  const int64_t s = step.Const();
  if (dim.IsConst() && start.IsConst() && end.IsConst()) {
    const int64_t n = dim.Const();
    const auto clamp = [&](int64_t x) { return std::clamp<int64_t>(x < 0 ? x + n : x, s > 0 ? 0 : -1, s > 0 ? n : n - 1); };
    const int64_t length = s > 0 ? clamp(end.Const()) - clamp(start.Const()) + s - 1 : clamp(end.Const()) - clamp(start.Const()) + s + 1;
    return std::max<int64_t>(0, length / s);
  }
  if (s != 1) return kUnknown;
  if (end.IsConst() && end.Const() >= (int64_t{1} << 31)) end = dim;
  if (start == SymExpr(0) && end == dim) return dim;
  if (end == dim && start.IsConst() && start.Const() < 0) return kUnknown;  // min(dim, -start)
  return kUnknown;
}

void Slice(InferCall& c) {
  if (!c.Ranked(0)) return;
  DimVec out(c.Shape(0));
  const DimVec* starts = c.Known(1);
  const DimVec* ends = c.Known(2);
  const DimVec* steps = c.In(4) ? c.Known(4) : nullptr;
  std::optional<IntVec> axes = c.KnownConst(3);
  if (!axes && !c.In(3) && starts) {
    axes.emplace();
    for (int64_t i = 0; i < std::ssize(*starts); ++i) axes->push_back(i);
  }
  if (!axes) return c.SetRank(0, c.Rank(0));
  for (size_t i = 0; i < axes->size(); ++i) {
    const auto axis = c.Axis((*axes)[i], c.Rank(0));
    if (!axis) continue;
    SymExpr& dim = out[static_cast<size_t>(*axis)];
    const bool known = starts && ends && i < starts->size() && i < ends->size() && (!c.In(4) || (steps && i < steps->size()));
    dim = known ? SliceLength(dim, (*starts)[i], (*ends)[i], steps ? (*steps)[i] : SymExpr(1)) : kUnknown;
  }
  c.Set(0, out);
}

void Gather(InferCall& c) {
  if (!c.Ranked(0) || !c.Ranked(1)) return;
  const auto axis = c.Axis(c.Int("axis", 0), c.Rank(0));
  if (!axis) return;
  DimVec out(c.Shape(0).first(static_cast<size_t>(*axis)));
  const Dims indices = c.Shape(1), rest = c.Shape(0).subspan(static_cast<size_t>(*axis) + 1);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), rest.begin(), rest.end());
  c.Set(0, out);
}

void GatherND(InferCall& c) {
  if (!c.Ranked(0) || !c.Ranked(1) || c.Rank(1) == 0 || !c.Shape(1).back().IsConst()) return;
  const size_t used = static_cast<size_t>(c.Int("batch_dims", 0) + c.Shape(1).back().Const());
  if (used > c.Shape(0).size()) return;
  DimVec out(c.Shape(1).first(c.Shape(1).size() - 1));
  const Dims rest = c.Shape(0).subspan(used);
  out.insert(out.end(), rest.begin(), rest.end());
  c.Set(0, out);
}

void Reduced(InferCall& c, const std::optional<IntVec>& axes, bool all, bool keep) {
  if (!c.Ranked(0)) return;
  if (!axes && !all) {
    if (keep) c.SetRank(0, c.Rank(0));
    else if (c.Ranked(1) && c.Rank(1) == 1 && c.Shape(1)[0].IsConst()) c.SetRank(0, std::max<int64_t>(0, c.Rank(0) - c.Shape(1)[0].Const()));
    return;
  }
  std::vector<bool> gone(c.Shape(0).size(), all);
  if (axes)
    for (int64_t axis : *axes)
      if (const auto a = c.Axis(axis, c.Rank(0))) gone[static_cast<size_t>(*a)] = true;
  DimVec out;
  for (size_t i = 0; i < gone.size(); ++i) {
    if (!gone[i]) out.push_back(c.Shape(0)[i]);
    else if (keep) out.push_back(1);
  }
  c.Set(0, out);
}

void Reduce(InferCall& c) {
  const bool keep = c.Int("keepdims", 1) != 0;
  auto axes = c.KnownConst(1);
  const bool none = !c.In(1) || (axes && axes->empty());
  const bool noop = c.Int("noop_with_empty_axes", 0) != 0;
  Reduced(c, none ? std::optional(IntVec()) : axes, none && !noop, keep);
}

// numpy.matmul: vectors, matrices, batches that broadcast.
void MatMul(InferCall& c, int second) {
  if (!c.Ranked(0) || !c.Ranked(second) || c.Rank(0) == 0 || c.Rank(second) == 0) return;
  const Dims a = c.Shape(0), b = c.Shape(second);
  DimVec out = BroadcastDims(a.size() > 2 ? a.first(a.size() - 2) : Dims(), b.size() > 2 ? b.first(b.size() - 2) : Dims());
  if (a.size() > 1) out.push_back(a[a.size() - 2]);
  if (b.size() > 1) out.push_back(b.back());
  c.Set(0, out);
}

void Gemm(InferCall& c) {
  if (!c.Ranked(0) || !c.Ranked(1) || c.Rank(0) != 2 || c.Rank(1) != 2) return c.SetRank(0, 2);
  c.Set(0, {c.Shape(0)[c.Int("transA", 0) ? 1 : 0], c.Shape(1)[c.Int("transB", 0) ? 0 : 1]});
}

void Pad(InferCall& c) {
  if (!c.Ranked(0)) return;
  const DimVec* pads = c.Known(1);
  std::optional<IntVec> axes = c.KnownConst(3);
  if (!axes && !c.In(3)) {
    axes.emplace();
    for (int64_t i = 0; i < c.Rank(0); ++i) axes->push_back(i);
  }
  if (!pads || !axes || pads->size() != 2 * axes->size()) return c.SetRank(0, c.Rank(0));
  DimVec out(c.Shape(0));
  for (size_t i = 0; i < axes->size(); ++i) {
    if (const auto axis = c.Axis((*axes)[i], c.Rank(0))) {
      SymExpr& dim = out[static_cast<size_t>(*axis)];
      const SymExpr sum = (*pads)[i] + (*pads)[axes->size() + i];
      dim = dim.IsUnknown() || sum.IsUnknown() ? kUnknown : dim + sum;
    }
  }
  c.Set(0, out);
}

void Tile(InferCall& c) {
  if (!c.Ranked(0)) return;
  const DimVec* repeats = c.Known(1);
  DimVec out(c.Shape(0));
  for (size_t i = 0; i < out.size(); ++i) {
    const bool known = repeats && i < repeats->size() && !out[i].IsUnknown() && !(*repeats)[i].IsUnknown();
    out[i] = known ? out[i] * (*repeats)[i] : kUnknown;
  }
  c.Set(0, out);
}

void Split(InferCall& c) {
  if (!c.Ranked(0)) return;
  const auto axis = c.Axis(c.Int("axis", 0), c.Rank(0));
  if (!axis) return;
  const DimVec* sizes = c.Known(1);
  const SymExpr dim = c.Shape(0)[static_cast<size_t>(*axis)];
  const int64_t n = std::ssize(c.types);
  for (int64_t i = 0; i < n; ++i) {
    DimVec out(c.Shape(0));
    SymExpr& size = out[static_cast<size_t>(*axis)];
    if (sizes) size = static_cast<size_t>(i) < sizes->size() ? (*sizes)[static_cast<size_t>(i)] : kUnknown;
    else if (c.In(1) || !dim.IsConst()) size = kUnknown;
    else size = std::min((dim.Const() + n - 1) / n, std::max<int64_t>(0, dim.Const() - i * ((dim.Const() + n - 1) / n)));
    c.Set(static_cast<size_t>(i), out);
  }
}

void TopK(InferCall& c) {
  if (!c.Ranked(0)) return;
  DimVec out(c.Shape(0));
  const auto axis = c.Axis(c.Int("axis", -1), c.Rank(0));
  if (!axis) return;
  const DimVec* k = c.Known(1);
  out[static_cast<size_t>(*axis)] = k && k->size() == 1 ? k->front() : kUnknown;
  c.Set(0, out);
  c.Set(1, out);
}

void OneHot(InferCall& c) {
  if (!c.Ranked(0)) return;
  DimVec out(c.Shape(0));
  int64_t axis = c.Int("axis", -1);
  if (axis < 0) axis += c.Rank(0) + 1;
  if (axis < 0 || axis > c.Rank(0)) return;
  const DimVec* depth = c.Known(1);
  out.insert(out.begin() + axis, depth && depth->size() == 1 ? depth->front() : kUnknown);
  c.Set(0, out);
}

void RangeLength(InferCall& c) {
  const DimVec* start = c.Known(0);
  const DimVec* limit = c.Known(1);
  const DimVec* delta = c.Known(2);
  SymExpr n = kUnknown;
  if (start && limit && delta && start->size() == 1 && limit->size() == 1 && delta->size() == 1 && delta->front().IsConst() && delta->front().Const() != 0)
    n = Max(CeilDiv(limit->front() - start->front(), delta->front()), 0);
  // Max(0, a dim) is the dim.
  if (n.op() == SymOp::Max && start->front() == SymExpr(0) && delta->front() == SymExpr(1) && limit->front().IsSymbol()) n = limit->front();
  c.Set(0, {n});
}

// Letters of the result keep the dim they have in an operand.
void Einsum(InferCall& c) {
  std::string equation;
  for (char ch : c.Text("equation", ""))
    if (ch != ' ') equation += ch;
  const size_t arrow = equation.find("->");
  if (arrow == std::string::npos || equation.find('.') != std::string::npos) return;
  const auto operands = c.List(0);
  const std::string right = equation.substr(arrow + 2);
  DimVec out(std::vector<SymExpr>(right.size(), kUnknown));
  size_t operand = 0, at = 0;
  for (char ch : equation.substr(0, arrow)) {
    if (ch == ',') {
      ++operand;
      at = 0;
      continue;
    }
    if (operand < operands.size() && operands[operand]->ranked && at < operands[operand]->shape.size())
      for (size_t i = 0; i < right.size(); ++i)
        if (right[i] == ch && (out[i].IsUnknown() || out[i] == SymExpr(1))) out[i] = operands[operand]->shape[at];
    ++at;
  }
  c.Set(0, out);
}

void DepthAndSpace(InferCall& c, bool to_depth) {
  if (!c.Ranked(0) || c.Rank(0) != 4) return;
  const SymExpr block = c.Int("blocksize", 1);
  const auto up = [](SymExpr dim, SymExpr by) { return dim.IsUnknown() ? dim : dim * by; };
  const auto down = [](SymExpr dim, SymExpr by) { return dim.IsUnknown() ? dim : FloorDiv(dim, by); };
  const Dims x = c.Shape(0);
  if (to_depth) c.Set(0, {x[0], up(x[1], block * block), down(x[2], block), down(x[3], block)});
  else c.Set(0, {x[0], down(x[1], block * block), up(x[2], block), up(x[3], block)});
}

void NonZero(InferCall& c) { c.Set(0, {c.Ranked(0) ? SymExpr(c.Rank(0)) : kUnknown, kUnknown}); }

void Compress(InferCall& c) {
  const Arg& axis = c.Attr("axis");
  if (IsNone(axis)) return c.SetRank(0, 1);
  if (!c.Ranked(0)) return;
  DimVec out(c.Shape(0));
  if (const auto a = c.Axis(std::get<int64_t>(axis), c.Rank(0))) out[static_cast<size_t>(*a)] = kUnknown;
  c.Set(0, out);
}

void Unique(InferCall& c) {
  const Arg& axis = c.Attr("axis");
  for (size_t i = 1; i < c.types.size(); ++i) c.SetRank(i, 1);
  if (IsNone(axis)) return c.SetRank(0, 1);
  if (!c.Ranked(0)) return;
  DimVec out(c.Shape(0));
  if (const auto a = c.Axis(std::get<int64_t>(axis), c.Rank(0))) out[static_cast<size_t>(*a)] = kUnknown;
  c.Set(0, out);
}

void ShapeOf(InferCall& c) {
  if (!c.Ranked(0)) return c.SetRank(0, 1);
  const int64_t rank = c.Rank(0);
  const auto clamp = [&](int64_t x) { return std::clamp<int64_t>(x < 0 ? x + rank : x, 0, rank); };
  c.Set(0, {std::max<int64_t>(0, clamp(c.Int("end", rank)) - clamp(c.Int("start", 0)))});
}

}  // namespace

bool InferStructure(InferCall& c) {
  switch (c.op) {
    case OnnxOp::Reshape: return Reshape(c), true;
    case OnnxOp::Expand: return Expand(c), true;
    case OnnxOp::Transpose: return Transpose(c), true;
    case OnnxOp::Unsqueeze: return Unsqueeze(c), true;
    case OnnxOp::Squeeze: return Squeeze(c), true;
    case OnnxOp::Flatten: return Flatten(c), true;
    case OnnxOp::Concat: return Concat(c), true;
    case OnnxOp::Slice: return Slice(c), true;
    case OnnxOp::Gather: return Gather(c), true;
    case OnnxOp::GatherElements: return c.Ranked(1) ? c.Set(0, DimVec(c.Shape(1))) : void(), true;
    case OnnxOp::GatherND: return GatherND(c), true;
    case OnnxOp::ReduceL1: case OnnxOp::ReduceL2: case OnnxOp::ReduceLogSum: case OnnxOp::ReduceLogSumExp: case OnnxOp::ReduceMax: case OnnxOp::ReduceMean:
    case OnnxOp::ReduceMin: case OnnxOp::ReduceProd: case OnnxOp::ReduceSum: case OnnxOp::ReduceSumSquare: return Reduce(c), true;
    case OnnxOp::ArgMax: case OnnxOp::ArgMin: return Reduced(c, IntVec{c.Int("axis", 0)}, false, c.Int("keepdims", 1) != 0), true;
    case OnnxOp::MatMul: case OnnxOp::MatMulInteger: return MatMul(c, 1), true;
    case OnnxOp::QLinearMatMul: return MatMul(c, 3), true;
    case OnnxOp::Gemm: return Gemm(c), true;
    case OnnxOp::Shape: return ShapeOf(c), true;
    case OnnxOp::Size: return c.Set(0, {}), true;
    case OnnxOp::Range: return RangeLength(c), true;
    case OnnxOp::TopK: return TopK(c), true;
    case OnnxOp::Split: return Split(c), true;
    case OnnxOp::Pad: return Pad(c), true;
    case OnnxOp::Tile: return Tile(c), true;
    case OnnxOp::OneHot: return OneHot(c), true;
    case OnnxOp::NonZero: return NonZero(c), true;
    case OnnxOp::ConstantOfShape: {
      const DimVec* shape = c.Known(0);
      if (shape) c.Set(0, *shape);
      else if (c.Ranked(0) && c.Rank(0) == 1 && c.Shape(0)[0].IsConst()) c.SetRank(0, c.Shape(0)[0].Const());
      return true;
    }
    case OnnxOp::Einsum: return Einsum(c), true;
    case OnnxOp::DepthToSpace: return DepthAndSpace(c, false), true;
    case OnnxOp::SpaceToDepth: return DepthAndSpace(c, true), true;
    case OnnxOp::Compress: return Compress(c), true;
    case OnnxOp::Unique: return Unique(c), true;
    case OnnxOp::Det: return c.Ranked(0) && c.Rank(0) >= 2 ? c.Set(0, DimVec(c.Shape(0).first(c.Shape(0).size() - 2))) : void(), true;
    case OnnxOp::CenterCropPad: return c.Ranked(0) ? c.SetRank(0, c.Rank(0)) : void(), true;
    case OnnxOp::RandomNormal: case OnnxOp::RandomUniform: return c.Set(0, DimVec(c.IntList("shape"))), true;
    case OnnxOp::BitCast: {
      if (!c.Ranked(0)) return true;
      c.Set(0, DimVec(c.Shape(0)));  // element sizes are equal in ONNX's BitCast
      return true;
    }
    default: return false;
  }
}

}  // namespace pt2onnx
