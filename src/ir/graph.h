// The one intermediate representation. Values are single-assignment, nodes stand in execution order, sub-graphs are arguments.
//
//   graph(%x: f32[s0, 4]) { %y = aten::relu(%x)  return %y }
//
// Numbers that the program computes from sizes (SymInt) are symbolic expressions in arguments, not values: only tensors flow.
// A value of kind Sym is a dynamic scalar input, or a number read out of a tensor (aten::item), that defines its symbol.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/dtype.h"
#include "ir/op.h"
#include "ir/symexpr.h"

namespace pt2onnx {

struct Node;
struct Graph;
struct Value;

enum class Kind : uint8_t { None, Tensor, Sym, Opaque };

using Dims = std::span<const SymExpr>;

struct Type {
  Kind kind = Kind::None;
  DType dtype = DType::Unknown;
  bool ranked = true;          // onnx stage only: false where nothing is known of the shape
  Dims shape = {};             // a dim may be SymExpr::Unknown() at the onnx stage
  Dims strides = {};           // of the recorded tensor, in elements; empty where none was recorded (then row-major)
  SymExpr offset = 0;          // of the recorded tensor in its storage, in elements
  SymExpr value = 0;           // Kind::Sym: the symbol or expression it stands for
};

// Where a node comes from; parsed only when a message needs it.
struct Loc {
  std::string_view node;             // its name in the exported program
  std::string_view stack_trace;
  std::string_view module_stack;     // nn_module_stack as recorded: "key,path,type;..."
};
using LocId = uint32_t;              // 0: nowhere

struct Value {
  uint32_t id = 0;                   // dense in a Context
  uint32_t problem = 0;              // not 0: poisoned; number of the problem in Diagnostics
  std::string_view name;             // the program's name for it; empty: inner
  Type type;
  Node* def = nullptr;               // null: a graph input
  uint32_t result = 0;               // which of def's results
};

// Bytes of a constant or a weight: in memory (arena), or a range of the input file that nobody has to read.
struct TensorData {
  DType dtype = DType::Unknown;
  std::span<const int64_t> shape;
  std::span<const std::byte> bytes;  // row-major; empty if `stored`
  bool stored = false;               // then it is the bytes [file_offset, file_offset + file_length) of the .pt2
  uint64_t file_offset = 0, file_length = 0;
  std::string_view name;             // initializer name; empty: a constant without one
};

struct MemoryFormat {                // 1 contiguous, 2 channels_last, 3 channels_last_3d, 4 preserve
  int64_t code;
  bool operator==(const MemoryFormat&) const = default;
};
struct Device {
  std::string_view name;
  bool operator==(const Device&) const = default;
};

using ValueList = std::span<Value* const>;  // null: None in an optional list
using Ints = std::span<const int64_t>;
using Doubles = std::span<const double>;
using Bools = std::span<const bool>;
using Texts = std::span<const std::string_view>;

// std::monostate is None. Arguments stand in schema order with defaults filled.
using Arg = std::variant<std::monostate, Value*, ValueList, bool, int64_t, double, std::complex<double>, SymExpr, std::string_view, DType,
                         MemoryFormat, Device, Ints, Dims, Doubles, Bools, Texts, Graph*, const TensorData*>;
inline bool IsNone(const Arg& arg) { return std::holds_alternative<std::monostate>(arg); }

struct Node {
  const OpSchema* op = nullptr;
  std::span<Arg> args;
  std::span<Value*> results;         // lists are flattened; null: an undefined tensor (None)
  LocId loc = 0;
};

enum class InputKind : uint8_t { User, Parameter, Buffer, Constant, Token, Opaque, Plain };  // Plain: of a sub-graph
struct GraphInput {
  Value* value = nullptr;            // null: a constant input, baked into the program
  InputKind kind = InputKind::Plain;
  std::string_view target;           // FQN of a parameter, buffer or constant; of a user input the name that the user knows
  bool persistent = true;            // of a buffer
  Arg constant = {};                 // of a constant input
  int storage = -1;                  // of state: inputs with the same number share memory; -1: alone
  const TensorData* data = nullptr;  // of state: its value; onnx stage: an initializer
  bool optional = false;             // onnx stage: an initializer that also stands among the graph inputs
};

enum class OutputKind : uint8_t { User, BufferMutation, ParameterMutation, InputMutation, Plain };
struct GraphOutput {
  Arg value;                         // Value*, or a number, SymExpr, text, None
  OutputKind kind = OutputKind::Plain;
  std::string_view target = {};      // FQN, or the input's name
  std::string_view storage = {};     // of a mutation: target of the input that holds its storage
};

struct Graph {
  std::string_view name;
  std::vector<GraphInput> inputs;
  std::vector<Node*> nodes;
  std::vector<GraphOutput> outputs;
};

}  // namespace pt2onnx
