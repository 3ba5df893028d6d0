// Reads srepr and infix text by recursive descent; see sym_parse.h. Python's precedences.
// sympy has exact fractions (Rational(1, 2), Pow(x, -1), s0/2): while parsing, a value is a quotient of two Ints. What is left of
// a denominator at the end is an exact division, which floor division is.
#include "ir/sym_parse.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <fmt/core.h>

namespace pt2onnx {
namespace {

struct Value {
  SymExpr num;
  SymExpr den = 1;  // not 1 only where num is Int
  bool IsFraction() const { return !den.IsSame(1); }
  bool IsFloat() const { return num.kind() == SymKind::Float; }
};

Value Fraction(SymExpr num, SymExpr den) {
  if (den.IsConst() && den.Const() < 0) num = -num, den = -den;  // the least integer becomes Unknown
  if (num.IsUnknown() || den.IsUnknown() || den.IsSame(0)) return {SymExpr::Unknown()};
  if (auto exact = TryDivideExactly(num, den)) return {*exact};
  if (num.IsConst() && den.IsConst() && num.Const() != INT64_MIN) {
    int64_t g = std::gcd(num.Const(), den.Const());
    return {num.Const() / g, den.Const() / g};
  }
  return {num, den};
}

SymExpr Whole(const Value& v) { return v.IsFraction() ? FloorDiv(v.num, v.den) : v.num; }
SymExpr AsFloat(const Value& v) { return v.IsFraction() ? TrueDiv(v.num, v.den) : ToFloat(v.num); }

// The numerators of a and b over one denominator.
struct Aligned {
  SymExpr a, b, den;
};
Aligned Align(const Value& a, const Value& b) {
  if (a.den.IsSame(b.den)) return {a.num, b.num, a.den};
  if (a.den.IsConst() && b.den.IsConst()) {
    int64_t g = std::gcd(a.den.Const(), b.den.Const());
    return {a.num * (b.den.Const() / g), b.num * (a.den.Const() / g), a.den * (b.den.Const() / g)};
  }
  return {a.num * b.den, b.num * a.den, a.den * b.den};
}

Value Add(const Value& a, const Value& b) {
  if (!a.IsFraction() && !b.IsFraction()) return {a.num + b.num};
  if (a.IsFloat() || b.IsFloat()) return {AsFloat(a) + AsFloat(b)};
  Aligned x = Align(a, b);
  return Fraction(x.a + x.b, x.den);
}

Value Multiply(const Value& a, const Value& b) {
  if (!a.IsFraction() && !b.IsFraction()) return {a.num * b.num};
  if (a.IsFloat() || b.IsFloat()) return {AsFloat(a) * AsFloat(b)};
  return Fraction(a.num * b.num, a.den * b.den);
}

Value Divide(const Value& a, const Value& b) {
  if (a.IsFloat() || b.IsFloat()) return {TrueDiv(AsFloat(a), AsFloat(b))};
  return Fraction(a.num * b.den, a.den * b.num);
}

Value Power(const Value& base, const Value& exponent) {
  if (exponent.num.IsUnknown() || base.num.IsUnknown()) return {SymExpr::Unknown()};
  if (base.IsFloat() || exponent.IsFloat() || exponent.IsFraction()) {
    if (exponent.num.IsSame(1) && exponent.den.IsSame(2)) return {UnaryFunction(SymOp::Sqrt, AsFloat(base))};
    if (exponent.num.IsSame(-1) && !exponent.IsFraction()) return {TrueDiv(SymExpr::Float(1), AsFloat(base))};
    return {Pow(AsFloat(base), AsFloat(exponent))};
  }
  if (exponent.num.IsConst() && exponent.num.Const() < 0) return Fraction(Pow(base.den, -exponent.num), Pow(base.num, -exponent.num));
  return Fraction(Pow(base.num, exponent.num), Pow(base.den, exponent.num));
}

// Comparing and choosing need one positive denominator; only constants are known to be positive.
bool HasConstDenominators(const Value& a, const Value& b) { return a.den.IsConst() && b.den.IsConst(); }

Value Compare(SymExpr (*relation)(SymExpr, SymExpr), const Value& a, const Value& b) {
  if (!a.IsFraction() && !b.IsFraction()) return {relation(a.num, b.num)};
  if (a.IsFloat() || b.IsFloat() || !HasConstDenominators(a, b)) return {relation(AsFloat(a), AsFloat(b))};
  Aligned x = Align(a, b);
  return {relation(x.a, x.b)};
}

Value Choose(SymExpr (*max_or_min)(SymExpr, SymExpr), const Value& a, const Value& b) {
  if (!a.IsFraction() && !b.IsFraction()) return {max_or_min(a.num, b.num)};
  if (a.IsFloat() || b.IsFloat() || !HasConstDenominators(a, b)) return {max_or_min(AsFloat(a), AsFloat(b))};
  Aligned x = Align(a, b);
  return Fraction(max_or_min(x.a, x.b), x.den);
}

// A function of whole arguments, or a SymOp given those.
using Args = std::vector<Value>;
struct Function {
  std::string_view name;
  int min_args, max_args;  // -1: any number
  Value (*apply)(const Args& args);
};

template <SymExpr (*F)(SymExpr)>
Value Unary(const Args& a) { return {F(Whole(a[0]))}; }
template <SymExpr (*F)(SymExpr, SymExpr)>
Value Binary(const Args& a) { return {F(Whole(a[0]), Whole(a[1]))}; }
// Of floats: a fraction is the float nearest to it.
template <SymExpr (*F)(SymExpr)>
Value Rounding(const Args& a) { return {a[0].IsFraction() ? F(AsFloat(a[0])) : F(a[0].num)}; }
template <SymOp op>
Value Opaque(const Args& a) { return {UnaryFunction(op, AsFloat(a[0]))}; }
template <SymExpr (*F)(SymExpr, SymExpr)>
Value Relation(const Args& a) { return Compare(F, a[0], a[1]); }
template <SymExpr (*F)(SymExpr, SymExpr)>
Value Logic(const Args& a) {
  SymExpr result = Whole(a[0]);
  for (size_t i = 1; i < a.size(); ++i) result = F(result, Whole(a[i]));
  return {result};
}
template <Value (*F)(const Value&, const Value&)>
Value FoldLeft(const Args& a) {
  Value result = a[0];
  for (size_t i = 1; i < a.size(); ++i) result = F(result, a[i]);
  return result;
}
template <SymExpr (*F)(SymExpr, SymExpr)>
Value Extreme(const Args& a) {
  Value result = a[0];
  for (size_t i = 1; i < a.size(); ++i) result = Choose(F, result, a[i]);
  return result;
}
Value FloorOf(const Args& a) { return {a[0].IsFraction() ? FloorDiv(a[0].num, a[0].den) : Floor(a[0].num)}; }
Value CeilOf(const Args& a) { return {a[0].IsFraction() ? CeilDiv(a[0].num, a[0].den) : Ceil(a[0].num)}; }
Value PowerOf(const Args& a) { return Power(a[0], a[1]); }
Value IntQuotient(const Args& a) { return {TrueDiv(Whole(a[0]), Whole(a[1]))}; }
Value FloatQuotient(const Args& a) { return {TrueDiv(AsFloat(a[0]), AsFloat(a[1]))}; }
Value FloatPower(const Args& a) { return {Pow(AsFloat(a[0]), AsFloat(a[1]))}; }
Value FloatOf(const Args& a) { return {AsFloat(a[0])}; }
Value Same(const Args& a) { return a[0]; }
Value AbsOf(const Args& a) { return a[0].den.IsConst() ? Fraction(Abs(a[0].num), Abs(a[0].den)) : Value{Abs(AsFloat(a[0]))}; }
Value Indexing(const Args& a) { return {Mod(FloorDiv(Whole(a[0]), Whole(a[1])), Whole(a[2]))}; }
Value ShiftLeft(const Args& a) { return {Whole(a[0]) * Pow(2, Whole(a[1]))}; }
Value ShiftRight(const Args& a) { return {FloorDiv(Whole(a[0]), Pow(2, Whole(a[1])))}; }
Value Select(const Args& a) { return {Where(Whole(a[0]), Whole(a[1]), Whole(a[2]))}; }
Value RoundDigits(const Args& a) { return {RoundDecimal(AsFloat(a[0]), Whole(a[1]))}; }
Value Dense(const Args& a) {
  std::vector<SymExpr> args;
  for (const Value& v : a) args.push_back(Whole(v));
  return {IsNonOverlappingAndDense(args)};
}

constexpr Function kFunctions[] = {
    {"Add", 1, -1, FoldLeft<Add>},
    {"Mul", 1, -1, FoldLeft<Multiply>},
    {"Pow", 2, 2, PowerOf},
    {"PowByNatural", 2, 2, PowerOf},
    {"FloatPow", 2, 2, FloatPower},
    {"Rational", 2, 2, FoldLeft<Divide>},
    {"FloorDiv", 2, 2, Binary<FloorDiv>},
    {"CleanDiv", 2, 2, Binary<FloorDiv>},
    {"CeilDiv", 2, 2, Binary<CeilDiv>},
    {"Mod", 2, 2, Binary<Mod>},
    {"PythonMod", 2, 2, Binary<Mod>},
    {"ModularIndexing", 3, 3, Indexing},
    {"IntTrueDiv", 2, 2, IntQuotient},
    {"truediv", 2, 2, IntQuotient},
    {"FloatTrueDiv", 2, 2, FloatQuotient},
    {"LShift", 2, 2, ShiftLeft},
    {"RShift", 2, 2, ShiftRight},
    {"Max", 1, -1, Extreme<Max>},
    {"max", 1, -1, Extreme<Max>},
    {"Min", 1, -1, Extreme<Min>},
    {"min", 1, -1, Extreme<Min>},
    {"Abs", 1, 1, AbsOf},
    {"abs", 1, 1, AbsOf},
    {"floor", 1, 1, FloorOf},
    {"FloorToInt", 1, 1, FloorOf},
    {"ceil", 1, 1, CeilOf},
    {"ceiling", 1, 1, CeilOf},
    {"CeilToInt", 1, 1, CeilOf},
    {"trunc", 1, 1, Rounding<Trunc>},
    {"TruncToInt", 1, 1, Rounding<Trunc>},
    {"round", 1, 1, Rounding<Round>},
    {"RoundToInt", 1, 1, Rounding<Round>},
    {"RoundDecimal", 2, 2, RoundDigits},
    {"TruncToFloat", 1, 1, Rounding<TruncToFloat>},
    {"ToFloat", 1, 1, FloatOf},
    {"float", 1, 1, FloatOf},
    {"Identity", 1, 1, Same},
    {"Where", 3, 3, Select},
    {"where", 3, 3, Select},
    {"Equality", 2, 2, Relation<Eq>},
    {"Eq", 2, 2, Relation<Eq>},
    {"Unequality", 2, 2, Relation<Ne>},
    {"Ne", 2, 2, Relation<Ne>},
    {"StrictLessThan", 2, 2, Relation<Lt>},
    {"Lt", 2, 2, Relation<Lt>},
    {"LessThan", 2, 2, Relation<Le>},
    {"Le", 2, 2, Relation<Le>},
    {"StrictGreaterThan", 2, 2, Relation<Gt>},
    {"Gt", 2, 2, Relation<Gt>},
    {"GreaterThan", 2, 2, Relation<Ge>},
    {"Ge", 2, 2, Relation<Ge>},
    {"And", 1, -1, Logic<And>},
    {"Or", 1, -1, Logic<Or>},
    {"Not", 1, 1, Unary<Not>},
    {"BitwiseFn_bitwise_and", 2, 2, Binary<BitAnd>},
    {"BitwiseFn_bitwise_or", 2, 2, Binary<BitOr>},
    {"BitwiseFn_bitwise_xor", 2, 2, Binary<BitXor>},
    {"IsNonOverlappingAndDenseIndicator", 2, -1, Dense},
    {"sqrt", 1, 1, Opaque<SymOp::Sqrt>},
    {"cos", 1, 1, Opaque<SymOp::Cos>},
    {"cosh", 1, 1, Opaque<SymOp::Cosh>},
    {"sin", 1, 1, Opaque<SymOp::Sin>},
    {"sinh", 1, 1, Opaque<SymOp::Sinh>},
    {"tan", 1, 1, Opaque<SymOp::Tan>},
    {"tanh", 1, 1, Opaque<SymOp::Tanh>},
    {"asin", 1, 1, Opaque<SymOp::Asin>},
    {"acos", 1, 1, Opaque<SymOp::Acos>},
    {"atan", 1, 1, Opaque<SymOp::Atan>},
    {"exp", 1, 1, Opaque<SymOp::Exp>},
    {"log", 1, 1, Opaque<SymOp::Log>},
    {"asinh", 1, 1, Opaque<SymOp::Asinh>},
    {"log2", 1, 1, Opaque<SymOp::Log2>},
};

const Function* FindFunction(std::string_view name) {
  constexpr std::string_view kOpaque = "OpaqueUnaryFn_";
  if (name.starts_with(kOpaque)) name.remove_prefix(kOpaque.size());
  for (const Function& f : kFunctions) {
    if (f.name == name) return &f;
  }
  return nullptr;
}

struct NamedConstant {
  std::string_view name;
  SymExpr (*value)();
};
constexpr NamedConstant kConstants[] = {
    {"true", [] { return SymExpr::Bool(true); }},
    {"True", [] { return SymExpr::Bool(true); }},
    {"false", [] { return SymExpr::Bool(false); }},
    {"False", [] { return SymExpr::Bool(false); }},
    {"int_oo", [] { return SymExpr::Unknown(); }},
    {"zoo", [] { return SymExpr::Unknown(); }},
    {"oo", [] { return SymExpr::Float(std::numeric_limits<double>::infinity()); }},
    {"inf", [] { return SymExpr::Float(std::numeric_limits<double>::infinity()); }},
    {"nan", [] { return SymExpr::Float(std::numeric_limits<double>::quiet_NaN()); }},
    {"pi", [] { return SymExpr::Float(3.14159265358979323846); }},
    {"E", [] { return SymExpr::Float(2.71828182845904523536); }},
};

constexpr std::string_view kWords[] = {"and", "or", "not", "Symbol", "Integer", "Float", "Piecewise"};

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

SymKind KindByName(std::string_view name) {
  for (std::string_view prefix : {"zuf", "zf"}) {
    if (name.starts_with(prefix) && name.size() > prefix.size() && IsDigit(name[prefix.size()])) return SymKind::Float;
  }
  return SymKind::Int;
}

// The first mistake stops everything: later steps see end of text.
class Parser {
 public:
  Parser(SymPool& pool, std::string_view text) : pool_(pool), text_(text) {}

