#include "serde/write_program.h"

#include <algorithm>
#include <unordered_set>

#include "ir/sym_parse.h"
#include "serde/graph_writer.h"
#include "serde/write_json.h"

namespace pt2onnx {
namespace {

bool IsMutation(const GraphOutput& output) {
  return output.kind == OutputKind::BufferMutation || output.kind == OutputKind::ParameterMutation || output.kind == OutputKind::InputMutation;
}

class ProgramWriter {
 public:
  ProgramWriter(Context& context, const Program& program, const Graph& graph)
      : state_{.context = context, .hints = {}, .defaults = {}},
        program_(program),
        root_(program.doc.root()),
        graph_(graph),
        writer_(state_, graph_) {}

  std::string Write() {
    const JsonValue module = root_["graph_module"];
    OrderOutputs();
    ReadHints(module["graph"]);
    const std::string graph = writer_.Write(module["graph"]["inputs"], module["graph"]["custom_obj_values"]);
    std::string metadata = "{}", fields = "{}", opsets = "{\"aten\": 10}";
    const auto copy = [](std::string& into, JsonValue value) {
      if (!value.IsObject()) return;
      into.clear();
      AppendJson(into, value);
    };
    copy(metadata, program_.metadata);
    copy(fields, program_.namedtuple_fields);
    copy(opsets, root_["opset_version"]);
    return fmt::format(
        "{{\"graph_module\": {{\"graph\": {}, \"signature\": {}, \"module_call_graph\": {}, \"metadata\": {}, \"treespec_namedtuple_fields\": {}}}, "
        "\"opset_version\": {}, \"range_constraints\": {}, \"schema_version\": {{\"major\": 8, \"minor\": 14}}, \"verifiers\": [\"ATEN\"], "
        "\"torch_version\": {}, \"guards_code\": {}}}",
        graph, Signature(module["signature"]), CallGraph(module["module_call_graph"]), metadata, fields, opsets, Ranges(),
        Quoted(program_.torch_version), ListText(program_.guards, Quoted));
  }

 private:
  // Tokens, changed inputs and state in the order of their placeholders, the user's outputs. A memory that was added has no output of its own:
  // the names that lie in it have.
  void OrderOutputs() {
    std::vector<GraphOutput> mutations, users;
    for (GraphOutput& output : graph_.outputs) {
      if (output.kind != OutputKind::InputMutation) continue;
      for (GraphInput& input : graph_.inputs) {
        if (!Holds(input, output)) continue;
        if (IsBuiltin(input.value->name)) input.value->name = state_.context.Join(input.value->name, "_1");
        output.target = input.value->name;
        break;
      }
    }
    const auto position = [&](const GraphOutput& output) {
      for (size_t i = 0; i < graph_.inputs.size(); ++i)
        if (Holds(graph_.inputs[i], output)) return i;
      return graph_.inputs.size();
    };
    const size_t recorded = static_cast<size_t>(root_["graph_module"]["graph"]["inputs"].Size());
    for (size_t i = recorded; i < graph_.inputs.size(); ++i)
      graph_.inputs[i].value->name = state_.context.Join("b_", AddedStateName(graph_.inputs[i]));
    for (const GraphOutput& output : graph_.outputs) {
      if (!IsMutation(output))
        users.push_back(output);
      else if (position(output) < recorded)
        mutations.push_back(output);
    }
    std::stable_sort(mutations.begin(), mutations.end(), [&](const auto& a, const auto& b) { return position(a) < position(b); });
    mutation_count_ = mutations.size();
    graph_.outputs = std::move(mutations);
    graph_.outputs.insert(graph_.outputs.end(), users.begin(), users.end());
  }

  // A loaded program cannot find a changed input again that is called like a function of Python's: it gets another name.
  static bool IsBuiltin(std::string_view name) {
    constexpr std::string_view kBuiltins[] = {"bin",    "bytes",      "callable", "chr",    "compile", "copyright",  "credits", "dict",    "dir",
                                              "divmod", "enumerate",  "eval",     "exec",   "exit",    "filter",     "format",  "getattr", "globals",
                                              "hash",   "help",       "hex",      "id",     "input",   "isinstance", "iter",    "license", "locals",
                                              "map",    "memoryview", "next",     "object", "oct",     "open",       "ord",     "print",   "property",
                                              "quit",   "repr",       "reversed", "sorted", "str",     "super",      "vars",    "zip"};
    return std::binary_search(std::begin(kBuiltins), std::end(kBuiltins), name);
  }

  static bool Holds(const GraphInput& input, const GraphOutput& output) {
    if (!input.value || (input.kind == InputKind::User) != (output.kind == OutputKind::InputMutation)) return false;
    return input.target == output.target || (input.kind == InputKind::User && input.value->name == output.target);
  }

