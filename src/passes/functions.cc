#include "passes/functions.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/location.h"
#include "onnx/table.h"

namespace pt2onnx {
namespace {

constexpr size_t kSmallBytes = 1024;  // of a constant that stands in a function

template <class F>
void ForEachUse(const Node& node, F f) {  // of sub-graphs too
  for (const Arg& arg : node.args) {
    if (Value* const* value = std::get_if<Value*>(&arg)) f(*value);
    if (const ValueList* list = std::get_if<ValueList>(&arg))
      for (Value* value : *list)
        if (value) f(value);
    if (Graph* const* body = std::get_if<Graph*>(&arg)) {
      for (const Node* inner : (*body)->nodes) ForEachUse(*inner, f);
      for (const GraphOutput& output : (*body)->outputs)
        if (Value* const* value = std::get_if<Value*>(&output.value)) f(*value);
    }
  }
}

bool HasBody(const Node& node) {
  return std::any_of(node.args.begin(), node.args.end(), [](const Arg& arg) { return std::holds_alternative<Graph*>(arg); });
}

const TensorData* ConstantOf(const Value* value) {
  if (!value->def || !Is(*value->def->op, OnnxOp::Constant)) return nullptr;
  for (const Arg& arg : value->def->args)
    if (const TensorData* const* data = std::get_if<const TensorData*>(&arg)) return *data;
  return nullptr;
}
bool IsSmallConstant(const Value* value) {
  const TensorData* data = ConstantOf(value);
  return data && !data->stored && data->bytes.size() <= kSmallBytes;
}

// What a function does, apart from the names and shapes of its values: equal texts, equal functions.
class Fingerprint {
 public:
  std::string Of(const Graph& function) {
    for (const GraphInput& input : function.inputs) Define(input.value);
    for (const Node* node : function.nodes) {
      text_.append(node->op->name) += '(';
      for (const Arg& arg : node->args) std::visit([&](const auto& x) { Add(x); }, arg), text_ += ',';
      text_ += ')';
      for (const Value* result : node->results)
        if (result) Define(result);
    }
    for (const GraphOutput& output : function.outputs) Add(std::get<Value*>(output.value));
    return std::move(text_);
  }

 private:
  void Define(const Value* value) {
    numbers_.emplace(value, numbers_.size());
    text_ += ':' + std::to_string(static_cast<int>(value->type.dtype));
  }
  template <class T>
  void AddBytes(const T* data, size_t count) {
    text_.append(reinterpret_cast<const char*>(data), count * sizeof(T));
  }
  void Add(std::monostate) { text_ += '-'; }
  void Add(Value* value) { text_ += '%' + std::to_string(numbers_.at(value)); }
  void Add(ValueList list) {
    text_ += '[';
    for (Value* value : list) value ? Add(value) : Add(std::monostate());
    text_ += ']';
  }
  void Add(SymExpr e) { text_ += 's' + std::to_string(reinterpret_cast<uintptr_t>(e.node())) + (e.IsConst() ? std::to_string(e.Const()) : ""); }
  void Add(Dims dims) {
    for (const SymExpr& e : dims) Add(e);
  }
  void Add(std::string_view x) { text_.append("\"").append(x).append("\""); }
  void Add(Device x) { Add(x.name); }
  void Add(MemoryFormat x) { text_ += std::to_string(x.code); }
  void Add(Texts list) {
    for (std::string_view x : list) Add(x);
  }
  void Add(Graph*) {}
  void Add(const TensorData* data) {
    text_ += 't' + std::to_string(static_cast<int>(data->dtype));
    for (int64_t n : data->shape) text_ += '_' + std::to_string(n);
    AddBytes(data->bytes.data(), data->bytes.size());
  }
  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::complex<double>>
  void Add(T x) {
    AddBytes(&x, 1);
  }
  template <class T>
  void Add(std::span<const T> list) {
    text_ += std::to_string(list.size()) + '_';
    AddBytes(list.data(), list.size());
  }

  std::string text_;
  std::unordered_map<const Value*, size_t> numbers_;
};

class Maker {
 public:
  Maker(Context& context, Graph& model) : context_(context), model_(model) {}

  std::vector<const Graph*> Run() {
    Visit(1, "");
    return std::move(functions_);
  }

 private:
  // The part of a node's module stack down to a level; empty if it stands above. The model itself is level 0.
  std::string_view Prefix(const Node& node, size_t level) const {
    if (Is(*node.op, OnnxOp::Constant)) return {};
    const std::string_view stack = context_.locs[node.loc].module_stack;
    const size_t end = EndOfModule(stack, level);
    return end == std::string_view::npos ? std::string_view() : stack.substr(0, end);
  }

  // The modules right below `parent`, innermost first.
  void Visit(size_t level, std::string_view parent) {
    std::vector<std::string_view> modules;
    std::unordered_set<std::string_view> seen;
    for (const Node* node : model_.nodes)
      if (const std::string_view own = Prefix(*node, level);
          !own.empty() && (parent.empty() || Prefix(*node, level - 1) == parent) && seen.insert(own).second)
        modules.push_back(own);
    for (const std::string_view module : modules) {
      Visit(level + 1, module);
      Outline(level, module);
    }
  }

  void Outline(size_t level, std::string_view module) {
    std::vector<Node*>& list = model_.nodes;
    std::unordered_set<const Node*> members;
    std::unordered_set<const Value*> inner;
    size_t first = list.size(), last = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      if (Prefix(*list[i], level) != module) continue;
      if (HasBody(*list[i])) return;
      members.insert(list[i]);
      for (const Value* result : list[i]->results) inner.insert(result);
      first = std::min(first, i), last = i;
    }
    if (members.size() < 2) return;

