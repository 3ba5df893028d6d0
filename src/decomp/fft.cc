// torch.fft's functions in terms of the three transforms of ATen: real to complex, complex to complex, complex to real. Sizes are padded with zeros
// or cut first; a real input of a complex transform stays real.
//
//   %y = aten::fft_ifft(%x : c64[8], 10)    ->    %p = aten::constant_pad_nd(%x, [0, 2])   %y = aten::_fft_c2c(%p, [0], 2, false)
#include <numeric>

#include "decomp/rules.h"
#include "ir/sym_facts.h"
#include "passes/views.h"

namespace pt2onnx {
namespace {

using Norm = std::optional<std::string_view>;

// Of ATen's transforms: 0 none, 1 divided by sqrt(n), 2 by n.
int64_t Normalization(const Norm& norm, bool forward) {
  if (norm && *norm == "ortho") return 1;
  return forward == (norm && *norm == "forward") ? 2 : 0;
}

Val AsFloat(Aten& b, Val x) { return IsFloat(x.dtype()) || IsComplex(x.dtype()) ? x : b.Cast(x, DType::F32); }
Val AsComplex(Aten& b, Val x) { return b.Cast(AsFloat(b, x), ComplexOf(AsFloat(b, x).dtype())); }
Val Conj(Aten& b, Val x) { return IsComplex(x.dtype()) ? b(aten::conj_physical{.self = x}) : x; }

// The first n along dim, with zeros behind where there are fewer.
Val Resized(Aten& b, Val x, int64_t dim, SymExpr n) {
  const SymExpr size = x.dim(dim);
  if (n == size) return x;
  const bool numbers = n.IsConst() && size.IsConst();
  if (!numbers || n.Const() > size.Const()) {
    std::vector<SymExpr> pad(static_cast<size_t>(x.rank() - dim) * 2, 0);
    pad.back() = Max(0, n - size);
    x = b(aten::constant_pad_nd{.self = x, .pad = b.Copy(pad), .value = 0});
  }
  if (!numbers || n.Const() < size.Const()) x = b(aten::slice_Tensor{.self = x, .dim = dim, .start = SymExpr(0), .end = n});
  return x;
}

// The dims to transform and their sizes, in order.
struct Axes {
  std::vector<int64_t> dims;
  std::vector<SymExpr> sizes;
};
Axes OneAxis(Val x, int64_t dim, const std::optional<SymExpr>& n) {
  dim = Normalize(dim, x.rank());
  return {{dim}, {n.value_or(x.dim(dim))}};
}
// dim: those; none: the last ones that s has sizes for, or all. A size of -1 is that of x.
Axes ManyAxes(Val x, const std::optional<Dims>& s, const std::optional<Ints>& dim) {
  Axes axes;
  if (dim) {
    for (int64_t d : *dim) axes.dims.push_back(Normalize(d, x.rank()));
  } else {
    axes.dims.resize(s ? s->size() : static_cast<size_t>(x.rank()));
    std::iota(axes.dims.begin(), axes.dims.end(), x.rank() - std::ssize(axes.dims));
  }
  for (size_t i = 0; i < axes.dims.size(); ++i) {
    const bool own = !s || i >= s->size() || ((*s)[i].IsConst() && (*s)[i].Const() == -1);
    axes.sizes.push_back(own ? x.dim(axes.dims[i]) : (*s)[i]);
  }
  return axes;
}
Val Resized(Aten& b, Val x, const Axes& axes) {
  for (size_t i = 0; i < axes.dims.size(); ++i) x = Resized(b, x, axes.dims[i], axes.sizes[i]);
  return x;
}

// Inverse of a real x: the conjugate of the forward transform.
Val Transform(Aten& b, Val x, const Axes& axes, bool forward, const Norm& norm) {
  x = AsFloat(b, x);
  if (axes.dims.empty()) return AsComplex(b, x);
  x = Resized(b, x, axes);
  const int64_t normalization = Normalization(norm, forward);
  if (IsComplex(x.dtype())) {
    const std::vector<SymExpr> dims(axes.dims.begin(), axes.dims.end());
    return b(aten::_fft_c2c{.self = x, .dim = b.Copy(dims), .normalization = normalization, .forward = forward});
  }
  const Val y = b(aten::_fft_r2c{.self = x, .dim = b.Copy(axes.dims), .normalization = normalization, .onesided = false});
  return forward ? y : Conj(b, y);
}

// Of a real x, half the spectrum along the last axis; inverse: conjugated (ihfft).
Val HalfSpectrum(Aten& b, Val x, const Axes& axes, bool forward, const Norm& norm) {
  x = Resized(b, AsFloat(b, x), axes);
  const Val y = b(aten::_fft_r2c{.self = x, .dim = b.Copy(axes.dims), .normalization = Normalization(norm, forward), .onesided = true});
  return forward ? y : Conj(b, y);
}

// From half a spectrum to real numbers, `last` of them along the last axis (2 (m - 1) of m by default); forward: of its conjugate (hfft).
Val FromHalfSpectrum(Aten& b, Val x, Axes axes, const std::optional<SymExpr>& last, bool forward, const Norm& norm) {
  x = AsComplex(b, x);
  const SymExpr n = last ? *last : 2 * (x.dim(axes.dims.back()) - 1);
  axes.sizes.back() = FloorDiv(n, 2) + 1;
  x = Resized(b, x, axes);
  if (forward) x = Conj(b, x);
  return b(aten::_fft_c2r{.self = x, .dim = b.Copy(axes.dims), .normalization = Normalization(norm, forward), .last_dim_size = n});
}
std::optional<SymExpr> LastSize(const std::optional<Dims>& s) {
  if (!s || s->empty() || (s->back().IsConst() && s->back().Const() == -1)) return std::nullopt;
  return s->back();
}

template <class Op, bool forward>
void OneDim(Rules<Aten>& r) {
  r.On([](Aten& b, const Op& op) { return Transform(b, op.self, OneAxis(op.self, op.dim, op.n), forward, op.norm); });
}
template <class Op, bool forward>
void ManyDims(Rules<Aten>& r) {
  r.On([](Aten& b, const Op& op) { return Transform(b, op.self, ManyAxes(op.self, op.s, op.dim), forward, op.norm); });
}
template <class Op, bool forward>
void HalfOneDim(Rules<Aten>& r) {
  r.On([](Aten& b, const Op& op) { return HalfSpectrum(b, op.self, OneAxis(op.self, op.dim, op.n), forward, op.norm); });
}
template <class Op, bool forward>
void HalfManyDims(Rules<Aten>& r) {
  r.On([](Aten& b, const Op& op) { return HalfSpectrum(b, op.self, ManyAxes(op.self, op.s, op.dim), forward, op.norm); });
}
template <class Op, bool forward>
void RealOneDim(Rules<Aten>& r) {
  r.On([](Aten& b, const Op& op) { return FromHalfSpectrum(b, op.self, OneAxis(op.self, op.dim, std::nullopt), op.n, forward, op.norm); });
}
template <class Op, bool forward>
void RealManyDims(Rules<Aten>& r) {
  r.On([](Aten& b, const Op& op) { return FromHalfSpectrum(b, op.self, ManyAxes(op.self, op.s, op.dim), LastSize(op.s), forward, op.norm); });
}

// The middle first, or back: rolled by half the size.
Val Shifted(Aten& b, Val x, const std::optional<Ints>& dim, bool inverse) {
  std::vector<int64_t> dims;
  if (dim) dims.assign(dim->begin(), dim->end());
  else
    for (int64_t i = 0; i < x.rank(); ++i) dims.push_back(i);
  if (dims.empty()) return x;
  std::vector<SymExpr> shifts;
  for (int64_t d : dims) shifts.push_back(FloorDiv(x.dim(d) + (inverse ? 1 : 0), 2));
  return b(aten::roll{.self = x, .shifts = b.Copy(shifts), .dims = b.Copy(dims)});
}

// 0, 1, ..., then from -(n / 2) on, over n d
Val Frequencies(Aten& b, int64_t n, double d, bool half) {
  const DType dtype = b.call().types[0].dtype;
  const auto range = [&](int64_t from, int64_t to) { return b(aten::arange_start{.start = from, .end = to, .dtype = dtype}); };
  const Val k = half ? range(0, n / 2 + 1) : n == 1 ? range(0, 1) : b(aten::cat{.tensors = {range(0, (n + 1) / 2), range(-(n / 2), 0)}, .dim = 0});
  return b(aten::mul_Scalar{.self = k, .other = 1.0 / (static_cast<double>(n) * d)});
}

}  // namespace

void FftDecompositions(Rules<Aten>& r) {
  OneDim<aten::fft_fft, true>(r);
  OneDim<aten::fft_ifft, false>(r);
  ManyDims<aten::fft_fft2, true>(r);
  ManyDims<aten::fft_ifft2, false>(r);
  ManyDims<aten::fft_fftn, true>(r);
  ManyDims<aten::fft_ifftn, false>(r);
  HalfOneDim<aten::fft_rfft, true>(r);
  HalfOneDim<aten::fft_ihfft, false>(r);
  HalfManyDims<aten::fft_rfft2, true>(r);
  HalfManyDims<aten::fft_ihfft2, false>(r);
  HalfManyDims<aten::fft_rfftn, true>(r);
  HalfManyDims<aten::fft_ihfftn, false>(r);
  RealOneDim<aten::fft_irfft, false>(r);
  RealOneDim<aten::fft_hfft, true>(r);
  RealManyDims<aten::fft_irfft2, false>(r);
  RealManyDims<aten::fft_hfft2, true>(r);
  RealManyDims<aten::fft_irfftn, false>(r);
  RealManyDims<aten::fft_hfftn, true>(r);

  r.On([](Aten& b, const aten::fft_fftshift& op) { return Shifted(b, op.self, op.dim, false); });
  r.On([](Aten& b, const aten::fft_ifftshift& op) { return Shifted(b, op.self, op.dim, true); });
  r.On([](Aten& b, const aten::fft_fftfreq& op) { return Frequencies(b, op.n, op.d, false); });
  r.On([](Aten& b, const aten::fft_rfftfreq& op) { return Frequencies(b, op.n, op.d, true); });
}

}  // namespace pt2onnx
