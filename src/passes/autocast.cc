#include "passes/autocast.h"

#include <algorithm>

#include "rewrite/aten.h"
#include "rewrite/bodies.h"
#include "rewrite/inline_call.h"

namespace pt2onnx {
namespace {

// Ops that autocast computes in the lower dtype, on every device (aten/src/ATen/autocast_mode.h lists them).
constexpr std::string_view kLower[] = {
    "_convolution", "_native_multi_head_attention", "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "chain_matmul", "conv1d", "conv2d", "conv3d",
    "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution", "einsum", "gru_cell", "linalg_multi_dot", "linalg_vecdot",
    "linear", "lstm_cell", "matmul", "mm", "mv", "prelu", "rnn_relu_cell", "rnn_tanh_cell", "scaled_dot_product_attention"};

bool ComputesLow(const OpSchema& op) {
  std::string_view name = op.name.substr(0, op.name.find('.'));
  if (!name.starts_with("aten::")) return false;
  name.remove_prefix(6);
  return std::binary_search(std::begin(kLower), std::end(kLower), name);
}

}  // namespace

Results Autocast::Emit(const Call& call) {
  if (is_inlined_(*call.op)) return InlineCall(call, *this);
  if (call.op->name == "hop::wrap_with_autocast") return down_.Emit(call);  // a region with a mode of its own
  if (HasBody(call)) {  // a branch runs under the caller's autocast
    const std::vector<Arg> args = ReplayBodies(context_, call.args, [&](Sink& down) { return Autocast(down, dtype_, is_inlined_); });
    return down_.Emit({call.op, args, call.types, call.loc, call.names});
  }
  if (call.op->kind != OpKind::Functional && call.op->kind != OpKind::Hidden) return down_.Emit(call);
  DType compute = DType::Unknown;
  if (ComputesLow(*call.op)) compute = dtype_;
  else if (!call.types.empty() && call.types[0].dtype == DType::F32) compute = DType::F32;
  if (compute == DType::Unknown) return down_.Emit(call);
  Aten b(down_);
  b.Begin(call);
  const auto cast = [&](Value* value) {
    const DType dtype = value ? value->type.dtype : DType::Unknown;
    return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16 ? b.Cast(b.Wrap(value), compute).value : value;
  };
  std::vector<Arg> args(call.args.begin(), call.args.end());
  for (Arg& arg : args) {
    if (Value* const* value = std::get_if<Value*>(&arg)) {
      arg = cast(*value);
    } else if (const ValueList* list = std::get_if<ValueList>(&arg)) {
      std::vector<Value*> values;
      for (Value* value : *list) values.push_back(cast(value));
      arg = ValueList(context_.arena.Copy(values));
    }
  }
  return down_.Emit({call.op, args, call.types, call.loc, call.names});
}

}  // namespace pt2onnx
