#include "archive/archive.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "archive/unpickle.h"
#include "archive/zip_reader.h"

namespace pt2onnx {

namespace {

constexpr std::string_view kFlatProgram = "serialized_exported_program.json";
constexpr int kStrided = 7;  // layout code

std::string Quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// "" when as_strided(sizes, strides, storage_offset) stays inside a storage of that many bytes, else what is wrong.
std::string CheckExtent(const TensorRecord& t, int64_t storage_size) {
  const int64_t item = ItemSize(t.dtype);
  if (item == 0) return "has dtype code " + std::to_string(t.dtype) + ", which is not supported";
  if (t.sizes.size() != t.strides.size()) return "has sizes and strides of different length";
  int64_t count = 1, last = t.storage_offset;  // elements; index of the last one
  bool overflow = t.storage_offset < 0, is_empty = false;
  for (size_t i = 0; i < t.sizes.size(); ++i) {
    if (t.sizes[i] < 0 || t.strides[i] < 0) return "has a negative size or stride";
    if (t.sizes[i] == 0) {
      is_empty = true;
      continue;
    }
    int64_t reach;
    overflow |= __builtin_mul_overflow(count, t.sizes[i], &count);
    overflow |= __builtin_mul_overflow(t.sizes[i] - 1, t.strides[i], &reach) || __builtin_add_overflow(last, reach, &last);
  }
  if (overflow) return "has sizes, strides or an offset that are too large";
  if (is_empty || t.is_meta) return "";
  if (last >= storage_size / item) return "reaches outside its data, which has only " + std::to_string(storage_size) + " bytes";
  return "";
}

std::string OpaqueReason(std::string_view class_name) {
  if (class_name.find("_rebuild_sparse") != class_name.npos) return "is a sparse tensor";
  if (class_name.find("_rebuild_qtensor") != class_name.npos) return "is a quantized tensor";
  return "is not a plain tensor but a pickled object" + (class_name.empty() ? std::string() : " of class " + std::string(class_name));
}

// Old pickles can hold a lazy view: the conjugate or the negative of what is stored.
enum class Sign { kAsStored, kConjugate, kNegative };

// Both only flip sign bits: of the imaginary parts, or of every number.
std::vector<std::byte> Flip(std::span<const std::byte> bytes, Sign sign, int dtype) {
  const bool is_complex = dtype >= 9 && dtype <= 11;
  const size_t item = static_cast<size_t>(ItemSize(dtype));
  const size_t step = sign == Sign::kNegative && is_complex ? item / 2 : item;
  std::vector<std::byte> flipped(bytes.begin(), bytes.end());
  for (size_t last = step - 1; last < flipped.size(); last += step) flipped[last] ^= std::byte{0x80};
  return flipped;
}

// Fails for anything but a list of {"as_int": n}.
bool ReadInts(JsonValue list, std::vector<int64_t>& into) {
  if (!list.IsArray()) return false;
  for (JsonValue item : list.Items()) {
    const auto number = item["as_int"].AsInt();
    if (!number) return false;
    into.push_back(*number);
  }
  return true;
}

}  // namespace

struct Archive::State {
  State(MappedFile mapped, ZipReader reader, std::string text) : file(std::move(mapped)), zip(std::move(reader)), what(std::move(text)) {}

  MappedFile file;
  ZipReader zip;
  std::string what;  // the file's name in quotes, for messages
  ArchiveLayout layout = ArchiveLayout::kFlat;
  std::string root;  // with its slash; "" in the flat layout
  std::vector<std::string> models;
  std::string model;
  std::span<const std::byte> program;
  std::vector<TensorRecord> tensors;
  std::unordered_map<std::string_view, size_t> by_name;
  std::vector<std::string> extra_files;
  std::string extra_folder;
  std::string sample_inputs;

  struct Storage {
    ZipReader* zip;
    int entry;
    Sign sign;
    int dtype;                       // matters for a sign only
    std::vector<std::byte> flipped;  // once read, for a sign
  };
  std::vector<Storage> storages;
  std::vector<std::unique_ptr<TorchSave>> saves;  // own the inner zips

