// The view table: how the result of a view op follows from what it views, and how a write through it goes back.
//
//   v = select(base, 0, i)        forward: the op itself         back: base' = select_scatter(base, v', 0, i)
//   a, b = split(base, n)         forward: slices                back: base' = slice_scatter(base, v', ...)
#pragma once

#include <optional>

#include "passes/alias.h"
#include "rewrite/aten.h"

namespace pt2onnx {

// One step for each result of a view op. Empty: this class of view can't be expressed (sparse, nested).
std::vector<ViewStep> StepsOf(Context& context, const Call& call, const Type& self);

// Those of an op that cuts `self` into pieces along a dim, one after the other.
std::vector<ViewStep> SplitSteps(Context& context, const Call& call, const Type& self);

// The base's new value after the view's value became v; what the view does not cover stays.
// For views by index (expand, unfold, as_strided) `old` is the view's value before: only what changed is written.
Val Invert(Aten& b, const Alias& view, Val base, Val v, Val old);

// The part of its parent that a view shows, if that is an interval of one dim with constant bounds.
struct Interval {
  int64_t dim, begin, end;   // end: INT64_MAX where it reaches to the parent's
  bool drops_dim;            // select
};
std::optional<Interval> IntervalOf(const Alias& view);

// The order of dims of a permuting view op.
std::vector<int64_t> Permutation(const OpSchema& op, std::span<const Arg> args, int64_t rank);

inline int64_t Normalize(int64_t dim, int64_t rank) { return dim < 0 ? dim + (rank ? rank : 1) : dim; }

}  // namespace pt2onnx
