// Fourier transforms go down on pairs: their lowerings (lower/fft, lower/stft) read and give [..., 2].
#include "complex/rules.h"

namespace pt2onnx {
namespace {

// Of a complex signal: linear in it and in the window.
Answer ShortTime(Pairs& b, const aten::stft& op) {
  if (!IsComplex(op.self.dtype()) && !(op.window && IsComplex(op.window->dtype()))) return b.Below();
  const Type& type = b.call().types[0];
  const bool pair = !IsComplex(type.dtype);  // return_complex=False
  const Dims shape = pair ? type.shape.first(type.shape.size() - 1) : type.shape;
  const auto transform = [&](Val signal, const OptVal& window) {
    std::vector<Arg> args = b.Args();
    args[0] = signal.value;
    args[static_cast<size_t>(b.call().op->ArgIndex("window"))] = window ? Arg(window->value) : Arg{};
    args[static_cast<size_t>(b.call().op->ArgIndex("onesided"))] = false;
    args[static_cast<size_t>(b.call().op->ArgIndex("return_complex"))] = true;
    return b.EmitTyped(*b.call().op, args, {.kind = Kind::Tensor, .dtype = b.complex(), .shape = shape});
  };
  const Parts signal = b.Of(op.self);
  const Parts window = op.window ? b.Of(*op.window) : Parts{};
  const auto of_window = [&](Val part) {
    if (!op.window) return transform(part, std::nullopt);
    OptVal sum = window.re ? OptVal(transform(part, window.re)) : std::nullopt;
    if (window.im) {
      const Val turned = b(aten::mul_Scalar{.self = transform(part, window.im), .other = std::complex<double>(0, 1)});
      sum = sum ? *sum + turned : turned;
    }
    return *sum;
  };
  const Val re = of_window(b.Filled(signal, op.self.shape(), false));
  if (!signal.im) return pair ? b.Pair(re) : re;
  const Val y = re + b(aten::mul_Scalar{.self = of_window(*signal.im), .other = std::complex<double>(0, 1)});
  return pair ? b.Pair(y) : y;
}

}  // namespace

void ComplexFourier(Rules<Pairs>& r) {
  r.On([](Pairs& b, const aten::_fft_r2c&) { return b.Below(); });
  r.On([](Pairs& b, const aten::_fft_c2c&) { return b.Below(); });
  r.On([](Pairs& b, const aten::_fft_c2r&) { return b.Below(); });
  r.On<ShortTime>();
  r.On([](Pairs& b, const aten::istft&) { return b.Below(); });
}

}  // namespace pt2onnx
