#include "passes/finish_model.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/op_table.h"
#include "ir/sym_facts.h"
#include "passes/cleanup.h"
#include "passes/weights.h"

namespace pt2onnx {
namespace {

bool IsMutation(const GraphOutput& output) {
  return output.kind == OutputKind::BufferMutation || output.kind == OutputKind::ParameterMutation || output.kind == OutputKind::InputMutation;
}

Value* ValueOf(const GraphOutput& output) {
  Value* const* value = std::get_if<Value*>(&output.value);
  return value ? *value : nullptr;
}

class Finisher {
 public:
  Finisher(Context& context, const Program& program, Graph& model, const Options& options)
      : context_(context), program_(program), model_(model), options_(options) {}

  Result<ModelFacts> Run() {
    if (std::optional<Error> error = WrongNames()) return *error;
    LeaveOutNonTensors();
    if (options_.state == Options::State::kDrop) DropState();
    Cleanup(context_, model_);
    NameInputs();
    NameState();
    RemoveUnusedInputs();
    NameOutputs();
    if (options_.seed != 0) Seed(model_);
    if (options_.mode == Options::Mode::kEval) ReportTraining();
    ClaimState();
    return std::move(facts_);
  }

 private:
  // More names than there are inputs or outputs, one twice, or an empty one.
  std::optional<Error> WrongNames() const {
    const auto tensors = [](const auto& list, auto counts) { return static_cast<size_t>(std::count_if(list.begin(), list.end(), counts)); };
    const size_t inputs = tensors(model_.inputs, [](const GraphInput& input) { return input.value && input.kind == InputKind::User; });
    const size_t outputs = tensors(model_.outputs, [](const GraphOutput& output) { return ValueOf(output) && !IsMutation(output); });
    const auto many = [](size_t names, size_t values, std::string_view what) {
      return Error{"E0152", std::to_string(names) + " names for " + std::to_string(values) + " " + std::string(what), ""};
    };
    if (options_.input_names.size() > inputs) return many(options_.input_names.size(), inputs, "inputs");
    if (options_.output_names.size() > outputs) return many(options_.output_names.size(), outputs, "outputs");
    std::unordered_set<std::string_view> seen;
    for (const auto* names : {&options_.input_names, &options_.output_names})
      for (const std::string& name : *names) {
        if (name.empty()) return Error{"E0152", "the name of an input or output can't be empty", ""};
        if (!seen.insert(name).second) return Error{"E0152", "two inputs or outputs are to be called " + name, "give each a name of its own"};
      }
    return std::nullopt;
  }

