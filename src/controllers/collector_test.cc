// Records that the collector reports while objects of the cluster are created, changed and deleted.
#include "controllers/collector/fixture_test.h"
#include "kube/testing/refuse.h"
#include "reconcile/condition.h"

namespace nos::controllers {
namespace {

class CollectorTest : public CollectorFixture {
 protected:
  void Job(const std::string& name, bool suspended) {
    api_.Put({{"kind", "Job"},
              {"metadata", {{"namespace", "team"}, {"name", name}, {"uid", "uid-" + name}}},
              {"spec",
               {{"suspend", suspended},
                {"parallelism", 2},
                {"template",
                 {{"spec",
                   {{"containers",
                     JsonArray{{{"name", "main"},
                                {"resources", {{"limits", {{"nvidia.com/gpu", "1"}}}}}}}}}}}}}}});
  }
  void Event(const std::string& name, const std::string& kind, const std::string& of,
             const std::string& message, const std::string& reason = "FailedScheduling") {
    api_.Put({{"kind", "Event"},
              {"metadata", {{"namespace", "team"}, {"name", name}, {"uid", "uid-" + name}}},
              {"involvedObject", {{"kind", kind}, {"namespace", "team"}, {"name", of}}},
              {"type", "Warning"},
              {"reason", reason},
              {"message", message},
              {"lastTimestamp", "2027-01-15T07:00:00Z"}});
  }
  void Node(const std::string& name, const JsonObject& annotations = {},
            const std::string& uid = "5e0c4d7a-9a1c") {
    api_.Put({{"kind", "Node"},
              {"metadata",
               {{"name", name},
                {"uid", uid},
                {"labels",
                 {{"nos.nebuly.com/gpu-partitioning", "mig"},
                  {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                  {"nvidia.com/gpu.count", "1"},
                  {"karpenter.sh/capacity-type", "spot"},
                  {"private", "x"}}},
                {"annotations", annotations}}},
              {"status", {{"allocatable", {{"cpu", "8"}, {"memory", "16Gi"}}}}}});
  }
  void Pod(const std::string& name, const std::string& node = "", const std::string& phase = "",
           const JsonArray& conditions = {}, const char* slice = "nvidia.com/mig-1g.5gb") {
    api_.Put(
        {{"kind", "Pod"},
         {"metadata",
          {{"namespace", "team"},
           {"name", name},
           {"uid", "uid-" + name},
           {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
         {"spec",
          {{"nodeName", node},
           {"containers",
            JsonArray{{{"name", "main"},
                       {"resources",
                        {{"limits", {{"cpu", "500m"}, {"memory", "512Mi"}, {slice, "1"}}}}}}}}}},
         {"status", {{"phase", phase.empty() ? "Pending" : phase}, {"conditions", conditions}}}});
  }
  void PodOfJob() {
    api_.Put({{"kind", "Pod"},
              {"metadata",
               {{"namespace", "team"},
                {"name", "train-x"},
                {"uid", "x"},
                {"ownerReferences",
                 JsonArray{{{"kind", "Job"}, {"name", "train"}, {"controller", true}}}}}}});
  }
  void Quota() {
    api_.Put({{"apiVersion", "nos.nebuly.com/v1alpha1"},
              {"kind", "ElasticQuota"},
              {"metadata", {{"namespace", "team"}, {"name", "q"}, {"uid", "q"}}},
              {"spec", {{"min", {{"cpu", "1500m"}}}}},
              {"status", {{"used", {{"cpu", "500m"}}}}}});
  }
  // The records of one kind from the last run.
  std::vector<Json> Records(const std::string& kind) const {
    std::vector<Json> found;
    for (const Json& record : records_) {
      if (FindString(record, "kind") == kind) found.push_back(record);
    }
    return found;
  }
};

TEST_F(CollectorTest, ReportsDevicesOfClaims) {
  const auto claim = [this](const JsonObject& status) {
    api_.Put({{"apiVersion", "resource.k8s.io/v1"},
              {"kind", "ResourceClaim"},
              {"metadata", {{"namespace", "team"}, {"name", "slices"}, {"uid", "c"}}},
              {"spec",
               {{"devices",
                 {{"requests", JsonArray{{{"name", "r"},
                                          {"exactly",
                                           {{"deviceClassName", "mig.nvidia.com"},
                                            {"allocationMode", "ExactCount"},
                                            {"count", 2}}}}}}}}}},
              {"status", status}});
  };
  const auto requests = [this] {
    EXPECT_EQ(Records("pod").size(), 1u);
    return Records("pod").empty() ? Json() : *Find(Records("pod")[0], "requests");
  };
  api_.Put({{"kind", "Pod"},
            {"metadata", {{"namespace", "team"}, {"name", "p"}, {"uid", "p"}}},
            {"spec",
             {{"resourceClaims", JsonArray{{{"name", "c"}, {"resourceClaimName", "slices"}}}}}}});
  Run();
  EXPECT_EQ(requests(), Json(JsonObject())) << "the claim does not exist yet";
  claim({});
  Run();
  EXPECT_EQ(requests(),
            Json(JsonObject{{"deviceclass.resource.kubernetes.io/mig.nvidia.com", 2.0}}));
  const auto result = [](const char* driver, const char* device) {
    return JsonObject{{"request", "r"}, {"driver", driver}, {"pool", "n"}, {"device", device}};
  };
  claim({{"allocation",
          {{"devices",
            {{"results", JsonArray{result("gpu.nvidia.com", "gpu-0-mig-1g5gb-19-0"),
                                   result("gpu.nvidia.com", "gpu-0-mig-1g5gb-19-1"),
                                   result("nic.example.com", "eth0")}}}}}}});
  Run();
  EXPECT_EQ(requests(), Json(JsonObject{{"nvidia.com/mig-1g.5gb", 2.0}}));
  api_.Remove("resourceclaims", "team/slices");
  Run();
  EXPECT_EQ(requests(), Json(JsonObject()));
}

TEST_F(CollectorTest, ReportsPodWhenItChanges) {
  Quota();
  Node("n");
  Pod("p", "", "",
      {{{"type", "PodScheduled"},
        {"status", "False"},
        {"reason", "Unschedulable"},
        {"message", "0/1 nodes are available"}}});
  Run();
  ASSERT_EQ(Records("pod").size(), 1u);
  const Json pod = Records("pod")[0];
  EXPECT_EQ(FindString(pod, "state"), "pending");
  EXPECT_EQ(FindString(pod, "message"), "0/1 nodes are available");
  EXPECT_EQ(FindString(pod, "quota"), "team/q");
  EXPECT_EQ(*Find(pod, "requests", "cpu"), Json(0.5));
  EXPECT_EQ(*Find(pod, "requests", "memory"), Json(512.0));
  EXPECT_EQ(*Find(pod, "requests", "nvidia.com/mig-1g.5gb"), Json(1.0));
  EXPECT_EQ(*Find(pod, "at"), Json(1'800'000'000'000));

  Run();
  EXPECT_TRUE(records_.empty()) << "nothing has changed";

  Pod("p", "n", "Running");
  Run();
  ASSERT_EQ(Records("pod").size(), 1u);
  EXPECT_EQ(FindString(Records("pod")[0], "state"), "running");
  ASSERT_EQ(Records("node").size(), 1u) << "its pods request more";
  EXPECT_EQ(*Find(Records("node")[0], "requested", "memory"), Json(512.0));

  Pod("p", "n", "Succeeded");
  Run();
  ASSERT_EQ(Records("pod").size(), 1u);
  EXPECT_GT(Find(Records("pod")[0], "finished")->as_int64(), 1'800'000'000'000);
  EXPECT_EQ(*Find(Records("node")[0], "requested", "cpu"), Json(0.0));

  api_.Remove("pods", "team/p");
  Run();
  ASSERT_EQ(Records("removed").size(), 1u);
  EXPECT_EQ(FindString(Records("removed")[0], "id"), "uid-p");
}

// A control plane may leave out the condition, and its message names neither gates nor remedy.
TEST_F(CollectorTest, ReportsSchedulingGates) {
  const JsonObject container{{"name", "main"},
                             {"resources", {{"limits", {{"nvidia.com/gpu", "1"}}}}}};
  const JsonArray gates{JsonObject{{"name", "kueue.x-k8s.io/admission"}}};
  api_.Put({{"kind", "Pod"},
            {"metadata",
             {{"namespace", "team"},
              {"name", "p"},
              {"uid", "uid-p"},
              {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
            {"spec", {{"schedulingGates", gates}, {"containers", JsonArray{container}}}}});
  Run();
  ASSERT_EQ(Records("pod").size(), 1u);
  EXPECT_EQ(FindString(Records("pod")[0], "reason"), "SchedulingGated");
  EXPECT_EQ(FindString(Records("pod")[0], "message"),
            "waiting for scheduling gates: [kueue.x-k8s.io/admission]. Remedy: wait until the "
            "component that set its scheduling gates removes them: kueue.x-k8s.io/admission.");
}

TEST_F(CollectorTest, ReportsNodesAndQuotas) {
  Quota();
  Node("n");
  Run();
  ASSERT_EQ(Records("node").size(), 1u);
  const Json node = Records("node")[0];
  EXPECT_EQ(*Find(node, "allocatable", "memory"), Json(16384.0));
  EXPECT_NE(Find(node, "labels", "nvidia.com/gpu.product"), nullptr);
  EXPECT_EQ(FindString(node, "labels", "karpenter.sh/capacity-type"), "spot");
  EXPECT_EQ(Find(node, "labels", "private"), nullptr) << "only needed labels may leave the cluster";
  ASSERT_EQ(Records("quota").size(), 1u);
  EXPECT_EQ(*Find(Records("quota")[0], "resources", "cpu", "min"), Json(1.5));
  EXPECT_EQ(*Find(Records("quota")[0], "resources", "cpu", "used"), Json(0.5));
  EXPECT_EQ(Find(Records("quota")[0], "resources", "cpu", "max"), nullptr);

  api_.Remove("elasticquotas", "team/q");
  api_.Remove("nodes", "n");
  Run();
  ASSERT_EQ(Records("removed").size(), 2u);
}

TEST_F(CollectorTest, NewLeaderReportsEverythingAndAllIds) {
  Node("n");
  Pod("p", "n", "Running");
  Run();
  Start();
  Run();
  EXPECT_EQ(Records("pod").size(), 1u);
  ASSERT_EQ(Records("present").size(), 6u);
  EXPECT_EQ(WriteJson(*Find(Records("present")[0], "ids")), R"(["uid-p"])");
}

TEST_F(CollectorTest, ReportsPlanItsResultAndThePodsItServed) {
  Node("n", {{"nos.nebuly.com/status-layout-0", "7g.40gb@0:free"}});
  Pod("p");
  Run();
  EXPECT_TRUE(Records("decision").empty());
  Node("n", {{"nos.nebuly.com/status-layout-0", "7g.40gb@0:free"},
             {"nos.nebuly.com/spec-layout-0", "1g.5gb@0,1g.5gb@1"},
             {"nos.nebuly.com/spec-partitioning-plan", "7"}});
  Run();
  ASSERT_EQ(Records("decision").size(), 1u);
  const Json planned = Records("decision")[0];
  EXPECT_EQ(FindString(planned, "state"), "planned");
  EXPECT_EQ(FindString(planned, "summary"), "repartitioning GPUs of Node n");
  const Json& repartitioned = Find(planned, "nodes")->as_array()[0];
  EXPECT_EQ(WriteJson(*Find(repartitioned, "before")),
            R"([{"index":0,"profiles":{"7g.40gb":1},"sharing_mode":"MIG","way":"MIG"}])");
  EXPECT_EQ(WriteJson(*Find(repartitioned, "after")),
            R"([{"index":0,"profiles":{"1g.5gb":2},"sharing_mode":"MIG","way":"MIG"}])");

  Node("n", {{"nos.nebuly.com/status-layout-0", "1g.5gb@0:free,1g.5gb@1:free"},
             {"nos.nebuly.com/spec-layout-0", "1g.5gb@0,1g.5gb@1"},
             {"nos.nebuly.com/spec-partitioning-plan", "7"},
             {"nos.nebuly.com/status-partitioning-plan", "7"}});
  Run();
  ASSERT_EQ(Records("decision").size(), 1u);
  EXPECT_EQ(FindString(Records("decision")[0], "state"), "applied");
  EXPECT_EQ(FindString(Records("decision")[0], "summary"), "repartitioned GPUs of Node n");
  EXPECT_EQ(FindString(Records("decision")[0], "id"), FindString(planned, "id"));
  EXPECT_GT(Find(Records("decision")[0], "took_ms")->as_int64(), 0);

  Pod("p", "n");
  Run();
  ASSERT_EQ(Records("decision").size(), 1u);
  const Json served = Records("decision")[0];
  EXPECT_EQ(WriteJson(*Find(served, "pods")), R"([{"namespace":"team","name":"p"}])");
  EXPECT_EQ(*Find(served, "made"), *Find(planned, "at"));
  EXPECT_GT(Find(served, "at")->as_int64(), Find(served, "made")->as_int64());
}

TEST_F(CollectorTest, PlanServesPodsThatTakeAddedSlices) {
  const std::string before = "3g.20gb@0:free,1g.5gb@4:free", after = "1g.5gb@0,1g.5gb@1,1g.5gb@4";
  Node("n", {{"nos.nebuly.com/status-layout-0", before}});
  for (const char* name : {"a", "b", "c"}) Pod(name);
  Pod("other", "", "", {}, "nvidia.com/mig-3g.20gb");
  Run();
  Node("n", {{"nos.nebuly.com/status-layout-0", before},
             {"nos.nebuly.com/spec-layout-0", after},
             {"nos.nebuly.com/spec-partitioning-plan", "7"}});
  Run();
  for (const char* name : {"a", "b", "c"}) Pod(name, "n");
  Pod("other", "n", "", {}, "nvidia.com/mig-3g.20gb");
  Run();
  ASSERT_EQ(Records("decision").size(), 2u) << "so many 1g.5gb were added";
  EXPECT_EQ(Find(Records("decision").back(), "pods")->as_array().size(), 2u);
}

TEST_F(CollectorTest, PlanReplacedBeforeItsResultIsSuperseded) {
  JsonObject annotations = {{"nos.nebuly.com/status-layout-0", "7g.40gb@0:free"}};
  Node("n", annotations);
  Run();
  const auto plan = [&](const std::string& number) {
    annotations["nos.nebuly.com/spec-layout-0"] = "1g.5gb@" + number;
    annotations["nos.nebuly.com/spec-partitioning-plan"] = number;
    Node("n", annotations);
    Run();
  };
  plan("1");
  const Json first = Records("decision").at(0);
  plan("2");
  ASSERT_EQ(Records("decision").size(), 2u);
  const Json replaced = Records("decision")[0];
  EXPECT_EQ(FindString(replaced, "id"), FindString(first, "id"));
  EXPECT_EQ(FindString(replaced, "state"), "superseded");
  EXPECT_EQ(*Find(replaced, "made"), *Find(first, "made"));
  EXPECT_EQ(FindString(Records("decision")[1], "state"), "planned");
  annotations["nos.nebuly.com/status-partitioning-plan"] = "2";
  Node("n", annotations);
  plan("3");
  EXPECT_EQ(FindString(Records("decision").at(0), "state"), "applied") << "a result stays";
}

// A collector that starts during a plan does not know when the plan was made.
TEST_F(CollectorTest, ReportsPlanFoundAtStartWithoutTime) {
  JsonObject annotations = {{"nos.nebuly.com/status-layout-0", "7g.40gb@0:free"},
                            {"nos.nebuly.com/spec-layout-0", "1g.5gb@0"},
                            {"nos.nebuly.com/spec-partitioning-plan", "7"}};
  Node("n", annotations);
  Run();
  annotations["nos.nebuly.com/status-partitioning-plan"] = "7";
  Node("n", annotations);
  const Json found = Records("decision").at(0);
  Run();
  const Json done = Records("decision").at(0);
  EXPECT_EQ(FindString(done, "state"), "applied");
  for (const Json& decision : {found, done}) {
    EXPECT_EQ(Find(decision, "made"), nullptr);
    EXPECT_EQ(Find(decision, "took_ms"), nullptr);
  }
}

TEST_F(CollectorTest, PlanIdsDifferBetweenNodeObjectsOfSameName) {
  const JsonObject planned = {{"nos.nebuly.com/status-layout-0", "7g.40gb@0:free"},
                              {"nos.nebuly.com/spec-layout-0", "1g.5gb@0"},
                              {"nos.nebuly.com/spec-partitioning-plan", "1"}};
  Node("n", planned);
  Run();
  EXPECT_EQ(FindString(Records("decision").at(0), "id"), "plan/n/5e0c4d7a/1");
  api_.Remove("nodes", "n");
  Node("n", planned, "0b1f2e3d-4c5b");
  Run();
  EXPECT_EQ(FindString(Records("decision").at(0), "id"), "plan/n/0b1f2e3d/1");
}

TEST_F(CollectorTest, ReportsEndOfLastContainerAsEndOfPod) {
  const auto finished = [&](const std::string& name, const std::string& at) {
    const JsonObject end = {{"exitCode", 0}, {"finishedAt", at}};
    const JsonObject container = {{"name", "main"}, {"state", JsonObject{{"terminated", end}}}};
    api_.Put({{"kind", "Pod"},
              {"metadata", {{"namespace", "team"}, {"name", name}, {"uid", "uid-" + name}}},
              {"status",
               {{"phase", "Succeeded"},
                {"startTime", "2027-01-15T07:00:00Z"},
                {"containerStatuses", JsonArray{container}}}}});
    Run();
    return Find(Records("pod").at(0), "finished")->as_int64();
  };
  const int64_t now = 1'800'000'000'000;
  EXPECT_EQ(finished("known", "2027-01-15T07:30:00Z"), now - 1'800'000);
  EXPECT_GE(finished("before-it-began", "1970-01-01T00:00:00Z"), now) << "when it was seen";
  EXPECT_LT(finished("of-the-future", "9999-01-15T07:30:00Z"), now + 3'600'000);
}

TEST_F(CollectorTest, ReportsJobDerivedFromItsPods) {
  const auto pod = [&](const std::string& name, const std::string& phase) {
    api_.Put({{"kind", "Pod"},
              {"metadata",
               {{"namespace", "team"},
                {"name", name},
                {"uid", "uid-" + name},
                {"ownerReferences", JsonArray{{{"apiVersion", "batch/v1"},
                                               {"kind", "Job"},
                                               {"name", "train"},
                                               {"uid", "u"},
                                               {"controller", true}}}},
                {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
              {"spec", {{"nodeName", "n"}}},
              {"status", {{"phase", phase}}}});
  };
  Node("n");
  pod("a", "Running");
  pod("b", "Running");
  Run();
  ASSERT_EQ(Records("job").size(), 1u);
  EXPECT_EQ(FindString(Records("job")[0], "id"), "team/Job/train");
  EXPECT_EQ(FindString(Records("pod")[0], "job", "name"), "train");
  EXPECT_EQ(WriteJson(*Find(Records("present")[3], "ids")), R"(["team/Job/train"])");
  pod("b", "Succeeded");
  Run();
  ASSERT_EQ(Records("job").size(), 1u);
  EXPECT_EQ(*Find(Records("job")[0], "completions"), Json(1));
  api_.Remove("pods", "team/a");
  api_.Remove("pods", "team/b");
  Run();
  EXPECT_EQ(FindString(Records("removed").back(), "id"), "team/Job/train");
}

TEST_F(CollectorTest, ReportsEvictionForElasticQuota) {
  Node("n");
  Pod("p", "n", "Running");
  Run();
  Pod("p", "n", "Running",
      {{{"type", "DisruptionTarget"},
        {"status", "True"},
        {"reason", "PreemptionByScheduler"},
        {"message",
         "s: preempting to accommodate a pod to which its elastic quota gives a right"}}});
  Run();
  ASSERT_EQ(Records("decision").size(), 1u);
  EXPECT_EQ(FindString(Records("decision")[0], "type"), "reclaim");
  EXPECT_EQ(FindString(Records("decision")[0], "summary"), "evicting Pod team/p from Node n");
  EXPECT_EQ(WriteJson(*Find(Records("decision")[0], "victims")),
            R"([{"namespace":"team","name":"p"}])");
  Run();
  EXPECT_TRUE(Records("decision").empty());
}

TEST_F(CollectorTest, NamesPodForWhichAnotherIsEvicted) {
  Node("n");
  Pod("p", "n", "Running");
  Pod("urgent");
  Run();
  const std::string uid(FindString(*Find(*api_.Find("pods", "team/urgent"), "metadata"), "uid"));
  Pod("p", "n", "Running",
      {{{"type", "DisruptionTarget"},
        {"status", "True"},
        {"reason", "PreemptionByScheduler"},
        {"message",
         reconcile::WithPreemptor("s: preempting to accommodate a higher priority pod", uid)}}});
  Run();
  ASSERT_EQ(Records("decision").size(), 1u);
  const Json decision = Records("decision")[0];
  EXPECT_EQ(FindString(decision, "type"), "preemption");
  EXPECT_EQ(FindString(decision, "summary"), "evicting Pod team/p from Node n");
  EXPECT_EQ(FindString(decision, "why"), "another Pod has a higher priority");
  EXPECT_EQ(WriteJson(*Find(decision, "pods")), R"([{"namespace":"team","name":"urgent"}])");
}

TEST_F(CollectorTest, ReportsJobWithoutPods) {
  Job("train", true);
  Run();
  ASSERT_EQ(Records("job").size(), 1u);
  EXPECT_EQ(FindString(Records("job")[0], "state"), "suspended");
  EXPECT_EQ(FindString(Records("present")[4], "what"), "queue");
  EXPECT_EQ(WriteJson(*Find(Records("present")[3], "ids")), R"(["team/Job/train"])");
  Run();
  EXPECT_TRUE(records_.empty()) << "nothing has changed";

  Job("train", false);
  Event("e", "Job", "train", "pods \"train-x\" is forbidden: exceeded quota: gpus", "FailedCreate");
  Run();
  ASSERT_EQ(Records("job").size(), 1u);
  EXPECT_EQ(FindString(Records("job")[0], "state"), "pending");
  EXPECT_EQ(FindString(Records("job")[0], "why"),
            "pods \"train-x\" is forbidden: exceeded quota: gpus");
  EXPECT_EQ(Records("event").size(), 1u);
  api_.Remove("jobs", "team/train");
  Run();
  ASSERT_EQ(Records("removed").size(), 1u);
  EXPECT_EQ(FindString(Records("removed")[0], "id"), "team/Job/train");
}

TEST_F(CollectorTest, OmitsKindsThatMayNotBeRead) {
  api_.intercept = [](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
    const bool denied = request.path.ends_with("/jobs") || request.path.ends_with("/events");
    if (!denied) return std::nullopt;
    return kube::ApiResponse{403, {{"kind", "Status"}, {"code", 403}, {"message", "forbidden"}}};
  };
  Job("train", true);
  Pod("p");
  Run();
  EXPECT_EQ(Records("pod").size(), 1u);
  EXPECT_TRUE(Records("job").empty());
  EXPECT_EQ(Records("present").size(), 6u) << "the list of jobs is complete nevertheless";
  api_.intercept = nullptr;  // now permitted
  clock_.Advance(std::chrono::minutes(2));
  Run();
  EXPECT_EQ(Records("job").size(), 1u);
}

TEST_F(CollectorTest, NewLeaderReportsJobOnceFromPodsAndObjects) {
  Job("train", false);
  PodOfJob();
  Run();
  ASSERT_EQ(Records("job").size(), 1u);
  EXPECT_EQ(WriteJson(*Find(Records("job")[0], "pods")), R"({"pending":1})");
  EXPECT_EQ(*Find(Records("job")[0], "parallelism"), Json(2));
  Start();
  Run();
  EXPECT_EQ(Records("job").size(), 1u);
}

TEST_F(CollectorTest, ReportsJobsOfPodsWhenJobObjectsCannotBeRead) {
  Refuse(api_, "", "/jobs", kube::HttpStatus(500));
  PodOfJob();
  Run();
  EXPECT_TRUE(Records("job").empty()) << "job objects may still arrive";
  clock_.Advance(std::chrono::minutes(1));
  Run();
  EXPECT_EQ(Records("job").size(), 1u);
  EXPECT_TRUE(Records("present").empty()) << "the ids are unknown";
}

TEST_F(CollectorTest, ReportsEventsAboutGpus) {
  Node("n");
  Event("of-gpu-node", "Node", "n", "not ready");
  Event("of-other-node", "Node", "unknown", "not ready");
  Event("of-configuration", "ConfigMap", "c", "x");
  Event("of-quota", "ElasticQuota", "q", "not in force");
  Event("early", "Pod", "p", "no room");
  Run();
  ASSERT_EQ(Records("event").size(), 2u);
  EXPECT_EQ(FindString(Records("event")[0], "object", "kind"), "Node");
  EXPECT_EQ(FindString(Records("event")[1], "object", "kind"), "ElasticQuota");
  Pod("p");
  Run();
  ASSERT_EQ(Records("event").size(), 1u) << "its pod exists now";
  EXPECT_EQ(FindString(Records("event")[0], "message"), "no room");
  EXPECT_EQ(*Find(Records("event")[0], "at"), Json(1'800'000'000'000 - 3'600'000));
  Run();
  EXPECT_TRUE(records_.empty());
}

TEST_F(CollectorTest, ManyForeignEventsDoNotDisplaceOurs) {
  Pod("p");
  Event("a", "Pod", "p", "first");
  for (int i = 0; i < 3000; ++i) Event("b" + std::to_string(i), "Pod", "gone", "of nobody");
  Run();
  ASSERT_EQ(Records("event").size(), 1u);
  EXPECT_EQ(FindString(Records("event")[0], "message"), "first");
}

TEST_F(CollectorTest, ReportsKueueQueuesOnlyWhileServed) {
  bool served = false;
  api_.intercept =
      [&](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
    if (request.path != "/apis/kueue.x-k8s.io" || !served) return std::nullopt;
    return kube::ApiResponse{
        200, {{"kind", "APIGroup"}, {"versions", JsonArray{{{"version", "v1beta1"}}}}}};
  };
  api_.Put({{"kind", "LocalQueue"},
            {"metadata", {{"namespace", "team"}, {"name", "gpus"}}},
            {"status", {{"pendingWorkloads", 4}}}});
  Run();
  EXPECT_TRUE(Records("queue").empty());
  served = true;
  clock_.Advance(std::chrono::minutes(2));
  Run();
  ASSERT_EQ(Records("queue").size(), 1u);
  EXPECT_EQ(*Find(Records("queue")[0], "workloads", "pending"), Json(4));
  served = false;
  clock_.Advance(std::chrono::minutes(20));
  Run();
  ASSERT_EQ(Records("removed").size(), 1u) << "Kueue was uninstalled";
  EXPECT_EQ(FindString(Records("removed")[0], "id"), "LocalQueue/team/gpus");
}

}  // namespace
}  // namespace nos::controllers
