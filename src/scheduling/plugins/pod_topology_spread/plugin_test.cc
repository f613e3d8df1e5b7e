#include "scheduling/plugins/pod_topology_spread/plugin.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "scheduling/framework.h"
#include "scheduling/plugins/pod_topology_spread/constraints.h"
#include "scheduling/testing/build.h"
#include "scheduling/testing/follow.h"
#include "scheduling/testing/hint.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using cluster::LabelSelector;
using cluster::Node;
using cluster::Pod;
using cluster::StringMap;
using cluster::TopologySpreadConstraint;
using testing::NodeOf;

const StringMap kFoo{{"foo", ""}};
const std::string kHost(kHostname);

TopologySpreadConstraint Hard(int skew, std::string key, StringMap selector = kFoo) {
  TopologySpreadConstraint constraint;
  constraint.max_skew = skew;
  constraint.topology_key = std::move(key);
  constraint.when_unsatisfiable = kDoNotSchedule;
  constraint.selector = LabelSelector{std::move(selector), {}};
  return constraint;
}
TopologySpreadConstraint Soft(int skew, std::string key, StringMap selector = kFoo) {
  TopologySpreadConstraint constraint = Hard(skew, std::move(key), std::move(selector));
  constraint.when_unsatisfiable = kScheduleAnyway;
  return constraint;
}

Pod Spread(std::vector<TopologySpreadConstraint> constraints, StringMap labels = kFoo) {
  Pod pod = testing::PodOf("p");
  pod.meta.labels = std::move(labels);
  pod.spread = std::move(constraints);
  return pod;
}

// Zone 1: a, b; zone 2: x, y.
std::vector<Node> Nodes() {
  return {NodeOf("a", {}, {{"zone", "1"}, {kHost, "a"}}),
          NodeOf("b", {}, {{"zone", "1"}, {kHost, "b"}}),
          NodeOf("x", {}, {{"zone", "2"}, {kHost, "x"}}),
          NodeOf("y", {}, {{"zone", "2"}, {kHost, "y"}})};
}

// `counts` pods on each of the nodes, in order.
std::vector<Pod> Running(const std::vector<int>& counts, StringMap labels = kFoo,
                         const std::vector<Node>& nodes = Nodes()) {
  static int next = 0;
  std::vector<Pod> pods;
  for (size_t n = 0; n < counts.size(); ++n) {
    for (int i = 0; i < counts[n]; ++i) {
      pods.push_back(testing::PodOf(fmt::format("r{}", next++), {}, nodes[n].meta.name));
      pods.back().meta.labels = labels;
    }
  }
  return pods;
}

std::vector<Pod> operator+(std::vector<Pod> left, const std::vector<Pod>& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// One letter per node: "." fits, "S" skew exceeded, "L" label missing. "skip": the filter is
// skipped.
std::string Verdicts(const Pod& pod, const std::vector<Pod>& running,
                     const std::vector<Node>& nodes = Nodes()) {
  const PodTopologySpread plugin;
  const ClusterSnapshot snapshot = testing::Snap(nodes, running);
  CycleState state;
  if (plugin.PreFilter(pod, snapshot, state).skip) return "skip";
  EXPECT_TRUE(plugin.Concerns(pod));
  std::string letters;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const Verdict verdict = plugin.Filter(state, pod, snapshot.node(i));
    const std::string skewed = "node(s) didn't match pod topology spread constraints";
    if (verdict.fits()) {
      letters += '.';
    } else if (verdict.kind == Verdict::Kind::kUnresolvable) {
      EXPECT_EQ(verdict.message, skewed + " (missing required label)");
      letters += 'L';
    } else {
      EXPECT_EQ(verdict.message, skewed);
      letters += 'S';
    }
  }
  return letters;
}

TEST(PodTopologySpreadTest, FiltersOnlyByHardConstraints) {
  EXPECT_EQ(Verdicts(Spread({}), Running({3, 0, 0, 0})), "skip");
  EXPECT_EQ(Verdicts(Spread({Soft(1, "zone")}), Running({3, 0, 0, 0})), "skip");
  EXPECT_FALSE(PodTopologySpread().Concerns(Spread({Soft(1, "zone")})));
  EXPECT_FALSE(PodTopologySpread().Concerns(Spread({})));
  // Without PreFilter every node fits.
  EXPECT_TRUE(PodTopologySpread()
                  .Filter({}, Spread({Hard(1, "rack")}), testing::Snap(Nodes()).node(0))
                  .fits());
}

