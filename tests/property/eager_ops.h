// What eager.cc and the table of ops share.
#pragma once

#include <functional>
#include <map>
#include <string_view>

#include "eager.h"

namespace pt2onnx::property {

int64_t Product(const std::vector<int64_t>& sizes);
std::vector<int64_t> RowMajor(const std::vector<int64_t>& sizes);
double Round(DType dtype, double x);
TensorPtr CloneOf(const Tensor& tensor, bool row_major);

// Calls f(index) for every index tuple, in row-major order.
template <class F>
void ForEach(const std::vector<int64_t>& sizes, F f) {
  std::vector<int64_t> index(sizes.size(), 0);
  for (int64_t n = Product(sizes); n > 0; --n) {
    f(index);
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
  }
}

int64_t Flat(const std::vector<int64_t>& index, const std::vector<int64_t>& strides);

// The arguments of a call, by position.
class Args {
 public:
  Args(Eager& eager, const OpSchema& op, std::span<const Arg> args) : eager(eager), op(op), args_(args) {}
  Eager& eager;
  const OpSchema& op;

  const Arg& operator[](size_t i) const { return args_[i]; }
  bool Has(size_t i) const { return !IsNone(args_[i]); }
  bool IsFloat(size_t i) const { return std::holds_alternative<double>(args_[i]); }
  const TensorPtr& T(size_t i) const { return eager.Get(std::get<Value*>(args_[i])); }
  std::vector<TensorPtr> List(size_t i) const;
  double Number(size_t i) const;
  int64_t Int(size_t i) const {
    const double x = Number(i);
    return x >= 9.2e18 ? INT64_MAX : static_cast<int64_t>(x);  // the end of a slice
  }
  int64_t Int(size_t i, int64_t otherwise) const { return Has(i) ? Int(i) : otherwise; }
  std::vector<int64_t> Ints(size_t i) const;

 private:
  std::span<const Arg> args_;
};

using Answer = std::vector<TensorPtr>;
using Function = std::function<Answer(const Args&)>;
std::map<std::string_view, Function> Ops();

}  // namespace pt2onnx::property
