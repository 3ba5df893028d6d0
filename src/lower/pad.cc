// Padding. ONNX Pad lists the begins of all dims, then the ends; torch lists pairs from the last dim on.
//
//   %y = aten::pad(%x : f32[2, 3], [1, 2], "reflect")    ->    %y = Pad(%x, [0, 1, 0, 2], mode="reflect")
#include <algorithm>

#include "ir/sym_facts.h"
#include "lower/indexing.h"

namespace pt2onnx {
namespace {

// How much comes before and after along each padded axis; negative: that much is cut off.
struct Padding {
  IntVec axes;
  DimVec before, after;
  bool empty() const { return axes.empty(); }
};
Padding PaddingOf(Val self, Dims pad) {
  Padding p;
  for (int64_t i = std::ssize(pad) / 2; i-- > 0;) {
    const SymExpr before = pad[static_cast<size_t>(2 * i)], after = pad[static_cast<size_t>(2 * i + 1)];
    if (before == 0 && after == 0) continue;
    p.axes.push_back(self.rank() - 1 - i);
    p.before.push_back(before);
    p.after.push_back(after);
  }
  return p;
}

Val Padded(Onnx& b, Val x, const Padding& p, std::string_view mode, OptVal value) {
  if (p.empty()) return x;
  // All dims, not the input `axes`: ONNX Runtime moves Transposes past a Pad without heeding it.
  DimVec pads(std::vector<SymExpr>(static_cast<size_t>(2 * x.rank()), 0));
  for (size_t i = 0; i < p.axes.size(); ++i) {
    pads[static_cast<size_t>(p.axes[i])] = p.before[i];
    pads[static_cast<size_t>(x.rank() + p.axes[i])] = p.after[i];
  }
  return b.Pad(x, b.Shape(pads), value, {}, {.mode = mode});
}

// What is left after cutting where the padding is negative.
Val Cut(Onnx& b, Val x, const Padding& p) {
  for (size_t i = 0; i < p.axes.size(); ++i) {
    const SymExpr before = Max(0, -p.before[i]), after = Max(0, -p.after[i]);
    if (!ProvablyNonNegative(p.before[i]) || !ProvablyNonNegative(p.after[i]))
      x = b.Slice(x, p.axes[i], ProvablyNonNegative(p.before[i]) ? 0 : before, x.dim(p.axes[i]) - (ProvablyNonNegative(p.after[i]) ? 0 : after));
  }
  return x;
}

// The padding without what is cut.
Padding Grown(const Padding& p) {
  Padding out;
  const auto grown = [](SymExpr e) { return ProvablyNonNegative(e) ? e : Max(0, e); };
  for (size_t i = 0; i < p.axes.size(); ++i) {
    if (grown(p.before[i]) == 0 && grown(p.after[i]) == 0) continue;
    out.axes.push_back(p.axes[i]);
    out.before.push_back(grown(p.before[i]));
    out.after.push_back(grown(p.after[i]));
  }
  return out;
}

Val Constant(Onnx& b, Val self, Dims pad, Scalar value) {
  return Padded(b, self, PaddingOf(self, pad), "constant", value.Is(0) ? OptVal() : b.Constant(value, self.dtype()));
}

// Both look at the whole tensor; what is cut goes last.
Val Reflected(Onnx& b, Val self, Dims pad, std::string_view mode) {
  const Padding p = PaddingOf(self, pad);
  const Val grown = Padded(b, self, Grown(p), mode, {});
  Padding cut = p;
  return Cut(b, grown, cut);
}
Val Reflection(Onnx& b, Val self, Dims pad) { return Reflected(b, self, pad, "reflect"); }
Val Replication(Onnx& b, Val self, Dims pad) { return Reflected(b, self, pad, "edge"); }

// Wraps around what is left of the tensor after cutting. ONNX Runtime's Pad fails in this mode on tensors without elements.
Val Circular(Onnx& b, Val self, Dims pad) {
  const Padding p = PaddingOf(self, pad);
  Val x = Cut(b, self, p);
  const Padding grown = Grown(p);
  if (b.opset() >= 19 && std::ranges::all_of(x.shape(), ProvablyPositive)) return Padded(b, x, grown, "wrap", {});
  for (size_t i = 0; i < grown.axes.size(); ++i) {
    const int64_t axis = grown.axes[i];
    const SymExpr n = x.dim(axis);
    Vals parts;
    if (!(grown.before[i] == 0)) parts.push_back(b.Slice(x, axis, n - grown.before[i], INT64_MAX));
    parts.push_back(x);
    if (!(grown.after[i] == 0)) parts.push_back(b.Slice(x, axis, 0, grown.after[i]));
    x = b.Concat(parts, axis);
  }
  return x;
}

Val Pad(Onnx& b, Val self, Dims pad, std::string_view mode, std::optional<double> value) {
  if (mode == "constant") return Constant(b, self, pad, value.value_or(0));
  if (mode == "reflect") return Reflection(b, self, pad);
  if (mode == "replicate") return Replication(b, self, pad);
  return Circular(b, self, pad);
}

}  // namespace

void PadRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::pad& op) { return Pad(b, op.self, op.pad_, op.mode, op.value); });
  r.On([](Onnx& b, const aten::_pad_enum& op) {
    constexpr std::string_view kModes[] = {"reflect", "replicate", "circular", "constant"};
    return Pad(b, op.self, op.pad, kModes[op.mode & 3], op.value);
  });
  r.On([](Onnx& b, const aten::constant_pad_nd& op) { return Constant(b, op.self, op.pad, op.value); });
  r.On([](Onnx& b, const aten::_pad_circular& op) { return Circular(b, op.self, op.pad); });
  OnEach<aten::reflection_pad1d, aten::reflection_pad2d, aten::reflection_pad3d>(
      r, [](Onnx& b, const auto& op) { return Reflection(b, op.self, op.padding); });
  OnEach<aten::replication_pad1d, aten::replication_pad2d, aten::replication_pad3d>(
      r, [](Onnx& b, const auto& op) { return Replication(b, op.self, op.padding); });
}

}  // namespace pt2onnx
