#include "decomp/rules.h"

namespace pt2onnx {

Rules<Aten> DecompositionRules() {
  Rules<Aten> r;
  return r;
}

}  // namespace pt2onnx
