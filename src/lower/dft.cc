#include "lower/dft.h"

#include <cmath>
#include <numbers>

#include "lower/network.h"

namespace pt2onnx {
namespace {

constexpr int64_t kSmallMatrix = 1 << 18;  // of pairs to pairs: where ONNX Runtime's DFT of a power of two overtakes a product

bool IsPowerOfTwo(SymExpr n) { return n.IsConst() && n.Const() > 0 && (n.Const() & (n.Const() - 1)) == 0; }
double ExponentOf(int64_t normalization) { return normalization * -0.5; }

// cos and sin of 2 pi i / n for i < n; exactly 0 where they are.
struct Circle {
  explicit Circle(int64_t n) : n(n) {
    for (int64_t i = 0; i < n; ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
      cos.push_back(4 * i == n || 4 * i == 3 * n ? 0 : std::cos(angle));
      sin.push_back(2 * i == n ? 0 : std::sin(angle));
    }
  }
  size_t At(int64_t j, int64_t k) const { return static_cast<size_t>(j * k % n); }
  int64_t n;
  std::vector<double> cos, sin;
};

// The square matrix that takes n pairs to n pairs: (c + is)(x + iy) with s = -sin forward, sin inverse. Row-major [n, 2, n, 2].
std::vector<double> PairBasis(int64_t n, bool forward) {
  const Circle circle(n);
  std::vector<double> basis;
  for (int64_t j = 0; j < n; ++j)
    for (int part = 0; part < 2; ++part)
      for (int64_t k = 0; k < n; ++k) {
        const double c = circle.cos[circle.At(j, k)], s = circle.sin[circle.At(j, k)] * (forward ? -1 : 1);
        basis.push_back(part ? -s : c);
        basis.push_back(part ? c : s);
      }
  return basis;
}

// What is still to multiply with: sizes and the powers that they count with.
struct Scale {
  std::vector<std::pair<SymExpr, double>> sizes;
  void Add(SymExpr n, double exponent) {
    if (exponent != 0) sizes.emplace_back(n, exponent);
  }
};
Val Multiplied(Onnx& b, Val x, const Scale& scale) {
  double number = 1;
  for (auto [n, exponent] : scale.sizes)
    if (n.IsConst()) number *= std::pow(static_cast<double>(n.Const()), exponent);
  if (number != 1) x = x * number;
  for (auto [n, exponent] : scale.sizes) {
    if (n.IsConst()) continue;
    const Val size = b.Number(n, x.dtype()), root = exponent * 2 == std::trunc(exponent * 2) && std::fabs(exponent) == 0.5 ? b.Sqrt(size) : size;
    x = exponent < 0 ? x / root : x * root;
  }
  return x;
}

// x with axis moved behind the others (before the pair's dim), transformed, and back.
template <class F>
Val WithAxisLast(Onnx& b, Val x, int64_t axis, int64_t behind, bool pair_before, bool pair_after, F f) {
  const int64_t last = x.rank() - behind - 1;
  if (axis == last) return f(x);
  IntVec there;
  for (int64_t i = 0; i <= last; ++i)
    if (i != axis) there.push_back(i);
  there.push_back(axis);
  IntVec back = InversePerm(there);
  if (pair_before) there.push_back(x.rank() - 1);
  if (pair_after) back.push_back(std::ssize(back));
  return b.Transpose(f(b.Transpose(x, there)), back);
}

DimVec Front(Val x, int64_t drop) { return DimVec(x.shape().first(static_cast<size_t>(x.rank() - drop))); }

std::vector<double> Times(std::vector<double> basis, double by) {
  for (double& x : basis) x *= by;
  return basis;
}
double FactorOf(int64_t n, int64_t normalization) { return std::pow(static_cast<double>(n), ExponentOf(normalization)); }

// One axis of pairs by ONNX's DFT. ONNX Runtime's is exact for powers of two. For other sizes it convolves, with an error that grows with the size,
// and its inverse then knows pi in single precision only: so it runs forward in float64, the inverse as the forward transform of swapped parts.
Val DftOfPairs(Onnx& b, Val x, int64_t axis, int64_t normalization, bool forward, Scale& scale) {
  const SymExpr n = x.dim(axis);
  const auto run = [&](Val z, bool inverse) { return b.DFT(z, {}, b.IntScalar(axis), {.inverse = inverse}); };
  if (IsPowerOfTwo(n)) {
    scale.Add(n, ExponentOf(normalization) + (forward ? 0 : 1));
    return run(x, !forward);
  }
  scale.Add(n, ExponentOf(normalization));
  const auto swapped = [&](Val z) { return forward ? z : b.Gather(z, b.Ints({1, 0}), -1); };
  return b.Cast(swapped(run(swapped(b.Cast(x, DType::F64)), false)), x.dtype());
}

Val OneAxis(Onnx& b, Val x, int64_t axis, int64_t normalization, bool forward, Scale& scale) {
  const SymExpr n = x.dim(axis);
  const int64_t item = ItemSize(x.dtype());
  const int64_t most = IsPowerOfTwo(n) ? kSmallMatrix : kMatrixBytes;
  if (!n.IsConst() || n.Const() == 0 || 4 * n.Const() * n.Const() * item > most) return DftOfPairs(b, x, axis, normalization, forward, scale);
  const int64_t size = n.Const();
  const Val basis = b.Tensor({2 * size, 2 * size}, Times(PairBasis(size, forward), FactorOf(size, normalization)), x.dtype());
  return WithAxisLast(b, x, axis, 1, true, true, [&](Val z) {
    DimVec flat = Front(z, 2);
    flat.push_back(2 * size);
    return b.Reshape(b.MatMul(b.Reshape(z, flat), basis), DimVec(z.shape()));
  });
}

// Along one axis, half the spectrum or all of it.
Val OneAxisOfReal(Onnx& b, Val x, int64_t axis, int64_t normalization, bool onesided, Scale& scale) {
  const SymExpr n = x.dim(axis), bins = onesided ? FloorDiv(n, 2) + 1 : n;
  if (n.IsConst() && n.Const() > 0 && 2 * n.Const() * bins.Const() * ItemSize(x.dtype()) <= kMatrixBytes) {
    const std::vector<double> columns = Times(ForwardBasis(n.Const(), bins.Const()), FactorOf(n.Const(), normalization));
    const Val basis = b.Tensor({n.Const(), 2 * bins.Const()}, columns, x.dtype());
    return WithAxisLast(b, x, axis, 0, false, true, [&](Val z) {
      DimVec shape = Front(z, 1);
      shape.push_back(bins);
      shape.push_back(2);
      return b.Reshape(b.MatMul(z, basis), shape);
    });
  }
  scale.Add(n, ExponentOf(normalization));
  const DType work = IsPowerOfTwo(n) ? x.dtype() : DType::F64;
  const Val y = b.DFT(b.Unsqueeze(b.Cast(x, work), {-1}), {}, b.IntScalar(axis), {.onesided = onesided});
  return b.Cast(y, x.dtype());
}

// Along one axis, from half a spectrum to real numbers.
Val OneAxisToReal(Onnx& b, Val x, int64_t axis, int64_t normalization, SymExpr n, Scale& scale) {
  const SymExpr bins = FloorDiv(n, 2) + 1;
  if (n.IsConst() && n.Const() > 0 && 2 * n.Const() * bins.Const() * ItemSize(x.dtype()) <= kMatrixBytes) {
    const int64_t size = n.Const();
    const Val basis = b.Tensor({2 * bins.Const(), size}, Times(InverseBasis(size), FactorOf(size, normalization)), x.dtype());
    return WithAxisLast(b, x, axis, 1, true, false, [&](Val z) {
      DimVec flat = Front(z, 2);
      flat.push_back(2 * bins.Const());
      return b.MatMul(b.Reshape(z, flat), basis);
    });
  }
  // The other half is the conjugate, backwards, without the ends.
  const Val sign = b.Tensor({2}, {1, -1}, x.dtype());
  const Val other = b.Slice(x, axis, n - bins, 0, -1) * sign;
  DimVec whole(x.shape());
  whole[static_cast<size_t>(axis)] = n;
  return b.Select(DftOfPairs(b, b.Reshape(b.Concat({x, other}, axis), whole), axis, normalization, false, scale), -1, 0);
}

DType WorkDType(DType d) { return d == DType::F64 ? d : DType::F32; }

}  // namespace

std::vector<double> ForwardBasis(int64_t n, int64_t bins) {
  const Circle circle(n);
  std::vector<double> basis;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t k = 0; k < bins; ++k) {
      basis.push_back(circle.cos[circle.At(j, k)]);
      basis.push_back(-circle.sin[circle.At(j, k)]);
    }
  return basis;
}

