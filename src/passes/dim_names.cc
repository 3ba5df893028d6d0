#include "passes/dim_names.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/core.h>

namespace pt2onnx {
namespace {

class DimNamer {
 public:
  DimNamer(const Program& program, const Graph& model, const Options& options) : options_(options) {
    for (const GraphInput& input : program.graph->inputs)
      if (input.value && input.kind == InputKind::User && input.value->type.kind == Kind::Sym) Know(input.value->type.value, input.target);
    for (const GraphInput& input : model.inputs)
      if (input.value && input.kind == InputKind::User) inputs_.push_back(&input);
    for (const GraphInput* input : inputs_)
      for (size_t d = 0; d < input->value->type.shape.size(); ++d) Know(input->value->type.shape[d], fmt::format("{}_dim{}", input->value->name, d));
    for (const Node* node : model.nodes)
      for (const Value* result : node->results)
        if (result)
          for (const SymExpr& e : result->type.shape) Know(e, "");
  }

  Result<std::map<std::string, std::string>> Run() {
    std::map<std::string, std::string> sizes;  // name -> what it names
    for (const auto& [key, name] : options_.dim_names) {
      const Result<std::string> text = Find(key);
      if (!text) return text.error();
      const auto [named, fresh] = names_.emplace(*text, name);
      if (!fresh && named->second != name) return Bad(fmt::format("{} is to be called both {} and {}", *text, named->second, name));
      const auto [size, first] = sizes.emplace(name, *text);
      if (!first && size->second != *text)
        return Bad(fmt::format("{} and {} are different sizes, and can't both be called {}", size->second, *text, name));
    }
    for (const auto& [name, text] : sizes)
      if (text != name && symbols_.contains(name) && !names_.contains(name))
        return Bad(fmt::format("{} is already another size of the program", name));
    std::set<std::string> taken;
    for (const auto& [text, name] : names_) taken.insert(name);
    for (const auto& [symbol, place] : order_) {
      if (place.empty() || names_.contains(symbol)) continue;
      std::string name = place;
      for (int n = 1; !taken.insert(name).second || symbols_.contains(name); ++n) name = fmt::format("{}_{}", place, n);
      names_.emplace(symbol, name);
    }
    return std::move(names_);
  }

 private:
  // Letters, digits and underscores: a name stands in expressions.
  static std::string Word(std::string text) {
    for (char& c : text)
      if (!std::isalnum(static_cast<unsigned char>(c)) && (c & 0x80) == 0) c = '_';
    return text;
  }

  void Know(SymExpr e, std::string_view place) {
    if (e.IsUnknown() || e.IsConst() || !seen_.insert(ToString(e)).second) return;
    for (const SymExpr& symbol : Symbols(e)) {
      const std::string text(symbol.SymbolName());
      const bool bare = e.IsSymbol();
      symbols_.insert(text);
      if (bare && !place.empty()) order_.emplace_back(text, Word(std::string(place)));
    }
  }

  // What a key names, as text.
  Result<std::string> Find(const std::string& key) const {
    if (seen_.contains(key) || symbols_.contains(key)) return key;
    const size_t colon = key.rfind(':');
    if (colon == std::string::npos) return Bad(fmt::format("no size of the program is called {}; {}", key, Known()));
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(key.data() + colon + 1, key.data() + key.size(), dim);
    const std::string_view name = std::string_view(key).substr(0, colon);
    const auto input = std::find_if(inputs_.begin(), inputs_.end(), [&](const GraphInput* i) { return i->value->name == name || i->target == name; });
    if (error != std::errc() || end != key.data() + key.size() || input == inputs_.end())
      return Bad(fmt::format("no input is called {}; {}", name, Known()));
    const Dims shape = (*input)->value->type.shape;
    const int64_t rank = std::ssize(shape);
    if (dim < -rank || dim >= rank) return Bad(fmt::format("{} has {} dims", name, rank));
    const SymExpr e = shape[static_cast<size_t>(dim < 0 ? dim + rank : dim)];
    if (e.IsConst()) return Bad(fmt::format("dim {} of {} is not dynamic, but {}", dim, name, e.Const()));
    return ToString(e);
  }

  std::string Known() const {
    std::string text;
    for (const GraphInput* input : inputs_)
      for (size_t d = 0; d < input->value->type.shape.size(); ++d) {
        const SymExpr e = input->value->type.shape[d];
        if (!e.IsConst() && !e.IsUnknown())
          text += fmt::format("{}{}:{} ({})", text.empty() ? "there are " : ", ", input->value->name, d, ToString(e));
      }
    return text.empty() ? "it has no dynamic inputs" : text;
  }

  static Error Bad(std::string message) { return Error{"E0151", std::move(message), "--dim-name SYMBOL=NAME or --dim-name INPUT:DIM=NAME"}; }

  const Options& options_;
  std::vector<const GraphInput*> inputs_;
  std::set<std::string> seen_, symbols_;
  std::vector<std::pair<std::string, std::string>> order_;  // symbol, and a name by its first place
  std::map<std::string, std::string> names_;
};

}  // namespace

Result<std::map<std::string, std::string>> NameDims(const Program& program, const Graph& model, const Options& options) {
  return DimNamer(program, model, options).Run();
}

}  // namespace pt2onnx
