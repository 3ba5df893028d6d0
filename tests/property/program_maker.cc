#include "program_maker.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <set>

#include "ir/bind.h"
#include "ir/op_table.h"
#include "ir/schema_parse.h"

namespace pt2onnx::property {
namespace {

using Sizes = std::vector<int64_t>;

uint32_t Hash(uint32_t a, uint32_t b) {
  uint64_t x = (uint64_t{a} << 32 | b) * 0x9E3779B97F4A7C15ull;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9ull;
  return static_cast<uint32_t>(x >> 32);
}

// The random words of a step, one after the other; 0 where they end.
class Words {
 public:
  explicit Words(const Step& step) : words_(step.words) {}
  uint32_t Next() { return at_ < words_.size() ? words_[at_++] : 0; }
  int64_t Below(int64_t n) { return n > 0 ? static_cast<int64_t>(Next() % static_cast<uint32_t>(n)) : 0; }
  int64_t Between(int64_t lo, int64_t hi) { return lo + Below(hi - lo + 1); }
  bool Chance(int64_t percent) { return Below(100) >= 100 - percent; }  // false for 0

 private:
  const std::vector<uint32_t>& words_;
  size_t at_ = 0;
};

// A tensor that the program can name.
struct Entry {
  Value* handle;
  TensorPtr tensor;
  uint32_t key;
  bool operand = false;  // of the region that is being made
};

class Maker {
 public:
  explicit Maker(Context& context) : context_(context), graph_(context.NewGraph()) {}

  Made Run(const Plan& plan) {
    MakeInputs(plan.inputs);
    std::vector<TensorPtr> tensors;
    for (const Entry& entry : pool_) tensors.push_back(entry.tensor);
    Made made{graph_, CopyAll(tensors)};
    for (const Step& step : plan.steps) Do(step);
    MakeOutputs(plan.outputs);
    return made;
  }

 private:
  // ---- Parts of the graph

  Type TypeOf(const Tensor& tensor) {
    Type type;
    type.kind = Kind::Tensor;
    type.dtype = tensor.dtype;
    const auto dims = [&](const Sizes& sizes) { return Dims(context_.arena.Copy(std::vector<SymExpr>(sizes.begin(), sizes.end()))); };
    type.shape = dims(tensor.sizes);
    type.strides = dims(tensor.strides);
    type.offset = tensor.offset;
    return type;
  }

  Value* Result(Node* node, const TensorPtr& tensor, size_t i) {
    Value* value = context_.NewValue(TypeOf(*tensor), {});
    value->name = context_.Join("v", std::to_string(value->id));
    value->def = node;
    value->result = static_cast<uint32_t>(i);
    eager_.Set(value, tensor);
    return value;
  }

  // A result may be a tensor that has a name already: that one has a new name now, as in an exported program.
  void Name(Value* handle, const TensorPtr& tensor, uint32_t key) {
    bool known = false;
    for (Entry& entry : pool_)
      if (entry.tensor == tensor) entry.handle = handle, known = true;
    if (!known) pool_.push_back({handle, tensor, key});
  }

  std::vector<Value*> Finish(const OpSchema& op, std::vector<Arg> args, const std::vector<TensorPtr>& results) {
    Node* node = context_.arena.New<Node>();
    node->op = &op;
    node->args = context_.arena.Copy(args);
    std::vector<Value*> values;
    for (size_t i = 0; i < results.size(); ++i) {
      values.push_back(Result(node, results[i], i));
      Name(values.back(), results[i], Hash(step_, count_++));
    }
    node->results = context_.arena.Copy(values);
    graph_->nodes.push_back(node);
    return values;
  }

  std::vector<Value*> Call(std::string_view name, std::vector<Arg> args) {
    const OpSchema* op = FindOpInTable(name);
    PT2ONNX_CHECK(op);
    for (size_t i = args.size(); i < op->args.size(); ++i) args.push_back(FillDefault(context_, op->args[i]));
    for (size_t i = 0; i < args.size(); ++i) PT2ONNX_CHECK(Coerce(context_, op->args[i], args[i]));
    const std::vector<TensorPtr> results = eager_.Call(*op, args);
    PT2ONNX_CHECK(eager_.faults.empty());
    return Finish(*op, std::move(args), results);
  }

