#include "ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/parse.h"

namespace pt2onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Parsed {
  explicit Parsed(std::string_view text) {
    Result<Graph*> result = Parse(context, text);
    if (result)
      graph = *result;
    else
      ADD_FAILURE() << result.error().message;
  }
  std::vector<std::string> At(Stage stage) { return Verify(*graph, stage); }

  Context context;
  Graph* graph = nullptr;
};

constexpr std::string_view kProgram =
    "graph(%x: f32[s0, 4], %p: bool[]) { %row = aten::select.int(%x, 0, 0) %_ = aten::fill_.Scalar(%row, 0.)\n"
    "%y: f32[4] = hop::cond(%p, graph(%a: f32[4]) { return %a }, graph(%a: f32[4]) { %b = aten::relu(%a) return %b }, [%row]) return %y, s0 + 1 }";

TEST(Verify, SoundProgram) {
  Parsed p(kProgram);
  EXPECT_THAT(p.At(Stage::Training), IsEmpty());
  EXPECT_THAT(p.At(Stage::Functional), ElementsAre(HasSubstr("aten::fill_.Scalar: writes to an argument")));
  EXPECT_THAT(p.At(Stage::Onnx).size(), 5u);
}

TEST(Verify, BatchNormWritesWhileItTrains) {
  const auto batch_norm = [](std::string_view train) {
    return "graph(%x: f32[2, 3], %m: f32[3]) { %y: f32[2, 3] = aten::batch_norm(%x, none, none, %m, %m, " + std::string(train) +
           ", 0.1, 1e-05, true) return %y }";
  };
  EXPECT_THAT(Parsed(batch_norm("false")).At(Stage::Functional), IsEmpty());
  EXPECT_THAT(Parsed(batch_norm("true")).At(Stage::Functional), ElementsAre(HasSubstr("writes to an argument")));
}

TEST(Verify, UseBeforeDefinition) {
  Parsed p("graph(%x: f32[2]) { %a = aten::relu(%x) %b = aten::relu(%a) return %b }");
  std::swap(p.graph->nodes[0], p.graph->nodes[1]);
  EXPECT_THAT(p.At(Stage::Training), ElementsAre("%b = aten::relu: self reads %a, which is not defined there"));
}

TEST(Verify, ValuesOfASubGraphEndWithIt) {
  Parsed p("graph(%x: f32[2]) { %y: f32[2] = hop::wrap(graph(%a: f32[2]) { return %a }, [%x]) return %y }");
  p.graph->outputs[0].value = std::get<Graph*>(p.graph->nodes[0]->args[0])->inputs[0].value;
  EXPECT_THAT(p.At(Stage::Training), ElementsAre("an output reads %a, which is not defined there"));
}

TEST(Verify, ArgumentsAndResultsAreTheSchemas) {
  Parsed p("graph(%x: f32[2]) { %a = aten::relu(%x) return %a }");
  p.graph->nodes[0]->args[0] = std::string_view("x");
  EXPECT_THAT(p.At(Stage::Training), ElementsAre(HasSubstr("argument 'self' is not what the schema says")));
  p.graph->nodes[0]->args = {};
  EXPECT_THAT(p.At(Stage::Training), ElementsAre(HasSubstr("has 0 arguments, its schema 1")));
  Parsed q("graph(%x: f32[2]) { %a, %b = aten::relu(%x) return %a }");
  EXPECT_THAT(q.At(Stage::Training), testing::Contains(HasSubstr("has 2 results, its schema 1")));
}

TEST(Verify, TypesAreKnown) {
  EXPECT_THAT(Parsed("graph(%x) { return %x }").At(Stage::Training), ElementsAre("%x has no dtype", "%x has no rank"));
  EXPECT_THAT(Parsed("graph(%x: f32[?]) { return %x }").At(Stage::Training), ElementsAre("%x has an unknown size"));
  EXPECT_THAT(Parsed("graph(%x: f32[?]) { return %x }").At(Stage::Onnx), IsEmpty());
}

TEST(Verify, SymbolsComeFromSomewhere) {
  EXPECT_THAT(Parsed("graph(%x: f32[2]) { return s0 + 1 }").At(Stage::Training), ElementsAre("nothing defines the symbol s0"));
  EXPECT_THAT(Parsed("graph(%x: f32[2]) { %n: int(u0) = aten::item(%x) return u0 + 1 }").At(Stage::Training), IsEmpty());
}

}  // namespace
}  // namespace pt2onnx
