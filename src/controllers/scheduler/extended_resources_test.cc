// Pods that ask for an extended resource of a DeviceClass: the claim that the scheduler creates.
#include <string>

#include "controllers/scheduler/fixture_test.h"

namespace nos::controllers {
namespace {

constexpr char kResource[] = "example.com/gpu";

// Node "plugin" offers one GPU by a device plugin, node "claims" two by a driver.
class SchedulerExtendedResourcesTest : public SchedulerFixture {
 protected:
  void SetUp() override {
    CpuNode("claims", "9");
    api_.Put({{"apiVersion", "resource.k8s.io/v1"},
              {"kind", "ResourceSlice"},
              {"metadata", {{"name", "claims"}}},
              {"spec",
               {{"driver", "d.io"},
                {"nodeName", "claims"},
                {"pool", {{"name", "claims"}, {"generation", 1}, {"resourceSliceCount", 1}}},
                {"devices", JsonArray{{{"name", "d0"}}, {{"name", "d1"}}}}}}});
    api_.Put({{"apiVersion", "resource.k8s.io/v1"},
              {"kind", "DeviceClass"},
              {"metadata", {{"name", "any"}}},
              {"spec", {{"extendedResourceName", kResource}}}});
  }
  void PluginNode() {
    CpuNode("plugin", "9");
    Json node = *api_.Find("nodes", "plugin");
    MakeObject(node, "status", "allocatable")[kResource] = "1";
    api_.Put(node);
  }
  void Pod(const std::string& name, int priority = 0) { PutPod(name, kResource, "1", priority); }
  static std::string ClaimName(const std::string& pod) {
    return pod + "-extended-resources-" + pod + "-uid";
  }
  const Json* Claim(const std::string& pod) {
    return api_.Find("resourceclaims", "ml/" + ClaimName(pod));
  }
  std::string StatusClaim(const std::string& pod) {
    return std::string(FindString(*api_.Find("pods", "ml/" + pod), "status",
                                  "extendedResourceClaimStatus", "resourceClaimName"));
  }
};

TEST_F(SchedulerExtendedResourcesTest, PodOfADriversNodeGetsAClaim) {
  Pod("p");
  Run();
  EXPECT_EQ(NodeOf("p"), "claims");
  const Json* claim = Claim("p");
  ASSERT_NE(claim, nullptr);
  const Json& result =
      nos::Find(*claim, "status", "allocation", "devices", "results")->get_array().at(0);
  EXPECT_EQ(FindString(result, "device"), "d0");
  EXPECT_EQ(FindString(nos::Find(*claim, "status", "reservedFor")->get_array().at(0), "uid"),
            "p-uid");
  EXPECT_EQ(StatusClaim("p"), ClaimName("p"));
}

TEST_F(SchedulerExtendedResourcesTest, NodesOfBothKindsServeThePods) {
  PluginNode();
  for (const char* name : {"p", "q", "r", "s"}) Pod(name);
  RunInSteps(seconds(20));
  int by_claim = 0, by_plugin = 0;
  for (const char* name : {"p", "q", "r", "s"}) {
    EXPECT_EQ(Claim(name) != nullptr, NodeOf(name) == "claims");
    by_claim += NodeOf(name) == "claims" ? 1 : 0;
    by_plugin += NodeOf(name) == "plugin" ? 1 : 0;
  }
  EXPECT_EQ(by_claim, 2);
  EXPECT_EQ(by_plugin, 1);
}

TEST_F(SchedulerExtendedResourcesTest, ClaimOfAFailedBindingIsDeletedAndMadeAgain) {
  kube::Refuse(api_, "POST", "/binding", kube::HttpStatus(500, "no"), 1);
  Pod("p");
  RunInSteps(seconds(60));
  EXPECT_EQ(NodeOf("p"), "claims");
  ASSERT_NE(Claim("p"), nullptr);
  EXPECT_FALSE(nos::Find(*Claim("p"), "status", "allocation") == nullptr);
}

TEST_F(SchedulerExtendedResourcesTest, UnansweredCreationIsRepeated) {
  kube::Refuse(api_, "POST", "/resourceclaims", Status(Code::kDeadline, "no answer"), 1);
  Pod("p");
  RunInSteps(seconds(60));
  EXPECT_EQ(NodeOf("p"), "claims");
  EXPECT_EQ(StatusClaim("p"), ClaimName("p"));
}

// Its container would start without a device.
TEST_F(SchedulerExtendedResourcesTest, PodIsNotBoundIfTheServerDropsTheNameOfItsClaim) {
  kube::ApiResponse dropped;
  dropped.body = {{"metadata", {{"name", "p"}}}, {"status", {{"phase", "Pending"}}}};
  kube::Refuse(api_, "PATCH", "/pods/p/status", dropped);
  Pod("p");
  RunInSteps(seconds(60));
  EXPECT_EQ(NodeOf("p"), "");
}

// A claim of an earlier scheduler, which ended between two writes.
TEST_F(SchedulerExtendedResourcesTest, ClaimOfAPredecessorIsReplaced) {
  Json old{{"apiVersion", "resource.k8s.io/v1"},
           {"kind", "ResourceClaim"},
           {"metadata",
            {{"namespace", "ml"},
             {"name", ClaimName("p")},
             {"uid", "old"},
             {"annotations", {{"resource.kubernetes.io/extended-resource-claim", "true"}}}}},
           {"spec", {{"devices", JsonObject{}}}}};
  api_.Put(old);
  Pod("p");
  RunInSteps(seconds(60));
  EXPECT_EQ(NodeOf("p"), "claims");
  ASSERT_NE(Claim("p"), nullptr);
  EXPECT_NE(FindString(*Claim("p"), "metadata", "uid"), "old");
}

TEST_F(SchedulerExtendedResourcesTest, ClaimOfAUserWithThisNameIsKept) {
  api_.Put({{"apiVersion", "resource.k8s.io/v1"},
            {"kind", "ResourceClaim"},
            {"metadata", {{"namespace", "ml"}, {"name", ClaimName("p")}, {"uid", "theirs"}}},
            {"spec", {{"devices", JsonObject{}}}}});
  Pod("p");
  RunInSteps(seconds(60));
  EXPECT_EQ(NodeOf("p"), "");
  ASSERT_NE(Claim("p"), nullptr);
  EXPECT_EQ(FindString(*Claim("p"), "metadata", "uid"), "theirs");
}

// A tenant may name and annotate a claim like one of the scheduler; a pod of it uses the devices.
TEST_F(SchedulerExtendedResourcesTest, ClaimThatAnotherPodUsesIsNeverDeleted) {
  api_.Put({{"apiVersion", "resource.k8s.io/v1"},
            {"kind", "ResourceClaim"},
            {"metadata",
             {{"namespace", "ml"},
              {"name", ClaimName("p")},
              {"uid", "theirs"},
              {"annotations", {{"resource.kubernetes.io/extended-resource-claim", "true"}}}}},
            {"spec", {{"devices", JsonObject{}}}},
            {"status",
             {{"reservedFor",
               JsonArray{{{"resource", "pods"}, {"name", "holder"}, {"uid", "holder-uid"}}}}}}});
  Pod("p");
  RunInSteps(seconds(60));
  EXPECT_EQ(NodeOf("p"), "");
  ASSERT_NE(Claim("p"), nullptr);
  EXPECT_EQ(FindString(*Claim("p"), "metadata", "uid"), "theirs");
}

// The kubelet would wait for the claim for ever.
TEST_F(SchedulerExtendedResourcesTest, PodWithANamedClaimIsNotBoundToANodeWithAPlugin) {
  PluginNode();
  Cordon("claims");
  Pod("p");
  ChangePod("p", [](Json& pod) {
    MakeObject(pod, "status")["extendedResourceClaimStatus"] =
        JsonObject{{"resourceClaimName", "gone"}};
  });
  RunInSteps(seconds(60));
  EXPECT_EQ(NodeOf("p"), "");
  Json back = *api_.Find("nodes", "claims");
  MakeObject(back, "spec")["unschedulable"] = false;
  api_.Put(back);
  RunInSteps(seconds(60));
  EXPECT_EQ(NodeOf("p"), "claims");
  EXPECT_EQ(StatusClaim("p"), ClaimName("p"));
}

TEST_F(SchedulerExtendedResourcesTest, ClassThatComesLaterWakesThePod) {
  const Json device_class = *api_.Find("deviceclasses", "any");
  api_.Remove("deviceclasses", "any");
  Pod("p");
  Run();
  EXPECT_EQ(NodeOf("p"), "");
  api_.Put(device_class);
  RunInSteps(seconds(15));
  EXPECT_EQ(NodeOf("p"), "claims");
}

TEST_F(SchedulerExtendedResourcesTest, PodWithHigherPriorityEvictsAHolderOfADevice) {
  Pod("p");
  Pod("q");
  Run();
  ASSERT_EQ(NodeOf("p"), "claims");
  ASSERT_EQ(NodeOf("q"), "claims");
  Pod("urgent", 100);
  RunInSteps(seconds(20));
  const bool p_gone = NodeOf("p") == "gone", q_gone = NodeOf("q") == "gone";
  ASSERT_NE(p_gone, q_gone) << "exactly one pod is evicted";
  EXPECT_EQ(NodeOf("urgent"), "") << "the claim of the pod that ended is allocated";
  api_.Remove("resourceclaims", "ml/" + ClaimName(p_gone ? "p" : "q"));
  RunInSteps(seconds(20));
  EXPECT_EQ(NodeOf("urgent"), "claims");
}

}  // namespace
}  // namespace nos::controllers