  Arg List(const Sizes& ints) { return Ints(context_.arena.Copy(ints)); }
  Arg List(const std::vector<Value*>& values) { return ValueList(context_.arena.Copy(values)); }

  // ---- Choices

  template <class F>
  const Entry* Pick(Words& w, F fits) {
    const uint32_t word = w.Next();
    const Entry* best = nullptr;
    for (const Entry& entry : pool_)
      if (fits(entry) && (!best || Hash(word, entry.key) < Hash(word, best->key))) best = &entry;
    return best;
  }
  const Entry* Any(Words& w) {
    return Pick(w, [](const Entry&) { return true; });
  }
  bool Writable(const Entry& entry) const { return !frozen_.count(entry.tensor->memory.get()); }
  // For elementwise writes: eager refuses a tensor of which two elements are one.
  const Entry* Target(Words& w) {
    return Pick(w, [&](const Entry& e) { return Writable(e) && !Overlaps(*e.tensor); });
  }
  // Something that broadcasts to `sizes`, of a dtype that may be written there.
  const Entry* Source(Words& w, const Sizes& sizes, bool numeric) {
    return Pick(w, [&](const Entry& e) {
      if (numeric && e.tensor->dtype == DType::Bool) return false;
      const Sizes& own = e.tensor->sizes;
      if (own.size() > sizes.size()) return false;
      for (size_t i = 0; i < own.size(); ++i)
        if (own[i] != 1 && own[i] != sizes[sizes.size() - own.size() + i]) return false;
      return true;
    });
  }

  int64_t Dim(Words& w, int64_t rank) { return rank ? w.Between(-rank, rank - 1) : w.Between(-1, 0); }

  // Another shape of as many elements.
  Sizes Factored(Words& w, int64_t numel) {
    Sizes sizes;
    for (int64_t left = numel; left > 1 && sizes.size() < 3;) {
      Sizes divisors;
      for (int64_t d = 1; d <= left; ++d)
        if (left % d == 0) divisors.push_back(d);
      sizes.push_back(sizes.size() == 2 ? left : divisors[static_cast<size_t>(w.Below(static_cast<int64_t>(divisors.size())))]);
      left /= sizes.back();
      if (sizes.size() < 3 && left > 1 && w.Chance(50)) sizes.push_back(left), left = 1;
    }
    if (numel == 0) return w.Chance(50) ? Sizes{0} : Sizes{2, 0};
    if (w.Chance(10)) sizes.push_back(1);
    int64_t product = 1;
    for (int64_t n : sizes) product *= n;
    if (product != numel) sizes.push_back(numel / product);
    if (!sizes.empty() && w.Chance(15)) sizes[static_cast<size_t>(w.Below(static_cast<int64_t>(sizes.size())))] = -1;
    return sizes;
  }

  // Random sizes and strides that stay in the memory.
  struct Layout {
    Sizes size, stride;
    int64_t offset;
  };
  Layout InMemory(Words& w, int64_t room) {
    Layout layout;
    layout.offset = w.Below(room);
    int64_t reach = layout.offset;
    for (int64_t rank = w.Below(4); rank > 0; --rank) {
      const int64_t stride = w.Below(5), most = stride ? (room - 1 - reach) / stride + 1 : 3, size = w.Between(1, std::min<int64_t>(most, 3));
      layout.size.push_back(size);
      layout.stride.push_back(stride);
      reach += (size - 1) * stride;
    }
    return layout;
  }

  // ---- Inputs and outputs

  std::vector<double> Numbers(Words& w, DType dtype, int64_t n) {
    std::vector<double> values;
    for (int64_t i = 0; i < n; ++i) values.push_back(dtype == DType::Bool ? i % 3 == 0 : static_cast<double>((i * 7 + w.Below(5)) % 13 - 4));
    return values;
  }

  void AddInput(const TensorPtr& tensor, InputKind kind, int storage) {
    GraphInput input;
    input.kind = kind;
    input.storage = storage;
    input.value = context_.NewValue(TypeOf(*tensor), {});
    input.value->name = input.target = context_.Join(kind == InputKind::User ? "x" : "b", std::to_string(pool_.size()));
    input.value->result = static_cast<uint32_t>(graph_->inputs.size());
    eager_.Set(input.value, tensor);
    pool_.push_back({input.value, tensor, Hash(7, static_cast<uint32_t>(pool_.size()))});
    graph_->inputs.push_back(input);
  }