  Result<SymExpr> Run() {
    SymExpr e = Whole(Or());
    SkipSpace();
    if (pos_ < text_.size()) Fail("unexpected text");
    if (!error_.empty()) return Error{"E0131", fmt::format("can't read the symbolic expression `{}`: {}", text_, error_), ""};
    return e;
  }

 private:
  static constexpr int kMaxDepth = 200;  // calls of Or: a hostile file must not overflow the stack

  void Fail(std::string_view what) {
    if (error_.empty()) error_ = fmt::format("{} at character {}", what, pos_ + 1);
    pos_ = text_.size();
  }
  void SkipSpace() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\n' || text_[pos_] == '\t')) ++pos_;
  }
  char Peek() {
    SkipSpace();
    return pos_ < text_.size() ? text_[pos_] : '\0';
  }
  bool Accept(std::string_view token) {
    SkipSpace();
    if (!text_.substr(pos_).starts_with(token)) return false;
    pos_ += token.size();
    return true;
  }
  // One of these operators, and not the beginning of a longer one.
  bool AcceptOperator(std::string_view token, std::string_view but_not) {
    SkipSpace();
    if (text_.substr(pos_).starts_with(but_not)) return false;
    return Accept(token);
  }
  void Expect(std::string_view token) {
    if (!Accept(token)) Fail(fmt::format("expected `{}`", token));
  }
  std::string_view PeekName() {
    SkipSpace();
    size_t end = pos_;
    if (end < text_.size() && IsNameStart(text_[end])) {
      while (end < text_.size() && (IsNameStart(text_[end]) || IsDigit(text_[end]))) ++end;
    }
    return text_.substr(pos_, end - pos_);
  }
  bool AcceptWord(std::string_view word) {
    if (PeekName() != word) return false;
    pos_ += word.size();
    return true;
  }

