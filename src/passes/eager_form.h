// EagerForm: the last pass before a program is written as a .pt2. Values have no memory, but eager PyTorch runs the program on tensors that
// have: view refuses strides that as a reshape it would take, as_strided indexes the memory, and changed state is copied back in turn.
//
//   %t = aten::permute(%x, [1, 0])                %t = aten::permute(%x, [1, 0])
//   %v = aten::view(%t, [-1])               ->    %v = aten::reshape(%t, [-1])          for Core ATen: clone(contiguous), view
//   %s = aten::as_strided(%t, [2], [1], 0)        %c = aten::clone(%t, contiguous)   %s = aten::as_strided(%c, [2], [1], 0)
//
// - Ops that depend on strides get a row-major operand: itself where it is known to be one, else a clone.
// - An output that lies in the memory of a changed input is cloned: writing state back would change it. So is one that changes two.
// - prims::convert_element_type, which passes emit, is aten::_to_copy, which every torch knows.
#pragma once

#include <unordered_map>

#include "rewrite/aten.h"
#include "rewrite/sink.h"

namespace pt2onnx {

class EagerForm : public PassSink {
 public:
  // core: reshape is written as view, which is in Core ATen.
  EagerForm(Sink& down, bool core) : PassSink(down), aten_(down), core_(core) {}

  Value* Input(const GraphInput& input) override;
  Results Emit(const Call& call) override;
  void Output(const GraphOutput& output) override { outputs_.push_back(output); }
  void Finish() override;

 private:
  struct Memory {
    bool packed = false;           // row-major
    bool own = false;              // and all of its storage, from the start
    const Value* input = nullptr;  // may lie in this input's memory
  };
  Memory MemoryOf(const Value* value) const;
  Memory ResultMemory(const Call& call, std::span<const Arg> args) const;
  Val Packed(Value* value, bool own);
  Value* Reshaped(const Call& call, Value* self, Dims shape);
  void RefuseShape(const GraphInput& input, GraphOutput& output);
  Results Named(const Call& call, Value* value);

  Aten aten_;
  bool core_;
  std::unordered_map<uint32_t, Memory> memory_;
  std::vector<GraphInput> inputs_;  // values downstream
  std::vector<GraphOutput> outputs_;
};

}  // namespace pt2onnx
