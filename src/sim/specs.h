// Nodes and pods of a virtual cluster as short descriptions, and their Kubernetes objects.
//
//   NodeSpec node{.name = "gpu-1", .gpus = {{"A100-40GB"}, {"A100-40GB"}}};
//   PodSpec pod{.name = "train", .containers = {{{"3g.20gb", 2}}}, .run = std::chrono::minutes(5)};
//   Json object = PodObject(pod);
//
// Plain values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/node_modes.h"
#include "base/clock.h"
#include "base/status.h"
#include "cluster/objects.h"
#include "codec/json.h"
#include "gpu/catalogue.h"
#include "gpu/modes.h"
#include "gpu/shares.h"
#include "kube/client.h"

namespace nos::sim {

// How long a virtual pod runs before it succeeds, in seconds (a decimal number). Absent: it never
// ends.
inline constexpr std::string_view kRunSeconds = "sim.nos.nebuly.com/run-seconds";
// Total run time of its init containers, in seconds. Absent: zero.
inline constexpr std::string_view kInitSeconds = "sim.nos.nebuly.com/init-seconds";
// Creation time of a pod in a workload file, in seconds after the start. Absent: zero.
// When the containers end after a deletion: "late": at the end of the grace period; "never": the
// kubelet cannot kill them; no annotation: soon.
inline constexpr std::string_view kEnds = "sim.nos.nebuly.com/ends";
inline constexpr std::string_view kArrivalSeconds = "sim.nos.nebuly.com/arrival-seconds";
// The name under which a pod was first submitted; its replacements have the same label.
inline constexpr std::string_view kPodLabel = "sim.nos.nebuly.com/pod";
// The PodGroup of a pod (scheduler-plugins, coscheduling).
inline constexpr std::string_view kPodGroupLabel = "scheduling.x-k8s.io/pod-group";

// An instance, or a share, that exists from the start.
struct InstanceSpec {
  std::string placement = {};  // "3g.20gb@4", "10gb@0"
  bool used = false;           // a pod holds it from the start
  std::string pod = {};        // the pod's name; empty: generated
};

struct GpuSpec {
  // Catalogue name ("A100-40GB") or product ("NVIDIA-A100-SXM4-40GB"); "MPS-15GB" is a GPU without
  // MIG and with this much memory for shares.
  std::string model;
  std::vector<InstanceSpec> instances = {};
};

struct NodeSpec {
  std::string name = {};
  std::vector<GpuSpec> gpus = {};
  cluster::StringMap labels = {}, annotations = {};
  std::vector<cluster::Taint> taints = {};
  bool unschedulable = false;
  bool managed = true;  // has the label nos.nebuly.com/gpu-partitioning
  bool mps = false;     // the label's value is mps instead of mig
  // Its GPUs are served by a driver of Dynamic Resource Allocation instead of an agent (world/node/
  // claim_driver.h). REQUIRES: not managed.
  bool dra = false;
  bool hybrid = false;  // the label's value is hybrid: each GPU has its own sharing mode and starts
                        // empty
  Quantity cpu = Quantity::FromValue(96);
  Quantity memory = Quantity::FromValue(int64_t{768} << 30);
  int max_pods = 110;
  // A client forges the status of the Node object (world/run/chaos_stolen_node.h): invariant
  // checkers look at its devices only.
  bool forged = false;
  int max_shares = gpu::kMaxShares;  // per GPU shared by MPS
  // For hybrid nodes: the agent's rule for resetting GPUs whose MIG mode changes only with a reset.
  agent::ResetRule resets = agent::ResetRule::kNever;
};

// Pods with a label, in a topology domain.
struct OthersSpec {
  std::string topology_key, label, value;
};

// A ResourceClaim of a pod: `claim`, or one that is made from `template_name`.
struct ClaimRefSpec {
  std::string claim, template_name;
};

struct PodSpec {
  std::string ns = "default";
  std::string name = {};
  // Number of instances or shares by profile, for each container.
  std::vector<std::map<std::string, int>> containers = {};
  std::map<std::string, int> init = {};  // requests of an init container; empty: no init container
  Duration init_run{};
  Quantity cpu = {}, memory = {};  // requested by the first container
  int priority = 0;
  cluster::StringMap labels = {}, node_selector = {};
  std::vector<cluster::Toleration> tolerations = {};
  std::string node = {};  // bound to this node from the start, unless empty
  Duration arrival{};
  std::optional<Duration> run = {};  // absent: never ends
  cluster::StringMap annotations = {};
  // Time that containers get to stop after a deletion. 0: the API server removes the object at
  // once.
  Duration grace = std::chrono::seconds(5);
  std::string ends = {};  // value of kEnds
  bool host_ipc = false;
  std::string owner = {};  // name of a Job that recreates the pod after an eviction; empty: none
  std::vector<OthersSpec> near = {}, apart = {};  // pod affinity and anti-affinity
  std::vector<ClaimRefSpec> claims = {};          // used by the first container
};

// "nvidia.com/mig-1g.5gb"; '+' becomes '.': "nvidia.com/mig-1g.5gb.me"; for a share
// "nvidia.com/gpu-10gb".
std::string SliceResource(std::string_view profile);

// Time slices per GPU of a hybrid node, if the GPU has at least as many compute slices.
inline constexpr int kTimeSlices = 4;
// MPS parts of MIG instances on hybrid nodes, in the syntax of the agent's hybrid.migParts.
inline constexpr std::string_view kMigParts = "3g.40gb.mps4,3g.71gb.mps2,2g.48gb.mps2";
std::vector<gpu::InstancePart> MigPartsHere();
// The model of a hybrid node's GPU while MPS does not share it; null if it has none. A GPU whose
// MIG mode changes only with a reset starts without MIG, and supports MIG if it `may_reset`.
const gpu::Model* FindUnsharedModel(const gpu::Catalogue& catalogue, const gpu::Model& model,
                                    bool may_reset);

// The model that a spec names. Error: kNotFound, with the known names.
Result<const gpu::Model*> FindModel(const gpu::Catalogue& catalogue, std::string_view name);
// The model of the GPU in the node's partitioning mode: one with shares if the node has `mps`.
// Error: as FindModel.
Result<const gpu::Model*> FindDividedModel(const gpu::Catalogue& catalogue, const NodeSpec& node,
                                           const GpuSpec& gpu);
// The product name of the GPU, as spelt in the gpu.product label.
std::string ProductLabel(std::string_view model);
// The architecture of the node's processor, as planning::NewNodeOf expects it of a NodePool with
// these GPUs.
std::string ArchitectureOf(const NodeSpec& spec);

// The node as the kubelet and GPU feature discovery register it: labels and capacity, no GPU
// resources yet.
Json NodeObject(const NodeSpec& spec);
// The PriorityClass for this priority: the API server sets a pod's priority only from a class.
std::string PriorityClassName(int priority);
Json PriorityClassObject(int priority);
// A template of claims for one MIG instance, as NVIDIA's driver announces it, in namespace
// "default".
Json ClaimTemplateObject(const std::string& name, const std::string& profile);
// Makes the API server serve PodGroups, with the fields of scheduler-plugins that nos reads. Error:
// kAlreadyExists.
Status DefinePodGroups(kube::Client& client);
// Creates or replaces a PodGroup in namespace "default"; minMember is `least`.
Status PutPodGroup(kube::Client& client, const std::string& name, int least);
// Makes the API server serve elastic quotas, as the chart installs them but without validation
// rules.
Status DefineQuotas(kube::Client& client);
// A budget for the pods of the namespace with this label.
Json BudgetObject(const std::string& ns, const std::string& name, const std::string& label,
                  const std::string& value);
JsonArray TaintsJson(const std::vector<cluster::Taint>& taints);
// The pod as a user submits it, with restartPolicy Never. Its PriorityClass must exist.
Json PodObject(const PodSpec& spec);

}  // namespace nos::sim
