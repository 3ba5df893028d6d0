// A file in memory with a path, for functions that take paths.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace pt2onnx {

class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, size_t size) : fd_(memfd_create("fuzz", 0)) {
    while (size > 0) {
      const ssize_t written = write(fd_, data, size);
      if (written <= 0) __builtin_trap();
      data += written;
      size -= static_cast<size_t>(written);
    }
  }
  MemoryFile(const MemoryFile&) = delete;
  ~MemoryFile() { close(fd_); }

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace pt2onnx
