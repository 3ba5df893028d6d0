#include "fuse/pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "onnx/constants.h"

namespace pt2onnx {
namespace {

using Form = Pat::Form;

Pat Make(Form form, std::vector<Pat> operands, std::vector<Pat> inverse, double number) {
  return Pat({.form = form, .operands = std::move(operands), .inverse = std::move(inverse), .number = number});
}

// a as a product or sum: a product in a product is a part of it.
Pat::Node Opened(Form form, const Pat& a) {
  const double neutral = form == Form::Product ? 1 : 0;
  if (a->form == form) return *a.node();
  if (a->form == Form::Number) return {.form = form, .number = neutral, .captured = a.shared()};
  return {.form = form, .operands = {a}, .number = neutral};
}

Pat Joined(Form form, const Pat& a, const Pat& b, bool inverse) {
  Pat::Node out = Opened(form, a), other = Opened(form, b);
  if (inverse) std::swap(other.operands, other.inverse);
  out.operands.insert(out.operands.end(), other.operands.begin(), other.operands.end());
  out.inverse.insert(out.inverse.end(), other.inverse.begin(), other.inverse.end());
  if (form == Form::Product)
    out.number *= inverse ? 1 / other.number : other.number;
  else
    out.number += inverse ? -other.number : other.number;
  if (other.captured) out.captured = other.captured;
  return Pat(std::move(out));
}

double Precision(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 1e-14;
    case DType::F16:
      return 1e-3;
    case DType::BF16:
      return 8e-3;
    default:
      return 2.5e-7;
  }
}
// A number as the dtype has it, reached in a step or two.
bool SameNumber(double a, double b, DType dtype) { return a == b || std::fabs(a - b) <= Precision(dtype) * std::fabs(b); }

const TensorData* ConstantIn(const Value* value) {
  if (!IsMadeBy(value, OnnxOp::Constant)) return nullptr;
  const TensorData* const* data =
      std::get_if<const TensorData*>(&value->def->args[static_cast<size_t>(SchemaOf(OnnxOp::Constant).ArgIndex("value"))]);
  return data && *data && !(*data)->stored ? *data : nullptr;
}

int64_t Elements(const TensorData& data) { return std::accumulate(data.shape.begin(), data.shape.end(), int64_t{1}, std::multiplies<>()); }

std::optional<double> NumberAt(const TensorData& data, int64_t i) {
  switch (data.dtype) {
    case DType::F16:
    case DType::BF16:
    case DType::F32:
    case DType::F64: return FloatAt(data, i);
    case DType::I32:
    case DType::I64: return static_cast<double>(IntAt(data, i));
    default: return std::nullopt;
  }
}

}  // namespace

Pat Number() { return Pat({.form = Form::Number, .number = NAN}); }
Pat Op(OnnxOp op, std::vector<Pat> operands) { return Pat({.form = Form::Op, .op = op, .operands = std::move(operands)}); }
Pat OneOf(std::vector<Pat> patterns) { return Pat({.form = Form::OneOf, .operands = std::move(patterns)}); }
Pat operator*(const Pat& a, const Pat& b) { return Joined(Form::Product, a, b, false); }
Pat operator*(double a, const Pat& b) { return Joined(Form::Product, Make(Form::Product, {}, {}, a), b, false); }
Pat operator/(const Pat& a, const Pat& b) { return Joined(Form::Product, a, b, true); }
Pat operator/(double a, const Pat& b) { return Joined(Form::Product, Make(Form::Product, {}, {}, a), b, true); }
Pat operator+(const Pat& a, const Pat& b) { return Joined(Form::Sum, a, b, false); }
Pat operator+(double a, const Pat& b) { return Joined(Form::Sum, Make(Form::Sum, {}, {}, a), b, false); }
Pat operator-(const Pat& a, const Pat& b) { return Joined(Form::Sum, a, b, true); }

std::optional<double> NumberIn(const Value* value) {
  const TensorData* data = ConstantIn(value);
  return data && Elements(*data) == 1 ? NumberAt(*data, 0) : std::nullopt;
}

