// Slice reservations of the partitioner (pending/slice_reservations.h), and which pending pods to
// plan for.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/instance_search.h"
#include "controllers/gangs.h"
#include "controllers/partitioner.h"
#include "controllers/pending/assumed.h"
#include "controllers/pending/pod_rank.h"
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

// Reserves slices for pods whose schedulers have nominated a node, as if a plan had placed them
// there. While the nomination stands, other pods get no slices at their expense and the pods need
// no back-off. A pod gets none, though there are free ones, while a pod of its namespace that goes
// first has none there: the scheduler keeps it from all GPUs that are to serve the other one, and
// its reservation would keep the other one from being planned for.
void Partitioner::ReserveForNominated(const cluster::ClusterSnapshot& snapshot,
                                      const reconcile::Listers& view, Time now) {
  std::vector<Pod> nominated;
  for (const Pod& pod : *view.pods.Snapshot()) {
    const bool waits = pod->node_name.empty() && !pod->Finished();
    if (waits && !pod->nominated_node.empty() && AsksForSlices(*pod, gives_whole_)) {
      nominated.push_back(pod);
    }
  }
  std::ranges::sort(nominated, {}, [](const Pod& pod) { return RankOf(*pod); });
  std::set<std::pair<std::string, std::string>> unserved;  // nodes and namespaces
  for (const Pod& pod : nominated) {
    const cluster::NodeInfo* node = snapshot.Find(pod->nominated_node);
    if (node == nullptr || !node->gpus.managed) continue;
    const std::string key = pod->Key();
    const auto held = reservations_.all().find(key);
    const bool holds = held != reservations_.all().end();
    if (holds && held->second.node != pod->nominated_node) continue;
    const auto place = std::pair(pod->nominated_node, pod->meta.ns);
    const bool alone = GangOf(*pod).empty();
    if (alone && unserved.contains(place)) {
      reservations_.Drop(key);
    } else if (!HasFreeSlices(*node, *pod)) {
      if (alone) unserved.insert(place);
    } else if (!holds) {
      reservations_.Add(pod, pod->nominated_node, now);
    }
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
           reservations_, *view.pods.Snapshot(), snapshot, view.context->Collect(), frameworks_)) {
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
