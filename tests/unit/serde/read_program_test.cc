#include "serde/read_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/schema_parse.h"
#include "ir/verify.h"
#include "program_maker.h"

namespace pt2onnx {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kS0 = "Symbol('s0', positive=True, integer=True)";

JsonGraph OneNode(std::string target, std::vector<std::string> inputs, std::vector<std::string> sizes = {"2", "3"}) {
  return {.inputs = {Tensor("x")},
          .nodes = {NodeJson(target, inputs, {Tensor("y")})},
          .outputs = {Tensor("y")},
          .tensors = {Meta("x", sizes), Meta("y", sizes)}};
}
std::string Text(const JsonGraph& graph) { return ReadText(JsonProgram{.graph = graph}.Json()); }

TEST(ReadProgram, ArgumentsAreInSchemaOrderWithDefaultsFilled) {
  const JsonGraph graph = OneNode("torch.ops.aten.add.Tensor", {Named("other", R"({"as_int": 2})"), Named("self", Tensor("x"))});
  Context context;
  Result<Program> program = ReadJson(context, JsonProgram{.graph = graph}.Json());
  ASSERT_TRUE(program) << program.error().message;
  const Node& node = *program->graph->nodes[0];
  EXPECT_EQ(node.op->name, "aten::add.Tensor");
  ASSERT_EQ(node.args.size(), 3u);
  EXPECT_EQ(std::get<Value*>(node.args[0])->name, "x");
  EXPECT_EQ(std::get<int64_t>(node.args[1]), 2);  // a number where a tensor may be stays one
  EXPECT_EQ(std::get<int64_t>(node.args[2]), 1);  // alpha
  EXPECT_EQ(context.locs[node.loc].node, "y");
  EXPECT_TRUE(Verify(*program->graph, Stage::Training).empty());
  EXPECT_TRUE(program->IsTraining());
  EXPECT_EQ(program->modules[0].fqn, "fc");
}

TEST(ReadProgram, NumbersAreWhatTheSchemaSays) {
  EXPECT_THAT(Text(OneNode("torch.ops.aten.elu.default", {Named("self", Tensor("x")), Named("alpha", R"({"as_int": 2})")})),
              HasSubstr("aten::elu(%x, 2)"));
  EXPECT_THAT(Text(OneNode("torch.ops.aten.dropout.default",
                           {Named("input", Tensor("x")), Named("p", R"({"as_int": 1})"), Named("train", R"({"as_bool": true})")})),
              HasSubstr("aten::dropout(%x, 1., true)"));
  EXPECT_THAT(Text(OneNode("torch.ops.aten.avg_pool2d.default", {Named("self", Tensor("x")), Named("kernel_size", R"({"as_int": 3})")})),
              HasSubstr("aten::avg_pool2d(%x, [3, 3])"));
  EXPECT_THAT(Text(OneNode("torch.ops.aten.clamp.default", {Named("self", Tensor("x")), Named("max", R"({"as_float": "Infinity"})")})),
              HasSubstr("aten::clamp(%x, none, inf)"));
  EXPECT_THAT(Text(OneNode("torch.ops.aten.clamp.default", {Named("self", Tensor("x")), Named("max", R"({"as_float": -Infinity})")})),
              HasSubstr("aten::clamp(%x, none, -inf)"));
  EXPECT_THAT(Text(OneNode("torch.ops.aten.slice.Tensor", {Named("self", Tensor("x")), Named("end", R"({"as_int": 9223372036854775808})")})),
              HasSubstr("aten::slice.Tensor(%x, 0, none, 9223372036854775807)"));
  EXPECT_THAT(Text(OneNode("torch.ops.aten.eq.Scalar", {Named("self", Tensor("x")), Named("other", R"({"as_int": 9223372036854775808})")})),
              HasSubstr("aten::eq.Scalar(%x, 9.223372036854776e+18)"));
  EXPECT_THAT(Text(OneNode("torch.ops.aten.to.dtype", {Named("self", Tensor("x")), Named("dtype", R"({"as_scalar_type": 13})")})),
              HasSubstr("aten::to.dtype(%x, bf16)"));
}

TEST(ReadProgram, SizesAreExpressionsAndNodesThatComputeThemVanish) {
  const JsonGraph graph{
      .inputs = {Tensor("x")},
      .nodes = {NodeJson("torch.ops.aten.sym_size.int", {Named("self", Tensor("x")), Named("dim", R"({"as_int": 0})")},
                         {R"({"as_sym_int": {"as_name": "n"}})"}),
                NodeJson("_operator.mul", {Named("a", R"({"as_sym_int": {"as_name": "n"}})"), Named("b", R"({"as_int": 2})")},
                         {R"({"as_sym_int": {"as_name": "m"}})"}),
                NodeJson("torch.ops.aten.view.default",
                         {Named("self", Tensor("x")), Named("size", R"({"as_sym_ints": [{"as_name": "m"}, {"as_int": 2}]})")}, {Tensor("y")})},
      .outputs = {Tensor("y"), R"({"as_sym_int": {"as_name": "m"}})"},
      .tensors = {Meta("x", {kS0, "4"}), Meta("y", {fmt::format("Mul(Integer(2), {})", kS0), "2"})},
      .ints = {SymRecord("n", kS0), SymRecord("m", fmt::format("Mul(Integer(2), {})", kS0))}};
  EXPECT_EQ(ReadText(JsonProgram{.graph = graph, .ranges = {R"("s0": {"min_val": 2, "max_val": 64})"}}.Json()),
            "graph(%x: f32[s0, 4]) where 2 <= s0 <= 64 {\n"
            "  %y: f32[2*s0, 2] = aten::view(%x, [2*s0, 2])\n"
            "  return %y, 2*s0\n"
            "}\n");
}

TEST(ReadProgram, InfixOfTorch25) {
  EXPECT_THAT(Text(OneNode("torch.ops.aten.relu.default", {Named("self", Tensor("x"))}, {"2*s0 + 1", "(s1//2)"})), HasSubstr("f32[2*s0 + 1, s1//2]"));
}

TEST(ReadProgram, ItemDefinesItsSymbol) {
  const JsonGraph graph{.inputs = {Tensor("x")},
                        .nodes = {NodeJson("torch.ops.aten.item.default", {Named("self", Tensor("x"))}, {R"({"as_sym_int": {"as_name": "item"}})"}),
                                  NodeJson("torch.ops.aten.zeros.default",
                                           {Named("size", R"({"as_sym_ints": [{"as_name": "item"}, {"as_int": 3}]})"),
                                            Named("device", R"({"as_device": {"type": "cpu", "index": null}})")},
                                           {Tensor("y")})},
                        .outputs = {Tensor("y")},
                        .tensors = {Meta("x", {}, {}, 5), Meta("y", {"Symbol('u0', integer=True)", "3"}, {"3"})},
                        .ints = {SymRecord("item", "Symbol('u0', integer=True)")}};
  EXPECT_THAT(Text(graph), HasSubstr("%item: int(u0) = aten::item(%x)\n  %y: f32[u0, 3] = aten::zeros([u0, 3], device=device(\"cpu\"))"));
}

TEST(ReadProgram, SizeAmongTensorsOfAHigherOrderOp) {
  const JsonGraph body{.inputs = {R"({"as_sym_int": {"as_name": "n"}})", Tensor("x")},
                       .nodes = {NodeJson("torch.ops.aten.add.Tensor",
                                          {Named("self", Tensor("x")), Named("other", R"({"as_sym_int": {"as_name": "n"}})")}, {Tensor("a")})},
                       .outputs = {Tensor("a")},
                       .tensors = {Meta("x", {kS0}), Meta("a", {kS0})},
                       .ints = {SymRecord("n", kS0)}};
  const std::string graph_arg = fmt::format(R"({{"as_graph": {{"name": "g", "graph": {}}}}})", body.Json());
  const JsonGraph graph{.inputs = {Tensor("p"), Tensor("x")},
                        .nodes = {NodeJson("torch.ops.higher_order.cond",
                                           {Named("", Tensor("p")), Named("", graph_arg), Named("", graph_arg),
                                            Named("", R"({"as_tensors": [{"name": "n"}, {"name": "x"}]})")},
                                           {R"({"as_tensors": [{"name": "y"}]})"})},  // one-tuple of torch 2.6
                        .outputs = {Tensor("y")},
                        .tensors = {Meta("p", {}, {}, 12), Meta("x", {kS0}), Meta("y", {kS0})},
                        .ints = {SymRecord("n", kS0)}};
  EXPECT_EQ(Text(graph),
            "graph(%p: bool[], %x: f32[s0]) where 0 <= s0 {\n"
            "  %0: int(s0) = sym::value(s0)\n"
            "  %y: f32[s0] = hop::cond(%p, graph g(%n: int(s0), %x: f32[s0]) {\n"
            "    %a: f32[s0] = aten::add.Tensor(%x, s0)\n"
            "    return %a\n"
            "  }, graph g(%n: int(s0), %x: f32[s0]) {\n"
            "    %a: f32[s0] = aten::add.Tensor(%x, s0)\n"
            "    return %a\n"
            "  }, [%0, %x])\n"
            "  return %y\n"
            "}\n");
}

TEST(ReadProgram, OperandsThatStandLooseAreGathered) {
  const JsonGraph body{.inputs = {Tensor("a"), Tensor("b")}, .nodes = {}, .outputs = {Tensor("b")}, .tensors = {Meta("a", {"2"}), Meta("b", {"2"})}};
  const JsonGraph graph{
      .inputs = {Tensor("x"), Tensor("y")},
      .nodes = {NodeJson("torch.ops.higher_order.wrap_with_set_grad_enabled",
                         {Named("", R"({"as_bool": false})"), Named("", fmt::format(R"({{"as_graph": {{"name": "", "graph": {}}}}})", body.Json())),
                          Named("", Tensor("x")), Named("", Tensor("y"))},
                         {Tensor("z")})},
      .outputs = {Tensor("z")},
      .tensors = {Meta("x", {"2"}), Meta("y", {"2"}), Meta("z", {"2"})}};
  EXPECT_THAT(Text(graph), HasSubstr("hop::wrap_with_set_grad_enabled(false, graph(%a: f32[2], %b: f32[2]) {\n    return %b\n  }, [%x, %y])"));
}

TEST(ReadProgram, Signature) {
  JsonProgram program{.graph = OneNode("torch.ops.aten.relu.default", {Named("self", Tensor("x"))})};
  program.graph.inputs = {Tensor("p_w"),   Tensor("b_n"), Tensor("c_t"), Tensor("x"), R"({"as_int": 3})", R"({"as_sym_int": {"as_name": "n"}})",
                          Tensor("scale"), Tensor("obj")};
  program.graph.inputs.back() = R"({"as_custom_obj": {"name": "obj", "class_fqn": "q.Q"}})";
  for (const char* name : {"p_w", "b_n", "c_t", "scale"}) program.graph.tensors.push_back(Meta(name, {"1"}));
  program.graph.ints = {SymRecord("n", "Symbol('s9', integer=True)")};
  program.graph.objects = {R"("obj": {"name": "obj", "class_fqn": "q.Q"})"};
  program.input_specs = {R"({"parameter": {"arg": {"name": "p_w"}, "parameter_name": "fc.W"}})",
                         R"({"buffer": {"arg": {"name": "b_n"}, "buffer_name": "n", "persistent": false}})",
                         R"({"tensor_constant": {"arg": {"name": "c_t"}, "tensor_constant_name": "t"}})",
                         R"({"user_input": {"arg": {"as_tensor": {"name": "x"}}}})",
                         R"({"constant_input": {"name": "k", "value": {"as_int": 3}}})",
                         R"({"user_input": {"arg": {"as_sym_int": {"as_name": "n"}}}})",
                         R"({"user_input": {"arg": {"as_tensor": {"name": "scale"}}}})",
                         R"({"custom_obj": {"arg": {"name": "obj", "class_fqn": "q.Q"}, "custom_obj_name": "q"}})"};
  program.graph.outputs = {Tensor("y"), Tensor("y"), R"({"as_none": true})", R"({"as_string": "s"})"};
  program.output_specs = {R"({"buffer_mutation": {"arg": {"name": "y"}, "buffer_name": "n"}})",
                          R"({"user_input_mutation": {"arg": {"name": "y"}, "user_input_name": "x"}})"};
  program.in_spec =
      R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": "builtins.tuple", "context": "null", "children_spec": [)"
      R"({"type": null, "context": null, "children_spec": []}, {"type": "builtins.list", "context": "null", "children_spec": [)"
      R"({"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}]}]}, )"
      R"({"type": "builtins.dict", "context": "[\"Scale\"]", "children_spec": [{"type": null, "context": null, "children_spec": []}]}]}])";
  program.forward_args = R"("X", "opts", "wrong")";
  EXPECT_THAT(ReadText(program.Json()), StartsWith("graph(\n"
                                                   "    parameter \"fc.W\" = %p_w: f32[1],\n"
                                                   "    buffer \"n\" transient = %b_n: f32[1],\n"
                                                   "    constant \"t\" = %c_t: f32[1],\n"
                                                   "    user \"X\" = %x: f32[2, 3],\n"
                                                   "    user \"k\" = 3,\n"
                                                   "    %n: int(s9),\n"
                                                   "    user \"Scale\" = %scale: f32[1],\n"
                                                   "    object \"q\" = %obj: opaque\n"
                                                   ") {\n"));
  EXPECT_THAT(ReadText(program.Json()), HasSubstr("return buffer \"n\" = %y, input \"x\" = %y, none, \"s\"\n"));
}

