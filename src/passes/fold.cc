#include "passes/fold.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "onnx/attr_types.h"
#include "onnx/constants.h"
#include "onnx/table.h"

namespace pt2onnx {
namespace {

constexpr int64_t kMostBytes = 16 << 10;  // of a result

using Index = std::vector<int64_t>;

int64_t Count(const Index& shape) { return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()); }

// Numbers of a tensor: integers and bools in `whole`, floats in `real`.
struct Numbers {
  DType dtype = DType::Unknown;
  Index shape = {};
  std::vector<int64_t> whole = {};
  std::vector<double> real = {};

  bool floats() const { return IsFloat(dtype); }
  int64_t size() const { return Count(shape); }
  double operator[](int64_t i) const { return floats() ? real[static_cast<size_t>(i)] : static_cast<double>(whole[static_cast<size_t>(i)]); }
};
using Inputs = std::vector<const Numbers*>;  // null: absent

bool IsFoldable(DType d) {
  switch (d) {
    case DType::Bool:
    case DType::U8:
    case DType::I8:
    case DType::U16:
    case DType::I16:
    case DType::U32:
    case DType::I32:
    case DType::I64:
    case DType::F16:
    case DType::BF16:
    case DType::F32:
    case DType::F64: return true;
    default: return false;
  }
}

std::optional<Numbers> Decode(const TensorData& data) {
  if (data.stored || !IsFoldable(data.dtype)) return std::nullopt;
  Numbers out = {.dtype = data.dtype, .shape = {data.shape.begin(), data.shape.end()}};
  const int64_t size = Count(out.shape);
  if (size * ItemSize(data.dtype) > kMostBytes || std::ssize(data.bytes) != size * ItemSize(data.dtype)) return std::nullopt;
  for (int64_t i = 0; i < size; ++i) {
    if (out.floats())
      out.real.push_back(FloatAt(data, i));
    else
      out.whole.push_back(IntAt(data, i));
  }
  return out;
}

std::vector<std::byte> Encode(const Numbers& x) {
  if (x.floats()) return EncodeNumbers(x.real, x.dtype);
  std::vector<std::byte> out;
  for (const int64_t number : x.whole) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&number);  // little endian: the low bytes are the number modulo 2^n
    out.insert(out.end(), bytes, bytes + ItemSize(x.dtype));
  }
  return out;
}

// ---- Where an element of the result comes from --------------------------------------------------------------------------------------

