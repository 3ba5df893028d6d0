#include "ir/parse.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "ir/bind.h"
#include "ir/infer.h"
#include "ir/schema_parse.h"
#include "ir/sym_parse.h"
#include "ir/text.h"
#include "ir/text_reader.h"

namespace pt2onnx {
namespace {

class Parser : public TextReader {
 public:
  using TextReader::TextReader;

  Result<Graph*> Run() {
    for (SkipSpace(); PeekWord() == "op"; SkipSpace()) DeclareOp();
    Graph* graph = ParseGraph(true);
    SkipSpace();
    if (!failed() && at_ != text_.size()) Fail("expected the end");
    if (failed()) return Error{"E0148", message(), ""};
    return graph;
  }

 private:
  SymExpr Expr(std::string_view stops) {
    const size_t begin = (SkipSpace(), at_);
    const std::string_view text = Balanced(stops);
    if (text == "?") return SymExpr::Unknown();
    if (const auto x = Number<int64_t>(text)) return *x;
    if (text.empty()) {
      FailAt(begin, "expected a number or an expression");
      return 0;
    }
    Result<SymExpr> e = ParseInfix(context_.syms, context_.Intern(text));
    if (e) return *e;
    FailAt(begin, fmt::format("'{}' is no expression: {}", text, e.error().message));
    return 0;
  }

  // ---- types

  std::vector<SymExpr> Exprs(char close) {
    std::vector<SymExpr> dims;
    while (!failed() && Peek() != close) {
      dims.push_back(Expr(","));
      if (!Take(",")) break;
    }
    Expect(std::string_view(&close, 1));
    return dims;
  }

  Type ParseType() {
    Type type;
    type.kind = Kind::Tensor;
    const size_t begin = (SkipSpace(), at_);
    const auto number = [&](DType dtype) {
      type.kind = Kind::Sym;
      type.dtype = dtype;
      Expect("(");
      type.value = Expr("");
      Expect(")");
      return type;
    };
    std::string_view word = PeekWord();
    if (TakeWord("none")) return Type{};
    if (text_.substr(at_).starts_with("int(") && TakeWord("int")) return number(DType::I64);
    if (text_.substr(at_).starts_with("float(") && TakeWord("float")) return number(DType::F64);
    if (text_.substr(at_).starts_with("bool(") && TakeWord("bool")) return number(DType::Bool);
    if (TakeWord("opaque")) {
      type.kind = Kind::Opaque;
      word = PeekWord();
      if (!DTypeFromName(word) && Peek() != '?') return type;
    }
    if (Take("?")) {
      type.dtype = DType::Unknown;
    } else if (const auto dtype = DTypeFromName(word)) {
      at_ += word.size();
      type.dtype = *dtype;
    } else {
      FailAt(begin, "expected a type");
    }
    if (Take("[*]")) {
      type.ranked = false;
      return type;
    }
    Expect("[");
    type.shape = context_.arena.Copy(Exprs(']'));
    if (at_ < text_.size() && text_[at_] == '{') {
      ++at_;
      type.strides = context_.arena.Copy(Exprs('}'));
    }
    if (at_ < text_.size() && text_[at_] == '@') {
      ++at_;
      if (Take("(")) {
        type.offset = Expr("");
        Expect(")");
      } else {
        type.offset = Int();
      }
    }
    return type;
  }

  // ---- names

  using Scope = std::unordered_map<std::string_view, Value*>;

  std::string_view ValueName() {
    Expect("%");
    if (failed()) return {};
    if (at_ < text_.size() && text_[at_] == '"') return Quoted();
    const size_t begin = at_;
    while (at_ < text_.size() && IsNameChar(text_[at_])) ++at_;
    if (at_ == begin) Fail("expected a name");
    return text_.substr(begin, at_ - begin);
  }

  struct Pending {
    std::string_view name;
    bool quoted = false;
    size_t at = 0;
  };
  Pending PendingName() {
    SkipSpace();
    Pending name;
    name.at = at_;
    name.quoted = text_.substr(at_).starts_with("%\"");
    name.name = ValueName();
    return name;
  }
  // A number is no name: the value goes by its place in the text.
  Value* Define(const Pending& pending, const Type& type) {
    const bool number = !pending.quoted && std::all_of(pending.name.begin(), pending.name.end(), IsDigit);
    const bool nobody = !pending.quoted && pending.name == "_";
    Value* value = context_.NewValue(type, number || nobody ? std::string_view() : context_.Intern(pending.name));
    if (!failed() && !nobody && !scopes_.back().emplace(context_.Intern(pending.name), value).second)
      FailAt(pending.at, fmt::format("%{} is defined twice", pending.name));
    return value;
  }

