#include "ir/location.h"

#include <charconv>

namespace pt2onnx {
namespace {

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view() : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

bool IsTorchs(std::string_view path) { return path.starts_with("torch/") || path.find("-packages/torch/") != std::string_view::npos; }

std::string_view NextLine(std::string_view& rest) {
  const size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return Trim(line);
}

}  // namespace

SourceLine UserLine(std::string_view stack_trace) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  SourceLine found;
  bool found_is_torchs = true;
  std::string_view rest = stack_trace;
  while (!rest.empty()) {
    const std::string_view line = NextLine(rest);
    const size_t middle = line.find(kLine);
    if (!line.starts_with(kFile) || middle == std::string_view::npos) continue;
    const std::string_view path = line.substr(kFile.size(), middle - kFile.size());
    const std::string_view number = line.substr(middle + kLine.size());
    if (IsTorchs(path) && !found_is_torchs) continue;
    found_is_torchs = IsTorchs(path);
    found = {.file = path.substr(path.find_last_of("/\\") + 1)};
    std::from_chars(number.data(), number.data() + number.size(), found.line);
    std::string_view after = rest;
    const std::string_view text = NextLine(after);
    if (!text.starts_with(kFile)) found.text = text;
  }
  return found;
}

std::string_view ModulePath(std::string_view module_stack) {
  // Entries stand apart by ';', their three parts by ',' outside of brackets: keys and types may hold both.
  std::string_view path;
  int depth = 0, part = 0;
  size_t start = 0;
  for (size_t i = 0; i < module_stack.size(); ++i) {
    const char c = module_stack[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (depth != 0 || (c != ',' && c != ';')) continue;
    if (part == 1) path = module_stack.substr(start, i - start);
    part = c == ',' ? part + 1 : 0;
    start = i + 1;
  }
  return path;
}

std::string_view ModuleClass(std::string_view module_stack) {
  const size_t comma = module_stack.rfind(',');
  if (comma == std::string_view::npos) return {};
  const std::string_view type = module_stack.substr(comma + 1);
  return type.substr(type.rfind('.') == std::string_view::npos ? 0 : type.rfind('.') + 1);
}

size_t EndOfModule(std::string_view module_stack, size_t level) {
  if (module_stack.empty()) return std::string_view::npos;
  int depth = 0;
  for (size_t i = 0; i < module_stack.size(); ++i) {
    const char c = module_stack[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (depth == 0 && c == ';' && level-- == 0) return i;
  }
  return level == 0 ? module_stack.size() : std::string_view::npos;
}

}  // namespace pt2onnx