TEST(PodTopologySpreadTest, ComparesWithDomainWithFewestPods) {
  const Pod zone = Spread({Hard(1, "zone")});
  EXPECT_EQ(Verdicts(zone, {}), "....");
  EXPECT_EQ(Verdicts(zone, Running({3, 0, 3, 0})), "....");
  EXPECT_EQ(Verdicts(zone, Running({2, 1, 1, 1})), "SS..");
  const Pod host = Spread({Hard(1, kHost)});
  EXPECT_EQ(Verdicts(host, Running({2, 1, 0, 3})), "SS.S");
  EXPECT_EQ(Verdicts(Spread({Hard(2, kHost)}), Running({2, 1, 0, 3})), "S..S");
  // The pod does not match its own selector, so one more pod is allowed.
  EXPECT_EQ(Verdicts(Spread({Hard(1, kHost)}, {}), Running({2, 1, 0, 3})), "S..S");
}

TEST(PodTopologySpreadTest, CountsSelectedPodsOfNamespaceExceptTerminating) {
  const Pod host = Spread({Hard(1, kHost)});
  EXPECT_EQ(Verdicts(host, Running({2, 0, 0, 0}, {{"bar", ""}})), "....");
  std::vector<Pod> running = Running({2, 0, 0, 0});
  for (Pod& pod : running) pod.meta.ns = "y";
  EXPECT_EQ(Verdicts(host, running), "....");
  running = Running({2, 0, 0, 0});
  for (Pod& pod : running) pod.meta.deleted = Time{};
  EXPECT_EQ(Verdicts(host, running), "....");
  // An absent selector selects no pods, and an empty one counts none.
  Pod none = host;
  none.spread[0].selector.reset();
  EXPECT_EQ(Verdicts(none, Running({2, 0, 0, 0})), "....");
  EXPECT_EQ(Verdicts(Spread({Hard(1, kHost, {})}), Running({2, 0, 0, 0})), "....");
}

TEST(PodTopologySpreadTest, IgnoresNodesWithoutLabels) {
  std::vector<Node> nodes = Nodes();
  nodes[1].meta.labels.erase("zone");
  EXPECT_EQ(Verdicts(Spread({Hard(1, "zone")}), Running({1, 3, 1, 1}), nodes), ".LSS");
  EXPECT_EQ(Verdicts(Spread({Hard(1, "rack")}), {}), "LLLL");
  // A node needs the labels of all constraints: b counts for neither. Its host has no counted pods.
  EXPECT_EQ(Verdicts(Spread({Hard(1, "zone"), Hard(1, kHost)}), Running({1, 5, 1, 1}), nodes),
            ".LSS");
  EXPECT_EQ(Verdicts(Spread({Hard(1, kHost), Hard(1, "zone")}), Running({1, 5, 0, 0}), nodes),
            "SL..");
}

TEST(PodTopologySpreadTest, RequiresAllConstraints) {
  const Pod both = Spread({Hard(1, "zone"), Hard(1, kHost)});
  EXPECT_EQ(Verdicts(both, Running({2, 1, 0, 3})), "SS.S");
  EXPECT_EQ(Verdicts(both, Running({2, 1, 0, 4})), "SSSS");
  const Pod differently =
      Spread({Hard(1, "zone"), Hard(1, kHost, {{"bar", ""}})}, {{"foo", ""}, {"bar", ""}});
  const StringMap bar{{"bar", ""}};
  EXPECT_EQ(Verdicts(differently, Running({1, 0, 0, 0}) + Running({0, 0, 0, 1}, bar)), "SS.S");
  EXPECT_EQ(Verdicts(differently, Running({1, 0, 0, 0}) + Running({0, 0, 1, 1}, bar)), "SSSS");
  const Pod twice = Spread({Hard(1, "zone"), Hard(1, "zone", bar)}, {{"foo", ""}, {"bar", ""}});
  EXPECT_EQ(Verdicts(twice, Running({3, 0, 4, 0}) + Running({2, 0, 1, 0}, bar)), "SSSS");
}

