#include "ir/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>

#include "ir/bind.h"

namespace pt2onnx {
namespace {

constexpr size_t kMostFaults = 20;

class Verifier {
 public:
  explicit Verifier(Stage stage) : stage_(stage) {}

  void Check(const Graph& graph) {
    if (++depth_ > 100) return Fault("graphs are nested without end");
    std::vector<uint32_t> own;  // leave their scope at the end
    for (const GraphInput& input : graph.inputs) {
      if (!input.value) continue;
      if (input.value->def) Fault(fmt::format("input {} says that a node defines it", Text(input.value)));
      Define(*input.value, own);
    }
    for (const Node* node : graph.nodes) {
      if (faults_.size() >= kMostFaults) return;
      node_ = node;
      CheckNode(*node, own);
    }
    node_ = nullptr;
    for (const GraphOutput& output : graph.outputs) CheckArg(output.value, "an output");
    for (const uint32_t id : own) in_scope_[id] = false;
    --depth_;
  }

  std::vector<std::string> faults() { return std::move(faults_); }

 private:
  static std::string Text(const Value* value) { return value->name.empty() ? fmt::format("%{}", value->id) : fmt::format("%{}", value->name); }

  void Fault(std::string what) {
    if (faults_.size() >= kMostFaults) return;
    if (node_) {
      const Value* first = node_->results.empty() ? nullptr : node_->results[0];
      what = fmt::format("{}{}: {}", first ? Text(first) + " = " : std::string(), node_->op ? node_->op->name : "?", what);
    }
    faults_.push_back(std::move(what));
  }

  bool InScope(uint32_t id) const { return id < in_scope_.size() && in_scope_[id]; }

  void Define(const Value& value, std::vector<uint32_t>& own) {
    if (value.id >= in_scope_.size()) in_scope_.resize(value.id + value.id / 2 + 16);
    if (in_scope_[value.id]) Fault(fmt::format("{} is defined twice", Text(&value)));
    in_scope_[value.id] = true;
    own.push_back(value.id);
    CheckType(value);
  }

  void CheckType(const Value& value) {
    const Type& type = value.type;
    if (type.kind == Kind::None) Fault(fmt::format("{} has no type", Text(&value)));
    if (type.kind == Kind::Sym && stage_ != Stage::Onnx && type.value.IsUnknown())
      Fault(fmt::format("{} stands for nothing that is known", Text(&value)));
    DefineSymbols(type.value);
    DefineSymbols(type.offset);
    for (const SymExpr dim : type.shape) DefineSymbols(dim);
    for (const SymExpr stride : type.strides) DefineSymbols(stride);
    if (type.kind != Kind::Tensor) return;
    if (!type.strides.empty() && type.strides.size() != type.shape.size()) Fault(fmt::format("{} has not as many strides as sizes", Text(&value)));
    if (stage_ == Stage::Onnx) return;
    if (type.dtype == DType::Unknown) Fault(fmt::format("{} has no dtype", Text(&value)));
    if (!type.ranked) Fault(fmt::format("{} has no rank", Text(&value)));
    if (std::any_of(type.shape.begin(), type.shape.end(), [](SymExpr e) { return e.IsUnknown(); }))
      Fault(fmt::format("{} has an unknown size", Text(&value)));
  }

  // A symbol comes from the first type that shows it: an input's, or that of a result whose size depends on data.
  void DefineSymbols(SymExpr e) {
    if (!e.node() || e.IsUnknown() || !known_.insert(e.node()).second) return;
    for (const SymExpr arg : e.args()) DefineSymbols(arg);
  }
  void UseSymbols(SymExpr e) {
    if (!e.node() || e.IsUnknown() || known_.count(e.node())) return;
    if (e.IsSymbol()) return Fault(fmt::format("nothing defines the symbol {}", e.SymbolName()));
    for (const SymExpr arg : e.args()) UseSymbols(arg);
    known_.insert(e.node());
  }

  void CheckOperand(const Value* value, std::string_view place) {
    if (value && !InScope(value->id)) Fault(fmt::format("{} reads {}, which is not defined there", place, Text(value)));
  }

