// A command of the program. Each stands in a file of its own; main.cc lists them and turns the table into a command line.
#pragma once

#include <string_view>

#include "tool/arguments.h"

namespace pt2onnx::tool {

struct Command {
  std::string_view name;
  std::string_view help;
  bool writes = false;  // has -o FILE
  OptionSpecs options;
  Report (*run)(const Arguments& arguments) = nullptr;
};

Command ConvertCommand();
Command FunctionalizeCommand();
Command DecomposeCommand();
Command InspectCommand();
Command CheckCommand();
Command ExplainCommand();

}  // namespace pt2onnx::tool