TEST(ReadProgram, SparseIsOpaque) {
  JsonProgram program{.graph = OneNode("torch.ops.aten.relu.default", {Named("self", Tensor("x"))})};
  program.graph.tensors[0] = Meta("x", {"2", "3"}, {"0", "0"}, 7, 1);
  EXPECT_THAT(ReadText(program.Json()), HasSubstr("%x: opaque f32[2, 3]{0, 0}"));
}

TEST(ReadProgram, RangesOfExpressionsAndWithoutEnd) {
  JsonProgram program{.graph = OneNode("torch.ops.aten.relu.default", {Named("self", Tensor("x"))}, {"2*s6 + 1"})};
  program.ranges = {R"("2*s6 + 1": {"min_val": 5, "max_val": 9})", R"("s6": {"min_val": 0, "max_val": null})",
                    R"("u0": {"min_val": -Infinity, "max_val": 9223372036854775809})"};
  EXPECT_THAT(ReadText(program.Json()), HasSubstr("where 5 <= 2*s6 + 1 <= 9, 0 <= s6 {"));
}

TEST(ReadProgram, SchemaOfAnUnknownOpGrowsWithItsUses) {
  JsonGraph graph = OneNode("torch.ops.my.f.default", {Named("x", Tensor("x"))});
  graph.nodes.push_back(NodeJson("torch.ops.my.f.default", {Named("x", Tensor("y")), Named("k", R"({"as_int": 2})")}, {Tensor("z")}));
  graph.tensors.push_back(Meta("z", {"1"}));
  const std::string text = Text(graph);
  EXPECT_EQ(text,
            "op my::f(Any? x=None, Any? k=None) -> (Tensor)\n\n"
            "graph(%x: f32[2, 3]) {\n"
            "  %y: f32[2, 3] = my::f(%x)\n"
            "  %z: f32[1] = my::f(%y, 2)\n"
            "  return %y\n"
            "}\n");
  Context other;
  Result<Graph*> parsed = Parse(other, text);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(Print(other, **parsed), text);
}