TEST(PodTopologySpreadTest, FewerThanMinDomainsCountsAsEmptyDomain) {
  Pod pod = Spread({Hard(2, kHost)});
  const std::vector<Node> three{Nodes()[0], Nodes()[1], Nodes()[2]};
  EXPECT_EQ(Verdicts(pod, Running({2, 2, 1}), three), "...");
  pod.spread[0].min_domains = 4;
  EXPECT_EQ(Verdicts(pod, Running({2, 2, 1}), three), "SS.");
  pod.spread[0].min_domains = 3;
  EXPECT_EQ(Verdicts(pod, Running({2, 2, 1}), three), "...");
}

TEST(PodTopologySpreadTest, AppliesNodeInclusionPolicies) {
  Pod pod = Spread({Hard(1, kHost)});
  pod.node_selector = {{"zone", "1"}};
  // x and y have the fewest pods, but the pod cannot use them.
  EXPECT_EQ(Verdicts(pod, Running({1, 2, 0, 0})), ".S..");
  pod.spread[0].node_affinity_policy = "Ignore";
  EXPECT_EQ(Verdicts(pod, Running({1, 2, 0, 0})), "SS..");
  std::vector<Node> nodes = Nodes();
  nodes[2].taints = {{"gpu", "", "NoSchedule"}};
  nodes[3].taints = {{"slow", "", "PreferNoSchedule"}};
  Pod tainted = Spread({Hard(1, kHost)});
  EXPECT_EQ(Verdicts(tainted, Running({1, 2, 0, 1}), nodes), "SS.S");
  tainted.spread[0].node_taints_policy = "Honor";
  EXPECT_EQ(Verdicts(tainted, Running({1, 2, 0, 1}), nodes), ".S..");
  tainted.tolerations = {{"gpu", "Exists", "", ""}};
  EXPECT_EQ(Verdicts(tainted, Running({1, 2, 0, 1}), nodes), "SS.S");
}

TEST(PodTopologySpreadTest, MatchLabelKeysNarrowSelector) {
  Pod pod = Spread({Hard(1, kHost)}, {{"foo", ""}, {"v", "2"}});
  const auto running = Running({2, 0, 0, 0}, {{"foo", ""}, {"v", "1"}}) +
                       Running({0, 1, 0, 0}, {{"foo", ""}, {"v", "2"}});
  EXPECT_EQ(Verdicts(pod, running), "SS..");
  pod.spread[0].match_label_keys = {"v", "none"};
  EXPECT_EQ(Verdicts(pod, running), ".S..");
  pod.spread[0].selector = LabelSelector{};
  EXPECT_EQ(Verdicts(pod, running), ".S..");
  pod.spread[0].selector.reset();
  EXPECT_EQ(Verdicts(pod, running), "....");
}

cluster::PodOwner OwnerOf(std::string name, StringMap selector) {
  cluster::PodOwner owner;
  owner.meta.name = std::move(name);
  owner.selector = LabelSelector{std::move(selector), {}};
  return owner;
}

TEST(PodTopologySpreadTest, AppliesDefaultsToPodsSelectedByServiceOrOwner) {
  const PodTopologySpread plugin({false, {Hard(1, kHost, {})}});
  ClusterSnapshot snapshot = testing::Snap(Nodes(), Running({1, 0, 0, 0}));
  const Pod pod = Spread({});
  EXPECT_TRUE(plugin.Concerns(pod));
  const auto verdicts = [&](const Pod& of) {
    CycleState state;
    if (plugin.PreFilter(of, snapshot, state).skip) return std::string("skip");
    std::string letters;
    for (size_t i = 0; i < snapshot.size(); ++i) {
      letters += plugin.Filter(state, of, snapshot.node(i)).fits() ? '.' : 'S';
    }
    return letters;
  };
  EXPECT_EQ(verdicts(pod), "skip");
  auto& services = snapshot.ChangeContext().services;
  services.Set("x/bar", std::make_shared<cluster::PodOwner>(OwnerOf("bar", {{"bar", ""}})));
  services.Set("y/foo", std::make_shared<cluster::PodOwner>(OwnerOf("foo", kFoo)));
  services.Set("x/headless", std::make_shared<cluster::PodOwner>());
  EXPECT_EQ(verdicts(pod), "skip");
  services.Set("x/foo", std::make_shared<cluster::PodOwner>(OwnerOf("foo", kFoo)));
  EXPECT_EQ(verdicts(pod), "S...");
  EXPECT_EQ(verdicts(Spread({Soft(1, "zone")})), "skip");  // it has own constraints
}

