// Random expression trees: the normal form must have the value of the tree, whatever order it was built in, and what is said about
// it (text, bounds, proofs) must hold for the values tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "ir/sym_facts.h"
#include "ir/sym_parse.h"
#include "ir/symexpr.h"

namespace pt2onnx {
namespace {

using Wide = __int128;
constexpr std::string_view kNames[] = {"s0", "s1", "s2"};

struct Tree {
  SymOp op;
  int64_t value = 0;  // of Int; of Symbol: which
  std::vector<std::unique_ptr<Tree>> args;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}
  int64_t Pick(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random_); }

  std::unique_ptr<Tree> Int(int depth) {
    if (depth == 0 || Pick(0, 9) == 0) return Pick(0, 2) ? Leaf(SymOp::Symbol, Pick(0, 2)) : Leaf(SymOp::Int, Pick(-6, 12));
    constexpr SymOp kOps[] = {SymOp::Add, SymOp::Add, SymOp::Add, SymOp::Mul, SymOp::Mul, SymOp::FloorDiv, SymOp::FloorDiv, SymOp::FloorDiv,
                              SymOp::Mod, SymOp::Mod, SymOp::Max, SymOp::Min, SymOp::Abs, SymOp::Where, SymOp::Pow};
    auto tree = Leaf(kOps[Pick(0, std::size(kOps) - 1)], 0);
    if (tree->op == SymOp::Where) tree->args.push_back(Bool(depth - 1));
    tree->args.push_back(Int(depth - 1));
    if (tree->op == SymOp::Abs) return tree;
    bool by_const = (tree->op == SymOp::FloorDiv || tree->op == SymOp::Mod || tree->op == SymOp::Mul) && Pick(0, 3);
    tree->args.push_back(tree->op == SymOp::Pow ? Leaf(SymOp::Int, Pick(0, 3)) : by_const ? Leaf(SymOp::Int, Pick(-6, 12)) : Int(depth - 1));
    return tree;
  }

  std::unique_ptr<Tree> Bool(int depth) {
    constexpr SymOp kOps[] = {SymOp::Eq, SymOp::Ne, SymOp::Le, SymOp::Lt, SymOp::And, SymOp::Or, SymOp::Not};
    auto tree = Leaf(kOps[Pick(0, depth == 0 ? 3 : 6)], 0);
    bool is_logic = tree->op == SymOp::And || tree->op == SymOp::Or || tree->op == SymOp::Not;
    int count = tree->op == SymOp::Not ? 1 : 2;
    for (int i = 0; i < count; ++i) tree->args.push_back(is_logic ? Bool(depth - 1) : Int(std::max(depth - 1, 0)));
    return tree;
  }

 private:
  static std::unique_ptr<Tree> Leaf(SymOp op, int64_t value) {
    auto tree = std::make_unique<Tree>();
    tree->op = op;
    tree->value = value;
    return tree;
  }
  std::mt19937_64 random_;
};

// Python's value; none for a division by zero or values too large to be of interest.
std::optional<Wide> Direct(const Tree& tree, const int64_t* values) {
  if (tree.op == SymOp::Int) return tree.value;
  if (tree.op == SymOp::Symbol) return values[tree.value];
  std::vector<Wide> x;
  for (const auto& arg : tree.args) {
    auto value = Direct(*arg, values);
    if (!value || *value > INT32_MAX || *value < INT32_MIN) return std::nullopt;
    x.push_back(*value);
  }
  auto floor_div = [](Wide a, Wide b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); };
  switch (tree.op) {
    case SymOp::Add: return x[0] + x[1];
    case SymOp::Mul: return x[0] * x[1];
    case SymOp::Pow: return x[1] == 0 ? 1 : x[1] == 1 ? x[0] : x[1] == 2 ? x[0] * x[0] : x[0] * x[0] * x[0];
    case SymOp::FloorDiv: return x[1] == 0 ? std::nullopt : std::optional(floor_div(x[0], x[1]));
    case SymOp::Mod: return x[1] == 0 ? std::nullopt : std::optional(x[0] - x[1] * floor_div(x[0], x[1]));
    case SymOp::Max: return std::max(x[0], x[1]);
    case SymOp::Min: return std::min(x[0], x[1]);
    case SymOp::Abs: return x[0] < 0 ? -x[0] : x[0];
    case SymOp::Where: return x[0] ? x[1] : x[2];
    case SymOp::Eq: return x[0] == x[1];
    case SymOp::Ne: return x[0] != x[1];
    case SymOp::Le: return x[0] <= x[1];
    case SymOp::Lt: return x[0] < x[1];
    case SymOp::And: return x[0] && x[1];
    case SymOp::Or: return x[0] || x[1];
    case SymOp::Not: return !x[0];
    default: PT2ONNX_UNREACHABLE();
  }
}

