#include "scheduling/configuration.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "codec/yaml.h"
#include "scheduling/framework.h"
#include "scheduling/plugins/capacity_scheduling/plugin.h"

namespace nos::scheduling {
namespace {

using Names = std::vector<std::string>;

Result<Configuration> Read(const std::string& rest, const ConfigurationUse& use = {}) {
  const auto documents = ParseYaml(
      "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" + rest);
  if (!documents.ok()) return documents.status();
  return ReadConfiguration(documents->front(), use);
}

// Reads a configuration with one profile.
Result<Configuration> ReadPlugins(const std::string& plugins, const ConfigurationUse& use = {}) {
  return Read("profiles: [{schedulerName: a, plugins: {" + plugins + "}}]", use);
}

Names Filters(const Profile& profile) {
  Names names;
  for (const auto* filter : profile.framework->filters()) names.push_back(filter->Name());
  return names;
}

std::map<std::string, int> Weights(const Profile& profile) {
  std::map<std::string, int> weights;
  for (const auto& scorer : profile.framework->scorers()) {
    weights[scorer.plugin->Name()] = scorer.weight;
  }
  return weights;
}

std::string ErrorOf(const Result<Configuration>& read) {
  return read.ok() ? "" : read.status().message();
}

TEST(ConfigurationTest, EmptyConfigurationHasDefaults) {
  const auto read = Read("");
  ASSERT_TRUE(read.ok()) << ErrorOf(read);
  ASSERT_EQ(read->profiles.size(), 1u);
  const Profile& profile = read->profiles.front();
  EXPECT_EQ(profile.scheduler_name, "default-scheduler");
  EXPECT_EQ(Filters(profile),
            (Names{"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts",
                   "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding",
                   "VolumeZone", "PodTopologySpread", "InterPodAffinity", "DynamicResources"}));
  EXPECT_EQ(Weights(profile), (std::map<std::string, int>{{"DynamicResources", 2},
                                                          {"GpuPacking", 2},
                                                          {"ImageLocality", 1},
                                                          {"InterPodAffinity", 2},
                                                          {"NodeAffinity", 2},
                                                          {"NodeResourcesBalancedAllocation", 1},
                                                          {"NodeResourcesFit", 1},
                                                          {"PodTopologySpread", 2},
                                                          {"TaintToleration", 3}}));
  ASSERT_TRUE(profile.preemption);
  EXPECT_EQ(profile.preemption->min_candidate_percentage, 10);
  EXPECT_EQ(read->queue.max_pause, std::chrono::seconds(10));
  EXPECT_TRUE(read->notes.empty());
  EXPECT_EQ(Read("", {.default_name = "nos-scheduler"})->profiles.front().scheduler_name,
            "nos-scheduler");
}

TEST(ConfigurationTest, PointOverridesMultiPointOverridesDefault) {
  const auto read = ReadPlugins(
      "multiPoint: {enabled: [{name: NodeAffinity, weight: 7}, {name: ImageLocality}]}, "
      "score: {enabled: [{name: ImageLocality, weight: 9}, {name: TaintToleration}], "
      "        disabled: [{name: PodTopologySpread}]}, "
      "filter: {enabled: [{name: VolumeZone}], disabled: [{name: NodePorts}]}");
  ASSERT_TRUE(read.ok()) << ErrorOf(read);
  const auto weights = Weights(read->profiles.front());
  EXPECT_EQ(weights.at("NodeAffinity"), 7);
  EXPECT_EQ(weights.at("ImageLocality"), 9);
  EXPECT_EQ(weights.at("TaintToleration"), 1) << "enabled again without a weight: 1, not 3";
  EXPECT_FALSE(weights.contains("PodTopologySpread"));
  EXPECT_EQ(weights.at("GpuPacking"), 2);
  const Names filters = Filters(read->profiles.front());
  EXPECT_EQ(filters.front(), "VolumeZone") << "named plugins come first";
  EXPECT_EQ(std::ranges::count(filters, "NodePorts"), 0);
  EXPECT_EQ(std::ranges::count(filters, "PodTopologySpread"), 1);
}

TEST(ConfigurationTest, StarDisablesKubeSchedulerPluginsExceptEnabled) {
  const auto read = ReadPlugins(
      "multiPoint: {disabled: [{name: '*'}], enabled: [{name: NodeName}, {name: PrioritySort}, "
      "             {name: DefaultBinder}, {name: NodeAffinity, weight: 3}]}, "
      "filter: {disabled: [{name: '*'}], enabled: [{name: NodePorts}]}");
  ASSERT_TRUE(read.ok()) << ErrorOf(read);
  const Profile& profile = read->profiles.front();
  EXPECT_EQ(Filters(profile), Names{"NodePorts"});
  EXPECT_EQ(Weights(profile), (std::map<std::string, int>{{"GpuPacking", 2}, {"NodeAffinity", 3}}));
  EXPECT_FALSE(profile.preemption);
  EXPECT_TRUE(profile.framework->gates().empty());
  const auto without = ReadPlugins("score: {disabled: [{name: GpuPacking}]}");
  ASSERT_TRUE(without.ok());
  EXPECT_FALSE(Weights(without->profiles.front()).contains("GpuPacking"));
}

TEST(ConfigurationTest, GpuPartitioningRequiresPartitioningByScheduler) {
  const ConfigurationUse here{.partitioned_by = PartitionedBy::kScheduler};
  const auto partitions = [](const Result<Configuration>& read) {
    return read->profiles.front().framework->partitioned_by() == PartitionedBy::kScheduler;
  };
  EXPECT_TRUE(partitions(Read("", here)));
  EXPECT_FALSE(partitions(Read("")));
  EXPECT_TRUE(partitions(ReadPlugins("filter: {disabled: [{name: '*'}]}", here)));
  EXPECT_FALSE(partitions(ReadPlugins("multiPoint: {disabled: [{name: GpuPartitioning}]}", here)));
  const auto simulated = ReadPlugins("filter: {enabled: [{name: GpuPartitioning}]}");
  ASSERT_TRUE(simulated.ok()) << ErrorOf(simulated);
  EXPECT_FALSE(partitions(simulated));
}

// GpuPartitioning was called GpuCutting.
TEST(ConfigurationTest, ReadsRenamedPluginUnderItsOldName) {
  const ConfigurationUse here{.partitioned_by = PartitionedBy::kScheduler};
  const auto use = [](const Result<Configuration>& read) {
    return read.ok() && read->profiles.front().enabled.Has(Point::kFilter, "GpuPartitioning");
  };
  const auto off = ReadPlugins("multiPoint: {disabled: [{name: GpuCutting}]}", here);
  ASSERT_TRUE(off.ok()) << ErrorOf(off);
  EXPECT_FALSE(use(off));
  EXPECT_EQ(off->notes, Names{"profiles[0].plugins.multiPoint.disabled[0]: GpuCutting is "
                              "deprecated: use GpuPartitioning"});
  const auto both = ReadPlugins(
      "multiPoint: {disabled: [{name: '*'}, {name: GpuCutting}], enabled: [{name: PrioritySort}, "
      "{name: DefaultBinder}, {name: GpuCutting}]}, filter: {disabled: [{name: GpuCutting}]}",
      here);
  ASSERT_TRUE(both.ok()) << ErrorOf(both);
  EXPECT_FALSE(use(both));
  EXPECT_TRUE(both->profiles.front().enabled.Has(Point::kPreFilter, "GpuPartitioning"));
  EXPECT_EQ(both->notes.size(), 3u);
  const auto on = ReadPlugins("filter: {enabled: [{name: GpuCutting}]}", here);
  ASSERT_TRUE(on.ok()) << ErrorOf(on);
  EXPECT_TRUE(use(on));
  EXPECT_EQ(on->notes.size(), 1u);
  EXPECT_EQ(PrintConfiguration(*on).find("GpuCutting"), std::string::npos);
  const auto with_arguments =
      Read("profiles: [{schedulerName: a, pluginConfig: [{name: GpuCutting}]}]", here);
  ASSERT_TRUE(with_arguments.ok()) << ErrorOf(with_arguments);
  EXPECT_EQ(with_arguments->notes, Names{"profiles[0].pluginConfig[0]: GpuCutting is deprecated: "
                                         "use GpuPartitioning"});
}

TEST(ConfigurationTest, RejectsPluginUnderBothNames) {
  const auto twice =
      ReadPlugins("filter: {enabled: [{name: GpuCutting}, {name: GpuPartitioning}]}");
  EXPECT_EQ(ErrorOf(twice),
            "profiles[0].plugins.filter.enabled[1].name: 'GpuPartitioning' is enabled twice");
}

TEST(ConfigurationTest, PluginEnabledAndDisabledIsEnabledLast) {
  const auto read = ReadPlugins(
      "filter: {enabled: [{name: NodeUnschedulable}], disabled: [{name: NodeUnschedulable}]}");
  ASSERT_TRUE(read.ok()) << ErrorOf(read);
  EXPECT_EQ(Filters(read->profiles.front()).back(), "NodeUnschedulable");
}

TEST(ConfigurationTest, ReadsSettingsOfEachProfile) {
  const auto read = Read(R"(
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 172800
clientConnection: {qps: 300.5, burst: 400, kubeconfig: /etc/kubeconfig}
leaderElection: {resourceName: other, resourceNamespace: x, leaseDuration: 1m, leaderElect: false}
profiles:
- schedulerName: a
  plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}
- schedulerName: b
  pluginConfig:
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 20, minCandidateNodesAbsolute: 5}
)");
  ASSERT_TRUE(read.ok()) << ErrorOf(read);
  ASSERT_EQ(read->profiles.size(), 2u);
  EXPECT_FALSE(read->profiles[0].preemption);
  EXPECT_EQ(read->profiles[1].preemption->min_candidate_percentage, 20);
  EXPECT_EQ(read->profiles[1].preemption->min_candidates, 5);
  EXPECT_EQ(read->queue.initial_pause, std::chrono::seconds(2));
  EXPECT_EQ(read->queue.max_pause, std::chrono::days(2));
  EXPECT_EQ(read->client.requests_per_second, 300.5);
  EXPECT_EQ(read->client.burst, 400);
  EXPECT_EQ(read->client.kubeconfig, "/etc/kubeconfig");
  EXPECT_EQ(read->leader_election.name, "other");
  EXPECT_EQ(read->leader_election.ns, "x");
  EXPECT_EQ(read->leader_election.lease, std::chrono::minutes(1));
  EXPECT_FALSE(read->leader_election.elect);
}

