// One graph of model.json (sub-graphs by recursion) -> Graph. See read_program.h for what is done.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/context.h"
#include "support/json.h"
#include "support/result.h"

namespace pt2onnx {

// What the graphs of one program share.
struct ReadState {
  explicit ReadState(Context& c) : context(c) {}
  Context& context;
  std::optional<Error> error;                           // the first one; nobody goes on reading after it
  std::unordered_map<std::string_view, SymExpr> exprs;  // by their text: a size occurs thousands of times
  struct Op {
    const OpSchema* op = nullptr;
    bool from_use = false;  // no table knows it: its schema grows with its uses
  };
  std::unordered_map<std::string_view, Op> ops;  // by target
  std::unordered_map<const ArgSchema*, Arg> defaults;

  void Fail(std::string_view code, std::string message, std::string help = {});
};

class GraphReader {
 public:
  // `where` begins the place in messages: "graph_module.graph".
  GraphReader(ReadState& state, JsonValue graph, std::string where, int depth = 0);

  // The inputs and outputs are Plain; the signature makes them what they are. After a failure of the state the answer means nothing.
  Graph* Read();
  // An argument on its own, as in a signature.
  Arg ReadArgument(JsonValue argument);

 private:
  // A name of this graph, from one of the *_values maps.
  struct Name {
    enum Map : uint8_t { kTensor, kInt, kFloat, kBool, kObject };
    JsonValue record;
    Map map;
    Value* value = nullptr;  // null until it is defined; sizes have none at all
  };

  // One of a node's inputs.
  struct Input {
    std::string_view name;  // "" in higher-order ops
    bool keyword = false;
    Arg arg;
    JsonValue json;
  };

  void CollectNames();
  Name* Find(std::string_view name);
  Value* Define(std::string_view name, Node* def, size_t result, bool object = false);
  Type TypeOf(const Name& name);
  Type TensorType(JsonValue meta);
  Dims ReadDims(JsonValue list);
  SymExpr Expr(JsonValue record);
  SymExpr ParseExpr(std::string_view text);

  void ReadInput(JsonValue argument);
  void ReadOutput(JsonValue argument);
  void ReadNode(JsonValue json);
  Node* Emit(const OpSchema& op, std::span<const Arg> args);
  void ReadResults(JsonValue outputs, int64_t count, Node* node);
  // The call that auto_functionalized stands for, on clones of what it writes. False: it is not to be seen from here which those are.
  bool ReadAutoFunctionalized(JsonValue json, std::span<const Input> inputs);
  Value* RegenerateView(Value* base, std::string_view prefix, std::span<const Input> inputs);
  LocId ReadLoc(JsonValue json);

  std::vector<Input> ReadInputs(JsonValue inputs);
  // `results`: how many of the node's outputs are the op's.
  const OpSchema* FindOp(std::string_view target, std::span<const Input> inputs, JsonValue json, int64_t results);
  const OpSchema* SchemaFromUse(const OpSchema& so_far, std::span<const Input> inputs, JsonValue json, int64_t results);
  bool Bind(const OpSchema& op, std::span<const Input> inputs, std::vector<Arg>& args);
  std::optional<size_t> PlaceOf(const OpSchema& op, std::string_view name, size_t position, const Arg& arg, const std::vector<bool>& bound);
  Arg Default(const ArgSchema& schema);

  Arg Named(std::string_view name);  // the value, or the expression of a size
  Value* Operand(const Arg& arg);    // a number turned into a value by sym::value
  bool ToOperands(Arg& list);
  Arg ReadNumber(JsonValue number);  // SymIntArgument and alike: {"as_name": n} or {"as_int": 3}
  Arg ReadNumbers(JsonValue list);
  Arg ReadNames(JsonValue list, bool optional);
  Arg ReadGraph(JsonValue value);
  Arg ReadDevice(JsonValue value);

  void Fail(std::string_view code, std::string message, std::string help = {});
  bool failed() const { return state_.error.has_value(); }

  ReadState& state_;
  Context& context_;
  JsonValue json_;
  std::string where_;
  int depth_;
  Graph* graph_ = nullptr;
  std::unordered_map<std::string_view, Name> names_;
  int64_t node_index_ = -1;  // of the node that is being read; for messages
  std::string_view node_name_, argument_name_;
};

}  // namespace pt2onnx
