#include "controllers/extender.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "scheduling/framework.h"
#include "scheduling/pod_state.h"
#include "scheduling/reasons.h"
#include "scheduling/registry.h"

namespace nos::controllers {
namespace {

using cluster::ClusterSnapshot;
using scheduling::Framework;
using scheduling::Verdict;

constexpr std::string_view kGpuPrefix = "nvidia.com/";
constexpr int64_t kBest = 10;  // MaxExtenderPriority
constexpr const char* kNotSynced = "nos has not read the cluster yet";

// The plugins for GPUs only.
Framework GpuFramework() {
  std::vector<Framework::Entry> entries;
  std::vector<std::string> problems;
  const scheduling::ConfigValue no_arguments(nullptr, "", problems);
  for (const scheduling::RegisteredPlugin& plugin : scheduling::RegisteredPlugins()) {
    const bool packs = plugin.name == "GpuPacking";
    if (!packs && plugin.name != "NodeResourcesFit") continue;
    entries.push_back({plugin.make(no_arguments, {.packs_gpus = true}), packs ? 1 : 0});
  }
  return Framework(std::move(entries));
}

cluster::ResourceList GpusOf(const cluster::ResourceList& all) {
  cluster::ResourceList gpus;
  for (const auto& [name, amount] : all) {
    if (name.starts_with(kGpuPrefix)) gpus.emplace(name, amount);
  }
  return gpus;
}

// The pod, reduced to its GPU requests.
cluster::Pod GpuPartOf(const cluster::Pod& pod) {
  cluster::Pod part;
  part.meta = pod.meta;
  part.priority = pod.priority;
  part.containers = pod.containers;
  part.init_containers = pod.init_containers;
  for (auto* containers : {&part.containers, &part.init_containers}) {
    for (cluster::Container& container : *containers) {
      container.requests = GpusOf(container.requests);
      container.limits = GpusOf(container.limits);
      container.host_ports.clear();
    }
  }
  return part;
}

bool AsksForGpus(const cluster::Pod& part) {
  return std::ranges::any_of(cluster::PodRequests(part),
                             [](const auto& asked) { return asked.second.Value() > 0; });
}

Extender::Answer Bad(std::string_view verb, const Status& why) {
  return {400, fmt::format("{}: {}\n", verb, why.message())};
}

}  // namespace

Extender::Extender(const gpu::Catalogue& catalogue, Duration assume_for)
    : framework_(std::make_unique<scheduling::Framework>(GpuFramework())),
      assume_for_(assume_for),
      engine_(catalogue) {}
Extender::~Extender() = default;

reconcile::ReconcileResult Extender::Reconcile(const std::string&, const reconcile::Listers& view,
                                               kube::Client&, const Clock& clock) {
  const std::scoped_lock lock(mutex_);
  if (view.changes->everything) {
    for (const auto& node : *view.nodes.Snapshot()) engine_.SetNode(node);
    for (const Pod& pod : *view.pods.Snapshot()) TakeInPod(nullptr, pod);
    synced_ = true;
  } else {
    for (const auto& change : view.changes->nodes) {
      change.after == nullptr ? engine_.RemoveNode(change.before->meta.name)
                              : engine_.SetNode(change.after);
    }
    for (const auto& change : view.changes->pods) TakeInPod(change.before, change.after);
  }
  const Time now = clock.Now();
  std::optional<Time> next;
  for (auto it = assumed_.begin(); it != assumed_.end();) {
    const std::string key = it->first;
    const Time until = (it++)->second.until;
    if (until <= now) {
      Log(LogLevel::kWarn, "releasing assumed Pod whose binding was never observed",
          {{"pod", key}});
      Forget(key);
    } else {
      next = next ? std::min(*next, until) : until;
    }
  }
  return next ? reconcile::ReconcileResult::Again(*next - now) : reconcile::ReconcileResult::Done();
}

void Extender::TakeInPod(const Pod& before, const Pod& after) {
  pods_known_ += after != nullptr ? 1 : 0;
  pods_known_ -= before != nullptr ? 1 : 0;
  const bool same =
      before != nullptr && after != nullptr && before->Finished() == after->Finished();
  changes_since_learning_ += same ? 0 : 1;
  if (after == nullptr) {
    waiting_.erase(before->Key());
    assumed_.erase(before->Key());
    return engine_.RemovePod(before->Key());
  }
  const std::string key = after->Key();
  engine_.SetPod(after);
  if (!engine_.IsAssumed(key)) assumed_.erase(key);
  if (scheduling::IsPending(*after)) {
    waiting_[key] = after;
  } else {
    waiting_.erase(key);
  }
}

Extender::Answer Extender::Handle(std::string_view verb, std::string_view body,
                                  kube::Client& client, const Clock& clock) {
  if (verb == "filter" || verb == "prioritize") {
    auto nodes = ReadExtenderNodes(body);
    if (!nodes.ok()) return Bad(verb, nodes.status());
    return verb == "filter" ? Filter(*std::move(nodes)) : Prioritize(*nodes);
  }
  if (verb == "bind") {
    const auto binding = ReadExtenderBinding(body);
    return binding.ok() ? Bind(*binding, client, clock) : Bad(verb, binding.status());
  }
  if (verb == "preempt") {
    const auto victims = ReadExtenderVictims(body);
    return victims.ok() ? Preempt(*victims) : Bad(verb, victims.status());
  }
  return {404, "the verbs are filter, prioritize, bind and preempt\n"};
}

Verdict Extender::Ask(const cluster::Pod& asked, const ClusterSnapshot& snapshot,
                      std::string_view node) const {
  const cluster::NodeInfo* info = snapshot.Find(node);
  if (info == nullptr) {
    return Verdict::Unschedulable(scheduling::codes::kNodeUnknown,
                                  "nos does not know this node yet");
  }
  // kube-scheduler checks the number of pods itself.
  cluster::NodeInfo gpus = *info;
  gpus.allocatable.Set(cluster::kPods, std::numeric_limits<int64_t>::max());
  return framework_->Filter(framework_->PreFilter(asked, snapshot), asked, gpus);
}

Extender::Answer Extender::Filter(ExtenderNodes nodes) {
  const cluster::Pod asked = GpuPartOf(nodes.pod);
  if (!AsksForGpus(asked)) return {200, FilterAnswer(std::move(nodes), {})};
  ClusterSnapshot snapshot;
  {
    const std::scoped_lock lock(mutex_);
    if (!synced_) return {200, FilterError(kNotSynced)};
    snapshot = engine_.snapshot();
    // The pod is scheduled again, so its earlier binding must not count against it.
    const auto own = assumed_.find(nodes.pod.Key());
    if (own != assumed_.end()) (void)snapshot.Unbind(*own->second.pod, own->second.node);
  }
  ExtenderRefusals refusals;
  for (const std::string& name : nodes.names) {
    const Verdict verdict = Ask(asked, snapshot, name);
    if (verdict.fits()) continue;
    const bool hopeless = verdict.kind == Verdict::Kind::kUnresolvable;
    (hopeless ? refusals.unresolvable : refusals.failed)[name] = verdict.message;
  }
  return {200, FilterAnswer(std::move(nodes), refusals)};
}

Extender::Answer Extender::Prioritize(const ExtenderNodes& nodes) {
  const cluster::Pod asked = GpuPartOf(nodes.pod);
  std::vector<int64_t> scores(nodes.names.size(), 0);
  // Precomputed score data grows during scoring, so calls are serialized.
  const std::scoped_lock lock(mutex_);
  if (!synced_ || !AsksForGpus(asked)) return {200, PrioritizeAnswer(nodes.names, scores)};
  const ClusterSnapshot& snapshot = engine_.snapshot();
  if (changes_since_learning_ * 50 >= pods_known_ && changes_since_learning_ > 0) {
    changes_since_learning_ = 0;
    std::vector<Pod> waiting;
    waiting.reserve(waiting_.size());
    for (const auto& [key, pod] : waiting_) waiting.push_back(pod);
    precomputed_ = framework_->Precompute(snapshot, waiting);
  }
  std::vector<const cluster::NodeInfo*> known;
  std::vector<size_t> where;
  for (size_t i = 0; i < nodes.names.size(); ++i) {
    const cluster::NodeInfo* info = snapshot.Find(nodes.names[i]);
    if (info == nullptr) continue;
    known.push_back(info);
    where.push_back(i);
  }
  const auto cycle = framework_->PreFilter(asked, snapshot);
  const std::vector<int64_t> totals =
      framework_->Score(cycle, asked, snapshot, known, precomputed_);
  for (size_t i = 0; i < totals.size(); ++i) {
    scores[where[i]] = (totals[i] * kBest + scheduling::kMaxScore / 2) / scheduling::kMaxScore;
  }
  return {200, PrioritizeAnswer(nodes.names, scores)};
}

// `before` receives an earlier binding of the pod whose outcome is unknown.
Status Extender::Assume(const Pod& pod, const std::string& node, Time now,
                        std::optional<Assumed>& before) {
  const std::scoped_lock lock(mutex_);
  if (!synced_) return {Code::kUnavailable, kNotSynced};
  const auto* placed = engine_.FindPlaced(pod->Key());
  if (placed != nullptr && !placed->assumed && placed->pod->meta.uid == pod->meta.uid) {
    return {Code::kConflict, fmt::format("it is bound to {} already", placed->node)};
  }
  const cluster::Pod asked = GpuPartOf(*pod);
  if (const auto known = assumed_.find(pod->Key()); known != assumed_.end()) before = known->second;
  Forget(pod->Key());
  if (AsksForGpus(asked)) {
    const Verdict verdict = Ask(asked, engine_.snapshot(), node);
    if (!verdict.fits()) {
      Restore(before);
      return {Code::kConflict, fmt::format("{}: {}", node, verdict.message)};
    }
  }
  engine_.Assume(pod, node);
  assumed_[pod->Key()] = {pod, node, now + assume_for_};
  return Status::Ok();
}

void Extender::Forget(const std::string& key) {
  engine_.Forget(key);
  assumed_.erase(key);
}

// The earlier binding may have succeeded, and may be why the new one is refused.
void Extender::Restore(const std::optional<Assumed>& before) {
  if (!before || engine_.FindPlaced(before->pod->Key()) != nullptr) return;
  engine_.Assume(before->pod, before->node);
  assumed_[before->pod->Key()] = *before;
}

Extender::Answer Extender::Bind(const ExtenderBinding& binding, kube::Client& client,
                                const Clock& clock) {
  const std::string key = kube::KeyOf(binding.ns, binding.pod);
  Pod pod;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = waiting_.find(key); found != waiting_.end()) pod = found->second;
  }
  if (pod == nullptr || pod->meta.uid != binding.uid) {
    const auto stored = client.Get(kube::kPods, binding.ns, binding.pod);
    if (!stored.ok()) return {200, BindAnswer(stored.status().ToString())};
    auto decoded = cluster::DecodePod(JsonSource(*stored));
    if (!decoded.ok()) return {200, BindAnswer(decoded.status().ToString())};
    pod = std::make_shared<const cluster::Pod>(*std::move(decoded));
  }
  if (pod->meta.uid != binding.uid) return {200, BindAnswer("it is another pod by now")};
  if (!pod->node_name.empty()) {
    return {200, BindAnswer(fmt::format("it is bound to {} already", pod->node_name))};
  }
  std::optional<Assumed> before;
  const Status assumed = Assume(pod, binding.node, clock.Now(), before);
  if (!assumed.ok()) return {200, BindAnswer(assumed.message())};
  const Status bound = client.Bind(binding.ns, binding.pod, binding.node, binding.uid);
  const bool uncertain = bound.code() == Code::kDeadline || bound.code() == Code::kUnavailable;
  if (!bound.ok() && !uncertain) {
    const std::scoped_lock lock(mutex_);
    Forget(key);
    Restore(before);
  }
  return {200, BindAnswer(bound.ok() ? "" : bound.ToString())};
}

Extender::Answer Extender::Preempt(const ExtenderVictims& victims) {
  const cluster::Pod asked = GpuPartOf(victims.pod);
  if (!AsksForGpus(asked)) return {200, PreemptAnswer(victims.nodes)};
  ClusterSnapshot snapshot;
  {
    const std::scoped_lock lock(mutex_);
    // Without caches no node passes.
    if (synced_) snapshot = engine_.snapshot();
  }
  std::map<std::string, ExtenderVictims::Node> left;
  for (const auto& [name, node] : victims.nodes) {
    const cluster::NodeInfo* info = snapshot.Find(name);
    if (info == nullptr) continue;
    ClusterSnapshot without = snapshot;
    for (const Pod& pod : info->pods) {
      const bool goes = std::ranges::find(node.uids, pod->meta.uid) != node.uids.end();
      if (goes) (void)without.Unbind(*pod, name);  // cannot fail: the pod is there
    }
    if (Ask(asked, without, name).fits()) left.emplace(name, node);
  }
  return {200, PreemptAnswer(left)};
}

}  // namespace nos::controllers
