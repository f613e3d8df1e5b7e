// Gangs whose pods must be near each other, apart, or spread.
#include "planning/translation/gang_assembly.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "planning/testing/clusters.h"
#include "planning/testing/problems.h"
#include "planning/translation/translate.h"
#include "scheduling/framework.h"

namespace nos::planning {
namespace {

using testing::ClusterBuilder;
using testing::PlanFault;

constexpr const char* kA30 = "NVIDIA-A30";

cluster::PodAffinityTerm Of(const std::string& role, const std::string& key) {
  return {cluster::LabelSelector{{{"role", role}}, {}}, {}, std::nullopt, key};
}

cluster::TopologySpreadConstraint Evenly(const std::string& role, const std::string& key) {
  cluster::TopologySpreadConstraint spread;
  spread.max_skew = 1;
  spread.topology_key = key;
  spread.when_unsatisfiable = "DoNotSchedule";
  spread.selector = cluster::LabelSelector{{{"role", role}}, {}};
  return spread;
}

class GangAssemblyTest : public ::testing::Test {
 protected:
  cluster::Node& Node(const std::string& name, const std::string& zone,
                      const std::vector<std::string>& layouts) {
    cluster::Node& node =
        layouts.empty() ? cluster_.PlainNode(name) : cluster_.Node(name, kA30, layouts);
    node.meta.labels["zone"] = zone;
    node.meta.labels["host"] = name;
    return node;
  }
  // Adds a pod that the gang lacks.
  cluster::Pod& Member(const std::string& role, const std::string& profile) {
    const int index = static_cast<int>(cluster_.Pending().size());
    if (options_.gangs.empty()) options_.gangs.push_back({"gang", 0, 0, {}, ""});
    options_.gangs[0].members.push_back(index);
    options_.gangs[0].least = static_cast<int>(options_.gangs[0].members.size());
    cluster::Pod& pod = cluster_.Pod("g" + std::to_string(index), {profile});
    pod.meta.labels["role"] = role;
    return pod;
  }
  void Make() {
    plan_ = cluster_.MakePlan(options_);
    EXPECT_EQ(PlanFault(plan_, cluster_.Snapshot()), "");
  }
  // Values of the label on the nodes of the gang's pods.
  std::multiset<std::string> Where(const std::string& label) const {
    std::multiset<std::string> found;
    const cluster::ClusterSnapshot snapshot = cluster_.Snapshot();
    for (const PodOutcome& pod : plan_.pods) {
      if (!pod.placed || !pod.pod->meta.name.starts_with("g")) continue;
      found.insert(snapshot.Find(pod.node)->node->meta.labels.at(label));
    }
    return found;
  }
  using Labels = std::multiset<std::string>;

