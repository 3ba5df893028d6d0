// What Functionalize did with each write, for who asks: `pt2onnx explain`. It watches; the result is the same with and without it.
#pragma once

#include <string_view>
#include <vector>

#include "passes/alias.h"

namespace pt2onnx {

class WriteLog {
 public:
  struct Step {  // a view that it was carried up from
    const Alias* view;
    bool together = false;  // with others, as one cat
  };
  struct Record {
    const OpSchema* op;
    LocId loc;
    const Alias* alias;  // what was written through
    const Alias* at;     // how far up the value was carried
    const Value* value;  // downstream: what was written
    bool refused = false;
    bool seen = false;                           // something read the memory afterwards
    bool gone = false;                           // overwritten before that
    std::vector<Step> carried = {};              // in order
    std::vector<std::string_view> outputs = {};  // names of state that it reaches
  };

  void Wrote(const OpSchema& op, LocId loc, const Alias* alias, bool refused);
  // Before a write: what is pending here, or below, is not seen any more.
  void Overwrites(const Alias* alias);
  void Carried(const Alias* from, bool together);
  void Seen(const Storage* storage);
  void Changed(const Storage* storage, std::string_view name);

  const std::vector<Record>& records() const { return records_; }

 private:
  std::vector<Record> records_;
};

}  // namespace pt2onnx
