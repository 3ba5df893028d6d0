// Reads a zip from its central directory (zip64 included). Every number of the file is checked before it is believed. Opening looks at the
// end of the file only; the local header of an entry is looked at when the entry is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "support/result.h"

namespace pt2onnx {

struct ZipEntry {
  std::string_view name;  // in the file
  uint16_t flags = 0;
  uint16_t method = 0;  // 0 stored, 8 deflated
  uint32_t crc = 0;
  int64_t compressed_size = 0;
  int64_t size = 0;
  int64_t header_offset = 0;
};

class ZipReader {
 public:
  // `what` names the zip in messages ("'model.pt2'"). `bytes` must outlive the reader; they may be a part of a bigger file.
  // E0104: not a zip. E0105: damaged or cut off.
  static Result<ZipReader> Open(std::span<const std::byte> bytes, std::string what);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  int Find(std::string_view name) const;  // -1: no such entry
  const ZipEntry& entry(int index) const { return entries_[static_cast<size_t>(index)]; }

  // The content: a part of the zip's own bytes when stored, else inflated once and kept. E0105, E0109, E0110.
  Result<std::span<const std::byte>> Read(int index);

 private:
  Result<std::span<const std::byte>> Inflate(int index, std::span<const std::byte> packed);
  Error Damaged(const std::string& how) const;

  std::span<const std::byte> bytes_;
  std::string what_;
  int64_t directory_offset_ = 0;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string_view, int> by_name_;
  std::map<int, std::vector<std::byte>> inflated_;
};

inline std::string_view AsText(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace pt2onnx
