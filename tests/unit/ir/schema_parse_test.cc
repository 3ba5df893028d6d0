#include "ir/schema_parse.h"

#include <gtest/gtest.h>

#include <fstream>

#include "ir/op_table.h"

namespace pt2onnx {
namespace {

bool SameArg(const ArgSchema& a, const ArgSchema& b) {
  return a.name == b.name && a.type == b.type && a.optional == b.optional && a.keyword_only == b.keyword_only && a.has_default == b.has_default &&
         a.default_text == b.default_text && a.list_size == b.list_size;
}

// Facts besides the text change kinds, aliases and writes of some ops: view, hidden.
void ExpectSame(const OpSchema& parsed, const OpSchema& row) {
  ASSERT_EQ(parsed.args.size(), row.args.size());
  for (size_t i = 0; i < row.args.size(); ++i) {
    EXPECT_TRUE(SameArg(parsed.args[i], row.args[i])) << row.args[i].name;
    if (row.kind == OpKind::Hidden) continue;
    EXPECT_EQ(parsed.args[i].alias, row.args[i].alias);
    EXPECT_TRUE(row.kind == OpKind::View || parsed.args[i].writes == row.args[i].writes);
  }
  ASSERT_EQ(parsed.results.size(), row.results.size());
  for (size_t i = 0; i < row.results.size(); ++i) {
    EXPECT_EQ(parsed.results[i].name, row.results[i].name);
    EXPECT_EQ(parsed.results[i].list, row.results[i].list);
    EXPECT_EQ(parsed.results[i].tensor, row.results[i].tensor);
    EXPECT_TRUE(row.kind == OpKind::Hidden || parsed.results[i].alias == row.results[i].alias);
  }
}

TEST(SchemaParse, ReadsEveryRowAsTheGeneratorDid) {
  Context context;
  size_t count = 0;
  for (const char* file : {"tools/data/schemas.txt", "tools/data/extra_schemas.txt"}) {
    std::ifstream in(file);
    ASSERT_TRUE(in) << file;
    for (std::string line; std::getline(in, line);) {
      if (line.empty() || line[0] == '#') continue;
      line = line.substr(0, line.find(" ; "));
      SCOPED_TRACE(line);
      const Result<OpSchema> parsed = ParseSchema(line, context);
      ASSERT_TRUE(parsed) << parsed.error().message;
      const OpSchema* row = FindOpInTable((*parsed).name);
      ASSERT_NE(row, nullptr);
      ExpectSame(*parsed, *row);
      ++count;
    }
  }
  EXPECT_EQ(count, OpTable().size());
}

TEST(SchemaParse, TellsTheKind) {
  Context c;
  EXPECT_EQ((*ParseSchema("my::f(Tensor x) -> Tensor", c)).kind, OpKind::Functional);
  EXPECT_EQ((*ParseSchema("my::f_(Tensor(a!) x) -> Tensor(a!)", c)).kind, OpKind::Inplace);
  EXPECT_EQ((*ParseSchema("my::f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", c)).kind, OpKind::Out);
  const OpSchema view = *ParseSchema("my::f.v(Tensor(a) x) -> Tensor(a)", c);
  EXPECT_EQ(view.kind, OpKind::View);
  EXPECT_EQ(view.view, ViewClass::Other);
  EXPECT_TRUE((*ParseSchema("my::log(Tensor x) -> ()", c)).Has(kEffect));
}

TEST(SchemaParse, SaysWhereATextIsWrong) {
  Context c;
  for (const char* text :
       {"", "f(Tensor x) -> Tensor", "::f() -> ()", "my::() -> ()", "my::f(Tensor x)", "my::f(Tensor) -> Tensor", "my::f(Tensor x -> Tensor",
        "my::f(Tensor x) -> ", "my::f(Tensor x) -> Tensor y z", "my::f(int[2 x) -> ()", "my::f(str x=\"a) -> ()", "my::f(int x=) -> ()",
        "my::f(Tensor( x) -> ()", "my::f(int[] x=[1) -> ()", "my::f(Tensor x) -> (Tensor"}) {
    const Result<OpSchema> parsed = ParseSchema(text, c);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, "E0149");
  }
  EXPECT_NE(ParseSchema("my::f(Tensor) -> Tensor", c).error().message.find("the argument's name at ') -> Tensor'"), std::string::npos);
}

Arg Default(Context& context, std::string_view op, std::string_view arg) {
  const OpSchema* schema = FindOpInTable(op);
  EXPECT_NE(schema, nullptr) << op;
  return FillDefault(context, schema->args[static_cast<size_t>(schema->ArgIndex(arg))]);
}

TEST(FillDefault, GivesTypedValues) {
  Context c;
  EXPECT_TRUE(IsNone(Default(c, "aten::add.Tensor", "self")));
  EXPECT_EQ(std::get<int64_t>(Default(c, "aten::add.Tensor", "alpha")), 1);
  EXPECT_EQ(std::get<double>(Default(c, "aten::leaky_relu", "negative_slope")), 0.01);
  EXPECT_EQ(std::get<double>(Default(c, "aten::layer_norm", "eps")), 1e-5);
  EXPECT_EQ(std::get<bool>(Default(c, "aten::sum.dim_IntList", "keepdim")), false);
  EXPECT_EQ(std::get<std::string_view>(Default(c, "aten::gelu", "approximate")), "none");
  EXPECT_EQ(std::get<std::string_view>(Default(c, "aten::_test_string_default", "a")), "\"'\\");
  EXPECT_TRUE(IsNone(Default(c, "aten::sum", "dtype")));
  EXPECT_EQ(std::get<SymExpr>(Default(c, "aten::conv2d", "groups")).TryConst(), 1);
  const Dims stride = std::get<Dims>(Default(c, "aten::conv2d", "stride"));
  ASSERT_EQ(stride.size(), 2u);
  EXPECT_EQ(stride[1].TryConst(), 1);
  const Ints padding = std::get<Ints>(Default(c, "aten::max_pool2d", "padding"));  // int[2] padding=0
  ASSERT_EQ(padding.size(), 2u);
  EXPECT_EQ(padding[1], 0);
  EXPECT_TRUE(std::get<Ints>(Default(c, "aten::max_pool2d", "stride")).empty());
  EXPECT_EQ(std::get<MemoryFormat>(Default(c, "aten::contiguous", "memory_format")), MemoryFormat{1});
  EXPECT_EQ(std::get<DType>(Default(c, "aten::randint", "dtype")), DType::I64);
}

// No default of the table is one that FillDefault can't read.
TEST(FillDefault, KnowsEveryDefault) {
  Context c;
  for (const OpSchema& op : OpTable())
    for (const ArgSchema& arg : op.args)
      EXPECT_EQ(IsNone(FillDefault(c, arg)), !arg.has_default || arg.default_text == "None") << op.name << " " << arg.name;
}

}  // namespace
}  // namespace pt2onnx
