// The pool of symbolic expressions, and what walks over them: order, substitution, evaluation.
// A constant is no node; fixed nodes without a pool stand for its kind.
#include "ir/symexpr.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory_resource>
#include <unordered_map>
#include <unordered_set>

#include "ir/sym_internal.h"

namespace pt2onnx {
namespace {

constexpr SymNode kFloatNode{.op = SymOp::Float, .kind = SymKind::Float};
constexpr SymNode kBoolNode{.op = SymOp::Bool, .kind = SymKind::Bool};
constexpr SymNode kUnknownNode{.op = SymOp::Unknown};

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

uint64_t HashOf(const SymExpr& e) {
  if (e.IsConst()) return Mix(1, static_cast<uint64_t>(e.Const()));
  if (auto value = e.TryFloat()) return Mix(2, std::bit_cast<uint64_t>(*value));
  if (auto value = e.TryBool()) return Mix(3, *value);
  return e.node()->hash;
}

uint64_t HashOf(const SymNode& key) {
  uint64_t hash = Mix(static_cast<uint64_t>(key.op) + 17, static_cast<uint64_t>(key.kind));
  for (const SymExpr& arg : key.args) hash = Mix(hash, HashOf(arg));
  for (char c : key.name) hash = Mix(hash, static_cast<unsigned char>(c));
  return hash;
}

bool SameKey(const SymNode& a, const SymNode& b) {
  return a.hash == b.hash && a.op == b.op && a.kind == b.kind && a.name == b.name &&
         std::ranges::equal(a.args, b.args, [](const SymExpr& x, const SymExpr& y) { return x.IsSame(y); });
}

}  // namespace

SymExpr SymExpr::Float(double value) { return SymExpr(&kFloatNode, std::bit_cast<int64_t>(value)); }
SymExpr SymExpr::Bool(bool value) { return SymExpr(&kBoolNode, value); }
SymExpr SymExpr::Unknown() { return SymExpr(&kUnknownNode, 0); }

SymOp SymExpr::op() const { return node_ ? node_->op : SymOp::Int; }
SymKind SymExpr::kind() const { return node_ ? node_->kind : SymKind::Int; }

std::optional<double> SymExpr::TryFloat() const { return node_ == &kFloatNode ? std::optional(std::bit_cast<double>(value_)) : std::nullopt; }
std::optional<bool> SymExpr::TryBool() const { return node_ == &kBoolNode ? std::optional(value_ != 0) : std::nullopt; }
bool SymExpr::IsAnyConst() const { return node_ == nullptr || node_ == &kFloatNode || node_ == &kBoolNode; }

std::string_view SymExpr::SymbolName() const {
  PT2ONNX_CHECK(IsSymbol());
  return node_->name;
}

std::span<const SymExpr> SymExpr::args() const { return node_ ? node_->args : std::span<const SymExpr>(); }

struct SymPool::Memory {
  std::pmr::monotonic_buffer_resource bytes;
};

SymPool::SymPool() : memory_(std::make_unique<Memory>()), table_(64) {}
SymPool::~SymPool() = default;

void SymPool::Grow() {
  std::vector<const SymNode*> old(table_.size() * 2);
  old.swap(table_);
  for (const SymNode* node : old) {
    if (!node) continue;
    size_t slot = node->hash & (table_.size() - 1);
    while (table_[slot]) slot = (slot + 1) & (table_.size() - 1);
    table_[slot] = node;
  }
}

SymExpr SymPool::Insert(const SymNode& key) {
  if ((size_ + 1) * 2 > table_.size()) Grow();
  size_t slot = key.hash & (table_.size() - 1);
  for (; table_[slot]; slot = (slot + 1) & (table_.size() - 1)) {
    if (SameKey(*table_[slot], key)) return SymExpr(table_[slot], 0);
  }
  std::pmr::polymorphic_allocator<> memory(&memory_->bytes);
  SymNode* node = memory.new_object<SymNode>(key);
  SymExpr* args = memory.allocate_object<SymExpr>(key.args.size());
  std::uninitialized_copy(key.args.begin(), key.args.end(), args);
  char* name = memory.allocate_object<char>(key.name.size());
  std::copy(key.name.begin(), key.name.end(), name);
  node->args = {args, key.args.size()};
  node->name = {name, key.name.size()};
  node->pool = this;
  node->id = size_++;
  table_[slot] = node;
  return SymExpr(node, 0);
}

SymExpr SymPool::Intern(SymOp op, SymKind kind, std::span<const SymExpr> args) {
  for (const SymExpr& arg : args) PT2ONNX_CHECK(arg.node() == nullptr || arg.node()->pool == this || arg.node()->pool == nullptr);
  SymNode key{.op = op, .kind = kind, .args = args};
  key.hash = HashOf(key);
  return Insert(key);
}

SymExpr SymPool::Symbol(std::string_view name, SymKind kind, bool positive) {
  auto found = symbols_.find(name);
  if (found == symbols_.end()) {
    SymNode key{.op = SymOp::Symbol, .kind = kind, .name = name};
    key.hash = HashOf(key);
    SymExpr symbol = Insert(key);
    found = symbols_.emplace(symbol.SymbolName(), symbol).first;
  }
  PT2ONNX_CHECK(found->second.kind() == kind);
  if (positive) found->second.node()->positive = true;
  return found->second;
}

std::optional<SymExpr> SymPool::FindSymbol(std::string_view name) const {
  auto found = symbols_.find(name);
  return found == symbols_.end() ? std::nullopt : std::optional(found->second);
}

namespace {

Range Both(const Range& a, const Range& b) {
  Range both = a;
  if (b.lo && (!a.lo || *b.lo > *a.lo)) both.lo = b.lo;
  if (b.hi && (!a.hi || *b.hi < *a.hi)) both.hi = b.hi;
  return both;
}

// The range of s when a*s + c is within `range`.
Range SolveFor(int64_t a, int64_t c, const Range& range) {
  auto divide = [&](std::optional<int64_t> bound, bool up) -> std::optional<int64_t> {
    int64_t moved;
    if (!bound || __builtin_sub_overflow(*bound, c, &moved) || moved == INT64_MIN || a == INT64_MIN) return std::nullopt;
    int64_t numerator = a < 0 ? -moved : moved, denominator = a < 0 ? -a : a;
    return up ? -sym::FloorDivInt(-numerator, denominator) : sym::FloorDivInt(numerator, denominator);
  };
  return a > 0 ? Range{divide(range.lo, true), divide(range.hi, false)} : Range{divide(range.hi, true), divide(range.lo, false)};
}

// A lower bound of 2 is PyTorch's 0/1 specialization, not a promise.
Range Trusted(Range range) {
  if (range.lo == 2) range.lo = 0;
  return range;
}

}  // namespace

void SymPool::SetRange(SymExpr e, std::optional<int64_t> lo, std::optional<int64_t> hi) {
  if (e.IsUnknown() || e.IsAnyConst()) return;
  PT2ONNX_CHECK(e.node()->pool == this);
  Range range{lo, hi};
  auto [entry, is_new] = recorded_.try_emplace(ToString(e), e, range);
  if (!is_new) entry->second.second = Both(entry->second.second, range);
  if (e.kind() != SymKind::Int) return;

  sym::Poly poly = sym::ToPoly(e);
  bool linear = !poly.empty() && poly[0].monomial.IsSymbol() && (poly.size() == 1 || (poly.size() == 2 && poly[1].monomial.IsConst()));
  if (linear) {
    Range& believed = believed_[poly[0].monomial.node()];
    believed = Both(believed, Trusted(SolveFor(poly[0].coefficient, sym::ConstantOf(poly), Trusted(range))));
  } else {
    // The lower bound of a sum of sizes comes from the specialization of each of them.
    Range& believed = believed_[e.node()];
    believed = Both(believed, Range{std::nullopt, hi});
  }
}

Range SymPool::RecordedRange(SymExpr e) const {
  auto found = recorded_.find(ToString(e));
  return found == recorded_.end() ? Range{} : found->second.second;
}

Range SymPool::BelievedRange(SymExpr e) const {
  Range range;
  if (auto found = believed_.find(e.node()); found != believed_.end()) range = found->second;
  if (e.IsSymbol() && e.node()->positive) range = Both(range, Range{0, std::nullopt});
  return range;
}

namespace sym {

int Compare(const SymExpr& a, const SymExpr& b) {
  if (a.IsSame(b)) return 0;
  if (a.op() != b.op()) return a.op() < b.op() ? -1 : 1;  // constants, then symbols, then the rest
  if (a.IsConst()) return a.Const() < b.Const() ? -1 : 1;
  if (auto x = a.TryFloat()) return std::bit_cast<int64_t>(*x) < std::bit_cast<int64_t>(*b.TryFloat()) ? -1 : 1;
  if (auto x = a.TryBool()) return *x ? 1 : -1;
  if (a.kind() != b.kind()) return a.kind() < b.kind() ? -1 : 1;
  if (a.IsSymbol()) return a.SymbolName() < b.SymbolName() ? -1 : 1;
  std::span<const SymExpr> x = a.args(), y = b.args();
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (int order = Compare(x[i], y[i])) return order;
  }
  return x.size() < y.size() ? -1 : 1;
}

SymExpr MakeNode(SymOp op, SymKind kind, std::span<const SymExpr> args) {
  for (const SymExpr& arg : args) {
    if (arg.node() && arg.node()->pool) return arg.node()->pool->Intern(op, kind, args);
  }
  return SymExpr::Unknown();
}

bool AnyUnknown(std::initializer_list<SymExpr> args) {
  return std::ranges::any_of(args, [](const SymExpr& e) { return e.IsUnknown(); });
}

SymExpr AsNumber(SymExpr e) { return e.kind() == SymKind::Bool ? Where(e, 1, 0) : e; }

}  // namespace sym

