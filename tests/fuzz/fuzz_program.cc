// Any text as the program of an archive is refused, or goes through every pass and becomes a model.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "archive/zip_writer.h"
#include "pt2onnx/pt2onnx.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pt2onnx;
  static const std::string path = std::filesystem::temp_directory_path() / ("fuzz_program." + std::to_string(getpid()) + ".pt2");
  static const int removed_at_exit = std::atexit([] { std::filesystem::remove(path); });
  if (removed_at_exit != 0 || size == 0) return 0;
  {
    auto zip = ZipWriter::Create(path);
    if (!zip || !zip->AddBytes("m/archive_format", "pt2") || !zip->AddBytes("m/archive_version", "0") || !zip->AddBytes("m/byteorder", "little") ||
        !zip->AddBytes("m/models/model.json", std::string_view(reinterpret_cast<const char*>(data), size)) || !zip->Finish()) {
      std::abort();
    }
  }
  Options options;
  options.state = data[size / 2] % 2 ? Options::State::kOptional : Options::State::kInputs;
  const Report report = Convert(path, "/dev/null", options);
  if (report.ok() == (report.exit_code != 0)) std::abort();
  return 0;
}
