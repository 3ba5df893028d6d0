#include "complex/pairs.h"

#include <algorithm>

#include "ir/infer.h"
#include "ir/promotion.h"
#include "passes/complex.h"
#include "passes/views.h"

namespace pt2onnx {
namespace {

bool IsComplexTensor(const Value* value) { return value && value->type.kind == Kind::Tensor && IsComplex(value->type.dtype); }

template <class F>
void ForEachTensor(std::span<const Arg> args, F f) {
  for (const Arg& arg : args) {
    if (Value* const* value = std::get_if<Value*>(&arg)) {
      if (*value && (*value)->type.kind == Kind::Tensor) f(*value);
    } else if (const ValueList* list = std::get_if<ValueList>(&arg)) {
      for (Value* value : *list)
        if (value && value->type.kind == Kind::Tensor) f(value);
    }
  }
}

DType ComputeDType(const Call& call) {
  DType dtype = DType::Unknown;
  if (const auto promotion = PromotionOf(*call.op, call.args)) dtype = Promote(*promotion, call.args).compute;
  if (IsComplex(dtype)) return dtype;
  for (const Type& type : call.types)
    if (type.kind == Kind::Tensor && IsComplex(type.dtype)) return type.dtype;
  dtype = DType::C32;
  bool any = false;
  ForEachTensor(call.args, [&](const Value* value) {
    if (IsComplex(value->type.dtype)) dtype = Promote(dtype, value->type.dtype), any = true;
  });
  return any ? dtype : DType::C64;
}

// Operands that say where or how often, not what.
bool IsSelector(std::string_view name) {
  return name == "condition" || name == "mask" || name == "index" || name == "indices" || name == "repeats" || name == "offsets" ||
         name == "tensor_indices_or_sections";
}
// Numbers that are put among the elements.
bool IsElement(std::string_view name) { return name == "value" || name == "fill_value" || name == "fill" || name == "self" || name == "other"; }

Type PartType(const Type& type) {
  Type part = type;
  part.strides = {};
  part.offset = 0;
  if (part.kind == Kind::Tensor) part.dtype = RealOf(part.dtype);
  return part;
}

bool IsNumber(const Arg& arg) {
  return std::holds_alternative<bool>(arg) || std::holds_alternative<int64_t>(arg) || std::holds_alternative<double>(arg) ||
         std::holds_alternative<SymExpr>(arg) || std::holds_alternative<std::complex<double>>(arg);
}

}  // namespace

Type PairType(Context& context, const Type& type) {
  if (type.kind != Kind::Tensor || !IsComplex(type.dtype)) return type;
  std::vector<SymExpr> shape(type.shape.begin(), type.shape.end());
  shape.push_back(2);
  Type pair = PartType(type);
  pair.shape = context.arena.Copy(shape);
  return pair;
}

OptVal Sum(const OptVal& a, const OptVal& b) { return a && b ? OptVal(*a + *b) : a ? a : b; }
OptVal Difference(const OptVal& a, const OptVal& b) {
  if (!b) return a;
  return a ? *a - *b : (*static_cast<Aten*>(b->builder))(aten::neg{.self = *b});
}
OptVal Product(const OptVal& a, const OptVal& b) { return a && b ? OptVal(*a * *b) : std::nullopt; }
// (a + ib)(c + id) = ac - bd + i(ad + bc)
Parts Times(const Parts& a, const Parts& b) {
  return {Difference(Product(a.re, b.re), Product(a.im, b.im)), Sum(Product(a.re, b.im), Product(a.im, b.re))};
}

Pairs::Pairs(ComplexToReal& sink, const Call& call) : Aten(sink), sink_(sink), complex_(ComputeDType(call)) { Begin(call); }

bool Pairs::IsComplexValue(const Arg& arg) const {
  Value* const* value = std::get_if<Value*>(&arg);
  return value && IsComplexTensor(*value);
}

Parts Pairs::Of(Val x) {
  if (!IsComplex(x.dtype())) return {Cast(x, real()), std::nullopt};
  ComplexForm form = sink_.Form(x.value);
  if (!form.apart) {
    const Val pair = Wrap(form.pair);
    form.re = (*this)(aten::select_int{.self = pair, .dim = -1, .index = SymExpr(0)}).value;
    form.im = (*this)(aten::select_int{.self = pair, .dim = -1, .index = SymExpr(1)}).value;
    form.apart = true;
    sink_.Form(x.value) = form;
  }
  const auto part = [&](Value* value) { return value ? OptVal(Cast(Wrap(value), real())) : std::nullopt; };
  return {part(form.re), part(form.im)};
}

Parts Pairs::Of(const std::complex<double>& x) {
  const auto part = [&](double number) { return number == 0 ? OptVal() : OptVal(Constant(Scalar(number), real())); };
  return {part(x.real()), part(x.imag())};
}

Parts Pairs::Of(const Scalar& x) {
  if (x.IsSymbolic()) return {Constant(x, real()), std::nullopt};
  return Of(x.AsComplex());
}

Val Pairs::Filled(Parts parts, Dims shape, bool imaginary) {
  const OptVal& part = imaginary ? parts.im : parts.re;
  if (part) return Expand(*part, shape);
  return (*this)(aten::full{.size = shape, .fill_value = 0.0, .dtype = real()});
}
Val Pairs::Re(Val x) { return Filled(Of(x), x.shape(), false); }
Val Pairs::Im(Val x) { return Filled(Of(x), x.shape(), true); }

Val Pairs::Pack(const Parts& parts, Dims shape) {
  const DType dtype = parts.re ? parts.re->dtype() : parts.im ? parts.im->dtype() : real();
  const DType whole = ComplexOf(dtype);
  ComplexForm form{.apart = true};
  if (parts.re) form.re = Cast(Expand(*parts.re, shape), RealOf(whole)).value;
  if (parts.im) form.im = Cast(Expand(*parts.im, shape), RealOf(whole)).value;
  return Wrap(sink_.Handle({.kind = Kind::Tensor, .dtype = whole, .shape = shape}, form));
}

Val Pairs::Pack(const Parts& parts) {
  if (!parts.re || !parts.im) return Pack(parts, (parts.re ? *parts.re : *parts.im).shape());
  return Pack(parts, Copy(BroadcastShape(parts.re->shape(), parts.im->shape())));
}

Val Pairs::Pair(Val x) {
  if (!IsComplex(x.dtype())) return Pair(Pack(Of(x), x.shape()));
  if (Value* pair = sink_.Form(x.value).pair) return Wrap(pair);
  const DType part = RealOf(x.dtype());
  const auto filled = [&](Value* value) {
    return value ? Wrap(value) : (*this)(aten::full{.size = x.shape(), .fill_value = 0.0, .dtype = part});
  };
  const ComplexForm form = sink_.Form(x.value);
  const Val re = filled(form.re), im = filled(form.im);
  const Val pair = (*this)(aten::stack{.tensors = {re, im}, .dim = -1});
  if (pair.value->name.empty()) pair.value->name = x.value->name;
  sink_.Form(x.value).pair = pair.value;
  return pair;
}

Val Pairs::FromPair(Val pair) {
  const Type type{.kind = Kind::Tensor, .dtype = ComplexOf(pair.dtype()), .shape = pair.shape().first(pair.shape().size() - 1)};
  return Wrap(sink_.Handle(type, {.pair = pair.value}));
}

bool Pairs::HasPair(Val x) {
  if (!IsComplex(x.dtype())) return false;
  return sink_.Form(x.value).pair && !sink_.Form(x.value).apart;
}

// ---- The call itself ----------------------------------------------------------------------------------------------------------------

Results Pairs::Send(const OpSchema& op, std::span<const Arg> args, std::span<const Type> types) { return sink_.Emit({&op, args, types, call().loc}); }

Val Pairs::EmitTyped(const OpSchema& op, std::vector<Arg> args, Type type) { return Wrap(Send(op, args, {&type, 1})[0]); }

Answer Pairs::Below() {
  OptVals values;
  for (Value* value : sink_.EmitOnPairs(call(), call().args)) values.push_back(Wrap(value, true));
  return values;
}

Vals Pairs::PartOfCall(bool imaginary) {
  const OpSchema& op = *call().op;
  std::vector<Arg> args = Args();
  const auto part = [&](Value* value) { return value ? Filled(Of(Wrap(value)), value->type.shape, imaginary).value : nullptr; };
  for (size_t i = 0; i < args.size(); ++i) {
    Arg& arg = args[i];
    const std::string_view name = op.args[i].name;
    if (IsSelector(name)) continue;
    if (Value* const* value = std::get_if<Value*>(&arg)) {
      if ((*value)->type.kind == Kind::Tensor) arg = part(*value);
    } else if (const ValueList* list = std::get_if<ValueList>(&arg)) {
      std::vector<Value*> values;
      for (Value* value : *list) values.push_back(part(value));
      arg = ValueList(context_.arena.Copy(values));
    } else if (const auto* number = std::get_if<std::complex<double>>(&arg)) {
      arg = imaginary ? number->imag() : number->real();
    } else if (imaginary && IsElement(name) && IsNumber(arg)) {
      arg = 0.0;
    } else if (const DType* dtype = std::get_if<DType>(&arg)) {
      arg = RealOf(*dtype);
    }
  }
  std::vector<Type> types;
  for (const Type& type : call().types) types.push_back(PartType(type));
  Vals results;
  for (Value* value : Send(op, args, types)) results.push_back(Wrap(value));
  return results;
}

Answer Pairs::EachPart() {
  bool re = false, im = false;
  const auto look = [&](const OptVal& r, const OptVal& i) { re = re || r, im = im || i; };
  for (size_t i = 0; i < call().args.size(); ++i) {
    const Arg& arg = call().args[i];
    if (IsSelector(call().op->args[i].name)) continue;
    ForEachTensor({&arg, 1}, [&](Value* value) {
      const Parts parts = Of(Wrap(value));
      look(parts.re, parts.im);
    });
    if (const auto* number = std::get_if<std::complex<double>>(&arg)) re = re || number->real() != 0, im = im || number->imag() != 0;
    else if (IsElement(call().op->args[i].name) && IsNumber(arg)) re = true;
  }
  re = re || !im;
  const Vals reals = re ? PartOfCall(false) : Vals(), imaginaries = im ? PartOfCall(true) : Vals();
  Vals out;
  for (size_t i = 0; i < call().types.size(); ++i)
    out.push_back(Pack({re ? OptVal(reals[i]) : std::nullopt, im ? OptVal(imaginaries[i]) : std::nullopt}, (re ? reals : imaginaries)[i].shape()));
  return out;
}

bool Pairs::AllInPairs() {
  bool all = true;
  for (size_t i = 0; i < call().args.size(); ++i)
    if (!IsSelector(call().op->args[i].name))
      ForEachTensor({&call().args[i], 1}, [&](Value* value) { all = all && value->type.dtype == complex_ && HasPair(Wrap(value)); });
  return all;
}

Answer Pairs::OnPairs() {
  int64_t rank = -1;
  ForEachTensor(call().args, [&](Value* value) {
    if (rank < 0 && IsComplex(value->type.dtype)) rank = static_cast<int64_t>(value->type.shape.size());
  });
  if (!AllInPairs() || rank == 0) return EachPart();
  std::vector<Arg> args = Args();
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string_view name = call().op->args[i].name;
    if (name != "dim" && name != "dims") continue;
    if (const int64_t* dim = std::get_if<int64_t>(&args[i])) args[i] = Normalize(*dim, rank);
    if (const Ints* dims = std::get_if<Ints>(&args[i])) {
      std::vector<int64_t> front;
      for (int64_t dim : *dims) front.push_back(Normalize(dim, rank));
      args[i] = Copy(front);
    }
  }
  OptVals values;
  for (Value* value : sink_.EmitOnPairs(call(), args)) values.push_back(Wrap(value, true));
  return values;
}