  Value Or() {
    if (++depth_ > kMaxDepth) Fail("too deeply nested");
    Value v = And();
    while (AcceptWord("or")) v = {pt2onnx::Or(Whole(v), Whole(And()))};
    --depth_;
    return v;
  }
  Value And() {
    Value v = Not();
    while (AcceptWord("and")) v = {pt2onnx::And(Whole(v), Whole(Not()))};
    return v;
  }
  Value Not() {
    bool negate = false;
    while (AcceptWord("not")) negate = !negate;
    Value v = Comparison();
    return negate ? Value{pt2onnx::Not(Whole(v))} : v;
  }
  Value Comparison() {
    Value v = BitwiseOr();
    for (;;) {
      if (Accept("==")) {
        v = Compare(Eq, v, BitwiseOr());
      } else if (Accept("!=")) {
        v = Compare(Ne, v, BitwiseOr());
      } else if (Accept("<=")) {
        v = Compare(Le, v, BitwiseOr());
      } else if (Accept(">=")) {
        v = Compare(Ge, v, BitwiseOr());
      } else if (Accept("<")) {
        v = Compare(Lt, v, BitwiseOr());
      } else if (Accept(">")) {
        v = Compare(Gt, v, BitwiseOr());
      } else {
        return v;
      }
    }
  }
  Value BitwiseOr() {
    Value v = BitwiseXor();
    while (Accept("|")) v = {BitOr(Whole(v), Whole(BitwiseXor()))};
    return v;
  }
  Value BitwiseXor() {
    Value v = BitwiseAnd();
    while (Accept("^")) v = {BitXor(Whole(v), Whole(BitwiseAnd()))};
    return v;
  }
  Value BitwiseAnd() {
    Value v = Shift();
    while (Accept("&")) v = {BitAnd(Whole(v), Whole(Shift()))};
    return v;
  }
  Value Shift() {
    Value v = Sum();
    for (;;) {
      if (Accept("<<")) {
        v = ShiftLeft({v, Sum()});
      } else if (Accept(">>")) {
        v = ShiftRight({v, Sum()});
      } else {
        return v;
      }
    }
  }
  Value Sum() {
    Value v = Product();
    for (;;) {
      if (Accept("+")) {
        v = Add(v, Product());
      } else if (Accept("-")) {
        v = Add(v, Multiply({-1}, Product()));
      } else {
        return v;
      }
    }
  }
  Value Product() {
    Value v = Sign();
    for (;;) {
      if (Accept("//")) {
        v = {FloorDiv(Whole(v), Whole(Sign()))};
      } else if (Accept("/")) {
        v = Divide(v, Sign());
      } else if (Accept("%")) {
        v = {Mod(Whole(v), Whole(Sign()))};
      } else if (AcceptOperator("*", "**")) {
        v = Multiply(v, Sign());
      } else {
        return v;
      }
    }
  }
  Value Sign() {
    bool negate = false;
    for (;;) {
      // The least integer has no positive counterpart.
      constexpr std::string_view kLeast = "-9223372036854775808";
      SkipSpace();
      if (text_.substr(pos_).starts_with(kLeast) && (pos_ + kLeast.size() == text_.size() || !IsDigit(text_[pos_ + kLeast.size()])) && !negate) {
        pos_ += kLeast.size();
        return {INT64_MIN};
      }
      if (Accept("-")) {
        negate = !negate;
      } else if (Accept("~")) {
        return {pt2onnx::Not(Whole(Sign()))};
      } else if (!Accept("+")) {
        break;
      }
    }
    Value v = PowerTerm();
    return negate ? Multiply({-1}, v) : v;
  }
  Value PowerTerm() {
    Value base = Atom();
    if (!Accept("**")) return base;
    if (++depth_ > kMaxDepth) Fail("too deeply nested");
    Value power = Power(base, Sign());
    --depth_;
    return power;
  }

