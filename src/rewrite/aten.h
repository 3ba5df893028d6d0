// The builder of rules whose results are ATen ops: decompositions, view inverses, promotion. An op is emitted by its struct:
//
//   Val y = b(aten::mm{.self = x, .mat2 = w});
//
// Only functional ops have structs, so a rule can't bring a mutation back. Types of results come from ir/infer.
#pragma once

#include "gen/aten.h"
#include "gen/prims.h"
#include "ir/op_table.h"
#include "rewrite/builder.h"

namespace pt2onnx {

class Aten : public Builder {
 public:
  explicit Aten(Sink& down) : Builder(down.context()), down_(down) {}

  template <class Op>
  Val operator()(const Op& op) {
    return Emit(OpTable()[Op::kId], ToArgs(op, context_))[0];
  }
  // Ops with several results.
  template <class Op>
  Vals All(const Op& op) {
    return Emit(OpTable()[Op::kId], ToArgs(op, context_));
  }
  Vals Emit(const OpSchema& op, std::vector<Arg> args);

  Val Binary(char op, Val a, Val b) override;
  Val Constant(Scalar value, DType dtype) override;   // aten::full of rank 0
  Val Cast(Val x, DType dtype);                       // x itself where it has that dtype
  Val Reshape(Val x, Dims shape);
  Val Reshape(Val x, std::initializer_list<SymExpr> shape) { return Reshape(x, context_.arena.Copy(shape)); }
  Val Expand(Val x, Dims shape);                      // broadcast; x itself where it has that shape
  Val Permute(Val x, std::vector<int64_t> dims);
  Ints Copy(const std::vector<int64_t>& ints) { return context_.arena.Copy(ints); }
  Dims Copy(const std::vector<SymExpr>& dims) { return context_.arena.Copy(dims); }

 private:
  Sink& down_;
};

// Shapes known to be the same, dim by dim.
bool SameShape(Dims a, Dims b);

}  // namespace pt2onnx