TEST(ConfigurationTest, ZeroAndEmptyValuesSelectDefaults) {
  const auto read = Read(R"(
clientConnection: {qps: 0, burst: 0}
leaderElection: {leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s, resourceName: "",
                 resourceNamespace: "", resourceLock: ""}
)");
  ASSERT_TRUE(read.ok()) << ErrorOf(read);
  EXPECT_EQ(read->client, Configuration::Client());
  EXPECT_EQ(read->leader_election, Configuration::LeaderElection());
}

TEST(ConfigurationTest, IgnoresLeaseSettingsWithoutLeaderElection) {
  const std::string rest = "resourceLock: endpoints, retryPeriod: -1s, leaseDuration: 1s}";
  const auto read = Read("leaderElection: {leaderElect: off, " + rest);
  ASSERT_TRUE(read.ok()) << ErrorOf(read);
  EXPECT_EQ(ErrorOf(Read("leaderElection: {leaderElect: yes, " + rest)),
            "leaderElection.resourceLock: must be leases, not 'endpoints'; "
            "leaderElection.retryPeriod: must be more than nothing; "
            "leaderElection.renewDeadline: must be shorter than leaseDuration");
}

TEST(ConfigurationTest, AcceptsYaml11BooleansAndNumbers) {
  const auto read = Read(
      "leaderElection: {leaderElect: off}\npodInitialBackoffSeconds: 010\n"
      "podMaxBackoffSeconds: 1e1\nprofiles: [{schedulerName: a, pluginConfig: [{name: "
      "InterPodAffinity, args: {ignorePreferredTermsOfExistingPods: Yes}}]}]");
  ASSERT_TRUE(read.ok()) << ErrorOf(read);
  EXPECT_FALSE(read->leader_election.elect);
  EXPECT_EQ(read->queue.initial_pause, std::chrono::seconds(8));
  EXPECT_EQ(read->queue.max_pause, std::chrono::seconds(10));
  EXPECT_EQ(ErrorOf(Read("leaderElection: {leaderElect: oFF}")),
            "leaderElection.leaderElect: must be true or false, not a string");
}

