// Words of the text form, with the place of the first error. Sticky: after it every step does nothing.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/context.h"

namespace pt2onnx {

class TextReader {
 public:
  TextReader(Context& context, std::string_view text) : context_(context), text_(text) {}

  bool failed() const { return !message_.empty(); }
  const std::string& message() const { return message_; }  // "3:14: what"
  void Fail(std::string_view what) { FailAt(at_, what); }
  void FailAt(size_t at, std::string_view what);

  void SkipSpace();  // and comments
  char Peek();
  bool Take(std::string_view token);
  void Expect(std::string_view token);
  std::string_view PeekWord();
  bool TakeWord(std::string_view word);
  std::string_view Quoted();  // lives as long as the context
  int64_t Int();

  // Up to a character of `stops`, or of ")]}" that closes nothing, or the end of the line, outside brackets.
  std::string_view Balanced(std::string_view stops);

  template <class T>
  static std::optional<T> Number(std::string_view text) {
    T x{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
    return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(x) : std::nullopt;
  }
  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  // The two hexadecimal digits from at_ on.
  std::optional<uint8_t> HexByte();

 protected:
  Context& context_;
  std::string_view text_;
  size_t at_ = 0;

 private:
  std::string message_;
};

}  // namespace pt2onnx