std::optional<Answer> Pairs::View() {
  if (call().args.empty() || !IsComplexValue(call().args[0])) return std::nullopt;
  const Val x = Wrap(std::get<Value*>(call().args[0]));
  for (const Type& type : call().types)
    if (type.dtype != x.dtype()) return std::nullopt;
  const ViewClass view = call().op->view;
  switch (view) {
    case ViewClass::Identity: return x;
    case ViewClass::Reshape: case ViewClass::Permute: case ViewClass::PermuteConj: case ViewClass::Expand: break;
    case ViewClass::Slice: case ViewClass::Narrow: case ViewClass::Select: case ViewClass::Unbind: case ViewClass::Split:
      return call().op->ArgIndex("dim") >= 0 && !x.IsScalar() ? OnPairs() : EachPart();
    case ViewClass::Diagonal: case ViewClass::Unfold: case ViewClass::AsStrided: return EachPart();
    default: return std::nullopt;
  }
  const auto turned = [&](Val v) {
    std::vector<SymExpr> shape(call().types[0].shape.begin(), call().types[0].shape.end());
    if (v.rank() > x.rank()) shape.push_back(2);
    if (view == ViewClass::Reshape) return Reshape(v, Copy(shape));
    if (view == ViewClass::Expand) return Expand(v, Copy(shape));
    std::vector<int64_t> order = Permutation(*call().op, call().args, x.rank());
    if (v.rank() > x.rank()) order.push_back(x.rank());
    return Permute(v, order);
  };
  const auto conjugated = [&](Val z) { return view == ViewClass::PermuteConj ? (*this)(aten::conj_physical{.self = z}) : z; };
  if (HasPair(x)) return conjugated(FromPair(turned(Pair(x))));
  Parts parts = Of(x);
  if (parts.re) parts.re = turned(*parts.re);
  if (parts.im) parts.im = turned(*parts.im);
  return conjugated(Pack(parts, call().types[0].shape));
}

