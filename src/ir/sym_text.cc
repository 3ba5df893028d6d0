// Symbolic expressions as text: infix for people and the text form of programs, sympy's srepr for .pt2 files.
#include <array>

#include <fmt/core.h>

#include "ir/sym_facts.h"
#include "ir/sym_parse.h"
#include "ir/symexpr.h"

namespace pt2onnx {
namespace {

struct OpText {
  SymOp op;
  std::string_view infix;  // a function, unless InfixWriter knows better
  std::string_view srepr;
};

constexpr OpText kOpTexts[] = {
    {SymOp::Add, "", "Add"},
    {SymOp::Mul, "", "Mul"},
    {SymOp::Pow, "", "Pow"},
    {SymOp::FloorDiv, "", "FloorDiv"},
    {SymOp::Mod, "", "PythonMod"},
    {SymOp::TrueDiv, "truediv", "IntTrueDiv"},
    {SymOp::FloatPow, "", "FloatPow"},
    {SymOp::Max, "max", "Max"},
    {SymOp::Min, "min", "Min"},
    {SymOp::Abs, "abs", "Abs"},
    {SymOp::Floor, "floor", "FloorToInt"},
    {SymOp::Ceil, "ceil", "CeilToInt"},
    {SymOp::Trunc, "trunc", "TruncToInt"},
    {SymOp::Round, "round", "RoundToInt"},
    {SymOp::RoundDecimal, "RoundDecimal", "RoundDecimal"},
    {SymOp::TruncToFloat, "TruncToFloat", "TruncToFloat"},
    {SymOp::ToFloat, "float", "ToFloat"},
    {SymOp::Where, "where", "Where"},
    {SymOp::Eq, "", "Equality"},
    {SymOp::Ne, "", "Unequality"},
    {SymOp::Le, "", "LessThan"},
    {SymOp::Lt, "", "StrictLessThan"},
    {SymOp::And, "", "And"},
    {SymOp::Or, "", "Or"},
    {SymOp::Not, "", "Not"},
    {SymOp::BitAnd, "", "BitwiseFn_bitwise_and"},
    {SymOp::BitOr, "", "BitwiseFn_bitwise_or"},
    {SymOp::BitXor, "", "BitwiseFn_bitwise_xor"},
    {SymOp::IsNonOverlappingAndDense, "IsNonOverlappingAndDenseIndicator", "IsNonOverlappingAndDenseIndicator"},
    {SymOp::Sqrt, "sqrt", "OpaqueUnaryFn_sqrt"},
    {SymOp::Cos, "cos", "OpaqueUnaryFn_cos"},
    {SymOp::Cosh, "cosh", "OpaqueUnaryFn_cosh"},
    {SymOp::Sin, "sin", "OpaqueUnaryFn_sin"},
    {SymOp::Sinh, "sinh", "OpaqueUnaryFn_sinh"},
    {SymOp::Tan, "tan", "OpaqueUnaryFn_tan"},
    {SymOp::Tanh, "tanh", "OpaqueUnaryFn_tanh"},
    {SymOp::Asin, "asin", "OpaqueUnaryFn_asin"},
    {SymOp::Acos, "acos", "OpaqueUnaryFn_acos"},
    {SymOp::Atan, "atan", "OpaqueUnaryFn_atan"},
    {SymOp::Exp, "exp", "OpaqueUnaryFn_exp"},
    {SymOp::Log, "log", "OpaqueUnaryFn_log"},
    {SymOp::Asinh, "asinh", "OpaqueUnaryFn_asinh"},
    {SymOp::Log2, "log2", "OpaqueUnaryFn_log2"},
};

const OpText& TextOf(SymOp op) {
  for (const OpText& text : kOpTexts) {
    if (text.op == op) return text;
  }
  PT2ONNX_UNREACHABLE();
}

std::string Quoted(std::string_view name) {
  std::string text = "'";
  for (char c : name) {
    if (c == '\'' || c == '\\') text += '\\';
    text += c;
  }
  return text + "'";
}

std::string SymbolSrepr(const SymExpr& e) {
  std::string_view assumptions = e.kind() == SymKind::Float ? "" : e.node()->positive ? ", positive=True, integer=True" : ", integer=True";
  return fmt::format("Symbol({}{})", Quoted(e.SymbolName()), assumptions);
}

std::string FloatText(double value) {
  std::string text = fmt::format("{}", value);
  bool has_mark = text.find_first_not_of("-0123456789") != std::string::npos;
  return has_mark ? text : text + ".0";
}

// How tightly an operator binds; Python's order.
enum Level { kOr = 1, kAnd, kNot, kRelation, kBitOr, kBitXor, kBitAnd, kSum, kProduct, kSign, kPower, kAtom };

class InfixWriter {
 public:
  // Parenthesised unless the expression binds at least as tightly as `level`.
  std::string Write(const SymExpr& e, Level level) const {
    auto [text, own] = Text(e);
    return own < level ? "(" + text + ")" : text;
  }

 private:
  using Piece = std::pair<std::string, Level>;

