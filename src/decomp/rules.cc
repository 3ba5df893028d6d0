#include "decomp/rules.h"

namespace pt2onnx {

void AliasDecompositions(Rules<Aten>& r);
void MathDecompositions(Rules<Aten>& r);

Rules<Aten> DecompositionRules() {
  Rules<Aten> r;
  AliasDecompositions(r);
  MathDecompositions(r);
  return r;
}

}  // namespace pt2onnx
