#include "scheduling/plugins/node_resources_fit/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduling/plugins/node_resources_fit/fit.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::ResourceVector;
using testing::NodeOf;
using testing::PodOf;
using testing::Snap;

Verdict Filter(const cluster::Node& node, const cluster::Pod& pod,
               const std::vector<cluster::Pod>& running = {}) {
  return NodeResourcesFit().Filter({}, pod, Snap({node}, running).node(0));
}

TEST(NodeResourcesFitTest, CountsRequestsOfRunningPods) {
  const auto node = NodeOf("a", {{"cpu", "2"}, {"memory", "4Gi"}});
  EXPECT_TRUE(Filter(node, PodOf("p", {{"cpu", "2"}, {"memory", "4Gi"}})).fits());
  const Verdict verdict = Filter(node, PodOf("p", {{"cpu", "2"}, {"memory", "1Gi"}}),
                                 {PodOf("q", {{"cpu", "1m"}}, "a")});
  EXPECT_EQ(verdict.kind, Verdict::Kind::kUnschedulable);
  EXPECT_EQ(verdict.code, "InsufficientResource");
  EXPECT_EQ(verdict.message, "Insufficient cpu");
  EXPECT_TRUE(verdict.more.empty());
}

TEST(NodeResourcesFitTest, ReportsEveryInsufficientResource) {
  const Verdict verdict =
      Filter(NodeOf("a", {{"cpu", "1"}, {"pods", "0"}}),
             PodOf("p", {{"cpu", "2"}, {"ephemeral-storage", "1"}, {"x.com/d", "1"}}));
  EXPECT_EQ(verdict.kind, Verdict::Kind::kUnresolvable);
  EXPECT_EQ(verdict.message, "Insufficient cpu");
  ASSERT_EQ(verdict.more.size(), 3u);
  EXPECT_EQ(verdict.more[0].message, "Insufficient ephemeral-storage");
  EXPECT_EQ(verdict.more[1].message, "Insufficient x.com/d");
  EXPECT_EQ(verdict.more[2].code, "TooManyPods");
  EXPECT_EQ(verdict.more[2].message, "Too many pods");
}

TEST(NodeResourcesFitTest, CountsInitContainersOverheadAndPods) {
  const auto node = NodeOf("a", {{"cpu", "2"}, {"pods", "1"}});
  auto pod = PodOf("p", {{"cpu", "1"}});
  pod.init_containers.push_back({"init", testing::Resources({{"cpu", "2"}}), {}, false});
  EXPECT_TRUE(Filter(node, pod).fits());
  pod.overhead = testing::Resources({{"cpu", "1m"}});
  EXPECT_FALSE(Filter(node, pod).fits());
  EXPECT_EQ(Filter(node, PodOf("p"), {PodOf("q", {}, "a")}).code, "TooManyPods");
}

TEST(NodeResourcesFitTest, ZeroRequestFitsOvercommittedNode) {
  const auto overfull = NodeOf("a", {{"cpu", "1"}});
  EXPECT_TRUE(
      Filter(overfull, PodOf("p", {{"x.com/d", "0"}}), {PodOf("q", {{"cpu", "3"}}, "a")}).fits());
}

TEST(NodeResourcesFitTest, MigShortfallIsNeverUnresolvable) {
  const Verdict verdict = Filter(NodeOf("a"), PodOf("p", {{"nvidia.com/mig-7g.40gb", "1"}}));
  EXPECT_EQ(verdict.kind, Verdict::Kind::kUnschedulable);
  EXPECT_EQ(Filter(NodeOf("a"), PodOf("p", {{"nvidia.com/gpu", "1"}})).kind,
            Verdict::Kind::kUnresolvable);
}

TEST(FitTest, FitsAgreesWithShortfallsAndIgnoresMig) {
  const auto vec = [](testing::Amounts amounts) {
    return ResourceVector::From(testing::Resources(amounts));
  };
  const ResourceVector requests = vec({{"cpu", "1"}, {"nvidia.com/mig-1g.5gb", "2"}});
  const ResourceVector allocatable = vec({{"cpu", "2"}, {"nvidia.com/mig-1g.5gb", "1"}});
  EXPECT_FALSE(Fits(requests, allocatable, {}));
  EXPECT_EQ(Shortfalls(requests, allocatable, {}).size(), 1u);
  EXPECT_TRUE(Fits(requests, allocatable, {}, Mig::kIgnore));
  EXPECT_TRUE(Shortfalls(requests, allocatable, {}, Mig::kIgnore).empty());
  EXPECT_FALSE(Fits(requests, allocatable, vec({{"cpu", "1500m"}}), Mig::kIgnore));
  const Shortfall lack = Shortfalls(requests, allocatable, vec({{"cpu", "1500m"}})).at(0);
  EXPECT_EQ(lack.requested, 1000);
  EXPECT_EQ(lack.used, 1500);
  EXPECT_EQ(lack.allocatable, 2000);
  EXPECT_FALSE(lack.hopeless);
}

