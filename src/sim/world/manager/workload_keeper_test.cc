#include "sim/world/manager/workload_keeper.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "sim/api_server.h"
#include "sim/world/manager/parts.h"

namespace nos::sim {
namespace {

using std::chrono::seconds;

Json FromText(std::string_view text) {
  auto parsed = ParseJson(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status().ToString() << "\n" << text;
  return parsed.ok() ? std::move(*parsed) : Json();
}

// An API server with the controllers, and a kubelet that runs every pod at once.
class WorkloadKeeperTest : public testing::Test {
 protected:
  WorkloadKeeperTest() { AddNode("n1"); }

  void AddNode(const std::string& name, const std::string& labels = "{}") {
    const auto node = client_.Create(
        kube::kNodes, "",
        FromText(R"({"metadata":{"name":")" + name + R"(","labels":)" + labels + "}}"));
    EXPECT_TRUE(node.ok()) << node.status().ToString();
  }
  void Create(const kube::Resource& resource, const std::string& text) {
    const auto created = client_.Create(resource, "default", FromText(text));
    EXPECT_TRUE(created.ok()) << created.status().ToString();
  }
  // A Deployment, ReplicaSet, StatefulSet or DaemonSet named "a" whose pods have image `image`.
  void CreateApp(const kube::Resource& resource, const std::string& spec,
                 const std::string& image = "i:1") {
    Create(resource, R"({"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"app":"a"}},
        "template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[
        {"name":"c","image":")" +
                         image + R"("}]}})" + spec + "}}");
  }
  void Patch(const kube::Resource& resource, const std::string& name, const std::string& patch,
             std::string_view sub = "") {
    const auto patched =
        client_.Patch(resource, "default", name, kube::PatchType::kStrategic, FromText(patch), sub);
    EXPECT_TRUE(patched.ok()) << patched.status().ToString();
  }
  void SetImage(const kube::Resource& resource, const std::string& image) {
    Patch(resource, "a",
          R"({"spec":{"template":{"spec":{"containers":[
        {"name":"c","image":")" +
              image + R"("}]}}}})");
  }
  void SetReplicas(const kube::Resource& resource, int replicas) {
    Patch(resource, "a", fmt::format(R"({{"spec":{{"replicas":{}}}}})", replicas), "scale");
  }

  // All work of the controllers at this time.
  void Settle() {
    int steps = 0;
    while (keeper_.Step()) {
      if (++steps > 5000) {
        ADD_FAILURE() << "no end of work";
        return;
      }
    }
  }
  void SetPhase(const Json& pod, std::string_view phase) {
    const std::string now = FormatTime(clock_.Now());
    const std::string name(FindString(pod, "metadata", "name"));
    Patch(kube::kPods, name,
          fmt::format(R"({{"status":{{"phase":"{}","conditions":[
        {{"type":"Ready","status":"{}","lastTransitionTime":"{}"}}]}}}})",
                      phase, phase == "Running" ? "True" : "False", now),
          "status");
  }
  // The only node that a daemon's pod fits, else n1.
  static std::string NodeFor(const Json& pod) {
    const Json* affinity = Find(pod, "spec", "affinity", "nodeAffinity",
                                "requiredDuringSchedulingIgnoredDuringExecution");
    if (affinity == nullptr) return "n1";
    const Json& field = affinity->at("nodeSelectorTerms").at(0).at("matchFields").at(0);
    return std::string(field.at("values").at(0).as_string());
  }
  // Ends pods that are being deleted, binds new ones and runs them.
  bool Kubelet() {
    bool did = false;
    for (const Json& pod : Pods()) {
      const std::string name(FindString(pod, "metadata", "name"));
      if (Find(pod, "metadata", "deletionTimestamp") != nullptr) {
        EXPECT_TRUE(
            client_.Delete(kube::kPods, "default", name, FromText(R"({"gracePeriodSeconds":0})"))
                .ok());
        did = true;
      } else if (FindString(pod, "status", "phase") == "Pending") {
        EXPECT_TRUE(client_.Bind("default", name, NodeFor(pod)).ok());
        SetPhase(pod, "Running");
        did = true;
      }
    }
    return did;
  }
  void Run() {
    for (int i = 0; i < 200; ++i) {
      Settle();
      lowest_ready_ = std::min(lowest_ready_, CountReady());
      if (!Kubelet()) return;
    }
    ADD_FAILURE() << "no end of changes";
  }
  void Wait(Duration time) {
    clock_.Advance(time);
    Run();
  }

  std::vector<Json> Items(const kube::Resource& resource) {
    return client_.List(resource, "default", {}).value().items;
  }
  std::vector<Json> Pods() { return Items(kube::kPods); }
  std::vector<std::string> PodNames() {
    std::vector<std::string> names;
    for (const Json& pod : Pods()) names.emplace_back(FindString(pod, "metadata", "name"));
    return names;
  }
  size_t CountImage(std::string_view image) {
    const auto pods = Pods();
    return static_cast<size_t>(std::ranges::count_if(pods, [&](const Json& pod) {
      return FindString(pod.at("spec").at("containers").at(0), "image") == image;
    }));
  }
  size_t CountReady() {
    const auto pods = Pods();
    return static_cast<size_t>(std::ranges::count_if(pods, [&](const Json& pod) {
      return FindString(pod, "status", "phase") == "Running" &&
             Find(pod, "metadata", "deletionTimestamp") == nullptr;
    }));
  }
  Json Get(const kube::Resource& resource, const std::string& name = "a") {
    return client_.Get(resource, "default", name).value_or(Json());
  }
  int64_t StatusOf(const kube::Resource& resource, std::string_view count,
                   const std::string& name = "a") {
    return NumberAt(Get(resource, name), 0, "status", count);
  }
  std::string ConditionOf(const kube::Resource& resource, std::string_view type) {
    const Json object = Get(resource);
    for (const Json& condition : ArrayAt(Find(object, "status", "conditions"))) {
      if (FindString(condition, "type") != type) continue;
      return fmt::format("{} {}", FindString(condition, "status"), FindString(condition, "reason"));
    }
    return "";
  }
  std::string RevisionOf(const kube::Resource& resource, const std::string& name = "a") {
    return std::string(FindString(Get(resource, name), "metadata", "annotations", kRevision));
  }
  Status Delete(const kube::Resource& resource, std::string_view propagation) {
    return client_.Delete(resource, "default", "a", JsonObject{{"propagationPolicy", propagation}});
  }

  ManualClock clock_{ParseTime("2026-01-02T03:04:05Z").value()};
  ApiServer server_{clock_};
  kube::Client client_{server_};
  EventLog log_{clock_, clock_.Now()};
  WorkloadKeeper keeper_{server_, clock_, log_};
  size_t lowest_ready_ = 1000;
};

