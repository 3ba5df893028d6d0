// Problems of a conversion. A problem is made where it is found and reported only if its poisoned value reaches an output, a state
// value or an assertion: see Context::Poison.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pt2onnx {

struct Problem {
  std::string code;        // "E0301", row of docs/errors.md
  std::string message;     // one sentence, no full stop
  std::string help;        // what to do
  uint32_t loc = 0;        // LocId of the node
  std::string op;          // "aten::_fft_r2c"; problems of one op and message are counted together
  std::string text;        // the node in the text form
};

struct Warning {
  std::string code;        // "W0101"
  std::string message;
  std::string help;
};

class Diagnostics {
 public:
  uint32_t Add(Problem problem) {
    problems_.push_back(std::move(problem));
    return static_cast<uint32_t>(problems_.size());
  }
  const Problem& Get(uint32_t number) const { return problems_[number - 1]; }
  void Report(uint32_t number) {  // it reaches something that the user sees; once each
    for (uint32_t n : reported_)
      if (n == number) return;
    reported_.push_back(number);
  }
  const std::vector<uint32_t>& reported() const { return reported_; }
  bool failed() const { return !reported_.empty(); }
  size_t count() const { return problems_.size(); }
  void Warn(Warning warning) { warnings_.push_back(std::move(warning)); }
  const std::vector<Warning>& warnings() const { return warnings_; }

 private:
  std::vector<Problem> problems_;
  std::vector<uint32_t> reported_;
  std::vector<Warning> warnings_;
};

}  // namespace pt2onnx
