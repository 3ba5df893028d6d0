// Golden tests: each file of tests/golden holds a program, what a pass makes of it, and why that is right.
//
//   # test functionalize                     the pass; of mode: eval, train or preserve after it; of lower: an opset may follow
//   # A write through one view is seen through another.
//   # In module bn torch.nn.BatchNorm1d     optional: where all its nodes stand
//   graph(%x: f32[3, 4]) { ... }
//   # ----
//   graph(%x: f32[3, 4]) { ... }             what the pass gives, cleaned up
//   # E0202 aten::foo_: ...                  problems that it found
//
// golden_tests --update writes down what the passes give now: read the difference before you commit it.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "complex/rules.h"
#include "decomp/rules.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "lower/rules.h"
#include "passes/cleanup.h"
#include "passes/complex.h"
#include "passes/decompose.h"
#include "passes/functionalize.h"
#include "passes/lower.h"
#include "passes/mode.h"
#include "passes/promote.h"
#include "passes/replace_inplace.h"

namespace pt2onnx {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLine = "# ----\n";

std::string ReadText(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

Graph* Parsed(Context& context, std::string_view text) {
  const Result<Graph*> graph = Parse(context, text);
  if (graph) return *graph;
  ADD_FAILURE() << graph.error().message;
  return nullptr;
}

template <class Pass, class... Args>
void Through(Context& context, const Graph& from, Graph& to, const Args&... args) {
  GraphSink sink(context, to);
  Pass pass(sink, args...);
  Replay(from, pass);
}

// The first line's words after "# test".
std::vector<std::string> Header(const std::string& text) {
  std::istringstream line(text.substr(0, text.find('\n')));
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  if (words.size() < 3 || words[0] != "#" || words[1] != "test") {
    ADD_FAILURE() << "the first line is not '# test <pass>'";
    return {"?"};
  }
  return {words.begin() + 2, words.end()};
}

// "# In module path class": the nodes' module stack.
LocId Place(Context& context, const std::string& input) {
  constexpr std::string_view kWords = "# In module ";
  const size_t at = input.find(kWords);
  if (at == input.npos) return 0;
  std::istringstream line(input.substr(at + kWords.size()));
  std::string path, kind;
  line >> path >> kind;
  context.locs.push_back({.module_stack = context.Join("L__self__,,Model;L__self___", path, ",", path, ",", kind)});
  return static_cast<LocId>(context.locs.size() - 1);
}

std::string Given(const std::string& input) {
  const std::vector<std::string> header = Header(input);
  const std::string& pass = header[0];
  Context context;
  if (pass == "lower" && header.size() > 1) context.opset = std::stoi(header[1]);
  Graph* from = Parsed(context, input);
  if (!from) return {};
  const LocId place = Place(context, input);
  for (Node* node : from->nodes) node->loc = place;
  Graph* to = context.NewGraph();
  Stage stage = Stage::Functional;
  if (pass == "functionalize") {
    Through<Functionalize>(context, *from, *to);
  } else if (pass == "decompose") {
    Through<Decompose>(context, *from, *to, DecompositionRules());
    stage = Stage::Core;
  } else if (pass == "replace_inplace") {
    Through<ReplaceInplace>(context, *from, *to);
    stage = Stage::Core;
  } else if (pass == "complex") {
    Through<ComplexToReal>(context, *from, *to, ComplexRules());
    stage = Stage::Core;
  } else if (pass == "promote") {
    Through<PromoteTypes>(context, *from, *to);
    stage = Stage::Typed;
  } else if (pass == "mode") {
    const std::string mode = header.size() > 1 ? header[1] : "";
    Through<Mode>(context, *from, *to, mode == "eval" ? Options::Mode::kEval : mode == "train" ? Options::Mode::kTrain : Options::Mode::kPreserve);
    stage = Stage::Training;
  } else if (pass == "lower") {
    const Rules<Onnx> rules = LoweringRules();
    Lower lower(context, *to, rules);
    PromoteTypes promote(lower);
    Replay(*from, promote);
    stage = Stage::Onnx;
  } else if (pass == "cleanup") {
    to = from;
  } else {
    ADD_FAILURE() << "there is no pass '" << pass << "'";
    return {};
  }
  Cleanup(context, *to);
  for (const std::string& fault : Verify(*to, stage)) ADD_FAILURE() << "the result does not verify: " << fault;
  const std::string text = Print(context, *to);
  Context other;
  if (const Graph* again = Parsed(other, text)) {
    EXPECT_EQ(Print(other, *again), text) << "what is printed parses to something else";
  }
  std::string problems;
  for (uint32_t i = 1; i <= context.diagnostics.count(); ++i) {
    const Problem& problem = context.diagnostics.Get(i);
    problems += "# " + problem.code + " " + problem.op + ": " + problem.message + "; " + problem.help + "\n";
  }
  for (const Warning& warning : context.diagnostics.warnings()) problems += "# " + warning.code + " " + warning.message + "; " + warning.help + "\n";
  return text + problems;
}

class Golden : public testing::Test {
 public:
  Golden(fs::path path, bool update) : path_(std::move(path)), update_(update) {}
  void TestBody() override {
    const std::string text = ReadText(path_);
    const size_t line = text.find(kLine);
    const std::string input = text.substr(0, line), want = line == text.npos ? "" : text.substr(line + kLine.size());
    const std::string got = Given(input);
    if (got == want) return;
    if (update_ && !HasFailure()) {
      std::ofstream(path_, std::ios::binary) << input << kLine << got;
      std::cout << "wrote " << path_.string() << "\n";
    } else {
      ADD_FAILURE() << path_.string() << ": the pass gives\n" << got << "expected\n" << want << "golden_tests --update writes it down.";
    }
  }

 private:
  fs::path path_;
  bool update_;
};

}  // namespace
}  // namespace pt2onnx

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  const bool update = count > 1 && std::strcmp(words[1], "--update") == 0;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests/golden"))
    if (entry.path().extension() == ".ptir") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& path : files) {
    const std::string suite = path.parent_path().filename().string(), name = path.stem().string();
    testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, path.c_str(), 1, [=]() -> testing::Test* { return new pt2onnx::Golden(path, update); });
  }
  return RUN_ALL_TESTS();
}