  TensorPtr RandomTensor(Words& w) {
    Sizes sizes;
    for (int64_t rank = w.Below(4); rank > 0; --rank) sizes.push_back(w.Chance(10) ? w.Below(2) : w.Between(2, 4));
    if (sizes.empty() && !w.Chance(20)) sizes = {3, 2};
    const DType dtype = w.Chance(35) ? DType::I64 : DType::F32;
    int64_t numel = 1;
    for (int64_t n : sizes) numel *= n;
    TensorPtr tensor = NewTensor(dtype, sizes, Numbers(w, dtype, numel));
    if (sizes.size() > 1 && w.Chance(20)) {  // another order in memory
      std::swap(tensor->sizes[0], tensor->sizes.back());
      std::swap(tensor->strides[0], tensor->strides.back());
    } else if (!sizes.empty() && sizes.back() > 1 && w.Chance(8)) {  // with gaps
      tensor->sizes.back() = (sizes.back() + 1) / 2;
      tensor->strides.back() *= 2;
      tensor->memory->packed = false;
    }
    return tensor;
  }

  void MakeInputs(const Step& step) {
    Words w(step);
    const int64_t users = w.Between(1, 2), buffers = w.Below(3), shared = w.Chance(25) ? w.Between(1, 2) : 0;
    for (int64_t i = 0; i < users; ++i) AddInput(RandomTensor(w), InputKind::User, -1);
    for (int64_t i = 0; i < buffers; ++i) AddInput(RandomTensor(w), InputKind::Buffer, -1);
    if (!shared) return;
    const TensorPtr base = NewTensor(DType::F32, {4, 3}, Numbers(w, DType::F32, 12));  // buffers of one memory
    std::vector<TensorPtr> names = {base};
    for (int64_t i = 0; i < shared; ++i) {
      switch (w.Below(4)) {
        case 0: names.push_back(ViewOf(*base, {3, 4}, {1, 3}, 0)); break;
        case 1: names.push_back(ViewOf(*base, {2, 3}, {3, 1}, 3)); break;
        case 2: names.push_back(ViewOf(*base, {4}, {3}, 1)); break;
        default: names.push_back(ViewOf(*base, {4, 3}, {3, 1}, 0)); break;
      }
    }
    if (w.Chance(50)) std::reverse(names.begin(), names.end());
    for (const TensorPtr& tensor : names) AddInput(tensor, InputKind::Buffer, 5);
  }

  void MakeOutputs(const Step& step) {
    Words w(step);
    for (const Entry& entry : pool_)
      if (entry.key % 100 < 40 || w.Chance(30)) graph_->outputs.push_back({entry.handle, OutputKind::User});
    if (graph_->outputs.empty()) graph_->outputs.push_back({pool_.back().handle, OutputKind::User});
  }

  // ---- Steps

  void Do(const Step& step) {
    if (pool_.size() > 40) return;
    step_ = step.id;
    count_ = 0;
    Words w(step);
    struct Kind {
      uint32_t weight;
      void (Maker::*make)(Words&, const Step&);
    };
    static constexpr Kind kKinds[] = {{40, &Maker::View}, {12, &Maker::ManyViews}, {38, &Maker::WriteTo}, {14, &Maker::Fill}, {4, &Maker::Geometry},
                                      {22, &Maker::Compute}, {4, &Maker::Region}, {3, &Maker::Branch}};
    uint32_t total = 0;
    for (const Kind& kind : kKinds) total += kind.weight;
    uint32_t at = step.kind % total;
    for (const Kind& kind : kKinds) {
      if (at < kind.weight) return (this->*kind.make)(w, step);
      at -= kind.weight;
    }
  }

