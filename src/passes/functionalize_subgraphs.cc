// Functionalize: bodies that run under a condition, or again and again. What a body writes to a tensor of its caller becomes a value too:
//
//   %y = hop::cond(%p, graph(%a) { aten::add_.Scalar(%a, 1)  return %b }, graph(%c) { return %d }, [%x])
//     -> %y, %x' = hop::cond(%p, graph(%a) { %a' = aten::add.Scalar(%a, 1)  return %b, %a' }, graph(%c) { return %d, %c }, [%x])
//
// A branch gives it as one more result. A loop carries what every step sees; the slices that a scan or map walks over are stacked again; a map
// whose steps see each other's writes is a scan. Operands on one memory: the body gets what covers them, and derives them by the same views.
#include <algorithm>
#include <memory>
#include <set>

#include "passes/functionalize.h"
#include "passes/geometry.h"
#include "rewrite/call_args.h"

namespace pt2onnx {
namespace {

enum class Role : uint8_t { Captured, Carried, Sliced };

// Which lists of a call are its bodies' operands, in the bodies' order.
struct Control {
  std::string_view op, carried, sliced, captured;
};
constexpr Control kControls[] = {{"hop::cond", "", "", "operands"},
                                 {"hop::while_loop", "carried", "", "additional"},
                                 {"hop::scan", "init", "xs", "additional"},
                                 {"hop::map_impl", "", "xs", "extra"}};
const Control* ControlOf(const OpSchema& op) {
  const auto found = std::find_if(std::begin(kControls), std::end(kControls), [&](const Control& c) { return c.op == op.name; });
  return found == std::end(kControls) ? nullptr : found;
}

constexpr std::string_view kHelp = "write it out of place in the sub-graph and return the new value";

// Whether a body looks at memory beside what a tensor shows.
bool AsksForMemory(std::span<const Arg> args) {
  for (const Arg& arg : args) {
    Graph* const* body = std::get_if<Graph*>(&arg);
    if (!body) continue;
    for (const Node* node : (*body)->nodes)
      if (node->op->view == ViewClass::AsStrided || node->op->Has(kInplaceView) || AsksForMemory(node->args)) return true;
  }
  return false;
}

Type Plain(Type type) {
  type.strides = {};
  type.offset = 0;
  return type;
}

}  // namespace

// What bodies are given at one position.
struct Functionalize::Operand {
  Role role;
  Value* handle;             // null: memory that covers other operands, passed besides
  TensorObject* tensor;      // null: a number, or memory
  Alias* alias;              // null: a number
  size_t same;               // the first position with this very geometry; its own otherwise
  size_t cover = SIZE_MAX;   // the position that it is derived from
  bool whole = false;        // a body may ask for elements of its memory that it does not show (as_strided)
  bool written = false;      // by a body, also through others that are the same or derived from it
};

struct Functionalize::Body {
  Graph* graph = nullptr;
  std::unique_ptr<GraphSink> sink;
  std::unique_ptr<Functionalize> pass;
  std::vector<TensorObject*> tensors;  // by position
  std::vector<Alias*> aliases;         // theirs at the start
  std::vector<Arg> outputs;            // handles

