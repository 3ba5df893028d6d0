// Normalizations over the last dim from their formulas.
#include "fuse/fuse.h"

namespace pt2onnx {
namespace {

bool IsLast(const Match& m, const Pat& mean, Val x) {
  const auto axis = KeptAxis(m, mean);
  return axis && (*axis == -1 || *axis == x.rank() - 1);
}
bool FitsAttribute(double x, DType dtype) { return dtype != DType::F64 || static_cast<double>(static_cast<float>(x)) == x; }

// Ones over the last dim; none if its size is open.
OptVal Ones(Onnx& b, Val x) {
  const SymExpr width = x.dim(-1);
  if (!width.IsConst() || width.Const() < 1) return {};
  return b.Tensor(IntVec{width.Const()}, std::vector<double>(static_cast<size_t>(width.Const()), 1.0), x.dtype());
}
bool IsOnes(const Match& m, const Pat& norm, std::string_view operand) {
  const Arg& scale = m.ArgOf(norm, operand);
  return AllOnes(std::get<Value*>(scale));
}
double EpsilonOf(const Match& m, const Pat& norm) {
  const double* epsilon = std::get_if<double>(&m.ArgOf(norm, "epsilon"));
  return epsilon ? *epsilon : 1e-5;
}
// What multiplies or adds to every vector alike: a vector of its size.
bool IsVectorOf(Val w, Val x) {
  return w.value->type.ranked && w.rank() == 1 && w.dtype() == x.dtype() && w.dim(0) == x.dim(-1) && w.dim(0).IsConst();
}

}  // namespace

void NormFusions(Fusions& f) {
  // weight (x - mean x) / sqrt(mean (x - mean x)^2 + eps) + bias. Weight and bias join what is there already, or, grouped otherwise, come at once.
  {
    const Pat x, weight, mean = Mean(x), d = x - mean, variance = Mean(Square(d)), eps = Number();
    const auto norm = [=](Onnx& b, const Match& m, OptVal scale) -> OptVal {
      const Val v = m[x];
      const double epsilon = m.Number(eps);
      if (!IsLast(m, mean, v) || !IsLast(m, variance, v) || !FitsAttribute(epsilon, v.dtype()) || !Usable(b, OnnxOp::LayerNormalization, v.dtype()))
        return {};
      if (!scale) scale = Ones(b, v);
      return scale && IsVectorOf(*scale, v) ? OptVal(b.LayerNormalization(v, *scale, {}, {.axis = -1, .epsilon = epsilon}).Y) : OptVal();
    };
    f.On("layernorm", d / Sqrt(variance + eps), [=](Onnx& b, const Match& m) { return norm(b, m, {}); });
    f.On("layernorm", weight * d / Sqrt(variance + eps), [=](Onnx& b, const Match& m) { return norm(b, m, m[weight]); });
  }
  {
    const Pat x, ones, weight, norm = Op(OnnxOp::LayerNormalization, {x, ones});
    f.On("layernorm", norm * weight, [=](Onnx& b, const Match& m) -> OptVal {
      if (!IsOnes(m, norm, "Scale") || !IsNone(m.ArgOf(norm, "B")) || !IsVectorOf(m[weight], m[x]) || m.IntOf(norm, "axis", -1) != -1) return {};
      return b.LayerNormalization(m[x], m[weight], {}, {.axis = -1, .epsilon = EpsilonOf(m, norm)}).Y;
    });
  }
  {
    const Pat x, weight, bias, norm = Op(OnnxOp::LayerNormalization, {x, weight});
    f.On("layernorm", norm + bias, [=](Onnx& b, const Match& m) -> OptVal {
      if (!IsNone(m.ArgOf(norm, "B")) || !IsVectorOf(m[bias], m[x]) || m.IntOf(norm, "axis", -1) != -1) return {};
      return b.LayerNormalization(m[x], m[weight], m[bias], {.axis = -1, .epsilon = EpsilonOf(m, norm)}).Y;
    });
  }
  // weight x / sqrt(mean x^2 + eps)
  {
    const Pat x, weight, square = Mean(Square(x)), eps = Number();
    const auto norm = [=](Onnx& b, const Match& m, OptVal scale) -> OptVal {
      const Val v = m[x];
      if (!IsLast(m, square, v) || !FitsAttribute(m.Number(eps), v.dtype()) || !Usable(b, OnnxOp::RMSNormalization, v.dtype())) return {};
      if (!scale) scale = Ones(b, v);
      return scale && IsVectorOf(*scale, v) ? OptVal(b.RMSNormalization(v, *scale, {.axis = -1, .epsilon = m.Number(eps)})) : OptVal();
    };
    f.On("rmsnorm", x / Sqrt(square + eps), [=](Onnx& b, const Match& m) { return norm(b, m, {}); });
    f.On("rmsnorm", weight * x / Sqrt(square + eps), [=](Onnx& b, const Match& m) { return norm(b, m, m[weight]); });
  }
  {
    const Pat x, ones, weight, norm = Op(OnnxOp::RMSNormalization, {x, ones});
    f.On("rmsnorm", norm * weight, [=](Onnx& b, const Match& m) -> OptVal {
      if (!IsOnes(m, norm, "scale") || !IsVectorOf(m[weight], m[x]) || m.IntOf(norm, "axis", -1) != -1) return {};
      return b.RMSNormalization(m[x], m[weight], {.axis = -1, .epsilon = EpsilonOf(m, norm)});
    });
  }
}

}  // namespace pt2onnx
