// Writes a zip the way torch does: entries stored, their data at multiples of 64, zip64 where a number needs it. The same entries give the
// same bytes. The file appears on Finish().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/output_file.h"

namespace pt2onnx {

class ZipWriter {
 public:
  static Result<ZipWriter> Create(const std::string& path);

  Status AddBytes(std::string_view name, std::span<const std::byte> bytes);
  Status AddBytes(std::string_view name, std::string_view text);
  // Bytes [offset, offset + length) of another file. Without `crc` they are read once more to compute it.
  Status AddRange(std::string_view name, int fd, int64_t offset, int64_t length, std::optional<uint32_t> crc = {});
  Status Finish();

 private:
  struct Entry {
    std::string name;
    uint32_t crc;
    int64_t size;
    int64_t header_offset;
  };
  explicit ZipWriter(OutputFile out) : out_(std::move(out)) {}
  Status BeginEntry(std::string_view name, uint32_t crc, int64_t size);

  OutputFile out_;
  std::vector<Entry> entries_;
};

}  // namespace pt2onnx
