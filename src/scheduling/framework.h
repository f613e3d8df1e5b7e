// kube-scheduler's extension points that a simulation needs, over snapshots, without I/O.
//
//   const Framework framework = Framework::Default();
//   const CycleState learnt = framework.Learn(snapshot, waiting);  // once for a batch of pods
//   const Decision decision = framework.Schedule(pod, snapshot, learnt);
//   if (decision.node == nullptr) Say(decision.diagnosis.ToString());
//
// A plugin is one folder below scheduling/plugins/ with a class implementing the points it needs,
// and one line in plugins/registry.cc. A verdict is not an error: it says whether the pod fits and,
// if not, whether changing other pods or the cutting of GPUs could help (kUnschedulable) or nothing
// on this node will (kUnresolvable).
//
// Plugins are immutable: a framework may be used from any number of threads, each with its own
// cycle and its own learnt state.
#pragma once

#include <any>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/snapshot.h"

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

// What a filter's verdict depends on: lets the planner evaluate it once for many nodes or pods.
enum class DependsOn {
  kNodeObject,  // pod spec and node object only: constant while pods are placed
  kNodeUsage,   // also what runs on this node
  kCluster,     // also what runs elsewhere
};

// What a plugin's earlier points leave for its later ones, by plugin name. Copies share what is
// held by shared pointers.
class CycleState {
 public:
  template <typename T>
  void Set(const std::string& plugin, T value) {
    entries_[plugin] = std::move(value);
  }
  // Null pointer when the plugin left nothing of this type.
  template <typename T>
  const T* Get(std::string_view plugin) const {
    const auto it = entries_.find(plugin);
    return it == entries_.end() ? nullptr : std::any_cast<T>(&it->second);
  }
  // Takes over what `other` has of plugins that have left nothing here.
  void Merge(const CycleState& other) {
    entries_.insert(other.entries_.begin(), other.entries_.end());
  }

 private:
  std::map<std::string, std::any, std::less<>> entries_;
};

class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual std::string Name() const = 0;
};

class PreFilterPlugin : public virtual Plugin {
 public:
  struct Outcome {
    Verdict verdict;  // not fitting: no node will do
    // The only nodes that can do, by name; absent: any.
    std::optional<std::set<std::string>> nodes;
    Verdict elsewhere;  // what to say of the other nodes
  };
  // Once per pod, before any filter.
  virtual Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                            CycleState& state) const = 0;
};

class FilterPlugin : public virtual Plugin {
 public:
  virtual DependsOn Dependence() const = 0;
  // Whether the verdict can differ from kFits for this pod at all; false lets callers skip it.
  virtual bool Concerns(const cluster::Pod&) const { return true; }
  // Works without the plugin's pre-filter too (`state` empty), only slower.
  virtual Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                         const cluster::NodeInfo& node) const = 0;
};

// Pods, by shared pointers, as caches hold them.
using Pods = std::span<const std::shared_ptr<const cluster::Pod>>;

class PreScorePlugin : public virtual Plugin {
 public:
  // Once for a batch of pods: what scores need to know of the cluster as a whole. `waiting` are all
  // pods without a node, whether the batch has them or not.
  virtual void Learn(const cluster::ClusterSnapshot&, Pods /*waiting*/,
                     CycleState& /*learnt*/) const {}
  // Once per pod, before any score. `state` has what Learn left, if it was called.
  virtual void PreScore(const cluster::Pod& pod, CycleState& state) const = 0;
};

inline constexpr int64_t kMaxScore = 100;

class ScorePlugin : public virtual Plugin {
 public:
  virtual int64_t Score(const CycleState& state, const cluster::Pod& pod,
                        const cluster::NodeInfo& node) const = 0;
  // Brings the scores of all feasible nodes into 0 (worst) to kMaxScore (best), in place.
  virtual void Normalize(std::vector<int64_t>&) const {}
  // Of nodes with equal sums the one with the least order is taken, then the first by name.
  virtual uint64_t Order(const CycleState&, const cluster::Pod&, const cluster::NodeInfo&) const {
    return 0;
  }
};

// Scales so that the highest becomes kMaxScore; `reverse` makes it 0 and 0 becomes kMaxScore.
void NormalizeToHighest(std::vector<int64_t>& scores, bool reverse);

// One pod's way through the pre-filters.
struct Cycle {
  CycleState state;
  Verdict verdict;                             // not fitting: no node will do
  std::optional<std::set<std::string>> nodes;  // the only candidates
  Verdict elsewhere;                           // what to say of the other nodes
};

// Why a pod has no node: each reason with the number of nodes that gave it, most frequent first.
struct Diagnosis {
  struct Entry {
    std::string code, message;
    Verdict::Kind kind = Verdict::Kind::kUnschedulable;
    int nodes = 0;
  };
  int nodes = 0;     // in the cluster
  int feasible = 0;  // of them
  std::vector<Entry> entries;

  // "0/5 nodes are available: 3 Insufficient cpu, 2 node(s) were unschedulable."
  std::string ToString() const;
};

struct Decision {
  const cluster::NodeInfo* node = nullptr;  // in the snapshot; null: none fits
  int64_t score = 0;
  Diagnosis diagnosis;  // filled when there is no node
};

// The plugins in the order in which they run.
class Framework {
 public:
  struct Entry {
    std::unique_ptr<const Plugin> plugin;
    int weight = 1;  // of its score; 0: do not score
    bool filters = true;
  };
  explicit Framework(std::vector<Entry> entries);
  // All plugins of plugins/registry.cc.
  static Framework Default();

  // For callers that evaluate filters once for many nodes or pods (Dependence, Concerns) and do the
  // arithmetic of resources themselves (plugins/node_resources_fit/fit.h).
  std::span<const FilterPlugin* const> filters() const { return filters_; }

  Cycle PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot) const;
  // The first verdict against the node, in the order of plugins.
  Verdict Filter(const Cycle& cycle, const cluster::Pod& pod, const cluster::NodeInfo& node) const;
  // What scores need to know of the cluster and of all pods; serves any number of pods while the
  // cluster changes little.
  CycleState Learn(const cluster::ClusterSnapshot& snapshot, Pods waiting) const;
  // Weighted sums, one for each node.
  std::vector<int64_t> Score(const Cycle& cycle, const cluster::Pod& pod,
                             std::span<const cluster::NodeInfo* const> nodes,
                             const CycleState& learnt = {}) const;

  // The best node that fits.
  Decision Schedule(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    const CycleState& learnt) const;
  // For a single pod: learns from those that run and from it, which takes time with the number of
  // all pods.
  Decision Schedule(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot) const;
  // What every node says to the pod.
  Diagnosis Diagnose(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot) const;

 private:
  struct Scorer {
    const ScorePlugin* plugin;
    int weight;
  };
  CycleState PreScore(const Cycle& cycle, const cluster::Pod& pod, const CycleState& learnt) const;
  std::vector<int64_t> ScoreAll(const CycleState& state, const cluster::Pod& pod,
                                std::span<const cluster::NodeInfo* const> nodes) const;
  bool ComesFirst(const CycleState& state, const cluster::Pod& pod, const cluster::NodeInfo& left,
                  const cluster::NodeInfo& right) const;

  std::vector<Entry> entries_;
  std::vector<const PreFilterPlugin*> pre_filters_;
  std::vector<const PreScorePlugin*> pre_scorers_;
  std::vector<const FilterPlugin*> filters_;
  std::vector<Scorer> scorers_;
};

}  // namespace nos::scheduling
