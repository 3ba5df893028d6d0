#include <gtest/gtest.h>

#include "unit/onnx/test_graph.h"

namespace pt2onnx {
namespace {

class OnnxInfer : public testing::Test {
 protected:
  Val In(const DimVec& shape, DType dtype = DType::F32) { return g.Input("x", dtype, shape); }
  TestGraph g;
  Onnx& b = g.b;
  SymExpr n = g.Sym("n"), m = g.Sym("m");
};

TEST_F(OnnxInfer, Broadcast) {
  EXPECT_EQ(ShapeText(b.Add(In({n, 1}), In({4}))), "[n, 4]");
  EXPECT_EQ(ShapeText(b.Add(In({n}), In({m}))), "[?]");
  EXPECT_EQ(ShapeText(b.Add(In({n}), In({3}))), "[3]");
  EXPECT_EQ(ShapeText(b.Where(In({n, 1}, DType::Bool), In({1, m}), In({}))), "[n, m]");
  EXPECT_EQ(b.Less(In({2}), In({2})).dtype(), DType::Bool);
}

TEST_F(OnnxInfer, Views) {
  EXPECT_EQ(ShapeText(b.Transpose(In({n, 2, m}), {2, 0, 1})), "[m, n, 2]");
  EXPECT_EQ(ShapeText(b.Unsqueeze(In({n, m}), {0, -1})), "[1, n, m, 1]");
  EXPECT_EQ(ShapeText(b.Squeeze(In({1, n, 1}), {-1})), "[1, n]");
  EXPECT_EQ(ShapeText(b.OnnxOps::Reshape(In({n, 6}), b.Ints({0, 2, -1}))), "[n, 2, 3]");
  EXPECT_EQ(ShapeText(b.Flatten(In({n, 2, 3}), {.axis = 2})), "[2*n, 3]");
  EXPECT_EQ(ShapeText(b.Flatten1D(In({n, 2}))), "[2*n]");
  EXPECT_EQ(ShapeText(b.Slice(In({9, n}), 0, 1, 8, 3)), "[3, n]");
  EXPECT_EQ(ShapeText(b.Slice(In({9}), 0, -1, -10, -2)), "[5]");
  EXPECT_EQ(ShapeText(b.Slice(In({n}), 0, 0, 5)), "[?]");
  EXPECT_EQ(ShapeText(b.Concat({In({n, 2}), In({m, 2})}, 0)), "[m + n, 2]");
  EXPECT_EQ(ShapeText(b.Pad(In({n, 4}), b.Ints({1, 0, 2, 3}))), "[n + 3, 7]");
  EXPECT_EQ(ShapeText(b.Tile(In({n, 4}), b.Ints({2, 3}))), "[2*n, 12]");
  EXPECT_EQ(ShapeText(b.DepthToSpace(In({n, 8, 3, 3}), {.blocksize = 2})), "[n, 2, 6, 6]");
}

TEST_F(OnnxInfer, Indices) {
  EXPECT_EQ(ShapeText(b.Gather(In({n, 5, m}), In({2, 3}, DType::I64), 1)), "[n, 2, 3, m]");
  EXPECT_EQ(ShapeText(b.Select(In({n, 5, m}), -1, 0)), "[n, 5]");
  EXPECT_EQ(ShapeText(b.GatherND(In({n, 5, m}), In({7, 2}, DType::I64))), "[7, m]");
  EXPECT_EQ(ShapeText(b.NonZero(In({n, 5}))), "[2, ?]");
  EXPECT_EQ(ShapeText(b.TopK(In({n, 5}), b.Ints({3})).Values), "[n, 3]");
  EXPECT_EQ(b.TopK(In({n, 5}), b.Ints({3})).Indices.dtype(), DType::I64);
  EXPECT_EQ(ShapeText(b.OneHot(In({n}, DType::I64), b.IntScalar(9), In({2}))), "[n, 9]");
  EXPECT_EQ(ShapeText(b.Range(b.IntScalar(0), b.Int(n), b.IntScalar(1))), "[n]");
}

TEST_F(OnnxInfer, ReduceAndMultiply) {
  EXPECT_EQ(ShapeText(b.ReduceSum(In({n, 2, m}), {-1, 0})), "[2]");
  EXPECT_EQ(ShapeText(b.ReduceMax(In({n, 2, m}), {1}, true)), "[n, 1, m]");
  EXPECT_EQ(ShapeText(b.ArgMax(In({n, 2}), {.axis = 1, .keepdims = 0})), "[n]");
  EXPECT_EQ(ShapeText(b.MatMul(In({n, 1, 3, 4}), In({5, 4, 6}))), "[n, 5, 3, 6]");
  EXPECT_EQ(ShapeText(b.MatMul(In({4}), In({4, 6}))), "[6]");
  EXPECT_EQ(ShapeText(b.Gemm(In({4, n}), In({6, 4}), {}, {.transA = 1, .transB = 1})), "[n, 6]");
  EXPECT_EQ(ShapeText(b.Einsum({In({n, 3}), In({3, m})}, {.equation = "ij, jk -> ki"})), "[m, n]");
}

TEST_F(OnnxInfer, Networks) {
  EXPECT_EQ(ShapeText(b.Conv(In({n, 3, m, 9}), In({8, 3, 3, 3}), {}, {.pads = {1, 0, 1, 0}, .strides = {2, 1}})), "[n, 8, (m + 1)//2, 7]");
  EXPECT_EQ(ShapeText(b.ConvTranspose(In({n, 8, m}), In({8, 4, 3}), {}, {.group = 2, .strides = {2}})), "[n, 8, 2*m + 1]");
  EXPECT_EQ(ShapeText(b.MaxPool(In({n, 3, 9}), {.kernel_shape = {3}, .strides = {3}}).Y), "[n, 3, 3]");
  EXPECT_EQ(ShapeText(b.GlobalAveragePool(In({n, 3, m, 9}))), "[n, 3, 1, 1]");
  EXPECT_EQ(ShapeText(b.LayerNormalization(In({n, 3, 4}), In({4})).Mean), "[n, 3, 1]");
  EXPECT_EQ(ShapeText(b.LSTM(In({m, n, 3}), In({1, 16, 3}), In({1, 16, 4}), {}, {}, {}, {}, {}, {.hidden_size = 4}).Y), "[m, 1, n, 4]");
}

}  // namespace
}  // namespace pt2onnx
