// Pods with ResourceClaims: the writes for a claim, and what happens when they fail.
#include <string>

#include "controllers/scheduler/fixture_test.h"

namespace nos::controllers {
namespace {

// Nodes "a" and "b" with one device each, and a scheduler that runs as in a cluster.
class SchedulerDevicesTest : public SchedulerFixture {
 protected:
  void SetUp() override {
    for (const char* node : {"a", "b"}) {
      CpuNode(node, "9");
      Slice(node);
    }
    api_.Put({{"apiVersion", "resource.k8s.io/v1"},
              {"kind", "DeviceClass"},
              {"metadata", {{"name", "any"}}},
              {"spec", JsonObject{}}});
  }
  void Slice(const std::string& node, const JsonObject& device = {{"name", "d0"}}) {
    api_.Put({{"apiVersion", "resource.k8s.io/v1"},
              {"kind", "ResourceSlice"},
              {"metadata", {{"name", node}}},
              {"spec",
               {{"driver", "d.io"},
                {"nodeName", node},
                {"pool", {{"name", node}, {"generation", 1}, {"resourceSliceCount", 1}}},
                {"devices", JsonArray{device}}}}});
  }
  // A pod, and a claim of its name for one device.
  void Pod(const std::string& name, int priority = 0) {
    api_.Put({{"apiVersion", "resource.k8s.io/v1"},
              {"kind", "ResourceClaim"},
              {"metadata", {{"namespace", "ml"}, {"name", name}, {"uid", name + "-claim"}}},
              {"spec",
               {{"devices",
                 {{"requests", JsonArray{{{"name", "r"},
                                          {"exactly",
                                           {{"deviceClassName", "any"},
                                            {"allocationMode", "ExactCount"},
                                            {"count", 1}}}}}}}}}}});
    PutPod(name, "cpu", "1", priority);
    ChangePod(name, [&](Json& pod) {
      MakeObject(pod, "spec")["resourceClaims"] =
          JsonArray{{{"name", "gpu"}, {"resourceClaimName", name}}};
    });
  }
  const Json& Claim(const std::string& name) { return *api_.Find("resourceclaims", "ml/" + name); }
  bool IsAllocated(const std::string& name) {
    return nos::Find(Claim(name), "status", "allocation") != nullptr;
  }
  // Devices of both nodes are to be prepared, and the pods "p" and "q" of a gang wait for that.
  void WaitingGang() {
    for (const char* node : {"a", "b"}) {
      Slice(node, {{"name", "d0"},
                   {"bindsToNode", true},
                   {"bindingConditions", JsonArray{"d.io/ready"}},
                   {"bindingFailureConditions", JsonArray{"d.io/failed"}}});
    }
    Group("g", 2);
    for (const char* name : {"p", "q"}) {
      Pod(name);
      ChangePod(name, [](Json& pod) {
        MakeObject(pod, "metadata", "labels")["scheduling.x-k8s.io/pod-group"] = "g";
      });
    }
    Run();
  }
  // The claim controller of Kubernetes, once the claim's pod has ended.
  void Release(const std::string& name) {
    Json claim = Claim(name);
    claim.get_object()["status"] = JsonObject{};
    api_.Put(claim);
  }
};

TEST_F(SchedulerDevicesTest, PodIsBoundAfterItsClaimIsAllocated) {
  Pod("p");
  Run();
  EXPECT_NE(NodeOf("p"), "");
  EXPECT_EQ(*nos::Find(Claim("p"), "metadata", "finalizers"),
            Json(JsonArray{"resource.kubernetes.io/delete-protection"}));
  const Json& result =
      nos::Find(Claim("p"), "status", "allocation", "devices", "results")->get_array().at(0);
  EXPECT_EQ(FindString(result, "pool"), NodeOf("p"));
  const Json& user = nos::Find(Claim("p"), "status", "reservedFor")->get_array().at(0);
  EXPECT_EQ(FindString(user, "uid"), "p-uid");
}

TEST_F(SchedulerDevicesTest, EveryDeviceIsGivenOnce) {
  for (const char* name : {"p", "q", "r"}) Pod(name);
  Run();
  int bound = 0;
  std::string waiting;
  for (const char* name : {"p", "q", "r"}) {
    NodeOf(name).empty() ? void(waiting = name) : void(++bound);
  }
  EXPECT_EQ(bound, 2);
  EXPECT_FALSE(IsAllocated(waiting));
  const std::string ended = NodeOf("p").empty() ? "q" : "p", node = NodeOf(ended);
  api_.Remove("pods", "ml/" + ended);
  Run();
  EXPECT_EQ(NodeOf(waiting), "") << "the claim of the pod that ended is allocated";
  Release(ended);
  RunInSteps(seconds(20));
  EXPECT_EQ(NodeOf(waiting), node);
}

TEST_F(SchedulerDevicesTest, RefusedAllocationIsTriedAgain) {
  const auto refused = kube::Refuse(api_, "PATCH", "/status", kube::HttpStatus(409, "conflict"), 1);
  Pod("p");
  RunInSteps(seconds(60));
  EXPECT_EQ(*refused, 1);
  EXPECT_NE(NodeOf("p"), "");
  EXPECT_TRUE(IsAllocated("p"));
}

// The API server may have stored the allocation, or store it later.
TEST_F(SchedulerDevicesTest, UnansweredAllocationKeepsItsDevice) {
  Slice("a");
  Cordon("b");
  kube::Refuse(api_, "PATCH", "/resourceclaims/p/status", Status(Code::kDeadline, "no answer"), 1);
  Pod("p", 5);
  Run();
  Pod("q");
  RunInSteps(seconds(60));
  EXPECT_EQ(NodeOf("p"), "a");
  EXPECT_EQ(NodeOf("q"), "");
  EXPECT_FALSE(IsAllocated("q"));
}

// Its devices count as in use until the API server shows what became of the write.
TEST_F(SchedulerDevicesTest, DevicesInDoubtAreFreeAfterTheirPodIsDeleted) {
  for (const Result<kube::ApiResponse>& answer :
       {Result<kube::ApiResponse>(kube::HttpStatus(409, "conflict")),
        Result<kube::ApiResponse>(Status(Code::kDeadline, "no answer"))}) {
    Cordon("b");
    const auto refused = kube::Refuse(api_, "PATCH", "/resourceclaims/p/status", answer, 1);
    Pod("p");
    for (int i = 0; i < 1000 && *refused == 0; ++i) runner_->Step(clock_);
    ASSERT_EQ(*refused, 1);
    api_.Remove("pods", "ml/p");
    Pod("q");
    RunInSteps(seconds(600));
    EXPECT_EQ(NodeOf("q"), "a");
    EXPECT_FALSE(IsAllocated("p"));
    for (const char* name : {"p", "q"}) api_.Remove("resourceclaims", std::string("ml/") + name);
    api_.Remove("pods", "ml/q");
    Run();
  }
}

// The API server will never store the allocation.
TEST_F(SchedulerDevicesTest, RefusedAllocationFreesItsDevice) {
  Cordon("b");
  kube::Refuse(api_, "PATCH", "/resourceclaims/p/status", kube::HttpStatus(403, "forbidden"));
  Pod("p");
  Run();
  Pod("q");
  RunInSteps(seconds(120));
  EXPECT_EQ(NodeOf("p"), "");
  EXPECT_EQ(NodeOf("q"), "a");
}

TEST_F(SchedulerDevicesTest, FailedBindingReleasesTheDevicesForAnotherNode) {
  Cordon("b");
  kube::Refuse(api_, "POST", "/binding", kube::HttpStatus(500, "no"));
  Pod("p");
  RunInSteps(seconds(20));
  ASSERT_TRUE(IsAllocated("p"));
  api_.intercept = nullptr;
  Cordon("a");
  Json back = *api_.Find("nodes", "b");
  MakeObject(back, "spec")["unschedulable"] = false;
  api_.Put(back);
  RunInSteps(seconds(120));
  EXPECT_EQ(NodeOf("p"), "b");
}

// A device that cannot be prepared is given back, and the pod gets one again.
TEST_F(SchedulerDevicesTest, PodIsBoundAfterItsDeviceFailed) {
  Cordon("b");
  Slice("a", {{"name", "d0"},
              {"bindsToNode", true},
              {"bindingConditions", JsonArray{"d.io/ready"}},
              {"bindingFailureConditions", JsonArray{"d.io/failed"}}});
  Pod("p");
  Run();
  const auto report = [&](const std::string& condition) {
    Json claim = Claim("p");
    const JsonObject status = {{"type", condition}, {"status", "True"}};
    MakeObject(claim, "status")["devices"] = JsonArray{
        {{"driver", "d.io"}, {"pool", "a"}, {"device", "d0"}, {"conditions", JsonArray{status}}}};
    api_.Put(claim);
  };
  ASSERT_TRUE(IsAllocated("p"));
  ASSERT_EQ(NodeOf("p"), "");
  report("d.io/failed");
  RunInSteps(seconds(60));
  ASSERT_TRUE(IsAllocated("p")) << "again";
  EXPECT_EQ(nos::Find(Claim("p"), "status", "devices"), nullptr) << "the failure is forgotten";
  report("d.io/ready");
  RunInSteps(seconds(60));
  EXPECT_EQ(NodeOf("p"), "a");
}

// The pod gets the device of the other node.
TEST_F(SchedulerDevicesTest, DevicesThatAreNotPreparedAreLeft) {
  for (const char* node : {"a", "b"}) {
    Slice(node, {{"name", "d0"},
                 {"bindsToNode", true},
                 {"bindingConditions", JsonArray{"d.io/ready"}},
                 {"bindingFailureConditions", JsonArray{"d.io/failed"}}});
  }
  const auto pool = [&] {
    const Json* results = nos::Find(Claim("p"), "status", "allocation", "devices", "results");
    return results == nullptr ? "" : std::string(FindString(results->get_array().at(0), "pool"));
  };
  Pod("p");
  Run();
  const std::string first = pool(), second = first == "a" ? "b" : "a";
  ASSERT_NE(first, "");
  // 1. The driver of the first node is gone.
  RunInSteps(seconds(660));
  EXPECT_EQ(pool(), second);
  // 2. The driver of the second one reports a failure. The first one is tried again: both are
  //    suspected.
  Json claim = Claim("p");
  MakeObject(claim, "status")["devices"] =
      JsonArray{{{"driver", "d.io"},
                 {"pool", second},
                 {"device", "d0"},
                 {"conditions", JsonArray{{{"type", "d.io/failed"}, {"status", "True"}}}}}};
  api_.Put(claim);
  RunInSteps(seconds(60));
  EXPECT_NE(pool(), "");
  EXPECT_EQ(nos::Find(Claim("p"), "status", "devices"), nullptr);
}

TEST_F(SchedulerDevicesTest, GangIsBoundAfterADeviceOfItFailed) {
  WaitingGang();
  const auto report = [&](const std::string& name, const std::string& condition) {
    Json claim = Claim(name);
    const std::string_view pool = FindString(
        nos::Find(claim, "status", "allocation", "devices", "results")->get_array().at(0), "pool");
    const JsonObject status = {{"type", condition}, {"status", "True"}};
    MakeObject(claim, "status")["devices"] = JsonArray{
        {{"driver", "d.io"}, {"pool", pool}, {"device", "d0"}, {"conditions", JsonArray{status}}}};
    api_.Put(claim);
  };
  ASSERT_TRUE(IsAllocated("p") && IsAllocated("q"));
  report("p", "d.io/failed");
  RunInSteps(seconds(60));
  ASSERT_TRUE(IsAllocated("p") && IsAllocated("q"));
  EXPECT_EQ(nos::Find(Claim("p"), "status", "devices"), nullptr) << "the failure is forgotten";
  for (const char* name : {"p", "q"}) report(name, "d.io/ready");
  RunInSteps(seconds(60));
  EXPECT_NE(NodeOf("p"), "");
  EXPECT_NE(NodeOf("q"), "");
}

TEST_F(SchedulerDevicesTest, GangThatBecameIncompleteGivesItsDevicesBack) {
  WaitingGang();
  ASSERT_TRUE(IsAllocated("p") && IsAllocated("q"));
  api_.Remove("pods", "ml/q");
  RunInSteps(seconds(60));
  EXPECT_FALSE(IsAllocated("p"));
}

// The first member takes the only device that serves the second, unless they are tried in another
// order.
TEST_F(SchedulerDevicesTest, GangTriesOrdersOfItsMembers) {
  Slice("a", {{"name", "d0"}, {"attributes", {{"big", {{"bool", true}}}}}});
  Group("g", 2);
  for (const char* name : {"p", "q"}) {
    Pod(name);
    ChangePod(name, [](Json& pod) {
      MakeObject(pod, "metadata", "labels")["scheduling.x-k8s.io/pod-group"] = "g";
    });
  }
  Json claim = Claim("q");
  Json& request = MakeObject(claim, "spec", "devices")["requests"].as_array()[0];
  MakeObject(request, "exactly")["selectors"] =
      JsonArray{{{"cel", {{"expression", "device.attributes[\"d.io\"].?big.orValue(false)"}}}}};
  api_.Put(claim);
  RunInSteps(seconds(60));
  EXPECT_EQ(NodeOf("p"), "b");
  EXPECT_EQ(NodeOf("q"), "a");
}

// Without GPUs of device plugins, a pod that ended counts only until its claims are released,
// whatever its grace period.
TEST_F(SchedulerDevicesTest, PlaceOfEndedPodIsFreeOnceItsClaimIsReleased) {
  Cordon("b");
  api_.Put({{"kind", "Node"},
            {"metadata", {{"name", "a"}}},
            {"status", {{"allocatable", {{"cpu", "9"}, {"pods", "1"}}}}}});
  Pod("p");
  ChangePod("p",
            [](Json& pod) { MakeObject(pod, "spec")["terminationGracePeriodSeconds"] = 3600; });
  Run();
  ASSERT_EQ(NodeOf("p"), "a");
  SetPhase("p", "Succeeded");
  PutPod("q", "cpu", "1", 0);
  RunInSteps(seconds(20));
  EXPECT_EQ(NodeOf("q"), "") << "the devices are still in use";
  Release("p");
  RunInSteps(seconds(20));
  EXPECT_EQ(NodeOf("q"), "a");
}

// A claim that cannot be written takes the places of the whole gang along at once.
TEST_F(SchedulerDevicesTest, NoPlaceOfAGangIsKeptWhenTheClaimOfAMemberCannotBeWritten) {
  Group("g", 2);
  for (const char* name : {"p", "q"}) {
    Pod(name);
    ChangePod(name, [](Json& pod) {
      MakeObject(pod, "metadata", "labels")["scheduling.x-k8s.io/pod-group"] = "g";
    });
  }
  const auto refused =
      kube::Refuse(api_, "PATCH", "/resourceclaims/q", kube::HttpStatus(409, "conflict"), 1);
  for (int i = 0; i < 1000 && runner_->Step(clock_); ++i) {
    size_t kept = 0;
    for (const char* node : {"a", "b"}) {
      const cluster::NodeInfo* info = scheduler_->snapshot().Find(node);
      kept += info == nullptr ? 0 : info->pods.size();
    }
    EXPECT_NE(kept, 1u) << "after step " << i;
  }
  EXPECT_EQ(*refused, 1);
  RunInSteps(seconds(60));
  EXPECT_NE(NodeOf("p"), "");
  EXPECT_NE(NodeOf("q"), "");
}

// The leader before has allocated the claim and sent the binding to node "a", which is full for
// this one.
class SchedulerTakeoverTest : public SchedulerDevicesTest {
 protected:
  void SetUp() override {
    SchedulerDevicesTest::SetUp();
    Cordon("a");
    Pod("p");
    Json claim = Claim("p");
    const JsonObject field = {
        {"key", "metadata.name"}, {"operator", "In"}, {"values", JsonArray{"a"}}};
    const JsonObject term = {{"matchFields", JsonArray{field}}};
    claim.get_object()["status"] = JsonObject{
        {"allocation",
         {{"devices",
           {{"results",
             JsonArray{{{"request", "r"}, {"driver", "d.io"}, {"pool", "a"}, {"device", "d0"}}}}}},
          {"nodeSelector", {{"nodeSelectorTerms", JsonArray{term}}}}}},
        {"reservedFor", JsonArray{{{"resource", "pods"}, {"name", "p"}, {"uid", "p-uid"}}}}};
    api_.Put(claim);
  }
};

TEST_F(SchedulerTakeoverTest, DevicesStayWithAPodWhoseBindingMayStillArrive) {
  RunInSteps(seconds(20));
  EXPECT_TRUE(IsAllocated("p"));
  ChangePod("p", [](Json& pod) { MakeObject(pod, "spec")["nodeName"] = "a"; });
  RunInSteps(seconds(120));
  EXPECT_TRUE(IsAllocated("p"));
}

TEST_F(SchedulerTakeoverTest, DevicesAreGivenBackIfNoBindingArrives) {
  RunInSteps(seconds(120));
  EXPECT_EQ(NodeOf("p"), "b");
}

// Kubernetes' claim controller would release them later.
TEST_F(SchedulerDevicesTest, VictimGivesItsDevicesBackOnceTheKubeletHasEndedIt) {
  Cordon("b");
  for (const int64_t grace : {0, 30}) {
    const std::string name = "p" + std::to_string(grace);
    Pod(name);
    ChangePod(name,
              [&](Json& pod) { MakeObject(pod, "spec")["terminationGracePeriodSeconds"] = grace; });
    Run();
    ASSERT_EQ(NodeOf(name), "a");
    ChangePod(name, [](Json& pod) {
      MakeObject(pod, "metadata")["deletionTimestamp"] = "2026-01-01T00:00:00Z";
      MakeObject(pod, "status")["conditions"] = JsonArray{
          {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "PreemptionByScheduler"}}};
    });
    Run();
    EXPECT_TRUE(IsAllocated(name)) << "its containers may run";
    api_.Remove("pods", "ml/" + name);
    Run();
    EXPECT_EQ(IsAllocated(name), grace == 0) << "without a grace period its containers may run";
    Release(name);
  }
}

TEST_F(SchedulerDevicesTest, PreemptorWaitsUntilTheClaimOfItsVictimIsReleased) {
  Pod("p");
  Pod("q");
  Run();
  ASSERT_NE(NodeOf("p"), "");
  ASSERT_NE(NodeOf("q"), "");
  Pod("urgent", 100);
  RunInSteps(seconds(60));
  const bool p_gone = NodeOf("p") == "gone", q_gone = NodeOf("q") == "gone";
  EXPECT_NE(p_gone, q_gone) << "exactly one pod is evicted";
  EXPECT_EQ(NodeOf("urgent"), "");
  Pod("late", 50);
  Release(p_gone ? "p" : "q");
  RunInSteps(seconds(20));
  EXPECT_NE(NodeOf("urgent"), "");
  EXPECT_EQ(NodeOf("late"), "") << "an earlier nomination goes first";
}

}  // namespace
}  // namespace nos::controllers
