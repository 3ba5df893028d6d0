#include "onnx/writer.h"

#include <filesystem>

#include "onnx/proto.h"
#include "onnx/table.h"
#include "passes/functions.h"
#include "pt2onnx/pt2onnx.h"
#include "support/output_file.h"

namespace pt2onnx {
namespace {

using protozero::pbf_writer;

constexpr int64_t kInlineLimit = int64_t{256} << 20;     // of --external-data auto
constexpr int64_t kMessageLimit = (int64_t{1} << 31) - 1;  // protobuf's
constexpr int64_t kSmall = 1024;                          // stays in the model: shapes and scalars that a runtime looks at early
constexpr int64_t kPage = 4096;

// What a file is put together from.
struct Piece {
  std::string text;
  std::span<const std::byte> bytes = {};
  int64_t file_offset = 0, file_length = 0;

  int64_t size() const { return std::ssize(text) + std::ssize(bytes) + file_length; }
};

struct Initializer {
  std::string_view name;
  const TensorData* data;
  std::optional<ExternalPlace> external = {};
};

Piece BytesOf(const TensorData& data) {
  if (!data.stored) return {.bytes = data.bytes};
  return {.file_offset = static_cast<int64_t>(data.file_offset), .file_length = static_cast<int64_t>(data.file_length)};
}

int64_t Sum(const std::vector<Piece>& pieces) {
  int64_t size = 0;
  for (const Piece& piece : pieces) size += piece.size();
  return size;
}

std::string Header(uint32_t field, int64_t length) {
  std::string out;
  protozero::add_varint_to_buffer(&out, (field << 3) | 2u);
  protozero::add_varint_to_buffer(&out, static_cast<uint64_t>(length));
  return out;
}

class Writer {
 public:
  Writer(Context& context, const Model& model, const std::string& path, const WriteOptions& options)
      : context_(context), model_(model), path_(path), options_(options), names_(context, *model.graph), ir_version_(OnnxIrVersion(context.opset)),
        encoder_(context, names_, options.dim_names, ir_version_) {}

  Status Run() {
    CollectInitializers();
    if (Status placed = PlaceData(); !placed) return placed;
    const std::vector<Piece> pieces = Encode();
    if (Sum(pieces) > kMessageLimit)
      return Error{"E0123", "the model would be larger than 2 GiB, which protobuf does not allow", "--external-data auto puts the weights into a file of their own"};

    std::optional<OutputFile> data_file;
    if (!data_pieces_.empty()) {
      if (Status written = Write(data_path(), data_pieces_, data_file); !written) return written;
    }
    std::optional<OutputFile> model_file;
    if (Status written = Write(path_, pieces, model_file); !written) return written;
    if (data_file) {
      if (Status done = data_file->Commit(); !done) return done;
    }
    return model_file->Commit();
  }

 private:
  std::string data_path() const { return path_ + ".data"; }

  // Weights, one for each content that lies in one place, and constants.
  void CollectInitializers() {
    using Place = std::tuple<bool, uint64_t, uint64_t, const void*, DType, std::vector<int64_t>>;
    std::map<Place, const Value*> known;
    for (const GraphInput& input : model_.graph->inputs) {
      if (!input.value || !input.data) continue;
      const TensorData& d = *input.data;
      const Place place(d.stored, d.file_offset, d.stored ? d.file_length : d.bytes.size(), d.bytes.data(), d.dtype, {d.shape.begin(), d.shape.end()});
      if (!input.optional && DataSize(d) > 0) {
        const auto [found, fresh] = known.emplace(place, input.value);
        if (!fresh) {
          names_.Alias(input.value, found->second);
          continue;
        }
      }
      initializers_.push_back({names_.Of(input.value), input.data});
    }
    for (const auto& [value, data] : ProtoEncoder::Constants(*model_.graph)) initializers_.push_back({names_.Of(value), data});
  }

  // Which initializers stand outside of the model, and where.
  Status PlaceData() {
    using enum Options::ExternalData;
    if (options_.external_data == kInPlace) return PlaceInInput();
    int64_t total = 0;
    for (const Initializer& initializer : initializers_) total += DataSize(*initializer.data);
    const bool outside = options_.external_data == kAlways || (options_.external_data == kAuto && total > kInlineLimit);
    if (!outside) return Ok{};
    const std::string location = std::filesystem::path(data_path()).filename();
    int64_t at = 0;
    for (Initializer& initializer : initializers_) {
      const int64_t size = DataSize(*initializer.data);
      if (size < kSmall) continue;
      const int64_t align = size >= (1 << 20) ? kPage : 64;
      const int64_t gap = (align - at % align) % align;
      if (gap) data_pieces_.push_back({.text = std::string(static_cast<size_t>(gap), '\0')});
      at += gap;
      initializer.external = ExternalPlace{location, at};
      data_pieces_.push_back(BytesOf(*initializer.data));
      at += size;
    }
    return Ok{};
  }

