#include "api/session.h"

#include "ir/schema_parse.h"
#include "passes/weights.h"
#include "serde/read_program.h"

namespace pt2onnx {
namespace {

// domain::Op, in a domain that is not ONNX's own.
bool IsCustomOp(const std::string& name) {
  const size_t colon = name.find("::");
  return colon != name.npos && colon != 0 && colon + 2 < name.size() && !name.starts_with("onnx::") && !name.starts_with("ai.onnx::");
}

}  // namespace

Session::Session(const std::string& path, const Options& options) {
  report.input = path;
  context.opset = static_cast<int>(options.opset);
  Open(path, options);
}

void Session::Open(const std::string& path, const Options& options) {
  for (const auto& [op, target] : options.custom_ops)
    if (!IsCustomOp(target)) return FailUse({"E0153", "--custom-op " + op + "=" + target + " names no operator of a domain of yours", "write it as my.domain::Op"});
  Stage("open");
  Result<Archive> archive = Archive::Open(path, options.model);
  if (!archive) return Fail(archive.error());
  for (const std::string& text : options.schemas) {
    Result<OpSchema> schema = ParseSchema(text, context);
    if (!schema) return FailUse(schema.error());
    context.RegisterOp(*schema);
  }
  Stage("read");
  Result<Program> program = ReadProgram(context, std::move(*archive));
  if (!program) return Fail(program.error());
  program_ = std::move(*program);
  BindWeights(context, *program_);
  OpenImplementations(options);
}

void Session::OpenImplementations(const Options& options) {
  for (const auto& [op, path] : options.decompositions) {
    auto implementation = std::make_unique<Implementation>();
    implementation->op = WithoutDefault(op);
    const auto fail = [&](const Error& error) {
      program_.reset();
      FailUse({error.code, "--decompose " + op + "=" + path + ": " + error.message, error.help});
    };
    Result<Archive> archive = Archive::Open(path);
    if (!archive) return fail(archive.error());
    for (const std::string& text : options.schemas)
      if (Result<OpSchema> schema = ParseSchema(text, implementation->context)) implementation->context.RegisterOp(*schema);
    Result<Program> program = ReadProgram(implementation->context, std::move(*archive));
    if (!program) return fail(program.error());
    implementation->program = std::move(*program);
    BindWeights(implementation->context, *implementation->program);
    implementations_.push_back(std::move(implementation));
  }
}

void Session::Stage(std::string name) {
  const auto now = std::chrono::steady_clock::now();
  if (!stage_.empty()) report.timings.push_back({stage_, std::chrono::duration<double, std::milli>(now - start_).count()});
  stage_ = std::move(name);
  start_ = now;
}

Report Session::Finish() {
  Stage("");
  AddProblems(context, program_ ? program_->graph : nullptr, report);
  return std::move(report);
}

}  // namespace pt2onnx
