#include "passes/geometry.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/sym_facts.h"

namespace pt2onnx {
namespace {

bool IsPolynomial(SymExpr e) {
  if (e.IsConst() || e.IsSymbol()) return true;
  if (e.op() != SymOp::Add && e.op() != SymOp::Mul && e.op() != SymOp::Pow) return false;
  return std::ranges::all_of(e.args(), IsPolynomial);
}

// The value at sizes that nothing relates, if PyTorch recorded of all its symbols that they are at least 2. What differs there was a copy when
// the program was captured, and PyTorch admits no size for which it would not be. Not where sizes are divided: what s // 2 leaves over depends
// on s.
std::optional<int64_t> AtGenericSizes(SymExpr e) {
  if (!IsPolynomial(e)) return std::nullopt;
  std::map<std::string_view, int64_t> sizes;
  for (const SymExpr& symbol : Symbols(e)) {
    const Range range = symbol.node()->pool->RecordedRange(symbol);
    if (!range.lo || *range.lo < 2) return std::nullopt;
    uint64_t hash = 0;
    for (char c : symbol.SymbolName()) hash = hash * 131 + static_cast<uint64_t>(c);
    sizes[symbol.SymbolName()] = 10007 + static_cast<int64_t>(hash % 9973) * 2;
  }
  return EvaluateInt(e, sizes);
}

Tri Equal(SymExpr a, SymExpr b) {
  if (ProvablyEqual(a, b)) return Tri::Yes;
  if (ProvablyNotEqual(a, b)) return Tri::No;
  const auto x = AtGenericSizes(a), y = AtGenericSizes(b);
  return x && y && *x != *y ? Tri::No : Tri::Open;
}

Tri Divides(SymExpr part, SymExpr whole) {
  if (TryDivideExactly(whole, part)) return Tri::Yes;
  const auto x = AtGenericSizes(part), y = AtGenericSizes(whole);
  return x && y && *x != 0 && *y % *x != 0 ? Tri::No : Tri::Open;
}

// PyTorch traced with sizes that are not 0 or 1 (else they would be constants): what it decided, eager decides for such sizes.
Tri IsOne(SymExpr n) { return n.IsConst() ? (n.Const() == 1 ? Tri::Yes : Tri::No) : Tri::No; }

bool HasZero(Dims shape) {
  return std::any_of(shape.begin(), shape.end(), [](SymExpr n) { return n == 0; });
}

// Packed in this order of dims, outermost first.
Tri Packed(const Type& type, const std::vector<int64_t>& order) {
  if (HasZero(type.shape)) return Tri::Yes;
  const std::vector<SymExpr> strides = StridesOf(type);
  SymExpr expected = 1;
  Tri answer = Tri::Yes;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t d = static_cast<size_t>(order[i]);
    if (IsOne(type.shape[d]) == Tri::Yes) continue;
    const Tri same = Equal(strides[d], expected);
    if (same == Tri::No) return Tri::No;
    if (same == Tri::Open) answer = Tri::Open;
    expected = expected * type.shape[d];
  }
  return answer;
}

}  // namespace

std::vector<SymExpr> RowMajorStrides(Dims shape) {
  std::vector<SymExpr> strides(shape.size());
  SymExpr step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step = step * (shape[i] == 0 ? SymExpr(1) : shape[i]);
  }
  return strides;
}

std::vector<SymExpr> StridesOf(const Type& type) {
  return type.strides.size() == type.shape.size() ? std::vector<SymExpr>(type.strides.begin(), type.strides.end()) : RowMajorStrides(type.shape);
}

Tri IsContiguous(const Type& type, int64_t memory_format) {
  const size_t rank = type.shape.size();
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (memory_format == 2 || memory_format == 3) {
    if (rank != static_cast<size_t>(memory_format) + 2) return Tri::No;
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());  // N, spatial..., C
  }
  return Packed(type, order);
}

