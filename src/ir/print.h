// The text form of a graph. Everything that a pass may look at is in it: Parse(Print(g)) is g, and prints the same.
//
//   op my::twice(Any x) -> (Tensor)                                  # an op that no table knows
//   graph(%x: f32[s0, 4], parameter "fc.weight" = %w: f32[4, 4]{1, 4}, user "n" = 3) where 0 <= s0 <= 64 {
//     %y: f32[s0, 4] = aten::linear(%x, %w)  # "m.py":12
//     %a: f32[s0, 4] = aten::add.Tensor(%y, %x, alpha=2)
//     return buffer "last" = %a, %y
//   }
//
// Arguments stand in schema order; defaults at the end are left out; keyword-only ones have their name. A type is dtype[sizes], then
// {strides} where they are not row-major and @offset where it is not 0; int(u0), float(..), bool(..) is a number; `_` a result that is None.
// The inputs of the outermost graph are the user's unless they say otherwise, those of sub-graphs are plain. More that is said of inputs:
// `transient` a buffer that is not saved, `storage 3` inputs with the same number share memory, `optional` an initializer that may be fed.
#pragma once

#include <string>
#include <string_view>

#include "ir/context.h"

namespace pt2onnx {

struct PrintOptions {
  bool types = true;
  bool lines = false;  // end a node's line with the place in the user's program
  bool data = false;   // the contents of inputs that have any: `%w: f32[2] = tensor f32[2] [1., 2.]`
};

std::string Print(Context& context, const Graph& graph, const PrintOptions& options = {});
// One line, with the types of what goes in; sub-graphs are left out. For messages.
std::string PrintNode(Context& context, const Node& node);
std::string PrintType(const Type& type);

bool IsRowMajor(const Type& type);  // or without recorded strides

}  // namespace pt2onnx
