// ReplaceInplacePostFunctionalization: after Functionalize and Decompose no op may write. In-place variants can still come in: a program that another
// tool functionalized and then decomposed, a decomposition of the user's. Each becomes its out-of-place form at once:
//
//   %y = aten::mul.Tensor(%x, %x)                    %y  = aten::mul.Tensor(%x, %x)
//   %z = aten::add_.Tensor(%y, 1)             ->     %z  = aten::add.Tensor(%y, 1)
//   return %z                                        return %z
//
// That is right as long as nobody reads the overwritten value again, under its name or through a view. Who does, or who writes to an input, has a
// real mutation, which takes Functionalize: an error that names both places (E0205), never a guess.
#pragma once

#include <vector>

#include "rewrite/aten.h"
#include "rewrite/sink.h"

namespace pt2onnx {

class ReplaceInplace : public PassSink {
 public:
  explicit ReplaceInplace(Sink& down) : PassSink(down), aten_(down) {}
  Value* Input(const GraphInput& input) override;
  Results Emit(const Call& call) override;
  void Output(const GraphOutput& output) override;

 private:
  struct Memory {            // what values lie in: a value of its own and its views
    const Memory* from = nullptr;
    bool input = false;
    LocId written = 0;       // where, once it is
    std::string_view by;     // the op that wrote; empty: nobody
  };
  Memory* Of(const Value* value);
  void Set(const Value* value, Memory* memory);
  const Memory* Overwritten(const Arg& arg);
  uint32_t Problem(const Memory& memory, std::string_view reader, LocId loc);
  Results Replace(const Call& call);

  Aten aten_;
  std::vector<Memory*> memories_;  // by value id; null: a value of its own, not written
};

}  // namespace pt2onnx
