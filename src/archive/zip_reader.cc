#include "archive/zip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace pt2onnx {

namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr int64_t kLocalHeaderSize = 30, kCentralHeaderSize = 46, kEndSize = 22, kEnd64Size = 56, kEnd64LocatorSize = 20;
constexpr uint32_t kIn64 = 0xffffffff;  // the number stands in the zip64 field
constexpr int64_t kMaxDeflateRatio = 1032;

// Little-endian number at `at`, which the caller has checked to lie inside.
template <class T>
T Number(std::span<const std::byte> bytes, int64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Overflow-free "[at, at + size) lies in [0, limit)".
bool Inside(uint64_t at, uint64_t size, int64_t limit) {
  const uint64_t end = static_cast<uint64_t>(limit);
  return at <= end && size <= end - at;
}

// The end record, searched from the end because a comment may follow it. Inner zips (.pt members) have one of their own.
std::optional<int64_t> FindEnd(std::span<const std::byte> bytes) {
  const int64_t last = std::ssize(bytes) - kEndSize;
  for (int64_t at = last; at >= 0 && at >= last - 0xffff; --at) {
    if (Number<uint32_t>(bytes, at) != kEnd) continue;
    if (at + kEndSize + Number<uint16_t>(bytes, at + 20) == std::ssize(bytes)) return at;
  }
  return std::nullopt;
}

struct Wide {
  uint64_t size, compressed_size, header_offset;
};

// The zip64 extra field holds only the numbers that did not fit, in this order. False: one is missing.
bool ReadWide(std::span<const std::byte> extra, Wide& wide) {
  if (wide.size != kIn64 && wide.compressed_size != kIn64 && wide.header_offset != kIn64) return true;
  for (int64_t at = 0; at + 4 <= std::ssize(extra);) {
    const int64_t length = Number<uint16_t>(extra, at + 2);
    if (at + 4 + length > std::ssize(extra)) return false;
    if (Number<uint16_t>(extra, at) == 1) {
      const auto field = extra.subspan(static_cast<size_t>(at + 4), static_cast<size_t>(length));
      int64_t next = 0;
      for (uint64_t* number : {&wide.size, &wide.compressed_size, &wide.header_offset}) {
        if (*number != kIn64) continue;
        if (next + 8 > length) return false;
        *number = Number<uint64_t>(field, next);
        next += 8;
      }
      return true;
    }
    at += 4 + length;
  }
  return false;
}

}  // namespace

Error ZipReader::Damaged(const std::string& how) const {
  return {"E0105", what_ + " is damaged or was cut off: " + how, "copy or download the file again, or save the program again"};
}

Result<ZipReader> ZipReader::Open(std::span<const std::byte> bytes, std::string what) {
  ZipReader zip;
  zip.bytes_ = bytes;
  zip.what_ = std::move(what);
  const auto found = FindEnd(bytes);
  if (!found) {
    const bool starts_as_zip = std::ssize(bytes) >= 4 && Number<uint32_t>(bytes, 0) == kLocalHeader;
    if (starts_as_zip) return zip.Damaged("its end is missing");
    return Error{"E0104", zip.what_ + " is not a zip archive, and so not a .pt2 file", "pass a file written by torch.export.save"};
  }
  int64_t directory_end = *found;
  uint64_t count = Number<uint16_t>(bytes, *found + 10);
  uint64_t directory_size = Number<uint32_t>(bytes, *found + 12);
  uint64_t directory_offset = Number<uint32_t>(bytes, *found + 16);
  const int64_t locator = *found - kEnd64LocatorSize;
  if (locator >= 0 && Number<uint32_t>(bytes, locator) == kEnd64Locator) {
    const uint64_t end64 = Number<uint64_t>(bytes, locator + 8);
    if (!Inside(end64, kEnd64Size, locator) || Number<uint32_t>(bytes, static_cast<int64_t>(end64)) != kEnd64) {
      return zip.Damaged("its zip64 end record is missing");
    }
    directory_end = static_cast<int64_t>(end64);
    count = Number<uint64_t>(bytes, directory_end + 32);
    directory_size = Number<uint64_t>(bytes, directory_end + 40);
    directory_offset = Number<uint64_t>(bytes, directory_end + 48);
  }
  // The directory must end where the end record starts: what fails this is a file cut off inside a member that is a zip itself.
  if (!Inside(directory_offset, directory_size, directory_end) || directory_offset + directory_size != static_cast<uint64_t>(directory_end)) {
    return zip.Damaged("its list of entries is not where its end record says");
  }
  if (count > directory_size / kCentralHeaderSize) return zip.Damaged("its list of entries is too short");
  zip.directory_offset_ = static_cast<int64_t>(directory_offset);

  zip.entries_.reserve(count);
  zip.by_name_.reserve(count);
  int64_t at = zip.directory_offset_;
  for (uint64_t i = 0; i < count; ++i) {
    if (!Inside(static_cast<uint64_t>(at), kCentralHeaderSize, directory_end) || Number<uint32_t>(bytes, at) != kCentralHeader) {
      return zip.Damaged("its list of entries is broken");
    }
    const int64_t name_size = Number<uint16_t>(bytes, at + 28);
    const int64_t extra_size = Number<uint16_t>(bytes, at + 30);
    const int64_t comment_size = Number<uint16_t>(bytes, at + 32);
    const int64_t next = at + kCentralHeaderSize + name_size + extra_size + comment_size;
    if (next > directory_end) return zip.Damaged("its list of entries is broken");
    const auto name = bytes.subspan(static_cast<size_t>(at + kCentralHeaderSize), static_cast<size_t>(name_size));
    const auto extra = bytes.subspan(static_cast<size_t>(at + kCentralHeaderSize + name_size), static_cast<size_t>(extra_size));

    ZipEntry entry;
    entry.name = AsText(name);
    entry.flags = Number<uint16_t>(bytes, at + 8);
    entry.method = Number<uint16_t>(bytes, at + 10);
    entry.crc = Number<uint32_t>(bytes, at + 16);
    Wide wide{Number<uint32_t>(bytes, at + 24), Number<uint32_t>(bytes, at + 20), Number<uint32_t>(bytes, at + 42)};
    const std::string called = "entry '" + std::string(entry.name) + "' ";
    if (!ReadWide(extra, wide)) return zip.Damaged(called + "lacks its 64-bit sizes");
    if (wide.size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return zip.Damaged(called + "claims an impossible size");
    if (!Inside(wide.header_offset, static_cast<uint64_t>(kLocalHeaderSize + name_size), zip.directory_offset_) ||
        !Inside(wide.header_offset + static_cast<uint64_t>(kLocalHeaderSize + name_size), wide.compressed_size, zip.directory_offset_)) {
      return zip.Damaged(called + "lies outside the file");
    }
    entry.size = static_cast<int64_t>(wide.size);
    entry.compressed_size = static_cast<int64_t>(wide.compressed_size);
    entry.header_offset = static_cast<int64_t>(wide.header_offset);
    if (entry.method == 0 && entry.size != entry.compressed_size) return zip.Damaged(called + "is stored with two different sizes");
    if (!zip.by_name_.emplace(entry.name, static_cast<int>(i)).second) return zip.Damaged(called + "occurs twice");
    zip.entries_.push_back(entry);
    at = next;
  }
  if (at != directory_end) return zip.Damaged("its list of entries is longer than it says");
  return zip;
}

int ZipReader::Find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? -1 : it->second;
}

