// KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1): which profiles there are, which
// plugins each of them has, with which arguments and weights, and how the scheduler behaves.
//
//   auto configuration = ReadConfiguration(documents->front(), {.default_name = "nos-scheduler"});
//   if (!configuration.ok()) ...   // all that is wrong:
//   "profiles[1].plugins.score.enabled[0].name:
//                                  // there is no plugin 'X'; ..."
//   for (const Profile& profile : configuration->profiles) Serve(profile);
//
// Semantics: kube-scheduler's; fields that nobody knows are wrong. docs/scheduler.md says of every
// field and argument what it means here, and which have no effect.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/json.h"
#include "scheduling/framework.h"
#include "scheduling/profile/lineup.h"
#include "scheduling/preemption.h"
#include "scheduling/queue.h"

namespace nos::scheduling {

struct Profile {
  std::string scheduler_name;
  Framework framework;
  std::optional<PreemptionOptions> preemption;  // none: DefaultPreemption is disabled
  // What it was made from: for printing.
  Lineup lineup;
  std::map<std::string, Json> arguments;    // of plugins, as they were given
  std::optional<Framework> with_cuts = {};  // none: `framework` has GPUs cut
  // Room is made for what quotas guarantee (reclaim.h).
  bool reclaims = false;
  // As `framework`, but with GPUs cut where need be: for what would help its pods, whoever cuts.
  const Framework& Cutting() const { return with_cuts ? *with_cuts : framework; }
};

struct Configuration {
  std::vector<Profile> profiles;  // at least one
  QueueOptions queue;
  struct Client {
    std::string kubeconfig;
    double requests_per_second = 5000;  // qps; negative: no limit
    int burst = 10'000;
    bool operator==(const Client&) const = default;
  } client;
  struct LeaderElection {
    bool elect = true;
    std::string name = "nos-scheduler", ns;  // of the Lease; no namespace: that of the pod
    Duration lease = std::chrono::seconds(15), renew = std::chrono::seconds(10),
             retry = std::chrono::seconds(2);
    bool operator==(const LeaderElection&) const = default;
  } leader_election;
  // A sentence, with its path, for what was given and has no effect.
  std::vector<std::string> notes;
};

struct ConfigurationUse {
  // Of the profile of a file that has none; when simulating also of an only one without a name.
  std::string_view default_name = "default-scheduler";
  // It is another scheduler's: what nos does not have, as plugins out of tree and extenders, is
  // noted instead of refused.
  bool simulates = false;
  GpusCut gpus_cut = GpusCut::kElsewhere;  // of its frameworks
};

// Error: kInvalid, all problems with their paths, separated by "; ".
Result<Configuration> ReadConfiguration(const Json& config, const ConfigurationUse& use = {});
// That of who was told nothing.
Configuration DefaultConfiguration(const ConfigurationUse& use = {});

// As YAML that ReadConfiguration takes and that means the same: each point names its plugins.
std::string PrintConfiguration(const Configuration& configuration);

}  // namespace nos::scheduling
