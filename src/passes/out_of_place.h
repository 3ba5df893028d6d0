// Ops that write, as values: what their results are and what they leave in the tensors that they write, computed out of place.
//
//   aten::copy_(%x, %y)              written: %y
//   aten::fill_.Scalar(%x, 2)        written: full(sizes of x, 2)
//   aten::add_.Tensor(%x, %y)        written: add.Tensor(%x, %y)
//   aten::batch_norm(..., training)  written: the running mean and variance; returned: the normalized tensor
//
// A new value is not yet in the tensor's dtype and shape: whoever stores it casts and expands.
#pragma once

#include <optional>

#include "rewrite/aten.h"
#include "rewrite/sink.h"

namespace pt2onnx {

// Whether this call writes: batch_norm and its like only do while they train, and only to what they are given.
bool Writes(const Call& call);

// The tensors that a call writes, in schema order, lists flattened.
struct Target {
  Value* value;
  std::string_view arg;
};
std::vector<Target> TargetsOf(const Call& call);

struct OutOfPlace {
  std::vector<Value*> returned;  // results that are tensors of their own, in their order; null: undefined
  std::vector<Value*> written;   // by target
  bool fill = false;             // all elements are one number
};
// `args`: the call's arguments as values downstream; `targets`: types of what is written. Nothing where the op has no out-of-place form.
std::optional<OutOfPlace> ComputeOutOfPlace(Aten& b, Sink& down, const Call& call, std::span<const Arg> args, std::span<const Type> targets);

// Which target result i is; -1: it is a tensor of its own.
int WrittenResult(const Call& call, std::span<const Target> targets, size_t i);

}  // namespace pt2onnx
