#include "ir/print.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/bind.h"
#include "ir/location.h"
#include "ir/op_table.h"
#include "ir/schema_parse.h"
#include "ir/text.h"

namespace pt2onnx {
namespace {

constexpr int64_t kShortTensor = 16;  // elements of a constant that are written as numbers
constexpr size_t kLine = 120;         // longer lists of inputs get a line each

using Ids = std::unordered_set<uint32_t>;

template <class Use>
void ForEachOperand(const Arg& arg, Use use) {
  if (Value* const* value = std::get_if<Value*>(&arg)) {
    if (*value) use(**value);
  } else if (const ValueList* list = std::get_if<ValueList>(&arg)) {
    for (const Value* value : *list)
      if (value) use(*value);
  }
}

class Printer {
 public:
  Printer(Context& context, const PrintOptions& options) : context_(context), options_(options) {}

  std::string Program(const Graph& graph) {
    FindCaptures(graph);
    DeclareOps(graph);
    PrintGraph(graph, 0);
    out_ += '\n';
    return std::move(out_);
  }

  std::string Line(const Node& node) {
    one_line_ = true;
    PrintNode(node, 0);
    return std::move(out_);
  }

 private:
  // Values of outer graphs that a graph reads, those that its own sub-graphs read included.
  const Ids& FindCaptures(const Graph& graph) {
    Ids own, captured;
    for (const GraphInput& input : graph.inputs)
      if (input.value) own.insert(input.value->id);
    const auto read = [&](const Value& value) {
      if (!own.count(value.id)) captured.insert(value.id);
    };
    for (const Node* node : graph.nodes) {
      for (const Arg& arg : node->args) {
        ForEachOperand(arg, read);
        if (Graph* const* body = std::get_if<Graph*>(&arg)) {
          for (const uint32_t id : FindCaptures(**body))
            if (!own.count(id)) captured.insert(id);
        }
      }
      for (const Value* result : node->results)
        if (result) own.insert(result->id);
    }
    for (const GraphOutput& output : graph.outputs) ForEachOperand(output.value, read);
    return captures_[&graph] = std::move(captured);
  }

  void DeclareOps(const Graph& graph) {
    std::vector<const OpSchema*> found;
    CollectOps(graph, found);
    for (const OpSchema* op : found)
      if (context_.FindOp(op->name) == op) out_ += "op " + SchemaText(*op) + "\n";  // of a name that grew, the last one has all arguments
    if (!found.empty()) out_ += '\n';
  }

  void CollectOps(const Graph& graph, std::vector<const OpSchema*>& found) {
    for (const Node* node : graph.nodes) {
      if (!FindOpInTable(node->op->name)) {
        const OpSchema* op = context_.FindOp(node->op->name);
        if (std::find(found.begin(), found.end(), op) == found.end()) found.push_back(op);
      }
      for (const Arg& arg : node->args)
        if (Graph* const* body = std::get_if<Graph*>(&arg)) CollectOps(**body, found);
    }
  }

  // ---- names

  struct Scope {
    std::unordered_set<std::string> taken;
    std::unordered_map<std::string, int> next;  // suffix to try
  };

  std::string Unique(const Value& value) {
    if (value.name.empty()) return std::to_string(next_number_++);
    std::string name = NameText(value.name);
    if (scope_.taken.insert(name).second) return name;
    for (int& k = scope_.next[name];;) {
      std::string other = NameText(fmt::format("{}.{}", value.name, ++k));
      if (scope_.taken.insert(other).second) return other;
    }
  }

  const std::string& NameOf(const Value& value) {
    const auto [place, fresh] = names_.try_emplace(value.id);
    if (fresh) place->second = one_line_ ? (value.name.empty() ? std::to_string(value.id) : NameText(value.name)) : Unique(value);
    return place->second;
  }

  void Define(const Value& value) {
    out_ += '%';
    out_ += NameOf(value);
    const bool unknown = value.type.kind == Kind::Tensor && !value.type.ranked && value.type.dtype == DType::Unknown;
    if (options_.types && !unknown) {
      out_ += ": ";
      AppendType(out_, value.type);
    }
  }

  // ---- graphs

