// KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1): the profiles, the plugins of each
// profile with their arguments and weights, and settings of the scheduler process.
//
//   auto configuration = ReadConfiguration(documents->front(), {.default_name = "nos-scheduler"});
//   if (!configuration.ok()) ...   // all errors:
//   "profiles[1].plugins.score.enabled[0].name:
//                                  // there is no plugin 'X'; ..."
//   for (const Profile& profile : configuration->profiles) Serve(profile);
//
// Semantics are kube-scheduler's. Unknown fields are errors. docs/scheduler.md documents every
// field and argument, and which of them have no effect.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/json.h"
#include "scheduling/preemption.h"
#include "scheduling/profile/enabled_plugins.h"
#include "scheduling/queue.h"

namespace nos::scheduling {

class Framework;

struct Profile {
  std::string scheduler_name;
  std::shared_ptr<Framework> framework;         // not null
  std::optional<PreemptionOptions> preemption;  // absent: DefaultPreemption is disabled
  // Inputs of the profile, kept for printing.
  EnabledPlugins enabled;
  std::map<std::string, Json> arguments;              // arguments of plugins, as given
  std::shared_ptr<Framework> with_partitioning = {};  // null: `framework` partitions GPUs itself
  // Evicts borrowers to satisfy quota guarantees (reclaim.h).
  bool reclaims = false;
  // Like `framework`, but with GPUs partitioned if needed: finds nodes that would help its pods,
  // whichever component partitions.
  const Framework& Partitioning() const {
    return with_partitioning ? *with_partitioning : *framework;
  }
};

struct Configuration {
  std::vector<Profile> profiles;  // at least one
  QueueOptions queue;
  struct Client {
    std::string kubeconfig;
    double requests_per_second = 5000;  // qps; negative: unlimited
    int burst = 10'000;
    bool operator==(const Client&) const = default;
  } client;
  struct LeaderElection {
    bool elect = true;
    // Name and namespace of the Lease. Empty namespace: that of the scheduler's pod.
    std::string name = "nos-scheduler", ns;
    Duration lease = std::chrono::seconds(15), renew = std::chrono::seconds(10),
             retry = std::chrono::seconds(2);
    bool operator==(const LeaderElection&) const = default;
  } leader_election;
  // One sentence, with its path, for each given setting that is deprecated or has no effect.
  std::vector<std::string> notes;
};

struct ConfigurationUse {
  // Name of the profile if a file has none. If `simulates`, also the name of a single profile
  // without a name.
  std::string_view default_name = "default-scheduler";
  // The configuration belongs to another scheduler. Features that nos lacks, such as plugins out of
  // tree and extenders, are noted instead of rejected.
  bool simulates = false;
  PartitionedBy partitioned_by = PartitionedBy::kPartitioner;  // in its frameworks
};

// Error: kInvalid with all problems and their paths, separated by "; ".
Result<Configuration> ReadConfiguration(const Json& config, const ConfigurationUse& use = {});
// The configuration without a file.
Configuration DefaultConfiguration(const ConfigurationUse& use = {});

// Returns YAML that ReadConfiguration reads back to an equivalent configuration, with the plugins
// of each extension point listed explicitly.
std::string PrintConfiguration(const Configuration& configuration);

}  // namespace nos::scheduling
