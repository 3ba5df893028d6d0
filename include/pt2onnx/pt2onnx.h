// pt2onnx: PyTorch exported programs (.pt2) to ONNX. The whole public interface.
//
//   pt2onnx::Options options;
//   options.opset = 21;
//   pt2onnx::Report report = pt2onnx::Convert("model.pt2", "model.onnx", options);
//   if (!report.ok()) std::cerr << report.Text();
//
// Every function reads `path`, a file that torch.export.save wrote, and answers with a Report; none throws because of its input. Functions
// that write do so at the end and in one step: when a call fails, no file is left and an older `out_path` is untouched. Calls share nothing:
// any number may run at once in different threads.
#pragma once

#include <string>
#include <string_view>

#include "pt2onnx/options.h"

namespace pt2onnx {

// 0.1.0
std::string_view Version();

// What Options::fusions may name.
std::vector<std::string> FusionNames();

// Writes an ONNX model.
Report Convert(const std::string& path, const std::string& out_path, const Options& options = {});

// Writes a .pt2 in which every write has become a value, for torch.export.load. Order of outputs: PyTorch's, changed state first.
Report Functionalize(const std::string& path, const std::string& out_path, const Options& options = {});

// As Functionalize, and every op is one of Core ATen.
Report Decompose(const std::string& path, const std::string& out_path, const Options& options = {});

// The program as text after options.stage, in Report::output.
Report Inspect(const std::string& path, const Options& options = {});

// What of the program has an ONNX form and what has none, by op with counts, in Report::output. Exit code 1 where something has none.
Report Check(const std::string& path, const Options& options = {});

// Each write of the program: where it is, what it wrote through, and what became of it.
Report Explain(const std::string& path, const Options& options = {});

}  // namespace pt2onnx
