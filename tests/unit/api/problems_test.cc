#include "api/problems.h"

#include <gtest/gtest.h>

#include "ir/parse.h"

namespace pt2onnx {
namespace {

TEST(Problems, EqualOnesAreCounted) {
  Context context;
  const Result<Graph*> program = Parse(context, "graph(%x: f32[2]) { %r: f32[2] = aten::relu(%x) return %r }");
  ASSERT_TRUE(program);
  context.locs.push_back({.node = "r", .stack_trace = "File \"m.py\", line 7, in forward\n    r = relu(x)", .module_stack = "k,,M;k,front,N"});
  const LocId loc = static_cast<LocId>(context.locs.size() - 1);
  (*program)->nodes[0]->loc = loc;
  Diagnostics& diagnostics = context.diagnostics;
  for (const char* message : {"no ONNX form", "no ONNX form", "another reason", "no ONNX form"})
    diagnostics.Report(diagnostics.Add({.code = "E0301", .message = message, .loc = loc, .op = "aten::relu"}));
  diagnostics.Add({.code = "E0301", .message = "reaches nothing"});
  diagnostics.Report(diagnostics.Add({.code = "E0201", .message = "nowhere"}));
  diagnostics.Warn({.code = "W0101", .message = "careful"});
  Report report;
  AddProblems(context, *program, report);
  EXPECT_EQ(report.exit_code, 1);
  const std::string place = "  --> m.py:7   r = relu(x)\n  node   %r: f32[2] = aten::relu(%x: f32[2])\n  module front\n";
  EXPECT_EQ(report.Text(),
            "warning[W0101]: careful\n"
            "error[E0301]: aten::relu: no ONNX form\n" + place + "  (+ 2 more of this op)\n" +
            "error[E0301]: aten::relu: another reason\n" + place +
            "error[E0201]: nowhere\n");
}

}  // namespace
}  // namespace pt2onnx