  ClusterBuilder cluster_;
  PlanOptions options_;
  Plan plan_;
};

TEST_F(GangAssemblyTest, StartsInDomainWithCapacity) {
  Node("a", "1", {"2g.12gb@0:free,1g.6gb@2:free,1g.6gb@3:used"});
  Node("b", "2", {"2g.12gb@0:used"});
  Node("c", "2", {"2g.12gb@0:used"});
  for (int i = 0; i < 2; ++i) Member("w", "2g.12gb").pod_affinity.required = {Of("w", "zone")};
  Make();
  EXPECT_EQ(Where("zone"), (Labels{"2", "2"}));
}

TEST_F(GangAssemblyTest, SkipsDomainsWithoutCapacity) {
  for (int i = 0; i < 70; ++i) Node("a" + std::to_string(i), "1", {"4g.24gb@0:used"});
  Node("b", "1", {"2g.12gb@0:used,1g.6gb@2:used"});
  Node("c", "1", {"", ""});
  for (int i = 0; i < 2; ++i) Member("w", "1g.6gb").pod_affinity.required = {Of("w", "host")};
  Make();
  EXPECT_EQ(Where("host"), (Labels{"c", "c"}));
}

TEST_F(GangAssemblyTest, PlacesManyPodsOnDifferentNodes) {
  constexpr int kPods = 12;  // more than the number of search rounds
  Labels all;
  for (int i = 0; i < kPods; ++i) {
    Node("n" + std::to_string(i), "1", {"", ""});
    all.insert("n" + std::to_string(i));
    Member("w", "1g.6gb").pod_anti_affinity.required = {Of("w", "host")};
  }
  Make();
  EXPECT_EQ(Where("host"), all);
}

TEST_F(GangAssemblyTest, SpreadsPodsOverDomains) {
  Node("a", "1", {"", ""});
  Node("b", "2", {""});
  for (int i = 0; i < 4; ++i) Member("w", "2g.12gb").spread = {Evenly("w", "zone")};
  Make();
  EXPECT_EQ(Where("zone"), (Labels{"1", "1", "2", "2"}));
}

TEST_F(GangAssemblyTest, PlacesWorkersNearTheirLeader) {
  Node("a", "1", {"4g.24gb@0:used"});
  Node("b", "2", {"", ""});
  for (int i = 0; i < 3; ++i) Member("w", "2g.12gb").pod_affinity.required = {Of("leader", "zone")};
  Member("leader", "1g.6gb");
  Make();
  EXPECT_EQ(Where("zone"), (Labels{"2", "2", "2", "2"}));
}

TEST_F(GangAssemblyTest, DisplacesLessUrgentPods) {
  Node("a", "1", {"2g.12gb@0:used"});
  Node("b", "2", {""});
  for (int i = 0; i < 2; ++i) Member("w", "2g.12gb").pod_affinity.required = {Of("w", "zone")};
  for (cluster::Pod* pod : {&cluster_.Pod("x", {"2g.12gb"}), &cluster_.Pod("y", {"2g.12gb"})}) {
    pod->priority = -1;
  }
  Make();
  EXPECT_EQ(Where("zone"), (Labels{"2", "2"}));
  EXPECT_EQ(plan_.placed, 3);
}

TEST_F(GangAssemblyTest, DoesNotDisplaceMoreUrgentPods) {
  Node("a", "1", {"2g.12gb@0:used"});
  Node("b", "2", {""});
  for (int i = 0; i < 2; ++i) Member("w", "2g.12gb").pod_affinity.required = {Of("w", "zone")};
  cluster_.Pod("x", {"4g.24gb"}, 1);
  Make();
  EXPECT_EQ(Where("zone"), Labels{});
  EXPECT_EQ(plan_.placed, 1);
}

struct DrawnNode {
  std::string name, zone, layout;  // "none": no GPU
  int cpu = 0;

  void AddTo(ClusterBuilder& cluster) const {
    cluster::Node& node =
        layout == "none" ? cluster.PlainNode(name) : cluster.Node(name, kA30, {layout});
    node.meta.labels["zone"] = zone;
    node.meta.labels["host"] = name;
    node.allocatable["cpu"] = Quantity::FromValue(cpu);
  }
};

struct DrawnPod {
  std::vector<std::string> profiles;
  std::string cpu;
};

struct Drawn {
  std::vector<DrawnNode> nodes;
  std::vector<DrawnPod> pods;
  // near: all pods are near each other; led: all are near a leader that may run anywhere; apart:
  // one pod per node; even: spread evenly over zones.
  bool near = false, led = false, apart = false, even = false;
};

Drawn Draw(uint64_t seed) {
  Random random(seed);
  Drawn drawn;
  const std::string layouts[] = {"", "1g.6gb@0:free", "2g.12gb@0:used", "1g.6gb@3:used", "none"};
  const int nodes = 2 + static_cast<int>(random.Below(4));
  for (int n = 0; n < nodes; ++n) {
    drawn.nodes.push_back({"n" + std::to_string(n), std::to_string(random.Below(3)),
                           layouts[random.Below(5)], 2 + static_cast<int>(random.Below(9))});
  }
  drawn.led = random.Chance(0.2);
  drawn.near = !drawn.led && random.Chance(0.6);
  drawn.even = !drawn.led && !drawn.near && random.Chance(0.6);
  drawn.apart = random.Chance(0.3);
  const std::vector<std::string> wants[] = {{}, {"1g.6gb"}, {"2g.12gb"}, {"4g.24gb"}};
  const int pods = 2 + static_cast<int>(random.Below(4));
  const auto& one = wants[random.Below(4)];
  const bool are_alike = random.Chance(0.5);
  for (int p = 0; p < pods; ++p) {
    drawn.pods.push_back(
        {are_alike ? one : wants[random.Below(4)], std::to_string(1 + random.Below(4))});
  }
  return drawn;
}

// Decides by exhaustive search whether all pods of the gang have places.
class ByForce {
 public:
  explicit ByForce(const Drawn& drawn) : drawn_(drawn), node_of_(drawn.pods.size()) {}
  bool HasRoom() { return Visit(0); }

 private:
  bool Visit(size_t pod) {
    if (pod == node_of_.size()) return Holds();
    for (size_t n = 0; n < drawn_.nodes.size(); ++n) {
      node_of_[pod] = n;
      if (Visit(pod + 1)) return true;
    }
    return false;
  }

