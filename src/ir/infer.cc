#include "ir/infer.h"

#include <algorithm>

#include "ir/promotion.h"
#include "ir/sym_facts.h"

namespace pt2onnx {
namespace {

// The arguments of one call by name.
struct In {
  Context& context;
  const OpSchema& op;
  std::span<const Arg> args;

  const Arg& arg(std::string_view name) const {
    const int i = op.ArgIndex(name);
    PT2ONNX_CHECK(i >= 0);
    return args[static_cast<size_t>(i)];
  }
  bool Has(std::string_view name) const {
    const int i = op.ArgIndex(name);
    return i >= 0 && !IsNone(args[static_cast<size_t>(i)]);
  }
  const Type& tensor(size_t i = 0) const { return std::get<Value*>(args[i])->type; }
  const Type& tensor(std::string_view name) const { return std::get<Value*>(arg(name))->type; }
  int64_t integer(std::string_view name) const { return std::get<int64_t>(arg(name)); }
  SymExpr size(std::string_view name) const {
    const Arg& a = arg(name);
    if (const int64_t* n = std::get_if<int64_t>(&a)) return *n;
    return std::get<SymExpr>(a);
  }
  bool truth(std::string_view name) const { return Has(name) && std::get<bool>(arg(name)); }
  Dims dims(std::string_view name) const {
    const Arg& a = arg(name);
    if (const Ints* ints = std::get_if<Ints>(&a)) return context.arena.Copy(std::vector<SymExpr>(ints->begin(), ints->end()));
    return std::get<Dims>(a);
  }
  std::vector<int64_t> ints(std::string_view name) const {
    const Ints list = std::get<Ints>(arg(name));
    return {list.begin(), list.end()};
  }
  DType dtype_or(DType otherwise) const { return Has("dtype") ? std::get<DType>(arg("dtype")) : otherwise; }

  Type Make(DType dtype, std::vector<SymExpr> shape) const { return {.kind = Kind::Tensor, .dtype = dtype, .shape = context.arena.Copy(shape)}; }
  Type Make(DType dtype, Dims shape) const { return {.kind = Kind::Tensor, .dtype = dtype, .shape = shape}; }
  Type Like(const Type& type) const { return Make(type.dtype, type.shape); }
};

size_t Axis(int64_t dim, size_t rank) { return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(std::max<size_t>(rank, 1)) : dim); }

std::vector<SymExpr> ShapeOf(const Type& type) { return {type.shape.begin(), type.shape.end()}; }

Type SameAsSelf(const In& in) { return in.Like(in.tensor()); }
Type BoolLikeSelf(const In& in) { return in.Make(DType::Bool, in.tensor().shape); }

Type Elementwise(const In& in, DType dtype) {
  std::vector<SymExpr> shape;
  for (const Arg& arg : in.args)
    if (Value* const* value = std::get_if<Value*>(&arg); value && (*value)->type.kind == Kind::Tensor) shape = BroadcastShape(shape, (*value)->type.shape);
  return in.Make(dtype, shape);
}

Type Reshape(const In& in) {
  const Type& self = in.tensor();
  std::vector<SymExpr> shape(in.dims(in.op.ArgIndex("shape") >= 0 ? "shape" : "size").begin(), in.dims(in.op.ArgIndex("shape") >= 0 ? "shape" : "size").end());
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i].IsConst() && shape[i].Const() == -1) {
      SymExpr known = 1;
      for (size_t j = 0; j < shape.size(); ++j)
        if (j != i) known = known * shape[j];
      const SymExpr all = Product(self.shape);
      shape[i] = TryDivideExactly(all, known).value_or(FloorDiv(all, known));
    }
  return in.Make(self.dtype, shape);
}

Type Expand(const In& in) {
  const Type& self = in.tensor();
  std::vector<SymExpr> shape(in.dims("size").begin(), in.dims("size").end());
  const size_t lead = shape.size() - self.shape.size();
  for (size_t i = lead; i < shape.size(); ++i)
    if (shape[i].IsConst() && shape[i].Const() == -1) shape[i] = self.shape[i - lead];
  return in.Make(self.dtype, shape);
}

Type Permute(const In& in) {
  const Type& self = in.tensor();
  std::vector<SymExpr> shape;
  for (int64_t d : in.ints("dims")) shape.push_back(self.shape[Axis(d, self.shape.size())]);
  return in.Make(self.dtype, shape);
}

