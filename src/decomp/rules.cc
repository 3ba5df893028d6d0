#include "decomp/rules.h"

namespace pt2onnx {

void AliasDecompositions(Rules<Aten>& r);
void ForeachDecompositions(Rules<Aten>& r);
void MathDecompositions(Rules<Aten>& r);

Rules<Aten> DecompositionRules() {
  Rules<Aten> r;
  AliasDecompositions(r);
  ForeachDecompositions(r);
  MathDecompositions(r);
  return r;
}

Rules<Aten> CoreRules() {
  Rules<Aten> r = DecompositionRules();
  return r;
}

}  // namespace pt2onnx
