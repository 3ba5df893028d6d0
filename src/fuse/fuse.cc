#include "fuse/fuse.h"

#include <algorithm>
#include <unordered_map>

#include "onnx/ort_kernels.h"
#include "passes/cleanup.h"
#include "pt2onnx/pt2onnx.h"

namespace pt2onnx {
namespace {

template <class F>
void ForEachOperand(const Node& node, F f) {
  for (const Arg& arg : node.args) {
    if (Value* const* value = std::get_if<Value*>(&arg))
      f(*value);
    else if (const ValueList* list = std::get_if<ValueList>(&arg))
      for (Value* value : *list)
        if (value) f(value);
  }
}

class Fuser {
 public:
  Fuser(Context& context, const Fusions& fusions, OnnxOptions options) : context_(context), fusions_(fusions), options_(options) {}

  void Run(Graph& graph) {
    Count(graph, 1);
    Walk(graph);
  }

 private:
  int& Uses(const Value* value) {
    if (value->id >= uses_.size()) uses_.resize(value->id + value->id / 2 + 16, 0);
    return uses_[value->id];
  }
  void Count(const Node& node, int by) {
    ForEachOperand(node, [&](Value* value) { Uses(value) += by; });
    for (const Arg& arg : node.args)
      if (Graph* const* body = std::get_if<Graph*>(&arg)) Count(**body, by);
  }
  void Count(const Graph& graph, int by) {
    for (const Node* node : graph.nodes) Count(*node, by);
    for (const GraphOutput& output : graph.outputs)
      if (Value* const* value = std::get_if<Value*>(&output.value)) Uses(*value) += by;
  }
  // A node that nobody reads any more no longer reads.
  void Drop(Node* node) {
    Count(*node, -1);
    ForEachOperand(*node, [&](Value* value) {
      if (value->def && Uses(value) == 0 && std::ranges::all_of(value->def->results, [&](Value* r) { return !r || Uses(r) == 0; })) Drop(value->def);
    });
  }

  Value* Mapped(Value* value) const {
    const auto found = value ? to_.find(value->id) : to_.end();
    return found == to_.end() ? value : found->second;
  }
  void Map(Arg& arg) {
    if (Value** value = std::get_if<Value*>(&arg))
      *value = Mapped(*value);
    else if (const ValueList* list = std::get_if<ValueList>(&arg)) {
      std::vector<Value*> values(list->begin(), list->end());
      for (Value*& value : values) value = Mapped(value);
      arg = ValueList(context_.arena.Copy(values));
    }
  }

  void Walk(Graph& graph) {
    Graph fresh;
    GraphSink sink(context_, fresh);
    Onnx b(context_, sink, options_);
    std::vector<Node*> kept;
    for (Node* node : graph.nodes) {
      for (Arg& arg : node->args) {
        if (!to_.empty()) Map(arg);
        if (Graph* const* body = std::get_if<Graph*>(&arg)) Walk(**body);
      }
      if (!Apply(b, fresh, *node))
        kept.push_back(node);
      else
        kept.insert(kept.end(), fresh.nodes.begin(), fresh.nodes.end());
      fresh.nodes.clear();
    }
    graph.nodes = std::move(kept);
    for (GraphOutput& output : graph.outputs) Map(output.value);
  }

  // Whether rules replaced the node, by the nodes in `fresh`. What they made may be where the next one starts.
  bool Apply(Onnx& b, Graph& fresh, Node& node) {
    if (node.results.empty() || !node.results[0] || !IsOnnx(*node.op)) return false;
    Value* root = node.results[0];
    bool any = false;
    for (size_t i = 0; i < fusions_.list().size();) {
      if (!root->def || !ApplyOne(b, fusions_.list()[i], fresh, root)) {
        ++i;
        continue;
      }
      any = true;
      if (to_.contains(root->id)) return true;  // an older value took its place
      i = 0;
    }
    return any;
  }

  bool ApplyOne(Onnx& b, const Fusion& fusion, Graph& fresh, Value* root) {
    Match match(b);
    if (!match.Run(root, fusion.pattern) || match.nodes().empty()) return false;
    Node* old = root->def;
    if (!IsPrivate(match, *old)) return false;
    const Type type = root->type;
    const std::string_view name = root->name;
    const Call call{old->op, old->args, {&type, 1}, old->loc, {&name, 1}};
    b.Begin(call);
    const size_t before = fresh.nodes.size();
    const OptVal made = fusion.apply(b, match);
    if (!made || b.problem() || made->value->problem || made->dtype() != type.dtype) {
      fresh.nodes.resize(before);
      return false;
    }
    for (size_t i = before; i < fresh.nodes.size(); ++i) Count(*fresh.nodes[i], 1);
    std::erase(fresh.nodes, old);  // made by the rule before this one
    Node* def = made->value->def;
    const bool is_fresh = def && std::find(fresh.nodes.begin(), fresh.nodes.end(), def) != fresh.nodes.end() && Uses(made->value) == 0;
    if (is_fresh) {
      def->results[made->value->result] = root;
      root->def = def;
      root->result = made->value->result;
    } else {
      Value* value = made->value;
      if (value->name.empty()) value->name = name;
      Uses(value) += Uses(root);
      to_[root->id] = value;
    }
    Drop(old);
    return true;
  }

  // Only the root is read from outside of the match.
  bool IsPrivate(const Match& match, const Node& root) {
    std::vector<Node*> nodes = match.nodes();
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    std::unordered_map<const Value*, int> inside;
    for (const Node* node : nodes) ForEachOperand(*node, [&](Value* value) { ++inside[value]; });
    for (const Node* node : nodes)
      for (Value* result : node->results) {
        if (!result) continue;
        const int read = Uses(result) - inside[result];
        if (node == &root ? inside[result] != 0 || (result != root.results[0] && read != 0) : read != 0) return false;
      }
    return true;
  }

  Context& context_;
  const Fusions& fusions_;
  OnnxOptions options_;
  std::vector<int> uses_;
  std::unordered_map<uint32_t, Value*> to_;
};

}  // namespace

bool Usable(const Onnx& b, OnnxOp op, DType dtype) {
  const OnnxForm* form = FormAt(op, b.opset());
  return form && (form->dtypes[0] & (1u << static_cast<int>(dtype))) && RuntimeHas(SchemaOf(op).name.substr(6), b.opset(), dtype);
}

Fusions AllFusions() {
  Fusions out;
  ActivationFusions(out);
  AttentionFusions(out);
  LayoutFusions(out);
  NormFusions(out);
  return out;
}

std::vector<std::string> FusionNames() {
  std::vector<std::string> out;
  const Fusions fusions = AllFusions();
  for (const Fusion& fusion : fusions.list())
    if (std::find(out.begin(), out.end(), fusion.name) == out.end()) out.emplace_back(fusion.name);
  return out;
}

void Fuse(Context& context, Graph& graph, const std::vector<std::string>& names, bool bf16_as_f32) {
  Fusions fusions = AllFusions();
  fusions.Keep([&](std::string_view name) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& wanted) { return wanted == "all" || wanted == name; });
  });
  if (fusions.list().empty()) return;
  Cleanup(context, graph);  // equal values are one, and nobody reads what is dead
  Fuser(context, fusions, {.bf16_as_f32 = bf16_as_f32}).Run(graph);
}

}  // namespace pt2onnx