SymExpr Build(const Tree& tree, SymPool& pool, bool swapped) {
  if (tree.op == SymOp::Int) return tree.value;
  if (tree.op == SymOp::Symbol) return pool.Symbol(kNames[tree.value]);
  std::vector<SymExpr> args;
  for (const auto& arg : tree.args) args.push_back(Build(*arg, pool, swapped));
  bool is_commutative = tree.op == SymOp::Add || tree.op == SymOp::Mul || tree.op == SymOp::Max || tree.op == SymOp::Min || tree.op == SymOp::Eq ||
                        tree.op == SymOp::Ne || tree.op == SymOp::And || tree.op == SymOp::Or;
  if (swapped && is_commutative) std::swap(args[0], args[1]);
  return MakeSym(tree.op, args);
}

std::optional<Wide> ValueOf(const SymExpr& e, const int64_t* values) {
  auto value = Evaluate(e, {{kNames[0], values[0]}, {kNames[1], values[1]}, {kNames[2], values[2]}});
  if (!value) return std::nullopt;
  if (auto truth = value->TryBool()) return *truth;
  return value->Const();
}

class RandomSym : public ::testing::TestWithParam<int> {};

TEST_P(RandomSym, NormalFormHasTheValueOfTheTree) {
  Generator generator(static_cast<uint64_t>(GetParam()));
  int unknown = 0, compared = 0;
  for (int i = 0; i < 300; ++i) {
    SymPool pool;
    auto tree = i % 5 == 0 ? generator.Bool(3) : generator.Int(4);
    SymExpr e = Build(*tree, pool, false);
    std::string text = ToString(e);
    if (e.IsUnknown()) {
      ++unknown;  // a division by a constant zero
      continue;
    }
    EXPECT_TRUE(Build(*tree, pool, true).IsSame(e)) << text << "\n" << ToString(Build(*tree, pool, true));
    if (e.node() && !e.IsAnyConst() && !e.IsSymbol()) {
      EXPECT_TRUE(MakeSym(e.op(), e.args()).IsSame(e)) << text << "\n" << ToString(MakeSym(e.op(), e.args()));
    }
    Result<SymExpr> again = ParseInfix(pool, text);
    ASSERT_TRUE(static_cast<bool>(again)) << text << again.error().message;
    EXPECT_TRUE((*again).IsSame(e)) << text << "\n" << ToString(*again);
    Result<SymExpr> srepr = ParseSrepr(pool, ToSrepr(e));
    ASSERT_TRUE(static_cast<bool>(srepr)) << ToSrepr(e) << srepr.error().message;
    EXPECT_TRUE((*srepr).IsSame(e)) << ToSrepr(e) << "\n" << ToString(*srepr);
    for (int j = 0; j < 12; ++j) {
      int64_t values[3];
      for (int64_t& v : values) v = j < 4 ? generator.Pick(-1, 2) : generator.Pick(-20, 40);
      auto expected = Direct(*tree, values);
      if (!expected || *expected > INT64_MAX || *expected < INT64_MIN) continue;
      auto actual = ValueOf(e, values);
      ASSERT_TRUE(actual.has_value()) << text;
      ASSERT_EQ(static_cast<int64_t>(*actual), static_cast<int64_t>(*expected))
          << text << " at " << values[0] << ", " << values[1] << ", " << values[2];
      ++compared;
    }
  }
  EXPECT_GT(compared, 1500);
  EXPECT_LT(unknown, 150);
}

