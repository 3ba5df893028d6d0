// Order: nodes in an order that follows from the graph alone. A rule's `b.Add(b.Neg(x), b.Exp(y))` emits Neg and Exp in the order in which the C++
// compiler evaluates arguments, which is any; a model must not depend on who compiled the converter.
//
//   %a = neg(%x)  %b = exp(%y)  %c = add(%b, %a)   becomes   %b = exp(%y)  %a = neg(%x)  %c = add(%b, %a)
#pragma once

#include "ir/graph.h"

namespace pt2onnx {

// Each node right after what it reads, in argument order: depth first from the nodes that have effects, then from the outputs. Nodes that neither
// reaches are dropped, so this comes after dead code is gone. Linear in nodes and arguments.
void Order(Graph& graph);

}  // namespace pt2onnx
