#include "passes/mode.h"

#include <algorithm>

#include "ir/location.h"

namespace pt2onnx {
namespace {

// The argument that makes an op train: a flag, or a probability that is 0 in inference.
constexpr std::string_view kFlags[] = {"training", "train", "use_input_stats", "dropout_p"};

// Modules whose `training` flag decides what their ops do.
bool HasMode(std::string_view module_class) {
  constexpr std::string_view kParts[] = {"BatchNorm", "InstanceNorm", "Dropout", "RReLU", "RNN", "LSTM", "GRU", "Attention", "Transformer"};
  return std::any_of(std::begin(kParts), std::end(kParts), [&](std::string_view part) { return module_class.find(part) != std::string_view::npos; });
}

int FlagOf(const OpSchema& op) {
  for (std::string_view flag : kFlags)
    if (const int i = op.ArgIndex(flag); i >= 0) return i;
  return -1;
}

bool Trains(const Arg& flag) {
  if (const bool* on = std::get_if<bool>(&flag)) return *on;
  const double* p = std::get_if<double>(&flag);
  return p && *p > 0;
}

bool HasStatistics(const Call& call) {
  const int mean = call.op->ArgIndex("running_mean");
  return mean < 0 || !IsNone(call.args[static_cast<size_t>(mean)]);
}

std::string Join(const std::set<std::string>& names) {
  std::string text;
  size_t n = 0;
  for (const std::string& name : names) {
    if (++n > 8) return text + ", and " + std::to_string(names.size() - 8) + " more";
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

}  // namespace

Value* Mode::Input(const GraphInput& input) {
  Value* value = down_.Input(input);
  if (value && input.target.ends_with("num_batches_tracked")) counters_.insert(value);
  return value;
}

Results Mode::Emit(const Call& call) {
  const std::string_view stack = context_.locs[call.loc].module_stack;
  // The counter of batches counts in training only.
  if (mode_ == Options::Mode::kEval && call.op->kind == OpKind::Inplace) {
    Value* const* self = std::get_if<Value*>(&call.args[0]);
    if (self && counters_.contains(*self)) return context_.arena.Copy(std::span(self, 1));
  }
  const int at = FlagOf(*call.op);
  if (at < 0) return down_.Emit(call);
  const bool trains = Trains(call.args[static_cast<size_t>(at)]);
  const std::string module = std::string(ModulePath(stack).empty() ? std::string_view("(root)") : ModulePath(stack));
  if (mode_ == Options::Mode::kPreserve) {
    if (trains && HasStatistics(call)) training_.insert(module);
    return down_.Emit(call);
  }
  const bool wanted = mode_ == Options::Mode::kTrain;
  if (trains == wanted) return down_.Emit(call);
  if (!HasMode(ModuleClass(stack)) || !HasStatistics(call)) {
    if (trains) fixed_.insert(module);
    return down_.Emit(call);
  }
  std::vector<Arg> args(call.args.begin(), call.args.end());
  Arg& flag = args[static_cast<size_t>(at)];
  if (std::holds_alternative<bool>(flag)) flag = wanted;
  else if (!wanted) flag = 0.0;  // a probability that capture turned off is not known any more
  return down_.Emit({call.op, args, call.types, call.loc, call.names});
}

void Mode::Finish() {
  if (!training_.empty())
    context_.diagnostics.Warn({"W0101", "the program was captured in training mode, and the model trains as it does: " + Join(training_), "--mode eval, or model.eval() before export, turns off what a module's flag decides"});
  if (!fixed_.empty())
    context_.diagnostics.Warn({"W0102", "still as in training, since no module's flag decides it: " + Join(fixed_), "change the call in the model, or export after model.eval()"});
  down_.Finish();
}

}  // namespace pt2onnx
