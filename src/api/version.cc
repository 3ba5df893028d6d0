#include "pt2onnx/pt2onnx.h"

namespace pt2onnx {

std::string_view Version() { return PT2ONNX_VERSION; }

}  // namespace pt2onnx
