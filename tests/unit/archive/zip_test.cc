#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/zip_reader.h"
#include "archive/zip_writer.h"
#include "support/mapped_file.h"
#include "unit/archive/archive_maker.h"

namespace pt2onnx {
namespace {

std::string ReadOf(ZipReader& zip, std::string_view name) {
  auto bytes = zip.Read(zip.Find(name));
  return bytes ? std::string(AsText(*bytes)) : "error " + bytes.error().code;
}

TEST(ZipReader, ReadsStoredAndDeflatedEntries) {
  const std::string big(100000, 'x');
  const std::string bytes = MakeZip({{"a/one", "hello"}, {"a/two", big, true}, {"a/none", ""}, {"a/none_deflated", "", true}});
  auto zip = ZipReader::Open(Bytes(bytes), "'t'");
  ASSERT_TRUE(zip) << zip.error().message;
  ASSERT_EQ(zip->entries().size(), 4u);
  EXPECT_EQ(ReadOf(*zip, "a/one"), "hello");
  EXPECT_EQ(ReadOf(*zip, "a/two"), big);
  EXPECT_EQ(ReadOf(*zip, "a/none"), "");
  EXPECT_EQ(ReadOf(*zip, "a/none_deflated"), "");
  EXPECT_EQ(zip->Find("one"), -1);
  auto stored = zip->Read(0);
  EXPECT_EQ((stored->data() - Bytes(bytes).data()) % 64, 0);
}

TEST(ZipReader, SaysWhatIsNotAZip) {
  EXPECT_EQ(ZipReader::Open(Bytes("#!/bin/sh"), "'t'").error().code, "E0104");
  EXPECT_EQ(ZipReader::Open({}, "'t'").error().code, "E0104");
  EXPECT_EQ(ZipReader::Open(Bytes("PK\3\4 and no end"), "'t'").error().code, "E0105");
}

TEST(ZipReader, RefusesDuplicatesAndUnknownMethods) {
  EXPECT_EQ(ZipReader::Open(Bytes(MakeZip({{"a", "1"}, {"a", "2"}})), "'t'").error().code, "E0105");
  std::string bytes = MakeZip({{"a", "1"}});
  const size_t directory = bytes.find("PK\1\2");
  std::string method = bytes;
  method[directory + 10] = 12;  // bzip2
  auto zip = ZipReader::Open(Bytes(method), "'t'");
  ASSERT_TRUE(zip);
  EXPECT_EQ(zip->Read(0).error().code, "E0109");
  std::string encrypted = bytes;
  encrypted[directory + 8] |= 1;
  zip = ZipReader::Open(Bytes(encrypted), "'t'");
  ASSERT_TRUE(zip);
  EXPECT_EQ(zip->Read(0).error().code, "E0109");
}

TEST(ZipReader, NoticesDamagedCompressedData) {
  std::string bytes = MakeZip({{"a", std::string(1000, 'x') + "y", true}});
  bytes[bytes.find("PK\7\10") - 3] ^= 1;
  auto zip = ZipReader::Open(Bytes(bytes), "'t'");
  ASSERT_TRUE(zip);
  EXPECT_EQ(zip->Read(0).error().code, "E0110");
}

// A file cut off inside a member that is a zip ends like a zip, but its numbers do not fit.
TEST(ZipReader, IsNotFooledByAnInnerZip) {
  const std::string inner = MakeZip({{"x", "1"}});
  const std::string outer = MakeZip({{"weights", "12345"}, {"inner.pt", inner}});
  const size_t end = outer.find("PK\5\6") + 22;
  EXPECT_EQ(ZipReader::Open(Bytes(outer.substr(0, end)), "'t'").error().code, "E0105");
}

TEST(ZipReader, SurvivesEveryTruncationAndEveryChangedByte) {
  const std::string whole = MakeZip({{"r/one", "hello"}, {"r/two", std::string(300, 'b'), true}, {"r/three", MakeZip({{"x", "1"}})}});
  const auto read_all = [](const std::string& bytes) {
    auto zip = ZipReader::Open(Bytes(bytes), "'t'");
    if (!zip) return;
    for (int i = 0; i < static_cast<int>(zip->entries().size()); ++i) {
      if (auto data = zip->Read(i)) {
        int sum = 0;
        for (std::byte b : *data) sum += static_cast<int>(b);
        ASSERT_GE(sum, 0);
      }
    }
  };
  for (size_t size = 0; size < whole.size(); ++size) {
    // A copy of exactly that size, so that a sanitizer sees a read behind it.
    EXPECT_FALSE(ZipReader::Open(Bytes(std::string(whole, 0, size)), "'t'"));
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      read_all(bytes);
    }
  }
}

TEST(ZipWriter, WritesWhatTheReaderReads) {
  TempFolder folder;
  const std::string source = folder.Write("source", "0123456789");
  const int fd = ::open(source.c_str(), O_RDONLY);
  auto writer = ZipWriter::Create(folder.Path("out.zip"));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->AddBytes("r/text", "hello"));
  ASSERT_TRUE(writer->AddBytes("r/empty", ""));
  ASSERT_TRUE(writer->AddRange("r/range", fd, 2, 5));
  ASSERT_TRUE(writer->AddRange("r/known", fd, 2, 5, 0x12345678));
  EXPECT_FALSE(std::filesystem::exists(folder.Path("out.zip")));
  ASSERT_TRUE(writer->Finish());
  ::close(fd);