// Calls f with the coordinates of every element, in order.
template <class F>
void ForEachPlace(const Index& shape, F f) {
  Index at(shape.size(), 0);
  for (int64_t n = Count(shape); n > 0; --n) {
    f(std::as_const(at));
    for (size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

int64_t Offset(const Index& at, const Index& shape) {
  int64_t offset = 0;
  for (size_t d = 0; d < shape.size(); ++d) offset = offset * shape[d] + at[d];
  return offset;
}

// Of an operand that is broadcast.
int64_t BroadcastOffset(const Index& at, const Index& shape) {
  int64_t offset = 0;
  for (size_t d = 0; d < shape.size(); ++d) offset = offset * shape[d] + (shape[d] == 1 ? 0 : at[at.size() - shape.size() + d]);
  return offset;
}

bool Broadcasts(const Index& shape, const Index& to) {
  if (shape.size() > to.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1 && shape[d] != to[to.size() - shape.size() + d]) return false;
  return true;
}

class Folder {
 public:
  Folder(const Node& node, const Inputs& in, DType dtype, Index shape) : node_(node), in_(in), out_({.dtype = dtype, .shape = std::move(shape)}) {}

  std::optional<Numbers> Run() {
    if (!Fold()) return std::nullopt;
    if (static_cast<int64_t>(out_.floats() ? out_.real.size() : out_.whole.size()) != out_.size()) return std::nullopt;
    return std::move(out_);
  }

 private:
  const Numbers& In(size_t i) const { return *in_[i]; }
  const Arg& Attr(std::string_view name) const { return node_.args[static_cast<size_t>(node_.op->ArgIndex(name))]; }
  int64_t Int(std::string_view name, int64_t none) const {
    const int64_t* number = std::get_if<int64_t>(&Attr(name));
    return number ? *number : none;
  }
  void Take(const Numbers& x, int64_t i) {
    if (out_.floats())
      out_.real.push_back(x.real[static_cast<size_t>(i)]);
    else
      out_.whole.push_back(x.whole[static_cast<size_t>(i)]);
  }
  bool AllBroadcast() const {
    return std::all_of(in_.begin(), in_.end(), [&](const Numbers* x) { return x && Broadcasts(x->shape, out_.shape); });
  }

  // Elementwise, in float64 (rounded once for the result) or in int64.
  bool Floats(const std::function<double(double, double)>& f) {
    if (!AllBroadcast() || !out_.floats()) return false;
    ForEachPlace(out_.shape, [&](const Index& at) {
      const double x = In(0)[BroadcastOffset(at, In(0).shape)], y = in_.size() > 1 ? In(1)[BroadcastOffset(at, In(1).shape)] : 0;
      out_.real.push_back(f(x, y));
    });
    return true;
  }
  bool Wholes(const std::function<std::optional<int64_t>(int64_t, int64_t)>& f) {
    if (!AllBroadcast() || out_.floats() || In(0).floats()) return false;
    bool fine = true;
    ForEachPlace(out_.shape, [&](const Index& at) {
      const auto whole = [&](const Numbers& x) { return x.whole[static_cast<size_t>(BroadcastOffset(at, x.shape))]; };
      const auto result = f(whole(In(0)), in_.size() > 1 ? whole(In(1)) : 0);
      fine = fine && result;
      out_.whole.push_back(result.value_or(0));
    });
    return fine;
  }
  bool Compare(const std::function<bool(double, double)>& f, const std::function<bool(int64_t, int64_t)>& g) {
    if (!AllBroadcast()) return false;
    ForEachPlace(out_.shape, [&](const Index& at) {
      const int64_t i = BroadcastOffset(at, In(0).shape), j = BroadcastOffset(at, In(1).shape);
      const auto w = [](const Numbers& x, int64_t n) { return x.whole[static_cast<size_t>(n)]; };
      out_.whole.push_back(In(0).floats() ? f(In(0)[i], In(1)[j]) : g(w(In(0), i), w(In(1), j)));
    });
    return true;
  }
  static int64_t Wrap(uint64_t x) { return static_cast<int64_t>(x); }

  bool Arithmetic(OnnxOp op) {
    using enum OnnxOp;
    const auto u = [](int64_t x) { return static_cast<uint64_t>(x); };
    switch (op) {
      case Add:
        return out_.floats() ? Floats([](double x, double y) { return x + y; }) : Wholes([=](int64_t x, int64_t y) { return Wrap(u(x) + u(y)); });
      case Sub:
        return out_.floats() ? Floats([](double x, double y) { return x - y; }) : Wholes([=](int64_t x, int64_t y) { return Wrap(u(x) - u(y)); });
      case Mul:
        return out_.floats() ? Floats([](double x, double y) { return x * y; }) : Wholes([=](int64_t x, int64_t y) { return Wrap(u(x) * u(y)); });
      case Div:
        if (out_.floats()) return Floats([](double x, double y) { return x / y; });
        return Wholes([](int64_t x, int64_t y) { return y == 0 || y == -1 ? std::nullopt : std::optional(x / y); });
      case Mod:
        if (Int("fmod", 0) != 0) return false;
        return Wholes([](int64_t x, int64_t y) { return y == 0 || y == -1 ? std::nullopt : std::optional((x % y + y) % y); });
      case Neg:
        return out_.floats() ? Floats([](double x, double) { return -x; }) : Wholes([=](int64_t x, int64_t) { return Wrap(0 - u(x)); });
      case And:
        return Wholes([](int64_t x, int64_t y) { return x & y; });
      case Or:
        return Wholes([](int64_t x, int64_t y) { return x | y; });
      case Not:
        return Wholes([](int64_t x, int64_t) { return int64_t{!x}; });
      case Equal:
        return Compare(std::equal_to<double>(), std::equal_to<int64_t>());
      case Less:
        return Compare(std::less<double>(), std::less<int64_t>());
      case LessOrEqual:
        return Compare(std::less_equal<double>(), std::less_equal<int64_t>());
      case Greater:
        return Compare(std::greater<double>(), std::greater<int64_t>());
      case GreaterOrEqual:
        return Compare(std::greater_equal<double>(), std::greater_equal<int64_t>());
      case Abs:
        return Floats([](double x, double) { return std::fabs(x); });
      case Ceil:
        return Floats([](double x, double) { return std::ceil(x); });
      case Floor:
        return Floats([](double x, double) { return std::floor(x); });
      case Sqrt:
        return Floats([](double x, double) { return std::sqrt(x); });
      case Reciprocal:
        return Floats([](double x, double) { return 1 / x; });
      case Exp:
        return Floats([](double x, double) { return std::exp(x); });
      case Log:
        return Floats([](double x, double) { return std::log(x); });
      case Sin:
        return Floats([](double x, double) { return std::sin(x); });
      case Cos:
        return Floats([](double x, double) { return std::cos(x); });
      case Pow:
        return In(1).dtype == out_.dtype && Floats([](double x, double y) { return std::pow(x, y); });
      default:
        return false;
    }
  }

  bool Converted() {
    const bool boolean = out_.dtype == DType::Bool;
    for (int64_t i = 0; i < In(0).size(); ++i) {
      if (out_.floats()) {
        out_.real.push_back(In(0)[i]);
      } else if (!In(0).floats()) {
        const int64_t x = In(0).whole[static_cast<size_t>(i)];
        const int bits = 8 * ItemSize(out_.dtype);
        const bool narrow = !boolean && bits < 64 && (x >= int64_t{1} << (bits - 1) || x < -(int64_t{1} << (bits - 1)));
        if (narrow) return false;
        out_.whole.push_back(boolean ? x != 0 : x);
      } else {
        const double x = In(0)[i];
        if (!boolean && !(std::fabs(x) < 1e9)) return false;
        out_.whole.push_back(boolean ? x != 0 : static_cast<int64_t>(x));
      }
    }
    return true;
  }

  bool Moves(OnnxOp op) {
    using enum OnnxOp;
    const auto each = [&](const Numbers& x, const std::function<int64_t(const Index&)>& from) {
      bool fine = true;
      ForEachPlace(out_.shape, [&](const Index& at) {
        const int64_t i = from(at);
        if (fine = fine && i >= 0 && i < x.size(); fine) Take(x, i);
      });
      return fine;
    };
    switch (op) {
      case Identity:
      case Reshape:
      case Unsqueeze:
      case Squeeze:
      case Flatten:
        if (In(0).size() != out_.size()) return false;
        for (int64_t i = 0; i < In(0).size(); ++i) Take(In(0), i);
        return true;
      case Expand:
        return Broadcasts(In(0).shape, out_.shape) && each(In(0), [&](const Index& at) { return BroadcastOffset(at, In(0).shape); });
      case Transpose: {
        const Ints* perm = std::get_if<Ints>(&Attr("perm"));
        if (!perm) return false;
        return each(In(0), [&](const Index& at) {
          Index from(at.size());
          for (size_t d = 0; d < at.size(); ++d) from[static_cast<size_t>((*perm)[d])] = at[d];
          return Offset(from, In(0).shape);
        });
      }
      case Gather: {
        const int64_t rank = std::ssize(In(0).shape), axis = Int("axis", 0) + (Int("axis", 0) < 0 ? rank : 0), width = std::ssize(In(1).shape);
        return each(In(0), [&](const Index& at) {
          const Index which(at.begin() + axis, at.begin() + axis + width);
          int64_t index = In(1).whole[static_cast<size_t>(Offset(which, In(1).shape))];
          const int64_t size = In(0).shape[static_cast<size_t>(axis)];
          if (index < 0) index += size;
          if (index < 0 || index >= size) return int64_t{-1};
          Index from(at.begin(), at.begin() + axis);
          from.push_back(index);
          from.insert(from.end(), at.begin() + axis + width, at.end());
          return Offset(from, In(0).shape);
        });
      }
      case Slice: {
        const Index& shape = In(0).shape;
        Index first(shape.size(), 0), step(shape.size(), 1);
        for (size_t i = 0; i < In(1).whole.size(); ++i) {
          int64_t axis = in_[3] ? In(3).whole[i] : static_cast<int64_t>(i);
          if (axis < 0) axis += std::ssize(shape);
          const int64_t size = shape[static_cast<size_t>(axis)], by = in_.size() > 4 && in_[4] ? In(4).whole[i] : 1;
          const int64_t start = In(1).whole[i] < 0 ? In(1).whole[i] + size : In(1).whole[i];
          first[static_cast<size_t>(axis)] = std::clamp<int64_t>(start, 0, by < 0 ? size - 1 : size);
          step[static_cast<size_t>(axis)] = by;
        }
        return each(In(0), [&](const Index& at) {
          Index from(at.size());
          for (size_t d = 0; d < at.size(); ++d) from[d] = first[d] + at[d] * step[d];
          return Offset(from, shape);
        });
      }
      case Concat: {
        const int64_t axis = Int("axis", 0) + (Int("axis", 0) < 0 ? std::ssize(out_.shape) : 0);
        bool fine = true;
        ForEachPlace(out_.shape, [&](const Index& at) {
          Index from = at;
          int64_t& along = from[static_cast<size_t>(axis)];
          size_t piece = 0;
          while (piece < in_.size() && along >= In(piece).shape[static_cast<size_t>(axis)]) along -= In(piece++).shape[static_cast<size_t>(axis)];
          if (fine = fine && piece < in_.size(); fine) Take(In(piece), Offset(from, In(piece).shape));
        });
        return fine;
      }
      case Trilu: {
        const int64_t k = in_.size() > 1 && in_[1] ? In(1).whole[0] : 0;
        const bool upper = Int("upper", 1) != 0;
        const Numbers zero = {.dtype = out_.dtype, .shape = {}, .whole = {0}, .real = {0.0}};
        ForEachPlace(out_.shape, [&](const Index& at) {
          const int64_t beside = at[at.size() - 1] - at[at.size() - 2];
          const bool kept = upper ? beside >= k : beside <= k;
          Take(kept ? In(0) : zero, kept ? Offset(at, out_.shape) : 0);
        });
        return true;
      }
      case Where:
        if (!AllBroadcast()) return false;
        ForEachPlace(out_.shape, [&](const Index& at) {
          const Numbers& chosen = In(0).whole[static_cast<size_t>(BroadcastOffset(at, In(0).shape))] ? In(1) : In(2);
          Take(chosen, BroadcastOffset(at, chosen.shape));
        });
        return true;
      default:
        return false;
    }
  }

  bool Fold() {
    using enum OnnxOp;
    const OnnxOp op = OnnxOpOf(*node_.op);
    if (op == OnnxOp::Cast) return Converted();
    if (op == Range) {  // of integral numbers, where no runtime rounds
      for (const Numbers* x : in_)
        if (!x || x->size() != 1 || (*x)[0] != std::floor((*x)[0]) || std::fabs((*x)[0]) > 1e6) return false;
      for (int64_t i = 0; i < out_.size(); ++i) {
        const double x = In(0)[0] + static_cast<double>(i) * In(2)[0];
        if (out_.floats())
          out_.real.push_back(x);
        else
          out_.whole.push_back(static_cast<int64_t>(x));
      }
      return true;
    }
    if (op == OnnxOp::ConstantOfShape) {
      const TensorData* const* value = std::get_if<const TensorData*>(&Attr("value"));
      const auto number = value ? Decode(**value) : std::nullopt;
      if (!number) return false;
      for (int64_t i = 0; i < out_.size(); ++i) Take(*number, 0);
      return true;
    }
    return Arithmetic(op) || (Reset(), Moves(op));
  }
  void Reset() { out_.real.clear(), out_.whole.clear(); }

  const Node& node_;
  const Inputs& in_;
  Numbers out_;
};

class Walker {
 public:
  explicit Walker(Context& context) : context_(context) {}

  // What a body gives back must be made by a node of its own: an equal constant outside would take its place.
  void Run(Graph& graph, bool is_body = false) {
    std::unordered_set<const Value*> given;
    if (is_body)
      for (const GraphOutput& output : graph.outputs)
        if (Value* const* value = std::get_if<Value*>(&output.value)) given.insert(*value);
    for (Node* node : graph.nodes) {
      for (const Arg& arg : node->args)
        if (Graph* const* body = std::get_if<Graph*>(&arg)) Run(**body, true);
      if (IsOnnx(*node->op) && node->results.size() == 1 && !given.contains(node->results[0])) Visit(*node);
    }
  }

 private:
  const Numbers* Known(const Value* value) {
    if (!value->def || !Is(*value->def->op, OnnxOp::Constant)) return nullptr;
    const auto found = known_.find(value->id);
    if (found != known_.end()) return found->second ? &*found->second : nullptr;
    const TensorData* const* data = std::get_if<const TensorData*>(&value->def->args[static_cast<size_t>(value->def->op->ArgIndex("value"))]);
    const auto& numbers = known_.emplace(value->id, data && *data ? Decode(**data) : std::nullopt).first->second;
    return numbers ? &*numbers : nullptr;
  }

  void Visit(Node& node) {
    Value* result = node.results[0];
    if (Is(*node.op, OnnxOp::Constant) || result->problem || !result->type.ranked || !IsFoldable(result->type.dtype)) return;
    Index shape;
    for (const SymExpr& dim : result->type.shape) {
      if (dim.IsUnknown() || !dim.IsConst()) return;
      shape.push_back(dim.Const());
    }
    if (Count(shape) * ItemSize(result->type.dtype) > kMostBytes) return;
    Inputs in;
    bool any = false;
    for (size_t i = 0; i < static_cast<size_t>(FactsOf(OnnxOpOf(*node.op)).inputs); ++i) {
      if (Value* const* value = std::get_if<Value*>(&node.args[i])) {
        in.push_back(Known(*value));
        if (!in.back()) return;
        any = true;
      } else if (const ValueList* list = std::get_if<ValueList>(&node.args[i])) {
        for (const Value* value : *list) {
          in.push_back(Known(value));
          if (!in.back()) return;
          any = true;
        }
      } else {
        in.push_back(nullptr);
      }
    }
    while (!in.empty() && !in.back()) in.pop_back();
    if (!any) return;
    const auto numbers = Folder(node, in, result->type.dtype, shape).Run();
    if (!numbers) return;
    auto* data = context_.arena.New<TensorData>();
    data->dtype = numbers->dtype;
    data->shape = context_.arena.Copy(numbers->shape);
    data->bytes = context_.arena.Copy(Encode(*numbers));
    std::vector<Arg> args(SchemaOf(OnnxOp::Constant).args.size());
    args[static_cast<size_t>(SchemaOf(OnnxOp::Constant).ArgIndex("value"))] = static_cast<const TensorData*>(data);
    node.op = &SchemaOf(OnnxOp::Constant);
    node.args = context_.arena.Copy(args);
  }

  Context& context_;
  std::unordered_map<uint32_t, std::optional<Numbers>> known_;
};

}  // namespace

void FoldConstants(Context& context, Graph& graph) { Walker(context).Run(graph); }

}  // namespace pt2onnx
