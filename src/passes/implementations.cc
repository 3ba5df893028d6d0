#include "passes/implementations.h"

#include <fmt/core.h>

#include <unordered_map>

#include "ir/bind.h"
#include "ir/op_table.h"
#include "ir/schema_parse.h"
#include "ir/sym_facts.h"
#include "rewrite/bodies.h"

namespace pt2onnx {
namespace {

constexpr int kDeepest = 16;
constexpr std::string_view kHelp = "export the implementation for what the program calls it with; Dim.AUTO leaves sizes open";

// A graph of one context as one of another: symbols stand for sizes of the call, places are the call's.
class Importer {
 public:
  Importer(Context& to, const SymPool& from, LocId loc) : to_(to), from_(from), loc_(loc) {}

  void Bind(SymExpr symbol, SymExpr value) { symbols_.emplace(symbol.SymbolName(), value); }
  bool Knows(SymExpr symbol) const { return symbols_.contains(symbol.SymbolName()); }

  SymExpr operator()(SymExpr e) {
    if (e.IsConst() || e.IsAnyConst() || e.IsUnknown()) return e;
    if (e.IsSymbol()) {
      const auto [found, fresh] = symbols_.emplace(e.SymbolName(), SymExpr());
      if (fresh) found->second = Fresh(e);
      return found->second;
    }
    std::vector<SymExpr> args;
    for (SymExpr arg : e.args()) args.push_back((*this)(arg));
    return MakeSym(e.op(), args);
  }
  Dims operator()(Dims dims) {
    std::vector<SymExpr> out;
    for (SymExpr dim : dims) out.push_back((*this)(dim));
    return to_.arena.Copy(out);
  }
  Type operator()(Type type) {
    type.shape = (*this)(type.shape);
    type.strides = (*this)(type.strides);
    type.offset = (*this)(type.offset);
    type.value = (*this)(type.value);
    return type;
  }
  Arg operator()(const Arg& arg) {
    if (Value* const* value = std::get_if<Value*>(&arg)) return values_.at(*value);
    if (const SymExpr* e = std::get_if<SymExpr>(&arg)) return (*this)(*e);
    if (const Dims* dims = std::get_if<Dims>(&arg)) return (*this)(*dims);
    if (Graph* const* body = std::get_if<Graph*>(&arg)) return (*this)(**body);
    const ValueList* list = std::get_if<ValueList>(&arg);
    if (!list) return arg;
    std::vector<Value*> values;
    for (Value* value : *list) values.push_back(value ? values_.at(value) : nullptr);
    return ValueList(to_.arena.Copy(values));
  }
  Graph* operator()(const Graph& from) {
    Graph* graph = to_.NewGraph();
    graph->name = from.name;
    for (GraphInput input : from.inputs) {
      if (input.value) input.value = New(input.value);
      graph->inputs.push_back(input);
    }
    for (const Node* node : from.nodes) {
      Node* own = to_.arena.New<Node>();
      own->op = node->op;
      if (const OpSchema* known = to_.FindOp(node->op->name)) own->op = known;
      own->loc = loc_;
      std::vector<Arg> args;
      for (const Arg& arg : node->args) args.push_back((*this)(arg));
      own->args = to_.arena.Copy(args);
      std::vector<Value*> results;
      for (size_t i = 0; i < node->results.size(); ++i) {
        results.push_back(node->results[i] ? New(node->results[i]) : nullptr);
        if (results[i]) results[i]->def = own, results[i]->result = static_cast<uint32_t>(i);
      }
      own->results = to_.arena.Copy(results);
      graph->nodes.push_back(own);
    }
    for (GraphOutput output : from.outputs) {
      output.value = (*this)(output.value);
      graph->outputs.push_back(output);
    }
    return graph;
  }

 private:
  Value* New(const Value* from) { return values_[from] = to_.NewValue((*this)(from->type)); }
  SymExpr Fresh(SymExpr symbol) {  // a size that the implementation computes from data
    std::string name;
    for (int i = 0; name.empty() || to_.syms.FindSymbol(name); ++i) name = fmt::format("u{}", 1000 + i);
    const SymExpr own = to_.syms.Symbol(to_.Intern(name), symbol.kind());
    const Range range = from_.RecordedRange(symbol);
    to_.syms.SetRange(own, range.lo, range.hi);
    return own;
  }

