// Prepares the devices of a cluster (resource.k8s.io) while another replica schedules: reads the
// devices of all nodes and evaluates the expressions of claims for them. Without it the first pods
// of a new leader would wait for that.
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

  // Needs Listers::context and Listers::changes. Asks to be called again until the devices of all
  // nodes are prepared.
  reconcile::ReconcileResult Reconcile(const std::string& key, const reconcile::Listers& view,
                                       kube::Client& client, const Clock& clock) override;
  // True if the devices of all nodes are prepared.
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

  cluster::ClusterContext context_;
  std::shared_ptr<dra::DeviceIndex> devices_;
  std::map<dra::Name, Claim> specs_;  // a claim for each spec, as if it had no devices
  bool read_ = false;
  std::set<std::string> due_;  // names of nodes whose devices are not prepared
};

}  // namespace nos::cmd
