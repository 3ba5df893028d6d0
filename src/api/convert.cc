#include "api/session.h"
#include "onnx/writer.h"
#include "passes/finish_model.h"
#include "pipeline.h"
#include "pt2onnx/pt2onnx.h"

namespace pt2onnx {
namespace {

// Facts about the program that have no place of their own in ONNX.
std::vector<std::pair<std::string, std::string>> Metadata(const Program& program, const ModelFacts& facts) {
  std::vector<std::pair<std::string, std::string>> metadata;
  if (!program.torch_version.empty()) metadata.emplace_back("pt2onnx.torch_version", program.torch_version);
  for (const StatePair& state : facts.state) metadata.emplace_back("pt2onnx.state." + state.name, state.output + " -> " + state.input);
  for (const auto& [position, what] : facts.left_out) metadata.emplace_back("pt2onnx.output." + std::to_string(position), what);
  if (!program.in_spec.empty()) metadata.emplace_back("pt2onnx.in_spec", program.in_spec);
  if (!program.out_spec.empty()) metadata.emplace_back("pt2onnx.out_spec", program.out_spec);
  return metadata;
}

}  // namespace

Report Convert(const std::string& path, const std::string& out_path, const Options& options) {
  Session session(path, options);
  if (!session.ok()) return session.Finish();
  Context& context = session.context;
  session.Stage("passes");
  Graph* graph = RunPasses(context, session.program(), Until::Onnx, options);
  if (!session.ok()) return session.Finish();
  session.Stage("finish");
  const ModelFacts facts = FinishModel(context, session.program(), *graph, options);
  if (!session.ok()) return session.Finish();
  session.report.statistics.push_back({"nodes", static_cast<int64_t>(graph->nodes.size())});
  session.Stage("write");
  const MappedFile& weights = session.program().archive.file();
  const Status written = WriteModel(context, {.graph = graph, .metadata = Metadata(session.program(), facts)}, out_path,
                                    {.external_data = options.external_data, .dim_names = options.dim_names, .weights_fd = weights.fd(), .weights_path = path});
  if (!written) session.Fail(written.error());
  return session.Finish();
}

}  // namespace pt2onnx