  Value Atom() {
    char c = Peek();
    if (c == '(') {
      ++pos_;
      Value v = Or();
      Expect(")");
      return v;
    }
    if (c == '?') {
      ++pos_;
      return {SymExpr::Unknown()};
    }
    if (IsDigit(c) || c == '.') return Number();
    std::string_view name = PeekName();
    if (name.empty()) {
      Fail("expected an expression");
      return {0};
    }
    pos_ += name.size();
    if (Peek() == '(') return Call(name);
    for (const NamedConstant& constant : kConstants) {
      if (constant.name == name) return {constant.value()};
    }
    return {Symbol(name, std::nullopt, false)};
  }

  SymExpr Symbol(std::string_view name, std::optional<SymKind> kind, bool positive) {
    auto known = pool_.FindSymbol(name);
    if (!kind) kind = known ? known->kind() : KindByName(name);
    if (known && known->kind() != *kind) {
      Fail(fmt::format("symbol `{}` stands for an integer and for a float", name));
      return 0;
    }
    return pool_.Symbol(name, *kind, positive);
  }

  Value Number() {
    size_t start = pos_;
    auto digits = [&] {
      while (pos_ < text_.size() && IsDigit(text_[pos_])) ++pos_;
    };
    digits();
    bool is_float = false;
    if (pos_ < text_.size() && text_[pos_] == '.') {
      is_float = true;
      ++pos_;
      digits();
    }
    if (pos_ < text_.size() && (text_[pos_] == 'e' || text_[pos_] == 'E')) {
      size_t exponent = pos_ + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (exponent < text_.size() && IsDigit(text_[exponent])) {
        is_float = true;
        pos_ = exponent;
        digits();
      }
    }
    std::string_view number = text_.substr(start, pos_ - start);
    if (is_float) return {FloatFrom(number)};
    int64_t value = 0;
    auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (status == std::errc::result_out_of_range) return {SymExpr::Unknown()};
    return {value};
  }

