// The names that a user knows the inputs by, from the tree of forward's arguments.
//
//   forward(self, X, opts, *, Scale) called with (x, {"a": a, "b": b}, Scale=s)      ->  "X", "", "", "Scale"
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/context.h"
#include "support/json.h"

namespace pt2onnx {

// One for each leaf of in_spec, in order; "" for a leaf inside a structure, which goes by its placeholder. Empty where in_spec is no tree of
// (args, kwargs). Keyword arguments go by the keys of in_spec: torch 2.6 permutes their names in forward_arg_names.
std::vector<std::string_view> UserInputNames(Context& context, std::string_view in_spec, const std::vector<std::string_view>& forward_args);

// Where each leaf stands, as Python writes it: "x", "opts['a'][0]", "state.hidden"; of outputs from the answer on: "[1]['b']", "" for the answer.
std::vector<std::string> InputPaths(std::string_view in_spec, const std::vector<std::string_view>& forward_args, JsonValue namedtuple_fields);
std::vector<std::string> OutputPaths(std::string_view out_spec, JsonValue namedtuple_fields);

}  // namespace pt2onnx