  // The model points into the .pt2: by a path below the model's own folder, as ONNX demands.
  Status PlaceInInput() {
    std::error_code failed;
    const auto folder = std::filesystem::weakly_canonical(std::filesystem::absolute(path_)).parent_path();
    const auto location = std::filesystem::weakly_canonical(options_.weights_path, failed).lexically_relative(folder);
    if (failed || location.empty() || *location.begin() == "..")
      return Error{"E0124", "a model written to " + folder.string() + " can't point at the weights in " + options_.weights_path,
                   "write the model beside or above the .pt2, or use --external-data auto"};
    for (Initializer& initializer : initializers_)
      if (initializer.data->stored && DataSize(*initializer.data) >= kSmall)
        initializer.external = ExternalPlace{location.string(), static_cast<int64_t>(initializer.data->file_offset)};
    return Ok{};
  }

  std::vector<Piece> Encode() {
    std::vector<Piece> graph;
    {
      std::string text;
      pbf_writer out(text);
      encoder_.Nodes(out, *model_.graph);
      out.add_string(2, model_.name);
      graph.push_back({.text = std::move(text)});
    }
    for (const Initializer& initializer : initializers_) {
      std::string head = encoder_.TensorHead(*initializer.data, initializer.name, initializer.external ? &*initializer.external : nullptr);
      const int64_t inside = initializer.external ? 0 : DataSize(*initializer.data);
      graph.push_back({.text = Header(5, std::ssize(head) + inside) + head});
      if (inside) graph.push_back(BytesOf(*initializer.data));
    }
    {
      std::string text;
      pbf_writer out(text);
      encoder_.ValueInfos(out, *model_.graph);
      graph.push_back({.text = std::move(text)});
    }

    std::vector<Piece> model;
    std::string head;
    pbf_writer out(head);
    out.add_int64(1, ir_version_);
    out.add_string(2, "pt2onnx");
    out.add_string(3, std::string(Version()));
    model.push_back({.text = head + Header(7, Sum(graph))});
    std::move(graph.begin(), graph.end(), std::back_inserter(model));
    model.push_back({.text = Tail()});
    return model;
  }

  std::string Tail() {
    std::string text;
    pbf_writer out(text);
    const auto import = [&](std::string_view domain, int64_t version) {
      pbf_writer opset(out, 8);
      opset.add_string(1, domain.data(), domain.size());
      opset.add_int64(2, version);
    };
    import("", context_.opset);
    std::set<std::string> domains = encoder_.domains();
    for (const Graph* function : model_.functions) {
      ModelNames names(context_, *function);
      ProtoEncoder encoder(context_, names, options_.dim_names, ir_version_);
      encoder.Function(out, *function, kFunctionDomain);
      domains.insert(encoder.domains().begin(), encoder.domains().end());
    }
    for (const std::string& domain : domains) import(domain, 1);
    for (const auto& [key, value] : model_.metadata) {
      pbf_writer entry(out, 14);
      entry.add_string(1, key);
      entry.add_string(2, value);
    }
    return text;
  }

  Status Write(const std::string& path, const std::vector<Piece>& pieces, std::optional<OutputFile>& file) {
    Result<OutputFile> created = OutputFile::Create(path);
    if (!created) return created.error();
    file.emplace(std::move(*created));
    for (const Piece& piece : pieces) {
      if (Status done = file->Append(piece.text); !done) return done;
      if (Status done = file->Append(piece.bytes); !done) return done;
      if (piece.file_length)
        if (Status done = file->AppendRange(options_.weights_fd, piece.file_offset, piece.file_length); !done) return done;
    }
    return Ok{};
  }

  Context& context_;
  const Model& model_;
  const std::string& path_;
  const WriteOptions& options_;
  ModelNames names_;
  int ir_version_;
  ProtoEncoder encoder_;
  std::vector<Initializer> initializers_;
  std::vector<Piece> data_pieces_;
};

}  // namespace

Status WriteModel(Context& context, const Model& model, const std::string& path, const WriteOptions& options) {
  return Writer(context, model, path, options).Run();
}

}  // namespace pt2onnx
