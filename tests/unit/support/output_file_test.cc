#include "support/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/mapped_file.h"
#include "unit/archive/archive_maker.h"

namespace pt2onnx {
namespace {

namespace fs = std::filesystem;

std::string ContentOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(OutputFile, AppearsWholeOrNotAtAll) {
  TempFolder folder;
  const std::string path = folder.Write("out", "old");
  {
    auto out = OutputFile::Create(path);
    ASSERT_TRUE(out);
    ASSERT_TRUE(out->Append("new"));
  }
  EXPECT_EQ(ContentOf(path), "old");
  auto out = OutputFile::Create(path);
  ASSERT_TRUE(out);
  ASSERT_TRUE(out->Append("new"));
  ASSERT_TRUE(out->AppendZeros(2));
  EXPECT_EQ(out->position(), 5);
  ASSERT_TRUE(out->Commit());
  EXPECT_EQ(ContentOf(path), std::string("new\0\0", 5));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.Path("")), {}), 1);
}

TEST(OutputFile, CopiesRangesInOrder) {
  TempFolder folder;
  std::string big;
  for (int i = 0; big.size() < 3'000'000; ++i) big += std::to_string(i);
  const int fd = ::open(folder.Write("source", big).c_str(), O_RDONLY);
  auto out = OutputFile::Create(folder.Path("out"));
  ASSERT_TRUE(out);
  ASSERT_TRUE(out->Append("head"));
  ASSERT_TRUE(out->AppendRange(fd, 17, 2'500'000));
  ASSERT_TRUE(out->Append(big));
  ASSERT_TRUE(out->AppendRange(fd, 5, 0));
  ASSERT_TRUE(out->AppendRange(fd, 5, 3));
  ASSERT_TRUE(out->Commit());
  ::close(fd);
  EXPECT_EQ(ContentOf(folder.Path("out")), "head" + big.substr(17, 2'500'000) + big + big.substr(5, 3));
}

TEST(OutputFile, AHoleAtTheEndCounts) {
  TempFolder folder;
  const std::string source = folder.Write("source", "start");
  ASSERT_EQ(::truncate(source.c_str(), 1 << 20), 0);
  const int fd = ::open(source.c_str(), O_RDONLY);
  auto out = OutputFile::Create(folder.Path("out"));
  ASSERT_TRUE(out);
  ASSERT_TRUE(out->AppendRange(fd, 0, 1 << 20));
  ASSERT_TRUE(out->Commit());
  ::close(fd);
  EXPECT_EQ(ContentOf(folder.Path("out")), "start" + std::string((1 << 20) - 5, '\0'));
}

TEST(OutputFile, ASourceThatIsTooShortFails) {
  TempFolder folder;
  const int fd = ::open(folder.Write("source", "short").c_str(), O_RDONLY);
  auto out = OutputFile::Create(folder.Path("out"));
  ASSERT_TRUE(out);
  EXPECT_EQ(out->AppendRange(fd, 0, 10).error().code, "E0121");
  EXPECT_FALSE(out->Append("more"));
  EXPECT_FALSE(out->Commit());
  ::close(fd);
  EXPECT_FALSE(fs::exists(folder.Path("out")));
}

TEST(OutputFile, KeepsLinksAndPermissions) {
  TempFolder folder;
  const std::string target = folder.Write("target", "old");
  fs::permissions(target, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("target", folder.Path("link"));
  auto out = OutputFile::Create(folder.Path("link"));
  ASSERT_TRUE(out);
  ASSERT_TRUE(out->Append("new"));
  ASSERT_TRUE(out->Commit());
  EXPECT_TRUE(fs::is_symlink(folder.Path("link")));
  EXPECT_EQ(ContentOf(target), "new");
  EXPECT_EQ(fs::status(target).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(OutputFile, SaysWhyItCannotWrite) {
  TempFolder folder;
  EXPECT_EQ(OutputFile::Create(folder.Path("no/such/folder")).error().code, "E0121");
  EXPECT_EQ(OutputFile::Create(folder.Path("")).error().code, "E0121");
  if (fs::exists("/dev/full")) {
    auto out = OutputFile::Create("/dev/full");
    ASSERT_TRUE(out);
    ASSERT_TRUE(out->Append("x"));  // still in the buffer
    EXPECT_EQ(out->Commit().error().code, "E0122");
  }
  auto out = OutputFile::Create("/dev/null");
  ASSERT_TRUE(out);
  ASSERT_TRUE(out->Append("x"));
  EXPECT_TRUE(out->Commit());
  EXPECT_TRUE(fs::exists("/dev/null"));
}

TEST(MappedFile, ReadsAndRefuses) {
  TempFolder folder;
  auto file = MappedFile::Open(folder.Write("a", "hello"));
  ASSERT_TRUE(file);
  const std::byte* data = file->data().data();
  const MappedFile moved = std::move(*file);
  EXPECT_EQ(moved.data().data(), data);
  EXPECT_EQ(moved.size(), 5);
  EXPECT_EQ(MappedFile::Open(folder.Path("missing")).error().code, "E0101");
  EXPECT_EQ(MappedFile::Open(folder.Path("")).error().code, "E0102");
  EXPECT_EQ(MappedFile::Open("/dev/null").error().code, "E0102");
  EXPECT_EQ(MappedFile::Open(folder.Write("empty", "")).error().code, "E0103");
}

}  // namespace
}  // namespace pt2onnx