TEST(PodTopologySpreadTest, CombinesSelectorsOfOwnersAndServices) {
  ClusterSnapshot snapshot;
  auto& context = snapshot.ChangeContext();
  const auto owner = [](StringMap selector) {
    return std::make_shared<cluster::PodOwner>(OwnerOf("o", std::move(selector)));
  };
  context.services.Set("x/s", owner({{"foo", ""}}));
  context.replica_sets.Set("x/o", owner({{"hash", "1"}}));
  context.stateful_sets.Set("x/o", owner({{"set", "1"}}));
  context.replication_controllers.Set("x/o", owner({{"rc", "1"}}));
  const std::vector<TopologySpreadConstraint> defaults{Soft(1, kHost, {})};
  const auto counts = [&](std::string version, std::string kind, StringMap labels,
                          bool controller = true) {
    Pod pod = Spread({});
    pod.meta.owners = {{std::move(version), std::move(kind), "o", "", controller}};
    const auto constraints = ConstraintsOf(pod, kScheduleAnyway, defaults, context);
    Pod other = Spread({}, std::move(labels));
    return constraints.size() == 1 && Counts(constraints[0], "x", other);
  };
  EXPECT_TRUE(counts("apps/v1", "ReplicaSet", {{"foo", ""}, {"hash", "1"}}));
  EXPECT_FALSE(counts("apps/v1", "ReplicaSet", {{"foo", ""}}));
  EXPECT_FALSE(counts("apps/v1", "ReplicaSet", {{"hash", "1"}}));
  EXPECT_TRUE(counts("apps/v1", "ReplicaSet", {{"foo", ""}}, false));
  EXPECT_TRUE(counts("v1", "ReplicaSet", {{"foo", ""}}));
  EXPECT_FALSE(counts("apps/v1", "StatefulSet", {{"foo", ""}}));
  EXPECT_TRUE(counts("apps/v1", "StatefulSet", {{"foo", ""}, {"set", "1"}}));
  EXPECT_TRUE(counts("v1", "ReplicationController", {{"foo", ""}, {"rc", "1"}}));
  EXPECT_FALSE(counts("v1", "ReplicationController", {{"foo", ""}}));
}

using Row = std::vector<int64_t>;

// Normalized scores of the first `feasible` nodes.
Row Scores(const Pod& pod, const std::vector<Pod>& running,
           const std::vector<Node>& nodes = Nodes(), size_t feasible = 4) {
  std::vector<Framework::Entry> entries;
  entries.push_back({std::make_unique<PodTopologySpread>(), 1});
  const Framework framework(std::move(entries));
  ClusterSnapshot snapshot = testing::Snap(nodes, running);
  snapshot.ChangeContext().services.Set("x/s",
                                        std::make_shared<cluster::PodOwner>(OwnerOf("s", kFoo)));
  std::vector<const cluster::NodeInfo*> infos;
  for (size_t i = 0; i < feasible; ++i) infos.push_back(&snapshot.node(i));
  return framework.Score(framework.PreFilter(pod, snapshot), pod, snapshot, infos);
}

TEST(PodTopologySpreadTest, ScoresDomainsWithFewerPodsHigher) {
  const Pod host = Spread({Soft(1, kHost)});
  EXPECT_EQ(Scores(host, {}), (Row{100, 100, 100, 100}));
  EXPECT_EQ(Scores(host, Running({2, 1, 0, 3})), (Row{20, 60, 100, 0}));
  EXPECT_EQ(Scores(Spread({Soft(2, kHost)}), Running({2, 1, 0, 3})), (Row{33, 66, 100, 16}));
  EXPECT_EQ(Scores(Spread({Soft(3, kHost)}), Running({4, 3, 2, 1})), (Row{44, 66, 77, 100}));
  EXPECT_EQ(Scores(host, Running({4, 2, 1, 3}), Nodes(), 3), (Row{33, 83, 100}));
  Pod none = host;
  none.spread[0].selector.reset();
  EXPECT_EQ(Scores(none, Running({2, 1, 0, 3})), (Row{100, 100, 100, 100}));
}

TEST(PodTopologySpreadTest, UnscoredNodesRankLast) {
  std::vector<Node> nodes = Nodes();
  nodes[1].meta.labels.erase(kHost);
  EXPECT_EQ(Scores(Spread({Soft(1, kHost)}), Running({4, 2, 1, 3}), nodes, 3),
            (Row{16, 0, 100}));  // 6, -, 1
  EXPECT_EQ(Scores(Spread({Soft(1, "rack")}), Running({4, 2, 1, 3})), (Row{0, 0, 0, 0}));
}

