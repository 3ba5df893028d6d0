// Core ATen: einsum, as matrix products of two operands at a time.
//
//   einsum("bij,bjk->bik", x, y)    ->    bmm(x, y)
//
// Letters of two operands are of four kinds: in both and needed later (the batch), in one of them only (rows, columns), in both and not needed any
// more (summed by the product). What is in one only and not needed is summed before. "..." stands for letters of its own, aligned at the end.
#include <algorithm>
#include <map>
#include <string>

#include "decomp/core.h"

namespace pt2onnx {
namespace {

struct Term {
  Val x;
  std::string letters;
  bool Has(char c) const { return letters.find(c) != std::string::npos; }
};

constexpr char kEllipsis = '\1';  // the last of its dims; those before it have the next codes

class Einsum {
 public:
  explicit Einsum(Aten& b) : b_(b) {}

  Val Run(const aten::einsum& op) {
    std::string text;
    for (const char c : op.equation)
      if (c != ' ') text += c;
    const size_t arrow = text.find("->");
    std::vector<Term> terms = Operands(text.substr(0, arrow), op.tensors);
    for (const Term& term : terms)
      for (const char c : term.letters)
        if (std::count(term.letters.begin(), term.letters.end(), c) > 1)
          return b_.Unsupported("an einsum over a diagonal has no rule for Core ATen", "take the diagonal first, or use functionalize");
    const std::string output = arrow == std::string::npos ? Implied(terms) : Letters(text.substr(arrow + 2), most_);
    Term so_far = terms[0];
    for (size_t i = 1; i < terms.size(); ++i) {
      std::string later = output;
      for (size_t j = i + 1; j < terms.size(); ++j) later += terms[j].letters;
      so_far = Product(so_far, terms[i], later);
    }
    so_far = Summed(so_far, output);
    std::vector<int64_t> order;
    for (const char c : output) order.push_back(static_cast<int64_t>(so_far.letters.find(c)));
    return b_.Permute(so_far.x, order);
  }

 private:
  // "..." of `dims` dims as letters.
  static std::string Letters(const std::string& text, int64_t dims) {
    const size_t at = text.find("...");
    if (at == std::string::npos) return text;
    std::string own;
    for (int64_t i = dims; i-- > 0;) own += static_cast<char>(kEllipsis + i);
    return text.substr(0, at) + own + text.substr(at + 3);
  }

  std::vector<Term> Operands(const std::string& text, const Vals& tensors) {
    std::vector<Term> terms;
    size_t begin = 0;
    for (const Val& x : tensors) {
      const size_t end = std::min(text.find(',', begin), text.size());
      const std::string own = text.substr(begin, end - begin);
      const int64_t dims = own.find("...") == std::string::npos ? 0 : x.rank() - static_cast<int64_t>(own.size() - 3);
      most_ = std::max(most_, dims);
      terms.push_back({x, Letters(own, dims)});
      for (size_t d = 0; d < terms.back().letters.size(); ++d) {
        SymExpr& size = sizes_.try_emplace(terms.back().letters[d], 1).first->second;
        if (size == 1) size = x.dim(static_cast<int64_t>(d));
      }
      begin = end + 1;
    }
    return terms;
  }

  // Without "->": letters that occur once, in order, behind those of "...".
  std::string Implied(const std::vector<Term>& terms) const {
    std::string out = Letters("...", most_);
    for (const auto& [c, size] : sizes_) {
      const auto uses = std::count_if(terms.begin(), terms.end(), [c = c](const Term& t) { return t.Has(c); });
      if (uses == 1 && static_cast<int64_t>(c) >= kEllipsis + most_) out += c;
    }
    return out;
  }

  Term Summed(Term term, const std::string& needed) {
    std::vector<int64_t> dims;
    std::string kept;
    for (size_t d = 0; d < term.letters.size(); ++d) {
      if (needed.find(term.letters[d]) == std::string::npos)
        dims.push_back(static_cast<int64_t>(d));
      else
        kept += term.letters[d];
    }
    return dims.empty() ? term : Term{Sum(b_, term.x, dims), kept};
  }

  // The dims of `term` in this order, those of a group as one.
  Val Grouped(const Term& term, const std::vector<std::string>& groups) {
    std::vector<int64_t> order;
    std::vector<SymExpr> whole, merged;
    for (const std::string& group : groups) {
      SymExpr n = 1;
      for (const char c : group) {
        order.push_back(static_cast<int64_t>(term.letters.find(c)));
        whole.push_back(sizes_.at(c));
        n = n * sizes_.at(c);
      }
      merged.push_back(n);
    }
    return b_.Reshape(b_.Expand(b_.Permute(term.x, order), b_.Copy(whole)), b_.Copy(merged));
  }

