#include "ir/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/print.h"

namespace pt2onnx {
namespace {

struct InputWord {
  InputKind kind;
  std::string_view word;
};
struct OutputWord {
  OutputKind kind;
  std::string_view word;
};
struct FormatWord {
  int64_t code;
  std::string_view word;
};
constexpr InputWord kInputWords[] = {{InputKind::User, "user"},         {InputKind::Parameter, "parameter"}, {InputKind::Buffer, "buffer"},
                                     {InputKind::Constant, "constant"}, {InputKind::Token, "token"},         {InputKind::Opaque, "object"},
                                     {InputKind::Plain, "plain"}};
constexpr OutputWord kOutputWords[] = {{OutputKind::User, "user"},
                                       {OutputKind::BufferMutation, "buffer"},
                                       {OutputKind::ParameterMutation, "parameter"},
                                       {OutputKind::InputMutation, "input"},
                                       {OutputKind::Plain, "plain"}};
constexpr FormatWord kFormatWords[] = {{1, "contiguous_format"}, {2, "channels_last"}, {3, "channels_last_3d"}, {4, "preserve_format"}};

constexpr std::string_view kArgTypes[] = {
    "Tensor", "Tensor[]", "Tensor?[]", "int",      "SymInt",     "int[]",  "SymInt[]", "float",        "float[]",   "bool",  "bool[]",
    "str",    "str[]",    "Scalar",    "Scalar[]", "ScalarType", "Layout", "Device",   "MemoryFormat", "Generator", "Graph", "Any",
};

template <class List>
void AppendList(std::string& out, const List& list, auto append) {
  out += '[';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) out += ", ";
    append(list[i]);
  }
  out += ']';
}

template <class T>
T Element(const TensorData& data, size_t i) {
  T x;
  std::memcpy(&x, data.bytes.data() + i * sizeof(T), sizeof(T));
  return x;
}

// Only where each element can be told from its text.
template <class T>
bool AppendNumbers(std::string& out, const TensorData& data) {
  const size_t n = data.bytes.size() / sizeof(T);
  if constexpr (std::is_floating_point_v<T>) {
    for (size_t i = 0; i < n; ++i)
      if (std::isnan(Element<T>(data, i))) return false;
  }
  out += '[';
  for (size_t i = 0; i < n; ++i) {
    if (i) out += ", ";
    if constexpr (std::is_same_v<T, float>) {
      const float x = Element<T>(data, i);
      std::string text = fmt::format("{}", x);
      if (text.find_first_of(".enfa") == std::string::npos) text += '.';
      out += text;
    } else if constexpr (std::is_same_v<T, double>) {
      AppendDouble(out, Element<T>(data, i));
    } else {
      out += fmt::format("{}", static_cast<int64_t>(Element<T>(data, i)));
    }
  }
  out += ']';
  return true;
}

}  // namespace

std::string_view InputKindWord(InputKind kind) {
  for (const InputWord& row : kInputWords)
    if (row.kind == kind) return row.word;
  PT2ONNX_UNREACHABLE();
}

std::string_view OutputKindWord(OutputKind kind) {
  for (const OutputWord& row : kOutputWords)
    if (row.kind == kind) return row.word;
  PT2ONNX_UNREACHABLE();
}

std::optional<InputKind> InputKindOf(std::string_view word) {
  for (const InputWord& row : kInputWords)
    if (row.word == word) return row.kind;
  return std::nullopt;
}

std::optional<OutputKind> OutputKindOf(std::string_view word) {
  for (const OutputWord& row : kOutputWords)
    if (row.word == word) return row.kind;
  return std::nullopt;
}

std::string_view MemoryFormatWord(int64_t code) {
  for (const FormatWord& row : kFormatWords)
    if (row.code == code) return row.word;
  return {};
}

std::optional<int64_t> MemoryFormatOf(std::string_view word) {
  for (const FormatWord& row : kFormatWords)
    if (row.word == word) return row.code;
  return std::nullopt;
}

bool IsNameChar(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.'; }

std::string NameText(std::string_view name) {
  const bool number = std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!number && name != "_" && std::all_of(name.begin(), name.end(), IsNameChar)) return std::string(name);
  std::string out;
  AppendQuoted(out, name);
  return out;
}

namespace {
std::string AliasText(char alias, bool writes) { return alias ? fmt::format("({}{})", alias, writes ? "!" : "") : ""; }
}  // namespace

std::string SchemaText(const OpSchema& op) {
  std::string out(op.name);
  out += '(';
  const char* separator = "";
  bool starred = false;
  for (const ArgSchema& arg : op.args) {
    out += separator;
    separator = ", ";
    if (arg.keyword_only && !starred) {
      out += "*, ";
      starred = true;
    }
    out += kArgTypes[static_cast<size_t>(arg.type)];
    out += AliasText(arg.alias, arg.writes);
    if (arg.optional) out += '?';
    out += fmt::format(" {}", arg.name);
    if (arg.has_default) out += fmt::format("={}", arg.default_text);
  }
  out += ") -> (";
  separator = "";
  for (const ResultSchema& result : op.results) {
    out += separator;
    separator = ", ";
    out += !result.tensor ? "Scalar" : result.list ? "Tensor[]" : "Tensor";
    out += AliasText(result.alias, false);
  }
  out += ')';
  return out;
}

