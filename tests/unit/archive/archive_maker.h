// Small archives and pickles for tests, made byte by byte so that they do not depend on the writer under test.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pt2onnx {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "pt2onnx-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TempFolder(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }

  std::string Path(std::string_view name) const { return path_ + "/" + std::string(name); }
  std::string Write(std::string_view name, std::string_view content) const {
    std::ofstream(Path(name), std::ios::binary) << content;
    return Path(name);
  }

 private:
  std::string path_;
};

inline std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

template <class T>
std::string Raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
inline std::string U16(uint64_t v) { return Raw(static_cast<uint16_t>(v)); }
inline std::string U32(uint64_t v) { return Raw(static_cast<uint32_t>(v)); }
inline std::string U64(uint64_t v) { return Raw(static_cast<uint64_t>(v)); }

struct TestEntry {
  std::string name, content;
  bool deflate = false;
};

inline std::string Deflated(std::string_view content) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(content.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// As torch writes it: sizes only in the central directory, data descriptors, a zip64 end record, data at multiples of 64.
inline std::string MakeZip(const std::vector<TestEntry>& entries) {
  std::string zip, directory;
  for (const TestEntry& e : entries) {
    const std::string data = e.deflate ? Deflated(e.content) : e.content;
    const uint64_t crc = crc32_z(0, reinterpret_cast<const Bytef*>(e.content.data()), e.content.size());
    const uint64_t at = zip.size(), method = e.deflate ? 8 : 0;
    const uint64_t padding = 64 - (at + 34 + e.name.size()) % 64;
    zip += "PK\3\4" + U16(0) + U16(0x0808) + U16(method) + U32(0) + U32(0) + U32(0) + U32(0) + U16(e.name.size()) + U16(4 + padding);
    zip += e.name + "FB" + U16(padding) + std::string(padding, 'Z') + data;
    zip += "PK\7\10" + U32(crc) + U32(data.size()) + U32(e.content.size());
    directory += "PK\1\2" + U16(0) + U16(0) + U16(0x0808) + U16(method) + U32(0) + U32(crc) + U32(data.size()) + U32(e.content.size());
    directory += U16(e.name.size()) + U16(0) + U16(0) + U16(0) + U16(0) + U32(0) + U32(at) + e.name;
  }
  const uint64_t start = zip.size();
  zip += directory;
  const uint64_t end = zip.size();
  zip += "PK\6\6" + U64(44) + U16(45) + U16(45) + U32(0) + U32(0) + U64(entries.size()) + U64(entries.size()) + U64(directory.size()) + U64(start);
  zip += "PK\6\7" + U32(0) + U64(end) + U32(1);
  zip += "PK\5\6" + U16(0) + U16(0) + U16(entries.size()) + U16(entries.size()) + U32(directory.size()) + U32(start) + U16(0);
  return zip;
}

// Opcodes of a pickle, protocol 2.
namespace pickle {

inline std::string Str(std::string_view text) { return "X" + U32(text.size()) + std::string(text); }
inline std::string Int(int32_t value) { return "J" + Raw(value); }
inline std::string Global(std::string_view module, std::string_view name) { return "c" + std::string(module) + "\n" + std::string(name) + "\n"; }
inline std::string Tuple(const std::vector<std::string>& items) {
  std::string text = "(";
  for (const std::string& item : items) text += item;
  return text + "t";
}
inline std::string Ints(const std::vector<int32_t>& values) {
  std::vector<std::string> items;
  for (int32_t value : values) items.push_back(Int(value));
  return Tuple(items);
}
inline std::string Storage(std::string_view kind, std::string_view key, int32_t count) {
  return Tuple({Str("storage"), Global("torch", kind), Str(key), Str("cpu"), Int(count)}) + "Q";
}
inline std::string Call(std::string_view module, std::string_view name, const std::vector<std::string>& args) {
  return Global(module, name) + Tuple(args) + "R";
}
inline std::string Tensor(const std::string& storage, int32_t offset, const std::vector<int32_t>& sizes, const std::vector<int32_t>& strides,
                          const std::vector<std::string>& more = {}) {
  std::vector<std::string> args = {storage, Int(offset), Ints(sizes), Ints(strides), "\x89", Call("collections", "OrderedDict", {})};
  args.insert(args.end(), more.begin(), more.end());
  return Call("torch._utils", "_rebuild_tensor_v2", args);
}
inline std::string Dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string text = "}(";
  for (const auto& [key, value] : items) text += Str(key) + value;
  return text + "u";
}
inline std::string Whole(const std::string& value) { return "\x80\2" + value + "."; }

}  // namespace pickle

inline std::string MakeTorchSave(const std::string& value, const std::vector<std::pair<std::string, std::string>>& storages, bool deflate = false) {
  std::vector<TestEntry> entries = {{"archive/data.pkl", pickle::Whole(value), deflate}, {"archive/byteorder", "little"}};
  for (const auto& [key, bytes] : storages) entries.push_back({"archive/data/" + key, bytes, deflate});
  return MakeZip(entries);
}

}  // namespace pt2onnx
