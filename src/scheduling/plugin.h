// Interfaces of scheduler plugins: the extension points of kube-scheduler as functions of cluster
// snapshots, without I/O.
//
// A plugin is one folder below scheduling/plugins/ with a class that implements the points it
// needs, and one line in profile/registry.cc.
//
// A verdict is not an error. It states whether the pod fits the node. If not, kUnschedulable means
// that evicting other pods or partitioning GPUs could help, kUnresolvable that nothing on this node
// can.
//
// Plugins are immutable. State of one scheduling cycle is kept in CycleState, reservations are kept
// in the snapshot, and writes to the API server are returned as requests.
#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
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
#include "scheduling/reasons.h"

namespace nos::scheduling {

struct Verdict {
  enum class Kind { kFits, kUnschedulable, kUnresolvable } kind = Kind::kFits;
  std::string code, message;  // as in Reason; empty if the pod fits
  std::vector<Reason> more;   // further reasons of the same plugin: other resources that are short
  bool fits() const { return kind == Kind::kFits; }

  static Verdict Fits() { return {}; }
  static Verdict Unschedulable(std::string code, std::string message) {
    return {Kind::kUnschedulable, std::move(code), std::move(message), {}};
  }
  static Verdict Unresolvable(std::string code, std::string message) {
    return {Kind::kUnresolvable, std::move(code), std::move(message), {}};
  }
  static Verdict Unresolvable(Reason reason) {
    return Unresolvable(std::move(reason.code), std::move(reason.message));
  }
};

// Inputs of a verdict or score. Callers evaluate it once for many nodes or pods, and again only
// where an input changed.
enum class DependsOn {
  kNodeObject,  // pod spec and Node object only: constant while pods are placed
  kNodeUsage,   // also the pods on this node
  kCluster,     // also pods on other nodes, or the cluster context
};

// A change in the cluster that may make a pending pod schedulable.
struct ClusterEvent {
  enum class Kind {
    kNodeAdded,
    kNodeChanged,
    kNodeRemoved,
    kPodBound,    // a pod was bound, by any scheduler
    kPodChanged,  // a bound pod changed: labels, resized requests, or its deletion began
    kPodLeft,     // a bound pod finished or was deleted
    kContext,  // an object of the cluster context (of `context_kind`) was added, changed or removed
  } kind;
  // Before and after the change; null if the object did not exist.
  std::shared_ptr<const cluster::Node> node_before = {}, node = {};
  std::shared_ptr<const cluster::Pod> pod_before = {}, pod = {};
  std::string_view context_kind = {};  // "PersistentVolumeClaim", "Namespace", ...
  // For kContext: a std::shared_ptr<const T>, with the T that ClusterContext uses for the kind.
  // Both are empty if the changed object is unknown.
  std::any context_before = {}, context_after = {};

