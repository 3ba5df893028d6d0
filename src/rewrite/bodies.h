// Sub-graphs are arguments: a sink that changes ops replays each through a pass of its own kind before it sends the call on.
#pragma once

#include <algorithm>
#include <vector>

#include "rewrite/sink.h"

namespace pt2onnx {

inline bool HasBody(const Call& call) {
  return std::any_of(call.args.begin(), call.args.end(), [](const Arg& arg) { return std::holds_alternative<Graph*>(arg); });
}

// The call's arguments, its sub-graphs replayed: make(Sink& down) gives the pass.
template <class Make>
std::vector<Arg> ReplayBodies(Context& context, std::span<const Arg> args, Make make) {
  std::vector<Arg> out(args.begin(), args.end());
  for (Arg& arg : out) {
    Graph* const* body = std::get_if<Graph*>(&arg);
    if (!body) continue;
    Graph* replayed = context.NewGraph();
    replayed->name = (*body)->name;
    GraphSink sink(context, *replayed);
    auto pass = make(sink);
    Replay(**body, pass);
    arg = replayed;
  }
  return out;
}

}  // namespace pt2onnx
