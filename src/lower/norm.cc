// Normalizations. Each is the ONNX operator of its name where there is one; the statistics that training needs are written out:
//
//   mean = sum(x) / n    var = sum((x - mean)^2) / n    y = (x - mean) / sqrt(var + eps) * weight + bias
//   running_mean' = (1 - momentum) * running_mean + momentum * mean      running_var' likewise, with var * n / (n - 1)
#include "lower/network.h"

namespace pt2onnx {
namespace {

// A tensor full of `value`, which stands for a missing weight or bias: a constant unless it is large.
Val Filled(Onnx& b, const DimVec& shape, double value, DType dtype) {
  int64_t n = 1;
  IntVec sizes;
  for (const SymExpr& e : shape) {
    if (!e.IsConst() || (n *= e.Const()) > 65536) return b.Full(shape, value, dtype);
    sizes.push_back(e.Const());
  }
  return b.Tensor(sizes, std::vector<double>(static_cast<size_t>(n), value), dtype);
}
Val Given(Onnx& b, const OptVal& x, const DimVec& shape, double otherwise, DType dtype) {
  return x ? b.Cast(*x, dtype) : Filled(b, shape, otherwise, dtype);
}

struct Moments {
  Val mean, var;  // the biased variance
};
Moments MomentsOf(Onnx& b, Val x, const IntVec& axes, bool keepdims) {
  const Val mean = b.ReduceMean(x, axes, true);
  const Val d = x - mean;
  const Val var = b.ReduceMean(d * d, axes, keepdims);
  return {keepdims ? mean : b.Squeeze(mean, axes), var};
}
Val Rsqrt(Onnx& b, Val x) { return b.Reciprocal(b.Sqrt(x)); }

// x [N, C, ...] * weight [C] + bias [C]
Val PerChannel(Onnx& b, Val x, const OptVal& weight, const OptVal& bias) {
  const IntVec behind = Axes(1, x.rank() - 1);
  if (weight) x = x * b.Unsqueeze(b.Cast(*weight, x.dtype()), behind);
  return bias ? x + b.Unsqueeze(b.Cast(*bias, x.dtype()), behind) : x;
}

// ---- Batch norm ---------------------------------------------------------------------------------------------------------------------

Val BatchNorm(Onnx& b, Val input, const OptVal& weight, const OptVal& bias, Val mean, Val var, double eps) {
  const DType dtype = Accumulator(input.dtype());
  const DimVec channels = {input.dim(1)};
  return b.BatchNormalization(b.Cast(input, dtype), Given(b, weight, channels, 1, dtype), Given(b, bias, channels, 0, dtype), b.Cast(mean, dtype),
                              b.Cast(var, dtype), {.epsilon = eps}).Y;
}

struct Trained {
  Val y, mean, invstd;
  Val var, unbiased;
};
Trained BatchNormTraining(Onnx& b, Val input, const OptVal& weight, const OptVal& bias, double eps) {
  const Val x = b.Cast(input, Accumulator(input.dtype()));
  IntVec axes = Axes(0, x.rank());
  axes.erase(axes.begin() + 1);
  const Moments m = MomentsOf(b, x, axes, false);
  SymExpr n = 1;
  for (int64_t axis : axes) n *= x.dim(axis);
  const Val unbiased = n.IsConst() && n.Const() > 1 ? m.var * (static_cast<double>(n.Const()) / static_cast<double>(n.Const() - 1))
                                                    : m.var * b.Number(n, x.dtype()) / b.Number(n - 1, x.dtype());
  return {BatchNorm(b, x, weight, bias, m.mean, m.var, eps), m.mean, Rsqrt(b, m.var + eps), m.var, unbiased};
}

// old * (1 - momentum) + taken * momentum
Val Moved(Onnx& b, Val old, Val taken, double momentum) {
  const DType dtype = Accumulator(old.dtype());
  const Val now = b.Cast(taken, dtype) * momentum;
  return momentum == 1 ? now : b.Cast(old, dtype) * (1 - momentum) + now;
}

// Evaluation saves no statistics: they are empty, or those that were given.
Val Unsaved(Onnx& b, size_t result, Val given, OptVal invstd_of, double eps) {
  if (ResultShape(b, result).size() == 1 && ResultShape(b, result)[0] == 0) return b.Zeros({0}, ResultDType(b, result));
  return invstd_of ? Rsqrt(b, b.Cast(*invstd_of, Accumulator(invstd_of->dtype())) + eps) : given;
}

// y, saved mean, saved 1 / std; nothing is written.
Vals BatchNormSaved(Onnx& b, Val x, const OptVal& weight, const OptVal& bias, const OptVal& mean, const OptVal& var, bool training, double eps) {
  if (training || !mean || !var) {
    const Trained t = BatchNormTraining(b, x, weight, bias, eps);
    return {t.y, t.mean, t.invstd};
  }
  return {BatchNorm(b, x, weight, bias, *mean, *var, eps), Unsaved(b, 1, *mean, {}, eps), Unsaved(b, 2, *mean, *var, eps)};
}

Val ReservedSpace(Onnx& b, size_t result) { return b.Zeros(ResultShape(b, result), ResultDType(b, result)); }

// ---- Layer, group, instance, root mean square -----------------------------------------------------------------------------------------

LayerNormalizationOut LayerNorm(Onnx& b, Val x, Dims shape, const OptVal& weight, const OptVal& bias, double eps) {
  const DType dtype = weight ? Promote(x.dtype(), weight->dtype()) : x.dtype();
  const OptVal shift = bias ? OptVal(b.Cast(*bias, dtype)) : std::nullopt;
  return b.LayerNormalization(b.Cast(x, dtype), Given(b, weight, DimVec(shape), 1, dtype), shift, {.axis = -std::ssize(shape), .epsilon = eps});
}

// x / sqrt(mean(x^2) + eps) * weight over the last dims; eps defaults to the machine's, of the dtype that is computed in.
struct RootMeanSquare {
  Val y, invstd;
};
RootMeanSquare RmsNorm(Onnx& b, Val input, int64_t dims, const OptVal& weight, std::optional<double> given) {
  const DType dtype = Accumulator(input.dtype());
  const double eps = given ? *given : dtype == DType::F64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const Val x = b.Cast(input, dtype);
  const Val root = b.Sqrt(b.ReduceMean(x * x, Axes(x.rank() - dims, x.rank()), true) + eps);
  const Val y = x / root;
  return {weight ? y * b.Cast(*weight, dtype) : y, b.Reciprocal(root)};
}
Val RmsNormY(Onnx& b, Val x, Dims shape, const OptVal& weight, std::optional<double> eps) {
  if (b.opset() < 23 || !eps) return RmsNorm(b, x, std::ssize(shape), weight, eps).y;
  return b.RMSNormalization(x, Given(b, weight, DimVec(shape), 1, x.dtype()), {.axis = -std::ssize(shape), .epsilon = *eps});
}

// [N, C, ...] as [N, groups, rest]: each row is normalized.
struct Grouped {
  Val y, mean, invstd;
};
Grouped GroupNormWritten(Onnx& b, Val input, int64_t groups, const OptVal& weight, const OptVal& bias, double eps) {
  const Val x = b.Cast(input, Accumulator(input.dtype()));
  const SymExpr rest = FloorDiv(x.dim(1), groups) * Product(x.shape().subspan(2));
  const Val rows = b.Reshape(x, {x.dim(0), groups, rest});
  const Moments m = MomentsOf(b, rows, {2}, true);
  const Val invstd = Rsqrt(b, m.var + eps);
  const Val y = b.Reshape((rows - m.mean) * invstd, x.shape());
  return {PerChannel(b, y, weight, bias), b.Squeeze(m.mean, {2}), b.Squeeze(invstd, {2})};
}
Val GroupNorm(Onnx& b, Val x, int64_t groups, const OptVal& weight, const OptVal& bias, double eps) {
  if (x.dtype() == DType::F64 || x.rank() < 3) return GroupNormWritten(b, x, groups, weight, bias, eps).y;
  const DimVec channels = {x.dim(1)};
  const DType dtype = weight ? Promote(x.dtype(), weight->dtype()) : x.dtype();
  return b.GroupNormalization(b.Cast(x, dtype), Given(b, weight, channels, 1, dtype), Given(b, bias, channels, 0, dtype),
                              {.epsilon = eps, .num_groups = groups});
}

Val InstanceNorm(Onnx& b, const aten::instance_norm& op) {
  const Val x = op.input;
  if (!op.use_input_stats && op.running_mean && op.running_var) return BatchNorm(b, x, op.weight, op.bias, *op.running_mean, *op.running_var, op.eps);
  if (x.dtype() == DType::F64) {
    const Moments m = MomentsOf(b, x, Axes(2, x.rank()), true);
    return PerChannel(b, (x - m.mean) * Rsqrt(b, m.var + op.eps), op.weight, op.bias);
  }
  const DimVec channels = {x.dim(1)};
  const DType dtype = op.weight ? Promote(x.dtype(), op.weight->dtype()) : x.dtype();
  return b.InstanceNormalization(b.Cast(x, dtype), Given(b, op.weight, channels, 1, dtype), Given(b, op.bias, channels, 0, dtype), {.epsilon = op.eps});
}

// ---- Weights --------------------------------------------------------------------------------------------------------------------------

// The p-norm over all dims but one, which stays; over all dims where dim is -1.
Val NormExceptDim(Onnx& b, Val v, double p, int64_t dim) {
  IntVec axes = Axes(0, v.rank());
  if (dim == -1) return VectorNorm(b, v, p, axes, false);
  axes.erase(axes.begin() + dim);
  return VectorNorm(b, v, p, axes, true);
}

// v * (g / |v|)
Vals WeightNorm(Onnx& b, Val v, Val g, int64_t dim) {
  const Val norm = NormExceptDim(b, v, 2, dim);
  return {v * (g / norm), norm};
}

// Slices along dim whose norm is over maxnorm are scaled down to it.
Val Renorm(Onnx& b, Val x, double p, int64_t dim, double maxnorm) {
  IntVec axes = Axes(0, x.rank());
  axes.erase(axes.begin() + Axis(dim, x.rank()));
  const Val wide = b.Cast(x, Accumulator(x.dtype()));
  const Val norm = VectorNorm(b, wide, p, axes, true);
  const Val one = b.Constant(1, wide.dtype());
  const Val limit = b.Constant(maxnorm, wide.dtype());
  return wide * b.Where(b.Greater(norm, limit), limit / (norm + 1e-7), one);
}

}  // namespace

void NormRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::batch_norm& op) {
    return BatchNormSaved(b, op.input, op.weight, op.bias, op.running_mean, op.running_var, op.training, op.eps)[0];
  });
  r.On([](Onnx& b, const aten::native_batch_norm& op) {
    return BatchNormSaved(b, op.input, op.weight, op.bias, op.running_mean, op.running_var, op.training, op.eps);
  });
  r.On([](Onnx& b, const aten::_native_batch_norm_legit_no_training& op) {
    return BatchNormSaved(b, op.input, op.weight, op.bias, op.running_mean, op.running_var, false, op.eps);
  });
  r.On([](Onnx& b, const aten::_native_batch_norm_legit_no_stats& op) {
    return BatchNormSaved(b, op.input, op.weight, op.bias, {}, {}, true, op.eps);
  });
  r.On([](Onnx& b, const aten::_batch_norm_no_update& op) {
    Vals out = BatchNormSaved(b, op.input, op.weight, op.bias, op.running_mean, op.running_var, false, op.eps);
    out.push_back(ReservedSpace(b, 3));
    return out;
  });
  r.On([](Onnx& b, const aten::_native_batch_norm_legit_functional& op) -> Vals {
    if (!op.training) {
      Vals out = BatchNormSaved(b, op.input, op.weight, op.bias, op.running_mean, op.running_var, false, op.eps);
      out.push_back(op.running_mean);
      out.push_back(op.running_var);
      return out;
    }
    const Trained t = BatchNormTraining(b, op.input, op.weight, op.bias, op.eps);
    return {t.y, t.mean, t.invstd, Moved(b, op.running_mean, t.mean, op.momentum), Moved(b, op.running_var, t.unbiased, op.momentum)};
  });
  r.On([](Onnx& b, const aten::_batch_norm_with_update_functional& op) -> Vals {
    const Trained t = BatchNormTraining(b, op.input, op.weight, op.bias, op.eps);
    return {t.y, t.mean, t.invstd, ReservedSpace(b, 3), Moved(b, op.running_mean, t.mean, op.momentum), Moved(b, op.running_var, t.unbiased, op.momentum)};
  });

  r.On([](Onnx& b, const aten::layer_norm& op) { return LayerNorm(b, op.input, op.normalized_shape, op.weight, op.bias, op.eps).Y; });
  r.On([](Onnx& b, const aten::native_layer_norm& op) -> Vals {
    const LayerNormalizationOut out = LayerNorm(b, op.input, op.normalized_shape, op.weight, op.bias, op.eps);
    return {out.Y, out.Mean, out.InvStdDev};
  });
  r.On([](Onnx& b, const aten::rms_norm& op) { return RmsNormY(b, op.input, op.normalized_shape, op.weight, op.eps); });
  r.On([](Onnx& b, const aten::_fused_rms_norm& op) -> Vals {
    const RootMeanSquare out = RmsNorm(b, op.input, std::ssize(op.normalized_shape), op.weight, op.eps);
    return {out.y, out.invstd};
  });
  r.On([](Onnx& b, const aten::group_norm& op) { return GroupNorm(b, op.input, op.num_groups, op.weight, op.bias, op.eps); });
  r.On([](Onnx& b, const aten::native_group_norm& op) -> Vals {
    const Grouped out = GroupNormWritten(b, op.input, op.group, op.weight, op.bias, op.eps);
    return {out.y, out.mean, out.invstd};
  });
  r.On<InstanceNorm>();

  r.On([](Onnx& b, const aten::_weight_norm& op) { return WeightNorm(b, op.v, op.g, op.dim)[0]; });
  r.On([](Onnx& b, const aten::_weight_norm_interface& op) { return WeightNorm(b, op.v, op.g, op.dim); });
  r.On([](Onnx& b, const aten::norm_except_dim& op) { return NormExceptDim(b, op.v, static_cast<double>(op.pow), op.dim); });
  r.On([](Onnx& b, const aten::renorm& op) { return Renorm(b, op.self, op.p.AsDouble(), op.dim, op.maxnorm.AsDouble()); });
}

}  // namespace pt2onnx
