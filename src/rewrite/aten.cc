#include "rewrite/aten.h"

#include "ir/infer.h"

namespace pt2onnx {

Vals Aten::Emit(const OpSchema& op, std::vector<Arg> args) {
  Vals out;
  std::vector<Type> types = InferTypes(context_, op, args);
  PT2ONNX_CHECK(!types.empty());  // an op that rules emit needs a row in ir/infer.cc
  const LocId loc = call_ ? call_->loc : 0;
  const uint32_t problem = PoisonOf(context_, args);
  for (Value* value : problem ? EmitPoison(down_, problem, types, loc) : down_.Emit({&op, args, types, loc})) out.push_back(Wrap(value));
  return out;
}

Val Aten::Binary(char op, Val a, Val b) {
  switch (op) {
    case '+': return (*this)(aten::add_Tensor{.self = a, .other = b});
    case '-': return (*this)(aten::sub_Tensor{.self = a, .other = b});
    case '*': return (*this)(aten::mul_Tensor{.self = a, .other = b});
    case '/': return (*this)(aten::div_Tensor{.self = a, .other = b});
  }
  PT2ONNX_UNREACHABLE();
}

Val Aten::Constant(Scalar value, DType dtype) { return (*this)(aten::full{.size = {}, .fill_value = value, .dtype = dtype}); }

Val Aten::Cast(Val x, DType dtype) { return x.dtype() == dtype ? x : (*this)(prims::convert_element_type{.a = x, .dtype = dtype}); }

Val Aten::Reshape(Val x, Dims shape) { return SameShape(x.shape(), shape) ? x : (*this)(aten::reshape{.self = x, .shape = shape}); }

Val Aten::Expand(Val x, Dims shape) { return SameShape(x.shape(), shape) ? x : (*this)(aten::expand{.self = x, .size = shape}); }

Val Aten::Permute(Val x, std::vector<int64_t> dims) {
  bool identity = true;
  for (size_t i = 0; i < dims.size(); ++i) identity &= dims[i] == static_cast<int64_t>(i);
  return identity ? x : (*this)(aten::permute{.self = x, .dims = Copy(dims)});
}

bool SameShape(Dims a, Dims b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i])) return false;
  return true;
}

}  // namespace pt2onnx
