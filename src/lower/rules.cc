#include "lower/rules.h"

namespace pt2onnx {

void PointwiseRules(Rules<Onnx>& r);
void ShapeRules(Rules<Onnx>& r);
void HopRules(Rules<Onnx>& r);
void LinalgRules(Rules<Onnx>& r);

Rules<Onnx> LoweringRules() {
  Rules<Onnx> r;
  PointwiseRules(r);
  ShapeRules(r);
  HopRules(r);
  LinalgRules(r);
  return r;
}

}  // namespace pt2onnx