  void ReadHints(JsonValue graph) {
    const auto read = [&](JsonValue size) {
      const JsonValue expr = size["as_expr"];
      const auto text = expr["expr_str"].AsString();
      const JsonValue hint = expr["hint"];
      if (!text || !hint.IsObject()) return;
      const Result<SymExpr> parsed = ParseSrepr(state_.context.syms, *text);
      if (!parsed) return;
      if (const auto x = hint["as_int"].AsInt()) state_.hints.try_emplace(*parsed, *x);
      if (const auto x = hint["as_float"].AsDouble()) state_.hints.try_emplace(*parsed, SymExpr::Float(*x));
    };
    for (const auto [name, tensor] : graph["tensor_values"].Members()) {
      if (state_.hints.empty() && tensor["device"].IsObject()) {
        state_.device.clear();
        AppendJson(state_.device, tensor["device"]);
      }
      for (const JsonValue size : tensor["sizes"].Items()) read(size);
    }
    for (const auto [name, size] : graph["sym_int_values"].Members()) read(size);
    for (const auto [name, size] : graph["sym_float_values"].Members()) read(size);
  }

  std::string Signature(JsonValue signature) {
    std::vector<std::string> inputs, outputs;
    for (const JsonValue spec : signature["input_specs"].Items()) {
      const GraphInput& input = graph_.inputs[inputs.size()];
      std::string& text = inputs.emplace_back();
      if (input.kind == InputKind::User && input.value && input.value->type.kind == Kind::Tensor)
        text = Tagged("user_input", Tagged("arg", TaggedName("as_tensor", writer_.NameOf(input.value))));
      else
        AppendJson(text, spec);
    }
    for (size_t i = inputs.size(); i < graph_.inputs.size(); ++i) {
      const GraphInput& input = graph_.inputs[i];
      inputs.push_back(fmt::format("{{\"buffer\": {{\"arg\": {{\"name\": {}}}, \"buffer_name\": {}, \"persistent\": true}}}}",
                                   Quoted(writer_.NameOf(input.value)), Quoted(AddedStateName(input))));
    }
    // Which kind of output each of the user's is, is recorded: results, a loss, gradients, tokens.
    std::vector<JsonValue> specs;
    for (const JsonValue spec : signature["output_specs"].Items())
      if (const auto sole = spec.Sole(); sole && !sole->key.ends_with("_mutation")) specs.push_back(spec);
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const bool user = i >= mutation_count_;
      outputs.push_back(user ? UserOutput(graph_.outputs[i], specs[i - mutation_count_]) : Mutation(graph_.outputs[i]));
    }
    const auto self = [](const std::string& text) { return text; };
    return fmt::format("{{\"input_specs\": {}, \"output_specs\": {}}}", ListText(inputs, self), ListText(outputs, self));
  }

  std::string Mutation(const GraphOutput& output) {
    const std::string_view kind = output.kind == OutputKind::InputMutation    ? "user_input"
                                  : output.kind == OutputKind::BufferMutation ? "buffer"
                                                                              : "parameter";
    Value* const* value = std::get_if<Value*>(&output.value);
    return fmt::format("{{\"{0}_mutation\": {{\"arg\": {{\"name\": {1}}}, \"{0}_name\": {2}}}}}", kind, Quoted(value ? writer_.NameOf(*value) : ""),
                       Quoted(output.target));
  }

  std::string UserOutput(const GraphOutput& output, JsonValue spec) {
    const auto sole = spec.Sole();
    Value* const* value = std::get_if<Value*>(&output.value);
    if (!value || sole->key == "user_output") return Tagged("user_output", Tagged("arg", writer_.OutputArgument(output)));
    std::string fields = fmt::format("\"arg\": {{\"name\": {}}}", Quoted(writer_.NameOf(*value)));
    for (const auto [key, field] : sole->value.Members())
      if (key != "arg") {
        fields += fmt::format(", {}: ", Quoted(key));
        AppendJson(fields, field);
      }
    return Tagged(sole->key, "{" + fields + "}");
  }

  // Signatures of inner modules name values of the graph that was: the root's alone has a use.
  std::string CallGraph(JsonValue calls) {
    std::vector<std::string> texts;
    for (const JsonValue call : calls.Items()) {
      const std::string_view fqn = call["fqn"].AsString().value_or("");
      std::string signature = "null";
      if (fqn.empty() && call["signature"].IsObject()) {
        signature.clear();
        AppendJson(signature, call["signature"]);
      }
      texts.push_back(fmt::format("{{\"fqn\": {}, \"signature\": {}}}", Quoted(fqn), signature));
    }
    return ListText(texts, [](const std::string& text) { return text; });
  }

  std::string Ranges() {
    const auto bound = [](const std::optional<int64_t>& x) { return x ? fmt::format("{}", *x) : "null"; };
    std::string out = "{";
    for (const RecordedRange& range : program_.ranges)
      out +=
          fmt::format("{}{}: {{\"min_val\": {}, \"max_val\": {}}}", out.size() > 1 ? ", " : "", Quoted(range.expr), bound(range.lo), bound(range.hi));
    return out + "}";
  }

  WriteState state_;
  const Program& program_;
  JsonValue root_;
  Graph graph_;
  GraphWriter writer_;
  size_t mutation_count_ = 0;
};

}  // namespace

std::string AddedStateName(const GraphInput& input) {
  std::string name(input.target);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

std::string WriteProgram(Context& context, const Program& program, const Graph& graph) { return ProgramWriter(context, program, graph).Write(); }

}  // namespace pt2onnx
