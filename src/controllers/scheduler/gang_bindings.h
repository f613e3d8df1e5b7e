// Binds placed members of gangs together, and releases them when too few are left for any reason.
//
//   GangBindings gang_bindings(gangs, bindings);
//   gang_bindings.OnPod(before, after, now);         // for each pod event of the watch
//   gang_bindings.MarkDirty(gang, "ml/a lost its place");
//   gang_bindings.Step(client, now);
//
// Volumes are written only when enough members have their instances: from then on no failed
// partitioning can take the place of the others. Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "controllers/gangs.h"
#include "controllers/scheduler/binding_cycle.h"

namespace nos::controllers {

class GangBindings {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // Both must outlive this object.
  GangBindings(const Gangs& gangs, BindingCycle& bindings) : gangs_(gangs), bindings_(bindings) {}

  // `before` is null for a new pod, `after` for a deleted one. To be called after Gangs::Set.
  void OnPod(const Pod& before, const Pod& after, Time now);
  // `why`: the reason if members of the gang have to be released; the first one counts.
  void MarkDirty(const std::string& gang, const std::string& why);
  bool HasDirty() const { return !dirty_.empty(); }
  // Continues or releases members of dirty gangs.
  void Step(kube::Client& client, Time now);

 private:
  void StepGang(const std::string& gang, const std::string& why, kube::Client& client, Time now);

  const Gangs& gangs_;
  BindingCycle& bindings_;
  std::map<std::string, std::string> dirty_;  // by gang: why
};

}  // namespace nos::controllers
