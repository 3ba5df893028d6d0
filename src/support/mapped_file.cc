#include "support/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace pt2onnx {

Result<MappedFile> MappedFile::Open(const std::string& path) {
  MappedFile file;
  file.path_ = path;
  file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // O_NONBLOCK: a named pipe must not hang us before we can refuse it
  if (file.fd_ < 0) return Error{"E0101", "cannot open '" + path + "': " + std::strerror(errno), "check the path and its permissions"};
  struct stat info;
  if (::fstat(file.fd_, &info) != 0) return Error{"E0101", "cannot open '" + path + "': " + std::strerror(errno), ""};
  if (S_ISDIR(info.st_mode)) return Error{"E0102", "'" + path + "' is a directory, not a .pt2 file", "give the .pt2 file itself"};
  if (!S_ISREG(info.st_mode)) return Error{"E0102", "'" + path + "' is not a regular file and cannot be mapped", "write it to a file first"};
  if (info.st_size == 0) return Error{"E0103", "'" + path + "' is empty", "save or copy the program again"};
  file.size_ = info.st_size;
  void* data = ::mmap(nullptr, static_cast<size_t>(file.size_), PROT_READ, MAP_PRIVATE, file.fd_, 0);
  if (data == MAP_FAILED) return Error{"E0101", "cannot map '" + path + "' into memory: " + std::strerror(errno), ""};
  file.data_ = static_cast<const std::byte*>(data);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      fd_(std::exchange(other.fd_, -1)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(fd_, other.fd_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), static_cast<size_t>(size_));
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace pt2onnx
