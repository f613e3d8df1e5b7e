// Chooses the framework for a pod: the framework of the profile that the pod names.
//
//   const FrameworkChoice choice(otherwise, {{"nos-scheduler", &own}});
//   choice.For(pod).Schedule(pod, snapshot);
//
// Refers to the frameworks, which must outlive it. Immutable.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cluster/objects.h"

namespace nos::scheduling {

class Framework;

class FrameworkChoice {
 public:
  // One framework for all pods. Implicit, because most callers have only one.
  FrameworkChoice(const Framework& only) : all_{&only} {}
  // By scheduler name; `otherwise` serves pods whose scheduler has no profile.
  FrameworkChoice(const Framework& otherwise,
                  const std::map<std::string, const Framework*>& by_name)
      : all_{&otherwise} {
    for (const auto& [name, framework] : by_name) {
      by_name_[name] = all_.size();
      all_.push_back(framework);
    }
  }

  const Framework& For(const cluster::Pod& pod) const { return *all_[IndexFor(pod)]; }
  // Index in `all`; equal for pods that the same framework serves.
  size_t IndexFor(const cluster::Pod& pod) const {
    if (by_name_.empty()) return 0;
    const auto found = by_name_.find(pod.scheduler_name);
    return found == by_name_.end() ? 0 : found->second;
  }
  const std::vector<const Framework*>& all() const { return all_; }

 private:
  std::vector<const Framework*> all_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

}  // namespace nos::scheduling
