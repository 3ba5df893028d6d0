// Reads what torch.save wrote without Python: a pickle machine that knows the opcodes of protocols 2 to 5 and the dozen functions torch uses
// to rebuild tensors. Nothing is imported or executed; any other class becomes an opaque value with its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/zip_reader.h"
#include "support/result.h"

namespace pt2onnx {

enum class PickleKind { kNone, kBool, kInt, kDouble, kStr, kBytes, kTuple, kList, kDict, kGlobal, kStorage, kTensor, kOpaque };

struct PickleTensor {
  int dtype = 0;  // ScalarType code of the .pt2 format
  std::vector<int64_t> sizes, strides;
  int64_t storage_offset = 0;  // in elements
  std::string storage_key;     // names the entry <root>/data/<key>; "" on the meta device
  bool is_meta = false;
  bool is_param = false;
  bool requires_grad = false;
  bool conj = false, neg = false;  // the values are the conjugate (the negative) of what the storage holds
};

// Values may be shared and may contain themselves (a list in itself): whoever walks them bounds the depth.
struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  int64_t number = 0;  // bool, int (clamped to 64 bits); of a storage: element count
  double real = 0;
  std::string text;                 // str, bytes; a global or opaque value's class ("torch._utils._rebuild_tensor_v2"); a storage's key
  int dtype = 0;                    // of a storage; 0: untyped
  std::vector<PickleValue*> items;  // tuple, list; dict as key, value, key, value...
  std::unique_ptr<PickleTensor> tensor;
};

class Pickle {
 public:
  // E0111: a broken pickle, or an opcode that torch.save does not write. `what` names it in messages.
  static Result<Pickle> Load(std::span<const std::byte> bytes, const std::string& what);
  const PickleValue& root() const { return *root_; }

 private:
  friend class PickleMachine;
  std::deque<PickleValue> pool_;  // owns every value
  PickleValue* root_ = nullptr;
};

// A file written by torch.save: a zip of a pickle and its storages.
class TorchSave {
 public:
  static Result<TorchSave> Open(std::span<const std::byte> bytes, const std::string& what);
  const PickleValue& root() const { return pickle_.root(); }
  ZipReader& zip() { return zip_; }
  int FindStorage(std::string_view key) const;  // index of a zip entry, -1 if missing

 private:
  TorchSave(ZipReader zip, Pickle pickle) : zip_(std::move(zip)), pickle_(std::move(pickle)) {}
  ZipReader zip_;
  Pickle pickle_;
  std::string root_folder_;  // with its slash
};

}  // namespace pt2onnx
