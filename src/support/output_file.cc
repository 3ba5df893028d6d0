#include "support/output_file.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace pt2onnx {

namespace {

constexpr int64_t kBufferSize = 256 << 10;
constexpr int64_t kCallSize = 1 << 30;  // the most one system call is asked to copy

Error WriteError(const std::string& path, int code) {
  if (code == ENOSPC || code == EDQUOT) {
    return {"E0122", "no space left to write '" + path + "'", "free space on that disk, or write elsewhere with -o"};
  }
  return {"E0121", "cannot write '" + path + "': " + std::strerror(code), "check that the folder exists and that you may write to it"};
}

}  // namespace

struct OutputFile::State {
  std::string path;       // as the user gave it, for messages
  std::string target;     // where links lead
  std::string temporary;  // "" when the target is written directly (a device or pipe) or after Commit
  int fd = -1;
  int64_t position = 0;
  std::vector<std::byte> buffer;
  std::optional<Error> failure;  // the first one; a file that failed once is never committed

  ~State() {
    if (fd >= 0) ::close(fd);
    if (!temporary.empty()) ::unlink(temporary.c_str());
  }

  Status Fail(Error error) {
    if (!failure) failure = error;
    return error;
  }

  Status Write(const std::byte* data, int64_t size) {
    while (size > 0) {
      const ssize_t done = ::write(fd, data, static_cast<size_t>(std::min(size, kCallSize)));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return Fail(WriteError(path, errno));
      data += done;
      size -= done;
    }
    return Ok{};
  }

  Status Flush() {
    if (failure) return *failure;
    const Status status = Write(buffer.data(), static_cast<int64_t>(buffer.size()));
    buffer.clear();
    return status;
  }

  // The next function copies up to `length` bytes and says how many; 0 when this way does not work here or is at its end.
  using Copier = ssize_t (*)(int out, int in, off_t* offset, size_t length);

  Status CopyBy(Copier copier, int in, off_t& offset, int64_t& length) {
    while (length > 0) {
      const ssize_t done = copier(fd, in, &offset, static_cast<size_t>(std::min(length, kCallSize)));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG)) return Fail(WriteError(path, errno));
      if (done <= 0) break;  // not supported between these files: try the next way
      length -= done;
    }
    return Ok{};
  }

  Status CopyThroughBuffer(int in, off_t& offset, int64_t& length) {
    buffer.resize(static_cast<size_t>(std::min(length, kBufferSize)));
    while (length > 0) {
      const ssize_t done = ::pread(in, buffer.data(), static_cast<size_t>(std::min(length, kBufferSize)), offset);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) {
        buffer.clear();
        const std::string why = done < 0 ? std::strerror(errno) : "the file it is copied from has become shorter";
        return Fail({"E0121", "cannot write '" + path + "': " + why, "leave the .pt2 file alone while it is converted"});
      }
      if (Status status = Write(buffer.data(), done); !status) return status;
      offset += done;
      length -= done;
    }
    buffer.clear();
    return Ok{};
  }

  Status CopyData(int in, off_t offset, int64_t length) {
    const Copier by_range = [](int to, int from, off_t* at, size_t count) { return ::copy_file_range(from, at, to, nullptr, count, 0); };
    const Copier by_sendfile = [](int to, int from, off_t* at, size_t count) { return ::sendfile(to, from, at, count); };
    if (Status status = CopyBy(by_range, in, offset, length); !status) return status;
    if (Status status = CopyBy(by_sendfile, in, offset, length); !status) return status;
    return CopyThroughBuffer(in, offset, length);
  }

  // Skips over a hole of the source, so that a sparse file stays sparse. Returns how far it got: 0 where there is data.
  int64_t SkipHole(int in, off_t offset, int64_t length) {
    if (temporary.empty()) return 0;
    const off_t data = ::lseek(in, offset, SEEK_DATA);
    if (data < 0 && errno != ENXIO) return 0;
    struct stat info;
    if (data < 0 && (::fstat(in, &info) != 0 || info.st_size < offset + length)) return 0;  // the hole must lie inside the source
    const int64_t hole = data < 0 ? length : std::min<int64_t>(data - offset, length);
    if (hole > 0 && ::lseek(fd, hole, SEEK_CUR) < 0) return 0;
    return hole;
  }
};