TEST(FitTest, HugeAmountsDoNotOverflow) {
  ResourceVector most;
  most.Set(cluster::kMemory, INT64_MAX);
  ResourceVector one;
  one.Set(cluster::kMemory, 1);
  EXPECT_TRUE(Fits(most, most, {}));
  EXPECT_FALSE(Fits(most, most, one));
  EXPECT_FALSE(Fits(most, one, most));
  ResourceVector unknown;
  unknown.Set(cluster::kUnknownResource, 1);
  EXPECT_FALSE(Fits(unknown, unknown, {}));
  EXPECT_EQ(Shortfalls(unknown, unknown, {}).size(), 1u);
}

TEST(FitTest, TooManyPodsIsNeverUnresolvable) {
  const Verdict verdict = Filter(NodeOf("a", {{"pods", "0"}}), PodOf("p"));
  EXPECT_EQ(verdict.message, "Too many pods");
  EXPECT_EQ(verdict.kind, Verdict::Kind::kUnschedulable);
}

TEST(NodeResourcesFitTest, IgnoresConfiguredExtendedResources) {
  const auto fits = [](const FitOptions& options, const std::string& resource) {
    const NodeResourcesFit plugin(options);
    const auto pod = PodOf("p", {{resource, "1"}});
    const auto snapshot = Snap({NodeOf("a")});
    CycleState state;
    plugin.PreFilter(pod, snapshot, state);
    EXPECT_EQ(plugin.Filter(state, pod, snapshot.node(0)).fits(),
              plugin.Filter({}, pod, snapshot.node(0)).fits());
    return plugin.Filter(state, pod, snapshot.node(0)).fits();
  };
  FitOptions options;
  options.ignored_resources = {"example.com/a", "cpu", "hugepages-2Mi", "kubernetes.io/x"};
  EXPECT_TRUE(fits(options, "example.com/a"));
  EXPECT_FALSE(fits(options, "example.com/b"));
  EXPECT_FALSE(fits(options, "cpu"));
  EXPECT_FALSE(fits(options, "hugepages-2Mi"));
  EXPECT_FALSE(fits(options, "kubernetes.io/x"));
  options.ignored_groups = {"example.com"};
  EXPECT_TRUE(fits(options, "example.com/b"));
  EXPECT_FALSE(fits(options, "sub.example.com/b"));
}

TEST(NodeResourcesFitTest, PodLevelRequestsReplaceContainerRequests) {
  auto pod = PodOf("p", {{"cpu", "3"}, {"x.com/d", "1"}});
  pod.requests = testing::Resources({{"cpu", "2"}});
  EXPECT_TRUE(Filter(NodeOf("a", {{"cpu", "2"}, {"x.com/d", "1"}}), pod).fits());
  EXPECT_FALSE(Filter(NodeOf("a", {{"cpu", "1"}, {"x.com/d", "1"}}), pod).fits());
}

int64_t Score(const FitOptions& options, const cluster::Node& node,
              const cluster::Pod& pod = PodOf("p", {{"cpu", "1"}})) {
  const NodeResourcesFit plugin(options);
  const auto snapshot = Snap({node}, {PodOf("q", {{"cpu", "1"}, {"memory", "1Gi"}}, "a")});
  CycleState state;
  EXPECT_TRUE(plugin.PreScore(pod, snapshot, {}, state));
  const int64_t score = plugin.Score(state, pod, snapshot.node(0));
  EXPECT_EQ(score, plugin.Score({}, pod, snapshot.node(0)));
  return score;
}

using enum FitOptions::Strategy;

FitOptions Options(FitOptions::Strategy strategy, std::vector<WeightedResource> resources,
                   std::vector<ShapePoint> shape = {}) {
  FitOptions options;
  options.strategy = strategy;
  options.resources = std::move(resources);
  options.shape = std::move(shape);
  return options;
}

