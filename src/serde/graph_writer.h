// One graph -> JSON of model.json (sub-graphs by recursion). See write_program.h for what is done.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/context.h"
#include "serde/size_nodes.h"
#include "support/json.h"

namespace pt2onnx {

// What the graphs of one program share.
struct WriteState {
  Context& context;
  Hints hints;
  std::string device = "{\"type\": \"cpu\", \"index\": null}";  // where the program's tensors lie
  std::unordered_map<const ArgSchema*, std::string> defaults;   // as written; an argument that is equal is left out
};

class GraphWriter {
 public:
  // `single`: the graph returns its one output, not a tuple of it.
  GraphWriter(WriteState& state, const Graph& graph, bool single = false) : state_(state), context_(state.context), graph_(graph), single_(single) {}

  // {"inputs": ..., "outputs": ..., "nodes": ..., "tensor_values": ..., ...}. `inputs` and `objects` are what the file had for inputs and
  // custom_obj_values, absent in sub-graphs. A size that can't be written is reported in the context's diagnostics.
  std::string Write(JsonValue inputs, JsonValue objects);

  // After Write: an output as an argument.
  std::string OutputArgument(const GraphOutput& output) { return ArgumentOf(output.value).value_or("{\"as_none\": true}"); }
  std::string_view NameOf(const Value* value) const { return names_of_.at(value->id); }

 private:
  void WriteInputs(JsonValue inputs);
  bool WriteNode(const Node& node);  // false: a size in it is not defined yet
  void WriteWaiting();
  void Define(const Value* value, std::string_view name);
  std::string_view NewName(const Value* value, std::string_view fallback);
  std::optional<std::string> Inputs(const Node& node);
  std::string Outputs(const Node& node);
  std::optional<std::string> Argument(const ArgSchema& schema, const Arg& arg, bool single);
  std::optional<std::string> ArgumentOf(const Arg& arg);
  std::optional<std::string> ValueArgument(const Value* value);
  std::optional<std::string> Values(const ArgSchema& schema, ValueList list);
  std::optional<std::string> Sizes(Dims dims);
  const std::string& Default(const ArgSchema& schema);
  std::string TensorMeta(const Type& type) const;
  void RefuseSize(const Node* node);

  WriteState& state_;
  Context& context_;
  const Graph& graph_;
  bool single_;
  Names names_;
  std::string nodes_, tensors_, inputs_;
  SizeNodes sizes_{context_, state_.hints, names_, nodes_};
  std::unordered_map<uint32_t, std::string_view> names_of_;
  std::unordered_map<uint32_t, SymExpr> numbers_;  // of sym::value
  std::vector<const Node*> waiting_;               // assertions on sizes that are not defined yet
};

}  // namespace pt2onnx
