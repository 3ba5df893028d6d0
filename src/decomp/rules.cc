#include "decomp/rules.h"

namespace pt2onnx {

void AliasDecompositions(Rules<Aten>& r);
void CoreCreation(Rules<Aten>& r);
void CoreLoss(Rules<Aten>& r);
void CoreMath(Rules<Aten>& r);
void CoreNetwork(Rules<Aten>& r);
void CoreProducts(Rules<Aten>& r);
void CoreViews(Rules<Aten>& r);
void FftDecompositions(Rules<Aten>& r);
void ForeachDecompositions(Rules<Aten>& r);
void MathDecompositions(Rules<Aten>& r);

Rules<Aten> DecompositionRules() {
  Rules<Aten> r;
  AliasDecompositions(r);
  FftDecompositions(r);
  ForeachDecompositions(r);
  MathDecompositions(r);
  return r;
}

Rules<Aten> CoreRules() {
  Rules<Aten> r = DecompositionRules();
  CoreCreation(r);
  CoreLoss(r);
  CoreMath(r);
  CoreNetwork(r);
  CoreProducts(r);
  CoreViews(r);
  return r;
}

}  // namespace pt2onnx
