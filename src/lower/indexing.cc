#include "lower/indexing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/sym_facts.h"

namespace pt2onnx {
namespace {

constexpr int64_t kLargestConstant = 1 << 16;  // elements; longer ranges are computed

// ONNX Runtime's ScatterElements doesn't add float16, nor order bool.
DType CombinedIn(DType dtype, std::string_view reduction) {
  if (reduction == "none") return dtype;
  if (dtype == DType::F16 || dtype == DType::BF16) return DType::F32;
  return dtype == DType::Bool && reduction != "add" && reduction != "mul" ? DType::I32 : dtype;
}

}  // namespace

DimVec WithDims(Dims shape, int64_t axis, int64_t count, const DimVec& by) {
  DimVec out(shape.first(static_cast<size_t>(axis)));
  out.insert(out.end(), by.begin(), by.end());
  const Dims rest = shape.subspan(static_cast<size_t>(axis + count));
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

IntVec Axes(int64_t first, int64_t last) {
  IntVec axes;
  for (int64_t i = first; i < last; ++i) axes.push_back(i);
  return axes;
}

IntVec MoveDims(int64_t rank, const IntVec& from, const IntVec& to) {
  IntVec perm(std::vector<int64_t>(static_cast<size_t>(rank), -1));
  for (size_t i = 0; i < from.size(); ++i) perm[static_cast<size_t>(Axis(to[i], rank))] = Axis(from[i], rank);
  int64_t next = 0;
  for (int64_t& place : perm) {
    if (place >= 0) continue;
    while (std::any_of(from.begin(), from.end(), [&](int64_t d) { return Axis(d, rank) == next; })) ++next;
    place = next++;
  }
  return perm;
}

IntVec InversePerm(const IntVec& perm) {
  IntVec inverse(std::vector<int64_t>(perm.size()));
  for (size_t i = 0; i < perm.size(); ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return inverse;
}

SymExpr ClipBound(SymExpr at, SymExpr n) {
  if (at.IsConst() && at.Const() == INT64_MAX) return n;
  const auto from_front = [&] { return ProvablyLessEqual(at, n) ? at : Min(at, n); };
  const auto from_back = [&] { return ProvablyNonNegative(n + at) ? n + at : Max(0, n + at); };
  if (ProvablyNonNegative(at)) return from_front();
  if (ProvablyLess(at, 0)) return from_back();
  return Where(Lt(at, 0), from_back(), from_front());
}

SymExpr FrontIndex(SymExpr at, SymExpr n) {
  if (ProvablyNonNegative(at)) return at;
  return ProvablyLess(at, 0) ? at + n : Where(Lt(at, 0), at + n, at);
}

Val AtLeast1D(Onnx& b, Val x) { return x.IsScalar() ? b.Reshape(x, {1}) : x; }

Val AsIndex(Onnx& b, Val x) { return b.Cast(x, DType::I64); }

Val Progression(Onnx& b, SymExpr start, SymExpr step, SymExpr n) {
  if (start.IsConst() && step.IsConst() && n.IsConst() && n.Const() <= kLargestConstant) {
    IntVec values;
    for (int64_t i = 0; i < n.Const(); ++i) values.push_back(start.Const() + i * step.Const());
    return b.Ints(values);
  }
  // ONNX Runtime makes a Slice of a Gather by a Range, and takes the end of one that goes down to 0, -1, for the last element.
  if (step.IsConst() && step.Const() < 0) return b.Int(start) - Progression(b, 0, 0 - step, n);
  return b.Range(b.Int(start), b.Int(start + n * step), b.Int(step));
}

Val Wrapped(Onnx& b, Val index, SymExpr n) { return b.Where(b.Less(index, b.IntScalar(0)), index + b.Int(n), index); }

Val LaidAlong(Onnx& b, Val vector, int64_t axis, int64_t rank) {
  IntVec others;
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis) others.push_back(i);
  return b.Unsqueeze(vector, others);
}

Val WithRank(Onnx& b, Val x, int64_t rank) { return x.rank() < rank ? b.Unsqueeze(x, Axes(0, rank - x.rank())) : x; }

Val OnDiagonal(Onnx& b, SymExpr rows, SymExpr cols, SymExpr offset) {
  return b.Equal(b.Unsqueeze(Progression(b, offset, 1, rows), {1}), b.Unsqueeze(Iota(b, cols), {0}));
}

Scalar ExtremeOf(DType dtype, bool largest) {
  if (IsFloat(dtype)) return largest ? INFINITY : -INFINITY;
  if (dtype == DType::Bool) return largest;
  const int bits = 8 * ItemSize(dtype) - (IsUnsigned(dtype) ? 0 : 1);
  const int64_t most = bits >= 63 ? INT64_MAX : (int64_t{1} << bits) - 1;
  return largest ? most : IsUnsigned(dtype) ? 0 : -most - 1;
}

Val LaterUnsupported(Onnx& b, size_t result, std::string message, std::string help) {
  Problem problem;
  problem.code = "E0301";
  problem.message = std::move(message);
  problem.help = std::move(help);
  problem.loc = b.call().loc;
  problem.op = b.call().op->name;
  Value* value = b.context().NewValue(b.call().types[result]);
  value->problem = b.context().diagnostics.Add(std::move(problem));
  return b.Wrap(value);
}

// Gather(x ++ v, map), where map[i] is i, or n + j if position j is i.
Val ReplaceAlong(Onnx& b, Val x, int64_t axis, Val positions, Val v) {
  const SymExpr n = x.dim(axis), m = v.dim(axis);
  const DimVec* known = b.KnownInts(positions);
  const bool constant = known && n.IsConst() && n.Const() <= kLargestConstant &&
                        std::all_of(known->begin(), known->end(), [](const SymExpr& e) { return e.IsConst(); });
  OptVal map;
  if (constant) {
    IntVec values = Axes(0, n.Const());
    for (size_t j = 0; j < known->size(); ++j) {
      const int64_t at = (*known)[j].Const();
      values[static_cast<size_t>(at < 0 ? at + n.Const() : at)] = n.Const() + static_cast<int64_t>(j);
    }
    map = b.Ints(values);
  } else {
    map = b.ScatterElements(Iota(b, n), positions, Progression(b, n, 1, m));
  }
  return b.Gather(b.Concat({x, v}, axis), *map, axis);
}

Val ScatterAlong(Onnx& b, Val x, int64_t axis, Val index, Val v, std::string_view reduction) {
  index = AsIndex(b, AtLeast1D(b, index));
  // ScatterND adds in parallel in ONNX Runtime, without a lock: only for plain writes.
  if (axis == 0 && reduction == "none") return b.ScatterND(x, b.Unsqueeze(index, {1}), v);
  return ScatterAt(b, x, axis, b.Expand(LaidAlong(b, index, axis, x.rank()), v.shape()), v, reduction);
}

Val ScatterAt(Onnx& b, Val x, int64_t axis, Val index, Val v, std::string_view reduction) {
  const DType dtype = CombinedIn(x.dtype(), reduction);
  const Val out = b.ScatterElements(b.Cast(x, dtype), AsIndex(b, index), b.Cast(v, dtype), {.axis = axis, .reduction = reduction});
  return b.Cast(out, x.dtype());
}

}  // namespace pt2onnx