TEST_P(RandomSym, FactsHold) {
  Generator generator(static_cast<uint64_t>(GetParam()) + 1000);
  for (int i = 0; i < 120; ++i) {
    SymPool pool;
    int64_t lo[3], hi[3];
    for (int k = 0; k < 3; ++k) {
      lo[k] = generator.Pick(-4, 4);
      if (lo[k] == 2) lo[k] = 0;
      hi[k] = lo[k] + generator.Pick(0, 30);
      bool unbounded = generator.Pick(0, 1);
      pool.SetRange(pool.Symbol(kNames[k]), lo[k], unbounded ? std::nullopt : std::optional(hi[k]));
    }
    SymExpr a = Build(*generator.Int(3), pool, false), b = Build(*generator.Int(3), pool, false);
    SymExpr condition = Build(*generator.Bool(2), pool, false);
    Range bounds = BoundsOf(a);
    bool equal = ProvablyEqual(a, b), not_equal = ProvablyNotEqual(a, b), less = ProvablyLess(a, b), less_equal = ProvablyLessEqual(a, b);
    bool divisible = ProvablyDivisible(a, 4);
    auto decided = Decide(condition);
    auto quotient = TryDivideExactly(a, b);
    for (int j = 0; j < 20; ++j) {
      int64_t values[3];
      for (int k = 0; k < 3; ++k) values[k] = generator.Pick(lo[k], hi[k]);
      auto x = ValueOf(a, values), y = ValueOf(b, values), truth = ValueOf(condition, values);
      if (x) {
        EXPECT_TRUE((!bounds.lo || *bounds.lo <= *x) && (!bounds.hi || *x <= *bounds.hi)) << ToString(a);
        EXPECT_TRUE(!divisible || *x % 4 == 0) << ToString(a);
      }
      if (decided && truth) {
        EXPECT_EQ(*decided, *truth != 0) << ToString(condition);
      }
      if (!x || !y) continue;
      std::string both = ToString(a) + "   and   " + ToString(b);
      EXPECT_TRUE(!equal || *x == *y) << both;
      EXPECT_TRUE(!not_equal || *x != *y) << both;
      EXPECT_TRUE(!less || *x < *y) << both;
      EXPECT_TRUE(!less_equal || *x <= *y) << both;
      if (quotient && *y != 0) {
        auto q = ValueOf(*quotient, values);
        EXPECT_TRUE(q && *q * *y == *x) << both;
      }
    }
  }
}

TEST_P(RandomSym, OrderOfBuildingDoesNotMatter) {
  Generator generator(static_cast<uint64_t>(GetParam()) + 2000);
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()));
  for (int i = 0; i < 60; ++i) {
    SymPool pool;
    std::vector<SymExpr> parts;
    for (int k = 0; k < 6; ++k) parts.push_back(Build(*generator.Int(2), pool, false));
    SymExpr sum = MakeSym(SymOp::Add, parts), product = Product(parts);
    std::ranges::shuffle(parts, random);
    EXPECT_TRUE(MakeSym(SymOp::Add, parts).IsSame(sum));
    EXPECT_TRUE(Product(parts).IsSame(product)) << ToString(product) << "\n" << ToString(Product(parts));
    SymExpr left = parts[0] + parts[1] + parts[2], right = parts[3] + (parts[4] + parts[5]);
    EXPECT_TRUE((right + left).IsSame(sum));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSym, ::testing::Range(0, 4));

}  // namespace
}  // namespace pt2onnx