bool AllOnes(const Value* value) {
  const TensorData* data = ConstantIn(value);
  if (!data) return false;
  for (int64_t i = 0; i < Elements(*data); ++i)
    if (NumberAt(*data, i) != 1) return false;
  return true;
}

std::optional<IntVec> IntsIn(const Value* value) {
  const TensorData* data = ConstantIn(value);
  if (!data || data->dtype != DType::I64) return std::nullopt;
  std::vector<int64_t> out(data->bytes.size() / sizeof(int64_t));
  std::memcpy(out.data(), data->bytes.data(), data->bytes.size());
  return IntVec(std::move(out));
}

// ---- Matching -----------------------------------------------------------------------------------------------------------------------

// What a tree of sums (or products) comes to: its number, and terms that are not taken apart.
struct Match::Terms {
  Form form;
  double number;
  std::vector<Term> open, done;
};

const Match::Binding* Match::Find(const Pat::Node* pattern) const {
  for (const Binding& binding : bindings_)
    if (binding.pattern == pattern) return &binding;
  return nullptr;
}
Value* Match::ValueOf(const Pat& pattern) const {
  const Binding* binding = Find(pattern.node());
  PT2ONNX_CHECK(binding && binding->value);
  return binding->value;
}
double Match::Number(const Pat& pattern) const {
  const Binding* binding = Find(pattern.node());
  PT2ONNX_CHECK(binding);
  return binding->number;
}

const Arg& Match::ArgOf(const Pat& pattern, std::string_view name) const {
  const pt2onnx::Node& node = NodeOf(pattern);
  return node.args[static_cast<size_t>(node.op->ArgIndex(name))];
}
int64_t Match::IntOf(const Pat& pattern, std::string_view name, int64_t none) const {
  const int64_t* number = std::get_if<int64_t>(&ArgOf(pattern, name));
  return number ? *number : none;
}

void Match::Undo(Mark mark) {
  bindings_.resize(mark.bindings);
  nodes_.resize(mark.nodes);
}

bool Match::Fits(Value* value, const Pat& pattern) {
  if (const Binding* known = Find(pattern.node())) return known->value == value;
  const Mark mark = Now();
  if (FitsNew(value, pattern)) {
    bindings_.push_back({pattern.node(), value, 0});
    return true;
  }
  Undo(mark);
  return false;
}

bool Match::FitsNew(Value* value, const Pat& pattern) {
  switch (pattern->form) {
    case Form::Any:
      return true;
    case Form::Number: {
      const auto number = NumberIn(value);
      return number && (std::isnan(pattern->number) || SameNumber(*number, pattern->number, value->type.dtype));
    }
    case Form::OneOf:
      return std::any_of(pattern->operands.begin(), pattern->operands.end(), [&](const Pat& one) { return Fits(value, one); });
    case Form::Op:
      if (!IsMadeBy(value, pattern->op) || value->result != 0) return false;
      nodes_.push_back(value->def);
      for (size_t i = 0; i < pattern->operands.size(); ++i) {
        Value* const* operand = std::get_if<Value*>(&value->def->args[i]);
        if (!operand || !Fits(*operand, pattern->operands[i])) return false;
      }
      return true;
    case Form::Product:
    case Form::Sum:
      return FitsTerms(value, pattern);
  }
  PT2ONNX_UNREACHABLE();
}

bool Match::FitsTerms(Value* value, const Pat& pattern) {
  Terms terms = {pattern->form, pattern->form == Form::Product ? 1.0 : 0.0, {{value, false}}, {}};
  return Cut(terms, pattern);
}

