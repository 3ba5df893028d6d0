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

  ModelFacts Run() {
    LeaveOutNonTensors();
    if (options_.state == Options::State::kDrop) DropState();
    Cleanup(context_, model_);
    NameInputs();
    NameState();
    RemoveUnusedInputs();
    NameOutputs();
    return std::move(facts_);
  }

 private:
  void LeaveOutNonTensors() {
    std::vector<GraphOutput> kept;
    int position = 0;
    for (const GraphOutput& output : model_.outputs) {
      const bool user = !IsMutation(output);
      if (ValueOf(output)) kept.push_back(output);
      else if (user) facts_.left_out.emplace_back(position, IsNone(output.value) ? "None" : "text");
      position += user;
    }
    model_.outputs = std::move(kept);
  }

  void DropState() {
    std::string names;
    for (const GraphOutput& output : model_.outputs)
      if (IsMutation(output)) names.append(names.empty() ? "" : ", ").append(output.target);
    std::erase_if(model_.outputs, IsMutation);
    if (!names.empty()) context_.diagnostics.Warn({"W0201", "changed state is dropped: " + names, "without --state drop each has an output <name>_next"});
  }

  void NameInputs() {
    size_t user = 0;
    for (GraphInput& input : model_.inputs) {
      if (!input.value) continue;
      if (input.kind == InputKind::User) {
        const bool given = user < options_.input_names.size();
        input.value->name = given ? context_.Intern(options_.input_names[user]) : input.target.empty() ? input.value->name : input.target;
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
    Problem problem{"E0206", "the program changes the shape of its state '" + std::string(output.target) + "': the next value can't be fed back",
                    "--state drop leaves it out", value->def ? value->def->loc : 0, {}, {}};
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
      if (output.kind == OutputKind::InputMutation) {
        for (const GraphInput& input : model_.inputs)
          if (input.kind == InputKind::User && input.target == output.target) holder = input.value->name;
      } else if (GraphInput* input = FindState(holder)) {
        written_.insert(input->value);
        input->optional = true;
        if (options_.state == Options::State::kInputs && done.insert(holder).second) {
          input->optional = false;
          input->data = nullptr;
          required.push_back(*input);
        }
      }
      facts_.state.push_back({std::string(output.target), std::string(output.target) + "_next", std::string(holder)});
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
      Problem problem{"E0121", "weight '" + std::string(input.target) + "' " + WeightProblem(program_, input), "save the program with plain tensors", 0, {}, {}};
      context_.diagnostics.Report(context_.diagnostics.Add(std::move(problem)));
    }
  }

  // Each output is a value of its own, under its own name.
  void NameOutputs() {
    std::unordered_set<const Value*> taken;
    for (const GraphInput& input : model_.inputs) taken.insert(input.value);
    size_t user = 0;
    for (GraphOutput& output : model_.outputs) {
      Value* value = ValueOf(output);
      std::string_view name = value->name;
      if (IsMutation(output)) name = context_.Join(output.target, "_next");
      else if (user < options_.output_names.size()) name = context_.Intern(options_.output_names[user]);
      user += !IsMutation(output);
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

  Context& context_;
  const Program& program_;
  Graph& model_;
  const Options& options_;
  ModelFacts facts_;
  std::unordered_set<const Value*> written_;
};

}  // namespace

ModelFacts FinishModel(Context& context, const Program& program, Graph& model, const Options& options) {
  return Finisher(context, program, model, options).Run();
}

}  // namespace pt2onnx