  SymExpr FloatFrom(std::string_view number) {
    double value = 0;
    bool negative = number.starts_with("-");
    if (negative) number.remove_prefix(1);
    auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (status == std::errc::result_out_of_range) {
      // Too large is infinite, too small is zero; from_chars says only that it is one of them.
      size_t e = number.find_first_of("eE");
      value = e != std::string_view::npos && number.substr(e + 1).starts_with("-") ? 0 : std::numeric_limits<double>::infinity();
    } else if (status != std::errc() || end != number.data() + number.size()) {
      Fail(fmt::format("`{}` is no number", number));
    }
    return SymExpr::Float(negative ? -value : value);
  }

  // 'text' or "text", with Python's backslashes before quotes and backslashes.
  std::string Quoted() {
    std::string word;
    char quote = Peek();
    if (quote != '\'' && quote != '"') {
      Fail("expected a quoted word");
      return word;
    }
    for (++pos_; pos_ < text_.size() && text_[pos_] != quote; ++pos_) {
      if (text_[pos_] == '\\' && pos_ + 1 < text_.size()) ++pos_;
      word += text_[pos_];
    }
    Expect(std::string_view(&quote, 1));
    return word;
  }

  // Name(...), after the name.
  Value Call(std::string_view name) {
    if (name == "Symbol") return {SymbolCall()};
    if (name == "Float") return {FloatCall()};
    if (name == "Piecewise") return {Piecewise()};
    if (name == "Integer") {
      Expect("(");
      Value v = Sign();
      Expect(")");
      return v;
    }
    const Function* function = FindFunction(name);
    if (!function) {
      Fail(fmt::format("unknown function `{}`", name));
      return {0};
    }
    Args args;
    Expect("(");
    if (Peek() != ')') {
      do {
        args.push_back(Or());
      } while (Accept(","));
    }
    Expect(")");
    int count = static_cast<int>(args.size());
    if (error_.empty() && (count < function->min_args || (function->max_args >= 0 && count > function->max_args))) {
      Fail(fmt::format("`{}` with {} arguments", name, count));
    }
    return error_.empty() ? function->apply(args) : Value{0};
  }