  void View(Words& w, const Step&) {
    const int64_t which = w.Below(25);
    const Entry* e = Any(w);
    const Tensor& t = *e->tensor;
    Value* x = e->handle;
    const int64_t rank = t.rank();
    const int64_t dim = Dim(w, rank);
    const int64_t n = rank ? t.sizes[static_cast<size_t>(dim < 0 ? dim + rank : dim)] : 0;
    switch (which) {
      case 0: case 1:
        if (n > 0) Call("aten::select.int", {x, dim, w.Between(-n, n - 1)});
        break;
      case 2: case 3: case 4:
        if (rank) {
          const Arg start = w.Chance(20) ? Arg() : Arg(w.Between(-n, n)), end = w.Chance(30) ? Arg() : w.Chance(20) ? Arg(INT64_MAX) : Arg(w.Between(-1, n + 1));
          Call("aten::slice.Tensor", {x, dim, start, end, w.Chance(30) ? w.Between(2, 3) : 1});
        }
        break;
      case 5: Call(w.Chance(30) ? "aten::swapaxes" : "aten::transpose.int", {x, dim, Dim(w, rank)}); break;
      case 6:
        if (rank <= 2) Call("aten::t", {x});
        break;
      case 7: {
        Sizes dims(static_cast<size_t>(rank));
        std::iota(dims.begin(), dims.end(), 0);
        for (size_t i = dims.size(); i > 1; --i) std::swap(dims[i - 1], dims[static_cast<size_t>(w.Below(static_cast<int64_t>(i)))]);
        Call("aten::permute", {x, List(dims)});
        break;
      }
      case 8:
        if (rank) Call("aten::movedim.int", {x, dim, Dim(w, rank)});
        break;
      case 9: case 10: {
        const Sizes sizes = Factored(w, t.numel());
        Sizes whole = sizes;
        int64_t known = 1;
        for (int64_t s : sizes) known *= s == -1 ? 1 : s;
        for (int64_t& s : whole)
          if (s == -1) s = known ? t.numel() / known : 0;
        const bool possible = StridesAs(t, whole).size() == whole.size();
        if (std::count(sizes.begin(), sizes.end(), -1) && known == 0) break;
        if (which == 9 && possible) Call("aten::view", {x, List(sizes)});
        else Call("aten::reshape", {x, List(sizes)});
        break;
      }
      case 11:
        if (w.Chance(30)) Call("aten::ravel", {x});
        else if (rank) {
          const int64_t start = w.Below(rank);
          Call("aten::flatten.using_ints", {x, start, w.Chance(50) ? w.Between(start, rank - 1) : -1});
        } else {
          Call("aten::flatten.using_ints", {x});
        }
        break;
      case 12:
        if (n > 0 && n % 2 == 0) Call("aten::unflatten.int", {x, dim, List(w.Chance(50) ? Sizes{2, n / 2} : Sizes{-1, 2})});
        break;
      case 13:
        if (rank < 4) Call("aten::unsqueeze", {x, w.Between(-rank - 1, rank)});
        break;
      case 14: Call("aten::squeeze.dim", {x, dim}); break;
      case 15:
        if (w.Chance(50) || !rank) Call("aten::squeeze", {x});
        else Call("aten::squeeze.dims", {x, List(Sizes{dim})});
        break;
      case 16: case 17: {
        if (rank > 3) break;
        Sizes sizes = t.sizes;
        for (int64_t& s : sizes)
          if (s == 1) s = w.Between(1, 3);
          else if (w.Chance(20)) s = -1;
        if (sizes == t.sizes || w.Chance(40)) sizes.insert(sizes.begin(), w.Between(1, 3));
        Call("aten::expand", {x, List(sizes)});
        break;
      }
      case 18: {
        if (rank < 2) break;
        const int64_t a = w.Below(rank), b = (a + w.Between(1, rank - 1)) % rank;
        Call("aten::diagonal", {x, w.Between(-2, 2), a, w.Chance(50) ? b : b - rank});
        break;
      }
      case 19: {
        if (n < 1 || rank > 3) break;
        const int64_t size = w.Between(1, n);
        Call("aten::unfold", {x, dim, size, w.Between(1, 3)});
        break;
      }
      case 20: {
        if (!t.memory->packed || t.memory->data.empty()) break;
        const Layout layout = InMemory(w, static_cast<int64_t>(t.memory->data.size()));
        Call("aten::as_strided", {x, List(layout.size), List(layout.stride), layout.offset});
        break;
      }
      case 21:
        if (n > 0) {
          const int64_t start = w.Below(n);
          Call("aten::narrow", {x, dim, w.Chance(30) ? start - n : start, w.Between(0, n - start)});
        }
        break;
      case 22: Call(w.Chance(50) ? "aten::detach" : "aten::alias", {x}); break;
      case 23: {
        const Entry* like = Pick(w, [&](const Entry& o) { return o.tensor->numel() == t.numel() && o.tensor != e->tensor; });
        if (!like) break;
        if (StridesAs(t, like->tensor->sizes).size() == like->tensor->sizes.size()) Call("aten::view_as", {x, like->handle});
        else Call("aten::reshape_as", {x, like->handle});
        break;
      }
      default:
        switch (w.Below(4)) {
          case 0: Call("aten::contiguous", {x}); break;
          case 1: Call("aten::to.dtype", {x, w.Chance(50) ? t.dtype : DType::F32}); break;
          case 2: Call("aten::dropout", {x, 0.5, false}); break;
          default: Call("aten::atleast_2d", {x}); break;
        }
    }
  }