  Error NotAProgram(const std::string& why, const std::string& help) const { return {"E0106", what + " " + why, help}; }

  // How many bytes behind `bytes` may be read without leaving the mapping.
  int64_t ReadableAfter(std::span<const std::byte> bytes) const {
    const auto offset = FileOffset(bytes);
    return offset ? file.size() - *offset - std::ssize(bytes) : 0;
  }

  std::optional<int64_t> FileOffset(std::span<const std::byte> bytes) const {
    const std::byte* begin = file.data().data();
    if (std::less<>()(bytes.data(), begin) || std::less<>()(begin + file.size(), bytes.data() + bytes.size())) return std::nullopt;
    return bytes.data() - begin;
  }

  Result<JsonDoc> ParseEntry(int entry) {
    auto bytes = zip.Read(entry);
    if (!bytes) return bytes.error();
    auto doc = JsonDoc::Parse(AsText(*bytes), ReadableAfter(*bytes));
    if (!doc) return Error{doc.error().code, "entry " + Quoted(zip.entry(entry).name) + " of " + what + " is " + doc.error().message, ""};
    return doc;
  }

  Status FindLayout();
  Status FindModels();
  Status ChooseModel(std::string_view name);
  Status ReadTensors();
  Status ReadConfig(int entry, const std::string& folder, bool is_constant);
  Status ReadPickledTensors(int entry, bool is_constant);
  void AddTensor(TensorRecord tensor, ZipReader* from, int entry, Sign sign, std::unordered_map<int, int>& known);
  void ListExtraFiles();
};

Status Archive::State::FindLayout() {
  if (zip.Find(kFlatProgram) >= 0) {
    layout = ArchiveLayout::kFlat;
    return Ok{};
  }
  // The first entry names the root folder; the file itself may have been renamed since.
  if (!zip.entries().empty()) {
    const std::string_view first = zip.entry(0).name;
    root = std::string(first.substr(0, first.find('/') + 1));
  }
  const int format = zip.Find(root + "archive_format");
  if (format < 0) {
    const bool is_script = zip.Find(root + "constants.pkl") >= 0;
    const bool is_save = zip.Find(root + "data.pkl") >= 0;
    if (is_script)
      return NotAProgram("is a TorchScript archive, not an exported program", "export the module with torch.export.export and torch.export.save");
    if (is_save)
      return NotAProgram("was written by torch.save: it holds values, not a program",
                         "export the module with torch.export.export and torch.export.save");
    return NotAProgram("is a zip archive but not an exported program", "pass a file written by torch.export.save");
  }
  auto text = zip.Read(format);
  if (!text) return text.error();
  if (AsText(*text) != "pt2") {
    return NotAProgram("has archive format " + Quoted(AsText(*text).substr(0, 32)) + ", not 'pt2'", "pass a file written by torch.export.save");
  }
  if (const int order = zip.Find(root + "byteorder"); order >= 0) {
    auto order_text = zip.Read(order);
    if (!order_text) return order_text.error();
    if (AsText(*order_text) == "big")
      return Error{"E0109", what + " was written on a big-endian machine", "save the program on a little-endian machine"};
  }
  layout = ArchiveLayout::kRaw;
  return Ok{};
}

Status Archive::State::FindModels() {
  if (layout == ArchiveLayout::kFlat) {
    models.push_back("model");
    return Ok{};
  }
  const std::string prefix = root + "models/";
  constexpr std::string_view kSuffix = ".json";
  bool has_compiled = false;
  for (const ZipEntry& entry : zip.entries()) {
    std::string_view name = entry.name;
    has_compiled |= name.starts_with(root + "data/aotinductor/");
    if (!name.starts_with(prefix) || !name.ends_with(kSuffix) || name.size() <= prefix.size() + kSuffix.size()) continue;
    name.remove_prefix(prefix.size());
    name.remove_suffix(kSuffix.size());
    models.emplace_back(name);
  }
  if (!models.empty()) return Ok{};
  if (has_compiled) {
    return Error{"E0107", what + " holds code compiled by AOTInductor and no exported program",
                 "save the program itself: torch.export.save(exported, path)"};
  }
  return Error{"E0107", what + " holds no exported program (no models/*.json); a torch.export.save that failed leaves such a file",
               "save again and look at the exception that torch.export.save raises"};
}

Status Archive::State::ChooseModel(std::string_view name) {
  const auto has = [&](std::string_view wanted) { return std::find(models.begin(), models.end(), wanted) != models.end(); };
  if (!name.empty()) {
    if (!has(name)) return Error{"E0108", what + " holds no model " + Quoted(name), "the models in it: " + Joined(models)};
    model = name;
  } else if (models.size() == 1) {
    model = models[0];
  } else if (has("model")) {
    model = "model";  // the one that torch.export.load takes
  } else {
    return Error{"E0108", what + " holds " + std::to_string(models.size()) + " models and none was chosen",
                 "choose one with --model: " + Joined(models)};
  }
  const bool is_flat = layout == ArchiveLayout::kFlat;
  auto text = zip.Read(zip.Find(is_flat ? std::string(kFlatProgram) : root + "models/" + model + ".json"));
  if (!text) return text.error();
  program = *text;
  sample_inputs = is_flat ? "serialized_example_inputs.pt" : root + "data/sample_inputs/" + model + ".pt";
  return Ok{};
}

Status Archive::State::ReadTensors() {
  for (const bool is_constant : {false, true}) {
    if (layout == ArchiveLayout::kFlat) {
      const std::string stem = is_constant ? "serialized_constants" : "serialized_state_dict";
      int entry = zip.Find(stem + ".pt");
      if (entry < 0) entry = zip.Find(stem + ".json");  // the oldest files call the pickle so
      if (Status status = ReadPickledTensors(entry, is_constant); !status) return status;
      continue;
    }
    const std::string kind = is_constant ? "constants" : "weights";
    const std::string folder = root + "data/" + kind + "/";
    if (const int pickled = zip.Find(folder + model + ".pt"); pickled >= 0) {
      layout = ArchiveLayout::kPickled;
      if (Status status = ReadPickledTensors(pickled, is_constant); !status) return status;
    } else if (const int config = zip.Find(folder + model + "_" + kind + "_config.json"); config >= 0) {
      if (Status status = ReadConfig(config, folder, is_constant); !status) return status;
    }
  }
  by_name.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) by_name.emplace(tensors[i].name, i);
  return Ok{};
}