  Value* Use() {
    const size_t begin = (SkipSpace(), at_);
    const std::string_view name = ValueName();
    for (size_t i = scopes_.size(); i-- > 0;)
      if (const auto found = scopes_[i].find(name); found != scopes_[i].end()) return found->second;
    FailAt(begin, fmt::format("%{} is not defined", name));
    return nullptr;
  }

  // ---- graphs

  void DeclareOp() {
    TakeWord("op");
    SkipSpace();
    const size_t begin = at_;
    at_ = std::min(text_.find_first_of("\n#", at_), text_.size());
    std::string_view schema = text_.substr(begin, at_ - begin);
    while (!schema.empty() && (schema.back() == ' ' || schema.back() == '\r')) schema.remove_suffix(1);
    Result<OpSchema> op = ParseSchema(schema, context_);
    if (op)
      context_.RegisterOp(*op);
    else
      FailAt(begin, op.error().message);
  }

  Graph* ParseGraph(bool top) {
    if (scopes_.size() > 64) Fail("graphs are nested too deeply");
    if (!TakeWord("graph")) Fail("expected 'graph'");
    Graph* graph = context_.NewGraph();
    if (Peek() == '"') {
      graph->name = Quoted();
    } else if (Peek() != '(') {
      graph->name = context_.Intern(PeekWord());
      at_ += graph->name.size();
    }
    scopes_.emplace_back();
    Expect("(");
    while (!failed() && Peek() != ')') {
      ParseInput(*graph, top);
      if (!Take(",")) break;
    }
    Expect(")");
    if (top && TakeWord("where")) ParseRanges();
    Expect("{");
    while (!failed() && PeekWord() != "return") ParseNode(*graph);
    TakeWord("return");
    while (!failed() && Peek() != '}') {
      ParseOutput(*graph, top);
      if (!Take(",")) break;
    }
    Expect("}");
    scopes_.pop_back();
    return graph;
  }

  void ParseInput(Graph& graph, bool top) {
    GraphInput& input = graph.inputs.emplace_back();
    input.kind = top ? InputKind::User : InputKind::Plain;
    const std::string_view word = PeekWord();
    const bool annotated = !word.empty();
    if (annotated) {
      const std::optional<InputKind> kind = InputKindOf(word);
      if (!kind) return Fail(fmt::format("'{}' is no kind of input", word));
      at_ += word.size();
      input.kind = *kind;
      if (Peek() == '"') input.target = Quoted();
      if (TakeWord("transient")) input.persistent = false;
      if (TakeWord("storage")) input.storage = static_cast<int>(Int());
      if (TakeWord("optional")) input.optional = true;
      Expect("=");
    }
    if (Peek() != '%') {
      input.constant = ParseArg();
      return;
    }
    const Pending name = PendingName();
    Type type = UnknownType();
    if (Take(":")) type = ParseType();
    input.value = Define(name, type);
    input.value->result = static_cast<uint32_t>(graph.inputs.size() - 1);
    if (top && !annotated) input.target = input.value->name;
    if (Take("=")) {
      Expect("tensor");
      input.data = ParseTensor();
    }
  }

  void ParseOutput(Graph& graph, bool top) {
    GraphOutput output;
    output.kind = top ? OutputKind::User : OutputKind::Plain;
    const std::string_view word = PeekWord();
    if (const std::optional<OutputKind> kind = OutputKindOf(word)) {
      at_ += word.size();
      output.kind = *kind;
      if (Peek() == '"') output.target = Quoted();
      if (TakeWord("storage")) output.storage = Quoted();
      Expect("=");
    }
    output.value = ParseArg();
    graph.outputs.push_back(output);
  }

  // lo <= expr <= hi, expr <= hi, lo <= expr
  void ParseRanges() {
    do {
      const size_t begin = (SkipSpace(), at_);
      std::string_view rest = Balanced(",{");
      std::vector<std::string_view> parts;
      for (size_t cut; (cut = rest.find(" <= ")) != rest.npos; rest = rest.substr(cut + 4)) parts.push_back(rest.substr(0, cut));
      parts.push_back(rest);
      std::optional<int64_t> lo = Number<int64_t>(parts.front()), hi;
      if (parts.size() > 1) hi = Number<int64_t>(parts.back());
      const size_t bounds = size_t{lo.has_value()} + size_t{hi.has_value()};
      if (bounds == 0 || parts.size() != bounds + 1) return FailAt(begin, "expected a range like 0 <= s0 <= 8");
      const Status set = SetRange(context_.syms, context_.Intern(parts[lo ? 1 : 0]), lo, hi);
      if (!set) return FailAt(begin, set.error().message);
    } while (!failed() && Take(","));
  }

  // ---- nodes

  static Type UnknownType() {
    Type type;
    type.kind = Kind::Tensor;
    type.ranked = false;
    return type;
  }

  struct ResultText {
    bool none = false, typed = false;
    Pending name;
    Type type;
  };

