#include "eager.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "eager_ops.h"

namespace pt2onnx::property {
namespace {

using Sizes = std::vector<int64_t>;

// Non-overlapping and dense, in whatever order.
bool Packed(const Tensor& t) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t i = 0; i < t.sizes.size(); ++i)
    if (t.sizes[i] != 1) dims.emplace_back(t.strides[i], t.sizes[i]);
  std::sort(dims.begin(), dims.end());
  int64_t expected = 1;
  for (const auto& [stride, size] : dims) {
    if (stride != expected) return false;
    expected *= size;
  }
  return true;
}

}  // namespace

int64_t Product(const Sizes& sizes) { return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>()); }

Sizes RowMajor(const Sizes& sizes) {
  Sizes strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0; step *= std::max<int64_t>(sizes[i], 1)) strides[i] = step;
  return strides;
}

double Round(DType dtype, double x) {
  if (dtype == DType::F32) return static_cast<double>(static_cast<float>(x));
  if (dtype == DType::Bool) return x != 0;
  return std::isfinite(x) ? std::trunc(x) + 0.0 : 0.0;
}

int64_t Flat(const Sizes& index, const Sizes& strides) {
  int64_t at = 0;
  for (size_t d = 0; d < index.size(); ++d) at += index[d] * strides[d];
  return at;
}

// ---- Tensors ------------------------------------------------------------------------------------------------------------------------

int64_t Tensor::numel() const { return Product(sizes); }

TensorPtr NewTensor(DType dtype, std::vector<int64_t> sizes, const std::vector<double>& values) {
  PT2ONNX_CHECK(static_cast<int64_t>(values.size()) == Product(sizes));
  auto memory = std::make_shared<Memory>();
  for (double x : values) memory->data.push_back(Round(dtype, x));
  Sizes strides = RowMajor(sizes);
  return std::make_shared<Tensor>(Tensor{memory, dtype, std::move(sizes), std::move(strides), 0});
}

TensorPtr ViewOf(const Tensor& base, std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset) {
  return std::make_shared<Tensor>(Tensor{base.memory, base.dtype, std::move(sizes), std::move(strides), offset});
}

std::vector<int64_t> AddressesOf(const Tensor& tensor) {
  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(tensor.numel()));
  ForEach(tensor.sizes, [&](const Sizes& index) { out.push_back(tensor.offset + Flat(index, tensor.strides)); });
  return out;
}

std::vector<double> ValuesOf(const Tensor& tensor) {
  std::vector<double> out;
  for (int64_t at : AddressesOf(tensor)) out.push_back(tensor.memory->data.at(static_cast<size_t>(at)));
  return out;
}

void Assign(Tensor& tensor, const std::vector<double>& values) {
  const std::vector<int64_t> addresses = AddressesOf(tensor);
  PT2ONNX_CHECK(values.size() == addresses.size());
  for (size_t i = 0; i < values.size(); ++i) tensor.memory->data.at(static_cast<size_t>(addresses[i])) = Round(tensor.dtype, values[i]);
}

bool Overlaps(const Tensor& tensor) {
  std::vector<int64_t> addresses = AddressesOf(tensor);
  std::sort(addresses.begin(), addresses.end());
  return std::adjacent_find(addresses.begin(), addresses.end()) != addresses.end();
}

bool SameValue(double a, double b) { return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0; }

std::string TextOf(const Tensor& tensor) {
  std::string text = std::string(Name(tensor.dtype)) + "[";
  for (size_t i = 0; i < tensor.sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(tensor.sizes[i]);
  text += "] {";
  char number[32];
  for (double x : ValuesOf(tensor)) {
    std::snprintf(number, sizeof number, " %g", x);
    text += number;
  }
  return text + " }";
}

std::vector<TensorPtr> CopyAll(const std::vector<TensorPtr>& tensors) {
  std::map<const Memory*, std::shared_ptr<Memory>> copies;
  std::vector<TensorPtr> out;
  for (const TensorPtr& t : tensors) {
    std::shared_ptr<Memory>& copy = copies[t->memory.get()];
    if (!copy) copy = std::make_shared<Memory>(*t->memory);
    out.push_back(std::make_shared<Tensor>(*t));
    out.back()->memory = copy;
  }
  return out;
}

std::vector<int64_t> StridesAs(const Tensor& tensor, const std::vector<int64_t>& sizes) {
  Sizes strides = RowMajor(sizes);
  if (tensor.numel() == 0) return tensor.sizes == sizes ? tensor.strides : strides;
  // The only candidates are the distances of neighbours; they are right if all elements are where they should be.
  const std::vector<int64_t> addresses = AddressesOf(tensor);
  const Sizes steps = strides;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1) strides[d] = addresses[static_cast<size_t>(steps[d])] - addresses[0];
  return AddressesOf(*ViewOf(tensor, sizes, strides, tensor.offset)) == addresses ? strides : Sizes(sizes.size() + 1);
}

