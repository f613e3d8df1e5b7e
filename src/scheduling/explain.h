// Why a pod waits: what keeps it from each node, which node is the nearest, what would have to be
// cut or evicted for it, and the smallest remedy.
//
//   const Explanation why = Explain({framework, cutting, snapshot, pod});
//   std::cout << ToText(why, 100);    // for people
//   Write(ToJson(why)), Tell(why.remedy);
//
// It looks at every node with every filter, and then for pods in the way on as many nodes as a
// preemption looks at: milliseconds for thousands of nodes, so not for each decision.
//
// Pure functions; may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codec/json.h"
#include "quota/balance.h"
#include "scheduling/framework.h"
#include "scheduling/preemption.h"

namespace nos::scheduling {

// In `snapshot` are also those that were promised a node and go first: Engine::WithPromises or
// WithPromises (explain_promises.h).
struct ExplainInput {
  const Framework& framework;  // that decides for the pod
  // As that one, but with GPUs cut for the pod where need be (GpusCut::kHere); may be the same.
  const Framework& cutting;
  const cluster::ClusterSnapshot& snapshot;
  const cluster::Pod& pod;                                            // waits (IsPending)
  std::optional<PreemptionOptions> preemption = PreemptionOptions();  // none: it may not preempt
  // What keeps the group of pods waiting that it is placed together with.
  std::string gang = {};
  // The group is complete, and this is the pod of it that finds no node beside the others.
  bool beside = false;
  // The namespace of those who read the remedy: pods of others are counted there, not named (see
  // pod_names.h). Empty: they may know of all.
  std::string reader = {};
  // What is used of quotas, as the pod has to see it (Engine::BalanceFor); null: there are none.
  const quota::Balance* balance = nullptr;
  // Who has to go for the pod by what its quota gives it a right to; null: nobody, or that is
  // known. Where a quota is in force nobody goes for a priority alone.
  std::function<std::optional<Preemption>()> reclaim = nullptr;
};

struct Explanation {
  struct Lack {
    std::string resource;
    // In thousandths of a core, or whole units. What is free may be less than nothing.
    int64_t asked = 0, free = 0, allocatable = 0;
    int64_t held = 0;    // by pods that may end
    int64_t kept = 0;    // by those that a DaemonSet or the node itself would start there again
    int64_t most = 0;    // beside these, however the node's GPUs are cut
    bool never = false;  // asked > most
  };
  struct Instance {
    int gpu = 0;       // index
    std::string name;  // "1g.5gb@6"
    friend bool operator==(const Instance&, const Instance&) = default;
  };
  // What of a node's GPUs is to be made, and which free instances give way to that.
  struct Cut {
    std::vector<Instance> made, destroyed;
  };
  struct Nearest {
    std::string node;
    std::vector<Reason> objections;  // beside lacking resources
    std::vector<Lack> lacks;
    std::optional<Cut> cut;  // makes all MIG instances that it lacks
    bool out = false;        // its taints say that nothing can be run there for now
  };
  struct Place {
    std::string node;
    Cut cut;
  };
  struct Room {
    std::string node;
    std::vector<std::string> pods;  // keys; those that would have to go, the most important first
    int32_t priority = 0;           // the highest of theirs
    std::vector<std::string> coming = {};  // of them: they have yet to run there, and go first
    bool ending = false;                   // all the others are being deleted already
  };

  std::string pod;  // key
  int32_t priority = 0;
  bool cuts_here = false;          // its scheduler has GPUs cut
  std::string gate, gang;          // not empty: what it, or its group, waits for
  bool beside = false;             // as in ExplainInput
  std::string quota, for_quota;    // why its quota does not let it in, and what would help
  Diagnosis diagnosis;             // of its own scheduler
  std::optional<Place> place;      // it fits now
  std::optional<Place> being_cut;  // has been chosen for it; its GPUs are being cut
  std::optional<Nearest> nearest;  // of the nodes that refuse it
  std::optional<Room> awaited;     // which is being made for it already
  std::string awaits_agent;        // of this node: room was made for it there (explain_promises.h)
  std::optional<Room> preemption;  // which its priority makes, or its quota
  bool by_quota = false;           // the latter
  std::string no_preemption;       // why it may not preempt
  // The fewest pods without which it would fit. None that their owner starts there again.
  std::optional<Room> in_the_way;
  bool priority_helps = false;  // they would be evicted for it if its priority were above theirs
  std::string remedy;           // one sentence
};

Explanation Explain(const ExplainInput& input);

// Lines of at most `width` characters, but for words that are longer.
std::string ToText(const Explanation& explanation, size_t width);
Json ToJson(const Explanation& explanation);
// "1g.5gb@6 of GPU 0 and 1g.5gb@5 of GPU 1".
std::string InstancesText(const std::vector<Explanation::Instance>& instances);
// "500m cpu", "2Gi memory".
std::string AmountText(const std::string& resource, int64_t amount);

}  // namespace nos::scheduling