  void ParseNode(Graph& graph) {
    std::vector<ResultText> results;
    while (!failed() && (Peek() == '%' || PeekWord() == "_")) {
      ResultText& result = results.emplace_back();
      if (TakeWord("_")) {
        result.none = true;
      } else {
        result.name = PendingName();
        result.type = UnknownType();
        if ((result.typed = Take(":"))) result.type = ParseType();
      }
      if (!Take(",")) break;
    }
    if (!results.empty()) Expect("=");
    const size_t begin = (SkipSpace(), at_);
    while (at_ < text_.size() && (IsNameChar(text_[at_]) || text_[at_] == ':')) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    const OpSchema* op = failed() ? nullptr : context_.FindOp(name);
    if (!op) return FailAt(begin, fmt::format("'{}' is no operator that is known", name));

    Node* node = context_.arena.New<Node>();
    node->op = op;
    node->args = context_.arena.Copy(ParseArgs(*op));
    if (failed()) return;
    InferMissing(*node, results);
    std::vector<Value*> values;
    for (const ResultText& result : results) {
      Value* value = result.none ? nullptr : Define(result.name, result.type);
      if (value) {
        value->def = node;
        value->result = static_cast<uint32_t>(values.size());
      }
      values.push_back(value);
    }
    node->results = context_.arena.Copy(values);
    graph.nodes.push_back(node);
  }

