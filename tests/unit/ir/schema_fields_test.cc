#include <gtest/gtest.h>

#include "gen/aten.h"
#include "ir/op_table.h"
#include "ir/schema_parse.h"

namespace pt2onnx {
namespace {

class TestBuilder : public Builder {
 public:
  using Builder::Builder;
  Val Binary(char, Val a, Val) override { return a; }
  Val Constant(Scalar value, DType dtype) override {
    constants.push_back(value);
    return Wrap(context_.NewValue({.kind = Kind::Tensor, .dtype = dtype}));
  }
  std::vector<Scalar> constants;
};

class Fields : public testing::Test {
 protected:
  // A call of Op whose arguments are the defaults, but for those given by position.
  template <class Op>
  Op Bind(std::vector<std::pair<size_t, Arg>> given) {
    const OpSchema& op = OpTable()[Op::kId];
    args_.clear();
    for (const ArgSchema& arg : op.args) args_.push_back(FillDefault(context_, arg));
    for (auto& [index, arg] : given) args_[index] = arg;
    call_ = {.op = &op, .args = args_, .types = {}};
    builder_.Begin(call_);
    return Op::Bind(FieldReader(builder_, args_));
  }
  std::string Problem() { return builder_.problem() ? context_.diagnostics.Get(builder_.problem()).message : ""; }
  Arg Tensor() { return context_.NewValue({.kind = Kind::Tensor, .dtype = DType::F32}); }

  Context context_;
  TestBuilder builder_{context_};
  std::vector<Arg> args_;
  Call call_{};
};

TEST_F(Fields, ComeFromArgumentsAndGoBack) {
  const Arg x = Tensor(), w = Tensor();
  const auto op = Bind<aten::conv2d>({{0, x}, {1, w}, {6, SymExpr(2)}});
  EXPECT_EQ(op.input.value, std::get<Value*>(x));
  EXPECT_FALSE(op.bias);
  EXPECT_EQ(op.stride.size(), 2u);
  EXPECT_EQ(op.groups, SymExpr(2));
  EXPECT_EQ(Problem(), "");
  const std::vector<Arg> back = ToArgs(op, context_);
  ASSERT_EQ(back.size(), 7u);
  EXPECT_EQ(std::get<Value*>(back[1]), std::get<Value*>(w));
  EXPECT_TRUE(IsNone(back[2]));
  EXPECT_EQ(std::get<Dims>(back[3])[1], SymExpr(1));
}

TEST_F(Fields, DevicesAreWrittenAsNone) {
  const auto op = Bind<aten::_to_copy>({{0, Tensor()}, {1, DType::F16}, {3, Device{"cuda"}}});
  EXPECT_EQ(op.dtype, DType::F16);
  const std::vector<Arg> back = ToArgs(op, context_);
  EXPECT_TRUE(IsNone(back[3]));
  EXPECT_EQ(std::get<bool>(back[5]), false);
}

TEST_F(Fields, TakeWhatLosesNothing) {
  const int64_t sizes[] = {3, 4};
  EXPECT_EQ(Bind<aten::view>({{0, Tensor()}, {1, Ints(sizes)}}).size[1], SymExpr(4));
  const SymExpr dims[] = {1, 0};
  EXPECT_EQ(Bind<aten::permute>({{0, Tensor()}, {1, Dims(dims)}}).dims[0], 1);
  EXPECT_EQ(Bind<aten::dropout>({{0, Tensor()}, {1, int64_t{1}}, {2, true}}).p, 1.0);
  const int64_t one[] = {3};  // int[2]
  const auto pool = Bind<aten::max_pool2d>({{0, Tensor()}, {1, Ints(one)}});
  ASSERT_EQ(pool.kernel_size.size(), 2u);
  EXPECT_EQ(pool.kernel_size[1], 3);
  EXPECT_EQ(Problem(), "");
}

TEST_F(Fields, NumbersBecomeTensors) {
  const auto op = Bind<aten::add_Tensor>({{0, Tensor()}, {1, 2.5}});
  EXPECT_EQ(op.other.dtype(), DType::F32);
  ASSERT_EQ(builder_.constants.size(), 1u);
  EXPECT_EQ(builder_.constants[0].AsDouble(), 2.5);
}

TEST_F(Fields, SymbolicWhereAConstantIsNeededIsAProblem) {
  const SymExpr s = context_.syms.Symbol("s0");
  Bind<aten::softmax_int>({{0, Tensor()}, {1, s}});
  EXPECT_EQ(Problem(), "argument 'dim' is symbolic, but only a constant integer is supported there");
  const SymExpr dims[] = {s, 1};
  EXPECT_EQ(Bind<aten::permute>({{0, Tensor()}, {1, Dims(dims)}}).dims.size(), 2u);
  EXPECT_NE(Problem(), "");
  EXPECT_EQ(Bind<aten::view>({{0, Tensor()}, {1, Dims(dims)}}).size[0], s);
  EXPECT_EQ(Problem(), "");
}

TEST_F(Fields, ListsWithHoles) {
  Value* const indices[] = {nullptr, std::get<Value*>(Tensor())};
  const auto op = Bind<aten::index_Tensor>({{0, Tensor()}, {1, ValueList(indices)}});
  ASSERT_EQ(op.indices.size(), 2u);
  EXPECT_FALSE(op.indices[0]);
  EXPECT_EQ(op.indices[1]->value, indices[1]);
  EXPECT_EQ(std::get<ValueList>(ToArgs(op, context_)[1])[0], nullptr);
  Bind<aten::cat>({{0, ValueList(indices)}});
  EXPECT_EQ(Problem(), "argument 'tensors' is of another type, but only a list of tensors without None is supported there");
}

TEST_F(Fields, MissingOperandIsAProblem) {
  Bind<aten::relu>({});
  EXPECT_EQ(Problem(), "argument 'self' is missing, but only a tensor is supported there");
}

}  // namespace
}  // namespace pt2onnx