TEST_F(WorkloadKeeperTest, IsIdleWithoutWorkloads) {
  Create(kube::kPods, R"({"metadata":{"name":"p"},"spec":{"containers":[
      {"name":"c","image":"i"}]}})");
  Settle();
  EXPECT_FALSE(keeper_.any());
  EXPECT_FALSE(keeper_.NextWake());
}

TEST_F(WorkloadKeeperTest, ADeploymentMakesAReplicaSetWhichMakesPods) {
  CreateApp(kDeployments, R"(,"replicas":3)");
  Run();
  ASSERT_EQ(Pods().size(), 3U);
  const auto sets = Items(kReplicaSets);
  ASSERT_EQ(sets.size(), 1U);
  const Json pod = Pods()[0];
  EXPECT_EQ(FindString(pod.at("metadata").at("ownerReferences").at(0), "uid"),
            FindString(sets[0], "metadata", "uid"));
  EXPECT_EQ(FindString(sets[0].at("metadata").at("ownerReferences").at(0), "name"), "a");
  EXPECT_FALSE(FindString(pod, "metadata", "labels", kTemplateHashLabel).empty());
  EXPECT_EQ(StatusOf(kDeployments, "availableReplicas"), 3);
  EXPECT_EQ(StatusOf(kDeployments, "updatedReplicas"), 3);
  EXPECT_EQ(StatusOf(kDeployments, "observedGeneration"), 1);
  EXPECT_EQ(ConditionOf(kDeployments, "Available"), "True MinimumReplicasAvailable");
  EXPECT_EQ(ConditionOf(kDeployments, "Progressing"), "True NewReplicaSetAvailable");
  EXPECT_EQ(RevisionOf(kDeployments), "1");
}

