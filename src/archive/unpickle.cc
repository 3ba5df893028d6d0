#include "archive/unpickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "archive/dtype_codes.h"

namespace pt2onnx {

namespace {

std::string_view AfterLastDot(std::string_view text) { return text.substr(text.rfind('.') + 1); }

bool IsSequence(const PickleValue* v) { return v->kind == PickleKind::kTuple || v->kind == PickleKind::kList; }

std::optional<std::vector<int64_t>> IntsOf(const PickleValue* v) {
  if (!IsSequence(v)) return std::nullopt;
  std::vector<int64_t> ints;
  for (const PickleValue* item : v->items) {
    if (item->kind != PickleKind::kInt) return std::nullopt;
    ints.push_back(item->number);
  }
  return ints;
}

const PickleValue* DictGet(const PickleValue* dict, std::string_view key) {
  if (dict->kind != PickleKind::kDict) return nullptr;
  for (size_t i = 0; i + 1 < dict->items.size(); i += 2) {
    if (dict->items[i]->kind == PickleKind::kStr && dict->items[i]->text == key) return dict->items[i + 1];
  }
  return nullptr;
}

bool IsTrue(const PickleValue* v) { return v != nullptr && v->kind == PickleKind::kBool && v->number != 0; }

}  // namespace

// The stack machine. Every opcode checks that the stack holds what it takes; anything else ends the reading with an error.
class PickleMachine {
 public:
  PickleMachine(std::span<const std::byte> bytes, Pickle& pickle) : bytes_(bytes), pickle_(pickle) {}

  // "" when all went well, else what was wrong.
  std::string Run() {
    while (failure_.empty() && pickle_.root_ == nullptr) {
      const int op = static_cast<int>(Fixed<uint8_t>());
      if (failure_.empty()) Step(op);
    }
    return failure_;
  }

 private:
  using Kind = PickleKind;

  void Fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
  }

  // Reading. Past the end: 0, and the failure is noted.
  std::string_view Take(uint64_t size) {
    if (size > bytes_.size() - at_) {
      Fail("it ends in the middle");
      return {};
    }
    const auto part = bytes_.subspan(at_, size);
    at_ += size;
    return AsText(part);
  }
  template <class T>
  T Fixed() {
    const std::string_view raw = Take(sizeof(T));
    T value{};
    if (raw.size() == sizeof(T)) std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }
  std::string_view Line() {
    const std::string_view rest = AsText(bytes_.subspan(at_));
    const size_t end = rest.find('\n');
    if (end == rest.npos) {
      Fail("it ends in the middle");
      return {};
    }
    at_ += end + 1;
    return rest.substr(0, end);
  }

