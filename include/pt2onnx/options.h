// What a caller can ask for, and what comes back. Depends on the standard library only.
// Apart from pt2onnx.h so that the inner parts can take Options without the function names, some of which are also names of passes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pt2onnx {

struct Options {
  // Whether training flags (batch norm, dropout) stay as captured, or are turned off or on in the captured program.
  enum class Mode { kPreserve, kEval, kTrain };
  // What becomes of written buffers, parameters and inputs: an output `<name>_next` each, and an optional or required input; or nothing.
  enum class State { kOptional, kInputs, kDrop };
  // Where the weights go. kAuto: into the model up to 256 MiB, else into `<model>.onnx.data`. kInPlace: the model points into the .pt2.
  enum class ExternalData { kAuto, kNever, kAlways, kInPlace };
  // Checks that the program makes at run time (torch._check and the like).
  enum class Assertions { kDrop, kKeep };
  // A program between two passes; what Inspect shows.
  enum class Stage { kTraining, kFunctional, kCore, kOnnx };

  // Which model of an archive that holds several; "" where there is one.
  std::string model;

  // The ONNX model.
  int64_t opset = 20;  // 18 to 28; the model has exactly this one
  State state = State::kOptional;
  ExternalData external_data = ExternalData::kAuto;
  std::map<std::string, std::string> dim_names;  // symbol of the program -> name of the ONNX dimension: s77 -> batch
  std::vector<std::string> input_names;          // by position; empty: as in the program
  std::vector<std::string> output_names;
  bool functions = false;  // one local function for each module class
  std::vector<std::string> fusions = {"all"};    // which groups of operators become one: names of docs/fusion.md, "all" or "none"

  // The program.
  Mode mode = Mode::kPreserve;
  Assertions assertions = Assertions::kDrop;
  bool bfloat16_as_float32 = true;   // compute in float32, and round, what ONNX Runtime has no bfloat16 kernel for
  int64_t seed = 0;                  // of random ops in the model

  // Custom operators, by qualified name: my::op.
  std::map<std::string, std::string> custom_ops;      // -> ONNX op: my.domain::Op
  std::map<std::string, std::string> decompositions;  // -> path of a .pt2 that gives its meaning
  std::vector<std::string> schemas;                   // 'my::op(Tensor(a!) x) -> Tensor', for ops that the table lacks

  // How it is done; never changes the result.
  bool separate_passes = false;  // one graph a pass, instead of one traversal
  Stage stage = Stage::kTraining;
  bool verbose = false;
};

// What came of a call. `exit_code` is the command-line program's: 0 done, 1 the program can't be converted or a file is bad, 2 wrong use.
struct Report {
  enum class Severity { kNote, kWarning, kError };

  // One problem. Equal problems of one op are counted, not repeated. Fields that do not apply are empty (line: 0).
  struct Problem {
    Severity severity = Severity::kError;
    std::string code;     // E0301; docs/errors.md lists all
    std::string op;       // "aten::_fft_r2c", where it is one op's
    std::string message;  // one sentence
    std::string file;     // where the program was written: file name, line, and the text of that line
    int64_t line = 0;
    std::string source;
    std::string node;    // the node in text form
    std::string module;  // path of the module that it stands in
    std::string help;    // what to do about it
    int64_t count = 1;
  };
  // One write of the program, as Explain tells of it.
  struct Write {
    std::string op;      // "aten::fill_.Scalar"
    std::string file;    // where the program does it
    int64_t line = 0;
    std::string source;
    std::string module;
    std::vector<std::string> through;  // "%select = select.int": the tensor that is written and the views up to its memory, innermost first
    std::string memory;                // whose memory it is: the name of an input, parameter or buffer, else a value: "%clone"
    std::string fate;                  // "value", "written back", "dead" or "refused"
    std::vector<std::string> by;       // ops that write it back, in order
    std::vector<std::string> outputs;  // "counter_next": what of the program's state it reaches
  };
  struct Timing {
    std::string stage;
    double milliseconds = 0;
  };
  struct Statistic {
    std::string name;
    int64_t value = 0;
  };

  int exit_code = 0;
  std::string input;  // path of the file that was read
  std::vector<Problem> problems;
  std::string output;         // what Inspect, Check and Explain tell
  std::vector<Write> writes;  // of Explain
  std::vector<Timing> timings;
  std::vector<Statistic> statistics;

  bool ok() const { return exit_code == 0; }
  // The problems as a compiler prints them, one paragraph each, errors last; "" when there are none.
  std::string Text() const;
  // All of it as one JSON object: {"exit_code", "input", "problems", "timings", "statistics", "output", "writes"}.
  std::string Json() const;
};

}  // namespace pt2onnx