  // Symbol('s0', positive=True, integer=True): an integer if it says so, else a float.
  SymExpr SymbolCall() {
    Expect("(");
    std::string name = Quoted();
    bool integer = false, positive = false;
    while (Accept(",")) {
      std::string_view key = PeekName();
      pos_ += key.size();
      Expect("=");
      std::string_view value = PeekName();
      pos_ += value.size();
      if (value != "True" && value != "False") Fail("expected True or False");
      if (key == "integer") integer = value == "True";
      if (key == "positive") positive = value == "True";
    }
    Expect(")");
    if (!error_.empty()) return 0;
    return Symbol(name, integer ? SymKind::Int : SymKind::Float, positive);
  }

  // Float('0.5', precision=53)
  SymExpr FloatCall() {
    Expect("(");
    std::string digits = Quoted();
    while (Accept(",")) {
      pos_ += PeekName().size();
      Expect("=");
      Number();
    }
    Expect(")");
    return error_.empty() ? FloatFrom(digits) : 0;
  }

  // Piecewise((a, condition), (b, True)), in srepr with ExprCondPair before each pair. Where no condition holds it has no value.
  SymExpr Piecewise() {
    std::vector<std::pair<SymExpr, SymExpr>> cases;
    Expect("(");
    do {
      AcceptWord("ExprCondPair");
      Expect("(");
      SymExpr value = Whole(Or());
      Expect(",");
      cases.emplace_back(value, Whole(Or()));
      Expect(")");
    } while (error_.empty() && Accept(","));
    Expect(")");
    if (!error_.empty()) return 0;
    SymExpr result = cases.back().second.TryBool() == true ? cases.back().first : SymExpr::Unknown();
    cases.pop_back();
    for (; !cases.empty(); cases.pop_back()) result = Where(cases.back().second, cases.back().first, result);
    return result;
  }

  SymPool& pool_;
  std::string_view text_;
  size_t pos_ = 0;
  int depth_ = 0;
  std::string error_;
};

}  // namespace

bool IsBareSymbol(std::string_view name, SymKind kind) {
  if (name.empty() || !IsNameStart(name[0]) || KindByName(name) != kind) return false;
  for (char c : name) {
    if (!IsNameStart(c) && !IsDigit(c)) return false;
  }
  for (const NamedConstant& constant : kConstants) {
    if (constant.name == name) return false;
  }
  for (std::string_view word : kWords) {
    if (word == name) return false;
  }
  return true;
}

Result<SymExpr> ParseSrepr(SymPool& pool, std::string_view text) { return Parser(pool, text).Run(); }
Result<SymExpr> ParseInfix(SymPool& pool, std::string_view text) { return Parser(pool, text).Run(); }

Status SetRange(SymPool& pool, std::string_view key, std::optional<int64_t> lo, std::optional<int64_t> hi) {
  Result<SymExpr> e = ParseInfix(pool, key);
  if (!e) return e.error();
  pool.SetRange(*e, lo, hi);
  return Ok{};
}

}  // namespace pt2onnx
