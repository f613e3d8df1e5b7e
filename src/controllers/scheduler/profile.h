// A profile defines how pods with one schedulerName are scheduled. Profiles finds a pod's profile.
//
//   Profiles profiles({{"nos-scheduler", &framework}});
//   if (const SchedulerProfile* profile = profiles.Find(pod)) ...   // null: another scheduler's
//   pod
//
// Immutable after construction. Frameworks must outlive it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/objects.h"
#include "scheduling/preemption.h"

namespace nos::scheduling {
class Framework;
}

namespace nos::controllers {

struct SchedulerProfile {
  std::string scheduler_name;
  const scheduling::Framework* framework;
  // Absent: pods of this profile preempt no other pod.
  std::optional<scheduling::PreemptionOptions> preemption = scheduling::PreemptionOptions();
  // Like `framework`, but with GPUs partitioned for the pod: finds out what would help a refused
  // pod. Null: `framework` partitions GPUs itself.
  const scheduling::Framework* with_partitioning = nullptr;
  // If true, pods are evicted to reclaim quota guarantees. Only for a framework with the quota
  // plugin.
  bool reclaims = true;

  // The framework that also considers nodes whose GPUs could be partitioned for the pod.
  const scheduling::Framework& partitioning() const {
    return with_partitioning != nullptr ? *with_partitioning : *framework;
  }
};

class Profiles {
 public:
  // If two have one name, the last is used.
  explicit Profiles(std::vector<SchedulerProfile> profiles) {
    for (SchedulerProfile& profile : profiles) {
      std::string name = profile.scheduler_name;
      by_name_.insert_or_assign(std::move(name), std::move(profile));
    }
  }

  // Null: another scheduler serves the pod.
  const SchedulerProfile* Find(const cluster::Pod& pod) const {
    const auto found = by_name_.find(pod.scheduler_name);
    return found == by_name_.end() ? nullptr : &found->second;
  }
  // REQUIRES: the pod is served here.
  const SchedulerProfile& Of(const cluster::Pod& pod) const {
    return by_name_.at(pod.scheduler_name);
  }
  const std::map<std::string, SchedulerProfile>& all() const { return by_name_; }

 private:
  std::map<std::string, SchedulerProfile> by_name_;
};

}  // namespace nos::controllers
