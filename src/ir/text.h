// Words of the text form that the printer and the parser share. See print.h.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace pt2onnx {

std::string_view InputKindWord(InputKind kind);
std::string_view OutputKindWord(OutputKind kind);
std::optional<InputKind> InputKindOf(std::string_view word);
std::optional<OutputKind> OutputKindOf(std::string_view word);
std::string_view MemoryFormatWord(int64_t code);  // empty: none
std::optional<int64_t> MemoryFormatOf(std::string_view word);

bool IsNameChar(char c);
std::string NameText(std::string_view name);  // quoted where it is no plain word, or could be taken for a number
std::string SchemaText(const OpSchema& op);   // torch's schema language

void AppendQuoted(std::string& out, std::string_view text);
void AppendDouble(std::string& out, double x);  // shortest that reads back, always told from an integer: 1., 1e-05, inf
void AppendExpr(std::string& out, SymExpr e);
void AppendType(std::string& out, const Type& type);
void AppendPlainArg(std::string& out, const Arg& arg);  // numbers, texts, and lists of them

// Elements as numbers. False where the dtype has no exact short form.
bool AppendElements(std::string& out, const TensorData& data);
void AppendHex(std::string& out, std::span<const std::byte> bytes);

}  // namespace pt2onnx
