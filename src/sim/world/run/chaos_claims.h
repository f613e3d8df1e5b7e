// Dynamic Resource Allocation in a fault simulation: nodes that a DRA driver serves, claims and
// claim templates, and the faults of drivers and claims, all drawn from the seed.
//
//   ChaosClaims claims(world, seed);
//   claims.DrawNode(node);                  // some nodes get a driver
//   claims.Add(options.faults_last);        // claims, templates and faults until then
//   claims.DrawClaims(pod);                 // most pods claim devices instead of slices
//   claims.Refresh();
//   if (claims.CouldServe(pods, node, false)) ...
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "sim/workload.h"
#include "sim/world.h"
#include "sim/world/checks/satisfiable_claims.h"

namespace nos::sim {

class ChaosClaims {
 public:
  ChaosClaims(World& world, uint64_t seed);

  // Makes the node one with a driver, or leaves it as it is. The first one gets a driver.
  void DrawNode(NodeSpec& node);
  // REQUIRES: all nodes were added.
  Status Add(Duration faults_last);
  // Gives the pod claims instead of slices, or leaves it as it is.
  void DrawClaims(PodSpec& pod);
  // The same for all pods of a gang: each gets claims of its own.
  void DrawClaims(GangSpec& gang);

  // Reads the objects that CouldServe decides by.
  void Refresh();
  // True if devices of the node could serve the claims of these pods at once; `empty`: if no claim
  // had any.
  bool CouldServe(const std::vector<const cluster::Pod*>& pods, const std::string& node,
                  bool empty) const;
  // Entries of status.reservedFor without a pod, and devices without a user.
  std::vector<std::string> Leftovers();
  // A line for each claim and for each slice.
  std::vector<std::string> Describe();
  // Claims that got devices, in the whole run.
  int allocated() const { return static_cast<int>(allocated_.size()); }

 private:
  struct NamedClaim {
    std::string name;
    size_t plan = 0;
    bool wanted = false;  // the user creates it again when it is gone
  };

  AskedClaim DrawPlan();
  AskedClaim DrawHostilePlan();
  AskedDevices DrawDevices();
  Json ClaimSpec(const AskedClaim& plan);
  Json DevicesJson(const AskedDevices& asked);
  Status AddTemplates();
  void AddNamedClaims();
  Time Sometime();
  Time Later(Duration longest);
  ClaimDriver* AnyDriver(std::string* node = nullptr);
  void ScheduleFaults();
  void ScheduleDriverFault();
  void ChangeTaintRules();
  void DrawTaints();
  void ReplaceClaims();
  void Tick();
  void AnnounceNics();
  void SetConditions(const Json& claim);
  std::vector<Json> List(const kube::Resource& kind);

  World& world_;
  kube::Client client_;
  Random random_, plans_random_;
  Time until_{};
  // Rates differ between seeds.
  const bool conditions_, nics_, hostile_;
  std::vector<std::string> nodes_;         // with a driver
  std::vector<const gpu::Model*> models_;  // of their GPUs
  std::vector<AskedClaim> plans_;          // of all claims, by the number in their annotation
  std::vector<std::string> templates_;
  std::vector<NamedClaim> named_;
  std::map<std::string, std::pair<Time, bool>> conditions_at_;  // when and whether ready, by device
  std::set<std::string> allocated_;                             // uids
  std::vector<Json> slices_, rules_, claims_;                   // at the last Refresh
};

}  // namespace nos::sim
