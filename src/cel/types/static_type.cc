#include "cel/types/static_type.h"

#include <array>

#include "cel/values/list.h"
#include "cel/values/map.h"

namespace nos::cel {

namespace types {
const Type kDyn{TypeKind::kDyn, "dyn", {}, -1, 1};
const Type kError{TypeKind::kError, "error", {}, -1, 1};
const Type kBool{TypeKind::kBool, "bool", {}, -1, 1};
const Type kBytes{TypeKind::kBytes, "bytes", {}, -1, 1};
const Type kDouble{TypeKind::kDouble, "double", {}, -1, 1};
const Type kDuration{TypeKind::kDuration, "google.protobuf.Duration", {}, -1, 1};
const Type kInt{TypeKind::kInt, "int", {}, -1, 1};
const Type kNull{TypeKind::kNull, "null_type", {}, -1, 1};
const Type kString{TypeKind::kString, "string", {}, -1, 1};
const Type kTimestamp{TypeKind::kTimestamp, "google.protobuf.Timestamp", {}, -1, 1};
const Type kType{TypeKind::kType, "type", {}, -1, 1};
const Type kUint{TypeKind::kUint, "uint", {}, -1, 1};
const Type kList{TypeKind::kList, "list", {&kDyn}, -1, 2};
const Type kMap{TypeKind::kMap, "map", {&kDyn, &kDyn}, -1, 3};
const Type kOptional{TypeKind::kOpaque, "optional_type", {}, -1, 1};
const Type kQuantity{TypeKind::kStruct, "kubernetes.Quantity", {}, -1, 1};
const Type kSemver{TypeKind::kStruct, "kubernetes.Semver", {}, -1, 1};
const Type kUrl{TypeKind::kStruct, "kubernetes.URL", {}, -1, 1};
const Type kFormat{TypeKind::kStruct, "kubernetes.NamedFormat", {}, -1, 1};
const Type kIp{TypeKind::kOpaque, "net.IP", {}, -1, 1};
const Type kCidr{TypeKind::kOpaque, "net.CIDR", {}, -1, 1};
const Type kDevice{TypeKind::kStruct, "kubernetes.DRADevice", {}, -1, 1};
const Type kAuthorizer{TypeKind::kStruct, "kubernetes.authorization.Authorizer", {}, -1, 1};
const Type kPathCheck{TypeKind::kStruct, "kubernetes.authorization.PathCheck", {}, -1, 1};
const Type kGroupCheck{TypeKind::kStruct, "kubernetes.authorization.GroupCheck", {}, -1, 1};
const Type kResourceCheck{TypeKind::kStruct, "kubernetes.authorization.ResourceCheck", {}, -1, 1};
const Type kDecision{TypeKind::kStruct, "kubernetes.authorization.Decision", {}, -1, 1};
}  // namespace types

bool Type::Matches(const Type& other, bool names) const {
  if (this == &other) return true;
  if (kind != other.kind || params.size() != other.params.size()) return false;
  if ((names || kind != TypeKind::kParam) && name != other.name) return false;
  for (size_t i = 0; i < params.size(); ++i) {
    if (!params[i]->Matches(*other.params[i], names)) return false;
  }
  return true;
}

bool Type::AcceptsType(const Type& from) const {
  if (this == &from || kind == TypeKind::kDyn || kind == TypeKind::kParam) return true;
  if (kind != from.kind || name != from.name || params.size() != from.params.size()) return false;
  for (size_t i = 0; i < params.size(); ++i) {
    if (!params[i]->AcceptsType(*from.params[i])) return false;
  }
  return true;
}

bool Type::AcceptsValue(const Value& value) const {
  if (kind == TypeKind::kDyn || kind == TypeKind::kParam) return true;
  if (name != TypeName(value)) return false;
  if (kind == TypeKind::kList) {
    const ListValue& list = value.list();
    return list.size() == 0 || params[0]->AcceptsValue(list.At(0));
  }
  if (kind == TypeKind::kMap) {
    const MapValue& map = value.map();
    if (map.size() == 0) return true;
    const MapEntry entry = map.At(0);
    return params[0]->AcceptsValue(entry.key) && params[1]->AcceptsValue(entry.value);
  }
  return true;
}

const Type* FindNamedType(std::string_view name) {
  static constexpr std::array<const Type*, 15> kNamed = {
      &types::kBool, &types::kBytes,  &types::kDouble,    &types::kDuration, &types::kInt,
      &types::kNull, &types::kString, &types::kTimestamp, &types::kType,     &types::kUint,
      &types::kList, &types::kMap,    &types::kOptional,  &types::kIp,       &types::kCidr};
  for (const Type* type : kNamed) {
    if (type->name == name) return type;
  }
  return nullptr;
}

const Type* TypeStore::Make(TypeKind kind, std::string_view name, std::vector<const Type*> params) {
  size_t size = 1;
  for (const Type* param : params) size += param->size;
  if (size > kMaxSize) throw TooComplex();
  types_.push_back({kind, std::string(name), std::move(params), -1, size});
  return &types_.back();
}

const Type* TypeStore::Variable(int number) {
  types_.push_back({TypeKind::kParam, "_var" + std::to_string(number), {}, number, 1});
  return &types_.back();
}

std::string Type::ToString() const {
  if (params.empty()) return kind == TypeKind::kParam ? "<" + name + ">" : name;
  std::string text = name + "(";
  for (const Type* param : params) {
    if (param != params.front()) text += ", ";
    text += param->ToString();
  }
  return text + ")";
}

}  // namespace nos::cel
