// Recursive descent over the text; tools/schema_text.py reads the same language for the generated table, and a test compares them.
#include "ir/schema_parse.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace pt2onnx {
namespace {

bool IsWord(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

struct NamedType {
  std::string_view name;
  ArgType one, list;  // T, T[]; Any: no type of ours
};
constexpr NamedType kTypes[] = {
    {"Tensor", ArgType::Tensor, ArgType::TensorList}, {"int", ArgType::Int, ArgType::IntList},
    {"SymInt", ArgType::SymInt, ArgType::SymIntList}, {"float", ArgType::Float, ArgType::FloatList},
    {"bool", ArgType::Bool, ArgType::BoolList},       {"str", ArgType::Str, ArgType::StrList},
    {"Scalar", ArgType::Scalar, ArgType::ScalarList}, {"complex", ArgType::Scalar, ArgType::Any},
    {"ScalarType", ArgType::DType, ArgType::Any},     {"Layout", ArgType::Layout, ArgType::Any},
    {"Device", ArgType::Device, ArgType::Any},        {"MemoryFormat", ArgType::MemoryFormat, ArgType::Any},
    {"Generator", ArgType::Generator, ArgType::Any},  {"Graph", ArgType::Graph, ArgType::Any},
    {"int64_t", ArgType::Int, ArgType::Any},
};

struct ParsedType {
  ArgType type = ArgType::Any;
  bool list = false, optional = false, writes = false, tensor = false;
  char alias = 0;
  int list_size = 0;
};

class SchemaParser {
 public:
  SchemaParser(std::string_view text, Context& context) : text_(context.Intern(text)), context_(context) {}

  Result<OpSchema> Parse() {
    OpSchema op{};
    const size_t open = text_.find('(');
    op.name = text_.substr(0, open);
    const size_t colons = op.name.find("::");
    if (open == text_.npos || colons == op.name.npos || colons == 0 || colons + 2 == op.name.size()) return Fail("a name, 'namespace::op('");
    if (!std::all_of(op.name.begin(), op.name.end(), [](char c) { return IsWord(c) || c == ':' || c == '.'; }))
      return Fail("a name, 'namespace::op('");
    at_ = open + 1;
    std::vector<ArgSchema> args;
    if (!Args(args)) return Fail(expected_);
    std::vector<ResultSchema> results;
    if (!Take("->")) return Fail("'->'");
    if (!Results(results)) return Fail(expected_);
    Skip();
    if (at_ != text_.size()) return Fail("the end");
    op.args = context_.arena.Copy(args);
    op.results = context_.arena.Copy(results);
    Classify(op);
    return op;
  }

 private:
  Result<OpSchema> Fail(std::string_view expected) const {
    return Error{"E0149",
                 fmt::format("the schema '{}' can't be read: expected {} at '{}'", text_, expected, text_.substr(std::min(at_, text_.size()))),
                 "write it as torch does, for example 'my::op(Tensor x, int n=1) -> Tensor'"};
  }
  bool Expect(std::string_view what) {
    expected_ = what;
    return false;
  }

  void Skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool Take(std::string_view token) {
    Skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  bool Peek(char c) {
    Skip();
    return at_ < text_.size() && text_[at_] == c;
  }
  std::string_view Word() {
    Skip();
    const size_t start = at_;
    while (at_ < text_.size() && (IsWord(text_[at_]) || text_[at_] == '.')) ++at_;  // dots: __torch__.torch.classes.x
    return text_.substr(start, at_ - start);
  }

  // (a), (a!), (a -> *), (a|b)
  bool Alias(ParsedType& type) {
    if (at_ >= text_.size() || text_[at_] != '(') return true;
    const size_t close = text_.find(')', at_);
    if (close == text_.npos || at_ + 1 == close) return Expect("an alias set like '(a!)'");
    const std::string_view inside = text_.substr(at_ + 1, close - at_ - 1);
    if (inside[0] >= 'a' && inside[0] <= 'z') type.alias = inside[0];  // (*): any; Dict(Tensor, Tensor)
    type.writes = inside.find('!') != inside.npos;
    at_ = close + 1;
    return true;
  }

  // Name alias? ('[' n? ']' | '?')* with an alias anywhere between.
  bool Type(ParsedType& type) {
    const std::string_view name = Word();
    if (name.empty()) return Expect("a type");
    const auto* known = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const NamedType& t) { return t.name == name; });
    type.type = known == std::end(kTypes) ? ArgType::Any : known->one;
    type.tensor = type.type == ArgType::Tensor;
    for (;;) {
      if (!Alias(type)) return false;
      if (at_ < text_.size() && text_[at_] == '?') {
        ++at_;
        type.optional = true;
      } else if (at_ < text_.size() && text_[at_] == '[') {
        const size_t close = text_.find(']', at_);
        if (close == text_.npos) return Expect("']'");
        type.list_size = 0;
        std::from_chars(text_.data() + at_ + 1, text_.data() + close, type.list_size);
        at_ = close + 1;
        const bool of_optionals = type.optional;
        if (type.list || known == std::end(kTypes))
          type.type = ArgType::Any;  // a list of lists
        else if (of_optionals)
          type.type = known->one == ArgType::Tensor ? ArgType::OptTensorList : ArgType::Any;
        else
          type.type = known->list;
        type.list = true;
        type.optional = false;
      } else {
        break;
      }
    }
    if (type.type == ArgType::Any) type.list_size = 0, type.tensor = false;
    return true;
  }

  bool Args(std::vector<ArgSchema>& args) {
    bool keyword_only = false;
    if (Take(")")) return true;
    do {
      if (Take("*")) {
        keyword_only = true;
        continue;
      }
      ParsedType type;
      if (!Type(type)) return false;
      ArgSchema arg{
          .name = Word(), .type = type.type, .optional = type.optional, .keyword_only = keyword_only, .writes = type.writes, .alias = type.alias};
      arg.list_size = type.list_size;
      if (arg.name.empty()) return Expect("the argument's name");
      if (Take("=")) {
        arg.has_default = true;
        if (!Default(arg.default_text)) return false;
      }
      args.push_back(arg);
    } while (Take(","));
    return Take(")") || Expect("',' or ')'");
  }

  // A number, a word, "text", or [a, b].
  bool Default(std::string_view& text) {
    Skip();
    const size_t start = at_;
    if (Peek('"')) {
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) at_ += text_[at_] == '\\';
      if (at_++ >= text_.size()) return Expect("the text's end");
    } else if (Peek('[')) {
      at_ = text_.find(']', at_);
      if (at_++ == text_.npos) return Expect("']'");
    } else {
      while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')') ++at_;
      while (at_ > start && text_[at_ - 1] == ' ') --at_;
    }
    text = text_.substr(start, at_ - start);
    return !text.empty() || Expect("a default value");
  }

  bool Results(std::vector<ResultSchema>& results) {
    const bool several = Take("(");
    if (several && Take(")")) return true;
    do {
      ParsedType type;
      if (!Type(type)) return false;
      results.push_back({.name = Word(), .list = type.list, .alias = type.alias, .tensor = type.tensor});
    } while (several && Take(","));
    return !several || Take(")") || Expect("',' or ')'");
  }

  static void Classify(OpSchema& op) {
    bool writes = false, aliases = false, only_out = true;
    for (const ArgSchema& arg : op.args) {
      writes |= arg.writes;
      aliases |= arg.alias != 0;
      only_out &= !arg.writes || arg.keyword_only;
    }
    if (writes) {
      op.kind = only_out ? OpKind::Out : OpKind::Inplace;
    } else if (aliases) {
      op.kind = OpKind::View;
      op.view = ViewClass::Other;
    } else if (op.results.empty()) {
      op.traits |= kEffect;
    }
  }

  std::string_view text_;
  Context& context_;
  size_t at_ = 0;
  std::string_view expected_;
};

