#include "ir/promotion.h"

#include <algorithm>
#include <string_view>

namespace pt2onnx {
namespace {

struct Row {
  std::string_view name;  // without namespace and overload
  PromotionKind kind;
};

using enum PromotionKind;
// Sorted by name. An op that isn't here takes its arguments as they are.
constexpr Row kRows[] = {
    {"__and__", Default}, {"__lshift__", Default}, {"__or__", Default}, {"__rshift__", Default}, {"__xor__", Default},
    {"acos", IntToFloat}, {"acosh", IntToFloat}, {"add", Default}, {"addcdiv", Default}, {"addcmul", Default}, {"angle", IntToFloat},
    {"arccos", IntToFloat}, {"arccosh", IntToFloat}, {"arcsin", IntToFloat}, {"arcsinh", IntToFloat}, {"arctan", IntToFloat},
    {"arctan2", IntToFloat}, {"arctanh", IntToFloat}, {"asin", IntToFloat}, {"asinh", IntToFloat}, {"atan", IntToFloat},
    {"atan2", IntToFloat}, {"atanh", IntToFloat}, {"bitwise_and", Default}, {"bitwise_left_shift", Default}, {"bitwise_or", Default},
    {"bitwise_right_shift", Default}, {"bitwise_xor", Default}, {"clamp", Default}, {"clamp_max", Default}, {"clamp_min", Default},
    {"clip", Default}, {"copysign", IntToFloat}, {"cos", IntToFloat}, {"cosh", IntToFloat}, {"deg2rad", IntToFloat},
    {"digamma", IntToFloat}, {"div", IntToFloat}, {"divide", IntToFloat}, {"eq", AlwaysBool}, {"erf", IntToFloat}, {"erfc", IntToFloat},
    {"erfinv", IntToFloat}, {"exp", IntToFloat}, {"exp2", IntToFloat}, {"expm1", IntToFloat}, {"float_power", Default},
    {"floor_divide", Default}, {"fmax", Default}, {"fmin", Default}, {"fmod", Default}, {"gcd", Default}, {"ge", AlwaysBool},
    {"greater", AlwaysBool}, {"greater_equal", AlwaysBool}, {"gt", AlwaysBool}, {"heaviside", Default}, {"hypot", Default},
    {"i0", IntToFloat}, {"igamma", Default}, {"igammac", Default}, {"lcm", Default}, {"le", AlwaysBool}, {"lerp", Default},
    {"less", AlwaysBool}, {"less_equal", AlwaysBool}, {"lgamma", IntToFloat}, {"log", IntToFloat}, {"log10", IntToFloat},
    {"log1p", IntToFloat}, {"log2", IntToFloat}, {"logaddexp", Default}, {"logaddexp2", Default}, {"logit", IntToFloat},
    {"lt", AlwaysBool}, {"maximum", Default}, {"minimum", Default}, {"mul", Default}, {"multiply", Default}, {"mvlgamma", IntToFloat},
    {"ne", AlwaysBool}, {"nextafter", Default}, {"not_equal", AlwaysBool}, {"polygamma", IntToFloat}, {"pow", Default},
    {"rad2deg", IntToFloat}, {"reciprocal", IntToFloat}, {"remainder", Default}, {"rsqrt", IntToFloat}, {"rsub", Default},
    {"sigmoid", IntToFloat}, {"sin", IntToFloat}, {"sinc", IntToFloat}, {"sinh", IntToFloat}, {"special_digamma", IntToFloat},
    {"special_entr", IntToFloat}, {"special_erf", IntToFloat}, {"special_erfc", IntToFloat}, {"special_erfcx", IntToFloat},
    {"special_erfinv", IntToFloat}, {"special_exp2", IntToFloat}, {"special_expit", IntToFloat}, {"special_expm1", IntToFloat},
    {"special_gammaln", IntToFloat}, {"special_i0", IntToFloat}, {"special_i0e", IntToFloat}, {"special_i1", IntToFloat},
    {"special_i1e", IntToFloat}, {"special_log1p", IntToFloat}, {"special_log_ndtr", IntToFloat}, {"special_logit", IntToFloat},
    {"special_ndtr", IntToFloat}, {"special_ndtri", IntToFloat}, {"special_polygamma", IntToFloat}, {"special_psi", IntToFloat},
    {"special_sinc", IntToFloat}, {"special_xlog1py", IntToFloat}, {"special_xlogy", IntToFloat}, {"special_zeta", IntToFloat},
    {"sqrt", IntToFloat}, {"sub", Default}, {"subtract", Default}, {"tan", IntToFloat}, {"tanh", IntToFloat}, {"true_divide", IntToFloat},
    {"where", Default}, {"xlogy", IntToFloat},
};
static_assert(std::ranges::is_sorted(kRows, {}, &Row::name));

std::string_view BaseName(std::string_view name) {
  if (!name.starts_with("aten::")) return {};
  name.remove_prefix(6);
  return name.substr(0, name.find('.'));
}

int Category(DType d) {
  if (d == DType::Bool) return 1;
  if (IsComplex(d)) return 4;
  return IsFloat(d) ? 3 : d == DType::Unknown ? 0 : 2;
}

// `higher` is of tensors with dimensions, say, `lower` of rank 0: the lower one only counts where its category is higher.
DType Combine(DType higher, DType lower) {
  if (higher == DType::Unknown) return lower;
  if (lower == DType::Unknown) return higher;
  if (IsComplex(higher)) return higher;
  if (IsFloat(higher)) return IsComplex(lower) ? ComplexOf(higher) : higher;
  if (higher == DType::Bool || Category(lower) >= 3) return Promote(higher, lower);
  return higher;
}

DType Both(DType a, DType b) { return a == DType::Unknown ? b : b == DType::Unknown ? a : Promote(a, b); }

struct Categories {
  DType dim = DType::Unknown, zero = DType::Unknown, number = DType::Unknown;
  void Add(const Arg& arg) {
    if (Value* const* value = std::get_if<Value*>(&arg)) {
      const Type& type = (*value)->type;
      if (type.kind != Kind::Tensor) return;
      DType& slot = type.shape.empty() ? zero : dim;
      slot = Both(slot, type.dtype);
    } else if (const ValueList* list = std::get_if<ValueList>(&arg)) {
      for (Value* value : *list)
        if (value) Add(Arg(value));
    } else if (std::get_if<bool>(&arg)) {
      number = Both(number, DType::Bool);
    } else if (std::get_if<int64_t>(&arg)) {
      number = Both(number, DType::I64);
    } else if (std::get_if<double>(&arg)) {
      number = Both(number, DType::F32);
    } else if (std::get_if<std::complex<double>>(&arg)) {
      number = Both(number, DType::C64);
    } else if (const SymExpr* expr = std::get_if<SymExpr>(&arg)) {
      number = Both(number, expr->kind() == SymKind::Int ? DType::I64 : expr->kind() == SymKind::Bool ? DType::Bool : DType::F32);
    }
  }
  DType Result() const { return Combine(Combine(dim, zero), number); }
};

bool Takes(const OpSchema& op, std::string_view base, size_t i) {
  const ArgSchema& arg = op.args[i];
  if (arg.type != ArgType::Tensor && arg.type != ArgType::Scalar) return false;
  if (base == "where") return arg.name != "condition";
  if (arg.name == "alpha" || arg.name == "n" || arg.name == "eps" || arg.name == "out") return false;
  if (base == "addcmul" || base == "addcdiv") return arg.name != "value";
  return true;
}

}  // namespace

std::optional<Promotion> PromotionOf(const OpSchema& op, std::span<const Arg> args) {
  const std::string_view base = BaseName(op.name);
  const Row* row = std::lower_bound(std::begin(kRows), std::end(kRows), base, [](const Row& r, std::string_view n) { return r.name < n; });
  if (row == std::end(kRows) || row->name != base) return std::nullopt;
  Promotion promotion{row->kind};
  // div with a rounding mode keeps integers.
  const int mode = base == "div" || base == "divide" ? op.ArgIndex("rounding_mode") : -1;
  if (mode >= 0 && !IsNone(args[static_cast<size_t>(mode)])) promotion.kind = Default;
  for (size_t i = 0; i < op.args.size(); ++i)
    if (Takes(op, base, i)) promotion.mask |= uint64_t{1} << i;
  if (promotion.mask == 0) return std::nullopt;  // where(condition): indices
  return promotion;
}

DType ResultType(std::span<const Arg> args) {
  Categories categories;
  for (const Arg& arg : args) categories.Add(arg);
  return categories.Result();
}

Promoted Promote(const Promotion& promotion, std::span<const Arg> args) {
  Categories categories;
  for (size_t i = 0; i < args.size(); ++i)
    if (promotion.Takes(i)) categories.Add(args[i]);
  DType common = categories.Result();
  switch (promotion.kind) {
    case Default: return {common, common};
    case IntToFloat:
      if (!IsFloat(common) && !IsComplex(common)) common = DType::F32;
      return {common, common};
    case AlwaysBool: return {common, DType::Bool};
    case ComplexToFloat: return {common, RealOf(common)};
    case BoolToLong:
      if (common == DType::Bool) common = DType::I64;
      return {common, common};
  }
  return {common, common};
}

}  // namespace pt2onnx