  void CheckArg(const Arg& arg, std::string_view place) {
    if (Value* const* value = std::get_if<Value*>(&arg)) {
      if (!*value) Fault(fmt::format("{} is a null value", place));
      CheckOperand(*value, place);
    } else if (const ValueList* list = std::get_if<ValueList>(&arg)) {
      for (const Value* value : *list) CheckOperand(value, place);
    } else if (const SymExpr* expr = std::get_if<SymExpr>(&arg)) {
      UseSymbols(*expr);
    } else if (const Dims* dims = std::get_if<Dims>(&arg)) {
      for (const SymExpr dim : *dims) UseSymbols(dim);
    } else if (Graph* const* graph = std::get_if<Graph*>(&arg)) {
      const Node* node = node_;
      Check(**graph);
      node_ = node;
    }
  }

  void CheckNode(const Node& node, std::vector<uint32_t>& own) {
    if (!node.op) return Fault("has no operator");
    CheckStage(node);
    if (node.args.size() != node.op->args.size()) {
      Fault(fmt::format("has {} arguments, its schema {}", node.args.size(), node.op->args.size()));
    } else {
      for (size_t i = 0; i < node.args.size(); ++i) {
        const ArgSchema& schema = node.op->args[i];
        if (!Fits(schema, node.args[i])) Fault(fmt::format("argument '{}' is not what the schema says", schema.name));
        CheckArg(node.args[i], schema.name);
      }
    }
    CheckResults(node, own);
  }

  void CheckResults(const Node& node, std::vector<uint32_t>& own) {
    const std::span<const ResultSchema> schemas = node.op->results;
    const size_t lists = static_cast<size_t>(std::count_if(schemas.begin(), schemas.end(), [](const ResultSchema& r) { return r.list; }));
    const size_t least = schemas.size() - lists;
    const bool counted = stage_ != Stage::Onnx && !node.op->name.starts_with("hop::");
    // An op without results may be given one that is None.
    const bool none = schemas.empty() && node.results.size() == 1 && !node.results[0];
    if (counted && !none && (lists ? node.results.size() < least : node.results.size() != least)) {
      Fault(fmt::format("has {} results, its schema {}", node.results.size(), schemas.size()));
    }
    for (size_t i = 0; i < node.results.size(); ++i) {
      const Value* value = node.results[i];
      if (!value) continue;
      if (value->def != &node || value->result != i) Fault(fmt::format("{} does not say that it is its result {}", Text(value), i));
      Define(*value, own);
    }
  }

  void CheckStage(const Node& node) {
    const std::string_view domain = node.op->Namespace();
    const bool onnx = domain != "aten" && domain != "prims" && domain != "hop" && domain != "functorch";
    if (stage_ == Stage::Onnx && !onnx) Fault("is no ONNX operator");
    if (stage_ != Stage::Training && Writes(node)) Fault("writes to an argument");
  }

  // batch_norm and its like only write while they train, and only to what they are given.
  static bool Writes(const Node& node) {
    const OpSchema& op = *node.op;
    if (op.kind == OpKind::Inplace || op.kind == OpKind::Out || !op.Writes()) return op.Writes();
    bool given = false;
    for (size_t i = 0; i < op.args.size() && i < node.args.size(); ++i) {
      const std::string_view name = op.args[i].name;
      const bool* flag = std::get_if<bool>(&node.args[i]);
      if (flag && !*flag && (name == "training" || name == "train" || name == "use_input_stats")) return false;
      given |= op.args[i].writes && !IsNone(node.args[i]);
    }
    return given;
  }

  const Stage stage_;
  const Node* node_ = nullptr;
  int depth_ = 0;
  std::vector<bool> in_scope_;                // by Value::id
  std::unordered_set<const SymNode*> known_;  // symbols that are defined, and expressions of such
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> Verify(const Graph& graph, Stage stage) {
  Verifier verifier(stage);
  verifier.Check(graph);
  return verifier.faults();
}

}  // namespace pt2onnx
