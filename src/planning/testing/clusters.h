// Builds clusters for planner tests from short descriptions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/snapshot.h"
#include "planning/plan.h"

namespace nos::planning::testing {

using SharedPods = std::vector<std::shared_ptr<const cluster::Pod>>;

class ClusterBuilder {
 public:
  // A node opted in to partitioning with 64 cpu and capacity for 110 pods. `layouts`: one per GPU,
  // in the format of the status annotation: "3g.20gb@4:used,1g.5gb@0:free".
  cluster::Node& Node(const std::string& name, const std::string& product,
                      const std::vector<std::string>& layouts);
  // The same with GPUs shared by memory, `gib` GiB each: "10gb@0:used".
  cluster::Node& SharedNode(const std::string& name, int gib,
                            const std::vector<std::string>& layouts);
  // The same with GPUs in different sharing modes: current model, the model that it may switch to,
  // and layout: "H100-80GB+GPU+TIME-4|MPS-79GB 1g.10gb@0:used".
  cluster::Node& HybridNode(const std::string& name, const std::vector<std::string>& gpus);
  // A node without GPUs.
  cluster::Node& PlainNode(const std::string& name);
  // A pending pod that requests the profiles ("3g.20gb"; "10gb" for a share, "gpu", "shared" for a
  // time slice) and cpu; with several slices, one container each.
  cluster::Pod& Pod(const std::string& name, const std::vector<std::string>& profiles,
                    int priority = 0, const std::string& cpu = "");
  // A running pod.
  cluster::Pod& Running(const std::string& name, const std::string& node,
                        const std::vector<std::string>& profiles, const std::string& cpu = "");

  cluster::ClusterSnapshot Snapshot(
      const gpu::Catalogue& catalogue = gpu::Catalogue::Builtin()) const;
  SharedPods Pending() const;
  // With remedies (AddRemedies).
  Plan MakePlan(const PlanOptions& options = {}) const;

 private:
  std::vector<std::unique_ptr<cluster::Node>> nodes_;
  std::vector<std::unique_ptr<cluster::Pod>> running_, pending_;
};

// The target layout of a changed GPU as "profile@start" parts, '*' for used, '+' for new; "" if
// unchanged.
std::string LayoutText(const Plan& plan, const std::string& node, int gpu);
// By profile: number of instances on the GPU after the plan, whether it changes or not.
std::map<std::string, int> CountsAfter(const Plan& plan, const cluster::ClusterSnapshot& snapshot,
                                       const std::string& node, int gpu);
// The first violation of the contract in planner.h, checked without the planner's code; "" if there
// is none.
std::string PlanFault(const Plan& plan, const cluster::ClusterSnapshot& snapshot);

}  // namespace nos::planning::testing
