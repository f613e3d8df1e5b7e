// The volumes that a pod is to get, from the decision until they are bound: assumed in the
// surroundings, written to the API server, waited for.
//
// An assumption is an object of the surroundings that differs from the API server's, under the same
// resourceVersion. Whatever the watch shows later takes its place; what was written is therefore
// seen by an object with another resourceVersion, and is judged by that.
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

// In the cycle's state. Without bindings and provisions: nothing is assumed.
struct AssumedVolumes {
  template <typename T>
  struct Change {
    std::shared_ptr<const T> before, after;  // the same: nothing is to be written
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

// Volumes get their claims, claims to be provisioned the node.
AssumedVolumes AssumeVolumes(const VolumeChoice& choice, const std::string& node,
                             cluster::ClusterSnapshot& snapshot);
// What was assumed and is still there becomes what it was.
void Withdraw(const AssumedVolumes& assumed, cluster::ClusterSnapshot& snapshot);
// Whether all is bound, what is waited for, or why it will not come to that; with the writes when
// nothing is `written` yet. Knows no deadline.
Progress CheckVolumes(const AssumedVolumes& assumed, std::string_view node,
                      const cluster::ClusterSnapshot& snapshot);

}  // namespace nos::scheduling
