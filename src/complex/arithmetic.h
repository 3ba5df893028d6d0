// Arithmetic on parts, shared by the rules of complex numbers.
#pragma once

#include "complex/rules.h"

namespace pt2onnx {

inline Val Negative(Val x) { return (*static_cast<Aten*>(x.builder))(aten::neg{.self = x}); }
// sqrt(re^2 + im^2), where squares do not overflow
Val Modulus(Pairs& b, const Parts& z);
// The angle in (-pi, pi]
Val Argument(Pairs& b, const Parts& z);
Val Conjugate(Pairs& b, Val z);
Val Power(Pairs& b, Val base, Val exponent);
Val WholePower(Pairs& b, Val base, int64_t n);
Val MatrixInverse(Pairs& b, Val z);

}  // namespace pt2onnx
