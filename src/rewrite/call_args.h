// Arguments of a call by their schema names.
#pragma once

#include <algorithm>
#include <iterator>

#include "rewrite/sink.h"

namespace pt2onnx {

inline const Arg* FindArg(const Call& call, std::string_view name) {
  const int i = call.op->ArgIndex(name);
  return i < 0 ? nullptr : &call.args[static_cast<size_t>(i)];
}
inline bool Flag(const Call& call, std::string_view name) {
  const Arg* arg = FindArg(call, name);
  const bool* flag = arg ? std::get_if<bool>(arg) : nullptr;
  return flag && *flag;
}
inline Value* TensorArg(const Call& call, std::string_view name) {
  const Arg* arg = FindArg(call, name);
  Value* const* value = arg ? std::get_if<Value*>(arg) : nullptr;
  return value ? *value : nullptr;
}
inline std::string_view BaseName(const OpSchema& op) { return op.name.substr(0, op.name.find('.')); }

template <size_t N>
bool In(std::string_view name, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace pt2onnx
