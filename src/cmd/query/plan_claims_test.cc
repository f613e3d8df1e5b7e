#include "cmd/query/plan_claims.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>

#include "scheduling/remedies.h"

namespace nos::cmd {
namespace {

using ::testing::ElementsAre;

// A node with two devices, and pods with a claim for one of them each.
constexpr const char* kCluster = R"(
apiVersion: v1
kind: Node
metadata: {name: n, uid: n}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "10"}, capacity: {cpu: "8", memory: 8Gi, pods: "10"}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.nvidia.com
  nodeName: n
  pool: {name: n, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}]
)";

std::string Claim(const std::string& name) {
  return fmt::format(R"(---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {0}, namespace: default, uid: {0}}}
spec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: gpu, allocationMode: ExactCount, count: 1}}}}]}}}}
)",
                     name);
}

std::string Pod(const std::string& name, const std::string& claim, int priority = 0,
                const char* scheduler = "nos-scheduler") {
  return fmt::format(R"(---
apiVersion: v1
kind: Pod
metadata: {{name: {0}, namespace: default, uid: {0}}}
spec:
  schedulerName: {3}
  priority: {2}
  resourceClaims: [{{name: c, resourceClaimName: {1}}}]
  containers: [{{name: main, resources: {{claims: [{{name: c}}]}}}}]
status: {{phase: Pending}}
)",
                     name, claim, priority, scheduler);
}

class PlaceClaimsTest : public testing::Test {
 protected:
  PlaceClaimsTest() {
    const int file = mkstemp(path_.data());
    if (file >= 0) close(file);
  }
  ~PlaceClaimsTest() override { std::remove(path_.c_str()); }

  // `plan_` has the pods of the names in `placed` on node "n", and those in `left` on none.
  std::vector<ClaimedPod> Place(const std::string& objects,
                                const std::set<std::string>& placed = {},
                                const std::set<std::string>& left = {}) {
    std::ofstream(path_) << kCluster << objects;
    const auto read = ReadDump({path_});
    EXPECT_TRUE(read.ok()) << read.status().message();
    if (!read.ok()) return {};
    for (const auto& pod : read->pods) {
      const bool has_node = placed.contains(pod->meta.name);
      if (!has_node && !left.contains(pod->meta.name)) continue;
      planning::PodOutcome& outcome = plan_.pods.emplace_back();
      outcome.pod = pod;
      outcome.placed = has_node;
      outcome.node = has_node ? "n" : "";
    }
    return PlaceClaims(*read, gpu::Catalogue::Builtin(), [] { return false; }, plan_);
  }
  static std::string TextOf(const ClaimedPod& pod) {
    std::string text = pod.pod->meta.name + " on " + pod.node + ":";
    for (const ClaimedPod::Device& device : pod.devices) text += " " + device.device;
    for (const scheduling::Reason& reason : pod.reasons) text += " " + reason.code;
    return text;
  }

  planning::Plan plan_;

 private:
  std::string path_ = "/tmp/nos-plan-claims-XXXXXX";
};

TEST_F(PlaceClaimsTest, GivesDevicesByPriorityAndToEachPodItsOwn) {
  const auto pods = Place(Claim("a") + Claim("b") + Claim("c") + Pod("low", "a") +
                          Pod("high", "b", 10) + Pod("higher", "c", 20));
  ASSERT_EQ(pods.size(), 3U);
  EXPECT_THAT(
      (std::vector<std::string>{TextOf(pods[0]), TextOf(pods[1]), TextOf(pods[2])}),
      ElementsAre("higher on n: gpu-0", "high on n: gpu-1", "low on : InsufficientDevices"));
}

TEST_F(PlaceClaimsTest, WaitsForThePodsThatHaveTheDevices) {
  const auto pods = Place(Claim("a") + Claim("b") + Claim("c") + Pod("one", "a", 5) +
                          Pod("two", "b", 5) + Pod("late", "c"));
  ASSERT_EQ(pods.size(), 3U);
  EXPECT_EQ(pods[2].remedy_code, scheduling::remedies::kWaitForPods);
  EXPECT_EQ(pods[2].node, "");
}