  // Null if the object did not exist or has another type.
  template <typename T>
  const T* ContextBefore() const {
    return ObjectOf<T>(context_before);
  }
  template <typename T>
  const T* ContextAfter() const {
    return ObjectOf<T>(context_after);
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
  // The name that kube-scheduler uses.
  virtual std::string Name() const = 0;
  // Queueing hint: may the event make `pod`, which this plugin refused, schedulable? Return false
  // only if it certainly cannot.
  virtual bool MayHelp(const ClusterEvent&, const cluster::Pod& /*pod*/) const { return true; }
  // Non-null for the plugin that enforces elastic quotas (quota_plugin.h).
  virtual const QuotaPlugin* AsQuotaPlugin() const { return nullptr; }
  // Requests that may make the pod schedulable, after no node was found for it.
  virtual std::vector<codec::ApiRequest> PostFilter(const cluster::Pod& /*pod*/,
                                                    const cluster::ClusterSnapshot&) const {
    return {};
  }
  // True if a pod that this plugin lets onto a node may need GPU instances that do not exist yet:
  // the scheduler then has the node's GPUs partitioned before it binds the pod.
  virtual bool PartitionsGpus() const { return false; }
  // True if the plugin chooses devices for a pod, so that the choice for one member of a gang
  // decides whether the next one fits.
  virtual bool ChoosesDevices() const { return false; }
};

class PreEnqueuePlugin : public virtual Plugin {
 public:
  // Decides whether the pod may enter the queue. Called again whenever the pod changes.
  virtual Verdict PreEnqueue(const cluster::Pod& pod) const = 0;
};

// Reports nodes that a change may affect: all nodes whose label `key` has this value.
using TouchDomain = FunctionRef<void(std::string_view key, std::string_view value)>;

class PreFilterPlugin : public virtual Plugin {
 public:
  struct Outcome {
    Verdict verdict;  // does not fit: no node can run the pod
    // Names of the only candidate nodes; absent: all nodes.
    std::optional<std::set<std::string>> nodes = {};
    Verdict elsewhere = {};  // verdict on nodes outside `nodes`
    bool skip = false;       // every node fits, regardless of later changes: skip the filter
  };
  // Called once per pod, before any filter.
  virtual Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                            CycleState& state) const = 0;
  // Updates the data that this plugin left in `state` for `pod` after `other` was added to `node`
  // or removed from it (`came`), instead of a new PreFilter. Corresponds to AddPod and RemovePod of
  // kube-scheduler's PreFilterExtensions.
  //
  // `node` may already include later changes: rely only on its labels and taints. Its verdict is
  // recomputed in any case. Report to `touch` the domains beyond it whose verdicts may change.
  // Called even if the filter was skipped. Return false if the change cannot be followed; PreFilter
  // is then called again.
  virtual bool Update(const cluster::Pod& /*pod*/, const cluster::Pod& /*other*/, bool /*came*/,
                      const cluster::NodeInfo& /*node*/, CycleState& /*state*/,
                      TouchDomain /*touch*/) const {
    return true;
  }
};

class FilterPlugin : public virtual Plugin {
 public:
  virtual DependsOn Dependence() const = 0;
  // False: the verdict is always kFits for this pod, and callers may skip the filter.
  virtual bool Concerns(const cluster::Pod&) const { return true; }
  // True if the pod's own spec uses this filter. If only Concerns() is true, the filter can refuse
  // the pod only because of other pods' constraints: their anti-affinity.
  virtual bool IsAsked(const cluster::Pod& pod) const { return Concerns(pod); }
  // The same for this cluster, as far as it is known: without a cluster context, for example,
  // volumes are not checked.
  virtual bool ConcernsIn(const cluster::ClusterSnapshot&, const cluster::Pod& pod) const {
    return Concerns(pod);
  }
  // An empty `state` (no PreFilter) limits the verdict to what the node alone shows.
  virtual Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                         const cluster::NodeInfo& node) const = 0;
};

// Shared pointers, as in the caches.
using Pods = std::span<const std::shared_ptr<const cluster::Pod>>;
using Nodes = std::span<const cluster::NodeInfo* const>;
// Nominated pods that take part in the decision on one pod, by node.
using Promises =
    std::map<std::string, std::vector<std::shared_ptr<const cluster::Pod>>, std::less<>>;

// Which component partitions GPUs for pods that find no free slice.
enum class PartitionedBy {
  kPartitioner,  // the partitioner: the scheduler waits until slices exist
  kScheduler,    // this scheduler, in the cycle that chooses the node
};

inline constexpr int64_t kMaxScore = 100;
// The node gets a total of 0 for this plugin and is ignored when the lowest and highest score are
// determined.
inline constexpr int64_t kUnscored = std::numeric_limits<int64_t>::min();

