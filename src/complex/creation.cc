// Complex tensors that are filled, drawn or converted. Dtype and shape are the recorded ones.
#include <cmath>

#include "complex/rules.h"

namespace pt2onnx {
namespace {

const Type& Recorded(Pairs& b) { return b.call().types[0]; }

// Of complex dtype, or of a real one where the op's operand only says the shape.
Val FillWith(Pairs& b, const Scalar& number) {
  const Type& type = Recorded(b);
  if (IsComplex(type.dtype)) return b.Pack(b.Of(number), type.shape);
  return b(aten::full{.size = type.shape, .fill_value = number, .dtype = type.dtype});
}
template <int number, class... Ops>
void Filled(Rules<Pairs>& r) {
  (r.On([](Pairs& b, const Ops&) { return FillWith(b, number); }), ...);
}

// Of a complex number its real part, of a real one it with a zero; to bool whether it is not zero.
Val Convert(Pairs& b, Val x, DType to) {
  if (x.dtype() == to) return x;
  if (!IsComplex(to)) {
    if (to == DType::Bool) return b(aten::ne_Scalar{.self = x, .other = 0.0});
    return b.Cast(b.Re(x), to);
  }
  if (b.HasPair(x)) return b.FromPair(b.Cast(b.Pair(x), RealOf(to)));
  Parts parts = b.Of(x);
  if (parts.re) parts.re = b.Cast(*parts.re, RealOf(to));
  if (parts.im) parts.im = b.Cast(*parts.im, RealOf(to));
  return b.Pack(parts, x.shape());
}
Val ToRecorded(Pairs& b, Val x) { return Convert(b, x, Recorded(b).dtype); }
template <class... Ops>
void Casts(Rules<Pairs>& r) {
  (r.On([](Pairs& b, const Ops& op) { return ToRecorded(b, op.self); }), ...);
}

// Normal: both parts of variance 1/2, so that |z| has variance 1. Uniform: both parts.
template <class Draw>
Val Drawn(Pairs& b, double scale) {
  const Type& type = Recorded(b);
  const auto part = [&] {
    const Val x = b(Draw{.size = type.shape, .dtype = RealOf(type.dtype)});
    return scale == 1 ? x : x * Scalar(scale);
  };
  const Val re = part(), im = part();
  return b.Pack({re, im});
}

// From the real numbers of both ends, and from the imaginary ones.
Val Linspace(Pairs& b, const Parts& start, const Parts& end, int64_t steps) {
  const auto part = [&](const OptVal& from, const OptVal& to) -> OptVal {
    if (!from && !to) return std::nullopt;
    const Val zero = b.Constant(Scalar(0.0), b.real());
    const aten::linspace_Tensor_Tensor op{.start = from ? *from : zero, .end = to ? *to : zero, .steps = steps, .dtype = b.real()};
    return b.Typed(op, b.real(), Recorded(b).shape);
  };
  return b.Pack({part(start.re, end.re), part(start.im, end.im)}, Recorded(b).shape);
}
Val ToPower(Pairs& b, double base, Val x) { return b(aten::pow_Scalar{.self = base, .exponent = x}); }

template <class... Ops>
void Logspaces(Rules<Pairs>& r) {
  (r.On([](Pairs& b, const Ops& op) { return ToPower(b, op.base, Linspace(b, b.Of(op.start), b.Of(op.end), op.steps)); }), ...);
}

// Normal numbers of that mean; std counts for both parts together.
Val Normal(Pairs& b, const aten::normal_functional& op) {
  return b(aten::add_Scalar{.self = Drawn<aten::randn>(b, op.std_ * std::sqrt(0.5)), .other = op.mean});
}
// Both parts between from and to.
Val Uniform(Pairs& b, const aten::uniform& op) {
  const std::complex<double> from(op.from, op.from);
  return b(aten::add_Scalar{.self = Drawn<aten::rand>(b, op.to - op.from), .other = from});
}

}  // namespace

void ComplexCreation(Rules<Pairs>& r) {
  Filled<0, aten::zeros, aten::zeros_like, aten::new_zeros, aten::zero, aten::empty_memory_format, aten::empty_like, aten::empty_permuted,
         aten::empty_strided, aten::new_empty, aten::new_empty_strided>(r);
  Filled<1, aten::ones, aten::ones_like, aten::new_ones>(r);
  r.On([](Pairs& b, const aten::full& op) { return FillWith(b, op.fill_value); });
  r.On([](Pairs& b, const aten::full_like& op) { return FillWith(b, op.fill_value); });
  r.On([](Pairs& b, const aten::new_full& op) { return FillWith(b, op.fill_value); });
  r.On([](Pairs& b, const aten::fill_Scalar& op) { return FillWith(b, op.value); });
  r.On([](Pairs& b, const aten::scalar_tensor& op) { return FillWith(b, op.s); });
  r.On([](Pairs& b, const aten::fill_Tensor& op) { return b.Expand(ToRecorded(b, op.value), Recorded(b).shape); });
  r.On([](Pairs& b, const aten::copy& op) { return b.Expand(ToRecorded(b, op.src), Recorded(b).shape); });
  r.On([](Pairs& b, const aten::eye& op) { return b.Pack({b.Typed(aten::eye{.n = op.n, .dtype = b.real()}, b.real(), Recorded(b).shape), {}}); });
  r.On([](Pairs& b, const aten::eye_m& op) {
    return b.Pack({b.Typed(aten::eye_m{.n = op.n, .m = op.m, .dtype = b.real()}, b.real(), Recorded(b).shape), {}});
  });
  r.On([](Pairs& b, const aten::linspace& op) { return Linspace(b, b.Of(op.start), b.Of(op.end), op.steps); });
  r.On([](Pairs& b, const aten::linspace_Scalar_Tensor& op) { return Linspace(b, b.Of(op.start), b.Of(op.end), op.steps); });
  r.On([](Pairs& b, const aten::linspace_Tensor_Scalar& op) { return Linspace(b, b.Of(op.start), b.Of(op.end), op.steps); });
  r.On([](Pairs& b, const aten::linspace_Tensor_Tensor& op) { return Linspace(b, b.Of(op.start), b.Of(op.end), op.steps); });
  Logspaces<aten::logspace, aten::logspace_Scalar_Tensor, aten::logspace_Tensor_Scalar, aten::logspace_Tensor_Tensor>(r);
  r.On<Normal>();
  r.On<Uniform>();
  r.On([](Pairs& b, const aten::randn&) { return Drawn<aten::randn>(b, std::sqrt(0.5)); });
  r.On([](Pairs& b, const aten::randn_like&) { return Drawn<aten::randn>(b, std::sqrt(0.5)); });
  r.On([](Pairs& b, const aten::rand&) { return Drawn<aten::rand>(b, 1); });
  r.On([](Pairs& b, const aten::rand_like&) { return Drawn<aten::rand>(b, 1); });

  r.On([](Pairs& b, const prims::convert_element_type& op) { return Convert(b, op.a, op.dtype); });
  Casts<aten::_to_copy, aten::to_device, aten::to_dtype, aten::to_dtype_layout, aten::to_other, aten::type_as, aten::chalf, aten::_cast_Byte,
        aten::_cast_Char, aten::_cast_Double, aten::_cast_Float, aten::_cast_Half, aten::_cast_Int, aten::_cast_Long, aten::_cast_Short>(r);
}

}  // namespace pt2onnx
