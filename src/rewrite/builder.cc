#include "rewrite/builder.h"

namespace pt2onnx {

SymExpr Val::numel() const { return Product(shape()); }

Scalar::Scalar(SymExpr x) {
  if (x.IsConst())
    value = x.Const();
  else if (const auto number = x.TryFloat())
    value = *number;
  else if (const auto truth = x.TryBool())
    value = *truth;
  else
    value = x;
}

bool Scalar::IsBool() const { return value.index() == 0 || (IsSymbolic() && std::get<SymExpr>(value).kind() == SymKind::Bool); }
bool Scalar::IsInt() const { return value.index() == 1 || (IsSymbolic() && std::get<SymExpr>(value).kind() == SymKind::Int); }
bool Scalar::IsFloat() const { return value.index() == 2 || (IsSymbolic() && std::get<SymExpr>(value).kind() == SymKind::Float); }

double Scalar::AsDouble() const {
  switch (value.index()) {
    case 0: return std::get<bool>(value);
    case 1: return static_cast<double>(std::get<int64_t>(value));
    case 2: return std::get<double>(value);
    default: PT2ONNX_UNREACHABLE();
  }
}

int64_t Scalar::AsInt() const {
  switch (value.index()) {
    case 0: return std::get<bool>(value);
    case 1: return std::get<int64_t>(value);
    case 2: return static_cast<int64_t>(std::get<double>(value));
    default: PT2ONNX_UNREACHABLE();
  }
}

std::complex<double> Scalar::AsComplex() const { return IsComplex() ? std::get<std::complex<double>>(value) : AsDouble(); }

DType Scalar::DefaultDType() const {
  if (IsBool()) return DType::Bool;
  if (IsInt()) return DType::I64;
  return IsComplex() ? DType::C64 : DType::F32;
}

Arg Scalar::ToArg() const {
  return std::visit([](const auto& x) -> Arg { return x; }, value);
}

Scalar Scalar::FromArg(const Arg& arg) {
  return std::visit(
      [](const auto& x) -> Scalar {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t> || std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>> ||
                      std::is_same_v<T, SymExpr>)
          return x;
        else PT2ONNX_UNREACHABLE();
      },
      arg);
}

Val Builder::Unsupported(std::string message, std::string help) {
  if (!problem_) {
    Problem problem;
    problem.code = "E0301";
    problem.message = std::move(message);
    problem.help = std::move(help);
    problem.loc = call_->loc;
    problem.op = call_->op->name;
    problem_ = context_.diagnostics.Add(std::move(problem));
  }
  // What the rule goes on with. Its rank and dtype are those of the op's first result, so that most rules can.
  Type type = call_->types.empty() ? Type{} : call_->types[0];
  if (type.kind != Kind::Tensor) type = {.kind = Kind::Tensor, .dtype = DType::F32};
  Value* value = context_.NewValue(type);
  value->problem = problem_;
  return Wrap(value);
}

}  // namespace pt2onnx
