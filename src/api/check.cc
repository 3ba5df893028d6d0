// What of a program has no ONNX form, by operator: everything that Convert does but the writing.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "api/session.h"
#include "pipeline.h"
#include "pt2onnx/pt2onnx.h"

namespace pt2onnx {
namespace {

std::string Summary(const Report& report, int64_t opset) {
  std::map<std::string, int64_t> counts;
  for (const Report::Problem& problem : report.problems) {
    if (problem.severity == Report::Severity::kError && !problem.op.empty()) counts[problem.op] += problem.count;
  }
  if (counts.empty()) return fmt::format("every operator of the program has a form in ONNX opset {}\n", opset);
  std::vector<std::pair<std::string, int64_t>> rows(counts.begin(), counts.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out = fmt::format("{} operator{} of the program without a form in ONNX opset {}:\n", rows.size(), rows.size() == 1 ? "" : "s", opset);
  for (const auto& [op, count] : rows) out += fmt::format("{:>8}  {}\n", count, op);
  return out;
}

}  // namespace

Report Check(const std::string& path, const Options& options) {
  Session session(path, options);
  if (!session.ok()) return session.Finish();
  session.Stage("passes");
  RunPasses(session.context, session.program(), Until::Onnx, options, session.implementations());
  Report report = session.Finish();
  const bool failed_otherwise =
      !report.ok() && std::all_of(report.problems.begin(), report.problems.end(), [](const auto& p) { return p.op.empty(); });
  if (!failed_otherwise) report.output = Summary(report, options.opset);
  return report;
}

}  // namespace pt2onnx
