#include "scheduling/profile/arguments.h"

#include <gtest/gtest.h>

#include "codec/yaml.h"

namespace nos::scheduling {
namespace {

using Problems = std::vector<std::string>;

// Reads `yaml`; an empty text is an absent value.
template <typename Reader>
auto Read(Reader reader, const std::string& yaml, Problems& problems) {
  const auto documents = ParseYaml(yaml);
  const Json* value = documents->empty() ? nullptr : &documents->front();
  return reader(ConfigValue(value, "args", problems));
}

TEST(ArgumentsTest, TopologySpreadUsesSystemDefaultsUnlessList) {
  Problems problems;
  EXPECT_TRUE(Read(&ReadTopologySpreadArguments, "", problems).system_defaults);
  EXPECT_TRUE(
      Read(&ReadTopologySpreadArguments, "defaultingType: System", problems).system_defaults);
  const auto none = Read(&ReadTopologySpreadArguments, "defaultingType: List", problems);
  EXPECT_FALSE(none.system_defaults);
  EXPECT_TRUE(none.default_constraints.empty());
  const auto options = Read(&ReadTopologySpreadArguments, R"(
apiVersion: kubescheduler.config.k8s.io/v1
kind: PodTopologySpreadArgs
defaultingType: List
defaultConstraints:
- {maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, minDomains: 3,
   nodeTaintsPolicy: Honor}
- {maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway, nodeAffinityPolicy: Ignore}
)",
                            problems);
  EXPECT_EQ(problems, Problems());
  ASSERT_EQ(options.default_constraints.size(), 2u);
  const auto& hard = options.default_constraints[0];
  EXPECT_EQ(hard.max_skew, 2);
  EXPECT_EQ(hard.topology_key, "rack");
  EXPECT_EQ(hard.when_unsatisfiable, "DoNotSchedule");
  EXPECT_EQ(hard.min_domains, 3);
  EXPECT_EQ(hard.node_taints_policy, "Honor");
  EXPECT_EQ(options.default_constraints[1].node_affinity_policy, "Ignore");
}

TEST(ArgumentsTest, ReportsInvalidDefaultConstraints) {
  Problems problems;
  (void)Read(&ReadTopologySpreadArguments, R"(
defaultConstraints:
- {maxSkew: 0, topologyKey: "", whenUnsatisfiable: Never, labelSelector: {}, minDomains: x}
- {maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}
- {maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}
)",
             problems);
  EXPECT_EQ(
      problems,
      (Problems{("args.defaultConstraints[0].labelSelector: must not be set: each pod has its "
                 "own"),
                "args.defaultConstraints[0].minDomains: must be a whole number, not a string",
                ("args.defaultConstraints[0].whenUnsatisfiable: must be one of DoNotSchedule, "
                 "ScheduleAnyway, not 'Never'"),
                "args.defaultConstraints[0].maxSkew: must be at least 1",
                "args.defaultConstraints[0].topologyKey: must be the key of a label, not ''",
                "args.defaultConstraints[2]: there is one for rack and DoNotSchedule already",
                "args.defaultingType: must be List when there are defaultConstraints"}));
}

TEST(ArgumentsTest, AcceptsEmptyDefaultingTypeAndZeroMinDomains) {
  Problems problems;
  EXPECT_TRUE(Read(&ReadTopologySpreadArguments, "defaultingType: ''", problems).system_defaults);
  const auto options = Read(&ReadTopologySpreadArguments, R"(
defaultingType: List
defaultConstraints:
- {maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, minDomains: 0}
)",
                            problems);
  EXPECT_EQ(problems, Problems());
  EXPECT_EQ(options.default_constraints.front().min_domains, 0);
}

TEST(ArgumentsTest, ReadsBindTimeout) {
  Problems problems;
  EXPECT_EQ(Read(&ReadVolumeBindingArguments, "", problems), std::chrono::seconds(600));
  EXPECT_EQ(Read(&ReadVolumeBindingArguments, "bindTimeoutSeconds: 0", problems), Duration::zero());
  EXPECT_EQ(Read(&ReadVolumeBindingArguments, "bindTimeoutSeconds: 90", problems),
            std::chrono::seconds(90));
  EXPECT_GT(Read(&ReadVolumeBindingArguments, "bindTimeoutSeconds: 9223372036854775807", problems),
            std::chrono::years(3));
  EXPECT_EQ(problems, Problems());
  (void)Read(&ReadVolumeBindingArguments,
             "{bindTimeoutSeconds: -1, shape: [{utilization: 0, score: 1}]}", problems);
  EXPECT_EQ(problems, (Problems{"args.bindTimeoutSeconds: must be at least 0, not -1",
                                "args.shape: is not supported: storage is not scored"}));
}