// Deletes the Deployment "a" just before the controllers create its ReplicaSet.
class DeletesOwner final : public kube::Transport {
 public:
  explicit DeletesOwner(ApiServer& server) : server_(server) {}
  Result<kube::ApiResponse> Do(const kube::ApiRequest& request) override {
    if (request.method == "POST" && request.path.ends_with("/replicasets")) {
      kube::Client client(server_);
      EXPECT_TRUE(client.Delete(kDeployments, "default", "a", JsonObject()).ok());
    }
    return server_.Do(request);
  }
  Result<std::unique_ptr<kube::WatchStream>> Watch(const kube::ApiRequest& request) override {
    return server_.Watch(request);
  }

 private:
  ApiServer& server_;
};

TEST_F(WorkloadKeeperTest, NothingIsMadeForAnOwnerThatIsGone) {
  DeletesOwner api(server_);
  WorkloadKeeper keeper(api, clock_, log_);
  CreateApp(kDeployments, R"(,"replicas":3)");
  while (keeper.Step()) {
  }
  EXPECT_TRUE(Items(kDeployments).empty());
  EXPECT_TRUE(Items(kReplicaSets).empty());
  EXPECT_TRUE(Pods().empty());
}

TEST_F(WorkloadKeeperTest, TheScaleSubresourceChangesTheNumberOfPods) {
  CreateApp(kDeployments, R"(,"replicas":1)");
  Run();
  SetReplicas(kDeployments, 4);
  Run();
  EXPECT_EQ(Pods().size(), 4U);
  SetReplicas(kDeployments, 0);
  Run();
  EXPECT_TRUE(Pods().empty());
  EXPECT_EQ(StatusOf(kDeployments, "replicas"), 0);
  kube::ApiRequest request;
  request.method = "GET";
  request.path = "/apis/apps/v1/namespaces/default/deployments/a/scale";
  const Json scale = client_.Send(request).value();
  EXPECT_EQ(FindString(scale, "status", "selector"), "app=a");
}

TEST_F(WorkloadKeeperTest, ARollingUpdateKeepsEnoughPodsAvailable) {
  CreateApp(kDeployments, R"(,"replicas":4,"strategy":{"rollingUpdate":{
      "maxSurge":1,"maxUnavailable":1}})");
  Run();
  lowest_ready_ = 1000;
  SetImage(kDeployments, "i:2");
  Run();
  EXPECT_EQ(CountImage("i:2"), 4U);
  EXPECT_EQ(Pods().size(), 4U);
  EXPECT_EQ(lowest_ready_, 3U);
  EXPECT_EQ(Items(kReplicaSets).size(), 2U);
  EXPECT_EQ(RevisionOf(kDeployments), "2");
  // Back to the first template, as `kubectl rollout undo` does.
  Json before = *Find(Items(kReplicaSets)[0], "spec", "template");
  const Json other = *Find(Items(kReplicaSets)[1], "spec", "template");
  if (WriteJson(before).find("i:1") == std::string::npos) before = other;
  JsonObject& metadata = MakeObject(before, "metadata");
  metadata["creationTimestamp"] = nullptr;
  MakeObject(before, "metadata", "labels").erase(kTemplateHashLabel);
  const Json patch =
      JsonArray{JsonObject{{"op", "replace"}, {"path", "/spec/template"}, {"value", before}}};
  ASSERT_TRUE(client_.Patch(kDeployments, "default", "a", kube::PatchType::kJson, patch).ok());
  Run();
  EXPECT_EQ(CountImage("i:1"), 4U);
  EXPECT_EQ(Items(kReplicaSets).size(), 2U);
  EXPECT_EQ(RevisionOf(kDeployments), "3");
}

TEST_F(WorkloadKeeperTest, RecreateStopsOldPodsBeforeItStartsNewOnes) {
  CreateApp(kDeployments, R"(,"replicas":2,"strategy":{"type":"Recreate"})");
  Run();
  SetImage(kDeployments, "i:2");
  Settle();
  EXPECT_EQ(CountImage("i:2"), 0U);
  Run();
  EXPECT_EQ(CountImage("i:2"), 2U);
  EXPECT_EQ(Pods().size(), 2U);
}

