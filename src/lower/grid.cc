// Sampling at the points of a grid, the grids of affine maps, and windows laid out as columns and added up again.
//
//   %y = aten::grid_sampler(%x, %grid, 0, 0, false)    ->    %y = GridSample(%x, %grid, mode="linear", padding_mode="zeros")
#include "lower/window.h"
#include "onnx/ort_kernels.h"

namespace pt2onnx {
namespace {

template <class Op>
Val GridSample(Onnx& b, const Op& op) {
  const bool renamed = b.opset() >= 20;  // "bilinear" is "linear" from there on, and grids may have three dims
  if (!renamed && op.input.rank() == 5) return b.Unsupported("grid sampling of volumes has no ONNX form before opset 20", "--opset 20");
  const std::string_view modes[] = {renamed ? "linear" : "bilinear", "nearest", renamed ? "cubic" : "bicubic"};
  const std::string_view paddings[] = {"zeros", "border", "reflection"};
  const bool narrow = op.input.dtype() == DType::F64 && !RuntimeHas("GridSample", b.opset(), DType::F64);
  if (narrow) return b.Unsupported("ONNX Runtime samples grids of float64 from opset 20 on", "--opset 20");
  return b.GridSample(op.input, op.grid, {.align_corners = op.align_corners, .mode = modes[op.interpolation_mode], .padding_mode = paddings[op.padding_mode]});
}

// From -1 to 1 at the centres of n cells, or at their outer corners: (2 i + 1) / n - 1, or 2 i / (n - 1) - 1; 0 where there is one.
Val Coordinates(Onnx& b, SymExpr n, bool align_corners, DType dtype) {
  const Val i = b.Cast(Iota(b, n), dtype) * 2;
  if (align_corners) return n == 1 ? b.Zeros({1}, dtype) : i / b.Number(Max(n - 1, 1), dtype) - 1;
  return (i + 1) / b.Number(n, dtype) - 1;
}

// theta [N, d, d + 1] times [x, y, (z), 1] for each point; x runs along the last dim.
Val AffineGrid(Onnx& b, const aten::affine_grid_generator& op) {
  const Val theta = op.theta;
  const DimVec size(op.size);
  const int64_t dims = std::ssize(size) - 2;
  bool many = true;  // ONNX puts a sole point at -1 between aligned corners
  for (int64_t d = 0; d < dims; ++d) many = many && size[static_cast<size_t>(d) + 2].IsConst() && size[static_cast<size_t>(d) + 2].Const() > 1;
  if (b.opset() >= 20 && (many || !op.align_corners)) return b.AffineGrid(theta, b.Shape(size), {.align_corners = op.align_corners});
  DimVec grid(std::vector<SymExpr>(size.begin() + 2, size.end()));
  grid.push_back(1);
  Vals columns;
  for (int64_t d = dims - 1; d >= 0; --d) {
    const Val line = Coordinates(b, size[static_cast<size_t>(d) + 2], op.align_corners, theta.dtype());
    columns.push_back(b.Expand(LaidAlong(b, line, d, dims + 1), grid));
  }
  columns.push_back(b.Ones(grid, theta.dtype()));
  const SymExpr points = Product(std::span(grid));
  const Val base = b.Reshape(b.Concat(columns, dims), {points, dims + 1});
  return b.Reshape(b.MatMul(base, b.Transpose(theta, {0, 2, 1})), ResultShape(b));
}

std::vector<DimWindows> Windows(Onnx& b, const DimVec& sizes, const IntVec& kernel, const IntVec& dilation, const IntVec& padding, const IntVec& stride) {
  std::vector<DimWindows> windows;
  for (size_t d = 0; d < 2; ++d) {
    const SymExpr count = FloorDiv(sizes[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1, stride[d]) + 1;
    windows.push_back(RegularWindows(b, count, kernel[d], stride[d], dilation[d]));
  }
  return windows;
}

// [N, C, H, W] -> [N, C * kh * kw, windows]
Val ImageToColumns(Onnx& b, const aten::im2col& op) {
  const IntVec kernel = PerDim(op.kernel_size, 2), dilation = PerDim(op.dilation, 2), padding = PerDim(op.padding, 2), stride = PerDim(op.stride, 2);
  const Val x = op.self.rank() == 3 ? b.Unsqueeze(op.self, {0}) : op.self;
  const std::vector<DimWindows> windows = Windows(b, {x.dim(2), x.dim(3)}, kernel, dilation, padding, stride);
  const bool padded = padding[0] != 0 || padding[1] != 0;
  const Val wide = padded ? b.Pad(x, b.Ints({0, 0, padding[0], padding[1], 0, 0, padding[0], padding[1]})) : x;
  const Val taken = GatherWindows(b, wide, FlatPlaces(b, windows, wide.shape().subspan(2)));  // [N, C, oh, ow, K]
  return b.Reshape(b.Transpose(taken, {0, 1, 4, 2, 3}), ResultShape(b));
}

// The reverse: what windows have in common is added up.
Val ColumnsToImage(Onnx& b, const aten::col2im& op) {
  const IntVec kernel = PerDim(op.kernel_size, 2), dilation = PerDim(op.dilation, 2), padding = PerDim(op.padding, 2), stride = PerDim(op.stride, 2);
  const Val x = op.self.rank() == 2 ? b.Unsqueeze(op.self, {0}) : op.self;
  const DimVec sizes(op.output_size);
  if (x.dtype() != DType::F64) {
    const Val image = b.Col2Im(x, b.Shape(sizes), b.Ints(kernel),
                               {.dilations = dilation, .pads = {padding[0], padding[1], padding[0], padding[1]}, .strides = stride});
    return b.Reshape(image, ResultShape(b));
  }
  const std::vector<DimWindows> windows = Windows(b, sizes, kernel, dilation, padding, stride);
  const DimVec wide = {sizes[0] + 2 * padding[0], sizes[1] + 2 * padding[1]};
  const SymExpr taps = kernel[0] * kernel[1], channels = FloorDiv(x.dim(1), taps), spots = windows[0].windows * windows[1].windows;
  const Val values = b.Transpose(b.Reshape(x, {x.dim(0), channels, taps, spots}), {0, 1, 3, 2});
  const Val places = b.Expand(b.Reshape(FlatPlaces(b, windows, wide), {1, 1, spots * taps}), {x.dim(0), channels, spots * taps});
  const Val empty = b.Zeros({x.dim(0), channels, wide[0] * wide[1]}, x.dtype());
  const Val sum = ScatterAt(b, empty, 2, places, b.Reshape(values, {x.dim(0), channels, spots * taps}), "add");
  const Val image = b.Reshape(sum, {x.dim(0), channels, wide[0], wide[1]});
  const Val rows = b.Slice(image, 2, padding[0], sizes[0] + padding[0]);
  return b.Reshape(b.Slice(rows, 3, padding[1], sizes[1] + padding[1]), ResultShape(b));
}

}  // namespace

void GridRules(Rules<Onnx>& r) {
  OnEach<aten::grid_sampler, aten::grid_sampler_2d, aten::grid_sampler_3d, aten::_grid_sampler_2d_cpu_fallback>(
      r, [](Onnx& b, const auto& op) { return GridSample(b, op); });
  r.On<AffineGrid>();
  r.On<ImageToColumns>();
  r.On<ColumnsToImage>();
}

}  // namespace pt2onnx