// "1", "-1.5", "1e-05", "True"; as torch prints them.
std::optional<double> FloatOf(std::string_view text) {
  if (text == "True") return 1;
  if (text == "False") return 0;
  double x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(x) : std::nullopt;
}

std::optional<int64_t> IntOf(std::string_view text) {
  int64_t x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error == std::errc() && end == text.data() + text.size()) return x;
  if (const std::optional<double> f = FloatOf(text)) return static_cast<int64_t>(*f);
  return std::nullopt;
}

std::string_view Unquote(Context& context, std::string_view text) {
  if (text.size() < 2 || text[0] != '"') return text;
  std::string plain;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '\\') ++i;
    plain += text[i];
  }
  return context.Intern(plain);
}

template <class T, class Convert>
Arg FillList(Context& context, const ArgSchema& arg, Convert convert) {
  std::string_view text = arg.default_text;
  std::vector<T> values;
  if (!text.starts_with("[")) {
    if (const auto x = convert(text)) values.assign(static_cast<size_t>(std::max(arg.list_size, 1)), T(*x));
  } else {
    text = text.substr(1, text.size() - 2);
    while (!text.empty()) {
      const size_t comma = text.find(',');
      if (const auto x = convert(text.substr(0, comma))) values.push_back(T(*x));
      text = comma == text.npos ? "" : text.substr(text.find_first_not_of(" ,", comma));
    }
  }
  T* out = static_cast<T*>(context.arena.Allocate(sizeof(T) * (values.size() + 1), alignof(T)));
  std::uninitialized_copy(values.begin(), values.end(), out);
  return std::span<const T>(out, values.size());
}

