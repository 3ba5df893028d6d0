// The builder that rules emit ONNX with. The generated base has one method for each operator; here are constants, numbers computed from sizes,
// shapes, control flow, and forms of common operators that take plain lists.
//
//   r.On([](Onnx& b, const aten::unsqueeze& op) { return b.Unsqueeze(op.self, {op.dim}); });
//   Val y = b.Reshape(x, {n * m, 4});              // symbolic dims are computed in the model
//   Val z = b.Slice(y, 0, 1, n);                   // y[1:n]
//
// Identity work is left out (Transpose by the identity, Cast to the same dtype, ...), so a rule need not look for it. Methods know from which
// opset their operator is: asked at a lower one they note a problem and return its poison. Results know their dtype always, their rank
// wherever it can be known; a dim that isn't known is SymExpr::Unknown().
//
// In a sub-graph the same builder is used: while the function that builds a body runs, everything is emitted into the body, and values of
// outer graphs are used as they are.
#pragma once

#include <functional>
#include <memory>

#include "gen/onnx_ops.h"

namespace pt2onnx {

struct LoopStep {
  Val cond;
  Vals carried;
  Vals scanned;  // one slice for each stacked result
};
struct ScanStep {
  Vals states;
  Vals outputs;
};
struct OnnxOptions {
  bool runtime_casts = true;     // compute in a wider dtype, where exact, what ONNX Runtime has no kernel for
  bool bf16_as_f32 = false;      // that too for bfloat16
};

class Onnx : public OnnxOps {
 public:
  Onnx(Context& context, Sink& sink, OnnxOptions options = {});
  ~Onnx() override;

  int opset() const { return context_.opset; }
  Sink& sink();                                   // of the graph that is being built

  // --- Constants. Equal ones are one value.
  Val Constant(Scalar value, DType dtype) override;     // rank 0; a symbolic scalar is computed
  Val IntScalar(int64_t value);                         // rank 0, int64
  Val Ints(IntVec values);                              // 1-D int64
  Val Tensor(const TensorData& data);                   // bytes live as long as the context
  Val Tensor(IntVec shape, const std::vector<double>& values, DType dtype);  // rounded to nearest even
  Val Full(DimVec shape, Scalar value, DType dtype);    // a constant expanded
  Val Zeros(DimVec shape, DType dtype) { return Full(std::move(shape), 0, dtype); }
  Val Ones(DimVec shape, DType dtype) { return Full(std::move(shape), 1, dtype); }

  // --- Numbers of the program as values: the one place that turns symbolic expressions into operators.
  Val Int(SymExpr e);                                   // rank 0, int64
  Val Int1(SymExpr e);                                  // shape [1], int64
  Val Number(SymExpr e, DType dtype);                   // rank 0; of float and bool expressions too
  Val Shape(DimVec dims);                               // 1-D int64
  Val ShapeOf(Val x);                                   // 1-D int64; a constant if the shape is
  using OnnxOps::Shape;
  void Define(SymExpr symbol, Value* scalar);           // the symbol's value is this rank-0 tensor
  void DefineFrom(Value* value);                        // the symbols in a value's type are read from its shape
  bool IsDefined(SymExpr e);                            // all its symbols are
  const DimVec* KnownInts(Val x);                       // the numbers in a 1-D or rank-0 int64 value that a helper above made; else null