TEST(ConfigurationTest, CapsHugeBackoff) {
  const auto read = Read("podMaxBackoffSeconds: 9223372036854775807");
  ASSERT_TRUE(read.ok()) << ErrorOf(read);
  EXPECT_GT(read->queue.max_pause, std::chrono::years(3));
}

TEST(ConfigurationTest, ReportsAllErrorsWithPaths) {
  const auto read = Read(R"(
parallelism: 0
percentageOfNodesToScore: 101
podInitialBackoffSeconds: 20
percentageOfNodes: 5
leaderElection: {resourceLock: endpoints, resourceName: ../x, resourceNamespace: a/b, renewDeadline: 20s}
extenders: [{urlPrefix: "http://here"}]
profiles:
- schedulerName: a
  plugins:
    score: {enabled: [{name: Coscheduling}, {name: NodeAffinity, weight: -1}]}
    queueSort: {disabled: [{name: "*"}]}
    filters: {}
- schedulerName: a
  pluginConfig:
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}
  - {name: InterPodAffinity}
  - {name: NodeResourcesFit, args: {kind: NodeAffinityArgs}}
  - {name: DynamicResources, args: {filterTimeout: -1s, filters: 1}}
- percentageOfNodesToScore: x
)");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(
      Split(ErrorOf(read), ';'),
      Split("parallelism: must be at least 1; "
            "percentageOfNodesToScore: must be from 0 to 100, not 101; "
            "percentageOfNodes: there is no such field; "
            "leaderElection.resourceLock: must be leases, not 'endpoints'; "
            "leaderElection.resourceName: must be the name of a Lease, not '../x'; "
            "leaderElection.resourceNamespace: must be the name of a namespace, not 'a/b'; "
            "leaderElection.renewDeadline: must be shorter than leaseDuration; "
            "extenders: nos calls no extenders: remove them; "
            "podMaxBackoffSeconds: must be at least podInitialBackoffSeconds; "
            "profiles[0].plugins.score.enabled[0].name: there is no plugin 'Coscheduling', there "
            "are those of kube-scheduler, CapacityScheduling, GpuPacking and GpuPartitioning; "
            "profiles[0].plugins.score.enabled[1].weight: must not be negative; "
            "profiles[0].plugins.filters: there is no such field; "
            "profiles[0].plugins.queueSort: must have PrioritySort: there is no other here; "
            "profiles[1].pluginConfig[1].name: 'InterPodAffinity' is given twice; "
            "profiles[1].pluginConfig[2].args.kind: must be NodeResourcesFitArgs; "
            "profiles[1].pluginConfig[0].args.hardPodAffinityWeight: must be from 0 to 100, not "
            "101; "
            "profiles[1].pluginConfig[3].args.filterTimeout: must not be negative; "
            "profiles[1].pluginConfig[3].args.filters: there is no such field; "
            "profiles[2].percentageOfNodesToScore: must be a whole number, not a string; "
            "profiles[1].schedulerName: 'a' is the name of profiles[0] already; "
            "profiles[2].schedulerName: is missing: by it pods ask for the profile (nos-scheduler, "
            "say; default-scheduler only in the place of kube-scheduler)",
            ';'));
}

