// Random numbers, by transforming uniform ones. The distribution is PyTorch's, the numbers are not: generators differ.
//
//   exponential: -log(1 - u) / lambda    geometric: ceil(log(1 - u) / log(1 - p))    cauchy: median + sigma * tan(pi * (u - 0.5))
//   normal: sqrt(-2 log(1 - u)) * cos(2 pi v)    bernoulli: u < p    integers: floor(u * range)    permutation: the order of n draws
//
// From opset 22 on ONNX Runtime has no kernel for RandomUniform, but one for Dropout: with a half of the bits dropped, what is left of
// 2^-1, 2^-2, ... adds up to a uniform number. The mask is what is read: a Dropout whose mask nobody reads is removed, even in training.
//
//   %y = aten::rand([2, 3])    ->    opset 20: %y = RandomUniform(shape=[2, 3])
//                                    opset 22: _, %m = Dropout(zeros[24, 2, 3], 0.5, true)   %y = ReduceSum(Where(%m, bits[24, 1, 1], 0), 0)
#include "lower/random.h"

#include <numbers>

#include "lower/reduce.h"

namespace pt2onnx {
namespace {

bool HasGenerator(const Onnx& b) { return b.opset() < 22; }
bool AllKnown(const DimVec& shape) { return std::all_of(shape.begin(), shape.end(), [](const SymExpr& e) { return e.IsConst(); }); }
IntVec Known(const DimVec& shape) {
  IntVec out;
  for (const SymExpr& e : shape) out.push_back(e.Const());
  return out;
}
// What the operators with "Like" in their name take the shape of.
Val Template(Onnx& b, const DimVec& shape) { return b.ConstantOfShape(b.Shape(shape), 0, DType::F32); }

}  // namespace

Val Uniform(Onnx& b, const DimVec& shape, DType dtype) {
  if (HasGenerator(b) && AllKnown(shape) && !shape.empty()) return b.RandomUniform({.dtype = dtype, .shape = Known(shape)});
  if (HasGenerator(b)) return b.RandomUniformLike(Template(b, shape), {.dtype = dtype});
  const int bits = dtype == DType::F64 ? 53 : 24;
  std::vector<double> halves;
  for (int k = 0; k < bits; ++k) halves.push_back(std::ldexp(1.0, -k - 1));
  const Val column = LaidAlong(b, b.Tensor({bits}, halves, dtype), 0, std::ssize(shape) + 1);
  DimVec all = {bits};
  all.insert(all.end(), shape.begin(), shape.end());
  const Val mask = b.Dropout(b.Zeros(all, DType::F32), b.Constant(0.5, DType::F32), b.Constant(true, DType::Bool)).mask;
  return b.ReduceSum(b.Where(mask, column, b.Constant(0, dtype)), {0});
}

namespace {

Val NegativeLog(Onnx& b, const DimVec& shape, DType dtype) { return b.Neg(b.Log(b.Constant(1, dtype) - Uniform(b, shape, dtype))); }

}  // namespace

Val Chance(Onnx& b, const DimVec& shape, double p) { return b.Less(Uniform(b, shape, DType::F32), b.Constant(p, DType::F32)); }

Val Normal(Onnx& b, const DimVec& shape, DType dtype) {
  if (HasGenerator(b) && AllKnown(shape) && !shape.empty()) return b.RandomNormal({.dtype = dtype, .shape = Known(shape)});
  if (HasGenerator(b)) return b.RandomNormalLike(Template(b, shape), {.dtype = dtype});
  const Val radius = b.Sqrt(NegativeLog(b, shape, dtype) * 2);
  return radius * b.Cos(Uniform(b, shape, dtype) * (2 * std::numbers::pi));
}

namespace {

// Draws in the recorded shape, made in the recorded dtype where that is one of the generators'.
DType DrawnDType(const Onnx& b) { return ResultDType(b) == DType::F64 ? DType::F64 : DType::F32; }
DimVec DrawnShape(const Onnx& b) { return DimVec(ResultShape(b)); }
Val Uniform(Onnx& b) { return Uniform(b, DrawnShape(b), DrawnDType(b)); }
Val Normal(Onnx& b) { return Normal(b, DrawnShape(b), DrawnDType(b)); }
Val NegativeLog(Onnx& b) { return NegativeLog(b, DrawnShape(b), DrawnDType(b)); }

Val Normal(Onnx& b, double mean, double deviation) {
  Val x = Normal(b);
  if (deviation != 1) x = x * deviation;
  return mean == 0 ? x : x + mean;
}
Val Normal(Onnx& b, OptVal mean, OptVal deviation) {
  Val x = Normal(b);
  if (deviation) x = x * b.Cast(*deviation, x.dtype());
  return mean ? x + b.Cast(*mean, x.dtype()) : x;
}

// low + floor(u * count); the generators may round u up to 1.
Val Integers(Onnx& b, Val low, Val count, bool few) {
  const DType dtype = few ? DType::F32 : DType::F64;
  const Val u = Uniform(b, DrawnShape(b), dtype);
  return b.Min(AsIndex(b, b.Floor(u * b.Cast(count, dtype))), count - 1) + low;
}
Val Integers(Onnx& b, SymExpr low, SymExpr high) {
  const SymExpr count = high - low;
  return Integers(b, b.Int(low), b.Int(count), count.IsConst() && count.Const() <= 65536);
}
template <class Op>
Val IntegersOf(Onnx& b, const Op& op) {
  if constexpr (requires { op.low; }) return Integers(b, op.low, op.high);
  else if constexpr (std::is_same_v<decltype(op.high), Val>) return Integers(b, b.IntScalar(0), b.Squeeze(AsIndex(b, op.high), Axes(0, op.high.rank())), false);
  else return Integers(b, 0, op.high);
}

// random_ without bounds: integers that the dtype can hold exactly.
int64_t LimitOf(DType dtype) {
  switch (dtype) {
    case DType::F64: return int64_t{1} << 53;
    case DType::F32: return int64_t{1} << 24;
    case DType::F16: return int64_t{1} << 11;
    case DType::BF16: return int64_t{1} << 8;
    case DType::Bool: return 2;
    default: return ItemSize(dtype) == 8 ? INT64_MAX : ExtremeOf(dtype, true).AsInt() + 1;
  }
}

Val Bernoulli(Onnx& b, Val p) {
  const DType dtype = p.dtype() == DType::F64 ? DType::F64 : DType::F32;
  return b.Less(Uniform(b, DrawnShape(b), dtype), b.Cast(p, dtype));
}

// Without replacement the n largest of p / e, e exponential; with it, how many of the running sums are at most u times the last.
Val Multinomial(Onnx& b, const aten::multinomial& op) {
  const DType dtype = op.self.dtype() == DType::F64 ? DType::F64 : DType::F32;
  const Val p = b.Cast(op.self, dtype);
  const int64_t last = p.rank() - 1;
  if (!op.replacement || op.num_samples == 1)
    return b.TopK(p / NegativeLog(b, DimVec(p.shape()), dtype), b.Int1(op.num_samples), {.axis = last}).Indices;
  const Val sums = b.CumSum(p, b.IntScalar(last));
  const Val thresholds = Uniform(b, DrawnShape(b), dtype) * b.Slice(sums, last, -1, INT64_MAX);
  const Val below = b.LessOrEqual(b.Unsqueeze(sums, {last}), b.Unsqueeze(thresholds, {last + 1}));
  return b.Min(b.ReduceSum(b.Cast(below, DType::I64), {last + 1}), b.Int(p.dim(last) - 1));
}

Val Permutation(Onnx& b, SymExpr n) { return b.TopK(Uniform(b, {n}, DType::F32), b.Int1(n), {.axis = 0}).Indices; }

}  // namespace

void RandomRules(Rules<Onnx>& r) {
  OnEach<aten::rand, aten::rand_generator, aten::rand_like, aten::rand_like_generator>(r, [](Onnx& b, const auto&) { return Uniform(b); });
  OnEach<aten::randn, aten::randn_generator, aten::randn_like, aten::randn_like_generator>(r, [](Onnx& b, const auto&) { return Normal(b); });
  OnEach<aten::randint, aten::randint_generator, aten::randint_low, aten::randint_low_generator, aten::randint_like, aten::randint_like_generator,
         aten::randint_like_Tensor, aten::randint_like_Tensor_generator, aten::randint_like_low_dtype, aten::randint_like_low_generator_dtype>(
      r, [](Onnx& b, const auto& op) { return IntegersOf(b, op); });
  OnEach<aten::randperm, aten::randperm_generator>(r, [](Onnx& b, const auto& op) { return Permutation(b, op.n); });

  r.On([](Onnx& b, const aten::normal_Tensor_Tensor& op) { return Normal(b, op.mean, op.std_); });
  r.On([](Onnx& b, const aten::normal_Tensor_float& op) { return Normal(b, op.mean, op.std_ == 1 ? OptVal() : b.Constant(op.std_, DrawnDType(b))); });
  r.On([](Onnx& b, const aten::normal_float_Tensor& op) { return Normal(b, op.mean == 0 ? OptVal() : b.Constant(op.mean, DrawnDType(b)), op.std_); });
  r.On([](Onnx& b, const aten::normal_float_float& op) { return Normal(b, op.mean, op.std_); });
  r.On([](Onnx& b, const aten::normal_functional& op) { return Normal(b, op.mean, op.std_); });
  r.On([](Onnx& b, const aten::log_normal& op) { return b.Exp(Normal(b, op.mean, op.std_)); });

  r.On([](Onnx& b, const aten::uniform& op) { return Uniform(b) * (op.to - op.from) + op.from; });
  r.On([](Onnx& b, const aten::exponential& op) { return NegativeLog(b) / b.Constant(op.lambd, DrawnDType(b)); });
  r.On([](Onnx& b, const aten::geometric& op) { return b.Max(b.Ceil(NegativeLog(b) / -std::log1p(-op.p)), b.Constant(1, DrawnDType(b))); });
  r.On([](Onnx& b, const aten::cauchy& op) { return b.Tan((Uniform(b) - 0.5) * std::numbers::pi) * op.sigma + op.median; });
  r.On([](Onnx& b, const aten::random& op) { return Integers(b, 0, LimitOf(op.self.dtype())); });
  r.On([](Onnx& b, const aten::random_to& op) { return Integers(b, 0, op.to); });
  r.On([](Onnx& b, const aten::random_from& op) { return Integers(b, op.from, op.to.value_or(LimitOf(op.self.dtype()))); });

  r.On([](Onnx& b, const aten::bernoulli& op) { return Bernoulli(b, op.self); });
  r.On([](Onnx& b, const aten::bernoulli_p& op) { return Chance(b, DrawnShape(b), op.p); });
  r.On([](Onnx& b, const aten::bernoulli_Tensor& op) { return Bernoulli(b, op.p); });
  r.On<Multinomial>();
}

}  // namespace pt2onnx
