// A file mapped read-only into memory. Opening it reads nothing: pages come in when they are touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "support/result.h"

namespace pt2onnx {

class MappedFile {
 public:
  // Fails for a missing or unreadable file (E0101), a directory or device (E0102) and an empty file (E0103).
  static Result<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }
  int fd() const { return fd_; }
  // Stays where it is when the MappedFile is moved.
  std::span<const std::byte> data() const { return {data_, static_cast<size_t>(size_)}; }

 private:
  MappedFile() = default;

  std::string path_;
  const std::byte* data_ = nullptr;
  int64_t size_ = 0;
  int fd_ = -1;
};

}  // namespace pt2onnx
