// ONNX messages that fit in a buffer: nodes, types, sub-graphs with their constants. Field numbers are those of onnx.proto3.
#pragma once

#include <map>
#include <protozero/pbf_writer.hpp>
#include <set>
#include <string>
#include <utility>

#include "ir/context.h"
#include "onnx/model_names.h"

namespace pt2onnx {

struct ExternalPlace {
  std::string location;
  int64_t offset = 0;
};

class ProtoEncoder {
 public:
  ProtoEncoder(Context& context, ModelNames& names, const std::map<std::string, std::string>& dim_names, int ir_version)
      : context_(context), names_(names), dim_names_(dim_names), ir_version_(ir_version) {}

  void Nodes(protozero::pbf_writer& graph, const Graph& from);        // field node of a GraphProto; constants are left to Constants
  void ValueInfos(protozero::pbf_writer& graph, const Graph& from);   // inputs, outputs and what is known of inner values
  void Function(protozero::pbf_writer& model, const Graph& from, std::string_view domain);  // field functions of a ModelProto
  // A TensorProto up to its bytes: with `external` the whole of it, else raw_data's tag and length stand at the end.
  std::string TensorHead(const TensorData& data, std::string_view name, const ExternalPlace* external);

  // Constants that stand in a graph as nodes.
  static std::vector<std::pair<const Value*, const TensorData*>> Constants(const Graph& from);
  const std::set<std::string>& domains() const { return domains_; }  // met so far, beside ONNX's

 private:
  void EncodeNode(protozero::pbf_writer& graph, uint32_t field, const Node& node);
  void EncodeAttribute(protozero::pbf_writer& node, std::string_view name, const Arg& arg);
  void EncodeGraph(protozero::pbf_writer& attribute, const Graph& from);
  void EncodeWhere(protozero::pbf_writer& node, LocId loc);
  void EncodeValueInfo(protozero::pbf_writer& graph, uint32_t field, const Value& value);
  std::string DimName(SymExpr e);

  Context& context_;
  ModelNames& names_;
  const std::map<std::string, std::string>& dim_names_;
  int ir_version_;
  std::set<std::string> domains_;
};

inline int64_t DataSize(const TensorData& data) { return data.stored ? static_cast<int64_t>(data.file_length) : std::ssize(data.bytes); }

}  // namespace pt2onnx