Result<std::span<const std::byte>> ZipReader::Read(int index) {
  const ZipEntry& e = entry(index);
  const std::string called = "entry '" + std::string(e.name) + "' ";
  if (e.flags & 1) {
    return Error{"E0109", called + "of " + what_ + " is encrypted", "repack the archive without a password"};
  }
  if (e.method != 0 && e.method != 8) {
    return Error{"E0109", called + "of " + what_ + " is compressed by method " + std::to_string(e.method) + ", which is not supported",
                 "repack the archive with stored or deflated entries"};
  }
  if (Number<uint32_t>(bytes_, e.header_offset) != kLocalHeader) return Damaged(called + "has no header where it should start");
  // The local header has a name and an extra field (torch's padding) of its own lengths.
  const int64_t data =
      e.header_offset + kLocalHeaderSize + Number<uint16_t>(bytes_, e.header_offset + 26) + Number<uint16_t>(bytes_, e.header_offset + 28);
  if (!Inside(static_cast<uint64_t>(data), static_cast<uint64_t>(e.compressed_size), directory_offset_))
    return Damaged(called + "lies outside the file");
  const auto stored = bytes_.subspan(static_cast<size_t>(data), static_cast<size_t>(e.compressed_size));
  if (e.method == 0) return stored;
  return Inflate(index, stored);
}

Result<std::span<const std::byte>> ZipReader::Inflate(int index, std::span<const std::byte> packed) {
  const auto known = inflated_.find(index);
  if (known != inflated_.end()) return std::span<const std::byte>(known->second);
  const ZipEntry& e = entry(index);
  const Error damaged{"E0110", "entry '" + std::string(e.name) + "' of " + what_ + " cannot be decompressed: its data is damaged",
                      "copy or download the file again, or save the program again"};
  if (e.size / kMaxDeflateRatio > e.compressed_size) return damaged;  // no memory for a size that cannot be true

  std::vector<std::byte> out(static_cast<size_t>(e.size));
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return damaged;
  // zlib counts in 32 bits: both sides are handed over in pieces.
  constexpr size_t kPiece = 1u << 30;
  size_t taken = 0, given = 0;
  int state = Z_OK;
  Bytef dummy = 0;
  while (state == Z_OK) {
    const size_t in = std::min(kPiece, packed.size() - taken), room = std::min(kPiece, out.size() - given);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + taken));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = out.empty() ? &dummy : reinterpret_cast<Bytef*>(out.data() + given);
    stream.avail_out = static_cast<uInt>(room);
    state = inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    given += room - stream.avail_out;
    if (state == Z_OK && in == stream.avail_in && room == stream.avail_out) break;  // no progress: more data than the size says
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END || given != out.size()) return damaged;
  const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(out.data()), out.size());
  if (e.crc != 0 && crc != e.crc) return damaged;
  return std::span<const std::byte>(inflated_.emplace(index, std::move(out)).first->second);
}

}  // namespace pt2onnx