TEST(ReadProgram, UnknownOpsHaveIdsOfTheirOwn) {
  JsonGraph graph = OneNode("torch.ops.my.f.default", {Named("x", Tensor("x"))});
  graph.nodes.push_back(NodeJson("torch.ops.my.f.default", {Named("x", Tensor("y")), Named("k", R"({"as_int": 2})")}, {Tensor("z")}));
  graph.nodes.push_back(NodeJson("torch.ops.my.g.default", {Named("x", Tensor("z"))}, {Tensor("w")}));
  for (const char* name : {"z", "w"}) graph.tensors.push_back(Meta(name, {"1"}));
  Context context;
  Result<Program> program = ReadJson(context, JsonProgram{.graph = graph}.Json());
  ASSERT_TRUE(program) << program.error().message;
  const std::vector<Node*>& nodes = program->graph->nodes;
  EXPECT_EQ(nodes[0]->op->id, nodes[1]->op->id);
  EXPECT_NE(nodes[1]->op->id, nodes[2]->op->id);
}

TEST(ReadProgram, AnUnknownOpWithoutResultMayWrite) {
  JsonGraph graph = OneNode("torch.ops.aten.relu.default", {Named("self", Tensor("x"))});
  graph.nodes.push_back(NodeJson("torch.ops.my.g.default", {Named("x", Tensor("y")), Named("k", R"({"as_int": 2})")}, {}));
  EXPECT_THAT(Text(graph), StartsWith("op my::g(Any(a!)? x=None, Any(a!)? k=None) -> ()\n"));
}

