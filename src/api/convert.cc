#include "api/session.h"
#include "onnx/writer.h"
#include "passes/dim_names.h"
#include "passes/assertions.h"
#include "passes/finish_model.h"
#include "passes/functions.h"
#include "pipeline.h"
#include "pt2onnx/pt2onnx.h"
#include "serde/user_names.h"
#include "support/json_text.h"

namespace pt2onnx {
namespace {

// Where each input or output stands in what the user gives or gets: {"x": "x", "opts_a": "opts['a']"}
std::string Paths(const std::vector<std::pair<size_t, std::string>>& named, const std::vector<std::string>& paths) {
  std::string text = "{";
  for (const auto& [leaf, name] : named) {
    if (text.size() > 1) text += ", ";
    AppendJsonString(text, name);
    text += ": ";
    AppendJsonString(text, leaf < paths.size() ? paths[leaf] : "");
  }
  return text + "}";
}

// Facts about the program that have no place of their own in ONNX.
std::vector<std::pair<std::string, std::string>> Metadata(const Program& program, const ModelFacts& facts, bool kept) {
  std::vector<std::pair<std::string, std::string>> metadata;
  if (!program.torch_version.empty()) metadata.emplace_back("pt2onnx.torch_version", program.torch_version);
  for (const StatePair& state : facts.state) metadata.emplace_back("pt2onnx.state." + state.name, state.output + " -> " + state.input);
  for (const auto& [position, what] : facts.left_out) metadata.emplace_back("pt2onnx.output." + std::to_string(position), what);
  if (const auto paths = InputPaths(program.in_spec, program.forward_args, program.namedtuple_fields); !paths.empty())
    metadata.emplace_back("pt2onnx.inputs", Paths(facts.inputs, paths));
  if (const auto paths = OutputPaths(program.out_spec, program.namedtuple_fields); !paths.empty())
    metadata.emplace_back("pt2onnx.outputs", Paths(facts.outputs, paths));
  if (!program.in_spec.empty()) metadata.emplace_back("pt2onnx.in_spec", program.in_spec);
  if (!program.out_spec.empty()) metadata.emplace_back("pt2onnx.out_spec", program.out_spec);
  std::string assertions;
  for (const Node* node : program.graph->nodes)
    if (IsAssertion(*node->op)) assertions.append(assertions.empty() ? "" : "; ").append(MessageOf(*node).empty() ? node->op->name : MessageOf(*node));
  if (!assertions.empty()) metadata.emplace_back(kept ? "pt2onnx.assertions.kept" : "pt2onnx.assertions.dropped", assertions);
  return metadata;
}

}  // namespace

Report Convert(const std::string& path, const std::string& out_path, const Options& options) {
  Session session(path, options);
  if (!session.ok()) return session.Finish();
  Context& context = session.context;
  session.Stage("passes");
  Graph* graph = RunPasses(context, session.program(), Until::Onnx, options, session.implementations());
  if (!session.ok()) return session.Finish();
  session.Stage("finish");
  const Result<ModelFacts> facts = FinishModel(context, session.program(), *graph, options);
  if (!facts) session.FailUse(facts.error());
  const auto dim_names = NameDims(session.program(), *graph, options);
  if (!dim_names && facts) session.FailUse(dim_names.error());
  if (!facts || !dim_names || !session.ok()) return session.Finish();
  std::vector<const Graph*> functions;
  if (options.functions) functions = MakeFunctions(context, *graph);
  session.report.statistics.push_back({"nodes", static_cast<int64_t>(graph->nodes.size())});
  session.Stage("write");
  const MappedFile& weights = session.program().archive.file();
  const Status written = WriteModel(context, {.graph = graph, .functions = functions, .metadata = Metadata(session.program(), *facts, options.assertions == Options::Assertions::kKeep)}, out_path,
                                    {.external_data = options.external_data, .dim_names = *dim_names, .weights_fd = weights.fd(), .weights_path = path});
  if (!written) session.Fail(written.error());
  return session.Finish();
}

}  // namespace pt2onnx
