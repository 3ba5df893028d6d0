#include "passes/out_of_place.h"

#include "ir/infer.h"
#include "ir/op_table.h"
#include "ir/schema_parse.h"
#include "passes/geometry.h"
#include "rewrite/call_args.h"

namespace pt2onnx {
namespace {

// x with its main diagonal filled: every (sum of strides)-th element of the row-major order. Of a tall matrix the diagonal ends after a square,
// or with wrap goes on below a blank row.
Val FilledDiagonal(Aten& b, Val x, Scalar value, bool wrap) {
  SymExpr step = 0;
  for (const SymExpr& stride : RowMajorStrides(x.shape())) step = step + stride;
  const Val at = b.Reshape(b(aten::arange{.end = Scalar(x.numel()), .dtype = DType::I64}), x.shape());
  Val hit = b(aten::eq_Scalar{.self = b(aten::remainder_Scalar{.self = at, .other = Scalar(step)}), .other = 0});
  if (x.rank() == 2 && !wrap) hit = b(aten::logical_and{.self = hit, .other = b(aten::lt_Scalar{.self = at, .other = Scalar(x.dim(1) * x.dim(1))})});
  return b(aten::where_self{.condition = hit, .self = b.Constant(value, x.dtype()), .other = x});
}

constexpr std::string_view kBatchNorms[] = {"aten::batch_norm", "aten::_batch_norm_impl_index", "aten::native_batch_norm", "aten::cudnn_batch_norm",
                                            "aten::miopen_batch_norm"};
// Training batch norm: y by the batch's statistics, and running statistics that take them in.
OutOfPlace BatchNorm(Aten& b, const Call& read) {
  const auto tensor = [&](std::string_view name) { return b.Wrap(TensorArg(read, name)); };
  const auto optional = [&](std::string_view name) { return b.Wrap(TensorArg(read, name), true); };
  const auto number = [&](std::string_view name, std::string_view cudnn) { return std::get<double>(FindArg(read, name) ? *FindArg(read, name) : *FindArg(read, cudnn)); };
  const Vals out = b.All(aten::_native_batch_norm_legit_functional{
      .input = tensor("input"), .weight = optional("weight"), .bias = optional("bias"), .running_mean = tensor("running_mean"), .running_var = tensor("running_var"),
      .training = true, .momentum = number("momentum", "exponential_average_factor"), .eps = number("eps", "epsilon")});
  OutOfPlace result{{}, {out[3].value, out[4].value}};
  for (size_t i = 0; i < read.types.size(); ++i) result.returned.push_back(i < 3 ? out[i].value : nullptr);
  return result;
}

// Instance norm with running statistics: batch norm over (1, N*C), statistics repeated N times and averaged over the batch afterwards.
OutOfPlace InstanceNorm(Aten& b, const Call& read) {
  const Val x = b.Wrap(TensorArg(read, "input"));
  const SymExpr n = x.dim(0), c = x.dim(1);
  std::vector<SymExpr> folded(x.shape().begin() + 1, x.shape().end());
  folded[0] = n * c;
  folded.insert(folded.begin(), 1);
  const auto repeated = [&](std::string_view name) -> OptVal {
    Value* value = TensorArg(read, name);
    if (!value) return std::nullopt;
    return b(aten::repeat{.self = b.Wrap(value), .repeats = b.Copy(std::vector<SymExpr>{n})});
  };
  const OptVal weight = repeated("weight"), bias = repeated("bias"), mean = repeated("running_mean"), var = repeated("running_var");
  const Vals out = b.All(aten::_native_batch_norm_legit_functional{
      .input = b.Reshape(x, b.Copy(folded)), .weight = weight, .bias = bias, .running_mean = *mean, .running_var = *var, .training = true,
      .momentum = std::get<double>(*FindArg(read, "momentum")), .eps = std::get<double>(*FindArg(read, "eps"))});
  const auto average = [&](Val v) { return b(aten::mean_dim{.self = b.Reshape(v, {n, c}), .dim = b.Copy(std::vector<int64_t>{0})}).value; };
  Value* y = b.Reshape(out[0], x.shape()).value;
  Value* new_mean = average(out[3]);
  return {{y}, {new_mean, average(out[4])}};
}

Type Plain(Type type) {
  type.strides = {};
  type.offset = 0;
  return type;
}

// The schema's out-of-place form. It gives the results of its own, then the written ones.
std::vector<Value*> Form(Aten& b, Sink& down, const Call& call, std::span<const Arg> args, std::span<const Type> targets) {
  const OpSchema& op = *call.op;
  const OpSchema& form = OpTable()[static_cast<size_t>(op.functional)];
  std::vector<Arg> form_args;
  const std::vector<int> from = ArgsOfFunctional(op);
  for (size_t i = 0; i < form.args.size(); ++i) form_args.push_back(from[i] >= 0 ? args[static_cast<size_t>(from[i])] : FillDefault(b.context(), form.args[i]));
  std::vector<Type> types = InferTypes(b.context(), form, form_args);
  if (types.empty() && op.kind == OpKind::Out) {  // returned and written are the same; the recorded types are those of the results
    for (size_t i = 0; i < targets.size(); ++i) types.push_back(Plain(i < call.types.size() ? call.types[i] : targets[i]));
  } else if (types.empty()) {
    for (size_t i = 0; i < op.results.size() && i < call.types.size(); ++i)
      if (!op.results[i].alias) types.push_back(call.types[i]);
    for (const Type& type : targets) types.push_back(Plain(type));
  }
  if (Writes({&form, form_args, types})) return {};  // statistics besides what the schema announces
  const Results results = down.Emit({&form, form_args, types, call.loc, call.names});
  return {results.begin(), results.end()};
}

}  // namespace

bool Writes(const Call& call) {
  const OpSchema& op = *call.op;
  if (op.kind == OpKind::Inplace || op.kind == OpKind::Out || !op.Writes()) return op.Writes();
  for (std::string_view name : {"training", "train", "use_input_stats"})
    if (const Arg* flag = FindArg(call, name); flag && !Flag(call, name)) return false;
  return !TargetsOf(call).empty();
}

std::vector<Target> TargetsOf(const Call& call) {
  std::vector<Target> targets;
  for (size_t i = 0; i < call.op->args.size(); ++i) {
    if (!call.op->args[i].writes) continue;
    if (Value* const* value = std::get_if<Value*>(&call.args[i])) targets.push_back({*value, call.op->args[i].name});
    if (const ValueList* list = std::get_if<ValueList>(&call.args[i]))
      for (Value* value : *list)
        if (value) targets.push_back({value, call.op->args[i].name});
  }
  return targets;
}

std::optional<OutOfPlace> ComputeOutOfPlace(Aten& b, Sink& down, const Call& call, std::span<const Arg> args, std::span<const Type> targets) {
  const std::string_view base = BaseName(*call.op);
  if (base == "aten::copy_") return OutOfPlace{{}, {std::get<Value*>(args[1])}};
  if (base == "aten::_foreach_copy_") return OutOfPlace{{}, std::vector<Value*>(std::get<ValueList>(args[1]).begin(), std::get<ValueList>(args[1]).end())};
  if (base == "aten::fill_" || base == "aten::zero_") {
    if (base == "aten::fill_")
      if (Value* const* tensor = std::get_if<Value*>(&args[1])) return OutOfPlace{{}, {*tensor}, true};
    const Scalar number = base == "aten::zero_" ? Scalar(0) : Scalar::FromArg(args[1]);
    return OutOfPlace{{}, {b(aten::full{.size = targets[0].shape, .fill_value = number, .dtype = targets[0].dtype}).value}, true};
  }
  if (base == "aten::fill_diagonal_") return OutOfPlace{{}, {FilledDiagonal(b, b.Wrap(std::get<Value*>(args[0])), Scalar::FromArg(args[1]), std::get<bool>(args[2])).value}};
  const Call read{call.op, args, call.types, call.loc, call.names};
  if (In(base, kBatchNorms)) return BatchNorm(b, read);
  if (base == "aten::instance_norm") return InstanceNorm(b, read);
  if (call.op->functional < 0) return std::nullopt;
  const std::vector<Value*> values = Form(b, down, call, args, targets);
  if (values.empty()) return std::nullopt;
  PT2ONNX_CHECK(values.size() >= targets.size());
  const auto own = values.end() - static_cast<std::ptrdiff_t>(targets.size());
  return OutOfPlace{{values.begin(), own}, {own, values.end()}};
}

int WrittenResult(const Call& call, std::span<const Target> targets, size_t i) {
  const OpSchema& op = *call.op;
  if (op.results.empty()) return -1;
  const ResultSchema& result = op.results[std::min(i, op.results.size() - 1)];
  if (!result.alias) return -1;
  size_t seen = 0;  // a list's i-th element is its i-th result
  for (size_t t = 0; t < targets.size(); ++t)
    for (const ArgSchema& arg : op.args)
      if (arg.writes && arg.alias == result.alias && arg.name == targets[t].arg && (!result.list || seen++ == i)) return static_cast<int>(t);
  return -1;
}

}  // namespace pt2onnx