// `known` maps an entry to its storage, for this one zip: tensors that name the same entry share memory.
void Archive::State::AddTensor(TensorRecord tensor, ZipReader* from, int entry, Sign sign, std::unordered_map<int, int>& known) {
  const int64_t size = entry < 0 ? 0 : from->entry(entry).size;
  if (tensor.opaque.empty()) tensor.opaque = CheckExtent(tensor, size);
  if (tensor.opaque.empty() && !tensor.is_meta) {
    // All empty tensors of a dtype are written to one entry of no bytes: that is no shared memory.
    const auto [at, is_new] = known.try_emplace(entry, static_cast<int>(storages.size()));
    tensor.storage = at->second;
    if (is_new) storages.push_back({from, entry, sign, tensor.dtype, {}});
    if (storages[static_cast<size_t>(tensor.storage)].sign != sign) {
      tensor.storage = -1;
      tensor.opaque = "shares its memory with its own conjugate or negative";
    }
    if (size == 0) known.erase(at);
  }
  tensors.push_back(std::move(tensor));
}

// {"config": {name: {"path_name", "is_param", "use_pickle", "tensor_meta"}}}
Status Archive::State::ReadConfig(int entry, const std::string& folder, bool is_constant) {
  auto doc = ParseEntry(entry);
  if (!doc) return doc.error();
  const JsonValue config = doc->root()["config"];
  const std::string called = "entry " + Quoted(zip.entry(entry).name) + " of " + what;
  if (!config.IsObject()) return Error{"E0113", called + " is not a table of weights: it has no 'config'", "save the program again"};
  tensors.reserve(tensors.size() + static_cast<size_t>(config.Size()));
  std::unordered_map<int, int> known;
  for (const auto [name, payload] : config.Members()) {
    TensorRecord tensor;
    tensor.name = name;
    tensor.is_constant = is_constant;
    tensor.is_param = payload["is_param"].AsBool().value_or(false);
    const JsonValue meta = payload["tensor_meta"];
    const auto path = payload["path_name"].AsString();
    if (!path) return Error{"E0113", called + " does not say where " + Quoted(name) + " is stored", "save the program again"};
    const int data = zip.Find(folder + std::string(*path));
    if (path->starts_with("custom_obj_") || path->starts_with("opaque_obj_")) {
      tensor.opaque = "is a custom object, not a tensor";
    } else if (payload["use_pickle"].AsBool().value_or(false)) {
      tensor.opaque = "is a tensor subclass, stored as a pickled Python object";
    } else if (data < 0) {
      tensor.opaque = "has no data: entry " + Quoted(folder + std::string(*path)) + " is missing";
    }
    if (tensor.opaque.empty()) {
      const auto dtype = meta["dtype"].AsInt();
      const auto offset = meta["storage_offset"]["as_int"].AsInt();
      if (!dtype || !offset || !ReadInts(meta["sizes"], tensor.sizes) || !ReadInts(meta["strides"], tensor.strides)) {
        return Error{"E0113", called + " does not describe " + Quoted(name) + " completely", "save the program again"};
      }
      tensor.dtype = static_cast<int>(std::clamp<int64_t>(*dtype, 0, 1 << 20));
      tensor.storage_offset = *offset;
      tensor.requires_grad = meta["requires_grad"].AsBool().value_or(false);
      tensor.is_meta = meta["device"]["type"].AsString() == "meta";
      if (const int64_t code = meta["layout"].AsInt().value_or(kStrided); code != kStrided) {
        tensor.opaque = "has a memory layout that is not strided (code " + std::to_string(code) + ")";
      }
    }
    AddTensor(std::move(tensor), &zip, data, Sign::kAsStored, known);
  }
  return Ok{};
}

