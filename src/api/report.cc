// A Report as text for people and as JSON for programs.
//
//   model.pt2: error[E0301]: aten::_fft_r2c: no ONNX form at opset 18
//     --> model.py:41   spec = torch.fft.rfft(x)
//     node   %fft_rfft_3 : c64[s0, 129] = aten::_fft_r2c(%mul_7, [1], 0, true)
//     module encoder.layers.0.frontend
//     help   --opset 20 has DFT for this case
//     (+ 11 more of this op)
#include <fmt/core.h>

#include <string_view>

#include "pt2onnx/options.h"
#include "support/json_text.h"

namespace pt2onnx {
namespace {

std::string_view Word(Report::Severity severity) {
  switch (severity) {
    case Report::Severity::kNote:
      return "note";
    case Report::Severity::kWarning:
      return "warning";
    case Report::Severity::kError:
      return "error";
  }
  return "error";
}

void AppendProblem(std::string& out, const std::string& input, const Report::Problem& p) {
  if (!input.empty()) out += input + ": ";
  out += Word(p.severity);
  if (!p.code.empty()) out += "[" + p.code + "]";
  out += ": ";
  if (!p.op.empty()) out += p.op + ": ";
  out += p.message + "\n";
  if (!p.file.empty()) out += fmt::format("  --> {}:{}{}{}\n", p.file, p.line, p.source.empty() ? "" : "   ", p.source);
  if (!p.node.empty()) out += "  node   " + p.node + "\n";
  if (!p.module.empty()) out += "  module " + p.module + "\n";
  if (!p.help.empty()) out += "  help   " + p.help + "\n";
  if (p.count > 1) out += fmt::format("  (+ {} more of this op)\n", p.count - 1);
}

// The members of one JSON object or the items of one array, separated by commas.
class JsonList {
 public:
  JsonList(std::string& out, char open, char close) : out_(out), close_(close) { out_ += open; }
  ~JsonList() { out_ += close_; }
  JsonList(const JsonList&) = delete;
  JsonList& operator=(const JsonList&) = delete;

  std::string& Item() {
    if (!first_) out_ += ", ";
    first_ = false;
    return out_;
  }
  std::string& Key(std::string_view key) {
    AppendJsonString(Item(), key);
    return out_ += ": ";
  }
  void Text(std::string_view key, std::string_view value) {
    if (!value.empty()) AppendJsonString(Key(key), value);
  }

 private:
  std::string& out_;
  char close_;
  bool first_ = true;
};

void AppendJson(std::string& out, const Report::Problem& p) {
  JsonList object(out, '{', '}');
  object.Text("severity", Word(p.severity));
  object.Text("code", p.code);
  object.Text("op", p.op);
  object.Text("message", p.message);
  object.Text("file", p.file);
  if (!p.file.empty()) object.Key("line") += fmt::format("{}", p.line);
  object.Text("source", p.source);
  object.Text("node", p.node);
  object.Text("module", p.module);
  object.Text("help", p.help);
  object.Key("count") += fmt::format("{}", p.count);
}

void AppendJson(std::string& out, const Report::Write& w) {
  JsonList object(out, '{', '}');
  const auto texts = [&](std::string_view key, const std::vector<std::string>& list) {
    JsonList items(object.Key(key), '[', ']');
    for (const std::string& text : list) AppendJsonString(items.Item(), text);
  };
  object.Text("op", w.op);
  object.Text("file", w.file);
  if (!w.file.empty()) object.Key("line") += fmt::format("{}", w.line);
  object.Text("source", w.source);
  object.Text("module", w.module);
  texts("through", w.through);
  object.Text("memory", w.memory);
  object.Text("fate", w.fate);
  texts("by", w.by);
  texts("outputs", w.outputs);
}

}  // namespace

std::string Report::Text() const {
  std::string out;
  for (const Severity severity : {Severity::kNote, Severity::kWarning, Severity::kError}) {
    for (const Problem& problem : problems) {
      if (problem.severity == severity) AppendProblem(out, input, problem);
    }
  }
  return out;
}

std::string Report::Json() const {
  std::string out;
  {
    JsonList object(out, '{', '}');
    object.Key("exit_code") += fmt::format("{}", exit_code);
    AppendJsonString(object.Key("input"), input);
    {
      JsonList list(object.Key("problems"), '[', ']');
      for (const Problem& problem : problems) AppendJson(list.Item(), problem);
    }
    {
      JsonList list(object.Key("timings"), '{', '}');
      for (const Timing& timing : timings) list.Key(timing.stage) += fmt::format("{:.3f}", timing.milliseconds);
    }
    {
      JsonList list(object.Key("statistics"), '{', '}');
      for (const Statistic& statistic : statistics) list.Key(statistic.name) += fmt::format("{}", statistic.value);
    }
    object.Text("output", output);
    if (!writes.empty()) {
      JsonList list(object.Key("writes"), '[', ']');
      for (const Write& write : writes) AppendJson(list.Item(), write);
    }
  }
  return out;
}

}  // namespace pt2onnx
