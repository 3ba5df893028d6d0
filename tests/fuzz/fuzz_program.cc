// Any text as the program of an archive is refused, or goes through every pass and becomes a model.
#include <cstdlib>

#include "archive/zip_writer.h"
#include "fuzz/memory_file.h"
#include "pt2onnx/pt2onnx.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pt2onnx;
  const MemoryFile file(nullptr, 0);
  {
    auto zip = ZipWriter::Create(file.path());
    if (!zip || !zip->AddBytes("m/archive_format", "pt2") || !zip->AddBytes("m/archive_version", "0") || !zip->AddBytes("m/byteorder", "little") ||
        !zip->AddBytes("m/models/model.json", std::string_view(reinterpret_cast<const char*>(data), size)) || !zip->Finish()) {
      std::abort();
    }
  }
  Options options;
  options.state = data[size / 2] % 2 ? Options::State::kOptional : Options::State::kInputs;
  const Report report = Convert(file.path(), "/dev/null", options);
  if (report.ok() == (report.exit_code != 0)) std::abort();
  return 0;
}
