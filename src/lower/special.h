// What the files of special functions share.
#pragma once

#include "lower/elementary.h"

namespace pt2onnx {

Val AlongLast(Onnx& b, Val x);     // with one more axis, of size 1: to be broadcast against Steps
Val Steps(Onnx& b, int64_t n);     // 0, 1, ..., n - 1 in float64

}  // namespace pt2onnx
