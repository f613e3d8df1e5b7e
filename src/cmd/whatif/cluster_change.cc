#include "cmd/whatif/cluster_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/table.h"
#include "base/text.h"
#include "cluster/annotations.h"
#include "cluster/snapshot.h"
#include "planning/pool_nodes.h"
#include "scheduling/pod_state.h"

namespace nos::cmd {
namespace {

using cluster::ElasticQuota;
using cluster::Node;
using SharedPod = std::shared_ptr<const cluster::Pod>;

constexpr std::string_view kHostname = "kubernetes.io/hostname";
constexpr std::string_view kGpuMemory = "nos.nebuly.com/gpu-memory";

// Another node of its kind, whose GPUs are empty and reported.
std::shared_ptr<const Node> AnotherOf(const Node& node, int number,
                                      const gpu::Catalogue& catalogue) {
  Node other = node;
  other.meta.name = planning::NewNodeName(node.meta.name, number);
  other.meta.uid = other.meta.name;
  other.meta.labels[std::string(kHostname)] = other.meta.name;
  other.unschedulable = false;
  std::erase_if(other.meta.annotations,
                [](const auto& entry) { return entry.first.starts_with(cluster::kPrefix); });
  for (const cluster::Gpu& gpu : cluster::ReadNodeGpus(node, catalogue).gpus) {
    other.meta.annotations[fmt::format("nos.nebuly.com/status-layout-{}", gpu.index)] = "";
  }
  for (cluster::ResourceList* list : {&other.capacity, &other.allocatable}) {
    std::erase_if(*list,
                  [](const auto& entry) { return entry.first.starts_with("nvidia.com/mig-"); });
  }
  return std::make_shared<const Node>(std::move(other));
}

Result<std::shared_ptr<const Node>> NodeLike(const std::string& name, int number,
                                             const ClusterObjects& objects,
                                             const gpu::Catalogue& catalogue) {
  for (const auto& pool : PoolsIn(objects)) {
    if (pool->meta.name == name) return planning::NewNodeOf(*pool, number, catalogue);
  }
  for (const auto& node : objects.nodes) {
    if (node->meta.name == name) return AnotherOf(*node, number, catalogue);
  }
  return NotFound(fmt::format("--add-node: there is no node pool and no node {}", name));
}

// Its owner starts a pod elsewhere in place of the one that ends.
bool IsStartedAgain(const cluster::Pod& pod) {
  return !scheduling::IsTiedToNode(pod) &&
         std::ranges::any_of(pod.meta.owners, &cluster::OwnerReference::controller);
}

SharedPod Pending(const cluster::Pod& pod) {
  cluster::Pod again = pod;
  again.node_name.clear();
  again.nominated_node.clear();
  again.phase = "Pending";
  again.started.reset();
  again.conditions.clear();
  again.promised.clear();
  return std::make_shared<const cluster::Pod>(std::move(again));
}

Status RemoveNode(const std::string& name, ClusterObjects& objects) {
  const auto is = [&](const auto& node) { return node->meta.name == name; };
  if (std::erase_if(objects.nodes, is) == 0) {
    return NotFound(fmt::format("--remove-node: there is no node {}", name));
  }
  std::vector<SharedPod> left;
  for (const SharedPod& pod : objects.pods) {
    if (pod->node_name != name || pod->Finished()) {
      left.push_back(pod);
    } else if (IsStartedAgain(*pod) && !pod->meta.deleted) {
      left.push_back(Pending(*pod));
    }
  }
  objects.pods = std::move(left);
  return Status::Ok();
}

// By its name, or by a namespace that it is for.
bool IsNamed(const ElasticQuota& quota, std::string_view name) {
  if (name.find('/') != std::string_view::npos) return quota.Key() == name;
  if (!quota.composite) return quota.meta.ns == name || quota.meta.name == name;
  return quota.meta.name == name ||
         std::ranges::find(quota.namespaces, name) != quota.namespaces.end();
}

Status ChangeQuota(const std::string& text, ClusterObjects& objects) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return Invalid(fmt::format("--quota: expected QUOTA=AMOUNT, not '{}'", text));
  }
  std::string_view name = std::string_view(text).substr(0, equals), resource = kGpuMemory;
  if (const size_t colon = name.find(':'); colon != std::string_view::npos) {
    resource = name.substr(colon + 1);
    name = name.substr(0, colon);
  }
  NOS_ASSIGN(const Quantity amount, Quantity::Parse(text.substr(equals + 1)));
  if (amount < Quantity()) return Invalid("--quota: an amount is not negative");
  std::vector<std::pair<bool, std::shared_ptr<const ElasticQuota>>> found;
  Status none = NotFound(fmt::format("--quota: there is no quota of {}", name));
  if (!objects.context) return none;
  for (const auto& [key, quota] : objects.context->composite_quotas.rows()) {
    if (IsNamed(*quota, name)) found.emplace_back(true, quota);
  }
  for (const auto& [key, quota] : objects.context->quotas.rows()) {
    if (IsNamed(*quota, name)) found.emplace_back(false, quota);
  }
  if (found.empty()) return none;
  if (found.size() > 1) {
    return Invalid(fmt::format("--quota: several quotas match {}: give NAMESPACE/NAME", name));
  }
  auto changed = std::make_shared<ElasticQuota>(*found[0].second);
  changed->min[std::string(resource)] = amount;
  const auto max = changed->max.find(resource);
  if (max != changed->max.end() && max->second < amount) max->second = amount;
  auto& table = found[0].first ? objects.context->composite_quotas : objects.context->quotas;
  table.Set(changed->Key(), changed);
  return Status::Ok();
}

