#include "serde/size_nodes.h"

#include <algorithm>

#include "serde/write_json.h"

namespace pt2onnx {
namespace {

// Names that generated Python code uses itself.
constexpr std::string_view kPython[] = {
    "False",  "None",     "True",     "abs",      "all",   "and",    "any",   "as",     "assert", "async",   "await", "bool", "break",
    "class",  "complex",  "continue", "def",      "del",   "device", "elif",  "else",   "except", "finally", "float", "for",  "from",
    "global", "if",       "import",   "in",       "inf",   "int",    "is",    "lambda", "len",    "list",    "math",  "max",  "min",
    "nan",    "nonlocal", "not",      "operator", "or",    "pass",   "pow",   "raise",  "range",  "return",  "round", "self", "set",
    "slice",  "sum",      "torch",    "try",      "tuple", "type",   "while", "with",   "yield"};

struct OpRow {
  SymOp op;
  std::string_view target;
};
// Two arguments each; what has more is folded from the left.
constexpr OpRow kBinary[] = {
    {SymOp::Add, "_operator.add"}, {SymOp::Mul, "_operator.mul"},         {SymOp::Pow, "_operator.pow"},      {SymOp::FloorDiv, "_operator.floordiv"},
    {SymOp::Mod, "_operator.mod"}, {SymOp::TrueDiv, "_operator.truediv"}, {SymOp::FloatPow, "_operator.pow"}, {SymOp::Max, "torch.sym_max"},
    {SymOp::Min, "torch.sym_min"}, {SymOp::Eq, "_operator.eq"},           {SymOp::Ne, "_operator.ne"},        {SymOp::Le, "_operator.le"},
    {SymOp::Lt, "_operator.lt"},   {SymOp::And, "_operator.and_"},        {SymOp::Or, "_operator.or_"},
};
constexpr OpRow kUnary[] = {
    {SymOp::Trunc, "math.trunc"}, {SymOp::ToFloat, "torch.sym_float"}, {SymOp::Not, "torch.sym_not"}, {SymOp::Sqrt, "torch._sym_sqrt"}};

std::string_view TargetOf(std::span<const OpRow> rows, SymOp op) {
  for (const OpRow& row : rows)
    if (row.op == op) return row.target;
  return {};
}

// Scale and shift, if e is scale * symbol + shift.
std::optional<std::pair<int64_t, int64_t>> Linear(SymExpr e, SymExpr symbol) {
  const std::string_view name = symbol.SymbolName();
  const auto at0 = EvaluateInt(e, {{name, 0}}), at1 = EvaluateInt(e, {{name, 1}});
  if (!at0 || !at1 || *at1 == *at0) return std::nullopt;
  const int64_t scale = *at1 - *at0;
  if (!(SymExpr(scale) * symbol + *at0 == e)) return std::nullopt;
  return std::pair(scale, *at0);
}

}  // namespace

std::string_view SymTag(SymKind kind) {
  switch (kind) {
    case SymKind::Int:
      return "as_sym_int";
    case SymKind::Float:
      return "as_sym_float";
    case SymKind::Bool:
      return "as_sym_bool";
  }
  PT2ONNX_UNREACHABLE();
}

std::string_view Names::Take(Context& context, std::string_view wanted) {
  const bool reserved = std::find(std::begin(kPython), std::end(kPython), wanted) != std::end(kPython);
  if (!reserved && taken_.insert(wanted).second) return wanted;
  for (int& i = next_[wanted];;) {
    const std::string_view name = context.Join(wanted, "_", std::to_string(++i));
    if (taken_.insert(name).second) return name;
  }
}

void SizeNodes::Define(const Value* value, std::string_view name) {
  const Type& type = value->type;
  if (type.kind == Kind::Sym) {
    if (!type.value.IsAnyConst()) known_.try_emplace(type.value, name);
    values_[static_cast<size_t>(type.value.kind())] += fmt::format(", {}: {}", Quoted(name), Recorded(type.value));
    return;
  }
  for (size_t i = 0; i < type.shape.size(); ++i) {
    const SymExpr dim = type.shape[i];
    if (dim.IsConst()) continue;
    sources_.try_emplace(dim, Source{name, i});
    if (dim.IsSymbol()) continue;
    const std::vector<SymExpr> symbols = Symbols(dim);
    if (symbols.size() != 1 || solutions_.contains(symbols[0])) continue;
    if (const auto linear = Linear(dim, symbols[0])) solutions_.emplace(symbols[0], Solution{dim, linear->first, linear->second});
  }
}

std::string_view SizeNodes::Known(SymExpr e, std::string_view name) {
  known_.emplace(e, name);
  values_[static_cast<size_t>(e.kind())] += fmt::format(", {}: {}", Quoted(name), Recorded(e));
  return name;
}

std::string_view SizeNodes::Node(SymExpr result, std::string_view target, std::string_view inputs) {
  std::string_view base = target;
  if (base.ends_with(".int")) base.remove_suffix(4);
  base = base.substr(base.rfind('.') + 1);
  while (base.starts_with("_")) base.remove_prefix(1);
  while (base.ends_with("_")) base.remove_suffix(1);
  const std::string_view name = names_.Take(context_, base);
  nodes_ += fmt::format(
      ", {{\"target\": \"{}\", \"inputs\": {}, \"outputs\": [{{\"{}\": {{\"as_name\": {}}}}}], \"metadata\": {{}}, "
      "\"is_hop_single_tensor_return\": null, \"name\": {}}}",
      target, inputs, SymTag(result.kind()), Quoted(name), Quoted(name));
  return Known(result, name);
}

std::optional<std::string_view> SizeNodes::Emit(SymExpr result, std::string_view target, std::initializer_list<SymExpr> args) {
  constexpr std::string_view kNames[] = {"a", "b", "c"}, kOfIte[] = {"b", "t", "f"};
  std::string inputs;
  size_t i = 0;
  for (const SymExpr& arg : args) {
    const auto text = Argument(arg);
    if (!text) return std::nullopt;
    inputs += fmt::format("{}{{\"name\": \"{}\", \"arg\": {}, \"kind\": 1}}", i ? ", " : "", (args.size() == 3 ? kOfIte : kNames)[i], *text);
    ++i;
  }
  return Node(result, target, "[" + inputs + "]");
}

// a + b + c as (a + b) + c.
std::optional<std::string_view> SizeNodes::Fold(SymExpr e, std::string_view target) {
  SymExpr so_far = e.args()[0];
  std::optional<std::string_view> name;
  for (size_t i = 1; i < e.args().size(); ++i) {
    const SymExpr both[] = {so_far, e.args()[i]};
    const SymExpr next = i + 1 == e.args().size() ? e : MakeSym(e.op(), both);
    const auto found = known_.find(next);
    name = found != known_.end() ? std::optional(found->second) : Emit(next, target, {so_far, e.args()[i]});
    if (!name) return std::nullopt;
    so_far = next;
  }
  return name;
}

// torch.export.load knows math.trunc only: floor(x) is trunc(x) - (x < trunc(x)), ceil(x) is trunc(x) + (trunc(x) < x).
std::optional<std::string_view> SizeNodes::Rounded(SymExpr e, SymExpr x, bool down) {
  const SymExpr whole = Trunc(x), back = ToFloat(whole);
  const SymExpr missed = Where(down ? Lt(x, back) : Lt(back, x), 1, 0);
  return Emit(e, down ? "_operator.sub" : "_operator.add", {whole, missed});
}

std::optional<std::string_view> SizeNodes::NameOf(SymExpr e) {
  if (const auto found = known_.find(e); found != known_.end()) return found->second;
  if (const auto found = sources_.find(e); found != sources_.end()) {
    const Source source = found->second;
    return Node(e, "torch.ops.aten.sym_size.int",
                fmt::format("[{{\"name\": \"self\", \"arg\": {}, \"kind\": 1}}, {{\"name\": \"dim\", \"arg\": {{\"as_int\": {}}}, \"kind\": 1}}]",
                            TaggedName("as_tensor", source.tensor), source.dim));
  }
  if (e.IsUnknown() || e.IsAnyConst()) return std::nullopt;
  if (e.IsSymbol()) {
    const auto found = solutions_.find(e);
    if (found == solutions_.end()) return std::nullopt;
    const Solution solution = found->second;
    // The difference is scale * symbol: an expression that would be solved by its symbol again.
    SymExpr multiple = solution.expr - solution.shift;
    if (solution.shift && !known_.contains(multiple) && !Emit(multiple, "_operator.sub", {solution.expr, solution.shift})) return std::nullopt;
    if (solution.scale == 1) return known_.find(multiple)->second;
    return Emit(e, "_operator.floordiv", {multiple, solution.scale});
  }
  const auto args = e.args();
  switch (e.op()) {
    case SymOp::Where:
      return Emit(e, "torch.sym_ite", {args[0], args[1], args[2]});
    case SymOp::Abs:
      return Emit(e, "torch.sym_max", {args[0], -args[0]});
    case SymOp::Floor:
      return Rounded(e, args[0], true);
    case SymOp::Ceil:
      return Rounded(e, args[0], false);
    default:
      break;
  }
  if (const std::string_view target = TargetOf(kBinary, e.op()); !target.empty()) return Fold(e, target);
  if (const std::string_view target = TargetOf(kUnary, e.op()); !target.empty()) return Emit(e, target, {args[0]});
  return std::nullopt;
}

std::optional<std::string> SizeNodes::Number(SymExpr e) {
  if (e.IsConst()) return fmt::format("{{\"as_int\": {}}}", e.Const());
  if (const auto x = e.TryFloat()) return Tagged("as_float", DoubleText(*x));
  if (const auto x = e.TryBool()) return Tagged("as_bool", BoolText(*x));
  const auto name = NameOf(e);
  if (!name) return std::nullopt;
  return Tagged("as_name", Quoted(*name));
}

std::optional<std::string> SizeNodes::Argument(SymExpr e) {
  auto number = Number(e);
  return !number || e.IsAnyConst() ? number : Tagged(SymTag(e.kind()), *number);
}

std::string SizeNodes::Recorded(SymExpr e) const {
  if (e.IsAnyConst()) return *const_cast<SizeNodes*>(this)->Number(e);
  std::optional<SymExpr> hint;
  if (const auto found = hints_.find(e); found != hints_.end()) {
    hint = found->second;
  } else {
    SymMap values;
    for (const SymExpr& symbol : Symbols(e))
      if (const auto known = hints_.find(symbol); known != hints_.end()) values.emplace(symbol.SymbolName(), known->second);
    hint = Evaluate(e, values);
  }
  std::string text = "null";
  if (hint && hint->IsConst() && e.kind() == SymKind::Int) text = fmt::format("{{\"as_int\": {}}}", hint->Const());
  if (hint && hint->TryFloat() && e.kind() == SymKind::Float) text = Tagged("as_float", DoubleText(*hint->TryFloat()));
  return Tagged("as_expr", fmt::format("{{\"expr_str\": {}, \"hint\": {}}}", Quoted(ToSrepr(e)), text));
}

}  // namespace pt2onnx