TEST_F(WorkloadKeeperTest, APausedDeploymentScalesButDoesNotRoll) {
  CreateApp(kDeployments, R"(,"replicas":1)");
  Run();
  Patch(kDeployments, "a", R"({"spec":{"paused":true}})");
  SetImage(kDeployments, "i:2");
  SetReplicas(kDeployments, 3);
  Run();
  EXPECT_EQ(CountImage("i:1"), 3U);
  Patch(kDeployments, "a", R"({"spec":{"paused":false}})");
  Run();
  EXPECT_EQ(CountImage("i:2"), 3U);
}

TEST_F(WorkloadKeeperTest, ARolloutThatStandsStillMissesItsDeadline) {
  CreateApp(kDeployments, R"(,"progressDeadlineSeconds":60)");
  Settle();  // no kubelet: the pod stays pending
  EXPECT_EQ(ConditionOf(kDeployments, "Progressing"), "True ReplicaSetUpdated");
  ASSERT_TRUE(keeper_.NextWake());
  clock_.Advance(seconds(62));
  Settle();
  EXPECT_EQ(ConditionOf(kDeployments, "Progressing"), "False ProgressDeadlineExceeded");
  Run();
  EXPECT_EQ(ConditionOf(kDeployments, "Progressing"), "True NewReplicaSetAvailable");
}

TEST_F(WorkloadKeeperTest, OldReplicaSetsBeyondTheLimitGo) {
  CreateApp(kDeployments, R"(,"revisionHistoryLimit":1)");
  Run();
  for (int i = 2; i < 6; ++i) {
    SetImage(kDeployments, fmt::format("i:{}", i));
    Run();
  }
  EXPECT_EQ(Items(kReplicaSets).size(), 2U);
}

TEST_F(WorkloadKeeperTest, AReplicaSetReplacesPodsThatAreGoneOrHaveFailed) {
  CreateApp(kReplicaSets, R"(,"replicas":2)");
  Run();
  const std::string first = PodNames()[0];
  EXPECT_TRUE(client_.Delete(kube::kPods, "default", first).ok());
  Run();
  EXPECT_EQ(CountReady(), 2U);
  SetPhase(Pods()[0], "Failed");
  Settle();
  EXPECT_EQ(Pods().size(), 2U);  // it waits a second after a failure
  ASSERT_TRUE(keeper_.NextWake());
  Wait(*keeper_.NextWake() - clock_.Now());
  EXPECT_EQ(CountReady(), 2U);
  EXPECT_EQ(StatusOf(kReplicaSets, "readyReplicas"), 2);
}

TEST_F(WorkloadKeeperTest, PodsAreAvailableAfterMinReadySeconds) {
  CreateApp(kReplicaSets, R"(,"minReadySeconds":20)");
  Run();
  EXPECT_EQ(StatusOf(kReplicaSets, "readyReplicas"), 1);
  EXPECT_EQ(StatusOf(kReplicaSets, "availableReplicas"), 0);
  Wait(seconds(20));
  EXPECT_EQ(StatusOf(kReplicaSets, "availableReplicas"), 1);
}

TEST_F(WorkloadKeeperTest, AdoptsAndReleasesPodsByTheirLabels) {
  Create(kube::kPods, R"({"metadata":{"name":"p","labels":{"app":"a"}},"spec":{"containers":[
      {"name":"c","image":"i"}]}})");
  CreateApp(kReplicaSets, R"(,"replicas":2)");
  Run();
  ASSERT_EQ(Pods().size(), 2U);
  EXPECT_NE(Find(Get(kube::kPods, "p"), "metadata", "ownerReferences"), nullptr);
  Patch(kube::kPods, "p", R"({"metadata":{"labels":{"app":"b"}}})");
  Run();
  EXPECT_EQ(Pods().size(), 3U);
  const JsonArray& owners = ArrayAt(Find(Get(kube::kPods, "p"), "metadata", "ownerReferences"));
  EXPECT_TRUE(owners.empty());
}

