// Problems of a conversion. A problem is made where it is found and reported only if its poisoned value reaches an output or a
// state value: see rewrite/sink.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace pt2onnx {

struct Problem {
  std::string code;        // "E0301", row of docs/errors.md
  std::string message;     // one sentence, no full stop
  std::string help;        // what to do
  uint32_t loc = 0;        // LocId of the node
  std::string op;          // "aten::_fft_r2c"; problems of one op and message are counted together
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
  // A number that stands for both problems, of a value that two poisoned ones make; 0 is no problem.
  uint32_t Both(uint32_t a, uint32_t b) {
    if (a == b || b == 0) return a;
    if (a == 0) return b;
    pairs_.push_back({a, b});
    return kPair + static_cast<uint32_t>(pairs_.size() - 1);
  }
  void Report(uint32_t number) {  // it reaches something that the user sees; once each
    std::vector<uint32_t> open = {number};
    while (!open.empty()) {
      const uint32_t next = open.back();
      open.pop_back();
      if (!seen_.insert(next).second) continue;
      if (next < kPair) {
        reported_.push_back(next);
      } else {
        open.push_back(pairs_[next - kPair].second);
        open.push_back(pairs_[next - kPair].first);
      }
    }
  }
  const std::vector<uint32_t>& reported() const { return reported_; }
  bool failed() const { return !reported_.empty(); }
  size_t count() const { return problems_.size(); }
  void Warn(Warning warning) { warnings_.push_back(std::move(warning)); }
  const std::vector<Warning>& warnings() const { return warnings_; }

 private:
  std::vector<Problem> problems_;
  static constexpr uint32_t kPair = 1u << 30;  // numbers from here on are places in pairs_

  std::vector<std::pair<uint32_t, uint32_t>> pairs_;
  std::unordered_set<uint32_t> seen_;
  std::vector<uint32_t> reported_;
  std::vector<Warning> warnings_;
};

}  // namespace pt2onnx
