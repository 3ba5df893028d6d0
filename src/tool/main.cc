// The command-line program: commands and options come as tables (command.h, arguments.h); this is the only file that knows CLI11, which takes
// seconds to compile. Answers go to stdout, problems to stderr; with --format json both go to stdout, as one object.
// Exit codes: 0 done, 1 can't be converted or a bad file, 2 wrong use, 3 our bug.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include <fmt/core.h>

#include "pt2onnx/pt2onnx.h"
#include "tool/command.h"

namespace pt2onnx::tool {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kInternal = 3;

void AddOption(CLI::App& app, const OptionSpec& spec, Arguments& arguments) {
  const std::string flag = fmt::format("--{}{}", spec.on_by_default ? "no-" : "", spec.name);
  const auto set = [&spec, &arguments, flag](const std::string& text) {
    if (const std::string wrong = spec.set(arguments, text); !wrong.empty()) throw CLI::ValidationError(flag, fmt::format("'{}' {}", text, wrong));
  };
  if (spec.kind == OptionSpec::Kind::kSwitch) {
    const std::string text = spec.on_by_default ? "off" : "on";
    app.add_flag_callback(
        flag, [set, text] { set(text); }, std::string(spec.help));
    return;
  }
  const auto set_all = [set](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) set(text);
    return true;
  };
  CLI::Option* option = app.add_option(flag, CLI::callback_t(set_all), std::string(spec.help));
  option->type_name(std::string(spec.value));
  if (spec.kind == OptionSpec::Kind::kMany) {
    option->take_all()->allow_extra_args(false);
  } else {
    option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  }
}

bool Print(std::FILE* file, std::string_view text) { return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0; }

std::string Notes(const Report& report, const Arguments& arguments) {
  std::string out;
  if (arguments.time) {
    for (const Report::Timing& timing : report.timings) out += fmt::format("{:>10.3f} ms  {}\n", timing.milliseconds, timing.stage);
  }
  if (arguments.options.verbose) {
    for (const Report::Statistic& statistic : report.statistics) out += fmt::format("{:>10}     {}\n", statistic.value, statistic.name);
  }
  return out;
}

int Answer(const Report& report, const Arguments& arguments) {
  bool written = true;
  if (arguments.json) {
    written = Print(stdout, report.Json() + "\n");
  } else {
    written = Print(stdout, report.output);
    Print(stderr, report.Text() + Notes(report, arguments));
  }
  if (!written) Print(stderr, "pt2onnx: error: can't write to standard output\n");
  return written ? report.exit_code : std::max(report.exit_code, kFailed);
}

int Run(int argc, char** argv) {
  const std::vector<Command> commands = {ConvertCommand(),       InspectCommand(),   CheckCommand(),
                                         FunctionalizeCommand(), DecomposeCommand(), ExplainCommand()};
  const OptionSpecs answer_options = AnswerOptions();
  Arguments arguments;
  CLI::App app("PyTorch exported programs (.pt2) to ONNX", "pt2onnx");
  app.set_version_flag("--version", fmt::format("pt2onnx {}", Version()));
  app.require_subcommand(1);
  for (const Command& command : commands) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.help));
    sub->add_option("program", arguments.path, "file that torch.export.save wrote")->type_name("MODEL.pt2")->required();
    if (command.writes) sub->add_option("-o,--output", arguments.out_path, "file to write")->type_name("FILE")->required();
    for (const OptionSpec& spec : command.options) AddOption(*sub, spec, arguments);
    for (const OptionSpec& spec : answer_options) AddOption(*sub, spec, arguments);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const std::vector<CLI::App*> chosen = app.get_subcommands();
    const std::string help = chosen.empty() ? "pt2onnx --help" : fmt::format("pt2onnx {} --help", chosen.front()->get_name());
    const bool unknown = chosen.empty() && argc > 1 && argv[1][0] != '-';
    Print(stderr, fmt::format("pt2onnx: error: {}\n  help   {}\n", unknown ? fmt::format("'{}' is not a command", argv[1]) : error.what(), help));
    return kUsage;
  }
  for (const Command& command : commands) {
    if (app.got_subcommand(std::string(command.name))) return Answer(command.run(arguments), arguments);
  }
  return kUsage;
}

}  // namespace
}  // namespace pt2onnx::tool

int main(int argc, char** argv) {
  try {
    return pt2onnx::tool::Run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("pt2onnx: error: out of memory\n", stderr);
    return pt2onnx::tool::kFailed;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pt2onnx: internal error: %s\nThis is a bug in pt2onnx; please report it with the file that shows it.\n", error.what());
    return pt2onnx::tool::kInternal;
  }
}
