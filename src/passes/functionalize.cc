#include "passes/functionalize.h"

#include <algorithm>
#include <utility>

#include "ir/op_table.h"
#include "passes/geometry.h"
#include "passes/views.h"

namespace pt2onnx {

// ---- Tensors and handles ------------------------------------------------------------------------------------------------------------

TensorObject* Functionalize::Tensor(const Value* handle) const {
  return handle && handle->id - first_ < tensors_.size() ? tensors_[handle->id - first_] : nullptr;
}

Value* Functionalize::Handle(TensorObject* tensor, const Type& type, std::string_view name) {
  Value* handle = context_.NewValue(type, name);
  const size_t at = handle->id - first_;
  if (at >= tensors_.size()) tensors_.resize(at + at / 2 + 16, nullptr);
  tensors_[at] = tensor;
  return handle;
}

TensorObject* Functionalize::Fresh(Value* value, const Type& type, std::string_view name) {
  Storage* storage = context_.arena.New<Storage>();
  Alias* root = context_.arena.New<Alias>();
  storage->root = root;
  root->own_storage = storage;
  root->type = type;
  root->name = name;
  root->value = value;
  root->stamp = 0;
  TensorObject* tensor = context_.arena.New<TensorObject>();
  tensor->alias = root;
  return tensor;
}

Alias* Functionalize::View(Alias* parent, const ViewStep& step, const Type& type, std::string_view name, LocId loc) {
  Alias* alias = context_.arena.New<Alias>();
  alias->own_storage = parent->own_storage;
  alias->parent = parent;
  alias->step = step;
  alias->type = type;
  alias->name = name;
  alias->loc = loc;
  alias->stamp = kStale;
  const bool repeats = step.view == ViewClass::Expand || step.view == ViewClass::Unfold || step.view == ViewClass::AsStrided;
  if (step.view == ViewClass::Expand && type.strides.empty()) alias->overlapping = !SameShape(type.shape, parent->type.shape);
  else alias->overlapping = (repeats || parent->overlapping) && Overlaps(type) != Tri::No;
  return alias;
}

Value* Functionalize::Input(const GraphInput& input) {
  Value* value = down_.Input(input);
  if (!input.value || input.value->type.kind != Kind::Tensor) return value;
  TensorObject* tensor = Fresh(value, input.value->type, input.value->name);
  Storage* storage = tensor->alias->storage();
  storage->name = input.target;
  storage->number = input.storage;
  if (input.kind != InputKind::Plain) {
    if (input.storage >= 0) shared_[input.storage].push_back(state_.size());
    state_.push_back({input, tensor, tensor->alias});
  }
  return Handle(tensor, input.value->type, input.value->name);
}

namespace {

size_t Depth(const Alias* alias) {
  size_t depth = 0;
  while ((alias = alias->parent)) ++depth;
  return depth;
}

}  // namespace

Alias* CommonAncestor(Alias* a, Alias* b) {
  size_t da = Depth(a), db = Depth(b);
  for (; da > db; --da) a = a->parent;
  for (; db > da; --db) b = b->parent;
  while (a != b) a = a->parent, b = b->parent;
  return a;
}

// ---- Reads and writes ---------------------------------------------------------------------------------------------------------------

Value* Functionalize::Replay(Alias* alias, Value* parent) {
  if (alias->step.view == ViewClass::Identity) return parent;
  std::vector<Arg> args(alias->step.args.begin(), alias->step.args.end());
  args[0] = parent;
  Type type = alias->type;
  type.strides = {};
  return down_.Emit({alias->step.op, args, {&type, 1}, alias->loc, {&alias->name, 1}})[0];
}

// The value of a stale view, from its parent's current one. Siblings of a split or unbind come along.
void Functionalize::Regenerate(Alias* alias) {
  Value* parent = Read(alias->parent);
  const uint32_t now = alias->storage()->version;
  const auto set = [&](Alias* a, Value* value) {
    a->value = value;
    a->stamp = now;
  };
  if (!alias->group) return set(alias, Replay(alias, parent));
  const ViewGroup& group = *alias->group;
  std::vector<Arg> args(group.args.begin(), group.args.end());
  args[0] = parent;
  std::vector<Type> types(group.types.begin(), group.types.end());
  std::vector<std::string_view> names;
  for (size_t i = 0; i < types.size(); ++i) {
    types[i].strides = {};
    names.push_back(group.members[i] ? group.members[i]->name : std::string_view());
  }
  const Results values = down_.Emit({group.op, args, types, alias->loc, names});
  for (size_t i = 0; i < values.size(); ++i)
    if (Alias* member = group.members[i]; member && member->stamp != now) set(member, values[i]);
}

Value* Functionalize::Read(Alias* alias) {
  Storage* storage = alias->storage();
  if (alias->stamp == storage->version) return alias->value;
  if (storage->dirty) {
    Alias* common = CommonAncestor(storage->dirty, alias);
    while (common->overlapping) common = common->parent;  // it may disagree with itself: one copy is written, the others are not
    CarryUp(storage, common);
    if (alias->stamp == storage->version) return alias->value;
  }
  Regenerate(alias);
  return alias->value;
}

// Carries the dirty alias's value up to `target`, an ancestor of it or itself.
void Functionalize::CarryUp(Storage* storage, Alias* target) {
  Alias* alias = storage->dirty;
  while (alias != target) {
    Alias* parent = alias->parent;
    Value* before = parent->value;
    const Val value = Invert(aten_, *alias, aten_.Wrap(before), aten_.Wrap(alias->value), aten_.Wrap(alias->old));
    if (!parent->old) parent->old = before;
    parent->value = value.value;
    parent->stamp = storage->version;
    parent->filled = false;
    alias->old = nullptr;
    if (alias->overlapping) alias->stamp = kStale;
    alias = parent;
  }
  storage->dirty = alias == storage->root ? nullptr : alias;
  if (!storage->dirty) alias->old = nullptr;
}

void Functionalize::Write(Alias* alias, Value* value, bool fill) {
  Storage* storage = alias->storage();
  Value* old = Read(alias);  // makes the path to the root current, besides what is dirty
  const bool first = !alias->old;
  ++storage->version;
  if (first) alias->old = old;
  alias->filled = fill;
  alias->value = value;
  alias->stamp = storage->version;
  if (alias == storage->root) {
    storage->dirty = nullptr;
    alias->old = nullptr;
    return;
  }
  storage->dirty = alias;
  if (alias->overlapping) CarryUp(storage, storage->root);  // its other copies changed too
}

// State under several names, of memory that is written: the other names are views of the widest one, which covers the memory.
void Functionalize::JoinShared() {
  for (const auto& [number, names] : std::exchange(shared_, {})) Join(names);
}

void Functionalize::Join(const std::vector<size_t>& names) {
  const auto type = [&](size_t i) -> const Type& { return state_[i].input.value->type; };
  const auto width = [&](size_t i) { return MemoryOrder(type(i)) ? Product(type(i).shape).TryConst().value_or(-1) : -1; };
  size_t widest = names[0];
  for (size_t i : names)
    if (width(i) > width(widest)) widest = i;
  const bool covered = std::all_of(names.begin(), names.end(), [&](size_t i) { return i == widest || Covers(type(widest), type(i)); });
  Alias* base = state_[widest].tensor->alias;
  for (size_t i : names) {
    Alias* own = state_[i].tensor->alias;
    if (!covered && own != base) MayShare(own, base, "two names of state overlap in a memory that neither covers");
    if (own == base || !covered) continue;
    const Alias* view = AsStrided(base, own->type.shape, context_.arena.Copy(StridesOf(own->type)), own->type.offset, own->type, 0);
    if (view == base) view = View(base, {FindOpInTable("aten::alias"), context_.arena.Copy(std::vector<Arg>(1)), ViewClass::Identity}, own->type, {}, 0);
    own->parent = view->parent;
    own->step = view->step;
    own->overlapping = view->overlapping;
    own->own_storage->joined = base->own_storage;
    own->stamp = kStale;  // whoever feeds the memory feeds the widest name
  }
}

}  // namespace pt2onnx