  auto file = MappedFile::Open(folder.Path("out.zip"));
  ASSERT_TRUE(file);
  auto zip = ZipReader::Open(file->data(), "'t'");
  ASSERT_TRUE(zip) << zip.error().message;
  EXPECT_EQ(ReadOf(*zip, "r/text"), "hello");
  EXPECT_EQ(ReadOf(*zip, "r/empty"), "");
  EXPECT_EQ(ReadOf(*zip, "r/range"), "23456");
  EXPECT_EQ(zip->entry(2).crc, crc32_z(0, reinterpret_cast<const Bytef*>("23456"), 5));
  EXPECT_EQ(zip->entry(3).crc, 0x12345678u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ((zip->Read(i)->data() - file->data().data()) % 64, 0);
}

TEST(ZipWriter, LeavesNothingBehindWithoutFinish) {
  TempFolder folder;
  {
    auto writer = ZipWriter::Create(folder.Path("out.zip"));
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->AddBytes("a", "hello"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.Path("")));
}

TEST(ZipWriter, ManyEntriesNeedZip64) {
  TempFolder folder;
  auto writer = ZipWriter::Create(folder.Path("out.zip"));
  ASSERT_TRUE(writer);
  for (int i = 0; i < 70000; ++i) ASSERT_TRUE(writer->AddBytes(std::to_string(i), "x"));
  ASSERT_TRUE(writer->Finish());
  auto file = MappedFile::Open(folder.Path("out.zip"));
  auto zip = ZipReader::Open(file->data(), "'t'");
  ASSERT_TRUE(zip) << zip.error().message;
  EXPECT_EQ(zip->entries().size(), 70000u);
  EXPECT_EQ(ReadOf(*zip, "69999"), "x");
}

// 5 GiB that are a hole: written and read in no time and on no disk space.
TEST(Zip64, SparseArchiveOver4GiB) {
  TempFolder folder;
  constexpr int64_t kSize = int64_t{5} << 30;
  const std::string source = folder.Write("source", "start");
  ASSERT_EQ(::truncate(source.c_str(), kSize - 3), 0);
  std::ofstream(source, std::ios::binary | std::ios::app) << "end";
  const int fd = ::open(source.c_str(), O_RDONLY);
  auto writer = ZipWriter::Create(folder.Path("out.zip"));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->AddRange("r/big", fd, 0, kSize, 1));
  ASSERT_TRUE(writer->AddBytes("r/behind", "hello"));
  ASSERT_TRUE(writer->Finish());
  ::close(fd);

  auto file = MappedFile::Open(folder.Path("out.zip"));
  ASSERT_TRUE(file);
  struct stat info;
  ASSERT_EQ(::fstat(file->fd(), &info), 0);
  EXPECT_LT(info.st_blocks * 512, 64 << 20);
  auto zip = ZipReader::Open(file->data(), "'t'");
  ASSERT_TRUE(zip) << zip.error().message;
  EXPECT_EQ(ReadOf(*zip, "r/behind"), "hello");
  auto big = zip->Read(zip->Find("r/big"));
  ASSERT_TRUE(big) << big.error().message;
  ASSERT_EQ(std::ssize(*big), kSize);
  EXPECT_EQ(AsText(big->first(6)), std::string_view("start\0", 6));
  EXPECT_EQ(AsText(big->last(4)), std::string_view("\0end", 4));
}

// Torch's own form: the local zip64 field lies, the central one holds only what overflowed.
TEST(Zip64, CentralFieldHoldsOnlyWhatOverflowed) {
  std::string zip = MakeZip({{"one", "hello"}});
  const size_t directory = zip.find("PK\1\2"), end64 = zip.find("PK\6\6");
  std::string head = zip.substr(0, directory), entry = zip.substr(directory, end64 - directory);
  const std::string size = entry.substr(24, 4);
  entry.replace(24, 4, U32(0xffffffff));  // size
  entry.replace(42, 4, U32(0xffffffff));  // offset
  entry.replace(30, 2, U16(4 + 3 + 4 + 16));
  entry += U16(7) + U16(3) + "abc" + U16(1) + U16(16) + U64(5) + U64(0);
  std::string tail = zip.substr(end64);
  tail.replace(40, 8, U64(entry.size()));
  tail.replace(56 + 8, 8, U64(head.size() + entry.size()));
  const std::string bytes = head + entry + tail;
  auto reader = ZipReader::Open(Bytes(bytes), "'t'");
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(ReadOf(*reader, "one"), "hello");
}

}  // namespace
}  // namespace pt2onnx