  bool Writes(size_t i) const { return aliases[i] && aliases[i]->storage()->version > 0; }
  const Alias* AliasOf(const Arg& output) const {
    Value* const* handle = std::get_if<Value*>(&output);
    const TensorObject* tensor = handle ? pass->Tensor(*handle) : nullptr;
    return tensor ? tensor->alias : nullptr;
  }
  void Answer(size_t from, size_t to) const {
    for (size_t r = from; r < to; ++r) {
      Value* const* handle = std::get_if<Value*>(&outputs[r]);
      sink->Output({.value = handle ? Arg(pass->ReadHandle(*handle)) : outputs[r]});
    }
  }
};

std::vector<Functionalize::Operand> Functionalize::OperandsOf(const Call& call) const {
  const Control* control = ControlOf(*call.op);
  std::vector<Operand> operands;
  const auto add = [&](std::string_view list, Role role) {
    const Arg* arg = list.empty() ? nullptr : FindArg(call, list);
    if (!arg) return;
    for (Value* handle : std::get<ValueList>(*arg)) {
      TensorObject* tensor = Tensor(handle);
      Operand own{role, handle, tensor, tensor ? tensor->alias : nullptr, operands.size()};
      for (size_t i = operands.size(); i-- > 0;)  // a loop's own value is another one from its second step on
        if (own.alias && role != Role::Carried && operands[i].role == role && operands[i].alias == own.alias) own.same = i;
      operands.push_back(own);
    }
  };
  add(control->carried, Role::Carried), add(control->sliced, Role::Sliced), add(control->captured, Role::Captured);
  return operands;
}

// The view steps from `top` down to `alias`, from `root` on.
Alias* Functionalize::Derived(const Alias* alias, const Alias* top, Alias* root) {
  if (alias == top) return root;
  return View(Derived(alias->parent, top, root), alias->step, alias->type, alias->name, alias->loc);
}

Functionalize::Body Functionalize::RunBody(const Graph& from, const std::vector<Operand>& operands) {
  Body body;
  body.graph = context_.NewGraph();
  body.graph->name = from.name;
  body.sink = std::make_unique<GraphSink>(context_, *body.graph);
  body.pass = std::make_unique<Functionalize>(*body.sink, log_);
  Functionalize& pass = *body.pass;
  std::vector<Value*> handles;
  for (size_t i = 0; i < operands.size(); ++i) {
    GraphInput input;
    if (i < from.inputs.size()) input = from.inputs[i];
    else input.value = context_.NewValue(operands[i].alias->type);
    handles.push_back(pass.Input(input));
    body.tensors.push_back(pass.Tensor(handles[i]));
    if (body.tensors[i] && operands[i].same != i) *body.tensors[i] = *body.tensors[operands[i].same];
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    const size_t cover = operands[i].cover;
    if (cover != SIZE_MAX && body.tensors[i]) body.tensors[i]->alias = pass.Derived(operands[i].alias, operands[cover].alias, body.tensors[cover]->alias);
    body.aliases.push_back(body.tensors[i] ? body.tensors[i]->alias : nullptr);
  }
  handles.resize(from.inputs.size());
  body.outputs = Inline(from, handles, pass);
  pass.aten_.Begin(pass.idle_);  // the body's last call is gone
  return body;
}

std::vector<Functionalize::Body> Functionalize::RunBodies(const Call& call, const std::vector<Operand>& operands) {
  std::vector<Body> bodies;
  for (const Arg& arg : call.args)
    if (Graph* const* graph = std::get_if<Graph*>(&arg)) bodies.push_back(RunBody(**graph, operands));
  return bodies;
}

// Written operands that share memory, or that show an element twice, are derived from what covers them; so is one whose memory a body asks for.
bool Functionalize::ShareMemory(std::vector<Operand>& operands) {
  bool any = false;
  std::set<Storage*> done;
  for (size_t i = 0; i < operands.size(); ++i) {
    if ((!operands[i].written && !operands[i].whole) || !done.insert(operands[i].alias->storage()).second) continue;
    std::vector<size_t> group;
    Alias* cover = operands[i].alias;
    for (size_t k = 0; k < operands.size(); ++k) {
      if (!operands[k].alias || operands[k].alias->storage() != operands[i].alias->storage()) continue;
      group.push_back(k);
      cover = CommonAncestor(cover, operands[k].whole ? cover->storage()->root : operands[k].alias);
    }
    while (cover->overlapping) cover = cover->parent;
    if (std::all_of(group.begin(), group.end(), [&](size_t k) { return operands[k].alias == cover; })) continue;
    size_t at = operands.size();
    for (size_t k : group)
      if (operands[k].alias == cover && operands[k].role == Role::Captured) at = std::min(at, k);
    if (at == operands.size()) operands.push_back({Role::Captured, nullptr, nullptr, cover, at});
    for (size_t k : group)
      if (operands[k].alias != cover && operands[k].role == Role::Captured && operands[k].cover == SIZE_MAX) operands[k].cover = at, any = true;
  }
  return any;
}

// One call on its way.
struct Functionalize::Flow {
  const Call& call;
  const Control& control;
  std::vector<Operand> operands;
  std::vector<Body> bodies;
  bool loop;                        // bodies run step by step
  size_t first;                     // the first body whose outputs are the call's results
  size_t carried;                   // operands that are another value in each step
  std::vector<size_t> replaced;     // those of them that a body writes and then answers another tensor for
  std::string_view problem;