namespace {

class Substitution {
 public:
  explicit Substitution(const SymMap& values) : values_(values) {}
  SymExpr operator()(const SymExpr& e) {
    if (e.IsAnyConst() || e.IsUnknown()) return e;
    auto [entry, is_new] = done_.try_emplace(e.node());
    if (!is_new) return entry->second;
    SymExpr result = e.IsSymbol() ? Symbol(e) : Rebuild(e);
    return done_[e.node()] = result;
  }

 private:
  SymExpr Symbol(const SymExpr& e) {
    auto found = values_.find(e.SymbolName());
    if (found == values_.end()) return e;
    return e.kind() == SymKind::Float ? ToFloat(found->second) : found->second;
  }
  SymExpr Rebuild(const SymExpr& e) {
    if (e.op() == SymOp::Where) {
      // The branch not taken may be undefined here.
      SymExpr condition = (*this)(e.args()[0]);
      if (auto taken = condition.TryBool()) return (*this)(e.args()[*taken ? 1 : 2]);
    }
    std::vector<SymExpr> args;
    bool changed = false;
    for (const SymExpr& arg : e.args()) {
      args.push_back((*this)(arg));
      changed |= !args.back().IsSame(arg);
    }
    return changed ? MakeSym(e.op(), args) : e;
  }

