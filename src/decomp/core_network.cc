// Core ATen: layers, by mm and bmm, convolution, the native_ norms and pools, _softmax.
//
//   %y = aten::linear(%x, %w, %b)    ->    %t = aten::permute(%w, [1, 0])   %y = aten::addmm(%b, %x, %t)
#include <cmath>

#include "decomp/core.h"
#include "ir/infer.h"

namespace pt2onnx {

Val MatrixProduct(Aten& b, Val x, Val y) {
  const bool row = x.rank() == 1, column = y.rank() == 1;
  if (row && column) return Sum(b, x * y);
  if (row) x = Unsqueeze(b, x, 0);
  if (column) y = Unsqueeze(b, y, 1);
  const SymExpr n = x.dim(-2), k = x.dim(-1), m = y.dim(-1);
  Val out = x;
  if (x.rank() == 2 && y.rank() == 2) {
    out = b(aten::mm{.self = x, .mat2 = y});
  } else if (y.rank() == 2) {  // rows of all batches at once
    const SymExpr rows = Product(x.shape().first(static_cast<size_t>(x.rank() - 1)));
    std::vector<SymExpr> shape(x.shape().begin(), x.shape().end());
    shape.back() = m;
    out = b.Reshape(b(aten::mm{.self = b.Reshape(x, {rows, k}), .mat2 = y}), b.Copy(shape));
  } else {
    const auto batch = [](Val v) { return v.shape().first(static_cast<size_t>(v.rank() - 2)); };
    std::vector<SymExpr> shape = BroadcastShape(batch(x), batch(y));
    const SymExpr count = Product(shape);
    const auto flat = [&](Val v) {
      std::vector<SymExpr> whole = shape;
      whole.push_back(v.dim(-2)), whole.push_back(v.dim(-1));
      return b.Reshape(b.Expand(v, b.Copy(whole)), {count, v.dim(-2), v.dim(-1)});
    };
    out = b(aten::bmm{.self = flat(x), .mat2 = flat(y)});
    shape.push_back(n), shape.push_back(m);
    out = b.Reshape(out, b.Copy(shape));
  }
  if (column) out = b(aten::squeeze_dim{.self = out, .dim = -1});
  if (row) out = b(aten::squeeze_dim{.self = out, .dim = column ? -1 : -2});
  return out;
}

namespace {

Val Linear(Aten& b, const aten::linear& op) {
  if (op.weight.rank() == 1) {
    const Val y = MatrixProduct(b, op.input, op.weight);
    return op.bias ? y + *op.bias : y;
  }
  const Val weight = Swap(b, op.weight, 0, 1);
  if (!op.bias || op.input.rank() == 1) {
    const Val y = MatrixProduct(b, op.input, weight);
    return op.bias ? y + *op.bias : y;
  }
  if (op.input.rank() == 2) return b(aten::addmm{.self = *op.bias, .mat1 = op.input, .mat2 = weight});
  const SymExpr rows = Product(op.input.shape().first(static_cast<size_t>(op.input.rank() - 1)));
  const Val flat = b.Reshape(op.input, {rows, op.input.dim(-1)});
  return b.Reshape(b(aten::addmm{.self = *op.bias, .mat1 = flat, .mat2 = weight}), RecordedShape(b));
}

void Products(Rules<Aten>& r) {
  r.On<Linear>();
  r.On([](Aten& b, const aten::matmul& op) { return MatrixProduct(b, op.self, op.other); });
  r.On([](Aten& b, const aten::mv& op) { return MatrixProduct(b, op.self, op.vec); });
  r.On([](Aten& b, const aten::dot& op) { return Sum(b, op.self * op.tensor); });
  r.On([](Aten& b, const aten::vdot& op) {
    return Sum(b, (IsComplex(op.self.dtype()) ? b(aten::conj_physical{.self = op.self}) : op.self) * op.other);
  });
  r.On([](Aten& b, const aten::outer& op) { return Unsqueeze(b, op.self, 1) * Unsqueeze(b, op.vec2, 0); });
}

// ---- Convolutions -------------------------------------------------------------------------------------------------------------------

// Unbatched input is a batch of one.
template <class F>
Val Batched(Aten& b, Val input, int64_t spatial, F f) {
  if (input.rank() == spatial + 2) return f(input);
  return b(aten::squeeze_dim{.self = f(Unsqueeze(b, input, 0)), .dim = 0});
}

// Transposed where the op has an output padding.
template <class Op, int spatial>
void Conv(Rules<Aten>& r) {
  r.On([](Aten& b, const Op& op) {
    constexpr bool transposed = requires { op.output_padding; };
    Dims output_padding;
    if constexpr (transposed) output_padding = op.output_padding;
    else output_padding = b.Copy(std::vector<SymExpr>(spatial, 0));
    return Batched(b, op.input, spatial, [&](Val x) {
      return b(aten::convolution{.input = x,
                                 .weight = op.weight,
                                 .bias = op.bias,
                                 .stride = op.stride,
                                 .padding = op.padding,
                                 .dilation = op.dilation,
                                 .transposed = transposed,
                                 .output_padding = output_padding,
                                 .groups = op.groups});
    });
  });
}
// "valid" pads nothing; "same" pads dilation * (kernel - 1) in all, the larger half behind.
template <class Op, int spatial>
void ConvPadded(Rules<Aten>& r) {
  r.On([](Aten& b, const Op& op) {
    return Batched(b, op.input, spatial, [&](Val x) {
      std::vector<SymExpr> padding(spatial, 0), ahead(2 * spatial, 0);
      bool uneven = false;
      for (int64_t d = 0; d < spatial && op.padding == "same"; ++d) {
        const size_t i = static_cast<size_t>(d);
        const SymExpr all = op.dilation[i] * (op.weight.dim(d + 2) - 1), half = FloorDiv(all, 2);
        padding[i] = half;
        ahead[ahead.size() - 1 - 2 * i] = all - 2 * half;
        uneven |= !(all == 2 * half);
      }
      if (uneven) x = b(aten::constant_pad_nd{.self = x, .pad = b.Copy(ahead)});
      return b(aten::convolution{.input = x,
                                 .weight = op.weight,
                                 .bias = op.bias,
                                 .stride = op.stride,
                                 .padding = b.Copy(padding),
                                 .dilation = op.dilation,
                                 .transposed = false,
                                 .output_padding = b.Copy(std::vector<SymExpr>(spatial, 0)),
                                 .groups = op.groups});
    });
  });
}

void Convolutions(Rules<Aten>& r) {
  Conv<aten::conv1d, 1>(r);
  Conv<aten::conv2d, 2>(r);
  Conv<aten::conv3d, 3>(r);
  ConvPadded<aten::conv1d_padding, 1>(r);
  ConvPadded<aten::conv2d_padding, 2>(r);
  ConvPadded<aten::conv3d_padding, 3>(r);
  Conv<aten::conv_transpose1d, 1>(r);
  Conv<aten::conv_transpose2d_input, 2>(r);
  Conv<aten::conv_transpose3d_input, 3>(r);
}

// ---- Norms --------------------------------------------------------------------------------------------------------------------------

Val BatchNorm(Aten& b, Val x, OptVal weight, OptVal bias, OptVal mean, OptVal var, bool training, double momentum, double eps) {
  if (!training && mean && var)
    return b.All(aten::_native_batch_norm_legit_no_training{
        .input = x, .weight = weight, .bias = bias, .running_mean = *mean, .running_var = *var, .momentum = momentum, .eps = eps})[0];
  return b.All(
      aten::_native_batch_norm_legit_no_stats{.input = x, .weight = weight, .bias = bias, .training = true, .momentum = momentum, .eps = eps})[0];
}

// Batch norm of (1, N*C, ...): each image of the batch has channels of its own.
Val InstanceNorm(Aten& b, const aten::instance_norm& op) {
  if (!op.use_input_stats && op.running_mean)
    return BatchNorm(b, op.input, op.weight, op.bias, op.running_mean, op.running_var, false, op.momentum, op.eps);
  const Val x = op.input;
  std::vector<SymExpr> folded(x.shape().begin(), x.shape().end());
  folded[1] = folded[0] * folded[1];
  folded[0] = 1;
  const auto repeated = [&](OptVal v) { return v ? OptVal(b(aten::repeat{.self = *v, .repeats = b.Copy(std::vector<SymExpr>{x.dim(0)})})) : v; };
  return b.Reshape(BatchNorm(b, b.Reshape(x, b.Copy(folded)), repeated(op.weight), repeated(op.bias), {}, {}, true, op.momentum, op.eps), x.shape());
}

// x / sqrt(mean(x^2) + eps) * weight
Val RmsNorm(Aten& b, const aten::rms_norm& op) {
  const DType compute = op.input.dtype() == DType::F16 || op.input.dtype() == DType::BF16 ? DType::F32 : op.input.dtype();
  const Val x = b.Cast(op.input, compute);
  std::vector<int64_t> dims;
  for (size_t i = op.normalized_shape.size(); i > 0; --i) dims.push_back(-static_cast<int64_t>(i));
  const double eps = op.eps.value_or(compute == DType::F64 ? 2.220446049250313e-16 : 1.1920928955078125e-07);
  const Val square = b(aten::mean_dim{.self = b(aten::pow_Tensor_Scalar{.self = x, .exponent = 2}), .dim = b.Copy(dims), .keepdim = true});
  Val y = x * b(aten::rsqrt{.self = b(aten::add_Scalar{.self = square, .other = Scalar(eps)})});
  if (op.weight) y = y * *op.weight;
  return b.Cast(y, RecordedDType(b));
}

Val GroupNorm(Aten& b, const aten::group_norm& op) {
  const SymExpr n = op.input.dim(0), c = op.input.dim(1);
  return b.All(aten::native_group_norm{.input = op.input,
                                       .weight = op.weight,
                                       .bias = op.bias,
                                       .N = n,
                                       .C = c,
                                       .HxW = Product(op.input.shape().subspan(2)),
                                       .group = op.num_groups,
                                       .eps = op.eps})[0];
}

void Norms(Rules<Aten>& r) {
  r.On([](Aten& b, const aten::batch_norm& op) {
    return BatchNorm(b, op.input, op.weight, op.bias, op.running_mean, op.running_var, op.training, op.momentum, op.eps);
  });
  r.On<InstanceNorm>();
  r.On([](Aten& b, const aten::layer_norm& op) {
    return b.All(
        aten::native_layer_norm{.input = op.input, .normalized_shape = op.normalized_shape, .weight = op.weight, .bias = op.bias, .eps = op.eps})[0];
  });
  r.On<RmsNorm>();
  r.On<GroupNorm>();
}

// ---- Pools, padding, dropout --------------------------------------------------------------------------------------------------------

// One dim as the second of two.
Ints Second(Aten& b, Ints list, int64_t first) { return b.Copy(std::vector<int64_t>{first, list[0]}); }

Val MaxPool1d(Aten& b, const aten::max_pool1d& op) {
  const Val x = Unsqueeze(b, op.self, -2);
  const Val y = b.All(aten::max_pool2d_with_indices{.self = x,
                                                    .kernel_size = Second(b, op.kernel_size, 1),
                                                    .stride = Second(b, op.stride.empty() ? op.kernel_size : op.stride, 1),
                                                    .padding = Second(b, op.padding, 0),
                                                    .dilation = Second(b, op.dilation, 1),
                                                    .ceil_mode = op.ceil_mode})[0];
  return b(aten::squeeze_dim{.self = y, .dim = -2});
}

template <class From, class To>
void FirstOf(Rules<Aten>& r) {
  r.On([](Aten& b, const From& op) { return b.Emit(OpTable()[To::kId], ToArgs(op, b.context()))[0]; });
}

Val Pad(Aten& b, const aten::pad& op) {
  if (op.mode == "constant") return b(aten::constant_pad_nd{.self = op.self, .pad = op.pad_, .value = Scalar(op.value.value_or(0))});
  const size_t dims = op.pad_.size() / 2;
  if (op.mode == "circular") {  // the end before the start, the start behind the end
    Val x = op.self;
    for (size_t i = 0; i < dims; ++i) {
      const int64_t dim = x.rank() - 1 - static_cast<int64_t>(i);
      const SymExpr n = x.dim(dim), before = op.pad_[2 * i], behind = op.pad_[2 * i + 1];
      Vals parts;
      if (!(before == 0)) parts.push_back(Slice(b, x, dim, n - before, n));
      parts.push_back(x);
      if (!(behind == 0)) parts.push_back(Slice(b, x, dim, 0, behind));
      if (parts.size() > 1) x = b(aten::cat{.tensors = parts, .dim = dim});
    }
    return x;
  }
  const std::string_view rows[2][3] = {{"aten::reflection_pad1d", "aten::reflection_pad2d", "aten::reflection_pad3d"},
                                       {"aten::replication_pad1d", "aten::replication_pad2d", "aten::replication_pad3d"}};
  if (dims < 1 || dims > 3) return b.Unsupported("padding of more than three dims is not in Core ATen", "pad fewer dims at a time");
  const OpSchema& to = *FindOpInTable(rows[op.mode == "replicate"][dims - 1]);
  return b.Emit(to, {op.self.value, op.pad_})[0];
}

void Pools(Rules<Aten>& r) {
  r.On<MaxPool1d>();
  FirstOf<aten::max_pool2d, aten::max_pool2d_with_indices>(r);
  FirstOf<aten::max_pool3d, aten::max_pool3d_with_indices>(r);
  FirstOf<aten::adaptive_avg_pool2d, aten::_adaptive_avg_pool2d>(r);
  FirstOf<aten::adaptive_avg_pool3d, aten::_adaptive_avg_pool3d>(r);
  r.On<Pad>();
  r.On([](Aten& b, const aten::dropout& op) {
    if (!op.train || op.p == 0) return op.input;
    return b.All(aten::native_dropout{.input = op.input, .p = op.p, .train = true})[0];
  });
  // Whole channels: one draw for each.
  r.On([](Aten& b, const aten::feature_dropout& op) {
    if (!op.train || op.p == 0) return op.input;
    std::vector<SymExpr> shape(static_cast<size_t>(op.input.rank()), 1);
    for (size_t i = 0; i < 2 && i < shape.size(); ++i) shape[i] = op.input.shape()[i];
    const Val kept = b(aten::ge_Scalar{.self = b(aten::rand{.size = b.Copy(shape), .dtype = DType::F32}), .other = Scalar(op.p)});
    const Val factor = b(aten::mul_Scalar{.self = b.Cast(kept, op.input.dtype()), .other = Scalar(op.p == 1 ? 0 : 1 / (1 - op.p))});
    return op.input * factor;
  });
  // Dropped elements are -alpha * scale of SELU, and all are scaled so that mean and variance stay.
  r.On([](Aten& b, const aten::alpha_dropout& op) {
    if (!op.train || op.p == 0) return op.input;
    constexpr double kAlpha = 1.7580993408473766;
    const double a = op.p == 1 ? 0 : 1 / std::sqrt((kAlpha * kAlpha * op.p + 1) * (1 - op.p));
    const Val unit = b(aten::rand{.size = op.input.shape(), .dtype = DType::F32});
    const Val kept = b(aten::ge_Scalar{.self = unit, .other = Scalar(op.p)});
    const Val x = WhereElse(b, kept, op.input, Scalar(-kAlpha));
    return b(aten::add_Scalar{.self = b(aten::mul_Scalar{.self = x, .other = Scalar(a)}), .other = Scalar(a * kAlpha * op.p)});
  });
}

// ---- Attention ----------------------------------------------------------------------------------------------------------------------

Val Softmax(Aten& b, Val x, int64_t dim) { return b(aten::_softmax{.self = x, .dim = dim, .half_to_float = false}); }

// softmax(q k' scale + mask) v. A row that is masked whole gives zeros.
Val Attention(Aten& b, const aten::scaled_dot_product_attention& op) {
  Val k = op.key, v = op.value;
  if (op.enable_gqa) {  // several heads of the query share one of key and value
    const auto spread = [&](Val x) {
      const SymExpr times = FloorDiv(op.query.dim(-3), x.dim(-3));
      if (times == 1) return x;
      std::vector<SymExpr> wide(x.shape().begin(), x.shape().end()), merged = wide;
      wide.insert(wide.end() - 2, times);
      merged[merged.size() - 3] = op.query.dim(-3);
      return b.Reshape(b.Expand(Unsqueeze(b, x, -3), b.Copy(wide)), b.Copy(merged));
    };
    k = spread(k), v = spread(v);
  }
  Scalar scale = 1.0;
  if (op.scale)
    scale = Scalar(*op.scale);
  else if (op.query.dim(-1).IsConst())
    scale = Scalar(1 / std::sqrt(static_cast<double>(op.query.dim(-1).Const())));
  else
    scale = Scalar(TrueDiv(SymExpr::Float(1), UnaryFunction(SymOp::Sqrt, ToFloat(op.query.dim(-1)))));
  Val scores = b(aten::mul_Scalar{.self = MatrixProduct(b, op.query, Swap(b, k, -1, -2)), .other = scale});
  OptVal mask = op.attn_mask;
  if (op.is_causal) {
    const Val rows = Unsqueeze(b, Iota(b, op.query.dim(-2)), -1), columns = Iota(b, k.dim(-2));
    mask = b(aten::ge_Tensor{.self = rows, .other = columns});
  }
  Val weights = scores;
  if (mask && mask->dtype() == DType::Bool) {
    const double lowest = -std::numeric_limits<double>::infinity();
    weights = Softmax(b, WhereElse(b, *mask, scores, Scalar(lowest)), -1);
    const Val none = b(aten::logical_not{.self = b(aten::any_dim{.self = *mask, .dim = -1, .keepdim = true})});
    weights = WhereNumber(b, none, 0, weights);
  } else {
    weights = Softmax(b, mask ? scores + b.Cast(*mask, scores.dtype()) : scores, -1);
  }
  if (op.dropout_p > 0) weights = b.All(aten::native_dropout{.input = weights, .p = op.dropout_p, .train = true})[0];
  return MatrixProduct(b, weights, v);
}

void Attentions(Rules<Aten>& r) {
  r.On<Attention>();
  r.On([](Aten& b, const aten::softmax_int& op) { return Softmax(b, b.Cast(op.self, RecordedDType(b)), op.dim); });
  r.On([](Aten& b, const aten::log_softmax_int& op) {
    return b(aten::_log_softmax{.self = b.Cast(op.self, RecordedDType(b)), .dim = op.dim, .half_to_float = false});
  });
}

}  // namespace

void CoreNetwork(Rules<Aten>& r) {
  Products(r);
  Convolutions(r);
  Norms(r);
  Pools(r);
  Attentions(r);
}

}  // namespace pt2onnx
