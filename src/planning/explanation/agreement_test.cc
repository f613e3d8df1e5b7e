// The planner and the scheduler's explanation give the same remedy for the same situation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "planning/planner.h"
#include "planning/testing/clusters.h"
#include "scheduling/explain.h"
#include "scheduling/framework.h"
#include "scheduling/remedies.h"

namespace nos::planning {
namespace {

using scheduling::Framework;
using scheduling::PartitionedBy;
using testing::ClusterBuilder;
namespace remedies = scheduling::remedies;

constexpr const char* kA100 = "NVIDIA-A100-SXM4-40GB";
constexpr const char* kA100Big = "NVIDIA-A100-SXM4-80GB";

cluster::Pod& Requesting(cluster::Pod& pod, const std::string& resource, int64_t amount) {
  pod.containers[0].requests[resource] = Quantity::FromValue(amount);
  return pod;
}

struct Situation {
  std::string name;
  std::function<void(ClusterBuilder&)> build;  // adds nodes and one pending pod
  std::string remedy;                          // code
};

void PrintTo(const Situation& situation, std::ostream* out) { *out << situation.name; }

const Situation kSituations[] = {
    {"ProfileOfNoModel", [](auto& c) { c.Node("a", kA100, {""}), c.Pod("p", {"9g.99gb"}); },
     remedies::kRequestExistingProfile},
    {"ProfileOfNoModelWithoutNodes", [](auto& c) { c.Pod("p", {"9g.99gb"}); },
     remedies::kRequestExistingProfile},
    {"ProfileOfNoModelBesideCordon",
     [](auto& c) {
       c.Node("a", kA100, {""}).unschedulable = true;
       c.Pod("p", {"9g.99gb"});
     },
     remedies::kRequestExistingProfile},
    {"ProfileOfNoModelOnUnknownGpus",
     [](auto& c) {
       c.Node("a", "Unheard-Of-1", {""});
       c.Pod("p", {"9g.99gb"});
     },
     remedies::kRequestExistingProfile},
    {"ShareLargerThanAny", [](auto& c) { c.Node("a", kA100, {""}), c.Pod("p", {"256gb"}); },
     remedies::kRequestExistingProfile},
    {"ProfileOfOtherModel", [](auto& c) { c.Node("a", kA100, {""}), c.Pod("p", {"4g.24gb"}); },
     remedies::kAddNode},
    {"ShareWithoutSharedNode", [](auto& c) { c.Node("a", kA100, {""}), c.Pod("p", {"10gb"}); },
     remedies::kAddNode},
    {"ProfileByAlias", [](auto& c) { c.Node("a", kA100Big, {""}), c.Pod("p", {"7g.79gb"}); },
     remedies::kRequestAdvertisedName},
    {"MoreSlicesThanNodesGpus",
     [](auto& c) {
       c.Node("a", kA100, {""});
       Requesting(c.Pod("p", {"1g.5gb"}), "nvidia.com/mig-1g.5gb", 8);
     },
     remedies::kAddNode},
    {"MoreSlicesThanAnyNode",
     [](auto& c) {
       c.Node("a", kA100, {""});
       Requesting(c.Pod("p", {"1g.5gb"}), "nvidia.com/mig-1g.5gb", 1000);
     },
     remedies::kSplitPod},
    {"MoreCpuThanNode", [](auto& c) { c.PlainNode("a"), c.Pod("p", {}, 0, "100"); },
     remedies::kAddNode},
    {"MoreCpuThanNodeBesideDaemonSet",
     [](auto& c) {
       c.PlainNode("a");
       c.Running("d", "a", {}, "2").meta.owners.emplace_back().kind = "DaemonSet";
       c.Pod("p", {}, 0, "63");
     },
     remedies::kAddNode},
    {"MoreCpuThanAnyMachine", [](auto& c) { c.PlainNode("a"), c.Pod("p", {}, 0, "5000"); },
     remedies::kRequestLess},
    {"MoreMemoryThanAnyMachineOnTaintedNode",
     [](auto& c) {
       auto& node = c.PlainNode("a");
       node.allocatable["memory"] = Quantity::FromValue(int64_t{1} << 40);
       node.taints = {{"dedicated", "ml", "NoSchedule"}};
       Requesting(c.Pod("p", {}, 0, "1"), "memory", int64_t{1} << 55);
     },
     remedies::kRequestLess},
    {"Cordon",
     [](auto& c) {
       c.PlainNode("a").unschedulable = true;
       c.Pod("p", {}, 0, "1");
     },
     remedies::kLiftConstraints},
    {"TaintAndSelector",
     [](auto& c) {
       c.PlainNode("a").taints = {{"dedicated", "ml", "NoSchedule"}};
       c.Pod("p", {}, 0, "1").node_selector = {{"zone", "b"}};
     },
     remedies::kLiftConstraints},
};

class AgreementTest : public ::testing::TestWithParam<Situation> {};

TEST_P(AgreementTest, PlannerAndSchedulerGiveSameRemedy) {
  ClusterBuilder cluster;
  GetParam().build(cluster);
  const auto snapshot = cluster.Snapshot();
  const auto pending = cluster.Pending();
  const PodOutcome planned = cluster.MakePlan().pods.at(0);
  EXPECT_EQ(planned.remedy_code, GetParam().remedy) << planned.remedy;
  const Framework waiting = Framework::Default();
  const Framework partitioning = Framework::Default(PartitionedBy::kScheduler);
  for (const Framework* framework : {&waiting, &partitioning}) {
    const auto why = scheduling::Explain({*framework, partitioning, snapshot, *pending.at(0)});
    EXPECT_EQ(why.remedy_code, GetParam().remedy) << why.remedy;
    EXPECT_EQ(why.remedy, planned.remedy);
    const bool impossible = planned.reasons.at(0).code == scheduling::codes::kNoModelHasProfile;
    ASSERT_EQ(why.impossible.has_value(), impossible);
    if (!impossible) continue;
    EXPECT_EQ(why.impossible->message, planned.reasons.at(0).message);
  }
}

INSTANTIATE_TEST_SUITE_P(All, AgreementTest, ::testing::ValuesIn(kSituations),
                         [](const auto& situation) { return situation.param.name; });

}  // namespace
}  // namespace nos::planning