TEST(NodeResourcesFitTest, UnrelatedAnnotationsDoNotWakePod) {
  const NodeResourcesFit plugin;
  const auto pod = PodOf("p", {{"nvidia.com/mig-7g.40gb", "1"}});
  const auto helps = [&](const cluster::Node& before, std::string key) {
    auto after = std::make_shared<cluster::Node>(before);
    after->meta.annotations[std::move(key)] = "x";
    return plugin.MayHelp({ClusterEvent::Kind::kNodeChanged,
                           std::make_shared<const cluster::Node>(before), after, nullptr, nullptr},
                          pod);
  };
  const auto managed =
      NodeOf("n", {{"cpu", "8"}}, {{std::string(cluster::kPartitioningLabel), "mig"}});
  EXPECT_TRUE(helps(managed, "nos.nebuly.com/status-layout-0"));
  EXPECT_TRUE(helps(managed, "n8s.nebuly.ai/status-gpu-0-7g.40gb-free"));
  EXPECT_FALSE(helps(managed, "projectcalico.org/IPv4VXLANTunnelAddr"));
  EXPECT_FALSE(helps(NodeOf("n", {{"cpu", "8"}}), "nos.nebuly.com/status-layout-0"));
}

TEST(NodeResourcesFitTest, ScoresFreeOrUsedFractions) {
  // The pod has no memory request and counts 200 MiB.
  const auto node = NodeOf("a", {{"cpu", "8"}, {"memory", "4Gi"}, {"x.com/d", "4"}});
  const int64_t taken = (1024 + 200) * 100 / 4096, left = (4096 - 1224) * 100 / 4096;
  EXPECT_EQ(Score({}, node), (75 + left) / 2);
  EXPECT_EQ(Score(Options(kMaxAllocated, {{"cpu", 1}, {"memory", 1}}), node), (25 + taken) / 2);
  EXPECT_EQ(Score({}, NodeOf("a", {})), 0);
  EXPECT_EQ(Score({}, NodeOf("a", {{"cpu", "1"}})), 0);
  EXPECT_EQ(Score(Options(kMaxAllocated, {{"cpu", 1}}), NodeOf("a", {{"cpu", "1"}})), 100);
  EXPECT_EQ(Score(Options(kLeastAllocated, {{"cpu", 1}, {"pods", 5}}), node), 75);
}

TEST(NodeResourcesFitTest, ScoresDevicesOnlyForPodsThatRequestThem) {
  const auto node = NodeOf("a", {{"cpu", "8"}, {"memory", "4Gi"}, {"x.com/d", "4"}});
  const auto options = Options(kLeastAllocated, {{"cpu", 1}, {"x.com/d", 3}});
  EXPECT_EQ(Score(options, node), 75);
  EXPECT_EQ(Score(options, node, PodOf("p", {{"cpu", "1"}, {"x.com/d", "1"}})), (75 + 3 * 75) / 4);
  EXPECT_EQ(Score(Options(kLeastAllocated, {{"cpu", 1}, {"x.com/none", 3}}), node,
                  PodOf("p", {{"cpu", "1"}, {"x.com/none", "1"}})),
            75);
  EXPECT_EQ(Score(Options(kMaxAllocated, {{"x.com/d", 1}}), node), 0);
}

TEST(NodeResourcesFitTest, AssumesDefaultRequestsForScore) {
  const auto node = NodeOf("a", {{"cpu", "4"}, {"memory", "4Gi"}});
  // 1 core of the running pod, 100m assumed for this one.
  EXPECT_EQ(Score(Options(kMaxAllocated, {{"cpu", 1}}), node, PodOf("p")), 27);
  EXPECT_EQ(Score(Options(kMaxAllocated, {{"ephemeral-storage", 1}}), node, PodOf("p")), 0);
}

TEST(NodeResourcesFitTest, ScoresByShapeOfUtilization) {
  const auto at = [](int cpus, std::vector<ShapePoint> shape) {
    return Score(Options(kRequestedToCapacityRatio, {{"cpu", 1}}, std::move(shape)),
                 NodeOf("a", {{"cpu", std::to_string(cpus)}}));
  };
  const std::vector<ShapePoint> rising = {{10, 10}, {90, 90}};
  EXPECT_EQ(at(100, rising), 10);  // 2 of 100 cores
  EXPECT_EQ(at(4, rising), 50);
  EXPECT_EQ(at(2, rising), 90);
  EXPECT_EQ(at(1, rising), 90);  // overcommitted
  const std::vector<ShapePoint> peak = {{0, 20}, {40, 100}, {100, 0}};
  EXPECT_EQ(at(10, peak), 60);
  EXPECT_EQ(at(5, peak), 100);
  EXPECT_EQ(at(3, peak), 100 - 100 * 26 / 60);  // 66 per cent
  EXPECT_EQ(at(2, peak), 0);
}

