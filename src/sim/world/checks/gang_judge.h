// Whether a scheduler places gangs together or not at all, judged by what the API server holds, by
// what the scheduler asks it for, and by whom the scheduler keeps places for; and whether GPUs are
// cut for them likewise.
//
//   judge.Expect("default/g", 3);           // a PodGroup and its minMember
//   judge.See(before, after, now);          // as the API server has pods
//   judge.Asked("default/g-1");             // the scheduler asks for its binding
//   for (std::string& problem : judge.Judge(scheduler.snapshot(), now)) ...  // after a step of it
//
// What the scheduler may know late counts for kFaultsLinger: a member that has failed or is gone,
// and a binding that was lost on the way.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/snapshot.h"

namespace nos::sim {

// "default/g"; "": it belongs to none.
std::string PodGroupOf(const cluster::Pod& pod);
// It has a node, and neither failed nor is it being deleted: one that has succeeded counts, too.
bool HasPlace(const cluster::Pod& pod);

class GangJudge {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  void Expect(const std::string& group, size_t least) { gangs_[group].least = least; }
  // Of pods that belong to no gang that is expected, it takes no notice.
  void See(const Pod& before, const Pod& after, Time now);
  // Also of a pod that it has yet to see.
  void Asked(const std::string& pod) { asked_.insert(pod); }
  // What has been asked for since it was last called, and all places that are kept now: each is of
  // a gang of which enough have a place, or are asked for, or have a place kept for them.
  std::vector<std::string> Judge(const cluster::ClusterSnapshot& kept, Time now);
  // `cut_for`: for whom a plan that was just made has GPUs cut; `planned`: for whom slices or a
  // node are kept. Whoever they are of: of that gang enough have a place, or are among `planned`.
  std::vector<std::string> JudgeCuts(const std::set<std::string>& cut_for,
                                     const std::set<std::string>& planned, Time now) const;

 private:
  struct Gang {
    size_t least = 0;
    std::map<std::string, Time> counted_until;  // pod keys
  };
  // Whether for one of it a binding was asked for since the last judgement.
  static bool CountAsked(Gang& gang, const std::set<std::string>& asked, Time now);

  std::map<std::string, Gang> gangs_;
  std::set<std::string> asked_;  // pod keys
};

}  // namespace nos::sim
