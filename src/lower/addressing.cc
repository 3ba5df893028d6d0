#include "lower/addressing.h"

#include <algorithm>

#include "ir/infer.h"

namespace pt2onnx {
namespace {

// Whether index is 0, 1, ..., n - 1, maybe with dims of 1 around it.
bool CountsAll(Onnx& b, Val index, SymExpr n) {
  if (!(index.numel() == n)) return false;
  const auto is = [&](const Arg& arg, int64_t wanted) {
    const DimVec* known = b.KnownInts(b.Wrap(std::get<Value*>(arg)));
    return known && known->size() == 1 && (*known)[0] == wanted;
  };
  const Value* value = index.value;
  while (value->def) {
    const std::string_view op = value->def->op->name;
    const std::span<const Arg> args = value->def->args;
    if (op == "onnx::Range") return is(args[0], 0) && is(args[2], 1);
    if (op != "onnx::Unsqueeze" && op != "onnx::Squeeze" && op != "onnx::Reshape" && op != "onnx::Identity") break;
    value = std::get<Value*>(args[0]);
  }
  const DimVec* known = b.KnownInts(b.Wrap(const_cast<Value*>(value)));
  if (!known) return false;
  for (size_t i = 0; i < known->size(); ++i)
    if (!((*known)[i] == static_cast<int64_t>(i))) return false;
  return true;
}

// Coordinates that vary along dims of their own, in the order of the dims they address, are an open grid: one Gather for each.
//   x[i[:, None], j]  ->  Gather(Gather(x, i, axis=0), j, axis=1)
std::optional<Val> OpenGrid(Onnx& b, Val self, const Addressing& a) {
  for (size_t k = 1; k < a.dims.size(); ++k)
    if (a.dims[k] != a.dims[k - 1] + 1) return std::nullopt;
  struct Part {
    int64_t first, last;  // of the coordinate's own dims it varies in; first > last: none
  };
  std::vector<Part> parts;
  IntVec missing;         // broadcast dims in which none varies
  int64_t next = 0;
  for (const Val& c : a.coords) {
    Part part{0, -1};
    for (int64_t i = 0; i < c.rank(); ++i) {
      if (c.dim(i) == 1) continue;
      if (part.last < part.first) part.first = i;
      part.last = i;
    }
    parts.push_back(part);
    if (part.last < part.first) continue;
    const int64_t lead = a.rank - c.rank();
    if (lead + part.first < next) return std::nullopt;
    for (; next < lead + part.first; ++next) missing.push_back(a.place + next);
    next = lead + part.last + 1;
  }
  for (; next < a.rank; ++next) missing.push_back(a.place + next);
  int64_t axis = a.place;
  for (size_t k = 0; k < parts.size(); ++k) {
    const auto [first, last] = parts[k];
    IntVec around = Axes(0, first);
    for (int64_t i = last + 1; i < a.coords[k].rank(); ++i)
      if (i >= first) around.push_back(i);
    self = GatherAlong(b, self, b.Squeeze(a.coords[k], around), axis);
    axis += last - first + 1;
  }
  return b.Unsqueeze(self, missing);
}

}  // namespace

bool IsMask(Val index) { return index.dtype() == DType::Bool || index.dtype() == DType::U8; }

std::optional<SoleMask> SoleMaskOf(Onnx& b, const OptVals& indices) {
  std::optional<SoleMask> found;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    if (found || !IsMask(*indices[i])) return std::nullopt;
    found = SoleMask{b.Cast(*indices[i], DType::Bool), static_cast<int64_t>(i)};
  }
  return found;
}

std::optional<WithMaskDims> ScalarMasksSpread(Onnx& b, Val self, const OptVals& indices) {
  WithMaskDims out{self, indices};
  IntVec added;
  int64_t dim = 0;
  for (OptVal& index : out.indices) {
    if (index && IsMask(*index) && index->IsScalar()) {
      added.push_back(dim);
      index = b.Reshape(*index, {1});
    }
    dim += index && IsMask(*index) ? index->rank() : 1;
  }
  if (added.empty()) return std::nullopt;
  out.self = b.Unsqueeze(self, added);
  return out;
}

