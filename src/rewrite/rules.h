// Rules: one function for each op, found by the op's id. `On` deduces the op from the rule's second parameter.
//
//   void MathRules(Rules<Onnx>& r) {
//     r.Map<aten::mm, &Onnx::MatMul>();
//     r.On([](Onnx& b, const aten::relu& op) { return b.Relu(op.self); });
//   }
#pragma once

#include <functional>
#include <type_traits>
#include <vector>

#include "ir/op_table.h"
#include "rewrite/builder.h"

namespace pt2onnx {

namespace detail {
template <class F>
struct RuleTraits : RuleTraits<decltype(&F::operator())> {};
template <class C, class R, class B, class Op>
struct RuleTraits<R (C::*)(B&, const Op&) const> {
  using Operator = Op;
};
template <class R, class B, class Op>
struct RuleTraits<R (*)(B&, const Op&)> {
  using Operator = Op;
};
}  // namespace detail

template <class B>
class Rules {
 public:
  using Apply = Answer (*)(B&, std::span<const Arg>);

  Rules() : rules_(OpTable().size(), nullptr) {}

  // f: a lambda without captures, or a function: (B&, const Op&) -> Val | Vals | OptVals | Answer.
  template <class F>
  void On(F) {
    using Op = typename detail::RuleTraits<F>::Operator;
    static_assert(std::is_empty_v<F>, "a rule has no captures");
    Set(Op::kId, [](B& b, std::span<const Arg> args) -> Answer { return Answer(F{}(b, Op::Bind(FieldReader(b, args)))); });
  }
  // A function used for several ops: r.On<Relu>() with `Val Relu(Onnx& b, const aten::relu& op)`.
  template <auto f>
  void On() {
    using Op = typename detail::RuleTraits<decltype(f)>::Operator;
    Set(Op::kId, [](B& b, std::span<const Arg> args) -> Answer { return Answer(f(b, Op::Bind(FieldReader(b, args)))); });
  }

  // A one-to-one op: its tensor arguments, in order, are the method's.
  template <class Op, auto method>
  void Map() {
    Set(Op::kId, [](B& b, std::span<const Arg> args) -> Answer {
      const Op op = Op::Bind(FieldReader(b, args));
      return Answer(std::apply([&](auto... x) { return (b.*method)(x...); }, op.Tensors()));
    });
  }

  Apply Find(const OpSchema& op) const { return op.id < rules_.size() ? rules_[op.id] : nullptr; }

 private:
  void Set(uint32_t id, Apply apply) {
    PT2ONNX_CHECK(!rules_[id]);  // two rules for one op
    rules_[id] = apply;
  }
  std::vector<Apply> rules_;
};

}  // namespace pt2onnx
