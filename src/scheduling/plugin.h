// What a plugin of the scheduler may take part in: kube-scheduler's extension points, as functions
// of snapshots, without I/O.
//
// A plugin is one folder below scheduling/plugins/ with a class implementing the points it needs,
// and one line in plugins/registry.cc. A verdict is not an error: it says whether the pod fits and,
// if not, whether changing other pods or the cutting of GPUs could help (kUnschedulable) or nothing
// on this node will (kUnresolvable).
//
// Plugins are immutable: what one of them learns or keeps for a pod is in the CycleState, what it
// reserves is in the snapshot. What it wants written to the API server it returns as requests.
#pragma once

#include <any>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/function_ref.h"
#include "cluster/snapshot.h"
#include "codec/api_request.h"
#include "scheduling/framework/cycle_state.h"

namespace nos::scheduling {

struct Reason {
  std::string code;     // machine-readable: "InsufficientResource", "Tainted", ...
  std::string message;  // as kube-scheduler words it: "Insufficient cpu"
};

struct Verdict {
  enum class Kind { kFits, kUnschedulable, kUnresolvable } kind = Kind::kFits;
  std::string code, message;  // as in Reason; empty when it fits
  std::vector<Reason> more;   // further reasons of the same plugin: other resources that lack
  bool fits() const { return kind == Kind::kFits; }

  static Verdict Fits() { return {}; }
  static Verdict Unschedulable(std::string code, std::string message) {
    return {Kind::kUnschedulable, std::move(code), std::move(message), {}};
  }
  static Verdict Unresolvable(std::string code, std::string message) {
    return {Kind::kUnresolvable, std::move(code), std::move(message), {}};
  }
};

// What a verdict or a score depends on: lets callers evaluate it once for many nodes or pods, and
// again only where something changed.
enum class DependsOn {
  kNodeObject,  // pod spec and node object only: constant while pods are placed
  kNodeUsage,   // also what runs on this node
  kCluster,     // also what runs elsewhere, or what surrounds pods and nodes
};

// Something that happened in the cluster, which may help a pod that waits.
struct ClusterEvent {
  enum class Kind {
    kNodeAdded,
    kNodeChanged,
    kNodeRemoved,
    kPodBound,    // a pod was bound, by whomever
    kPodChanged,  // one that is bound: labels, requests resized, or its end has begun
    kPodLeft,     // one that was bound is finished or gone
    kAround,      // of `around`: one of the Surroundings came, changed or went
  } kind;
  // Before and after; null where there is none.
  std::shared_ptr<const cluster::Node> node_before = {}, node = {};
  std::shared_ptr<const cluster::Pod> pod_before = {}, pod = {};
  std::string_view around = {};  // "PersistentVolumeClaim", "Namespace", ...
  // Of kAround: a std::shared_ptr<const T> with the T that Surroundings has for it. Both empty:
  // what has changed is not told.
  std::any around_before = {}, around_after = {};

  // Null where there is none.
  template <typename T>
  const T* AroundBefore() const {
    return ObjectOf<T>(around_before);
  }
  template <typename T>
  const T* AroundAfter() const {
    return ObjectOf<T>(around_after);
  }

