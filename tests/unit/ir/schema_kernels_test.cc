#include <gtest/gtest.h>

#include "onnx/ort_kernels.h"

namespace pt2onnx {
namespace {

TEST(RuntimeKernels, KnowVersionsAndTypes) {
  EXPECT_TRUE(RuntimeHas("MatMul", 20, DType::F32));
  EXPECT_TRUE(RuntimeHas("onnx::MatMul", 20, DType::F16));  // between casts
  EXPECT_FALSE(RuntimeHas("MatMul", 20, DType::BF16));
  EXPECT_FALSE(RuntimeHas("Relu", 20, DType::I64));
  EXPECT_TRUE(RuntimeHas("RandomNormal", 21, DType::F32));
  EXPECT_FALSE(RuntimeHas("RandomNormal", 22, DType::F32));  // no kernel for the new version
  EXPECT_FALSE(RuntimeHas("RoiAlign", 22, DType::F32));
  EXPECT_FALSE(RuntimeHas("Gelu", 19, DType::F32));  // not yet an op
  EXPECT_FALSE(RuntimeHas("NoSuchOp", 20, DType::F32));
}

TEST(RuntimeKernels, ExpandFunctionBodies) {
  EXPECT_TRUE(RuntimeHas("CastLike", 20, DType::I64));
  EXPECT_TRUE(RuntimeHas("Bernoulli", 20, DType::F32));
  EXPECT_FALSE(RuntimeHas("Bernoulli", 22, DType::F32));  // its body draws with RandomUniformLike 22
}

TEST(RuntimeKernels, OtherConstraints) {
  EXPECT_TRUE(RuntimeHas("QuantizeLinear", 21, "T2", DType::I8));
  EXPECT_FALSE(RuntimeHas("QuantizeLinear", 21, "T2", DType::F32));
  EXPECT_TRUE(RuntimeHas("Cast", 20, "T2", DType::F64));
}

TEST(RuntimeKernels, TellOpsetsThatHaveIt) {
  EXPECT_EQ(RuntimeOpsets("RandomNormal", DType::F32), (OpsetRange{1, 21}));
  EXPECT_EQ(RuntimeOpsets("Gelu", DType::F32), (OpsetRange{20, kOpenOpset}));
  EXPECT_EQ(RuntimeOpsets("RoiAlign", DType::F32), (OpsetRange{10, 21}));
  EXPECT_EQ(RuntimeOpsets("MatMul", DType::BF16), OpsetRange{});
}

}  // namespace
}  // namespace pt2onnx
