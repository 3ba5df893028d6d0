// A pass is a stream transformer: it takes one op at a time and emits ops into the next sink. Passes compose like functions:
//
//   Replay(program, Functionalize(Decompose(Promote(Lower(model)))));          fused: one traversal
//   Replay(program, Functionalize(graph1)); Replay(graph1, Decompose(graph2))  apart: the same program text
//
// A sink may look at one call and the types in it only, never at what the next sink answers beyond its values: that is what makes both ways equal.
#pragma once

#include "ir/context.h"
#include "ir/graph.h"

namespace pt2onnx {

// One op on its way down: arguments in schema order, and what its results are.
struct Call {
  const OpSchema* op;
  std::span<const Arg> args;
  std::span<const Type> types;                 // of the results, lists flattened; Kind::None: undefined
  LocId loc = 0;
  std::span<const std::string_view> names = {};  // of the results, as the program calls them; may be empty
};

using Results = std::span<Value* const>;         // one for each of Call::types; null where undefined

class Sink {
 public:
  explicit Sink(Context& context) : context_(context) {}
  virtual ~Sink() = default;
  virtual Value* Input(const GraphInput& input) = 0;  // its value's type and name are the upstream's; null stays null
  virtual Results Emit(const Call& call) = 0;
  virtual void Output(const GraphOutput& output) = 0;
  virtual void Finish() = 0;                           // after the last Output
  Context& context() const { return context_; }

 protected:
  Context& context_;
};

// Walks `from` once, in order, into `into`. Sub-graphs stay arguments: each sink replays them itself.
void Replay(const Graph& from, Sink& into);

// Replays the nodes only: operands stand for the graph's inputs; returns the outputs. How a sub-graph is inlined at its call.
std::vector<Arg> Inline(const Graph& from, std::span<Value* const> operands, Sink& into);

// The end of a stream: writes it down as a graph.
class GraphSink : public Sink {
 public:
  GraphSink(Context& context, Graph& graph) : Sink(context), graph_(graph) {}
  Value* Input(const GraphInput& input) override;
  Results Emit(const Call& call) override;
  void Output(const GraphOutput& output) override;
  void Finish() override {}

 private:
  Graph& graph_;
};

// Passes everything on. The base of passes that change a few ops: override what differs.
class PassSink : public Sink {
 public:
  explicit PassSink(Sink& down) : Sink(down.context()), down_(down) {}
  Value* Input(const GraphInput& input) override { return down_.Input(input); }
  Results Emit(const Call& call) override { return down_.Emit(call); }
  void Output(const GraphOutput& output) override { down_.Output(output); }
  void Finish() override { down_.Finish(); }

 protected:
  Sink& down_;
};

// The problem that poisons a call: those of all its poisoned arguments; 0 if none.
uint32_t PoisonOf(Context& context, std::span<const Arg> args);

// A value that carries a problem down the stream, so that the walk goes on: a node `pt2onnx::poison(number)`, once for each result type.
Results EmitPoison(Sink& down, uint32_t problem, std::span<const Type> types, LocId loc);
// Makes the problem, then EmitPoison.
Results Refuse(Sink& down, const Call& call, std::string_view code, std::string message, std::string help);

}  // namespace pt2onnx
