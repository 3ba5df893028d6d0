// Models that are written, with what they must answer: tests/e2e/test_writer.py runs them in ONNX Runtime. Each has a file <name>.json beside it:
// {"inputs": {name: [shape]}, "cases": [{"sizes": {symbol: n}, "expect": {output: number}}]}. Without $PT2ONNX_MODELS only writing is tested.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>

#include "ir/sym_parse.h"
#include "onnx/sym_emit.h"
#include "onnx/writer.h"
#include "support/mapped_file.h"
#include "unit/onnx/test_graph.h"

namespace pt2onnx {
namespace {

class OnnxModels : public testing::Test {
 protected:
  OnnxModels() {
    const char* given = getenv("PT2ONNX_MODELS");
    if (!given) made_ = folder_ = std::filesystem::temp_directory_path() / ("pt2onnx_models_" + std::to_string(::getpid()));
    else folder_ = given;
    std::filesystem::create_directories(folder_);
  }
  ~OnnxModels() override {
    if (!made_.empty()) std::filesystem::remove_all(made_);
  }
  std::string Path(const std::string& name) const { return folder_ / (name + ".onnx"); }
  std::string Write(TestGraph& g, const std::string& name, WriteOptions options = {}) {
    const Model model = {.graph = &g.graph, .metadata = {{"pt2onnx.test", name}}};
    const Status status = WriteModel(g.context, model, Path(name), options);
    EXPECT_TRUE(status) << (status ? "" : status.error().message);
    return Bytes(Path(name));
  }
  static std::string Bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::filesystem::path folder_, made_;
};

const std::byte* AsBytes(const void* data) { return static_cast<const std::byte*>(data); }

GraphInput Weight(TestGraph& g, std::string_view name, const std::vector<int64_t>& shape, std::span<const std::byte> bytes) {
  auto* data = g.context.arena.New<TensorData>();
  *data = {.dtype = DType::F32, .shape = g.context.arena.Copy(shape), .bytes = bytes, .name = name};
  GraphInput input{.kind = InputKind::Parameter, .target = name, .data = data};
  input.value = g.context.NewValue({.kind = Kind::Tensor, .dtype = DType::F32, .shape = g.context.arena.Copy(DimVec(Ints(shape)))}, name);
  input.value = g.sink.Input(input);
  g.graph.inputs.back().value = input.value;
  return g.graph.inputs.back();
}

// Every kind of expression, against what the expression itself evaluates to.
TEST_F(OnnxModels, Expressions) {
  const char* texts[] = {
      "2*n + 3*m - 1", "n*m*n", "-n", "n - m", "n//2", "(n - m)//3", "(n - 7)//(m - 3)", "(n - 7) % 3", "(n - m) % (m - 9)", "n**3", "max(n, m, 4)",
      "min(n - m, 0)", "abs(n - m)", "trunc(1.7*float(n))", "floor(float(n)/3.0)", "ceil(float(m)/4.0)", "n & 6", "n | m",
  };
  for (const int opset : {18, 20, 23}) {
    TestGraph g(opset);
    const SymExpr n = g.Sym("n"), m = g.Sym("m");
    g.Input("x", DType::F32, {n, 3, m});
    std::vector<std::pair<std::string, SymExpr>> outputs;
    for (const char* text : texts) {
      const Result<SymExpr> e = ParseInfix(g.context.syms, text);
      ASSERT_TRUE(e) << text;
      outputs.emplace_back(text, *e);
    }
    const SymExpr half = TrueDiv(n, 2 * m), x = ToFloat(n) - ToFloat(m);
    outputs.emplace_back("n / 2m", half);
    outputs.emplace_back("round", Round(half));
    outputs.emplace_back("trunc to float", TruncToFloat(x * ToFloat(SymExpr(3))));
    outputs.emplace_back("sqrt", UnaryFunction(SymOp::Sqrt, ToFloat(n)));
    outputs.emplace_back("log2", UnaryFunction(SymOp::Log2, ToFloat(n)));
    outputs.emplace_back("where", Where(Lt(n, m), n, 2 * m));
    outputs.emplace_back("n < m or not m == 5", Or(Lt(n, m), Not(Eq(m, 5))));
    outputs.emplace_back("xor", BitXor(n, m));
    outputs.emplace_back("round decimal", RoundDecimal(half, 2));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const SymExpr e = outputs[i].second;
      g.Output("out" + std::to_string(i), g.b.Number(e, SymEmitter::DTypeOf(e)));
    }
    const std::string name = "expressions_" + std::to_string(opset);
    Write(g, name);

    std::ofstream json(folder_ / (name + ".json"));
    json.precision(17);
    json << R"({"inputs": {"x": ["n", 3, "m"]}, "cases": [)";
    const std::pair<int64_t, int64_t> sizes[] = {{1, 1}, {5, 2}, {2, 5}, {7, 3}, {12, 10}, {8, 9}, {0, 4}};
    for (const auto& [a, c] : sizes) {
      json << (a == 1 && c == 1 ? "" : ", ") << R"({"sizes": {"n": )" << a << R"(, "m": )" << c << R"(}, "expect": {)";
      bool first = true;
      for (size_t i = 0; i < outputs.size(); ++i) {
        const auto value = Evaluate(outputs[i].second, {{"n", a}, {"m", c}});
        if (!value) continue;  // a division by zero or the like: the model may answer anything
        json << (first ? "" : ", ") << "\"out" << i << "\": ";
        first = false;
        if (value->IsConst()) json << value->Const();
        else if (const auto f = value->TryFloat()) json << (std::isinf(*f) || std::isnan(*f) ? std::string("\"skip\"") : (std::ostringstream() << std::setprecision(17) << *f).str());
        else json << (*value->TryBool() ? 1 : 0);
      }
      json << "}}";
    }
    json << "]}\n";
  }
}

// y = (x[:, :2] * w) in a branch, a loop that doubles, a scan that sums; an optional result that nothing reads; a tied weight.
TEST_F(OnnxModels, ControlFlow) {
  const float ones[] = {2, 3};
  for (const int opset : {18, 21, 25}) {
    TestGraph g(opset);
    const SymExpr n = g.Sym("n");
    const Val x = g.Input("x", DType::F32, {n, 3});
    const std::span<const std::byte> bytes(AsBytes(ones), sizeof ones);
    const Val w = g.b.Wrap(Weight(g, "w", {2}, bytes).value), tied = g.b.Wrap(Weight(g, "tied", {2}, bytes).value);
    Onnx& b = g.b;
    const Val many = b.Number(Lt(3, n), DType::Bool);
    const Vals branch = b.If(many, [&](Onnx& t) -> Vals { return {t.ReduceSum(t.Slice(x, 1, 0, 2) * w, {0, 1})}; },
                             [&](Onnx& f) -> Vals { return {f.Cast(f.Int(n), DType::F32)}; });
    const Vals loop = b.Loop(b.Int(n), {}, {b.Constant(1.0, DType::F32)}, [&](Onnx& l, Val, const Vals& v) -> LoopStep {
      return {l.Constant(true, DType::Bool), {v[0] + v[0]}, {v[0] * Scalar(3.0)}};
    });
    const Vals scan = b.Scan({b.Zeros({3}, DType::F32)}, {b.Ones({n, 3}, DType::F32)},
                             [&](Onnx&, const Vals& s, const Vals& slices) -> ScanStep { return {{s[0] + slices[0]}, {s[0]}}; });
    const Val norm = b.LayerNormalization(x, b.Ones({3}, DType::F32)).Y;
    const Val group = b.GroupNormalization(b.Unsqueeze(b.Ones({n, 4}, DType::F32), {2}), b.Ones({4}, DType::F32), b.Full({4}, 5.0, DType::F32), {.num_groups = 2});
    g.Output("branch", branch[0]);
    g.Output("loop", loop[0]);
    g.Output("stacked", b.ReduceSum(loop[1], {0}));
    g.Output("scan", b.ReduceSum(scan[0], {0}));
    g.Output("scanned", b.ReduceSum(scan[1], {0, 1}));
    g.Output("norm", b.ReduceMax(b.Abs(norm), {0, 1}));
    g.Output("group", b.ReduceMax(group, {0, 1, 2}));
    g.Output("tied", b.ReduceSum(tied + w, {0}));
    Write(g, "control_" + std::to_string(opset));
    std::ofstream json(folder_ / ("control_" + std::to_string(opset) + ".json"));
    json << R"({"inputs": {"x": ["n", 3]}, "cases": [)"
         << R"({"sizes": {"n": 2}, "expect": {"branch": 2, "loop": 4, "stacked": 9, "scan": 6, "scanned": 3, "norm": 0, "group": 5, "tied": 10}},)"
         << R"({"sizes": {"n": 5}, "expect": {"branch": 25, "loop": 32, "stacked": 93, "scan": 15, "scanned": 30, "norm": 0, "group": 5, "tied": 10}}]})";
  }
}

// What ONNX Runtime lacks for small integers, bool and half floats runs in a wider dtype, with the results of the narrow one.
TEST_F(OnnxModels, NarrowDTypes) {
  for (const DType dtype : {DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64, DType::Bool, DType::F16, DType::F64}) {
    TestGraph g(20);
    Onnx& b = g.b;
    const SymExpr n = g.Sym("n");
    const Val x = b.Cast(g.Input("x", DType::F32, {n}), dtype);
    std::string expect;
    const auto add = [&](std::string_view name, Val y, double sum) {
      IntVec axes;
      for (int64_t i = 0; i < y.rank(); ++i) axes.push_back(i);
      g.Output(name, b.ReduceSum(b.Cast(y, DType::F64), axes));
      expect += (expect.empty() ? "\"" : ", \"") + std::string(name) + "\": " + std::to_string(sum);
    };
    const Val m = b.Expand(b.Unsqueeze(x, {0}), {n, n});
    add("where", b.Where(b.Cast(x, DType::Bool), x, x), 4);
    add("nonzero", b.NonZero(x), 6);
    add("pad", b.Pad(x, b.Ints({1, 1})), 4);
    add("concat", b.Concat({x, x}, 0), 8);
    add("gather", b.Gather(x, b.Ints({0, 1}), 0), 2);
    add("scatter", b.ScatterElements(x, b.Ints({0}), b.Zeros({1}, dtype)), 3);
    add("transpose", b.Transpose(m, {1, 0}), 16);
    add("tile", b.Tile(x, b.Ints({3})), 12);
    add("trilu", b.Trilu(m), 10);
    add("equal", b.Equal(x, x), 4);
    add("onehot", b.OneHot(b.Ints({1, 1}), b.IntScalar(3), b.Concat({b.Full({1}, 0, dtype), b.Full({1}, 1, dtype)}, 0)), 2);
    add("unique", b.Unique(x).Y, 1);
    if (dtype != DType::Bool) {
      add("add", x + x * x - x / x, 4);
      add("relu", b.Relu(x), 4);
      add("max", b.Max(b.Min(x, x), x), 4);
      add("less", b.Less(x, x + x), 4);
      add("cumsum", b.CumSum(x, b.IntScalar(0)), 10);
      add("matmul", b.MatMul(m, m), 64);
      add("reduce", b.ReduceMax(x, {0}) + b.ReduceSum(x, {0}) + b.ReduceProd(x, {0}), 6);
      add("topk", b.TopK(x, b.Ints({2})).Values, 2);
      add("argmax", b.ArgMax(x), 0);
      add("sign", b.Abs(b.Sign(x)), 4);
      add("clip", b.Clip(x, b.Constant(2, dtype), b.Constant(3, dtype)), 8);
      add("mod", b.Mod(x, x + x, {.fmod = IsFloat(dtype)}), 4);
      add("pow", b.Pow(x, x), 4);
    }
    if (IsFloat(dtype)) {
      add("softmax", b.Softmax(x), 1);
      add("exp", b.Exp(x - x), 4);
      add("mean", b.ReduceMean(x, {0}), 1);
    }
    const std::string name = "narrow_" + std::string(Name(dtype));
    Write(g, name);
    std::ofstream(folder_ / (name + ".json")) << R"({"inputs": {"x": ["n"]}, "cases": [{"sizes": {"n": 4}, "expect": {)" << expect << "}}]}";
  }
}

// Where weights go: into the model, beside it, or they stay in the file that they came in. All are the same model.
TEST_F(OnnxModels, ExternalData) {
  const std::string weights_path = folder_ / "weights.bin";
  std::vector<float> weights(3000);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 7);
  std::ofstream(weights_path, std::ios::binary).write("0123456789abcdef", 16).write(reinterpret_cast<const char*>(weights.data()), std::ssize(weights) * 4);
  const Result<MappedFile> file = MappedFile::Open(weights_path);
  ASSERT_TRUE(file);
  using enum Options::ExternalData;
  for (const auto& [name, mode] : {std::pair("inline", kNever), std::pair("auto", kAuto), std::pair("beside", kAlways), std::pair("in_place", kInPlace)}) {
    TestGraph g;
    const SymExpr n = g.Sym("n");
    const Val x = g.Input("x", DType::F32, {n, 3000});
    GraphInput weight = Weight(g, "layer.weight", {3000}, {});
    auto* data = g.context.arena.New<TensorData>(*weight.data);
    data->stored = true;
    data->file_offset = 16;
    data->file_length = 12000;
    g.graph.inputs.back().data = data;
    g.Output("y", g.b.ReduceSum(g.b.ReduceMean(x * g.b.Wrap(weight.value), {1}), {0}));
    const WriteOptions options = {.external_data = mode, .weights_fd = (*file).fd(), .weights_path = weights_path};
    const std::string first = Write(g, std::string("weights_") + name, options);
    EXPECT_EQ(first, Write(g, std::string("weights_") + name, options));
    EXPECT_EQ(first.size() > 12000, mode == kNever || mode == kAuto);
    EXPECT_EQ(std::filesystem::exists(Path(std::string("weights_") + name) + ".data"), mode == kAlways);
    std::ofstream json(folder_ / (std::string("weights_") + name + ".json"));
    json << R"({"inputs": {"x": ["n", 3000]}, "cases": [{"sizes": {"n": 2}, "expect": {"y": 5.996}}]})";
  }
}

TEST_F(OnnxModels, InPlaceNeedsTheFileBelowTheModel) {
  TestGraph g;
  g.Output("y", g.Input("x", DType::F32, {2}));
  std::filesystem::create_directories(folder_ / "sub");
  const Model model = {.graph = &g.graph};
  const Status status = WriteModel(g.context, model, folder_ / "sub" / "m.onnx", {.external_data = Options::ExternalData::kInPlace, .weights_path = folder_ / "w.pt2"});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, "E0124");
}

}  // namespace
}  // namespace pt2onnx
