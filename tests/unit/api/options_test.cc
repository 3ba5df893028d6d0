#include <gtest/gtest.h>

#include "pt2onnx/pt2onnx.h"

namespace pt2onnx {
namespace {

TEST(Options, DefaultsAreTheDocumentedOnes) {
  const Options options;
  EXPECT_EQ(options.opset, 20);
  EXPECT_EQ(options.mode, Options::Mode::kPreserve);
  EXPECT_EQ(options.state, Options::State::kOptional);
  EXPECT_EQ(options.external_data, Options::ExternalData::kAuto);
  EXPECT_EQ(options.fusions, std::vector<std::string>{"all"});
}

}  // namespace
}  // namespace pt2onnx
