#include "passes/cleanup.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "passes/order.h"
#include "support/check.h"

namespace pt2onnx {
namespace {

template <class F>
void ForEachValue(const Arg& arg, F f) {
  if (Value* const* value = std::get_if<Value*>(&arg)) {
    if (*value) f(*value);
  } else if (const ValueList* list = std::get_if<ValueList>(&arg)) {
    for (Value* value : *list)
      if (value) f(value);
  }
}

// ---- Dead code ----------------------------------------------------------------------------------------------------------------------

class Liveness {
 public:
  explicit Liveness(Context& context) : live_(context.value_count(), false) {}

  void Run(Graph& graph) {
    for (const GraphOutput& output : graph.outputs) Use(output.value);
    std::vector<Node*> kept;
    for (size_t i = graph.nodes.size(); i-- > 0;) {
      Node* node = graph.nodes[i];
      if (!IsLive(*node)) continue;
      for (const Arg& arg : node->args) Use(arg);
      kept.push_back(node);
    }
    graph.nodes.assign(kept.rbegin(), kept.rend());
  }

 private:
  bool IsLive(const Node& node) const {
    if (node.op->Has(kEffect)) return true;
    for (const Value* result : node.results) {
      if (!result) continue;
      if (live_[result->id]) return true;
      if (result->type.kind == Kind::Sym && result->type.value.IsSymbol() && Needs(result->type.value)) return true;
      for (const SymExpr& dim : result->type.shape)
        if (dim.IsSymbol() && dim.SymbolName().starts_with("u") && Needs(dim)) return true;
    }
    return false;
  }
  bool Needs(SymExpr symbol) const { return symbols_.contains(symbol.node()); }

  void Use(SymExpr expr) {
    if (expr.IsConst() || !seen_.insert(expr.node()).second) return;
    if (expr.IsSymbol()) symbols_.insert(expr.node());
    for (const SymExpr& arg : expr.args()) Use(arg);
  }
  void Use(const Arg& arg) {
    ForEachValue(arg, [&](Value* value) { live_[value->id] = true; });
    if (const SymExpr* expr = std::get_if<SymExpr>(&arg)) Use(*expr);
    if (const Dims* dims = std::get_if<Dims>(&arg))
      for (const SymExpr& dim : *dims) Use(dim);
    if (Graph* const* body = std::get_if<Graph*>(&arg)) Run(**body);
  }

  std::vector<bool> live_;
  std::unordered_set<const SymNode*> symbols_, seen_;
};

// ---- Common subexpressions ----------------------------------------------------------------------------------------------------------

size_t Mix(size_t a, size_t b) { return (a ^ b) * 0x9E3779B97F4A7C15ull + (a >> 29); }

size_t HashOf(const Arg& arg) {
  return std::visit(
      [](const auto& x) -> size_t {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, std::monostate>) return 7;
        else if constexpr (std::is_same_v<T, SymExpr>) return SymExprHash()(x);
        else if constexpr (std::is_same_v<T, Dims>) {
          size_t h = x.size();
          for (const SymExpr& e : x) h = Mix(h, SymExprHash()(e));
          return h;
        } else if constexpr (std::is_same_v<T, MemoryFormat>) return static_cast<size_t>(x.code);
        else if constexpr (std::is_same_v<T, Device>) return std::hash<std::string_view>()(x.name);
        else if constexpr (std::is_same_v<T, DType>) return static_cast<size_t>(x);
        else if constexpr (std::is_same_v<T, std::complex<double>>) return Mix(std::hash<double>()(x.real()), std::hash<double>()(x.imag()));
        else if constexpr (std::is_same_v<T, const TensorData*>)
          return x ? Mix(std::hash<std::string_view>()({reinterpret_cast<const char*>(x->bytes.data()), x->bytes.size()}), x->file_offset) : 0;
        else if constexpr (requires { x.size(); x.begin(); } && !std::is_same_v<T, std::string_view>) {
          size_t h = x.size();
          for (const auto& e : x) h = Mix(h, std::hash<std::decay_t<decltype(e)>>()(e));
          return h;
        } else return std::hash<T>()(x);
      },
      arg);
}

bool SameBits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }  // -0.0 is not 0.0, NaN is NaN

