// The data of Functionalize: memory, the geometries in which the program sees it, and the tensors that have them.
#pragma once

#include "ir/context.h"

namespace pt2onnx {

struct Alias;

// One memory. The truth is the root's value, except where a write through `dirty` has not been carried up yet.
struct Storage {
  Alias* root = nullptr;
  uint32_t version = 0;          // counts writes
  Alias* dirty = nullptr;        // its value is newer than its ancestors'; null: the root is current
  std::string_view name;         // the input that holds it; empty: a temporary
  int number = -1;               // state that shares memory has one number
  bool doubted = false;          // Functionalize::doubts_ has it
  Storage* joined = nullptr;     // the storage that this one turned out to be part of
};

// How a view's value follows from its parent's: a functional op whose first tensor argument is replaced.
struct ViewStep {
  const OpSchema* op = nullptr;
  std::span<const Arg> args;
  ViewClass view = ViewClass::None;
};

// Outputs of one multi-output view op (split, unbind): regenerated together by one op.
struct ViewGroup {
  const OpSchema* op;
  std::span<const Arg> args;
  std::span<Alias*> members;     // null: an output nobody names
  std::span<const Type> types;
};

struct Alias {
  Storage* own_storage = nullptr;
  Alias* parent = nullptr;       // null: the root
  ViewStep step;                 // from the parent
  ViewGroup* group = nullptr;
  Type type;                     // shape, dtype, strides and offset in the storage
  std::string_view name;
  LocId loc = 0;
  Value* value = nullptr;        // downstream
  uint32_t stamp = 0;            // version at which `value` was current; kStale: never
  Value* old = nullptr;          // on the dirty path: the value before the writes that were not carried up
  bool overlapping = false;      // two of its elements may be one: a write is carried up at once
  bool filled = false;           // the pending write gave all its elements one value

  Storage* storage() const {
    Storage* s = own_storage;
    while (s->joined) s = s->joined;
    return s;
  }
};
inline constexpr uint32_t kStale = UINT32_MAX;

// Of two aliases of one storage.
Alias* CommonAncestor(Alias* a, Alias* b);

// A tensor of the program. Metadata mutation (t_, set_, resize_) gives it another alias.
struct TensorObject {
  Alias* alias = nullptr;
};

}  // namespace pt2onnx
