#include "lower/rules.h"

namespace pt2onnx {

Rules<Onnx> LoweringRules() {
  Rules<Onnx> r;
  return r;
}

}  // namespace pt2onnx
