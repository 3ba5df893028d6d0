#include "passes/weights.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "passes/geometry.h"
#include "passes/written.h"

namespace pt2onnx {
namespace {

int64_t Count(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

bool IsRowMajor(const TensorRecord& record) {
  int64_t step = 1;
  for (size_t i = record.sizes.size(); i-- > 0;) {
    if (record.sizes[i] != 1 && record.strides[i] != step) return Count(record.sizes) == 0;
    step *= record.sizes[i];
  }
  return true;
}

// The elements in row-major order, copied one by one.
std::span<const std::byte> Gather(Context& context, const TensorRecord& record, std::span<const std::byte> storage, int64_t item) {
  const int64_t n = Count(record.sizes);
  std::byte* out = static_cast<std::byte*>(context.arena.Allocate(static_cast<size_t>(n * item), 16));
  std::vector<int64_t> at(record.sizes.size(), 0);
  for (int64_t i = 0; i < n; ++i) {
    int64_t from = record.storage_offset;
    for (size_t d = 0; d < at.size(); ++d) from += at[d] * record.strides[d];
    std::memcpy(out + i * item, storage.data() + from * item, static_cast<size_t>(item));
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < record.sizes[d]) break;
      at[d] = 0;
    }
  }
  return {out, static_cast<size_t>(n * item)};
}

const TensorData* DataOf(Context& context, const Archive& archive, const TensorRecord& record, std::string_view name) {
  const auto dtype = DTypeFromPt2(record.dtype);
  if (!record.opaque.empty() || record.is_meta || !dtype) return nullptr;
  TensorData data{.dtype = *dtype, .shape = context.arena.Copy(record.sizes), .name = name};
  const int64_t item = pt2onnx::ItemSize(*dtype), bytes = Count(record.sizes) * item;
  if (bytes == 0) return context.arena.New<TensorData>(data);
  const Result<StorageBytes> storage = archive.ReadStorage(record.storage);
  if (!storage) return nullptr;
  if (!IsRowMajor(record)) {
    data.bytes = Gather(context, record, (*storage).bytes, item);
  } else if ((*storage).file_offset) {
    data.stored = true;
    data.file_offset = static_cast<uint64_t>(*(*storage).file_offset + record.storage_offset * item);
    data.file_length = static_cast<uint64_t>(bytes);
  } else {
    data.bytes = (*storage).bytes.subspan(static_cast<size_t>(record.storage_offset * item), static_cast<size_t>(bytes));
  }
  return context.arena.New<TensorData>(data);
}

Dims ToDims(Context& context, const std::vector<int64_t>& list) { return context.arena.Copy(std::vector<SymExpr>(list.begin(), list.end())); }

}  // namespace

void BindWeights(Context& context, Program& program) {
  struct Sharing {
    std::vector<size_t> inputs;
    bool covered = false;
  };
  std::map<int, Sharing> sharing;
  std::vector<GraphInput>& inputs = program.graph->inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    GraphInput& input = inputs[i];
    const TensorRecord* record = program.Weight(input);
    if (!record || !input.value || input.value->type.kind != Kind::Tensor) continue;
    input.data = DataOf(context, program.archive, *record, input.target);
    input.value->type.strides = ToDims(context, record->strides);
    input.value->type.offset = record->storage_offset;
    if (record->storage < 0 || !input.data) continue;
    Sharing& group = sharing[record->storage];
    group.inputs.push_back(i);
    const int64_t bytes = Count(record->sizes) * pt2onnx::ItemSize(input.data->dtype);
    group.covered |= bytes == program.archive.StorageSize(record->storage) && MemoryOrder(input.value->type).has_value();
  }
  std::erase_if(sharing, [](const auto& entry) { return entry.second.inputs.size() < 2; });
  if (sharing.empty()) return;
  const std::unordered_set<const Value*> written = WrittenInputs(*program.graph);
  for (const auto& [storage, group] : sharing) {
    const auto is_written = [&](size_t i) { return written.contains(inputs[i].value); };
    if (std::none_of(group.inputs.begin(), group.inputs.end(), is_written)) continue;  // tied weights that nobody writes stay apart
    for (size_t i : group.inputs) inputs[i].storage = storage;
    if (group.covered) continue;
    const GraphInput first = inputs[group.inputs[0]];
    const int64_t n = program.archive.StorageSize(storage) / pt2onnx::ItemSize(first.data->dtype);
    TensorRecord whole;
    whole.dtype = Facts(first.data->dtype).pt2;
    whole.sizes = {n};
    whole.strides = {1};
    whole.storage = storage;
    const std::string_view name = context.Join(first.target, ".storage");
    GraphInput input = first;
    input.target = name;
    input.storage = storage;
    input.persistent = false;
    input.value = context.NewValue({.kind = Kind::Tensor, .dtype = first.data->dtype, .shape = ToDims(context, {n})}, name);
    input.data = DataOf(context, program.archive, whole, name);
    inputs.push_back(input);
  }
}

std::string WeightProblem(const Program& program, const GraphInput& input) {
  const TensorRecord* record = program.Weight(input);
  if (!record) return "is not in the archive";
  if (record->is_meta) return "is a meta tensor: the file has its shape, but no data";
  return record->opaque.empty() ? "has an element type that pt2onnx does not know" : record->opaque;
}

}  // namespace pt2onnx
