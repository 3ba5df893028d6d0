// Programs written as programs again: without writes, or decomposed to Core ATen as well.
#include "api/session.h"
#include "passes/cleanup.h"
#include "pipeline.h"
#include "pt2onnx/pt2onnx.h"
#include "serde/write_pt2.h"

namespace pt2onnx {
namespace {

Report Rewrite(const std::string& path, const std::string& out_path, Until until, const Options& options) {
  Session session(path, options);
  if (!session.ok()) return session.Finish();
  session.Stage("passes");
  Graph* graph = RunPasses(session.context, session.program(), until, options, session.implementations());
  Cleanup(session.context, *graph);
  ReportPoison(session.context.diagnostics, *graph);
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

}  // namespace pt2onnx