TEST_F(WorkloadKeeperTest, DeletionCascadesAsAsked) {
  CreateApp(kDeployments, R"(,"replicas":2)");
  Run();
  ASSERT_TRUE(Delete(kDeployments, "Orphan").ok());
  Run();
  EXPECT_EQ(Pods().size(), 2U);
  EXPECT_EQ(Items(kReplicaSets).size(), 1U);
  CreateApp(kDeployments, R"(,"replicas":2)");  // adopts the ReplicaSet
  Run();
  EXPECT_EQ(Pods().size(), 2U);
  EXPECT_EQ(Items(kReplicaSets).size(), 1U);
  EXPECT_EQ(StatusOf(kDeployments, "readyReplicas"), 2);

  ASSERT_TRUE(Delete(kDeployments, "Foreground").ok());
  Settle();
  EXPECT_FALSE(Get(kDeployments).is_null());  // waits for its pods, which have a grace period
  EXPECT_EQ(Pods().size(), 2U);
  Run();
  EXPECT_TRUE(Get(kDeployments).is_null());
  EXPECT_TRUE(Pods().empty());

  CreateApp(kDeployments, R"(,"replicas":2)");
  Run();
  ASSERT_TRUE(Delete(kDeployments, "Background").ok());
  Run();
  EXPECT_TRUE(Pods().empty());
  EXPECT_TRUE(Items(kReplicaSets).empty());
}

TEST_F(WorkloadKeeperTest, AStatefulSetStartsInOrderAndShrinksFromTheEnd) {
  CreateApp(kStatefulSets, R"(,"replicas":3,"serviceName":"s")");
  Settle();
  EXPECT_EQ(PodNames(), (std::vector<std::string>{"a-0"}));
  Run();
  EXPECT_EQ(PodNames(), (std::vector<std::string>{"a-0", "a-1", "a-2"}));
  EXPECT_EQ(StatusOf(kStatefulSets, "readyReplicas"), 3);
  EXPECT_EQ(StatusOf(kStatefulSets, "updatedReplicas"), 3);
  SetReplicas(kStatefulSets, 1);
  Settle();
  EXPECT_NE(Find(Get(kube::kPods, "a-2"), "metadata", "deletionTimestamp"), nullptr);
  EXPECT_EQ(Find(Get(kube::kPods, "a-1"), "metadata", "deletionTimestamp"), nullptr);
  Run();
  EXPECT_EQ(PodNames(), (std::vector<std::string>{"a-0"}));
}

TEST_F(WorkloadKeeperTest, AStatefulSetRollsFromTheEndDownToThePartition) {
  CreateApp(kStatefulSets, R"(,"replicas":3,"serviceName":"s")");
  Run();
  Patch(kStatefulSets, "a", R"({"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}})");
  SetImage(kStatefulSets, "i:2");
  lowest_ready_ = 1000;
  Run();
  EXPECT_EQ(CountImage("i:2"), 1U);
  EXPECT_EQ(FindString(Get(kube::kPods, "a-2").at("spec").at("containers").at(0), "image"), "i:2");
  Patch(kStatefulSets, "a", R"({"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}})");
  Run();
  EXPECT_EQ(CountImage("i:2"), 3U);
  EXPECT_EQ(lowest_ready_, 2U);
  const Json set = Get(kStatefulSets);
  EXPECT_EQ(FindString(set, "status", "currentRevision"),
            FindString(set, "status", "updateRevision"));
  EXPECT_EQ(Items(kControllerRevisions).size(), 2U);
}

TEST_F(WorkloadKeeperTest, ADaemonSetFollowsTheNodes) {
  CreateApp(kDaemonSets, "");
  Run();
  EXPECT_EQ(StatusOf(kDaemonSets, "desiredNumberScheduled"), 1);
  AddNode("n2");
  Run();
  EXPECT_EQ(Pods().size(), 2U);
  EXPECT_EQ(StatusOf(kDaemonSets, "desiredNumberScheduled"), 2);
  EXPECT_TRUE(client_.Delete(kube::kNodes, "", "n2").ok());
  Settle();
  EXPECT_EQ(StatusOf(kDaemonSets, "desiredNumberScheduled"), 1);
}

TEST_F(WorkloadKeeperTest, ADaemonSetKeepsToItsNodeSelectorAndTaints) {
  AddNode("gpu", R"({"gpu":"yes"})");
  CreateApp(kDaemonSets, "");
  Patch(kDaemonSets, "a", R"({"spec":{"template":{"spec":{"nodeSelector":{"gpu":"yes"}}}}})");
  Settle();
  ASSERT_EQ(Pods().size(), 1U);
  const Json pod = Pods()[0];
  EXPECT_NE(WriteJson(pod.at("spec").at("affinity")).find(R"("values":["gpu"])"),
            std::string::npos);
  const auto tainted =
      client_.Patch(kube::kNodes, "", "gpu", kube::PatchType::kMerge,
                    FromText(R"({"spec":{"taints":[{"key":"no","effect":"NoSchedule"}]}})"));
  ASSERT_TRUE(tainted.ok());
  Settle();
  EXPECT_TRUE(Pods().empty());
}

