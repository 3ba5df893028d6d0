// Interpolation: upsample_* and what torch.nn.functional.interpolate calls. With `in` and `out` elements along a dim, or a factor that the
// program gave, the place of element i of the result is
//
//   step = 1 / factor, or in / out            nearest: floor(i * step)    nearest-exact: floor((i + 0.5) * step)
//   linear: max((i + 0.5) * step - 0.5, 0)    cubic: (i + 0.5) * step - 0.5    aligned corners: i * (in - 1) / (out - 1)
//
// Resize is that, except where ONNX Runtime rounds to another neighbour or has no kernel: then neighbours are gathered, and what is blended is
// multiplied by a matrix of weights for each dim.
//
//   %y = aten::upsample_nearest2d.vec(%x, None, [2.0, 2.0])    ->    %y = Resize(%x, scales=[2, 2], axes=[2, 3], asymmetric, floor)
#include "lower/network.h"
#include "onnx/ort_kernels.h"

namespace pt2onnx {
namespace {

enum class Filter { Nearest, NearestExact, Linear, Cubic };

struct Kind {
  Filter filter;
  bool align_corners = false, antialias = false;

  bool nearest() const { return filter == Filter::Nearest || filter == Filter::NearestExact; }
};

struct Line {  // one spatial dim
  SymExpr in, out;
  std::optional<double> factor;