TEST(NodeResourcesFitTest, ShapeIgnoresZeroScoresAndRoundsMean) {
  const auto node = NodeOf("a", {{"cpu", "4"}, {"memory", "4Gi"}, {"x.com/d", "4"}});
  const auto pod = PodOf("p", {{"cpu", "1"}, {"memory", "3Gi"}, {"x.com/d", "1"}});
  const std::vector<ShapePoint> falling = {{0, 100}, {100, 0}};
  // cpu 50, memory 0 (full), devices 75
  EXPECT_EQ(
      Score(Options(kRequestedToCapacityRatio, {{"cpu", 1}, {"memory", 1}}, falling), node, pod),
      50);
  EXPECT_EQ(
      Score(Options(kRequestedToCapacityRatio, {{"cpu", 1}, {"x.com/d", 1}}, falling), node, pod),
      63);
  EXPECT_EQ(Score(Options(kRequestedToCapacityRatio, {{"memory", 1}}, falling), node, pod), 0);
}

TEST(NodeResourcesFitTest, LeavesGpuNodesToPackingIfConfigured) {
  const auto node = NodeOf("a", {{"cpu", "8"}, {"memory", "4Gi"}, {"nvidia.com/gpu", "4"}});
  FitOptions options;
  EXPECT_GT(Score(options, node), 0);
  options.leaves_gpus = true;
  EXPECT_EQ(Score(options, node), 0);
  EXPECT_GT(Score(options, NodeOf("a", {{"cpu", "8"}})), 0);
}

std::shared_ptr<const cluster::Node> Shared(const cluster::Node& node) {
  return std::make_shared<const cluster::Node>(node);
}

TEST(NodeResourcesFitTest, OnlyMoreOfRequestedResourceWakesPod) {
  const NodeResourcesFit plugin;
  const auto pod = PodOf("p", {{"cpu", "2"}});
  const auto small = Shared(NodeOf("a", {{"cpu", "1"}})), big = Shared(NodeOf("a", {{"cpu", "2"}}));
  const auto memory = Shared(NodeOf("a", {{"cpu", "2"}, {"memory", "1Gi"}}));
  const auto roomy = Shared(NodeOf("a", {{"cpu", "2"}, {"pods", "200"}}));
  using enum ClusterEvent::Kind;
  EXPECT_TRUE(plugin.MayHelp({kNodeAdded, nullptr, big}, pod));
  EXPECT_FALSE(plugin.MayHelp({kNodeAdded, nullptr, small}, pod));
  EXPECT_TRUE(plugin.MayHelp({kNodeChanged, small, big}, pod));
  EXPECT_FALSE(plugin.MayHelp({kNodeChanged, big, small}, pod));
  EXPECT_FALSE(plugin.MayHelp({kNodeChanged, big, memory}, pod));
  EXPECT_TRUE(plugin.MayHelp({kNodeChanged, big, roomy}, pod));
  EXPECT_TRUE(plugin.MayHelp({kPodLeft, nullptr, nullptr, nullptr, nullptr}, pod));
  EXPECT_FALSE(plugin.MayHelp({kPodBound}, pod));
  EXPECT_FALSE(plugin.MayHelp({kContext}, pod));
  const auto resized = [&](const char* resource, const char* from, const char* to) {
    return plugin.MayHelp(
        {kPodChanged, nullptr, nullptr,
         std::make_shared<const cluster::Pod>(PodOf("q", {{resource, from}}, "a")),
         std::make_shared<const cluster::Pod>(PodOf("q", {{resource, to}}, "a"))},
        pod);
  };
  EXPECT_TRUE(resized("cpu", "2", "1"));
  EXPECT_FALSE(resized("cpu", "1", "2"));
  EXPECT_FALSE(resized("memory", "2", "1"));
}

TEST(NodeResourcesFitTest, RepartitionableNodeWakesPodsWithSlices) {
  const NodeResourcesFit plugin;
  const auto pod = PodOf("p", {{"cpu", "1"}, {"nvidia.com/mig-1g.5gb", "1"}});
  const auto before =
      NodeOf("a", {{"cpu", "2"}}, {{std::string(cluster::kPartitioningLabel), "mig"}});
  auto after = before;
  const auto helps = [&](const cluster::Pod& whom) {
    return plugin.MayHelp({ClusterEvent::Kind::kNodeChanged, Shared(before), Shared(after)}, whom);
  };
  EXPECT_FALSE(helps(pod));
  after.meta.annotations["nos.nebuly.com/status-layout-0"] = "";
  EXPECT_TRUE(helps(pod));
  EXPECT_FALSE(helps(PodOf("p", {{"cpu", "1"}})));
  EXPECT_FALSE(helps(PodOf("p", {{"cpu", "3"}, {"nvidia.com/mig-1g.5gb", "1"}})));
}

}  // namespace
}  // namespace nos::scheduling
