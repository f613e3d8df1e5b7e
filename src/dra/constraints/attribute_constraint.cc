#include "dra/constraints/attribute_constraint.h"

#include <algorithm>
#include <iterator>

namespace nos::dra {
namespace {

std::vector<Attribute> ElementsOf(const Attribute& value) {
  if (value.type == Attribute::Type::kUnknown) return {};
  return value.list ? value.elements : std::vector<Attribute>{value};
}

std::vector<Attribute> Common(const std::vector<Attribute>& a, const std::vector<Attribute>& b) {
  std::vector<Attribute> common;
  std::copy_if(a.begin(), a.end(), std::back_inserter(common), [&](const Attribute& element) {
    return std::find(b.begin(), b.end(), element) != b.end();
  });
  return common;
}

bool IsScalar(const Attribute& value) {
  return value.type != Attribute::Type::kUnknown && !value.list;
}

}  // namespace

bool AttributeConstraint::Add(const Attribute* value) {
  if (value == nullptr || !(distinct_ ? AddDistinct(*value) : AddSame(*value))) return false;
  values_.push_back(value);
  return true;
}

bool AttributeConstraint::AddSame(const Attribute& value) {
  if (!lists_) {
    return values_.empty() || (IsScalar(value) && value == *values_.front());
  }
  std::vector<Attribute> elements = ElementsOf(value);
  if (!common_.empty()) elements = Common(common_.back(), elements);
  if (elements.empty()) return false;
  common_.push_back(std::move(elements));
  return true;
}

bool AttributeConstraint::AddDistinct(const Attribute& value) {
  if (lists_) {
    const std::vector<Attribute> elements = ElementsOf(value);
    return !elements.empty() &&
           std::all_of(values_.begin(), values_.end(), [&](const Attribute* other) {
             return Common(elements, ElementsOf(*other)).empty();
           });
  }
  if (values_.empty()) return true;
  return IsScalar(value) && std::none_of(values_.begin(), values_.end(),
                                         [&](const Attribute* other) { return value == *other; });
}

void AttributeConstraint::Remove() {
  values_.pop_back();
  if (!common_.empty()) common_.pop_back();
}

void AttributeConstraint::AppendState(std::string& text) const {
  std::vector<std::string> parts;
  if (!distinct_ && lists_) {
    for (const Attribute& element : common_.empty() ? std::vector<Attribute>() : common_.back()) {
      AppendValue(element, parts.emplace_back());
    }
  } else if (!values_.empty()) {
    const size_t count = distinct_ ? values_.size() : 1;
    for (size_t i = 0; i < count; ++i) AppendValue(*values_[i], parts.emplace_back());
  }
  std::sort(parts.begin(), parts.end());
  text += '|';
  for (const std::string& part : parts) text += part;
}

void AppendValue(const Attribute& value, std::string& text) {
  text += static_cast<char>('a' + static_cast<int>(value.type));
  if (value.list) {
    text += '[';
    for (const Attribute& element : value.elements) AppendValue(element, text);
    text += ']';
    return;
  }
  const auto id = reinterpret_cast<uintptr_t>(value.text.id());
  text.append(reinterpret_cast<const char*>(&value.number), sizeof(value.number));
  text.append(reinterpret_cast<const char*>(&id), sizeof(id));
}

const Attribute* FindAttribute(const Device& device, const Name& full_name,
                               const Name& short_name) {
  const Attributes& attributes = *device.attributes;
  const auto find = [&](const Name& name) -> const Attribute* {
    if (name.empty()) return nullptr;
    const auto found = std::find_if(attributes.begin(), attributes.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    return found == attributes.end() ? nullptr : &found->second;
  };
  const Attribute* found = find(full_name);
  return found != nullptr ? found : find(short_name);
}

Name ShortName(const std::string& full_name, const Name& driver) {
  const size_t slash = full_name.find('/');
  if (slash == std::string::npos || full_name.compare(0, slash, driver.str()) != 0) return {};
  return Name(full_name.substr(slash + 1));
}

}  // namespace nos::dra
