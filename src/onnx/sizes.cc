// Sizes as values, and where symbols are read from.
#include <algorithm>

#include "onnx/args.h"
#include "onnx/scope.h"
#include "onnx/sym_emit.h"

namespace pt2onnx {
namespace {

// e == scale * symbol + shift.
struct Linear {
  SymExpr symbol;
  int64_t scale, shift;
};
std::optional<Linear> AsLinear(SymExpr e) {
  if (e.IsUnknown() || e.IsAnyConst() || e.kind() != SymKind::Int) return std::nullopt;
  const std::vector<SymExpr> symbols = Symbols(e);
  if (symbols.size() != 1 || symbols[0].kind() != SymKind::Int) return std::nullopt;
  const SymExpr s = symbols[0];
  const SymExpr at0 = Substitute(e, {{s.SymbolName(), 0}}), at1 = Substitute(e, {{s.SymbolName(), 1}});
  if (!at0.IsConst() || !at1.IsConst()) return std::nullopt;
  const int64_t shift = at0.Const(), scale = at1.Const() - shift;
  if (scale == 0 || !(e == scale * s + shift)) return std::nullopt;
  return Linear{s, scale, shift};
}

}  // namespace

Val Onnx::Int(SymExpr e) {
  PT2ONNX_CHECK(e.kind() == SymKind::Int);
  return SymEmitter(*this).Emit(e);
}

Val Onnx::Int1(SymExpr e) {
  if (e.IsConst()) return Ints({e.Const()});
  if (Value** known = FindInScopes(scopes_, &Scope::numbers1, e)) return Wrap(*known);
  const SymOrigin* origin = e.IsSymbol() ? FindInScopes(scopes_, &Scope::symbols, e) : nullptr;
  const bool direct = origin && origin->dim >= 0 && origin->scale == 1 && origin->shift == 0;
  const Val out = Remember(direct ? OnnxOps::Shape(Wrap(origin->value), {.end = origin->dim + 1, .start = origin->dim}) : Unsqueeze(Int(e), {0}), {e});
  scope().numbers1.emplace(e, out.value);
  return out;
}

Val Onnx::Number(SymExpr e, DType dtype) {
  if (e.IsAnyConst()) return Constant(Scalar(e), dtype);
  return Cast(SymEmitter(*this).Emit(e), dtype);
}

Val Onnx::Shape(DimVec dims) {
  if (std::all_of(dims.begin(), dims.end(), [](const SymExpr& e) { return e.IsConst(); })) {
    IntVec values;
    for (const SymExpr& e : dims) values.push_back(e.Const());
    return Ints(std::move(values));
  }
  std::string key = "shape";
  for (const SymExpr& e : dims) {
    const int64_t parts[] = {static_cast<int64_t>(reinterpret_cast<intptr_t>(e.node())), e.IsConst() ? e.Const() : 0};
    key.append(reinterpret_cast<const char*>(parts), sizeof parts);
  }
  if (Value** known = FindInScopes(scopes_, &Scope::tensors, key)) return Wrap(*known);

  // Runs of dims that lie side by side in the shape of one value are one Shape, runs of constants one constant.
  Vals pieces;
  for (size_t i = 0; i < dims.size();) {
    size_t end = i + 1;
    if (dims[i].IsConst()) {
      IntVec run = {dims[i].Const()};
      for (; end < dims.size() && dims[end].IsConst(); ++end) run.push_back(dims[end].Const());
      pieces.push_back(Ints(std::move(run)));
      i = end;
      continue;
    }
    const SymOrigin* origin = dims[i].IsSymbol() ? FindInScopes(scopes_, &Scope::symbols, dims[i]) : nullptr;
    if (!origin || origin->dim < 0 || origin->scale != 1 || origin->shift != 0) {
      pieces.push_back(Int1(dims[i++]));
      continue;
    }
    const pt2onnx::Dims shape = origin->value->type.shape;
    size_t at = static_cast<size_t>(origin->dim) + 1;
    for (; end < dims.size() && at < shape.size() && shape[at] == dims[end]; ++end) ++at;
    if (end == i + 1) pieces.push_back(Int1(dims[i]));
    else pieces.push_back(OnnxOps::Shape(Wrap(origin->value), {.end = at == shape.size() ? std::nullopt : std::optional(static_cast<int64_t>(at)), .start = origin->dim}));
    i = end;
  }
  const Val out = Remember(Concat(pieces, 0), dims);
  scope().tensors.emplace(std::move(key), out.value);
  return out;
}

Val Onnx::ShapeOf(Val x) {
  const pt2onnx::Dims shape = x.shape();
  if (x.value->type.ranked && std::all_of(shape.begin(), shape.end(), [](const SymExpr& e) { return e.IsConst(); })) return Shape(DimVec(shape));
  if (Value** known = FindInScopes(scopes_, &Scope::shapes, x.value->id)) return Wrap(*known);
  Val out = OnnxOps::Shape(x);
  if (x.value->type.ranked) out = Remember(out, DimVec(shape));
  scope().shapes.emplace(x.value->id, out.value);
  return out;
}

void Onnx::Define(SymExpr symbol, Value* scalar) {
  if (symbol.IsSymbol()) scope().symbols.insert_or_assign(symbol, SymOrigin{scalar, -1});
}

void Onnx::DefineFrom(Value* value) {
  const pt2onnx::Dims shape = value->type.shape;
  if (value->type.kind == Kind::Sym) return Define(value->type.value, value);
  const auto origin_of = [&](SymExpr symbol) { return FindInScopes(scopes_, &Scope::symbols, symbol); };
  // A bare size also replaces one that had to be solved for.
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!shape[i].IsSymbol()) continue;
    const SymOrigin* known = origin_of(shape[i]);
    if (!known || known->scale != 1 || known->shift != 0) scope().symbols.insert_or_assign(shape[i], SymOrigin{value, static_cast<int64_t>(i)});
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto linear = AsLinear(shape[i]);
    if (linear && !origin_of(linear->symbol))
      scope().symbols.emplace(linear->symbol, SymOrigin{value, static_cast<int64_t>(i), linear->scale, linear->shift});
  }
}

bool Onnx::IsDefined(SymExpr e) {
  if (e.IsUnknown()) return false;
  const std::vector<SymExpr> symbols = Symbols(e);
  return std::all_of(symbols.begin(), symbols.end(), [&](const SymExpr& s) { return FindInScopes(scopes_, &Scope::symbols, s) != nullptr; });
}

}  // namespace pt2onnx
