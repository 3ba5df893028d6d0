#include "support/json.h"

#include <simdjson.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>

namespace pt2onnx {

namespace dom = simdjson::dom;

// A JsonValue is a dom::element in disguise: a pointer to the document and a position in it. So are ranges and iterators the library's.
struct JsonAccess {
  using Raw = std::array<const void*, 2>;
  template <class T>
  static T As(const Raw& raw) {
    static_assert(sizeof(T) == sizeof(Raw) && std::is_trivially_copyable_v<T>);
    return std::bit_cast<T>(raw);
  }
  template <class T>
  static Raw From(const T& value) {
    static_assert(sizeof(T) == sizeof(Raw) && std::is_trivially_copyable_v<T>);
    return std::bit_cast<Raw>(value);
  }
  static JsonValue Value(const dom::element& element) {
    JsonValue value;
    value.at_ = From(element);
    return value;
  }
  static dom::element Element(const JsonValue& value) { return As<dom::element>(value.at_); }
};

namespace {

constexpr int64_t kSizeSaturates = 0xFFFFFF;  // the library counts children in 24 bits

// The text of a number that JSON cannot hold and Quote() below has put in quotes: only integers of 19 digits and more are.
bool IsQuotedInteger(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return text.size() >= 19 && text.find_first_not_of("0123456789") == text.npos;
}

bool IsTokenByte(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' || c == '.'; }

bool NeedsQuotes(std::string_view token) {
  if (token == "NaN" || token == "Infinity" || token == "-Infinity") return true;
  if (!IsQuotedInteger(token)) return false;
  int64_t as_signed;
  uint64_t as_unsigned;
  return std::from_chars(token.data(), token.data() + token.size(), as_signed).ec != std::errc() &&
         std::from_chars(token.data(), token.data() + token.size(), as_unsigned).ec != std::errc();
}

// Puts tokens that strict JSON does not know (torch 2.5 and 2.6 write bare Infinity, ranges have integers beyond 64 bits) in quotes.
std::string Quote(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 64 + simdjson::SIMDJSON_PADDING);
  size_t at = 0;
  while (at < text.size()) {
    const size_t start = at;
    if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\';
      at = std::min(at + 1, text.size());
      out += text.substr(start, at - start);
    } else if (IsTokenByte(text[at])) {
      while (at < text.size() && IsTokenByte(text[at])) ++at;
      const std::string_view token = text.substr(start, at - start);
      if (NeedsQuotes(token)) {
        out.append(1, '"').append(token).append(1, '"');
      } else {
        out += token;
      }
    } else {
      out += text[at++];
    }
  }
  return out;
}

}  // namespace

struct JsonDoc::State {
  dom::document document;
};

JsonDoc::JsonDoc(std::unique_ptr<State> state) : state_(std::move(state)) {}
JsonDoc::JsonDoc(JsonDoc&&) noexcept = default;
JsonDoc& JsonDoc::operator=(JsonDoc&&) noexcept = default;
JsonDoc::~JsonDoc() = default;

Result<JsonDoc> JsonDoc::Parse(std::string_view text, int64_t readable_after) {
  if (text.data() == nullptr) text = "";  // nothing at all: simdjson would copy from a null pointer
  auto state = std::make_unique<State>();
  dom::parser parser;
  const bool copy = readable_after < static_cast<int64_t>(simdjson::SIMDJSON_PADDING);
  simdjson::error_code error = parser.parse_into_document(state->document, text.data(), text.size(), copy).error();
  if (error != simdjson::SUCCESS && error != simdjson::EMPTY && error != simdjson::MEMALLOC && error != simdjson::CAPACITY) {
    const std::string quoted = Quote(text);
    error = parser.parse_into_document(state->document, quoted.data(), quoted.size(), true).error();
  }
  if (error != simdjson::SUCCESS) return Error{"E0112", std::string("not valid JSON: ") + simdjson::error_message(error), ""};
  return JsonDoc(std::move(state));
}

JsonValue JsonDoc::root() const { return JsonAccess::Value(state_->document.root()); }

bool JsonValue::IsNull() const { return !*this || JsonAccess::Element(*this).is_null(); }
bool JsonValue::IsObject() const { return *this && JsonAccess::Element(*this).is_object(); }
bool JsonValue::IsArray() const { return *this && JsonAccess::Element(*this).is_array(); }
bool JsonValue::IsString() const { return *this && JsonAccess::Element(*this).is_string(); }
bool JsonValue::IsBool() const { return *this && JsonAccess::Element(*this).is_bool(); }
bool JsonValue::IsDouble() const { return *this && JsonAccess::Element(*this).type() == dom::element_type::DOUBLE; }
bool JsonValue::IsInt() const {
  if (!*this) return false;
  const dom::element_type type = JsonAccess::Element(*this).type();
  return type == dom::element_type::INT64 || type == dom::element_type::UINT64;
}

