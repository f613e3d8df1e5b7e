#include "cel/eval/node.h"

#include <algorithm>
#include <array>

#include "cel/values/equality.h"
#include "cel/values/list.h"

namespace nos::cel {
namespace {

constexpr uint64_t kListCost = 10;
constexpr uint64_t kMapCost = 30;

bool AllConstant(const Nodes& nodes) {
  return std::all_of(nodes.begin(), nodes.end(),
                     [](const NodePtr& node) { return node->Constant() != nullptr; });
}

bool IsOptional(const std::vector<bool>& optional, size_t i) {
  return i < optional.size() && optional[i];
}

// The implementations that serve a function whose overload the types do not decide.
Value Dispatch(const Function& function, Arena& arena, std::span<const Value> args) {
  for (const Overload& overload : function.overloads) {
    if (overload.run == nullptr || overload.args.size() != args.size()) continue;
    if (!function.guards || overload.Accepts(args)) return overload.run(arena, args);
  }
  return NoSuchOverload();
}

// Upstream stops at the first error among the arguments.
bool IsLazy(const Function& function, const Overload* overload, size_t count) {
  if (count > 2) return true;
  Binding binding = Binding::kVariadic;
  if (function.singleton != nullptr) {
    binding = function.singleton_binding;
  } else if (overload != nullptr) {
    binding = overload->binding;
  } else if (function.overloads.size() == 1) {
    binding = function.overloads[0].binding;
  }
  return binding == Binding::kVariadic;
}

}  // namespace

Value LogicNode::Run(Frame& frame) const {
  const Value left = left_->Run(frame);
  if (left.is(Kind::kBool) && left.boolean() == decisive_) return left;
  const Value right = right_->Run(frame);
  if (right.is(Kind::kBool) && right.boolean() == decisive_) return right;
  for (const Value& value : {left, right}) {
    if (value.IsError()) return value;
    if (!value.is(Kind::kBool)) return NoSuchOverload();
  }
  return Value::Bool(!decisive_);
}

Value EqualityNode::Run(Frame& frame) const {
  const std::array values = {left_->Run(frame), right_->Run(frame)};
  Value result;
  if (values[0].IsError()) {
    result = values[0];
  } else if (values[1].IsError()) {
    result = values[1];
  } else {
    result = Equals(values[0], values[1]);
    if (!equal_) result = Value::Bool(!result.IsTrue());
  }
  frame.Charge(CallCost(equal_ ? CostRule::kEquals : CostRule::kNotEquals, values, result));
  return result;
}

Value NotFalseNode::Run(Frame& frame) const {
  const Value value = operand_->Run(frame);
  frame.Charge(1);
  return value.is(Kind::kBool) ? value : Value::Bool(true);
}

CallNode::CallNode(const Function& function, const Overload* overload, Nodes args)
    : function_(function),
      overload_(overload),
      args_(std::move(args)),
      cost_(CostRuleOf(function.name, overload == nullptr ? std::string_view() : overload->id)),
      lazy_(IsLazy(function, overload, args_.size())) {}

const Value* CallNode::Evaluate(Frame& frame, std::span<Value> values, bool& complete) const {
  const Value* error = nullptr;
  for (size_t i = 0; i < args_.size(); ++i) {
    values[i] = args_[i]->Run(frame);
    if (!values[i].IsError() || error != nullptr) continue;
    error = &values[i];
    if (lazy_ && i + 1 < args_.size()) {
      complete = false;
      return error;
    }
  }
  return error;
}

Value CallNode::Run(Frame& frame) const {
  std::array<Value, 4> buffer;
  const std::span<Value> values(buffer.data(), args_.size());
  bool complete = true;
  const Value* const error = Evaluate(frame, values, complete);
  const Value result = error != nullptr ? *error : Call(frame.arena(), values);
  if (complete) frame.Charge(CallCost(cost_, values, result));
  return result;
}

Value CallNode::Call(Arena& arena, std::span<const Value> args) const {
  if (function_.singleton != nullptr) return function_.singleton(arena, args);
  if (overload_ == nullptr) return Dispatch(function_, arena, args);
  if (function_.guards && !overload_->Accepts(args)) return NoSuchOverload();
  return overload_->run(arena, args);
}

RegexNode::RegexNode(const Function& function, const Overload* overload, Nodes args,
                     std::unique_ptr<const Regex> regex)
    : CallNode(function, overload, std::move(args)),
      regex_(std::move(regex)),
      name_(function.name) {
  lazy_ = true;
}

Value RegexNode::Call(Arena& arena, std::span<const Value> args) const {
  if (!args[0].is(Kind::kString)) return NoSuchOverload();
  const std::string_view text = args[0].text();
  if (name_ == "matches") return Value::Bool(regex_->Matches(text));
  if (name_ == "find") return Value::String(regex_->Find(text));
  if (args.size() == 3 && !args[2].is(Kind::kInt)) return NoSuchOverload();
  return FoundAll(arena, *regex_, text, args.size() == 3 ? args[2].integer() : -1);
}

MemberNode::MemberNode(NodePtr operand, std::vector<Value> members)
    : operand_(std::move(operand)), members_(std::move(members)) {
  std::sort(members_.begin(), members_.end(),
            [](const Value& a, const Value& b) { return HashKey(a) < HashKey(b); });
}

Value MemberNode::Run(Frame& frame) const {
  const Value value = operand_->Run(frame);
  if (value.IsError()) return value;
  CheckHashable(value);
  const uint64_t hash = HashKey(value);
  auto member = std::lower_bound(members_.begin(), members_.end(), hash,
                                 [](const Value& m, uint64_t h) { return HashKey(m) < h; });
  for (; member != members_.end() && HashKey(*member) == hash; ++member) {
    if (SameKey(*member, value)) return Value::Bool(true);
  }
  return Value::Bool(false);
}

Value OrNode::Run(Frame& frame) const {
  const Value left = left_->Run(frame);
  if (left.IsError()) return left;
  if (!left.is(Kind::kOptional)) return NoSuchOverload();
  if (left.optional() == nullptr) return right_->Run(frame);
  return unwrap_ ? *left.optional() : left;
}

bool ListNode::IsConstant() const { return AllConstant(elements_); }

Value ListNode::Make(Frame& frame) const {
  const std::span<Value> values = frame.arena().NewArray<Value>(elements_.size());
  size_t count = 0;
  for (size_t i = 0; i < elements_.size(); ++i) {
    Value value = elements_[i]->Run(frame);
    if (value.IsError()) return value;
    if (IsOptional(optional_, i)) {
      if (!value.is(Kind::kOptional)) return Value::Error("an optional element is not optional");
      if (value.optional() == nullptr) continue;
      value = *value.optional();
    }
    values[count++] = value;
  }
  return Value::Of(ListValue::Of(frame.arena(), values.first(count)));
}

Value ListNode::Run(Frame& frame) const {
  const Value list = Make(frame);
  frame.Charge(kListCost);
  return list;
}

bool MapNode::IsConstant() const { return AllConstant(entries_); }

Value MapNode::Make(Frame& frame) const {
  TableMap* const map = TableMap::New(frame.arena(), entries_.size() / 2, false);
  for (size_t i = 0; i < entries_.size(); i += 2) {
    const Value key = entries_[i]->Run(frame);
    if (key.IsError()) return key;
    Value value = entries_[i + 1]->Run(frame);
    if (value.IsError()) return value;
    if (IsOptional(optional_, i / 2)) {
      if (!value.is(Kind::kOptional)) return Value::Error("an optional entry is not optional");
      if (value.optional() == nullptr) {
        map->Erase(key);
        continue;
      }
      value = *value.optional();
    }
    map->Put(frame.arena(), key, value);
  }
  return Value::Of(map);
}

Value MapNode::Run(Frame& frame) const {
  const Value map = Make(frame);
  frame.Charge(kMapCost);
  return map;
}

bool FoldNode::Step(Frame& frame) const {
  const Value condition = parts_.condition->Run(frame);
  if (condition.IsFalse()) return false;
  const Value next = parts_.step->Run(frame);
  Slot& accumulator = frame.slot(parts_.accumulator);
  accumulator.value = next;
  accumulator.ready = true;
  frame.CheckInterrupt();
  return true;
}

void FoldNode::OverList(Frame& frame, const ListValue& list) const {
  const uint64_t size = list.size();
  // A list that grows meanwhile is followed with two variables, and not with one.
  for (uint64_t i = 0; i < (parts_.two_variables ? list.size() : size); ++i) {
    if (parts_.two_variables) {
      frame.slot(parts_.variable).value = Value::Int(static_cast<int64_t>(i));
      frame.slot(parts_.second_variable).value = list.At(i);
    } else {
      frame.slot(parts_.variable).value = list.At(i);
    }
    if (!Step(frame)) return;
  }
}

void FoldNode::OverMap(Frame& frame, const MapValue& map) const {
  for (uint64_t i = 0; i < map.size(); ++i) {
    const MapEntry entry = map.At(i);
    frame.slot(parts_.variable).value = entry.key;
    if (parts_.two_variables) frame.slot(parts_.second_variable).value = entry.value;
    if (!Step(frame)) return;
  }
}

Value FoldNode::Run(Frame& frame) const {
  frame.slot(parts_.accumulator) = {Value(), parts_.init.get(), false, false};
  const Value range = parts_.range->Run(frame);
  if (range.IsError()) return range;
  if (range.is(Kind::kList)) {
    OverList(frame, range.list());
  } else if (range.is(Kind::kMap)) {
    OverMap(frame, range.map());
  } else {
    return Value::Error("expected a list or a map");
  }
  const Value result = parts_.result->Run(frame);
  if (!frame.slot(parts_.accumulator).growing) return result;
  // The result no longer grows.
  if (result.is(Kind::kList) && result.list().growing()) {
    return Value::Of(result.list().Frozen(frame.arena()));
  }
  if (result.is(Kind::kMap) && result.map().growing()) {
    return Value::Of(static_cast<const TableMap&>(result.map()).Frozen(frame.arena()));
  }
  return result;
}

}  // namespace nos::cel