Type Transpose(const In& in) {
  const Type& self = in.tensor();
  std::vector<SymExpr> shape = ShapeOf(self);
  if (!shape.empty()) std::swap(shape[Axis(in.integer("dim0"), shape.size())], shape[Axis(in.integer("dim1"), shape.size())]);
  return in.Make(self.dtype, shape);
}

// Python's slice clipped to [0, n]: -k counts from the end, None and the largest int64 are the end.
SymExpr Clip(SymExpr at, SymExpr n) {
  if (at.IsConst() && at.Const() == INT64_MAX) return n;
  if (at.IsConst() && at.Const() < 0) return Max(0, n + at);
  if (!at.IsConst() && BoundsOf(at).hi && *BoundsOf(at).hi < 0) return Max(0, n + at);
  return Min(at, n);
}

Type Slice(const In& in) {
  const Type& self = in.tensor();
  std::vector<SymExpr> shape = ShapeOf(self);
  SymExpr& n = shape[Axis(in.integer("dim"), shape.size())];
  const SymExpr start = in.Has("start") ? Clip(in.size("start"), n) : 0;
  const SymExpr end = in.Has("end") ? Clip(in.size("end"), n) : n;
  n = Max(0, CeilDiv(end - start, in.size("step")));
  return in.Make(self.dtype, shape);
}

Type Select(const In& in) {
  std::vector<SymExpr> shape = ShapeOf(in.tensor());
  shape.erase(shape.begin() + static_cast<int64_t>(Axis(in.integer("dim"), shape.size())));
  return in.Make(in.tensor().dtype, shape);
}

Type Unsqueeze(const In& in) {
  std::vector<SymExpr> shape = ShapeOf(in.tensor());
  shape.insert(shape.begin() + static_cast<int64_t>(Axis(in.integer("dim"), shape.size() + 1)), 1);
  return in.Make(in.tensor().dtype, shape);
}

Type Squeeze(const In& in) {  // squeeze.dim(s): dims that are not 1 stay
  std::vector<SymExpr> shape;
  const Type& self = in.tensor();
  std::vector<int64_t> dims = in.op.name == "aten::squeeze.dim" ? std::vector<int64_t>{in.integer("dim")} : in.ints("dim");
  for (int64_t& d : dims) d = static_cast<int64_t>(Axis(d, self.shape.size()));
  for (size_t i = 0; i < self.shape.size(); ++i)
    if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(i)) == dims.end() || !(self.shape[i] == 1)) shape.push_back(self.shape[i]);
  return in.Make(self.dtype, shape);
}

Type Reduce(const In& in, DType dtype) {
  const Type& self = in.tensor();
  std::vector<bool> gone(self.shape.size(), false);
  bool all = true;
  if (in.Has("dim")) {
    std::vector<int64_t> dims;
    if (const int64_t* one = std::get_if<int64_t>(&in.arg("dim"))) dims = {*one};
    else dims = in.ints("dim");
    all = dims.empty();
    for (int64_t d : dims)
      if (!gone.empty()) gone[Axis(d, gone.size())] = true;
  }
  std::vector<SymExpr> shape;
  for (size_t i = 0; i < gone.size(); ++i) {
    if (!all && !gone[i]) shape.push_back(self.shape[i]);
    else if (in.truth("keepdim")) shape.push_back(1);
  }
  return in.Make(dtype, shape);
}

Type Matmul(const In& in) {
  const Type& a = in.tensor(0);
  const Type& b = in.tensor(1);
  std::vector<SymExpr> x = ShapeOf(a), y = ShapeOf(b);
  const bool vector_a = x.size() == 1, vector_b = y.size() == 1;
  if (vector_a) x.insert(x.begin(), 1);
  if (vector_b) y.push_back(1);
  std::vector<SymExpr> shape = BroadcastShape(Dims(x).first(x.size() - 2), Dims(y).first(y.size() - 2));
  if (!vector_a) shape.push_back(x[x.size() - 2]);
  if (!vector_b) shape.push_back(y.back());
  return in.Make(a.dtype, shape);
}

Type Addmm(const In& in) {
  return in.Make(in.tensor().dtype, std::vector<SymExpr>{in.tensor("mat1").shape[0], in.tensor("mat2").shape[1]});
}

