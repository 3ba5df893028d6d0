#include "decomp/rules.h"

namespace pt2onnx {

void MathDecompositions(Rules<Aten>& r);

Rules<Aten> DecompositionRules() {
  Rules<Aten> r;
  MathDecompositions(r);
  return r;
}

}  // namespace pt2onnx
