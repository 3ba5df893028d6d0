// Result<T>: a value, or the reason why there is none. Reading a file fails this way; no exception leaves the core.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "support/check.h"

namespace pt2onnx {

// Why something could not be done: a code of docs/errors.md ("E0102"), one sentence, and what to do about it ("" if nothing).
struct Error {
  std::string code;
  std::string message;
  std::string help;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return Get(); }
  const T& operator*() const { return const_cast<Result*>(this)->Get(); }
  T* operator->() { return &Get(); }
  const Error& error() const {
    PT2ONNX_CHECK(state_.index() == 1);
    return std::get<1>(state_);
  }

 private:
  T& Get() {
    PT2ONNX_CHECK(state_.index() == 0);
    return std::get<0>(state_);
  }
  std::variant<T, Error> state_;
};

struct Ok {};
using Status = Result<Ok>;

}  // namespace pt2onnx