  Term Product(Term left, Term right, const std::string& later) {
    left = Summed(left, later + right.letters);
    right = Summed(right, later + left.letters);
    std::string batch, rows, columns, inner;
    for (const char c : left.letters) (!right.Has(c) ? rows : later.find(c) != std::string::npos ? batch : inner) += c;
    for (const char c : right.letters)
      if (!left.Has(c)) columns += c;
    const Val product = b_(aten::bmm{.self = Grouped(left, {batch, rows, inner}), .mat2 = Grouped(right, {batch, inner, columns})});
    const std::string letters = batch + rows + columns;
    std::vector<SymExpr> shape;
    for (const char c : letters) shape.push_back(sizes_.at(c));
    return {b_.Reshape(product, b_.Copy(shape)), letters};
  }

  Aten& b_;
  std::map<char, SymExpr> sizes_;
  int64_t most_ = 0;  // dims that "..." stands for
};

// x1.x2 / (|x1| |x2|), each norm at least eps
Val CosineSimilarity(Aten& b, const aten::cosine_similarity& op) {
  const auto norm = [&](Val x) {
    const Val square = b(aten::sum_dim_IntList{.self = x * x, .dim = b.Copy(std::vector<int64_t>{op.dim}), .keepdim = true});
    return b(aten::clamp{.self = b(aten::sqrt{.self = square}), .min = Scalar(op.eps)});
  };
  return Sum(b, (op.x1 / norm(op.x1)) * (op.x2 / norm(op.x2)), {op.dim});
}

}  // namespace

void CoreProducts(Rules<Aten>& r) {
  r.On([](Aten& b, const aten::einsum& op) { return Einsum(b).Run(op); });
  r.On<CosineSimilarity>();
  r.On([](Aten& b, const aten::inner& op) {
    if (op.self.rank() == 0 || op.other.rank() == 0) return op.self * op.other;
    if (op.other.rank() == 1) return MatrixProduct(b, op.self, op.other);
    const Val columns = b.Reshape(op.other, {FloorDiv(op.other.numel(), op.other.dim(-1)), op.other.dim(-1)});
    return b.Reshape(MatrixProduct(b, op.self, Swap(b, columns, 0, 1)), RecordedShape(b));
  });
  // self * beta + mat @ vec * alpha
  r.On([](Aten& b, const aten::addmv& op) {
    Val product = MatrixProduct(b, op.mat, op.vec);
    if (!op.alpha.Is(1)) product = b(aten::mul_Scalar{.self = product, .other = op.alpha});
    if (op.beta.Is(0)) return product;
    return (op.beta.Is(1) ? op.self : b(aten::mul_Scalar{.self = op.self, .other = op.beta})) + product;
  });
  // (N, C r^2, H, W) -> (N, C, H r, W r)
  r.On([](Aten& b, const aten::pixel_shuffle& op) {
    const SymExpr h = op.self.dim(-2), w = op.self.dim(-1), factor = op.upscale_factor;
    const SymExpr c = RecordedShape(b)[static_cast<size_t>(op.self.rank() - 3)], n = FloorDiv(op.self.numel(), op.self.dim(-3) * h * w);
    const Val parts = b.Reshape(op.self, {n, c, factor, factor, h, w});
    return b.Reshape(b.Permute(parts, {0, 1, 4, 2, 5, 3}), RecordedShape(b));
  });
  r.On([](Aten& b, const aten::pixel_unshuffle& op) {
    const SymExpr c = op.self.dim(-3), factor = op.downscale_factor;
    const SymExpr h = RecordedShape(b)[static_cast<size_t>(op.self.rank() - 2)], w = RecordedShape(b)[static_cast<size_t>(op.self.rank() - 1)];
    const SymExpr n = FloorDiv(op.self.numel(), c * op.self.dim(-2) * op.self.dim(-1));
    const Val parts = b.Reshape(op.self, {n, c, h, factor, w, factor});
    return b.Reshape(b.Permute(parts, {0, 1, 3, 5, 2, 4}), RecordedShape(b));
  });
  r.On([](Aten& b, const aten::argsort& op) { return b.All(aten::sort{.self = op.self, .dim = op.dim, .descending = op.descending})[1]; });
  r.On([](Aten& b, const aten::one_hot& op) {
    const SymExpr classes = RecordedShape(b).back();
    return b.Cast(b(aten::eq_Tensor{.self = Unsqueeze(b, op.self, -1), .other = Iota(b, classes)}), DType::I64);
  });
}

}  // namespace pt2onnx