TEST(ConfigurationTest, RefusesOtherKindsAndTypes) {
  EXPECT_EQ(ReadConfiguration(Json(7)).status().code(), Code::kInvalid);
  EXPECT_EQ(ReadConfiguration(JsonObject{{"kind", "Pod"}, {"apiVersion", "v1"}}).status().message(),
            "expected apiVersion kubescheduler.config.k8s.io/v1 and kind "
            "KubeSchedulerConfiguration, found 'v1' and 'Pod'");
  EXPECT_EQ(ErrorOf(Read("profiles: 7")), "profiles: must be a list, not a number");
  EXPECT_EQ(ErrorOf(Read("profiles: [7]", {.simulates = true})),
            "profiles[0]: must be an object, not a number");
}

TEST(ConfigurationTest, AcceptsNamelessProfileOnlyInSimulation) {
  const std::string nameless = "profiles: [{pluginConfig: []}]";
  const auto simulated = Read(nameless, {.simulates = true});
  ASSERT_TRUE(simulated.ok()) << ErrorOf(simulated);
  EXPECT_EQ(simulated->profiles.front().scheduler_name, "default-scheduler");
  const std::string missing =
      "profiles[0].schedulerName: is missing: by it pods ask for the profile (nos-scheduler, say; "
      "default-scheduler only in the place of kube-scheduler)";
  EXPECT_EQ(ErrorOf(Read(nameless, {.default_name = "nos-scheduler"})), missing);
  EXPECT_EQ(ErrorOf(Read("profiles: [{schedulerName: ''}]")), missing);
}