  void PrintGraph(const Graph& graph, int indent) {
    Scope outer = std::exchange(scope_, Scope());
    for (const uint32_t id : captures_[&graph])
      if (const auto name = names_.find(id); name != names_.end()) scope_.taken.insert(name->second);
    out_ += "graph";
    if (!graph.name.empty()) out_ += ' ' + NameText(graph.name);
    PrintInputs(graph, indent);
    if (indent == 0) PrintRanges(graph);
    out_ += " {\n";
    for (const Node* node : graph.nodes) {
      Indent(indent + 1);
      PrintNode(*node, indent + 1);
      out_ += '\n';
    }
    Indent(indent + 1);
    out_ += "return";
    const char* separator = " ";
    for (const GraphOutput& output : graph.outputs) {
      out_ += separator;
      separator = ", ";
      PrintOutput(output, indent);
    }
    out_ += '\n';
    Indent(indent);
    out_ += '}';
    scope_ = std::move(outer);
  }

  void PrintInputs(const Graph& graph, int indent) {
    std::vector<std::string> texts;
    size_t total = 0;
    std::string rest = std::exchange(out_, {});
    for (const GraphInput& input : graph.inputs) {
      PrintInput(input, indent);
      total += out_.size() + 2;
      texts.push_back(std::exchange(out_, {}));
    }
    out_ = std::move(rest);
    const bool lines = total > kLine;
    out_ += '(';
    for (size_t i = 0; i < texts.size(); ++i) {
      if (lines) {
        out_ += '\n';
        Indent(indent + 2);
      }
      out_ += texts[i];
      if (i + 1 < texts.size()) out_ += lines ? "," : ", ";
    }
    if (lines) {
      out_ += '\n';
      Indent(indent);
    }
    out_ += ')';
  }

  void PrintKind(std::string_view word, std::string_view target) {
    out_ += word;
    if (target.empty()) return;
    out_ += ' ';
    AppendQuoted(out_, target);
  }

  void PrintInput(const GraphInput& input, int indent) {
    const bool top = indent == 0;
    const std::string_view usual_target = top && input.value ? std::string_view(input.value->name) : std::string_view();
    const bool usual = input.value && input.kind == (top ? InputKind::User : InputKind::Plain) && input.target == usual_target && input.persistent &&
                       input.storage < 0 && !input.optional;
    if (!usual || (top && NameOf(*input.value) != input.target)) {
      PrintKind(InputKindWord(input.kind), input.target);
      if (!input.persistent) out_ += " transient";
      if (input.storage >= 0) out_ += fmt::format(" storage {}", input.storage);
      if (input.optional) out_ += " optional";
      out_ += " = ";
    }
    if (!input.value) return PrintArg(input.constant, indent);
    Define(*input.value);
    if (!options_.data || !input.data) return;
    out_ += " = ";
    PrintTensor(*input.data);
  }

  void PrintOutput(const GraphOutput& output, int indent) {
    if (output.kind != (indent == 0 ? OutputKind::User : OutputKind::Plain) || !output.target.empty() || !output.storage.empty()) {
      PrintKind(OutputKindWord(output.kind), output.target);
      if (!output.storage.empty()) PrintKind(" storage", output.storage);
      out_ += " = ";
    }
    PrintArg(output.value, indent);
  }

  // Recorded ranges; and that symbols which are only known to be sizes are not negative.
  void PrintRanges(const Graph& graph) {
    std::map<std::string, Range> ranges;
    for (const GraphInput& input : graph.inputs) {
      if (!input.value) continue;
      for (const SymExpr dim : input.value->type.shape)
        for (const SymExpr symbol : Symbols(dim))
          if (symbol.node()->positive) ranges[std::string(symbol.SymbolName())].lo = 0;
    }
    for (const auto& [text, row] : context_.syms.recorded_ranges()) {
      Range& range = ranges[text];
      if (row.second.lo) range.lo = row.second.lo;
      range.hi = row.second.hi;
    }
    const char* separator = " where ";
    for (const auto& [text, range] : ranges) {
      if (!range.lo && !range.hi) continue;
      out_ += separator;
      separator = ", ";
      if (range.lo) out_ += fmt::format("{} <= ", *range.lo);
      out_ += text;
      if (range.hi) out_ += fmt::format(" <= {}", *range.hi);
    }
  }

  // ---- nodes

  void PrintNode(const Node& node, int indent) {
    const char* separator = "";
    for (const Value* result : node.results) {
      out_ += separator;
      separator = ", ";
      if (result)
        Define(*result);
      else
        out_ += '_';
    }
    if (!node.results.empty()) out_ += " = ";
    out_ += node.op->name;
    out_ += '(';
    PrintArgs(node, indent);
    out_ += ')';
    if (!options_.lines || node.loc >= context_.locs.size()) return;
    if (const SourceLine place = UserLine(context_.locs[node.loc].stack_trace); place.line) {
      out_ += "  # ";
      AppendQuoted(out_, place.file);
      out_ += fmt::format(":{}", place.line);
    }
  }