 private:
  template <typename T>
  static const T* ObjectOf(const std::any& object) {
    const auto* held = std::any_cast<std::shared_ptr<const T>>(&object);
    return held == nullptr ? nullptr : held->get();
  }
};

class QuotaPlugin;

class Plugin {
 public:
  virtual ~Plugin() = default;
  // As kube-scheduler names it.
  virtual std::string Name() const = 0;
  // Whether the event may have made room for `pod`, which this plugin refused (a queueing hint).
  // False only when it certainly has not.
  virtual bool MayHelp(const ClusterEvent&, const cluster::Pod& /*pod*/) const { return true; }
  // Non-null for the plugin that enforces elastic quotas (quota_plugin.h).
  virtual const QuotaPlugin* AsQuotaPlugin() const { return nullptr; }
  // True if a pod that this plugin lets onto a node may need GPU instances that do not exist yet: the
  // scheduler then has the node's GPUs partitioned before it binds the pod.
  virtual bool PartitionsGpus() const { return false; }
};

class PreEnqueuePlugin : public virtual Plugin {
 public:
  // Whether the pod may be queued at all; asked again when the pod changes.
  virtual Verdict PreEnqueue(const cluster::Pod& pod) const = 0;
};

// Names nodes that may be touched by a change: those whose label `key` has this value.
using TouchDomain = FunctionRef<void(std::string_view key, std::string_view value)>;

class PreFilterPlugin : public virtual Plugin {
 public:
  struct Outcome {
    Verdict verdict;  // not fitting: no node will do
    // The only nodes that can do, by name; absent: any.
    std::optional<std::set<std::string>> nodes = {};
    Verdict elsewhere = {};  // what to say of the other nodes
    bool skip = false;       // every node fits, whatever comes and goes: do not filter
  };
  // Once per pod, before any filter.
  virtual Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                            CycleState& state) const = 0;
  // Brings what this plugin left in `state` for `pod` up to date when `other` has come to `node`,
  // or left it (PreFilterExtensions AddPod and RemovePod), instead of a new PreFilter. `node`,
  // whose verdict is asked anew anyway, may show later changes already: only its labels and taints
  // are sure. `touch` gets the domains beyond it whose verdicts may be others now. Called after
  // PreFilter also when the filter was skipped, and returns false when the change cannot be
  // followed: then PreFilter is called anew.
  virtual bool Update(const cluster::Pod& /*pod*/, const cluster::Pod& /*other*/, bool /*came*/,
                      const cluster::NodeInfo& /*node*/, CycleState& /*state*/,
                      TouchDomain /*touch*/) const {
    return true;
  }
};

class FilterPlugin : public virtual Plugin {
 public:
  virtual DependsOn Dependence() const = 0;
  // Whether the verdict can differ from kFits for this pod at all; false lets callers skip it.
  virtual bool Concerns(const cluster::Pod&) const { return true; }
  // Whether the pod itself asks for something here. One that does not, but is concerned, can be
  // refused only for what other pods ask: their anti-affinity.
  virtual bool IsAsked(const cluster::Pod& pod) const { return Concerns(pod); }
  // The same of this cluster, as far as it is known: nothing can be said of volumes where nobody
  // has looked around.
  virtual bool ConcernsIn(const cluster::ClusterSnapshot&, const cluster::Pod& pod) const {
    return Concerns(pod);
  }
  // With an empty `state` (no PreFilter): what can be told without it.
  virtual Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                         const cluster::NodeInfo& node) const = 0;
};

// Pods, by shared pointers, as caches hold them.
using Pods = std::span<const std::shared_ptr<const cluster::Pod>>;
using Nodes = std::span<const cluster::NodeInfo* const>;

inline constexpr int64_t kMaxScore = 100;
// Of a node that gets 0 in the end and does not count for the lowest and highest.
inline constexpr int64_t kUnscored = std::numeric_limits<int64_t>::min();

