// How a node comes to be: its arguments in the form of the opset, checked against the operator's types, its results' types, and into the sink.
#include "onnx/builder.h"

#include <algorithm>
#include <cmath>

#include "onnx/args.h"
#include "onnx/infer.h"
#include "onnx/ort_kernels.h"
#include "onnx/scope.h"
#include "onnx/widen.h"

namespace pt2onnx {
namespace {

std::string OpsetHelp(int opset) { return "--opset " + std::to_string(opset) + " has it"; }
std::string_view ShortName(OnnxOp op) { return SchemaOf(op).name.substr(6); }

}  // namespace

Onnx::Onnx(Context& context, Sink& sink, OnnxOptions options) : OnnxOps(context), options_(options), outside_{&SchemaOf(OnnxOp::Identity), {}, {}} {
  scopes_.push_back(std::make_unique<Scope>());
  scope().sink = &sink;
  call_ = &outside_;
}

Onnx::~Onnx() = default;

Sink& Onnx::sink() { return *scope().sink; }

Results Onnx::Emit(const OpSchema& op, std::span<const Arg> args, std::span<const Type> types) {
  if (const uint32_t problem = PoisonOf(context_, args)) return Poisoned(problem, types);
  return sink().Emit({.op = &op, .args = args, .types = types, .loc = call_->loc});
}

// Values that no node makes: only what is poisoned too can use them.
Results Onnx::Poisoned(uint32_t problem, std::span<const Type> types) {
  std::vector<Value*> values;
  for (const Type& type : types) {
    values.push_back(context_.NewValue(type));
    values.back()->problem = problem;
  }
  return context_.arena.Copy(values);
}

Results Onnx::Apply(OnnxOp op, std::vector<Arg> args, size_t results) {
  Adapt(op, args, results);
  const auto hint = std::exchange(shape_hint_, std::nullopt);
  std::vector<Type> types = InferOnnx(context_, op, args, results, [this](Value* value) { return KnownInts(Wrap(value)); });
  if (hint) {
    types[0].ranked = true;
    types[0].shape = context_.arena.Copy(*hint);
  }
  if (PoisonOf(context_, args) == 0) {
    if (const DType wider = WiderDType(op, args, opset(), options_); wider != DType::Unknown) return ApplyIn(wider, op, std::move(args), types);
    if (const uint32_t problem = CheckForm(op, args, types)) return Poisoned(problem, types);
  }
  return Emit(SchemaOf(op), args, types);
}

// The same in a wider dtype, and back.
Results Onnx::ApplyIn(DType wider, OnnxOp op, std::vector<Arg> args, std::span<const Type> types) {
  const DType narrow = WidenedDType(op, args);
  const auto widen = [&](Value* value) {
    // bfloat16 is rounded once an op of the program, as PyTorch's kernels do, not between the operators it is written in.
    const Node* def = value->def;
    if (def && Is(*def->op, OnnxOp::Cast) && narrow == DType::BF16 && def->loc == call_->loc) {
      Value* from = std::get<Value*>(def->args[0]);
      if (from->type.dtype == wider) return from;
    }
    return Cast(Wrap(value), wider).value;
  };
  for (const int i : WidenedInputs(op, args)) {
    Arg& arg = args[static_cast<size_t>(i)];
    if (Value** value = std::get_if<Value*>(&arg)) {
      *value = widen(*value);
    } else if (ValueList* list = std::get_if<ValueList>(&arg)) {
      std::vector<Value*> values;
      for (Value* value : *list) values.push_back(widen(value));
      *list = context_.arena.Copy(values);
    }
  }
  if (types[0].ranked) shape_hint_ = DimVec(types[0].shape);
  const Results wide = Apply(op, std::move(args), types.size());
  std::vector<Value*> results;
  for (size_t i = 0; i < wide.size(); ++i) results.push_back(types[i].dtype == narrow ? Cast(Wrap(wide[i]), narrow).value : wide[i]);
  return context_.arena.Copy(results);
}

// Forms that an older opset writes otherwise.
void Onnx::Adapt(OnnxOp op, std::vector<Arg>& args, size_t results) {
  const auto attr = [&](std::string_view name) -> Arg& {
    size_t at = args.size();
    for (size_t i = static_cast<size_t>(FactsOf(op).inputs); i < args.size(); ++i)
      if (SchemaOf(op).args[i].name == name) at = i;
    PT2ONNX_CHECK(at < args.size());
    return args[at];
  };
  switch (op) {
    case OnnxOp::Split:  // either the sizes or their number must be there
      if (IsNone(args[1])) attr("num_outputs") = static_cast<int64_t>(results);
      break;
    case OnnxOp::DFT:  // the axis was an attribute
      if (opset() < 20) {
        const DimVec* axis = IsNone(args[2]) ? nullptr : KnownInts(Wrap(std::get<Value*>(args[2])));
        const Type& x = std::get<Value*>(args[0])->type;
        const int64_t rank = std::ssize(x.shape);
        int64_t number = IsNone(args[2]) ? -2 : axis && axis->size() == 1 && axis->front().IsConst() ? axis->front().Const() : rank;
        if (number < 0) number += rank;
        if (number < 0 || number >= rank) break;  // refused by CheckForm
        args[2] = std::monostate();
        attr("axis") = number == 1 ? Arg() : Arg(number);
      }
      break;
    case OnnxOp::GridSample:
      if (opset() < 20) {
        Arg& mode = attr("mode");
        if (IsNone(mode)) mode = Arg();  // "bilinear" is the default there, "linear" here
        else if (std::get<std::string_view>(mode) == "cubic") mode = std::string_view("bicubic");
      }
      break;
    default: break;
  }
}

// The problem of an operator, argument or dtype that this opset lacks; 0 if none.
uint32_t Onnx::CheckForm(OnnxOp op, std::span<const Arg> args, std::span<const Type> types) {
  const OnnxFacts& facts = FactsOf(op);
  const OpSchema& schema = SchemaOf(op);
  const std::string name(ShortName(op));
  const auto refuse = [&](std::string message, int opset) {
    Unsupported(std::move(message), opset ? OpsetHelp(opset) : "");
    return problem_;
  };
  const OnnxForm* form = FormAt(op, opset());
  if (!form) return refuse("ONNX's " + name + " needs opset " + std::to_string(facts.forms[0].since), facts.forms[0].since);
  for (size_t i = 0; i < args.size(); ++i)
    if (facts.since[i] > opset() && !IsNone(args[i]))
      return refuse("'" + std::string(schema.args[i].name) + "' of ONNX's " + name + " needs opset " + std::to_string(facts.since[i]), facts.since[i]);

  const auto check = [&](size_t operand, DType dtype) -> uint32_t {
    const uint32_t bit = 1u << static_cast<int>(dtype);
    if (form->dtypes[operand] & bit) return 0;
    int later = 0;
    for (auto f = facts.forms.rbegin(); f != facts.forms.rend() && (f->dtypes[operand] & bit); ++f) later = f->since;
    return refuse("ONNX's " + name + " has no " + std::string(Facts(dtype).torch) + " at opset " + std::to_string(opset()), later > opset() ? later : 0);
  };
  for (size_t i = 0; i < static_cast<size_t>(facts.inputs); ++i) {
    if (const auto* value = std::get_if<Value*>(&args[i])) {
      if (const uint32_t problem = check(i, (*value)->type.dtype)) return problem;
    } else if (const auto* list = std::get_if<ValueList>(&args[i])) {
      for (const Value* item : *list)
        if (const uint32_t problem = check(i, item->type.dtype)) return problem;
    }
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const size_t operand = std::min(static_cast<size_t>(facts.inputs) + i, facts.operands.size() - 1);
    if (facts.operands[operand].optional && !(form->dtypes[operand])) continue;
    if (const uint32_t problem = check(operand, types[i].dtype)) return problem;
  }
  if (!RuntimeLacks(op, args, opset(), options_)) return 0;
  const DType dtype = WidenedDType(op, args);
  const OpsetRange has = RuntimeOpsets(name, dtype);
  Unsupported("ONNX Runtime's CPU provider has no " + name + (dtype == DType::Unknown ? "" : " of " + std::string(Facts(dtype).torch)) + " at opset " +
                  std::to_string(opset()),
              has.last >= 18 && has.last != kOpenOpset ? "--opset " + std::to_string(has.last) : "");
  return problem_;
}

Val Onnx::Binary(char op, Val a, Val b) {
  if (a.dtype() != b.dtype()) {
    const DType both = Promote(a.dtype(), b.dtype());
    return Binary(op, Cast(a, both), Cast(b, both));
  }
  const DType dtype = a.dtype();
  const auto is = [&](Val x, double number) { const auto constant = ScalarOf(x); return x.value->type.ranked && constant && *constant == number; };
  if (dtype == DType::Bool) {
    if (op == '*') return And(a, b);
    return op == '-' ? Xor(a, b) : Or(a, b);
  }
  switch (op) {
    case '+':  // not for floats: -0.0 + 0.0 is 0.0
      if (IsIntegral(dtype) && is(b, 0)) return a;
      if (IsIntegral(dtype) && is(a, 0)) return b;
      return Add(a, b);
    case '-': return is(b, 0) && !std::signbit(*ScalarOf(b)) ? a : Sub(a, b);
    case '*':
      if (is(b, 1)) return a;
      return is(a, 1) ? b : Mul(a, b);
    case '/': return is(b, 1) ? a : Div(a, b);
    default: PT2ONNX_UNREACHABLE();
  }
}

}  // namespace pt2onnx
