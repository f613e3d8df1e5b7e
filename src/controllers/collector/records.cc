#include "controllers/collector/records.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/millis.h"
#include "cluster/placeholder.h"
#include "controllers/autoscaler/scaling_signal.h"
#include "controllers/collector/jobs.h"
#include "controllers/pod_facts.h"
#include "dra/context.h"
#include "dra/device_counts.h"
#include "dra/device_index.h"
#include "gpu/product.h"
#include "quota/standing.h"
#include "reconcile/condition.h"
#include "scheduling/remedies.h"
#include "scheduling/summary.h"

namespace nos::controllers {
namespace {

constexpr double kMebi = 1024.0 * 1024.0;
// ResourceDeviceClassPrefix of k8s.io/api resource/v1.
constexpr std::string_view kClassPrefix = "deviceclass.resource.kubernetes.io/";

// Unit: cores for cpu, MiB for memory, plain units for other resources.
double NumberOf(std::string_view resource, const Quantity& quantity) {
  if (resource == "cpu") return static_cast<double>(quantity.MilliValue()) / 1000;
  const auto value = static_cast<double>(quantity.Value());
  return resource == "memory" ? value / kMebi : value;
}

double NumberIn(const cluster::ResourceList& list, std::string_view resource) {
  const auto found = list.find(resource);
  return found == list.end() ? 0 : NumberOf(resource, found->second);
}

JsonObject RequestsRecord(const cluster::Pod& pod, const dra::DeviceCounts& devices) {
  JsonObject record;
  for (const auto& [resource, count] : devices) record[resource] = static_cast<double>(count);
  for (const auto& [resource, quantity] : cluster::PodRequests(pod)) {
    const bool included = resource == "cpu" || resource == "memory" || IsOfGpus(resource);
    if (!included) continue;
    const auto claimed = devices.find(resource);
    const double beside = claimed == devices.end() ? 0 : static_cast<double>(claimed->second);
    record[resource] = NumberOf(resource, quantity) + beside;
  }
  return record;
}

// Adds what the claim requests. The first alternative counts if a request has several.
void AddRequests(const dra::ResourceClaim& claim, dra::DeviceCounts& to) {
  for (const dra::DeviceRequest& request : claim.requests) {
    const dra::ExactRequest* wanted = request.exactly ? &*request.exactly : nullptr;
    if (!request.first_available.empty()) wanted = &request.first_available.front();
    if (wanted == nullptr || wanted->admin_access.value_or(false)) continue;
    to[std::string(kClassPrefix) + wanted->device_class] += std::max<int64_t>(wanted->count, 1);
  }
}

// The reason why the pod is pending, or why it ended.
void AddReason(const cluster::Pod& pod, JsonObject& record) {
  if (pod.node_name.empty() && !pod.scheduling_gates.empty()) {
    record["reason"] = scheduling::codes::kSchedulingGated;
    record["message"] = scheduling::GatedText(pod);
    return;
  }
  const cluster::Condition* scheduled = pod.FindCondition("PodScheduled");
  const bool waits = scheduled != nullptr && scheduled->status != "True";
  record["reason"] = waits ? scheduled->reason : pod.reason;
  record["message"] = waits ? scheduled->message : pod.message;
  const std::string remedy = waits ? RemedyIn(pod) : "";
  const bool said = remedy.empty() || !scheduling::SplitRemedy(scheduled->message).second.empty();
  if (!said) record["remedy"] = remedy;
}

void AddEviction(const cluster::Pod& pod, JsonObject& record) {
  const auto eviction = FactsOf(pod).eviction;
  if (!eviction) return;
  record["evicted"] = {{"by", eviction->by},
                       {"for", reconcile::PreemptorOf(pod)},
                       {"quota", eviction->for_quota},
                       {"why", eviction->why}};
}

int64_t ScheduledAt(const cluster::Pod& pod) {
  const cluster::Condition* scheduled = pod.FindCondition("PodScheduled");
  const bool is = scheduled != nullptr && scheduled->status == "True";
  return is ? ToMillis(scheduled->last_transition) : 0;
}

const cluster::OwnerReference* ControllerOf(const cluster::Pod& pod) {
  const auto found = std::ranges::find(pod.meta.owners, true, &cluster::OwnerReference::controller);
  return found == pod.meta.owners.end() ? nullptr : &*found;
}

bool IsReady(const cluster::Node& node) {
  const cluster::Condition* ready = cluster::FindCondition(node.conditions, "Ready");
  return ready == nullptr || ready->status == "True";
}

JsonArray LayoutRecord(const std::map<int, std::map<std::string, int>>& profiles) {
  JsonArray layout;
  for (const auto& [index, counts] : profiles) {
    JsonObject of_gpu;
    std::string_view mode;
    for (const auto& [profile, count] : counts) {
      of_gpu[profile] = count;
      mode = gpu::SharingModeOfProfile(profile);
    }
    layout.push_back({{"index", index},
                      {"profiles", std::move(of_gpu)},
                      {"sharing_mode", mode},
                      {"way", mode}});  // the old name
  }
  return layout;
}

std::map<int, std::map<std::string, int>> ProfilesOf(const cluster::NodeGpus& gpus) {
  std::map<int, std::map<std::string, int>> profiles;
  for (const cluster::Gpu& gpu : gpus.gpus) {
    auto& counts = profiles[gpu.index];
    for (const cluster::Instance& instance : gpu.instances) {
      ++counts[gpu.model->profiles()[instance.placement.profile].name];
    }
  }
  return profiles;
}

// Labels that prices of GPUs may depend on (docs/cost.md).
constexpr std::array<std::string_view, 13> kPriceLabels = {
    "cloud.google.com/gke-nodepool",     "cloud.google.com/gke-preemptible",
    "cloud.google.com/gke-provisioning", "cloud.google.com/gke-spot",
    "eks.amazonaws.com/capacityType",    "eks.amazonaws.com/nodegroup",
    "karpenter.sh/capacity-type",        "karpenter.sh/nodepool",
    "kubernetes.azure.com/agentpool",    "kubernetes.azure.com/scalesetpriority",
    "node.kubernetes.io/instance-type",  "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone"};

}  // namespace

bool IsOfGpus(std::string_view resource) {
  return resource.starts_with("nvidia.com/") || resource.starts_with(cluster::kPrefix);
}

dra::DeviceCounts DevicesOf(const cluster::Pod& pod, const cluster::ClusterContext& context) {
  dra::DeviceCounts devices;
  for (const std::string& key : dra::SpecClaimKeysOf(pod)) {
    const dra::ResourceClaim* claim = context.device_claims.Find(key);
    if (claim == nullptr) continue;
    if (!claim->allocation) {
      AddRequests(*claim, devices);
      continue;
    }
    for (const auto& [resource, count] : dra::CountsOf(*claim, *claim->allocation)) {
      if (IsOfGpus(resource)) devices[resource] += count;
    }
  }
  return devices;
}

JsonObject PodRecord(const cluster::Pod& pod, const dra::DeviceCounts& devices,
                     const std::string& quota, Time finished) {
  JsonObject record{{"kind", "pod"},         {"uid", pod.meta.uid},   {"namespace", pod.meta.ns},
                    {"name", pod.meta.name}, {"node", pod.node_name}, {"state", StateOf(pod)}};
  AddReason(pod, record);
  AddEviction(pod, record);
  if (const auto* owner = ControllerOf(pod)) {
    record["owner"] = {{"kind", owner->kind}, {"name", owner->name}};
  }
  if (const auto job = JobOf(pod)) record["job"] = {{"kind", job->kind}, {"name", job->name}};
  const auto capacity = pod.meta.labels.find(quota::kCapacityLabel);
  record["requests"] = RequestsRecord(pod, devices);
  record["priority"] = pod.priority;
  record["quota"] = quota;
  record["capacity"] = capacity == pod.meta.labels.end() ? "" : capacity->second;
  record["created"] = ToMillis(pod.meta.created);
  record["scheduled"] = ScheduledAt(pod);
  record["started"] = pod.started ? ToMillis(*pod.started) : 0;
  record["finished"] = ToMillis(finished);
  if (pod.meta.deleted) record["ends"] = ToMillis(*pod.meta.deleted);
  if (cluster::IsPlaceholder(pod) || pod.meta.labels.contains(std::string(kDemandOf))) {
    record["placeholder"] = true;
  }
  return record;
}

void NodeRequests::Add(const cluster::Pod& pod) {
  const cluster::ResourceList requests = cluster::PodRequests(pod);
  cpu += NumberIn(requests, "cpu");
  memory += NumberIn(requests, "memory");
}

JsonObject NodeRecord(const cluster::Node& node, const NodeRequests& requested) {
  JsonObject labels;
  for (const auto& [key, value] : node.meta.labels) {
    const bool included = key.starts_with(cluster::kPrefix) || key.starts_with("nvidia.com/gpu.") ||
                          std::ranges::find(kPriceLabels, key) != kPriceLabels.end();
    if (included) labels[key] = value;
  }
  return {{"kind", "node"},
          {"node", node.meta.name},
          {"ready", IsReady(node)},
          {"schedulable", !node.unschedulable},
          {"allocatable",
           {{"cpu", NumberIn(node.allocatable, "cpu")},
            {"memory", NumberIn(node.allocatable, "memory")}}},
          {"requested", {{"cpu", requested.cpu}, {"memory", requested.memory}}},
          {"labels", std::move(labels)}};
}

JsonObject QuotaRecord(const cluster::ElasticQuota& quota) {
  JsonObject resources;
  const auto put = [&](const char* what, const cluster::ResourceList& amounts) {
    for (const auto& [resource, amount] : amounts) {
      Json& of = resources[resource];
      if (!of.is_object()) of = JsonObject();
      of.get_object()[what] = NumberOf(resource, amount);
    }
  };
  put("min", quota.min);
  put("max", quota.max);
  put("used", quota.status.used);
  put("guaranteed", quota.status.guaranteed);
  put("borrowed", quota.status.borrowed);
  put("lent", quota.status.lent);
  for (auto& [resource, of] : resources) {
    for (const char* what : {"min", "used", "guaranteed", "borrowed", "lent"}) {
      if (!of.get_object().contains(what)) of.get_object()[what] = 0;
    }
  }
  JsonArray namespaces;
  for (const std::string& ns : quota.namespaces) namespaces.emplace_back(ns);
  return {{"kind", "quota"},
          {"type", quota.composite ? cluster::kCompositeQuota : cluster::kElasticQuota},
          {"namespace", quota.meta.ns},
          {"name", quota.meta.name},
          {"namespaces", std::move(namespaces)},
          {"resources", std::move(resources)}};
}

std::string IdOf(const cluster::ElasticQuota& quota) {
  return std::string(quota.composite ? cluster::kCompositeQuota : cluster::kElasticQuota) + "/" +
         quota.Key();
}

JsonArray LayoutOf(const cluster::NodeGpus& gpus) { return LayoutRecord(ProfilesOf(gpus)); }

JsonArray TargetOf(const cluster::Node& node, const cluster::NodeGpus& gpus) {
  auto profiles = ProfilesOf(gpus);
  for (const cluster::TargetLayout& target : cluster::ReadSpec(node, gpus)) {
    auto& counts = profiles[target.index];
    counts.clear();
    for (const gpu::Placement& placement : target.placements) {
      ++counts[target.model->profiles()[placement.profile].name];
    }
  }
  return LayoutRecord(profiles);
}

SliceCounts SlicesAdded(const cluster::NodeGpus& before, const cluster::Node& node,
                        const cluster::NodeGpus& gpus) {
  SliceCounts added;
  const auto add = [&](const gpu::Model& model, gpu::ProfileId profile, int64_t count) {
    added[model.profile(profile).resource_name] += count;
  };
  for (const cluster::Gpu& gpu : before.gpus) {
    for (const cluster::Instance& each : gpu.instances) add(*gpu.model, each.placement.profile, -1);
  }
  const std::vector<cluster::TargetLayout> targets = cluster::ReadSpec(node, gpus);
  for (const cluster::TargetLayout& target : targets) {
    for (const gpu::Placement& each : target.placements) add(*target.model, each.profile, 1);
  }
  for (const cluster::Gpu& gpu : gpus.gpus) {
    if (std::ranges::count(targets, gpu.index, &cluster::TargetLayout::index) > 0) continue;
    for (const cluster::Instance& each : gpu.instances) add(*gpu.model, each.placement.profile, 1);
  }
  std::erase_if(added, [](const auto& entry) { return entry.second <= 0; });
  return added;
}

}  // namespace nos::controllers
