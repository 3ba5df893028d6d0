// The program after a stage, as text that can be read back (ir/parse.h). With `verbose` also what wrote the file, and the archive's tensors, in comments.
#include <fmt/core.h>

#include "api/session.h"
#include "ir/print.h"
#include "passes/cleanup.h"
#include "pipeline.h"
#include "pt2onnx/pt2onnx.h"

namespace pt2onnx {
namespace {

std::string Origin(const Program& program) {
  std::string verifiers;
  for (const std::string_view verifier : program.verifiers) verifiers += fmt::format("{}{}", verifiers.empty() ? "" : ", ", verifier);
  return fmt::format("# torch {}, schema {}.{}, dialect {}\n", program.torch_version.empty() ? "of unknown version" : program.torch_version,
                     program.schema_major, program.schema_minor, verifiers.empty() ? "unknown" : verifiers);
}

std::string ListOf(const std::vector<int64_t>& numbers) {
  std::string out = "[";
  for (size_t i = 0; i < numbers.size(); ++i) out += fmt::format("{}{}", i ? ", " : "", numbers[i]);
  return out + "]";
}

// # fc.weight  f32[4, 4] strides [1, 4] offset 8, storage 3 of 256 bytes
std::string Tensors(const Archive& archive) {
  std::string out;
  for (const TensorRecord& tensor : archive.tensors()) {
    out += fmt::format("# {}  ", tensor.name);
    if (!tensor.opaque.empty()) {
      out += tensor.opaque + "\n";
      continue;
    }
    const DType dtype = DTypeFromPt2(tensor.dtype).value_or(DType::Unknown);
    out += fmt::format("{}{} strides {} offset {}", Name(dtype), ListOf(tensor.sizes), ListOf(tensor.strides), tensor.storage_offset);
    out += tensor.storage < 0 ? ", no data\n" : fmt::format(", storage {} of {} bytes\n", tensor.storage, archive.StorageSize(tensor.storage));
  }
  return out;
}

}  // namespace

Report Inspect(const std::string& path, const Options& options) {
  Session session(path, options);
  if (!session.ok()) return session.Finish();
  Graph* graph = session.program().graph;
  if (options.stage != Options::Stage::kTraining) {
    session.Stage("passes");
    const Until until = options.stage == Options::Stage::kFunctional ? Until::Functional : options.stage == Options::Stage::kCore ? Until::Core : Until::Onnx;
    graph = RunPasses(session.context, session.program(), until, options, session.implementations());
    Cleanup(session.context, *graph);
  }
  session.Stage("print");
  std::string& output = session.report.output;
  if (options.verbose) output = Origin(session.program());
  output += Print(session.context, *graph, {.lines = options.verbose});
  if (options.verbose) output += Tensors(session.program().archive);
  return session.Finish();
}

}  // namespace pt2onnx
