// Random programs through the passes, judged by a tiny eager interpreter (eager.h). A failing program is made as small as it gets and printed.
//
// PT2ONNX_PROPERTY_PROGRAMS: how many programs (default 1500). PT2ONNX_PROPERTY_SEED: the first seed.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>

#include "decomp/rules.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "lower/rules.h"
#include "passes/cleanup.h"
#include "passes/decompose.h"
#include "passes/functionalize.h"
#include "passes/lower.h"
#include "passes/promote.h"
#include "program_maker.h"

namespace pt2onnx::property {
namespace {

using Fault = std::optional<std::string>;

const Rules<Aten>& Decompositions() {
  static const Rules<Aten> rules = DecompositionRules();
  return rules;
}
const Rules<Onnx>& Lowerings() {
  static const Rules<Onnx> rules = LoweringRules();
  return rules;
}

Fault Verified(const Graph& graph, Stage stage, const std::string& what) {
  const std::vector<std::string> faults = Verify(graph, stage);
  return faults.empty() ? Fault() : what + " does not verify: " + faults[0];
}

Fault PrintsAndParses(Context& context, const Graph& graph, const std::string& what) {
  const std::string text = Print(context, graph);
  Context other;
  const Result<Graph*> parsed = Parse(other, text);
  if (!parsed) return what + " does not parse: " + parsed.error().message + "\n" + text;
  const std::string again = Print(other, **parsed);
  return again == text ? Fault() : what + " prints differently after it was parsed:\n" + text + "\n" + again;
}

Fault Differs(const std::string& what, const Tensor& got, const Tensor& want) {
  const std::vector<double> x = ValuesOf(got), y = ValuesOf(want);
  bool same = got.sizes == want.sizes && got.dtype == want.dtype;
  for (size_t i = 0; same && i < x.size(); ++i) same = SameValue(x[i], y[i]);
  return same ? Fault() : what + " is " + TextOf(got) + ", expected " + TextOf(want);
}

// Outputs and changed state of the functional graph are those of the program.
Fault Judge(const Graph& functional, const Made& made, const std::string& what) {
  const std::vector<TensorPtr> after = CopyAll(made.inputs);
  Eager eager;
  const std::vector<TensorPtr> want = eager.Run(*made.graph, after);
  std::vector<TensorPtr> inputs;  // in a functional world nothing shares memory
  for (const TensorPtr& t : made.inputs) inputs.push_back(NewTensor(t->dtype, t->sizes, ValuesOf(*t)));
  Eager pure;
  pure.functional = true;
  const std::vector<TensorPtr> got = pure.Run(functional, inputs);
  for (const Eager* e : {&eager, &pure})
    if (!e->faults.empty()) return what + ": " + e->faults[0];

  std::map<std::string_view, TensorPtr> changed;
  size_t users = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const GraphOutput& output = functional.outputs[i];
    if (output.kind == OutputKind::User) {
      if (users >= want.size()) return what + " has too many outputs";
      if (Fault fault = Differs(what + ": output " + std::to_string(users), *got[i], *want[users])) return fault;
      ++users;
    } else if (!changed.emplace(output.target, got[i]).second) {
      return what + ": " + std::string(output.target) + " is given twice";
    }
  }
  if (users != want.size()) return what + " has too few outputs";
  for (size_t i = 0; i < after.size(); ++i) {
    const GraphInput& input = made.graph->inputs[i];
    const auto given = changed.find(input.target);
    if (Fault fault = Differs(what + ": " + std::string(input.target) + " at the end", given == changed.end() ? *made.inputs[i] : *given->second, *after[i])) return fault;
    if (given != changed.end()) changed.erase(given);
  }
  return changed.empty() ? Fault() : what + ": " + std::string(changed.begin()->first) + " is reported changed, but it is no input";
}

// The two ways through passes: one sink into the next, or one graph after the other.
Graph* Fused(Context& context, const Graph& from, bool onnx) {
  Graph* to = context.NewGraph();
  const auto run = [&](Sink& end) {
    PromoteTypes promote(end);
    Decompose decompose(onnx ? static_cast<Sink&>(promote) : end, Decompositions());
    Functionalize functionalize(decompose);
    Replay(from, functionalize);
  };
  if (onnx) {
    Lower lower(context, *to, Lowerings());
    run(lower);
  } else {
    GraphSink sink(context, *to);
    run(sink);
  }
  return to;
}

template <class Pass, class... Args>
Graph* Alone(Context& context, const Graph& from, const Args&... args) {
  Graph* to = context.NewGraph();
  GraphSink sink(context, *to);
  Pass pass(sink, args...);
  Replay(from, pass);
  return to;
}

Fault Same(Context& context, Graph& fused, Graph& apart, const std::string& what) {
  Cleanup(context, fused);
  Cleanup(context, apart);
  const std::string a = Print(context, fused), b = Print(context, apart);
  return a == b ? Fault() : what + ": fused passes and separate ones differ:\n" + a + "\n" + b;
}

Fault FaultOf(const Plan& plan, bool onnx) {
  Context context;
  const Made made = Make(context, plan);
  if (Fault f = Verified(*made.graph, Stage::Training, "the program")) return f;
  if (Fault f = PrintsAndParses(context, *made.graph, "the program")) return f;

  Graph* functional = Alone<Functionalize>(context, *made.graph);
  if (context.diagnostics.count()) return "refused: " + context.diagnostics.Get(1).message + " (" + context.diagnostics.Get(1).op + ")";
  if (Fault f = Verified(*functional, Stage::Functional, "the functional program")) return f;
  if (Fault f = PrintsAndParses(context, *functional, "the functional program")) return f;
  if (Fault f = Judge(*functional, made, "the functional program")) return f;

  Graph* core = Alone<Decompose>(context, *functional, Decompositions());
  if (onnx) {
    const Graph* typed = Alone<PromoteTypes>(context, *core);
    Graph* model = context.NewGraph();
    Lower lower(context, *model, Lowerings());
    Replay(*typed, lower);
    if (Fault f = Same(context, *Fused(context, *made.graph, true), *model, "lowered")) return f;
  }
  if (Fault f = Same(context, *Fused(context, *made.graph, false), *core, "decomposed")) return f;
  if (Fault f = Verified(*core, Stage::Core, "the clean program")) return f;
  Cleanup(context, *functional);
  if (Fault f = Verified(*functional, Stage::Functional, "the clean functional program")) return f;
  return Judge(*functional, made, "the clean functional program");
}

// In a process of its own, so that a crash is a fault like others.
Fault Apart(const std::function<Fault()>& run) {
  int ends[2];
  PT2ONNX_CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string text;
    try {
      text = run().value_or("");
    } catch (const std::exception& exception) {
      text = std::string("exception: ") + exception.what();
    }
    const bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status)) return "crash: signal " + std::to_string(WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  return text.empty() ? Fault() : text;
}

