// Each write of the program: where it stands, through which views it reaches which memory, and what became of it. As text:
//
//   model.py:21  y[:, :, 0] = 0
//     aten::fill_.Scalar writes %select = select.int of %slice_1 = slice.Tensor of %clone
//     -> written back by slice_scatter, select_scatter
#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>

#include "api/session.h"
#include "ir/location.h"
#include "passes/cleanup.h"
#include "passes/write_log.h"
#include "pipeline.h"
#include "pt2onnx/pt2onnx.h"

namespace pt2onnx {
namespace {

using Values = std::unordered_set<const Value*>;

// What the nodes that are left compute, and what the graph answers.
void Collect(const Graph& graph, Values& live) {
  for (const GraphInput& input : graph.inputs) live.insert(input.value);
  for (const Node* node : graph.nodes) {
    for (const Value* result : node->results) live.insert(result);
    for (const Arg& arg : node->args)
      if (Graph* const* body = std::get_if<Graph*>(&arg)) Collect(**body, live);
  }
}

std::string_view WithoutNamespace(std::string_view op) { return op.substr(op.find("::") + 2); }

std::string NameOf(const Alias* alias) { return alias->name.empty() ? "a view" : fmt::format("%{}", alias->name); }

// Which op writes a view's value back into what it views.
std::string_view InverseOf(const Alias* alias) {
  switch (alias->step.view) {
    case ViewClass::Slice:
    case ViewClass::Narrow:
      return "slice_scatter";
    case ViewClass::Select:
      return "select_scatter";
    case ViewClass::Diagonal:
      return "diagonal_scatter";
    case ViewClass::Reshape:
      return "reshape";
    case ViewClass::Permute:
    case ViewClass::PermuteConj:
      return "permute";
    case ViewClass::Expand:
    case ViewClass::Unfold:
    case ViewClass::AsStrided:
      return "scatter by index";
    case ViewClass::Identity:
      return "";
    default:
      return WithoutNamespace(alias->step.op->name);
  }
}

Report::Write Told(const WriteLog::Record& record, const std::vector<Loc>& locs, const Values& live) {
  const Loc& loc = locs[record.loc];
  const SourceLine line = UserLine(loc.stack_trace);
  Report::Write write;
  write.op = record.op->name;
  write.file = line.file, write.line = line.line, write.source = line.text;
  write.module = ModulePath(loc.module_stack);
  const Alias* alias = record.alias;
  for (; alias->parent; alias = alias->parent) write.through.push_back(fmt::format("{} = {}", NameOf(alias), WithoutNamespace(alias->step.op->name)));
  const std::string_view state = record.alias->storage()->name;
  write.memory = state.empty() ? NameOf(alias) : std::string(state);
  for (const WriteLog::Step& step : record.carried)
    if (const std::string_view inverse = step.together ? "cat" : InverseOf(step.view); !inverse.empty()) write.by.push_back(std::string(inverse));
  for (const std::string_view name : record.outputs) write.outputs.push_back(fmt::format("{}_next", name));
  if (record.refused)
    write.fate = "refused";
  else if (!record.seen || record.gone || !live.contains(record.value))
    write.fate = "dead";
  else
    write.fate = write.by.empty() ? "value" : "written back";
  return write;
}

std::string Text(const Report::Write& write) {
  std::string out = write.file.empty() ? "(no source recorded)" : fmt::format("{}:{}  {}", write.file, write.line, write.source);
  out += fmt::format("\n  {} writes ", write.op);
  for (const std::string& view : write.through) out += view + " of ";
  out += write.memory;
  if (!write.module.empty()) out += fmt::format(", in {}", write.module);
  out += "\n  -> ";
  if (write.fate == "value")
    out += "a new value";
  else if (write.fate == "dead")
    out += "dead: nothing reads it";
  else
    out += write.fate;
  for (size_t i = 0; i < write.by.size() && write.fate == "written back"; ++i) out += (i ? ", " : " by ") + write.by[i];
  for (size_t i = 0; i < write.outputs.size() && write.fate != "dead"; ++i) out += (i ? ", " : "; output ") + write.outputs[i];
  return out + "\n";
}

}  // namespace

Report Explain(const std::string& path, const Options& options) {
  Session session(path, options);
  if (!session.ok()) return session.Finish();
  Context& context = session.context;
  session.Stage("passes");
  WriteLog log;
  Graph& graph = *RunPasses(context, session.program(), Until::Functional, options, session.implementations(), &log);
  RemoveDeadCode(context, graph);
  ReportPoison(context.diagnostics, graph);
  Values live;
  Collect(graph, live);
  Report& report = session.report;
  for (const WriteLog::Record& record : log.records()) report.writes.push_back(Told(record, context.locs, live));
  for (const Report::Write& write : report.writes) report.output += Text(write);
  std::string counts;
  for (const std::string_view fate : {"value", "written back", "dead", "refused"}) {
    const auto n = std::count_if(report.writes.begin(), report.writes.end(), [&](const Report::Write& write) { return write.fate == fate; });
    if (n) counts += fmt::format("{}{} {}", counts.empty() ? ": " : ", ", n, fate);
  }
  report.output += fmt::format("{} write{}{}\n", report.writes.size(), report.writes.size() == 1 ? "" : "s", counts);
  return session.Finish();
}

}  // namespace pt2onnx
