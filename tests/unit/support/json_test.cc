#include "support/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace pt2onnx {
namespace {

JsonDoc Parse(std::string_view text) {
  auto doc = JsonDoc::Parse(text);
  EXPECT_TRUE(doc) << doc.error().message;
  return std::move(*doc);
}

TEST(Json, KindsAndValues) {
  const JsonDoc doc = Parse(R"({"a": 1, "b": -2.5, "c": "x\u00e9\n", "d": true, "e": null, "f": [1, 2, 3], "g": {"k": 1}})");
  const JsonValue root = doc.root();
  EXPECT_EQ(root.Size(), 7);
  EXPECT_EQ(root["a"].AsInt(), 1);
  EXPECT_EQ(root["a"].AsDouble(), 1.0);
  EXPECT_TRUE(root["a"].IsInt());
  EXPECT_EQ(root["b"].AsDouble(), -2.5);
  EXPECT_TRUE(root["b"].IsDouble());
  EXPECT_EQ(root["b"].AsInt(), std::nullopt);
  EXPECT_EQ(root["c"].AsString(), "x\xc3\xa9\n");
  EXPECT_EQ(root["d"].AsBool(), true);
  EXPECT_EQ(root["d"].AsInt(), std::nullopt);
  EXPECT_TRUE(root["e"].IsNull());
  EXPECT_TRUE(bool(root["e"]));
  EXPECT_EQ(root["f"].Size(), 3);
  int64_t sum = 0;
  for (JsonValue item : root["f"].Items()) sum = sum * 10 + *item.AsInt();
  EXPECT_EQ(sum, 123);
  std::string keys;
  for (const auto [key, value] : root.Members()) keys += key;
  EXPECT_EQ(keys, "abcdefg");
}

TEST(Json, AbsentIsHarmless) {
  const JsonDoc doc = Parse(R"({"a": 1})");
  const JsonValue nothing = doc.root()["x"]["y"];
  EXPECT_FALSE(nothing);
  EXPECT_TRUE(nothing.IsNull());
  EXPECT_FALSE(nothing.IsObject() || nothing.IsArray() || nothing.IsString() || nothing.IsBool() || nothing.IsInt() || nothing.IsDouble());
  EXPECT_EQ(nothing.AsInt(), std::nullopt);
  EXPECT_EQ(nothing.AsString(), std::nullopt);
  EXPECT_EQ(nothing.AsDouble(), std::nullopt);
  EXPECT_TRUE(nothing.Items().empty());
  EXPECT_TRUE(nothing.Members().empty());
  EXPECT_FALSE(nothing.Sole());
  EXPECT_TRUE(doc.root().Items().empty());
  EXPECT_FALSE(doc.root()["a"]["b"]);
}

TEST(Json, SoleKeyOfAUnion) {
  const JsonDoc doc = Parse(R"([{"as_int": 5}, {"a": 1, "b": 2}, {}])");
  auto it = doc.root().Items().begin();
  const auto sole = (*it).Sole();
  ASSERT_TRUE(sole);
  EXPECT_EQ(sole->key, "as_int");
  EXPECT_EQ(sole->value.AsInt(), 5);
  EXPECT_FALSE((*++it).Sole());
  EXPECT_FALSE((*++it).Sole());
}

TEST(Json, NonFiniteNumbersBareOrQuoted) {
  const JsonDoc doc = Parse(R"({"a": Infinity, "b": -Infinity, "c": NaN, "d": "Infinity", "e": "NaN", "text": "a \"NaN, -Infinity\\"})");
  const JsonValue root = doc.root();
  EXPECT_EQ(root["a"].AsDouble(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(root["b"].AsDouble(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(*root["c"].AsDouble()));
  EXPECT_EQ(root["d"].AsDouble(), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(*root["e"].AsDouble()));
  EXPECT_EQ(root["text"].AsString(), "a \"NaN, -Infinity\\");
}

TEST(Json, IntegersOfAnyLength) {
  const JsonDoc doc =
      Parse(R"([9223372036854775807, 9223372036854775808, 18446744073709551615, 18446744073709551616, -9223372036854775809, "12", -1])");
  std::vector<int64_t> ints;
  std::vector<uint64_t> uints;
  std::vector<double> doubles;
  for (JsonValue v : doc.root().Items()) {
    ints.push_back(v.AsInt().value_or(-42));
    uints.push_back(v.AsUint().value_or(42));
    doubles.push_back(v.AsDouble().value_or(-42));
  }
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max(), kMin = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(ints, (std::vector<int64_t>{kMax, kMax, kMax, kMax, kMin, -42, -1}));  // a text is no number
  EXPECT_EQ(uints[0], static_cast<uint64_t>(kMax));
  EXPECT_EQ(uints[1], uint64_t{1} << 63);
  EXPECT_EQ(uints[2], ~uint64_t{0});
  EXPECT_EQ(uints[3], ~uint64_t{0});
  EXPECT_EQ(uints[4], 0u);
  EXPECT_EQ(doubles[3], 18446744073709551616.0);
  EXPECT_EQ(doubles[4], -9223372036854775808.0);
}

TEST(Json, ViewsSurviveAMove) {
  JsonDoc doc = Parse(R"({"name": "value"})");
  const JsonValue value = doc.root()["name"];
  const std::string_view text = *value.AsString();
  const JsonDoc moved = std::move(doc);
  EXPECT_EQ(text, "value");
  EXPECT_EQ(value.AsString(), "value");
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* text : {"", "{", "[1,]", "{\"a\": infinity}", "\"open", "Infinity2", "[1] x", "nul", "\"\\"}) {
    auto doc = JsonDoc::Parse(text);
    ASSERT_FALSE(doc) << text;
    EXPECT_EQ(doc.error().code, "E0112");
  }
}

}  // namespace
}  // namespace pt2onnx
