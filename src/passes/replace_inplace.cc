#include "passes/replace_inplace.h"

#include <fmt/core.h>

#include "ir/location.h"
#include "passes/out_of_place.h"
#include "rewrite/bodies.h"
#include "rewrite/call_args.h"

namespace pt2onnx {
namespace {

std::string Place(const Context& context, LocId loc) {
  const Loc& at = context.locs[loc];
  const SourceLine line = UserLine(at.stack_trace);
  if (!line.file.empty()) return fmt::format(" at {}:{}", line.file, line.line);
  return at.node.empty() ? std::string() : fmt::format(" (%{})", at.node);
}

constexpr std::string_view kHelp = "write out of place there, or give the program before it was decomposed";

bool MayAlias(const OpSchema& op) { return op.view != ViewClass::None || op.Has(kMaybeAlias) || op.Has(kHiddenAlias); }

}  // namespace

ReplaceInplace::Memory* ReplaceInplace::Of(const Value* value) {
  if (value->id >= memories_.size()) memories_.resize(value->id + value->id / 2 + 16, nullptr);
  Memory*& memory = memories_[value->id];
  if (!memory) memory = context_.arena.New<Memory>();
  return memory;
}

void ReplaceInplace::Set(const Value* value, Memory* memory) {
  Of(value);
  memories_[value->id] = memory;
}

const ReplaceInplace::Memory* ReplaceInplace::Overwritten(const Arg& arg) {
  const auto of = [&](const Value* value) -> const Memory* {
    const Memory* memory = value && value->id < memories_.size() ? memories_[value->id] : nullptr;
    return memory && !memory->by.empty() ? memory : nullptr;
  };
  if (Value* const* value = std::get_if<Value*>(&arg)) return of(*value);
  if (const ValueList* list = std::get_if<ValueList>(&arg))
    for (const Value* value : *list)
      if (const Memory* memory = of(value)) return memory;
  return nullptr;
}

// `reader`: the op that reads, at `loc`; empty: an output of the graph.
uint32_t ReplaceInplace::Problem(const Memory& memory, std::string_view reader, LocId loc) {
  const std::string by = std::string(memory.by) + Place(context_, memory.written);
  std::string message = fmt::format("{} a value that {} has overwritten: a real mutation, which only Functionalize can follow", reader.empty() ? "the program answers" : "reads", by);
  return context_.diagnostics.Add({"E0205", std::move(message), std::string(kHelp), reader.empty() ? memory.written : loc, std::string(reader.empty() ? memory.by : reader)});
}

Value* ReplaceInplace::Input(const GraphInput& input) {
  Value* value = down_.Input(input);
  if (value) Of(value)->input = true;
  return value;
}

Results ReplaceInplace::Emit(const Call& call) {
  for (const Arg& arg : call.args)
    if (const Memory* memory = Overwritten(arg)) return EmitPoison(down_, Problem(*memory, call.op->name, call.loc), call.types, call.loc);
  if (Writes(call)) return Replace(call);
  if (HasBody(call)) {
    const std::vector<Arg> args = ReplayBodies(context_, call.args, [](Sink& down) { return ReplaceInplace(down); });
    return down_.Emit({call.op, args, call.types, call.loc, call.names});
  }
  const Results results = down_.Emit(call);
  if (!MayAlias(*call.op)) return results;
  Memory* memory = nullptr;  // ops that alias do so with their first argument, or with the elements of a list
  if (Value* const* self = std::get_if<Value*>(&call.args[0])) memory = Of(*self);
  const ValueList* list = std::get_if<ValueList>(&call.args[0]);
  for (size_t i = 0; i < results.size(); ++i)
    if (Memory* own = memory ? memory : list && i < list->size() && (*list)[i] ? Of((*list)[i]) : nullptr; own && results[i]) Set(results[i], own);
  return results;
}

Results ReplaceInplace::Replace(const Call& call) {
  const std::string_view base = BaseName(*call.op);
  const auto refuse = [&](std::string message) {
    const uint32_t problem = context_.diagnostics.Add({"E0205", std::move(message), std::string(kHelp), call.loc, std::string(call.op->name)});
    context_.diagnostics.Report(problem);  // what is lost may have no reader
    return EmitPoison(down_, problem, call.types, call.loc);
  };
  const std::vector<Target> targets = TargetsOf(call);
  for (const Target& target : targets)
    if (Of(target.value)->input) return refuse("writes to an input: a real mutation, which only Functionalize can follow");
  aten_.Begin(call);
  std::vector<Value*> results;
  if (base == "aten::detach_" || base == "aten::requires_grad_") return context_.arena.Copy(std::vector<Value*>(call.types.size(), targets[0].value));
  if (call.op->Has(kInplaceView)) {  // another geometry of the same memory
    if (call.op->functional < 0) return refuse("changes the geometry of a tensor that others may see");
    const Results views = down_.Emit({&OpTable()[static_cast<size_t>(call.op->functional)], call.args, call.types, call.loc, call.names});
    results.assign(views.begin(), views.end());
  } else {
    std::vector<Type> types;
    for (const Target& target : targets) types.push_back(target.value->type);
    const std::optional<OutOfPlace> values = ComputeOutOfPlace(aten_, down_, call, call.args, types);
    if (!values) return refuse("there is no out-of-place form of this op");
    std::vector<Value*> written;
    for (size_t i = 0; i < targets.size(); ++i) {
      Val value = aten_.Wrap(values->written[i]);
      if (base == "aten::copy_") value = aten_(aten::clone{.self = value});  // its source stays another tensor
      value = aten_.Cast(value, types[i].dtype);
      written.push_back(call.op->kind == OpKind::Out ? value.value : aten_.Expand(value, types[i].shape).value);
    }
    size_t own = 0;
    for (size_t i = 0; i < call.types.size(); ++i) {
      const int target = WrittenResult(call, targets, i);
      results.push_back(target >= 0 ? written[static_cast<size_t>(target)] : own < values->returned.size() ? values->returned[own] : nullptr);
      own += target < 0;
    }
  }
  for (const Target& target : targets) {
    Memory* memory = Of(target.value);
    memory->by = call.op->name;
    memory->written = call.loc;
  }
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i] && results[i]->name.empty() && i < call.names.size()) results[i]->name = call.names[i];
  return context_.arena.Copy(results);
}

void ReplaceInplace::Output(const GraphOutput& output) {
  GraphOutput own = output;
  if (const Memory* memory = Overwritten(output.value)) {
    Type type = std::get<Value*>(output.value)->type;
    own.value = EmitPoison(down_, Problem(*memory, {}, 0), {&type, 1}, 0)[0];
  }
  down_.Output(own);
}

}  // namespace pt2onnx