  void ManyViews(Words& w, const Step&) {
    const int64_t which = w.Below(7);
    const Entry* e = Pick(w, [](const Entry& o) { return o.tensor->rank() > 0; });
    if (!e) return;
    const Tensor& t = *e->tensor;
    const int64_t dim = Dim(w, t.rank()), n = t.sizes[static_cast<size_t>(dim < 0 ? dim + t.rank() : dim)];
    Value* x = e->handle;
    if (n < 1 || n > 6) return;
    switch (which) {
      case 0: Call("aten::split.Tensor", {x, w.Between(1, n), dim}); break;
      case 1: {
        const int64_t first = w.Below(n + 1);
        Call("aten::split_with_sizes", {x, List(Sizes{first, n - first}), dim});
        break;
      }
      case 2: Call("aten::unbind.int", {x, dim}); break;
      case 3: Call("aten::chunk", {x, w.Between(1, 3), dim}); break;
      case 4: Call("aten::tensor_split.sections", {x, w.Between(1, 3), dim}); break;
      case 5: Call("aten::unsafe_split.Tensor", {x, w.Between(1, n), dim}); break;
      default: {
        const Entry* other = Source(w, t.sizes, false);
        Call("aten::broadcast_tensors", {List(std::vector<Value*>{x, other ? other->handle : x})});
      }
    }
  }

  static Arg Number(Words& w, DType dtype) {
    const int64_t n = w.Between(-3, 5);
    return dtype == DType::F32 && w.Chance(50) ? Arg(static_cast<double>(n)) : Arg(n);
  }

