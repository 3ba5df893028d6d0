// Any bytes are refused or opened as an archive; of an opened one, all that it lists can be read or is refused.
#include "archive/archive.h"
#include "fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pt2onnx;
  const MemoryFile file(data, size);
  auto archive = Archive::Open(file.path());
  if (!archive) return 0;
  uint8_t sum = 0;
  for (const TensorRecord& tensor : archive->tensors()) {
    if (tensor.storage < 0) continue;
    auto bytes = archive->ReadStorage(tensor.storage);
    if (!bytes) continue;
    for (const std::byte byte : bytes->bytes) sum ^= static_cast<uint8_t>(byte);
  }
  for (const std::string& name : archive->extra_files()) (void)archive->ReadExtraFile(name);
  (void)archive->ReadSampleInputs();
  volatile uint8_t sink = sum;
  (void)sink;
  return 0;
}
