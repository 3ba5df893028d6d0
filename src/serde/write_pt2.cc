#include "serde/write_pt2.h"

#include <filesystem>
#include <map>

#include "archive/zip_writer.h"
#include "serde/write_json.h"
#include "serde/write_program.h"

namespace pt2onnx {
namespace {

// The archive's folder: the target's name without its last extension.
std::string RootFolder(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  return stem.empty() ? "archive" : stem;
}

class Pt2Writer {
 public:
  Pt2Writer(const Program& program, const Graph& graph, ZipWriter& zip, std::string root)
      : archive_(program.archive), program_(program), graph_(graph), zip_(zip), root_(std::move(root)) {}

  Status Write(const std::string& model) {
    for (const bool constants : {false, true})
      if (Status status = WriteTensors(constants); !status) return status;
    if (Status status = Add("models/model.json", model); !status) return status;
    const Result<std::span<const std::byte>> inputs = archive_.ReadSampleInputs();
    if (!inputs) return inputs.error();
    if (Status status = AddBytes("data/sample_inputs/model.pt", *inputs); !status) return status;
    for (const std::string& name : archive_.extra_files()) {
      const Result<std::span<const std::byte>> extra = archive_.ReadExtraFile(name);
      if (!extra) return extra.error();
      if (Status status = AddBytes("extra/" + name, *extra); !status) return status;
    }
    constexpr std::pair<std::string_view, std::string_view> kMarks[] = {
        {"archive_format", "pt2"}, {"archive_version", "0"}, {".data/version", "6\n"}, {"byteorder", "little"}};
    for (const auto& [name, text] : kMarks)
      if (Status status = Add(name, text); !status) return status;
    return zip_.Finish();
  }

 private:
  Status Add(std::string_view name, std::string_view text) { return zip_.AddBytes(fmt::format("{}/{}", root_, name), text); }

  // Bytes of the mapped file are copied as its range.
  Status AddBytes(std::string_view name, std::span<const std::byte> bytes, std::optional<uint32_t> crc = {}) {
    const std::string entry = fmt::format("{}/{}", root_, name);
    const std::span<const std::byte> file = archive_.file().data();
    if (!bytes.empty() && bytes.data() >= file.data() && bytes.data() + bytes.size() <= file.data() + file.size())
      return zip_.AddRange(entry, archive_.file().fd(), bytes.data() - file.data(), std::ssize(bytes), crc);
    return zip_.AddBytes(entry, bytes);
  }

  // Parameters and persistent buffers, or constants: their storages, and the table that says how each tensor lies in one.
  Status WriteTensors(bool constants) {
    const std::string folder = constants ? "data/constants/" : "data/weights/";
    const std::string_view prefix = constants ? "tensor_" : "weight_";
    std::string config;
    std::map<std::pair<int, int>, std::string> files;  // storage, dtype -> its file
    int next = 0;
    const auto add = [&](std::string_view name, const TensorRecord& tensor) -> Status {
      if (!tensor.opaque.empty())
        return Error{"E0132", fmt::format("'{}' {}: it can't be written again", name, tensor.opaque), "save the program with plain tensors"};
      const bool stored = tensor.storage >= 0 && archive_.StorageSize(tensor.storage) > 0;
      std::string& file = stored ? files[{tensor.storage, tensor.dtype}] : files[{-1 - next, 0}];
      if (file.empty()) {
        file = fmt::format("{}{}", prefix, next++);
        StorageBytes bytes;
        if (stored) {
          Result<StorageBytes> read = archive_.ReadStorage(tensor.storage);
          if (!read) return read.error();
          bytes = *read;
        }
        if (Status status = AddBytes(folder + file, bytes.bytes, bytes.crc); !status) return status;
      }
      const auto ints = [](const std::vector<int64_t>& list) {
        return ListText(list, [](int64_t x) { return fmt::format("{{\"as_int\": {}}}", x); });
      };
      config += fmt::format(
          "{}{}: {{\"path_name\": {}, \"is_param\": {}, \"use_pickle\": false, \"tensor_meta\": {{\"dtype\": {}, \"sizes\": {}, \"requires_grad\": "
          "{}, "
          "\"device\": {}, \"strides\": {}, \"storage_offset\": {{\"as_int\": {}}}, \"layout\": 7}}}}",
          config.empty() ? "" : ", ", Quoted(name), Quoted(file), BoolText(tensor.is_param), tensor.dtype, ints(tensor.sizes),
          BoolText(tensor.requires_grad), DeviceText(tensor.is_meta ? "meta" : "cpu"), ints(tensor.strides), tensor.storage_offset);
      return Ok{};
    };
    for (const TensorRecord& tensor : archive_.tensors()) {
      if (tensor.is_constant != constants) continue;
      if (Status status = add(tensor.name, tensor); !status) return status;
    }
    // Memory that was added as a buffer of its own, so that its parts can be read from it.
    for (size_t i = static_cast<size_t>(program_.doc.root()["graph_module"]["graph"]["inputs"].Size()); i < graph_.inputs.size(); ++i) {
      const GraphInput& input = graph_.inputs[i];
      TensorRecord whole;
      whole.dtype = Facts(input.value->type.dtype).pt2;
      whole.sizes = {input.value->type.shape[0].Const()};
      whole.strides = {1};
      whole.storage = input.storage;
      if (constants) continue;
      if (Status status = add(AddedStateName(input), whole); !status) return status;
    }
    return Add(folder + fmt::format("model_{}_config.json", constants ? "constants" : "weights"), fmt::format("{{\"config\": {{{}}}}}", config));
  }

  const Archive& archive_;
  const Program& program_;
  const Graph& graph_;
  ZipWriter& zip_;
  std::string root_;
};

}  // namespace

Status WritePt2(Context& context, const Program& program, const Graph& graph, const std::string& path) {
  const std::string model = WriteProgram(context, program, graph);
  if (context.diagnostics.failed()) return Ok{};
  Result<ZipWriter> zip = ZipWriter::Create(path);
  if (!zip) return zip.error();
  return Pt2Writer(program, graph, *zip, RootFolder(path)).Write(model);
}

}  // namespace pt2onnx
