#include "serde/read_program.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/sym_parse.h"
#include "serde/graph_reader.h"
#include "serde/user_names.h"

namespace pt2onnx {
namespace {

constexpr int64_t kNewestMinor = 20;  // of schema major 8: torch 2.14

std::vector<std::string_view> Texts(JsonValue list) {
  std::vector<std::string_view> texts;
  for (const JsonValue item : list.Items())
    if (const auto text = item.AsString()) texts.push_back(*text);
  return texts;
}

// A bound that does not fit in 64 bits is none, as is an infinite one (torch 2.5).
std::optional<int64_t> ReadBound(JsonValue bound) {
  const std::optional<int64_t> x = bound.AsInt();
  return x == INT64_MAX || x == INT64_MIN ? std::nullopt : x;
}

// What the signature calls a kind of input or output, and the field with the name that it stands for; "" if it has none.
template <class Kind>
struct SpecKind {
  std::string_view tag;
  Kind kind;
  std::string_view field;
};
constexpr SpecKind<InputKind> kInputKinds[] = {
    {"parameter", InputKind::Parameter, "parameter_name"},
    {"buffer", InputKind::Buffer, "buffer_name"},
    {"tensor_constant", InputKind::Constant, "tensor_constant_name"},
    {"custom_obj", InputKind::Opaque, "custom_obj_name"},
};
constexpr SpecKind<OutputKind> kOutputKinds[] = {
    {"user_output", OutputKind::User, ""},
    {"loss_output", OutputKind::User, ""},
    {"token", OutputKind::Plain, ""},
    {"gradient_to_parameter", OutputKind::User, ""},
    {"gradient_to_user_input", OutputKind::User, ""},
    {"buffer_mutation", OutputKind::BufferMutation, "buffer_name"},
    {"parameter_mutation", OutputKind::ParameterMutation, "parameter_name"},
    {"user_input_mutation", OutputKind::InputMutation, "user_input_name"},
};
template <class Kind>
const SpecKind<Kind>* FindKind(std::span<const SpecKind<Kind>> kinds, std::string_view tag) {
  const auto row = std::find_if(kinds.begin(), kinds.end(), [&](const SpecKind<Kind>& kind) { return kind.tag == tag; });
  return row == kinds.end() ? nullptr : &*row;
}

class ProgramReader {
 public:
  ProgramReader(Context& context, Program& program) : state_(context), program_(program), root_(program.doc.root()) {}

  std::optional<Error> Read() {
    const JsonValue module = root_["graph_module"];
    if (!module["graph"].IsObject()) {
      return Error{"E0141", "holds no exported program: graph_module.graph is missing", "write it with torch.export.save"};
    }
    ReadVersions();
    ReadCallGraph(module["module_call_graph"]);
    program_.guards = Texts(root_["guards_code"]);
    program_.namedtuple_fields = module["treespec_namedtuple_fields"];
    program_.metadata = module["metadata"];
    program_.graph = GraphReader(state_, module["graph"], "graph_module.graph").Read();
    if (!state_.error) ReadSignature(module["signature"]);
    if (!state_.error) ReadRanges();
    return state_.error;
  }

 private:
  void ReadVersions() {
    Diagnostics& diagnostics = state_.context.diagnostics;
    const JsonValue version = root_["schema_version"];
    program_.schema_major = version["major"].AsInt().value_or(0);
    program_.schema_minor = version["minor"].AsInt().value_or(0);
    program_.torch_version = root_["torch_version"].AsString().value_or("");
    const bool known = program_.schema_major == 7 || (program_.schema_major == 8 && program_.schema_minor <= kNewestMinor);
    if (!known) {
      diagnostics.Warn({"W0141",
                        fmt::format("the file has schema version {}.{}, known are 7 and 8 up to 8.{}; reading it all the same", program_.schema_major,
                                    program_.schema_minor, kNewestMinor),
                        "compare the converted model's results with PyTorch's"});
    }
    program_.verifiers = Texts(root_["verifiers"]);
    if (const auto dialect = root_["dialect"].AsString(); dialect && program_.verifiers.empty()) program_.verifiers.push_back(*dialect);
    for (const auto [domain, number] : root_["opset_version"].Members()) program_.opsets.push_back({domain, number.AsInt().value_or(0)});
  }

  // After the graph, which says what kind each symbol is of.
  void ReadRanges() {
    for (const auto [expr, range] : root_["range_constraints"].Members()) {
      const RecordedRange row{expr, ReadBound(range["min_val"]), ReadBound(range["max_val"])};
      program_.ranges.push_back(row);
      const Status set = SetRange(state_.context.syms, expr, row.lo, row.hi);
      if (!set) state_.context.diagnostics.Warn({"W0142", fmt::format("the range of \"{}\" is left out: {}", expr, set.error().message), ""});
    }
  }

