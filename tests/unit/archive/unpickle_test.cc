#include "archive/unpickle.h"

#include <gtest/gtest.h>

#include "unit/archive/archive_maker.h"

namespace pt2onnx {
namespace {

using namespace pickle;

// A short form of a value, to compare with.
std::string Show(const PickleValue& v, int depth = 0) {
  if (depth > 5) return "...";
  const auto list = [&](const char* open, const char* close) {
    std::string text = open;
    for (const PickleValue* item : v.items) text += Show(*item, depth + 1) + " ";
    return text + close;
  };
  switch (v.kind) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
      return v.number ? "True" : "False";
    case PickleKind::kInt:
      return std::to_string(v.number);
    case PickleKind::kDouble:
      return std::to_string(v.real);
    case PickleKind::kStr:
      return "'" + v.text + "'";
    case PickleKind::kBytes:
      return "b'" + v.text + "'";
    case PickleKind::kTuple:
      return list("(", ")");
    case PickleKind::kList:
      return list("[", "]");
    case PickleKind::kDict:
      return list("{", "}");
    case PickleKind::kGlobal:
      return "<" + v.text + ">";
    case PickleKind::kStorage:
      return "storage " + v.text;
    case PickleKind::kTensor:
      return "tensor " + std::to_string(v.tensor->dtype) + " of " + v.tensor->storage_key;
    case PickleKind::kOpaque:
      return "opaque " + v.text;
  }
  return "";
}

std::string Load(const std::string& opcodes) {
  const std::string bytes = Whole(opcodes);
  auto loaded = Pickle::Load(Bytes(bytes), "'t'");
  return loaded ? Show(loaded->root()) : loaded.error().code;
}

TEST(Unpickle, Scalars) {
  EXPECT_EQ(Load("N"), "None");
  EXPECT_EQ(Load("\x88"), "True");
  EXPECT_EQ(Load("\x89"), "False");
  EXPECT_EQ(Load("K\xff"), "255");
  EXPECT_EQ(Load("M\xff\xff"), "65535");
  EXPECT_EQ(Load(Int(-7)), "-7");
  EXPECT_EQ(Load(std::string("G\xbf\xe0\0\0\0\0\0\0", 9)), "-0.500000");
  EXPECT_EQ(Load(Str("h\xc3\xa9")), "'h\xc3\xa9'");
  EXPECT_EQ(Load("\x8c\2ab"), "'ab'");
  EXPECT_EQ(Load("C\2ab"), "b'ab'");
}

TEST(Unpickle, LongsAreClampedTo64Bits) {
  EXPECT_EQ(Load(std::string("\x8a\0", 2)), "0");
  EXPECT_EQ(Load("\x8a\1\xff"), "-1");
  EXPECT_EQ(Load(std::string("\x8a\2\xff\0", 4)), "255");
  EXPECT_EQ(Load(std::string("\x8a\x8\0\0\0\0\0\0\0\x80", 10)), "-9223372036854775808");
  EXPECT_EQ(Load(std::string("\x8a\x9\0\0\0\0\0\0\0\x80\0", 11)), "9223372036854775807");   // 2^63
  EXPECT_EQ(Load(std::string("\x8a\x9\0\0\0\0\0\0\0\0\x80", 11)), "-9223372036854775808");  // -2^71
}

TEST(Unpickle, ContainersAndMemo) {
  EXPECT_EQ(Load(")"), "()");
  EXPECT_EQ(Load("K\1\x85"), "(1 )");
  EXPECT_EQ(Load("K\1K\2\x86"), "(1 2 )");
  EXPECT_EQ(Load("K\1K\2K\3\x87"), "(1 2 3 )");
  EXPECT_EQ(Load("(K\1K\2t"), "(1 2 )");
  EXPECT_EQ(Load("](K\1K\2e"), "[1 2 ]");
  EXPECT_EQ(Load("]K\1a"), "[1 ]");
  EXPECT_EQ(Load("}K\1K\2s"), "{1 2 }");
  EXPECT_EQ(Load("}(K\1K\2K\3K\4u"), "{1 2 3 4 }");
  EXPECT_EQ(Load("K\1q\5h\5\x86"), "(1 1 )");
  EXPECT_EQ(Load(std::string("K\1r\5\0\0\0j\5\0\0\0\x86", 13)), "(1 1 )");
  EXPECT_EQ(Load(std::string("K\1\x94h\0\x86", 6)), "(1 1 )");
  EXPECT_EQ(Load("]q\1h\1a"), "[[[[[[... ] ] ] ] ] ]");  // a list in itself
}

TEST(Unpickle, TensorsAndParameters) {
  const std::string storage = Storage("HalfStorage", "3", 12);
  EXPECT_EQ(Load(storage), "storage 3");
  EXPECT_EQ(Load(Tensor(storage, 4, {2, 2}, {2, 1})), "tensor 6 of 3");
  EXPECT_EQ(Load(Call("torch._utils", "_rebuild_parameter", {Tensor(storage, 0, {2}, {1}), "\x88", "N"})), "tensor 6 of 3");
  EXPECT_EQ(Load(Call("torch._utils", "_rebuild_tensor_v3",
                      {Tuple({Str("storage"), Global("torch.storage", "UntypedStorage"), Str("0"), Str("cpu"), Int(4)}) + "Q", Int(0), Ints({4}),
                       Ints({1}), "\x89", "N", Global("torch", "float8_e4m3fn")})),
            "tensor 29 of 0");
  EXPECT_EQ(Load(Call("torch._utils", "_rebuild_meta_tensor_no_storage", {Global("torch", "float32"), Ints({3}), Ints({1}), "\x89"})),
            "tensor 7 of ");
  EXPECT_EQ(Load(Call("torch._tensor", "_rebuild_from_type_v2",
                      {Global("torch._utils", "_rebuild_tensor_v2"), Global("torch", "Tensor"),
                       Tuple({storage, Int(0), Ints({2}), Ints({1}), "\x89", "}"}), "}"})),
            "tensor 6 of 3");
}

TEST(Unpickle, ForeignClassesAreOpaqueAndNothingIsCalled) {
  EXPECT_EQ(Load(Call("os", "system", {Str("echo hello")})), "opaque os.system");
  EXPECT_EQ(Load(Global("__main__", "DC") + ")\x81}" + Str("x") + "K\1sb"), "opaque __main__.DC");
  EXPECT_EQ(Load(Call("torch._utils", "_rebuild_sparse_tensor", {"N", "N"})), "opaque torch._utils._rebuild_sparse_tensor");
  EXPECT_EQ(
      Load(Call("torch._tensor", "_rebuild_from_type_v2", {Global("torch._utils", "_rebuild_tensor_v2"), Global("__main__", "Sub"), Tuple({}), "}"})),
      "opaque __main__.Sub");
  EXPECT_EQ(Load(Call("collections", "OrderedDict",
                      {"](K\1K\2\x86"
                       "e"})),
            "{1 2 }");
  EXPECT_EQ(Load(Call("torch", "Size", {"](K\1K\2e"})), "[1 2 ]");
}

TEST(Unpickle, RefusesBrokenPickles) {
  for (const char* opcodes :
       {"", "t", "\x85", "R", "Q", "h\7", "e", "u", "s", "a", "}(K\1u", "X\xff\xff\xff\x7f", "cmodule", "I1\n", "b", "\x81", "(", "\x93"}) {
    EXPECT_EQ(Load(opcodes), "E0111") << opcodes;
  }
  const std::string whole = Whole(Dict({{"w", Tensor(Storage("FloatStorage", "0", 4), 0, {4}, {1})}}));
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(Pickle::Load(Bytes(std::string(whole, 0, size)), "'t'"));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(value);
      if (auto loaded = Pickle::Load(Bytes(bytes), "'t'")) Show(loaded->root());
    }
  }
}

TEST(TorchSave, FindsItsStorages) {
  const std::string bytes = MakeTorchSave(Dict({{"w", Tensor(Storage("FloatStorage", "0", 1), 0, {1}, {1})}}), {{"0", "abcd"}});
  auto save = TorchSave::Open(Bytes(bytes), "'t'");
  ASSERT_TRUE(save) << save.error().message;
  EXPECT_EQ(Show(save->root()), "{'w' tensor 7 of 0 }");
  EXPECT_EQ(AsText(*save->zip().Read(save->FindStorage("0"))), "abcd");
  EXPECT_EQ(save->FindStorage("1"), -1);
  const std::string other = MakeZip({{"archive/x", "1"}});
  EXPECT_EQ(TorchSave::Open(Bytes(other), "'t'").error().code, "E0111");
}

}  // namespace
}  // namespace pt2onnx
