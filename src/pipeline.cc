#include "pipeline.h"

#include <functional>
#include <map>
#include <memory>

#include "complex/rules.h"
#include "decomp/rules.h"
#include "fuse/fuse.h"
#include "ir/schema_parse.h"
#include "lower/rules.h"
#include "passes/complex.h"
#include "passes/decompose.h"
#include "passes/fold.h"
#include "passes/functionalize.h"
#include "passes/lower.h"
#include "passes/mode.h"
#include "passes/promote.h"
#include "passes/replace_inplace.h"
#include "passes/unvmap.h"

namespace pt2onnx {
namespace {

// A pass, given the sink that it emits into.
using Pass = std::function<std::unique_ptr<Sink>(Sink& down)>;
template <class P, class... Args>
Pass Make(const Args&... args) {
  return [&args...](Sink& down) { return std::make_unique<P>(down, args...); };
}

std::map<std::string, std::string> CustomOps(const Options& options) {
  std::map<std::string, std::string> out;
  for (const auto& [op, target] : options.custom_ops) out.emplace(WithoutDefault(op), target);
  return out;
}

}  // namespace

Graph* RunPasses(Context& context, const Program& program, Until until, const Options& options, Implementations implementations, WriteLog* log) {
  const Rules<Aten> decompositions = until == Until::CoreAten ? CoreRules() : DecompositionRules();
  const Rules<Pairs> complex = ComplexRules();
  const Rules<Onnx> lowerings = LoweringRules();
  std::vector<Pass> passes;
  if (!implementations.empty()) passes.push_back(Make<InlineImplementations>(implementations));
  passes.insert(passes.end(), {Make<Mode>(options.mode), Make<Unvmap>(), Make<Functionalize>(log)});
  if (until != Until::Functional) passes.insert(passes.end(), {Make<Decompose>(decompositions), Make<ReplaceInplace>()});
  if (until == Until::Onnx) passes.insert(passes.end(), {Make<ComplexToReal>(complex), Make<PromoteTypes>()});

  const auto end = [&](Graph& graph) -> std::unique_ptr<Sink> {
    if (until == Until::Onnx) {
      return std::make_unique<Lower>(context, graph, lowerings, OnnxOptions{.bf16_as_f32 = options.bfloat16_as_float32},
                                     options.assertions == Options::Assertions::kKeep, CustomOps(options));
    }
    return std::make_unique<GraphSink>(context, graph);
  };
  Graph* result = context.NewGraph();
  const auto finish = [&] {
    if (until == Until::Onnx) {
      FoldConstants(context, *result);
      Fuse(context, *result, options.fusions, options.bfloat16_as_float32);
    }
    return result;
  };
  if (!options.separate_passes) {
    std::vector<std::unique_ptr<Sink>> sinks;
    sinks.push_back(end(*result));
    for (size_t i = passes.size(); i-- > 0;) sinks.push_back(passes[i](*sinks.back()));
    Replay(*program.graph, *sinks.back());
    return finish();
  }
  const Graph* from = program.graph;
  for (const Pass& pass : passes) {
    Graph* to = context.NewGraph();
    GraphSink sink(context, *to);
    Replay(*from, *pass(sink));
    from = to;
  }
  Replay(*from, *end(*result));
  return finish();
}

}  // namespace pt2onnx
