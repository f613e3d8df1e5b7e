// Finds nodes for the members of a gang and the victims to evict for them. It simulates, member by
// member, the decisions after the evictions, in the same order and by the same rules.
//
//   GangVictimSearch search(engine, profiles, policy, terminating, foreign, waits, victims, input);
//   const GangPlan plan = search.Run();
//   if (gang.placed + plan.places.size() >= gang.least) Evict(plan.victims);
//
// One object runs one search. It evicts and reserves nothing. Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controllers/scheduler/preemption/pending_gang.h"
#include "controllers/scheduler/preemption/victim_search.h"
#include "scheduling/rehearsal.h"

namespace nos::controllers {

// A node for each member, and the victims that would have to be evicted for that.
struct GangPlan {
  std::vector<std::pair<std::shared_ptr<const cluster::Pod>, std::string>> places;
  std::vector<std::shared_ptr<const cluster::Pod>> victims;
  bool waits = false;                              // for victims that are already terminating
  std::set<std::string> awaits_partitioning = {};  // nodes that need new instances
  std::string why_not;                             // why no pod may be evicted now
  bool searched = false;                           // false: no member may evict, or why_not
};

class GangVictimSearch {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  struct Input {
    const PendingGang& gang;
    std::set<std::string> members;  // keys of all members of the gang
    Time now;
    // All plans are done and free GPUs are partitioned as needed, but nothing is evicted.
    bool partitioned = false;
  };

  // All must outlive this object.
  GangVictimSearch(scheduling::Engine& engine, const Profiles& profiles,
                   const EvictionPolicy& policy, const TerminatingPods& terminating,
                   const ForeignNominations& foreign, AgentWaits& waits, VictimSearch& victims,
                   Input input);

  // To be called once.
  GangPlan Run();

 private:
  using Preemption = scheduling::Preemption;
  // Members that are alike, and the search result for them.
  struct Kind {
    bool hopeless = false;
    // Nominations of other pods that must stay possible.
    std::optional<scheduling::Promises> promises = {};
    std::vector<Preemption> candidates = {};
  };

  bool HasQuota(const Pod& member) const;
  const scheduling::Framework& FrameworkOf(const Pod& member) const;
  bool MayPreempt(const Pod& member) const;
  std::string WhyWait(const Pod& member);
  const std::vector<Pod>& Leaving();
  std::vector<Pod> WithRestOfGangs();
  bool Take(const Pod& member, const Preemption& place);
  std::vector<Pod> FindForEach(const std::vector<Pod>& members);
  std::optional<Preemption> FindUnlessInVain(const Pod& member);
  std::optional<Preemption> FindFor(const Pod& member);
  std::optional<Preemption> FindByQuota(const Pod& member);
  std::optional<Preemption> FindVictims(const Pod& member, Kind& kind,
                                        const scheduling::Promises& promises);
  std::vector<Preemption> Candidates(const Pod& member, const scheduling::Promises& promises,
                                     const std::string& node) const;

  scheduling::Engine& engine_;
  const Profiles& profiles_;
  const EvictionPolicy& policy_;
  const TerminatingPods& terminating_;
  const ForeignNominations& foreign_;
  AgentWaits& waits_;
  VictimSearch& victims_;
  const Input input_;
  scheduling::Rehearsal rehearsal_;
  std::set<std::string> waiting_;  // keys of members without a node
  std::optional<std::vector<Pod>> leaving_;
  std::optional<scheduling::Reclaim> reclaim_;
  std::map<std::string, Kind> kinds_;
  std::map<std::string, size_t> in_vain_;  // by kind: the number of places at the last failure
  GangPlan plan_;
};

// One of the pods requests slices of GPUs.
bool AskForSlices(const std::vector<std::shared_ptr<const cluster::Pod>>& pods,
                  const cluster::ClusterSnapshot& snapshot);

}  // namespace nos::controllers