  bool Holds() {
    std::map<std::string, int> in_zone;
    std::map<size_t, unsigned> on_node;  // bit set of pods
    for (const DrawnNode& node : drawn_.nodes) in_zone[node.zone] = 0;
    for (size_t p = 0; p < node_of_.size(); ++p) {
      ++in_zone[drawn_.nodes[node_of_[p]].zone];
      on_node[node_of_[p]] |= 1U << p;
    }
    int least = static_cast<int>(node_of_.size()), most = 0;
    for (const auto& [zone, count] : in_zone) {
      least = std::min(least, count);
      most = std::max(most, count);
    }
    if (drawn_.apart && on_node.size() < node_of_.size()) return false;
    if ((drawn_.near || drawn_.led) && most < static_cast<int>(node_of_.size())) return false;
    if (drawn_.even && most - least > 1) return false;
    return std::ranges::all_of(on_node,
                               [&](const auto& some) { return Fit(some.first, some.second); });
  }

  bool Fit(size_t node, unsigned pods) {
    const auto [at, fresh] = fit_.try_emplace({node, pods});
    if (!fresh) return at->second;
    ClusterBuilder cluster;
    drawn_.nodes[node].AddTo(cluster);
    for (size_t p = 0; p < drawn_.pods.size(); ++p) {
      if ((pods >> p & 1U) == 0) continue;
      cluster.Pod(std::to_string(p), drawn_.pods[p].profiles, 0, drawn_.pods[p].cpu);
    }
    const scheduling::Framework framework = scheduling::Framework::Default();
    const testing::SharedPods pending = cluster.Pending();
    const cluster::ClusterSnapshot snapshot = cluster.Snapshot();
    const Translation translation = Translate(snapshot, pending, framework, {});
    at->second = testing::SolveByForce(translation.problem).most_pods == std::popcount(pods);
    return at->second;
  }

  const Drawn& drawn_;
  std::vector<size_t> node_of_;
  std::map<std::pair<size_t, unsigned>, bool> fit_;
};

// Number of placed gang members, with less urgent pods present.
int PlacedOf(const Drawn& drawn) {
  ClusterBuilder cluster;
  PlanOptions options;
  const int pods = static_cast<int>(drawn.pods.size());
  Gang gang{"gang", pods, 0, {}, ""};
  for (const DrawnNode& node : drawn.nodes) node.AddTo(cluster);
  for (int p = 0; p < pods; ++p) {
    gang.members.push_back(p);
    cluster::Pod& pod =
        cluster.Pod("g" + std::to_string(p), drawn.pods[p].profiles, 0, drawn.pods[p].cpu);
    const bool leads = drawn.led && p + 1 == pods;
    pod.meta.labels["role"] = leads ? "leader" : "worker";
    const std::string near_whom = drawn.led ? "leader" : "worker";
    if (!leads && (drawn.near || drawn.led)) pod.pod_affinity.required = {Of(near_whom, "zone")};
    if (drawn.even) pod.spread = {Evenly("worker", "zone")};
    if (drawn.apart) pod.pod_anti_affinity.required = {Of("worker", "host")};
  }
  options.gangs.push_back(std::move(gang));
  for (int i = 0; i < 2; ++i) cluster.Pod("x" + std::to_string(i), {"1g.6gb"}, -1, "1");
  const Plan plan = cluster.MakePlan(options);
  EXPECT_EQ(PlanFault(plan, cluster.Snapshot()), "");
  return static_cast<int>(std::ranges::count_if(plan.pods, [](const PodOutcome& pod) {
    return pod.placed && pod.pod->meta.name.starts_with("g");
  }));
}

TEST(GangAssemblyPropertyTest, FindsPlacesIfExhaustiveSearchDoes) {
  constexpr int kCases = 1000;
  int possible = 0, missed = 0;
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    const Drawn drawn = Draw(seed);
    if (!drawn.near && !drawn.led && !drawn.apart && !drawn.even) continue;
    const int pods = static_cast<int>(drawn.pods.size());
    const bool has_room = ByForce(drawn).HasRoom();
    const int placed = PlacedOf(drawn);
    EXPECT_TRUE(placed == 0 || (placed == pods && has_room)) << "seed " << seed;
    possible += has_room ? 1 : 0;
    missed += has_room && placed == 0 ? 1 : 0;
  }
  RecordProperty("possible", possible);
  RecordProperty("missed", missed);
  EXPECT_GE(possible, kCases / 5);
  EXPECT_LE(missed, possible / 100);
}

}  // namespace
}  // namespace nos::planning
