// The text form of a graph (see print.h) back to a graph. For tests, for people who write small programs by hand, and to check the printer.
//
// A hand-written program may leave out types of results: they are inferred where ir/infer knows the op, else unknown. `%_` is a value that
// nobody reads. Defaults of arguments are filled from the schema. `#` begins a comment.
#pragma once

#include <string_view>

#include "ir/context.h"
#include "support/result.h"

namespace pt2onnx {

// Errors (E0148) name line and column. The text itself is not needed after the call.
Result<Graph*> Parse(Context& context, std::string_view text);

}  // namespace pt2onnx
