#include "controllers/scheduler/pod_placer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "cluster/pod_end.h"
#include "controllers/scheduler/post.h"
#include "dra/device_index.h"
#include "dra/extended_resources.h"
#include "scheduling/framework.h"
#include "scheduling/lost_node.h"
#include "scheduling/preemption.h"

namespace nos::controllers {

bool PodPlacer::Place(const Pod& pod, scheduling::Diagnosis& diagnosis, Time now) {
  const scheduling::Framework& framework = *profiles_.Of(*pod).framework;
  if (bindings_.Adopt(pod, framework, now)) return true;
  scheduling::Decision decision = engine_.Schedule(framework, pod);
  if (decision.node == nullptr) {
    diagnosis = std::move(decision.diagnosis);
    return false;
  }
  const scheduling::Verdict reserved = bindings_.Assume(pod, framework, *decision.node);
  if (!reserved.fits()) bindings_.Release(pod->Key(), reserved.message, now);
  return true;
}

bool PodPlacer::PlaceAmong(const Pod& pod, std::span<const size_t> among,
                           scheduling::Diagnosis& diagnosis) {
  const scheduling::Framework& framework = *profiles_.Of(*pod).framework;
  scheduling::Decision decision = engine_.Schedule(framework, pod, among);
  if (decision.node == nullptr) {
    diagnosis = std::move(decision.diagnosis);
    return false;
  }
  const scheduling::Verdict reserved = bindings_.Assume(pod, framework, *decision.node);
  if (reserved.fits()) return true;
  bindings_.Abandon(pod->Key());
  scheduling::DiagnosisBuilder builder;
  builder.Refuse(reserved, static_cast<int>(engine_.snapshot().size()), nullptr);
  diagnosis = std::move(builder).Finish();
  return false;
}

void PodPlacer::StartBinding(const std::string& key, kube::Client& client, Time now) {
  const BindingCycle::Binding* binding = bindings_.Find(key);
  if (binding == nullptr) return;
  if (binding->awaits_instances && binding->pod->nominated_node != binding->node) {
    nominations_.Write(binding->pod, binding->node, client);  // keeps the partitioner off the node
  }
  bindings_.Start(key, client, now);
}

void PodPlacer::Begin(Time now) {
  if (settled_) return;
  settled_ = now + takeover_timeout_;
  for (const auto& [key, claim] : engine_.snapshot().context().device_claims.rows()) {
    if (claim->allocation) inherited_.insert(key);
  }
}

bool PodPlacer::UsesInherited(const cluster::Pod& pod) const {
  std::vector<std::string> keys = dra::ClaimKeysOf(pod);
  keys.push_back(dra::ExtendedClaimKey(pod));
  return std::ranges::any_of(keys,
                             [&](const std::string& key) { return inherited_.contains(key); });
}

// A request that fails is repeated at the pod's next attempt.
void PodPlacer::PostFilter(const Pod& pod, kube::Client& client, Time now) {
  const scheduling::Framework& framework = *profiles_.Of(*pod).framework;
  std::vector<kube::ApiRequest> writes = framework.PostFilter(*pod, engine_.snapshot());
  if (!writes.empty() && settled_ && now < *settled_ && UsesInherited(*pod)) {
    held_.insert(pod->Key());
    return;
  }
  for (kube::ApiRequest& write : writes) {
    Post(workers_, client, [key = pod->Key(), write = std::move(write)](kube::Client& with) {
      const Status written = with.Send(write).status();
      if (written.ok() || written.code() == Code::kNotFound) return;
      Log(LogLevel::kWarn, "failed to release devices of Pod",
          {{"pod", key}, {"error", written.ToString()}});
    });
  }
}

void PodPlacer::OnGone(const Pod& pod, bool deleted, Time now) {
  doubtful_.OnGone(pod, engine_.snapshot(), now);
  if (deleted && IsEndedVictim(*pod)) ended_victims_.push_back(pod);
}

// Without a grace period, and on lost nodes, the object vanishes before the containers have ended.
bool PodPlacer::IsEndedVictim(const cluster::Pod& pod) const {
  const cluster::NodeInfo* node = engine_.snapshot().Find(pod.node_name);
  return pod.HasClaims() && scheduling::EndsByPreemption(pod) &&
         cluster::GracePeriodOf(pod) > Duration::zero() && node != nullptr &&
         !scheduling::IsLost(*node->node) && profiles_.Find(pod) != nullptr;
}

void PodPlacer::GiveBackDevices(kube::Client& client, Time now) {
  for (const Pod& pod : std::exchange(ended_victims_, {})) PostFilter(pod, client, now);
  for (const Pod& pod : doubtful_.TakeDue(engine_.snapshot(), now)) PostFilter(pod, client, now);
}

std::optional<Time> PodPlacer::NextDue() const {
  const std::optional<Time> doubts = doubtful_.NextDue();
  if (held_.empty() || !settled_) return doubts;
  return std::min(doubts.value_or(Time::max()), *settled_);
}

std::set<std::string> PodPlacer::TakeHeld(Time now) {
  if (settled_ && now < *settled_) return {};
  inherited_.clear();
  return std::exchange(held_, {});
}

}  // namespace nos::controllers
