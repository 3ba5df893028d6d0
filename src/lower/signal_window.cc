// Windows of signal processing: their length is a number of the program, so they are constants. (window.h is about the windows of pooling.)
//
//   %w : f32[4] = aten::hann_window(4)    ->    %w = Constant([0, 0.5, 1, 0.5])
//
// Sample i of n stands at t = i / n of a period, or at t = i / (n - 1) where the window is symmetric instead of periodic. Of one sample: 1.
#include <cmath>
#include <numbers>

#include "lower/elementary.h"

namespace pt2onnx {
namespace {

using std::numbers::pi;

template <class F>
Val Sampled(Onnx& b, int64_t n, bool periodic, F f) {
  const DType dtype = Recorded(b).dtype;
  const int64_t most = dtype == DType::BF16 ? 256 : dtype == DType::F16 ? 2048 : n;  // PyTorch counts the samples in the window's dtype
  if (n > most)
    return b.Unsupported("a window of half floats has so many samples that PyTorch's own numbers are off", "make it in float32, then cast it");
  const double period = static_cast<double>(periodic ? n : n - 1);
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(n == 1 ? 1 : f(static_cast<double>(i) / period));
  return b.Tensor({n}, values, dtype);
}

// alpha - beta cos(2 pi t); Hann's has alpha = beta = 1/2.
Val Hamming(Onnx& b, int64_t n, bool periodic, double alpha = 0.54, double beta = 0.46) {
  return Sampled(b, n, periodic, [=](double t) { return alpha - beta * std::cos(2 * pi * t); });
}
Val Hann(Onnx& b, int64_t n, bool periodic) { return Hamming(b, n, periodic, 0.5, 0.5); }

// 0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t)
Val Blackman(Onnx& b, int64_t n, bool periodic) {
  return Sampled(b, n, periodic, [](double t) { return 0.42 - 0.5 * std::cos(2 * pi * t) + 0.08 * std::cos(4 * pi * t); });
}

// 1 - |2 t - 1|
Val Bartlett(Onnx& b, int64_t n, bool periodic) {
  return Sampled(b, n, periodic, [](double t) { return 1 - std::abs(2 * t - 1); });
}

// I0(x) = sum over k of ((x/2)^k / k!)^2
double BesselI0(double x) {
  double sum = 1, term = 1;
  for (int k = 1; term > 1e-17 * sum; ++k) {
    term *= x / (2 * k) * (x / (2 * k));
    sum += term;
  }
  return sum;
}
// I0(beta sqrt(1 - (2 t - 1)^2)) / I0(beta)
Val Kaiser(Onnx& b, int64_t n, bool periodic, double beta = 12) {
  return Sampled(b, n, periodic, [=](double t) { return BesselI0(beta * std::sqrt(std::max(0.0, 1 - (2 * t - 1) * (2 * t - 1)))) / BesselI0(beta); });
}

}  // namespace

void SignalWindowRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::hann_window& op) { return Hann(b, op.window_length, true); });
  r.On([](Onnx& b, const aten::hann_window_periodic& op) { return Hann(b, op.window_length, op.periodic); });
  r.On([](Onnx& b, const aten::hamming_window& op) { return Hamming(b, op.window_length, true); });
  r.On([](Onnx& b, const aten::hamming_window_periodic& op) { return Hamming(b, op.window_length, op.periodic); });
  r.On([](Onnx& b, const aten::hamming_window_periodic_alpha& op) { return Hamming(b, op.window_length, op.periodic, op.alpha); });
  r.On([](Onnx& b, const aten::hamming_window_periodic_alpha_beta& op) { return Hamming(b, op.window_length, op.periodic, op.alpha, op.beta); });
  r.On([](Onnx& b, const aten::blackman_window& op) { return Blackman(b, op.window_length, true); });
  r.On([](Onnx& b, const aten::blackman_window_periodic& op) { return Blackman(b, op.window_length, op.periodic); });
  r.On([](Onnx& b, const aten::bartlett_window& op) { return Bartlett(b, op.window_length, true); });
  r.On([](Onnx& b, const aten::bartlett_window_periodic& op) { return Bartlett(b, op.window_length, op.periodic); });
  r.On([](Onnx& b, const aten::kaiser_window& op) { return Kaiser(b, op.window_length, true); });
  r.On([](Onnx& b, const aten::kaiser_window_periodic& op) { return Kaiser(b, op.window_length, op.periodic); });
  r.On([](Onnx& b, const aten::kaiser_window_beta& op) { return Kaiser(b, op.window_length, op.periodic, op.beta); });
}

}  // namespace pt2onnx
