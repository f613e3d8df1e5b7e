// Invariant checker: a scheduler schedules gangs together or not at all, and GPUs are repartitioned
// for gangs likewise. Checks the objects in the API server, the scheduler's bind requests, and its
// reservations.
//
//   checker.Expect("default/g", 3);           // a PodGroup and its minMember
//   checker.See(before, after, now);          // for each change of a pod in the API server
//   checker.Asked("default/g-1");             // the scheduler requests its binding
//   for (std::string& problem : checker.Check(scheduler.snapshot(), now)) ...  // after each step
//
// The scheduler may learn of changes late: a member that failed or was removed, or whose binding
// was lost, still counts for kFaultsLinger.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/snapshot.h"

namespace nos::sim {

// "default/g"; "" if the pod belongs to no gang.
std::string PodGroupKeyOf(const cluster::Pod& pod);
// True if the pod has a node, has not failed and is not being deleted. A pod that has succeeded
// counts too.
bool HasPlace(const cluster::Pod& pod);

class GangChecker {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  void Expect(const std::string& group, size_t least) { gangs_[group].least = least; }
  // Ignores pods that belong to no expected gang.
  void See(const Pod& before, const Pod& after, Time now);
  // May be called before See for the same pod.
  void Asked(const std::string& pod) { asked_.insert(pod); }
  // Checks the bind requests since the last call, and all current reservations: in each of these
  // gangs enough members have a node, a bind request or a reservation.
  std::vector<std::string> Check(const cluster::ClusterSnapshot& kept, Time now);
  // `partitioned_for`: pods for which a new plan repartitions GPUs; `planned`: pods with reserved
  // slices or a nominated node. In each gang of `partitioned_for`, enough members have a node or
  // are in `planned`.
  std::vector<std::string> CheckPartitioning(const std::set<std::string>& partitioned_for,
                                             const std::set<std::string>& planned, Time now) const;

 private:
  struct Gang {
    size_t least = 0;
    std::map<std::string, Time> counted_until;  // pod keys
  };
  // True if a member of the gang had a bind request since the last check.
  static bool CountAsked(Gang& gang, const std::set<std::string>& asked, Time now);

  std::map<std::string, Gang> gangs_;
  std::set<std::string> asked_;  // pod keys
};

}  // namespace nos::sim
