// Decides with nos on a pod in a snapshot: node by node, plugin by plugin, and with the engine,
// which is updated incrementally from snapshot to snapshot.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler_differential/plane.h"
#include "scheduling/configuration.h"
#include "scheduling/cycle.h"
#include "scheduling/diagnosis.h"
#include "scheduling/engine.h"
#include "scheduling/preemption.h"

namespace nos::differential {

struct Opinion {
  std::string gate;        // reason why it may not be queued
  bool pod_level = false;  // it has pod-level resources
  // Why no node can serve the pod, whatever the nodes are.
  scheduling::Verdict refusal;
  bool all_filters = false;  // nos stops earlier: `nodes` has the verdicts as if it did not
  struct Node {
    scheduling::Verdict verdict;
    int64_t total = 0;
    std::map<std::string, int64_t> scores = {};  // by plugin, weighted
  };
  std::map<std::string, Node> nodes;
  int feasible = 0;
  int64_t best = 0;
  std::string first_best;  // the first node by name with the best total
  scheduling::Diagnosis diagnosis;
  std::string why_not_preempt;
  std::vector<scheduling::Preemption> candidates;
  std::optional<scheduling::Preemption> preemption;
  // A decision of the engine, or of Framework::Schedule, that differs from the one above.
  std::string contradiction;
};

class Decider {
 public:
  // Uses the profiles of this configuration.
  static Result<Decider> Of(const std::string& path);

  // From now on pods that claim devices are served.
  void FollowDevices();

  // REQUIRES: `pod` is not in the snapshot.
  Opinion Ask(const Picture& picture, const std::shared_ptr<const cluster::Pod>& pod);

 private:
  void Follow(const Picture& picture);
  void FollowContext(const Picture& picture);
  explicit Decider(std::vector<scheduling::Profile> profiles);
  const scheduling::Framework& FrameworkOf(const cluster::Pod& pod) const;
  void Score(const scheduling::Cycle& cycle, const cluster::Pod& pod,
             const cluster::ClusterSnapshot& snapshot, Opinion& opinion) const;
  std::string Contradiction(const cluster::ClusterSnapshot& snapshot,
                            const std::shared_ptr<const cluster::Pod>& pod, const Opinion& opinion);

  std::vector<scheduling::Profile> profiles_;
  std::unique_ptr<scheduling::Engine> engine_;
  std::vector<std::shared_ptr<const cluster::Pod>> promised_;    // pending, with nominated nodes
  std::map<std::string, std::string> known_nodes_, known_pods_;  // key -> version
  bool devices_ = false;
  std::map<std::string, std::string> known_context_, known_devices_;  // "kind key" -> version
};

// For log output.
std::string Describe(const Opinion& opinion);

}  // namespace nos::differential
