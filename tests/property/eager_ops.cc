#include "eager_ops.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace pt2onnx::property {
namespace {

using Sizes = std::vector<int64_t>;

int64_t Wrap(int64_t i, int64_t n) { return i < 0 ? i + (n ? n : 1) : i; }

Sizes Broadcast(const Sizes& a, const Sizes& b) {
  Sizes out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    PT2ONNX_CHECK(x == y || x == 1 || y == 1);
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

TensorPtr Expand(const Tensor& t, const Sizes& sizes) {
  Sizes strides(sizes.size(), 0);
  const size_t lead = sizes.size() - t.sizes.size();
  for (size_t i = 0; i < t.sizes.size(); ++i) {
    PT2ONNX_CHECK(t.sizes[i] == sizes[lead + i] || t.sizes[i] == 1);
    if (t.sizes[i] == sizes[lead + i]) strides[lead + i] = t.strides[i];
  }
  return ViewOf(t, sizes, strides, t.offset);
}

// ---- Views --------------------------------------------------------------------------------------------------------------------------

TensorPtr Slice(const Tensor& t, int64_t dim, int64_t start, int64_t end, int64_t step) {
  dim = Wrap(dim, t.rank());
  const int64_t n = t.sizes[static_cast<size_t>(dim)];
  start = std::clamp(start < 0 ? start + n : start, int64_t{0}, n);
  end = std::clamp(end < 0 ? end + n : end, start, n);
  Sizes sizes = t.sizes, strides = t.strides;
  sizes[static_cast<size_t>(dim)] = (end - start + step - 1) / step;
  strides[static_cast<size_t>(dim)] *= step;
  return ViewOf(t, sizes, strides, t.offset + start * t.strides[static_cast<size_t>(dim)]);
}

TensorPtr Select(const Tensor& t, int64_t dim, int64_t index) {
  dim = Wrap(dim, t.rank());
  const auto d = static_cast<size_t>(dim);
  const int64_t at = Wrap(index, t.sizes[d]);
  PT2ONNX_CHECK(at >= 0 && at < t.sizes[d]);
  Sizes sizes = t.sizes, strides = t.strides;
  sizes.erase(sizes.begin() + dim);
  strides.erase(strides.begin() + dim);
  return ViewOf(t, sizes, strides, t.offset + at * t.strides[d]);
}

TensorPtr Permute(const Tensor& t, const Sizes& dims) {
  Sizes sizes, strides;
  for (int64_t d : dims) {
    const auto i = static_cast<size_t>(Wrap(d, t.rank()));
    sizes.push_back(t.sizes[i]);
    strides.push_back(t.strides[i]);
  }
  return ViewOf(t, sizes, strides, t.offset);
}

TensorPtr Transpose(const Tensor& t, int64_t a, int64_t b) {
  Sizes dims(t.sizes.size());
  std::iota(dims.begin(), dims.end(), 0);
  if (!dims.empty()) std::swap(dims[static_cast<size_t>(Wrap(a, t.rank()))], dims[static_cast<size_t>(Wrap(b, t.rank()))]);
  return Permute(t, dims);
}

TensorPtr MoveDim(const Tensor& t, int64_t from, int64_t to) {
  Sizes dims(t.sizes.size());
  std::iota(dims.begin(), dims.end(), 0);
  if (dims.empty()) return Permute(t, dims);
  dims.erase(dims.begin() + Wrap(from, t.rank()));
  dims.insert(dims.begin() + Wrap(to, t.rank()), Wrap(from, t.rank()));
  return Permute(t, dims);
}

TensorPtr Diagonal(const Tensor& t, int64_t offset, int64_t dim1, int64_t dim2) {
  const auto a = static_cast<size_t>(Wrap(dim1, t.rank())), b = static_cast<size_t>(Wrap(dim2, t.rank()));
  const int64_t skip_a = offset < 0 ? -offset : 0, skip_b = offset > 0 ? offset : 0;
  const int64_t n = std::max<int64_t>(0, std::min(t.sizes[a] - skip_a, t.sizes[b] - skip_b));
  Sizes sizes, strides;
  for (size_t d = 0; d < t.sizes.size(); ++d)
    if (d != a && d != b) sizes.push_back(t.sizes[d]), strides.push_back(t.strides[d]);
  sizes.push_back(n);
  strides.push_back(t.strides[a] + t.strides[b]);
  return ViewOf(t, sizes, strides, t.offset + (n ? skip_a * t.strides[a] + skip_b * t.strides[b] : 0));
}

TensorPtr Unfold(const Tensor& t, int64_t dim, int64_t size, int64_t step) {
  const auto d = static_cast<size_t>(Wrap(dim, t.rank()));
  Sizes sizes = t.sizes, strides = t.strides;
  sizes[d] = (t.sizes[d] - size) / step + 1;
  strides[d] *= step;
  sizes.push_back(size);
  strides.push_back(t.strides[d]);
  return ViewOf(t, sizes, strides, t.offset);
}

TensorPtr Unsqueeze(const Tensor& t, int64_t dim) {
  const int64_t d = Wrap(dim, t.rank() + 1);
  Sizes sizes = t.sizes, strides = t.strides;
  const int64_t stride = d < t.rank() ? t.sizes[static_cast<size_t>(d)] * t.strides[static_cast<size_t>(d)] : 1;
  sizes.insert(sizes.begin() + d, 1);
  strides.insert(strides.begin() + d, stride);
  return ViewOf(t, sizes, strides, t.offset);
}

TensorPtr Squeeze(const Tensor& t, const std::set<int64_t>& dims) {
  Sizes sizes, strides;
  for (int64_t d = 0; d < t.rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    if (dims.count(d) && t.sizes[i] == 1) continue;
    sizes.push_back(t.sizes[i]);
    strides.push_back(t.strides[i]);
  }
  return ViewOf(t, sizes, strides, t.offset);
}

std::set<int64_t> AllDims(const Tensor& t) {
  std::set<int64_t> dims;
  for (int64_t d = 0; d < t.rank(); ++d) dims.insert(d);
  return dims;
}

Sizes Completed(Sizes sizes, int64_t numel) {  // -1 stands for what is missing
  const auto missing = std::find(sizes.begin(), sizes.end(), -1);
  if (missing == sizes.end()) return sizes;
  *missing = 1;
  *missing = Product(sizes) ? numel / Product(sizes) : 0;
  return sizes;
}

// A view where there are strides for it, else a copy.
TensorPtr Reshape(const Tensor& t, const Sizes& wanted) {
  const Sizes sizes = Completed(wanted, t.numel());
  const Sizes strides = StridesAs(t, sizes);
  if (strides.size() == sizes.size()) return ViewOf(t, sizes, strides, t.offset);
  return NewTensor(t.dtype, sizes, ValuesOf(t));
}

Sizes Flattened(const Tensor& t, int64_t start, int64_t end) {
  if (t.rank() == 0) return {1};
  start = Wrap(start, t.rank());
  end = Wrap(end, t.rank());
  Sizes sizes(t.sizes.begin(), t.sizes.begin() + start);
  sizes.push_back(Product(Sizes(t.sizes.begin() + start, t.sizes.begin() + end + 1)));
  sizes.insert(sizes.end(), t.sizes.begin() + end + 1, t.sizes.end());
  return sizes;
}

Answer Pieces(const Tensor& t, int64_t dim, const Sizes& lengths) {
  Answer out;
  int64_t at = 0;
  for (int64_t n : lengths) {
    out.push_back(Slice(t, dim, at, at + n, 1));
    at += n;
  }
  return out;
}

Answer Split(const Tensor& t, int64_t size, int64_t dim) {
  int64_t left = t.sizes[static_cast<size_t>(Wrap(dim, t.rank()))];
  Sizes lengths;
  do lengths.push_back(std::min(size, left));
  while ((left -= size) > 0);
  return Pieces(t, dim, lengths);
}

// ---- Values -------------------------------------------------------------------------------------------------------------------------

DType Common(DType a, DType b) {
  const auto order = [](DType d) { return d == DType::Bool ? 0 : d == DType::I64 ? 1 : 2; };
  return order(a) > order(b) ? a : b;
}

template <class F>
TensorPtr Map(DType dtype, const Tensor& t, F f) {
  std::vector<double> values = ValuesOf(t);
  for (double& x : values) x = f(x);
  return NewTensor(dtype, t.sizes, values);
}

template <class F>
TensorPtr Zip(DType dtype, const Tensor& a, const Tensor& b, F f) {
  const Sizes sizes = Broadcast(a.sizes, b.sizes);
  std::vector<double> x = ValuesOf(*Expand(a, sizes));
  const std::vector<double> y = ValuesOf(*Expand(b, sizes));
  for (size_t i = 0; i < x.size(); ++i) x[i] = f(Round(dtype == DType::Bool ? DType::F32 : dtype, x[i]), y[i]);
  return NewTensor(dtype, sizes, x);
}

// self[at] = src at every address of a dense copy.
TensorPtr WithPart(const Tensor& self, const Tensor& src, const std::function<TensorPtr(const Tensor&)>& part) {
  TensorPtr out = CloneOf(self, true);
  TensorPtr view = part(*out);
  Assign(*view, ValuesOf(*Expand(src, view->sizes)));
  return out;
}

// Where self[indices] lies in the row-major order of self, and its sizes.
struct Indexed {
  Sizes sizes;
  std::vector<int64_t> at;
};
Indexed IndexOf(const Tensor& self, const std::vector<TensorPtr>& given) {
  std::vector<TensorPtr> indices;  // one for each dim of self
  for (const TensorPtr& index : given) {
    if (!index || index->dtype != DType::Bool) {
      indices.push_back(index);
      continue;
    }
    std::vector<std::vector<double>> positions(index->sizes.size());  // nonzero
    const std::vector<double> mask = ValuesOf(*index);
    size_t i = 0;
    ForEach(index->sizes, [&](const Sizes& at) {
      if (mask[i++] != 0)
        for (size_t d = 0; d < at.size(); ++d) positions[d].push_back(static_cast<double>(at[d]));
    });
    for (const auto& p : positions) indices.push_back(NewTensor(DType::I64, {static_cast<int64_t>(p.size())}, p));
  }
  indices.resize(self.sizes.size());
  Sizes common;
  std::vector<size_t> places;
  for (size_t d = 0; d < indices.size(); ++d)
    if (indices[d]) common = Broadcast(common, indices[d]->sizes), places.push_back(d);
  bool adjacent = true;
  for (size_t i = 1; i < places.size(); ++i) adjacent = adjacent && places[i] == places[i - 1] + 1;
  const size_t front = adjacent && !places.empty() ? places[0] : 0;
  std::vector<size_t> rest;
  for (size_t d = 0; d < indices.size(); ++d)
    if (!indices[d]) rest.push_back(d);
  Indexed out;
  for (size_t i = 0; i < front; ++i) out.sizes.push_back(self.sizes[rest[i]]);
  out.sizes.insert(out.sizes.end(), common.begin(), common.end());
  for (size_t i = front; i < rest.size(); ++i) out.sizes.push_back(self.sizes[rest[i]]);
  std::vector<TensorPtr> expanded(indices.size());
  for (size_t d : places) expanded[d] = NewTensor(DType::I64, common, ValuesOf(*Expand(*indices[d], common)));
  const Sizes steps = RowMajor(self.sizes), common_steps = RowMajor(common);
  ForEach(out.sizes, [&](const Sizes& at) {
    const Sizes inner(at.begin() + static_cast<int64_t>(front), at.begin() + static_cast<int64_t>(front + common.size()));
    int64_t address = 0;
    for (size_t d : places) {
      const auto index = static_cast<int64_t>(expanded[d]->memory->data[static_cast<size_t>(Flat(inner, common_steps))]);
      address += Wrap(index, self.sizes[d]) * steps[d];
    }
    for (size_t i = 0; i < rest.size(); ++i) address += at[i < front ? i : i + common.size()] * steps[rest[i]];
    out.at.push_back(address);
  });
  return out;
}

std::vector<double> Permuted(std::vector<double> values, const Indexed& where, const std::vector<double>& source, bool accumulate) {
  for (size_t i = 0; i < where.at.size(); ++i) {
    double& place = values[static_cast<size_t>(where.at[i])];
    place = accumulate ? place + source[i] : source[i];
  }
  return values;
}

TensorPtr IndexPut(const Tensor& self, const std::vector<TensorPtr>& indices, const Tensor& values, bool accumulate) {
  const Indexed where = IndexOf(self, indices);
  return NewTensor(self.dtype, self.sizes, Permuted(ValuesOf(self), where, ValuesOf(*Expand(values, where.sizes)), accumulate));
}

TensorPtr Cumsum(const Tensor& t, int64_t dim) {
  TensorPtr out = NewTensor(t.dtype == DType::Bool ? DType::I64 : t.dtype, t.sizes, ValuesOf(t));
  if (t.rank() == 0) return out;
  const auto d = static_cast<size_t>(Wrap(dim, t.rank()));
  ForEach(t.sizes, [&](const Sizes& at) {
    if (at[d] == 0) return;
    const int64_t i = Flat(at, out->strides);
    out->memory->data[static_cast<size_t>(i)] =
        Round(out->dtype, out->memory->data[static_cast<size_t>(i)] + out->memory->data[static_cast<size_t>(i - out->strides[d])]);
  });
  return out;
}

TensorPtr Flip(const Tensor& t, const Sizes& dims) {
  const std::vector<double> values = ValuesOf(t);
  std::vector<double> out(values.size());
  const Sizes steps = RowMajor(t.sizes);
  size_t i = 0;
  ForEach(t.sizes, [&](Sizes at) {
    for (int64_t d : dims) {
      const auto k = static_cast<size_t>(Wrap(d, t.rank()));
      at[k] = t.sizes[k] - 1 - at[k];
    }
    out[i++] = values[static_cast<size_t>(Flat(at, steps))];
  });
  return NewTensor(t.dtype, t.sizes, out);
}

TensorPtr Cat(const std::vector<TensorPtr>& list, int64_t dim) {
  DType dtype = DType::Bool;
  for (const TensorPtr& t : list) dtype = Common(dtype, t->dtype);
  Sizes sizes = list[0]->sizes;
  const auto d = static_cast<size_t>(Wrap(dim, list[0]->rank()));
  sizes[d] = 0;
  for (const TensorPtr& t : list) sizes[d] += t->sizes[d];
  TensorPtr out = NewTensor(dtype, sizes, std::vector<double>(static_cast<size_t>(Product(sizes))));
  int64_t at = 0;
  for (const TensorPtr& t : list) {
    Assign(*Slice(*out, static_cast<int64_t>(d), at, at + t->sizes[d], 1), ValuesOf(*t));
    at += t->sizes[d];
  }
  return out;
}

// ---- The ops ------------------------------------------------------------------------------------------------------------------------

}  // namespace

std::map<std::string_view, Function> Ops() {
  std::map<std::string_view, Function> ops;

  // Views. What decides by strides whether it copies is here too.
  ops["aten::select.int"] = [](const Args& a) { return Answer{Select(*a.T(0), a.Int(1), a.Int(2))}; };
  ops["aten::slice.Tensor"] = [](const Args& a) { return Answer{Slice(*a.T(0), a.Int(1), a.Int(2, 0), a.Int(3, INT64_MAX), a.Int(4))}; };
  ops["aten::narrow"] = [](const Args& a) {
    const int64_t n = a.T(0)->sizes[static_cast<size_t>(Wrap(a.Int(1), a.T(0)->rank()))], start = Wrap(a.Int(2), n);
    return Answer{Slice(*a.T(0), a.Int(1), start, start + a.Int(3), 1)};
  };
  for (const char* name : {"aten::transpose.int", "aten::swapaxes", "aten::swapdims"})
    ops[name] = [](const Args& a) { return Answer{Transpose(*a.T(0), a.Int(1), a.Int(2))}; };
  ops["aten::t"] = [](const Args& a) { return Answer{a.T(0)->rank() < 2 ? Permute(*a.T(0), Sizes(a.T(0)->sizes.size())) : Transpose(*a.T(0), 0, 1)}; };
  ops["aten::permute"] = [](const Args& a) { return Answer{Permute(*a.T(0), a.Ints(1))}; };
  ops["aten::movedim.int"] = [](const Args& a) { return Answer{MoveDim(*a.T(0), a.Int(1), a.Int(2))}; };
  for (const char* name : {"aten::view", "aten::reshape", "aten::_unsafe_view"}) ops[name] = [](const Args& a) { return Answer{Reshape(*a.T(0), a.Ints(1))}; };
  ops["aten::view_as"] = [](const Args& a) { return Answer{Reshape(*a.T(0), a.T(1)->sizes)}; };
  ops["aten::reshape_as"] = [](const Args& a) { return Answer{Reshape(*a.T(0), a.T(1)->sizes)}; };
  ops["aten::ravel"] = [](const Args& a) { return Answer{Reshape(*a.T(0), {-1})}; };
  ops["aten::flatten.using_ints"] = [](const Args& a) { return Answer{Reshape(*a.T(0), Flattened(*a.T(0), a.Int(1), a.Int(2)))}; };
  ops["aten::unflatten.int"] = [](const Args& a) {
    const auto d = static_cast<size_t>(Wrap(a.Int(1), a.T(0)->rank()));
    Sizes sizes = a.T(0)->sizes;
    const Sizes parts = Completed(a.Ints(2), sizes[d]);
    sizes.erase(sizes.begin() + static_cast<int64_t>(d));
    sizes.insert(sizes.begin() + static_cast<int64_t>(d), parts.begin(), parts.end());
    return Answer{Reshape(*a.T(0), sizes)};
  };
  ops["aten::unsqueeze"] = [](const Args& a) { return Answer{Unsqueeze(*a.T(0), a.Int(1))}; };
  ops["aten::squeeze"] = [](const Args& a) { return Answer{Squeeze(*a.T(0), AllDims(*a.T(0)))}; };
  ops["aten::squeeze.dim"] = [](const Args& a) { return Answer{Squeeze(*a.T(0), {Wrap(a.Int(1), a.T(0)->rank())})}; };
  ops["aten::squeeze.dims"] = [](const Args& a) {
    std::set<int64_t> dims;
    for (int64_t d : a.Ints(1)) dims.insert(Wrap(d, a.T(0)->rank()));
    return Answer{Squeeze(*a.T(0), dims)};
  };
  ops["aten::expand"] = [](const Args& a) {
    Sizes sizes = a.Ints(1);
    const size_t lead = sizes.size() - a.T(0)->sizes.size();
    for (size_t i = lead; i < sizes.size(); ++i)
      if (sizes[i] == -1) sizes[i] = a.T(0)->sizes[i - lead];
    return Answer{Expand(*a.T(0), sizes)};
  };
  ops["aten::expand_as"] = [](const Args& a) { return Answer{Expand(*a.T(0), a.T(1)->sizes)}; };
  ops["aten::broadcast_to"] = [](const Args& a) { return Answer{Expand(*a.T(0), a.Ints(1))}; };
  ops["aten::broadcast_tensors"] = [](const Args& a) {
    Sizes sizes;
    for (const TensorPtr& t : a.List(0)) sizes = Broadcast(sizes, t->sizes);
    Answer out;
    for (const TensorPtr& t : a.List(0)) out.push_back(Expand(*t, sizes));
    return out;
  };
  ops["aten::diagonal"] = [](const Args& a) { return Answer{Diagonal(*a.T(0), a.Int(1), a.Int(2), a.Int(3))}; };
  ops["aten::unfold"] = [](const Args& a) { return Answer{Unfold(*a.T(0), a.Int(1), a.Int(2), a.Int(3))}; };
  ops["aten::as_strided"] = [](const Args& a) { return Answer{ViewOf(*a.T(0), a.Ints(1), a.Ints(2), a.Int(3, a.T(0)->offset))}; };
  ops["aten::split.Tensor"] = ops["aten::unsafe_split.Tensor"] = [](const Args& a) { return Split(*a.T(0), a.Int(1), a.Int(2)); };
  ops["aten::split_with_sizes"] = [](const Args& a) { return Pieces(*a.T(0), a.Int(2), a.Ints(1)); };
  ops["aten::chunk"] = [](const Args& a) {
    const int64_t n = a.T(0)->sizes[static_cast<size_t>(Wrap(a.Int(2), a.T(0)->rank()))];
    return Split(*a.T(0), std::max<int64_t>(1, (n + a.Int(1) - 1) / a.Int(1)), a.Int(2));
  };
  ops["aten::tensor_split.sections"] = [](const Args& a) {
    const int64_t n = a.T(0)->sizes[static_cast<size_t>(Wrap(a.Int(2), a.T(0)->rank()))], k = a.Int(1);
    Sizes lengths;
    for (int64_t i = 0; i < k; ++i) lengths.push_back(n / k + (i < n % k));
    return Pieces(*a.T(0), a.Int(2), lengths);
  };
  const Function by_indices = [](const Args& a) {
    const TensorPtr& t = a.T(0);
    const int64_t n = t->sizes[static_cast<size_t>(Wrap(a.Int(2), t->rank()))];
    Sizes cuts;
    if (const auto* value = std::get_if<Value*>(&a[1]); value) {
      for (double x : ValuesOf(*a.eager.Get(*value))) cuts.push_back(static_cast<int64_t>(x));
    } else {
      cuts = a.Ints(1);
    }
    Answer out;
    int64_t at = 0;
    for (int64_t cut : cuts) out.push_back(Slice(*t, a.Int(2), at, cut, 1)), at = cut;
    out.push_back(Slice(*t, a.Int(2), at, n, 1));
    return out;
  };
  ops["aten::tensor_split.indices"] = ops["aten::tensor_split.tensor_indices_or_sections"] = by_indices;
  ops["aten::unbind.int"] = [](const Args& a) {
    Answer out;
    for (int64_t i = 0; i < a.T(0)->sizes[static_cast<size_t>(Wrap(a.Int(1), a.T(0)->rank()))]; ++i) out.push_back(Select(*a.T(0), a.Int(1), i));
    return out;
  };
  ops["aten::detach"] = ops["aten::alias"] = [](const Args& a) { return Answer{ViewOf(*a.T(0), a.T(0)->sizes, a.T(0)->strides, a.T(0)->offset)}; };
  ops["aten::atleast_2d"] = [](const Args& a) {
    const Tensor& t = *a.T(0);
    return Answer{t.rank() >= 2 ? a.T(0) : t.rank() == 1 ? Unsqueeze(t, 0) : Reshape(t, {1, 1})};
  };
  ops["aten::contiguous"] = [](const Args& a) {
    const Tensor& t = *a.T(0);
    bool packed = true;
    const Sizes strides = RowMajor(t.sizes);
    for (size_t i = 0; i < strides.size(); ++i) packed = packed && (t.sizes[i] == 1 || t.strides[i] == strides[i]);
    return Answer{packed || t.numel() == 0 ? a.T(0) : CloneOf(t, true)};
  };
  ops["aten::to.dtype"] = [](const Args& a) {
    const DType dtype = std::get<DType>(a[1]);
    if (dtype == a.T(0)->dtype && !std::get<bool>(a[3])) return Answer{a.T(0)};
    return Answer{Map(dtype, *a.T(0), [](double x) { return x; })};
  };
  ops["aten::dropout"] = [](const Args& a) { return Answer{a.T(0)}; };  // in inference

  // Values.
  ops["aten::clone"] = [](const Args& a) { return Answer{CloneOf(*a.T(0), std::holds_alternative<MemoryFormat>(a[1]) && std::get<MemoryFormat>(a[1]).code == 1)}; };
  ops["aten::lift_fresh_copy"] = [](const Args& a) { return Answer{CloneOf(*a.T(0), true)}; };
  ops["prims::convert_element_type"] = [](const Args& a) { return Answer{Map(std::get<DType>(a[1]), *a.T(0), [](double x) { return x; })}; };
  ops["aten::add.Tensor"] = [](const Args& a) {
    const double alpha = a.Number(2);
    return Answer{Zip(Common(a.T(0)->dtype, a.T(1)->dtype), *a.T(0), *a.T(1), [&](double x, double y) { return x + alpha * y; })};
  };
  ops["aten::mul.Tensor"] = [](const Args& a) {
    return Answer{Zip(Common(a.T(0)->dtype, a.T(1)->dtype), *a.T(0), *a.T(1), [](double x, double y) { return x * y; })};
  };
  ops["aten::add.Scalar"] = [](const Args& a) {
    const double y = a.Number(1) * a.Number(2);
    return Answer{Map(Common(a.T(0)->dtype, a.IsFloat(1) ? DType::F32 : DType::I64), *a.T(0), [&](double x) { return x + y; })};
  };
  ops["aten::neg"] = [](const Args& a) { return Answer{Map(a.T(0)->dtype, *a.T(0), [](double x) { return -x; })}; };
  ops["aten::relu"] = [](const Args& a) { return Answer{Map(a.T(0)->dtype, *a.T(0), [](double x) { return x > 0 || std::isnan(x) ? x : 0.0; })}; };
  ops["aten::clamp"] = [](const Args& a) {
    return Answer{Map(a.T(0)->dtype, *a.T(0), [&](double x) { return std::isnan(x) ? x : std::min(std::max(x, a.Number(1)), a.Number(2)); })};
  };
  ops["aten::cumsum"] = [](const Args& a) { return Answer{Cumsum(*a.T(0), a.Int(1))}; };
  const auto compare = [&](const char* name, bool (*f)(double, double)) {
    ops[name] = [f](const Args& a) { return Answer{Map(DType::Bool, *a.T(0), [&](double x) { return f(x, a.Number(1)); })}; };
  };
  compare("aten::gt.Scalar", [](double x, double y) { return x > y; });
  compare("aten::ge.Scalar", [](double x, double y) { return x >= y; });
  compare("aten::eq.Scalar", [](double x, double y) { return x == y; });
  ops["aten::ne.Tensor"] = [](const Args& a) { return Answer{Zip(DType::Bool, *a.T(0), *a.T(1), [](double x, double y) { return x != y; })}; };
  ops["aten::logical_and"] = [](const Args& a) { return Answer{Zip(DType::Bool, *a.T(0), *a.T(1), [](double x, double y) { return x != 0 && y != 0; })}; };
  ops["aten::logical_not"] = [](const Args& a) { return Answer{Map(DType::Bool, *a.T(0), [](double x) { return x == 0; })}; };
  ops["aten::isnan"] = [](const Args& a) { return Answer{Map(DType::Bool, *a.T(0), [](double x) { return std::isnan(x); })}; };
  ops["aten::any"] = [](const Args& a) {
    double any = 0;
    for (double x : ValuesOf(*a.T(0))) any = any != 0 || x != 0;
    return Answer{NewTensor(DType::Bool, {}, {any})};
  };
  ops["aten::where.self"] = [](const Args& a) {
    const Sizes sizes = Broadcast(a.T(0)->sizes, Broadcast(a.T(1)->sizes, a.T(2)->sizes));
    const std::vector<double> mask = ValuesOf(*Expand(*a.T(0), sizes)), y = ValuesOf(*Expand(*a.T(2), sizes));
    std::vector<double> x = ValuesOf(*Expand(*a.T(1), sizes));
    for (size_t i = 0; i < x.size(); ++i) x[i] = mask[i] != 0 ? x[i] : y[i];
    return Answer{NewTensor(Common(a.T(1)->dtype, a.T(2)->dtype), sizes, x)};
  };
  ops["aten::full"] = [](const Args& a) {
    const Sizes sizes = a.Ints(0);
    return Answer{NewTensor(a.Has(2) ? std::get<DType>(a[2]) : a.IsFloat(1) ? DType::F32 : DType::I64, sizes, std::vector<double>(static_cast<size_t>(Product(sizes)), a.Number(1)))};
  };
  ops["aten::arange"] = [](const Args& a) {
    std::vector<double> values(static_cast<size_t>(a.Int(0)));
    std::iota(values.begin(), values.end(), 0.0);
    return Answer{NewTensor(a.Has(1) ? std::get<DType>(a[1]) : DType::I64, {a.Int(0)}, values)};
  };
  ops["aten::cat"] = [](const Args& a) { return Answer{Cat(a.List(0), a.Int(1))}; };
  ops["aten::flip"] = [](const Args& a) { return Answer{Flip(*a.T(0), a.Ints(1))}; };
  ops["aten::index.Tensor"] = [](const Args& a) {
    const Indexed where = IndexOf(*a.T(0), a.List(1));
    const std::vector<double> values = ValuesOf(*a.T(0));
    std::vector<double> out;
    for (int64_t at : where.at) out.push_back(values[static_cast<size_t>(at)]);
    return Answer{NewTensor(a.T(0)->dtype, where.sizes, out)};
  };
  ops["aten::masked_fill.Scalar"] = [](const Args& a) {
    const Sizes sizes = Broadcast(a.T(0)->sizes, a.T(1)->sizes);
    std::vector<double> values = ValuesOf(*Expand(*a.T(0), sizes));
    const std::vector<double> mask = ValuesOf(*Expand(*a.T(1), sizes));
    for (size_t i = 0; i < values.size(); ++i)
      if (mask[i] != 0) values[i] = a.Number(2);
    return Answer{NewTensor(a.T(0)->dtype, sizes, values)};
  };
  ops["aten::index_put"] = [](const Args& a) { return Answer{IndexPut(*a.T(0), a.List(1), *a.T(2), std::get<bool>(a[3]))}; };
  const auto along = [](const Args& a, double alpha) {  // index_fill, index_add, index_copy: self[:, index] = value or += alpha * source
    TensorPtr out = CloneOf(*a.T(0), true);
    const std::vector<double> index = ValuesOf(*a.T(2));
    const bool add = a.op.name.find("index_add") != std::string_view::npos, fill = a.op.name.find("index_fill") != std::string_view::npos;
    for (size_t i = 0; i < index.size(); ++i) {
      TensorPtr part = Select(*out, a.Int(1), static_cast<int64_t>(index[i]));
      std::vector<double> values = ValuesOf(*part);
      const std::vector<double> source = fill ? std::vector<double>(values.size(), a.Number(3)) : ValuesOf(*Select(*a.T(3), a.Int(1), static_cast<int64_t>(i)));
      for (size_t k = 0; k < values.size(); ++k) values[k] = add ? values[k] + alpha * source[k] : source[k];
      Assign(*part, values);
    }
    return Answer{out};
  };
  ops["aten::index_fill.int_Scalar"] = ops["aten::index_copy"] = [along](const Args& a) { return along(a, 1); };
  ops["aten::index_add"] = [along](const Args& a) { return along(a, a.Number(4)); };
  ops["aten::slice_scatter"] = [](const Args& a) {
    return Answer{WithPart(*a.T(0), *a.T(1), [&](const Tensor& t) { return Slice(t, a.Int(2), a.Int(3, 0), a.Int(4, INT64_MAX), a.Int(5)); })};
  };
  ops["aten::select_scatter"] = [](const Args& a) {
    return Answer{WithPart(*a.T(0), *a.T(1), [&](const Tensor& t) { return Select(t, a.Int(2), a.Int(3)); })};
  };
  ops["aten::diagonal_scatter"] = [](const Args& a) {
    return Answer{WithPart(*a.T(0), *a.T(1), [&](const Tensor& t) { return Diagonal(t, a.Int(2), a.Int(3), a.Int(4)); })};
  };
  ops["aten::scatter.src"] = [](const Args& a) {
    TensorPtr out = CloneOf(*a.T(0), true);
    const auto d = static_cast<size_t>(Wrap(a.Int(1), out->rank()));
    const std::vector<double> index = ValuesOf(*a.T(2)), src = ValuesOf(*a.T(3));
    const Sizes src_steps = RowMajor(a.T(3)->sizes);
    size_t i = 0;
    ForEach(a.T(2)->sizes, [&](Sizes at) {
      const double x = src[static_cast<size_t>(Flat(at, src_steps))];
      at[d] = static_cast<int64_t>(index[i++]);
      PT2ONNX_CHECK(at[d] >= 0 && at[d] < out->sizes[d]);
      out->memory->data[static_cast<size_t>(Flat(at, out->strides))] = x;
    });
    return Answer{out};
  };

  // Writes: all operands are read first, the result is cast and broadcast into the tensor, which is the answer.
  const auto inplace = [&](const char* name, const char* form) {
    ops[name] = [f = ops.at(form)](const Args& a) {
      const TensorPtr value = f(a)[0];
      Assign(*a.T(0), ValuesOf(*Expand(*value, a.T(0)->sizes)));
      return Answer{a.T(0)};
    };
  };
  for (const auto& [name, form] : {std::pair("aten::add_.Tensor", "aten::add.Tensor"), {"aten::add_.Scalar", "aten::add.Scalar"}, {"aten::mul_.Tensor", "aten::mul.Tensor"},
                                   {"aten::masked_fill_.Scalar", "aten::masked_fill.Scalar"}, {"aten::index_put_", "aten::index_put"}, {"aten::relu_", "aten::relu"},
                                   {"aten::clamp_", "aten::clamp"}, {"aten::neg_", "aten::neg"}, {"aten::cumsum_", "aten::cumsum"}, {"aten::eq_.Scalar", "aten::eq.Scalar"},
                                   {"aten::ge_.Scalar", "aten::ge.Scalar"}, {"aten::index_fill_.int_Scalar", "aten::index_fill.int_Scalar"},
                                   {"aten::index_add_", "aten::index_add"}, {"aten::index_copy_", "aten::index_copy"}})
    inplace(name, form);
  ops["aten::copy_"] = ops["aten::fill_.Tensor"] = [](const Args& a) {
    Assign(*a.T(0), ValuesOf(*Expand(*a.T(1), a.T(0)->sizes)));
    return Answer{a.T(0)};
  };
  ops["aten::fill_.Scalar"] = [](const Args& a) {
    Assign(*a.T(0), std::vector<double>(static_cast<size_t>(a.T(0)->numel()), a.Number(1)));
    return Answer{a.T(0)};
  };
  ops["aten::zero_"] = [](const Args& a) {
    Assign(*a.T(0), std::vector<double>(static_cast<size_t>(a.T(0)->numel()), 0));
    return Answer{a.T(0)};
  };
  const auto out = [&](const char* name, const char* form) {
    ops[name] = [f = ops.at(form)](const Args& a) {
      const TensorPtr value = f(a)[0], target = a.T(a.op.args.size() - 1);
      if (value->sizes != target->sizes) {  // resized: a prefix of its memory
        target->sizes = value->sizes;
        target->strides = RowMajor(value->sizes);
      }
      Assign(*target, ValuesOf(*value));
      return Answer{target};
    };
  };
  out("aten::add.out", "aten::add.Tensor");
  out("aten::mul.out", "aten::mul.Tensor");
  const auto foreach = [&](const char* name, const char* form) {
    ops[name] = [f = ops.at(form)](const Args& a) {
      const ValueList list = std::get<ValueList>(a[0]);
      for (size_t i = 0; i < list.size(); ++i) {
        std::vector<Arg> args = {list[i]};
        if (const ValueList* others = std::get_if<ValueList>(&a[1])) args.push_back((*others)[i]);
        else args.push_back(a[1]);
        args.push_back(int64_t{1});
        f(Args(a.eager, a.op, args));
      }
      return Answer{};
    };
  };
  foreach("aten::_foreach_add_.Scalar", "aten::add_.Scalar");
  foreach("aten::_foreach_add_.List", "aten::add_.Tensor");

  const auto foreach_value = [&](const char* name, const char* form) {
    ops[name] = [f = ops.at(form)](const Args& a) {
      Answer out;
      for (size_t i = 0; i < std::get<ValueList>(a[0]).size(); ++i) {
        std::vector<Arg> args = {std::get<ValueList>(a[0])[i]};
        if (const ValueList* others = std::get_if<ValueList>(&a[1])) args.push_back((*others)[i]);
        else args.push_back(a[1]);
        args.push_back(int64_t{1});
        out.push_back(f(Args(a.eager, a.op, args))[0]);
      }
      return out;
    };
  };
  foreach_value("aten::_foreach_add.Scalar", "aten::add.Scalar");
  foreach_value("aten::_foreach_add.List", "aten::add.Tensor");

  // Changes of geometry: the tensor looks at other elements from now on.
  const auto geometry = [&](const char* name, const char* form) {
    ops[name] = [f = ops.at(form)](const Args& a) {
      const TensorPtr self = a.T(0);
      *self = *f(a)[0];
      return Answer{self};
    };
  };
  for (const auto& [name, form] : {std::pair("aten::t_", "aten::t"), {"aten::transpose_", "aten::transpose.int"}, {"aten::unsqueeze_", "aten::unsqueeze"},
                                   {"aten::squeeze_.dim", "aten::squeeze.dim"}, {"aten::as_strided_", "aten::as_strided"}})
    geometry(name, form);
  ops["aten::detach_"] = [](const Args& a) { return Answer{a.T(0)}; };
  ops["aten::set_.source_Tensor"] = [](const Args& a) {
    const TensorPtr self = a.T(0);
    *self = *a.T(1);
    return Answer{self};
  };
  ops["aten::resize_"] = [](const Args& a) {
    const TensorPtr self = a.T(0);
    if (self->sizes == a.Ints(1)) return Answer{self};  // strides stay
    self->sizes = a.Ints(1);
    self->strides = RowMajor(self->sizes);
    return Answer{self};
  };

  // Regions.
  ops["hop::wrap_with_set_grad_enabled"] = [](const Args& a) { return a.eager.Run(*std::get<Graph*>(a[1]), a.List(2)); };
  ops["hop::cond"] = [](const Args& a) { return a.eager.Run(*std::get<Graph*>(a[ValuesOf(*a.T(0))[0] != 0 ? 1 : 2]), a.List(3)); };
  return ops;
}

}  // namespace pt2onnx::property