Type Cat(const In& in) {
  const ValueList list = std::get<ValueList>(in.args[0]);
  std::vector<SymExpr> shape;
  DType dtype = DType::Unknown;
  for (const Value* value : list) {
    dtype = dtype == DType::Unknown ? value->type.dtype : Promote(dtype, value->type.dtype);
    if (value->type.shape.size() == 1 && value->type.shape[0] == 0 && list.size() > 1) continue;  // legacy: an empty vector counts for nothing
    if (shape.empty()) shape = ShapeOf(value->type);
    else {
      SymExpr& n = shape[Axis(in.integer("dim"), shape.size())];
      n = n + value->type.shape[Axis(in.integer("dim"), shape.size())];
    }
  }
  if (shape.empty()) shape = {0};
  return in.Make(dtype, shape);
}

Type Stack(const In& in) {
  const ValueList list = std::get<ValueList>(in.args[0]);
  std::vector<SymExpr> shape = ShapeOf(list[0]->type);
  shape.insert(shape.begin() + static_cast<int64_t>(Axis(in.integer("dim"), shape.size() + 1)), static_cast<int64_t>(list.size()));
  return in.Make(list[0]->type.dtype, shape);
}

DType OfNumber(const Arg& arg) { return ResultType({&arg, 1}); }

Type Full(const In& in) { return in.Make(in.dtype_or(in.op.ArgIndex("fill_value") >= 0 ? OfNumber(in.arg("fill_value")) : DType::F32), in.dims("size")); }
Type FullLike(const In& in) { return in.Make(in.dtype_or(in.tensor().dtype), in.tensor().shape); }

Type Arange(const In& in) {
  const SymExpr start = in.op.ArgIndex("start") >= 0 ? in.size("start") : 0;
  const SymExpr step = in.op.ArgIndex("step") >= 0 ? in.size("step") : 1;
  return in.Make(in.dtype_or(DType::I64), std::vector<SymExpr>{Max(0, CeilDiv(in.size("end") - start, step))});
}

// index.Tensor: index tensors broadcast together; adjacent ones replace their dims in place, separated ones come first.
Type Index(const In& in) {
  const Type& self = in.tensor();
  const ValueList indices = std::get<ValueList>(in.arg("indices"));
  std::vector<SymExpr> picked, shape;
  std::vector<bool> indexed(self.shape.size(), false);
  int64_t first = -1, last = -1, n = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    picked = BroadcastShape(picked, indices[i]->type.shape);
    indexed[i] = true;
    if (first < 0) first = static_cast<int64_t>(i);
    last = static_cast<int64_t>(i);
    ++n;
  }
  const bool adjacent = last - first + 1 == n;
  if (!adjacent) shape = picked;
  for (size_t i = 0; i < self.shape.size(); ++i) {
    if (adjacent && static_cast<int64_t>(i) == first) shape.insert(shape.end(), picked.begin(), picked.end());
    if (!indexed[i]) shape.push_back(self.shape[i]);
  }
  return in.Make(self.dtype, shape);
}

Type IndexSelect(const In& in) {
  std::vector<SymExpr> shape = ShapeOf(in.tensor());
  if (!shape.empty()) shape[Axis(in.integer("dim"), shape.size())] = Product(in.tensor("index").shape);
  return in.Make(in.tensor().dtype, shape);
}

Type ViewDType(const In& in) {
  const Type& self = in.tensor();
  const DType dtype = std::get<DType>(in.arg("dtype"));
  std::vector<SymExpr> shape = ShapeOf(self);
  const int from = ItemSize(self.dtype), to = ItemSize(dtype);
  if (from > to) shape.back() = shape.back() * (from / to);
  if (from < to) shape.back() = FloorDiv(shape.back(), to / from);
  return in.Make(dtype, shape);
}

Type AsReal(const In& in) {
  std::vector<SymExpr> shape = ShapeOf(in.tensor());
  shape.push_back(2);
  return in.Make(RealOf(in.tensor().dtype), shape);
}
Type AsComplex(const In& in) {
  std::vector<SymExpr> shape = ShapeOf(in.tensor());
  shape.pop_back();
  return in.Make(ComplexOf(in.tensor().dtype), shape);
}

