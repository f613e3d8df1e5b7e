// The vocabulary of remedies: the smallest change that would let a pending pod run, as a code to
// search for and a sentence.
//
//   const SliceDemand demand({{"nvidia.com/mig-9g.99gb", 1}}, catalogue, models, 8);
//   if (auto none = demand.Impossible()) return *none;  // RequestExistingProfile
//
// Explanations of the scheduler and of the planner use these codes and functions, so that one
// situation has one code and one sentence everywhere. All codes are here (script/codes checks it).
//
// Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/snapshot.h"
#include "gpu/catalogue.h"
#include "scheduling/reasons.h"

namespace nos::scheduling {

struct Remedy {
  std::string code;  // one of `remedies`
  std::string text;  // one sentence without a full stop; "": none is known
};

// Separates the reasons from the remedy in conditions and Events.
inline constexpr std::string_view kRemedySeparator = " Remedy: ";

namespace remedies {

inline constexpr const char *kNoneNeeded = "NoneNeeded", *kLiftGate = "LiftGate",
                            *kCompleteGang = "CompleteGang", *kRaiseQuota = "RaiseQuota",
                            *kWaitForPods = "WaitForPods",
                            *kWaitForReservation = "WaitForReservation",
                            *kRaisePlanTimeout = "RaisePlanTimeout",
                            *kFreeResources = "FreeResources", *kPartitionGpus = "PartitionGpus",
                            *kUseDeployment = "UseDeployment",
                            *kLiftConstraints = "LiftConstraints", *kOptInNode = "OptInNode",
                            *kInspectAgent = "InspectAgent",
                            *kInspectResourceClaims = "InspectResourceClaims",
                            *kAddNode = "AddNode", *kSplitPod = "SplitPod",
                            *kRequestLess = "RequestLess",
                            *kRequestExistingProfile = "RequestExistingProfile",
                            *kRequestAdvertisedName = "RequestAdvertisedName",
                            *kRequestOneShare = "RequestOneShare",
                            *kAllowInCatalogue = "AllowInCatalogue",
                            *kConfigureParts = "ConfigureParts";

}  // namespace remedies

// Assumed maximum number of GPUs per node.
inline constexpr int64_t kMaxGpusOfNode = 16;

// REQUIRES: IsGated(pod).
Remedy LiftGates(const cluster::Pod& pod);
// The reason of a pod with scheduling gates and its remedy, as conditions of other pods have both.
std::string GatedText(const cluster::Pod& pod);
Remedy CompleteGang(const std::string& why);
// `pods`: "pod ml/a (3g.20gb@4 of GPU 2)".
Remedy WaitForPods(const std::string& pods, const std::string& node);
// `amounts`: "500m cpu".
Remedy FreeResources(const std::vector<std::string>& amounts, const std::string& node);
// One share of the sum in place of several, if GPUs may have so large a one, or several containers.
// REQUIRES: AsksForSeveralShares(pod).
Remedy RequestOneShare(const cluster::Pod& pod);

// Amount held by pods whose owners restart them on the node.
int64_t HeldByTiedPods(const cluster::NodeInfo& node, cluster::ResourceId resource);
// For a request above what any machine has; nullopt if there may be such machines.
std::optional<Remedy> RequestLess(const std::string& resource, int64_t asked);

// The slices that a pod requests, and the GPU models that could provide them.
class SliceDemand {
 public:
  using Slices = std::vector<std::pair<std::string, int64_t>>;  // resource name and amount
  // `models` and `max_gpus`: the models of existing nodes, and the largest number of GPUs of one.
  // The catalogue and the models must outlive this object. `spend` gets the work done, in steps.
  SliceDemand(
      Slices slices, const gpu::Catalogue& catalogue, std::vector<const gpu::Model*> models,
      int64_t max_gpus, std::function<void(int64_t)> spend = [](int64_t) {});

  const Slices& slices() const { return slices_; }
  // "2 x 1g.5gb and 3g.20gb".
  std::string Text() const;
  bool HasShares() const;  // MPS shares of GPUs
  // True if GPUs of the model can be partitioned into all these slices, on one GPU or several.
  bool Suits(const gpu::Model& model) const;
  // Number of empty GPUs of a model that hold all slices if each is filled with what fits, in
  // order. Values above kMaxGpusOfNode are not exact.
  int64_t GpusFor(const gpu::Model& model) const;

  // A profile that no known model has, whatever its name. Nullopt: there is none.
  std::optional<Reason> NoModelHasProfile() const;
  // For slices that no node can ever hold; nullopt if some node could.
  std::optional<Remedy> Impossible() const;
  // For the pod with these slices, or with none, that no existing node can hold. A new node is
  // described by everything it must have: labels, GPUs, and each request of the pod.
  Remedy ForNoNode(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot) const;
  // The change with which nos provides the slices on a node whose GPUs it does not partition:
  // opting the node in, or an agent that serves its label. Nullopt: its GPUs do not suit, are given
  // to ResourceClaims, or are held by too many pods; or the pod also asks for whole GPUs, which
  // such a node does not offer.
  std::optional<Remedy> OptIn(const cluster::NodeInfo& node, const cluster::Pod& pod) const;

 private:
  struct NewNode;

  std::optional<Remedy> InspectAgent(const cluster::Node& node, std::string_view mode) const;
  bool IsProvided(const std::string& resource) const;
  std::string Unprovided() const;
  std::string ExistingProfilesNear(const std::string& resource) const;
  std::optional<Remedy> Split() const;
  std::optional<Remedy> SharedNode(const NewNode& node) const;
  Remedy AddNode(const NewNode& node, std::vector<std::string> gpus) const;
  std::optional<Remedy> AdvertisedName() const;
  std::optional<Remedy> LargerProfile() const;
  std::optional<Remedy> InCatalogue() const;
  std::optional<Remedy> HybridNode(const NewNode& node) const;
  std::optional<Remedy> Parts(const std::string& resource) const;
  Remedy ExistingProfile() const;

  const Slices slices_;
  const gpu::Catalogue& catalogue_;
  const std::vector<const gpu::Model*> models_;
  const int64_t max_gpus_;
  const std::function<void(int64_t)> spend_;
};

// The resource that agents advertise if the pod requests the profile under another of its names
// ("nvidia.com/mig-7g.80gb" for "nvidia.com/mig-7g.79gb"). "" if the model has no such profile or
// the catalogue does not allow it.
std::string OfferedAs(const gpu::Model& model, const std::string& resource);
// These have no MIG profile in the catalogue; agents of hybrid nodes provide them.
bool IsOfHybridNodes(const std::string& resource);

}  // namespace nos::scheduling