TEST(PodTopologySpreadTest, CountsPodsOnInfeasibleNodes) {
  // 6 and 4 in the zones; log(2 + 2) each: 8 and 6.
  EXPECT_EQ(Scores(Spread({Soft(1, "zone")}), Running({4, 2, 1, 3}), Nodes(), 3),
            (Row{75, 75, 100}));
  std::vector<Node> nodes = Nodes();
  nodes[3].taints = {{"gpu", "", "NoSchedule"}};
  Pod pod = Spread({Soft(1, "zone")});
  pod.spread[0].node_taints_policy = "Honor";
  EXPECT_EQ(Scores(pod, Running({4, 2, 1, 3}), nodes, 3), (Row{12, 12, 100}));  // 8 and 1
  pod.node_selector = {{kHost, "b"}};
  EXPECT_EQ(Scores(pod, Running({0, 2, 1, 3}), Nodes(), 3), (Row{0, 0, 100}));
}

TEST(PodTopologySpreadTest, SystemDefaultsWorkWithoutZones) {
  EXPECT_EQ(Scores(Spread({}), Running({4, 3, 2, 1}),
                   {NodeOf("a", {}, {{kHost, "a"}}), NodeOf("b", {}, {{kHost, "b"}}),
                    NodeOf("x", {}, {{kHost, "x"}}), NodeOf("y", {}, {{kHost, "y"}})}),
            (Row{44, 66, 77, 100}));
  // No Service or owner selects it.
  EXPECT_EQ(Scores(Spread({}, {{"bar", ""}}), Running({4, 3, 2, 1})), (Row{0, 0, 0, 0}));
}

Pod RandomPod(Random& random) {
  Pod pod = Spread({}, {{"foo", random.Below(3) == 0 ? "" : "1"}});
  if (random.Below(3) == 0) pod.meta.labels["bar"] = "";
  if (random.Below(6) == 0) pod.meta.ns = "y";
  if (random.Below(8) == 0) pod.meta.deleted = Time{};
  if (random.Below(6) == 0) pod.tolerations = {{"gpu", "Exists", "", ""}};
  if (random.Below(5) == 0) pod.node_selector = {{"zone", "1"}};
  return pod;
}

Pod RandomSpread(Random& random) {
  Pod pod = RandomPod(random);
  const char* keys[] = {"zone", "kubernetes.io/hostname", "rack"};
  for (uint64_t n = random.Below(4); n > 0; --n) {
    const int skew = static_cast<int>(random.Below(2)) + 1;
    const StringMap selector = random.Below(3) == 0   ? StringMap{{"bar", ""}}
                               : random.Below(8) == 0 ? StringMap{}
                                                      : StringMap{{"foo", "1"}};
    pod.spread.push_back(random.Below(2) == 0 ? Hard(skew, keys[random.Below(3)], selector)
                                              : Soft(skew, keys[random.Below(3)], selector));
    TopologySpreadConstraint& constraint = pod.spread.back();
    if (random.Below(3) == 0) constraint.min_domains = static_cast<int>(random.Below(5)) + 1;
    if (random.Below(2) == 0) constraint.node_affinity_policy = "Ignore";
    if (random.Below(2) == 0) constraint.node_taints_policy = "Honor";
    if (random.Below(4) == 0) constraint.match_label_keys = {"bar"};
    if (random.Below(12) == 0) constraint.max_skew = 0;
  }
  return pod;
}

std::vector<Node> RandomNodes(Random& random) {
  std::vector<Node> nodes = Nodes();
  nodes.push_back(NodeOf("z", {}, {{"zone", "3"}, {kHost, "z"}}));
  for (Node& node : nodes) {
    if (random.Below(2) == 0) node.meta.labels["rack"] = random.Below(2) == 0 ? "1" : "2";
    if (random.Below(8) == 0) node.meta.labels.erase("zone");
    if (random.Below(8) == 0) node.meta.labels.erase(kHost);
    if (random.Below(4) == 0) node.taints = {{"gpu", "", "NoSchedule"}};
  }
  return nodes;
}

void AddContext(Random& random, ClusterSnapshot& snapshot) {
  if (random.Below(2) == 0) {
    snapshot.ChangeContext().services.Set(
        "x/s", std::make_shared<cluster::PodOwner>(OwnerOf("s", {{"foo", "1"}})));
  }
}

