// The workload of a virtual cluster: pods and their creation times. Drawn from a seed, read from a
// file, or the default workload of the sandbox.
//
// Pure functions of values.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gpu/catalogue.h"
#include "kube/client.h"
#include "sim/specs.h"

namespace nos::sim {

// An object to create at time `at` after the start.
struct Arrival {
  Duration at{};
  Json object;
};
using Workload = std::vector<Arrival>;  // sorted by time

// The kinds that a workload may contain: Pods, PriorityClasses and Namespaces that they refer to,
// ElasticQuotas and CompositeElasticQuotas, NodePools, ResourceClaims, their templates and
// DeviceClasses. Null for other kinds: no part of a
// virtual cluster would act on them.
const kube::Resource* WorkloadResource(std::string_view kind);

// Reads pods as kubectl would create them (YAML or JSON; lists too), with the annotations of
// specs.h, and the objects that they refer to, which come first. A trial run has verified that the
// API server accepts each object. Error: kInvalid, with `source`, document, object and field.
Result<Workload> ReadWorkload(std::string_view text, std::string_view source);

// A few minutes that demonstrate partitioning on GPUs of these models (one entry per GPU; a model
// of gpu/shares.h for a GPU shared by MPS): services that never end and leave half of the GPUs to
// waves of batch pods, which request small slices, then whole GPUs, then large slices; one pod
// whose slices are on two GPUs; an urgent pod; and a pod that no GPU can serve.
std::vector<PodSpec> DemoWorkload(const std::vector<const gpu::Model*>& gpus, uint64_t seed);

// The plain profile (without "+me" and the like) with `compute` compute slices and the least
// memory; otherwise the largest plain profile below. For shares, the same fraction of the memory.
std::string PlainProfile(const gpu::Model& model, int compute);

// Demand that never ends, for a demonstration: two namespaces, each with an elastic quota for half
// of the GPUs' memory. Their demand peaks by turns, so that each borrows what the other leaves idle
// and gets its own back by evictions; every few minutes an urgent pod preempts; and a "day" of 24
// minutes has busy and quiet hours. The same seed and minute give the same pods.
class TeamsDemand {
 public:
  TeamsDemand(std::vector<const gpu::Model*> gpus, uint64_t seed)
      : gpus_(std::move(gpus)), seed_(seed) {}

  std::vector<Json> Objects() const;  // the namespaces and quotas
  // The pods that arrive in this minute after the start; `arrival` counts from its begin.
  std::vector<PodSpec> Minute(int64_t minute) const;

 private:
  const std::vector<const gpu::Model*> gpus_;
  const uint64_t seed_;
};

// The same pods with ResourceClaims in place of the slices of GPUs that NVIDIA's DRA driver
// announces, and the templates of the claims. Names begin with "claim-".
struct ClaimDemo {
  std::vector<Json> templates;
  std::vector<PodSpec> pods;
};
ClaimDemo DemoClaims(const std::vector<const gpu::Model*>& gpus, uint64_t seed);

// A cluster with a MIG node, a hybrid node and an MPS node; and a workload that demonstrates all
// sharing modes there within a minute: slices, shares, time slices, whole GPUs, and pods that
// specify GPU requirements and leave the choice to the webhook. A GPU of the hybrid node changes
// its mode after its pods have ended, and one pod requests more than any node has.
std::vector<NodeSpec> ModesCluster();
std::vector<PodSpec> ModesWorkload(uint64_t seed);

struct RandomWorkload {
  int pods = 20;
  Duration arrivals_last = std::chrono::minutes(3);
  Duration shortest_run = std::chrono::seconds(5), longest_run = std::chrono::seconds(90);
  double endless = 0.05;              // share of pods that never end
  double impossible = 0.05;           // share of pods that request more than any node has
  double gangs_without_slices = 0.5;  // share of gangs
};
std::vector<PodSpec> DrawWorkload(const RandomWorkload& options,
                                  const std::vector<const gpu::Model*>& models, Random& random);
// Adds an init container to some of the pods; it requests as much as the pod's first container,
// more, or other slices of these models.
void DrawInitContainers(const std::vector<const gpu::Model*>& models, std::vector<PodSpec>& pods,
                        Random& random);

// Identical pods of PodGroup `name` that are scheduled together or not at all.
struct GangSpec {
  std::string name;
  int least = 0;
  Duration arrival{};  // of the PodGroup, which may be created after some of its pods
  std::vector<PodSpec> pods;
};
// One to three gangs of two to four pods; some never get as many pods as they need.
std::vector<GangSpec> DrawGangs(const RandomWorkload& options,
                                const std::vector<const gpu::Model*>& models, Random& random);

}  // namespace nos::sim
