// Keeps the devices of a cluster (resource.k8s.io) at hand while another replica schedules. Without
// it the first pods of a new leader wait until the devices of all nodes have been put together and
// the expressions of their claims evaluated for each of them.
//
//   StandbyDevices standby(catalogue);
//   runner.Use(&standby);
//   ...                                    // this replica is to lead
//   Scheduler scheduler(..., standby.Take());
//   runner.Use(&scheduler);
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "cluster/context.h"
#include "dra/device_index.h"
#include "gpu/catalogue.h"
#include "reconcile/reconciler.h"

namespace nos::cmd {

class StandbyDevices final : public reconcile::Reconciler {
 public:
  // The catalogue must outlive the devices.
  explicit StandbyDevices(const gpu::Catalogue& catalogue);

  // Needs Listers::around and Listers::changes. Calls again until the devices of all nodes are at
  // hand.
  reconcile::ReconcileResult Reconcile(const std::string& key, const reconcile::Listers& view,
                                       kube::Client& client, const Clock& clock) override;
  // True if the devices of all nodes are at hand.
  bool ready() const { return read_ && due_.empty(); }
  // Ends the use of this object.
  std::shared_ptr<dra::DeviceIndex> Take() { return std::move(devices_); }

 private:
  using Claim = std::shared_ptr<const dra::ResourceClaim>;

  void ReadEverything(const reconcile::Listers& view);
  void Follow(const reconcile::ContextChange& change, const reconcile::Listers& view);
  // True if no claim before had this spec, and there is room for it.
  bool AddSpec(const Claim& claim);
  void AllAreDue(const reconcile::Listers& view);

  cluster::ClusterContext around_;
  std::shared_ptr<dra::DeviceIndex> devices_;
  std::map<dra::Name, Claim> specs_;  // a claim for each spec, as if it had no devices
  bool read_ = false;
  std::set<std::string> due_;  // nodes whose devices have to be put together
};

}  // namespace nos::cmd
