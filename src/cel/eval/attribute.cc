#include "cel/eval/attribute.h"

#include <fmt/format.h>

#include "cel/values/list.h"
#include "cel/values/numbers.h"

namespace nos::cel {
namespace {

// Selects from a value. `found` is false if there is nothing and `maybe` allows it.
Value Select(Frame& frame, const Value& object, const Value& key, bool maybe, bool& found) {
  found = true;
  if (object.is(Kind::kMap)) {
    if (const auto value = object.map().Find(key)) return *value;
  } else if (object.is(Kind::kList)) {
    int64_t index = -1;
    if (key.is(Kind::kInt) || (key.is(Kind::kUint) && key.integer() >= 0)) {
      index = key.integer();
    } else if (const auto whole =
                   key.is(Kind::kDouble) ? LosslessInt(key.number()) : std::nullopt) {
      index = *whole;
    } else {
      return Value::Error("unsupported index of a list");
    }
    const ListValue& list = object.list();
    if (index >= 0 && static_cast<uint64_t>(index) < list.size()) {
      return list.At(static_cast<uint64_t>(index));
    }
    if (!maybe) return Value::Error("index out of bounds");
  }
  if (maybe) {
    found = false;
    return Value();
  }
  if (!key.is(Kind::kString)) return Value::Error("no such key");
  return ErrorText(frame.arena(), fmt::format("no such key: {}", key.text()));
}

bool IsKey(const Value& value) {
  switch (value.kind()) {
    case Kind::kString:
    case Kind::kInt:
    case Kind::kUint:
    case Kind::kBool:
    case Kind::kDouble:
      return true;
    default:
      return false;
  }
}

Value KeyOf(Frame& frame, const Qualifier& qualifier) {
  if (qualifier.dynamic == nullptr) return qualifier.constant;
  const Value key = qualifier.dynamic->Resolve(frame);
  if (key.IsError() || IsKey(key)) return key;
  return Value::Error("invalid type of an index");
}

// Applies a qualifier and charges for it; `found` as above.
Value Apply(Frame& frame, const Value& object, const Qualifier& qualifier, bool maybe,
            bool& found) {
  found = true;
  const Value key = KeyOf(frame, qualifier);
  Value value = key;
  if (!key.IsError()) value = Select(frame, object, key, maybe || qualifier.test_only, found);
  if (qualifier.test_only && !maybe && !value.IsError()) {
    value = Value::Bool(found);
    found = true;
  }
  // Upstream does not observe what is absent, nor errors on the way to it.
  if (!maybe || (found && !value.IsError())) frame.Charge(1);
  return value;
}

}  // namespace

std::shared_ptr<Attribute> Attribute::Device() { return std::make_shared<Attribute>(); }

std::shared_ptr<Attribute> Attribute::Variable(size_t slot) {
  auto attribute = std::make_shared<Attribute>();
  attribute->root_ = Root::kVariable;
  attribute->slot_ = slot;
  return attribute;
}

std::shared_ptr<Attribute> Attribute::Of(NodePtr operand) {
  auto attribute = std::make_shared<Attribute>();
  attribute->root_ = Root::kOperand;
  attribute->operand_ = std::move(operand);
  return attribute;
}

std::shared_ptr<Attribute> Attribute::Conditional(NodePtr condition, std::shared_ptr<Attribute> yes,
                                                  std::shared_ptr<Attribute> no) {
  auto attribute = std::make_shared<Attribute>();
  attribute->root_ = Root::kConditional;
  attribute->condition_ = std::move(condition);
  attribute->yes_ = std::move(yes);
  attribute->no_ = std::move(no);
  return attribute;
}

void Attribute::Add(const Qualifier& qualifier) {
  if (root_ == Root::kConditional) {
    yes_->Add(qualifier);
    no_->Add(qualifier);
  } else {
    qualifiers_.push_back(qualifier);
  }
}

Value Attribute::Read(Frame& frame, size_t index) {
  Slot& slot = frame.slot(index);
  if (slot.init == nullptr || slot.ready) return slot.value;
  slot.ready = true;
  const Value value = slot.init->Run(frame);
  Slot& filled = frame.slot(index);
  filled.value = value;
  if (value.is(Kind::kList) && value.list().size() == 0) {
    filled.value = Value::Of(ListValue::Growing(frame.arena()));
    filled.growing = true;
  } else if (value.is(Kind::kMap) && value.map().size() == 0) {
    filled.value = Value::Of(TableMap::New(frame.arena(), 0, true));
    filled.growing = true;
  }
  return filled.value;
}

Value Attribute::ResolveRoot(Frame& frame) const {
  switch (root_) {
    case Root::kDevice:
      return frame.device();
    case Root::kVariable:
      return Read(frame, slot_);
    case Root::kOperand:
      return operand_->Run(frame);
    case Root::kConditional:
      break;
  }
  const Value condition = condition_->Run(frame);
  if (condition.is(Kind::kBool)) return (condition.boolean() ? yes_ : no_)->Resolve(frame);
  return condition.IsError() ? condition : NoSuchOverload();
}

Value Attribute::Resolve(Frame& frame) const {
  Value value = ResolveRoot(frame);
  if (qualifiers_.empty() || value.IsError()) return value;
  // Behind an optional value, everything is optional.
  bool maybe = false;
  if (value.is(Kind::kOptional)) {
    if (value.optional() == nullptr) return value;
    value = *value.optional();
    maybe = true;
  }
  for (const Qualifier& qualifier : qualifiers_) {
    maybe = maybe || qualifier.optional;
    bool found = true;
    value = Apply(frame, value, qualifier, maybe, found);
    if (value.IsError()) return value;
    if (!found) return Value::None();
  }
  return maybe ? Value::Some(frame.arena(), value) : value;
}

Value AttributeNode::Run(Frame& frame) const {
  Value value = attribute_->Resolve(frame);
  if (!attribute_->conditional()) {
    frame.Charge(test_only_ ? 0 : 1);
  } else if (test_only_) {
    frame.Charge(~uint64_t{0});  // minus one
  }
  if (test_only_ && value.is(Kind::kOptional)) value = Value::Bool(value.optional() != nullptr);
  return value;
}

}  // namespace nos::cel
