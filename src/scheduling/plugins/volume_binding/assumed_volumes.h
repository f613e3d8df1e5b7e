// Volumes chosen for a pod, from the decision until they are bound: assumed in the cluster context,
// written to the API server, then awaited.
//
// An assumption is an object in the cluster context that differs from the API server's object but
// has the same resourceVersion. Any later object from the watch replaces it. A finished write is
// therefore recognised by a different resourceVersion.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/snapshot.h"
#include "scheduling/plugin.h"
#include "scheduling/plugins/volume_binding/wanted_volumes.h"

namespace nos::scheduling {

// Kept in CycleState. Empty: nothing is assumed.
struct AssumedVolumes {
  template <typename T>
  struct Change {
    std::shared_ptr<const T> before, after;  // the same object: nothing to write
  };
  struct Binding {
    Change<cluster::PersistentVolume> volume;
    std::shared_ptr<const cluster::PersistentVolumeClaim> claim;
  };
  std::vector<Binding> bindings;
  std::vector<Change<cluster::PersistentVolumeClaim>> provisions;
  bool written = false;
  std::optional<Time> until;

  bool empty() const { return bindings.empty() && provisions.empty(); }
};

// Assumes that volumes are bound to their claims, and that claims to be provisioned select the
// node.
AssumedVolumes AssumeVolumes(const VolumeChoice& choice, const std::string& node,
                             cluster::ClusterSnapshot& snapshot);
// Restores assumed objects that the watch has not replaced.
void Withdraw(const AssumedVolumes& assumed, cluster::ClusterSnapshot& snapshot);
// Reports whether all volumes are bound, which one is awaited, or why binding failed. Includes the
// writes while `written` is false. Ignores deadlines.
Progress CheckVolumes(const AssumedVolumes& assumed, std::string_view node,
                      const cluster::ClusterSnapshot& snapshot);

}  // namespace nos::scheduling
