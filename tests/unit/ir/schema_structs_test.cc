#include <gtest/gtest.h>

#include "gen/aten.h"
#include "gen/hop.h"
#include "gen/prims.h"
#include "gen/quantized.h"
#include "gen/torchvision.h"
#include "ir/op_table.h"

namespace pt2onnx {
namespace {

// Notes which positions are read.
struct PositionReader {
  std::vector<size_t>* positions;
  Builder* builder;
  Value* value;

  template <class T>
  T Read(size_t index) const {
    positions->push_back(index);
    if constexpr (std::is_same_v<T, Val>)
      return Val(value, builder);
    else if constexpr (std::is_same_v<T, Scalar>)
      return Scalar(1);
    else
      return T();
  }
};

TEST(OpStructs, HaveTheIdsOfTheirOps) {
  EXPECT_EQ(OpTable()[aten::add_Tensor::kId].name, "aten::add.Tensor");
  EXPECT_EQ(OpTable()[aten::std_::kId].name, "aten::std");
  EXPECT_EQ(OpTable()[prims::add::kId].name, "prims::add");
  EXPECT_EQ(OpTable()[quantized_decomposed::quantize_per_tensor::kId].name, "quantized_decomposed::quantize_per_tensor");
  EXPECT_EQ(OpTable()[torchvision::nms::kId].name, "torchvision::nms");
  EXPECT_EQ(OpTable()[hop::cond::kId].name, "hop::cond");
  EXPECT_EQ(OpTable()[own::poison::kId].name, "pt2onnx::poison");
}

TEST(OpStructs, LeaveOutDevicesButKeepPositions) {
  std::vector<size_t> positions;
  const aten::_to_copy op = aten::_to_copy::Bind(PositionReader{&positions, nullptr, nullptr});
  EXPECT_EQ(positions, (std::vector<size_t>{0, 1, 5, 6}));
  size_t count = 0;
  op.Args([&](const auto&... fields) { count = sizeof...(fields); });
  EXPECT_EQ(count, OpTable()[aten::_to_copy::kId].args.size());
}

TEST(OpStructs, HaveDefaultsAndTensors) {
  Value x, w;
  const aten::conv2d conv{.input = Val(&x, nullptr), .weight = Val(&w, nullptr)};
  EXPECT_EQ(conv.stride.size(), 2u);
  EXPECT_EQ(conv.stride[0].TryConst(), 1);
  EXPECT_EQ(conv.padding[1].TryConst(), 0);
  EXPECT_EQ(conv.groups.TryConst(), 1);
  EXPECT_FALSE(conv.bias);
  const auto [input, weight, bias] = conv.Tensors();
  EXPECT_EQ(input.value, &x);
  EXPECT_EQ(weight.value, &w);
  EXPECT_FALSE(bias);
  const aten::max_pool2d pool{.self = Val(&x, nullptr)};
  EXPECT_EQ(pool.padding.size(), 2u);  // int[2] padding=0
  EXPECT_EQ(aten::contiguous{.self = Val(&x, nullptr)}.memory_format, MemoryFormat{1});
}

}  // namespace
}  // namespace pt2onnx
