// Small programs as model.json has them, and what the reader makes of them.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

#include "ir/print.h"
#include "serde/read_program.h"
#include "unit/archive/archive_maker.h"

namespace pt2onnx {

inline std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

inline std::string Joined(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ", ") + item;
  return out;
}

// What stands in a file. Names of sizes are given as "name": {record}.
struct JsonGraph {
  std::vector<std::string> inputs, nodes, outputs, tensors;
  std::vector<std::string> ints = {}, floats = {}, bools = {}, objects = {};

  std::string Json() const {
    return fmt::format(
        R"({{"inputs": [{}], "outputs": [{}], "nodes": [{}], "tensor_values": {{{}}}, "sym_int_values": {{{}}}, "sym_float_values": {{{}}},)"
        R"( "sym_bool_values": {{{}}}, "custom_obj_values": {{{}}}, "is_single_tensor_return": false}})",
        Joined(inputs), Joined(outputs), Joined(nodes), Joined(tensors), Joined(ints), Joined(floats), Joined(bools), Joined(objects));
  }
};

inline std::string Tensor(std::string_view name) { return fmt::format(R"({{"as_tensor": {{"name": {}}}}})", Quote(name)); }
inline std::string Dim(std::string_view dim) {
  const bool number = dim.find_first_not_of("-0123456789") == std::string_view::npos;
  return number ? fmt::format(R"({{"as_int": {}}})", dim) : fmt::format(R"({{"as_expr": {{"expr_str": {}, "hint": null}}}})", Quote(dim));
}
// "x": {float32 of these sizes}
inline std::string Meta(std::string_view name, const std::vector<std::string>& sizes, const std::vector<std::string>& strides = {}, int dtype = 7,
                        int layout = 7) {
  std::vector<std::string> dims, steps;
  for (const std::string& size : sizes) dims.push_back(Dim(size));
  for (size_t i = 0; i < sizes.size(); ++i) steps.push_back(Dim(i < strides.size() ? strides[i] : i + 1 == sizes.size() ? "1" : sizes.back()));
  return fmt::format(
      R"({}: {{"dtype": {}, "sizes": [{}], "requires_grad": false, "device": {{"type": "cpu", "index": null}}, "strides": [{}], "storage_offset": {{"as_int": 0}}, "layout": {}}})",
      Quote(name), dtype, Joined(dims), Joined(steps), layout);
}
inline std::string SymRecord(std::string_view name, std::string_view expr) { return fmt::format("{}: {}", Quote(name), Dim(expr)); }

inline std::string Named(std::string_view name, std::string_view arg) {
  return fmt::format(R"({{"name": {}, "arg": {}, "kind": 1}})", Quote(name), arg);
}
inline std::string NodeJson(std::string_view target, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  return fmt::format(
      R"({{"target": {}, "inputs": [{}], "outputs": [{}], "metadata": {{"stack_trace": "  File \"/a/m.py\", line 12, in forward\n    y = f(x)\n"}}}})",
      Quote(target), Joined(inputs), Joined(outputs));
}

// Specs that are left out make every input and output the user's.
struct JsonProgram {
  JsonGraph graph;
  std::vector<std::string> input_specs = {}, output_specs = {};
  std::vector<std::string> ranges = {};
  std::string in_spec = "", forward_args = "";
  std::string schema_version = R"({"major": 8, "minor": 20})";

  std::string Json() const {
    std::vector<std::string> ins = input_specs, outs = output_specs;
    for (size_t i = ins.size(); i < graph.inputs.size(); ++i) ins.push_back(fmt::format(R"({{"user_input": {{"arg": {}}}}})", graph.inputs[i]));
    for (size_t i = outs.size(); i < graph.outputs.size(); ++i) outs.push_back(fmt::format(R"({{"user_output": {{"arg": {}}}}})", graph.outputs[i]));
    return fmt::format(
        R"({{"graph_module": {{"graph": {}, "signature": {{"input_specs": [{}], "output_specs": [{}]}}, "module_call_graph": [{{"fqn": "", "signature": )"
        R"({{"inputs": [], "outputs": [], "in_spec": {}, "out_spec": "", "forward_arg_names": [{}]}}}}, {{"fqn": "fc", "signature": null}}], "metadata": {{}}}},)"
        R"( "opset_version": {{"aten": 10}}, "range_constraints": {{{}}}, "schema_version": {}, "verifiers": ["TRAINING"], "torch_version": "2.13.0"}})",
        graph.Json(), Joined(ins), Joined(outs), Quote(in_spec), forward_args, Joined(ranges), schema_version);
  }
};

inline Result<Program> ReadJson(Context& context, const std::string& json) {
  const TempFolder folder;
  const std::string path = folder.Write("m.pt2", MakeZip({{"m/archive_format", "pt2"},
                                                          {"m/models/model.json", json},
                                                          {"m/data/weights/model_weights_config.json", R"({"config": {}})"},
                                                          {"m/data/constants/model_constants_config.json", R"({"config": {}})"},
                                                          {"m/data/sample_inputs/model.pt", ""}}));
  Result<Archive> archive = Archive::Open(path);
  if (!archive) return archive.error();
  return ReadProgram(context, std::move(*archive));
}

// The program's text, or "E0142 message".
inline std::string ReadText(const std::string& json) {
  Context context;
  Result<Program> program = ReadJson(context, json);
  return program ? Print(context, *program->graph) : program.error().code + " " + program.error().message;
}

}  // namespace pt2onnx
