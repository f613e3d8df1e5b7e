#include "cmd/query/plan_evictions.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "cmd/daemon/scheduler_file.h"
#include "cmd/telemetry/explainer.h"
#include "cmd/telemetry/missing_kinds.h"
#include "scheduling/pod_state.h"
#include "scheduling/remedies.h"
#include "scheduling/summary.h"

namespace nos::cmd {
namespace {

namespace remedies = scheduling::remedies;

constexpr size_t kMaxAsked = 32;  // pods; each answer reads the whole cluster

// An eviction may help, instead of these changes.
bool MayEvict(const planning::PodOutcome& outcome) {
  const std::string& code = outcome.remedy_code;
  return !outcome.placed && (code == remedies::kRaiseQuota || code == remedies::kWaitForPods ||
                             code == remedies::kLiftConstraints || code == remedies::kOptInNode);
}

std::vector<planning::PodOutcome*> MostImportant(planning::Plan& plan) {
  std::vector<planning::PodOutcome*> outcomes;
  for (planning::PodOutcome& outcome : plan.pods) {
    if (MayEvict(outcome)) outcomes.push_back(&outcome);
  }
  std::ranges::sort(outcomes, {}, [](const planning::PodOutcome* outcome) {
    const cluster::Pod& pod = *outcome->pod;
    return std::tuple(-int64_t{pod.priority}, pod.meta.created, pod.Key());
  });
  if (outcomes.size() > kMaxAsked) outcomes.resize(kMaxAsked);
  return outcomes;
}

class Schedulers {
 public:
  explicit Schedulers(const ClusterObjects& objects) : objects_(objects) {}
  const Deciders& For(const std::string& name) {
    std::unique_ptr<Deciders>& deciders = by_name_[name];
    if (deciders == nullptr) {
      const scheduling::ConfigurationUse use =
          name == kOurScheduler
              ? scheduling::ConfigurationUse{.default_name = kOurScheduler,
                                             .partitioned_by = PartitionedFor(objects_, name)}
              : scheduling::ConfigurationUse{.simulates = true};
      deciders = std::make_unique<Deciders>(scheduling::DefaultConfiguration(use), name, false);
    }
    return *deciders;
  }

 private:
  const ClusterObjects& objects_;
  std::map<std::string, std::unique_ptr<Deciders>> by_name_;
};

}  // namespace

std::vector<std::string> EvictorsOf(const cluster::Pod& pod, const ClusterObjects& input,
                                    const gpu::Catalogue& catalogue) {
  std::vector<SharedPod> pending;
  for (const SharedPod& other : input.pods) {
    const bool may = scheduling::IsSchedulable(*other) && other->preemption_policy != "Never";
    if (may && !scheduling::DemandText(*other).empty()) pending.push_back(other);
  }
  std::ranges::sort(pending, {}, [](const SharedPod& other) {
    return std::tuple(-int64_t{other->priority}, other->meta.created, other->Key());
  });
  if (pending.size() > kMaxAsked) pending.resize(kMaxAsked);
  Schedulers schedulers(input);
  std::vector<std::string> evictors;
  const cluster::ClusterContext context = input.context.value_or(cluster::ClusterContext());
  for (const SharedPod& other : pending) {
    if (input.is_dump && !MissingKinds(*other, context).empty()) continue;
    const scheduling::Explanation why =
        ExplainWaiting(input, other, schedulers.For(other->scheduler_name), catalogue);
    if (!why.preemption) continue;
    const auto& victims = why.preemption->pods;
    if (std::ranges::find(victims, pod.Key()) != victims.end()) evictors.push_back(other->Key());
  }
  return evictors;
}

std::map<std::string, std::vector<std::string>> AskForEvictions(
    const ClusterObjects& input, const gpu::Catalogue& catalogue,
    const std::function<bool()>& out_of_time, planning::Plan& plan) {
  std::map<std::string, std::vector<std::string>> by_pod;
  Schedulers schedulers(input);
  std::set<std::string> evicted;  // pod keys
  for (planning::PodOutcome* outcome : MostImportant(plan)) {
    if (out_of_time && out_of_time()) return by_pod;
    // A pod whose slice was chosen here is not in the cluster like this.
    const auto known = std::ranges::find(input.pods, outcome->pod);
    if (known == input.pods.end()) continue;
    const cluster::ClusterContext context = input.context.value_or(cluster::ClusterContext());
    if (input.is_dump && !MissingKinds(*outcome->pod, context).empty()) continue;
    const scheduling::Explanation why =
        ExplainWaiting(input, *known, schedulers.For(outcome->pod->scheduler_name), catalogue);
    if (why.remedy_code != remedies::kNoneNeeded || !why.preemption) continue;
    const std::vector<std::string>& victims = why.preemption->pods;
    const bool taken = std::ranges::any_of(
        victims, [&](const std::string& victim) { return evicted.contains(victim); });
    if (taken) continue;
    evicted.insert(victims.begin(), victims.end());
    outcome->remedy_code = why.remedy_code;
    outcome->remedy = why.remedy;
    by_pod[outcome->pod->Key()] = victims;
  }
  return by_pod;
}

}  // namespace nos::cmd
