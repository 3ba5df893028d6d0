#include "archive/archive.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/zip_reader.h"
#include "archive/zip_writer.h"
#include "unit/archive/archive_maker.h"

namespace pt2onnx {
namespace {

constexpr const char* kProgram = R"({"graph_module": {"graph": {"nodes": []}}, "schema_version": {"major": 8, "minor": 20}})";

std::string Ints(const std::vector<int>& values) {
  std::string text;
  for (int value : values) text += (text.empty() ? "" : ", ") + std::string("{\"as_int\": ") + std::to_string(value) + "}";
  return "[" + text + "]";
}

std::string Payload(std::string_view name, std::string_view path, int dtype, const std::vector<int>& sizes, const std::vector<int>& strides,
                    int offset = 0, std::string_view device = "cpu", bool use_pickle = false, int layout = 7) {
  return "\"" + std::string(name) + "\": {\"path_name\": \"" + std::string(path) +
         "\", \"is_param\": true, \"use_pickle\": " + (use_pickle ? "true" : "false") + ", \"tensor_meta\": {\"dtype\": " + std::to_string(dtype) +
         ", \"sizes\": " + Ints(sizes) + ", \"requires_grad\": false, \"device\": {\"type\": \"" + std::string(device) +
         "\", \"index\": null}, \"strides\": " + Ints(strides) + ", \"storage_offset\": {\"as_int\": " + std::to_string(offset) +
         "}, \"layout\": " + std::to_string(layout) + "}}";
}

std::string Config(const std::vector<std::string>& payloads) {
  std::string text;
  for (const std::string& payload : payloads) text += (text.empty() ? "" : ", ") + payload;
  return "{\"config\": {" + text + "}}";
}

std::vector<TestEntry> RawEntries(const std::string& weights, const std::string& constants = "{\"config\": {}}") {
  return {{"root/data/weights/weight_0", std::string(48, 'a')},
          {"root/data/weights/weight_1", ""},
          {"root/data/weights/model_weights_config.json", weights},
          {"root/data/constants/tensor_0", "constant"},
          {"root/data/constants/model_constants_config.json", constants},
          {"root/models/model.json", kProgram},
          {"root/data/sample_inputs/model.pt", ""},
          {"root/extra/notes/a.txt", "a note"},
          {"root/archive_format", "pt2"}};
}

std::string CodeOf(const TempFolder& folder, const std::vector<TestEntry>& entries, std::string_view model = {}) {
  auto archive = Archive::Open(folder.Write("code.pt2", MakeZip(entries)), model);
  return archive ? "" : archive.error().code;
}

TEST(Archive, RawWeights) {
  TempFolder folder;
  const std::string weights = Config({Payload("w", "weight_0", 7, {3, 4}, {4, 1}), Payload("w.t", "weight_0", 7, {4, 2}, {1, 4}, 4),
                                      Payload("e1", "weight_1", 7, {0, 5}, {5, 1}), Payload("e2", "weight_1", 7, {0}, {1}),
                                      Payload("m", "weight_1", 7, {3}, {1}, 0, "meta")});
  auto archive = Archive::Open(folder.Write("renamed.pt2", MakeZip(RawEntries(weights, Config({Payload("c", "tensor_0", 5, {}, {})})))));
  ASSERT_TRUE(archive) << archive.error().message;
  EXPECT_EQ(archive->layout(), ArchiveLayout::kRaw);
  EXPECT_EQ(archive->model(), "model");
  EXPECT_EQ(archive->program_text(), kProgram);
  EXPECT_EQ(archive->ParseProgram()->root()["schema_version"]["minor"].AsInt(), 20);
  EXPECT_EQ(archive->tensors().size(), 6u);

  const TensorRecord& w = *archive->FindTensor("w");
  const TensorRecord& t = *archive->FindTensor("w.t");
  EXPECT_EQ(w.sizes, (std::vector<int64_t>{3, 4}));
  EXPECT_TRUE(w.is_param && !w.is_constant && !w.is_meta && w.opaque.empty());
  EXPECT_EQ(t.storage_offset, 4);
  EXPECT_EQ(t.storage, w.storage);
  auto bytes = archive->ReadStorage(w.storage);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(AsText(bytes->bytes), std::string(48, 'a'));
  EXPECT_EQ(archive->StorageSize(w.storage), 48);
  ASSERT_TRUE(bytes->file_offset);
  EXPECT_EQ(archive->file().data().data() + *bytes->file_offset, bytes->bytes.data());

  // Empty tensors share an entry but no memory.
  EXPECT_NE(archive->FindTensor("e1")->storage, archive->FindTensor("e2")->storage);
  EXPECT_TRUE(archive->FindTensor("m")->is_meta);
  EXPECT_EQ(archive->FindTensor("m")->storage, -1);
  EXPECT_EQ(archive->FindTensor("m")->opaque, "");
  EXPECT_TRUE(archive->FindTensor("c")->is_constant);
  EXPECT_EQ(AsText(archive->ReadStorage(archive->FindTensor("c")->storage)->bytes), "constant");
  EXPECT_EQ(archive->FindTensor("x"), nullptr);

  EXPECT_EQ(archive->extra_files(), std::vector<std::string>{"notes/a.txt"});
  EXPECT_EQ(AsText(*archive->ReadExtraFile("notes/a.txt")), "a note");
  EXPECT_EQ(archive->ReadExtraFile("b").error().code, "E0114");
  EXPECT_TRUE(archive->ReadSampleInputs()->empty());
}

TEST(Archive, WhatCannotBeUsedIsListedWithAReason) {
  TempFolder folder;
  const std::string weights =
      Config({Payload("far", "weight_0", 7, {3, 4}, {4, 1}, 1), Payload("huge", "weight_0", 7, {2000000000, 2000000000, 2000000000}, {1, 1, 1}),
              Payload("negative", "weight_0", 7, {3}, {-1}), Payload("dtype", "weight_0", 20, {3}, {1}), Payload("gone", "weight_9", 7, {3}, {1}),
              Payload("sub", "weight_0", 7, {3}, {1}, 0, "cpu", true), Payload("sparse", "weight_0", 7, {3}, {1}, 0, "cpu", false, 1),
              "\"obj\": {\"path_name\": \"custom_obj_0\", \"is_param\": false, \"use_pickle\": true, \"tensor_meta\": null}",
              Payload("no_data", "weight_1", 7, {3}, {1}), Payload("ok", "weight_0", 7, {12}, {1})});
  auto archive = Archive::Open(folder.Write("a.pt2", MakeZip(RawEntries(weights))));
  ASSERT_TRUE(archive) << archive.error().message;
  for (const TensorRecord& tensor : archive->tensors()) {
    EXPECT_EQ(tensor.opaque.empty(), tensor.name == "ok") << tensor.name;
    EXPECT_EQ(tensor.storage >= 0, tensor.name == "ok") << tensor.name;
  }
  EXPECT_EQ(archive->FindTensor("far")->opaque, "reaches outside its data, which has only 48 bytes");
  EXPECT_EQ(archive->FindTensor("obj")->opaque, "is a custom object, not a tensor");
}

TEST(Archive, DeflatedEntriesAreInflatedWhenRead) {
  TempFolder folder;
  auto entries = RawEntries(Config({Payload("w", "weight_0", 7, {12}, {1})}));
  for (TestEntry& entry : entries) entry.deflate = true;
  auto archive = Archive::Open(folder.Write("a.pt2", MakeZip(entries)));
  ASSERT_TRUE(archive) << archive.error().message;
  auto bytes = archive->ReadStorage(archive->FindTensor("w")->storage);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(AsText(bytes->bytes), std::string(48, 'a'));
  EXPECT_FALSE(bytes->file_offset);
  EXPECT_TRUE(archive->ParseProgram());
}

std::string PickledWeights(bool deflate = false) {
  using namespace pickle;
  const std::string storage = pickle::Storage("FloatStorage", "0", 6);
  return MakeTorchSave(Dict({{"w", Call("torch._utils", "_rebuild_parameter", {Tensor(storage, 0, {2, 3}, {3, 1}), "\x88", "N"})},
                             {"view", Tensor(storage, 3, {3}, {1})},
                             {"conj", Tensor(pickle::Storage("ComplexFloatStorage", "1", 1), 0, {1}, {1}, {Dict({{"conj", "\x88"}})})},
                             {"sparse", Call("torch._utils", "_rebuild_sparse_tensor", {"N"})}}),
                       {{"0", std::string(24, 'f')}, {"1", Raw(1.0f) + Raw(2.0f)}}, deflate);
}

void CheckPickled(const Archive& archive, bool in_place) {
  const TensorRecord& w = *archive.FindTensor("w");
  EXPECT_TRUE(w.is_param && w.requires_grad);
  EXPECT_EQ(w.dtype, 7);
  EXPECT_EQ(w.sizes, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(archive.FindTensor("view")->storage, w.storage);
  auto bytes = archive.ReadStorage(w.storage);
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_EQ(AsText(bytes->bytes), std::string(24, 'f'));
  EXPECT_EQ(bytes->file_offset.has_value(), in_place);
  auto conj = archive.ReadStorage(archive.FindTensor("conj")->storage);
  EXPECT_EQ(AsText(conj->bytes), Raw(1.0f) + Raw(-2.0f));
  EXPECT_FALSE(conj->file_offset);
  EXPECT_EQ(archive.FindTensor("sparse")->opaque, "is a sparse tensor");
}

TEST(Archive, PickledWeightsOf28) {
  TempFolder folder;
  for (const bool deflate : {false, true}) {
    auto archive = Archive::Open(folder.Write("a.pt2", MakeZip({{"r/models/model.json", kProgram, deflate},
                                                                {"r/data/weights/model.pt", PickledWeights(deflate), deflate},
                                                                {"r/data/constants/model.pt", MakeTorchSave("}", {}), deflate},
                                                                {"r/archive_format", "pt2"}})));
    ASSERT_TRUE(archive) << archive.error().message;
    EXPECT_EQ(archive->layout(), ArchiveLayout::kPickled);
    CheckPickled(*archive, !deflate);
  }
}

TEST(Archive, FlatLayoutOf26) {
  TempFolder folder;
  const char* program = R"({"graph_module": {"v": {"as_float": -Infinity}}})";
  auto archive = Archive::Open(folder.Write("a.pt2", MakeZip({{"serialized_exported_program.json", program},
                                                              {"serialized_state_dict.pt", PickledWeights()},
                                                              {"serialized_constants.pt", MakeTorchSave("}", {})},
                                                              {"serialized_example_inputs.pt", "inputs"},
                                                              {"version", "8.2"},
                                                              {"extra_files/x", "1"}})));
  ASSERT_TRUE(archive) << archive.error().message;
  EXPECT_EQ(archive->layout(), ArchiveLayout::kFlat);
  CheckPickled(*archive, true);
  EXPECT_EQ(archive->ParseProgram()->root()["graph_module"]["v"]["as_float"].AsDouble(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(AsText(*archive->ReadSampleInputs()), "inputs");
  EXPECT_EQ(archive->extra_files(), std::vector<std::string>{"x"});
}

TEST(Archive, SeveralModels) {
  TempFolder folder;
  std::vector<TestEntry> entries = {{"r/models/a.json", "1"}, {"r/models/m/n.json", "2"}, {"r/archive_format", "pt2"}};
  const std::string path = folder.Write("a.pt2", MakeZip(entries));
  auto error = Archive::Open(path).error();
  EXPECT_EQ(error.code, "E0108");
  EXPECT_EQ(error.help, "choose one with --model: a, m/n");
  EXPECT_EQ(Archive::Open(path, "b").error().code, "E0108");
  auto archive = Archive::Open(path, "m/n");
  ASSERT_TRUE(archive);
  EXPECT_EQ(archive->program_text(), "2");
  EXPECT_EQ(archive->models(), (std::vector<std::string>{"a", "m/n"}));
  entries.push_back({"r/models/model.json", "3"});
  auto chosen = Archive::Open(folder.Write("b.pt2", MakeZip(entries)));
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->model(), "model");
}

TEST(Archive, SaysWhatIsWrong) {
  TempFolder folder;
  EXPECT_EQ(Archive::Open(folder.Path("missing.pt2")).error().code, "E0101");
  EXPECT_EQ(Archive::Open(folder.Path("")).error().code, "E0102");
  EXPECT_EQ(Archive::Open(folder.Write("empty.pt2", "")).error().code, "E0103");
  EXPECT_EQ(Archive::Open(folder.Write("text.pt2", "hello")).error().code, "E0104");
  EXPECT_EQ(CodeOf(folder, {}), "E0106");
  EXPECT_EQ(CodeOf(folder, {{"archive/data.pkl", "x"}}), "E0106");
  EXPECT_EQ(CodeOf(folder, {{"m/constants.pkl", "x"}, {"m/data.pkl", "x"}}), "E0106");
  EXPECT_EQ(CodeOf(folder, {{"r/archive_format", "pt3"}, {"r/models/model.json", "1"}}), "E0106");
  EXPECT_EQ(CodeOf(folder, {{"r/archive_format", "pt2"}}), "E0107");
  EXPECT_EQ(CodeOf(folder, {{"r/archive_format", "pt2"}, {"r/data/aotinductor/model/x.so", "x"}}), "E0107");
  EXPECT_EQ(CodeOf(folder, {{"r/archive_format", "pt2"}, {"r/models/model.json", "1"}, {"r/byteorder", "big"}}), "E0109");
  EXPECT_EQ(CodeOf(folder, RawEntries("not json")), "E0112");
  EXPECT_EQ(CodeOf(folder, RawEntries("{}")), "E0113");
  EXPECT_EQ(CodeOf(folder, RawEntries("{\"config\": {\"w\": {}}}")), "E0113");
  EXPECT_EQ(CodeOf(folder, {{"serialized_exported_program.json", "1"}, {"serialized_state_dict.pt", MakeTorchSave("N", {})}}), "E0113");
  EXPECT_EQ(CodeOf(folder, {{"serialized_exported_program.json", "1"}, {"serialized_state_dict.pt", MakeTorchSave("I1\n", {})}}), "E0111");
}

TEST(Archive, SurvivesTruncationAndChangedBytes) {
  TempFolder folder;
  const std::string raw = MakeZip(RawEntries(Config({Payload("w", "weight_0", 7, {3, 4}, {4, 1})})));
  const std::string flat = MakeZip({{"serialized_exported_program.json", kProgram}, {"serialized_state_dict.pt", PickledWeights()}});
  const auto read_all = [&](const std::string& bytes) {
    auto archive = Archive::Open(folder.Write("a.pt2", bytes));
    if (!archive) return false;
    (void)archive->ParseProgram();
    for (const TensorRecord& tensor : archive->tensors()) {
      if (tensor.storage >= 0) (void)archive->ReadStorage(tensor.storage);
    }
    return true;
  };
  for (const std::string& whole : {raw, flat}) {
    EXPECT_TRUE(read_all(whole));
    for (size_t size = 0; size < whole.size(); size += 16) EXPECT_FALSE(read_all(whole.substr(0, size))) << size;
    for (size_t at = 0; at < whole.size(); at += 3) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 0x81);
      read_all(bytes);
    }
  }
}

TEST(Archive, WeightsOver4GiBAreNotTouched) {
  TempFolder folder;
  constexpr int64_t kSize = int64_t{5} << 30;
  const std::string source = folder.Write("source", "");
  ASSERT_EQ(::truncate(source.c_str(), kSize), 0);
  const int fd = ::open(source.c_str(), O_RDONLY);
  auto writer = ZipWriter::Create(folder.Path("big.pt2"));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->AddRange("r/data/weights/weight_0", fd, 0, kSize, 1));
  ASSERT_TRUE(writer->AddBytes("r/data/weights/weight_1", "abcd"));
  ASSERT_TRUE(writer->AddBytes("r/data/weights/model_weights_config.json",
                               Config({Payload("big", "weight_0", 7, {5, 1 << 28}, {1 << 28, 1}), Payload("small", "weight_1", 7, {1}, {1})})));
  ASSERT_TRUE(writer->AddBytes("r/models/model.json", kProgram));
  ASSERT_TRUE(writer->AddBytes("r/archive_format", "pt2"));
  ASSERT_TRUE(writer->Finish());
  ::close(fd);
  auto archive = Archive::Open(folder.Path("big.pt2"));
  ASSERT_TRUE(archive) << archive.error().message;
  EXPECT_EQ(archive->FindTensor("big")->opaque, "");
  EXPECT_EQ(archive->StorageSize(archive->FindTensor("big")->storage), kSize);
  auto small = archive->ReadStorage(archive->FindTensor("small")->storage);
  ASSERT_TRUE(small);
  EXPECT_GT(*small->file_offset, kSize);
  EXPECT_EQ(AsText(small->bytes), "abcd");
}

}  // namespace
}  // namespace pt2onnx