// The size of a dim after a window went over it.
SymExpr Slid(SymExpr n, SymExpr kernel, SymExpr stride, SymExpr before, SymExpr behind, SymExpr dilation, bool ceil) {
  const SymExpr room = n + before + behind - dilation * (kernel - 1) - 1;
  SymExpr out = (ceil ? CeilDiv(room, stride) : FloorDiv(room, stride)) + 1;
  // A window that would start in the padding behind is left out.
  if (ceil && out.IsConst() && n.IsConst() && stride.IsConst() && before.IsConst() && ((out - 1) * stride).Const() >= (n + before).Const()) out = out - 1;
  return out;
}

Type Convolution(const In& in) {
  const Type &x = in.tensor(), &w = in.tensor("weight");
  const Dims stride = in.dims("stride"), padding = in.dims("padding"), dilation = in.dims("dilation"), extra = in.dims("output_padding");
  const bool transposed = in.truth("transposed");
  std::vector<SymExpr> shape = {x.shape[0], transposed ? w.shape[1] * in.size("groups") : w.shape[0]};
  const auto at = [](Dims list, size_t i) { return list[std::min(i, list.size() - 1)]; };
  for (size_t d = 2; d < x.shape.size(); ++d) {
    const size_t i = d - 2;
    const SymExpr p = at(padding, i);
    shape.push_back(transposed ? (x.shape[d] - 1) * at(stride, i) - 2 * p + at(dilation, i) * (w.shape[d] - 1) + at(extra, i) + 1
                               : Slid(x.shape[d], w.shape[d], at(stride, i), p, p, at(dilation, i), false));
  }
  return in.Make(x.dtype, shape);
}

Type MaxPool(const In& in) {
  const Type& x = in.tensor();
  std::vector<SymExpr> shape = ShapeOf(x);
  const std::vector<int64_t> kernel = in.ints("kernel_size"), stride = in.ints("stride"), padding = in.ints("padding"), dilation = in.ints("dilation");
  const size_t lead = shape.size() - kernel.size();
  for (size_t i = 0; i < kernel.size(); ++i)
    shape[lead + i] = Slid(shape[lead + i], kernel[i], stride.empty() ? kernel[i] : stride[i], padding[i], padding[i], dilation[i], in.truth("ceil_mode"));
  return in.Make(x.dtype, shape);
}

Type AdaptivePool(const In& in) {
  std::vector<SymExpr> shape = ShapeOf(in.tensor());
  const Dims size = in.dims("output_size");
  for (size_t i = 0; i < size.size(); ++i) shape[shape.size() - size.size() + i] = size[i];
  return in.Make(in.tensor().dtype, shape);
}

Type Padded(const In& in) {
  std::vector<SymExpr> shape = ShapeOf(in.tensor());
  const Dims pad = in.dims(in.op.ArgIndex("pad") >= 0 ? "pad" : "padding");
  for (size_t i = 0; i < pad.size(); i += 2) {
    SymExpr& n = shape[shape.size() - 1 - i / 2];
    n = n + pad[i] + pad[i + 1];
  }
  return in.Make(in.tensor().dtype, shape);
}
// The axis that a Fourier transform halves, or makes whole again.
Type LastAxis(const In& in, DType dtype, SymExpr size) {
  std::vector<SymExpr> shape = ShapeOf(in.tensor());
  shape[Axis(in.ints("dim").back(), shape.size())] = size;
  return in.Make(dtype, shape);
}
Type RealToComplex(const In& in) {
  const Type& self = in.tensor();
  const SymExpr n = self.shape[Axis(in.ints("dim").back(), self.shape.size())];
  return LastAxis(in, ComplexOf(self.dtype), in.truth("onesided") ? FloorDiv(n, 2) + 1 : n);
}
Type ComplexToReal(const In& in) { return LastAxis(in, RealOf(in.tensor().dtype), in.size("last_dim_size")); }

DType SumDType(const In& in) {
  const DType d = in.tensor().dtype;
  return in.dtype_or(IsIntegral(d) || d == DType::Bool ? DType::I64 : d);
}

