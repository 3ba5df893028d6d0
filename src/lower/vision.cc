// torchvision's ops, and those of transformers that are ops of their own.
//
// Boxes of regions are pooled without a loop: along each dim a bin is a row of weights over the image's lines, so that a region's result is
//
//   out[k, c] = Wy[k] x[batch_k, c] Wx[k]^T        Wy: [bins, H], Wx: [bins, W]
//
//   %y = torchvision::roi_align(%x, %rois, 0.25, 7, 7, 2, true)    ->    RoiAlign where ONNX Runtime has it, else the two products
#include "gen/torchvision.h"
#include "gen/transformers.h"
#include "lower/network.h"
#include "onnx/ort_kernels.h"

namespace pt2onnx {
namespace {

// Column i of [K, 5], as [K, 1, 1].
Val Column(Onnx& b, Val rois, int64_t i) { return b.Unsqueeze(b.Slice(rois, 1, i, i + 1), {2}); }
Val Batches(Onnx& b, Val rois) { return b.Cast(b.Select(rois, 1, 0), DType::I64); }
// 0, 1, ..., n - 1 as numbers, along `axis` of `rank` dims.
Val Numbers(Onnx& b, SymExpr n, DType dtype, int64_t axis, int64_t rank) { return LaidAlong(b, b.Cast(Iota(b, n), dtype), axis, rank); }

// ---- Averages of interpolated samples ---------------------------------------------------------------------------------------------------

struct Sampling {
  SymExpr bins;
  int64_t per_bin;     // 0: as many as the bin is long, rounded up
  bool at_least_one;   // a region shorter than one pixel is one pixel long
  bool empty_is_zero;  // else a bin of no samples is 0 / 0
};
// Along one dim of n places, bin p of region k averages samples at y = start + (p + (i + 0.5) / count) * length / bins. A sample reads the two
// places around it, clamped to the image: weight max(0, 1 - |y - h|); farther than one place outside it is 0.  [K, bins, n]
Val SampleWeights(Onnx& b, Val start, Val end, SymExpr n, const Sampling& s) {
  const DType dtype = start.dtype();
  Val length = end - start;
  if (s.at_least_one) length = b.Max(length, b.Constant(1, dtype));
  const Val bin = length / b.Number(s.bins, dtype);  // [K, 1, 1]
  const Val count = s.per_bin > 0 ? b.Constant(s.per_bin, dtype) : b.Ceil(bin);
  const auto as_many_as_needed = [&] {  // the most of any region; without regions none
    const Val most = b.ReduceMax(b.Concat({b.Flatten1D(count), b.Zeros({1}, dtype)}, 0), {0});
    return b.Unsqueeze(b.Range(b.Constant(0, dtype), most, b.Constant(1, dtype)), {0, 1});
  };
  const Val i = s.per_bin > 0 ? Numbers(b, s.per_bin, dtype, 2, 3) : as_many_as_needed();  // [1, 1, most]
  const Val p = Numbers(b, s.bins, dtype, 1, 3);
  const Val y = start + p * bin + (i + 0.5) * bin / count;  // [K, bins, most]
  const Val last = b.Number(n - 1, dtype);
  Val counts = b.And(b.GreaterOrEqual(y, b.Constant(-1, dtype)), b.LessOrEqual(y, b.Number(n, dtype)));
  if (s.per_bin <= 0) counts = b.And(counts, b.Less(i, count));
  const Val at = b.Unsqueeze(b.Min(b.Max(y, b.Constant(0, dtype)), last), {3});
  const Val near = b.Max(1 - b.Abs(at - Numbers(b, n, dtype, 3, 4)), b.Constant(0, dtype));  // [K, bins, most, n]
  const Val sum = b.ReduceSum(b.Where(b.Unsqueeze(counts, {3}), near, b.Constant(0, dtype)), {2});
  return sum / (s.empty_is_zero && s.per_bin <= 0 ? b.Max(count, b.Constant(1, dtype)) : count);
}

struct Weights {
  Val y, x;
};
Weights SampleWeights(Onnx& b, Val input, Val rois, double scale, double shift, SymExpr height, SymExpr width, Sampling s) {
  const auto corner = [&](int64_t i) { return Column(b, rois, i) * scale - shift; };
  s.bins = height;
  const Val y = SampleWeights(b, corner(2), corner(4), input.dim(2), s);
  s.bins = width;
  return {y, SampleWeights(b, corner(1), corner(3), input.dim(3), s)};
}

// Wy x Wx^T of each region's image.
Val Pooled(Onnx& b, Val input, Val rois, const Weights& w) {
  const Val images = b.Gather(input, Batches(b, rois), 0);  // [K, C, H, W]
  return b.MatMul(b.MatMul(b.Unsqueeze(w.y, {1}), images), b.Unsqueeze(b.Transpose(w.x, {0, 2, 1}), {1}));
}
// The same where each bin has channels of its own: channel (c * bins_y + p) * bins_x + q.
Val PooledByPosition(Onnx& b, Val input, Val rois, const Weights& w) {
  const SymExpr rows = w.y.dim(1), columns = w.x.dim(1);
  const Val images = b.Reshape(b.Gather(input, Batches(b, rois), 0),
                               {rois.dim(0), FloorDiv(input.dim(1), rows * columns), rows, columns, input.dim(2), input.dim(3)});
  const Val lines = b.MatMul(b.Unsqueeze(w.y, {1, 3, 4}), images);  // [K, C, p, q, 1, W]
  return b.Squeeze(b.MatMul(lines, b.Unsqueeze(w.x, {1, 2, 5})), {4, 5});
}

Val RoiAlign(Onnx& b, const torchvision::roi_align& op) {
  const bool fixed = op.pooled_height.IsConst() && op.pooled_width.IsConst();
  if (fixed && RuntimeHas("RoiAlign", b.opset(), op.input.dtype()) && FitsAttribute(op.spatial_scale, op.input.dtype()))
    return b.RoiAlign(op.input, b.Slice(op.rois, 1, 1, 5), Batches(b, op.rois),
                      {.coordinate_transformation_mode = op.aligned ? "half_pixel" : "output_half_pixel",
                       .output_height = op.pooled_height.Const(),
                       .output_width = op.pooled_width.Const(),
                       .sampling_ratio = std::max<int64_t>(op.sampling_ratio, 0),
                       .spatial_scale = op.spatial_scale});
  const Sampling sampling = {0, op.sampling_ratio, !op.aligned, true};
  return Pooled(b, op.input, op.rois,
                SampleWeights(b, op.input, op.rois, op.spatial_scale, op.aligned ? 0.5 : 0, op.pooled_height, op.pooled_width, sampling));
}

// ---- Bins of whole pixels ---------------------------------------------------------------------------------------------------------------

// Halves away from zero, as C rounds.
Val RoundAway(Onnx& b, Val x) { return b.Sign(x) * b.Floor(b.Abs(x) + 0.5); }

// Which of n places bin p of each region takes: floor(p * bin) <= h - start < ceil((p + 1) * bin), bin = length / bins; at most `last`.
// bool [K, bins, n]
Val Members(Onnx& b, Val start, Val length, SymExpr bins, SymExpr n, SymExpr last) {
  const DType dtype = start.dtype();
  const Val bin = b.Max(length, b.Constant(1, dtype)) / b.Number(bins, dtype);
  const Val p = Numbers(b, bins, dtype, 1, 3), h = Numbers(b, n, dtype, 2, 3);
  const Val from = b.Floor(p * bin) + start, to = b.Min(b.Ceil((p + 1) * bin) + start, b.Number(last, dtype));
  return b.And(b.GreaterOrEqual(h, from), b.Less(h, to));
}

Vals RoiPool(Onnx& b, const torchvision::roi_pool& op) {
  const Val argmax = LaterUnsupported(b, 1, "only the maxima of roi_pool have an ONNX form, not where they are");
  const DType dtype = op.input.dtype();
  const bool fixed = op.pooled_height.IsConst() && op.pooled_width.IsConst();
  if (fixed && RuntimeHas("MaxRoiPool", b.opset(), dtype) && FitsAttribute(op.spatial_scale, dtype))
    return {b.MaxRoiPool(op.input, op.rois,
                         {.pooled_shape = IntVec{op.pooled_height.Const(), op.pooled_width.Const()}, .spatial_scale = op.spatial_scale}),
            argmax};
  const auto corner = [&](int64_t i) { return RoundAway(b, Column(b, op.rois, i) * op.spatial_scale); };
  const auto members = [&](int64_t from, int64_t to, SymExpr bins, SymExpr n) {
    return Members(b, corner(from), corner(to) - corner(from) + 1, bins, n, n);
  };
  const Val rows = members(2, 4, op.pooled_height, op.input.dim(2)), columns = members(1, 3, op.pooled_width, op.input.dim(3));
  const Val lowest = b.Constant(-INFINITY, dtype);
  const Val images = b.Unsqueeze(b.Gather(op.input, Batches(b, op.rois), 0), {2});                            // [K, C, 1, H, W]
  const Val lines = b.ReduceMax(b.Where(b.Unsqueeze(rows, {1, 4}), images, lowest), {3});                     // [K, C, p, W]
  const Val best = b.ReduceMax(b.Where(b.Unsqueeze(columns, {1, 2}), b.Unsqueeze(lines, {3}), lowest), {4});  // [K, C, p, q]
  const auto any = [&](Val bins, IntVec axes) { return b.Unsqueeze(b.ReduceMax(b.Cast(bins, DType::I32), {2}), axes); };
  const Val some = b.Cast(any(rows, {1, 3}) * any(columns, {1, 2}), DType::Bool);
  return {b.Where(some, best, b.Constant(0, dtype)), argmax};
}

// c, p, q -> (c * bins_y + p) * bins_x + q
Val ChannelMapping(Onnx& b) {
  const Dims shape = ResultShape(b, 1);
  return b.Expand(b.Cast(b.Reshape(Iota(b, shape[1] * shape[2] * shape[3]), {1, shape[1], shape[2], shape[3]}), DType::I32), shape);
}

// ---- Deformable convolution -------------------------------------------------------------------------------------------------------------

// The samples of a kernel are moved by offsets (y, x in turn, for each tap) and weighed by the mask.
//   columns[n, c, tap, place] = mask * x[n, c, place * stride - pad + tap * dilation + offset]        out = weight columns + bias
Val DeformConv(Onnx& b, const torchvision::deform_conv2d& op) {
  for (const SymExpr& e :
       {op.stride_h, op.stride_w, op.pad_h, op.pad_w, op.dilation_h, op.dilation_w, op.groups, op.offset_groups, op.weight.dim(2), op.weight.dim(3)})
    if (!e.IsConst()) return b.Unsupported("a deformable convolution needs a kernel and strides of known size");
  const DType dtype = op.input.dtype();
  const int64_t groups = op.groups.Const(), moved = op.offset_groups.Const(), kh = op.weight.dim(2).Const(), kw = op.weight.dim(3).Const(),
                taps = kh * kw;
  const OptVal mask = op.use_mask ? OptVal(op.mask) : std::nullopt;
  if (b.opset() >= 19 && RuntimeHas("DeformConv", b.opset(), dtype)) {
    const int64_t ph = op.pad_h.Const(), pw = op.pad_w.Const();
    return b.DeformConv(op.input, op.weight, op.offset, op.bias, mask,
                        {.dilations = {op.dilation_h.Const(), op.dilation_w.Const()},
                         .group = groups,
                         .offset_group = moved,
                         .pads = {ph, pw, ph, pw},
                         .strides = {op.stride_h.Const(), op.stride_w.Const()}});
  }
  const bool narrow = dtype == DType::F64 && !RuntimeHas("GridSample", b.opset(), dtype);
  if (narrow) return b.Unsupported("ONNX Runtime has no deformable convolution of float64 before opset 19", "--opset 19");
  const SymExpr n = op.input.dim(0), channels = op.input.dim(1), h = op.input.dim(2), w = op.input.dim(3), oh = op.offset.dim(2),
                ow = op.offset.dim(3);
  const Val offset = b.Reshape(op.offset, {n * moved, taps, 2, oh, ow});
  // place * stride - pad + tap * dilation, [taps, oh, ow]
  const auto regular = [&](int64_t axis, SymExpr size, int64_t stride, int64_t pad, int64_t dilation) {
    IntVec tap;
    for (int64_t t = 0; t < taps; ++t) tap.push_back((axis == 1 ? t / kw : t % kw) * dilation - pad);
    return b.Cast(LaidAlong(b, Progression(b, 0, stride, size), axis, 3) + b.Reshape(b.Ints(tap), {taps, 1, 1}), dtype);
  };
  // Outer corners of the image at -1 and 1: (2 y + 1) / h - 1
  const auto normal = [&](Val at, SymExpr size) {
    return b.Unsqueeze(b.Reshape((at * 2 + 1) / b.Number(size, dtype) - 1, {n * moved, taps * oh, ow}), {3});
  };
  const Val y = b.Select(offset, 2, 0) + regular(1, oh, op.stride_h.Const(), op.pad_h.Const(), op.dilation_h.Const());
  const Val x = b.Select(offset, 2, 1) + regular(2, ow, op.stride_w.Const(), op.pad_w.Const(), op.dilation_w.Const());
  const SymExpr share = FloorDiv(channels, moved);
  Val columns = b.GridSample(
      b.Reshape(op.input, {n * moved, share, h, w}), b.Concat({normal(x, w), normal(y, h)}, 3),
      {.align_corners = 0, .mode = b.opset() >= 20 ? "linear" : "bilinear", .padding_mode = "zeros"});  // [n * moved, share, taps * oh, ow]
  if (mask) columns = columns * b.Reshape(*mask, {n * moved, 1, taps * oh, ow});
  const SymExpr out = op.weight.dim(0), depth = op.weight.dim(1) * taps;
  const Val product = b.MatMul(b.Reshape(op.weight, {groups, FloorDiv(out, groups), depth}), b.Reshape(columns, {n, groups, depth, oh * ow}));
  return b.Reshape(product, {n, out, oh, ow}) + b.Reshape(op.bias, {1, out, 1, 1});
}

// Rows of a mixture of experts, sorted by expert: out[t] = x[t] weight[g] for the group g with offs[g - 1] <= t < offs[g]. One group after the
// other, since a weight for each row would not fit into memory; rows behind the last group are 0.
Val GroupedMatMul(Onnx& b, Val x, Val weight, Val offs) {
  const DType dtype = x.dtype();
  const SymExpr out = weight.dim(2);
  const Val ends = b.Cast(offs, DType::I64), zero = b.Ints({0});
  const Vals grown = b.Loop(b.Int(weight.dim(0)), std::nullopt, {b.Zeros({0, out}, dtype), zero}, [&](Onnx& o, Val g, const Vals& carried) {
    const Val group = o.Unsqueeze(g, {0}), end = o.Gather(ends, group, 0);
    const Val rows = o.OnnxOps::Slice(x, carried[1], end, zero);
    const Val y = o.MatMul(rows, o.Gather(weight, g, 0));
    return LoopStep{o.Constant(true, DType::Bool), {o.Concat({carried[0], y}, 0), end}, {}};
  });
  const Val rest = b.ConstantOfShape(b.Concat({b.Int1(x.dim(0)) - grown[1], b.Int1(out)}, 0), 0, dtype);
  return b.Concat({grown[0], rest}, 0);
}

}  // namespace

void VisionRules(Rules<Onnx>& r) {
  r.On<RoiAlign>();
  r.On<RoiPool>();
  r.On<DeformConv>();

  r.On([](Onnx& b, const torchvision::ps_roi_align& op) -> Vals {
    const Sampling sampling = {0, op.sampling_ratio, false, false};
    const Weights w = SampleWeights(b, op.input, op.rois, op.spatial_scale, 0.5, op.pooled_height, op.pooled_width, sampling);
    return {PooledByPosition(b, op.input, op.rois, w), ChannelMapping(b)};
  });

  // The mean of each bin; the image's last row and column count as outside.
  r.On([](Onnx& b, const torchvision::ps_roi_pool& op) -> Vals {
    const auto corner = [&](int64_t i) { return RoundAway(b, Column(b, op.rois, i) * op.spatial_scale); };
    const auto weights = [&](int64_t from, int64_t to, SymExpr bins, SymExpr n) {
      const Val members = b.Cast(Members(b, corner(from), corner(to) - corner(from), bins, n, n - 1), op.input.dtype());
      return members / b.Max(b.ReduceSum(members, {2}, true), b.Constant(1, op.input.dtype()));
    };
    const Weights w = {weights(2, 4, op.pooled_height, op.input.dim(2)), weights(1, 3, op.pooled_width, op.input.dim(3))};
    return {PooledByPosition(b, op.input, op.rois, w), ChannelMapping(b)};
  });

  // Boxes by falling score, each kept if it overlaps no kept one by more than the threshold.
  r.On([](Onnx& b, const torchvision::nms& op) {
    const SymExpr n = op.dets.dim(0);
    const Val boxes = b.Reshape(b.Cast(op.dets, DType::F32), {1, n, 4}), scores = b.Reshape(b.Cast(op.scores, DType::F32), {1, 1, n});
    const Val rows = b.NonMaxSuppression(boxes, scores, b.Int1(n), b.Tensor({1}, {op.iou_threshold}, DType::F32));  // [kept, 3]
    return b.Select(rows, 1, 2);
  });

  r.On([](Onnx& b, const transformers::grouped_mm_fallback& op) { return GroupedMatMul(b, op.input, op.weight, op.offs); });
  r.On([](Onnx& b, const aten::_grouped_mm& op) {
    const int64_t x = op.self.rank(), w = op.mat2.rank();
    const bool rows = x == 2 && w == 3 && op.offs;
    if (op.bias || !(rows || (x == 3 && w == 3 && !op.offs)))
      return b.Unsupported("a grouped product whose groups do not part the rows of its left operand has no ONNX form");
    return rows ? GroupedMatMul(b, op.self, op.mat2, *op.offs) : b.MatMul(op.self, op.mat2);
  });
}

}  // namespace pt2onnx
