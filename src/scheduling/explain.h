// Explains why a pod is pending: what excludes it from each node, the nearest node, the instances
// to create or pods to evict for it, and the smallest remedy.
//
//   const Explanation why = Explain({framework, partitioning, snapshot, pod});
//   std::cout << ToText(why, 100);    // for users
//   Write(ToJson(why)), Report(why.remedy);
//
// Runs every filter on every node, then searches for pods in the way on as many nodes as a
// preemption visits. This takes milliseconds for thousands of nodes: too slow for every scheduling
// decision.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codec/json.h"
#include "quota/balance.h"
#include "scheduling/diagnosis.h"
#include "scheduling/preemption.h"

namespace nos::scheduling {

class Framework;

// `snapshot` must include pods that are nominated and go first: use Engine::WithPromises, or
// WithPromises in explain_promises.h.
struct ExplainInput {
  const Framework& framework;  // the framework that schedules the pod
  // Like `framework`, but partitions GPUs for the pod if needed (PartitionedBy::kScheduler). May be
  // the same object.
  const Framework& partitioning;
  const cluster::ClusterSnapshot& snapshot;
  const cluster::Pod& pod;  // pending (IsPending)
  // Absent: the pod may not preempt.
  std::optional<PreemptionOptions> preemption = PreemptionOptions();
  // Why the pod's gang is pending. Empty: the pod is placed alone.
  std::string gang = {};
  // The gang is complete, and this is its member that finds no node beside the others.
  bool beside = false;
  // Namespace of the readers of the remedy. Pods of other namespaces are counted, not named (see
  // pod_names.h). Empty: readers may see all namespaces.
  std::string reader = {};
  // Use of quotas as it applies to the pod (Engine::BalanceFor); null: there are no quotas.
  const quota::Balance* balance = nullptr;
  // Finds the pods to evict for the pod's entitlement under its quota. Null: none, or unknown. With
  // a quota in force, no pod is evicted for priority alone.
  std::function<std::optional<Preemption>()> reclaim = nullptr;
  // Charge of the members of the pod's gang that the quota must admit together with it.
  quota::Amounts charged_with_it = {};
  // False: pods that would be evicted for it are waited for, as if the scheduler did not preempt.
  bool evicts = true;
  // Also find `Explanation::other_remedies`.
  bool alternatives = false;
};

struct Explanation {
  struct Lack {
    std::string resource;
    // In thousandths of a core, or whole units. `free` may be negative.
    int64_t asked = 0, free = 0, allocatable = 0;
    int64_t held = 0;         // by pods that can be evicted
    int64_t kept = 0;         // by pods that a DaemonSet or the node itself would restart there
    bool members = false;     // `kept` includes members of its gang that have found this node
    int64_t most = 0;         // maximum beside `kept`, however the node's GPUs are partitioned
    bool never = false;       // asked > most
    bool slice = false;       // provided by partitioning the node's GPUs
    bool beside_mig = false;  // whole GPUs that may be partitioned for MIG do not count
  };
  struct Instance {
    int gpu = 0;       // index
    std::string name;  // "1g.5gb@6"
    friend bool operator==(const Instance&, const Instance&) = default;
  };
  // Instances to create on a node's GPUs, and free instances to destroy for them.
  struct Repartition {
    std::vector<Instance> made, destroyed;
  };
  struct Nearest {
    std::string node;
    std::vector<Reason> objections;  // besides resource shortfalls
    std::vector<Lack> lacks;
    std::optional<Repartition> repartition;  // creates all MIG instances that are missing
    bool unreported = false;                 // the agent has yet to report GPUs of `repartition`
    bool out = false;                        // its taints say that it cannot run pods for now
  };
  struct Place {
    std::string node;
    Repartition repartition;
  };
  struct Victims {
    std::string node;
    std::vector<std::string> pods;  // keys of the pods to evict, most important first
    int32_t priority = 0;           // the highest of their priorities
    // Members of `pods` that do not run there yet and go first.
    std::vector<std::string> coming = {};
    bool ending = false;  // all other pods are terminating already
  };

  // Instances in use on a node.
  struct InUse {
    std::string node;
    std::vector<Instance> instances;
  };

  std::string pod;     // key
  std::string demand;  // its GPUs and slices, as DemandText (summary.h)
  int32_t priority = 0;
  bool partitions_here = false;  // its scheduler partitions GPUs
  std::string gate, gang;        // not empty: why the pod, or its gang, is held back
  std::string gate_code;         // of `gate`
  bool beside = false;           // as in ExplainInput
  std::string requirements;      // which slice meets the pod's GPU requirements; "": it has none
  std::string quota, for_quota;  // why its quota refuses it, and the remedy
  // The diagnosis of the pod's own scheduler, with more detail if slices are missing
  // (slice_reasons.h).
  Diagnosis diagnosis;
  std::optional<Place> place;  // a node where it fits now
  // Set in place of `place` if the node's agent reports the instances as used, and no known pod
  // uses them.
  std::optional<InUse> in_use;
  std::optional<Place> being_partitioned;  // a node chosen for it, whose GPUs are being partitioned
  std::optional<Nearest> nearest;          // the nearest of the nodes that refuse it
  std::optional<Victims> awaited;          // capacity that is being freed for it already
  // Name of a node where capacity was freed and whose agent has yet to report (explain_promises.h).
  std::string awaits_agent;
  std::optional<Victims> preemption;  // capacity that preemption by priority or quota would free
  bool by_quota = false;              // `preemption` is by quota
  std::string no_preemption;          // why it may not preempt
  // The fewest pods without which it would fit. Absent if their owners would restart them there.
  std::optional<Victims> in_the_way;
  bool priority_helps = false;  // true: with a priority above theirs it could preempt `in_the_way`
  // A reason that no node can change: a profile that no GPU model has.
  std::optional<Reason> impossible;
  std::string remedy_code, remedy;               // as in Remedy (remedies.h)
  std::vector<std::string> other_remedies = {};  // texts, the better ones first
};

Explanation Explain(const ExplainInput& input);

// Wraps lines at `width` characters, except for longer words.
std::string ToText(const Explanation& explanation, size_t width);
Json ToJson(const Explanation& explanation);
// "1g.5gb@6 of GPU 0 and 1g.5gb@5 of GPU 1".
std::string InstancesText(const std::vector<Explanation::Instance>& instances);

}  // namespace nos::scheduling