  void WriteTo(Words& w, const Step&) {
    const int64_t which = w.Below(17);
    const Entry* e = Target(w);
    if (!e) return;
    const Tensor& t = *e->tensor;
    Value* x = e->handle;
    const int64_t rank = t.rank(), dim = Dim(w, rank), n = rank ? t.sizes[static_cast<size_t>(dim < 0 ? dim + rank : dim)] : 0;
    const bool number = t.dtype != DType::Bool;
    const auto fits = [&](const Entry* source) { return source && number && (t.dtype == DType::F32 || source->tensor->dtype != DType::F32); };
    switch (which) {
      case 0: case 1: case 2:
        if (const Entry* y = Source(w, t.sizes, true); fits(y)) Call("aten::add_.Tensor", {x, y->handle, w.Chance(30) ? w.Between(-1, 2) : 1});
        break;
      case 3: case 4:
        if (number) Call("aten::add_.Scalar", {x, Number(w, t.dtype)});
        break;
      case 5:
        if (const Entry* y = Source(w, t.sizes, true); fits(y)) Call("aten::mul_.Tensor", {x, y->handle});
        break;
      case 6: case 7: case 8:
        if (const Entry* y = Source(w, t.sizes, false)) Call("aten::copy_", {x, y->handle});
        break;
      case 9: {  // at positions, some of them twice
        if (n < 1) break;
        const int64_t at = dim < 0 ? dim + rank : dim;
        Value* index = Literal(w, DType::I64, {w.Between(1, 2)}, n);
        std::vector<Value*> indices(static_cast<size_t>(at), nullptr);
        indices.push_back(index);
        Value* value = Call("aten::full", {List(Sizes{}), Number(w, t.dtype), t.dtype})[0];
        Call("aten::index_put_", {x, List(indices), value, number && w.Chance(30)});
        break;
      }
      case 10: {  // where a mask says so
        if (!number) break;
        Value* mask = Call("aten::gt.Scalar", {x, w.Between(-2, 4)})[0];
        Value* value = Call("aten::full", {List(Sizes{}), Number(w, t.dtype), t.dtype})[0];
        Call("aten::index_put_", {x, List(std::vector<Value*>{mask}), value, false});
        break;
      }
      case 11: {
        const Entry* a = Pick(w, [&](const Entry& o) { return o.tensor->sizes == t.sizes && o.tensor->dtype == t.dtype && number; });
        if (!a) break;
        const Entry* b = Source(w, t.sizes, true);
        if (!fits(b)) break;
        if (w.Chance(50)) Call("aten::add.out", {a->handle, b->handle, 1, x});
        else Call("aten::mul.out", {a->handle, b->handle, x});
        break;
      }
      case 12:
        if (number) Call(w.Chance(50) ? "aten::relu_" : "aten::neg_", {x});
        break;
      case 13:
        if (number && rank) Call("aten::cumsum_", {x, dim});
        break;
      case 14:
        if (number) Call(w.Chance(50) ? "aten::eq_.Scalar" : "aten::ge_.Scalar", {x, w.Between(-1, 3)});
        break;
      case 15: {
        if (n < 1 || !number) break;
        Value* index = Literal(w, DType::I64, {1}, n);
        if (w.Chance(50)) Call("aten::index_fill_.int_Scalar", {x, dim, index, Number(w, t.dtype)});
        else if (const Entry* y = Pick(w, [&](const Entry& o) {
                   Sizes sizes = t.sizes;
                   sizes[static_cast<size_t>(dim < 0 ? dim + rank : dim)] = 1;
                   return o.tensor->sizes == sizes && o.tensor->dtype == t.dtype;
                 }))
          Call(w.Chance(50) ? "aten::index_add_" : "aten::index_copy_", {x, dim, index, y->handle});
        break;
      }
      default: {
        if (!number) break;
        const Entry* second = Pick(w, [&](const Entry& o) { return Writable(o) && o.tensor->dtype == t.dtype && !Overlaps(*o.tensor); });
        const std::vector<Value*> list = {x, second->handle};
        if (w.Chance(50)) Call("aten::_foreach_add_.Scalar", {List(list), Number(w, t.dtype)});
        else if (second->tensor->sizes == t.sizes) Call("aten::_foreach_add_.List", {List(list), List(std::vector<Value*>{second->handle, x})});
      }
    }
  }

  // A tensor of small positions below n: cumsum of ones, taken apart, would be one op more each.
  Value* Literal(Words& w, DType dtype, const Sizes& sizes, int64_t n) {
    int64_t numel = 1;
    for (int64_t s : sizes) numel *= s;
    std::vector<Value*> parts;
    for (int64_t i = 0; i < numel; ++i) parts.push_back(Call("aten::full", {List(Sizes{1}), w.Below(n), dtype})[0]);
    return parts.size() == 1 ? parts[0] : Call("aten::cat", {List(parts)})[0];
  }

  // Writes of one value, which eager allows where elements overlap.
  void Fill(Words& w, const Step&) {
    const int64_t which = w.Below(6);
    const Entry* e = Pick(w, [&](const Entry& o) { return Writable(o) && o.tensor->dtype != DType::Bool; });
    if (!e) return;
    const Tensor& t = *e->tensor;
    switch (which) {
      case 0: case 1: Call("aten::fill_.Scalar", {e->handle, Number(w, t.dtype)}); break;
      case 2: Call("aten::zero_", {e->handle}); break;
      case 3:
        if (const Entry* y = Pick(w, [](const Entry& o) { return o.tensor->rank() == 0; })) Call("aten::fill_.Tensor", {e->handle, y->handle});
        break;
      default: {  // a mask that agrees where elements overlap, if it is made of the tensor itself
        Value* mask = Call("aten::gt.Scalar", {e->handle, w.Between(-2, 4)})[0];
        Call("aten::masked_fill_.Scalar", {e->handle, mask, Number(w, t.dtype)});
      }
    }
  }

