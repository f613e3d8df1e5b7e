// Reads a workload from a file and checks that its content is allowed and that the API server would
// accept all of it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "codec/yaml.h"
#include "sim/workload.h"
#include "sim/world/model/dry_run.h"
#include "sim/world/model/pool_specs.h"

namespace nos::sim {
namespace {

const kube::Resource kPriorityClasses{"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass",
                                      false};
const kube::Resource kQuotas{"nos.nebuly.com", "v1alpha1", "elasticquotas", "ElasticQuota", true};
const kube::Resource kCompositeQuotas{"nos.nebuly.com", "v1alpha1", "compositeelasticquotas",
                                      "CompositeElasticQuota", true};
const kube::Resource kClaims{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", true};
const kube::Resource kClaimTemplates{"resource.k8s.io", "v1", "resourceclaimtemplates",
                                     "ResourceClaimTemplate", true};
const kube::Resource kDeviceClasses{"resource.k8s.io", "v1", "deviceclasses", "DeviceClass", false};
constexpr size_t kMaxLabelValue = 63;  // characters; k8s.io/apimachinery validation

std::string Describe(const Json& object, std::string_view kind) {
  const std::string_view ns = FindString(object, "metadata", "namespace");
  return fmt::format("{} {}{}{}", kind, ns, ns.empty() ? "" : "/",
                     FindString(object, "metadata", "name"));
}

// The annotation as a duration; nullopt if absent. Error: kInvalid.
Result<std::optional<Duration>> SecondsOf(const cluster::Pod& pod, std::string_view annotation) {
  const auto found = pod.meta.annotations.find(annotation);
  if (found == pod.meta.annotations.end()) return std::optional<Duration>();
  const std::optional<double> seconds = ParseDouble(found->second);
  if (seconds && *seconds >= 0 && *seconds < 1e9) return std::optional(FromSeconds(*seconds));
  return Invalid(fmt::format("metadata.annotations[{}]: expected seconds, got '{}'", annotation,
                             found->second));
}

Result<Duration> PreparePod(Json& object) {
  NOS_ASSIGN(const cluster::Pod pod, cluster::DecodePod(object));
  NOS_RETURN_IF_ERROR(SecondsOf(pod, kRunSeconds).status());
  NOS_RETURN_IF_ERROR(SecondsOf(pod, kInitSeconds).status());
  NOS_ASSIGN(const std::optional<Duration> at, SecondsOf(pod, kArrivalSeconds));
  JsonObject& labels = MakeObject(object, "metadata", "labels");
  const bool fits = pod.meta.name.size() <= kMaxLabelValue;
  if (fits && !labels.contains(kPodLabel)) labels[kPodLabel] = pod.meta.name;
  return at.value_or(Duration::zero());
}

class Reader {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  Status Read(const std::vector<Json>& documents) {
    for (size_t i = 0; i < documents.size(); ++i) {
      NOS_RETURN_IF_ERROR(
          ReadAny(documents[i], "", fmt::format("{}: document {}", source_, i + 1)));
    }
    return Status::Ok();
  }

  // Objects that pods refer to come before all pods, wherever they are in the file.
  Result<Workload> Take() {
    std::stable_sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
      return std::pair(a.resource->kind == "Pod", a.arrival.at) <
             std::pair(b.resource->kind == "Pod", b.arrival.at);
    });
    if (found_.empty() || found_.back().resource->kind != "Pod") {
      return Invalid(fmt::format("{}: there is no Pod in it, so nothing would run", source_));
    }
    DryRun server;
    Workload workload;
    for (Found& found : found_) {
      const Json& object = found.arrival.object;
      const Status taken =
          server.Create(*found.resource, FindString(object, "metadata", "namespace"), object);
      if (!taken.ok()) return Refused(found, taken);
      workload.push_back(std::move(found.arrival));
    }
    return workload;
  }

 private:
  struct Found {
    const kube::Resource* resource;
    std::string where;  // location in the file
    Arrival arrival;
  };

  Status ReadAny(const Json& object, std::string_view kind_in_list, const std::string& where) {
    if (!object.is_object()) return Invalid(where + ": this is not a Kubernetes object");
    std::string_view kind = FindString(object, "kind");
    if (kind.empty()) kind = kind_in_list;
    const Json* items = Find(object, "items");
    const bool list = kind.ends_with("List") && items != nullptr && items->is_array();
    if (!list) return ReadObject(object, kind, where);
    kind.remove_suffix(std::string_view("List").size());
    for (size_t i = 0; i < items->get_array().size(); ++i) {
      NOS_RETURN_IF_ERROR(
          ReadAny(items->get_array()[i], kind, fmt::format("{}, item {}", where, i + 1)));
    }
    return Status::Ok();
  }

  Status ReadObject(const Json& object, std::string_view kind, const std::string& where) {
    const std::string place = fmt::format("{}: {}", where, Describe(object, kind));
    if (kind.empty()) return Invalid(where + ": kind: is missing, so this is no Kubernetes object");
    const kube::Resource* resource = WorkloadResource(kind);
    if (resource == nullptr) {
      return Invalid(fmt::format(
          "{}: kind: nothing in the sandbox acts on a {}; write the pods themselves (kind: Pod), "
          "and PriorityClass, Namespace, ElasticQuota, NodePool or ResourceClaim where they need "
          "one",
          place, kind));
    }
    if (FindString(object, "metadata", "name").empty()) {
      return Invalid(fmt::format("{}: {}: metadata.name: is missing", where, kind));
    }
    Found found{resource, place, {{}, object}};
    // The items of a PodList may omit their kind.
    JsonObject& fields = found.arrival.object.get_object();
    if (!fields.contains("kind")) fields["kind"] = kind;
    JsonObject& meta = MakeObject(found.arrival.object, "metadata");
    if (resource->namespaced && !meta.contains("namespace")) meta["namespace"] = "default";
    if (kind == "Pod") {
      const Result<Duration> at = PreparePod(found.arrival.object);
      if (!at.ok()) return at.status().Within(place);
      found.arrival.at = *at;
    }
    found_.push_back(std::move(found));
    return Status::Ok();
  }

  static Status Refused(const Found& found, const Status& why) {
    if (why.code() == Code::kAlreadyExists) {
      return Invalid(found.where + ": metadata.name: there is one of this name already");
    }
    return Invalid(fmt::format("{}: the API server refuses it: {}", found.where, why.message()));
  }

  std::string_view source_;
  std::vector<Found> found_;
};

}  // namespace

const kube::Resource* WorkloadResource(std::string_view kind) {
  static const std::array<const kube::Resource*, 9> kinds = {
      &kube::kPods,   &kPriorityClasses, &kube::kNamespaces, &kQuotas,       &kCompositeQuotas,
      &kPoolResource, &kClaims,          &kClaimTemplates,   &kDeviceClasses};
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const auto* resource) { return resource->kind == kind; });
  return found == kinds.end() ? nullptr : *found;
}

Result<Workload> ReadWorkload(std::string_view text, std::string_view source) {
  const auto documents = ParseYaml(text);
  if (!documents.ok()) return documents.status().Within(source);
  Reader reader(source);
  NOS_RETURN_IF_ERROR(reader.Read(*documents));
  return reader.Take();
}

}  // namespace nos::sim
