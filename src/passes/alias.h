// The data of Functionalize: memory, the geometries in which the program sees it, and the tensors that have them.
#pragma once

#include <map>

#include "ir/context.h"

namespace pt2onnx {

struct Alias;
inline constexpr uint32_t kStale = UINT32_MAX;

// One memory. The truth is the root's value, except where writes below it have not been carried up yet.
struct Storage {
  Alias* root = nullptr;
  uint32_t version = 0;          // counts writes
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

// Views of one parent that hold writes which it lacks. Several do only if they are intervals of one dim that don't meet.
struct Below {
  int64_t dim = -1;                  // of the parent; -1: one view, of whatever kind
  std::map<int64_t, Alias*> views;   // by where they begin
};

struct Alias {
  Storage* own_storage = nullptr;
  Alias* parent = nullptr;       // null: the root
  ViewStep step;                 // from the parent
  ViewGroup* group = nullptr;
  Type type;                     // shape, dtype, strides and offset in the storage
  std::string_view name;
  LocId loc = 0;
  Value* value = nullptr;        // downstream; right besides what is pending below
  uint32_t stamp = 0;            // version at which that was last known to hold; kStale: never
  uint32_t epoch = 0;            // of the value: each has another number
  uint32_t from = kStale;        // epoch of the parent's value that it follows from
  Below* below = nullptr;        // owned by Functionalize; may be empty
  bool pending = false;          // stands in the parent's `below`: the value is newer than the parent's
  Value* old = nullptr;          // while pending: the value before
  bool overlapping = false;      // two of its elements may be one: a write is carried up at once
  bool filled = false;           // the pending write gave all its elements one value

  bool settled() const { return !below || below->views.empty(); }
  Storage* storage() const {
    Storage* s = own_storage;
    while (s->joined) s = s->joined;
    return s;
  }
};

// Of two aliases of one storage.
Alias* CommonAncestor(Alias* a, Alias* b);

// A tensor of the program. Metadata mutation (t_, set_, resize_) gives it another alias.
struct TensorObject {
  Alias* alias = nullptr;
};

}  // namespace pt2onnx