TEST(ArgumentsTest, ReadsCandidateNodesOfPreemption) {
  Problems problems;
  const auto options =
      Read(&ReadPreemptionArguments,
           "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 7}", problems);
  EXPECT_EQ(options.min_candidate_percentage, 0);
  EXPECT_EQ(options.min_candidates, 7);
  EXPECT_EQ(problems, Problems());
  (void)Read(&ReadPreemptionArguments,
             "{minCandidateNodesPercentage: 101, minCandidateNodesAbsolute: -1}", problems);
  EXPECT_EQ(problems, (Problems{"args.minCandidateNodesPercentage: must be from 0 to 100, not 101",
                                "args.minCandidateNodesAbsolute: must be at least 0, not -1"}));
  problems.clear();
  (void)Read(&ReadPreemptionArguments,
             ("{apiVersion: kubescheduler.config.k8s.io/v1beta2, minCandidateNodesPercentage: 0, "
              "minCandidateNodesAbsolute: 0}"),
             problems);
  EXPECT_EQ(problems,
            (Problems{"args.apiVersion: must be kubescheduler.config.k8s.io/v1",
                      ("args: minCandidateNodesPercentage and minCandidateNodesAbsolute must not "
                       "both be 0")}));
}

TEST(ArgumentsTest, ReadsScoringStrategyAndIgnoredResources) {
  Problems problems;
  const auto options = Read(&ReadFitArguments, R"(
ignoredResources: [example.com/fpga]
ignoredResourceGroups: [example.org]
scoringStrategy:
  type: RequestedToCapacityRatio
  resources: [{name: cpu, weight: 3}, {name: nvidia.com/gpu}]
  requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}
)",
                            problems);
  EXPECT_EQ(problems, Problems());
  EXPECT_EQ(options.strategy, FitOptions::Strategy::kRequestedToCapacityRatio);
  ASSERT_EQ(options.resources.size(), 2u);
  EXPECT_EQ(options.resources[1].weight, 1);
  EXPECT_EQ(options.shape, (std::vector<ShapePoint>{{0, 0}, {100, 100}}));
  (void)Read(&ReadFitArguments, "{scoringStrategy: {type: Best}, ignoredResourceGroups: [a/b]}",
             problems);
  EXPECT_EQ(problems.size(), 2u);
}

TEST(ArgumentsTest, ReadsAddedAffinityAndHardPodAffinityWeight) {
  Problems problems;
  const auto affinity = Read(&ReadNodeAffinityArguments, R"(
addedAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [a]}]}]
)",
                             problems);
  ASSERT_TRUE(affinity.added.required);
  EXPECT_EQ(affinity.added.required->size(), 1u);
  EXPECT_EQ(Read(&ReadInterPodAffinityArguments, "hardPodAffinityWeight: 0", problems)
                .hard_pod_affinity_weight,
            0);
  EXPECT_EQ(Read(&ReadBalanceArguments, "resources: [{name: cpu}]", problems).resources.size(), 1u);
  EXPECT_EQ(problems, Problems());
}

TEST(ArgumentsTest, ReadsRulesOfReclaim) {
  Problems problems;
  const QuotaOptions defaults = Read(&ReadQuotaArguments, "", problems);
  EXPECT_EQ(defaults.exempt_namespaces, std::set<std::string>{"kube-system"});
  EXPECT_TRUE(defaults.reclaim.from_pods_without_quota);
  EXPECT_EQ(defaults.max_grace, std::chrono::seconds(300));
  const QuotaOptions options =
      Read(&ReadQuotaArguments,
           "{reclaimFromPodsWithoutQuota: false, reclaimExemptNamespaces: [infra, gpu-operator], "
           "reclaimMaxGracePeriodSeconds: 60}",
           problems);
  EXPECT_EQ(options.max_grace, std::chrono::seconds(60));
  EXPECT_EQ(options.exempt_namespaces, (std::set<std::string>{"infra", "gpu-operator"}));
  EXPECT_FALSE(options.reclaim.from_pods_without_quota);
  EXPECT_TRUE(
      Read(&ReadQuotaArguments, "reclaimExemptNamespaces: []", problems).exempt_namespaces.empty());
  EXPECT_EQ(problems, Problems());
  (void)Read(&ReadQuotaArguments,
             "{reclaimExemptNamespaces: [infra, a/b], reclaimMaxGracePeriodSeconds: 0}", problems);
  EXPECT_EQ(problems,
            (Problems{"args.reclaimExemptNamespaces[1]: 'a/b' is not the name of a namespace",
                      "args.reclaimMaxGracePeriodSeconds: must be from 1 to 31536000, not 0"}));
}

}  // namespace
}  // namespace nos::scheduling
