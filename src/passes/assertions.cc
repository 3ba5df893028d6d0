#include "passes/assertions.h"

#include <algorithm>

namespace pt2onnx {
namespace {

std::string_view MessageOf(const OpSchema& op, std::span<const Arg> args) {
  const int at = op.ArgIndex("assert_msg");
  const std::string_view* text = at < 0 ? nullptr : std::get_if<std::string_view>(&args[static_cast<size_t>(at)]);
  return text ? *text : std::string_view();
}

// What must hold: a tensor, or an expression.
std::variant<std::monostate, Value*, SymExpr> ConditionOf(const Call& call) {
  const Arg& first = call.args[0];
  if (Value* const* value = std::get_if<Value*>(&first)) return *value;
  const SymExpr* expr = std::get_if<SymExpr>(&first);
  if (!expr) return std::monostate();
  const int min = call.op->ArgIndex("min"), max = call.op->ArgIndex("max");
  if (min < 0) return *expr;
  std::optional<SymExpr> range;
  if (const int64_t* least = std::get_if<int64_t>(&call.args[static_cast<size_t>(min)])) range = Ge(*expr, *least);
  if (const int64_t* most = std::get_if<int64_t>(&call.args[static_cast<size_t>(max)]))
    range = range ? And(*range, Le(*expr, *most)) : Le(*expr, *most);
  return range ? std::variant<std::monostate, Value*, SymExpr>(*range) : std::monostate();
}

}  // namespace

bool IsAssertion(const OpSchema& op) {
  for (const std::string_view name : {"aten::_assert_async", "aten::_assert_async.msg", "aten::_assert_scalar", "aten::_functional_assert_async.msg",
                                      "aten::_functional_assert_scalar", "aten::sym_constrain_range", "aten::sym_constrain_range_for_size",
                                      "aten::_functional_sym_constrain_range", "aten::_functional_sym_constrain_range_for_size"})
    if (op.name == name) return true;
  return false;
}

std::string_view MessageOf(const Node& node) { return MessageOf(*node.op, node.args); }

void Assertions::Add(const Call& call, bool in_body) {
  Settle(false);
  const auto condition = ConditionOf(call);
  if (std::holds_alternative<std::monostate>(condition)) return;
  if (in_body) return Refuse(call, "an assertion in a branch or loop has no form as a check");
  if (Value* const* value = std::get_if<Value*>(&condition)) return Check(b_.Wrap(*value), call);
  pending_.push_back({std::get<SymExpr>(condition), call});
  pending_.back().call.args = b_.context().arena.Copy(call.args);
  pending_.back().call.types = {};
  pending_.back().call.names = {};
  Settle(false);
}

void Assertions::Settle(bool last) {
  std::vector<Pending> later;
  for (const Pending& one : std::exchange(pending_, {})) {
    if (one.condition.TryBool() == true) continue;
    if (b_.IsDefined(one.condition)) {
      b_.Begin(one.call);
      Check(b_.Number(one.condition, DType::Bool), one.call);
    } else if (last) {
      Refuse(one.call, "an assertion is about a number that the model does not compute");
    } else {
      later.push_back(one);
    }
  }
  pending_.insert(pending_.begin(), later.begin(), later.end());
}

void Assertions::Check(Val condition, const Call& call) {
  Context& context = b_.context();
  Loc loc = context.locs[call.loc];
  const std::string_view message = MessageOf(*call.op, call.args);
  loc.node = context.Join("assertion: ", message.empty() ? call.op->name : message);
  context.locs.push_back(loc);
  Call named = call;
  named.loc = static_cast<LocId>(context.locs.size() - 1);
  b_.Begin(named);
  const Val fails = b_.Cast(b_.Not(b_.Cast(b_.Reshape(condition, {1}), DType::Bool)), DType::I64);
  checks_.push_back(b_.Gather(b_.Ints({1}), fails, 0));
  b_.Begin(call);
}

void Assertions::Refuse(const Call& call, std::string message) {
  Diagnostics& diagnostics = b_.context().diagnostics;
  diagnostics.Report(
      diagnostics.Add({"E0306", std::move(message), "--assertions drop leaves assertions out", call.loc, std::string(call.op->name)}));
}

Value* Assertions::Tie(Value* output) {
  Settle(true);
  if (checks_.empty() || output->problem) return output;
  Val all = checks_[0];
  for (size_t i = 1; i < checks_.size(); ++i) all = b_.Mul(all, checks_[i]);
  checks_.clear();
  const Val x = b_.Wrap(output);
  Value* tied = b_.OnnxOps::Expand(x, all).value;
  if (x.IsScalar()) tied = b_.OnnxOps::Reshape(b_.Wrap(tied), b_.Ints({})).value;
  tied->type.shape = output->type.shape;
  tied->type.ranked = output->type.ranked;
  tied->name = output->name;
  return tied;
}

}  // namespace pt2onnx