  // The name itself, or with a suffix where another name that the user sees came first.
  std::string_view Claim(std::string_view name) {
    std::string_view own = name;
    for (int n = 1; !visible_.insert(own).second || (n > 1 && IsGiven(own)); ++n) own = context_.Intern(std::string(name) + "_" + std::to_string(n));
    return own;
  }
  bool IsGiven(std::string_view name) const {
    const auto has = [&](const std::vector<std::string>& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
    return has(options_.input_names) || has(options_.output_names);
  }
  // What the program calls it, not where the user has given that name to another.
  std::string_view ClaimOwn(std::string_view name) {
    if (IsGiven(name)) visible_.insert(name);
    return Claim(name);
  }

  void LeaveOutNonTensors() {
    std::vector<GraphOutput> kept;
    int position = 0;
    for (const GraphOutput& output : model_.outputs) {
      const bool user = !IsMutation(output);
      if (ValueOf(output) && user) facts_.outputs.emplace_back(position, "");
      if (ValueOf(output))
        kept.push_back(output);
      else if (user)
        facts_.left_out.emplace_back(position, IsNone(output.value) ? "None" : "text");
      position += user;
    }
    model_.outputs = std::move(kept);
  }

  void DropState() {
    std::string names;
    for (const GraphOutput& output : model_.outputs)
      if (IsMutation(output)) names.append(names.empty() ? "" : ", ").append(output.target);
    std::erase_if(model_.outputs, IsMutation);
    if (!names.empty())
      context_.diagnostics.Warn({"W0201", "changed state is dropped: " + names, "without --state drop each has an output <name>_next"});
  }

  void NameInputs() {
    size_t user = 0, leaf = 0;
    for (GraphInput& input : model_.inputs) {
      leaf += input.kind == InputKind::User;
      if (!input.value) continue;
      if (input.kind == InputKind::User) {
        const std::string_view own = input.target.empty() ? input.value->name : input.target;
        input.value->name = user < options_.input_names.size() ? context_.Intern(options_.input_names[user]) : ClaimOwn(own.empty() ? "input" : own);
        visible_.insert(input.value->name);
        facts_.inputs.emplace_back(leaf - 1, input.value->name);
        ++user;
      } else if (!input.target.empty()) {
        input.value->name = input.target;
      }
    }
  }

  GraphInput* FindState(std::string_view target) {
    for (GraphInput& input : model_.inputs)
      if (input.value && input.target == target && input.kind != InputKind::User) return &input;
    return nullptr;
  }

  // A buffer that was resized has no next value that fits its input.
  void CheckShape(const GraphOutput& output, const GraphInput& input) {
    const Value* value = ValueOf(output);
    const Type &was = input.value->type, &is = value->type;
    bool fits = !was.ranked || !is.ranked || was.shape.size() == is.shape.size();
    for (size_t i = 0; fits && was.ranked && is.ranked && i < was.shape.size(); ++i)
      fits = was.shape[i].IsUnknown() || is.shape[i].IsUnknown() || !ProvablyNotEqual(was.shape[i], is.shape[i]);
    if (fits) return;
    Problem problem{"E0208",
                    "the program changes the shape of its state '" + std::string(output.target) + "': the next value can't be fed back",
                    "--state drop leaves it out",
                    value->def ? value->def->loc : 0, {}};
    context_.diagnostics.Report(context_.diagnostics.Add(std::move(problem)));
  }

  // The input that holds a written storage is fed with the last value, or keeps its initial one.
  void NameState() {
    std::vector<GraphInput> required;
    std::unordered_set<std::string_view> done;
    for (GraphOutput& output : model_.outputs) {
      if (!IsMutation(output)) continue;
      if (const GraphInput* input = output.kind == OutputKind::InputMutation ? nullptr : FindState(output.target)) CheckShape(output, *input);
      std::string_view holder = output.storage.empty() ? output.target : output.storage;
      const Value* held = nullptr;
      if (output.kind == OutputKind::InputMutation) {
        for (const GraphInput& input : model_.inputs)
          if (input.value && input.kind == InputKind::User && input.target == output.target) held = input.value;
      } else if (GraphInput* input = FindState(holder)) {
        held = input->value;
        written_.insert(input->value);
        input->optional = true;
        if (options_.state == Options::State::kInputs && done.insert(holder).second) {
          input->optional = false;
          input->data = nullptr;
          required.push_back(*input);
        }
      }
      facts_.state.push_back({std::string(output.target), "", std::string(holder)});
      holders_.push_back(held);
    }
    if (required.empty()) return;
    std::erase_if(model_.inputs, [&](const GraphInput& input) { return done.contains(input.target) && input.kind != InputKind::User; });
    for (GraphInput& input : required) {
      input.kind = InputKind::User;
      model_.inputs.push_back(input);
    }
  }

  void Mark(const Graph& graph, std::vector<bool>& used) {
    const auto mark = [&](const Value* value) {
      if (value) used[value->id] = true;
    };
    for (const Node* node : graph.nodes)
      for (const Arg& arg : node->args) {
        if (Value* const* value = std::get_if<Value*>(&arg)) mark(*value);
        if (const ValueList* list = std::get_if<ValueList>(&arg)) std::for_each(list->begin(), list->end(), mark);
        if (Graph* const* body = std::get_if<Graph*>(&arg)) Mark(**body, used);
      }
    for (const GraphOutput& output : graph.outputs) mark(ValueOf(output));
  }

  void RemoveUnusedInputs() {
    std::vector<bool> used(context_.value_count(), false);
    Mark(model_, used);
    std::erase_if(model_.inputs, [&](const GraphInput& input) {
      if (!input.value) return true;
      return input.kind != InputKind::User && !used[input.value->id] && !written_.contains(input.value);
    });
    for (const GraphInput& input : model_.inputs) {
      if (input.kind == InputKind::User || input.data) continue;
      Problem problem{
          "E0121", "weight '" + std::string(input.target) + "' " + WeightProblem(program_, input), "save the program with plain tensors", 0, {}};
      context_.diagnostics.Report(context_.diagnostics.Add(std::move(problem)));
    }
  }

  // What the program calls the answer's leaf, whatever it has become since.
  std::string_view OwnName(size_t leaf, const Value* value) const {
    for (const GraphOutput& output : program_.graph->outputs) {
      if (IsMutation(output) || leaf-- > 0) continue;
      if (const Value* own = ValueOf(output); own && !own->name.empty()) return own->name;
      break;
    }
    return value->name.empty() ? "output" : value->name;
  }

  // What no flag decides, such as the power iteration of spectral_norm, was captured as Python code that trains.
  void ReportTraining() {
    std::string names;
    for (const StatePair& state : facts_.state)
      if (FindState(state.name)) names.append(names.empty() ? "" : ", ").append(state.name);
    if (!names.empty())
      context_.diagnostics.Warn(
          {"W0103", "--mode eval, and the program still changes its state: " + names, "where only training changes it, export after model.eval()"});
  }

  // Each random operator has a seed of its own, so that two of them draw apart.
  void Seed(const Graph& graph) {
    for (const Node* node : graph.nodes) {
      for (const Arg& arg : node->args)
        if (Graph* const* body = std::get_if<Graph*>(&arg)) Seed(**body);
      const int at = node->op->ArgIndex("seed");
      if (at < 0) continue;
      const int64_t seed = options_.seed + seeded_++;
      node->args[static_cast<size_t>(at)] = node->op->args[static_cast<size_t>(at)].type == ArgType::Int ? Arg(seed) : Arg(static_cast<double>(seed));
    }
  }

  // Each output is a value of its own, under its own name.
  void NameOutputs() {
    std::unordered_set<const Value*> taken;
    for (const GraphInput& input : model_.inputs) taken.insert(input.value);
    size_t user = 0, state = 0;
    for (GraphOutput& output : model_.outputs) {
      Value* value = ValueOf(output);
      std::string_view name;
      if (IsMutation(output)) {
        const Value* held = output.kind == OutputKind::InputMutation ? holders_[state] : nullptr;
        name = ClaimOwn(context_.Join(held ? held->name : output.target, "_next"));
        facts_.state[state++].output = name;
      } else {
        name =
            user < options_.output_names.size() ? context_.Intern(options_.output_names[user]) : ClaimOwn(OwnName(facts_.outputs[user].first, value));
        visible_.insert(name);
        facts_.outputs[user++].second = name;
      }
      if (!taken.insert(value).second || (value->def && value->def->op->name == "onnx::Constant")) {
        const Arg source = value;
        Node* node = context_.arena.New<Node>();
        node->op = FindOpInTable("onnx::Identity");
        node->args = context_.arena.Copy(std::span(&source, 1));
        Value* copy = context_.NewValue(value->type, name);
        copy->def = node;
        node->results = context_.arena.Copy(std::span(&copy, 1));
        model_.nodes.push_back(node);
        output.value = copy;
      } else {
        value->name = name;
      }
    }
  }

  // The inputs that hold state have their say last.
  void ClaimState() {
    for (GraphInput& input : model_.inputs)
      if (input.value && (input.optional || (input.kind == InputKind::User && !visible_.contains(input.value->name))))
        input.value->name = ClaimOwn(input.value->name);
    for (size_t i = 0; i < holders_.size(); ++i)
      if (holders_[i]) facts_.state[i].input = holders_[i]->name;
  }

  Context& context_;
  const Program& program_;
  Graph& model_;
  const Options& options_;
  ModelFacts facts_;
  std::unordered_set<const Value*> written_;
  int64_t seeded_ = 0;
  std::unordered_set<std::string_view> visible_;  // names of inputs and outputs
  std::vector<const Value*> holders_;             // of each facts_.state, the input with its storage
};

}  // namespace

Result<ModelFacts> FinishModel(Context& context, const Program& program, Graph& model, const Options& options) {
  return Finisher(context, program, model, options).Run();
}

}  // namespace pt2onnx
