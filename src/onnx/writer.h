// Writes a model: a graph of ONNX operators becomes a ModelProto, streamed. Messages that fit in a buffer are made by protozero; the bytes of
// weights never pass through one: the model is a list of memory chunks and ranges of the .pt2, whose lengths are summed first.
//
// Inputs with data are initializers, those marked optional inputs with a default. Constants are initializers of the graph they stand in.
// Results that nothing reads and that are optional are not named. Same graph and options, same bytes.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/context.h"
#include "pt2onnx/options.h"
#include "support/result.h"

namespace pt2onnx {

struct Model {
  const Graph* graph = nullptr;
  std::string name = "main";
  std::vector<const Graph*> functions = {};                   // passes/functions.h
  std::vector<std::pair<std::string, std::string>> metadata;  // metadata_props
};

struct WriteOptions {
  Options::ExternalData external_data = Options::ExternalData::kAuto;
  std::map<std::string, std::string> dim_names;               // passes/dim_names.h
  int weights_fd = -1;                                        // the .pt2 that stored data is in
  std::string weights_path;
};

// Appears whole or not at all, the data file before the model. Errors: E0121, E0122 of the files; E0123 over 2 GiB without external data;
// E0124 a .pt2 that an in-place model can't point at.
Status WriteModel(Context& context, const Model& model, const std::string& path, const WriteOptions& options);

}  // namespace pt2onnx