TEST_F(PlaceClaimsTest, PodsShareTheDeviceOfTheirClaim) {
  const auto pods = Place(Claim("a") + Pod("one", "a") + Pod("two", "a"));
  ASSERT_EQ(pods.size(), 2U);
  EXPECT_EQ(TextOf(pods[0]), "one on n: gpu-0");
  EXPECT_EQ(TextOf(pods[1]), "two on n: gpu-0");
}

TEST_F(PlaceClaimsTest, PodsOfOtherSchedulersGetDevicesToo) {
  const auto pods = Place(Claim("a") + Pod("theirs", "a", 0, "default-scheduler"));
  ASSERT_EQ(pods.size(), 1U);
  EXPECT_EQ(TextOf(pods[0]), "theirs on n: gpu-0");
}

// A claim in a file that was not applied yet has no namespace and no defaults.
TEST_F(PlaceClaimsTest, ClaimsHaveTheDefaultsOfTheApiServer) {
  const auto pods = Place(R"(---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: a}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
)" + Pod("one", "a"));
  ASSERT_EQ(pods.size(), 1U);
  EXPECT_EQ(TextOf(pods[0]), "one on n: gpu-0");
}

TEST_F(PlaceClaimsTest, PodWaitsForTheClaimOfItsTemplate) {
  const auto pods = Place(R"(---
apiVersion: v1
kind: Pod
metadata: {name: early, namespace: default, uid: early}
spec:
  schedulerName: nos-scheduler
  resourceClaims: [{name: c, resourceClaimTemplateName: small}]
  containers: [{name: main, resources: {claims: [{name: c}]}}]
status: {phase: Pending}
)");
  ASSERT_EQ(pods.size(), 1U);
  EXPECT_EQ(TextOf(pods[0]), "early on : ResourceClaimNotCreated");
}

// Pods that ask for a resource are planned for device plugins first; a driver serves the others.
TEST_F(PlaceClaimsTest, PodsLeftByThePlanGetDevicesOfADriver) {
  const auto asking = [](const std::string& name, const std::string& labels = "") {
    return fmt::format(R"(---
apiVersion: v1
kind: Pod
metadata: {{name: {0}, namespace: default, uid: {0}, labels: {{{1}}}}}
spec:
  schedulerName: nos-scheduler
  containers: [{{name: main, resources: {{requests: {{example.com/gpu: 1, cpu: 3}}, limits: {{example.com/gpu: 1}}}}}}]
status: {{phase: Pending}}
)",
                       name, labels);
  };
  const std::string serving = R"(---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: serving}
spec:
  extendedResourceName: example.com/gpu
  selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com'"}}]
)";
  const auto pods = Place(serving + asking("a") + asking("b") + asking("c") + asking("d") +
                              asking("m", "scheduling.x-k8s.io/pod-group: g"),
                          {"a"}, {"b", "c", "m"});
  ASSERT_EQ(pods.size(), 1U) << "a takes three of eight cores, so that c has no room beside b";
  EXPECT_EQ(TextOf(pods[0]), "b on n: gpu-0");
  std::vector<std::string> rest;
  for (const planning::PodOutcome& outcome : plan_.pods) rest.push_back(outcome.pod->meta.name);
  EXPECT_THAT(rest, ElementsAre("a", "c", "m")) << "m is useful with its gang only";
}

TEST_F(PlaceClaimsTest, PodWithoutItsClaimIsRefused) {
  const auto pods = Place(Pod("early", "absent"));
  ASSERT_EQ(pods.size(), 1U);
  EXPECT_EQ(TextOf(pods[0]), "early on : ResourceClaimNotFound");
  EXPECT_EQ(ClaimsToJson(pods)[0].at("outcome"), "pending");
}

}  // namespace
}  // namespace nos::cmd
