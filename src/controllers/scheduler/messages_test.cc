// Messages about pending pods beyond kube-scheduler's wording.
#include "controllers/scheduler/fixture_test.h"
#include "scheduling/framework.h"
#include "scheduling/remedies.h"

namespace nos::controllers {
namespace {

class SchedulerMessagesTest : public SchedulerFixture {
 protected:
  std::string Said(const std::string& pod, const std::string& field = "message") {
    const Json* conditions = nos::Find(*api_.Find("pods", "ml/" + pod), "status", "conditions");
    if (conditions == nullptr || conditions->get_array().empty()) return "";
    return std::string(FindString(conditions->get_array().at(0), field));
  }
  // The end of the message that says what would let the pod run; "" if there is none.
  std::string RemedyOf(const std::string& pod) {
    const std::string said = Said(pod);
    const size_t at = said.find(scheduling::kRemedySeparator);
    return at == said.npos ? "" : said.substr(at + scheduling::kRemedySeparator.size());
  }
  void Change(const std::string& pod, const std::string& part, const JsonObject& fields) {
    Json changed = *api_.Find("pods", "ml/" + pod);
    for (const auto& [key, value] : fields) MakeObject(changed, part)[key] = value;
    api_.Put(changed);
  }
};

TEST_F(SchedulerMessagesTest, RemedyExcludesNominatedCapacity) {
  api_.Put({{"kind", "Node"},
            {"metadata", {{"name", "a"}}},
            {"status", {{"allocatable", {{"cpu", "4"}, {"pods", "110"}}}}}});
  PutPod("v", "cpu", "3", 0);
  Change("v", "spec", {{"nodeName", "a"}});
  Change("v", "status", {{"phase", "Running"}});
  Change("v", "metadata", {{"deletionTimestamp", "2026-01-01T00:00:00Z"}});
  PutPod("hi", "cpu", "3", 100);
  Change("hi", "status", {{"nominatedNodeName", "a"}});
  PutPod("lo", "cpu", "3", 0);
  Run();
  EXPECT_EQ(
      RemedyOf("lo"),
      "wait for the end of pod ml/hi, pod ml/v on node a, where pod ml/hi goes first, or give it a "
      "priority above 100.");
  EXPECT_EQ(RemedyOf("hi"), "") << "its room is being made";
}

TEST_F(SchedulerMessagesTest, RemedyHidesPodsOfOtherNamespaces) {
  CpuNode("a", "3");
  PutPod("project-merger", "cpu", "3", 0);
  Json other = *api_.Find("pods", "ml/project-merger");
  MakeObject(other, "metadata")["namespace"] = "acme";
  MakeObject(other, "spec")["nodeName"] = "a";
  api_.Remove("pods", "ml/project-merger");
  api_.Put(other);
  PutPod("p", "cpu", "3", 0);
  Run();
  EXPECT_EQ(RemedyOf("p"),
            "wait for the end of 1 pod of another namespace on node a, or give it a priority above "
            "0.");
}

// Searching a remedy would take the scheduler too long while other pods wait.
TEST_F(SchedulerMessagesTest, OmitsRemedyForPodWithTooManyTerms) {
  CpuNode("a", "3");
  const auto put = [&](const std::string& name, int terms) {
    PutPod(name, "cpu", "4", 0);
    JsonArray list;
    for (int i = 0; i < terms; ++i) {
      list.push_back({{"topologyKey", "kubernetes.io/hostname"},
                      {"labelSelector", {{"matchLabels", {{"app", std::to_string(i)}}}}}});
    }
    Change(name, "spec",
           {{"affinity",
             {{"podAntiAffinity",
               {{"requiredDuringSchedulingIgnoredDuringExecution", std::move(list)}}}}}});
  };
  put("some", 100);
  put("many", 101);
  JsonArray tolerations, terms;
  for (int i = 0; i < 101; ++i) {
    const std::string key = "k" + std::to_string(i);
    tolerations.push_back({{"key", key}, {"operator", "Exists"}});
    JsonArray expressions;
    expressions.push_back({{"key", key}, {"operator", "Exists"}});
    terms.push_back(JsonObject{{"matchExpressions", std::move(expressions)}});
  }
  PutPod("tolerant", "cpu", "4", 0);
  Change("tolerant", "spec", {{"tolerations", std::move(tolerations)}});
  PutPod("picky", "cpu", "1", 0);
  Change("picky", "spec",
         {{"affinity",
           {{"nodeAffinity",
             {{"requiredDuringSchedulingIgnoredDuringExecution",
               {{"nodeSelectorTerms", std::move(terms)}}}}}}}});
  Run();
  for (const char* name : {"tolerant", "picky", "many"}) {
    EXPECT_EQ(Said(name, "reason"), "Unschedulable");
    EXPECT_EQ(RemedyOf(name), "");
  }
  EXPECT_EQ(RemedyOf("some"),
            "add a node with at least 4 cpu: node a, the nearest, has 3 cpu in all.");
}

// The pod's profile leaves partitioning to the partitioner, which can do it.
// Another pod holds the node now, and the reasons are the same.
TEST_F(SchedulerMessagesTest, RemedyFollowsTheClusterWithoutFurtherEvents) {
  CpuNode("a", "3");
  PutPod("first", "cpu", "3", 0);
  BindElsewhere("first", "a");
  PutPod("p", "cpu", "3", 0);
  Run();
  clock_.Advance(seconds(31));
  Run();
  EXPECT_EQ(RemedyOf("p"),
            "wait for the end of pod ml/first on node a, or give it a priority above 0.");
  EXPECT_EQ(CountEvents("FailedScheduling"), 1);
  PutPod("second", "cpu", "3", 0);
  BindElsewhere("second", "a");
  api_.Remove("pods", "ml/first");
  RunInSteps(std::chrono::minutes(2));
  EXPECT_EQ(RemedyOf("p"),
            "wait for the end of pod ml/second on node a, or give it a priority above 0.");
  EXPECT_EQ(CountEvents("FailedScheduling"), 1) << "only the condition follows";
  const size_t writes = api_.writes.size();
  RunInSteps(std::chrono::minutes(12));
  EXPECT_EQ(api_.writes.size(), writes) << "the same remedy is not written again";
}

TEST_F(SchedulerMessagesTest, RemedyAssumesPartitioningByPartitioner) {
  const auto waiting = scheduling::Framework::Default(scheduling::PartitionedBy::kPartitioner);
  UseProfiles({{"default-scheduler", &waiting, scheduling::PreemptionOptions(), framework_.get()}});
  GpuNode("n", 1);
  PutPod("holder", "nvidia.com/mig-7g.40gb", "1", 0);
  BindElsewhere("holder", "n");
  Report("n", "7g.40gb@0:used");
  PutPod("p", "nvidia.com/mig-4g.20gb", "1", 0);
  Run();
  EXPECT_EQ(RemedyOf("p"), "wait for the end of pod ml/holder on node n.");
  End();  // it refers to the framework
}

// There are more kinds of pods than one call explains.
TEST_F(SchedulerMessagesTest, PublishesSkippedRemedyLater) {
  CpuNode("a", "4");
  PutPod("big", "cpu", "5", 0);
  PutPod("bigger", "cpu", "6", 0);
  Run();
  EXPECT_EQ(RemedyOf("big"),
            "add a node with at least 5 cpu: node a, the nearest, has 4 cpu in all.");
  EXPECT_EQ(RemedyOf("bigger"),
            "add a node with at least 6 cpu: node a, the nearest, has 4 cpu in all.");
  clock_.Advance(seconds(31));
  Run();
  EXPECT_EQ(CountEvents("FailedScheduling"), 2);
  const size_t writes = api_.writes.size();
  clock_.Advance(std::chrono::minutes(6));
  Run();
  EXPECT_EQ(api_.writes.size(), writes) << "said once";
}

TEST_F(SchedulerMessagesTest, WarnsOfPodThatIsRefusedForHalfAMinute) {
  CpuNode("a", "4");
  PutPod("big", "cpu", "5", 0);
  Run();
  EXPECT_EQ(Said("big", "reason"), "Unschedulable");
  EXPECT_EQ(CountEvents("FailedScheduling"), 0);
  clock_.Advance(seconds(30));
  Run();
  EXPECT_EQ(CountEvents("FailedScheduling"), 1);
  PutPod("later", "cpu", "6", 0);
  Run();
  EXPECT_EQ(CountEvents("FailedScheduling"), 1) << "each pod has its own half minute";
}

TEST_F(SchedulerMessagesTest, WarnsOfNoPodThatIsServedInTime) {
  CpuNode("a", "4");
  PutPod("big", "cpu", "5", 0);
  Run();
  clock_.Advance(seconds(20));
  CpuNode("b", "8");
  Run();
  clock_.Advance(seconds(20));
  Run();
  EXPECT_EQ(CountEvents("Scheduled"), 1);
  EXPECT_EQ(CountEvents("FailedScheduling"), 0);
}

TEST_F(SchedulerMessagesTest, PublishesRemedyDuringLongBinding) {
  CpuNode("a", "4");
  PutPod("small", "cpu", "1", 0);
  PutPod("big", "cpu", "5", 0);
  api_.intercept = [&](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    if (request.path.ends_with("/small/binding")) {
      answer = Result<kube::ApiResponse>(Status(Code::kDeadline, "no answer"));
    }
    if (request.method == "GET" && request.path.ends_with("/namespaces/ml/pods")) {
      answer = Result<kube::ApiResponse>(Status(Code::kUnavailable, "no answer"));
    }
    return answer;
  };
  Run();
  EXPECT_EQ(NodeOf("small"), "") << "it is being bound all the time";
  EXPECT_EQ(RemedyOf("big"),
            "add a node with at least 5 cpu: node a, the nearest, has 4 cpu in all.");
}

TEST_F(SchedulerMessagesTest, NamesSilentAgentAfterShortDelay) {
  GpuNode("n", 1);
  PutPod("p", "nvidia.com/mig-3g.20gb", "1", 0);
  Run();
  EXPECT_EQ(Said("p"), "") << "most GPUs are partitioned soon";
  clock_.Advance(seconds(10));
  Run();
  EXPECT_EQ(Said("p"), "waits for node n: 3g.20gb@4 of GPU 0 is being created");
  EXPECT_EQ(Said("p", "reason"), "PartitioningGpus");
  const size_t writes = api_.writes.size();
  clock_.Advance(seconds(20));
  Run();
  EXPECT_EQ(api_.writes.size(), writes) << "said once";
  clock_.Advance(seconds(40));
  Run();
  const std::string silent =
      "wait until the agent of node n has carried out its plan (plan 2); if that lasts, inspect "
      "the agent's pod on node n.";
  EXPECT_EQ(RemedyOf("p"), silent);
  clock_.Advance(seconds(9));
  Run();
  EXPECT_EQ(RemedyOf("p"), silent) << "as long as nothing else is known";
}

}  // namespace
}  // namespace nos::controllers