TEST(ReadProgram, GivenSchemasAreTakenFirst) {
  Context context;
  Result<OpSchema> schema = ParseSchema("my::f(Tensor(a!) x, int[2] k=1) -> Tensor", context);
  ASSERT_TRUE(schema);
  context.RegisterOp(*schema);
  Result<Program> program =
      ReadJson(context, JsonProgram{.graph = OneNode("torch.ops.my.f.default", {Named("x", Tensor("x")), Named("k", R"({"as_int": 4})")})}.Json());
  ASSERT_TRUE(program) << program.error().message;
  const Node& node = *program->graph->nodes[0];
  EXPECT_TRUE(node.op->Writes());
  EXPECT_EQ(std::get<Ints>(node.args[1]).size(), 2u);
}

TEST(ReadProgram, AutoFunctionalizedIsACallOnClones) {
  JsonGraph graph =
      OneNode("torch.ops.higher_order.auto_functionalized_v2",
              {Named("", R"({"as_operator": "torch.ops.my.mut.default"})"), Named("k", R"({"as_float": 2.0})"),
               Named("_x_base_index", R"({"as_int": 0})"), Named("_x_slice_dim", R"({"as_int": 0})"), Named("_x_slice_start", R"({"as_int": 1})"),
               Named("_x_slice_end", R"({"as_int": 2})"), Named("_all_bases", R"({"as_tensors": [{"name": "x"}]})")});
  graph.nodes[0].replace(graph.nodes[0].find(R"("outputs": [)") + 12, 0, R"({"as_none": true}, )");
  EXPECT_THAT(Text(graph), HasSubstr("  %y: f32[2, 3] = aten::clone(%x)\n"
                                     "  %0: f32[1, 3]@3 = aten::slice.Tensor(%y, 0, 1, 2)\n"
                                     "  my::mut(%0, 2.)\n"
                                     "  return %y\n"));
}

