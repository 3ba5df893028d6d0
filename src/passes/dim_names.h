// Names of the model's dynamic dimensions: the user's, by symbol or by place; otherwise the first input that has the size, or what carries it.
//
//   --dim-name s77=batch    --dim-name x:0=batch          x: [batch, x_dim1], y: [2*batch + 1]
#pragma once

#include <map>
#include <string>

#include "ir/context.h"
#include "ir/program.h"
#include "pt2onnx/options.h"
#include "support/result.h"

namespace pt2onnx {

// Text of a symbol, or of a whole expression ("2*s6"), -> name. Error E0151: a name for what is no dynamic dimension, or one name for two sizes.
Result<std::map<std::string, std::string>> NameDims(const Program& program, const Graph& model, const Options& options);

}  // namespace pt2onnx
