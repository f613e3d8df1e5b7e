// A node of a fault simulation whose agent's token is stolen. The thief writes all that the
// admission policies let this token write (deploy/helm/nos/templates/admission-policies.yaml):
// status annotations, results of plans, conditions of nos, and amounts of nvidia.com resources, all
// of its own node. Beside it the agent goes on, or is dead.
//
//   StolenNode stolen(world, seed);
//   NOS_RETURN_IF_ERROR(world.AddNode(stolen.Draw(models)));
//   stolen.Start(until);                  // the controllers run
//
// The node has a taint, so that it is known which pods may come to it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "sim/world.h"

namespace nos::sim {

class StolenNode {
 public:
  static constexpr std::string_view kName = "stolen";
  // For pods that may come to the node.
  static cluster::Toleration Toleration();

  StolenNode(World& world, uint64_t seed) : world_(world), client_(world.api()), random_(seed) {}

  // The node with up to four GPUs of a model of the catalogue. `models`: GPU models of the other
  // nodes.
  NodeSpec Draw(std::vector<const gpu::Model*> models);
  // Half of the pods may come to the node.
  void DrawToleration(PodSpec& pod);
  // Forges writes until this time.
  void Start(Time until);
  // Number of forged writes that the API server has taken.
  int forged() const { return forged_; }

 private:
  void Forge(Time until);
  // A key and value of an annotation; a null value removes it.
  std::pair<std::string, Json> DrawAnnotation();
  std::string DrawLayout();
  std::string DrawHolders();
  std::string DrawNumber();
  std::string DrawResult();
  JsonObject DrawStatus();
  const gpu::Model& DrawModel();

  World& world_;
  kube::Client client_;
  Random random_;
  std::vector<const gpu::Model*> models_;
  int forged_ = 0;
};

}  // namespace nos::sim
