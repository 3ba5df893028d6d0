// A program as it was read: its graph, where its weights lie, and the facts that only whoever writes a .pt2 needs again.
// Texts are views into `doc` or the archive: the Program must outlive what is made from it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "archive/archive.h"
#include "ir/graph.h"
#include "support/json.h"

namespace pt2onnx {

// One module of the original model, in the order of module_call_graph; the root ("") is left out.
struct ModuleCall {
  std::string_view fqn;
  JsonValue signature;  // null unless preserve_module_call_signature asked for it
};

// A row of range_constraints. The bounds are also in Context::syms, by the expression.
struct RecordedRange {
  std::string_view expr;  // "s77", "2*s6 + 1"; may name symbols that occur nowhere
  std::optional<int64_t> lo, hi;
};

struct OpsetVersion {
  std::string_view domain;
  int64_t version = 0;
};

struct Program {
  Archive archive;  // owns the mapped file
  JsonDoc doc;
  Graph* graph = nullptr;

  int64_t schema_major = 0, schema_minor = 0;
  std::string_view torch_version;           // "2.13.0+cpu"; empty where none is recorded
  std::vector<std::string_view> verifiers;  // "TRAINING", or "ATEN" after run_decompositions; may be empty
  std::vector<OpsetVersion> opsets;
  std::vector<RecordedRange> ranges;
  std::vector<std::string_view> guards;        // guards_code: Python conditions on the inputs
  std::vector<std::string_view> forward_args;  // forward's argument names, one for each child of in_spec; empty in old files
  std::string_view in_spec, out_spec;          // treespecs, JSON in a string; empty where none is recorded
  std::vector<ModuleCall> modules;
  JsonValue namedtuple_fields;  // {type: {"field_names": [...]}}, or absent
  JsonValue metadata;           // of the graph module, {text: text}, or absent

  // Made for training: what torch.export.export gives, where writes are not yet in the signature.
  bool IsTraining() const { return verifiers.size() == 1 && verifiers[0] == "TRAINING"; }
  // The tensor of a parameter, buffer or constant; null for other inputs and where the archive has none.
  const TensorRecord* Weight(const GraphInput& input) const {
    const bool stored = input.kind == InputKind::Parameter || input.kind == InputKind::Buffer || input.kind == InputKind::Constant;
    return stored ? archive.FindTensor(input.target) : nullptr;
  }
};

}  // namespace pt2onnx