ViewStrides StridesAsView(const Type& type, Dims shape) {
  if (HasZero(type.shape)) return {Tri::Yes, RowMajorStrides(shape)};
  const std::vector<SymExpr> old_strides = StridesOf(type);
  std::vector<SymExpr> strides(shape.size());
  if (type.shape.empty()) {
    std::fill(strides.begin(), strides.end(), SymExpr(1));
    return {Tri::Yes, strides};
  }
  // Walk runs of old dims that lie in one piece, innermost first, and hand each run's elements to new dims.
  Tri possible = Tri::Yes;
  int64_t view_d = static_cast<int64_t>(shape.size()) - 1;
  SymExpr base = old_strides.back(), run = 1, taken = 1;
  for (int64_t d = static_cast<int64_t>(type.shape.size()) - 1; d >= 0; --d) {
    run = run * type.shape[static_cast<size_t>(d)];
    if (d > 0) {
      if (IsOne(type.shape[static_cast<size_t>(d - 1)]) == Tri::Yes) continue;
      const Tri joined = Equal(old_strides[static_cast<size_t>(d - 1)], run * base);
      if (joined == Tri::Yes) continue;
      if (joined == Tri::Open) possible = Tri::Open;
    }
    while (view_d >= 0) {
      const SymExpr n = shape[static_cast<size_t>(view_d)];
      if (!(IsOne(n) == Tri::Yes) && ProvablyEqual(taken, run)) break;
      if (!(IsOne(n) == Tri::Yes)) {
        const Tri fits = Divides(taken * n, run);
        if (fits == Tri::No) return {Tri::No, {}};
        if (fits == Tri::Open) possible = Tri::Open;
      }
      strides[static_cast<size_t>(view_d)] = taken * base;
      taken = taken * n;
      --view_d;
    }
    const Tri whole = Equal(taken, run);
    if (whole == Tri::No) return {possible == Tri::Open ? Tri::Open : Tri::No, {}};
    if (whole == Tri::Open) possible = Tri::Open;
    if (d > 0) {
      base = old_strides[static_cast<size_t>(d - 1)];
      run = taken = 1;
    }
  }
  return {view_d == -1 ? possible : possible == Tri::Open ? Tri::Open : Tri::No, strides};
}

Tri Overlaps(const Type& type) {
  if (HasZero(type.shape)) return Tri::No;
  const std::vector<SymExpr> strides = StridesOf(type);
  std::vector<std::pair<int64_t, SymExpr>> known;  // stride, size
  for (size_t i = 0; i < strides.size(); ++i) {
    if (IsOne(type.shape[i]) == Tri::Yes) continue;
    if (strides[i] == 0) return Tri::Yes;
    if (!strides[i].IsConst()) {
      // The strides of a packed tensor, or of slices of it, never meet; anything else that is symbolic stays open.
      return MemoryOrder(type) ? Tri::No : Tri::Open;
    }
    known.emplace_back(strides[i].Const(), type.shape[i]);
  }
  std::sort(known.begin(), known.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  SymExpr reach = 0;
  for (const auto& [stride, size] : known) {
    if (!ProvablyLess(reach, stride)) return reach.IsConst() ? Tri::Yes : Tri::Open;
    reach = reach + (size - 1) * stride;
  }
  return Tri::No;
}

bool Covers(const Type& whole, const Type& part) {
  if (!MemoryOrder(whole)) return false;
  SymExpr room = 1, last = part.offset;
  for (const SymExpr& n : whole.shape) room = room * n;
  const std::vector<SymExpr> strides = StridesOf(part);
  for (size_t i = 0; i < strides.size(); ++i) last = last + (part.shape[i] - 1) * strides[i];
  return HasZero(part.shape) || (!ProvablyLess(part.offset, whole.offset) && !ProvablyLess(whole.offset + room - 1, last));
}

std::optional<std::vector<int64_t>> MemoryOrder(const Type& type) {
  const std::vector<SymExpr> strides = StridesOf(type);
  std::vector<int64_t> order;
  std::vector<bool> used(strides.size(), false);
  SymExpr expected = 1;
  // Innermost first: the dim whose stride is what is covered so far.
  for (size_t n = 0; n < strides.size(); ++n) {
    int64_t found = -1;
    for (size_t i = strides.size(); i-- > 0;) {
      if (used[i]) continue;
      if (IsOne(type.shape[i]) == Tri::Yes) {
        found = static_cast<int64_t>(i);
        break;
      }
      if (found < 0 && ProvablyEqual(strides[i], expected)) found = static_cast<int64_t>(i);
    }
    if (found < 0) return std::nullopt;
    used[static_cast<size_t>(found)] = true;
    order.push_back(found);
    expected = expected * type.shape[static_cast<size_t>(found)];
  }
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace pt2onnx
