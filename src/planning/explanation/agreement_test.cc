// The planner and the scheduler's explanation give the same reason and remedy for the same
// situation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "cluster/annotations.h"
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
namespace codes = scheduling::codes;
namespace remedies = scheduling::remedies;

constexpr const char* kA100 = "NVIDIA-A100-SXM4-40GB";
constexpr const char* kA100Big = "NVIDIA-A100-SXM4-80GB";

cluster::Pod& Requesting(cluster::Pod& pod, const std::string& resource, int64_t amount) {
  pod.containers[0].requests[resource] = Quantity::FromValue(amount);
  return pod;
}

// Two GPUs that no agent has reported.
cluster::Node& Unreported(ClusterBuilder& cluster) {
  cluster::Node& node = cluster.Node("a", kA100, {"", ""});
  node.meta.annotations.clear();
  return node;
}

// The same with this partitioning label; "": none.
cluster::Node& Labelled(ClusterBuilder& cluster, const std::string& mode) {
  cluster::Node& node = Unreported(cluster);
  node.meta.labels.erase(std::string(cluster::kPartitioningLabel));
  if (!mode.empty()) node.meta.labels[std::string(cluster::kPartitioningLabel)] = mode;
  return node;
}

// The same, with both GPUs in nvidia.com/gpu.
cluster::Node& WithWholeGpus(cluster::Node& node) {
  node.allocatable["nvidia.com/gpu"] = Quantity::FromValue(2);
  return node;
}

struct Situation {
  std::string name;
  std::function<void(ClusterBuilder&)> build;  // adds nodes and one pending pod
  std::string remedy;                          // code
  std::string reason = {};                     // code of the first; "": only the same
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
    {"ProfileWithLessMemoryThanModelHas",
     [](auto& c) { c.Node("a", kA100Big, {""}), c.Pod("p", {"1g.5gb"}); },
     remedies::kRequestExistingProfile, codes::kNoGpuForProfile},
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
    {"NodeWithoutLabel", [](auto& c) { Labelled(c, ""), c.Pod("p", {"3g.20gb"}); },
     remedies::kOptInNode, codes::kNotPartitioned},
    {"NodeWithoutLabelAndTooFewGpus",
     [](auto& c) {
       Labelled(c, "");
       Requesting(c.Pod("p", {"7g.40gb"}), "nvidia.com/mig-7g.40gb", 3);
     },
     remedies::kAddNode, codes::kNotPartitioned},
    {"NodeWithoutLabelBesideCordonedAndTainted",
     [](auto& c) {
       auto& full = c.Node("b", kA100, {""});
       full.unschedulable = true;
       full.taints = {{"dedicated", "ml", "NoSchedule"}};
       Labelled(c, ""), c.Pod("p", {"3g.20gb"});
     },
     remedies::kOptInNode},
    {"NodeWithoutLabelBesideOtherPartitioner",
     [](auto& c) {
       auto& other = c.PlainNode("b");
       other.allocatable["nvidia.com/mig-3g.20gb"] = Quantity::FromValue(1);
       other.unschedulable = true;
       other.taints = {{"dedicated", "ml", "NoSchedule"}};
       Labelled(c, ""), c.Pod("p", {"3g.20gb"});
     },
     remedies::kOptInNode},
    {"NodeWithoutAgentForLabel", [](auto& c) { Labelled(c, "mps"), c.Pod("p", {"10gb"}); },
     remedies::kInspectAgent, codes::kNotPartitioned},
    {"NodeWithoutGpusAndLabel", [](auto& c) { c.PlainNode("a"), c.Pod("p", {"3g.20gb"}); },
     remedies::kAddNode, codes::kNotPartitioned},
    {"WholeGpuOfPartitionedNode",
     [](auto& c) { WithWholeGpus(Unreported(c)), c.Pod("p", {"gpu"}); }, remedies::kAddNode,
     codes::kInsufficientResource},
    {"MoreWholeGpusThanPartitionedNode",
     [](auto& c) {
       WithWholeGpus(c.Node("a", kA100, {"", ""}));
       Requesting(c.Pod("p", {"gpu"}), "nvidia.com/gpu", 5);
     },
     remedies::kAddNode, codes::kInsufficientResource},
    {"CordonOfEmptyGpus",
     [](auto& c) {
       c.Node("a", kA100, {"", ""}).unschedulable = true;
       c.Pod("p", {"3g.20gb"});
     },
     remedies::kLiftConstraints, codes::kNodeUnschedulable},
    {"CordonOfUnreportedGpus",
     [](auto& c) {
       Unreported(c).unschedulable = true;
       c.Pod("p", {"3g.20gb"});
     },
     remedies::kLiftConstraints, codes::kNodeUnschedulable},
    {"TaintOfUnreportedGpus",
     [](auto& c) {
       Unreported(c).taints = {{"a", "b", "NoSchedule"}};
       c.Pod("p", {"3g.20gb"});
     },
     remedies::kLiftConstraints, codes::kTainted},
    {"SelectorAndUnreportedGpus",
     [](auto& c) {
       Unreported(c);
       c.Pod("p", {"3g.20gb"}).node_selector = {{"zone", "a"}};
     },
     remedies::kLiftConstraints, codes::kNodeAffinityMismatch},
    {"MoreSlicesThanEmptyGpus",
     [](auto& c) {
       c.Node("a", kA100, {"", ""});
       Requesting(c.Pod("p", {"7g.40gb"}), "nvidia.com/mig-7g.40gb", 3);
     },
     remedies::kAddNode, codes::kNoRoomForSlices},
    {"MoreSlicesThanUnreportedGpus",
     [](auto& c) {
       Unreported(c);
       Requesting(c.Pod("p", {"7g.40gb"}), "nvidia.com/mig-7g.40gb", 3);
     },
     remedies::kAddNode, codes::kNoRoomForSlices},
    {"SlicesThatFitOnlyOneByOne",
     [](auto& c) { c.Node("a", kA100, {""}), c.Pod("p", {"7g.40gb", "1g.5gb"}); },
     remedies::kAddNode, codes::kNoRoomForSlices},
    {"SlicesInUse",
     [](auto& c) {
       c.Node("a", kA100, {"7g.40gb@0:used"});
       c.Running("r", "a", {"7g.40gb"}).priority = 1;
       c.Pod("p", {"1g.5gb"}).preemption_policy = "Never";
     },
     remedies::kWaitForPods, codes::kNoRoomForSlices},
    {"ProfileOfOtherModelOnUnreportedGpus", [](auto& c) { Unreported(c), c.Pod("p", {"1g.12gb"}); },
     remedies::kAddNode, codes::kNoGpuForProfile},
    {"UnknownModel", [](auto& c) { c.Node("a", "Unheard-Of-1", {""}), c.Pod("p", {"1g.5gb"}); },
     remedies::kAddNode, codes::kGpuProblem},
    {"FullNodesAndNodesThatNeverServe",
     [](auto& c) {
       for (const char* name : {"b", "c", "d"}) c.PlainNode(name);
       c.Node("a", kA100, {"7g.40gb@0:used"});
       c.Running("r", "a", {"7g.40gb"}).priority = 1;
       c.Pod("p", {"1g.5gb"}).preemption_policy = "Never";
     },
     remedies::kWaitForPods, codes::kNoRoomForSlices},
};

