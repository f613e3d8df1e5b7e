#include "sim/apiserver/schemas/validation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "sim/apiserver/schemas/custom_schema.h"

namespace nos::sim {
namespace {

constexpr size_t kMaxCauses = 20;
constexpr size_t kMaxAnnotationBytes = size_t{256} * 1024;

bool IsPathSegment(std::string_view text) {
  return !text.empty() && text.size() <= 253 && text != "." && text != ".." &&
         text.find_first_of("/%") == std::string_view::npos;
}

bool IsNameFor(const ResourceType& type, std::string_view name) {
  switch (type.name_rule) {
    case NameRule::kSubdomain:
      return IsDnsSubdomain(name);
    case NameRule::kLabel:
      return IsDnsLabel(name);
    case NameRule::kPathSegment:
      return IsPathSegment(name);
  }
  return false;
}

constexpr std::string_view kNameHelp =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com')";

std::string Shown(const Json& value) {
  return value.is_string() ? std::string(value.get_string()) : WriteJson(value);
}

void ValidateLabels(const Json& object, Causes& causes) {
  const Json* labels = Find(object, "metadata", "labels");
  if (labels == nullptr || labels->is_null()) return;
  for (const auto& [key, value] : labels->get_object()) {
    const std::string name(key);
    if (!IsQualifiedName(name)) {
      causes.Invalid("metadata.labels", name,
                     "name part must consist of alphanumeric characters, '-', '_' or '.', and must "
                     "start and end with an alphanumeric character");
    } else if (!value.is_string() || !IsLabelValue(View(value.get_string()))) {
      causes.Invalid("metadata.labels", Shown(value),
                     "a valid label must be an empty string or consist of alphanumeric characters, "
                     "'-', '_' or '.', and must start and end with an alphanumeric character");
    }
  }
}

void ValidateAnnotations(const Json& object, Causes& causes) {
  const Json* annotations = Find(object, "metadata", "annotations");
  if (annotations == nullptr || annotations->is_null()) return;
  size_t bytes = 0;
  for (const auto& [key, value] : annotations->get_object()) {
    if (!IsQualifiedName(ToLower({key.data(), key.size()}))) {
      causes.Invalid("metadata.annotations", std::string(key), "is not a qualified name");
    }
    if (!value.is_string()) {
      causes.Invalid("metadata.annotations", Shown(value), "must be a string");
    } else {
      bytes += key.size() + value.get_string().size();
    }
  }
  if (bytes > kMaxAnnotationBytes) {
    causes.Invalid("metadata.annotations", fmt::to_string(bytes),
                   fmt::format("may not be more than {} bytes", kMaxAnnotationBytes));
  }
}

bool HasElement(const Json* list, const Json& element) {
  if (list == nullptr || !list->is_array()) return false;
  const JsonArray& array = list->get_array();
  return std::find(array.begin(), array.end(), element) != array.end();
}

void ValidateFinalizers(const Json& object, const Json* old, Causes& causes) {
  const Json* finalizers = Find(object, "metadata", "finalizers");
  if (finalizers == nullptr || finalizers->is_null()) return;
  const bool deleting = old != nullptr && Find(*old, "metadata", "deletionTimestamp") != nullptr;
  const Json* before = old == nullptr ? nullptr : Find(*old, "metadata", "finalizers");
  for (const Json& finalizer : finalizers->get_array()) {
    if (!finalizer.is_string() || !IsQualifiedName(View(finalizer.get_string()))) {
      causes.Invalid("metadata.finalizers", Shown(finalizer), "is not a qualified name");
    } else if (deleting && !HasElement(before, finalizer)) {
      causes.Forbidden("metadata.finalizers",
                       "no new finalizers can be added if the object is being deleted");
    }
  }
}

void ValidateOwners(const Json& object, Causes& causes) {
  const Json* owners = Find(object, "metadata", "ownerReferences");
  if (owners == nullptr || owners->is_null()) return;
  for (size_t i = 0; i < owners->get_array().size(); ++i) {
    const Json& owner = owners->get_array()[i];
    for (const std::string_view field : {"apiVersion", "kind", "name", "uid"}) {
      if (FindString(owner, field).empty()) {
        causes.Required(fmt::format("metadata.ownerReferences[{}].{}", i, field));
      }
    }
  }
}

}  // namespace

void Causes::Add(Cause cause) {
  if (causes_.size() < kMaxCauses) causes_.push_back(std::move(cause));
}

void Causes::Invalid(std::string field, std::string_view value, std::string_view why) {
  std::string message = fmt::format("Invalid value: \"{}\": {}", value.substr(0, 200), why);
  Add({"FieldValueInvalid", std::move(field), std::move(message)});
}

void Causes::Required(std::string field, std::string_view why) {
  std::string message = "Required value";
  if (!why.empty()) message += fmt::format(": {}", why);
  Add({"FieldValueRequired", std::move(field), std::move(message)});
}

void Causes::Forbidden(std::string field, std::string_view why) {
  Add({"FieldValueForbidden", std::move(field), fmt::format("Forbidden: {}", why)});
}

void Causes::Duplicate(std::string field, std::string_view value) {
  Add({"FieldValueDuplicate", std::move(field), fmt::format("Duplicate value: \"{}\"", value)});
}

void Causes::Unsupported(std::string field, std::string_view value, std::string_view supported) {
  Add({"FieldValueNotSupported", std::move(field),
       fmt::format("Unsupported value: \"{}\": supported values: {}", value, supported)});
}

void ValidateMetadata(const ResourceType& type, const Json& object, const Json* old,
                      Causes& causes) {
  const std::string_view name = FindString(object, "metadata", "name");
  if (name.empty()) {
    causes.Required("metadata.name", "name or generateName is required");
  } else if (old == nullptr && !IsNameFor(type, name)) {
    causes.Invalid("metadata.name", name, kNameHelp);
  }
  ValidateLabels(object, causes);
  ValidateAnnotations(object, causes);
  ValidateFinalizers(object, old, causes);
  ValidateOwners(object, causes);
}

Check Validate(const ResourceType& type, const Json& object, const Json* old) {
  Causes causes;
  ValidateMetadata(type, object, old, causes);
  if (type.custom != nullptr) {
    ValidateSchema(type.custom->schema, *type.custom->patterns, object, "", causes);
  } else if (type.kind == "Pod") {
    ValidatePodSpec(object, "spec", causes);
    if (old != nullptr) ValidatePodUpdate(object, *old, causes);
  } else {
    ValidateKind(type, object, old, causes);
  }
  if (causes.empty()) return std::nullopt;
  return ObjectInvalid(type, FindString(object, "metadata", "name"), causes.Take());
}

}  // namespace nos::sim
