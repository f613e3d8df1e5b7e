#include "controllers/scheduler.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "controllers/condition.h"
#include "planning/live_filters.h"
#include "planning/pod_classes.h"
#include "scheduling/framework.h"
#include "scheduling/pod_state.h"

namespace nos::controllers {
namespace {

bool SameTaints(const std::vector<cluster::Taint>& left, const std::vector<cluster::Taint>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const cluster::Taint& a, const cluster::Taint& b) {
                      return std::tie(a.key, a.value, a.effect) ==
                             std::tie(b.key, b.value, b.effect);
                    });
}

// What a filter may look at; annotations and conditions change all the time and do not matter.
bool SameForPods(const cluster::Node& left, const cluster::Node& right) {
  return left.unschedulable == right.unschedulable && left.allocatable == right.allocatable &&
         left.meta.labels == right.meta.labels && SameTaints(left.taints, right.taints);
}

// Higher priority first, then the older one.
bool GoesFirst(const cluster::Pod& left, const cluster::Pod& right) {
  return std::tuple(-int64_t{left.priority}, left.meta.created, left.Key()) <
         std::tuple(-int64_t{right.priority}, right.meta.created, right.Key());
}

kube::ObjectReference Reference(const cluster::Pod& pod) {
  return {"Pod", pod.meta.ns, pod.meta.name, pod.meta.uid};
}

// Pods of one kind get the same verdicts from every node; "" for a pod that is one of its kind.
std::string KindOf(const cluster::Pod& pod, const scheduling::Framework& framework) {
  if (planning::HasLiveFilter(framework, pod)) return "";
  std::string kind = planning::ConstraintKey(pod);
  const cluster::ResourceVector requests = cluster::RequestsOf(pod);
  for (const auto& [id, amount] : requests.entries()) {
    kind += fmt::format("|{}={}", id, amount);
  }
  return kind;
}

// Whether the request may have taken effect although no answer came.
bool IsUncertain(const Status& status) {
  return status.code() == Code::kDeadline || status.code() == Code::kUnavailable;
}

}  // namespace

Scheduler::Scheduler(SchedulerConfig config, const scheduling::Framework& framework,
                     const gpu::Catalogue& catalogue)
    : config_(std::move(config)), framework_(framework), catalogue_(catalogue) {}

Outcome Scheduler::Reconcile(const std::string&, const View& view, kube::Client& client,
                             const Clock& clock) {
  const Time now = clock.Now();
  const bool nodes_improved = NodesImproved(view);
  const bool pods_left = PodsLeft(view);
  if (nodes_improved || pods_left) unfit_.clear();
  ForgetSettled(view, now);
  std::vector<Pod> waiting = Waiting(view);
  const bool more = waiting.size() > config_.binds_per_call;
  if (more) waiting.resize(config_.binds_per_call);
  if (!waiting.empty()) {
    const Status error = TryAll(waiting, view, client, now);
    if (!error.ok()) return Outcome::Failed(error);
  }
  if (more) return Outcome::Again(Duration::zero());
  return assumed_.empty() ? Outcome::Done() : Outcome::Again(config_.assume_for);
}

bool Scheduler::NodesImproved(const View& view) {
  bool improved = false;
  std::map<std::string, Node> nodes;
  for (const Node& node : *view.nodes.Snapshot()) {
    const auto before = nodes_.find(node->meta.name);
    improved = improved || before == nodes_.end() ||
               (before->second != node && !SameForPods(*before->second, *node));
    nodes.emplace_hint(nodes.end(), node->meta.name, node);
  }
  nodes_ = std::move(nodes);
  return improved;
}

// Whether a pod that held resources does not any more.
bool Scheduler::PodsLeft(const View& view) {
  std::map<std::string, std::string> bound;
  for (const Pod& pod : *view.pods.Snapshot()) {
    if (pod->node_name.empty() || pod->Finished()) continue;
    bound.emplace_hint(bound.end(), pod->Key(), pod->meta.uid);  // they come sorted
  }
  const bool left = !std::includes(bound.begin(), bound.end(), bound_.begin(), bound_.end());
  bound_ = std::move(bound);
  return left;
}

void Scheduler::ForgetSettled(const View& view, Time now) {
  const auto settled = [&](const Pod& pod) {
    const Pod present = view.pods.Get(pod->Key());
    return present == nullptr || present->meta.uid != pod->meta.uid ||
           !present->node_name.empty() || present->Finished();
  };
  std::erase_if(assumed_, [&](const auto& item) {
    return item.second.until <= now || settled(item.second.pod);
  });
  std::erase_if(unfit_, [&](const auto& item) { return settled(item.second); });
}