  // Entry 0 is the root: it has the trees of forward's arguments and results.
  void ReadCallGraph(JsonValue calls) {
    for (const JsonValue call : calls.Items()) {
      const std::string_view fqn = call["fqn"].AsString().value_or("");
      const JsonValue signature = call["signature"];
      if (!fqn.empty()) {
        program_.modules.push_back({fqn, signature});
        continue;
      }
      program_.in_spec = signature["in_spec"].AsString().value_or("");
      program_.out_spec = signature["out_spec"].AsString().value_or("");
      program_.forward_args = Texts(signature["forward_arg_names"]);
    }
  }

  void ReadSignature(JsonValue signature) {
    const JsonValue inputs = signature["input_specs"], outputs = signature["output_specs"];
    Graph& graph = *program_.graph;
    if (inputs.Size() != std::ssize(graph.inputs) || outputs.Size() != std::ssize(graph.outputs)) {
      return state_.Fail("E0147",
                         fmt::format("graph_module.signature: has {} inputs and {} outputs, the graph {} and {}", inputs.Size(), outputs.Size(),
                                     graph.inputs.size(), graph.outputs.size()),
                         "the file is damaged");
    }
    ReadSpecs("input_specs", inputs, graph.inputs, &ProgramReader::ReadInputSpec);
    ReadSpecs("output_specs", outputs, graph.outputs, &ProgramReader::ReadOutputSpec);
    NameUserInputs();
  }

  // Each is an object with one key, its kind.
  template <class Spec>
  void ReadSpecs(std::string_view list, JsonValue specs, std::vector<Spec>& out, void (ProgramReader::*read)(Spec&, std::string_view, JsonValue)) {
    size_t i = 0;
    for (const JsonValue spec : specs.Items()) {
      const auto sole = spec.Sole();
      if (!sole) return state_.Fail("E0142", fmt::format("graph_module.signature.{}[{}]: is no object with one key", list, i));
      (this->*read)(out[i++], sole->key, sole->value);
    }
  }

  void ReadInputSpec(GraphInput& input, std::string_view tag, JsonValue spec) {
    if (tag == "user_input" || tag == "constant_input") {
      const bool object = input.kind == InputKind::Opaque;
      if (!object) input.kind = InputKind::User;
      if (input.value) input.target = input.value->name;
      if (tag == "constant_input") ReadConstantInput(input, spec);
      return;
    }
    if (tag == "token") {
      input.kind = InputKind::Token;
      return;
    }
    const auto* row = FindKind<InputKind>(kInputKinds, tag);
    if (!row) return state_.Fail("E0146", fmt::format("inputs of the kind \"{}\" are not known", tag));
    const auto target = spec[row->field].AsString();
    if (!target || !input.value) {
      return state_.Fail("E0142",
                         fmt::format("graph_module.signature.input_specs: a {} without {}", tag, input.value ? row->field : "a placeholder"));
    }
    input.kind = row->kind;
    input.target = *target;
    input.persistent = spec["persistent"].AsBool().value_or(true);
  }

  void ReadConstantInput(GraphInput& input, JsonValue spec) {
    input.value = nullptr;
    input.target = spec["name"].AsString().value_or("");
    input.constant = GraphReader(state_, {}, "graph_module.signature.input_specs").ReadArgument(spec["value"]);
  }

  void ReadOutputSpec(GraphOutput& output, std::string_view tag, JsonValue spec) {
    const auto* row = FindKind<OutputKind>(kOutputKinds, tag);
    if (!row) return state_.Fail("E0146", fmt::format("outputs of the kind \"{}\" are not known", tag));
    output.kind = row->kind;
    if (!row->field.empty()) output.target = spec[row->field].AsString().value_or("");
  }

  // Top-level arguments go by their names in forward, leaves of structures by their placeholders.
  void NameUserInputs() {
    std::vector<GraphInput*> users;
    for (GraphInput& input : program_.graph->inputs)
      if (input.kind == InputKind::User) users.push_back(&input);
    const std::vector<std::string_view> names = UserInputNames(state_.context, program_.in_spec, program_.forward_args);
    if (names.size() != users.size()) return;
    for (size_t i = 0; i < users.size(); ++i)
      if (!names[i].empty()) users[i]->target = names[i];
  }

  ReadState state_;
  Program& program_;
  JsonValue root_;
};

}  // namespace

Result<Program> ReadProgram(Context& context, Archive archive) {
  Result<JsonDoc> doc = archive.ParseProgram();
  if (!doc) return doc.error();
  Program program{.archive = std::move(archive), .doc = std::move(*doc)};
  if (std::optional<Error> error = ProgramReader(context, program).Read()) return *error;
  return program;
}

}  // namespace pt2onnx