JsonValue JsonValue::operator[](std::string_view key) const {
  if (!IsObject()) return {};
  dom::object object;
  dom::element found;
  if (JsonAccess::Element(*this).get(object) != simdjson::SUCCESS || object.at_key(key).get(found) != simdjson::SUCCESS) return {};
  return JsonAccess::Value(found);
}

JsonItems JsonValue::Items() const {
  JsonItems items;
  dom::array array;
  if (*this && JsonAccess::Element(*this).get(array) == simdjson::SUCCESS) items.parent_ = JsonAccess::From(array);
  return items;
}

JsonMembers JsonValue::Members() const {
  JsonMembers members;
  dom::object object;
  if (*this && JsonAccess::Element(*this).get(object) == simdjson::SUCCESS) members.parent_ = JsonAccess::From(object);
  return members;
}

int64_t JsonValue::Size() const {
  if (!*this) return 0;
  dom::array array;
  dom::object object;
  int64_t size = 0;
  if (JsonAccess::Element(*this).get(array) == simdjson::SUCCESS) {
    size = static_cast<int64_t>(array.size());
    if (size >= kSizeSaturates) size = std::distance(array.begin(), array.end());
  } else if (JsonAccess::Element(*this).get(object) == simdjson::SUCCESS) {
    size = static_cast<int64_t>(object.size());
    if (size >= kSizeSaturates) size = std::distance(object.begin(), object.end());
  }
  return size;
}

std::optional<JsonMember> JsonValue::Sole() const {
  const JsonMembers members = Members();
  JsonMembers::Iterator it = members.begin();
  if (it == members.end()) return std::nullopt;
  const JsonMember sole = *it;
  if (!(++it == members.end())) return std::nullopt;
  return sole;
}

std::optional<bool> JsonValue::AsBool() const {
  bool value;
  if (!*this || JsonAccess::Element(*this).get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

std::optional<std::string_view> JsonValue::AsString() const {
  std::string_view value;
  if (!*this || JsonAccess::Element(*this).get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

std::optional<int64_t> JsonValue::AsInt() const {
  if (IsInt()) {
    int64_t value;
    if (JsonAccess::Element(*this).get(value) == simdjson::SUCCESS) return value;
    return std::numeric_limits<int64_t>::max();  // fits an unsigned number only
  }
  const auto text = AsString();
  if (!text || !IsQuotedInteger(*text)) return std::nullopt;
  return (*text)[0] == '-' ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

std::optional<uint64_t> JsonValue::AsUint() const {
  if (IsInt()) {
    uint64_t value;
    if (JsonAccess::Element(*this).get(value) == simdjson::SUCCESS) return value;
    return 0;  // negative
  }
  const auto text = AsString();
  if (!text || !IsQuotedInteger(*text)) return std::nullopt;
  return (*text)[0] == '-' ? 0 : std::numeric_limits<uint64_t>::max();
}

std::optional<double> JsonValue::AsDouble() const {
  if (!*this) return std::nullopt;
  double value;
  if (JsonAccess::Element(*this).get(value) == simdjson::SUCCESS) return value;
  const auto text = AsString();
  if (!text) return std::nullopt;
  if (*text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (*text == "Infinity") return std::numeric_limits<double>::infinity();
  if (*text == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (IsQuotedInteger(*text)) return std::strtod(std::string(*text).c_str(), nullptr);
  return std::nullopt;
}

namespace {

template <class Child>
using Parent = std::conditional_t<std::is_same_v<Child, JsonMember>, dom::object, dom::array>;

JsonValue ChildAt(dom::array::iterator it) { return JsonAccess::Value(*it); }
JsonMember ChildAt(dom::object::iterator it) { return {it.key(), JsonAccess::Value(it.value())}; }

}  // namespace

template <class Child>
typename JsonRange<Child>::Iterator JsonRange<Child>::begin() const {
  Iterator it;
  if (parent_[0] != nullptr) it.at_ = JsonAccess::From(JsonAccess::As<Parent<Child>>(parent_).begin());
  return it;
}

template <class Child>
typename JsonRange<Child>::Iterator JsonRange<Child>::end() const {
  Iterator it;
  if (parent_[0] != nullptr) it.at_ = JsonAccess::From(JsonAccess::As<Parent<Child>>(parent_).end());
  return it;
}

template <class Child>
Child JsonRange<Child>::Iterator::operator*() const {
  return ChildAt(JsonAccess::As<typename Parent<Child>::iterator>(at_));
}

template <class Child>
typename JsonRange<Child>::Iterator& JsonRange<Child>::Iterator::operator++() {
  auto it = JsonAccess::As<typename Parent<Child>::iterator>(at_);
  at_ = JsonAccess::From(++it);
  return *this;
}

template class JsonRange<JsonValue>;
template class JsonRange<JsonMember>;

}  // namespace pt2onnx
