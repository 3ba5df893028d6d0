// The names that a user knows the inputs by, from the tree of forward's arguments.
//
//   forward(self, X, opts, *, Scale) called with (x, {"a": a, "b": b}, Scale=s)      ->  "X", "", "", "Scale"
#pragma once

#include <string_view>
#include <vector>

#include "ir/context.h"

namespace pt2onnx {

// One for each leaf of in_spec, in order; "" for a leaf inside a structure, which goes by its placeholder. Empty where in_spec is no tree of
// (args, kwargs). Keyword arguments go by the keys of in_spec: torch 2.6 permutes their names in forward_arg_names.
std::vector<std::string_view> UserInputNames(Context& context, std::string_view in_spec, const std::vector<std::string_view>& forward_args);

}  // namespace pt2onnx