TEST_F(WorkloadKeeperTest, ADaemonSetUpdatesItsPods) {
  CreateApp(kDaemonSets, "");
  Run();
  SetImage(kDaemonSets, "i:2");
  Run();
  EXPECT_EQ(CountImage("i:2"), 1U);
  EXPECT_EQ(StatusOf(kDaemonSets, "updatedNumberScheduled"), 1);
  EXPECT_EQ(Items(kControllerRevisions).size(), 2U);
}

class JobTest : public WorkloadKeeperTest {
 protected:
  void CreateJob(const std::string& spec) {
    Create(kJobs, R"({"metadata":{"name":"a"},"spec":{"template":{"spec":{"restartPolicy":"Never",
        "containers":[{"name":"c","image":"i"}]}})" +
                      spec + "}}");
    Run();
  }
  // Ends the first pod that runs.
  void End(std::string_view phase) {
    for (const Json& pod : Pods()) {
      if (FindString(pod, "status", "phase") != "Running") continue;
      SetPhase(pod, phase);
      return Run();
    }
    ADD_FAILURE() << "no pod runs";
  }
};

TEST_F(JobTest, CompletesOnceItsPodHasSucceeded) {
  CreateJob("");
  ASSERT_EQ(Pods().size(), 1U);
  EXPECT_EQ(FindString(Pods()[0], "metadata", "annotations", "sim.nos.nebuly.com/run-seconds"),
            "60");
  EXPECT_EQ(FindString(Pods()[0], "metadata", "labels", "job-name"), "a");
  EXPECT_EQ(StatusOf(kJobs, "active"), 1);
  EXPECT_EQ(StatusOf(kJobs, "ready"), 1);
  End("Succeeded");
  EXPECT_EQ(StatusOf(kJobs, "succeeded"), 1);
  EXPECT_EQ(StatusOf(kJobs, "active"), 0);
  EXPECT_EQ(ConditionOf(kJobs, "Complete"), "True CompletionsReached");
  EXPECT_FALSE(FindString(Get(kJobs), "status", "completionTime").empty());
}

TEST_F(JobTest, RunsAtMostAsManyPodsAsMayRun) {
  CreateJob(R"(,"completions":3,"parallelism":2)");
  EXPECT_EQ(Pods().size(), 2U);
  End("Succeeded");
  EXPECT_EQ(CountReady(), 2U);
  // A pod that has succeeded counts after it is deleted.
  for (const Json& pod : Pods()) {
    if (FindString(pod, "status", "phase") != "Succeeded") continue;
    EXPECT_TRUE(client_.Delete(kube::kPods, "default", FindString(pod, "metadata", "name")).ok());
  }
  End("Succeeded");
  EXPECT_EQ(CountReady(), 1U);
  End("Succeeded");
  EXPECT_EQ(StatusOf(kJobs, "succeeded"), 3);
  EXPECT_EQ(ConditionOf(kJobs, "Complete"), "True CompletionsReached");
}

TEST_F(JobTest, TriesAgainAfterAPauseAndThenFails) {
  CreateJob(R"(,"backoffLimit":1)");
  End("Failed");
  EXPECT_EQ(CountReady(), 0U);
  Wait(seconds(10));
  EXPECT_EQ(CountReady(), 1U);
  End("Failed");
  EXPECT_EQ(StatusOf(kJobs, "failed"), 2);
  EXPECT_EQ(ConditionOf(kJobs, "Failed"), "True BackoffLimitExceeded");
  Wait(seconds(60));
  EXPECT_EQ(CountReady(), 0U);
}

TEST_F(JobTest, AnIndexedJobHasOnePodForEachIndex) {
  CreateJob(R"(,"completions":3,"parallelism":3,"completionMode":"Indexed")");
  std::set<std::string> indexes;
  for (const Json& pod : Pods()) {
    indexes.emplace(FindString(pod, "metadata", "annotations", kCompletionIndex));
  }
  EXPECT_EQ(indexes, (std::set<std::string>{"0", "1", "2"}));
  for (int i = 0; i < 3; ++i) End("Succeeded");
  EXPECT_EQ(FindString(Get(kJobs), "status", "completedIndexes"), "0-2");
  EXPECT_EQ(ConditionOf(kJobs, "Complete"), "True CompletionsReached");
}