// x[j] = sum over k of w (re cos - im sin), w = 1 for the ends that are their own mirror, else 2
std::vector<double> InverseBasis(int64_t n) {
  const Circle circle(n);
  std::vector<double> basis;
  for (int64_t k = 0; k <= n / 2; ++k)
    for (int part = 0; part < 2; ++part)
      for (int64_t j = 0; j < n; ++j) {
        const double weight = k == 0 || 2 * k == n ? 1 : 2;
        basis.push_back(part ? (weight == 1 ? 0 : -weight * circle.sin[circle.At(j, k)]) : weight * circle.cos[circle.At(j, k)]);
      }
  return basis;
}

Val FftComplex(Onnx& b, Val pairs, const IntVec& axes, int64_t normalization, bool forward) {
  Scale scale;
  Val x = b.Cast(pairs, WorkDType(pairs.dtype()));
  for (int64_t axis : axes) x = OneAxis(b, x, axis, normalization, forward, scale);
  return Multiplied(b, x, scale);
}

Val FftOfReal(Onnx& b, Val x, const IntVec& axes, int64_t normalization, bool onesided) {
  Scale scale;
  Val y = OneAxisOfReal(b, b.Cast(x, WorkDType(x.dtype())), axes.back(), normalization, onesided, scale);
  for (size_t i = 0; i + 1 < axes.size(); ++i) y = OneAxis(b, y, axes[i], normalization, true, scale);
  return Multiplied(b, y, scale);
}

Val FftToReal(Onnx& b, Val pairs, const IntVec& axes, int64_t normalization, SymExpr size) {
  Scale scale;
  Val x = b.Cast(pairs, WorkDType(pairs.dtype()));
  for (size_t i = 0; i + 1 < axes.size(); ++i) x = OneAxis(b, x, axes[i], normalization, false, scale);
  return Multiplied(b, OneAxisToReal(b, x, axes.back(), normalization, size, scale), scale);
}

}  // namespace pt2onnx
