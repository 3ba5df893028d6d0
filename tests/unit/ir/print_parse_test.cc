#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/bind.h"
#include "ir/parse.h"
#include "ir/print.h"

namespace pt2onnx {
namespace {

using testing::HasSubstr;

// What is printed of what was read from `text`; or the error.
std::string Again(std::string_view text) {
  Context context;
  Result<Graph*> graph = Parse(context, text);
  return graph ? Print(context, **graph, {.data = true}) : graph.error().message;
}
// One that prints as it stands.
void RoundTrip(const std::string& text) { EXPECT_EQ(Again(text), text); }
// One argument of a node.
std::string ArgAgain(const std::string& call) {
  const std::string out = Again("graph(%x: f32[s0, 4], %y: f32[s0, 4]) { %z: f32[1] = " + call + " return %z }");
  const size_t at = out.find("%z: f32[1] = ");
  return at == out.npos ? out : out.substr(at + 13, out.find('\n', at) - at - 13);
}

TEST(PrintParse, Types) {
  RoundTrip(
      "graph(\n"
      "    %a: f32[s0, 4],\n"
      "    %b: i64[],\n"
      "    %c: bf16[2, 3]{1, 2}@7,\n"
      "    %d: c64[max(1, s0), 2*s0 + 1]{3*s0, 1}@(2*s0),\n"
      "    %e: opaque,\n"
      "    %f: opaque f32[2],\n"
      "    %g: int(s9),\n"
      "    %h: float(zf1),\n"
      "    %i: bool(s0 == 4),\n"
      "    %j,\n"
      "    %k: f32[*],\n"
      "    %l: bool[?, 2],\n"
      "    %m: f32[0, 3]\n"
      ") {\n"
      "  return\n"
      "}\n");
}

TEST(PrintParse, InputsOutputsAndRanges) {
  RoundTrip(
      "graph main(\n"
      "    parameter \"fc.weight\" = %p: f32[2],\n"
      "    buffer \"n\" transient storage 3 = %b: f32[2],\n"
      "    constant \"c\" optional = %c: f32[2] = tensor f32[2] [1., 2.5],\n"
      "    user \"X\" = %x: f32[s0, s1],\n"
      "    token = %t: opaque,\n"
      "    object \"q\" = %\"odd name\": opaque,\n"
      "    user \"k\" = \"text\",\n"
      "    plain = %y: f32[1]\n"
      ") where 0 <= s0 <= 64, s0*s1 <= 9, -3 <= s1 {\n"
      "  return buffer \"n\" storage \"m\" = %b, parameter \"fc.weight\" = %p, input \"x\" = %x, plain = %y, %x, s0 + 1, 3, none, "
      "\"a\\\"\\\\\\n\\x01b\", 1.\n"
      "}\n");
}

TEST(PrintParse, Arguments) {
  EXPECT_EQ(ArgAgain("aten::add.Tensor(%x, %y)"), "aten::add.Tensor(%x, %y)");
  EXPECT_EQ(ArgAgain("aten::add.Tensor(%x, %y, alpha=1)"), "aten::add.Tensor(%x, %y)");
  EXPECT_EQ(ArgAgain("aten::add.Tensor(%x, 2.5, alpha=s0)"), "aten::add.Tensor(%x, 2.5, alpha=s0)");
  EXPECT_EQ(ArgAgain("aten::add.Tensor(other=%x, self=%y)"), "aten::add.Tensor(%y, %x)");
  EXPECT_EQ(ArgAgain("aten::fill.Scalar(%x, complex(1., -0.5))"), "aten::fill.Scalar(%x, complex(1., -0.5))");
  EXPECT_EQ(ArgAgain("aten::fill.Scalar(%x, true)"), "aten::fill.Scalar(%x, true)");
  EXPECT_EQ(ArgAgain("aten::fill.Scalar(%x, -inf)"), "aten::fill.Scalar(%x, -inf)");
  EXPECT_EQ(ArgAgain("aten::fill.Scalar(%x, 1e-45)"), "aten::fill.Scalar(%x, 1e-45)");
  EXPECT_EQ(ArgAgain("aten::fill.Scalar(%x, float(s0)/2.)"), "aten::fill.Scalar(%x, float(s0)/2.0)");
  EXPECT_EQ(ArgAgain("aten::view(%x, [-1, 2*s0, 4])"), "aten::view(%x, [-1, 2*s0, 4])");
  EXPECT_EQ(ArgAgain("aten::avg_pool2d(%x, 3)"), "aten::avg_pool2d(%x, [3, 3])");
  EXPECT_EQ(ArgAgain("aten::cat([%x, %y], 1)"), "aten::cat([%x, %y], 1)");
  EXPECT_EQ(ArgAgain("aten::index.Tensor(%x, [none, %y])"), "aten::index.Tensor(%x, [none, %y])");
  EXPECT_EQ(ArgAgain("aten::to.dtype(%x, bf16, memory_format=channels_last)"), "aten::to.dtype(%x, bf16, false, false, channels_last)");
  EXPECT_EQ(ArgAgain("aten::zeros([2], device=device(\"cuda:0\"), layout=7)"), "aten::zeros([2], layout=7, device=device(\"cuda:0\"))");
  EXPECT_EQ(ArgAgain("aten::gelu(%x, approximate=\"tanh\")"), "aten::gelu(%x, approximate=\"tanh\")");
  EXPECT_EQ(ArgAgain("aten::upsample_nearest2d.vec(%x, none, [2., 0.5])"), "aten::upsample_nearest2d.vec(%x, none, [2., 0.5])");
}

TEST(PrintParse, DefaultsAreTyped) {
  Context context;
  Result<Graph*> graph = Parse(context, "graph(%x: f32[2]) { %y = aten::add.Tensor(%x, 1) %z = aten::view(%x, [2]) return %y }");
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(std::get<int64_t>((*graph)->nodes[0]->args[2]), 1);
  EXPECT_EQ(std::get<Dims>((*graph)->nodes[1]->args[1]).size(), 1u);
}

TEST(PrintParse, ConstantTensors) {
  RoundTrip(
      "graph() {\n"
      "  %0: f32[2] = onnx::Constant(value=tensor f32[2] [0.1, -inf])\n"
      "  %1: i64[0] = onnx::Constant(value=tensor i64[0] [])\n"
      "  %2: bool[2, 1] = onnx::Constant(value=tensor bool[2, 1] [1, 0])\n"
      "  %3: bf16[1] = onnx::Constant(value=tensor bf16[1] 0x803f)\n"
      "  %4: f32[1] = onnx::Constant(value=tensor f32[1] 0x0000c07f)\n"
      "  %5: f32[4] = onnx::Constant(value=tensor \"fc.weight\" f32[4] @128+16)\n"
      "  return %0\n"
      "}\n");
}

TEST(PrintParse, NamesAreUniqueInTheirScope) {
  Context context;
  Graph graph;
  Value* a = context.NewValue({.kind = Kind::Tensor, .dtype = DType::F32}, "x");
  Value* b = context.NewValue({.kind = Kind::Tensor, .dtype = DType::F32}, "x");
  Value* c = context.NewValue({.kind = Kind::Tensor, .dtype = DType::F32}, "7");
  for (Value* value : {a, b, c}) graph.inputs.push_back({.value = value, .kind = InputKind::User, .target = value->name});
  graph.outputs = {{.value = a, .kind = OutputKind::User}, {.value = b, .kind = OutputKind::User}, {.value = c, .kind = OutputKind::User}};
  const std::string text = Print(context, graph);
  EXPECT_EQ(text, "graph(%x: f32[], user \"x\" = %x.1: f32[], user \"7\" = %\"7\": f32[]) {\n  return %x, %x.1, %\"7\"\n}\n");
  RoundTrip(text);
}

// A sub-graph that reads an outer %x may not call a value of its own so; one that does not may.
TEST(PrintParse, SubGraphs) {
  RoundTrip(
      "graph(%p: bool[], %x: f32[2]) {\n"
      "  %y: f32[2], _ = hop::cond(%p, graph yes(%x: f32[2]) {\n"
      "    %0: f32[2] = aten::relu(%x)\n"
      "    return %0\n"
      "  }, graph no(%a: f32[2]) {\n"
      "    %1: f32[2] = aten::add.Tensor(%a, %x)\n"
      "    return %1\n"
      "  }, [%x])\n"
      "  return %y\n"
      "}\n");
  Context context;
  Result<Graph*> graph = Parse(
      context, "graph(%x: f32[2]) { %y: f32[2] = hop::wrap(graph(%a: f32[2]) { %b: f32[2] = aten::add.Tensor(%a, %x) return %b }, [%x]) return %y }");
  ASSERT_TRUE(graph) << graph.error().message;
  Graph* body = std::get<Graph*>((*graph)->nodes[0]->args[0]);
  body->inputs[0].value->name = "x";
  EXPECT_THAT(Print(context, **graph), HasSubstr("graph(%x.1: f32[2]) {\n    %b: f32[2] = aten::add.Tensor(%x.1, %x)"));
}

TEST(PrintParse, ByHand) {
  EXPECT_EQ(Again("# A comment.\n"
                  "graph(%x: f32[s0, 4]) where 0 <= s0 {\n"
                  "  %row  = aten::select.int(%x, 0, 0)       # \"m.py\":12\n"
                  "  %_    = aten::fill_.Scalar(%row, 0.)\n"
                  "  %_    = aten::relu(%x)\n"
                  "  return %row\n"
                  "}"),
            "graph(%x: f32[s0, 4]) where 0 <= s0 {\n"
            "  %row: f32[4] = aten::select.int(%x, 0, 0)\n"
            "  %0: f32[4] = aten::fill_.Scalar(%row, 0.)\n"
            "  %1: f32[s0, 4] = aten::relu(%x)\n"
            "  return %row\n"
            "}\n");
}

TEST(PrintParse, CustomOps) {
  RoundTrip(
      "op my::f(Tensor x, *, Any? k=None) -> (Tensor, Tensor[])\n"
      "\n"
      "graph(%x: f32[2]) {\n"
      "  %a: f32[2], %b: f32[2], %c: f32[2] = my::f(%x, k=[1, 2])\n"
      "  return %a\n"
      "}\n");
}

TEST(PrintParse, CustomOpsThatWrite) {
  const std::string text =
      "op my::f(Tensor(a!) x, Any(b!)? k=None) -> (Tensor(a), Tensor[])\n"
      "\n"
      "graph(%x: f32[2]) {\n"
      "  %a: f32[2], %b: f32[2] = my::f(%x)\n"
      "  return %a\n"
      "}\n";
  RoundTrip(text);
  Context context;
  const Result<Graph*> graph = Parse(context, text);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_TRUE((*graph)->nodes[0]->op->Writes());
}

TEST(PrintParse, OneNodeForMessages) {
  Context context;
  Result<Graph*> graph = Parse(context, "graph(%x: f32[s0, 256]) { %r: c64[s0, 129] = aten::_fft_r2c(%x, [1], 0, true) return %r }");
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(PrintNode(context, *(*graph)->nodes[0]), "%r: c64[s0, 129] = aten::_fft_r2c(%x: f32[s0, 256], [1], 0, true)");
}

TEST(PrintParse, Errors) {
  EXPECT_EQ(Again("graph(%x: f32[2]) {\n  %y = aten::relu(%z)\n  return %y\n}"), "2:19: %z is not defined");
  EXPECT_EQ(Again("graph(%x: f32[2]) { %x = aten::relu(%x) return %x }"), "1:21: %x is defined twice");
  EXPECT_EQ(Again("graph(%x: f99[2]) { return %x }"), "1:11: expected a type");
  EXPECT_EQ(Again("graph(%x: f32[2]) { %y = aten::no_such_op(%x) return %x }"), "1:26: 'aten::no_such_op' is no operator that is known");
  EXPECT_EQ(Again("graph(%x: f32[2]) { %y = aten::relu(%x, 2) return %x }"), "1:41: aten::relu takes 1 arguments");
  EXPECT_EQ(Again("graph(%x: f32[2]) { %y = aten::relu() return %x }"), "1:38: aten::relu needs an argument 'self'");
  EXPECT_EQ(Again("graph(%x: f32[2]) { %y = aten::relu(what=%x) return %x }"), "1:37: aten::relu has no argument 'what'");
  EXPECT_EQ(Again("graph(%x: f32[2]) { %y = aten::relu(\"x\") return %x }"), "1:37: this is nothing that aten::relu takes as 'self'");
  EXPECT_EQ(Again("graph(%x: f32[2]) { %y = aten::view(%x, [1, \"a\"]) return %x }"), "1:41: the elements of this list do not go together");
  EXPECT_EQ(Again("graph(%x: f32[2) { return %x }"), "1:16: expected ']'");
  EXPECT_THAT(Again("graph(%x: f32[2]) where s0 { return %x }"), HasSubstr("expected a range"));
  EXPECT_THAT(Again("graph(%x: f32[2]) { return %x } more"), HasSubstr("expected the end"));
  EXPECT_THAT(Again("graph(%x: f32[2]) { return \"no end }"), HasSubstr("this text never ends"));
}

// Cut anywhere, and with any character changed, a text is refused or read; it never crashes.
TEST(PrintParse, DamagedTexts) {
  const std::string text =
      "op my::f(Any? x=None) -> (Tensor)\n"
      "graph g(parameter \"w\" storage 1 = %w: f32[2]{1}@3 = tensor f32[2] [1., 2.], %p: bool[], user \"k\" = [1, s0]) where 0 <= s0 <= 4 {\n"
      "  %y: f32[2], _ = hop::cond(%p, graph(%a: int(s0)) { return %a }, graph() { return -1, 2.e5 }, [%w]) # c\n"
      "  %z: f32[s0 + 1, ?] = my::f(complex(1., nan))\n"
      "  return buffer \"b\" = %y, device(\"cpu\"), tensor u8[2] 0x01ff\n"
      "}\n";
  ASSERT_THAT(Again(text), HasSubstr("graph g("));
  for (size_t i = 0; i < text.size(); ++i) {
    Again(text.substr(0, i));
    std::string changed = text;
    changed[i] = "%\"[](){}=,#0-."[i % 15];
    Again(changed);
  }
}

TEST(Bind, Coerce) {
  Context context;
  const auto coerced = [&](ArgSchema schema, Arg arg) { return Coerce(context, schema, arg) ? std::optional(arg) : std::nullopt; };
  EXPECT_TRUE(SameArg(*coerced({.name = "f", .type = ArgType::Float}, int64_t{2}), 2.));
  EXPECT_TRUE(SameArg(*coerced({.name = "b", .type = ArgType::Bool}, int64_t{1}), true));
  EXPECT_FALSE(coerced({.name = "b", .type = ArgType::Bool}, int64_t{2}));
  EXPECT_TRUE(SameArg(*coerced({.name = "n", .type = ArgType::SymInt}, int64_t{2}), SymExpr(2)));
  EXPECT_TRUE(SameArg(*coerced({.name = "n", .type = ArgType::Int}, SymExpr(2)), int64_t{2}));
  EXPECT_FALSE(coerced({.name = "n", .type = ArgType::Int}, std::string_view("2")));
  EXPECT_FALSE(coerced({.name = "n", .type = ArgType::Int}, Arg()));
  EXPECT_TRUE(coerced({.name = "n", .type = ArgType::Int, .optional = true}, Arg()));
  EXPECT_EQ(std::get<Ints>(*coerced({.name = "k", .type = ArgType::IntList, .list_size = 3}, int64_t{2})).size(), 3u);
  EXPECT_TRUE(std::holds_alternative<Bools>(*coerced({.name = "m", .type = ArgType::BoolList}, ValueList())));
  EXPECT_TRUE(SameArg(Arg(std::nan("")), Arg(std::nan(""))));
  EXPECT_FALSE(SameArg(Arg(0.), Arg(-0.)));
}

}  // namespace
}  // namespace pt2onnx
