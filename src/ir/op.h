// Operator schemas: facts about an op, as data. The tables under gen/ hold them; custom ops are parsed from their schema text.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace pt2onnx {

// What an argument may hold. `T?` of torch's schema language is T with ArgSchema::optional.
enum class ArgType : uint8_t {
  Tensor, TensorList, OptTensorList,            // Tensor, Tensor[], Tensor?[]
  Int, SymInt, IntList, SymIntList,             // int, SymInt, int[] (int[2] too), SymInt[]
  Float, FloatList, Bool, BoolList, Str, StrList,
  Scalar, ScalarList, DType, Layout, Device, MemoryFormat, Generator,
  Graph, Any,                                   // sub-graph; what no rule looks at (Storage, Stream, custom classes, operator names)
};

// How a view op's result lies in what it views; one row of the view table (passes/views.h) serves each class.
enum class ViewClass : uint8_t {
  None, Identity, Reshape, Permute, PermuteConj, Slice, Narrow, Select, Unbind, Split, Diagonal, Expand, Unfold, AsStrided, Bitcast,
  AsReal, AsComplex, Real, Imag, Conj, Neg, SliceInverse, Sparse, Nested, Other,
};

enum class OpKind : uint8_t { Functional, View, Inplace, Out, Hidden };

// Facts that are not in the schema text.
enum OpTrait : uint32_t {
  kMaybeAlias = 1 << 0,    // may return its argument (or a view of it), or a copy: decided by strides
  kInplaceView = 1 << 1,   // changes its argument's geometry (t_, resize_, set_)
  kRandom = 1 << 2,        // nondeterministic_seeded: one draw per node, never merged
  kPointwise = 1 << 3,     // tagged pointwise
  kComposite = 1 << 4,     // PyTorch has a decomposition by dispatcher kernel
  kCore = 1 << 5,          // in Core ATen
  kHiddenAlias = 1 << 6,   // aliases an argument without saying so in its schema
  kHiddenWrite = 1 << 7,   // writes an argument without saying so in its schema
  kEffect = 1 << 8,        // kept although nothing reads a result
};

struct ArgSchema {
  std::string_view name;
  ArgType type;
  bool optional = false;       // may be None
  bool keyword_only = false;
  bool writes = false;         // (a!), or written without saying so
  bool input = true;           // onnx: an input; false: an attribute
  char alias = 0;              // alias set 'a', 'b', ... ; 0: none
  bool has_default = false;
  std::string_view default_text = {};  // as in the schema: 1, None, [0, 1], "mean", contiguous_format
  int list_size = 0;           // int[2] -> 2: one number stands for that many
};

struct ResultSchema {
  std::string_view name;       // may be empty
  bool list = false;           // Tensor[]
  char alias = 0;              // shared with an argument's
  bool tensor = true;          // false: a number (Scalar, SymInt, bool)
};

struct OpSchema {
  uint32_t id;                 // dense: position in the table; custom ops follow
  std::string_view name;       // "aten::add.Tensor", "onnx::Add", "hop::cond"
  std::span<const ArgSchema> args;
  std::span<const ResultSchema> results;
  OpKind kind = OpKind::Functional;
  ViewClass view = ViewClass::None;
  uint32_t traits = 0;
  int32_t functional = -1;     // id of the out-of-place form, -1: none

  bool Has(OpTrait trait) const { return (traits & trait) != 0; }
  bool Writes() const { return kind == OpKind::Inplace || kind == OpKind::Out || Has(kHiddenWrite); }
  std::string_view Namespace() const { return name.substr(0, name.find("::")); }
  int ArgIndex(std::string_view arg) const {
    for (size_t i = 0; i < args.size(); ++i)
      if (args[i].name == arg) return static_cast<int>(i);
    return -1;
  }
};

}  // namespace pt2onnx
