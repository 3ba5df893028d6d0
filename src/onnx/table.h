// Facts about ONNX operators of the default domain, opset 18 to 28; the data is generated (gen/onnx_table.cc).
#pragma once

#include <span>
#include <string_view>

#include "gen/onnx_ops.h"
#include "ir/op_table.h"

namespace pt2onnx {

constexpr uint32_t kFirstOnnxId = 1u << 15;     // behind every id of torch's table, before those of custom ops

struct OnnxOperand {                            // an input or a result
  int8_t variable;                              // type variable: operands with the same one share a dtype; -1: none
  DType fixed;                                  // the only dtype it can have, else Unknown
  bool optional;
};
struct OnnxForm {                               // what the op takes from an opset on
  int since;
  const uint32_t* dtypes;                       // of each operand: bit n is DType n
};
struct OnnxFacts {
  int inputs;                                   // how many of the schema's args are inputs
  std::span<const uint8_t> since;               // of each arg: the opset that brought it; 0: always there
  std::span<const OnnxOperand> operands;        // inputs, then results
  std::span<const std::string_view> variables;  // names of the type variables: "T", "T1"
  std::span<const OnnxForm> forms;              // in order of `since`
};

std::span<const OpSchema> OnnxOpTable();        // "onnx::Add"; position: OnnxOp
const OnnxFacts& FactsOf(OnnxOp op);
int OnnxIrVersion(int opset);                   // the lowest that knows the opset

inline const OpSchema& SchemaOf(OnnxOp op) { return OnnxOpTable()[static_cast<size_t>(op)]; }
inline bool IsOnnx(const OpSchema& schema) { return schema.id >= kFirstOnnxId && schema.id - kFirstOnnxId < OnnxOpTable().size(); }
inline OnnxOp OnnxOpOf(const OpSchema& schema) { return static_cast<OnnxOp>(schema.id - kFirstOnnxId); }
inline bool Is(const OpSchema& schema, OnnxOp op) { return schema.id == kFirstOnnxId + static_cast<uint32_t>(op); }
// The form that an opset means; null if the op is younger.
const OnnxForm* FormAt(OnnxOp op, int opset);

}  // namespace pt2onnx