Status Archive::State::ReadPickledTensors(int entry, bool is_constant) {
  if (entry < 0) return Ok{};
  auto bytes = zip.Read(entry);
  if (!bytes) return bytes.error();
  if (bytes->empty()) return Ok{};
  const std::string called = "entry " + Quoted(zip.entry(entry).name) + " of " + what;
  auto opened = TorchSave::Open(*bytes, called);
  if (!opened) return opened.error();
  TorchSave& save = *saves.emplace_back(std::make_unique<TorchSave>(std::move(*opened)));
  if (save.root().kind != PickleKind::kDict) return Error{"E0113", called + " is not a dictionary of tensors", "save the program again"};
  std::unordered_map<int, int> known;
  const auto& items = save.root().items;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i]->kind != PickleKind::kStr) return Error{"E0113", called + " has a key that is not a name", "save the program again"};
    TensorRecord tensor;
    tensor.name = items[i]->text;
    tensor.is_constant = is_constant;
    int data = -1;
    Sign sign = Sign::kAsStored;
    if (items[i + 1]->kind == PickleKind::kTensor) {
      const PickleTensor& pickled = *items[i + 1]->tensor;
      tensor.is_param = pickled.is_param;
      tensor.requires_grad = pickled.requires_grad;
      tensor.dtype = pickled.dtype;
      tensor.sizes = pickled.sizes;
      tensor.strides = pickled.strides;
      tensor.storage_offset = pickled.storage_offset;
      tensor.is_meta = pickled.is_meta;
      data = pickled.is_meta ? -1 : save.FindStorage(pickled.storage_key);
      if (pickled.conj || pickled.neg) sign = pickled.conj ? Sign::kConjugate : Sign::kNegative;
      if (data < 0 && !pickled.is_meta) tensor.opaque = "has no data: storage " + Quoted(pickled.storage_key) + " is missing";
    } else {
      tensor.opaque = OpaqueReason(items[i + 1]->text);
    }
    AddTensor(std::move(tensor), &save.zip(), data, sign, known);
  }
  return Ok{};
}

