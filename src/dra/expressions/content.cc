#include "dra/expressions/content.h"

#include <fmt/format.h>

#include <functional>
#include <type_traits>

namespace nos::dra {
namespace {

using Type = Attribute::Type;

template <typename T>
T ValueOf(const Attribute& attribute) {
  if constexpr (std::is_same_v<T, bool>) {
    return attribute.number != 0;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return attribute.number;
  } else {
    return T{attribute.text.str()};
  }
}

template <typename T>
cel::AttributeValue OneOrMany(const Attribute& attribute) {
  if (!attribute.list) return ValueOf<T>(attribute);
  std::vector<T> values;
  for (const Attribute& element : attribute.elements) values.push_back(ValueOf<T>(element));
  return values;
}

Result<cel::AttributeValue> ToValue(const Attribute& attribute) {
  switch (attribute.type) {
    case Type::kBool:
      return OneOrMany<bool>(attribute);
    case Type::kInt:
      return OneOrMany<int64_t>(attribute);
    case Type::kString:
      return OneOrMany<std::string>(attribute);
    case Type::kVersion:
      return OneOrMany<cel::Version>(attribute);
    case Type::kUnknown:
      break;
  }
  return Invalid("has a type that is not known");
}

Attribute Scalar(bool value) { return {Type::kBool, false, value ? 1 : 0, {}, {}}; }
Attribute Scalar(int64_t value) { return {Type::kInt, false, value, {}, {}}; }
Attribute Scalar(const std::string& value) { return {Type::kString, false, 0, Name(value), {}}; }
Attribute Scalar(const cel::Version& value) {
  return {Type::kVersion, false, 0, Name(value.text), {}};
}

template <typename T>
Attribute List(const std::vector<T>& values) {
  Attribute list;
  for (const auto& value : values) list.elements.push_back(Scalar(value));
  list.list = !values.empty();
  if (list.list) list.type = list.elements.front().type;
  return list;
}
template <typename T>
Attribute ToAttributeOf(const T& value) {
  return Scalar(value);
}
template <typename T>
Attribute ToAttributeOf(const std::vector<T>& values) {
  return List(values);
}

}  // namespace

size_t ContentKeyHash::operator()(const ContentKey& key) const {
  const std::hash<const void*> hash;
  size_t seed = hash(key.driver.id());
  AddHash(seed, hash(key.attributes.id()));
  AddHash(seed, hash(key.capacity.id()));
  AddHash(seed, key.allow_multiple ? 1 : 0);
  return seed;
}

Result<cel::Device> PrepareContent(const ContentKey& key) {
  cel::DeviceSpec spec;
  spec.driver = key.driver.str();
  spec.allow_multiple_allocations = key.allow_multiple;
  for (const auto& [name, attribute] : *key.attributes) {
    Result<cel::AttributeValue> value = ToValue(attribute);
    if (!value.ok()) {
      return value.status().Within(fmt::format("attribute {}", name.str()));
    }
    spec.attributes.emplace(name.str(), std::move(*value));
  }
  for (const auto& [name, capacity] : *key.capacity) {
    spec.capacity.emplace(name.str(), capacity.value.ToString());
  }
  cel::Device device(spec);
  if (!device.error().empty()) return Invalid(device.error());
  return device;
}

Attribute ToAttribute(const cel::AttributeValue& value) {
  return std::visit([](const auto& held) { return ToAttributeOf(held); }, value);
}

}  // namespace nos::dra
