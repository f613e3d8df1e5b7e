// Explains why a pod is pending or where it would be placed, from the objects of a cluster. Used by
// nos explain and by the telemetry server's what-if.
//
//   const Deciders deciders(configuration, pod->scheduler_name, true);
//   const scheduling::Explanation why = ExplainWaiting(objects, pod, deciders, catalogue);
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "cmd/telemetry/read_cluster.h"
#include "gpu/catalogue.h"
#include "scheduling/configuration.h"
#include "scheduling/engine.h"
#include "scheduling/explain.h"
#include "scheduling/framework_choice.h"

namespace nos::cmd {

using SharedPod = std::shared_ptr<const cluster::Pod>;

// The known schedulers: those of a configuration, and kube-scheduler with its defaults.
class Deciders {
 public:
  Deciders(scheduling::Configuration configuration, const std::string& of_pod, bool what_if)
      : configuration_(std::move(configuration)) {
    std::map<std::string, const scheduling::Framework*> by_name;
    for (const scheduling::Profile& profile : configuration_.profiles) {
      by_name[profile.scheduler_name] = profile.framework.get();
    }
    const scheduling::Profile* found = Find(of_pod);
    of_pod_ = found != nullptr ? found : &(what_if ? configuration_ : usual_).profiles.front();
    frameworks_ =
        std::make_unique<scheduling::FrameworkChoice>(*of_pod_->framework, std::move(by_name));
  }
  Deciders(const Deciders&) = delete;
  Deciders& operator=(const Deciders&) = delete;

  const scheduling::Profile& of_pod() const { return *of_pod_; }
  const scheduling::FrameworkChoice& frameworks() const { return *frameworks_; }
  // True if the same scheduler process handles both pods.
  bool AreServedTogether(const cluster::Pod& a, const cluster::Pod& b) const {
    return a.scheduler_name == b.scheduler_name ||
           (Find(a.scheduler_name) != nullptr && Find(b.scheduler_name) != nullptr);
  }

 private:
  const scheduling::Profile* Find(const std::string& name) const {
    const auto found =
        std::ranges::find(configuration_.profiles, name, &scheduling::Profile::scheduler_name);
    return found == configuration_.profiles.end() ? nullptr : &*found;
  }

  const scheduling::Configuration configuration_;
  const scheduling::Configuration usual_ = scheduling::DefaultConfiguration({.simulates = true});
  const scheduling::Profile* of_pod_ = nullptr;
  std::unique_ptr<const scheduling::FrameworkChoice> frameworks_;
};

// Gives an engine what a running scheduler with this profile knows: objects, nominations, and pods
// being evicted. Nominations of `members` (keys of pods) are left out.
void FillIn(scheduling::Engine& engine, const ClusterObjects& objects,
            const scheduling::Profile& profile, const std::set<std::string>& members);

// REQUIRES: `pod` is pending and one of `objects`. `reader`: see scheduling::ExplainInput.
scheduling::Explanation ExplainWaiting(const ClusterObjects& objects, const SharedPod& pod,
                                       const Deciders& deciders, const gpu::Catalogue& catalogue,
                                       const std::string& reader = {});

}  // namespace nos::cmd
