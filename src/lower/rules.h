// Lowerings: ATen ops in terms of ONNX operators. One function for each family; LoweringRules is the only place that knows them all.
#pragma once

#include "gen/aten.h"
#include "gen/hop.h"
#include "gen/prims.h"
#include "gen/quantized.h"
#include "gen/torchvision.h"
#include "onnx/builder.h"
#include "rewrite/rules.h"

namespace pt2onnx {

Rules<Onnx> LoweringRules();

}  // namespace pt2onnx
