// Functionalize: below this sink there is no write and no alias; every tensor is a value.
//
//   %row = aten::select.int(%x, 0, 0)            %row  = aten::select.int(%x, 0, 0)
//   aten::fill_.Scalar(%row, 0)           ->     %fill = aten::full([4], 0)
//   return %x                                    %x'   = aten::select_scatter(%x, %fill, 0, 0)
//                                                return %x'
//
// Each memory is a Storage, each geometry in which the program sees it an Alias of it. A write replaces its alias's value and is carried up
// to other aliases only when one of them is read; a read replays the view's steps when its value is stale. So a write that nobody sees through
// another name costs nothing, and every read sees all earlier writes, whatever views lie between. docs/functionalize.md has the algorithm.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "passes/alias.h"
#include "passes/write_log.h"
#include "rewrite/aten.h"
#include "rewrite/sink.h"

namespace pt2onnx {

class Functionalize : public Sink {
 public:
  // log: told of each write and what becomes of it; may be null.
  explicit Functionalize(Sink& down, WriteLog* log = nullptr)
      : Sink(down.context()), down_(down), aten_(down), log_(log), first_(down.context().value_count()) {}

  Value* Input(const GraphInput& input) override;
  Results Emit(const Call& call) override;
  void Output(const GraphOutput& output) override;
  void Finish() override;

 private:
  struct Doubt {                    // two memories that may be one, and why that is not known
    Alias *a, *b;
    std::string_view why;
  };
  struct State {                    // an input that may be written
    GraphInput input;
    TensorObject* tensor;
    const Alias* before;            // at the start
  };

  // Tensors and handles.
  Value* Handle(TensorObject* tensor, const Type& type, std::string_view name);
  TensorObject* Tensor(const Value* handle) const;
  TensorObject* Fresh(Value* value, const Type& type, std::string_view name);
  Alias* View(Alias* parent, const ViewStep& step, const Type& type, std::string_view name, LocId loc);

  // The algorithm (docs/functionalize.md).
  Value* Read(Alias* alias);
  void Write(Alias* alias, Value* value, bool fill);
  void SetValue(Alias* alias, Value* value);
  void MakeCurrent(Alias* alias);
  void Regenerate(Alias* alias);
  Value* Replay(Alias* alias, Value* parent);
  void Settle(Alias* alias);
  void CarryUp(Alias* parent);
  Value* Gathered(const Alias& parent);
  void JoinShared();
  void Join(const std::vector<size_t>& names);
  Value* ReadHandle(Value* handle);
  std::vector<Arg> ReadArgs(std::span<const Arg> args);

  // Calls by kind.
  Results EmitView(const Call& call);
  Results EmitMaybeView(const Call& call);
  Results EmitHiddenAlias(const Call& call);
  Results EmitEinsum(const Call& call, TensorObject* operand);
  Results BroadcastAliases(const Call& call);
  Results EmitWrite(const Call& call);
  Results EmitForeach(const Call& call);
  Results EmitGeometryChange(const Call& call);
  Results EmitSubgraphs(const Call& call);
  Results EmitControlFlow(const Call& call);
  Results ViewResults(const Call& call, Alias* parent, std::span<const ViewStep> steps);
  Results SameTensor(const Call& call, TensorObject* tensor);
  Results AliasOf(const Call& call, Alias* alias);
  Alias* AsStrided(Alias* alias, Dims size, Dims stride, SymExpr offset, const Type& type, LocId loc);
  bool Resize(TensorObject* tensor, Dims size, LocId loc);
  void Store(Alias* alias, Value* value, const Call& call, bool fill);
  void MayShare(Alias* a, Alias* b, std::string_view why);
  void WritePoison(Alias* alias, uint32_t problem, LocId loc);
  void PoisonDoubted(Storage* written, const Call& call);
  Results PassOn(const Call& call);
  Results Answer(const Call& call, Results results);
  Results RefuseCall(const Call& call, std::string_view code, std::string message, std::string help);
  Results RefuseWrite(const Call& call, std::span<Alias* const> targets, std::string_view code, std::string message, std::string help);

  // Sub-graphs of control flow (functionalize_subgraphs.cc).
  struct Operand;
  struct Body;
  struct Origin;
  struct Flow;
  std::vector<Operand> OperandsOf(const Call& call) const;
  Body RunBody(const Graph& from, const std::vector<Operand>& operands);
  std::vector<Body> RunBodies(const Call& call, const std::vector<Operand>& operands);
  bool ShareMemory(std::vector<Operand>& operands);
  Alias* Derived(const Alias* alias, const Alias* top, Alias* root);
  void CheckFlow(Flow& flow);
  Results EmitFlow(Flow& flow);
  Results EmitPureBodies(const Call& call);
  Results BodyResults(const Flow& flow, Results values);

  Sink& down_;
  Aten aten_;
  WriteLog* log_;
  const Call idle_{FindOpInTable("pt2onnx::poison"), {}, {}};                    // what is emitted between calls stands nowhere in the user's program
  const uint32_t first_;                 // handles have ids from here on
  std::vector<TensorObject*> tensors_;   // by handle id - first_
  std::vector<State> state_;
  std::vector<Doubt> doubts_;
  std::deque<Below> belows_;
  uint32_t epochs_ = 0;
  std::map<int, std::vector<size_t>> shared_;  // storage number -> positions in state_
};

}  // namespace pt2onnx
