// What the rules for Core ATen share. These ops convert as they are, to better models: a program is written without them only when asked for.
#pragma once

#include "decomp/rules.h"

namespace pt2onnx {

inline Dims RecordedShape(Aten& b) { return b.call().types[0].shape; }
inline DType RecordedDType(Aten& b) { return b.call().types[0].dtype; }

inline size_t At(int64_t dim, int64_t rank) { return static_cast<size_t>(dim < 0 ? dim + (rank ? rank : 1) : dim); }

inline Val Number(Aten& b, Scalar x, DType dtype) { return b.Constant(x, dtype); }
inline Val Where(Aten& b, Val condition, Val x, Val y) { return b(aten::where_self{.condition = condition, .self = x, .other = y}); }
// x where the condition holds, else a number of x's dtype; and the other way round.
inline Val WhereElse(Aten& b, Val condition, Val x, Scalar otherwise) { return Where(b, condition, x, Number(b, otherwise, x.dtype())); }
inline Val WhereNumber(Aten& b, Val condition, Scalar number, Val x) { return Where(b, condition, Number(b, number, x.dtype()), x); }

inline Val Slice(Aten& b, Val x, int64_t dim, SymExpr start, SymExpr end) {
  return b(aten::slice_Tensor{.self = x, .dim = dim, .start = start, .end = end});
}
inline Val Unsqueeze(Aten& b, Val x, int64_t dim) { return b(aten::unsqueeze{.self = x, .dim = dim}); }
inline Val Swap(Aten& b, Val x, int64_t i, int64_t j) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < x.rank(); ++d) dims.push_back(d);
  std::swap(dims[At(i, x.rank())], dims[At(j, x.rank())]);
  return b.Permute(x, dims);
}
// The sum over all dims, or over some.
inline Val Sum(Aten& b, Val x, std::vector<int64_t> dims = {}, bool keepdim = false) {
  return b(aten::sum_dim_IntList{.self = x, .dim = b.Copy(dims), .keepdim = keepdim});
}
// 0, 1, ..., n-1
inline Val Iota(Aten& b, SymExpr n) { return b(aten::arange_start_step{.start = 0, .end = Scalar(n), .step = 1, .dtype = DType::I64}); }

// The matrix product of any ranks, as mm or bmm.
Val MatrixProduct(Aten& b, Val x, Val y);

}  // namespace pt2onnx
