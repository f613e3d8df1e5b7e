// For whom the partitioner keeps slices (claims.h), and who is left to plan for.
#include <algorithm>
#include <string>
#include <vector>

#include "controllers/pending/assumed.h"
#include "controllers/partitioner.h"
#include "scheduling/pod_state.h"

namespace nos::controllers {
namespace {

// Whether more slices could help: the scheduler has tried, and no owner sees to where it runs.
bool CouldBeHelped(const cluster::Pod& pod, bool whole) {
  if (!scheduling::IsSchedulable(pod) || scheduling::IsTiedToNode(pod)) return false;
  const cluster::Condition* scheduled = pod.FindCondition("PodScheduled");
  if (scheduled == nullptr || scheduled->status != "False") return false;
  return scheduled->reason == "Unschedulable" && AsksForSlices(pod, whole);
}

}  // namespace

// A pod that a scheduler has chosen a node for is given what it needs there, like one that has been
// planned for; as long as that is so, others get nothing for its sake, and it need not pause.
void Partitioner::ClaimForNominated(const reconcile::View& view, Time now) {
  for (const Pod& pod : *view.pods.Snapshot()) {
    if (pod->nominated_node.empty() || !pod->node_name.empty() || pod->Finished()) continue;
    const std::string key = pod->Key();
    if (claims_.Holds(key) || !AsksForSlices(*pod, gives_whole_)) continue;
    const Node node = view.nodes.Get(pod->nominated_node);
    if (node != nullptr && cluster::IsManaged(*node)) claims_.Add(pod, pod->nominated_node, now);
  }
}

// Nobody there is on the way out, whose slices could be those that the scheduler waits for.
bool Partitioner::IsEmptied(const std::string& node, const reconcile::View& view) {
  return std::ranges::none_of(*view.pods.Snapshot(), [&](const Pod& pod) {
    return pod->node_name == node && !pod->Finished() && pod->meta.deleted;
  });
}

std::vector<Partitioner::Pod> Partitioner::Waiting(const reconcile::View& view, Time now) const {
  std::vector<Pod> waiting;
  for (const Pod& pod : *view.pods.Snapshot()) {
    if (!pod->node_name.empty() || !CouldBeHelped(*pod, gives_whole_)) continue;
    if (config_.cutting_schedulers.contains(pod->scheduler_name)) continue;
    const std::string key = pod->Key();
    if (claims_.Holds(key)) continue;
    const bool chosen = !pod->nominated_node.empty();
    if (chosen ? IsEmptied(pod->nominated_node, view) : !claims_.Pausing(key, now)) {
      waiting.push_back(pod);
    }
  }
  return waiting;
}

void Partitioner::DropClaimsBeyondQuota(const reconcile::View& view, const cluster::ClusterSnapshot& picture) {
  for (const std::string& key : FindClaimsBeyondQuota(claims_, *view.pods.Snapshot(), picture,
                                                      view.around->Collect(), frameworks_)) {
    claims_.Drop(key);
  }
}

// Promised slices count as used. A promise whose slices someone else got is void.
void Partitioner::HonourClaims(cluster::ClusterSnapshot& snapshot, const reconcile::View& view) {
  std::vector<std::string> broken;
  for (const auto& [key, claim] : claims_.all()) {
    const cluster::NodeInfo* info = snapshot.Find(claim.node);
    const Pod pod = view.pods.Get(key);
    const bool kept = info != nullptr && pod != nullptr && HasFreeSlices(*info, *pod) &&
                      snapshot.Bind(pod, claim.node).ok();
    if (!kept) broken.push_back(key);
  }
  for (const std::string& key : broken) claims_.Drop(key);
}

}  // namespace nos::controllers