TEST(ConfigurationTest, NotesUnsupportedFeaturesInSimulation) {
  const std::string theirs = R"(
extenders: [{urlPrefix: "http://here"}]
profiles:
- plugins: {multiPoint: {enabled: [{name: Coscheduling}]}, bind: {disabled: [{name: "*"}]}}
  pluginConfig: [{name: Coscheduling, args: {permitWaitingTimeSeconds: 10}}]
)";
  const auto read = Read(theirs, {.simulates = true});
  ASSERT_TRUE(read.ok()) << ErrorOf(read);
  EXPECT_EQ(read->notes,
            (Names{"extenders are not simulated",
                   "profiles[0].plugins.multiPoint.enabled[0]: plugin 'Coscheduling' is not "
                   "simulated",
                   "profiles[0].pluginConfig[0]: plugin 'Coscheduling' is not simulated"}));
}

TEST(ConfigurationTest, NotesSettingsWithoutEffect) {
  const auto read = Read(R"(
percentageOfNodesToScore: 50
enableProfiling: true
profiles:
- schedulerName: a
  plugins:
    filter: {enabled: [{name: ImageLocality}], disabled: [{name: Gone}]}
    preScore: {disabled: [{name: NodeAffinity}]}
  pluginConfig: [{name: NodeName, args: {x: 1}}]
)");
  ASSERT_TRUE(read.ok()) << ErrorOf(read);
  EXPECT_EQ(read->notes,
            (Names{"percentageOfNodesToScore has no effect: every node is looked at",
                   "enableProfiling has no effect: there are no profiling handlers",
                   "profiles[0].plugins.filter.enabled[0]: ImageLocality does nothing at filter",
                   "profiles[0].plugins.filter.disabled[0]: there is no plugin 'Gone' to disable",
                   ("profiles[0].plugins.preScore has no effect: every plugin that scores also "
                    "prepares its scores"),
                   "profiles[0].pluginConfig[0]: NodeName takes no arguments here"}));
  EXPECT_EQ(std::ranges::count(Filters(read->profiles.front()), "ImageLocality"), 0);
}

TEST(ConfigurationTest, EnforcesQuotasUnlessDisabled) {
  const auto plain = Read("profiles: [{schedulerName: a}]");
  ASSERT_TRUE(plain.ok()) << ErrorOf(plain);
  EXPECT_NE(plain->profiles[0].framework->quotas(), nullptr);
  EXPECT_TRUE(plain->profiles[0].reclaims);
  const auto off = ReadPlugins("multiPoint: {disabled: [{name: CapacityScheduling}]}");
  ASSERT_TRUE(off.ok()) << ErrorOf(off);
  EXPECT_EQ(off->profiles[0].framework->quotas(), nullptr);
  EXPECT_FALSE(off->profiles[0].reclaims);
  // A profile without DefaultPreemption does not evict for quotas either.
  const auto gentle = ReadPlugins("postFilter: {disabled: [{name: DefaultPreemption}]}");
  ASSERT_TRUE(gentle.ok()) << ErrorOf(gentle);
  EXPECT_FALSE(gentle->profiles[0].reclaims);
  EXPECT_FALSE(gentle->profiles[0].preemption);
}

// The configuration that the chart of the Go implementation installs.
TEST(ConfigurationTest, AcceptsProfileOfGoImplementation) {
  const auto file = ReadConfiguration(ParseYaml(R"(
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: nos-scheduler
  plugins:
    preFilter: {enabled: [{name: CapacityScheduling}]}
    postFilter: {enabled: [{name: CapacityScheduling}], disabled: [{name: "*"}]}
    reserve: {enabled: [{name: CapacityScheduling}]}
  pluginConfig:
  - name: CapacityScheduling
    args: {nvidiaGpuResourceMemoryGB: 40}
)")
                                          ->front());
  ASSERT_TRUE(file.ok()) << ErrorOf(file);
  const Profile& profile = file->profiles.front();
  EXPECT_TRUE(profile.reclaims);
  EXPECT_TRUE(profile.preemption);
  ASSERT_NE(profile.framework->quotas(), nullptr);
  EXPECT_EQ(profile.framework->quotas()->options().charges.gpu_memory_gb, 40);
}

