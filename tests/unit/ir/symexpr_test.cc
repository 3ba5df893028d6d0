#include "ir/symexpr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/sym_facts.h"
#include "ir/sym_parse.h"

namespace pt2onnx {
namespace {

class SymExprTest : public ::testing::Test {
 protected:
  SymExpr Parse(std::string_view text) {
    Result<SymExpr> e = ParseInfix(pool, text);
    EXPECT_TRUE(static_cast<bool>(e)) << text << ": " << (e ? "" : e.error().message);
    return e ? *e : SymExpr::Unknown();
  }
  // The text of the normal form.
  std::string Normal(std::string_view text) { return ToString(Parse(text)); }

  SymPool pool;
  SymExpr s0 = pool.Symbol("s0", SymKind::Int, true), s1 = pool.Symbol("s1", SymKind::Int, true), n = pool.Symbol("n");
};

TEST_F(SymExprTest, ConstantsNeedNoPool) {
  SymExpr two = 2, three = 3;
  EXPECT_EQ((two * three + 1).Const(), 7);
  EXPECT_EQ(FloorDiv(-7, 2).Const(), -4);
  EXPECT_EQ(FloorDiv(7, -2).Const(), -4);
  EXPECT_EQ(Mod(-7, 2).Const(), 1);
  EXPECT_EQ(Mod(7, -2).Const(), -1);
  EXPECT_EQ(CeilDiv(7, 2).Const(), 4);
  EXPECT_EQ(CeilDiv(7, -2).Const(), -3);
  EXPECT_EQ(Max(2, 3).Const(), 3);
  EXPECT_EQ(Pow(2, 62).Const(), int64_t{1} << 62);
  EXPECT_EQ(Eq(two, 2).TryBool(), true);
  EXPECT_EQ(TrueDiv(1, 3).TryFloat(), 1.0 / 3);
  EXPECT_EQ(SymExpr().Const(), 0);
}

TEST_F(SymExprTest, UnknownAbsorbsAndEqualsNothing) {
  SymExpr unknown = SymExpr::Unknown();
  EXPECT_FALSE(unknown == unknown);
  EXPECT_TRUE(unknown.IsSame(unknown));
  EXPECT_TRUE((s0 + unknown).IsUnknown());
  EXPECT_TRUE((unknown * 0).IsUnknown());
  EXPECT_TRUE(Max(s0, unknown).IsUnknown());
  EXPECT_TRUE(And(SymExpr::Bool(false), unknown).IsUnknown());
  EXPECT_FALSE(ProvablyEqual(unknown, unknown));
}

TEST_F(SymExprTest, OverflowAndDivisionByZeroAreUnknown) {
  SymExpr most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  EXPECT_TRUE((most + 1).IsUnknown());
  EXPECT_TRUE((-least).IsUnknown());
  EXPECT_TRUE((most * s0 + s0).IsUnknown());
  EXPECT_TRUE(Pow(3, 100).IsUnknown());
  EXPECT_TRUE(FloorDiv(s0, 0).IsUnknown());
  EXPECT_TRUE(Mod(1, 0).IsUnknown());
  EXPECT_TRUE(TrueDiv(1, 0).IsUnknown());
  EXPECT_TRUE(UnaryFunction(SymOp::Log, 0).IsUnknown());
  EXPECT_TRUE(FloorDiv(s0, least).IsUnknown());
  EXPECT_EQ(ToString(s0 + least), "s0 + -9223372036854775808");
  EXPECT_EQ(Parse("s0 + -9223372036854775808"), s0 + least);
  EXPECT_EQ(Min(s0, most), Min(most, s0));
}

TEST_F(SymExprTest, SumsAndProducts) {
  EXPECT_EQ(2 * (s0 + 1) - s0, s0 + 2);
  EXPECT_EQ((s0 + s1) * (s0 - s1), s0 * s0 - s1 * s1);
  EXPECT_EQ(s0 - s0, SymExpr(0));
  EXPECT_EQ(s0 * 0, SymExpr(0));
  EXPECT_EQ(ToString((s0 + 2) * (s1 + 1)), "s0*s1 + s0 + 2*s1 + 2");
  EXPECT_EQ(ToString(-s0 * s0 + 1), "-s0**2 + 1");
  EXPECT_EQ(ToString(2 * FloorDiv(s0, 2) - 1), "2*(s0//2) - 1");
  EXPECT_EQ(Pow(s0 + 1, 2), s0 * s0 + 2 * s0 + 1);
  EXPECT_EQ(Pow(s0, 3) * s0, Pow(s0 * s0, 2));
  EXPECT_EQ(ToString(Pow(2, s0) * s1), "s1*2**s0");
}

TEST_F(SymExprTest, LargeProductsStayProducts) {
  SymExpr sum = 0;
  for (int i = 0; i < 40; ++i) sum += pool.Symbol("t" + std::to_string(i));
  SymExpr product = sum * (sum + 1);
  EXPECT_EQ(product.op(), SymOp::Mul);
  EXPECT_EQ(product, (sum + 1) * sum);
  EXPECT_EQ(product + s0 - product, s0);
  EXPECT_EQ(Parse(ToString(product)), product);
}

TEST_F(SymExprTest, FloorDivision) {
  EXPECT_EQ(FloorDiv(2 * s0 + 3, 2), s0 + 1);
  EXPECT_EQ(Normal("(s0 - 3)//2 + 1"), "(s0 + 1)//2 - 1");
  EXPECT_EQ(Normal("((s0 + 1)//2 + 1)//2"), "(s0 + 3)//4");
  EXPECT_EQ(Normal("(4*s0 + 2*s1 + 5)//6"), "(2*s0 + s1 + 2)//3");
  EXPECT_EQ(Normal("s0//-2"), "-s0 + s0//2");
  EXPECT_EQ(Normal("(s0*s1 + s1)//s1"), "s0 + 1");
  EXPECT_EQ(Normal("(4*s0*s1)//(6*s0)"), "(2*s1)//3");
  EXPECT_EQ(Normal("(s0*s1 + n)//s1"), "s0 + n//s1");
  EXPECT_EQ(Normal("(s0 - s0%4)//4"), "s0//4");
  EXPECT_EQ(Normal("(s0%4)//4"), "0");
  EXPECT_EQ(Normal("0//s0"), "0");
  EXPECT_EQ(Normal("s0//s0"), "1");
  EXPECT_EQ(CeilDiv(s0, 2), FloorDiv(s0 + 1, 2));
}

TEST_F(SymExprTest, Modulo) {
  EXPECT_EQ(Normal("(7*s0 + 4) % 3"), "(s0 + 1) % 3");
  EXPECT_EQ(Normal("(4*s0 + 3) % 2"), "1");
  EXPECT_EQ(Normal("(2*s0 + 3) % 4"), "2*((s0 + 1) % 2) + 1");
  EXPECT_EQ(Normal("(s0 % 4) % 2"), "s0 % 2");
  EXPECT_EQ(Normal("(s0 % 4) % 8"), "s0 % 4");
  EXPECT_EQ(Normal("(s0 + s0 % 4) % 4"), "2*(s0 % 2)");
  EXPECT_EQ(Normal("(s0*s1 + n) % s1"), "n % s1");
  EXPECT_EQ(Normal("s0 % -3"), "-((2*s0) % 3)");
}

TEST_F(SymExprTest, MaxMinAbs) {
  EXPECT_EQ(Max(Max(s0, 1), Max(s1, 3)), Max(s1, Max(3, s0)));
  EXPECT_EQ(Max(s0, s0 + 1), s0 + 1);
  EXPECT_EQ(Min(s0, s0), s0);
  EXPECT_EQ(Max(0, Mod(s0, 2)), Mod(s0, 2));
  EXPECT_EQ(ToString(Max(s0, 1)), "max(1, s0)");
  EXPECT_EQ(Abs(s0 - s1), Abs(s1 - s0));
  EXPECT_EQ(Abs(s0 * s0), s0 * s0);
}

TEST_F(SymExprTest, Conditions) {
  EXPECT_EQ(Lt(s0, s1), Gt(s1, s0));
  EXPECT_EQ(Not(Lt(s0, s1)), Ge(s0, s1));
  EXPECT_EQ(Lt(s0, s0 + 1).TryBool(), true);
  EXPECT_EQ(ToString(Lt(2 * s0, 5)), "s0 <= 2");
  EXPECT_EQ(ToString(Ge(s0, 2)), "2 <= s0");
  EXPECT_EQ(ToString(Eq(4, 2 * s0)), "s0 == 2");
  EXPECT_EQ(Eq(2 * s0, 3).TryBool(), false);
  EXPECT_EQ(And(Eq(s0, 1), Ne(s0, 1)).TryBool(), false);
  EXPECT_EQ(Or(Eq(s0, 1), SymExpr::Bool(false)), Eq(s0, 1));
  EXPECT_EQ(Where(Not(Eq(Eq(s0, 1), Eq(s1, 1))), s0, s1), Where(Eq(Eq(s1, 1), Eq(s0, 1)), s1, s0));
  EXPECT_EQ(Gt(SymExpr::Float(0.5), 0).TryBool(), true);
  EXPECT_EQ(Eq(SymExpr::Float(0x1p53), (int64_t{1} << 53) + 1).TryBool(), false);
}

TEST_F(SymExprTest, Floats) {
  SymExpr f = pool.Symbol("zuf0", SymKind::Float), x = ToFloat(s0);
  EXPECT_EQ(f + x, x + f);
  EXPECT_NE((f + x) + 1, f + (x + 1));
  EXPECT_EQ(TrueDiv(4 * s0, 2), ToFloat(2 * s0));
  EXPECT_EQ(ToString(Max(1, Trunc(SymExpr::Float(1.7) * x))), "max(1, trunc(1.7*float(s0)))");
  EXPECT_EQ(Round(SymExpr::Float(2.5)).Const(), 2);
  EXPECT_EQ(Round(SymExpr::Float(-1.5)).Const(), -2);
  EXPECT_EQ(Trunc(SymExpr::Float(-1.5)).Const(), -1);
  EXPECT_TRUE(Trunc(SymExpr::Float(1e300)).IsUnknown());
  EXPECT_EQ(RoundDecimal(SymExpr::Float(2.675), 2).TryFloat(), 2.67);
  EXPECT_EQ(TrueDiv((int64_t{1} << 62) + 1, 3).TryFloat(), 1537228672809129301.6);
  EXPECT_EQ(TrueDiv(9007199254740993, 1).TryFloat(), 9007199254740992.0);
  EXPECT_EQ(Floor(s0), s0);
}

TEST_F(SymExprTest, IsNonOverlappingAndDense) {
  auto dense = [](std::vector<SymExpr> args) { return IsNonOverlappingAndDense(args); };
  EXPECT_EQ(dense({2, 3, 3, 1}), SymExpr(1));
  EXPECT_EQ(dense({2, 3, 1, 2}), SymExpr(1));
  EXPECT_EQ(dense({2, 3, 4, 1}), SymExpr(0));
  EXPECT_EQ(dense({1, 7}), SymExpr(1));
  EXPECT_EQ(dense({s0, 3, 3, 1}).op(), SymOp::IsNonOverlappingAndDense);
}

TEST_F(SymExprTest, ExactDivision) {
  EXPECT_EQ(TryDivideExactly(4 * s0, s0), SymExpr(4));
  EXPECT_EQ(TryDivideExactly(4 * s0, 4), s0);
  EXPECT_EQ(TryDivideExactly(s0 * s1 + 2 * s0, s1 + 2), s0);
  EXPECT_EQ(TryDivideExactly((s0 + 1) * (s1 - 3) * (s0 + s1), (s0 + s1) * (s1 - 3)), s0 + 1);
  EXPECT_EQ(TryDivideExactly(s0 + 1, 2), std::nullopt);
  EXPECT_EQ(TryDivideExactly(s0 + 1, s0), std::nullopt);
  EXPECT_EQ(TryDivideExactly(s0, 0), std::nullopt);
}

TEST_F(SymExprTest, SubstituteEvaluateSymbols) {
  SymExpr e = FloorDiv(s0 * s1 + 3, 4) + Max(s1, 2);
  EXPECT_EQ(Substitute(e, {{"s0", 4}}), s1 + Max(s1, 2));
  EXPECT_EQ(EvaluateInt(e, {{"s0", 3}, {"s1", 5}}), 9);
  EXPECT_EQ(EvaluateInt(e, {{"s0", 3}}), std::nullopt);
  EXPECT_EQ(EvaluateInt(FloorDiv(4, s0), {{"s0", 0}}), std::nullopt);
  EXPECT_EQ(EvaluateInt(Where(Eq(s0, 0), 7, FloorDiv(4, s0)), {{"s0", 0}}), 7);
  EXPECT_EQ(Symbols(e + pool.Symbol("a")), (std::vector<SymExpr>{pool.Symbol("a"), s0, s1}));
  EXPECT_EQ(Evaluate(ToFloat(s0) * SymExpr::Float(0.5), {{"s0", 5}})->TryFloat(), 2.5);
}

TEST_F(SymExprTest, ParsesSrepr) {
  auto srepr = [&](std::string_view text) {
    Result<SymExpr> e = ParseSrepr(pool, text);
    return e ? ToString(*e) : e.error().message;
  };
  EXPECT_EQ(srepr("Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))"), "2*s0 + 1");
  EXPECT_EQ(srepr("Max(Integer(1), TruncToInt(Mul(Float('1.7', precision=53), ToFloat(Symbol('s0', positive=True, integer=True)))))"),
            "max(1, trunc(1.7*float(s0)))");
  EXPECT_EQ(srepr("CeilToInt(FloatTrueDiv(ToFloat(Symbol('s0', integer=True)), Float('0.5', precision=53)))"), "ceil(float(s0)/0.5)");
  EXPECT_EQ(srepr("Mul(Rational(1, 2), Add(Mul(Integer(4), Symbol('s0', integer=True)), Integer(2)))"), "2*s0 + 1");
  EXPECT_EQ(srepr("Mul(Symbol('s0', integer=True), Symbol('s1', integer=True), Pow(Symbol('s1', integer=True), Integer(-1)))"), "s0");
  EXPECT_EQ(srepr("floor(Mul(Rational(1, 2), Symbol('s0', integer=True)))"), "s0//2");
  EXPECT_EQ(srepr("ceiling(Add(Rational(1, 2), Mul(Rational(1, 3), Symbol('s0', integer=True))))"), "(s0 + 1)//3 + 1");
  EXPECT_EQ(srepr("Piecewise(ExprCondPair(Symbol('s0', integer=True), StrictLessThan(Symbol('s1', integer=True), Integer(3))), "
                  "ExprCondPair(Integer(7), true))"),
            "where(3 <= s1, 7, s0)");
  EXPECT_EQ(srepr("ModularIndexing(Symbol('s0', integer=True), Integer(2), Integer(3))"), "(s0//2) % 3");
  EXPECT_EQ(srepr("LShift(Symbol('s0', integer=True), Integer(2))"), "4*s0");
  EXPECT_EQ(srepr("OpaqueUnaryFn_sqrt(ToFloat(Symbol('s0', integer=True)))"), "sqrt(float(s0))");
  EXPECT_EQ(srepr("Mul(Float('2.0', precision=53), Symbol('zuf0'))"), "2.0*zuf0");
  EXPECT_EQ(srepr("Integer(9223372036854775808)"), "?");
  EXPECT_EQ(srepr("Symbol('s0')"),
            "can't read the symbolic expression `Symbol('s0')`: symbol `s0` stands for an integer and for a float at character 13");
  EXPECT_TRUE(pool.FindSymbol("s0")->node()->positive);
}

TEST_F(SymExprTest, ParsesInfix) {
  EXPECT_EQ(Parse("2*s0 + 1"), 2 * s0 + 1);
  EXPECT_EQ(Parse("(s0//2)"), FloorDiv(s0, 2));
  EXPECT_EQ(Parse("-s0**2"), -(s0 * s0));
  EXPECT_EQ(Parse("2**3**2"), SymExpr(512));
  EXPECT_EQ(Parse("s0 - s1 - 1"), s0 - s1 - 1);
  EXPECT_EQ(Parse("s0*s1/2 + s0*s1/2"), s0 * s1);
  EXPECT_EQ(Parse("Max(1, s0)"), Max(s0, 1));
  EXPECT_EQ(Parse("Piecewise((s0, s0 < s1), (s1, True))"), Where(Lt(s0, s1), s0, s1));
  EXPECT_EQ(Parse("Eq(s0, 1) | (s1 > 2)"), Or(Eq(s0, 1), Gt(s1, 2)));
  EXPECT_EQ(Parse("not s0 < 3 and s1 == 2"), And(Ge(s0, 3), Eq(s1, 2)));
  EXPECT_EQ(Parse("1.5e-3").TryFloat(), 1.5e-3);
  EXPECT_EQ(Parse("s0/3 < 2"), Lt(s0, 6));
  for (std::string_view bad : {"", "s0 +", "(s0", "foo(s0)", "s0 s1", "Mod(s0)", "'s0'", "Symbol(s0)", "1..2.3", "Float('x')", "Piecewise(s0)"}) {
    EXPECT_FALSE(static_cast<bool>(ParseInfix(pool, bad))) << bad;
  }
  EXPECT_FALSE(static_cast<bool>(ParseInfix(pool, std::string(100000, '('))));
  EXPECT_FALSE(static_cast<bool>(ParseInfix(pool, "2" + std::string(100000, '*') + "2")));
}

TEST_F(SymExprTest, OddNamesSurvive) {
  SymExpr odd = pool.Symbol("my dim's", SymKind::Int, true) + pool.Symbol("zf1", SymKind::Int) + pool.Symbol("not");
  EXPECT_EQ(Parse(ToString(odd)), odd);
  EXPECT_EQ(Parse(ToSrepr(odd)), odd);
}

TEST_F(SymExprTest, WritesSrepr) {
  EXPECT_EQ(ToSrepr(2 * s0 + 1), "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))");
  EXPECT_EQ(ToSrepr(Mod(s0, 2)), "Mod(Symbol('s0', positive=True, integer=True), Integer(2))");
  EXPECT_EQ(ToSrepr(Mod(n, 2)), "PythonMod(Symbol('n', integer=True), Integer(2))");
  EXPECT_EQ(ToSrepr(SymExpr::Float(0.1)), "Float('0.10000000000000001', precision=53)");
  EXPECT_EQ(ToSrepr(TrueDiv(s0, s1)), "IntTrueDiv(Symbol('s0', positive=True, integer=True), Symbol('s1', positive=True, integer=True))");
}

TEST_F(SymExprTest, RangesAndTrust) {
  SymExpr s6 = pool.Symbol("s6"), u0 = pool.Symbol("u0");
  ASSERT_TRUE(static_cast<bool>(SetRange(pool, "s6", 2, 100)));
  EXPECT_EQ(BoundsOf(s6), (Range{0, 100}));
  EXPECT_EQ(pool.RecordedRange(s6), (Range{2, 100}));
  ASSERT_TRUE(static_cast<bool>(SetRange(pool, "2*s6 + 1", 3, 61)));
  EXPECT_EQ(BoundsOf(s6), (Range{1, 30}));
  EXPECT_EQ(BoundsOf(2 * s6 + 1), (Range{3, 61}));
  ASSERT_TRUE(static_cast<bool>(SetRange(pool, "s0 + s1", 4, 20)));
  EXPECT_EQ(BoundsOf(s0 + s1), (Range{0, 20}));
  EXPECT_EQ(pool.RecordedRange(s1 + s0), (Range{4, 20}));
  EXPECT_EQ(BoundsOf(u0), Range{});
  ASSERT_TRUE(static_cast<bool>(SetRange(pool, "-u0", std::nullopt, -3)));
  EXPECT_EQ(BoundsOf(u0), (Range{3, std::nullopt}));
  EXPECT_FALSE(static_cast<bool>(SetRange(pool, "L['x'].size()[0]", 0, 1)));
}

TEST_F(SymExprTest, Bounds) {
  pool.SetRange(n, -3, 5);
  EXPECT_EQ(BoundsOf(2 * n + 1), (Range{-5, 11}));
  EXPECT_EQ(BoundsOf(n * n), (Range{0, 25}));
  EXPECT_EQ(BoundsOf(FloorDiv(n, 2)), (Range{-2, 2}));
  EXPECT_EQ(BoundsOf(Mod(n, 4)), (Range{0, 3}));
  EXPECT_EQ(BoundsOf(Max(1, FloorDiv(s0, 2))), (Range{1, std::nullopt}));
  EXPECT_EQ(BoundsOf(Min(s0, 7)), (Range{0, 7}));
  EXPECT_EQ(BoundsOf(FloorDiv(s0, s1)), (Range{0, std::nullopt}));
  EXPECT_EQ(BoundsOf(Abs(n)), (Range{0, 5}));
  EXPECT_EQ(BoundsOf(Ceil(TrueDiv(ToFloat(s0), SymExpr::Float(0.5)))), (Range{0, std::nullopt}));
  EXPECT_EQ(BoundsOf(Trunc(SymExpr::Float(1.5) * ToFloat(n))), (Range{-4, 7}));
}

TEST_F(SymExprTest, Proofs) {
  EXPECT_TRUE(ProvablyLessEqual(FloorDiv(s0, 2), s0));
  EXPECT_TRUE(ProvablyLessEqual(Min(s0, s1), s0));
  EXPECT_TRUE(ProvablyLessEqual(s0, Max(s0, s1)));
  EXPECT_TRUE(ProvablyLess(s0, Max(s0, s1) + 1));
  EXPECT_TRUE(ProvablyNonNegative(s0 - Mod(s0, 4)));
  EXPECT_TRUE(ProvablyNonNegative(s0 - 2 * FloorDiv(s0, 2)));
  EXPECT_TRUE(ProvablyNonNegative(2 * FloorDiv(s0 + 1, 2) - s0));
  EXPECT_TRUE(ProvablyEqual(s0 - Mod(s0, 4), 4 * FloorDiv(s0, 4)));
  EXPECT_FALSE(ProvablyEqual(s0, s1));
  EXPECT_FALSE(ProvablyNotEqual(s0, s1));
  EXPECT_FALSE(ProvablyNotEqual(s0, 1));
  EXPECT_TRUE(ProvablyNotEqual(s0, -1));
  EXPECT_TRUE(ProvablyNotEqual(2 * s0, 2 * s1 + 1));
  EXPECT_TRUE(ProvablyNotEqual(s0, s0 + 1));
  EXPECT_TRUE(ProvablyDivisible(4 * s0 + 8, 4));
  EXPECT_TRUE(ProvablyDivisible(s0 - Mod(s0, 4), 4));
  EXPECT_FALSE(ProvablyDivisible(s0, 2));
  EXPECT_EQ(Decide(And(Ge(s0, 0), Lt(FloorDiv(s0, 2), s0 + 1))), true);
  EXPECT_EQ(Decide(Or(Eq(s0, s1), Lt(s0, 0))), std::nullopt);
  EXPECT_EQ(Decide(Lt(ToFloat(s0), SymExpr::Float(-0.5))), false);
}

}  // namespace
}  // namespace pt2onnx
