// A tiny eager PyTorch: tensors with real memory, strides and identity, one op after the other. It judges the passes, so it shares no code with
// them: a view is an address calculation, a write changes memory, slice_scatter is by definition a copy into a slice of a clone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/context.h"

namespace pt2onnx::property {

struct Memory {
  std::vector<double> data;
  bool packed = true;  // the tensor that it was made for fills it
};

// A tensor object: t_ and its like change it. Elements are doubles, rounded to what the dtype can hold.
struct Tensor {
  std::shared_ptr<Memory> memory;
  DType dtype = DType::F32;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;

  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
  int64_t numel() const;
};
using TensorPtr = std::shared_ptr<Tensor>;

TensorPtr NewTensor(DType dtype, std::vector<int64_t> sizes, const std::vector<double>& values);  // row-major
TensorPtr ViewOf(const Tensor& base, std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset);
std::vector<double> ValuesOf(const Tensor& tensor);                      // in row-major order
std::vector<int64_t> AddressesOf(const Tensor& tensor);                  // in memory, in row-major order
void Assign(Tensor& tensor, const std::vector<double>& values);          // in row-major order
bool Overlaps(const Tensor& tensor);                                     // two of its elements are one
bool SameValue(double a, double b);                                      // NaN is NaN, 0.0 is not -0.0
std::string TextOf(const Tensor& tensor);
// Copies that share memory as the originals do.
std::vector<TensorPtr> CopyAll(const std::vector<TensorPtr>& tensors);
// The strides that show the same elements as `sizes`; empty if there are none.
std::vector<int64_t> StridesAs(const Tensor& tensor, const std::vector<int64_t>& sizes);

class Eager {
 public:
  // What the op answers and changes. Sub-graphs run in place.
  std::vector<TensorPtr> Call(const OpSchema& op, std::span<const Arg> args);
  void Set(const Value* value, TensorPtr tensor);
  const TensorPtr& Get(const Value* value) const;
  std::vector<TensorPtr> Run(const Graph& graph, const std::vector<TensorPtr>& inputs);

  bool functional = false;  // each result is a row-major tensor of its own, of the type that its value says
  std::vector<std::string> faults;

 private:
  std::vector<TensorPtr> tensors_;  // by Value::id
};

}  // namespace pt2onnx::property
