#include "passes/mode.h"

#include <algorithm>

#include "ir/location.h"
#include "rewrite/bodies.h"
#include "rewrite/call_args.h"

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

// Whether the call draws or takes statistics because of its flag: dropout of 0 does neither.
bool Trains(const Call& call, const Arg& flag) {
  if (const double* p = std::get_if<double>(&flag)) return *p > 0;
  const bool* on = std::get_if<bool>(&flag);
  if (!on || !*on) return false;
  for (std::string_view name : {"p", "dropout"})
    if (const Arg* arg = FindArg(call, name))
      if (const double* p = std::get_if<double>(arg); p && *p == 0) return false;
  return true;
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
  const size_t at = inputs_++;
  if (value && (outer_ ? at < counts_.size() && counts_[at] : input.target.ends_with("num_batches_tracked"))) counters_.insert(value);
  return value;
}

// Sub-graphs, regions of one mode among them, are of the same mode. A counter is one in them too.
Results Mode::EmitBodies(const Call& call) {
  std::vector<bool> counts;
  for (const Arg& arg : call.args)
    if (const ValueList* list = std::get_if<ValueList>(&arg))
      for (const Value* value : *list) counts.push_back(counters_.contains(value));
  const std::vector<Arg> args = ReplayBodies(context_, call.args, [&](Sink& down) {
    Mode inner(down, mode_);
    inner.outer_ = outer_ ? outer_ : this;
    inner.counts_ = counts;
    return inner;
  });
  return down_.Emit({call.op, args, call.types, call.loc, call.names});
}

Results Mode::Emit(const Call& call) {
  if (HasBody(call)) return EmitBodies(call);
  const std::string_view stack = context_.locs[call.loc].module_stack;
  // The counter of batches counts in training only.
  if (mode_ == Options::Mode::kEval && call.op->kind == OpKind::Inplace) {
    Value* const* self = std::get_if<Value*>(&call.args[0]);
    if (self && counters_.contains(*self)) return context_.arena.Copy(std::span(self, 1));
  }
  const int at = FlagOf(*call.op);
  if (at < 0) return down_.Emit(call);
  Mode& notes = outer_ ? *outer_ : *this;
  const bool trains = Trains(call, call.args[static_cast<size_t>(at)]);
  const std::string module = std::string(ModulePath(stack).empty() ? std::string_view("(root)") : ModulePath(stack));
  if (mode_ == Options::Mode::kPreserve) {
    if (trains && HasStatistics(call)) notes.training_.insert(module);
    return down_.Emit(call);
  }
  const bool wanted = mode_ == Options::Mode::kTrain;
  if (trains == wanted || !HasStatistics(call)) return down_.Emit(call);  // without running statistics there is one mode only
  std::vector<Arg> args(call.args.begin(), call.args.end());
  Arg& flag = args[static_cast<size_t>(at)];
  // A probability that capture turned off is not known any more.
  const bool turns = HasMode(ModuleClass(stack)) && (std::holds_alternative<bool>(flag) || !wanted);
  if (!turns) {
    if (trains || HasMode(ModuleClass(stack))) notes.fixed_.insert(module);
    return down_.Emit(call);
  }
  if (std::holds_alternative<bool>(flag)) flag = wanted;
  else flag = 0.0;
  return down_.Emit({call.op, args, call.types, call.loc, call.names});
}

void Mode::Finish() {
  if (!training_.empty())
    context_.diagnostics.Warn({"W0101", "the program was captured in training mode, and the model trains as it does: " + Join(training_), "--mode eval, or model.eval() before export, turns off what a module's flag decides"});
  if (!fixed_.empty())
    context_.diagnostics.Warn({"W0102", std::string(mode_ == Options::Mode::kTrain ? "still as in inference, since the program does not say how it trains: " : "still as in training, since no module's flag decides it: ") + Join(fixed_), "change the call in the model, or export after model.eval() or model.train()"});
  down_.Finish();
}

}  // namespace pt2onnx