TEST(ReadProgram, ErrorsSayWhereAndWhat) {
  const std::string x = Tensor("x");
  EXPECT_THAT(ReadText("{}"), StartsWith("E0141"));
  EXPECT_THAT(Text(OneNode("torch.ops.aten.relu.default", {Named("self", Tensor("nobody"))})),
              HasSubstr("E0143 graph_module.graph.nodes[0] (y), argument self: %nobody has no entry"));
  EXPECT_THAT(Text(OneNode("torch.ops.aten.relu.default", {Named("self", Tensor("y"))})), HasSubstr("%y is used before it is defined"));
  EXPECT_THAT(Text(OneNode("torch.ops.aten.relu.default", {})), HasSubstr("E0145 graph_module.graph.nodes[0] (y): aten::relu gets no \"self\""));
  EXPECT_THAT(Text(OneNode("torch.ops.aten.relu.default", {Named("self", R"({"as_string": "x"})")})), HasSubstr("E0145"));
  EXPECT_THAT(Text(OneNode("torch.ops.aten.relu.default", {Named("self", x), Named("what", x)})),
              HasSubstr("argument what: aten::relu has no place for it"));
  EXPECT_THAT(Text(OneNode("torch.ops.aten.relu.default", {Named("self", R"({"as_new": 1})")})), HasSubstr("E0146"));
  EXPECT_THAT(Text(OneNode("torch.ops.aten.relu.default", {Named("self", x)}, {"Nonsense(("})), StartsWith("E0144"));
  JsonProgram program{.graph = OneNode("torch.ops.aten.relu.default", {Named("self", x)})};
  program.graph.nodes.push_back(program.graph.nodes[0]);
  EXPECT_THAT(ReadText(program.Json()), HasSubstr("%y is defined twice"));
}

