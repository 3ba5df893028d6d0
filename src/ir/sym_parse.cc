// Reads srepr and infix text by recursive descent; see sym_parse.h. Python's precedences.
#include "ir/sym_parse.h"

#include <charconv>
#include <limits>
#include <vector>

#include <fmt/core.h>

#include "ir/sym_functions.h"

namespace pt2onnx {
namespace {

using sym::Add;
using sym::Compare;
using sym::Divide;
using sym::Function;
using sym::Multiply;
using sym::Power;
using sym::ShiftLeft;
using sym::ShiftRight;
using sym::Value;
using sym::Values;
using sym::Whole;

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

template <SymExpr (*F)(SymExpr, SymExpr)>
Value OnWhole(const Value& a, const Value& b) { return {F(Whole(a), Whole(b))}; }
template <SymExpr (*F)(SymExpr, SymExpr)>
Value Relation(const Value& a, const Value& b) { return Compare(F, a, b); }
Value Subtract(const Value& a, const Value& b) { return Add(a, Multiply({-1}, b)); }

// Binary operators, Python's levels; ** is not among them, it associates to the right.
struct Operator {
  std::string_view token;
  int level;
  Value (*apply)(const Value& a, const Value& b);
};
constexpr int kNotLevel = 3;
// Where one begins with another the longer comes first.
constexpr Operator kOperators[] = {
    {"or", 1, OnWhole<Or>},    {"and", 2, OnWhole<And>},   {"==", 4, Relation<Eq>},  {"!=", 4, Relation<Ne>}, {"<=", 4, Relation<Le>},
    {">=", 4, Relation<Ge>},   {"<<", 8, ShiftLeft},       {">>", 8, ShiftRight},    {"<", 4, Relation<Lt>},  {">", 4, Relation<Gt>},
    {"|", 5, OnWhole<BitOr>},  {"^", 6, OnWhole<BitXor>},  {"&", 7, OnWhole<BitAnd>}, {"+", 9, Add},          {"-", 9, Subtract},
    {"//", 10, OnWhole<FloorDiv>}, {"/", 10, Divide},      {"%", 10, OnWhole<Mod>},  {"*", 10, Multiply},
};

// The first mistake stops everything: later steps see end of text.
class Parser {
 public:
  Parser(SymPool& pool, std::string_view text) : pool_(pool), text_(text) {}

  Result<SymExpr> Run() {
    SymExpr e = Whole(Expression());
    SkipSpace();
    if (pos_ < text_.size()) Fail("unexpected text");
    if (!error_.empty()) {
      return Error{"E0139", fmt::format("can't read the symbolic expression `{}`: {}", text_, error_), "save the program again with a current torch"};
    }
    return e;
  }

 private:
  static constexpr int kMaxDepth = 200;  // calls of Expression: a hostile file must not overflow the stack

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

  // Operators that bind at least as tightly as `level`, left to right.
  Value Expression(int level = 0) {
    if (++depth_ > kMaxDepth) Fail("too deeply nested");
    Value left = AcceptWord("not") ? Value{Not(Whole(Expression(kNotLevel)))} : Sign();
    for (;;) {
      const Operator* op = PeekOperator();
      if (!op || op->level < level) break;
      pos_ += op->token.size();
      left = op->apply(left, Expression(op->level + 1));
    }
    --depth_;
    return left;
  }
  const Operator* PeekOperator() {
    char c = Peek();
    if (c == ')' || c == ',' || c == '\0') return nullptr;
    std::string_view rest = text_.substr(pos_), word = PeekName();
    for (const Operator& op : kOperators) {
      if (word.empty() ? rest.starts_with(op.token) : word == op.token) return &op;
    }
    return nullptr;
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
        return {Not(Whole(Sign()))};
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
      Value v = Expression();
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
    const Function* function = sym::FindFunction(name);
    if (!function) {
      Fail(fmt::format("unknown function `{}`", name));
      return {0};
    }
    Values args;
    Expect("(");
    if (Peek() != ')') {
      do {
        args.push_back(Expression());
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
      SymExpr value = Whole(Expression());
      Expect(",");
      cases.emplace_back(value, Whole(Expression()));
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