using Rule = Type (*)(const In&);
struct Row {
  std::string_view name;  // namespace and base name, all overloads
  Rule rule;
};
// Ops with one result, sorted by name. Elementwise ones are not here: ir/promotion.cc has their dtypes.
constexpr Row kRows[] = {
    {"aten::_adaptive_avg_pool2d", AdaptivePool},
    {"aten::_adaptive_avg_pool3d", AdaptivePool},
    {"aten::_conj", SameAsSelf},
    {"aten::_fft_c2c", SameAsSelf},
    {"aten::_fft_c2r", ComplexToReal},
    {"aten::_fft_r2c", RealToComplex},
    {"aten::_log_softmax", SameAsSelf},
    {"aten::_softmax", SameAsSelf},
    {"aten::abs", [](const In& in) { return in.Make(RealOf(in.tensor().dtype), in.tensor().shape); }},
    {"aten::addmm", Addmm},
    {"aten::alias", SameAsSelf},
    {"aten::all", [](const In& in) { return Reduce(in, DType::Bool); }},
    {"aten::amax", [](const In& in) { return Reduce(in, in.tensor().dtype); }},
    {"aten::amin", [](const In& in) { return Reduce(in, in.tensor().dtype); }},
    {"aten::any", [](const In& in) { return Reduce(in, DType::Bool); }},
    {"aten::arange", Arange},
    {"aten::argmax", [](const In& in) { return Reduce(in, DType::I64); }},
    {"aten::argmin", [](const In& in) { return Reduce(in, DType::I64); }},
    {"aten::as_strided", [](const In& in) { return in.Make(in.tensor().dtype, in.dims("size")); }},
    {"aten::as_strided_scatter", SameAsSelf},
    {"aten::bitwise_not", SameAsSelf},
    {"aten::bmm", Matmul},
    {"aten::cat", Cat},
    {"aten::ceil", SameAsSelf},
    {"aten::clone", SameAsSelf},
    {"aten::complex", [](const In& in) { return Elementwise(in, ComplexOf(in.tensor().dtype)); }},
    {"aten::conj_physical", SameAsSelf},
    {"aten::constant_pad_nd", Padded},
    {"aten::convolution", Convolution},
    {"aten::copy", SameAsSelf},
    {"aten::cumprod", [](const In& in) { return in.Make(SumDType(in), in.tensor().shape); }},
    {"aten::cumsum", [](const In& in) { return in.Make(SumDType(in), in.tensor().shape); }},
    {"aten::diagonal_scatter", SameAsSelf},
    {"aten::elu", SameAsSelf},
    {"aten::embedding", [](const In& in) {
       std::vector<SymExpr> shape = ShapeOf(in.tensor("indices"));
       shape.push_back(in.tensor().shape[1]);
       return in.Make(in.tensor().dtype, shape);
     }},
    {"aten::empty", Full},
    {"aten::expand", Expand},
    {"aten::fill", SameAsSelf},
    {"aten::flip", SameAsSelf},
    {"aten::floor", SameAsSelf},
    {"aten::frac", SameAsSelf},
    {"aten::full", Full},
    {"aten::full_like", FullLike},
    {"aten::gather", [](const In& in) { return in.Make(in.tensor().dtype, in.tensor("index").shape); }},
    {"aten::gelu", SameAsSelf},
    {"aten::hardtanh", SameAsSelf},
    {"aten::imag", [](const In& in) { return in.Make(RealOf(in.tensor().dtype), in.tensor().shape); }},
    {"aten::index", Index},
    {"aten::index_add", SameAsSelf},
    {"aten::index_copy", SameAsSelf},
    {"aten::index_fill", SameAsSelf},
    {"aten::index_put", SameAsSelf},
    {"aten::index_select", IndexSelect},
    {"aten::isinf", BoolLikeSelf},
    {"aten::isnan", BoolLikeSelf},
    {"aten::leaky_relu", SameAsSelf},
    {"aten::linear", [](const In& in) {
       std::vector<SymExpr> shape = ShapeOf(in.tensor());
       shape.back() = in.tensor("weight").shape[0];
       return in.Make(in.tensor().dtype, shape);
     }},
    {"aten::log_softmax", SameAsSelf},
    {"aten::logical_and", [](const In& in) { return Elementwise(in, DType::Bool); }},
    {"aten::logical_not", BoolLikeSelf},
    {"aten::logical_or", [](const In& in) { return Elementwise(in, DType::Bool); }},
    {"aten::logical_xor", [](const In& in) { return Elementwise(in, DType::Bool); }},
    {"aten::logsumexp", [](const In& in) { return Reduce(in, IsFloat(in.tensor().dtype) ? in.tensor().dtype : DType::F32); }},
    {"aten::masked_fill", [](const In& in) { return in.Make(in.tensor().dtype, BroadcastShape(in.tensor().shape, in.tensor(1).shape)); }},
    {"aten::matmul", Matmul},
    {"aten::mean", [](const In& in) { return Reduce(in, in.dtype_or(in.tensor().dtype)); }},
    {"aten::mm", Matmul},
    {"aten::neg", SameAsSelf},
    {"aten::ones", Full},
    {"aten::ones_like", FullLike},
    {"aten::permute", Permute},
    {"aten::prod", [](const In& in) { return Reduce(in, SumDType(in)); }},
    {"aten::rand", Full},
    {"aten::randn", Full},
    {"aten::real", [](const In& in) { return in.Make(RealOf(in.tensor().dtype), in.tensor().shape); }},
    {"aten::reflection_pad1d", Padded},
    {"aten::reflection_pad2d", Padded},
    {"aten::reflection_pad3d", Padded},
    {"aten::relu", SameAsSelf},
    {"aten::repeat", [](const In& in) {
       std::vector<SymExpr> shape(in.dims("repeats").begin(), in.dims("repeats").end());
       const size_t lead = shape.size() - in.tensor().shape.size();
       for (size_t i = lead; i < shape.size(); ++i) shape[i] = shape[i] * in.tensor().shape[i - lead];
       return in.Make(in.tensor().dtype, shape);
     }},
    {"aten::replication_pad1d", Padded},
    {"aten::replication_pad2d", Padded},
    {"aten::replication_pad3d", Padded},
    {"aten::reshape", Reshape},
    {"aten::resize", Full},
    {"aten::roll", SameAsSelf},
    {"aten::round", SameAsSelf},
    {"aten::scalar_tensor", [](const In& in) { return in.Make(in.dtype_or(OfNumber(in.args[0])), Dims{}); }},
    {"aten::scatter", SameAsSelf},
    {"aten::scatter_add", SameAsSelf},
    {"aten::scatter_reduce", SameAsSelf},
    {"aten::select", Select},
    {"aten::select_scatter", SameAsSelf},
    {"aten::sgn", SameAsSelf},
    {"aten::sign", SameAsSelf},
    {"aten::signbit", BoolLikeSelf},
    {"aten::slice", Slice},
    {"aten::slice_scatter", SameAsSelf},
    {"aten::softmax", SameAsSelf},
    {"aten::softplus", SameAsSelf},
    {"aten::squeeze", Squeeze},
    {"aten::stack", Stack},
    {"aten::sum", [](const In& in) { return Reduce(in, SumDType(in)); }},
    {"aten::t", [](const In& in) {
       std::vector<SymExpr> shape = ShapeOf(in.tensor());
       std::reverse(shape.begin(), shape.end());
       return in.Make(in.tensor().dtype, shape);
     }},
    {"aten::transpose", Transpose},
    {"aten::tril", SameAsSelf},
    {"aten::triu", SameAsSelf},
    {"aten::trunc", SameAsSelf},
    {"aten::unfold", [](const In& in) {
       std::vector<SymExpr> shape = ShapeOf(in.tensor());
       SymExpr& n = shape[Axis(in.integer("dimension"), shape.size())];
       n = FloorDiv(n - in.size("size"), in.size("step")) + 1;
       shape.push_back(in.size("size"));
       return in.Make(in.tensor().dtype, shape);
     }},
    {"aten::unsqueeze", Unsqueeze},
    {"aten::var", [](const In& in) { return Reduce(in, RealOf(in.tensor().dtype)); }},
    {"aten::view", [](const In& in) { return in.op.name == "aten::view.dtype" ? ViewDType(in) : Reshape(in); }},
    {"aten::view_as_complex", AsComplex},
    {"aten::view_as_real", AsReal},
    {"aten::zeros", Full},
    {"aten::zeros_like", FullLike},
    {"prims::convert_element_type", [](const In& in) { return in.Make(std::get<DType>(in.arg("dtype")), in.tensor().shape); }},
};
static_assert(std::ranges::is_sorted(kRows, {}, &Row::name));

