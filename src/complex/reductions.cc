// Sums, products, variances and norms of complex numbers.
//
//   sum: of each part    norm: of the absolute values    var: that of the real parts and that of the imaginary parts together
#include "complex/arithmetic.h"
#include "ir/op_table.h"
#include "passes/views.h"

namespace pt2onnx {
namespace {

constexpr int64_t kUnroll = 256;  // factors that a product multiplies one by one

template <class... Ops>
void EachPart(Rules<Pairs>& r) {
  (r.On([](Pairs& b, const Ops&) { return b.EachPart(); }), ...);
}

// Without dims given: over all, but not the pair's.
template <class... Ops>
void OverDims(Rules<Pairs>& r) {
  (r.On([](Pairs& b, const Ops& op) { return op.dim && !op.dim->empty() ? b.OnPairs() : b.EachPart(); }), ...);
}

Val Slice(Pairs& b, Val x, int64_t dim, int64_t start, int64_t end) {
  return b(aten::slice_Tensor{.self = x, .dim = dim, .start = SymExpr(start), .end = SymExpr(end)});
}

// |z| and arg z in float64, combined along dim: the product has the product of the one and the sum of the other.
template <class Multiply, class Sum>
Val ByAngle(Pairs& b, Val z, Multiply multiply, Sum sum) {
  const Val size = b.Cast(b(aten::abs{.self = z}), DType::F64), angle = sum(b.Cast(b(aten::angle{.self = z}), DType::F64));
  const Val whole = multiply(size);
  const auto part = [&](Val direction) { return b.Cast(whole * direction, b.real()); };
  return b.Pack({part(b(aten::cos{.self = angle})), part(b(aten::sin{.self = angle}))});
}

// Of few factors: halves multiplied until one is left. The result keeps the dim, of size 1.
Val ProductAlong(Pairs& b, Val z, int64_t dim) {
  const SymExpr size = z.dim(dim);
  if (!size.IsConst() || size.Const() > kUnroll) {
    const int64_t dims[] = {dim};
    return ByAngle(
        b, z, [&](Val x) { return b(aten::prod_dim_int{.self = x, .dim = dim, .keepdim = true}); },
        [&](Val x) { return b(aten::sum_dim_IntList{.self = x, .dim = Ints(dims), .keepdim = true}); });
  }
  int64_t n = size.Const();
  if (n == 0) {
    std::vector<SymExpr> shape(z.shape().begin(), z.shape().end());
    shape[static_cast<size_t>(dim)] = 1;
    return b.Pack({b.Constant(Scalar(1.0), b.real()), std::nullopt}, b.Copy(shape));
  }
  OptVal odd;
  for (; n > 1; n /= 2) {
    if (n % 2) {
      const Val last = Slice(b, z, dim, n - 1, n);
      odd = odd ? *odd * last : last;
    }
    z = Slice(b, z, dim, 0, n / 2) * Slice(b, z, dim, n / 2, n / 2 * 2);
  }
  return odd ? z * *odd : z;
}

Val Prod(Pairs& b, const aten::prod_dim_int& op) {
  const Val z = b.Cast(op.self, b.complex());
  if (z.IsScalar()) return z;
  return b.Reshape(ProductAlong(b, z, Normalize(op.dim, z.rank())), b.call().types[0].shape);
}
Val ProdOfAll(Pairs& b, const aten::prod& op) {
  const Val z = b.Cast(op.self, b.complex());
  return b.Reshape(ProductAlong(b, b.Reshape(z, {z.numel()}), 0), {});
}
Val CumProd(Pairs& b, const aten::cumprod& op) {
  const Val z = b.Cast(op.self, b.complex());
  return ByAngle(
      b, z, [&](Val x) { return b(aten::cumprod{.self = x, .dim = op.dim}); }, [&](Val x) { return b(aten::cumsum{.self = x, .dim = op.dim}); });
}

// The call, under another name, of one real operand in place of its first.
Val OfReal(Pairs& b, std::string_view name, Val x) {
  std::vector<Arg> args = b.Args();
  args[0] = x.value;
  for (Arg& arg : args)
    if (const DType* dtype = std::get_if<DType>(&arg)) arg = RealOf(*dtype);
  return b.EmitTyped(*FindOpInTable(name), args, {.kind = Kind::Tensor, .dtype = b.real(), .shape = b.call().types[0].shape});
}

// Of the parts, added.
template <bool root>
Val Variance(Pairs& b, Val z) {
  const std::string_view name = b.call().op->name;
  const size_t dot = name.find('.');
  const std::string var = "aten::var" + (dot == std::string_view::npos ? std::string() : std::string(name.substr(dot)));
  const Val sum = OfReal(b, var, b.Re(z)) + OfReal(b, var, b.Im(z));
  return root ? b(aten::sqrt{.self = sum}) : sum;
}
template <bool root>
Vals VarianceAndMean(Pairs& b, Val z, const std::optional<Ints>& dim, bool keepdim) {
  std::vector<int64_t> dims;
  if (dim) dims.assign(dim->begin(), dim->end());
  const Val mean = dims.empty() && !keepdim ? b(aten::mean{.self = z}) : b(aten::mean_dim{.self = z, .dim = b.Copy(dims), .keepdim = keepdim});
  return {Variance<root>(b, z), mean};
}
template <bool root, class All, class OverDims, class Corrected>
void VariancesAndMeans(Rules<Pairs>& r) {
  r.On([](Pairs& b, const All& op) { return VarianceAndMean<root>(b, op.self, std::nullopt, false); });
  r.On([](Pairs& b, const OverDims& op) { return VarianceAndMean<root>(b, op.self, op.dim, op.keepdim); });
  r.On([](Pairs& b, const Corrected& op) { return VarianceAndMean<root>(b, op.self, op.dim, op.keepdim); });
}
template <class... Ops>
void NormOfAbs(Rules<Pairs>& r) {
  (r.On([](Pairs& b, const Ops&) { return OfReal(b, b.call().op->name, b(aten::abs{.self = b.Wrap(std::get<Value*>(b.call().args[0]))})); }), ...);
}

// Sums of powers of absolute values know no singular values.
Val MatrixNorm(Pairs& b, Val z, const OptScalar& ord, size_t dims) {
  if (ord && dims != 1 && (ord->Is(2) || ord->Is(-2)))
    return b.Unsupported("a spectral norm of complex matrices needs singular values, which ONNX has no operator for");
  return OfReal(b, b.call().op->name, b(aten::abs{.self = z}));
}

// Each slice's norm is at most maxnorm: z times what that does to |z|.
Val Renorm(Pairs& b, const aten::renorm& op) {
  const Val size = b(aten::abs{.self = op.self}), one = b.Constant(Scalar(1.0), b.real());
  const Val bounded = b.Typed(aten::renorm{.self = size, .p = op.p, .dim = op.dim, .maxnorm = op.maxnorm}, b.real(), size.shape());
  const Val at_zero = b(aten::eq_Scalar{.self = size, .other = 0.0});
  return op.self * b(aten::where_self{.condition = at_zero, .self = one, .other = bounded / size});
}

// Asked for in a real dtype: of the real parts.
template <class... Ops>
void OfRealParts(Rules<Pairs>& r) {
  (r.On([](Pairs& b, const Ops& op) -> Val {
     const Type& type = b.call().types[0];
     if (IsComplex(type.dtype)) return b.Unsupported("complex numbers have no softmax", "take it of their absolute values");
     return b.Typed(Ops{.self = b.Cast(b.Re(op.self), type.dtype), .dim = op.dim}, type.dtype, type.shape);
   }),
   ...);
}

// reduction: 0 none, 1 mean, 2 sum
Val L1Loss(Pairs& b, const aten::l1_loss& op) {
  const Val error = b(aten::abs{.self = op.self - op.target});
  return op.reduction == 0 ? error : op.reduction == 1 ? b(aten::mean{.self = error}) : b(aten::sum{.self = error});
}

// Trapezoids between neighbours: the sum of (x[i + 1] - x[i]) (y[i + 1] + y[i]) / 2; of a vector x along dim.
Val Trapezoids(Pairs& b, Val y, Val x, int64_t dim) {
  dim = Normalize(dim, y.rank());
  const auto part = [&](Val v, int64_t at, bool first) {
    const SymExpr n = v.dim(at), one = 1;
    return b(aten::slice_Tensor{.self = v, .dim = at, .start = first ? SymExpr(0) : one, .end = first ? n - one : n});
  };
  if (x.rank() == 1) {
    std::vector<SymExpr> shape(static_cast<size_t>(y.rank() - dim), 1);
    shape[0] = x.dim(0);
    x = b.Reshape(x, b.Copy(shape));
  }
  const int64_t at = dim - y.rank() + x.rank();
  const Val width = part(x, at, false) - part(x, at, true), height = part(y, dim, false) + part(y, dim, true);
  return b(aten::mul_Scalar{.self = width * height, .other = 0.5});
}
template <class... Ops>
void TrapezoidSums(Rules<Pairs>& r) {
  (r.On([](Pairs& b, const Ops& op) {
     const Val areas = Trapezoids(b, op.y, op.x, op.dim);
     return b(aten::sum_dim_IntList{.self = areas, .dim = b.Copy(std::vector<int64_t>{Normalize(op.dim, op.y.rank()) - op.y.rank()})});
   }),
   ...);
}

// m + log(sum e^(z - m)), m the largest real part
Val LogSumExp(Pairs& b, const aten::logsumexp& op) {
  const Val most = b(aten::amax{.self = b.Re(op.self), .dim = op.dim, .keepdim = true});
  const Val sum = b(aten::sum_dim_IntList{.self = b(aten::exp{.self = op.self - most}), .dim = op.dim, .keepdim = true});
  return b.Reshape(most + b(aten::log{.self = sum}), b.call().types[0].shape);
}

// |x1 - x2 + eps|
Val PairwiseDistance(Pairs& b, const aten::pairwise_distance& op) {
  const Val apart = b(aten::abs{.self = b(aten::add_Scalar{.self = op.x1 - op.x2, .other = op.eps})});
  return b.Typed(aten::linalg_vector_norm{.self = apart, .ord = op.p, .dim = b.Copy(std::vector<int64_t>{-1}), .keepdim = op.keepdim}, b.real(),
                 b.call().types[0].shape);
}

// z / sqrt(mean z^2 + eps) * weight
Val RmsNorm(Pairs& b, const aten::rms_norm& op) {
  std::vector<int64_t> dims;
  for (int64_t i = 1; i <= std::ssize(op.normalized_shape); ++i) dims.push_back(-i);
  const double eps = op.eps.value_or(b.real() == DType::F64 ? 0x1p-52 : 0x1p-23);
  const Val mean = b(aten::mean_dim{.self = op.input * op.input, .dim = b.Copy(dims), .keepdim = true});
  const Val y = op.input * b(aten::rsqrt{.self = b(aten::add_Scalar{.self = mean, .other = eps})});
  return op.weight ? y * *op.weight : y;
}

}  // namespace

void ComplexReductions(Rules<Pairs>& r) {
  OverDims<aten::sum_dim_IntList, aten::mean_dim>(r);
  r.On([](Pairs& b, const aten::cumsum&) { return b.OnPairs(); });
  EachPart<aten::sum, aten::mean, aten::nansum, aten::sum_to_size, aten::diff, aten::trapezoid_dx, aten::trapz_dx, aten::cumulative_trapezoid_dx, aten::gradient_scalarint, aten::gradient_scalararray,
           aten::gradient_array, aten::gradient_scalarrayint, aten::gradient_scalarrayarray>(r);
  TrapezoidSums<aten::trapezoid_x, aten::trapz_x>(r);
  r.On([](Pairs& b, const aten::cumulative_trapezoid_x& op) {
    return b(aten::cumsum{.self = Trapezoids(b, op.y, op.x, op.dim), .dim = Normalize(op.dim, op.y.rank()) - op.y.rank()});
  });
  r.On<Prod>();
  r.On<ProdOfAll>();
  r.On<CumProd>();

  OfSelf<Variance<false>, aten::var, aten::var_dim, aten::var_correction>(r);
  OfSelf<Variance<true>, aten::std_, aten::std_dim, aten::std_correction>(r);
  VariancesAndMeans<false, aten::var_mean, aten::var_mean_dim, aten::var_mean_correction>(r);
  VariancesAndMeans<true, aten::std_mean, aten::std_mean_dim, aten::std_mean_correction>(r);

  NormOfAbs<aten::linalg_vector_norm, aten::norm_Scalar, aten::norm_ScalarOpt_dim, aten::norm_ScalarOpt_dtype, aten::norm_ScalarOpt_dim_dtype,
            aten::frobenius_norm_dim>(r);
  r.On([](Pairs& b, const aten::linalg_norm& op) {
    return MatrixNorm(b, op.self, op.ord, op.dim ? op.dim->size() : static_cast<size_t>(op.self.rank()));
  });
  r.On([](Pairs& b, const aten::linalg_matrix_norm& op) { return MatrixNorm(b, op.self, op.ord, 2); });
  r.On([](Pairs& b, const aten::linalg_matrix_norm_str_ord& op) { return MatrixNorm(b, op.self, op.ord == "nuc" ? OptScalar(2) : std::nullopt, 2); });
  r.On([](Pairs& b, const aten::dist& op) {
    return b.Typed(aten::norm_Scalar{.self = b(aten::abs{.self = op.self - op.other}), .p = op.p}, b.real(), {});
  });
  r.On<Renorm>();
  OfRealParts<aten::softmax_int, aten::log_softmax_int>(r);
  r.On<L1Loss>();
  r.On<LogSumExp>();
  r.On<PairwiseDistance>();
  r.On<RmsNorm>();
}

}  // namespace pt2onnx
