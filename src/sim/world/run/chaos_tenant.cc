#include "sim/world/run/chaos_tenant.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "quota/charge.h"
#include "sim/specs.h"
#include "sim/workload.h"

namespace nos::sim {
namespace {

constexpr int kWaiting = 12;  // pods that the tenant keeps waiting
constexpr int kGang = 200;    // members that its gang needs
constexpr std::string_view kGangName = "everything";
constexpr Duration kRefill = std::chrono::seconds(10);
// The highest that a user's class may have, and less than others.
constexpr std::array<int, 2> kPriorities = {1'000'000'000, -1};
const kube::Resource kBudgets{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true};
const kube::Resource kPodGroups{"scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", true};

}  // namespace

std::vector<PlainQuota> ChaosTenant::Quotas(int64_t memory, int64_t cpu) {
  const cluster::ResourceId gpus = cluster::InternResource(quota::kGpuMemory);
  PlainQuota guaranteed{"quota", {std::string(kGuaranteed)}, {}, {}};
  guaranteed.min.Set(gpus, memory);
  guaranteed.min.Set(cluster::kCpu, cpu * quota::Amount{1000});
  PlainQuota hostile{"quota", {std::string(kHostile)}, {}, {}};
  hostile.min.Set(gpus, 0);
  hostile.min.Set(cluster::kCpu, 0);
  return {guaranteed, hostile};
}

Status ChaosTenant::Start(std::vector<const gpu::Model*> models, Time until) {
  models_ = std::move(models);
  const std::string ns(kHostile);
  for (const int priority : kPriorities) {
    NOS_RETURN_IF_ERROR(
        client_.Create(*WorkloadResource("PriorityClass"), "", PriorityClassObject(priority))
            .status());
  }
  NOS_RETURN_IF_ERROR(
      client_.Create(kBudgets, ns, BudgetObject(ns, "none", "owner", "mine")).status());
  const JsonObject none = {{"status", JsonObject{{"disruptionsAllowed", 0}}}};
  NOS_RETURN_IF_ERROR(
      client_.Patch(kBudgets, ns, "none", kube::PatchType::kMerge, none, "status").status());
  const JsonObject group = {
      {"apiVersion", "scheduling.x-k8s.io/v1alpha1"},
      {"kind", "PodGroup"},
      {"metadata", JsonObject{{"name", std::string(kGangName)}, {"namespace", ns}}},
      {"spec", JsonObject{{"minMember", random_.Chance(0.5) ? kGang : 1}}}};
  NOS_RETURN_IF_ERROR(client_.Create(kPodGroups, ns, group).status());
  Refill(until);
  return Status::Ok();
}

void ChaosTenant::Refill(Time until) {
  int waiting = 0;
  for (const auto& pod : world_.Pods()) {
    waiting += pod->meta.ns == kHostile && pod->node_name.empty() && !pod->Finished() ? 1 : 0;
  }
  for (; waiting < kWaiting; ++waiting) world_.Submit(Draw(), world_.Now());
  if (world_.Now() < until) world_.At(world_.Now() + kRefill, [this, until] { Refill(until); });
}

// Adds an owner: a kind whose pods other schedulers spare, or one that recreates the pod.
void ChaosTenant::Own(JsonObject& meta) {
  static const std::array<std::pair<const char*, const char*>, 4> kOwners = {
      std::pair("apps/v1", "DaemonSet"), std::pair("v1", "Node"), std::pair("batch/v1", "Job"),
      std::pair("example.com/v1", "Anything")};
  if (random_.Chance(0.3)) return;
  const auto& [version, kind] = kOwners[random_.Below(kOwners.size())];
  meta["ownerReferences"] = JsonArray{JsonObject{{"apiVersion", version},
                                                 {"kind", kind},
                                                 {"name", "mine"},
                                                 {"uid", "mine"},
                                                 {"controller", true}}};
  if (std::string_view(kind) == "Node") {
    meta["annotations"].as_object()["kubernetes.io/config.mirror"] = "mine";
  }
}

Json ChaosTenant::Draw() {
  const gpu::Model& model = *models_[random_.Below(models_.size())];
  const auto& profiles = model.profiles();
  PodSpec spec;
  spec.ns = kHostile;
  spec.name = fmt::format("mine-{}", ++made_);
  spec.containers = {{{profiles[random_.Below(profiles.size())].name, 1}}};
  spec.cpu = Quantity::FromMilli(1 + static_cast<int64_t>(random_.Below(3000)));
  if (random_.Chance(0.7)) spec.priority = kPriorities[random_.Below(kPriorities.size())];
  spec.labels = {{"owner", "mine"},
                 {"nos.nebuly.com/capacity", "in-quota"},
                 {"app", fmt::format("a{}", made_)}};
  if (random_.Chance(0.3)) spec.labels[std::string(kPodGroupLabel)] = kGangName;
  static const std::array<Duration, 4> kGraces = {
      Duration{}, std::chrono::seconds(30), std::chrono::hours(24), std::chrono::hours(24 * 365)};
  spec.grace = kGraces[random_.Below(kGraces.size())];
  if (random_.Chance(0.7)) spec.ends = "late";
  Json object = PodObject(spec);
  if (spec.priority == 0) MakeObject(object, "spec")["priorityClassName"] = "system-node-critical";
  JsonObject& meta = MakeObject(object, "metadata");
  Own(meta);
  if (random_.Chance(0.3)) meta["finalizers"] = JsonArray{"example.com/mine"};
  return object;
}

std::optional<std::string> GuaranteeChecker::See(const std::vector<std::string>& entitled,
                                                 Time now) {
  std::map<std::string, Time> since;
  for (const std::string& pod : entitled) {
    const auto known = since_.find(pod);
    since.emplace(pod, known == since_.end() ? now : known->second);
  }
  since_ = std::move(since);
  for (const auto& [pod, time] : since_) {
    if (now - time <= kBound) continue;
    return fmt::format("{} has waited within min, and not got a node, for {}", pod,
                       FormatAge(now - time));
  }
  return std::nullopt;
}

}  // namespace nos::sim