  Context& to_;
  const SymPool& from_;
  LocId loc_;
  SymMap symbols_;
  std::unordered_map<const Value*, Value*> values_;
};

std::vector<Arg> Flattened(std::span<const Arg> args) {
  std::vector<Arg> out;
  for (const Arg& arg : args) {
    const ValueList* list = std::get_if<ValueList>(&arg);
    if (!list) out.push_back(arg);
    else for (Value* value : *list) out.push_back(value ? Arg(value) : Arg());
  }
  return out;
}

bool SameNumber(const Arg& a, const Arg& b) {
  if (a.index() != b.index()) return false;
  if (const SymExpr* x = std::get_if<SymExpr>(&a)) return *x == std::get<SymExpr>(b);
  if (const std::string_view* x = std::get_if<std::string_view>(&a)) return *x == std::get<std::string_view>(b);
  if (const bool* x = std::get_if<bool>(&a)) return *x == std::get<bool>(b);
  if (const int64_t* x = std::get_if<int64_t>(&a)) return *x == std::get<int64_t>(b);
  if (const double* x = std::get_if<double>(&a)) return *x == std::get<double>(b);
  return IsNone(a);
}

// Matches what the implementation was exported for with what it is called with; "" or what does not fit.
std::string Match(Importer& import, const GraphInput& input, const Arg& given) {
  const std::string name(input.target.empty() ? std::string_view("an argument") : input.target);
  Value* const* tensor = std::get_if<Value*>(&given);
  if (!input.value) {
    if (IsNone(input.constant) != IsNone(given)) return fmt::format("{} is None in one of them", name);
    if (tensor) return fmt::format("{} was a constant", name);
    const auto number = [](const Arg& arg) -> std::optional<double> {
      if (const bool* x = std::get_if<bool>(&arg)) return *x;
      if (const int64_t* x = std::get_if<int64_t>(&arg)) return static_cast<double>(*x);
      if (const double* x = std::get_if<double>(&arg)) return *x;
      if (const SymExpr* x = std::get_if<SymExpr>(&arg); x && x->IsConst()) return static_cast<double>(x->Const());
      return std::nullopt;
    };
    const auto was = number(input.constant), is = number(given);
    return was && is && *was != *is ? fmt::format("{} was {}, the program gives {}", name, *was, *is) : was && !is ? fmt::format("{} was the number {}", name, *was) : "";
  }
  const Type& type = input.value->type;
  if (type.kind == Kind::Sym) {
    if (tensor || !type.value.IsSymbol()) return fmt::format("{} is a number in one of them only", name);
    import.Bind(type.value, ToSymExpr(given));
    return {};
  }
  if (!tensor || (*tensor)->type.kind != Kind::Tensor) return fmt::format("{} is a tensor in one of them only", name);
  const Type& is = (*tensor)->type;
  if (type.dtype != is.dtype) return fmt::format("{} was {}, the program gives {}", name, Name(type.dtype), Name(is.dtype));
  if (type.shape.size() != is.shape.size()) return fmt::format("{} had {} dimensions, the program gives {}", name, type.shape.size(), is.shape.size());
  for (size_t i = 0; i < type.shape.size(); ++i) {
    const SymExpr was = type.shape[i];
    if (was.IsSymbol() && !import.Knows(was)) import.Bind(was, is.shape[i]);
    else if (was.IsConst() ? !ProvablyEqual(was, is.shape[i]) : was.IsSymbol() && ProvablyNotEqual(import(was), is.shape[i]))
      return fmt::format("dimension {} of {} was {}, the program gives {}", i, name, ToString(was), ToString(is.shape[i]));
  }
  return {};
}

}  // namespace

// The weights of all implementations, besides the program's own inputs. What nobody uses is dropped with other unused weights.
void InlineImplementations::AddState() {
  if (std::exchange(started_, true) || nested_ || depth_) return;
  for (size_t i = 0; i < implementations_.size(); ++i) {
    const Implementation& implementation = *implementations_[i];
    const std::span<const std::byte> file = implementation.program->archive.file().data();
    Importer import(context_, implementation.context.syms, 0);
    for (const GraphInput& input : implementation.program->graph->inputs) {
      Value* value = nullptr;
      if (input.value && input.kind != InputKind::User) {
        GraphInput own = input;
        own.target = context_.Join(implementation.op, ".", input.target);
        own.storage = -1;
        own.value = context_.NewValue(import(input.value->type), own.target);
        if (input.data) {
          TensorData data = *input.data;
          data.name = own.target;
          if (data.stored) data.bytes = file.subspan(data.file_offset, data.file_length), data.stored = false;
          own.data = context_.arena.New<TensorData>(data);
        }
        value = down_.Input(own);
      }
      state_[i].push_back(value);
    }
  }
}

Results InlineImplementations::Emit(const Call& call) {
  AddState();
  for (size_t i = 0; i < implementations_.size(); ++i)
    if (implementations_[i]->op == call.op->name) return Expand(call, i);
  if (!HasBody(call)) return down_.Emit(call);
  const std::vector<Arg> args = ReplayBodies(context_, call.args, [&](Sink& down) { return InlineImplementations(down, implementations_, depth_, true); });
  return down_.Emit({call.op, args, call.types, call.loc, call.names});
}

Results InlineImplementations::Expand(const Call& call, size_t at) {
  used_[at] = true;
  const Implementation& implementation = *implementations_[at];
  const Graph& graph = *implementation.program->graph;
  const auto refuse = [&](std::string why) { return Refuse(down_, call, "E0207", "the implementation given for it does not fit this call: " + std::move(why), std::string(kHelp)); };
  if (depth_ >= kDeepest) return refuse("it calls itself");
  Importer import(context_, implementation.context.syms, call.loc);
  const std::vector<Arg> given = Flattened(call.args);
  std::vector<Value*> operands;
  size_t next = 0;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const GraphInput& input = graph.inputs[i];
    if (input.kind != InputKind::User) {
      Value* state = nested_ || depth_ || !input.value ? nullptr : state_[at][i];
      if (input.value && !state) return refuse("it has weights of its own, and is called from a sub-graph or another implementation");
      operands.push_back(state);
      continue;
    }
    if (next == given.size()) return refuse("it takes more arguments");
    const Arg& arg = given[next++];
    if (std::string why = Match(import, input, arg); !why.empty()) return refuse(std::move(why));
    Value* const* value = std::get_if<Value*>(&arg);
    if (value) operands.push_back(*value);
    else operands.push_back(input.value ? down_.Emit({FindOpInTable("sym::value"), {&arg, 1}, {&input.value->type, 1}, call.loc})[0] : nullptr);
  }
  for (size_t left = given.size() - next; left > 0; --left) {  // trailing arguments that have their default
    const size_t i = call.args.size() - left;
    if (left > call.args.size() || !call.op->args[i].has_default || !SameNumber(call.args[i], FillDefault(context_, call.op->args[i]))) return refuse("it takes fewer arguments");
  }
  const Graph* own = import(graph);
  InlineImplementations inner(down_, implementations_, depth_ + 1, nested_);
  const std::vector<Arg> outputs = Inline(*own, operands, inner);
  std::vector<Value*> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Value* const* value = std::get_if<Value*>(&outputs[i]);
    const GraphOutput& output = graph.outputs[i];
    if (output.kind == OutputKind::User) {
      const Type* type = results.size() < call.types.size() ? &call.types[results.size()] : nullptr;
      if (type && type->kind == Kind::Tensor && (!value || (*value)->type.dtype != type->dtype || (*value)->type.shape.size() != type->shape.size()))
        return refuse(fmt::format("result {} is of another type", results.size()));
      results.push_back(value ? *value : nullptr);
      continue;
    }
    // It was functionalized: the new value of what it writes.
    for (size_t k = 0; k < graph.inputs.size(); ++k)
      if (value && graph.inputs[k].target == output.target && operands[k]) {
        const std::vector<Arg> args = {operands[k], *value, false};
        down_.Emit({FindOpInTable("aten::copy_"), args, {&operands[k]->type, 1}, call.loc});
      }
  }
  if (results.size() < call.types.size()) return refuse("it gives fewer results");
  results.resize(call.types.size());
  return context_.arena.Copy(results);
}

void InlineImplementations::Output(const GraphOutput& output) {
  AddState();
  down_.Output(output);
}

void InlineImplementations::Finish() {
  if (!nested_ && !depth_)
    for (size_t i = 0; i < used_.size(); ++i)
      if (!used_[i])
        context_.diagnostics.Warn({"W0207", "--decompose gives " + implementations_[i]->op + ", which the program does not call (a sub-graph may)", "pt2onnx inspect shows the names of its operators"});
  down_.Finish();
}

}  // namespace pt2onnx