  bool MarkWritten() {
    bool any = false;
    for (size_t i = 0; i < operands.size(); ++i) {
      operands[i].written = std::any_of(bodies.begin(), bodies.end(), [&](const Body& body) { return body.Writes(i); });
      any |= operands[i].written;
    }
    return any;
  }
};

// Where a body's result comes from.
struct Functionalize::Origin {
  enum Kind { Own, Operand, PartOfOperand, PartOfResult } kind = Own;
  size_t at = 0;  // the operand, or an earlier result that lies in the same memory
};

// A body's results as the caller's tensors: mostly tensors of their own; an operand where every branch answers that very operand. Otherwise,
// where it depends on the branch or on the number of steps what a result shares memory with, a write to one puts the other in doubt.
Results Functionalize::BodyResults(const Flow& flow, Results values) {
  const Call& call = flow.call;
  const std::vector<Operand>& operands = flow.operands;
  const std::span<const Body> bodies = std::span(flow.bodies).subspan(flow.first);
  const auto origin = [&](const Body& body, size_t r) -> Origin {
    const Alias* own = body.AliasOf(body.outputs[r]);
    if (!own) return {};
    for (size_t i = 0; i < operands.size(); ++i)
      if (body.aliases[i] == own) return {Origin::Operand, operands[i].same};
    for (size_t i = 0; i < operands.size(); ++i)
      if (body.aliases[i] && body.aliases[i]->storage() == own->storage()) return {Origin::PartOfOperand, i};
    for (size_t k = 0; k < r; ++k)
      if (const Alias* other = body.AliasOf(body.outputs[k]); other && other->storage() == own->storage()) return {Origin::PartOfResult, k};
    return {};
  };
  const bool scans = call.op->name == "hop::scan";
  const Results handles = Answer(call, values);
  constexpr std::string_view kWhy = "which branch of a sub-graph ran, or how often, decides whether they share memory";
  std::vector<Value*> out(handles.begin(), handles.end());
  for (size_t r = 0; r < out.size(); ++r) {
    TensorObject* tensor = Tensor(out[r]);
    if (!tensor || (flow.loop && r >= flow.carried)) continue;  // what steps answer is stacked: a copy
    const Origin first = origin(bodies[0], r);
    const bool agree = std::all_of(bodies.begin(), bodies.end(), [&](const Body& body) {
      const Origin other = origin(body, r);
      return other.kind == first.kind && other.at == first.at;
    });
    if (first.kind == Origin::Operand && agree && (!flow.loop || (scans && first.at == r)) && operands[first.at].tensor) {
      out[r] = Handle(operands[first.at].tensor, call.types[r], r < call.names.size() ? call.names[r] : std::string_view());
      continue;
    }
    for (const Body& body : bodies) {
      const Origin from = origin(body, r);
      if (from.kind == Origin::Own) continue;
      TensorObject* other = from.kind == Origin::PartOfResult ? Tensor(out[from.at]) : nullptr;
      if (Alias* alias = other ? other->alias : operands[from.at].alias) MayShare(tensor->alias, alias, kWhy);
    }
  }
  return context_.arena.Copy(out);
}

// What can't be carried out.
void Functionalize::CheckFlow(Flow& flow) {
  const std::vector<Operand>& operands = flow.operands;
  const auto same_memory = [](const Alias* a, const Alias* b) { return a && b && a->storage() == b->storage(); };
  for (size_t i = 0; i < operands.size(); ++i) {
    for (const Body& body : flow.bodies)
      if (body.tensors[i] && body.tensors[i]->alias != body.aliases[i]) flow.problem = "a sub-graph changes the geometry of what it was given";
    if (flow.first && flow.bodies[0].Writes(i)) flow.problem = "the condition of a loop writes to what it was given";
    if (!operands[i].written || operands[i].role == Role::Captured) continue;
    for (size_t k = 0; k < operands.size(); ++k)
      if (operands[k].same != operands[i].same && same_memory(operands[k].alias, operands[i].alias))
        flow.problem = "a loop writes to memory that it is given twice, once as a value that is another one in each step";
  }
  for (size_t b = flow.first; b < flow.bodies.size(); ++b)
    if (flow.bodies[b].outputs.size() != flow.call.types.size()) flow.problem = "a sub-graph gives another number of results than its call has";
  if (!flow.problem.empty() || std::none_of(operands.begin(), operands.end(), [](const Operand& o) { return o.written; })) return;
  // A loop's own values are the caller's in the first step only. What stays the same tensor in all steps is the caller's at the end.
  const Body& body = flow.bodies[flow.first];
  std::vector<const Alias*> next;
  for (size_t i = 0; i < flow.carried; ++i) {
    next.push_back(body.AliasOf(body.outputs[i]));
    if (!next[i] || next[i] == body.aliases[i]) continue;
    if (std::any_of(body.aliases.begin(), body.aliases.end(), [&](const Alias* alias) { return same_memory(alias, next[i]); }) ||
        std::any_of(next.begin(), next.end() - 1, [&](const Alias* other) { return same_memory(other, next[i]); }))
      flow.problem = "a loop that writes in place answers values that share memory";
    if (operands[i].written) flow.replaced.push_back(i);
  }
}

// The bodies with what they write among their outputs, and the call with it among its results.
Results Functionalize::EmitFlow(Flow& flow) {
  const Call& call = flow.call;
  const std::vector<Operand>& operands = flow.operands;
  const size_t own = call.types.size(), early = flow.loop ? flow.carried : own;  // results that stand before the captured values
  std::vector<size_t> states, slices, rest, order, units, stacked;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    const bool unit = operand.written && operand.cover == SIZE_MAX && operand.same == i;
    if (unit && operand.role == Role::Captured) units.push_back(i);
    if (unit && operand.role == Role::Sliced) stacked.push_back(i);
    const bool state = operand.role == Role::Carried || (flow.loop && unit && operand.role == Role::Captured);
    (state ? states : operand.role == Role::Sliced ? slices : rest).push_back(i);
  }
  for (const std::vector<size_t>* part : {&states, &slices, &rest}) order.insert(order.end(), part->begin(), part->end());
  for (size_t b = 0; b < flow.bodies.size(); ++b) {
    const Body& body = flow.bodies[b];
    std::vector<GraphInput> inputs;
    for (size_t i : order) inputs.push_back(body.graph->inputs[i]);
    body.graph->inputs = std::move(inputs);
    body.Answer(0, b < flow.first ? body.outputs.size() : early);
    if (b < flow.first) continue;
    for (size_t i : units) body.sink->Output({.value = body.pass->Read(body.aliases[i])});
    body.Answer(early, own);
    for (size_t i : stacked) body.sink->Output({.value = body.pass->Read(body.aliases[i])});
  }