TEST(ConfigurationTest, RequiresEqualGpuMemoryInAllProfiles) {
  const auto file = Read(R"(
profiles:
- schedulerName: a
- schedulerName: b
  pluginConfig: [{name: CapacityScheduling, args: {nvidiaGpuResourceMemoryGB: 80}}]
)");
  EXPECT_EQ(ErrorOf(file),
            "profiles[1].pluginConfig: nvidiaGpuResourceMemoryGB of CapacityScheduling is 80 here "
            "and 32 in another profile: it must be the same in all");
}

TEST(ConfigurationTest, RequiresEqualMaxGracePeriodInAllProfiles) {
  const auto file = Read(R"(
profiles:
- schedulerName: a
- schedulerName: b
  pluginConfig: [{name: CapacityScheduling, args: {reclaimMaxGracePeriodSeconds: 60}}]
)");
  EXPECT_EQ(ErrorOf(file),
            "profiles[1].pluginConfig: reclaimMaxGracePeriodSeconds of CapacityScheduling is 60 "
            "here and 300 in another profile: it must be the same in all");
}

TEST(ConfigurationTest, PrintedConfigurationReadsBackEqual) {
  const auto first = Read(R"(
podMaxBackoffSeconds: 33
clientConnection: {qps: -1}
profiles:
- schedulerName: "a: b"
  plugins:
    multiPoint: {disabled: [{name: TaintToleration}], enabled: [{name: GpuPacking, weight: 4}]}
    postFilter: {disabled: [{name: "*"}]}
    score: {enabled: [{name: NodeResourcesFit, weight: 5}]}
  pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]
- schedulerName: c
  plugins: {score: {disabled: [{name: GpuPacking}]}}
)");
  ASSERT_TRUE(first.ok()) << ErrorOf(first);
  const std::string printed = PrintConfiguration(*first);
  const auto again = ReadConfiguration(ParseYaml(printed)->front());
  ASSERT_TRUE(again.ok()) << ErrorOf(again) << printed;
  EXPECT_EQ(PrintConfiguration(*again), printed);
  ASSERT_EQ(again->profiles.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(Filters(again->profiles[i]), Filters(first->profiles[i]));
    EXPECT_EQ(Weights(again->profiles[i]), Weights(first->profiles[i]));
    EXPECT_EQ(again->profiles[i].arguments, first->profiles[i].arguments);
  }
  EXPECT_FALSE(again->profiles[0].preemption);
  EXPECT_EQ(again->queue.max_pause, std::chrono::seconds(33));
  EXPECT_EQ(again->client.requests_per_second, -1);
}

// Explanations need a framework that partitions, whichever component does it.
TEST(ConfigurationTest, ProfileHasPartitioningFrameworkForExplanations) {
  const auto read = Read(
      "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {preFilter: {disabled: [{name: "
      "GpuPartitioning}]}, filter: {disabled: [{name: GpuPartitioning}]}}}]",
      {.partitioned_by = PartitionedBy::kScheduler});
  ASSERT_TRUE(read.ok()) << ErrorOf(read);
  EXPECT_EQ(&read->profiles[0].Partitioning(), read->profiles[0].framework.get());
  EXPECT_EQ(read->profiles[1].framework->partitioned_by(), PartitionedBy::kPartitioner);
  EXPECT_EQ(read->profiles[1].Partitioning().partitioned_by(), PartitionedBy::kScheduler);
  EXPECT_EQ(
      ErrorOf(Read("profiles: [{schedulerName: a, pluginConfig: [{name: InterPodAffinity, args: "
                   "{hardPodAffinityWeight: -1}}]}]"))
          .find("; "),
      std::string::npos)
      << "each problem is reported once";
}

}  // namespace
}  // namespace nos::scheduling
