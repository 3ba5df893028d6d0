// What every call of the public API starts with: the file opened and the program read, problems collected into the report.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "api/problems.h"
#include "ir/context.h"
#include "ir/program.h"
#include "passes/implementations.h"
#include "pt2onnx/options.h"

namespace pt2onnx {

// One call: the context, the program once it is read, and the clock of its stages.
class Session {
 public:
  Session(const std::string& path, const Options& options);

  bool ok() const { return program_.has_value() && !context.diagnostics.failed(); }
  Program& program() { return *program_; }
  Implementations implementations() const { return implementations_; }  // --decompose
  void Stage(std::string name);           // the stage before it has ended; "" ends the last one
  Report Finish();                        // the report with all problems in it
  void Fail(const Error& error) { AddError(error, report); }
  void FailUse(const Error& error) { AddError(error, report), report.exit_code = 2; }  // what was asked for makes no sense

  Context context;
  Report report;

 private:
  void Open(const std::string& path, const Options& options);

  void OpenImplementations(const Options& options);

  std::optional<Program> program_;
  std::vector<std::unique_ptr<Implementation>> implementations_;
  std::string stage_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace pt2onnx
