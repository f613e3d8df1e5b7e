// Slice reservations of the partitioner (pending/slice_reservations.h), and which pending pods to
// plan for.
#include <algorithm>
#include <string>
#include <vector>

#include "controllers/partitioner.h"
#include "controllers/pending/assumed.h"
#include "scheduling/pod_state.h"

namespace nos::controllers {
namespace {

// True if more slices could help: a scheduler has tried to place the pod, and no owner decides its
// node.
bool CouldBeHelped(const cluster::Pod& pod, bool whole) {
  if (!scheduling::IsSchedulable(pod) || scheduling::IsTiedToNode(pod)) return false;
  const cluster::Condition* scheduled = pod.FindCondition("PodScheduled");
  if (scheduled == nullptr || scheduled->status != "False") return false;
  return scheduled->reason == "Unschedulable" && AsksForSlices(pod, whole);
}

}  // namespace

// Reserves slices for a pod whose scheduler has nominated a node, as if a plan had placed it there.
// While the nomination stands, other pods get no slices at its expense and the pod needs no
// back-off.
void Partitioner::ReserveForNominated(const reconcile::Listers& view, Time now) {
  for (const Pod& pod : *view.pods.Snapshot()) {
    if (pod->nominated_node.empty() || !pod->node_name.empty() || pod->Finished()) continue;
    const std::string key = pod->Key();
    if (reservations_.Holds(key) || !AsksForSlices(*pod, gives_whole_)) continue;
    const Node node = view.nodes.Get(pod->nominated_node);
    if (node != nullptr && cluster::IsManaged(*node))
      reservations_.Add(pod, pod->nominated_node, now);
  }
}

// True if no terminating pod is left on the node. The slices of such a pod could be the ones that
// the scheduler is waiting for.
bool Partitioner::IsEmptied(const std::string& node, const reconcile::Listers& view) {
  return std::ranges::none_of(*view.pods.Snapshot(), [&](const Pod& pod) {
    return pod->node_name == node && !pod->Finished() && pod->meta.deleted;
  });
}

std::vector<Partitioner::Pod> Partitioner::Waiting(const reconcile::Listers& view, Time now) const {
  std::vector<Pod> waiting;
  for (const Pod& pod : *view.pods.Snapshot()) {
    if (!pod->node_name.empty() || !CouldBeHelped(*pod, gives_whole_)) continue;
    if (config_.partitioning_schedulers.contains(pod->scheduler_name)) continue;
    const std::string key = pod->Key();
    if (reservations_.Holds(key)) continue;
    const bool chosen = !pod->nominated_node.empty();
    if (chosen ? IsEmptied(pod->nominated_node, view) : !reservations_.Pausing(key, now)) {
      waiting.push_back(pod);
    }
  }
  return waiting;
}

void Partitioner::DropReservationsBeyondQuota(const reconcile::Listers& view,
                                              const cluster::ClusterSnapshot& snapshot) {
  for (const std::string& key : FindReservationsBeyondQuota(
           reservations_, *view.pods.Snapshot(), snapshot, view.around->Collect(), frameworks_)) {
    reservations_.Drop(key);
  }
}

// Counts reserved slices as used. Drops a reservation whose slices another pod has taken.
void Partitioner::ApplyReservations(cluster::ClusterSnapshot& snapshot,
                                    const reconcile::Listers& view) {
  std::vector<std::string> broken;
  for (const auto& [key, reservation] : reservations_.all()) {
    const cluster::NodeInfo* info = snapshot.Find(reservation.node);
    const Pod pod = view.pods.Get(key);
    const bool kept = info != nullptr && pod != nullptr && HasFreeSlices(*info, *pod) &&
                      snapshot.Bind(pod, reservation.node).ok();
    if (!kept) broken.push_back(key);
  }
  for (const std::string& key : broken) reservations_.Drop(key);
}

}  // namespace nos::controllers
