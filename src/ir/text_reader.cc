#include "ir/text_reader.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/text.h"

namespace pt2onnx {

void TextReader::FailAt(size_t at, std::string_view what) {
  if (failed()) return;
  at = std::min(at, text_.size());
  const std::string_view before = text_.substr(0, at);
  const size_t line_start = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
  message_ = fmt::format("{}:{}: {}", std::count(before.begin(), before.end(), '\n') + 1, at - line_start + 1, what);
  at_ = text_.size();
}

void TextReader::SkipSpace() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#')
      at_ = std::min(text_.find('\n', at_), text_.size());
    else if (c == ' ' || c == '\n' || c == '\t' || c == '\r')
      ++at_;
    else
      return;
  }
}

char TextReader::Peek() {
  SkipSpace();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool TextReader::Take(std::string_view token) {
  SkipSpace();
  if (!text_.substr(at_).starts_with(token)) return false;
  at_ += token.size();
  return true;
}

void TextReader::Expect(std::string_view token) {
  if (!failed() && !Take(token)) Fail(fmt::format("expected '{}'", token));
}

std::string_view TextReader::PeekWord() {
  SkipSpace();
  size_t end = at_;
  if (end < text_.size() && IsNameChar(text_[end]) && !IsDigit(text_[end]) && text_[end] != '.')
    while (end < text_.size() && IsNameChar(text_[end])) ++end;
  return text_.substr(at_, end - at_);
}

bool TextReader::TakeWord(std::string_view word) {
  if (PeekWord() != word) return false;
  at_ += word.size();
  return true;
}

std::optional<uint8_t> TextReader::HexByte() {
  const auto digit = [&](size_t i) -> int {
    const char c = i < text_.size() ? text_[i] : '\0';
    return IsDigit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (digit(at_) < 0 || digit(at_ + 1) < 0) return std::nullopt;
  at_ += 2;
  return static_cast<uint8_t>(digit(at_ - 2) * 16 + digit(at_ - 1));
}

std::string_view TextReader::Quoted() {
  if (Peek() != '"') {
    Fail("expected a text in quotes");
    return {};
  }
  std::string out;
  ++at_;
  while (at_ < text_.size() && text_[at_] != '"') {
    const char c = text_[at_++];
    if (c != '\\' || at_ >= text_.size()) {
      out += c;
      continue;
    }
    const char escaped = text_[at_++];
    if (escaped == 'x')
      out += static_cast<char>(HexByte().value_or('x'));
    else
      out += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped;
  }
  if (at_ >= text_.size())
    Fail("this text never ends");
  else
    ++at_;
  return context_.Intern(out);
}

std::string_view TextReader::Balanced(std::string_view stops) {
  SkipSpace();
  const size_t begin = at_;
  for (int depth = 0; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '(' || c == '[') ++depth;
    if (depth == 0 && (stops.find(c) != stops.npos || c == ')' || c == ']' || c == '}')) break;
    if (c == ')' || c == ']') --depth;
    if (c == '#' || c == '\n') break;
  }
  std::string_view found = text_.substr(begin, at_ - begin);
  while (!found.empty() && found.back() == ' ') found.remove_suffix(1);
  return found;
}

int64_t TextReader::Int() {
  SkipSpace();
  size_t end = at_;
  while (end < text_.size() && (IsDigit(text_[end]) || text_[end] == '-')) ++end;
  const auto x = Number<int64_t>(text_.substr(at_, end - at_));
  if (!x)
    Fail("expected an integer");
  else
    at_ = end;
  return x.value_or(0);
}

}  // namespace pt2onnx
