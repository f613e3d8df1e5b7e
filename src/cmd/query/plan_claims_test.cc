#include "cmd/query/plan_claims.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

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

  std::vector<ClaimedPod> Place(const std::string& objects) {
    std::ofstream(path_) << kCluster << objects;
    const auto read = ReadDump({path_});
    EXPECT_TRUE(read.ok()) << read.status().message();
    if (!read.ok()) return {};
    return PlaceClaims(*read, gpu::Catalogue::Builtin(), [] { return false; });
  }
  static std::string TextOf(const ClaimedPod& pod) {
    std::string text = pod.pod->meta.name + " on " + pod.node + ":";
    for (const ClaimedPod::Device& device : pod.devices) text += " " + device.device;
    for (const scheduling::Reason& reason : pod.reasons) text += " " + reason.code;
    return text;
  }

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

TEST_F(PlaceClaimsTest, PodWithoutItsClaimIsRefused) {
  const auto pods = Place(Pod("early", "absent"));
  ASSERT_EQ(pods.size(), 1U);
  EXPECT_EQ(TextOf(pods[0]), "early on : ResourceClaimNotFound");
  EXPECT_EQ(ClaimsToJson(pods)[0].at("outcome"), "pending");
}

}  // namespace
}  // namespace nos::cmd