class AgreementTest : public ::testing::TestWithParam<Situation> {};

// The reasons for which the planner counts nodes, too.
std::vector<scheduling::Reason> ReasonsOf(const scheduling::Explanation& why) {
  std::vector<scheduling::Reason> reasons;
  if (why.impossible) reasons.push_back(*why.impossible);
  for (const auto& entry : why.diagnosis.entries) {
    reasons.push_back({entry.code, entry.message, entry.nodes});
  }
  return reasons;
}

TEST_P(AgreementTest, PlannerAndSchedulerGiveSameReasonAndRemedy) {
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
    const auto reasons = ReasonsOf(why);
    ASSERT_FALSE(reasons.empty());
    EXPECT_EQ(reasons[0].code, planned.reasons.at(0).code) << reasons[0].message;
    EXPECT_EQ(reasons[0].nodes, planned.reasons.at(0).nodes);
    if (!GetParam().reason.empty()) {
      EXPECT_EQ(reasons[0].code, GetParam().reason);
    }
    const bool impossible = planned.reasons.at(0).code == scheduling::codes::kNoModelHasProfile;
    ASSERT_EQ(why.impossible.has_value(), impossible);
    if (!impossible) continue;
    EXPECT_EQ(why.impossible->message, planned.reasons.at(0).message);
  }
}

// The planner serves the pod, so the scheduler's explanation must not ask for anything else.
TEST(AgreementOnSlicesTest, SlicesThatCanBeCreatedNeedOnlyPartitioner) {
  for (const bool reported : {true, false}) {
    ClusterBuilder cluster;
    reported ? cluster.Node("a", kA100, {"", ""}) : Unreported(cluster);
    cluster.Pod("p", {"3g.20gb"});
    EXPECT_TRUE(cluster.MakePlan().pods.at(0).placed);
    const Framework waiting = Framework::Default();
    const Framework partitioning = Framework::Default(PartitionedBy::kScheduler);
    const auto snapshot = cluster.Snapshot();
    const auto pending = cluster.Pending();
    const auto why = scheduling::Explain({waiting, partitioning, snapshot, *pending.at(0)});
    EXPECT_EQ(why.remedy_code, remedies::kPartitionGpus);
    ASSERT_TRUE(why.nearest && why.nearest->repartition);
    EXPECT_EQ(why.nearest->node, "a");
    EXPECT_THAT(why.nearest->repartition->made,
                ::testing::ElementsAre(scheduling::Explanation::Instance{0, "3g.20gb@4"}));
    EXPECT_EQ(why.nearest->unreported, !reported);
    const auto ours = scheduling::Explain({partitioning, partitioning, snapshot, *pending.at(0)});
    EXPECT_EQ(ours.remedy_code, reported ? remedies::kNoneNeeded : remedies::kPartitionGpus);
  }
}

