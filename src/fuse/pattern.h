// Patterns of ONNX operators, written like the formula they stand for, and what they match.
//
//   const Pat x;                                        // any value; the same one wherever it occurs
//   const Pat gelu = 0.5 * x * (1 + Erf(x * M_SQRT1_2));
//
// + - * / match whatever way the program arranged its sums and products: in any order, grouped in any way, a division by a number as a
// multiplication, all its numbers gathered into one; a product in a product is a part of it. So one formula serves x / 2 * (erf(x / sqrt(2)) + 1) and
// its kin. Numbers are the same if they are when rounded to the value's dtype.
#pragma once

#include <memory>
#include <vector>

#include "onnx/builder.h"
#include "onnx/table.h"

namespace pt2onnx {

class Pat {
 public:
  enum class Form { Any, Number, Op, OneOf, Product, Sum };
  struct Node {
    Form form = Form::Any;
    OnnxOp op = {};
    std::vector<Pat> operands = {};
    std::vector<Pat> inverse = {};  // of a product: divisors; of a sum: what is subtracted
    double number = 0;              // of a product or sum: its number, if `captured` is null
    std::shared_ptr<const Node> captured = {};
  };

  Pat() : node_(std::make_shared<Node>()) {}
  explicit Pat(Node node) : node_(std::make_shared<Node>(std::move(node))) {}
  const Node* operator->() const { return node_.get(); }
  const Node* node() const { return node_.get(); }
  std::shared_ptr<const Node> shared() const { return node_; }

 private:
  std::shared_ptr<const Node> node_;
};

Pat Number();                                  // any number, in a sum or product
Pat Op(OnnxOp op, std::vector<Pat> operands);  // further operands and attributes are not looked at
Pat OneOf(std::vector<Pat> patterns);
Pat operator*(const Pat& a, const Pat& b);
Pat operator*(double a, const Pat& b);
inline Pat operator*(const Pat& a, double b) { return b * a; }
Pat operator/(const Pat& a, const Pat& b);
Pat operator/(double a, const Pat& b);
inline Pat operator/(const Pat& a, double b) { return (1 / b) * a; }
Pat operator+(const Pat& a, const Pat& b);
Pat operator+(double a, const Pat& b);
inline Pat operator+(const Pat& a, double b) { return b + a; }
Pat operator-(const Pat& a, const Pat& b);

inline Pat Exp(const Pat& x) { return Op(OnnxOp::Exp, {x}); }
inline Pat Log(const Pat& x) { return Op(OnnxOp::Log, {x}); }
inline Pat Erf(const Pat& x) { return Op(OnnxOp::Erf, {x}); }
inline Pat Tanh(const Pat& x) { return Op(OnnxOp::Tanh, {x}); }
inline Pat Sqrt(const Pat& x) { return Op(OnnxOp::Sqrt, {x}); }
inline Pat Sigmoid(const Pat& x) { return Op(OnnxOp::Sigmoid, {x}); }
inline Pat Pow(const Pat& x, double n) { return Op(OnnxOp::Pow, {x, Pat({.form = Pat::Form::Number, .number = n})}); }
// factor x^n. The factor may have been multiplied into any of the x.
inline Pat Square(const Pat& x, double factor = 1) { return OneOf({factor * x * x, factor * Pow(x, 2)}); }
inline Pat Cube(const Pat& x, double factor = 1) { return OneOf({factor * x * x * x, factor * Pow(x, 3)}); }
inline Pat Largest(const Pat& x) { return OneOf({Op(OnnxOp::ReduceMax, {x}), Op(OnnxOp::TopK, {x})}); }  // along an axis: KeptAxis
inline Pat Mean(const Pat& x) { return Op(OnnxOp::ReduceMean, {x}); }
inline Pat MatMul(const Pat& a, const Pat& b) { return Op(OnnxOp::MatMul, {a, b}); }
inline Pat Softmax(const Pat& x) { return Op(OnnxOp::Softmax, {x}); }

// The one number in a constant; none for others.
std::optional<double> NumberIn(const Value* value);
// The numbers of an int64 constant.
std::optional<IntVec> IntsIn(const Value* value);
bool AllOnes(const Value* value);  // a constant
inline bool IsMadeBy(const Value* value, OnnxOp op) { return value->def && Is(*value->def->op, op); }

class Match {
 public:
  explicit Match(Builder& builder) : builder_(builder) {}

  bool Run(Value* value, const Pat& pattern) { return Fits(value, pattern); }
  Val operator[](const Pat& pattern) const { return builder_.Wrap(ValueOf(pattern)); }
  double Number(const Pat& pattern) const;
  const pt2onnx::Node& NodeOf(const Pat& pattern) const { return *ValueOf(pattern)->def; }
  // An attribute or operand of the node that an Op pattern matched.
  const Arg& ArgOf(const Pat& pattern, std::string_view name) const;
  int64_t IntOf(const Pat& pattern, std::string_view name, int64_t none) const;
  // Nodes that the pattern covers, the root among them.
  const std::vector<pt2onnx::Node*>& nodes() const { return nodes_; }

 private:
  struct Term {
    Value* value;
    bool inverse;
  };
  struct Terms;
  struct Binding {
    const Pat::Node* pattern;
    Value* value;
    double number;
  };
  struct Mark {
    size_t bindings, nodes;
  };
  Value* ValueOf(const Pat& pattern) const;
  const Binding* Find(const Pat::Node* pattern) const;
  bool Fits(Value* value, const Pat& pattern);
  bool FitsNew(Value* value, const Pat& pattern);
  bool FitsTerms(Value* value, const Pat& pattern);
  bool Cut(Terms& terms, const Pat& pattern);
  bool Assign(const Terms& terms, const Pat& pattern, size_t next, std::vector<bool>& taken);
  Mark Now() const { return {bindings_.size(), nodes_.size()}; }
  void Undo(Mark mark);

  Builder& builder_;
  std::vector<Binding> bindings_;
  std::vector<pt2onnx::Node*> nodes_;
};

// The axis of a reduction over one that keeps it; none for others.
std::optional<int64_t> KeptAxis(const Match& m, const Pat& reduction);

}  // namespace pt2onnx
