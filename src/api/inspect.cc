#include "api/session.h"
#include "ir/print.h"
#include "passes/cleanup.h"
#include "pipeline.h"
#include "pt2onnx/pt2onnx.h"

namespace pt2onnx {

Report Inspect(const std::string& path, const Options& options) {
  Session session(path, options);
  if (!session.ok()) return session.Finish();
  Graph* graph = session.program().graph;
  if (options.stage != Options::Stage::kTraining) {
    session.Stage("passes");
    const Until until = options.stage == Options::Stage::kFunctional ? Until::Functional : options.stage == Options::Stage::kCore ? Until::Core : Until::Onnx;
    graph = RunPasses(session.context, session.program(), until, options);
    Cleanup(session.context, *graph);
  }
  session.Stage("print");
  session.report.output = Print(session.context, *graph, {.lines = options.verbose});
  return session.Finish();
}

}  // namespace pt2onnx