// Every way to take the tree apart into as many terms as the pattern has.
bool Match::Cut(Terms& terms, const Pat& pattern) {
  const size_t wanted = pattern->operands.size() + pattern->inverse.size();
  if (terms.open.empty()) {
    if (terms.done.size() != wanted) return false;
    const DType dtype = terms.done.empty() ? DType::F32 : terms.done[0].value->type.dtype;
    if (!pattern->captured && !SameNumber(terms.number, pattern->number, dtype)) return false;
    const Mark mark = Now();
    std::vector<bool> taken(wanted, false);
    if (Assign(terms, pattern, 0, taken)) {
      if (pattern->captured) bindings_.push_back({pattern->captured.get(), nullptr, terms.number});
      return true;
    }
    Undo(mark);
    return false;
  }
  const Term term = terms.open.back();
  terms.open.pop_back();
  const Mark mark = Now();
  const double number = terms.number;
  const bool product = terms.form == Form::Product;
  // Taken apart further.
  const auto apart = [&](Term a, std::optional<Term> b) {
    nodes_.push_back(term.value->def);
    terms.open.push_back(a);
    if (b) terms.open.push_back(*b);
    const auto stays = [](const Term& t) { return !NumberIn(t.value); };
    const auto least = terms.done.size() + static_cast<size_t>(std::count_if(terms.open.begin(), terms.open.end(), stays));
    if (least <= wanted && Cut(terms, pattern)) return true;
    terms.open.resize(terms.open.size() - (b ? 2 : 1));
    Undo(mark);
    terms.number = number;
    return false;
  };
  const auto operand = [&](size_t i) { return std::get<Value*>(term.value->def->args[i]); };
  bool found = false;
  if (const auto constant = NumberIn(term.value)) {
    if (product)
      terms.number = term.inverse ? number / *constant : number * *constant;
    else
      terms.number = term.inverse ? number - *constant : number + *constant;
    found = Cut(terms, pattern);
    terms.number = found ? terms.number : number;
  } else if (IsMadeBy(term.value, product ? OnnxOp::Mul : OnnxOp::Add)) {
    found = apart({operand(0), term.inverse}, Term{operand(1), term.inverse});
  } else if (IsMadeBy(term.value, product ? OnnxOp::Div : OnnxOp::Sub)) {
    found = apart({operand(0), term.inverse}, Term{operand(1), !term.inverse});
  } else if (product && IsMadeBy(term.value, OnnxOp::Reciprocal)) {
    found = apart({operand(0), !term.inverse}, {});
  } else if (IsMadeBy(term.value, OnnxOp::Neg)) {
    if (product) terms.number = -number;
    found = apart({operand(0), product ? term.inverse : !term.inverse}, {});
  }
  if (found) return true;
  if (terms.done.size() < wanted) {  // left whole
    terms.done.push_back(term);
    if (Cut(terms, pattern)) return true;
    terms.done.pop_back();
  }
  terms.open.push_back(term);
  return false;
}

bool Match::Assign(const Terms& terms, const Pat& pattern, size_t next, std::vector<bool>& taken) {
  // What can be told apart first, variables last.
  const size_t straight = pattern->operands.size();
  std::vector<std::pair<const Pat*, bool>> wanted;
  for (const bool variables : {false, true})
    for (size_t i = 0; i < straight + pattern->inverse.size(); ++i) {
      const Pat& one = i < straight ? pattern->operands[i] : pattern->inverse[i - straight];
      if ((one->form == Form::Any) == variables) wanted.emplace_back(&one, i >= straight);
    }
  if (next == wanted.size()) return true;
  for (size_t i = 0; i < terms.done.size(); ++i) {
    if (taken[i] || terms.done[i].inverse != wanted[next].second) continue;
    const Mark mark = Now();
    taken[i] = true;
    if (Fits(terms.done[i].value, *wanted[next].first) && Assign(terms, pattern, next + 1, taken)) return true;
    taken[i] = false;
    Undo(mark);
  }
  return false;
}

std::optional<int64_t> KeptAxis(const Match& m, const Pat& reduction) {
  const pt2onnx::Node& node = m.NodeOf(reduction);
  Value* const* list = std::get_if<Value*>(&node.args[1]);
  const auto axes = list ? IntsIn(*list) : std::nullopt;
  if (Is(*node.op, OnnxOp::TopK)) {  // the first of each is the largest
    return axes == IntVec{1} && m.IntOf(reduction, "largest", 1) == 1 ? std::optional(m.IntOf(reduction, "axis", -1)) : std::nullopt;
  }
  if (!axes || axes->size() != 1 || m.IntOf(reduction, "keepdims", 1) != 1) return std::nullopt;
  return axes->front();
}

}  // namespace pt2onnx
