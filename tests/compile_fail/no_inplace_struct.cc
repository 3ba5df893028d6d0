// expect: add__Tensor
#include "gen/aten.h"

uint32_t Id() { return pt2onnx::aten::add__Tensor::kId; }
