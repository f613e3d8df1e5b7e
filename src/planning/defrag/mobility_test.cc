#include "planning/mobility.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nos::planning {
namespace {

using ::testing::HasSubstr;

cluster::Pod OwnedBy(const std::string& kind) {
  cluster::Pod pod;
  pod.meta.ns = "x";
  pod.meta.name = "p";
  pod.phase = "Running";
  pod.meta.owners = {{"apps/v1", kind, "owner", "uid", true}};
  return pod;
}

Mobility Ask(const cluster::Pod& pod, bool local_storage = false) {
  return MobilityOf(pod, {.local_storage = local_storage});
}

TEST(MobilityTest, PodsWithReplacingControllerMayMove) {
  EXPECT_EQ(Ask(OwnedBy("ReplicaSet")).kind, Mobility::kMoves);
  EXPECT_EQ(Ask(OwnedBy("StatefulSet")).kind, Mobility::kMoves);
  cluster::Pod bare = OwnedBy("ReplicaSet");
  bare.meta.owners[0].controller = false;
  EXPECT_EQ(Ask(bare).kind, Mobility::kStays);
  EXPECT_THAT(Ask(bare).why, HasSubstr("no controller"));
  bare.meta.annotations = {{std::string(kMovable), "true"}};
  EXPECT_EQ(Ask(bare).kind, Mobility::kMoves);
  bare.meta.annotations = {{std::string(kSafeToEvict), "true"}};
  EXPECT_EQ(Ask(bare).kind, Mobility::kMoves);
}

TEST(MobilityTest, PodsBoundToTheirNodeNeedNoTarget) {
  EXPECT_EQ(Ask(OwnedBy("DaemonSet")).kind, Mobility::kGoes);
  EXPECT_EQ(Ask(OwnedBy("Node")).kind, Mobility::kGoes);
  cluster::Pod pod = OwnedBy("ReplicaSet");
  pod.meta.annotations["kubernetes.io/config.mirror"] = "hash";
  EXPECT_EQ(Ask(pod).kind, Mobility::kGoes);
  pod = OwnedBy("ReplicaSet");
  pod.meta.deleted = Time{};
  EXPECT_EQ(Ask(pod).kind, Mobility::kGoes);
  pod = OwnedBy("DaemonSet");
  pod.priority = kSystemCritical;
  EXPECT_EQ(Ask(pod).kind, Mobility::kGoes);
}

TEST(MobilityTest, ForbiddingAnnotationOverridesOthers) {
  cluster::Pod pod = OwnedBy("ReplicaSet");
  pod.priority = kSystemCritical;
  pod.meta.annotations = {{std::string(kMovable), "true"}};
  EXPECT_THAT(Ask(pod).why, HasSubstr("the system's"));
  const std::pair<std::string_view, const char*> forbidding[] = {
      {kMovable, "false"}, {kMovable, "perhaps"}, {kSafeToEvict, "false"}, {kDoNotDisrupt, "true"}};
  for (const auto& [key, value] : forbidding) {
    pod = OwnedBy("ReplicaSet");
    pod.meta.annotations = {{std::string(kSafeToEvict), "true"}};
    pod.meta.annotations[std::string(key)] = value;
    EXPECT_EQ(Ask(pod).kind, Mobility::kStays) << key;
    EXPECT_THAT(Ask(pod).why, HasSubstr(std::string(key)));
  }
  pod = OwnedBy("ReplicaSet");
  pod.meta.annotations = {{std::string(kDoNotDisrupt), "false"}};
  EXPECT_EQ(Ask(pod).kind, Mobility::kMoves);
}

TEST(MobilityTest, LocalDataAndGangsForbidMoveUnlessAllowed) {
  cluster::Pod pod = OwnedBy("ReplicaSet");
  pod.volumes.resize(2);
  EXPECT_EQ(Ask(pod).kind, Mobility::kMoves);
  pod.volumes[1].local = true;
  EXPECT_EQ(Ask(pod).kind, Mobility::kStays);
  EXPECT_EQ(Ask(pod, true).kind, Mobility::kMoves);
  pod.meta.annotations = {{std::string(kMovable), "true"}};
  EXPECT_EQ(Ask(pod).kind, Mobility::kMoves);
  pod = OwnedBy("Job");
  pod.meta.labels["scheduling.x-k8s.io/pod-group"] = "train";
  EXPECT_EQ(Ask(pod).kind, Mobility::kStays);
  pod = OwnedBy("Job");
  pod.scheduling_group = "train";
  EXPECT_EQ(Ask(pod).kind, Mobility::kStays);
  pod = OwnedBy("Job");
  pod.workload.emplace();
  EXPECT_EQ(Ask(pod).kind, Mobility::kStays);
}

TEST(MobilityTest, HostPortsForbidMoveIfRulesDo) {
  cluster::Pod pod = OwnedBy("ReplicaSet");
  pod.meta.annotations = {{std::string(kMovable), "true"}};
  EXPECT_EQ(MobilityOf(pod, {.host_ports = false}).kind, Mobility::kMoves);
  pod.containers.resize(1);
  pod.containers[0].host_ports.resize(1);
  pod.containers[0].host_ports[0].port = 8080;
  EXPECT_EQ(Ask(pod).kind, Mobility::kMoves);
  const Mobility mobility = MobilityOf(pod, {.host_ports = false});
  EXPECT_EQ(mobility.kind, Mobility::kStays);
  EXPECT_THAT(mobility.why, HasSubstr("host ports"));
}

void AddBudget(const std::string& name, const cluster::LabelSelector& selector, int allowed,
               cluster::ClusterSnapshot& snapshot) {
  cluster::PodDisruptionBudget budget;
  budget.meta.ns = "x";
  budget.meta.name = name;
  budget.selector = selector;
  budget.disruptions_allowed = allowed;
  snapshot.ChangeContext().budgets.Set(
      "x/" + name, std::make_shared<const cluster::PodDisruptionBudget>(std::move(budget)));
}

TEST(EvictionBudgetsTest, TakeCountsDown) {
  cluster::ClusterSnapshot snapshot;
  AddBudget("web", {{{"app", "web"}}, {}}, 1, snapshot);
  cluster::Pod pod = OwnedBy("ReplicaSet");
  pod.meta.labels = {{"app", "web"}};
  EvictionBudgets budgets(snapshot);
  const EvictionBudgets before = budgets;
  EXPECT_EQ(budgets.WhyNot(pod), "");
  budgets.Take(pod);
  EXPECT_EQ(budgets.WhyNot(pod), "PodDisruptionBudget web allows no further disruption");
  EXPECT_EQ(before.WhyNot(pod), "");
  pod.meta.ns = "y";
  EXPECT_EQ(budgets.WhyNot(pod), "");
}

TEST(EvictionBudgetsTest, EmptySelectorMatchesAllAndTwoBudgetsForbidEviction) {
  cluster::ClusterSnapshot snapshot;
  const cluster::Pod pod = OwnedBy("ReplicaSet");
  EXPECT_EQ(EvictionBudgets(snapshot).WhyNot(pod), "PodDisruptionBudgets are not known");
  AddBudget("all", {}, 0, snapshot);
  EXPECT_EQ(EvictionBudgets(snapshot).WhyNot(pod),
            "PodDisruptionBudget all allows no further disruption");
  AddBudget("all", {}, 5, snapshot);
  EXPECT_EQ(EvictionBudgets(snapshot).WhyNot(pod), "");
  AddBudget("more", {}, 5, snapshot);
  EXPECT_EQ(EvictionBudgets(snapshot).WhyNot(pod),
            "belongs to more than one PodDisruptionBudget (all, more), so the API server refuses "
            "to evict it");
}

}  // namespace
}  // namespace nos::planning