class ScorePlugin : public virtual Plugin {
 public:
  // Of Score, for a given state.
  virtual DependsOn ScoreDependence() const { return DependsOn::kNodeUsage; }
  // Whether Learn does anything.
  virtual bool Learns() const { return false; }
  // Once for a batch of pods: what scores need to know of the cluster as a whole. `waiting` are all
  // pods without a node, whether the batch has them or not.
  virtual void Learn(const cluster::ClusterSnapshot&, Pods /*waiting*/,
                     CycleState& /*learnt*/) const {}
  // Once per pod, before any score; `state` has what Learn left, if it was called, and `feasible`
  // are the nodes that passed the filters. False: to this plugin all nodes are alike for this pod,
  // until UpdateScore says otherwise; it does not score.
  virtual bool PreScore(const cluster::Pod& /*pod*/, const cluster::ClusterSnapshot&,
                        Nodes /*feasible*/, CycleState& /*state*/) const {
    return true;
  }
  // As PreFilterPlugin::Update, for what PreScore left; called also when it returned false. Only of
  // plugins whose scores depend on the cluster. The default asks for a new PreScore each time.
  virtual bool UpdateScore(const cluster::Pod& /*pod*/, const cluster::Pod& /*other*/,
                           bool /*came*/, const cluster::NodeInfo& /*node*/, CycleState& /*state*/,
                           TouchDomain /*touch*/) const {
    return false;
  }
  // The same when `node` has begun or ceased to be feasible: returns what is to be asked anew.
  enum class Anew { kNothing, kScores, kPreScore };
  virtual Anew UpdateFeasible(const cluster::NodeInfo& /*node*/, bool /*feasible*/,
                              CycleState& /*state*/) const {
    return Anew::kPreScore;
  }
  // Whether scores heed which images other nodes have: when that changes, PreScore is called anew.
  virtual bool HeedsImages() const { return false; }
  virtual int64_t Score(const CycleState& state, const cluster::Pod& pod,
                        const cluster::NodeInfo& node) const = 0;
  // The score in 0 (worst) to kMaxScore (best), from the lowest and highest of all feasible nodes.
  // Not called for kUnscored.
  virtual int64_t Normalized(int64_t score, int64_t /*lowest*/, int64_t /*highest*/) const {
    return score;
  }
  // Whether Normalized returns every score as it is.
  virtual bool IsAbsolute() const { return false; }
  // The GPU (Gpu::index) that the pod's share is best made on if it gets this node; nothing: any.
  // `learnt`: what Learn left.
  virtual std::optional<int> PreferredGpu(const CycleState& /*learnt*/, const cluster::Pod&,
                                          const cluster::NodeInfo&) const {
    return std::nullopt;
  }
  // Of nodes with equal sums the one with the least order is taken, then the first by name.
  virtual uint64_t Order(const CycleState&, const cluster::Pod&, const cluster::NodeInfo&) const {
    return 0;
  }
};

// Scaled so that the highest becomes kMaxScore; `reverse` makes it 0 and 0 becomes kMaxScore.
int64_t ScaledToHighest(int64_t score, int64_t highest, bool reverse);

// How far a pod is that has a node, but is not bound yet.
struct Progress {
  enum class Kind { kReady, kWaits, kFailed } kind = Kind::kReady;
  std::string code, message;               // of what it waits for, or why it failed
  std::optional<Time> until = {};          // kWaits: fails then
  std::vector<codec::ApiRequest> writes{};  // to be sent now, before anything else of this pod
};

class ReservePlugin : public virtual Plugin {
 public:
  // Takes what the pod needs on the node out of the snapshot, where other pods would find it;
  // resources are taken already. Called in the cycle that chose the node.
  virtual Verdict Reserve(const cluster::Pod& pod, std::string_view node,
                          cluster::ClusterSnapshot& snapshot, CycleState& state) const = 0;
  // Gives it back. Called for every plugin, in reverse order, also when it reserved nothing, and
  // may be called twice.
  virtual void Unreserve(const cluster::Pod& pod, std::string_view node,
                         cluster::ClusterSnapshot& snapshot, CycleState& state) const = 0;
};

class PreBindPlugin : public virtual Plugin {
 public:
  // What is to be done before the pod is bound. Called again whenever something has changed, until
  // it is ready or failed; `writes` that were sent and did not fail are not to be repeated.
  virtual Progress PreBind(const cluster::Pod& pod, std::string_view node,
                           const cluster::ClusterSnapshot& snapshot, Time now,
                           CycleState& state) const = 0;
};

}  // namespace nos::scheduling
