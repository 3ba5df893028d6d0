// Programs written as programs again: without writes, or decomposed to Core ATen as well.
#include "api/session.h"
#include "passes/cleanup.h"
#include "pipeline.h"
#include "pt2onnx/pt2onnx.h"
#include "serde/write_pt2.h"

namespace pt2onnx {
namespace {

// What could not be carried out stands in the graph as poison: what is still there is needed for something.
void ReportPoison(Context& context, const Graph& graph) {
  for (const Node* node : graph.nodes) {
    if (node->op->name == "pt2onnx::poison") context.diagnostics.Report(static_cast<uint32_t>(std::get<int64_t>(node->args[0])));
    for (const Arg& arg : node->args)
      if (Graph* const* body = std::get_if<Graph*>(&arg)) ReportPoison(context, **body);
  }
}

Report Rewrite(const std::string& path, const std::string& out_path, Until until, const Options& options) {
  Session session(path, options);
  if (!session.ok()) return session.Finish();
  session.Stage("passes");
  Graph* graph = RunPasses(session.context, session.program(), until, options, session.implementations());
  Cleanup(session.context, *graph);
  ReportPoison(session.context, *graph);
  if (!session.ok()) return session.Finish();
  session.report.statistics.push_back({"nodes", static_cast<int64_t>(graph->nodes.size())});
  session.Stage("write");
  const Status written = WritePt2(session.context, session.program(), *graph, out_path);
  if (!written) session.Fail(written.error());
  return session.Finish();
}

}  // namespace

Report Functionalize(const std::string& path, const std::string& out_path, const Options& options) {
  return Rewrite(path, out_path, Until::FunctionalFile, options);
}

Report Decompose(const std::string& path, const std::string& out_path, const Options& options) {
  return Rewrite(path, out_path, Until::CoreFile, options);
}

Report Explain(const std::string& path, const Options&) {
  Report report;
  report.input = path;
  AddError({"E0902", "explain is not in this version yet", "use inspect --stage functional"}, report);
  return report;
}

}  // namespace pt2onnx
