// A .pt2 file, whatever torch wrote it (2.5 to 2.14): the text of one program and where its weights lie.
//
// Opening reads the central directory and the tables of weights. Weights themselves are places in the mapped file: a tensor is
// as_strided(sizes, strides, storage_offset) over a storage, and a storage is read when ReadStorage's bytes are touched.
// Tensors that cannot be represented (subclasses, sparse ones, custom objects, damaged ones) are listed with the reason and are an error only
// for who uses them. See docs/errors.md for the codes (E01xx).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/dtype_codes.h"
#include "support/json.h"
#include "support/mapped_file.h"
#include "support/result.h"

namespace pt2onnx {

enum class ArchiveLayout {
  kFlat,     // torch 2.5 to 2.7: serialized_exported_program.json, pickled weights
  kPickled,  // torch 2.8: archive_format pt2, pickled weights
  kRaw,      // torch 2.9 and later: one file per storage
};

struct TensorRecord {
  std::string name;          // fully qualified name: the parameter_name, buffer_name, tensor_constant_name... of the signature
  bool is_constant = false;  // stands among the constants: lifted tensors, non-persistent buffers, custom objects
  bool is_param = false;
  bool requires_grad = false;
  int dtype = 0;  // ScalarType code of the .pt2 format (7 is float32), 0 when opaque
  std::vector<int64_t> sizes, strides;
  int64_t storage_offset = 0;  // in elements
  int storage = -1;            // the same number: the same memory. -1: no memory (meta device, opaque)
  bool is_meta = false;        // shape without data
  std::string opaque;          // why it cannot be used ("" if it can), a half sentence: "is a tensor subclass, stored as a pickle of ..."
};

struct StorageBytes {
  std::span<const std::byte> bytes;    // the whole storage, at any alignment; in the mapped file, or inflated and owned by the archive
  std::optional<int64_t> file_offset;  // where `bytes` stand in file(), when they do
  std::optional<uint32_t> crc;         // CRC-32 of `bytes` as the archive states it
};

class Archive {
 public:
  // `model_name` is --model; "" takes the only model, or the one called "model".
  static Result<Archive> Open(const std::string& path, std::string_view model_name = {});

  Archive(Archive&&) noexcept;
  Archive& operator=(Archive&&) noexcept;
  ~Archive();

  const MappedFile& file() const;
  ArchiveLayout layout() const;
  const std::vector<std::string>& models() const;  // all names, in file order
  const std::string& model() const;                // the opened one

  std::string_view program_text() const;  // its JSON
  Result<JsonDoc> ParseProgram() const;   // the same, parsed; the document does not need the archive

  const std::vector<TensorRecord>& tensors() const;             // weights, then constants, each in file order
  const TensorRecord* FindTensor(std::string_view name) const;  // nullptr: not in the archive

  int storage_count() const;
  int64_t StorageSize(int storage) const;  // in bytes
  // Touches the weights only if the entry is compressed (then it is inflated once and kept). Not thread-safe.
  Result<StorageBytes> ReadStorage(int storage) const;

  // torch.save of (args, kwargs); empty when the program has none.
  Result<std::span<const std::byte>> ReadSampleInputs() const;
  const std::vector<std::string>& extra_files() const;
  Result<std::span<const std::byte>> ReadExtraFile(std::string_view name) const;

 private:
  struct State;
  explicit Archive(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pt2onnx