  const auto list = [&](const std::vector<size_t>& positions) {
    std::vector<Value*> values;
    for (size_t i : positions) values.push_back(operands[i].handle ? ReadHandle(operands[i].handle) : Read(operands[i].alias));
    return ValueList(context_.arena.Copy(values));
  };
  const OpSchema* op = call.op;
  std::vector<Arg> args = ReadArgs(call.args);
  if (op->name == "hop::map_impl" && !units.empty()) {
    op = FindOpInTable("hop::scan");
    args = {flow.bodies[0].graph, list(states), list(slices), list(rest), int64_t{0}, false};
  } else {
    size_t next = 0;
    for (Arg& arg : args)
      if (std::holds_alternative<Graph*>(arg)) arg = flow.bodies[next++].graph;
    const auto set = [&](std::string_view name, const std::vector<size_t>& positions) {
      if (!name.empty()) args[static_cast<size_t>(op->ArgIndex(name))] = list(positions);
    };
    set(flow.control.carried, states), set(flow.control.sliced, slices), set(flow.control.captured, rest);
  }
  std::vector<Type> types;
  std::vector<std::string_view> names;
  const auto add = [&](size_t from, size_t to) {
    for (size_t r = from; r < to; ++r) types.push_back(call.types[r]), names.push_back(r < call.names.size() ? call.names[r] : std::string_view());
  };
  const auto add_written = [&](const std::vector<size_t>& positions) {
    for (size_t i : positions) types.push_back(Plain(operands[i].alias->type)), names.emplace_back();
  };
  add(0, early), add_written(units), add(early, own), add_written(stacked);
  const Results values = down_.Emit({op, args, types, call.loc, names});