TEST_F(JobTest, ASuspendedJobHasNoPods) {
  CreateJob(R"(,"suspend":true)");
  EXPECT_TRUE(Pods().empty());
  EXPECT_EQ(ConditionOf(kJobs, "Suspended"), "True JobSuspended");
  Patch(kJobs, "a", R"({"spec":{"suspend":false}})");
  Run();
  EXPECT_EQ(CountReady(), 1U);
  Patch(kJobs, "a", R"({"spec":{"suspend":true}})");
  Run();
  EXPECT_TRUE(Pods().empty());
  EXPECT_EQ(StatusOf(kJobs, "failed"), 0);
}

TEST_F(JobTest, EndsAtItsDeadlineAndGoesAfterItsTime) {
  CreateJob(R"(,"activeDeadlineSeconds":30,"ttlSecondsAfterFinished":100)");
  Wait(seconds(30));
  EXPECT_EQ(ConditionOf(kJobs, "Failed"), "True DeadlineExceeded");
  EXPECT_TRUE(Pods().empty());
  Wait(seconds(100));
  EXPECT_TRUE(Get(kJobs).is_null());
}

TEST_F(JobTest, ADeletionWithoutAWishLeavesThePods) {
  CreateJob("");
  EXPECT_TRUE(client_.Delete(kJobs, "default", "a").ok());
  Run();
  EXPECT_EQ(Pods().size(), 1U);
}

TEST_F(WorkloadKeeperTest, RefusedPodsAreReportedAndTriedAgain) {
  CreateApp(kReplicaSets, "");
  Patch(kReplicaSets, "a", R"({"spec":{"template":{"spec":{"priorityClassName":"none"}}}})");
  Run();
  EXPECT_TRUE(Pods().empty());
  const auto events = Items(kube::kEvents);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(FindString(events[0], "reason"), "FailedCreate");
  EXPECT_NE(FindString(events[0], "message").find("no PriorityClass with name none"),
            std::string::npos);
  Patch(kReplicaSets, "a", R"({"spec":{"template":{"spec":{"priorityClassName":null}}}})");
  Run();
  EXPECT_EQ(Pods().size(), 1U);
}

// Any order of changes and failures ends in the state that the Deployment describes.
TEST_F(WorkloadKeeperTest, EveryOrderOfChangesEndsAsDescribed) {
  CreateApp(kDeployments, R"(,"replicas":2)");
  Random random(7);
  int64_t wanted = 2;
  std::string image = "i:1";
  for (int i = 0; i < 150; ++i) {
    const auto pods = Pods();
    switch (random.Below(6)) {
      case 0:
        wanted = static_cast<int64_t>(random.Below(6));
        SetReplicas(kDeployments, static_cast<int>(wanted));
        break;
      case 1:
        image = fmt::format("i:{}", random.Below(4));
        SetImage(kDeployments, image);
        break;
      case 2:
        if (!pods.empty()) SetPhase(pods[random.Below(pods.size())], "Failed");
        break;
      case 3:
        if (!pods.empty()) {
          (void)client_.Delete(kube::kPods, "default",
                               FindString(pods[random.Below(pods.size())], "metadata", "name"));
        }
        break;
      case 4:
        Kubelet();
        break;
      default:
        for (int step = 0; step < 3; ++step) keeper_.Step();
    }
    if (i % 10 != 9) continue;
    for (int minute = 0; minute < 3; ++minute) Wait(seconds(60));
    EXPECT_EQ(CountReady(), static_cast<size_t>(wanted));
    EXPECT_EQ(StatusOf(kDeployments, "availableReplicas"), wanted);
    EXPECT_EQ(StatusOf(kDeployments, "updatedReplicas"), wanted);
    for (const Json& pod : Pods()) {
      if (FindString(pod, "status", "phase") != "Running") continue;
      EXPECT_EQ(FindString(pod.at("spec").at("containers").at(0), "image"), image);
    }
    for (const Json& pod : Pods()) {  // as the pod keeper does after a while
      if (FindString(pod, "status", "phase") != "Failed") continue;
      (void)client_.Delete(kube::kPods, "default", FindString(pod, "metadata", "name"));
    }
  }
}

}  // namespace
}  // namespace nos::sim
