// Basic validation: reports each fault of an object with its field, in the words of the real
// server.
#pragma once

#include "base/names.h"
#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// Collects the causes for one object.
class Causes {
 public:
  void Invalid(std::string field, std::string_view value, std::string_view why);
  void Required(std::string field, std::string_view why = "");
  void Forbidden(std::string field, std::string_view why);
  void Duplicate(std::string field, std::string_view value);
  void Unsupported(std::string field, std::string_view value, std::string_view supported);
  bool empty() const { return causes_.empty(); }
  std::vector<Cause> Take() { return std::move(causes_); }

 private:
  // Bounds the number of reported faults: a hostile object may have any number.
  void Add(Cause cause);
  std::vector<Cause> causes_;
};

// `old` is null for a create.
void ValidateMetadata(const ResourceType& type, const Json& object, const Json* old,
                      Causes& causes);
// Validates a PodSpec at `path`; `pod` is the object or template that contains it.
void ValidatePodSpec(const Json& pod, const std::string& path, Causes& causes);
void ValidatePodUpdate(const Json& pod, const Json& old, Causes& causes);
// All kinds except pods.
void ValidateKind(const ResourceType& type, const Json& object, const Json* old, Causes& causes);

// The kinds of resource.k8s.io.
void ValidateDevices(const ResourceType& type, const Json& object, const Json* old, Causes& causes);

// All checks above. Refusal: 422.
Check Validate(const ResourceType& type, const Json& object, const Json* old);

}  // namespace nos::sim
