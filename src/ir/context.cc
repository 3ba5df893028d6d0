#include "ir/context.h"

#include "ir/op_table.h"

namespace pt2onnx {

std::string_view Context::Intern(std::string_view text) { return *strings_.emplace(text).first; }

Value* Context::NewValue(const Type& type, std::string_view name) {
  Value* value = arena.New<Value>();
  value->id = next_value_++;
  value->type = type;
  value->name = name;
  return value;
}

const OpSchema* Context::FindOp(std::string_view name) const {
  if (const OpSchema* op = FindOpInTable(name)) return op;
  const auto found = custom_.find(name);
  return found == custom_.end() ? nullptr : found->second;
}

const OpSchema* Context::RegisterOp(OpSchema schema) {
  const auto known = custom_.find(schema.name);  // a schema that grows with its uses stays one op
  schema.id = known == custom_.end() ? kFirstCustomId + static_cast<uint32_t>(custom_.size()) : known->second->id;
  const OpSchema* op = arena.New<OpSchema>(schema);
  custom_[op->name] = op;
  return op;
}

}  // namespace pt2onnx