  void Geometry(Words& w, const Step&) {
    const int64_t which = w.Below(8);
    const Entry* e = Pick(w, [&](const Entry& o) { return Writable(o) && !o.operand && !IsInput(o); });
    if (!e) return;
    const Tensor& t = *e->tensor;
    Value* x = e->handle;
    switch (which) {
      case 0:
        if (t.rank() <= 2) Call("aten::t_", {x});
        break;
      case 1: Call("aten::transpose_", {x, Dim(w, t.rank()), Dim(w, t.rank())}); break;
      case 2:
        if (t.rank() < 4) Call("aten::unsqueeze_", {x, w.Between(0, t.rank())});
        break;
      case 3: Call("aten::squeeze_.dim", {x, Dim(w, t.rank())}); break;
      case 4:
        if (const Entry* y = Pick(w, [&](const Entry& o) { return o.tensor->dtype == t.dtype; })) Call("aten::set_.source_Tensor", {x, y->handle});
        break;
      case 5: {
        if (!t.memory->packed || t.memory->data.empty()) break;
        const Layout layout = InMemory(w, static_cast<int64_t>(t.memory->data.size()));
        Call("aten::as_strided_", {x, List(layout.size), List(layout.stride), layout.offset});
        break;
      }
      case 6: {
        const int64_t room = static_cast<int64_t>(t.memory->data.size()) - t.offset;
        if (t.memory->packed && room > 0) Call("aten::resize_", {x, List(w.Chance(50) && room > 1 ? Sizes{2, w.Between(0, room / 2)} : Sizes{w.Between(0, room)})});
        break;
      }
      default: Call("aten::detach_", {x});
    }
  }

  bool IsInput(const Entry& entry) const {
    return std::any_of(graph_->inputs.begin(), graph_->inputs.end(), [&](const GraphInput& input) { return eager_.Get(input.value) == entry.tensor; });
  }

  void Compute(Words& w, const Step&) {
    const int64_t which = w.Below(9);
    const Entry* e = Any(w);
    const Tensor& t = *e->tensor;
    Value* x = e->handle;
    const bool number = t.dtype != DType::Bool;
    switch (which) {
      case 0: case 1: Call("aten::clone", {x}); break;
      case 2:
        if (const Entry* y = Source(w, t.sizes, true); y && number) Call("aten::add.Tensor", {x, y->handle});
        break;
      case 3:
        if (const Entry* y = Source(w, t.sizes, true); y && number) Call("aten::mul.Tensor", {x, y->handle});
        break;
      case 4: {
        if (!t.rank()) break;
        const int64_t dim = Dim(w, t.rank());
        const Entry* y = Pick(w, [&](const Entry& o) {
          Sizes a = t.sizes, b = o.tensor->sizes;
          if (a.size() != b.size()) return false;
          a[static_cast<size_t>(dim < 0 ? dim + t.rank() : dim)] = b[static_cast<size_t>(dim < 0 ? dim + t.rank() : dim)] = 0;
          return a == b;
        });
        Call("aten::cat", {List(std::vector<Value*>{x, y->handle}), dim});
        break;
      }
      case 5:
        if (number) Call("aten::neg", {x});
        break;
      case 6:
        if (t.rank()) Call("aten::flip", {x, List(Sizes{Dim(w, t.rank())})});
        break;
      case 7: {
        if (!t.rank() || t.sizes[0] < 1) break;
        Value* index = Literal(w, DType::I64, {w.Between(1, 2)}, t.sizes[0]);
        Call("aten::index.Tensor", {x, List(std::vector<Value*>{index})});
        break;
      }
      default: Call("aten::clone", {x, MemoryFormat{1}});
    }
  }

  // ---- Regions

