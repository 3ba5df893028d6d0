#include "api/problems.h"

#include <map>
#include <tuple>

#include "ir/location.h"
#include "ir/print.h"

namespace pt2onnx {

namespace {

// The program's node at a place, also inside sub-graphs; null if there is none. Only failed conversions pay for the walk.
const Node* NodeAt(const Graph& graph, LocId loc) {
  for (const Node* node : graph.nodes) {
    if (node->loc == loc) return node;
    for (const Arg& arg : node->args)
      if (Graph* const* body = std::get_if<Graph*>(&arg))
        if (const Node* inside = NodeAt(**body, loc)) return inside;
  }
  return nullptr;
}

}  // namespace

void AddProblems(Context& context, const Graph* program, Report& report) {
  const Diagnostics& diagnostics = context.diagnostics;
  for (const Warning& warning : diagnostics.warnings()) {
    report.problems.push_back({.severity = Report::Severity::kWarning, .code = warning.code, .message = warning.message, .help = warning.help});
  }
  std::map<std::tuple<std::string, std::string, std::string>, size_t> seen;  // code, op, message -> place in report.problems
  for (const uint32_t number : diagnostics.reported()) {
    const Problem& problem = diagnostics.Get(number);
    const auto [entry, is_new] = seen.try_emplace({problem.code, problem.op, problem.message}, report.problems.size());
    if (!is_new) {
      ++report.problems[entry->second].count;
      continue;
    }
    const Loc& loc = context.locs[problem.loc];
    const Node* node = program && problem.loc != 0 ? NodeAt(*program, problem.loc) : nullptr;
    const SourceLine line = UserLine(loc.stack_trace);
    report.problems.push_back({.code = problem.code,
                               .op = problem.op,
                               .message = problem.message,
                               .file = std::string(line.file),
                               .line = line.line,
                               .source = std::string(line.text),
                               .node = node ? PrintNode(context, *node) : "",
                               .module = std::string(ModulePath(loc.module_stack)),
                               .help = problem.help});
  }
  if (diagnostics.failed()) report.exit_code = 1;
}

void ReportPoison(Diagnostics& diagnostics, const Graph& graph) {
  for (const Node* node : graph.nodes) {
    if (node->op->name == "pt2onnx::poison") diagnostics.Report(static_cast<uint32_t>(std::get<int64_t>(node->args[0])));
    for (const Arg& arg : node->args)
      if (Graph* const* body = std::get_if<Graph*>(&arg)) ReportPoison(diagnostics, **body);
  }
}

void AddError(const Error& error, Report& report) {
  report.problems.push_back({.code = error.code, .message = error.message, .help = error.help});
  report.exit_code = 1;
}

}  // namespace pt2onnx
