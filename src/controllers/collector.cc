#include "controllers/collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/millis.h"
#include "controllers/pool_standing.h"
#include "dra/context.h"
#include "dra/device_index.h"
#include "quota/balance.h"
#include "reconcile/condition.h"
#include "reconcile/plan_result.h"

namespace nos::controllers {
namespace {

bool IsOnNode(const cluster::Pod* pod) {
  return pod != nullptr && !pod->node_name.empty() && !pod->Finished();
}

bool WasPreempted(const cluster::Pod& pod) {
  const cluster::Condition* target = pod.FindCondition("DisruptionTarget");
  return target != nullptr && target->status == "True" && target->reason == "PreemptionByScheduler";
}

// The end of the last container as the kubelet reports it; else the time when Ready became False;
// `seen` if neither is known, and as the upper limit. An end before the start of the pod is
// ignored.
Time EndOf(const cluster::Pod& pod, Time seen) {
  const Time began = pod.started.value_or(pod.meta.created);
  if (pod.ended && *pod.ended >= began) return std::min(*pod.ended, seen);
  const cluster::Condition *ready = pod.FindCondition("Ready"),
                           *initialized = pod.FindCondition("Initialized");
  const bool said = ready != nullptr && initialized != nullptr && ready->status == "False" &&
                    ready->last_transition > initialized->last_transition;
  return said ? std::min(ready->last_transition, seen) : seen;
}

// "plan/gpu-1/5e0c4d7a/7". The id contains the node's UID because plan numbers restart with a new
// Node object of the same name.
std::string PlanIdOf(const cluster::Node& node, const std::string& plan) {
  return fmt::format("plan/{}/{}/{}", node.meta.name, node.meta.uid.substr(0, 8), plan);
}

// "" without a plan.
std::string PlanIdOf(const cluster::Node& node) {
  const std::string plan = cluster::SpecPlan(node);
  return plan.empty() ? "" : PlanIdOf(node, plan);
}

JsonObject NameOf(const cluster::Pod& pod) {
  return {{"namespace", pod.meta.ns}, {"name", pod.meta.name}};
}

std::string_view AnnotationOf(const cluster::Node& node, std::string_view key) {
  const auto found = node.meta.annotations.find(key);
  return found == node.meta.annotations.end() ? std::string_view() : found->second;
}

// Completes the record of a plan that the agent has acknowledged.
void SetResult(const cluster::Node& node, const std::string& plan, JsonObject& record) {
  const auto result = reconcile::ReadPlanResult(AnnotationOf(node, cluster::kPlanResult));
  const bool failed = result.ok() && result->plan == plan && !result->applied;
  record["state"] = failed ? "failed" : "applied";
  record["summary"] = failed ? fmt::format("failed to repartition GPUs of Node {}", node.meta.name)
                             : fmt::format("repartitioned GPUs of Node {}", node.meta.name);
  record["why"] = failed ? reconcile::Describe(result->obstacles) : "";
}

}  // namespace

std::vector<std::string_view> CollectorKinds() {
  return {cluster::kElasticQuota, cluster::kCompositeQuota, dra::kClaimKind};
}

Collector::Collector(const gpu::Catalogue& catalogue, Report report, CollectorOptions options)
    : catalogue_(catalogue), report_(std::move(report)), options_(std::move(options)) {}

bool Collector::Lead(bool leads) {
  if (leads == leads_) return false;
  leads_ = leads;
  reported_.all = false;
  watch_.reset();
  jobs_ = JobTally();
  pools_.by_name.clear();
  early_.clear();
  return true;
}

reconcile::ReconcileResult Collector::Reconcile(const std::string&, const reconcile::Listers& view,
                                                kube::Client&, const Clock& clock) {
  if (!leads_) return reconcile::ReconcileResult::Done();
  now_ = clock.Now();
  if (!reported_.all || view.changes->everything) {
    ReportAll(view);
  } else {
    FollowContext(view);
    for (const auto& change : view.changes->nodes) TakeInNode(view, change.before, change.after);
    for (const auto& change : view.changes->pods) TakeInPod(change.before, change.after);
    for (const std::string& node : std::exchange(dirty_nodes_, {})) ReportNode(view, node);
  }
  ReportChanges();
  return reconcile::ReconcileResult::Done();
}

void Collector::ReportAll(const reconcile::Listers& view) {
  pods_.clear();
  jobs_.ClearPods();
  reported_.jobs = false;
  reported_.pools.clear();
  pools_.changed = true;
  reported_.nodes.clear();
  reported_.quotas.clear();
  on_node_.clear();
  plans_.clear();
  users_.clear();
  context_ = view.context->Collect();
  TakeInQuotas(view);
  for (const Pod& pod : *view.pods.Snapshot()) TakeInPod(nullptr, pod);
  for (const Node& node : *view.nodes.Snapshot()) TakeInNode(view, nullptr, node);
  dirty_nodes_.clear();
  ReportPresent(view);
  reported_.all = true;
  reported_.all_at = now_;
}

void Collector::ReportPresent(const reconcile::Listers& view) {
  JsonArray pods, nodes, quotas;
  for (const Pod& pod : *view.pods.Snapshot()) pods.emplace_back(pod->meta.uid);
  for (const Node& node : *view.nodes.Snapshot()) nodes.emplace_back(node->meta.name);
  for (const auto& [id, last] : reported_.quotas) quotas.emplace_back(id);
  ReportPresent("pod", std::move(pods));
  ReportPresent("node", std::move(nodes));
  ReportPresent("quota", std::move(quotas));
}

void Collector::ReportPresent(std::string_view what, JsonArray ids) {
  Emit({{"kind", "present"}, {"what", what}, {"ids", std::move(ids)}});
}

void Collector::FollowContext(const reconcile::Listers& view) {
  bool quotas = false;
  std::set<std::string> users;
  for (const reconcile::ContextChange& change : view.changes->context) {
    change.apply(context_);
    if (change.kind != dra::kClaimKind) {
      quotas = true;
      continue;
    }
    const auto found = users_.find(change.key);
    if (found != users_.end()) users.insert(found->second.begin(), found->second.end());
  }
  if (quotas) TakeInQuotas(view);
  for (const std::string& key : users) {
    if (const Pod pod = view.pods.Get(key)) ReportPod(*pod);
  }
}

// Recomputed from all quotas: a quota can take effect or lose it when another one changes.
void Collector::TakeInQuotas(const reconcile::Listers& view) {
  const quota::Balance balance(quota::QuotasOf(context_));
  std::map<std::string, std::string, std::less<>> quota_of;
  for (size_t i = 0; i < balance.size(); ++i) {
    const quota::Terms& terms = balance.terms(i);
    for (const std::string& ns : terms.namespaces) quota_of.emplace(ns, terms.quota->Key());
  }
  const bool changed = quota_of != quota_of_;
  quota_of_ = std::move(quota_of);
  ReportQuotas();
  if (!changed || !reported_.all) return;
  for (const Pod& pod : *view.pods.Snapshot()) ReportPod(*pod);
}

void Collector::ReportQuotas() {
  std::set<std::string> there;
  for (const quota::SharedQuota& quota : quota::QuotasOf(context_)) {
    const std::string id = IdOf(*quota);
    there.insert(id);
    ReportNew(reported_.quotas[id], QuotaRecord(*quota));
  }
  std::erase_if(reported_.quotas, [&](const auto& last) {
    if (there.contains(last.first)) return false;
    ReportRemoved("quota", last.first);
    return true;
  });
}

void Collector::TakeInPod(const Pod& before, const Pod& after) {
  const bool replaced =
      before != nullptr && after != nullptr && before->meta.uid != after->meta.uid;
  if (before != nullptr && (after == nullptr || replaced)) {
    pods_.erase(before->meta.uid);
    jobs_.Remove(before->meta.uid);
    ReportRemoved("pod", before->meta.uid);
  }
  if (before != nullptr) {
    for (const std::string& claim : dra::SpecClaimKeysOf(*before)) {
      std::set<std::string>& users = users_[claim];
      users.erase(before->Key());
      if (users.empty()) users_.erase(claim);
    }
  }
  if (IsOnNode(before.get())) {
    auto& on_node = on_node_[before->node_name];
    on_node.erase(before->meta.uid);
    if (on_node.empty()) on_node_.erase(before->node_name);
    dirty_nodes_.insert(before->node_name);
  }
  if (after == nullptr) return;
  for (const std::string& claim : dra::SpecClaimKeysOf(*after)) users_[claim].insert(after->Key());
  if (IsOnNode(after.get())) {
    on_node_[after->node_name][after->meta.uid] = after;
    dirty_nodes_.insert(after->node_name);
  }
  ReportPod(*after);
  if (!reported_.all) return;
  const bool known = before != nullptr && !replaced;
  if (IsOnNode(after.get()) && !(known && IsOnNode(before.get()))) ReportServed(*after);
  if (WasPreempted(*after) && !(known && WasPreempted(*before))) ReportEviction(*after);
}

void Collector::ReportPod(const cluster::Pod& pod) {
  Known& known = pods_[pod.meta.uid];
  known.ns = pod.meta.ns;
  known.name = pod.meta.name;
  if (pod.Finished() && known.finished == Time()) known.finished = EndOf(pod, now_);
  jobs_.Put(pod, known.finished);
  const auto quota = quota_of_.find(pod.meta.ns);
  ReportNew(known.record, PodRecord(pod, DevicesOf(pod, context_),
                                    quota == quota_of_.end() ? "" : quota->second, known.finished));
}

void Collector::TakeInNode(const reconcile::Listers& view, const Node& before, const Node& after) {
  const std::string& name = (after != nullptr ? after : before)->meta.name;
  pools_.changed |= CountsOtherwise(before.get(), after.get());
  if (after == nullptr) {
    reported_.nodes.erase(name);
    plans_.erase(name);
    dirty_nodes_.erase(name);
    return ReportRemoved("node", name);
  }
  ReportNode(view, name);
  ReportPlan(before, *after);
}

void Collector::ReportNode(const reconcile::Listers& view, const std::string& name) {
  const Node node = view.nodes.Get(name);
  if (node == nullptr) return;
  NodeRequests requested;
  if (const auto on = on_node_.find(name); on != on_node_.end()) {
    for (const auto& [uid, pod] : on->second) requested.Add(*pod);
  }
  ReportNew(reported_.nodes[name], NodeRecord(*node, requested));
}

// Reports a new plan, and later its result. The time of a plan from before the start is unknown.
void Collector::ReportPlan(const Node& before, const cluster::Node& after) {
  const std::string id = PlanIdOf(after);
  if (id.empty()) return;
  Plan& plan = plans_[after.meta.name];
  const bool done = cluster::StatusPlan(after) == cluster::SpecPlan(after);
  if (plan.id != id) {
    // A Node object of the same name may be another node.
    if (plan.open && before != nullptr && before->meta.uid == after.meta.uid) {
      // Its result and the next plan may be seen at once.
      const std::string number = cluster::StatusPlan(after);
      const bool ended = !number.empty() && plan.id == PlanIdOf(after, number);
      if (ended) {
        SetResult(after, number, plan.record);
      } else {
        plan.record["state"] = "superseded";
        plan.record["why"] = "another plan of the Node replaced it";
      }
      Emit(std::move(plan.record));
    }
    const bool fresh =
        before != nullptr && before->meta.uid == after.meta.uid && PlanIdOf(*before) != id;
    plan = {id, {}, now_, fresh || !done, {}};
    if (!plan.open) return;  // completed before this process started
    const cluster::NodeGpus was = ReadNodeGpus(fresh ? *before : after, catalogue_);
    const cluster::NodeGpus gpus = ReadNodeGpus(after, catalogue_);
    plan.added = SlicesAdded(was, after, gpus);
    const JsonObject repartitioned{
        {"node", after.meta.name}, {"before", LayoutOf(was)}, {"after", TargetOf(after, gpus)}};
    plan.record = {{"kind", "decision"},
                   {"id", id},
                   {"type", "plan"},
                   {"summary", fmt::format("repartitioning GPUs of Node {}", after.meta.name)},
                   {"nodes", JsonArray{repartitioned}},
                   {"pods", JsonArray()},
                   {"victims", JsonArray()},
                   {"state", "planned"},
                   {"why", ""}};
    if (fresh) plan.record["made"] = ToMillis(now_);
    Emit(plan.record);
  }
  if (!plan.open || !done) return;
  plan.open = false;
  SetResult(after, cluster::SpecPlan(after), plan.record);
  if (plan.record["state"] == Json("failed")) plan.added.clear();
  if (plan.record.contains("made")) {
    plan.record["took_ms"] = ToMillis(now_) - ToMillis(plan.made);
  }
  Emit(plan.record);
}

// True for a pod that existed when the plan was made and takes slices that the plan added on its
// node.
void Collector::ReportServed(const cluster::Pod& pod) {
  const auto found = plans_.find(pod.node_name);
  if (found == plans_.end() || pod.meta.created > found->second.made) return;
  Plan& plan = found->second;
  bool served = false;
  for (const auto& [resource, amount] : cluster::PodRequests(pod)) {
    const auto added = plan.added.find(resource);
    if (added == plan.added.end() || amount.Value() <= 0) continue;
    served = true;
    added->second -= amount.Value();
    if (added->second <= 0) plan.added.erase(added);
  }
  if (!served) return;
  plan.record["pods"].get_array().emplace_back(NameOf(pod));
  Emit(plan.record);
}

void Collector::ReportEviction(const cluster::Pod& pod) {
  const bool reclaimed = reconcile::WhyReclaimed(pod) != nullptr;
  JsonArray pods;
  if (const auto known = pods_.find(reconcile::PreemptorOf(pod)); known != pods_.end()) {
    pods.push_back({{"namespace", known->second.ns}, {"name", known->second.name}});
  }
  Emit({{"kind", "decision"},
        {"id", "eviction/" + pod.meta.uid},
        {"type", reclaimed ? "reclaim" : "preemption"},
        {"summary", fmt::format("evicting Pod {} from Node {}", pod.Key(), pod.node_name)},
        {"node", pod.node_name},
        {"nodes", JsonArray()},
        {"pods", std::move(pods)},
        {"victims", JsonArray{NameOf(pod)}},
        {"state", "applied"},
        {"why", reclaimed ? "an elastic quota guarantees these resources to another Pod"
                          : "another Pod has a higher priority"}});
}

void Collector::Emit(JsonObject record) {
  record["at"] = ToMillis(now_);
  records_.emplace_back(std::move(record));
}

void Collector::ReportNew(std::string& last, JsonObject record) {
  std::string text = WriteJson(Json(record));
  if (std::exchange(last, text) != text) Emit(std::move(record));
}

void Collector::ReportRemoved(std::string_view what, const std::string& id) {
  Emit({{"kind", "removed"}, {"what", what}, {"id", id}});
}

}  // namespace nos::controllers