std::vector<Scheduler::Pod> Scheduler::Waiting(const View& view) const {
  std::vector<Pod> waiting;
  for (const Pod& pod : *view.pods.Snapshot()) {
    if (scheduling::IsSchedulable(*pod) && config_.scheduler_names.contains(pod->scheduler_name) &&
        !assumed_.contains(pod->Key()) && !AlreadyTried(pod)) {
      waiting.push_back(pod);
    }
  }
  std::sort(waiting.begin(), waiting.end(),
            [](const Pod& left, const Pod& right) { return GoesFirst(*left, *right); });
  return waiting;
}

// A pod counts as another one when something changed that the filters could see.
bool Scheduler::AlreadyTried(const Pod& pod) const {
  const auto found = unfit_.find(pod->Key());
  if (found == unfit_.end()) return false;
  const cluster::Pod& tried = *found->second;
  return tried.meta.uid == pod->meta.uid && tried.meta.labels == pod->meta.labels &&
         tried.tolerations.size() == pod->tolerations.size();
}

cluster::ClusterSnapshot Scheduler::Picture(const View& view) const {
  cluster::ClusterSnapshot snapshot =
      cluster::ClusterSnapshot::Build(*view.nodes.Snapshot(), *view.pods.Snapshot(), catalogue_);
  for (const auto& [key, assumed] : assumed_) {
    // A node that is gone takes its pods along.
    (void)snapshot.Bind(assumed.pod, assumed.node);
  }
  return snapshot;
}

Status Scheduler::TryAll(const std::vector<Pod>& waiting, const View& view, kube::Client& client,
                         Time now) {
  cluster::ClusterSnapshot snapshot = Picture(view);
  // Pods tried in vain are demand too.
  std::vector<Pod> pending;
  std::ranges::copy_if(*view.pods.Snapshot(), std::back_inserter(pending),
                       [](const Pod& pod) { return scheduling::IsPending(*pod); });
  const scheduling::CycleState learnt = framework_.Learn(snapshot, pending);
  Refusals refusals;
  Status error;
  for (const Pod& pod : waiting) {
    if (Status tried = TryOne(pod, snapshot, learnt, refusals, client, now); !tried.ok()) {
      error = std::move(tried);
    }
  }
  return error;
}

Status Scheduler::TryOne(const Pod& pod, cluster::ClusterSnapshot& snapshot,
                         const scheduling::CycleState& learnt, Refusals& refusals,
                         kube::Client& client, Time now) {
  const std::string kind = KindOf(*pod, framework_);
  const auto refused = refusals.find(kind);
  if (refused != refusals.end()) return Refuse(pod, refused->second, client, now);
  const scheduling::Decision decision = framework_.Schedule(*pod, snapshot, learnt);
  if (decision.node == nullptr) {
    std::string why = decision.diagnosis.ToString();
    if (!kind.empty()) refusals.emplace(kind, why);
    return Refuse(pod, why, client, now);
  }
  return BindTo(decision.node->node->meta.name, pod, snapshot, client, now);
}

Status Scheduler::BindTo(const std::string& node, const Pod& pod,
                         cluster::ClusterSnapshot& snapshot, kube::Client& client, Time now) {
  const Status bound = client.Bind(pod->meta.ns, pod->meta.name, node);
  if (bound.code() == Code::kNotFound) return Status::Ok();  // the pod is gone
  if (bound.ok() || IsUncertain(bound)) {
    assumed_[pod->Key()] = {pod, node, now + config_.assume_for};
    NOS_RETURN_IF_ERROR(snapshot.Bind(pod, node));
  }
  if (!bound.ok()) return bound.Within("bind " + pod->Key());
  events_.Record(client, Reference(*pod), kube::EventType::kNormal, "Scheduled",
                 fmt::format("Successfully assigned {} to {}", pod->Key(), node), now);
  return Status::Ok();
}

Status Scheduler::Refuse(const Pod& pod, const std::string& why, kube::Client& client, Time now) {
  const WantedCondition condition{"PodScheduled", "False", "Unschedulable", why};
  if (!HasCondition(*pod, condition)) {
    const Status written = WriteCondition(client, *pod, condition, now);
    if (written.code() == Code::kNotFound) return Status::Ok();
    NOS_RETURN_IF_ERROR(written.Within("write condition of " + pod->Key()));
    events_.Record(client, Reference(*pod), kube::EventType::kWarning, "FailedScheduling", why,
                   now);
  }
  unfit_[pod->Key()] = pod;
  return Status::Ok();
}

}  // namespace nos::controllers