void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      out += c;
  }
  out += '"';
}

void AppendDouble(std::string& out, double x) {
  if (std::isnan(x)) {
    out += "nan";
    return;
  }
  std::string text = fmt::format("{}", x);
  if (text.ends_with(".0")) text.pop_back();
  if (text.find_first_of(".enfa") == std::string::npos) text += '.';
  out += text;
}

void AppendExpr(std::string& out, SymExpr e) {
  if (e.IsUnknown())
    out += '?';
  else if (const auto x = e.TryFloat())
    AppendDouble(out, *x);
  else
    out += ToString(e);
}

bool IsRowMajor(const Type& type) {
  if (type.strides.size() != type.shape.size()) return type.strides.empty();
  SymExpr expected = 1;
  for (size_t i = type.shape.size(); i-- > 0;) {
    if (!type.strides[i].IsSame(expected)) return false;
    expected *= type.shape[i].IsConst() ? SymExpr(std::max<int64_t>(type.shape[i].Const(), 1)) : type.shape[i];
  }
  return true;
}

void AppendType(std::string& out, const Type& type) {
  switch (type.kind) {
    case Kind::None:
      out += "none";
      return;
    case Kind::Sym:
      out += type.dtype == DType::Bool ? "bool(" : type.dtype == DType::F64 ? "float(" : "int(";
      AppendExpr(out, type.value);
      out += ')';
      return;
    case Kind::Opaque:
      out += "opaque";
      if (type.dtype == DType::Unknown && type.shape.empty()) return;
      out += ' ';
      break;
    case Kind::Tensor:
      break;
  }
  const auto append = [&](SymExpr e) { AppendExpr(out, e); };
  out += Name(type.dtype);
  if (!type.ranked) {
    out += "[*]";
    return;
  }
  AppendList(out, type.shape, append);
  if (!IsRowMajor(type)) {
    AppendList(out, type.strides, append);
    out[out.rfind('[')] = '{';
    out.back() = '}';
  }
  if (type.offset.IsSame(0)) return;
  out += '@';
  if (!type.offset.IsConst()) out += '(';
  append(type.offset);
  if (!type.offset.IsConst()) out += ')';
}

void AppendPlainArg(std::string& out, const Arg& arg) {
  std::visit(
      [&]<class T>(const T& x) {
        if constexpr (std::is_same_v<T, std::monostate>) {
          out += "none";
        } else if constexpr (std::is_same_v<T, bool>) {
          out += x ? "true" : "false";
        } else if constexpr (std::is_same_v<T, int64_t>) {
          out += fmt::format("{}", x);
        } else if constexpr (std::is_same_v<T, double>) {
          AppendDouble(out, x);
        } else if constexpr (std::is_same_v<T, std::complex<double>>) {
          out += "complex(";
          AppendDouble(out, x.real());
          out += ", ";
          AppendDouble(out, x.imag());
          out += ')';
        } else if constexpr (std::is_same_v<T, SymExpr>) {
          AppendExpr(out, x);
        } else if constexpr (std::is_same_v<T, std::string_view>) {
          AppendQuoted(out, x);
        } else if constexpr (std::is_same_v<T, DType>) {
          out += Name(x);
        } else if constexpr (std::is_same_v<T, MemoryFormat>) {
          const std::string_view word = MemoryFormatWord(x.code);
          out += word.empty() ? fmt::format("memory_format({})", x.code) : std::string(word);
        } else if constexpr (std::is_same_v<T, Device>) {
          out += "device(";
          AppendQuoted(out, x.name);
          out += ')';
        } else if constexpr (std::is_same_v<T, Ints> || std::is_same_v<T, Dims> || std::is_same_v<T, Doubles> || std::is_same_v<T, Bools> ||
                             std::is_same_v<T, Texts>) {
          AppendList(out, x, [&](const auto& element) { AppendPlainArg(out, Arg(element)); });
        } else {
          PT2ONNX_UNREACHABLE();  // values, graphs and constants need the printer
        }
      },
      arg);
}

bool AppendElements(std::string& out, const TensorData& data) {
  switch (data.dtype) {
    case DType::F32:
      return AppendNumbers<float>(out, data);
    case DType::F64:
      return AppendNumbers<double>(out, data);
    case DType::Bool:
    case DType::U8:
      return AppendNumbers<uint8_t>(out, data);
    case DType::I8:
      return AppendNumbers<int8_t>(out, data);
    case DType::I16:
      return AppendNumbers<int16_t>(out, data);
    case DType::I32:
      return AppendNumbers<int32_t>(out, data);
    case DType::I64:
      return AppendNumbers<int64_t>(out, data);
    case DType::U16:
      return AppendNumbers<uint16_t>(out, data);
    case DType::U32:
      return AppendNumbers<uint32_t>(out, data);
    default:
      return false;
  }
}

void AppendHex(std::string& out, std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "0x";
  for (const std::byte b : bytes) {
    out += kDigits[static_cast<size_t>(b) >> 4];
    out += kDigits[static_cast<size_t>(b) & 15];
  }
}

}  // namespace pt2onnx
