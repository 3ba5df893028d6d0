#include "lower/rules.h"

namespace pt2onnx {

void ActivationRules(Rules<Onnx>& r);
void AttentionRules(Rules<Onnx>& r);
void BesselRules(Rules<Onnx>& r);
void BitwiseRules(Rules<Onnx>& r);
void CompareRules(Rules<Onnx>& r);
void ConvRules(Rules<Onnx>& r);
void CreationRules(Rules<Onnx>& r);
void CtcRules(Rules<Onnx>& r);
void CumulativeRules(Rules<Onnx>& r);
void DifferenceRules(Rules<Onnx>& r);
void DistanceRules(Rules<Onnx>& r);
void DropoutRules(Rules<Onnx>& r);
void FftRules(Rules<Onnx>& r);
void GradientRules(Rules<Onnx>& r);
void GridRules(Rules<Onnx>& r);
void HistogramRules(Rules<Onnx>& r);
void HopRules(Rules<Onnx>& r);
void IndexRules(Rules<Onnx>& r);
void JoinRules(Rules<Onnx>& r);
void LinalgExpRules(Rules<Onnx>& r);
void LinalgQrRules(Rules<Onnx>& r);
void LinalgRules(Rules<Onnx>& r);
void LinalgSolveRules(Rules<Onnx>& r);
void LinalgSvdRules(Rules<Onnx>& r);
void LossRules(Rules<Onnx>& r);
void NormRules(Rules<Onnx>& r);
void PadRules(Rules<Onnx>& r);
void PointwiseRules(Rules<Onnx>& r);
void PolynomialRules(Rules<Onnx>& r);
void PoolRules(Rules<Onnx>& r);
void QuantRules(Rules<Onnx>& r);
void RandomRules(Rules<Onnx>& r);
void ReduceRules(Rules<Onnx>& r);
void ResizeRules(Rules<Onnx>& r);
void RnnRules(Rules<Onnx>& r);
void ScatterRules(Rules<Onnx>& r);
void SearchRules(Rules<Onnx>& r);
void ShapeRules(Rules<Onnx>& r);
void SignalWindowRules(Rules<Onnx>& r);
void SliceRules(Rules<Onnx>& r);
void SortRules(Rules<Onnx>& r);
void SpecialRules(Rules<Onnx>& r);
void StftRules(Rules<Onnx>& r);
void VisionRules(Rules<Onnx>& r);

Rules<Onnx> LoweringRules() {
  Rules<Onnx> r;
  ActivationRules(r);
  AttentionRules(r);
  BesselRules(r);
  BitwiseRules(r);
  CompareRules(r);
  ConvRules(r);
  CreationRules(r);
  CtcRules(r);
  CumulativeRules(r);
  DifferenceRules(r);
  DistanceRules(r);
  DropoutRules(r);
  FftRules(r);
  GradientRules(r);
  GridRules(r);
  HistogramRules(r);
  HopRules(r);
  IndexRules(r);
  JoinRules(r);
  LinalgExpRules(r);
  LinalgQrRules(r);
  LinalgRules(r);
  LinalgSolveRules(r);
  LinalgSvdRules(r);
  LossRules(r);
  NormRules(r);
  PadRules(r);
  PointwiseRules(r);
  PolynomialRules(r);
  PoolRules(r);
  QuantRules(r);
  RandomRules(r);
  ReduceRules(r);
  ResizeRules(r);
  RnnRules(r);
  ScatterRules(r);
  SearchRules(r);
  ShapeRules(r);
  SignalWindowRules(r);
  SliceRules(r);
  SortRules(r);
  SpecialRules(r);
  StftRules(r);
  VisionRules(r);
  return r;
}

}  // namespace pt2onnx
