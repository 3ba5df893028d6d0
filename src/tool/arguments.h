// Options as tables: one entry an option, with its name, its help and how its text is read. The command line and the Python module read the same
// tables, so that `--dim-name s77=batch` and `dim_names={"s77": "batch"}` can't drift apart.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pt2onnx/options.h"

namespace pt2onnx::tool {

struct Arguments {
  std::string path;
  std::string out_path;
  Options options;
  bool json = false;  // the answer as JSON
  bool time = false;  // print how long each stage took
};

struct OptionSpec {
  enum class Kind { kSwitch, kOne, kMany };  // --name, --name VALUE, --name VALUE that may be repeated
  std::string_view name;                     // on the command line, without the dashes
  std::string_view keyword;                  // in Python
  Kind kind = Kind::kOne;
  std::string_view value;  // what stands for the value in the help: "N", "preserve|eval|train"
  std::string_view help;
  bool on_by_default = false;  // of a switch: the command line has --no-NAME
  // Reads the text of one value ("on" or "off" of a switch). Returns "" or what is wrong with it.
  std::function<std::string(Arguments&, const std::string&)> set;
};

using OptionSpecs = std::vector<OptionSpec>;

OptionSpecs CommonOptions();   // which model, how much to tell
OptionSpecs AnswerOptions();   // in what form; the command line only
OptionSpecs ProgramOptions();  // how the program is understood: mode, custom operators
OptionSpecs ModelOptions();    // what the ONNX model looks like
OptionSpecs InspectOptions();  // which stage to show
OptionSpecs operator+(OptionSpecs a, OptionSpecs b);

}  // namespace pt2onnx::tool
