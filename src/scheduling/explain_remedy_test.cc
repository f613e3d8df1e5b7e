// Remedies that reckon with the pod's own priority, and with what others than nos allocate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduling/configuration.h"
#include "scheduling/explain.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::Node;
using cluster::Pod;
using ::testing::HasSubstr;
using testing::NodeOf;
using ::testing::Not;
using testing::PodOf;

Pod Running(const std::string& name, const std::string& node, testing::Amounts asks,
            int32_t priority = 0) {
  Pod pod = PodOf(name, asks, node);
  pod.phase = "Running";
  pod.priority = priority;
  return pod;
}

Pod Waiting(testing::Amounts asks, int32_t priority) {
  Pod pod = PodOf("p", asks);
  pod.priority = priority;
  return pod;
}

Node Cordoned(Node node) {
  node.unschedulable = true;
  return node;
}

Explanation Why(const std::vector<Node>& nodes, const std::vector<Pod>& pods, const Pod& pod,
                const Framework& framework = Framework::Default(GpusCut::kHere)) {
  const auto snapshot = testing::Snap(nodes, pods);
  return Explain({framework, framework, snapshot, pod});
}

std::string Remedy(const std::vector<Node>& nodes, const std::vector<Pod>& pods, const Pod& pod) {
  return Why(nodes, pods, pod).remedy;
}

TEST(ExplainRemedyTest, ClaimsThatOthersAllocateAreNoGate) {
  Pod pod = Waiting({{"cpu", "1"}}, 0);
  pod.claims_devices = true;
  const auto theirs = DefaultConfiguration({.simulates = true});
  const auto why = Why({NodeOf("n", {{"cpu", "4"}})}, {}, pod, theirs.profiles.front().framework);
  EXPECT_EQ(why.gate, "");
  EXPECT_EQ(why.remedy,
            "look at its resource claims, which are not simulated: without them it fits on node n "
            "now");
  EXPECT_NE(Why({NodeOf("n", {{"cpu", "4"}})}, {}, pod).gate, "");
}

}  // namespace
}  // namespace nos::scheduling
