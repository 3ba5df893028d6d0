// expect: to 'pt2onnx::Val'
#include "gen/aten.h"

pt2onnx::aten::mm Forgets(pt2onnx::Val x) { return pt2onnx::aten::mm{.self = x}; }
