// What rules of complex numbers are written with. Values of such a rule are complex or real tensors, as the program has them; the ops it emits go
// through the pass again, so both z * w and Re(z) * Re(w) may be said:
//
//   r.On([](Pairs& b, const aten::tan& op) { return b(aten::sin{.self = op.self}) / b(aten::cos{.self = op.self}); });
//   r.On([](Pairs& b, const aten::conj_physical& op) { return b.Pack({b.Re(op.self), -b.Im(op.self)}); });
#pragma once

#include <functional>

#include "rewrite/aten.h"
#include "rewrite/rules.h"

namespace pt2onnx {

class ComplexToReal;

// A complex value below the pass.
struct ComplexForm {
  Value* pair = nullptr;               // [..., 2]; null: not made yet
  bool apart = false;                  // re and im are known; null: that part is zero
  Value* re = nullptr;
  Value* im = nullptr;
};

// The two parts, of one real dtype. A missing one is zero everywhere.
struct Parts {
  OptVal re, im;
};

class Pairs : public Aten {
 public:
  Pairs(ComplexToReal& sink, const Call& call);

  // The dtype that the op computes in, after promotion.
  DType complex() const { return complex_; }
  DType real() const { return RealOf(complex_); }

  // --- Apart and together. Of a real tensor the imaginary part is missing.
  Parts Of(Val x);                     // in dtype real()
  Parts Of(const Scalar& x);
  Parts Of(const std::complex<double>& x);
  Val Re(Val x);                       // zeros where that part is missing
  Val Im(Val x);
  Val Filled(Parts parts, Dims shape, bool imaginary);  // that part of `shape`, zeros where it is missing
  Val Pack(const Parts& parts, Dims shape);  // parts are broadcast to it
  Val Pack(const Parts& parts);              // of one shape; not both missing
  Val Pair(Val x);                     // [..., 2]
  Val FromPair(Val pair);
  bool HasPair(Val x);                 // a complex value that is there as a pair, and not in parts
  bool IsComplexValue(const Arg& arg) const;

  // --- The call itself, repeated.
  // On the real parts and on the imaginary parts: of ops that move elements or are linear with real coefficients.
  Answer EachPart();
  // On the pairs, whose dims arguments are counted from the front; on each part where the operands are in parts.
  Answer OnPairs();
  // Linear in each of the operands given: the sum over all ways to take a part of each. args: the call's, some changed.
  Val Multilinear(const std::vector<std::string_view>& operands) { return Multilinear(operands, Args()); }
  Val Multilinear(const std::vector<std::string_view>& operands, std::vector<Arg> args);
  // A view, by its class; none if that class has no form here.
  std::optional<Answer> View();
  std::vector<Arg> Args() const { return {call().args.begin(), call().args.end()}; }
  // An op of real operands with the type of its result given, where ir/infer has none.
  template <class Op>
  Val Typed(const Op& op, DType dtype, Dims shape) {
    return EmitTyped(OpTable()[Op::kId], ToArgs(op, context_), {.kind = Kind::Tensor, .dtype = dtype, .shape = shape});
  }
  Val EmitTyped(const OpSchema& op, std::vector<Arg> args, Type type);
  // The same op below the pass, on pairs.
  Answer Below();

 private:
  Results Send(const OpSchema& op, std::span<const Arg> args, std::span<const Type> types);
  Vals PartOfCall(bool imaginary);
  bool AllInPairs();

  ComplexToReal& sink_;
  DType complex_ = DType::C64;
};

// Zero where both are missing.
OptVal Sum(const OptVal& a, const OptVal& b);
OptVal Difference(const OptVal& a, const OptVal& b);
OptVal Product(const OptVal& a, const OptVal& b);
Parts Times(const Parts& a, const Parts& b);

// [S...] -> [S..., 2], the real dtype.
Type PairType(Context& context, const Type& type);

}  // namespace pt2onnx
