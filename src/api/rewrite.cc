// Programs written as programs again: without writes, or decomposed to Core ATen as well.
#include <set>

#include "api/session.h"
#include "passes/cleanup.h"
#include "passes/eager_form.h"
#include "pipeline.h"
#include "pt2onnx/pt2onnx.h"
#include "serde/write_pt2.h"

namespace pt2onnx {
namespace {

Graph* InEagerForm(Context& context, const Graph& from, bool core) {
  Graph* graph = context.NewGraph();
  GraphSink sink(context, *graph);
  EagerForm eager(sink, core);
  Replay(from, eager);
  RemoveDeadCode(context, *graph);
  return graph;
}

// What stays although PyTorch would take it apart.
void WarnOfComposite(Diagnostics& diagnostics, const Graph& graph) {
  std::set<std::string_view> left;
  const auto look = [&](auto&& self, const Graph& at) -> void {
    for (const Node* node : at.nodes) {
      if (node->op->Has(kComposite) && !node->op->Has(kCore) && node->op->name != "aten::item") left.insert(node->op->name);
      for (const Arg& arg : node->args)
        if (Graph* const* body = std::get_if<Graph*>(&arg)) self(self, **body);
    }
  };
  look(look, graph);
  std::string names;
  for (const std::string_view name : left) names.append(names.empty() ? "" : ", ").append(name);
  if (!names.empty())
    diagnostics.Warn({"W0203", "not in Core ATen, and left as they are: " + names, "run_decompositions of the loaded program takes them apart"});
}

Report Rewrite(const std::string& path, const std::string& out_path, Until until, const Options& options) {
  Session session(path, options);
  if (!session.ok()) return session.Finish();
  session.Stage("passes");
  Graph* graph = RunPasses(session.context, session.program(), until, options, session.implementations());
  Cleanup(session.context, *graph);  // before outputs are told apart: nothing may merge them again
  graph = InEagerForm(session.context, *graph, until == Until::CoreAten);
  ReportPoison(session.context.diagnostics, *graph);
  if (!session.ok()) return session.Finish();
  if (until == Until::CoreAten) WarnOfComposite(session.context.diagnostics, *graph);
  session.report.statistics.push_back({"nodes", static_cast<int64_t>(graph->nodes.size())});
  session.Stage("write");
  const Status written = WritePt2(session.context, session.program(), *graph, out_path);
  if (!written) session.Fail(written.error());
  return session.Finish();
}

}  // namespace

Report Functionalize(const std::string& path, const std::string& out_path, const Options& options) {
  return Rewrite(path, out_path, Until::Functional, options);
}

Report Decompose(const std::string& path, const std::string& out_path, const Options& options) {
  return Rewrite(path, out_path, Until::CoreAten, options);
}

}  // namespace pt2onnx