  bool Known() const { return in.IsConst() && out.IsConst(); }
  bool Same() const { return in == out && (!factor || *factor == 1); }
};
using Lines = std::vector<Line>;

template <class T>
T StepOf(const Line& line, bool align_corners) {
  const T in = static_cast<T>(line.in.Const()), out = static_cast<T>(line.out.Const());
  if (align_corners) return out > 1 ? (in - 1) / (out - 1) : T{0};
  return line.factor ? static_cast<T>(1 / *line.factor) : in / out;
}

// ---- Neighbours -----------------------------------------------------------------------------------------------------------------------

template <class T>
std::vector<int64_t> Neighbours(const Line& line, Filter filter) {
  const T step = StepOf<T>(line, false), half = filter == Filter::Nearest ? T{0} : T{0.5};
  std::vector<int64_t> places;
  for (int64_t i = 0; i < line.out.Const(); ++i)
    places.push_back(std::min(static_cast<int64_t>(std::floor((static_cast<T>(i) + half) * step)), line.in.Const() - 1));
  return places;
}

// What ONNX Runtime's Resize takes: it divides by the factor, in float32.
std::vector<int64_t> NeighboursOfResize(const Line& line, Filter filter) {
  const float factor = line.factor ? static_cast<float>(*line.factor) : static_cast<float>(line.out.Const()) / static_cast<float>(line.in.Const());
  std::vector<int64_t> places;
  for (int64_t i = 0; i < line.out.Const(); ++i) {
    const float x = static_cast<float>(i);
    const float at = filter == Filter::Nearest ? std::floor(x / factor) : std::round((x + 0.5f) / factor - 0.5f);
    places.push_back(std::clamp<int64_t>(static_cast<int64_t>(at), 0, line.in.Const() - 1));
  }
  return places;
}

Val GatherNeighbours(Onnx& b, Val x, const Lines& lines, Filter filter) {
  for (size_t d = 0; d < lines.size(); ++d) {
    const Line& line = lines[d];
    if (line.Same()) continue;
    OptVal places;
    if (line.Known()) {
      places = b.Ints(x.dtype() == DType::F64 ? Neighbours<double>(line, filter) : Neighbours<float>(line, filter));
    } else {
      const Val step = line.factor ? b.Constant(1 / *line.factor, DType::F32) : b.Number(line.in, DType::F32) / b.Number(line.out, DType::F32);
      Val i = b.Cast(Iota(b, line.out), DType::F32);
      if (filter == Filter::NearestExact) i = i + 0.5;
      places = b.Min(AsIndex(b, b.Floor(i * step)), b.Int(line.in - 1));
    }
    x = b.Gather(x, *places, static_cast<int64_t>(d) + 2);
  }
  return x;
}

// ---- Weights --------------------------------------------------------------------------------------------------------------------------

// Keys' cubic
double Cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

// weights[i * in + j]: what element j of the input counts in element i of the result.
std::vector<double> Weights(const Line& line, const Kind& kind) {
  const int64_t in = line.in.Const(), out = line.out.Const();
  const double step = StepOf<double>(line, kind.align_corners);
  const bool cubic = kind.filter == Filter::Cubic;
  std::vector<double> weights(static_cast<size_t>(in * out), 0.0);
  for (int64_t i = 0; i < out; ++i) {
    const auto at = [&](int64_t j) -> double& { return weights[static_cast<size_t>(i * in + std::clamp<int64_t>(j, 0, in - 1))]; };
    if (kind.antialias) {
      // The filter is stretched over `step` elements; what it covers inside the input adds up to 1.
      const double stretch = std::max(step, 1.0), support = (cubic ? 2 : 1) * stretch, center = step * (static_cast<double>(i) + 0.5);
      const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
      const int64_t last = std::min(static_cast<int64_t>(center + support + 0.5), in);
      double total = 0;
      for (int64_t j = first; j < last; ++j) {
        const double x = (static_cast<double>(j) - center + 0.5) / stretch;
        total += at(j) = cubic ? Cubic(x, -0.5) : std::max(1 - std::abs(x), 0.0);
      }
      for (int64_t j = first; j < last; ++j) at(j) /= total;
      continue;
    }
    double place = kind.align_corners ? step * static_cast<double>(i) : step * (static_cast<double>(i) + 0.5) - 0.5;
    if (!cubic) place = std::clamp(place, 0.0, static_cast<double>(in - 1));
    const int64_t floor = static_cast<int64_t>(std::floor(place));
    for (int64_t j = floor - 1; j <= floor + 2; ++j) {
      const double x = place - static_cast<double>(j);
      const double w = cubic ? Cubic(x, -0.75) : std::max(1 - std::abs(x), 0.0);
      if (w != 0) at(j) += w;
    }
  }
  return weights;
}

Val Blend(Onnx& b, Val x, const Lines& lines, const Kind& kind) {
  const int64_t last = x.rank() - 1;
  for (size_t d = 0; d < lines.size(); ++d) {
    if (lines[d].Same() && !kind.antialias) continue;
    const int64_t axis = static_cast<int64_t>(d) + 2;
    const Val weights = b.Tensor({lines[d].out.Const(), lines[d].in.Const()}, Weights(lines[d], kind), x.dtype());
    if (axis == last - 1) {
      x = b.MatMul(weights, x);
      continue;
    }
    IntVec swap = Axes(0, x.rank());
    std::swap(swap[static_cast<size_t>(axis)], swap[static_cast<size_t>(last)]);
    x = b.Transpose(b.MatMul(b.Transpose(x, swap), b.Transpose(weights, {1, 0})), swap);
  }
  return x;
}

// ---- Resize ---------------------------------------------------------------------------------------------------------------------------

Val Resize(Onnx& b, Val x, const Lines& lines, const Kind& kind) {
  OptVal scales, sizes;
  std::vector<double> factors;
  DimVec out;
  for (const Line& line : lines) {
    factors.push_back(line.factor.value_or(1));
    out.push_back(line.out);
  }
  const IntVec axes = Axes(2, x.rank());
  // Sizes say the same where the factor takes the input's size to a whole number.
  const bool whole = std::all_of(lines.begin(), lines.end(), [](const Line& line) {
    return !line.factor || (line.Known() && static_cast<double>(line.in.Const()) * *line.factor == static_cast<double>(line.out.Const()));
  });
  if (whole) sizes = b.Shape(out);
  else scales = b.Tensor({std::ssize(factors)}, factors, DType::F32);
  ResizeAttrs attrs{.axes = axes, .coordinate_transformation_mode = kind.align_corners ? "align_corners" : "half_pixel"};
  switch (kind.filter) {
    case Filter::Nearest:
      attrs.coordinate_transformation_mode = "asymmetric";
      attrs.nearest_mode = "floor";
      break;
    case Filter::NearestExact: attrs.nearest_mode = "round_prefer_ceil"; break;
    case Filter::Linear: attrs.mode = "linear"; break;
    case Filter::Cubic: attrs.mode = "cubic"; break;
  }
  if (kind.antialias) {
    attrs.antialias = 1;
    attrs.exclude_outside = 1;
    if (kind.filter == Filter::Cubic) attrs.cubic_coeff_a = -0.5;
  }
  return b.Resize(x, {}, scales, sizes, attrs);
}

// Resize gives what PyTorch does: the size, and the neighbours.
bool ResizeAgrees(const Line& line, const Kind& kind) {
  if (!line.Known()) return true;
  const int64_t in = line.in.Const(), out = line.out.Const();
  if (line.factor && static_cast<int64_t>(static_cast<float>(in) * static_cast<float>(*line.factor)) != out) return false;
  return !kind.nearest() || Neighbours<float>(line, kind.filter) == NeighboursOfResize(line, kind.filter);
}

Val Interpolate(Onnx& b, Val x, const Lines& lines, const Kind& kind) {
  const auto every = [&](auto f) { return std::all_of(lines.begin(), lines.end(), f); };
  if (every([](const Line& line) { return line.Same(); }) && !(kind.antialias && kind.align_corners)) return x;
  const bool agrees = every([&](const Line& line) { return ResizeAgrees(line, kind); });
  const bool known = every([](const Line& line) { return line.Known(); });
  const DType dtype = x.dtype();
  if (kind.nearest()) {
    const bool runs = RuntimeHas("Resize", b.opset(), dtype) || dtype == DType::BF16;
    return runs && agrees ? Resize(b, x, lines, kind) : GatherNeighbours(b, x, lines, kind.filter);
  }
  if (!IsFloat(dtype)) {  // uint8: rounded, and no number beyond its range
    const Val y = Interpolate(b, b.Cast(x, DType::F32), lines, kind);
    return b.Cast(b.Clip(b.Round(y), b.Constant(0, DType::F32), b.Constant(255, DType::F32)), dtype);
  }
  // Runtimes have another idea of where a stretched filter stands between aligned corners.
  const bool foreign = kind.antialias && kind.align_corners;
  if (known && (foreign || !agrees || dtype == DType::F64)) return Blend(b, b.Cast(x, Accumulator(dtype)), lines, kind);
  if (foreign) return b.Unsupported("antialiased interpolation with aligned corners has an ONNX form for static sizes only", "align_corners=False");
  // There is no kernel for float64: single precision will do for sizes that only the run knows.
  return Resize(b, dtype == DType::F64 ? b.Cast(x, DType::F32) : x, lines, kind);
}

using Factors = std::vector<std::optional<double>>;

Val Upsample(Onnx& b, Val x, const Factors& factors, const Kind& kind) {
  Lines lines;
  for (size_t d = 0; d < factors.size(); ++d) {
    const bool used = factors[d] && *factors[d] > 0;
    lines.push_back({x.dim(static_cast<int64_t>(d) + 2), ResultShape(b)[d + 2], used ? factors[d] : std::nullopt});
  }
  return Interpolate(b, x, lines, kind);
}

// The overloads that take sizes or factors, as torch.nn.functional.interpolate gives them.
template <class Op>
Val UpsampleVec(Onnx& b, const Op& op, const Kind& kind) {
  Factors factors(static_cast<size_t>(op.input.rank() - 2));
  if (op.scale_factors && !op.output_size)
    for (size_t d = 0; d < factors.size(); ++d) factors[d] = (*op.scale_factors)[d];
  return Upsample(b, op.input, factors, kind);
}

template <class Op>
Factors FactorsOf(const Op& op) {
  if constexpr (requires { op.scales_d; }) return {op.scales_d, op.scales_h, op.scales_w};
  else if constexpr (requires { op.scales_h; }) return {op.scales_h, op.scales_w};
  else return {op.scales};
}

template <Filter filter, class... Ops>
void Nearest(Rules<Onnx>& r) {
  (r.On([](Onnx& b, const Ops& op) { return Upsample(b, op.self, FactorsOf(op), {filter}); }), ...);
}
template <Filter filter, class... Ops>
void NearestVec(Rules<Onnx>& r) {
  (r.On([](Onnx& b, const Ops& op) { return UpsampleVec(b, op, {filter}); }), ...);
}
template <Filter filter, bool antialias, class... Ops>
void Blended(Rules<Onnx>& r) {
  (r.On([](Onnx& b, const Ops& op) { return Upsample(b, op.self, FactorsOf(op), {filter, op.align_corners, antialias}); }), ...);
}
template <Filter filter, bool antialias, class... Ops>
void BlendedVec(Rules<Onnx>& r) {
  (r.On([](Onnx& b, const Ops& op) { return UpsampleVec(b, op, {filter, op.align_corners, antialias}); }), ...);
}

}  // namespace

void ResizeRules(Rules<Onnx>& r) {
  Nearest<Filter::Nearest, aten::upsample_nearest1d, aten::upsample_nearest2d, aten::upsample_nearest3d>(r);
  NearestVec<Filter::Nearest, aten::upsample_nearest1d_vec, aten::upsample_nearest2d_vec, aten::upsample_nearest3d_vec>(r);
  Nearest<Filter::NearestExact, aten::_upsample_nearest_exact1d, aten::_upsample_nearest_exact2d, aten::_upsample_nearest_exact3d>(r);
  NearestVec<Filter::NearestExact, aten::_upsample_nearest_exact1d_vec, aten::_upsample_nearest_exact2d_vec, aten::_upsample_nearest_exact3d_vec>(r);
  Blended<Filter::Linear, false, aten::upsample_linear1d, aten::upsample_bilinear2d, aten::upsample_trilinear3d>(r);
  BlendedVec<Filter::Linear, false, aten::upsample_linear1d_vec, aten::upsample_bilinear2d_vec, aten::upsample_trilinear3d_vec>(r);
  Blended<Filter::Cubic, false, aten::upsample_bicubic2d>(r);
  BlendedVec<Filter::Cubic, false, aten::upsample_bicubic2d_vec>(r);
  Blended<Filter::Linear, true, aten::_upsample_bilinear2d_aa>(r);
  BlendedVec<Filter::Linear, true, aten::_upsample_bilinear2d_aa_vec>(r);
  Blended<Filter::Cubic, true, aten::_upsample_bicubic2d_aa>(r);
  BlendedVec<Filter::Cubic, true, aten::_upsample_bicubic2d_aa_vec>(r);
}

}  // namespace pt2onnx
