#include "complex/rules.h"

namespace pt2onnx {

void ComplexArithmetic(Rules<Pairs>& r);
void ComplexCreation(Rules<Pairs>& r);
void ComplexFourier(Rules<Pairs>& r);
void ComplexFunctions(Rules<Pairs>& r);
void ComplexLinalg(Rules<Pairs>& r);
void ComplexProducts(Rules<Pairs>& r);
void ComplexReductions(Rules<Pairs>& r);
void ComplexStructure(Rules<Pairs>& r);

Rules<Pairs> ComplexRules() {
  Rules<Pairs> r;
  ComplexArithmetic(r);
  ComplexCreation(r);
  ComplexFourier(r);
  ComplexFunctions(r);
  ComplexLinalg(r);
  ComplexProducts(r);
  ComplexReductions(r);
  ComplexStructure(r);
  return r;
}

}  // namespace pt2onnx