  const SymMap& values_;
  std::unordered_map<const SymNode*, SymExpr> done_;
};

void CollectSymbols(const SymExpr& e, std::unordered_set<const SymNode*>& seen, std::vector<SymExpr>& symbols) {
  if (!e.node() || !seen.insert(e.node()).second) return;
  if (e.IsSymbol()) symbols.push_back(e);
  for (const SymExpr& arg : e.args()) CollectSymbols(arg, seen, symbols);
}

}  // namespace

SymExpr Substitute(SymExpr e, const SymMap& values) { return Substitution(values)(e); }

std::vector<SymExpr> Symbols(SymExpr e) {
  std::unordered_set<const SymNode*> seen;
  std::vector<SymExpr> symbols;
  CollectSymbols(e, seen, symbols);
  std::ranges::sort(symbols, sym::Less);
  return symbols;
}

// Constants fold completely, so evaluating is substituting.
std::optional<SymExpr> Evaluate(SymExpr e, const SymMap& values) {
  SymExpr result = Substitute(e, values);
  return result.IsAnyConst() ? std::optional(result) : std::nullopt;
}

std::optional<int64_t> EvaluateInt(SymExpr e, const std::map<std::string_view, int64_t>& values) {
  auto result = Evaluate(e, SymMap(values.begin(), values.end()));
  return result ? result->TryConst() : std::nullopt;
}

SymExpr Product(std::span<const SymExpr> factors) {
  SymExpr product = 1;
  for (const SymExpr& factor : factors) product *= factor;
  return product;
}

}  // namespace pt2onnx
