#include "controllers/scheduler/preemption/nominations.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "controllers/scheduler/pods.h"
#include "controllers/scheduler/post.h"
#include "scheduling/framework.h"

namespace nos::controllers {

Status PatchNominatedNode(const cluster::Pod& pod, const std::string& node, kube::Client& client) {
  const Json patch = {{"metadata", {{"uid", pod.meta.uid}}},
                      {"status", {{"nominatedNodeName", node.empty() ? Json() : Json(node)}}}};
  return client
      .Patch(kube::kPods, pod.meta.ns, pod.meta.name, kube::PatchType::kStrategic, patch, "status")
      .status();
}

Nominations::Nominations(scheduling::Engine& engine, scheduling::SchedulingQueue& queue,
                         const BindingCycle& bindings, const TerminatingPods& terminating,
                         AgentWaits& waits, const Profiles& profiles, kube::Workers* workers)
    : engine_(engine),
      queue_(queue),
      bindings_(bindings),
      terminating_(terminating),
      waits_(waits),
      profiles_(profiles),
      workers_(workers) {}

void Nominations::Set(const Pod& pod, const std::string& node, Time now, bool by_others) {
  const std::string key = pod->Key();
  const std::string before = engine_.NomineeNode(key);
  engine_.Nominate(pod, node, by_others);
  if (before != node) {
    waits_.End(key);
    evicting_.erase(key);
  }
  if (before.empty() || before == node) return;
  const BindingCycle::Binding* binding = bindings_.Find(key);
  const std::string assumed = binding == nullptr ? "" : binding->node;
  if ((RunsSomewhere(pod) ? pod->node_name : assumed) == before) return;  // the pod runs on it
  auto left = std::make_shared<cluster::Pod>(*pod);
  left->node_name = before;
  queue_.OnClusterEvent({scheduling::ClusterEvent::Kind::kPodLeft, {}, {}, std::move(left), {}, {}},
                        now);
}

void Nominations::Write(const Pod& pod, const std::string& node, kube::Client& client) const {
  Post(workers_, client, [pod, node](kube::Client& with) {
    const Status written = PatchNominatedNode(*pod, node, with);
    if (!written.ok()) {  // this scheduler keeps the nomination
      Log(LogLevel::kWarn, "failed to patch nominated node of Pod",
          {{"pod", pod->Key()}, {"error", written.ToString()}});
    }
  });
}

void Nominations::Withdraw(const std::vector<Pod>& pods, kube::Client& client, Time now) {
  for (const Pod& pod : pods) {
    const bool written = !pod->nominated_node.empty();
    if (!written && engine_.NomineeNode(pod->Key()).empty()) continue;
    Set(pod, "", now);
    Write(pod, "", client);
  }
}

void Nominations::WriteRemovals(kube::Client& client) {
  for (const Pod& pod : std::exchange(to_remove_, {})) Write(pod, "", client);
}

std::vector<Nominations::Pod> Nominations::CrowdedOutBy(const cluster::Pod& pod,
                                                        const std::string& node) const {
  std::vector<Pod> lesser = engine_.NominatedBehind(node, pod);
  std::erase_if(lesser, [&](const Pod& other) { return engine_.IsAssumed(other->Key()); });
  if (lesser.empty()) return lesser;
  cluster::ClusterSnapshot snapshot = engine_.snapshot();
  terminating_.Vacate(terminating_.All(), snapshot);
  const cluster::NodeInfo* info = snapshot.Find(node);
  std::erase_if(lesser, [&](const Pod& other) {
    const SchedulerProfile* profile = profiles_.Find(*other);
    if (profile == nullptr) return true;  // its own scheduler removes the nomination
    if (info == nullptr) return false;
    const scheduling::Framework& framework = profile->partitioning();
    const scheduling::Cycle cycle = framework.PreFilter(*other, snapshot);
    return cycle.verdict.fits() &&
           FilterBeside(framework, snapshot, cycle, *other, *info, engine_.PromisesFor(*other))
               .fits();
  });
  return lesser;
}

}  // namespace nos::controllers
