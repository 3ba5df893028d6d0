// Lower: the last sink before the model. Each op's lowering rule emits ONNX operators; an op without one is a problem that poisons its results.
#pragma once

#include <map>
#include <string>

#include "onnx/builder.h"
#include "passes/assertions.h"
#include "rewrite/rules.h"
#include "rewrite/sink.h"

namespace pt2onnx {

class Lower : public Sink {
 public:
  // kept: operators that become ONNX operators of the user's, "my::op" -> "my.domain::Op"; these come before rules.
  Lower(Context& context, Graph& model, const Rules<Onnx>& rules, OnnxOptions options = {}, bool keep_assertions = false,
        std::map<std::string, std::string> kept = {});
  Value* Input(const GraphInput& input) override;
  Results Emit(const Call& call) override;
  void Output(const GraphOutput& output) override;
  void Finish() override {}

 private:
  void DefineInputs();
  Answer Keep(const Call& call, std::string_view target);
  Value* Poison(uint32_t problem, const Type& type);

  const Rules<Onnx>& rules_;
  GraphSink model_;
  Onnx onnx_;
  const std::map<std::string, std::string> kept_;
  std::optional<Assertions> assertions_;                                // those of the program, if they are kept
  const Call idle_{FindOpInTable("pt2onnx::poison"), {}, {}};           // what is emitted between calls stands nowhere in the user's program
  std::vector<Value*> inputs_;  // whose sizes define symbols; empty once they do
};

}  // namespace pt2onnx