TEST(ReadProgram, OtherSchemaVersionsAreNoted) {
  Context context;
  JsonProgram program{.graph = OneNode("torch.ops.aten.relu.default", {Named("self", Tensor("x"))}), .schema_version = R"({"major": 9, "minor": 1})"};
  ASSERT_TRUE(ReadJson(context, program.Json()));
  ASSERT_EQ(context.diagnostics.warnings().size(), 1u);
  EXPECT_EQ(context.diagnostics.warnings()[0].code, "W0141");
}

// Every value of a whole program replaced by another kind of value: an error or a program, never a crash.
TEST(ReadProgram, AnyValueMayBeAnythingElse) {
  const JsonGraph body{.inputs = {Tensor("a")}, .nodes = {}, .outputs = {Tensor("a")}, .tensors = {Meta("a", {kS0, "2"})}};
  JsonProgram program{
      .graph = {.inputs = {Tensor("p_w"), Tensor("x")},
                .nodes = {NodeJson("torch.ops.aten.view.default",
                                   {Named("self", Tensor("x")), Named("size", R"({"as_sym_ints": [{"as_name": "n"}, {"as_int": 2}]})")},
                                   {Tensor("y")}),
                          NodeJson("torch.ops.higher_order.wrap_with_set_grad_enabled",
                                   {Named("", R"({"as_bool": false})"),
                                    Named("", fmt::format(R"({{"as_graph": {{"name": "g", "graph": {}}}}})", body.Json())), Named("", Tensor("y"))},
                                   {R"({"as_tensors": [{"name": "z"}]})"}),
                          NodeJson("torch.ops.my.f.default",
                                   {Named("k", R"({"as_optional_tensors": [{"as_none": true}, {"as_tensor": {"name": "z"}}]})")},
                                   {R"({"as_none": true})"})},
                .outputs = {Tensor("z")},
                .tensors = {Meta("p_w", {"1"}), Meta("x", {kS0, "2"}), Meta("y", {kS0, "2"}), Meta("z", {kS0, "2"})},
                .ints = {SymRecord("n", kS0)}},
      .input_specs = {R"({"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}})"},
      .ranges = {R"("s0": {"min_val": 0, "max_val": 8})"},
      .in_spec = R"([1, {"type": "t", "context": "null", "children_spec": []}])"};
  const std::string json = program.Json();
  ASSERT_THAT(ReadText(json), StartsWith("op my::f"));
  int read = 0, refused = 0;
  for (size_t at = 0; at < json.size(); ++at) {
    const bool value = (json[at] == ' ' && (json[at - 1] == ':' || json[at - 1] == ',')) || json[at] == '[';
    if (!value) continue;
    const size_t begin = at + 1;
    size_t end = begin;
    int depth = 0;
    bool quoted = false;
    for (; end < json.size(); ++end) {
      const char c = json[end];
      if (quoted) {
        if (c == '\\')
          ++end;
        else if (c == '"')
          quoted = false;
        continue;
      }
      if (c == '"') quoted = true;
      if (depth == 0 && (c == ',' || c == ']' || c == '}' || c == ':')) break;
      depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    }
    constexpr const char* kOthers[] = {"7", "\"x\"", "[]", "{}", "[[1]]", "{\"as_name\": 3}", "1e400"};
    for (const char* other : {"null", kOthers[at % 7]}) {
      Context context;
      Result<Program> result = ReadJson(context, json.substr(0, begin) + other + json.substr(end));
      if (!result) {
        ++refused;
        continue;
      }
      ++read;
      const std::string text = Print(context, *result->graph);
      Context fresh;
      EXPECT_TRUE(Parse(fresh, text)) << text;
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace pt2onnx