PodTopologySpread RandomPlugin(Random& random) {
  if (random.Below(2) == 0) return PodTopologySpread();
  return PodTopologySpread({false, {Hard(1, "zone", {}), Soft(1, kHost, {}), Soft(1, "rack", {})}});
}

TEST(PodTopologySpreadTest, IncrementalUpdatesEqualRecomputation) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Pod> pool;
    for (int i = 0; i < 6; ++i) pool.push_back(RandomPod(random));
    ClusterSnapshot snapshot = testing::Snap(RandomNodes(random));
    AddContext(random, snapshot);
    const PodTopologySpread plugin = RandomPlugin(random);
    EXPECT_EQ(testing::FollowFault(plugin, RandomSpread(random), snapshot, pool, 30, random), "")
        << "round " << round;
  }
}

TEST(PodTopologySpreadTest, RecountsWhenUnknownPodIsRemoved) {
  const PodTopologySpread plugin;
  const ClusterSnapshot snapshot = testing::Snap(Nodes());
  const Pod pod = Spread({Hard(1, kHost)});
  CycleState state;
  plugin.PreFilter(pod, snapshot, state);
  const auto touch = [](std::string_view, std::string_view) {};
  EXPECT_TRUE(plugin.Update(pod, Spread({}), true, snapshot.node(0), state, touch));
  EXPECT_TRUE(plugin.Update(pod, Spread({}), false, snapshot.node(0), state, touch));
  EXPECT_FALSE(plugin.Update(pod, Spread({}), false, snapshot.node(0), state, touch));
}

TEST(PodTopologySpreadTest, HintsMissNoHelpfulEvent) {
  Random random(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<Pod> pool;
    for (int i = 0; i < 6; ++i) pool.push_back(RandomPod(random));
    ClusterSnapshot snapshot = testing::Snap(RandomNodes(random));
    AddContext(random, snapshot);
    std::vector<Node> nodes = RandomNodes(random);
    for (Node& node : RandomNodes(random)) nodes.push_back(std::move(node));
    const PodTopologySpread plugin = RandomPlugin(random);
    const Pod pod = RandomSpread(random);
    EXPECT_EQ(testing::HintFault(plugin, pod, snapshot, pool, nodes, 30, random), "")
        << "round " << round;
  }
}

TEST(PodTopologySpreadTest, HintsIgnoreIrrelevantEvents) {
  using enum ClusterEvent::Kind;
  const PodTopologySpread plugin;
  const auto shared = [](auto value) { return std::make_shared<const decltype(value)>(value); };
  const auto left = [&](const Pod& pod, StringMap labels, std::string ns = "x") {
    Pod other = Spread({}, std::move(labels));
    other.meta.ns = std::move(ns);
    return plugin.MayHelp({kPodLeft, nullptr, nullptr, shared(other), nullptr}, pod);
  };
  const Pod pod = Spread({Hard(1, "zone"), Soft(1, "rack", {{"bar", ""}})});
  EXPECT_TRUE(left(pod, kFoo));
  EXPECT_FALSE(left(pod, kFoo, "y"));
  EXPECT_FALSE(left(pod, {{"bar", ""}}));
  const auto changed = [&](const Node& before, const Node& after) {
    return plugin.MayHelp({kNodeChanged, shared(before), shared(after), nullptr, nullptr}, pod);
  };
  const Node zoned = Nodes()[0];
  Node other = zoned;
  EXPECT_FALSE(changed(zoned, other));
  other.meta.labels["rack"] = "1";
  EXPECT_FALSE(changed(zoned, other));
  other.taints = {{"gpu", "", "NoSchedule"}};
  EXPECT_TRUE(changed(zoned, other));
  other.meta.labels["zone"] = "9";
  EXPECT_TRUE(changed(zoned, other));
  other.meta.labels.erase("zone");
  EXPECT_TRUE(changed(zoned, other));
  EXPECT_FALSE(changed(other, other));
  const auto added = [&](const Node& node) {
    return plugin.MayHelp({kNodeAdded, nullptr, shared(node), nullptr, nullptr}, pod);
  };
  EXPECT_TRUE(added(zoned));
  EXPECT_FALSE(added(other));
  EXPECT_FALSE(plugin.MayHelp({kContext, nullptr, nullptr, nullptr, nullptr, "Service"}, pod));
}

}  // namespace
}  // namespace nos::scheduling