void Archive::State::ListExtraFiles() {
  extra_folder = layout == ArchiveLayout::kFlat ? "extra_files/" : root + "extra/";
  for (const ZipEntry& entry : zip.entries()) {
    if (entry.name.starts_with(extra_folder) && !entry.name.ends_with('/')) extra_files.emplace_back(entry.name.substr(extra_folder.size()));
  }
}

Archive::Archive(std::unique_ptr<State> state) : state_(std::move(state)) {}
Archive::Archive(Archive&&) noexcept = default;
Archive& Archive::operator=(Archive&&) noexcept = default;
Archive::~Archive() = default;

Result<Archive> Archive::Open(const std::string& path, std::string_view model_name) {
  auto file = MappedFile::Open(path);
  if (!file) return file.error();
  auto zip = ZipReader::Open(file->data(), Quoted(path));
  if (!zip) return zip.error();
  auto state = std::make_unique<State>(std::move(*file), std::move(*zip), Quoted(path));
  if (Status status = state->FindLayout(); !status) return status.error();
  if (Status status = state->FindModels(); !status) return status.error();
  if (Status status = state->ChooseModel(model_name); !status) return status.error();
  if (Status status = state->ReadTensors(); !status) return status.error();
  state->ListExtraFiles();
  return Archive(std::move(state));
}

const MappedFile& Archive::file() const { return state_->file; }
ArchiveLayout Archive::layout() const { return state_->layout; }
const std::vector<std::string>& Archive::models() const { return state_->models; }
const std::string& Archive::model() const { return state_->model; }
std::string_view Archive::program_text() const { return AsText(state_->program); }
const std::vector<TensorRecord>& Archive::tensors() const { return state_->tensors; }
int Archive::storage_count() const { return static_cast<int>(state_->storages.size()); }
const std::vector<std::string>& Archive::extra_files() const { return state_->extra_files; }

Result<JsonDoc> Archive::ParseProgram() const {
  auto doc = JsonDoc::Parse(program_text(), state_->ReadableAfter(state_->program));
  if (!doc) return Error{doc.error().code, "the program in " + state_->what + " is " + doc.error().message, "save the program again"};
  return doc;
}

const TensorRecord* Archive::FindTensor(std::string_view name) const {
  const auto it = state_->by_name.find(name);
  return it == state_->by_name.end() ? nullptr : &state_->tensors[it->second];
}

int64_t Archive::StorageSize(int storage) const {
  PT2ONNX_CHECK(storage >= 0 && storage < storage_count());
  const State::Storage& at = state_->storages[static_cast<size_t>(storage)];
  return at.zip->entry(at.entry).size;
}

Result<StorageBytes> Archive::ReadStorage(int storage) const {
  PT2ONNX_CHECK(storage >= 0 && storage < storage_count());
  State::Storage& at = state_->storages[static_cast<size_t>(storage)];
  auto bytes = at.zip->Read(at.entry);
  if (!bytes) return bytes.error();
  StorageBytes result;
  if (at.sign != Sign::kAsStored) {
    if (at.flipped.empty()) at.flipped = Flip(*bytes, at.sign, at.dtype);
    result.bytes = at.flipped;
    return result;
  }
  result.bytes = *bytes;
  result.file_offset = state_->FileOffset(*bytes);
  if (const uint32_t crc = at.zip->entry(at.entry).crc; crc != 0) result.crc = crc;  // 0: the writer left it out
  return result;
}

Result<std::span<const std::byte>> Archive::ReadSampleInputs() const {
  const int entry = state_->zip.Find(state_->sample_inputs);
  if (entry < 0) return std::span<const std::byte>();
  return state_->zip.Read(entry);
}

Result<std::span<const std::byte>> Archive::ReadExtraFile(std::string_view name) const {
  const int entry = state_->zip.Find(state_->extra_folder + std::string(name));
  if (entry < 0)
    return Error{"E0114", state_->what + " holds no extra file " + Quoted(name), "the extra files in it: " + Joined(state_->extra_files)};
  return state_->zip.Read(entry);
}

}  // namespace pt2onnx