    // Others in between run before the call, or behind it if they read what it makes; then it must not read them.
    std::vector<Node*> order(list.begin(), list.begin() + static_cast<ptrdiff_t>(first)), behind;
    std::unordered_set<const Value*> late, read;
    std::vector<Node*> own;
    for (size_t i = first; i <= last; ++i) {
      bool reads_late = false, reads_inner = false;
      ForEachUse(*list[i], [&](Value* value) { reads_late |= late.contains(value), reads_inner |= inner.contains(value); });
      if (members.contains(list[i])) {
        if (reads_late) return;
        own.push_back(list[i]);
        continue;
      }
      (reads_late || reads_inner ? behind : order).push_back(list[i]);
      if (reads_late || reads_inner) late.insert(list[i]->results.begin(), list[i]->results.end());
    }
    for (const Node* node : list)
      if (!members.contains(node)) ForEachUse(*node, [&](Value* value) { read.insert(value); });
    for (const GraphOutput& output : model_.outputs)
      if (Value* const* value = std::get_if<Value*>(&output.value)) read.insert(*value);
    order.push_back(Call(own, inner, read, level, module));
    order.insert(order.end(), behind.begin(), behind.end());
    order.insert(order.end(), list.begin() + static_cast<ptrdiff_t>(last) + 1, list.end());
    list = std::move(order);
  }

  Node* Call(const std::vector<Node*>& own, const std::unordered_set<const Value*>& inner, const std::unordered_set<const Value*>& read, size_t level,
             std::string_view module) {
    Graph* body = context_.NewGraph();
    std::unordered_map<const Value*, Value*> copies;
    std::vector<Arg> operands;
    std::vector<Value*> results;
    const auto copy = [&](const Value* value, std::string_view name) { return copies[value] = context_.NewValue(value->type, name); };
    const std::string path = std::string(ModulePath(module)) + ".";
    const auto take = [&](Value* value) {
      if (copies.contains(value) || inner.contains(value)) return;
      if (IsSmallConstant(value)) {
        Node* constant = context_.arena.New<Node>(*value->def);
        Value* result = copy(value, "");
        result->def = constant;
        constant->results = context_.arena.Copy(std::span<Value* const>(&result, 1));
        body->nodes.push_back(constant);
        return;
      }
      const std::string_view name = value->name;
      body->inputs.push_back({.value = copy(value, name.starts_with(path) ? name.substr(path.size()) : "")});
      operands.push_back(value);
    };
    for (const Node* node : own) ForEachUse(*node, take);
    for (const Node* node : own) {
      Node* mine = context_.arena.New<Node>(*node);
      std::vector<Arg> args(node->args.begin(), node->args.end());
      for (Arg& arg : args) {
        if (Value** value = std::get_if<Value*>(&arg))
          *value = copies.at(*value);
        else if (const ValueList* list = std::get_if<ValueList>(&arg)) {
          std::vector<Value*> values;
          for (Value* value : *list) values.push_back(value ? copies.at(value) : nullptr);
          arg = ValueList(context_.arena.Copy(values));
        }
      }
      mine->args = context_.arena.Copy(args);
      std::vector<Value*> made;
      for (size_t i = 0; i < node->results.size(); ++i) {
        Value* result = node->results[i];
        made.push_back(result ? copy(result, "") : nullptr);
        if (!result) continue;
        made.back()->def = mine;
        made.back()->result = static_cast<uint32_t>(i);
        if (!read.contains(result)) continue;
        results.push_back(result);
        body->outputs.push_back({.value = made.back()});
      }
      mine->results = context_.arena.Copy(made);
      context_.locs.push_back({.stack_trace = context_.locs[node->loc].stack_trace});  // of all instances
      mine->loc = static_cast<LocId>(context_.locs.size() - 1);
      body->nodes.push_back(mine);
    }

    Node* call = context_.arena.New<Node>();
    call->op = Schema(*body, ModuleClass(module));
    call->args = context_.arena.Copy(operands);
    call->results = context_.arena.Copy(results);
    for (size_t i = 0; i < results.size(); ++i) {
      results[i]->def = call;
      results[i]->result = static_cast<uint32_t>(i);
    }
    Loc loc = context_.locs[own.front()->loc];
    loc.node = ModulePath(module);
    loc.stack_trace = {};
    loc.module_stack = loc.module_stack.substr(0, EndOfModule(loc.module_stack, level - 1));
    context_.locs.push_back(loc);
    call->loc = static_cast<LocId>(context_.locs.size() - 1);
    return call;
  }

  // Of the function that does what `body` does.
  const OpSchema* Schema(Graph& body, std::string_view module_class) {
    const OpSchema*& known = known_[Fingerprint().Of(body)];
    if (known) return known;
    std::string name(module_class.empty() ? "Module" : module_class);
    if (const int again = ++named_[name]; again > 1) name += "_" + std::to_string(again);
    body.name = context_.Intern(name);
    std::vector<ArgSchema> args(body.inputs.size(), {.name = "input", .type = ArgType::Tensor});
    std::vector<ResultSchema> results(body.outputs.size());
    known = context_.RegisterOp(
        {.name = context_.Join(kFunctionDomain, "::", name), .args = context_.arena.Copy(args), .results = context_.arena.Copy(results)});
    functions_.push_back(&body);
    return known;
  }

  Context& context_;
  Graph& model_;
  std::vector<const Graph*> functions_;
  std::unordered_map<std::string, const OpSchema*> known_;
  std::unordered_map<std::string, int> named_;
};

}  // namespace

std::vector<const Graph*> MakeFunctions(Context& context, Graph& model) { return Maker(context, model).Run(); }

}  // namespace pt2onnx