// What went wrong, without the details that change as the program gets smaller.
std::string Sort(const std::string& fault) { return fault.substr(0, fault.find(':')); }

std::string Report(Plan plan, std::string fault, uint64_t seed, bool onnx) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const Plan& candidate : Smaller(plan)) {
      const Fault other = Apart([&] { return FaultOf(candidate, onnx); });
      if (!other || Sort(*other) != Sort(fault)) continue;
      plan = candidate;
      fault = *other;
      smaller = true;
      break;
    }
  }
  Context context;
  const Made made = Make(context, plan);
  std::string text = "seed " + std::to_string(seed) + ": " + fault + "\n" + Print(context, *made.graph);
  for (size_t i = 0; i < made.inputs.size(); ++i) {
    const GraphInput& input = made.graph->inputs[i];
    text += "# " + std::string(input.target) + (input.storage < 0 ? "" : " in memory " + std::to_string(input.storage)) + " = " + TextOf(*made.inputs[i]) + "\n";
  }
  if (fault.starts_with("crash") || fault.starts_with("exception")) return text;
  return text + "becomes\n" + Print(context, *Alone<Functionalize>(context, *made.graph));
}

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

constexpr int64_t kSteps = 20;
bool WithOnnx(uint64_t seed) { return seed % 8 == 0; }  // it takes longer

// The first program of [seed, end) that fails; seed becomes its own.
Fault FirstFault(uint64_t& seed, uint64_t end) {
  void* const shared = mmap(nullptr, sizeof seed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  PT2ONNX_CHECK(shared != MAP_FAILED);
  auto& at = *new (shared) std::atomic<uint64_t>(seed);
  const Fault fault = Apart([&]() -> Fault {
    for (; at < end; ++at)
      if (Fault f = FaultOf(RandomPlan(at, kSteps), WithOnnx(at))) return f;
    return {};
  });
  seed = at;
  munmap(shared, sizeof seed);
  return fault;
}

TEST(Functionalize, RandomProgramsMeanTheSame) {
  uint64_t seed = FromEnvironment("PT2ONNX_PROPERTY_SEED", 1);
  const uint64_t end = seed + FromEnvironment("PT2ONNX_PROPERTY_PROGRAMS", 1500), enough = FromEnvironment("PT2ONNX_PROPERTY_FAILURES", 3);
  for (uint64_t failures = 0; seed < end && failures < enough;) {
    const uint64_t next = std::min(end, seed + 250);
    if (const Fault fault = FirstFault(seed, next)) {
      ++failures;
      ADD_FAILURE() << Report(RandomPlan(seed, kSteps), *fault, seed, WithOnnx(seed));
      ++seed;
    }
  }
}

}  // namespace
}  // namespace pt2onnx::property
