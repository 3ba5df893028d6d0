#include <gtest/gtest.h>

#include <algorithm>

#include "ir/op_table.h"

namespace pt2onnx {
namespace {

const OpSchema& Op(std::string_view name) {
  const OpSchema* op = FindOpInTable(name);
  EXPECT_NE(op, nullptr) << name;
  return op ? *op : OpTable()[0];
}

std::string_view FunctionalOf(std::string_view name) {
  const OpSchema& op = Op(name);
  return op.functional < 0 ? "" : OpTable()[static_cast<size_t>(op.functional)].name;
}

TEST(SchemaTable, IsSortedAndFindsEachOfItsOps) {
  uint32_t id = 0;
  for (const OpSchema& op : OpTable()) {
    EXPECT_EQ(op.id, id++);
    EXPECT_EQ(FindOpInTable(op.name), &op);
  }
  EXPECT_LT(OpTable().size(), kFirstCustomId);
  for (std::string_view name : {"", "aten::", "aten::relu.default", "zzz::zzz", "aten::add", "onnx::NoSuchOp"})
    EXPECT_EQ(FindOpInTable(name), nullptr) << name;
}

TEST(SchemaTable, ArgumentsAreTyped) {
  const OpSchema& add = Op("aten::add.Tensor");
  ASSERT_EQ(add.args.size(), 3u);
  EXPECT_EQ(add.args[2].name, "alpha");
  EXPECT_EQ(add.args[2].type, ArgType::Scalar);
  EXPECT_TRUE(add.args[2].keyword_only);
  EXPECT_EQ(add.args[2].default_text, "1");
  const OpSchema& conv = Op("aten::conv2d");
  EXPECT_EQ(conv.args[2].type, ArgType::Tensor);
  EXPECT_TRUE(conv.args[2].optional);
  EXPECT_EQ(conv.args[3].type, ArgType::SymIntList);
  EXPECT_EQ(conv.args[3].list_size, 2);
  EXPECT_EQ(Op("aten::index.Tensor").args[1].type, ArgType::OptTensorList);
  EXPECT_TRUE(Op("aten::split.Tensor").results[0].list);
  EXPECT_FALSE(Op("aten::sym_size.int").results[0].tensor);
  EXPECT_EQ(Op("hop::cond").args[1].type, ArgType::Graph);
}

// torch 2.14's, and cholesky, qr and their out forms of older ones.
TEST(SchemaTable, KindsAreCounted) {
  std::array<int, 5> counts{};
  for (const OpSchema& op : OpTable())
    if (op.Namespace() == "aten") ++counts[static_cast<size_t>(op.kind)];
  EXPECT_EQ(counts, (std::array<int, 5>{1535, 91, 349, 1112, 30}));
}

TEST(SchemaTable, WrittenArgumentsFollowTheKind) {
  for (const OpSchema& op : OpTable()) {
    const bool writes = std::any_of(op.args.begin(), op.args.end(), [](const ArgSchema& a) { return a.writes; });
    EXPECT_EQ(op.Writes(), writes) << op.name;
    if (op.kind == OpKind::View) {
      EXPECT_NE(op.view, ViewClass::None) << op.name;
      EXPECT_TRUE(std::any_of(op.args.begin(), op.args.end(), [](const ArgSchema& a) { return a.alias != 0; })) << op.name;
    }
  }
}

TEST(SchemaTable, FactsBesidesTheText) {
  EXPECT_EQ(Op("aten::reshape").view, ViewClass::Reshape);
  EXPECT_TRUE(Op("aten::reshape").Has(kMaybeAlias));
  EXPECT_TRUE(Op("aten::t_").Has(kInplaceView));
  EXPECT_TRUE(Op("aten::rand").Has(kRandom));
  EXPECT_TRUE(Op("aten::mul.Tensor").Has(kPointwise) && Op("aten::mul.Tensor").Has(kCore));
  EXPECT_TRUE(Op("aten::linear").Has(kComposite));
  EXPECT_TRUE(Op("aten::dropout").Has(kHiddenAlias));
  EXPECT_EQ(Op("aten::dropout").args[0].alias, 'a');
  EXPECT_TRUE(Op("aten::batch_norm").Has(kHiddenWrite));
  EXPECT_TRUE(Op("aten::batch_norm").args[3].writes && Op("aten::batch_norm").args[4].writes);
  EXPECT_TRUE(Op("aten::_assert_async.msg").Has(kEffect) && Op("aten::sym_constrain_range_for_size").Has(kEffect));
  EXPECT_FALSE(Op("prims::as_strided").Writes());
  EXPECT_EQ(Op("prims::as_strided").view, ViewClass::AsStrided);
}

TEST(SchemaTable, OutOfPlaceForms) {
  EXPECT_EQ(FunctionalOf("aten::add_.Tensor"), "aten::add.Tensor");
  EXPECT_EQ(FunctionalOf("aten::add.out"), "aten::add.Tensor");
  EXPECT_EQ(FunctionalOf("aten::fill_.Scalar"), "aten::fill.Scalar");
  EXPECT_EQ(FunctionalOf("aten::zero_"), "aten::zero");
  EXPECT_EQ(FunctionalOf("aten::copy_"), "aten::copy");
  EXPECT_EQ(FunctionalOf("aten::normal_"), "aten::normal_functional");
  EXPECT_EQ(FunctionalOf("aten::bernoulli_.float"), "aten::bernoulli.p");
  EXPECT_EQ(FunctionalOf("aten::_cummax_helper"), "aten::cummax");
  EXPECT_EQ(FunctionalOf("aten::_sobol_engine_ff_"), "");
  EXPECT_EQ(ArgsOfFunctional(Op("aten::add.out")), (std::vector{0, 1, 2}));
  EXPECT_EQ(ArgsOfFunctional(Op("aten::dropout_")), (std::vector{0, 1, 2}));
  EXPECT_EQ(ArgsOfFunctional(Op("aten::_cummax_helper")), (std::vector{0, 3}));
}

// Every argument of an out-of-place form comes from somewhere: from the op, or it has a default.
TEST(SchemaTable, OutOfPlaceFormsCanBeCalled) {
  for (const OpSchema& op : OpTable()) {
    if (op.functional < 0) continue;
    const OpSchema& functional = OpTable()[static_cast<size_t>(op.functional)];
    EXPECT_FALSE(functional.Writes() && !functional.Has(kHiddenWrite)) << op.name;
    const std::vector<int> from = ArgsOfFunctional(op);
    for (size_t i = 0; i < from.size(); ++i) {
      const ArgSchema& arg = functional.args[i];
      EXPECT_TRUE(from[i] >= 0 ? op.args[static_cast<size_t>(from[i])].type == arg.type : arg.has_default || arg.optional)
          << op.name << " " << arg.name;
    }
  }
}

}  // namespace
}  // namespace pt2onnx