  void PrintArgs(const Node& node, int indent) {
    const std::span<const ArgSchema> schemas = node.op->args;
    const std::vector<Arg>& defaults = Defaults(*node.op);
    const auto by_name = [&](size_t i) { return schemas[i].keyword_only || !schemas[i].input; };
    const auto left_out = [&](size_t i) { return (schemas[i].has_default || schemas[i].optional) && SameArg(node.args[i], defaults[i]); };
    size_t positional = 0;  // as many as are needed
    for (size_t i = 0; i < node.args.size() && i < schemas.size(); ++i)
      if (!by_name(i) && !left_out(i)) positional = i + 1;
    const char* separator = "";
    bool named = false;
    for (size_t i = 0; i < node.args.size(); ++i) {
      const bool name = i < schemas.size() && (by_name(i) || named);
      if (name ? left_out(i) : i < schemas.size() && i >= positional) continue;
      named = name;
      out_ += separator;
      separator = ", ";
      if (name) {
        out_ += schemas[i].name;
        out_ += '=';
      }
      PrintArg(node.args[i], indent);
    }
  }

  const std::vector<Arg>& Defaults(const OpSchema& op) {
    const auto [place, fresh] = defaults_.try_emplace(&op);
    if (fresh)
      for (const ArgSchema& arg : op.args) place->second.push_back(arg.has_default ? FillDefault(context_, arg) : Arg());
    return place->second;
  }

  void PrintArg(const Arg& arg, int indent) {
    if (Value* const* value = std::get_if<Value*>(&arg)) {
      PrintOperand(*value);
    } else if (const ValueList* list = std::get_if<ValueList>(&arg)) {
      out_ += '[';
      for (size_t i = 0; i < list->size(); ++i) {
        if (i) out_ += ", ";
        PrintOperand((*list)[i]);
      }
      out_ += ']';
    } else if (Graph* const* graph = std::get_if<Graph*>(&arg)) {
      if (one_line_)
        out_ += "graph";
      else
        PrintGraph(**graph, indent);
    } else if (const TensorData* const* data = std::get_if<const TensorData*>(&arg)) {
      PrintTensor(**data);
    } else {
      AppendPlainArg(out_, arg);
    }
  }

  void PrintOperand(const Value* value) {
    if (!value) {
      out_ += "none";
      return;
    }
    out_ += '%';
    out_ += NameOf(*value);
    if (one_line_) {
      out_ += ": ";
      AppendType(out_, value->type);
    }
  }

  // tensor f32[2] [1., 2.]; longer ones as bytes; stored ones by their place in the file: tensor "fc.weight" f32[4, 4] @128+64
  void PrintTensor(const TensorData& data) {
    out_ += "tensor ";
    if (!data.name.empty()) {
      AppendQuoted(out_, data.name);
      out_ += ' ';
    }
    out_ += Name(data.dtype);
    out_ += '[';
    int64_t count = 1;
    for (size_t i = 0; i < data.shape.size(); ++i) {
      out_ += fmt::format("{}{}", i ? ", " : "", data.shape[i]);
      count *= data.shape[i];
    }
    out_ += "] ";
    if (data.stored) {
      out_ += fmt::format("@{}+{}", data.file_offset, data.file_length);
    } else if (count > kShortTensor || !AppendElements(out_, data)) {
      AppendHex(out_, data.bytes);
    }
  }

  void Indent(int depth) { out_.append(static_cast<size_t>(depth) * 2, ' '); }

  Context& context_;
  const PrintOptions options_;
  std::string out_;
  bool one_line_ = false;
  int next_number_ = 0;
  Scope scope_;
  std::unordered_map<uint32_t, std::string> names_;  // by Value::id
  std::unordered_map<const Graph*, Ids> captures_;
  std::unordered_map<const OpSchema*, std::vector<Arg>> defaults_;
};

}  // namespace

std::string Print(Context& context, const Graph& graph, const PrintOptions& options) { return Printer(context, options).Program(graph); }

std::string PrintNode(Context& context, const Node& node) { return Printer(context, {}).Line(node); }

std::string PrintType(const Type& type) {
  std::string out;
  AppendType(out, type);
  return out;
}

}  // namespace pt2onnx
