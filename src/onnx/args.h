// How a generated method collects the arguments of a node: operands, then attributes, in schema order. An attribute equal to its default is None.
#pragma once

#include <vector>

#include "ir/context.h"
#include "onnx/attr_types.h"
#include "rewrite/builder.h"

namespace pt2onnx {

class OnnxArgs {
 public:
  explicit OnnxArgs(Context& context) : context_(context) {}

  OnnxArgs& In(Val x) { return Add(x.value); }
  OnnxArgs& In(const OptVal& x) { return x ? Add(x->value) : None(); }
  OnnxArgs& In(const Vals& list) {
    std::vector<Value*> values;
    for (const Val& x : list) values.push_back(x.value);
    return Add(ValueList(context_.arena.Copy(values)));
  }

  OnnxArgs& Attr(int64_t x) { return Add(x); }
  OnnxArgs& Attr(double x) { return Add(x); }
  OnnxArgs& Attr(DType x) { return Add(x); }
  OnnxArgs& Attr(std::string_view x) { return Add(context_.Intern(x)); }
  OnnxArgs& Attr(const IntVec& x) { return Add(Ints(context_.arena.Copy(x))); }
  OnnxArgs& Attr(int64_t x, int64_t none) { return x == none ? None() : Attr(x); }
  OnnxArgs& Attr(double x, double none) { return x == none ? None() : Attr(x); }
  OnnxArgs& Attr(DType x, DType none) { return x == none ? None() : Attr(x); }
  OnnxArgs& Attr(std::string_view x, std::string_view none) { return x == none ? None() : Attr(x); }

  template <class T>
  OnnxArgs& Optional(const std::optional<T>& x) { return x ? Attr(*x) : None(); }
  OnnxArgs& Optional(DType x) { return x == DType::Unknown ? None() : Attr(x); }
  OnnxArgs& Optional(const IntVec& x) { return x.empty() ? None() : Attr(x); }
  OnnxArgs& Optional(const std::vector<double>& x) { return x.empty() ? None() : Add(Doubles(context_.arena.Copy(x))); }
  OnnxArgs& Optional(const std::vector<std::string_view>& x) { return x.empty() ? None() : Add(Texts(context_.arena.Copy(x))); }
  OnnxArgs& Optional(const TensorData* x) { return x ? Add(x) : None(); }
  OnnxArgs& Graph(pt2onnx::Graph* x) { return Add(x); }

  OnnxArgs& None() { return Add(std::monostate()); }
  std::vector<Arg> Take() { return std::move(args_); }

 private:
  OnnxArgs& Add(Arg x) {
    args_.push_back(x);
    return *this;
  }
  Context& context_;
  std::vector<Arg> args_;
};

inline Vals WrapAll(Builder& builder, std::span<Value* const> values) {
  Vals out;
  for (Value* value : values) out.push_back(builder.Wrap(value));
  return out;
}

}  // namespace pt2onnx
