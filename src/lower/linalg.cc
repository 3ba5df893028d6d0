// Matrix products: the family of matmul, with the scaled sums around it. ONNX's MatMul broadcasts as torch.matmul does, Gemm takes what is
// two-dimensional and of floats.
//
//   %y = aten::linear(%x : f32[s0, 8], %w : f32[4, 8], %b)    ->    %y = Gemm(%x, %w, %b, transB=1)
//   %y = aten::addmv(%c, %m, %v, alpha=2)                     ->    %y = Add(%c, Mul(MatMul(%m, %v), 2))
#include "lower/linalg_factor.h"

namespace pt2onnx {
namespace {

// beta * self + alpha * product. Where beta is 0 self does not count, not even its NaN.
Val Blend(Val self, const Scalar& beta, Val product, const Scalar& alpha) {
  if (!alpha.Is(1)) product = product * alpha;
  if (beta.Is(0)) return product;
  return (beta.Is(1) ? self : self * beta) + product;
}

bool IsGemmFactor(const Scalar& x, DType dtype) { return !x.IsSymbolic() && !x.IsComplex() && FitsAttribute(x.AsDouble(), dtype); }

// beta * self + alpha * (mat1 @ mat2)
Val Addmm(Onnx& b, Val self, Val mat1, Val mat2, const Scalar& beta, const Scalar& alpha) {
  const DType dtype = mat1.dtype();
  if (!IsFloat(dtype) || !IsGemmFactor(beta, dtype) || !IsGemmFactor(alpha, dtype)) return Blend(self, beta, b.MatMul(mat1, mat2), alpha);
  if (beta.Is(0)) return b.Gemm(mat1, mat2, {}, {.alpha = alpha.AsDouble()});
  return b.Gemm(mat1, mat2, self, {.alpha = alpha.AsDouble(), .beta = beta.AsDouble()});
}

Val Outer(Onnx& b, Val x, Val y) { return b.Unsqueeze(x, {1}) * b.Unsqueeze(y, {0}); }

// A product of matrices, from the side where the vector is: that keeps every factor small.
Val Chain(Onnx& b, const Vals& list) {
  if (list.back().rank() == 1) {
    Val y = list.back();
    for (size_t i = list.size() - 1; i-- > 0;) y = b.MatMul(list[i], y);
    return y;
  }
  Val y = list[0];
  for (size_t i = 1; i < list.size(); ++i) y = b.MatMul(y, list[i]);
  return y;
}

// x @ weight.T + bias over the last dim of x. With a bias as one Gemm over the rows of x: it reads the weight as it is stored, and what is
// reshaped before and behind it folds. Without a bias the reshapes would be all that is gained.
Val Linear(Onnx& b, Val x, Val weight, const OptVal& bias) {
  if (IsFloat(x.dtype()) && weight.rank() == 2 && (x.rank() == 2 || (x.rank() > 2 && bias))) {
    const Dims lead = x.shape().first(static_cast<size_t>(x.rank() - 1));
    const Val rows = x.rank() == 2 ? x : b.Reshape(x, {Product(lead), weight.dim(1)});
    const Val y = b.Gemm(rows, weight, bias, {.transB = 1});
    return x.rank() == 2 ? y : b.Reshape(y, Joined(lead, std::vector<SymExpr>{weight.dim(0)}));
  }
  const Val y = b.MatMul(x, weight.rank() == 2 ? b.Transpose(weight, {1, 0}) : weight);
  return bias ? y + *bias : y;
}

// sum over the paired dims: [free of self, K] @ [K, free of other]. A paired dim of size 1 stands for any size: the other side is summed.
Val Tensordot(Onnx& b, Val self, Val other, Ints dims_self, Ints dims_other) {
  const auto split = [&](Val& x, Val& partner, Ints dims, Ints partner_dims, IntVec& free, IntVec& paired, DimVec& free_dims, SymExpr& k) {
    for (size_t i = 0; i < dims.size(); ++i) {
      paired.push_back(Axis(dims[i], x.rank()));
      if (partner.dim(partner_dims[i]) == 1 && !(x.dim(dims[i]) == 1)) x = b.ReduceSum(x, {paired.back()}, true);
      k *= x.dim(paired.back());
    }
    for (int64_t d = 0; d < x.rank(); ++d)
      if (std::find(paired.begin(), paired.end(), d) == paired.end()) free.push_back(d), free_dims.push_back(x.dim(d));
  };
  IntVec free_a, pair_a, free_b, pair_b;
  DimVec dims_a, dims_b;
  SymExpr k_a = 1, k_b = 1;
  split(self, other, dims_self, dims_other, free_a, pair_a, dims_a, k_a);
  split(other, self, dims_other, dims_self, free_b, pair_b, dims_b, k_b);
  free_a.insert(free_a.end(), pair_a.begin(), pair_a.end());
  pair_b.insert(pair_b.end(), free_b.begin(), free_b.end());
  const Val x = b.Reshape(b.Transpose(self, free_a), {Product(dims_a), k_a});
  const Val y = b.Reshape(b.Transpose(other, pair_b), {k_b, Product(dims_b)});
  return b.Reshape(b.MatMul(x, y), ResultShape(b));
}

// self[i0, i1, ...] * other[j0, j1, ...] at [i0 * n0 + j0, ...]; missing leading dims are 1.
Val Kron(Onnx& b, Val self, Val other) {
  const int64_t rank = std::max(self.rank(), other.rank());
  DimVec x, y;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t i = d - rank + self.rank(), j = d - rank + other.rank();
    x.push_back(i < 0 ? SymExpr(1) : self.dim(i));
    x.push_back(1);
    y.push_back(1);
    y.push_back(j < 0 ? SymExpr(1) : other.dim(j));
  }
  return b.Reshape(b.Reshape(self, x) * b.Reshape(other, y), ResultShape(b));
}

// The equation in full: without blanks, its output written down (what occurs once, capitals first, behind what the ellipses stand for), and
// ellipses as letters of their own, aligned at the right: "...i,ij" of ranks 3 and 2 is "abi,ij->abj".
std::string FullEquation(std::string_view equation, const Vals& tensors) {
  std::string text;
  for (char c : equation)
    if (c != ' ') text += c;
  const auto occurs = [&](char c) { return std::count(text.begin(), text.end(), c); };
  std::string once, free;
  for (char c = 'A'; c <= 'z'; ++c) {
    if (!std::isalpha(static_cast<unsigned char>(c))) continue;
    if (occurs(c) == 1) once += c;
    if (occurs(c) == 0) free += c;
  }
  if (text.find("->") == std::string::npos) text += "->..." + once;
  const auto letters = [](std::string_view term) { return static_cast<int64_t>(term.size()) - (term.find('.') == std::string_view::npos ? 0 : 3); };
  const auto term_at = [&](size_t from) { return std::string_view(text).substr(from, text.find_first_of(",-", from) - from); };
  int64_t longest = 0;
  size_t at = 0;
  for (const Val& x : tensors) {
    const std::string_view term = term_at(at);
    if (term.find('.') != std::string_view::npos) longest = std::max(longest, x.rank() - letters(term));
    at += term.size() + 1;
  }
  std::string out;
  at = 0;
  const auto spelled = [&](std::string_view term, int64_t dims) {
    const size_t dots = term.find('.');
    if (dots == std::string_view::npos) return std::string(term);
    return std::string(term.substr(0, dots)) + free.substr(static_cast<size_t>(longest - dims), static_cast<size_t>(dims)) + std::string(term.substr(dots + 3));
  };
  for (const Val& x : tensors) {
    const std::string_view term = term_at(at);
    out += (at ? "," : "") + spelled(term, x.rank() - letters(term));
    at += term.size() + 1;
  }
  return out + "->" + spelled(std::string_view(text).substr(at + 1), longest);
}

Val Einsum(Onnx& b, std::string_view equation, Vals tensors) {
  const DType dtype = ResultDType(b);
  const bool as_it_is = IsFloat(dtype) || dtype == DType::I32 || dtype == DType::I64;
  for (Val& x : tensors) x = b.Cast(x, as_it_is ? dtype : DType::I64);
  const std::string full = FullEquation(equation, tensors);
  return b.Einsum(tensors, {.equation = std::string_view(full)});
}

// x1[..., i] weight[o, i, j] x2[..., j] + bias[o]
Val Bilinear(Onnx& b, Val x1, Val x2, Val weight, const OptVal& bias) {
  const SymExpr out = weight.dim(0), in1 = weight.dim(1), in2 = weight.dim(2);
  const Val left = b.MatMul(x1, b.Reshape(b.Transpose(weight, {1, 0, 2}), {in1, out * in2}));
  const Val pairs = b.Reshape(left, Joined(x1.shape().first(static_cast<size_t>(x1.rank() - 1)), std::vector<SymExpr>{out, in2}));
  const Val y = b.Squeeze(b.MatMul(pairs, b.Unsqueeze(x2, {-1})), {-1});
  return bias ? y + *bias : y;
}

// (x2 y3 - x3 y2, x3 y1 - x1 y3, x1 y2 - x2 y1) along a dim of size 3
Val Cross(Onnx& b, Val x, Val y, int64_t dim) {
  const int64_t from_end = Axis(dim, std::max(x.rank(), y.rank())) - std::max(x.rank(), y.rank());
  const auto turned = [&](Val v, IntVec order) { return b.Gather(v, b.Ints(std::move(order)), v.rank() + from_end); };
  return turned(x, {1, 2, 0}) * turned(y, {2, 0, 1}) - turned(x, {2, 0, 1}) * turned(y, {1, 2, 0});
}

// By squaring; power 0 is the identity, a negative one that of the inverse.
Val MatrixPower(Onnx& b, Val x, int64_t n) {
  if (n == 0) return b.Expand(UnitMatrix(b, x.dim(-2), x.dim(-1), x.dtype()), ResultShape(b));
  if (n < 0) {
    x = Inverse(b, x).x;
    n = -n;
  }
  OptVal y;
  for (Val square = x;; square = b.MatMul(square, square)) {
    if (n & 1) y = y ? b.MatMul(*y, square) : square;
    if (!(n >>= 1)) return *y;
  }
}

}  // namespace