TensorPtr CloneOf(const Tensor& t, bool row_major) {
  if (row_major || !Packed(t) || t.numel() == 0) return NewTensor(t.dtype, t.sizes, ValuesOf(t));
  auto memory = std::make_shared<Memory>();
  memory->data.resize(static_cast<size_t>(t.numel()));
  auto out = std::make_shared<Tensor>(Tensor{memory, t.dtype, t.sizes, t.strides, 0});
  Assign(*out, ValuesOf(t));
  return out;
}

// ---- Arguments ----------------------------------------------------------------------------------------------------------------------

std::vector<TensorPtr> Args::List(size_t i) const {
  std::vector<TensorPtr> out;
  for (Value* value : std::get<ValueList>(args_[i])) out.push_back(value ? eager.Get(value) : nullptr);
  return out;
}

double Args::Number(size_t i) const {
  return std::visit(
      [](const auto& x) -> double {
        using X = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<X, SymExpr>) return static_cast<double>(x.Const());
        else if constexpr (std::is_arithmetic_v<X>) return static_cast<double>(x);
        else PT2ONNX_UNREACHABLE();
      },
      args_[i]);
}

std::vector<int64_t> Args::Ints(size_t i) const {
  if (const auto* ints = std::get_if<pt2onnx::Ints>(&args_[i])) return Sizes(ints->begin(), ints->end());
  Sizes out;
  for (SymExpr e : std::get<Dims>(args_[i])) out.push_back(e.Const());
  return out;
}

// ---- Running ------------------------------------------------------------------------------------------------------------------------

std::vector<TensorPtr> Eager::Call(const OpSchema& op, std::span<const Arg> args) {
  static const std::map<std::string_view, Function> ops = Ops();
  const auto found = ops.find(op.name);
  if (found == ops.end()) {
    faults.push_back("the interpreter of the test does not know " + std::string(op.name));
    return {};
  }
  return found->second(Args(*this, op, args));
}

void Eager::Set(const Value* value, TensorPtr tensor) {
  if (value->id >= tensors_.size()) tensors_.resize(value->id + 64);
  tensors_[value->id] = std::move(tensor);
}

const TensorPtr& Eager::Get(const Value* value) const {
  PT2ONNX_CHECK(value->id < tensors_.size() && tensors_[value->id]);
  return tensors_[value->id];
}

std::vector<TensorPtr> Eager::Run(const Graph& graph, const std::vector<TensorPtr>& inputs) {
  PT2ONNX_CHECK(inputs.size() == graph.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) Set(graph.inputs[i].value, inputs[i]);
  for (const Node* node : graph.nodes) {
    const std::vector<TensorPtr> results = Call(*node->op, node->args);
    if (!faults.empty()) return {};
    PT2ONNX_CHECK(results.size() == node->results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const Value* value = node->results[i];
      if (!value) continue;
      Set(value, functional ? CloneOf(*results[i], true) : results[i]);
      Sizes shape;
      for (SymExpr e : value->type.shape) shape.push_back(e.TryConst().value_or(-1));
      if (functional && (value->type.dtype != results[i]->dtype || shape != results[i]->sizes))
        faults.push_back("the result of " + std::string(node->op->name) + " is not of the type that its value says");
    }
  }
  std::vector<TensorPtr> outputs;
  for (const GraphOutput& output : graph.outputs) outputs.push_back(Get(std::get<Value*>(output.value)));
  return outputs;
}

}  // namespace pt2onnx::property
