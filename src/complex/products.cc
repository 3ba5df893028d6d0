// Products of complex matrices, linear layers and convolutions: each is linear in its operands, so four real ones make a complex one.
//
//   A B = (Ar Br - Ai Bi) + i (Ar Bi + Ai Br)
#include "complex/arithmetic.h"

namespace pt2onnx {
namespace {

template <class... Ops>
void Bilinear(Rules<Pairs>& r) {
  (r.On([](Pairs& b, const Ops&) {
     const std::span<const ArgSchema> args = b.call().op->args;
     return b.Multilinear({args[0].name, args[1].name});
   }),
   ...);
}

// beta self + alpha product; self does not count for beta = 0
Val Blend(Pairs& b, Val self, const Scalar& beta, Val product, const Scalar& alpha) {
  const auto scaled = [&](Val x, const Scalar& by) { return by.Is(1) ? x : b(aten::mul_Scalar{.self = x, .other = by}); };
  return beta.Is(0) ? scaled(product, alpha) : scaled(self, beta) + scaled(product, alpha);
}

// A layer: its bias, if any, is added to what input and weight give. channels: how many dims follow the bias's.
Val Layer(Pairs& b, const OptVal& bias, int64_t behind) {
  std::vector<Arg> args = b.Args();
  args[static_cast<size_t>(b.call().op->ArgIndex("bias"))] = Arg{};
  const Val y = b.Multilinear({"input", "weight"}, args);
  if (!bias) return y;
  std::vector<SymExpr> shape = {bias->dim(0)};
  shape.resize(static_cast<size_t>(behind) + 1, 1);
  return y + b.Reshape(*bias, b.Copy(shape));
}
template <class... Ops>
void Convolutions(Rules<Pairs>& r) {
  (r.On([](Pairs& b, const Ops& op) { return Layer(b, op.bias, op.weight.rank() - 2); }), ...);
}

Val Chain(Pairs& b, const Vals& list) {
  Val y = list[0];
  for (size_t i = 1; i < list.size(); ++i) y = b(aten::matmul{.self = y, .other = list[i]});
  return y;
}

Val MatrixPower(Pairs& b, Val x, int64_t n) {
  if (n < 0) return MatrixPower(b, MatrixInverse(b, x), -n);
  if (n == 0) {
    const Val eye = b.Typed(aten::eye{.n = x.dim(-1), .dtype = b.real()}, b.real(), x.shape().last(2));
    return b.Pack({eye, std::nullopt}, x.shape());
  }
  OptVal y;
  for (Val square = x;; square = b(aten::matmul{.self = square, .other = square})) {
    if (n & 1) y = y ? b(aten::matmul{.self = *y, .other = square}) : square;
    if (!(n >>= 1)) return *y;
  }
}

}  // namespace

void ComplexProducts(Rules<Pairs>& r) {
  Bilinear<aten::mm, aten::bmm, aten::matmul, aten::linalg_matmul, aten::mv, aten::dot, aten::outer, aten::ger, aten::inner, aten::kron,
           aten::tensordot, aten::cross, aten::linalg_cross>(r);
  r.On([](Pairs& b, const aten::einsum& op) {
    if (op.tensors.size() <= 3) return b.Multilinear({"tensors"});
    return b.Unsupported("einsum of more than three complex tensors", "contract them two by two");
  });
  // conj(self) . other
  r.On([](Pairs& b, const aten::vdot& op) { return b(aten::sum{.self = Conjugate(b, op.self) * op.other}); });
  r.On([](Pairs& b, const aten::linalg_vecdot& op) {
    const Val product = Conjugate(b, op.x) * op.y;
    return b(aten::sum_dim_IntList{.self = product, .dim = b.Copy(std::vector<int64_t>{op.dim})});
  });

  r.On([](Pairs& b, const aten::addmm& op) { return Blend(b, op.self, op.beta, b(aten::mm{.self = op.mat1, .mat2 = op.mat2}), op.alpha); });
  r.On([](Pairs& b, const aten::addmv& op) { return Blend(b, op.self, op.beta, b(aten::matmul{.self = op.mat, .other = op.vec}), op.alpha); });
  r.On([](Pairs& b, const aten::addr& op) {
    const Val column = b(aten::unsqueeze{.self = op.vec1, .dim = 1});
    return Blend(b, op.self, op.beta, column * op.vec2, op.alpha);
  });
  r.On([](Pairs& b, const aten::addbmm& op) {
    const Val product = b(aten::bmm{.self = op.batch1, .mat2 = op.batch2});
    return Blend(b, op.self, op.beta, b(aten::sum_dim_IntList{.self = product, .dim = b.Copy(std::vector<int64_t>{0})}), op.alpha);
  });

  r.On([](Pairs& b, const aten::linear& op) { return Layer(b, op.bias, 0); });
  r.On([](Pairs& b, const aten::bilinear& op) {
    std::vector<Arg> args = b.Args();
    args[3] = Arg{};
    const Val y = b.Multilinear({"input1", "input2", "weight"}, args);
    return op.bias ? y + *op.bias : y;
  });
  Convolutions<aten::conv1d, aten::conv2d, aten::conv3d, aten::conv1d_padding, aten::conv2d_padding, aten::conv3d_padding, aten::conv_transpose1d,
               aten::conv_transpose2d_input, aten::conv_transpose3d_input, aten::convolution>(r);

  r.On([](Pairs& b, const aten::chain_matmul& op) { return Chain(b, op.matrices); });
  r.On([](Pairs& b, const aten::linalg_multi_dot& op) { return Chain(b, op.tensors); });
  r.On([](Pairs& b, const aten::matrix_power& op) { return MatrixPower(b, op.self, op.n); });
  r.On([](Pairs& b, const aten::linalg_matrix_power& op) { return MatrixPower(b, op.self, op.n); });
}

}  // namespace pt2onnx
