// Slice reservations of the partitioner (pending/slice_reservations.h), and which pending pods to
// plan for.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cluster/instance_search.h"
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

// True if the pod need not wait for terminating pods on its nominated node, whose slices could be
// the ones that the scheduler is waiting for: none is left, or they leave room for the pod. Tenants
// choose how long their pods take to end.
bool Partitioner::MayPlanFor(const cluster::Pod& nominated, const reconcile::Listers& view) const {
  std::vector<Pod> there;
  for (const Pod& pod : *view.pods.Snapshot()) {
    if (pod->node_name == nominated.nominated_node && !pod->Finished()) there.push_back(pod);
  }
  const auto ends = [](const Pod& pod) { return pod->meta.deleted.has_value(); };
  if (std::ranges::none_of(there, ends)) return true;
  const Node node = view.nodes.Get(nominated.nominated_node);
  if (node == nullptr) return false;
  const auto snapshot = cluster::ClusterSnapshot::Build({node}, there, catalogue_);
  return cluster::CanProvide(snapshot.node(0), cluster::RequestsOf(nominated));
}

std::vector<Partitioner::Pod> Partitioner::Waiting(const reconcile::Listers& view, Time now) const {
  std::vector<Pod> waiting;
  for (const Pod& pod : *view.pods.Snapshot()) {
    if (!pod->node_name.empty() || !CouldBeHelped(*pod, gives_whole_)) continue;
    if (config_.partitioning_schedulers.contains(pod->scheduler_name)) continue;
    const std::string key = pod->Key();
    if (reservations_.Holds(key)) continue;
    const bool chosen = !pod->nominated_node.empty();
    if (chosen ? MayPlanFor(*pod, view) : !reservations_.Pausing(key, now)) {
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
