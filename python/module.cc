// The Python module's native half: one function for each of the public ones, with the options as keywords from the command line's tables.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "pt2onnx/pt2onnx.h"
#include "tool/arguments.h"

namespace nb = nanobind;

namespace pt2onnx {
namespace {

using tool::Arguments;
using tool::OptionSpec;

// A Python value as the texts that the command line would give for it: True -> on, {"s77": "batch"} -> s77=batch, a list -> one each.
std::vector<std::string> Texts(nb::handle value) {
  std::vector<std::string> out;
  const auto text = [](nb::handle item) { return std::string(nb::str(item).c_str()); };
  if (nb::isinstance<nb::bool_>(value)) {
    out.push_back(nb::cast<bool>(value) ? "on" : "off");
  } else if (nb::isinstance<nb::dict>(value)) {
    for (const auto [key, item] : nb::borrow<nb::dict>(value)) out.push_back(text(key) + "=" + text(item));
  } else if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    for (nb::handle item : value) out.push_back(text(item));
  } else {
    out.push_back(text(value));
  }
  return out;
}

void SetOptions(Arguments& arguments, const nb::dict& keywords) {
  const tool::OptionSpecs specs = tool::InspectOptions() + tool::ModelOptions() + tool::ProgramOptions() + tool::CommonOptions();
  for (const auto [key, value] : keywords) {
    const auto name = nb::cast<std::string>(key);
    const OptionSpec* found = nullptr;
    for (const OptionSpec& spec : specs) {
      if (spec.keyword == name) found = &spec;
    }
    if (!found) throw nb::type_error(("unexpected option '" + name + "'").c_str());
    if (value.is_none()) continue;
    if ((found->kind == OptionSpec::Kind::kSwitch) != nb::isinstance<nb::bool_>(value))
      throw nb::type_error(("wrong type of option '" + name + "'").c_str());
    for (const std::string& text : Texts(value)) {
      if (const std::string wrong = found->set(arguments, text); !wrong.empty()) throw nb::value_error((name + ": '" + text + "' " + wrong).c_str());
    }
  }
}

template <class Call>
Report Run(const nb::dict& keywords, Call&& call) {
  Arguments arguments;
  SetOptions(arguments, keywords);
  nb::gil_scoped_release unlocked;
  return call(arguments.options);
}

using Writer = Report (*)(const std::string&, const std::string&, const Options&);
using Reader = Report (*)(const std::string&, const Options&);

void AddWriter(nb::module_& m, const char* name, Writer function) {
  m.def(name, [function](const std::string& path, const std::string& out, const nb::dict& keywords) {
    return Run(keywords, [&](const Options& options) { return function(path, out, options); });
  });
}

void AddReader(nb::module_& m, const char* name, Reader function) {
  m.def(name, [function](const std::string& path, const nb::dict& keywords) {
    return Run(keywords, [&](const Options& options) { return function(path, options); });
  });
}

NB_MODULE(_pt2onnx, m) {
  nb::class_<Report>(m, "Report", "What came of a call; str() of it is the problems as text.")
      .def_ro("exit_code", &Report::exit_code)
      .def_ro("output", &Report::output)
      .def("json", &Report::Json, "All of it as one JSON object.")
      .def("__str__", &Report::Text)
      .def_prop_ro("timings",
                   [](const Report& report) {
                     nb::dict out;
                     for (const Report::Timing& timing : report.timings) out[timing.stage.c_str()] = timing.milliseconds;
                     return out;
                   })
      .def_prop_ro("statistics", [](const Report& report) {
        nb::dict out;
        for (const Report::Statistic& statistic : report.statistics) out[statistic.name.c_str()] = statistic.value;
        return out;
      });
  m.attr("version") = std::string(Version());
  AddWriter(m, "convert", &Convert);
  AddWriter(m, "functionalize", &Functionalize);
  AddWriter(m, "decompose", &Decompose);
  AddReader(m, "inspect", &Inspect);
  AddReader(m, "check", &Check);
  AddReader(m, "explain", &Explain);
}

}  // namespace
}  // namespace pt2onnx
