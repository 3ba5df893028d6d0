// JSON read into memory once, and light views on it. The only place that knows the JSON library.
//
// A view never fails: what is absent, null or of another kind gives an absent JsonValue, an empty range or nullopt, so that a reader can
// write value["graph"]["nodes"].Items() and check once. Views and texts live as long as their JsonDoc, which may be moved.
//
//   for (JsonValue node : doc.root()["nodes"].Items()) ...
//   for (auto [key, value] : doc.root()["tensor_values"].Members()) ...
//   if (auto arg = node["arg"].Sole()) if (arg->key == "as_int") use(arg->value.AsInt());
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "support/result.h"

namespace pt2onnx {

class JsonValue;
struct JsonMember;
template <class Child>
class JsonRange;
using JsonItems = JsonRange<JsonValue>;
using JsonMembers = JsonRange<JsonMember>;

class JsonValue {
 public:
  JsonValue() = default;

  explicit operator bool() const { return at_[0] != nullptr; }  // false: absent
  bool IsNull() const;                                          // null or absent
  bool IsObject() const;
  bool IsArray() const;
  bool IsString() const;
  bool IsBool() const;
  bool IsInt() const;     // an integer that fits in 64 bits, signed or unsigned
  bool IsDouble() const;  // written with a point or an exponent

  JsonValue operator[](std::string_view key) const;  // of an object
  JsonItems Items() const;                           // of an array
  JsonMembers Members() const;                       // of an object, in file order
  int64_t Size() const;                              // of an array or object, else 0
  std::optional<JsonMember> Sole() const;            // of an object with exactly one key, the form of a union

  std::optional<bool> AsBool() const;
  std::optional<std::string_view> AsString() const;
  std::optional<int64_t> AsInt() const;    // an integer; one that does not fit is clamped
  std::optional<uint64_t> AsUint() const;  // the same, clamped to unsigned
  std::optional<double> AsDouble() const;  // any number, or one of the texts "NaN", "Infinity", "-Infinity" (bare or quoted in the file)

 private:
  friend struct JsonAccess;
  std::array<const void*, 2> at_{};
};

struct JsonMember {
  std::string_view key;
  JsonValue value;
};

// The children of an array (JsonItems) or of an object (JsonMembers).
template <class Child>
class JsonRange {
 public:
  class Iterator {
   public:
    Child operator*() const;
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    friend class JsonRange;
    std::array<const void*, 2> at_{};
  };
  Iterator begin() const;
  Iterator end() const;
  bool empty() const { return begin() == end(); }

 private:
  friend class JsonValue;
  std::array<const void*, 2> parent_{};
};

class JsonDoc {
 public:
  // Bare NaN, Infinity and -Infinity, and integers of any length, are accepted. `readable_after` is the number of bytes behind the text that
  // may be read (not written): with 64 of them the text is not copied first. The text itself is not needed after the call.
  // The error (E0112) says what is wrong without naming the text: the caller does.
  static Result<JsonDoc> Parse(std::string_view text, int64_t readable_after = 0);

  JsonDoc(JsonDoc&&) noexcept;
  JsonDoc& operator=(JsonDoc&&) noexcept;
  ~JsonDoc();

  JsonValue root() const;

 private:
  struct State;
  explicit JsonDoc(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pt2onnx
