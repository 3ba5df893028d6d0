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

// Which value it is, is told by number: what lies below may give one value for two.
void Functionalize::SetValue(Alias* alias, Value* value) {
  alias->value = value;
  alias->epoch = ++epochs_;
}

// The value of a stale view, from its parent's. Siblings of a split or unbind come along.
void Functionalize::Regenerate(Alias* alias) {
  Value* parent = alias->parent->value;
  const uint32_t from = alias->parent->epoch;
  const auto set = [&](Alias* a, Value* value) {
    SetValue(a, value);
    a->from = from;
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
    if (Alias* member = group.members[i]; member && !member->pending && member->from != from) set(member, values[i]);
}

namespace {

// Whether no write that is pending below `parent` can reach this view of it.
bool Apart(const Alias& parent, const Alias& view) {
  if (parent.settled()) return true;
  const std::optional<Interval> own = IntervalOf(view);
  if (!own || own->dim != parent.below->dim) return false;
  const auto next = parent.below->views.lower_bound(own->begin);
  if (next != parent.below->views.end() && next->first < own->end) return false;
  return next == parent.below->views.begin() || IntervalOf(*std::prev(next)->second)->end <= own->begin;
}

// The nearest that shows each element once: what is written below an overlapping view must get there, since other copies change too.
Alias* Plain(Alias* alias) {
  while (alias->overlapping) alias = alias->parent;
  return alias;
}

}  // namespace

// Makes a view's value right, besides what is pending below it: from the nearest current ancestor down, each view follows from its parent's
// value unless it holds newer writes itself. What is pending beside the path is carried up first, if it may meet it.
void Functionalize::MakeCurrent(Alias* alias) {
  const uint32_t now = alias->storage()->version;
  for (bool again = true; again;) {
    again = false;
    std::vector<Alias*> path;
    for (Alias* a = alias; a->stamp != now && a->parent; a = a->parent) path.push_back(a);
    while (!path.empty() && !again) {
      Alias* view = path.back();
      path.pop_back();
      if (!view->pending && !Apart(*view->parent, *view)) {
        Settle(Plain(view->parent));
        again = true;
        break;
      }
      if (!view->pending && view->from != view->parent->epoch) Regenerate(view);
      view->stamp = now;
    }
  }
}

Value* Functionalize::Read(Alias* alias) {
  MakeCurrent(alias);
  if (!alias->settled()) {
    Settle(Plain(alias));
    if (alias->overlapping) MakeCurrent(alias);
  }
  return alias->value;
}

// Carries up all that is pending below, innermost first.
void Functionalize::Settle(Alias* alias) {
  std::vector<Alias*> order = {alias};
  for (size_t i = 0; i < order.size(); ++i)
    if (!order[i]->settled())
      for (const auto& [begin, view] : order[i]->below->views) order.push_back(view);
  for (size_t i = order.size(); i-- > 0;)
    if (!order[i]->settled()) CarryUp(order[i]);
}

// One value for all that is pending below: views that lie side by side are put together at once.
void Functionalize::CarryUp(Alias* parent) {
  Value* before = parent->value;
  const Alias* only = parent->below->views.begin()->second;
  const bool alone = parent->below->views.size() == 1;
  SetValue(parent, alone ? Invert(aten_, *only, aten_.Wrap(before), aten_.Wrap(only->value), aten_.Wrap(only->old)).value : Gathered(*parent));
  if (parent->parent && !parent->old) parent->old = before;
  parent->filled = false;
  parent->stamp = parent->storage()->version;
  for (const auto& [begin, view] : parent->below->views) {
    if (log_) log_->Carried(view, !alone);
    view->pending = false;
    view->old = nullptr;
    view->from = view->overlapping ? kStale : parent->epoch;
    if (view->overlapping) view->stamp = kStale;
  }
  parent->below->views.clear();
}

// x[0:2] = a, x[3] = b    ->    x' = cat(a, x[2:3], b[None], x[4:])
Value* Functionalize::Gathered(const Alias& parent) {
  const int64_t dim = parent.below->dim;
  const SymExpr size = parent.type.shape[static_cast<size_t>(dim)];
  const Val base = aten_.Wrap(parent.value);
  std::vector<Value*> pieces;
  int64_t at = 0;
  const auto keep = [&](int64_t end) {  // what lies up to `end` stays as it is
    if (at < end) pieces.push_back(aten_(aten::slice_Tensor{.self = base, .dim = dim, .start = SymExpr(at), .end = SymExpr(end)}).value);
  };
  for (const auto& [begin, view] : parent.below->views) {
    const Interval own = *IntervalOf(*view);
    keep(begin);
    pieces.push_back(own.drops_dim ? aten_(aten::unsqueeze{.self = aten_.Wrap(view->value), .dim = dim}).value : view->value);
    at = own.end;
  }
  if (!size.IsConst() || at < size.Const()) keep(INT64_MAX);
  const std::vector<Arg> args = {ValueList(context_.arena.Copy(pieces)), dim};
  Type type = parent.type;
  type.strides = {};
  type.offset = 0;
  return down_.Emit({FindOpInTable("aten::cat"), args, {&type, 1}, parent.below->views.rbegin()->second->loc})[0];
}

void Functionalize::Write(Alias* alias, Value* value, bool fill) {
  Storage* storage = alias->storage();
  Value* before = Read(alias);  // so that its ancestors are right, besides what is pending
  if (log_) log_->Overwrites(alias);
  const uint32_t now = ++storage->version;
  if (alias->parent && !alias->old) alias->old = before;
  SetValue(alias, value);
  alias->filled = fill;
  alias->stamp = now;
  for (Alias* a = alias; a->parent && !a->pending; a = a->parent) {
    a->pending = true;
    a->stamp = now;
    Alias* parent = a->parent;
    if (!parent->below) parent->below = &belows_.emplace_back();
    const std::optional<Interval> interval = IntervalOf(*a);
    parent->below->dim = interval ? interval->dim : -1;
    parent->below->views.emplace(interval ? interval->begin : 0, a);
  }
  if (alias->overlapping) Settle(Plain(alias));  // its other copies changed too
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
