#include "ir/location.h"

#include <gtest/gtest.h>

namespace pt2onnx {
namespace {

TEST(Location, UserLineIsTheInnermostThatIsNotTorchs) {
  const SourceLine line = UserLine(
      "File \"/home/me/main.py\", line 3, in f\n    model(x)\n"
      "  File \"/home/me/model.py\", line 41, in forward\n    y = self.conv(x)\n"
      "  File \"/usr/lib/python3.11/site-packages/torch/nn/modules/conv.py\", line 565, in forward\n    return self._conv_forward(x)");
  EXPECT_EQ(line.file, "model.py");
  EXPECT_EQ(line.line, 41);
  EXPECT_EQ(line.text, "y = self.conv(x)");
}

TEST(Location, TorchsOwnLineIfThereIsNoOther) {
  const SourceLine line = UserLine("  File \"torch/nn/modules/conv.py\", line 565, in forward\n    return 1\n");
  EXPECT_EQ(line.file, "conv.py");
  EXPECT_EQ(line.line, 565);
}

TEST(Location, LineWithoutItsText) {
  const SourceLine line = UserLine("File \"a.py\", line 1, in f\nFile \"b.py\", line 2, in g");
  EXPECT_EQ(line.file, "b.py");
  EXPECT_EQ(line.line, 2);
  EXPECT_EQ(line.text, "");
  EXPECT_EQ(UserLine("").file, "");
  EXPECT_EQ(UserLine("File \"cut.py\", li").file, "");
}

TEST(Location, ModulePath) {
  EXPECT_EQ(ModulePath("L__self__,,__main__.Demo;L__self__conv,layers.0.conv,torch.nn.modules.conv.Conv2d"), "layers.0.conv");
  EXPECT_EQ(ModulePath("L__self__,,__main__.Demo"), "");
  EXPECT_EQ(ModulePath("L['self'].a[(1,2)],a.b,T"), "a.b");
  EXPECT_EQ(ModulePath(""), "");
}

}  // namespace
}  // namespace pt2onnx