void LinalgRules(Rules<Onnx>& r) {
  r.Map<aten::mm, &Onnx::MatMul>();
  r.Map<aten::bmm, &Onnx::MatMul>();
  r.Map<aten::mv, &Onnx::MatMul>();
  r.Map<aten::dot, &Onnx::MatMul>();
  r.Map<aten::vdot, &Onnx::MatMul>();
  r.Map<aten::matmul, &Onnx::MatMul>();
  r.Map<aten::linalg_matmul, &Onnx::MatMul>();
  // int8 products summed in int32
  r.On([](Onnx& b, const aten::_int_mm& op) { return b.MatMul(b.Cast(op.self, DType::I32), b.Cast(op.mat2, DType::I32)); });

  r.On([](Onnx& b, const aten::linear& op) { return Linear(b, op.input, op.weight, op.bias); });
  r.On([](Onnx& b, const aten::bilinear& op) { return Bilinear(b, op.input1, op.input2, op.weight, op.bias); });

  r.On([](Onnx& b, const aten::addmm& op) { return Addmm(b, op.self, op.mat1, op.mat2, op.beta, op.alpha); });
  r.On([](Onnx& b, const aten::_addmm_activation& op) {
    const Val y = Addmm(b, op.self, op.mat1, op.mat2, op.beta, op.alpha);
    if (!op.use_gelu) return b.Relu(y);
    return b.opset() >= 20 ? b.Gelu(y) : y * (b.Erf(y * M_SQRT1_2) + 1) * 0.5;
  });
  r.On([](Onnx& b, const aten::addmv& op) { return Blend(op.self, op.beta, b.MatMul(op.mat, op.vec), op.alpha); });
  r.On([](Onnx& b, const aten::addr& op) {
    const Val product = Outer(b, op.vec1, op.vec2);
    if (ResultDType(b) != DType::Bool) return Blend(op.self, op.beta, product, op.alpha);
    const Val scaled = op.alpha.Is(0) ? b.Zeros(product.shape(), DType::Bool) : product;
    return op.beta.Is(0) ? scaled : b.Or(op.self, scaled);
  });
  // sum over the batch
  r.On([](Onnx& b, const aten::addbmm& op) {
    return Blend(op.self, op.beta, b.ReduceSum(b.MatMul(op.batch1, op.batch2), {0}), op.alpha);
  });

  r.On([](Onnx& b, const aten::outer& op) { return Outer(b, op.self, op.vec2); });
  r.On([](Onnx& b, const aten::ger& op) { return Outer(b, op.self, op.vec2); });
  r.On([](Onnx& b, const aten::kron& op) { return Kron(b, op.self, op.other); });
  // over the last dims; a scalar only scales
  r.On([](Onnx& b, const aten::inner& op) {
    if (op.self.IsScalar() || op.other.IsScalar()) return op.self * op.other;
    if (op.other.rank() == 1) return b.MatMul(op.self, op.other);
    const int64_t last[] = {-1};
    return Tensordot(b, op.self, op.other, last, last);
  });
  r.On([](Onnx& b, const aten::tensordot& op) { return Tensordot(b, op.self, op.other, op.dims_self, op.dims_other); });
  r.On([](Onnx& b, const aten::linalg_vecdot& op) { return b.ReduceSum(op.x * op.y, {Axis(op.dim, std::max(op.x.rank(), op.y.rank()))}); });
  r.On([](Onnx& b, const aten::einsum& op) { return Einsum(b, op.equation, op.tensors); });

  r.On([](Onnx& b, const aten::linalg_cross& op) { return Cross(b, op.self, op.other, op.dim); });
  r.On([](Onnx& b, const aten::cross& op) {  // by default the first dim of size 3
    const Dims shape = ResultShape(b);
    int64_t dim = 0;
    while (dim + 1 < std::ssize(shape) && !(shape[static_cast<size_t>(dim)] == 3)) ++dim;
    return Cross(b, op.self, op.other, op.dim.value_or(dim));
  });

  r.On([](Onnx& b, const aten::chain_matmul& op) { return Chain(b, op.matrices); });
  r.On([](Onnx& b, const aten::linalg_multi_dot& op) { return Chain(b, op.tensors); });
  r.On([](Onnx& b, const aten::matrix_power& op) { return MatrixPower(b, op.self, op.n); });
  r.On([](Onnx& b, const aten::linalg_matrix_power& op) { return MatrixPower(b, op.self, op.n); });
}

}  // namespace pt2onnx
