#include "cluster/fields.h"

#include <fmt/format.h>

namespace nos::cluster {
namespace {

std::string_view KindName(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) return "a string";
  if (value.is_bool()) return "true or false";
  return "a number";
}

}  // namespace

Field Field::operator[](std::string_view key) const {
  const JsonObject* object = Object();
  return {object == nullptr ? nullptr : object->if_contains(key), this, key, kNoIndex, *error_};
}

void Field::Read(std::string& out) const {
  if (Present() && Expect(value_->is_string(), "a string")) out = View(value_->get_string());
}

void Field::Read(bool& out) const {
  if (Present() && Expect(value_->is_bool(), "true or false")) out = value_->get_bool();
}

void Field::Read(int32_t& out) const {
  if (!Present() || !Expect(value_->is_int64(), "a whole number")) return;
  const int64_t number = value_->get_int64();
  if (number < std::numeric_limits<int32_t>::min() || number > std::numeric_limits<int32_t>::max())
    return Fail("does not fit into 32 bits");
  out = static_cast<int32_t>(number);
}

void Field::Read(Time& out) const {
  std::string text;
  Read(text);
  if (text.empty()) return;
  const Result<Time> time = ParseTime(text);
  if (!time.ok()) return Fail(time.status().message());
  out = *time;
}

void Field::Read(std::optional<Time>& out) const {
  if (Present()) Read(out.emplace());
}

void Field::Read(Quantity& out) const {
  if (!Present()) return;
  std::string text;
  if (value_->is_int64()) {
    text = fmt::to_string(value_->get_int64());
  } else if (value_->is_double()) {
    text = fmt::to_string(value_->get_double());
  } else if (Expect(value_->is_string(), "a quantity")) {
    text = View(value_->get_string());
  } else {
    return;
  }
  const Result<Quantity> quantity = Quantity::Parse(text);
  if (!quantity.ok()) return Fail(quantity.status().message());
  out = *quantity;
}

void Field::Read(StringMap& out) const {
  const JsonObject* object = Object();
  if (object == nullptr) return;
  for (const auto& member : *object) {
    Field entry(&member.value(), this, {member.key().data(), member.key().size()}, kNoIndex,
                *error_);
    entry.map_entry_ = true;
    entry.Read(out[std::string(entry.key_)]);
  }
}

void Field::Read(ResourceList& out) const {
  const JsonObject* object = Object();
  if (object == nullptr) return;
  for (const auto& member : *object) {
    Field entry(&member.value(), this, {member.key().data(), member.key().size()}, kNoIndex,
                *error_);
    entry.map_entry_ = true;
    Quantity& quantity = out[std::string(entry.key_)];
    entry.Read(quantity);
    if (quantity < Quantity()) entry.Fail("must not be negative");
  }
}

void Field::Read(std::vector<std::string>& out) const {
  Read(out, [](const Field& item, std::string& text) { item.Read(text); });
}

void Field::Fail(std::string_view what) const {
  if (error_->ok()) *error_ = Invalid(fmt::format("{}: {}", Path(), what));
}

const JsonArray* Field::Array() const {
  if (!Present() || !Expect(value_->is_array(), "a list")) return nullptr;
  return &value_->get_array();
}

const JsonObject* Field::Object() const {
  if (!Present() || !Expect(value_->is_object(), "an object")) return nullptr;
  return &value_->get_object();
}

bool Field::Expect(bool matches, std::string_view expected) const {
  if (!matches) Fail(fmt::format("must be {}, not {}", expected, KindName(*value_)));
  return matches;
}

std::string Field::Path() const {
  if (parent_ == nullptr) return "object";
  const std::string before = parent_->parent_ == nullptr ? "" : parent_->Path();
  if (index_ != kNoIndex) return fmt::format("{}[{}]", before, index_);
  if (map_entry_) return fmt::format("{}[{}]", before, key_);
  return before.empty() ? std::string(key_) : fmt::format("{}.{}", before, key_);
}

}  // namespace nos::cluster
