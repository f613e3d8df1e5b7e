#include "reconcile/node_write.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace nos::reconcile {
namespace {

int64_t CountOf(const cluster::ResourceList& resources, const std::string& resource) {
  const auto found = resources.find(resource);
  return found == resources.end() ? 0 : found->second.Value();
}

}  // namespace

Json AnnotationsOf(const cluster::AnnotationPatch& patch, std::string_view resource_version) {
  JsonObject annotations;
  for (const auto& [key, value] : patch) {
    annotations[key] = value ? Json(*value) : Json(nullptr);
  }
  JsonObject metadata = {{"annotations", std::move(annotations)}};
  if (!resource_version.empty()) metadata["resourceVersion"] = resource_version;
  return JsonObject{{"metadata", std::move(metadata)}};
}

Result<Json> PatchNodeAnnotations(kube::Client& client, std::string_view node,
                                  const cluster::AnnotationPatch& patch,
                                  std::string_view resource_version) {
  return client.Patch(kube::kNodes, "", node, kube::PatchType::kMerge,
                      AnnotationsOf(patch, resource_version));
}

Result<cluster::Node> PatchNodeDevices(kube::Client& client, const cluster::Node& node,
                                       const std::map<std::string, int64_t>& counts) {
  JsonObject allocatable, capacity;
  for (const auto& [resource, count] : counts) {
    allocatable[resource] = std::to_string(count);
    if (CountOf(node.capacity, resource) < count) capacity[resource] = std::to_string(count);
  }
  JsonObject patch = {{"status", JsonObject{{"allocatable", std::move(allocatable)},
                                            {"capacity", std::move(capacity)}}}};
  if (!node.meta.uid.empty()) patch["metadata"] = JsonObject{{"uid", node.meta.uid}};
  NOS_ASSIGN(const Json written, client.Patch(kube::kNodes, "", node.meta.name,
                                              kube::PatchType::kMerge, patch, "status"));
  return cluster::DecodeNode(written);
}

std::string NextPlanId(const cluster::Node& node) {
  const int64_t spec = ParseInt(cluster::SpecPlan(node)).value_or(0);
  const int64_t status = ParseInt(cluster::StatusPlan(node)).value_or(0);
  int64_t next = std::max(spec, status) + 1;
  if (next > cluster::kMaxPlanId) next = 1;
  while (next == spec || next == status) ++next;
  return std::to_string(next);
}

int64_t AllocatableOf(const cluster::Node& node, const std::string& resource) {
  return CountOf(node.allocatable, resource);
}

}  // namespace nos::reconcile
