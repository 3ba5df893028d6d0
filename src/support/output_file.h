// A file that appears whole or not at all: written beside its target under a temporary name and renamed by Commit(). Without Commit the
// temporary file is removed. Ranges of other files are copied by the kernel where it can, never through a big buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "support/result.h"

namespace pt2onnx {

class OutputFile {
 public:
  // Errors: E0121 the file cannot be created or written, E0122 the disk is full.
  // A target that is a device or a pipe (/dev/null, /dev/stdout) is written directly; a symbolic link keeps being one.
  static Result<OutputFile> Create(const std::string& path);

  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  ~OutputFile();

  Status Append(std::span<const std::byte> bytes);
  Status Append(std::string_view text);
  Status AppendZeros(int64_t count);
  // Bytes [offset, offset + length) of another file, whatever its file position. Holes stay holes.
  Status AppendRange(int fd, int64_t offset, int64_t length);

  int64_t position() const;  // bytes appended so far
  const std::string& path() const;

  // Flushes and renames onto the target. After an error nothing is left behind.
  Status Commit();

 private:
  struct State;
  explicit OutputFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pt2onnx
