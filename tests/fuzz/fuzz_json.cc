// Any text is refused or read; what is read can be walked to its last leaf.
#include "support/json.h"

namespace pt2onnx {
namespace {

uint64_t Walk(JsonValue value) {
  uint64_t sum = value.AsUint().value_or(0) ^ value.AsString().value_or("").size();
  sum += value.AsDouble().value_or(0) > 0;
  sum += value.AsBool().value_or(false);
  for (const JsonValue item : value.Items()) sum ^= Walk(item);
  for (const auto& [key, member] : value.Members()) sum ^= key.size() ^ Walk(member);
  return sum;
}

}  // namespace
}  // namespace pt2onnx

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto doc = pt2onnx::JsonDoc::Parse({reinterpret_cast<const char*>(data), size});
  volatile uint64_t sink = doc ? pt2onnx::Walk(doc->root()) : 0;
  (void)sink;
  return 0;
}
