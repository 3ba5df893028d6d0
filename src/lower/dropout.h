// Dropout of the rules that have one inside.
#pragma once

#include "lower/network.h"

namespace pt2onnx {

struct Dropped {
  Val y, mask;  // mask: bool, true where the element is kept
};
// x * mask / (1 - p), mask random; all zero where p is 1.
Dropped Drop(Onnx& b, Val x, double p);

}  // namespace pt2onnx