bool SameArg(const Arg& a, const Arg& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& x) -> bool {
        using T = std::decay_t<decltype(x)>;
        const T& y = std::get<T>(b);
        if constexpr (std::is_same_v<T, std::monostate>) return true;
        else if constexpr (std::is_same_v<T, double>) return SameBits(x, y);
        else if constexpr (std::is_same_v<T, std::complex<double>>) return SameBits(x.real(), y.real()) && SameBits(x.imag(), y.imag());
        else if constexpr (std::is_same_v<T, SymExpr>) return x == y;
        else if constexpr (std::is_same_v<T, const TensorData*>)
          return x == y || (x && y && x->dtype == y->dtype && x->stored == y->stored && x->name == y->name && x->file_offset == y->file_offset &&
                            x->file_length == y->file_length && std::ranges::equal(x->shape, y->shape) && std::ranges::equal(x->bytes, y->bytes));
        else if constexpr (std::is_same_v<T, Doubles>) return std::ranges::equal(x, y, SameBits);
        else if constexpr (requires { x.size(); x.begin(); }) return std::ranges::equal(x, y);
        else return x == y;
      },
      a);
}

struct Key {
  const Node* node;
  size_t hash;
};
struct KeyHash {
  size_t operator()(const Key& key) const { return key.hash; }
};
struct KeySame {
  bool operator()(const Key& a, const Key& b) const {
    if (a.node->op != b.node->op || a.node->args.size() != b.node->args.size() || a.node->results.size() != b.node->results.size()) return false;
    for (size_t i = 0; i < a.node->args.size(); ++i)
      if (!SameArg(a.node->args[i], b.node->args[i])) return false;
    for (size_t i = 0; i < a.node->results.size(); ++i) {  // the same op can be asked for two dtypes by what it returns (custom ops)
      const Value *x = a.node->results[i], *y = b.node->results[i];
      if ((x == nullptr) != (y == nullptr) || (x && x->type.dtype != y->type.dtype)) return false;
    }
    return true;
  }
};

class Merger {
 public:
  explicit Merger(Context& context) : context_(context) {}

  void Run(Graph& graph) {
    std::vector<Key> added;
    std::vector<Node*> kept;
    for (Node* node : graph.nodes) {
      bool body = false;
      for (Arg& arg : node->args) {
        arg = Mapped(arg);
        if (Graph* const* inner = std::get_if<Graph*>(&arg)) {
          Run(**inner);
          body = true;
        }
      }
      if (!body && !node->op->Has(kRandom) && !node->op->Has(kEffect) && !node->results.empty()) {
        size_t hash = node->op->id;
        for (const Arg& arg : node->args) hash = Mix(hash, HashOf(arg));
        const auto [found, fresh] = seen_.insert({node, hash});
        if (!fresh) {
          for (size_t i = 0; i < node->results.size(); ++i)
            if (node->results[i]) Replace(node->results[i], found->node->results[i]);
          continue;
        }
        added.push_back(*found);
      }
      kept.push_back(node);
    }
    graph.nodes = std::move(kept);
    for (GraphOutput& output : graph.outputs) output.value = Mapped(output.value);
    for (const Key& key : added) seen_.erase(key);  // not visible outside this graph
  }

 private:
  void Replace(Value* from, Value* to) {
    if (to->name.empty()) to->name = from->name;
    to_[from->id] = to;
  }
  Value* MappedValue(Value* value) const {
    const auto found = value ? to_.find(value->id) : to_.end();
    return found == to_.end() ? value : found->second;
  }
  Arg Mapped(const Arg& arg) {
    if (Value* const* value = std::get_if<Value*>(&arg)) return MappedValue(*value);
    if (const ValueList* list = std::get_if<ValueList>(&arg)) {
      std::vector<Value*> values;
      for (Value* value : *list) values.push_back(MappedValue(value));
      return ValueList(context_.arena.Copy(values));
    }
    return arg;
  }

  Context& context_;
  std::unordered_set<Key, KeyHash, KeySame> seen_;
  std::unordered_map<uint32_t, Value*> to_;
};

}  // namespace

void RemoveDeadCode(Context& context, Graph& graph) { Liveness(context).Run(graph); }

void MergeEqual(Context& context, Graph& graph) { Merger(context).Run(graph); }

void Cleanup(Context& context, Graph& graph) {
  RemoveDeadCode(context, graph);
  MergeEqual(context, graph);
  Order(graph);
}

}  // namespace pt2onnx