// Ops with several results.
std::vector<Type> Several(const In& in) {
  const std::string_view name = in.op.name;
  if (name == "aten::_native_batch_norm_legit_functional") {
    const Type& x = in.tensor();
    const Type channels = in.Make(x.dtype == DType::F16 || x.dtype == DType::BF16 ? DType::F32 : x.dtype, std::vector<SymExpr>{x.shape[1]});
    return {in.Like(x), channels, channels, in.Like(in.tensor("running_mean")), in.Like(in.tensor("running_var"))};
  }
  if (name == "aten::_native_batch_norm_legit_no_training" || name == "aten::_native_batch_norm_legit.no_stats") {
    const Type& x = in.tensor();
    const DType dtype = x.dtype == DType::F16 || x.dtype == DType::BF16 ? DType::F32 : x.dtype;
    const Type saved = in.Make(dtype, std::vector<SymExpr>{name.ends_with("no_stats") ? x.shape[1] : SymExpr(0)});
    return {in.Like(x), saved, saved};
  }
  if (name == "aten::native_layer_norm") {
    const Type& x = in.tensor();
    std::vector<SymExpr> shape = ShapeOf(x);
    for (size_t i = shape.size() - in.dims("normalized_shape").size(); i < shape.size(); ++i) shape[i] = 1;
    const Type saved = in.Make(x.dtype == DType::F16 || x.dtype == DType::BF16 ? DType::F32 : x.dtype, shape);
    return {in.Like(x), saved, saved};
  }
  if (name == "aten::native_group_norm") {
    const Type saved = in.Make(in.tensor().dtype, std::vector<SymExpr>{in.size("N"), in.integer("group")});
    return {in.Like(in.tensor()), saved, saved};
  }
  if (name == "aten::native_dropout") return {in.Like(in.tensor()), in.Make(DType::Bool, in.tensor().shape)};
  if (name.starts_with("aten::max_pool") && name.ends_with("_with_indices")) {
    const Type out = MaxPool(in);
    return {out, in.Make(DType::I64, out.shape)};
  }
  if (name == "aten::split_with_sizes") {
    std::vector<Type> out;
    for (const SymExpr& n : in.dims("split_sizes")) {
      std::vector<SymExpr> shape = ShapeOf(in.tensor());
      shape[Axis(in.integer("dim"), shape.size())] = n;
      out.push_back(in.Make(in.tensor().dtype, shape));
    }
    return out;
  }
  if (name == "aten::var_mean.correction") return {Reduce(in, RealOf(in.tensor().dtype)), Reduce(in, in.tensor().dtype)};
  if (name == "aten::max.dim" || name == "aten::min.dim") return {Reduce(in, in.tensor().dtype), Reduce(in, DType::I64)};
  if (name == "aten::topk") {
    std::vector<SymExpr> shape = ShapeOf(in.tensor());
    if (!shape.empty()) shape[Axis(in.integer("dim"), shape.size())] = in.size("k");
    return {in.Make(in.tensor().dtype, shape), in.Make(DType::I64, shape)};
  }
  if (name == "aten::sort" || name == "aten::sort.stable") return {SameAsSelf(in), in.Make(DType::I64, in.tensor().shape)};
  return {};
}

}  // namespace

std::vector<SymExpr> BroadcastShape(Dims a, Dims b) {
  if (a.size() < b.size()) std::swap(a, b);
  std::vector<SymExpr> out(a.begin(), a.end());
  const size_t lead = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    SymExpr& d = out[lead + i];
    if (d == b[i] || b[i] == 1) continue;
    if (d == 1 || b[i].IsConst()) d = b[i];  // a dim that isn't known to be 1 fits a constant only by being it, or 1
  }
  return out;
}

std::vector<Type> InferTypes(Context& context, const OpSchema& op, std::span<const Arg> args) {
  const In in{context, op, args};
  if (const auto promotion = PromotionOf(op, args)) return {Elementwise(in, Promote(*promotion, args).result)};
  const std::string_view base = op.name.substr(0, op.name.find('.'));
  if (std::vector<Type> types = Several(in); !types.empty()) return types;
  const Row* row = std::lower_bound(std::begin(kRows), std::end(kRows), base, [](const Row& r, std::string_view n) { return r.name < n; });
  if (row == std::end(kRows) || row->name != base) return {};
  return {row->rule(in)};
}

}  // namespace pt2onnx
