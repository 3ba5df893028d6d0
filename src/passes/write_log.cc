#include "passes/write_log.h"

namespace pt2onnx {
namespace {

bool IsWithin(const Alias* alias, const Alias* whole) {
  while (alias && alias != whole) alias = alias->parent;
  return alias != nullptr;
}

}  // namespace

void WriteLog::Wrote(const OpSchema& op, LocId loc, const Alias* alias, bool refused) {
  // A body that runs again is told once.
  std::erase_if(records_, [&](const Record& r) {
    return r.loc == loc && r.op == &op && r.alias->name == alias->name && !alias->name.empty() && r.alias->own_storage != alias->own_storage;
  });
  Record& record = records_.emplace_back(Record{&op, loc, alias, alias, alias->value, refused});
  if (!alias->overlapping) return;
  for (; record.at->parent; record.at = record.at->parent) record.carried.push_back({record.at});  // at once: its other copies changed
}

void WriteLog::Overwrites(const Alias* alias) {
  for (Record& record : records_)
    if (!record.seen && record.alias->storage() == alias->storage() && IsWithin(record.at, alias)) record.gone = true;
}

void WriteLog::Carried(const Alias* from, bool together) {
  for (Record& record : records_) {
    if (record.at != from || record.gone) continue;
    record.carried.push_back({from, together});
    record.at = from->parent;
  }
}

void WriteLog::Seen(const Storage* storage) {
  for (Record& record : records_)
    if (!record.gone && record.alias->storage() == storage) record.seen = true;
}

void WriteLog::Changed(const Storage* storage, std::string_view name) {
  for (Record& record : records_)
    if (!record.gone && record.alias->storage() == storage) record.outputs.push_back(name);
}

}  // namespace pt2onnx