Addressing AddressingOf(Onnx& b, Val self, const OptVals& indices) {
  Addressing a;
  int64_t dim = 0;
  for (const OptVal& index : indices) {
    if (!index) {
      ++dim;
    } else if (IsMask(*index)) {
      const Val where = b.NonZero(b.Cast(*index, DType::Bool));  // [r, how many]
      for (int64_t k = 0; k < index->rank(); ++k) {
        a.dims.push_back(dim++);
        a.coords.push_back(index->rank() == 1 ? b.Squeeze(where, {0}) : b.Select(where, 0, k));
      }
      if (SoleMaskOf(b, indices)) a.stacked = b.Transpose(where, {1, 0});
    } else {
      a.dims.push_back(dim++);
      a.coords.push_back(AsIndex(b, *index));
    }
  }
  PT2ONNX_CHECK(!a.dims.empty() && dim <= self.rank());
  for (const Val& c : a.coords) a.rank = std::max(a.rank, c.rank());
  const bool adjacent = a.dims.back() - a.dims.front() + 1 == std::ssize(a.dims);
  a.place = adjacent ? a.dims.front() : 0;
  return a;
}

std::optional<DimVec> BroadcastDims(Onnx& b, const Addressing& a) {
  std::vector<SymExpr> shape;
  for (const Val& c : a.coords) shape = BroadcastShape(shape, c.shape());
  for (const SymExpr& e : shape)
    if (!b.IsDefined(e)) return std::nullopt;
  return shape;
}

Val BroadcastShapeOf(Onnx& b, const Addressing& a) {
  if (const auto shape = BroadcastDims(b, a)) return b.Shape(*shape);
  Val sum = a.coords[0];
  if (!a.stacked)
    for (size_t k = 1; k < a.coords.size(); ++k) sum = sum + a.coords[k];
  return b.ShapeOf(sum);
}

Val Stacked(Onnx& b, const Addressing& a) {
  if (a.stacked) return *a.stacked;
  bool alike = true;
  for (const Val& c : a.coords) alike = alike && std::ranges::equal(c.shape(), a.coords[0].shape());
  Vals columns;
  for (const Val& c : a.coords) columns.push_back(b.Unsqueeze(alike ? c : b.OnnxOps::Expand(c, BroadcastShapeOf(b, a)), {-1}));
  return b.Concat(columns, -1);
}

Val Linear(Onnx& b, const Addressing& a, Val self) {
  Val position = a.coords[0];  // a negative one counts from the end of all
  for (size_t k = 1; k < a.coords.size(); ++k) {
    const SymExpr n = self.dim(a.dims[k]);
    position = position * b.Int(n) + Wrapped(b, a.coords[k], n);
  }
  return b.Flatten1D(position);
}

Val GatherAlong(Onnx& b, Val self, Val index, int64_t axis) {
  if (index.rank() == 1 && CountsAll(b, index, self.dim(axis))) return self;
  return b.Gather(self, index, axis);
}

Val IndexInto(Onnx& b, Val self, const OptVals& indices) {
  if (const auto spread = ScalarMasksSpread(b, self, indices)) return IndexInto(b, spread->self, spread->indices);
  // One mask: the elements where it is true, its dims merged.
  if (const auto sole = SoleMaskOf(b, indices); sole) {
    const int64_t covered = sole->mask.rank();
    const SymExpr merged = Product(self.shape().subspan(static_cast<size_t>(sole->dim), static_cast<size_t>(covered)));
    return b.Compress(b.Reshape(self, WithDims(self.shape(), sole->dim, covered, {merged})), b.Flatten1D(sole->mask), {.axis = sole->dim});
  }
  const Addressing a = AddressingOf(b, self, indices);
  if (a.dims.size() == 1) return GatherAlong(b, self, a.coords[0], a.dims[0]);
  if (const auto grid = OpenGrid(b, self, a)) return *grid;
  const Val front = b.GatherND(b.Transpose(self, a.Front(self.rank())), Stacked(b, a));
  return b.Transpose(front, MoveDims(front.rank(), Axes(0, a.rank), Axes(a.place, a.place + a.rank)));
}

}  // namespace pt2onnx
