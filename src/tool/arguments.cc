#include "tool/arguments.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include <fmt/core.h>

#include "pt2onnx/pt2onnx.h"

namespace pt2onnx::tool {
namespace {

template <class Enum>
OptionSpec Choice(std::string_view name, std::string_view keyword, std::string_view values, std::string_view help, Enum Options::*member,
                  std::vector<std::pair<std::string_view, Enum>> choices) {
  auto set = [=](Arguments& arguments, const std::string& text) -> std::string {
    for (const auto& [word, choice] : choices) {
      if (word == text) return arguments.options.*member = choice, "";
    }
    return fmt::format("must be one of {}", values);
  };
  return {.name = name, .keyword = keyword, .value = values, .help = help, .set = set};
}

OptionSpec Switch(std::string_view name, std::string_view keyword, std::string_view help, bool Options::*member) {
  const bool on_by_default = Options().*member;
  auto set = [=](Arguments& arguments, const std::string& text) -> std::string { return arguments.options.*member = text == "on", ""; };
  return {.name = name, .keyword = keyword, .kind = OptionSpec::Kind::kSwitch, .value = "", .help = help, .on_by_default = on_by_default, .set = set};
}

OptionSpec Text(std::string_view name, std::string_view keyword, std::string_view value, std::string_view help, std::string Options::*member) {
  auto set = [=](Arguments& arguments, const std::string& text) -> std::string { return arguments.options.*member = text, ""; };
  return {.name = name, .keyword = keyword, .value = value, .help = help, .set = set};
}

OptionSpec Number(std::string_view name, std::string_view keyword, std::string_view help, int64_t Options::*member, int64_t least, int64_t most) {
  auto set = [=](Arguments& arguments, const std::string& text) -> std::string {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return "must be an integer";
    if (number < least || number > most) return fmt::format("must be from {} to {}", least, most);
    return arguments.options.*member = number, "";
  };
  return {.name = name, .keyword = keyword, .value = "N", .help = help, .set = set};
}

OptionSpec List(std::string_view name, std::string_view keyword, std::string_view value, std::string_view help,
                std::vector<std::string> Options::*member) {
  auto set = [=](Arguments& arguments, const std::string& text) -> std::string { return (arguments.options.*member).push_back(text), ""; };
  return {.name = name, .keyword = keyword, .kind = OptionSpec::Kind::kMany, .value = value, .help = help, .set = set};
}

// A list in one word; from Python it is a list as it is.
OptionSpec Commas(std::string_view name, std::string_view value, std::string_view help, std::vector<std::string> Options::*member) {
  auto set = [=](Arguments& arguments, const std::string& text) -> std::string {
    for (size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
      end = text.find(',', at);
      (arguments.options.*member).push_back(text.substr(at, end - at));
    }
    return "";
  };
  return {.name = name, .value = value, .help = help, .set = set};
}

OptionSpec Pairs(std::string_view name, std::string_view keyword, std::string_view value, std::string_view help,
                 std::map<std::string, std::string> Options::*member) {
  auto set = [=](Arguments& arguments, const std::string& text) -> std::string {
    const size_t equal = text.find('=');
    if (equal == std::string::npos || equal == 0 || equal + 1 == text.size()) return fmt::format("must have the form {}", value);
    const bool is_new = (arguments.options.*member).emplace(text.substr(0, equal), text.substr(equal + 1)).second;
    return is_new ? "" : fmt::format("gives {} twice", text.substr(0, equal));
  };
  return {.name = name, .keyword = keyword, .kind = OptionSpec::Kind::kMany, .value = value, .help = help, .set = set};
}

std::string Joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

}  // namespace

OptionSpecs operator+(OptionSpecs a, OptionSpecs b) {
  a.insert(a.end(), std::make_move_iterator(b.begin()), std::make_move_iterator(b.end()));
  return a;
}

OptionSpecs CommonOptions() {
  return {
      Text("model", "model", "NAME", "which model of an archive that holds several", &Options::model),
      Switch("verbose", "verbose", "tell more: statistics, every warning", &Options::verbose),
  };
}

OptionSpecs AnswerOptions() {
  return {
      {.name = "format",
       .keyword = "format",
       .value = "text|json",
       .help = "form of the answer (text)",
       .set = [](Arguments& arguments, const std::string& text) -> std::string {
         if (text != "text" && text != "json") return "must be one of text|json";
         return arguments.json = text == "json", "";
       }},
      {.name = "time",
       .keyword = "time",
       .kind = OptionSpec::Kind::kSwitch,
       .value = "",
       .help = "tell how long each stage took",
       .set = [](Arguments& arguments, const std::string& text) -> std::string { return arguments.time = text == "on", ""; }},
  };
}

OptionSpecs ProgramOptions() {
  using Mode = Options::Mode;
  return {
      Choice("mode", "mode", "preserve|eval|train", "training flags as captured, all off, or all on (preserve)", &Options::mode,
             {{"preserve", Mode::kPreserve}, {"eval", Mode::kEval}, {"train", Mode::kTrain}}),
      {.name = "compute",
       .keyword = "compute",
       .value = "bfloat16=float32|bfloat16",
       .help = "bfloat16 operators that ONNX Runtime's CPU lacks: in float32 between casts, or as they are (bfloat16=float32)",
       .set = [](Arguments& arguments, const std::string& text) -> std::string {
         if (text != "bfloat16=float32" && text != "bfloat16=bfloat16") return "must be bfloat16=float32 or bfloat16=bfloat16";
         return arguments.options.bfloat16_as_float32 = text == "bfloat16=float32", "";
       }},
      Choice("assertions", "assertions", "drop|keep", "run-time checks of the program (drop)", &Options::assertions,
             {{"drop", Options::Assertions::kDrop}, {"keep", Options::Assertions::kKeep}}),
      Pairs("decompose", "decompositions", "ns::op=FILE", "what a custom operator does: another exported program", &Options::decompositions),
      List("schema", "schemas", "'ns::op(...) -> ...'", "schema of a custom operator", &Options::schemas),
      Switch("separate-passes", "separate_passes", "one graph a pass instead of one traversal; same result", &Options::separate_passes),
  };
}

OptionSpecs ModelOptions() {
  using State = Options::State;
  using Data = Options::ExternalData;
  return {
      Number("opset", "opset", "ONNX opset, 18 to 28 (20)", &Options::opset, 18, 28),
      Choice("state", "state", "optional|inputs|drop", "written state: optional inputs, required inputs, or left out (optional)", &Options::state,
             {{"optional", State::kOptional}, {"inputs", State::kInputs}, {"drop", State::kDrop}}),
      Choice("external-data", "external_data", "auto|never|always|in-place",
             "weights beside the model: over 256 MiB, never, always, or left inside the .pt2 (auto)", &Options::external_data,
             {{"auto", Data::kAuto}, {"never", Data::kNever}, {"always", Data::kAlways}, {"in-place", Data::kInPlace}}),
      Pairs("dim-name", "dim_names", "SYMBOL=NAME", "name of a dynamic dimension; INPUT:DIM=NAME too", &Options::dim_names),
      List("input-name", "input_names", "NAME", "name of the next input", &Options::input_names),
      Commas("input-names", "NAME,NAME,...", "names of the inputs, in order", &Options::input_names),
      List("output-name", "output_names", "NAME", "name of the next output", &Options::output_names),
      Commas("output-names", "NAME,NAME,...", "names of the outputs, in order", &Options::output_names),
      Pairs("custom-op", "custom_ops", "ns::op=domain::Op", "ONNX operator for a custom operator", &Options::custom_ops),
      Switch("functions", "functions", "one local function for each module class", &Options::functions),
      {.name = "fuse",
       .keyword = "fuse",
       .value = "none|all|NAME,...",
       .help = "which groups of operators become one: names of docs/fusion.md (all)",
       .set = [](Arguments& arguments, const std::string& text) -> std::string {
         arguments.options.fusions.clear();
         for (size_t at = 0; at <= text.size();) {
           const size_t comma = std::min(text.find(',', at), text.size());
           const std::string word = text.substr(at, comma - at);
           const std::vector<std::string> names = FusionNames();
           if (word != "all" && word != "none" && std::find(names.begin(), names.end(), word) == names.end())
             return fmt::format("must be none, all or some of {}", Joined(names));
           arguments.options.fusions.push_back(word);
           at = comma + 1;
         }
         return "";
       }},
      Number("seed", "seed", "seed of random ops in the model (0)", &Options::seed, 0, INT64_MAX),
  };
}

OptionSpecs InspectOptions() {
  using Stage = Options::Stage;
  return {Choice("stage", "stage", "training|functional|core|onnx", "the program after which stage (training: as it was saved)", &Options::stage,
                 {{"training", Stage::kTraining}, {"functional", Stage::kFunctional}, {"core", Stage::kCore}, {"onnx", Stage::kOnnx}})};
}

}  // namespace pt2onnx::tool