OutputFile::OutputFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

Result<OutputFile> OutputFile::Create(const std::string& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->target = path;
  state->buffer.reserve(kBufferSize);
  mode_t mode = 0;  // 0: a new file, as the umask says
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return Error{"E0121", "cannot write '" + path + "': it is a directory", "give the name of a file"};
    if (!S_ISREG(info.st_mode)) {
      state->fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      if (state->fd < 0) return WriteError(path, errno);
      return OutputFile(std::move(state));
    }
    mode = info.st_mode & 07777;
    if (char* real = ::realpath(path.c_str(), nullptr)) {
      state->target = real;
      std::free(real);
    }
  }
  const size_t slash = state->target.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : state->target.substr(0, slash + 1);
  for (int attempt = 0; state->fd < 0 && attempt < 1000; ++attempt) {
    const std::string name = folder + ".pt2onnx-" + std::to_string(::getpid()) + "-" + std::to_string(attempt) + ".tmp";
    state->fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (state->fd >= 0) state->temporary = name;
    if (state->fd < 0 && errno != EEXIST) return WriteError(path, errno);
  }
  if (state->fd < 0) return WriteError(path, EEXIST);
  if (mode != 0 && ::fchmod(state->fd, mode) != 0) return WriteError(path, errno);
  return OutputFile(std::move(state));
}

Status OutputFile::Append(std::span<const std::byte> bytes) {
  State& s = *state_;
  if (s.failure) return *s.failure;
  const int64_t size = std::ssize(bytes);
  if (std::ssize(s.buffer) + size > kBufferSize) {
    if (Status status = s.Flush(); !status) return status;
  }
  if (size > kBufferSize) {
    if (Status status = s.Write(bytes.data(), size); !status) return status;
  } else {
    s.buffer.insert(s.buffer.end(), bytes.begin(), bytes.end());
  }
  s.position += size;
  return Ok{};
}

Status OutputFile::Append(std::string_view text) { return Append(std::as_bytes(std::span(text))); }

Status OutputFile::AppendZeros(int64_t count) {
  static constexpr std::byte kZeros[4096] = {};
  for (; count > 0; count -= std::min<int64_t>(count, sizeof kZeros)) {
    if (Status status = Append(std::span(kZeros, static_cast<size_t>(std::min<int64_t>(count, sizeof kZeros)))); !status) return status;
  }
  return Ok{};
}

Status OutputFile::AppendRange(int fd, int64_t offset, int64_t length) {
  State& s = *state_;
  if (Status status = s.Flush(); !status) return status;
  s.position += length;
  while (length > 0) {
    const int64_t hole = length >= kBufferSize ? s.SkipHole(fd, offset, length) : 0;
    offset += hole;
    length -= hole;
    if (length == 0) break;
    int64_t data = length;
    if (length >= kBufferSize) {
      const off_t end = ::lseek(fd, offset, SEEK_HOLE);
      if (end > offset) data = std::min<int64_t>(length, end - offset);
    }
    if (Status status = s.CopyData(fd, offset, data); !status) return status;
    offset += data;
    length -= data;
  }
  return Ok{};
}

int64_t OutputFile::position() const { return state_->position; }
const std::string& OutputFile::path() const { return state_->path; }

Status OutputFile::Commit() {
  State& s = *state_;
  if (Status status = s.Flush(); !status) return status;
  if (!s.temporary.empty() && ::ftruncate(s.fd, s.position) != 0) return s.Fail(WriteError(s.path, errno));  // the end may be a hole
  if (::close(std::exchange(s.fd, -1)) != 0) return s.Fail(WriteError(s.path, errno));
  if (s.temporary.empty()) return Ok{};
  if (::rename(s.temporary.c_str(), s.target.c_str()) != 0) return s.Fail(WriteError(s.path, errno));
  s.temporary.clear();
  return Ok{};
}

}  // namespace pt2onnx