  // --- Forms with plain lists. Negative axes count from the back.
  Val Cast(Val x, DType to);
  Val Reshape(Val x, DimVec shape);                     // every dim given; 0 means 0
  Val Expand(Val x, DimVec shape);
  Val Transpose(Val x, IntVec perm);
  Val Unsqueeze(Val x, IntVec axes);                    // axes of the result
  Val Squeeze(Val x, IntVec axes);
  Val Slice(Val x, int64_t axis, SymExpr start, SymExpr end, SymExpr step = 1);  // not clamped: 0 <= start <= end <= dim, or as ONNX does
  Val Concat(const Vals& list, int64_t axis);
  Vals Split(Val x, const DimVec& sizes, int64_t axis);
  Val Flatten1D(Val x);
  Val Gather(Val x, Val indices, int64_t axis);
  Val Select(Val x, int64_t axis, SymExpr index);       // x[..., index, ...], without the axis; 0 <= index, or a negative constant
  Val ReduceSum(Val x, IntVec axes, bool keepdims = false);  // no axes: nothing is reduced
  Val ReduceMean(Val x, IntVec axes, bool keepdims = false);
  Val ReduceMax(Val x, IntVec axes, bool keepdims = false);
  Val ReduceMin(Val x, IntVec axes, bool keepdims = false);
  Val ReduceProd(Val x, IntVec axes, bool keepdims = false);
  Val ReduceL1(Val x, IntVec axes, bool keepdims = false);
  Val ReduceL2(Val x, IntVec axes, bool keepdims = false);
  Val ReduceLogSum(Val x, IntVec axes, bool keepdims = false);
  Val ReduceLogSumExp(Val x, IntVec axes, bool keepdims = false);
  Val ReduceSumSquare(Val x, IntVec axes, bool keepdims = false);
  Val Max(Val a, Val b) { return OnnxOps::Max({a, b}); }
  Val Min(Val a, Val b) { return OnnxOps::Min({a, b}); }
  Val ConstantOfShape(Val shape, Scalar value, DType dtype);
  Val Clip(Val x, OptVal min, OptVal max = {});
  Val Relu(Val x);                                      // of integers max(x, 0)
  Val NonZero(Val x);                                   // of any dtype
  Val OneHot(Val indices, Val depth, Val values, const OneHotAttrs& attrs = {});  // values: [off, on], of any dtype
  // scale and bias of every channel, as from opset 21 on, whatever the opset.
  Val GroupNormalization(Val x, Val scale, Val bias, const GroupNormalizationAttrs& attrs);
  Val Binary(char op, Val a, Val b) override;           // operands of two dtypes are promoted
  using OnnxOps::Cast;
  using OnnxOps::Concat;
  using OnnxOps::Expand;
  using OnnxOps::Gather;
  using OnnxOps::Max;
  using OnnxOps::Min;
  using OnnxOps::Reshape;
  using OnnxOps::Slice;
  using OnnxOps::Split;

  // --- Control flow. Bodies may use any value from outside.
  Vals If(Val cond, const std::function<Vals(Onnx&)>& then_body, const std::function<Vals(Onnx&)>& else_body);
  // trip: how often at most; cond: whether at all. Results: the carried values, then for each slice that a step gives all of them stacked.
  Vals Loop(OptVal trip, OptVal cond, const Vals& carried, const std::function<LoopStep(Onnx&, Val index, const Vals& carried)>& body);
  // Over axis 0 of the inputs. Results: the states, then the outputs stacked along axis 0.
  struct ScanOptions { IntVec input_axes, input_directions, output_axes, output_directions; };
  Vals Scan(const Vals& states, const Vals& inputs, const std::function<ScanStep(Onnx&, const Vals& states, const Vals& slices)>& body,
            const ScanOptions& options = {});

  // A sub-graph of the program, lowered here in place of a call. The driver that walks programs says how.
  using Inliner = std::function<std::vector<Arg>(const Graph&, std::span<const Arg>)>;
  void SetInliner(Inliner inliner) { inliner_ = std::move(inliner); }
  Vals Inline(const Graph& graph, std::span<const Arg> operands);

  // An operator of another domain, or one by its schema: args in schema order, types of its results.
  Results Emit(const OpSchema& op, std::span<const Arg> args, std::span<const Type> types);

 protected:
  Results Apply(OnnxOp op, std::vector<Arg> args, size_t results) override;

  struct Scope;                                         // of a graph: scope.h

 private:
  friend class SymEmitter;
  struct Body {
    Graph* graph;
    Vals outputs;                                       // values of the sub-graph
    uint32_t problem;                                   // of a poisoned output; 0: none
  };
  Scope& scope() { return *scopes_.back(); }
  Body Build(const std::vector<Type>& inputs, const std::function<Vals(const Vals&)>& body);
  Results Poisoned(uint32_t problem, std::span<const Type> types);
  Results RunControl(OnnxOp op, std::vector<Arg> args, const std::vector<Type>& types, uint32_t problem);
  void Adapt(OnnxOp op, std::vector<Arg>& args, size_t results);
  uint32_t CheckForm(OnnxOp op, std::span<const Arg> args, std::span<const Type> types);
  Results ApplyIn(DType wider, OnnxOp op, std::vector<Arg> args, std::span<const Type> types);
  Val Reduce(OnnxOp op, Val x, const IntVec& axes, bool keepdims);
  Val Remember(Val x, DimVec numbers);
  std::optional<double> ScalarOf(Val x);                // of a constant

  OnnxOptions options_;
  std::optional<DimVec> shape_hint_;                    // of the next node's first result, where a form knows more than inference
  Inliner inliner_;
  Call outside_;                                        // what is being lowered when no rule runs
  std::vector<std::unique_ptr<Scope>> scopes_;
};

}  // namespace pt2onnx