  void InferMissing(const Node& node, std::vector<ResultText>& results) {
    if (std::all_of(results.begin(), results.end(), [](const ResultText& r) { return r.none || r.typed; })) return;
    for (const Arg& arg : node.args)  // nothing follows from what is not known
      if (Value* const* value = std::get_if<Value*>(&arg); value && *value && !(*value)->type.ranked) return;
    const std::vector<Type> types = InferTypes(context_, *node.op, node.args);
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].typed) continue;
      if (i < types.size())
        results[i].type = types[i];
      else if (const Value* written = WrittenAs(node, i))
        results[i].type = written->type;
    }
  }

  // The argument that a result is: of add_(%x, %y) it is %x.
  const Value* WrittenAs(const Node& node, size_t result) {
    if (result >= node.op->results.size() || !node.op->results[result].alias) return nullptr;
    for (size_t i = 0; i < node.args.size(); ++i) {
      const ArgSchema& schema = node.op->args[i];
      if (Value* const* value = std::get_if<Value*>(&node.args[i]); value && schema.writes && schema.alias == node.op->results[result].alias)
        return *value;
    }
    return nullptr;
  }

  std::vector<Arg> ParseArgs(const OpSchema& op) {
    std::vector<Arg> args(op.args.size());
    std::vector<bool> bound(op.args.size());
    size_t position = 0;
    Expect("(");
    while (!failed() && Peek() != ')') {
      const size_t begin = at_;
      size_t index = position++;
      const std::string_view word = PeekWord();
      const size_t after = at_ + word.size();
      if (!word.empty() && after < text_.size() && text_[after] == '=' && text_.substr(after, 2) != "==") {
        const int found = op.ArgIndex(word);
        if (found < 0) {
          Fail(fmt::format("{} has no argument '{}'", op.name, word));
          break;
        }
        index = static_cast<size_t>(found);
        at_ = after + 1;
      }
      Arg arg = ParseArg();
      if (index >= args.size())
        FailAt(begin, fmt::format("{} takes {} arguments", op.name, args.size()));
      else if (bound[index])
        FailAt(begin, fmt::format("argument '{}' is given twice", op.args[index].name));
      else if (!Coerce(context_, op.args[index], arg))
        FailAt(begin, fmt::format("this is nothing that {} takes as '{}'", op.name, op.args[index].name));
      if (failed()) break;
      args[index] = arg;
      bound[index] = true;
      if (!Take(",")) break;
    }
    Expect(")");
    for (size_t i = 0; i < args.size() && !failed(); ++i) {
      if (bound[i]) continue;
      if (op.args[i].has_default)
        args[i] = FillDefault(context_, op.args[i]);
      else if (!Coerce(context_, op.args[i], args[i]))
        Fail(fmt::format("{} needs an argument '{}'", op.name, op.args[i].name));
    }
    return args;
  }

  // ---- arguments

  Arg ParseArg() {
    const char c = Peek();
    if (c == '%') return Use();
    if (c == '"') return Quoted();
    if (c == '[') return ParseList();
    const std::string_view word = PeekWord();
    if (word == "graph") return ParseGraph(false);
    if (TakeWord("none")) return {};
    if (TakeWord("tensor")) return ParseTensor();
    if (word == "complex" && TakeWord(word)) {
      Expect("(");
      const double re = Double(Balanced(","));
      Expect(",");
      const double im = Double(Balanced(","));
      Expect(")");
      return std::complex<double>(re, im);
    }
    if (TakeWord("device")) {
      Expect("(");
      const Device device{Quoted()};
      Expect(")");
      return device;
    }
    if (TakeWord("memory_format")) {
      Expect("(");
      const MemoryFormat format{Int()};
      Expect(")");
      return format;
    }
    const size_t begin = at_;
    const std::string_view text = Balanced(",");
    if (text == "true") return true;
    if (text == "false") return false;
    if (const auto x = Number<int64_t>(text)) return *x;
    if (const auto x = MaybeDouble(text)) return *x;
    if (const auto dtype = DTypeFromName(text)) return *dtype;
    if (const auto code = MemoryFormatOf(text)) return MemoryFormat{*code};
    at_ = begin;
    return Expr(",");
  }

  std::optional<double> MaybeDouble(std::string_view text) {
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (text.empty() || !(IsDigit(text[0]) || text[0] == '-' || text[0] == '.')) return std::nullopt;
    return Number<double>(text);
  }
  double Double(std::string_view text) {
    const auto x = MaybeDouble(text);
    if (!x) Fail("expected a number");
    return x.value_or(0);
  }

  Arg ParseList() {
    const size_t begin = at_;
    Expect("[");
    std::vector<Arg> elements;
    while (!failed() && Peek() != ']') {
      elements.push_back(ParseArg());
      if (!Take(",")) break;
    }
    Expect("]");
    const Arg list = MakeList(context_, elements);
    if (IsNone(list)) FailAt(begin, "the elements of this list do not go together");
    return list;
  }

  const TensorData* ParseTensor() {
    TensorData* data = context_.arena.New<TensorData>();
    if (Peek() == '"') data->name = Quoted();
    const std::string_view word = PeekWord();
    const auto dtype = DTypeFromName(word);
    if (!dtype) {
      Fail("expected a dtype");
      return data;
    }
    at_ += word.size();
    data->dtype = *dtype;
    Expect("[");
    std::vector<int64_t> shape;
    while (!failed() && Peek() != ']') {
      shape.push_back(Int());
      if (!Take(",")) break;
    }
    Expect("]");
    data->shape = context_.arena.Copy(shape);
    if (Take("@")) {
      data->stored = true;
      data->file_offset = static_cast<uint64_t>(Int());
      Expect("+");
      data->file_length = static_cast<uint64_t>(Int());
    } else if (Take("0x")) {
      data->bytes = ParseHex();
    } else {
      ParseElements(*data);
    }
    return data;
  }

  std::span<const std::byte> ParseHex() {
    std::vector<std::byte> bytes;
    while (const auto byte = HexByte()) bytes.push_back(static_cast<std::byte>(*byte));
    return context_.arena.Copy(bytes);
  }

  template <class T>
  void AppendElement(std::vector<std::byte>& bytes, std::string_view text) {
    T x{};
    if constexpr (std::is_floating_point_v<T>) {
      // Through double a float would be rounded twice.
      if (const auto inf = MaybeDouble(text); inf && std::isinf(*inf))
        x = static_cast<T>(*inf);
      else if (const auto number = Number<T>(text))
        x = *number;
      else
        Fail("expected a number");
    } else {
      if (const auto number = Number<T>(text))
        x = *number;
      else
        Fail("expected an integer");
    }
    const std::byte* from = reinterpret_cast<const std::byte*>(&x);
    bytes.insert(bytes.end(), from, from + sizeof(T));
  }

  void ParseElements(TensorData& data) {
    std::vector<std::byte> bytes;
    Expect("[");
    while (!failed() && Peek() != ']') {
      const std::string_view text = Balanced(",");
      switch (data.dtype) {
        case DType::F32:
          AppendElement<float>(bytes, text);
          break;
        case DType::F64:
          AppendElement<double>(bytes, text);
          break;
        case DType::Bool:
        case DType::U8:
          AppendElement<uint8_t>(bytes, text);
          break;
        case DType::I8:
          AppendElement<int8_t>(bytes, text);
          break;
        case DType::I16:
          AppendElement<int16_t>(bytes, text);
          break;
        case DType::I32:
          AppendElement<int32_t>(bytes, text);
          break;
        case DType::I64:
          AppendElement<int64_t>(bytes, text);
          break;
        case DType::U16:
          AppendElement<uint16_t>(bytes, text);
          break;
        case DType::U32:
          AppendElement<uint32_t>(bytes, text);
          break;
        default:
          Fail("elements of this dtype are written as bytes, 0x...");
      }
      if (!Take(",")) break;
    }
    Expect("]");
    data.bytes = context_.arena.Copy(bytes);
  }

  std::vector<Scope> scopes_;
};

}  // namespace

Result<Graph*> Parse(Context& context, std::string_view text) { return Parser(context, text).Run(); }

}  // namespace pt2onnx
