// Fourier transforms. Complex tensors are pairs [..., 2] here (passes/complex); how one axis is done is in lower/dft.
//
//   %y : f32[8, 65, 2] = aten::_fft_r2c(%x : f32[8, 128], [1], 0, true)    ->    %y = Reshape(MatMul(%x, basis [128, 130]))
//   %y : f32[8, 4096, 2] = aten::_fft_c2c(%x, [1], 2, false)               ->    %y = DFT(%x, axis=1, inverse=1)
#include "lower/dft.h"
#include "lower/indexing.h"

namespace pt2onnx {
namespace {

template <class List>
IntVec AxesOf(const List& dims, int64_t rank) {
  IntVec axes;
  for (const auto& dim : dims) {
    if constexpr (std::is_same_v<List, Dims>) axes.push_back(Axis(dim.Const(), rank));
    else axes.push_back(Axis(dim, rank));
  }
  return axes;
}

}  // namespace

void FftRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::_fft_r2c& op) {
    return FftOfReal(b, op.self, AxesOf(op.dim, op.self.rank()), op.normalization, op.onesided);
  });
  r.On([](Onnx& b, const aten::_fft_c2c& op) {
    return FftComplex(b, op.self, AxesOf(op.dim, op.self.rank() - 1), op.normalization, op.forward);
  });
  r.On([](Onnx& b, const aten::_fft_c2r& op) {
    return FftToReal(b, op.self, AxesOf(op.dim, op.self.rank() - 1), op.normalization, op.last_dim_size);
  });
}

}  // namespace pt2onnx
