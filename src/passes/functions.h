// Functions: one local function of the model for each module class (--functions), so that the model reads as the program's modules do.
//
//   main:  %h = pt2onnx::Block(%x, %blocks.0.fc.weight, ...)   %y = pt2onnx::Block(%h, %blocks.1.fc.weight, ...)
//   Block(%x, %fc.weight, ...) = { ... pt2onnx::Attention(...) ... }
//
// Modules that do the same share a function: what they read (weights too) are its inputs, small constants stand in it. Modules of one class that do
// different things are Block, Block_2, ... Stays as it is: a module of a single node, one with control flow in it, and one whose nodes can't run
// without others in between (its value goes out and comes back).
#pragma once

#include <vector>

#include "ir/context.h"

namespace pt2onnx {

// Replaces nodes of the finished model by calls; returns the functions, callees first. A function's name is its graph's.
std::vector<const Graph*> MakeFunctions(Context& context, Graph& model);

inline constexpr std::string_view kFunctionDomain = "pt2onnx";

}  // namespace pt2onnx
