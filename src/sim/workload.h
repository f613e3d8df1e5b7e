// What pods a virtual cluster is asked to run, and when: drawn from a seed, read from a file, or
// the one that the sandbox shows by default.
//
// Pure functions of values.
#pragma once

#include <string_view>
#include <vector>

#include "base/random.h"
#include "gpu/catalogue.h"
#include "kube/client.h"
#include "sim/specs.h"

namespace nos::sim {

// An object to create `at` so long after the start.
struct Arrival {
  Duration at{};
  Json object;
};
using Workload = std::vector<Arrival>;  // sorted by time

// What a workload may consist of, by kind: Pods, the PriorityClasses and Namespaces that they name,
// ElasticQuotas and CompositeElasticQuotas, and NodePools. Null: nothing in a virtual cluster would
// act on it.
const kube::Resource* WorkloadResource(std::string_view kind);

// Pods as kubectl would create them (YAML or JSON; lists too), with the annotations of specs.h, and
// before them what they name. The API server will take each of them: that has been tried. Error:
// kInvalid, naming `source`, document, object and field.
Result<Workload> ReadWorkload(std::string_view text, std::string_view source);

// A few minutes that show what partitioning is good for, on GPUs of these models (one entry a GPU,
// gpu/shares.h for one that is shared by memory):
// services that run for ever and leave half of the GPUs to waves of batch pods, small, then whole,
// then large; one pod whose slices lie on two GPUs; an urgent one; and one that no GPU can serve.
std::vector<PodSpec> DemoWorkload(const std::vector<const gpu::Model*>& gpus, uint64_t seed);

// A cluster of one node cut by MIG, one whose GPUs are each used in their own way, and one that
// shares GPUs by memory; and what shows all ways within a minute there: slices, shares, time
// slices, whole GPUs, and pods that say what they need and leave the choice to the webhook. A GPU
// of the second node is switched when those who had it have ended, and one pod asks for more than
// there is.
std::vector<NodeSpec> ModesCluster();
std::vector<PodSpec> ModesWorkload(uint64_t seed);

struct RandomWorkload {
  int pods = 20;
  Duration arrivals_last = std::chrono::minutes(3);
  Duration shortest_run = std::chrono::seconds(5), longest_run = std::chrono::seconds(90);
  double endless = 0.05;              // share of pods that run for ever
  double impossible = 0.05;           // share of pods that ask for what no node has
  double gangs_without_slices = 0.5;  // share of gangs
};
std::vector<PodSpec> DrawWorkload(const RandomWorkload& options,
                                  const std::vector<const gpu::Model*>& models, Random& random);
// Gives some of the pods an init container, that asks for as much as the pod's first one, for more,
// or for other slices of these models.
void DrawInitContainers(const std::vector<const gpu::Model*>& models, std::vector<PodSpec>& pods,
                        Random& random);

// Pods that are placed together or not at all, all alike, of a PodGroup `name`.
struct GangSpec {
  std::string name;
  int least = 0;
  Duration arrival{};  // of the PodGroup, which may come after some of its pods
  std::vector<PodSpec> pods;
};
// One to three, of two to four pods; some never have as many pods as they need.
std::vector<GangSpec> DrawGangs(const RandomWorkload& options,
                                const std::vector<const gpu::Model*>& models, Random& random);

}  // namespace nos::sim