// c10::ScalarType's number, or a name.
Arg FillDType(std::string_view text) {
  if (text.starts_with("torch.")) text.remove_prefix(6);
  for (int i = 1; i <= static_cast<int>(DType::String); ++i)
    if (Facts(static_cast<DType>(i)).torch == text) return static_cast<DType>(i);
  const std::optional<int64_t> code = IntOf(text);
  if (!code) return {};
  const int64_t pt2 = *code == 15 ? 13 : *code + 1;  // the .pt2 numbers them from 1 and has bfloat16 after bool
  const std::optional<DType> dtype = DTypeFromPt2(pt2);
  return dtype ? Arg(*dtype) : Arg();
}

// c10::MemoryFormat's number (contiguous, preserve, channels_last, channels_last_3d), or a name -> the .pt2's code.
Arg FillMemoryFormat(std::string_view text) {
  constexpr std::string_view kNames[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};
  constexpr int64_t kCodes[] = {1, 4, 2, 3};
  if (text.starts_with("torch.")) text.remove_prefix(6);
  for (size_t i = 0; i < 4; ++i)
    if (text == kNames[i] || text == std::string_view("0123").substr(i, 1)) return MemoryFormat{kCodes[i]};
  return {};
}

template <class T>
Arg OrNone(const std::optional<T>& x) {
  return x ? Arg(*x) : Arg();
}

}  // namespace

Result<OpSchema> ParseSchema(std::string_view text, Context& context) { return SchemaParser(text, context).Parse(); }

Arg FillDefault(Context& context, const ArgSchema& arg) {
  const std::string_view text = arg.default_text;
  if (!arg.has_default || text == "None") return {};
  const auto as_bool = [](std::string_view t) -> std::optional<bool> {
    const std::optional<double> x = FloatOf(t);
    return x ? std::optional(*x != 0) : std::nullopt;
  };
  switch (arg.type) {
    case ArgType::Int:
      return OrNone(IntOf(text));
    case ArgType::SymInt:
      return IntOf(text) ? Arg(SymExpr(*IntOf(text))) : Arg();
    case ArgType::Float:
      return OrNone(FloatOf(text));
    case ArgType::Bool:
      return OrNone(as_bool(text));
    case ArgType::Str:
      return Unquote(context, text);
    case ArgType::Scalar:
      if (text == "True" || text == "False") return text == "True";
      if (text.find_first_of(".en") != text.npos) return OrNone(FloatOf(text));  // 1., 1e-05, inf, nan
      return OrNone(IntOf(text));
    case ArgType::IntList:
      return FillList<int64_t>(context, arg, IntOf);
    case ArgType::SymIntList:
      return FillList<SymExpr>(context, arg, IntOf);
    case ArgType::FloatList:
    case ArgType::ScalarList:
      return FillList<double>(context, arg, FloatOf);
    case ArgType::BoolList:
      return FillList<bool>(context, arg, as_bool);
    case ArgType::Tensor:
      return OrNone(FloatOf(text));
    case ArgType::TensorList:
    case ArgType::OptTensorList:
      return ValueList();
    case ArgType::StrList:
      return Texts();
    case ArgType::DType:
      return FillDType(text);
    case ArgType::MemoryFormat:
      return FillMemoryFormat(text);
    case ArgType::Layout:
    case ArgType::Device:
    case ArgType::Generator:
    case ArgType::Graph:
    case ArgType::Any:
      return {};
  }
  return {};
}

}  // namespace pt2onnx