class ScorePlugin : public virtual Plugin {
 public:
  // Inputs of Score, for a given state.
  virtual DependsOn ScoreDependence() const { return DependsOn::kNodeUsage; }
  // False: Precompute does nothing.
  virtual bool Precomputes() const { return false; }
  // Precomputes inputs of scores that depend on the whole cluster. Called once per batch of pods.
  // `waiting` are all pods without a node, including pods outside the batch.
  virtual void Precompute(const cluster::ClusterSnapshot&, Pods /*waiting*/,
                          CycleState& /*precomputed*/) const {}
  // Called once per pod, before any score. `state` includes the data that Precompute left, if it
  // was called. `feasible` are the nodes that passed all filters. Return false if all nodes score
  // equally for this pod; the plugin is then not called until UpdateScore reports a change.
  virtual bool PreScore(const cluster::Pod& /*pod*/, const cluster::ClusterSnapshot&,
                        Nodes /*feasible*/, CycleState& /*state*/) const {
    return true;
  }
  // Like PreFilterPlugin::Update, for the data that PreScore left, and called even if PreScore
  // returned false. Only called for plugins whose scores depend on the cluster. The default
  // requests a new PreScore each time.
  virtual bool UpdateScore(const cluster::Pod& /*pod*/, const cluster::Pod& /*other*/,
                           bool /*came*/, const cluster::NodeInfo& /*node*/, CycleState& /*state*/,
                           TouchDomain /*touch*/) const {
    return false;
  }
  // The same when `node` becomes feasible or stops being feasible. Returns what must be recomputed.
  enum class Recompute { kNothing, kScores, kPreScore };
  virtual Recompute UpdateFeasible(const cluster::NodeInfo& /*node*/, bool /*feasible*/,
                                   CycleState& /*state*/) const {
    return Recompute::kPreScore;
  }
  // True if scores depend on images of other nodes. PreScore is then called again when images
  // change.
  virtual bool DependsOnImages() const { return false; }
  virtual int64_t Score(const CycleState& state, const cluster::Pod& pod,
                        const cluster::NodeInfo& node) const = 0;
  // Maps a score to 0 (worst) ... kMaxScore (best), given the lowest and highest score of all
  // feasible nodes. Not called for kUnscored.
  virtual int64_t Normalized(int64_t score, int64_t /*lowest*/, int64_t /*highest*/) const {
    return score;
  }
  // True if Normalized returns every score unchanged.
  virtual bool IsAbsolute() const { return false; }
  // True if normalized scores differ as much as the scores do, for scores in [lowest, highest],
  // whether Normalized is given `highest` or `reference`. The totals of other nodes then stay as
  // they are when the highest score changes.
  virtual bool KeepsDifferences(int64_t /*lowest*/, int64_t /*highest*/,
                                int64_t /*reference*/) const {
    return false;
  }
  // Index (Gpu::index) of the GPU on this node on which the pod's slice is best created; absent:
  // any GPU. `precomputed`: the data that Precompute left.
  virtual std::optional<int> PreferredGpu(const CycleState& /*precomputed*/, const cluster::Pod&,
                                          const cluster::NodeInfo&) const {
    return std::nullopt;
  }
  // Tie-break among nodes with equal totals: the lowest order wins, then the first name.
  virtual uint64_t Order(const CycleState&, const cluster::Pod&, const cluster::NodeInfo&) const {
    return 0;
  }
};

// Scales the score so that `highest` becomes kMaxScore. `reverse` maps `highest` to 0 and 0 to
// kMaxScore.
int64_t ScaledToHighest(int64_t score, int64_t highest, bool reverse);

// Kept in CycleState by the caller of PreBind: the versions of objects that the answers to `writes`
// gave, by path of the request.
struct WrittenVersions {
  std::map<std::string, std::string, std::less<>> by_path;
};

// Left in CycleState by the caller of PreBind: paths of requests that the API server has refused,
// so that they never take effect.
struct RefusedWrites {
  std::set<std::string, std::less<>> paths;
};

// Progress of PreBind for a pod that has a node and is not bound yet.
struct Progress {
  enum class Kind { kReady, kWaits, kFailed } kind = Kind::kReady;
  std::string code, message;       // what the pod waits for, or why it failed
  std::optional<Time> until = {};  // kWaits: deadline
  // Requests to send now, before any other request for this pod.
  std::vector<codec::ApiRequest> writes{};
};

class ReservePlugin : public virtual Plugin {
 public:
  // Reserves what the pod needs on the node in the snapshot, so that other pods do not get it.
  // Resource requests are counted already. Called in the cycle that chose the node.
  virtual Verdict Reserve(const cluster::Pod& pod, std::string_view node,
                          cluster::ClusterSnapshot& snapshot, CycleState& state) const = 0;
  // Releases the reservation. Called for every plugin, in reverse order, even if it reserved
  // nothing, and possibly twice.
  virtual void Unreserve(const cluster::Pod& pod, std::string_view node,
                         cluster::ClusterSnapshot& snapshot, CycleState& state) const = 0;
};

class PreBindPlugin : public virtual Plugin {
 public:
  // Prepares the node before the pod is bound. Called again after every relevant change until it
  // returns kReady or kFailed. Do not repeat `writes` that were sent and did not fail.
  virtual Progress PreBind(const cluster::Pod& pod, std::string_view node,
                           const cluster::ClusterSnapshot& snapshot, Time now,
                           CycleState& state) const = 0;
};

}  // namespace nos::scheduling