  aten_.Begin(call);
  for (size_t u = 0; u < units.size(); ++u) Store(operands[units[u]].alias, values[early + u], call, false);
  for (size_t u = 0; u < stacked.size(); ++u) Store(operands[stacked[u]].alias, values[own + units.size() + u], call, false);
  for (size_t i = 0; i < flow.carried; ++i)
    if (operands[i].written && std::find(flow.replaced.begin(), flow.replaced.end(), i) == flow.replaced.end()) Store(operands[i].alias, values[i], call, false);
  std::vector<Value*> answers(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(early));
  for (size_t r = early; r < own; ++r) answers.push_back(values[units.size() + r]);
  return context_.arena.Copy(answers);
}

Results Functionalize::EmitControlFlow(const Call& call) {
  const Control* control = ControlOf(*call.op);
  if (!control) return EmitPureBodies(call);
  Flow flow{call, *control, OperandsOf(call), {}, !control->carried.empty() || !control->sliced.empty(), call.op->name == "hop::while_loop" ? size_t{1} : size_t{0}, 0, {}, {}};
  for (const Operand& operand : flow.operands) flow.carried += operand.role == Role::Carried;
  for (const Arg& arg : call.args)
    if (Graph* const* graph = std::get_if<Graph*>(&arg); graph && (*graph)->inputs.size() != flow.operands.size())
      return RefuseCall(call, "E0204", "a sub-graph takes another number of operands than its call gives", "the file is damaged: save the program again");
  for (Operand& operand : flow.operands) operand.whole = operand.alias && !MemoryOrder(operand.alias->type) && AsksForMemory(call.args);
  ShareMemory(flow.operands);
  flow.bodies = RunBodies(call, flow.operands);
  std::vector<Alias*> targets;  // what the caller sees change
  if (flow.MarkWritten()) {
    for (const Operand& operand : flow.operands)
      if (operand.written) targets.push_back(operand.alias);
    if (ShareMemory(flow.operands)) {
      flow.bodies = RunBodies(call, flow.operands);
      flow.MarkWritten();
    }
  }
  CheckFlow(flow);
  if (!flow.problem.empty()) return RefuseWrite(call, targets, "E0204", std::string(flow.problem), std::string(kHelp));
  const Results values = EmitFlow(flow);
  std::vector<Alias*> lost;
  for (size_t i : flow.replaced) lost.push_back(flow.operands[i].alias);
  if (!lost.empty())
    RefuseWrite(call, lost, "E0204", "a loop writes to a value in place and then replaces it: only its first step's write reaches the caller", std::string(kHelp));
  return BodyResults(flow, values);
}

// Ops whose order of steps is open, or whose bodies are called otherwise: no body may write what it is given.
Results Functionalize::EmitPureBodies(const Call& call) {
  std::vector<Alias*> targets;
  for (const Arg& arg : call.args)
    if (const ValueList* list = std::get_if<ValueList>(&arg))
      for (Value* value : *list)
        if (TensorObject* tensor = Tensor(value)) targets.push_back(tensor->alias);
  std::vector<Arg> args = ReadArgs(call.args);
  for (Arg& arg : args) {
    Graph* const* graph = std::get_if<Graph*>(&arg);
    if (!graph) continue;
    std::vector<Operand> inputs;
    for (const GraphInput& input : (*graph)->inputs) inputs.push_back({Role::Captured, input.value, nullptr, nullptr, inputs.size()});
    const Body body = RunBody(**graph, inputs);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (body.Writes(i)) return RefuseWrite(call, targets, "E0204", "a sub-graph of this op writes to what it was given", std::string(kHelp));
    body.Answer(0, body.outputs.size());
    arg = body.graph;
  }
  return Answer(call, down_.Emit({call.op, args, call.types, call.loc, call.names}));
}

}  // namespace pt2onnx