  struct Scope {
    Graph* graph;
    std::deque<Entry> pool;
    uint32_t step, count;
  };
  Scope Enter(const std::vector<Entry>& operands) {
    Scope outer{graph_, std::move(pool_), step_, count_};
    graph_ = context_.NewGraph();
    graph_->name = context_.Join("body", std::to_string(bodies_++));
    pool_.clear();
    for (const Entry& operand : operands) {
      GraphInput input;
      input.value = context_.NewValue(TypeOf(*operand.tensor), {});
      input.value->name = context_.Join("o", std::to_string(input.value->id));
      input.value->result = static_cast<uint32_t>(graph_->inputs.size());
      eager_.Set(input.value, operand.tensor);
      graph_->inputs.push_back(input);
      pool_.push_back({input.value, operand.tensor, operand.key, true});
    }
    return outer;
  }
  Graph* Leave(Scope& outer) {
    Graph* body = graph_;
    graph_ = outer.graph;
    pool_ = std::move(outer.pool);
    step_ = outer.step;
    count_ = outer.count;
    return body;
  }

  std::vector<Entry> Operands(Words& w) {
    std::vector<Entry> operands;
    for (int64_t n = w.Between(1, 3); n > 0; --n) {
      const Entry* e = Any(w);
      if (std::none_of(operands.begin(), operands.end(), [&](const Entry& o) { return o.tensor == e->tensor; })) operands.push_back(*e);
    }
    return operands;
  }
  static std::vector<Value*> Handles(const std::vector<Entry>& entries) {
    std::vector<Value*> handles;
    for (const Entry& entry : entries) handles.push_back(entry.handle);
    return handles;
  }

  // with torch.no_grad(): writes its operands freely, may answer them or views of them.
  void Region(Words& w, const Step& step) {
    const std::vector<Entry> operands = Operands(w);
    Scope outer = Enter(operands);
    for (const Step& inner : step.body) Do(inner);
    std::vector<TensorPtr> results;
    for (const Entry& entry : pool_)
      if (w.Chance(40) && results.size() < 3 && std::find(results.begin(), results.end(), entry.tensor) == results.end()) {
        results.push_back(entry.tensor);
        graph_->outputs.push_back({entry.handle, OutputKind::Plain});
      }
    Graph* body = Leave(outer);
    Finish(*FindOpInTable("hop::wrap_with_set_grad_enabled"), {false, body, List(Handles(operands))}, results);
  }

  // torch.cond: branches work on tensors of their own and answer a fresh one.
  void Branch(Words& w, const Step& step) {
    const std::vector<Entry> operands = Operands(w);
    const auto branch = [&](const std::vector<Step>& steps, TensorPtr* result) {
      Scope outer = Enter(operands);
      const std::set<const Memory*> frozen = frozen_;
      for (const Entry& operand : operands) frozen_.insert(operand.tensor->memory.get());
      Call("aten::clone", {graph_->inputs[0].value});
      for (const Step& inner : steps) Do(inner);
      const Tensor& like = *operands[0].tensor;
      const Entry* chosen = Pick(w, [&](const Entry& e) { return e.tensor->sizes == like.sizes && e.tensor->dtype == like.dtype; });
      Value* value = Call("aten::clone", {chosen->handle, MemoryFormat{1}})[0];
      *result = eager_.Get(value);
      graph_->outputs.push_back({value, OutputKind::Plain});
      frozen_ = frozen;
      return Leave(outer);
    };
    TensorPtr yes, no;
    Graph* then_branch = branch(step.body, &yes);
    step_ = step.id, count_ = 100;
    Graph* else_branch = branch(step.otherwise, &no);
    step_ = step.id, count_ = 200;
    Value* predicate = Call("aten::any", {w.Chance(50) ? Call("aten::gt.Scalar", {operands[0].handle, w.Between(0, 8)})[0] : operands[0].handle})[0];
    const bool taken = ValuesOf(*eager_.Get(predicate))[0] != 0;
    Finish(*FindOpInTable("hop::cond"), {predicate, then_branch, else_branch, List(Handles(operands))}, {taken ? yes : no});
  }

  Context& context_;
  Graph* graph_;
  Eager eager_;
  std::deque<Entry> pool_;            // entries stay where they are
  std::set<const Memory*> frozen_;  // not to be written: operands of a branch
  uint32_t step_ = 0, count_ = 0, bodies_ = 0;
};

}  // namespace

Made Make(Context& context, const Plan& plan) { return Maker(context).Run(plan); }

}  // namespace pt2onnx::property
