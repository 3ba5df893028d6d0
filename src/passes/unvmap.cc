#include "passes/unvmap.h"

#include <algorithm>

#include "ir/op_table.h"
#include "ir/promotion.h"
#include "rewrite/bodies.h"

namespace pt2onnx {
namespace {

// Calls f with each tensor of an argument, and puts in place what it answers.
template <class F>
Arg MapValues(Context& context, const Arg& arg, F f) {
  if (Value* const* value = std::get_if<Value*>(&arg)) return f(*value);
  if (const ValueList* list = std::get_if<ValueList>(&arg)) {
    std::vector<Value*> values;
    for (Value* value : *list) values.push_back(value ? f(value) : nullptr);
    return context.arena.Copy(values);
  }
  return arg;
}

template <class F>
bool AnyValue(std::span<const Arg> args, F f) {
  return std::any_of(args.begin(), args.end(), [&](const Arg& arg) {
    if (Value* const* value = std::get_if<Value*>(&arg)) return f(*value);
    const ValueList* list = std::get_if<ValueList>(&arg);
    return list && std::any_of(list->begin(), list->end(), [&](const Value* value) { return value && f(value); });
  });
}

Type Plain(Context& context, const Type& type, const std::vector<SymExpr>& shape) {
  return {.kind = Kind::Tensor, .dtype = type.dtype, .shape = context.arena.Copy(shape)};
}

std::vector<SymExpr> Batched(SymExpr size, Dims shape, size_t rank) {
  std::vector<SymExpr> out = {size};
  out.insert(out.end(), rank - shape.size(), 1);
  out.insert(out.end(), shape.begin(), shape.end());
  return out;
}

int64_t Int(const Arg& arg) {
  const int64_t* number = std::get_if<int64_t>(&arg);
  return number ? *number : std::get<SymExpr>(arg).Const();
}
SymExpr Size(const Arg& arg) {
  const int64_t* number = std::get_if<int64_t>(&arg);
  return number ? SymExpr(*number) : std::get<SymExpr>(arg);
}

// Computes element by element, from tensors of one dtype: then a further dim in front changes nothing.
bool IsElementwise(const Node& node) {
  if (node.op->kind != OpKind::Functional || node.op->Writes() || node.results.size() != 1 || !PromotionOf(*node.op, node.args)) return false;
  DType dtype = DType::Unknown;
  return !AnyValue(node.args, [&](const Value* value) {
    if (node.op->name == "aten::where.self" && value == std::get<Value*>(node.args[0])) return false;
    if (dtype == DType::Unknown) dtype = value->type.dtype;
    return value->type.kind != Kind::Tensor || value->type.dtype != dtype;
  });
}

}  // namespace

Results Unvmap::Refuse(const Call& call, std::string message) {
  return EmitPoison(
      down_, context_.diagnostics.Add({"E0206", std::move(message), "write the batch out in the model", call.loc, std::string(call.op->name)}),
      call.types, call.loc);
}

std::vector<Arg> Unvmap::Resolved(std::span<const Arg> args) {
  std::vector<Arg> out;
  for (const Arg& arg : args)
    out.push_back(MapValues(context_, arg, [&](Value* value) {
      const auto found = resolved_.find(value);
      return found == resolved_.end() ? value : found->second;
    }));
  return out;
}

Results Unvmap::Emit(const Call& call) {
  if (call.op->Namespace() == "functorch") return Mark(call);
  if (regions_.empty() && resolved_.empty() && !HasBody(call)) return down_.Emit(call);
  std::vector<Arg> args = HasBody(call) ? ReplayBodies(context_, call.args, [](Sink& down) { return Unvmap(down); })
                                        : std::vector<Arg>(call.args.begin(), call.args.end());
  args = Resolved(args);
  return EmitAt(regions_.size(), {call.op, args, call.types, call.loc, call.names});
}

void Unvmap::Output(const GraphOutput& output) {
  GraphOutput own = output;
  own.value = Resolved({&output.value, 1})[0];
  down_.Output(own);
}

Value* Unvmap::Inside(Region& region, Value* value) {
  if (region.batched.contains(value)) return value;
  Value*& own = region.inside[value];
  if (!own) {
    own = context_.NewValue(value->type, value->name);
    region.captured.push_back(value);
  }
  return own;
}

// An op at some depth: inside the innermost region there if it depends on a sample, else around it.
Results Unvmap::EmitAt(size_t depth, const Call& call) {
  if (depth == 0) return down_.Emit(call);
  Region& region = regions_[depth - 1];
  if (!AnyValue(call.args, [&](const Value* value) { return region.batched.contains(value); })) {
    if (call.op->Writes() && AnyValue(call.args, [&](const Value* value) { return region.inside.contains(value); }))
      return Refuse(call, "a function under vmap writes to what all samples share");
    return EmitAt(depth - 1, call);
  }
  std::vector<Arg> args;
  for (const Arg& arg : call.args) args.push_back(MapValues(context_, arg, [&](Value* value) { return Inside(region, value); }));
  const Results results = region.sink->Emit({call.op, args, call.types, call.loc, call.names});
  for (const Value* result : results) region.batched.insert(result);
  return results;
}

Value* Unvmap::MoveDim(size_t depth, Value* x, int64_t from, int64_t to, const Type& type, LocId loc) {
  if (from == to) return x;
  const std::vector<Arg> args = {x, from, to};
  return EmitAt(depth, {FindOpInTable("aten::movedim.int"), args, {&type, 1}, loc})[0];
}

Results Unvmap::Mark(const Call& call) {
  const std::string_view name = call.op->name.substr(call.op->name.rfind(':') + 1);
  const std::vector<Arg> args = Resolved(call.args);
  const Results nothing = context_.arena.Copy(std::vector<Value*>(call.types.size(), nullptr));
  if (name == "_vmap_increment_nesting") {
    Region region;
    region.size = Size(args[0]);
    region.body = context_.NewGraph();
    region.sink = std::make_unique<GraphSink>(context_, *region.body);
    regions_.push_back(std::move(region));
    return nothing;
  }
  if (name == "lazy_load_decompositions") return nothing;
  if (regions_.empty()) return Refuse(call, "vmap without a beginning");
  const size_t depth = regions_.size();
  if (name == "_vmap_decrement_nesting") {
    Close();
    return nothing;
  }
  Region& region = regions_.back();
  if (Int(args[name == "_add_batch_dim" ? 2 : 1]) != static_cast<int64_t>(depth)) return Refuse(call, "vmap of another depth");
  if (name == "_add_batch_dim") {
    Value* x = std::get<Value*>(args[0]);
    const int64_t rank = std::ssize(x->type.shape), dim = Int(args[1]) < 0 ? Int(args[1]) + rank : Int(args[1]);
    region.samples.push_back(
        MoveDim(depth - 1, x, dim, 0, Plain(context_, x->type, Batched(region.size, call.types[0].shape, call.types[0].shape.size())), call.loc));
    Value* sample = context_.NewValue(Plain(context_, call.types[0], {call.types[0].shape.begin(), call.types[0].shape.end()}),
                                      call.names.empty() ? std::string_view() : call.names[0]);
    region.inputs.push_back(sample);
    region.batched.insert(sample);
    return context_.arena.Copy(std::span(&sample, 1));
  }
  Value* inner = Inside(region, std::get<Value*>(args[0]));
  Value* promised = context_.NewValue(call.types[0], call.names.empty() ? std::string_view() : call.names[0]);
  region.results.push_back({inner, promised, Int(args[3]), call});
  return context_.arena.Copy(std::span(&promised, 1));
}

void Unvmap::Keep(size_t depth, const Result& result, Value* value) {
  const int64_t rank = std::ssize(result.inner->type.shape) + 1, dim = result.dim < 0 ? result.dim + rank : result.dim;
  resolved_[result.promised] = MoveDim(depth, value, 0, dim, result.promised->type, result.call.loc);
}

// All ops over the whole batch: operands of fewer dims get ones behind the batch's.
bool Unvmap::CloseElementwise(const Region& region, size_t depth) {
  const auto depends = [&](const Value* value) { return region.batched.contains(value); };
  if (!std::all_of(region.body->nodes.begin(), region.body->nodes.end(), [](const Node* node) { return IsElementwise(*node); })) return false;
  if (!std::all_of(region.results.begin(), region.results.end(), [&](const Result& r) { return depends(r.inner); })) return false;
  std::unordered_map<const Value*, Value*> whole;
  for (size_t i = 0; i < region.inputs.size(); ++i) whole[region.inputs[i]] = region.samples[i];
  for (Value* outside : region.captured) whole[region.inside.at(outside)] = outside;
  for (const Node* node : region.body->nodes) {
    const size_t rank = node->results[0]->type.shape.size();
    std::vector<Arg> args;
    for (const Arg& arg : node->args)
      args.push_back(MapValues(context_, arg, [&](Value* value) {
        Value* own = whole.at(value);
        if (!depends(value) || value->type.shape.size() == rank) return own;
        const std::vector<SymExpr> shape = Batched(region.size, value->type.shape, rank);
        const std::vector<Arg> view = {own, context_.arena.Copy(shape)};
        const Type type = Plain(context_, own->type, shape);
        return EmitAt(depth, {FindOpInTable("aten::reshape"), view, {&type, 1}, node->loc})[0];
      }));
    const Type type = Plain(context_, node->results[0]->type, Batched(region.size, node->results[0]->type.shape, rank));
    whole[node->results[0]] = EmitAt(depth, {node->op, args, {&type, 1}, node->loc})[0];
  }
  for (const Result& result : region.results) Keep(depth, result, whole.at(result.inner));
  return true;
}

void Unvmap::CloseMapped(const Region& region, size_t depth) {
  Graph* body = context_.NewGraph();  // inputs come first in a graph, and are known now
  GraphSink sink(context_, *body);
  std::unordered_map<const Value*, Value*> copies;
  const auto input = [&](Value* value) {
    GraphInput own;
    own.value = value;
    copies[value] = sink.Input(own);
  };
  for (Value* sample : region.inputs) input(sample);
  for (Value* outside : region.captured) input(region.inside.at(outside));
  for (const Node* node : region.body->nodes) {
    std::vector<Arg> args;
    for (const Arg& arg : node->args) args.push_back(MapValues(context_, arg, [&](Value* value) { return copies.at(value); }));
    std::vector<Type> types;
    std::vector<std::string_view> names;
    for (const Value* result : node->results)
      types.push_back(result ? result->type : Type()), names.push_back(result ? result->name : std::string_view());
    const Results results = sink.Emit({node->op, args, types, node->loc, names});
    for (size_t i = 0; i < results.size(); ++i) copies[node->results[i]] = results[i];
  }
  std::vector<Type> types;
  for (const Result& result : region.results) {
    sink.Output({.value = copies.at(result.inner)});
    types.push_back(Plain(context_, result.inner->type, Batched(region.size, result.inner->type.shape, result.inner->type.shape.size())));
  }
  const std::vector<Arg> args = {body, context_.arena.Copy(region.samples), context_.arena.Copy(region.captured)};
  const Results results = EmitAt(depth, {FindOpInTable("hop::map_impl"), args, types, region.results.front().call.loc});
  for (size_t i = 0; i < results.size(); ++i) Keep(depth, region.results[i], results[i]);
}

void Unvmap::Close() {
  Region region = std::move(regions_.back());
  regions_.pop_back();
  if (region.results.empty()) return;
  const size_t depth = regions_.size();
  if (!CloseElementwise(region, depth)) CloseMapped(region, depth);
}

}  // namespace pt2onnx
