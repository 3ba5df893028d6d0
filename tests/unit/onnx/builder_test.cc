#include "onnx/builder.h"

#include <gtest/gtest.h>

#include "unit/onnx/test_graph.h"

namespace pt2onnx {
namespace {

TEST(OnnxTable, FindsOps) {
  EXPECT_EQ(FindOnnxOp("onnx::Gemm"), &SchemaOf(OnnxOp::Gemm));
  EXPECT_EQ(FindOnnxOp("onnx::Upsample"), nullptr);
  for (const OpSchema& op : OnnxOpTable()) EXPECT_EQ(FindOnnxOp(op.name), &op);
}

TEST(OnnxTable, KnowsIrVersions) {
  EXPECT_EQ(OnnxIrVersion(18), 8);
  EXPECT_EQ(OnnxIrVersion(20), 9);
  EXPECT_EQ(OnnxIrVersion(21), 10);
}

TEST(OnnxBuilder, DefaultsAreLeftOut) {
  TestGraph g;
  const Val x = g.Input("x", DType::F32, {2, 3});
  g.b.Softmax(x, {.axis = -1});
  EXPECT_TRUE(IsNone(g.AttrOfLast("axis")));
  g.b.Softmax(x, {.axis = 0});
  EXPECT_EQ(std::get<int64_t>(g.AttrOfLast("axis")), 0);
}

TEST(OnnxBuilder, YoungOpsAreRefusedAtOldOpsets) {
  TestGraph g(18);
  const Val x = g.Input("x", DType::F32, {2});
  const Val y = g.b.Gelu(x);
  ASSERT_NE(y.value->problem, 0u);
  EXPECT_EQ(g.context.diagnostics.Get(y.value->problem).message, "ONNX's Gelu needs opset 20");
  EXPECT_EQ(g.context.diagnostics.Get(y.value->problem).help, "--opset 20 has it");
  EXPECT_EQ(g.b.Relu(y).value->problem, y.value->problem);
  EXPECT_EQ(g.Ops(), "");
}

TEST(OnnxBuilder, YoungAttributesAreRefusedUnlessDefault) {
  TestGraph g(18);
  const Val x = g.Input("x", DType::F32, {1, 1, 8});
  EXPECT_EQ(g.b.AveragePool(x, {.kernel_shape = {2}}).value->problem, 0u);
  const Val y = g.b.AveragePool(x, {.dilations = {2}, .kernel_shape = {2}});
  ASSERT_NE(y.value->problem, 0u);
  EXPECT_EQ(g.context.diagnostics.Get(y.value->problem).message, "'dilations' of ONNX's AveragePool needs opset 19");
}

TEST(OnnxBuilder, FormsThatMoved) {
  TestGraph old(18), now(20);
  for (TestGraph* g : {&old, &now}) {
    const Val x = g->Input("x", DType::F32, {1, 5, 6, 2});
    const Val grid = g->Input("grid", DType::F32, {1, 7, 8, 2});
    g->b.GridSample(g->Input("i", DType::F32, {1, 1, 4, 4}), grid, {.mode = "cubic"});
    EXPECT_EQ(std::get<std::string_view>(g->AttrOfLast("mode")), g == &old ? "bicubic" : "cubic");
    const Val y = g->b.DFT(x, {}, g->b.IntScalar(2), {.onesided = 1});
    EXPECT_EQ(ShapeText(y), "[1, 5, 4, 2]");
    EXPECT_EQ(IsNone(g->Last().args[2]), g == &old);
    EXPECT_EQ(IsNone(g->AttrOfLast("axis")), g == &now);
  }
}

TEST(OnnxBuilder, SplitSaysHowMany) {
  TestGraph g;
  const Vals parts = g.b.Split(g.Input("x", DType::F32, {7, 2}), std::nullopt, 3, {.axis = 0});
  EXPECT_EQ(std::get<int64_t>(g.AttrOfLast("num_outputs")), 3);
  EXPECT_EQ(ShapeText(parts[0]) + ShapeText(parts[1]) + ShapeText(parts[2]), "[3, 2][3, 2][1, 2]");
}

TEST(OnnxBuilder, IdentityWorkIsLeftOut) {
  TestGraph g;
  const SymExpr n = g.Sym("n");
  const Val x = g.Input("x", DType::F32, {n, 4});
  EXPECT_EQ(g.b.Cast(x, DType::F32).value, x.value);
  EXPECT_EQ(g.b.Transpose(x, {0, -1}).value, x.value);
  EXPECT_EQ(g.b.Reshape(x, {n, 4}).value, x.value);
  EXPECT_EQ(g.b.Expand(x, {n, 4}).value, x.value);
  EXPECT_EQ(g.b.Unsqueeze(x, {}).value, x.value);
  EXPECT_EQ(g.b.Squeeze(x, {}).value, x.value);
  EXPECT_EQ(g.b.Concat({x}, 0).value, x.value);
  EXPECT_EQ(g.b.Slice(x, 0, 0, n).value, x.value);
  EXPECT_EQ(g.b.ReduceSum(x, {}).value, x.value);
  EXPECT_EQ((Scalar(1) * x).value, x.value);
  EXPECT_EQ((x / Scalar(1.0)).value, x.value);
  EXPECT_EQ((x - Scalar(0)).value, x.value);
  EXPECT_NE((x + Scalar(0)).value, x.value);  // -0.0
  EXPECT_EQ(g.Ops(), "Constant Constant Add");
}

TEST(OnnxBuilder, EqualConstantsAreOne) {
  TestGraph g;
  EXPECT_EQ(g.b.Ints({1, 2}).value, g.b.Ints({1, 2}).value);
  EXPECT_NE(g.b.Ints({1}).value, g.b.IntScalar(1).value);
  EXPECT_NE(g.b.Constant(1, DType::I64).value, g.b.Constant(1, DType::F32).value);
  EXPECT_NE(g.b.Constant(0.0, DType::F32).value, g.b.Constant(-0.0, DType::F32).value);
}

uint16_t Half(TestGraph& g, double x, DType dtype) {
  const Val c = g.b.Constant(x, dtype);
  for (const Arg& arg : c.value->def->args)
    if (const auto* data = std::get_if<const TensorData*>(&arg)) return *reinterpret_cast<const uint16_t*>((*data)->bytes.data());
  return 0;
}

TEST(OnnxBuilder, HalvesRoundToNearestEven) {
  TestGraph g;
  EXPECT_EQ(Half(g, 1.0, DType::F16), 0x3c00);
  EXPECT_EQ(Half(g, 1.0 + 0x1p-11, DType::F16), 0x3c00);
  EXPECT_EQ(Half(g, 1.0 + 3 * 0x1p-11, DType::F16), 0x3c02);
  EXPECT_EQ(Half(g, 65519, DType::F16), 0x7bff);
  EXPECT_EQ(Half(g, -65520, DType::F16), 0xfc00);
  EXPECT_EQ(Half(g, 0x1p-24, DType::F16), 0x0001);
  EXPECT_EQ(Half(g, 0x1p-25, DType::F16), 0x0000);
  EXPECT_EQ(Half(g, 3 * 0x1p-25, DType::F16), 0x0002);
  EXPECT_EQ(Half(g, 1023.75 * 0x1p-24, DType::F16), 0x0400);
  EXPECT_EQ(Half(g, 1.0 + 0x1p-8, DType::BF16), 0x3f80);
  EXPECT_EQ(Half(g, 1.0 + 3 * 0x1p-8, DType::BF16), 0x3f82);
  EXPECT_EQ(Half(g, 3.4e38, DType::BF16), 0x7f80);
}

TEST(OnnxBuilder, MixedDTypesArePromoted) {
  TestGraph g;
  const Val y = g.Input("i", DType::I64, {3}) + g.Input("f", DType::F16, {3});
  EXPECT_EQ(y.dtype(), DType::F16);
  EXPECT_EQ(g.Ops(), "Cast Add");
}

TEST(OnnxBuilder, SmallIntegersAreComputedWider) {
  TestGraph g;
  const Val x = g.Input("x", DType::I8, {3});
  EXPECT_EQ(g.b.CumSum(x, g.b.IntScalar(0)).dtype(), DType::I8);
  EXPECT_EQ(g.Ops(), "Constant Cast CumSum Cast");
  const Val bools = g.Input("m", DType::Bool, {3});
  EXPECT_EQ(g.b.Where(bools, bools, bools).dtype(), DType::Bool);
  TestGraph bf(20), wide(20, {.bf16_as_f32 = true});
  bf.b.Exp(bf.Input("x", DType::BF16, {3}));
  EXPECT_EQ(bf.Ops(), "Exp");
  wide.b.Exp(wide.Input("x", DType::BF16, {3}));
  EXPECT_EQ(wide.Ops(), "Cast Exp Cast");
}

TEST(OnnxBuilder, SubGraphsUseOuterValues) {
  TestGraph g;
  const SymExpr n = g.Sym("n");
  const Val x = g.Input("x", DType::F32, {n}), c = g.Input("c", DType::Bool, {});
  const Vals y = g.b.If(c, [&](Onnx& b) -> Vals { return {x + x, b.Int(n)}; }, [&](Onnx& b) -> Vals { return {x, b.IntScalar(1)}; });
  EXPECT_EQ(ShapeText(y[0]), "[n]");
  EXPECT_EQ(y[1].dtype(), DType::I64);
  EXPECT_EQ(g.Ops(), "If");
  EXPECT_EQ(TestGraph::OpsOf(*std::get<Graph*>(g.AttrOfLast("then_branch"))), "Add Shape Constant Squeeze");
  // What isn't the branch's own, or a constant, needs a value to be its result.
  EXPECT_EQ(TestGraph::OpsOf(*std::get<Graph*>(g.AttrOfLast("else_branch"))), "Constant Identity Identity");
  g.b.Int(n);  // not what the branch computed
  EXPECT_EQ(g.Ops(), "If Shape Constant Squeeze");
}

TEST(OnnxBuilder, LoopsForgetShapesThatGrow) {
  TestGraph g;
  const Val x = g.Input("x", DType::F32, {2, 3});
  const Vals y = g.b.Loop(g.b.IntScalar(4), {}, {x, x}, [&](Onnx& b, Val, const Vals& v) -> LoopStep {
    return {b.Constant(true, DType::Bool), {b.Concat({v[0], x}, 0), v[1] + v[1]}, {b.ReduceSum(v[0], {0, 1})}};
  });
  EXPECT_EQ(ShapeText(y[0]), "[?, 3]");
  EXPECT_EQ(ShapeText(y[1]), "[2, 3]");
  EXPECT_EQ(ShapeText(y[2]), "[?]");
}

TEST(OnnxSizes, ShapesAreReadInRuns) {
  TestGraph g;
  const SymExpr n = g.Sym("n"), m = g.Sym("m");
  g.Input("x", DType::F32, {8, n, 4, m});
  g.b.Shape({n, 4, m});
  EXPECT_EQ(g.Ops(), "Shape");
  g.b.Shape({n, 4, m});
  EXPECT_EQ(g.Ops(), "Shape");
  EXPECT_EQ(ShapeText(g.b.Expand(g.Input("y", DType::F32, {1}), {m, n})), "[m, n]");
}

TEST(OnnxSizes, OneUnknownDimNeedsNoArithmetic) {
  TestGraph g;
  const SymExpr n = g.Sym("n");
  const Val y = g.b.Reshape(g.Input("x", DType::F32, {n, 4}), {2 * n, 2});
  EXPECT_EQ(g.Ops(), "Constant Reshape");
  EXPECT_EQ(ShapeText(y), "[2*n, 2]");
}

TEST(OnnxSizes, DerivedDimsAreSolved) {
  TestGraph g;
  const SymExpr n = g.Sym("n");
  EXPECT_FALSE(g.b.IsDefined(n));
  g.Input("x", DType::F32, {2 * n + 1});
  EXPECT_TRUE(g.b.IsDefined(n));
  g.b.Int(n);
  EXPECT_EQ(g.Ops(), "Shape Constant Squeeze Constant Sub Constant Div");
}

TEST(OnnxSizes, UnknownSymbolsArePoison) {
  TestGraph g;
  EXPECT_NE(g.b.Int(g.Sym("u0") + 1).value->problem, 0u);
}

}  // namespace
}  // namespace pt2onnx
