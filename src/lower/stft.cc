// Short-time Fourier transforms. A frame's transform is a product with its cosines and sines, so all frames together are one convolution with
// `hop` as stride, whose kernel is those times the window; back, one transposed convolution adds the frames where they overlap.
//
//   stft   [B, L]        --Conv [2 bins, 1, n]-->           [B, 2 bins, T]  -->  [B, bins, T, 2]
//   istft  [B, bins, T, 2]  -->  [B, 2 bins, T]  --ConvTranspose [2 bins, 1, n]-->  [B, L], divided by the sum of squared windows
//
// Where the kernel would be large (kMatrixBytes), or ONNX Runtime has no convolution, frames are gathered, transformed and scattered instead.
#include <cmath>

#include "lower/dft.h"
#include "lower/network.h"

namespace pt2onnx {
namespace {

struct Frames {
  int64_t n, hop, length;  // of the transform; between two; of the window
  int64_t left() const { return (n - length) / 2; }
};
Frames FramesOf(int64_t n, const std::optional<int64_t>& hop, const std::optional<int64_t>& length) {
  return {n, hop.value_or(n / 4), length.value_or(n)};
}

// As long as a frame, in the middle of zeros; none: ones everywhere.
OptVal Window(Onnx& b, const OptVal& window, const Frames& f, DType dtype) {
  if (!window && f.length == f.n) return std::nullopt;
  const Val ones = window ? b.Cast(*window, dtype) : b.Ones({f.length}, dtype);
  if (f.length == f.n) return ones;
  return b.Pad(ones, b.Ints({f.left(), f.n - f.length - f.left()}), {}, b.Ints({0}));
}

bool FitsConvolution(DType dtype, int64_t rows, int64_t n) { return dtype == DType::F32 && rows * n * ItemSize(dtype) <= kMatrixBytes; }

Val Stft(Onnx& b, const aten::stft& op) {
  const Frames f = FramesOf(op.n_fft, op.hop_length, op.win_length);
  if (op.align_to_window.value_or(false) && f.length != f.n)
    return b.Unsupported("stft with align_to_window pads the signal by its window", "pad the signal and leave align_to_window out");
  const bool onesided = op.onesided.value_or(true), batched = op.self.rank() == 2;
  const int64_t bins = onesided ? f.n / 2 + 1 : f.n;
  const DType dtype = op.self.dtype() == DType::F64 ? DType::F64 : DType::F32;
  const Val signal = b.Cast(batched ? op.self : b.Unsqueeze(op.self, {0}), dtype);
  const OptVal window = Window(b, op.window, f, dtype);
  const double scale = op.normalized ? 1 / std::sqrt(static_cast<double>(f.n)) : 1;
  const Dims shape = ResultShape(b);  // [B, bins, T] or [bins, T], and the pair's dim
  const SymExpr batch = signal.dim(0), frames = shape[shape.size() - 2];
  const auto unbatched = [&](Val y) { return batched ? y : b.Squeeze(y, {0}); };
  if (FitsConvolution(dtype, 2 * bins, f.n)) {
    const std::vector<double> basis = ForwardBasis(f.n, bins);
    std::vector<double> rows;
    for (int64_t row = 0; row < 2 * bins; ++row)
      for (int64_t j = 0; j < f.n; ++j) rows.push_back(scale * basis[static_cast<size_t>(j * 2 * bins + row)]);
    const Val basis_rows = b.Tensor({2 * bins, 1, f.n}, rows, dtype), kernel = window ? basis_rows * *window : basis_rows;
    const int64_t stride[] = {f.hop};
    const Val y = b.Conv(b.Unsqueeze(signal, {1}), kernel, {}, {.strides = pt2onnx::Ints(stride)});
    return unbatched(b.Transpose(b.Reshape(y, {batch, bins, 2, frames}), {0, 1, 3, 2}));
  }
  const Val places = b.Unsqueeze(Progression(b, 0, f.hop, frames), {1}) + b.Unsqueeze(Iota(b, f.n), {0});
  Val pieces = b.Gather(signal, places, 1);  // [B, T, n]
  if (window) pieces = pieces * *window;
  return unbatched(b.Transpose(FftOfReal(b, pieces, {2}, op.normalized ? 1 : 0, onesided), {0, 2, 1, 3}));
}

// Frames [..., T, n] added into [..., L], each `hop` after the one before.
Val Overlapped(Onnx& b, Val frames, const Frames& f, SymExpr length) {
  DimVec flat(frames.shape().first(static_cast<size_t>(frames.rank() - 2)));
  DimVec out = flat;
  const SymExpr count = frames.dim(-2);
  flat.push_back(count * f.n);
  out.push_back(length);
  const Val places = b.Unsqueeze(Progression(b, 0, f.hop, count), {1}) + b.Unsqueeze(Iota(b, f.n), {0});
  const Val at = b.Expand(b.Reshape(places, {count * f.n}), flat);
  return b.ScatterElements(b.Zeros(out, frames.dtype()), at, b.Reshape(frames, flat), {.axis = std::ssize(out) - 1, .reduction = "add"});
}

// The signal [B, 2, L] from its spectra, with a complex window: frames times w, over the sum of w^2.
Val ThroughComplexWindow(Onnx& b, Val frames, Val window, const Frames& f, SymExpr start, SymExpr stop, SymExpr length) {
  const auto part = [&](Val x, int64_t axis, int64_t at) { return b.Select(x, axis, at); };
  const Val re = part(frames, 1, 0), im = part(frames, 1, 1), u = part(window, 1, 0), v = part(window, 1, 1);
  const auto added = [&](Val x) { return b.Slice(Overlapped(b, x, f, length), 1, start, stop); };
  const auto everywhere = [&](Val x) { return added(b.Expand(x, {1, frames.dim(2), f.n})); };
  const Val x = added(re * u - im * v), y = added(re * v + im * u), p = everywhere(u * u - v * v), q = everywhere(u * v * 2.0);
  const Val square = p * p + q * q;
  return b.Concat({b.Unsqueeze((x * p + y * q) / square, {1}), b.Unsqueeze((y * p - x * q) / square, {1})}, 1);
}

Val Istft(Onnx& b, const aten::istft& op) {
  const Frames f = FramesOf(op.n_fft, op.hop_length, op.win_length);
  const int64_t half = f.n / 2 + 1;
  const bool batched = op.self.rank() == 4;
  const DType dtype = op.self.dtype() == DType::F64 ? DType::F64 : DType::F32;
  Val pairs = b.Cast(batched ? op.self : b.Unsqueeze(op.self, {0}), dtype);  // [B, bins, T, 2]
  if (!op.return_complex && !(pairs.dim(1) == half)) pairs = b.Slice(pairs, 1, 0, half);
  const SymExpr batch = pairs.dim(0), count = pairs.dim(2), length = (count - 1) * f.hop + f.n;
  const SymExpr start = op.center ? f.n / 2 : 0, end = op.length ? start + *op.length : op.center ? length - f.n / 2 : length;
  const SymExpr stop = op.length ? Min(end, length) : end;
  const auto cut = [&](Val x, int64_t axis) { return start == 0 && stop == length ? x : b.Slice(x, axis, start, stop); };
  const OptVal window = Window(b, op.window, f, dtype);
  const int64_t normalization = op.normalized ? 1 : 2;
  const int64_t stride[] = {f.hop};
  const auto windowed = [&](Val x) { return window ? x * *window : x; };
  const auto square = [&] { return window ? *window * *window : b.Ones({f.n}, dtype); };

  Val y = pairs;  // [B, L], or [B, 2, L] of complex numbers
  if (window && window->rank() == 2) {
    const Val frames = b.Transpose(FftComplex(b, b.Transpose(pairs, {0, 2, 1, 3}), {2}, normalization, false), {0, 3, 1, 2});
    y = ThroughComplexWindow(b, frames, *window, f, start, stop, length);
  } else if (!op.return_complex && FitsConvolution(dtype, 2 * half, f.n)) {
    const double scale = op.normalized ? 1 / std::sqrt(static_cast<double>(f.n)) : 1 / static_cast<double>(f.n);
    std::vector<double> rows = InverseBasis(f.n);
    for (double& x : rows) x *= scale;
    const Val flat = b.Reshape(b.Transpose(pairs, {0, 1, 3, 2}), {batch, 2 * half, count});
    const Val kernel = windowed(b.Tensor({2 * half, 1, f.n}, rows, dtype));
    const Val sum = b.ConvTranspose(flat, kernel, {}, {.strides = pt2onnx::Ints(stride)});
    const Val squares = b.ConvTranspose(b.Ones({1, 1, count}, dtype), b.Reshape(square(), {1, 1, f.n}), {}, {.strides = pt2onnx::Ints(stride)});
    y = cut(b.Reshape(sum, {batch, length}), 1) / cut(b.Reshape(squares, {1, length}), 1);
  } else {
    const Val spectra = b.Transpose(pairs, {0, 2, 1, 3});  // [B, T, bins, 2]
    const Val frames = op.return_complex ? b.Transpose(FftComplex(b, spectra, {2}, normalization, false), {0, 3, 1, 2})
                                         : FftToReal(b, spectra, {2}, normalization, f.n);
    const Val sum = Overlapped(b, windowed(frames), f, length), squares = Overlapped(b, b.Expand(square(), {1, count, f.n}), f, length);
    y = cut(sum, sum.rank() - 1) / cut(squares, 1);
  }
  if (op.length && !(stop == end)) {
    DimVec pads(std::vector<SymExpr>(static_cast<size_t>(2 * y.rank()), 0));
    pads.back() = end - stop;
    y = b.Pad(y, b.Shape(pads));
  }
  if (op.return_complex) y = b.Transpose(y, {0, 2, 1});
  return batched ? y : b.Squeeze(y, {0});
}

}  // namespace

void StftRules(Rules<Onnx>& r) {
  r.On<Stft>();
  r.On<Istft>();
}

}  // namespace pt2onnx
