// kube-scheduler's extension points that a simulation needs, over snapshots, without I/O.
//
// A plugin is one folder below scheduling/plugins/ with a class implementing the points it needs. A
// verdict is not an error: it says whether the pod fits and, if not, whether changing other pods or
// the cutting of GPUs could help (kUnschedulable) or nothing on this node will (kUnresolvable).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster/snapshot.h"

namespace nos::scheduling {

struct Verdict {
  enum class Kind { kFits, kUnschedulable, kUnresolvable } kind = Kind::kFits;
  std::string code;     // machine-readable: "InsufficientResource", "Tainted", ...
  std::string message;  // as kube-scheduler words it: "Insufficient cpu"
  bool fits() const { return kind == Kind::kFits; }
};

// What a filter's verdict depends on: lets the planner evaluate it once for many nodes or pods.
enum class DependsOn {
  kNodeObject,  // pod spec and node object only: constant while pods are placed
  kNodeUsage,   // also what runs on this node
  kCluster,     // also what runs elsewhere
};

// Per-pod scratch that pre-filters leave for filters; keyed by plugin name.
class CycleState;

class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual std::string Name() const = 0;
};

class FilterPlugin : public virtual Plugin {
 public:
  virtual DependsOn Dependence() const = 0;
  // Whether the verdict can differ from kFits for this pod at all; false lets callers skip it.
  virtual bool Concerns(const cluster::Pod&) const { return true; }
  virtual Verdict Filter(const cluster::Pod& pod, const cluster::NodeInfo& node) const = 0;
};

class ScorePlugin : public virtual Plugin {
 public:
  // 0 (worst) to 100 (best) after normalisation.
  virtual int64_t Score(const cluster::Pod& pod, const cluster::NodeInfo& node) const = 0;
};

}  // namespace nos::scheduling