// f(a + ib, c + id) = f(a, c) - f(b, d) + i (f(a, d) + f(b, c)), and so for more operands.
Val Pairs::Multilinear(const std::vector<std::string_view>& operands, std::vector<Arg> args) {
  const OpSchema& op = *call().op;
  std::vector<std::pair<size_t, size_t>> slots;  // argument, place in its list
  for (std::string_view name : operands) {
    const size_t at = static_cast<size_t>(op.ArgIndex(name));
    const ValueList* list = std::get_if<ValueList>(&args[at]);
    for (size_t i = 0; i < (list ? list->size() : 1); ++i) slots.emplace_back(at, i);
  }
  std::vector<Parts> parts;
  for (auto [at, i] : slots) {
    const ValueList* list = std::get_if<ValueList>(&args[at]);
    parts.push_back(Of(Wrap(list ? (*list)[i] : std::get<Value*>(args[at]))));
    if (list && i == 0) args[at] = ValueList(context_.arena.Copy(*list));  // a list of our own
  }
  if (slots.size() > 3) return Unsupported("a product of more than three complex operands at once", "multiply them two by two");
  const Type type = PartType(call().types[0]);
  OptVal sums[2];
  for (size_t which = 0; which < size_t{1} << slots.size(); ++which) {  // bit k: the imaginary part of operand k
    bool present = true;
    int turns = 0;
    std::vector<Arg> own = args;
    std::vector<std::vector<Value*>> lists(args.size());
    for (size_t k = 0; k < slots.size(); ++k) {
      const bool imaginary = which >> k & 1;
      turns += imaginary;
      const OptVal& part = imaginary ? parts[k].im : parts[k].re;
      if (!part) {
        present = false;
        break;
      }
      if (std::holds_alternative<ValueList>(args[slots[k].first])) lists[slots[k].first].push_back(part->value);
      else own[slots[k].first] = part->value;
    }
    if (!present) continue;
    for (size_t i = 0; i < lists.size(); ++i)
      if (!lists[i].empty()) own[i] = ValueList(context_.arena.Copy(lists[i]));
    const Val term = EmitTyped(op, own, type);
    OptVal& sum = sums[turns % 2];
    sum = turns % 4 < 2 ? Sum(sum, term) : Difference(sum, term);  // i^0, i, -1, -i
  }
  return Pack({sums[0], sums[1]}, type.shape);
}

}  // namespace pt2onnx
