// Nodes and pods of a virtual cluster as short descriptions, and the Kubernetes objects they
// become.
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

#include "base/clock.h"
#include "base/status.h"
#include "cluster/objects.h"
#include "codec/json.h"
#include "agent/node_modes.h"
#include "gpu/catalogue.h"
#include "gpu/modes.h"
#include "gpu/shares.h"
#include "kube/client.h"

namespace nos::sim {

// How long a virtual pod runs before it succeeds, in seconds (a decimal number). Absent: for ever.
inline constexpr std::string_view kRunSeconds = "sim.nos.nebuly.com/run-seconds";
// How long its init containers run together, in seconds. Absent: they are done when it starts.
inline constexpr std::string_view kInitSeconds = "sim.nos.nebuly.com/init-seconds";
// When a pod of a workload file is created, in seconds after the start. Absent: at once.
inline constexpr std::string_view kArrivalSeconds = "sim.nos.nebuly.com/arrival-seconds";
// The name under which a pod was first asked for; its replacements carry it on.
inline constexpr std::string_view kPodLabel = "sim.nos.nebuly.com/pod";
// The PodGroup that a pod belongs to (scheduler-plugins, coscheduling).
inline constexpr std::string_view kPodGroupLabel = "scheduling.x-k8s.io/pod-group";

// An instance, or a share, that is there from the start.
struct InstanceSpec {
  std::string placement = {};  // "3g.20gb@4", "10gb@0"
  bool used = false;           // a pod holds it when the world begins
  std::string pod = {};        // its name; empty: one is made up
};

struct GpuSpec {
  // Catalogue name ("A100-40GB") or product ("NVIDIA-A100-SXM4-40GB"); "MPS-15GB": a board without
  // MIG that has so much for shares.
  std::string model;
  std::vector<InstanceSpec> instances = {};
};

struct NodeSpec {
  std::string name = {};
  std::vector<GpuSpec> gpus = {};
  cluster::StringMap labels = {}, annotations = {};
  std::vector<cluster::Taint> taints = {};
  bool unschedulable = false;
  bool managed = true;  // carries nos.nebuly.com/gpu-partitioning
  bool mps = false;     // and it says mps, else mig
  bool hybrid = false;  // or hybrid: each GPU in its own way, nothing on it at first
  Quantity cpu = Quantity::FromValue(96);
  Quantity memory = Quantity::FromValue(int64_t{768} << 30);
  int max_pods = 110;
  int most_shares = gpu::kMostShares;  // of a GPU that is shared
  // Where it is hybrid: who resets GPUs that change MIG mode with a reset only.
  agent::ResetRule resets = agent::ResetRule::kNever;
};

// Pods with a label, in a topology domain.
struct OthersSpec {
  std::string topology_key, label, value;
};

struct PodSpec {
  std::string ns = "default";
  std::string name = {};
  // Profiles of instances or shares and how many of each, per container.
  std::vector<std::map<std::string, int>> containers = {};
  std::map<std::string, int> init = {};  // asked by an init container; empty: there is none
  Duration init_run{};
  Quantity cpu = {}, memory = {};  // asked by the first container
  int priority = 0;
  cluster::StringMap labels = {}, node_selector = {};
  std::vector<cluster::Toleration> tolerations = {};
  std::string node = {};  // bound from the start when not empty
  Duration arrival{};
  std::optional<Duration> run = {};  // absent: for ever
  cluster::StringMap annotations = {};
  bool host_ipc = false;
  std::string owner = {};  // a Job's name, which makes it anew when it is evicted; empty: none
  std::vector<OthersSpec> near = {}, apart = {};  // which it has to be near, and must not be
};

// "nvidia.com/mig-1g.5gb"; '+' becomes '.': "nvidia.com/mig-1g.5gb.me"; of a share
// "nvidia.com/gpu-10gb".
std::string SliceResource(std::string_view profile);

// Time slices of a GPU of a hybrid node, where it has as many compute slices.
inline constexpr int kTimeSlices = 4;
// Into which MIG instances may be divided there, as an agent's hybrid.migParts says.
inline constexpr std::string_view kMigParts = "3g.40gb.mps4,3g.71gb.mps2,2g.48gb.mps2";
std::vector<gpu::InstancePart> MigPartsHere();
// What such a GPU of a hybrid node may be besides being shared; null: it cannot be that. One that
// takes MIG mode with a reset only begins without, and may be cut by MIG if it `may_reset`.
const gpu::Model* FindCutModel(const gpu::Catalogue& catalogue, const gpu::Model& model,
                               bool may_reset);

// The model that a spec names. Error: kNotFound, with the names there are.
Result<const gpu::Model*> FindModel(const gpu::Catalogue& catalogue, std::string_view name);
// As such a GPU of the node is divided: shares of it, if the node has `mps`. Error: as FindModel.
Result<const gpu::Model*> FindDividedModel(const gpu::Catalogue& catalogue, const NodeSpec& node,
                                           const GpuSpec& gpu);
// The product name that such a GPU reports, as the gpu.product label spells it.
std::string ProductLabel(std::string_view model);

// As the kubelet and GPU feature discovery register it: labels, capacity, no GPU resources yet.
Json NodeObject(const NodeSpec& spec);
// The class that gives pods this priority: the API server takes no number from a pod alone.
std::string PriorityClassName(int priority);
Json PriorityClassObject(int priority);
// From now on the API server serves PodGroups, with the fields of scheduler-plugins that are read
// here. Error: kAlreadyExists.
Status DefinePodGroups(kube::Client& client);
// Of namespace "default", anew or in place of the one there is.
Status PutPodGroup(kube::Client& client, const std::string& name, int least);
// The same for elastic quotas, as the chart installs them, without the checks.
Status DefineQuotas(kube::Client& client);
// Over the pods of the namespace with this label.
Json BudgetObject(const std::string& ns, const std::string& name, const std::string& label,
                  const std::string& value);
JsonArray TaintsJson(const std::vector<cluster::Taint>& taints);
// As a user submits it, with restartPolicy Never. Its priority class must exist.
Json PodObject(const PodSpec& spec);

}  // namespace nos::sim