TEST(AgreementOnSlicesTest, InstancesInUseAreNamedOnlyWhereThereAreSome) {
  for (const bool used : {true, false}) {
    ClusterBuilder cluster;
    cluster.Node("a", kA100, {used ? "1g.5gb@0:used" : "", ""});
    Requesting(cluster.Pod("p", {"7g.40gb"}), "nvidia.com/mig-7g.40gb", 3);
    const std::string reason = cluster.MakePlan().pods.at(0).reasons.at(0).message;
    EXPECT_EQ(reason, std::string("node(s) had no room for 3 x 7g.40gb") +
                          (used ? " beside the instances in use" : ""));
    const Framework framework = Framework::Default();
    const auto snapshot = cluster.Snapshot();
    const auto pending = cluster.Pending();
    const auto why = scheduling::Explain({framework, framework, snapshot, *pending.at(0)});
    EXPECT_EQ(why.diagnosis.entries.at(0).message, reason);
  }
}

class AgreementOnRemedyTest : public ::testing::Test {
 protected:
  PodOutcome Planned() const { return cluster_.MakePlan().pods.at(0); }
  scheduling::Explanation Explained() const {
    const Framework partitioning = Framework::Default(PartitionedBy::kScheduler);
    const auto snapshot = cluster_.Snapshot();
    const auto pending = cluster_.Pending();
    return scheduling::Explain({partitioning, partitioning, snapshot, *pending.at(0)});
  }

  ClusterBuilder cluster_;
};

TEST_F(AgreementOnRemedyTest, CordonedNodeWhoseGpuIsFull) {
  cluster_.Node("a", kA100, {"7g.40gb@0:used"}).unschedulable = true;
  cluster_.Running("r", "a", {"7g.40gb"}).priority = 1;
  cluster_.Pod("p", {"7g.40gb"}).preemption_policy = "Never";
  EXPECT_EQ(Planned().remedy_code, remedies::kLiftConstraints);
  EXPECT_EQ(Explained().remedy_code, remedies::kLiftConstraints);
  EXPECT_EQ(Planned().remedy, Explained().remedy);
}

TEST_F(AgreementOnRemedyTest, MislabelledNodeWithoutCpu) {
  cluster_.Node("a", kA100, {""});
  cluster_.Running("r", "a", {}, "63").priority = 1;
  auto& pod = cluster_.Pod("p", {"7g.40gb"}, 0, "2");
  pod.node_selector = {{"zone", "b"}};
  pod.preemption_policy = "Never";
  EXPECT_EQ(Planned().remedy_code, remedies::kLiftConstraints);
  EXPECT_EQ(Explained().remedy_code, remedies::kLiftConstraints);
  EXPECT_EQ(Planned().remedy, Explained().remedy);
}

// Waiting for pods, even for several, opens an existing node without its owner's help.
TEST_F(AgreementOnRemedyTest, FullNodeBesideCordonedOneWithFewerPods) {
  cluster_.Node("a", kA100, {"1g.5gb@0:used,1g.5gb@1:used,1g.5gb@2:used"});
  for (const char* name : {"r0", "r1", "r2"}) cluster_.Running(name, "a", {"1g.5gb"}).priority = 1;
  cluster_.Node("b", kA100, {"7g.40gb@0:used"}).unschedulable = true;
  cluster_.Running("r", "b", {"7g.40gb"}).priority = 1;
  cluster_.Pod("p", {"7g.40gb"}).preemption_policy = "Never";
  EXPECT_EQ(Planned().remedy_code, remedies::kWaitForPods);
  EXPECT_EQ(Explained().remedy_code, remedies::kWaitForPods);
}

TEST_F(AgreementOnRemedyTest, NewNodeForSlicesAlsoNeedsOtherResources) {
  cluster_.PlainNode("a");
  cluster_.Pod("p", {"7g.40gb"}, 0, "100");
  EXPECT_EQ(Planned().remedy_code, remedies::kAddNode);
  EXPECT_EQ(Planned().remedy, Explained().remedy);
  EXPECT_EQ(Planned().remedy,
            "add a node that the pod may use, with GPUs for 7g.40gb such as A100-40GB and at least "
            "100 cpu: node a, the nearest, has 64 cpu in all");
}

INSTANTIATE_TEST_SUITE_P(All, AgreementTest, ::testing::ValuesIn(kSituations),
                         [](const auto& situation) { return situation.param.name; });

}  // namespace
}  // namespace nos::planning