  PickleValue* New(Kind kind) {
    PickleValue& value = pickle_.pool_.emplace_back();
    value.kind = kind;
    return &value;
  }
  PickleValue* Opaque(std::string_view class_name) {
    PickleValue* value = New(Kind::kOpaque);
    value->text = class_name;
    return value;
  }
  void Push(PickleValue* value) { stack_.push_back(value); }
  void PushNumber(Kind kind, int64_t number) {
    Push(New(kind));
    stack_.back()->number = number;
  }
  void PushText(Kind kind, std::string_view text) {
    Push(New(kind));
    stack_.back()->text = text;
  }
  // The top; a fresh None when the stack is empty down to the last mark, so that callers need no check of their own.
  PickleValue* Top() {
    if (stack_.size() > Floor()) return stack_.back();
    Fail("it takes a value from an empty stack");
    return New(Kind::kNone);
  }
  PickleValue* Pop() {
    PickleValue* top = Top();
    if (failure_.empty()) stack_.pop_back();
    return top;
  }
  size_t Floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::vector<PickleValue*> PopToMark() {
    if (marks_.empty()) {
      Fail("it takes a mark that was never set");
      return {};
    }
    std::vector<PickleValue*> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  void PushTuple(size_t count) {
    PickleValue* tuple = New(Kind::kTuple);
    for (size_t i = 0; i < count; ++i) tuple->items.push_back(Pop());
    std::reverse(tuple->items.begin(), tuple->items.end());
    Push(tuple);
  }
  void PushSequence(Kind kind, std::vector<PickleValue*> items) {
    PickleValue* value = New(kind);
    value->items = std::move(items);
    Push(value);
  }
  void PushGlobal(std::string_view module, std::string_view name) { PushText(Kind::kGlobal, std::string(module) + "." + std::string(name)); }

  // Adds to a list or dict; other receivers (subclasses, opaque values) ignore it.
  void Extend(Kind kind, const std::vector<PickleValue*>& items) {
    PickleValue* into = Top();
    if (kind == Kind::kDict && items.size() % 2 != 0) return Fail("a dictionary lacks a value");
    if (into->kind == kind) into->items.insert(into->items.end(), items.begin(), items.end());
  }

  void Memoize(uint64_t index) { memo_[index] = Top(); }
  void Recall(uint64_t index) {
    const auto it = memo_.find(index);
    if (it == memo_.end()) return Fail("it recalls a value that was never noted");
    Push(it->second);
  }

  // A little-endian two's complement integer of any length, clamped to 64 bits.
  void PushLong(std::string_view raw) {
    const bool negative = !raw.empty() && (static_cast<uint8_t>(raw.back()) & 0x80);
    uint64_t bits = negative ? ~uint64_t{0} : 0;
    bool fits = true;
    for (size_t i = 0; i < raw.size(); ++i) {
      const uint64_t byte = static_cast<uint8_t>(raw[i]);
      if (i < 8)
        bits = (bits & ~(uint64_t{0xff} << (8 * i))) | (byte << (8 * i));
      else
        fits = fits && byte == (negative ? 0xffu : 0u);
    }
    int64_t number = static_cast<int64_t>(bits);
    if (!fits || (number < 0) != negative) number = negative ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
    PushNumber(Kind::kInt, number);
  }

  // ('storage', <class>, key, location, element count)
  PickleValue* Storage(const PickleValue* id) {
    const bool known = id->kind == Kind::kTuple && id->items.size() >= 5 && id->items[0]->text == "storage" && id->items[1]->kind == Kind::kGlobal &&
                       id->items[2]->kind == Kind::kStr && id->items[4]->kind == Kind::kInt;
    if (!known) return Opaque("persistent object");
    const std::string_view storage_class = AfterLastDot(id->items[1]->text);
    const DTypeCode* dtype = FindDTypeByStorage(storage_class);
    if (dtype == nullptr && storage_class != "UntypedStorage") return Opaque(id->items[1]->text);
    PickleValue* storage = New(Kind::kStorage);
    storage->text = id->items[2]->text;
    storage->dtype = dtype ? dtype->code : 0;
    storage->number = id->items[4]->number;
    return storage;
  }

  // _rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks [, metadata]); v3 has a dtype before the metadata.
  PickleValue* Tensor(const std::vector<PickleValue*>& args, bool has_dtype, const PickleValue* function) {
    const size_t metadata = has_dtype ? 7 : 6;
    if (args.size() < metadata || args[0]->kind != Kind::kStorage || args[1]->kind != Kind::kInt) return Opaque(function->text);
    auto sizes = IntsOf(args[2]), strides = IntsOf(args[3]);
    const DTypeCode* dtype = has_dtype ? FindDTypeByName(AfterLastDot(args[6]->text)) : FindDTypeCode(args[0]->dtype);
    if (!sizes || !strides || dtype == nullptr) return Opaque(function->text);
    PickleValue* value = New(Kind::kTensor);
    value->tensor = std::make_unique<PickleTensor>();
    PickleTensor& tensor = *value->tensor;
    tensor.dtype = dtype->code;
    tensor.sizes = std::move(*sizes);
    tensor.strides = std::move(*strides);
    tensor.storage_offset = args[1]->number;
    tensor.storage_key = args[0]->text;
    tensor.requires_grad = IsTrue(args[4]);
    if (args.size() > metadata) {
      tensor.conj = IsTrue(DictGet(args[metadata], "conj"));
      tensor.neg = IsTrue(DictGet(args[metadata], "neg"));
      const bool is_complex = dtype->code >= 9 && dtype->code <= 11, is_real = (dtype->code >= 6 && dtype->code <= 8) || dtype->code == 13;
      // Torch sets the first on complex tensors and the second on both kinds, as in x.conj().imag; never both.
      if ((tensor.conj && (!is_complex || tensor.neg)) || (tensor.neg && !is_complex && !is_real)) return Opaque(function->text);
    }
    return value;
  }

  // _rebuild_meta_tensor_no_storage(dtype, sizes, strides, requires_grad)
  PickleValue* MetaTensor(const std::vector<PickleValue*>& args, const PickleValue* function) {
    if (args.size() < 4) return Opaque(function->text);
    const DTypeCode* dtype = FindDTypeByName(AfterLastDot(args[0]->text));
    auto sizes = IntsOf(args[1]), strides = IntsOf(args[2]);
    if (dtype == nullptr || !sizes || !strides) return Opaque(function->text);
    PickleValue* value = New(Kind::kTensor);
    value->tensor = std::make_unique<PickleTensor>();
    value->tensor->dtype = dtype->code;
    value->tensor->sizes = std::move(*sizes);
    value->tensor->strides = std::move(*strides);
    value->tensor->is_meta = true;
    value->tensor->requires_grad = IsTrue(args[3]);
    return value;
  }

  PickleValue* Parameter(const std::vector<PickleValue*>& args, const PickleValue* function) {
    if (args.size() < 2 || args[0]->kind != Kind::kTensor) return Opaque(args.empty() ? function->text : args[0]->text);
    PickleValue* value = New(Kind::kTensor);
    value->tensor = std::make_unique<PickleTensor>(*args[0]->tensor);
    value->tensor->is_param = true;
    value->tensor->requires_grad = IsTrue(args[1]);
    return value;
  }

  PickleValue* Reduce(const PickleValue* function, const PickleValue* arguments) {
    if (function->kind != Kind::kGlobal || arguments->kind != Kind::kTuple) return Opaque(function->text);
    const std::string_view name = function->text;
    const std::vector<PickleValue*>& args = arguments->items;
    if (name == "torch._utils._rebuild_tensor_v2") return Tensor(args, false, function);
    if (name == "torch._utils._rebuild_tensor_v3") return Tensor(args, true, function);
    if (name == "torch._utils._rebuild_meta_tensor_no_storage") return MetaTensor(args, function);
    if (name == "torch._utils._rebuild_parameter" || name == "torch._utils._rebuild_parameter_with_state") return Parameter(args, function);
    if (name == "torch._tensor._rebuild_from_type_v2" && args.size() >= 3) {
      // func(*args) of a type: a plain tensor that carries attributes, or else a subclass. One such call never holds another.
      const std::string_view type = args[1]->text;
      const bool is_plain = type == "torch.Tensor" || type == "torch.nn.parameter.Parameter";
      return is_plain && args[0]->text != name ? Reduce(args[0], args[2]) : Opaque(type);
    }
    if (name == "torch._utils._rebuild_wrapper_subclass" && !args.empty()) return Opaque(args[0]->text);
    if (name == "torch.Size" && args.size() == 1 && IsSequence(args[0])) return args[0];
    if (name == "collections.OrderedDict") return OrderedDict(args);
    return Opaque(name);
  }
  PickleValue* OrderedDict(const std::vector<PickleValue*>& args) {
    PickleValue* dict = New(Kind::kDict);
    if (args.empty() || !IsSequence(args[0])) return dict;
    for (const PickleValue* pair : args[0]->items) {
      if (!IsSequence(pair) || pair->items.size() != 2) return Opaque("collections.OrderedDict");
      dict->items.insert(dict->items.end(), pair->items.begin(), pair->items.end());
    }
    return dict;
  }

  void Step(int op) {
    switch (op) {
      case 0x80:
        Fixed<uint8_t>();
        return;  // PROTO
      case 0x95:
        Fixed<uint64_t>();
        return;  // FRAME
      case '.':
        pickle_.root_ = Pop();
        return;
      case '(':
        marks_.push_back(stack_.size());
        return;
      case '0':
        Pop();
        return;
      case '1':
        PopToMark();
        return;
      case '2':
        Push(Top());
        return;

      case 'N':
        return Push(New(Kind::kNone));
      case 0x88:
        return PushNumber(Kind::kBool, 1);
      case 0x89:
        return PushNumber(Kind::kBool, 0);
      case 'K':
        return PushNumber(Kind::kInt, Fixed<uint8_t>());
      case 'M':
        return PushNumber(Kind::kInt, Fixed<uint16_t>());
      case 'J':
        return PushNumber(Kind::kInt, Fixed<int32_t>());
      case 0x8a:
        return PushLong(Take(Fixed<uint8_t>()));
      case 0x8b:
        return PushLong(Take(Fixed<uint32_t>()));
      case 'G': {
        Push(New(Kind::kDouble));
        stack_.back()->real = std::bit_cast<double>(__builtin_bswap64(Fixed<uint64_t>()));
        return;
      }
      case 'X':
        return PushText(Kind::kStr, Take(Fixed<uint32_t>()));  // BINUNICODE
      case 0x8c:
        return PushText(Kind::kStr, Take(Fixed<uint8_t>()));  // SHORT_BINUNICODE
      case 0x8d:
        return PushText(Kind::kStr, Take(Fixed<uint64_t>()));  // BINUNICODE8
      case 'T':
        return PushText(Kind::kStr, Take(Fixed<uint32_t>()));  // BINSTRING
      case 'U':
        return PushText(Kind::kStr, Take(Fixed<uint8_t>()));  // SHORT_BINSTRING
      case 'B':
        return PushText(Kind::kBytes, Take(Fixed<uint32_t>()));
      case 'C':
        return PushText(Kind::kBytes, Take(Fixed<uint8_t>()));
      case 0x8e:
        return PushText(Kind::kBytes, Take(Fixed<uint64_t>()));
      case 0x96:
        return PushText(Kind::kBytes, Take(Fixed<uint64_t>()));  // BYTEARRAY8

      case ')':
        return PushTuple(0);
      case 0x85:
        return PushTuple(1);
      case 0x86:
        return PushTuple(2);
      case 0x87:
        return PushTuple(3);
      case 't':
        return PushSequence(Kind::kTuple, PopToMark());
      case ']':
        return PushSequence(Kind::kList, {});
      case 'l':
        return PushSequence(Kind::kList, PopToMark());
      case '}':
        return PushSequence(Kind::kDict, {});
      case 'd': {
        auto items = PopToMark();
        if (items.size() % 2 != 0) return Fail("a dictionary lacks a value");
        return PushSequence(Kind::kDict, std::move(items));
      }
      case 0x8f:
        return PushSequence(Kind::kList, {});  // EMPTY_SET
      case 0x91:
        return PushSequence(Kind::kList, PopToMark());  // FROZENSET
      case 'a': {
        PickleValue* item = Pop();
        return Extend(Kind::kList, {item});
      }
      case 'e':
      case 0x90:
        return ExtendFromMark(Kind::kList);  // APPENDS, ADDITEMS
      case 's': {
        PickleValue* value = Pop();
        PickleValue* key = Pop();
        return Extend(Kind::kDict, {key, value});
      }
      case 'u':
        return ExtendFromMark(Kind::kDict);

      case 'q':
        return Memoize(Fixed<uint8_t>());
      case 'r':
        return Memoize(Fixed<uint32_t>());
      case 0x94:
        return Memoize(memo_.size());
      case 'h':
        return Recall(Fixed<uint8_t>());
      case 'j':
        return Recall(Fixed<uint32_t>());

      case 'c': {
        const std::string_view module = Line();
        return PushGlobal(module, Line());
      }
      case 0x93: {  // STACK_GLOBAL
        const PickleValue* name = Pop();
        return PushGlobal(Pop()->text, name->text);
      }
      case 'Q':
        return Push(Storage(Pop()));
      case 'R': {
        const PickleValue* arguments = Pop();
        return Push(Reduce(Pop(), arguments));
      }
      case 0x81: {  // NEWOBJ
        Pop();
        return Push(Opaque(Pop()->text));
      }
      case 0x92: {  // NEWOBJ_EX
        Pop();
        Pop();
        return Push(Opaque(Pop()->text));
      }
      case 'b':
        Pop();
        Top();
        return;  // BUILD: attributes are of no interest
      default:
        return Fail("it holds opcode " + std::to_string(op) + ", which torch.save does not write");
    }
  }

  void ExtendFromMark(Kind kind) {
    const auto items = PopToMark();
    Extend(kind, items);
  }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  Pickle& pickle_;
  std::vector<PickleValue*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PickleValue*> memo_;
  std::string failure_;
};

Result<Pickle> Pickle::Load(std::span<const std::byte> bytes, const std::string& what) {
  Pickle pickle;
  const std::string failure = PickleMachine(bytes, pickle).Run();
  if (!failure.empty()) {
    return Error{"E0111", what + " is not a pickle that can be read: " + failure, "save the program again with a current torch"};
  }
  return pickle;
}

Result<TorchSave> TorchSave::Open(std::span<const std::byte> bytes, const std::string& what) {
  auto zip = ZipReader::Open(bytes, what);
  if (!zip) return zip.error();
  int data = -1;
  for (int i = 0; i < static_cast<int>(zip->entries().size()) && data < 0; ++i) {
    const std::string_view name = zip->entry(i).name;
    if (name.ends_with("/data.pkl") && name.find('/') == name.size() - 9) data = i;
  }
  if (data < 0)
    return Error{"E0111", what + " holds no pickle (data.pkl), so torch.save did not write it", "save the program again with a current torch"};
  const std::string root(zip->entry(data).name.substr(0, zip->entry(data).name.size() - 8));
  if (const int order = zip->Find(root + "byteorder"); order >= 0) {
    auto text = zip->Read(order);
    if (!text) return text.error();
    if (AsText(*text) == "big") return Error{"E0109", what + " was written on a big-endian machine", "save the program on a little-endian machine"};
  }
  auto bytes_of_pickle = zip->Read(data);
  if (!bytes_of_pickle) return bytes_of_pickle.error();
  auto pickle = Pickle::Load(*bytes_of_pickle, what);
  if (!pickle) return pickle.error();
  TorchSave save(std::move(*zip), std::move(*pickle));
  save.root_folder_ = root;
  return save;
}

int TorchSave::FindStorage(std::string_view key) const { return zip_.Find(root_folder_ + "data/" + std::string(key)); }

}  // namespace pt2onnx
