#include "archive/zip_writer.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace pt2onnx {

namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kLimit32 = 0xffffffff, kLimit16 = 0xffff;
constexpr uint16_t kUtf8Names = 0x0800;
constexpr uint32_t kDate = 0x00210000;      // 1980-01-01 00:00: the same entries give the same bytes
constexpr uint16_t kPaddingField = 0x4246;  // "FB", as torch pads
constexpr uint16_t kVersion = 20, kVersion64 = 45;

// Headers are built as little-endian text.
struct Header {
  std::string bytes;
  Header& Put(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
    return *this;
  }
  Header& U16(uint64_t value) { return Put(value, 2); }
  Header& U32(uint64_t value) { return Put(value, 4); }
  Header& U64(uint64_t value) { return Put(value, 8); }
  Header& Clamped32(int64_t value) { return U32(static_cast<uint64_t>(std::min(value, kLimit32))); }
};

Result<uint32_t> RangeCrc(int fd, int64_t offset, int64_t length, const std::string& path) {
  std::vector<Bytef> buffer(static_cast<size_t>(std::min<int64_t>(length, 1 << 20)));
  uLong crc = 0;
  while (length > 0) {
    const ssize_t done = ::pread(fd, buffer.data(), static_cast<size_t>(std::min<int64_t>(length, std::ssize(buffer))), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      const std::string why = done < 0 ? std::strerror(errno) : "the file it is copied from has become shorter";
      return Error{"E0121", "cannot write '" + path + "': " + why, ""};
    }
    crc = crc32_z(crc, buffer.data(), static_cast<size_t>(done));
    offset += done;
    length -= done;
  }
  return static_cast<uint32_t>(crc);
}

}  // namespace

Result<ZipWriter> ZipWriter::Create(const std::string& path) {
  auto out = OutputFile::Create(path);
  if (!out) return out.error();
  return ZipWriter(std::move(*out));
}

Status ZipWriter::BeginEntry(std::string_view name, uint32_t crc, int64_t size) {
  PT2ONNX_CHECK(!name.empty() && std::ssize(name) <= kLimit16);
  const bool wide = size >= kLimit32;
  const int64_t offset = out_.position();
  entries_.push_back({std::string(name), crc, size, offset});

  Header extra;
  if (wide) extra.U16(1).U16(16).U64(static_cast<uint64_t>(size)).U64(static_cast<uint64_t>(size));
  const int64_t unpadded = offset + 30 + std::ssize(name) + std::ssize(extra.bytes);
  int64_t padding = -unpadded & (kAlignment - 1);
  if (padding > 0) {
    if (padding < 4) padding += kAlignment;  // room for the field's own header
    extra.U16(kPaddingField).U16(static_cast<uint64_t>(padding - 4));
    extra.bytes.append(static_cast<size_t>(padding - 4), 'Z');
  }
  Header header;
  header.U32(0x04034b50).U16(wide ? kVersion64 : kVersion).U16(kUtf8Names).U16(0).U32(kDate).U32(crc);
  header.Clamped32(size).Clamped32(size).U16(name.size()).U16(extra.bytes.size());
  header.bytes += name;
  header.bytes += extra.bytes;
  return out_.Append(header.bytes);
}

Status ZipWriter::AddBytes(std::string_view name, std::span<const std::byte> bytes) {
  const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  // zlib answers the initial value for a null pointer, which is what an empty entry needs.
  if (Status status = BeginEntry(name, static_cast<uint32_t>(crc), std::ssize(bytes)); !status) return status;
  return out_.Append(bytes);
}

Status ZipWriter::AddBytes(std::string_view name, std::string_view text) { return AddBytes(name, std::as_bytes(std::span(text))); }

Status ZipWriter::AddRange(std::string_view name, int fd, int64_t offset, int64_t length, std::optional<uint32_t> crc) {
  if (!crc) {
    auto computed = RangeCrc(fd, offset, length, out_.path());
    if (!computed) return computed.error();
    crc = *computed;
  }
  if (Status status = BeginEntry(name, *crc, length); !status) return status;
  return out_.AppendRange(fd, offset, length);
}

Status ZipWriter::Finish() {
  const int64_t directory = out_.position();
  for (const Entry& entry : entries_) {
    const bool wide_size = entry.size >= kLimit32, wide_offset = entry.header_offset >= kLimit32;
    Header extra;
    if (wide_size || wide_offset) {
      extra.U16(1).U16(wide_size && wide_offset ? 24 : wide_size ? 16 : 8);
      if (wide_size) extra.U64(static_cast<uint64_t>(entry.size)).U64(static_cast<uint64_t>(entry.size));
      if (wide_offset) extra.U64(static_cast<uint64_t>(entry.header_offset));
    }
    const uint16_t version = wide_size || wide_offset ? kVersion64 : kVersion;
    Header header;
    header.U32(0x02014b50).U16(version).U16(version).U16(kUtf8Names).U16(0).U32(kDate).U32(entry.crc);
    header.Clamped32(entry.size).Clamped32(entry.size).U16(entry.name.size()).U16(extra.bytes.size());
    header.U16(0).U16(0).U16(0).U32(0).Clamped32(entry.header_offset);  // comment, disk, attributes
    header.bytes += entry.name;
    header.bytes += extra.bytes;
    if (Status status = out_.Append(header.bytes); !status) return status;
  }
  const int64_t end = out_.position(), count = std::ssize(entries_);
  Header header;
  if (count >= kLimit16 || directory >= kLimit32 || end - directory >= kLimit32) {
    header.U32(0x06064b50).U64(44).U16(kVersion64).U16(kVersion64).U32(0).U32(0);
    header.U64(static_cast<uint64_t>(count)).U64(static_cast<uint64_t>(count));
    header.U64(static_cast<uint64_t>(end - directory)).U64(static_cast<uint64_t>(directory));
    header.U32(0x07064b50).U32(0).U64(static_cast<uint64_t>(end)).U32(1);
  }
  const uint64_t count16 = static_cast<uint64_t>(std::min(count, kLimit16));
  header.U32(0x06054b50).U16(0).U16(0).U16(count16).U16(count16).Clamped32(end - directory).Clamped32(directory).U16(0);
  if (Status status = out_.Append(header.bytes); !status) return status;
  return out_.Commit();
}

}  // namespace pt2onnx