  Piece Text(const SymExpr& e) const {
    std::span<const SymExpr> args = e.args();
    switch (e.op()) {
      case SymOp::Unknown: return {"?", kAtom};
      case SymOp::Int: return {std::to_string(e.Const()), e.Const() < 0 ? kSign : kAtom};
      case SymOp::Float: {
        std::string text = FloatText(*e.TryFloat());
        return {text, text[0] == '-' ? kSign : kAtom};
      }
      case SymOp::Bool: return {*e.TryBool() ? "True" : "False", kAtom};
      case SymOp::Symbol: return {IsBareSymbol(e.SymbolName(), e.kind()) ? std::string(e.SymbolName()) : SymbolSrepr(e), kAtom};
      case SymOp::Add: return {e.kind() == SymKind::Int ? Sum(args) : Join(args, " + ", kSum), kSum};
      case SymOp::Mul: return Product(e, args);
      case SymOp::Pow: case SymOp::FloatPow: return {Write(args[0], kAtom) + "**" + Write(args[1], kAtom), kPower};
      // A sign in front would read as the sign of the whole term: (-1)//s0.
      case SymOp::FloorDiv: return {Write(args[0], kPower) + "//" + Write(args[1], kPower), kProduct};
      case SymOp::Mod: return {Write(args[0], kPower) + " % " + Write(args[1], kPower), kProduct};
      case SymOp::TrueDiv:
        // Of ints a function, because "/" reads as an exact quotient.
        if (args[0].kind() == SymKind::Int) return Call(e, args);
        return {Write(args[0], kPower) + "/" + Write(args[1], kPower), kProduct};
      case SymOp::Eq: return Relation(args, " == ");
      case SymOp::Ne: return Relation(args, " != ");
      case SymOp::Le: return Relation(args, " <= ");
      case SymOp::Lt: return Relation(args, " < ");
      case SymOp::And: return {Join(args, " and ", kAnd), kAnd};
      case SymOp::Or: return {Join(args, " or ", kOr), kOr};
      case SymOp::Not: return {"not " + Write(args[0], kNot), kNot};
      case SymOp::BitAnd: return {Join(args, " & ", kBitAnd), kBitAnd};
      case SymOp::BitOr: return {Join(args, " | ", kBitOr), kBitOr};
      case SymOp::BitXor: return {Join(args, " ^ ", kBitXor), kBitXor};
      default: return Call(e, args);
    }
  }

  Piece Call(const SymExpr& e, std::span<const SymExpr> args) const {
    std::string text = std::string(TextOf(e.op()).infix) + "(";
    for (size_t i = 0; i < args.size(); ++i) text += (i ? ", " : "") + Write(args[i], kOr);
    return {text + ")", kAtom};
  }

  Piece Relation(std::span<const SymExpr> args, std::string_view sign) const {
    return {Write(args[0], kBitOr) + std::string(sign) + Write(args[1], kBitOr), kRelation};
  }

  // Operators associate to the left: what follows the first must bind more tightly.
  std::string Join(std::span<const SymExpr> args, std::string_view sign, Level level) const {
    std::string text = Write(args[0], level);
    for (const SymExpr& arg : args.subspan(1)) text += std::string(sign) + Write(arg, Level(level + 1));
    return text;
  }

  std::string Sum(std::span<const SymExpr> args) const {
    std::string text;
    for (const SymExpr& arg : args) {
      std::string term = Write(arg, kProduct);
      // The least integer has no positive counterpart.
      bool negative = term[0] == '-' && !term.starts_with("-9223372036854775808");
      if (text.empty()) {
        text = term;
      } else {
        text += negative ? " - " + term.substr(1) : " + " + term;
      }
    }
    return text;
  }

  Piece Product(const SymExpr& e, std::span<const SymExpr> args) const {
    // A negative sign belongs to the whole product: -s0*s1.
    std::string text = Write(args[0], kSign);
    if (e.kind() == SymKind::Int && args[0].IsConst() && args[0].Const() == -1) {
      text = "-";
    } else {
      text += "*";
    }
    text += Write(args[1], kSign);
    for (const SymExpr& arg : args.subspan(2)) text += "*" + Write(arg, kSign);
    return {text, kProduct};
  }
};

std::string SreprCall(std::string_view name, std::span<const SymExpr> args) {
  std::string text = std::string(name) + "(";
  for (size_t i = 0; i < args.size(); ++i) text += (i ? ", " : "") + ToSrepr(args[i]);
  return text + ")";
}

bool IsNonNegative(const SymExpr& e) { return ProvablyNonNegative(e); }

std::string_view SreprName(const SymExpr& e) {
  std::span<const SymExpr> args = e.args();
  switch (e.op()) {
    case SymOp::Mod: return IsNonNegative(args[0]) && IsNonNegative(args[1]) ? "Mod" : "PythonMod";
    case SymOp::Pow: return args[1].IsConst() ? "Pow" : "PowByNatural";
    case SymOp::TrueDiv: return args[0].kind() == SymKind::Int ? "IntTrueDiv" : "FloatTrueDiv";
    default: return TextOf(e.op()).srepr;
  }
}

}  // namespace

std::string ToString(SymExpr e) { return InfixWriter().Write(e, kOr); }

std::string ToSrepr(SymExpr e) {
  std::span<const SymExpr> args = e.args();
  switch (e.op()) {
    case SymOp::Unknown: return "nan";
    case SymOp::Int: return fmt::format("Integer({})", e.Const());
    case SymOp::Float: return fmt::format("Float('{:.17g}', precision=53)", *e.TryFloat());
    case SymOp::Bool: return *e.TryBool() ? "true" : "false";
    case SymOp::Symbol: return SymbolSrepr(e);
    case SymOp::Where:
      return fmt::format("Piecewise(ExprCondPair({}, {}), ExprCondPair({}, true))", ToSrepr(args[1]), ToSrepr(args[0]), ToSrepr(args[2]));
    default: return SreprCall(SreprName(e), args);
  }
}

}  // namespace pt2onnx