// The node of each pod that starts; "" if others are evicted for it first.
std::map<std::string, std::string> StartsIn(const PlannedOutcome& outcome) {
  std::map<std::string, std::string> starts;
  for (const planning::PodOutcome& pod : outcome.plan.pods) {
    if (pod.placed) starts[pod.pod->Key()] = pod.node;
  }
  for (const auto& [pod, victims] : outcome.victims) starts.try_emplace(pod, "");
  return starts;
}

std::map<std::string, std::string> VictimsIn(const PlannedOutcome& outcome) {
  std::map<std::string, std::string> victims;
  for (const auto& [pod, keys] : outcome.victims) {
    for (const std::string& key : keys) victims.try_emplace(key, pod);
  }
  return victims;
}

void AddList(std::string& text, std::string_view title, const std::vector<std::string>& rows) {
  if (rows.empty()) return;
  text += fmt::format("{} ({})\n", title, rows.size());
  for (const std::string& row : rows) text += "  " + Printable(row) + "\n";
}

std::vector<std::string> RowsOf(const std::vector<ChangeReport::Pair>& pairs,
                                std::string_view joined, std::string_view otherwise) {
  std::vector<std::string> rows;
  for (const auto& [pod, other] : pairs) {
    rows.push_back(pod +
                   (other.empty() ? std::string(otherwise) : fmt::format("{}{}", joined, other)));
  }
  return rows;
}

JsonArray PairsJson(const std::vector<ChangeReport::Pair>& pairs, const char* second) {
  JsonArray json;
  for (const auto& [pod, other] : pairs) json.push_back(JsonObject{{"pod", pod}, {second, other}});
  return json;
}

}  // namespace

Result<ClusterObjects> WithChange(const ClusterObjects& objects, const ClusterChange& change,
                                  const gpu::Catalogue& catalogue) {
  ClusterObjects changed = objects;
  int number = 0;
  for (const std::string& name : change.add_nodes) {
    NOS_ASSIGN(auto node, NodeLike(name, number++, objects, catalogue));
    changed.nodes.push_back(std::move(node));
  }
  for (const std::string& name : change.remove_nodes) {
    NOS_RETURN_IF_ERROR(RemoveNode(name, changed));
  }
  for (const std::string& quota : change.quotas) {
    NOS_RETURN_IF_ERROR(ChangeQuota(quota, changed));
  }
  return changed;
}

ChangeReport CompareOutcomes(const ClusterObjects& before, const ClusterObjects& after,
                             const PlannedOutcome& plan_before, const PlannedOutcome& plan_after) {
  const auto started = StartsIn(plan_before), starts = StartsIn(plan_after);
  const auto victims_before = VictimsIn(plan_before), victims = VictimsIn(plan_after);
  std::map<std::string, SharedPod> now;
  for (const SharedPod& pod : after.pods) now[pod->Key()] = pod;
  ChangeReport report;
  for (const SharedPod& pod : before.pods) {
    const std::string key = pod->Key();
    const auto start = starts.find(key);
    const auto left = now.find(key);
    const bool runs = !pod->node_name.empty() && !pod->Finished();
    if (!runs) {
      if (start != starts.end() && !started.contains(key)) report.start.push_back(*start);
      if (start == starts.end() && started.contains(key)) report.wait.push_back(key);
    } else if (left == now.end()) {
      report.gone.push_back(key);
    } else if (left->second->node_name.empty()) {
      if (start != starts.end()) report.moved.push_back(*start);
      if (start == starts.end()) report.stuck.push_back(key);
    }
  }
  for (const auto& [victim, pod] : victims) {
    if (!victims_before.contains(victim)) report.evicted.emplace_back(victim, pod);
  }
  return report;
}

JsonObject ToJson(const ChangeReport& report) {
  const auto keys = [](const std::vector<std::string>& pods) {
    return JsonArray(pods.begin(), pods.end());
  };
  return {{"would_start", PairsJson(report.start, "node")},
          {"would_wait", keys(report.wait)},
          {"would_move", PairsJson(report.moved, "node")},
          {"would_be_pending", keys(report.stuck)},
          {"would_end", keys(report.gone)},
          {"would_evict", PairsJson(report.evicted, "for")}};
}

std::string ToText(const ChangeReport& report) {
  std::string text;
  AddList(text, "pending pods that would start",
          RowsOf(report.start, " on node ", " after evictions"));
  AddList(text, "pending pods that would not start any more", report.wait);
  AddList(text, "pods of removed nodes that would run again",
          RowsOf(report.moved, " on node ", " after evictions"));
  AddList(text, "pods of removed nodes that would be pending", report.stuck);
  AddList(text, "pods of removed nodes that nobody starts again", report.gone);
  AddList(text, "running pods that would be evicted", RowsOf(report.evicted, " for ", ""));
  return text.empty() ? "no pod would start or have to go\n" : text;
}

}  // namespace nos::cmd
