// Claims of several quotas beside each other, and what others do meanwhile.
#include "controllers/scheduler_quota_fixture_test.h"
#include "controllers/testing/slow_watches.h"

namespace nos::controllers {
namespace {

class SchedulerClaimsTest : public QuotaFixture {
 protected:
  void Group(const std::string& ns, const std::string& name, int least) {
    api_.Put({{"kind", "PodGroup"},
              {"metadata", {{"namespace", ns}, {"name", name}}},
              {"spec", {{"minMember", least}}}});
  }
  void Pods(const std::string& ns, const std::vector<std::string>& names) {
    for (const std::string& name : names) Pod(ns, name);
  }
  void On(const std::string& node, const std::string& ns, const std::string& name,
          const std::string& cpu, int priority = 0) {
    PodWith(ns, name, {{"cpu", cpu}}, priority, {}, {{"nodeSelector", {{"name", node}}}});
  }
  void Node(const std::string& name, const std::string& cpu) {
    NodeWith(name, {{"cpu", cpu}}, {{"name", name}});
  }
  std::string NomineeOf(const std::string& key) {
    return std::string(FindString(*api_.Find("pods", key), "status", "nominatedNodeName"));
  }
  void RunSteps(int n = 50) {
    for (int i = 0; i < n; ++i) (void)runner_->Step(clock_);
  }
  void RunFor(Duration time) {
    for (const Time end = clock_.Now() + time; clock_.Now() < end;) {
      Run();
      clock_.Advance(seconds(10));
    }
    Run();
  }
};

// One lacks room and its quota, the other its quota alone.
TEST_F(SchedulerClaimsTest, TwoGuaranteesDoNotWaitForEachOther) {
  Node("na", "4");
  Node("nb", "100");
  Quota("a", {{"cpu", "4"}});
  Quota("b", {{"cpu", "4"}});
  Quota("c", {{"cpu", "0"}});
  for (const char* name : {"p1", "p2", "p3", "p4"}) On("na", "c", name, "1");
  for (const char* name : {"r1", "r2", "r3", "r4"}) On("nb", "c", name, "1");
  Run();
  ASSERT_EQ(Count({"c/p1", "c/p2", "c/p3", "c/p4"}, "na"), 4);
  ASSERT_EQ(Count({"c/r1", "c/r2", "c/r3", "c/r4"}, "nb"), 4);
  LetPodsEndSlowly();
  On("na", "a", "q", "4");
  Run();
  EXPECT_EQ(Count({"c/p1", "c/p2", "c/p3", "c/p4"}, "ending"), 4);
  On("nb", "b", "q", "4");
  Run();
  for (const char* name : {"p1", "p2", "p3", "p4", "r1", "r2", "r3", "r4"}) {
    if (At(std::string("c/") + name) == "ending") api_.Remove("pods", std::string("c/") + name);
  }
  RunFor(seconds(1800));
  for (const char* name : {"p1", "p2", "p3", "p4", "r1", "r2", "r3", "r4"}) {
    if (At(std::string("c/") + name) == "ending") api_.Remove("pods", std::string("c/") + name);
  }
  RunFor(seconds(1800));
  EXPECT_EQ(At("a/q"), "na") << WhyOf("a/q") << " nominee " << NomineeOf("a/q");
  EXPECT_EQ(At("b/q"), "nb") << WhyOf("b/q") << " nominee " << NomineeOf("b/q");
}

TEST_F(SchedulerClaimsTest, NorDoTheyUnderANewLeader) {
  Node("na", "4");
  Node("nb", "100");
  Quota("a", {{"cpu", "4"}});
  Quota("b", {{"cpu", "4"}});
  Quota("c", {{"cpu", "0"}});
  for (const char* name : {"p1", "p2", "p3", "p4"}) On("na", "c", name, "1");
  for (const char* name : {"r1", "r2", "r3", "r4"}) On("nb", "c", name, "1");
  Run();
  LetPodsEndSlowly();
  On("na", "a", "q", "4");
  Run();
  On("nb", "b", "q", "4");
  Run();
  for (const char* name : {"p1", "p2", "p3", "p4"}) api_.Remove("pods", std::string("c/") + name);
  RunFor(seconds(1800));
  Restart();
  RunFor(seconds(1800));
  EXPECT_EQ(At("a/q"), "na") << WhyOf("a/q") << " nominee " << NomineeOf("a/q");
  // a third pod of a, within nobody's min, and strangers: does the room stay empty?
}

// What ends counts in limits for as long as it runs.
TEST_F(SchedulerClaimsTest, MaxOfAParentIsKeptWhileVictimsEnd) {
  Node("na", "10");
  Quota("p", {{"cpu", "10"}}, {{"cpu", "10"}});
  Quota("c1", {{"cpu", "5"}}, {}, "p/quota");
  Quota("c2", {{"cpu", "5"}}, {}, "p/quota");
  for (int i = 0; i < 10; ++i) Pod("c2", "p" + std::to_string(i));
  Run();
  Node("nb", "10");
  LetPodsEndSlowly();
  Pod("c1", "q", "4");
  RunFor(seconds(60));
  int runs = 0;
  for (int i = 0; i < 10; ++i) {
    const std::string at = At("c2/p" + std::to_string(i));
    runs += at != "gone" && at != "" ? 1 : 0;
  }
  runs += At("c1/q") != "" ? 4 : 0;
  EXPECT_LE(runs, 10) << "max of p is 10; c1/q at " << At("c1/q");
}

// The second claim of a quota, which min does not cover beside the first, is no guarantee.
TEST_F(SchedulerClaimsTest, AGuaranteeDoesNotWaitForAShareOfOthers) {
  Node("na", "4");
  Node("nb", "4");
  Node("nc", "8");
  Quota("a", {{"cpu", "4"}});
  Quota("b", {{"cpu", "0"}});
  Quota("c", {{"cpu", "8"}});
  for (const char* name : {"p1", "p2", "p3", "p4"}) On("na", "b", name, "1");
  for (const char* name : {"r1", "r2", "r3", "r4"}) On("nb", "b", name, "1");
  Run();
  LetPodsEndSlowly();
  On("na", "a", "q1", "4");
  Run();
  ASSERT_EQ(Count({"b/p1", "b/p2", "b/p3", "b/p4"}, "ending"), 4);
  On("nb", "a", "q2", "2");
  Run();
  ASSERT_EQ(Count({"b/r1", "b/r2", "b/r3", "b/r4"}, "ending"), 2);
  ASSERT_EQ(NomineeOf("a/q2"), "nb");
  On("nc", "c", "q", "4");
  Run();
  EXPECT_EQ(At("c/q"), "nc") << WhyOf("c/q");
  On("nc", "c", "q8", "4");
  RunFor(seconds(3600));
  EXPECT_EQ(At("c/q8"), "nc") << WhyOf("c/q8") << " nominee " << NomineeOf("c/q8") << " ending r "
                              << Count({"b/r1", "b/r2", "b/r3", "b/r4"}, "ending");
}

TEST_F(SchedulerClaimsTest, APromiseOutlastsAMoreImportantOneIfThereIsRoomForBoth) {
  NodeWith("n", {{"cpu", "4"}, {"example.com/x", "1"}});
  Quota("a", {{"cpu", "1"}});
  Quota("b", {{"cpu", "1"}});
  Quota("c", {{"cpu", "2"}});
  for (const char* name : {"p1", "p2"}) Pod("c", name);
  PodWith("c", "p3", {{"cpu", "1"}, {"example.com/x", "1"}});
  Pod("c", "p4");
  Run();
  ASSERT_EQ(Count({"c/p1", "c/p2", "c/p3", "c/p4"}, "n"), 4);
  LetPodsEndSlowly();
  Pod("a", "q");
  RunSteps();
  ASSERT_EQ(NomineeOf("a/q"), "n");
  ASSERT_EQ(At("c/p4"), "ending");
  PodWith("b", "q", {{"cpu", "1"}, {"example.com/x", "1"}}, 10);
  RunSteps();
  ASSERT_EQ(At("c/p3"), "ending");
  EXPECT_EQ(NomineeOf("a/q"), "n") << "there is room for both";
  Pod("other", "stranger", "1", 1000);
  api_.Remove("pods", "c/p4");
  api_.Remove("pods", "c/p3");
  RunSteps();
  EXPECT_EQ(At("other/stranger"), "");
  RunFor(seconds(60));
}

TEST_F(SchedulerClaimsTest, NobodyKeepsWhatNobodyLends) {
  Node("n", "100");
  Quota("a", {{"cpu", "4"}});
  Quota("b", {{"cpu", "4"}});
  Quota("c", {{"cpu", "0"}});
  Pods("c", {"p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8"});
  Run();
  LetPodsEndSlowly();
  Pod("a", "q", "4");
  Run();
  ASSERT_EQ(At("a/q"), "n");
  Pod("b", "q", "4");
  Run();
  ASSERT_EQ(At("b/q"), "n");
  const std::vector<std::string> all = {"c/p1", "c/p2", "c/p3", "c/p4",
                                        "c/p5", "c/p6", "c/p7", "c/p8"};
  EXPECT_EQ(Count(all, "ending"), 8)
      << "min of all is 8, a and b use them; without a's in flight all go";
}

// Two releases of the scheduler, of which each has pods of its own; both keep to quotas.
TEST_F(SchedulerClaimsTest, WhatWasSetFreeForAPodOfAnotherSchedulerIsKept) {
  SchedulerProfile profile{"second", &framework_};
  Scheduler second(config_, std::vector{profile}, gpu::Catalogue::Builtin());
  RunnerOptions options;
  options.watch_around = true;
  testing::SlowWatches watches{api_};
  Runner other(second, watches, options);
  const auto run = [&] {
    for (int i = 0; i < 1000; ++i) {
      const bool b = other.Step(clock_), a = runner_->Step(clock_);
      if (!a && !b) return;
    }
  };
  int made = 0;
  std::vector<std::string> keys;
  const auto borrower = [&] {
    const std::string name = "p" + std::to_string(made++);
    PodWith("c", name, {{"cpu", "1"}}, 0, {}, {{"schedulerName", "second"}});
    keys.push_back("c/" + name);
  };
  Node("n", "4");
  Quota("a", {{"cpu", "1"}});
  Quota("c", {{"cpu", "3"}});
  for (int i = 0; i < 8; ++i) borrower();
  run();
  LetPodsEndSlowly();
  Pod("a", "q");
  int evictions = 0;
  for (int i = 0; i < 120 && At("a/q") == ""; ++i) {
    run();
    clock_.Advance(seconds(5));
    for (const std::string& key : std::vector<std::string>(keys)) {
      if (At(key) != "ending") continue;
      ++evictions;
      api_.Remove("pods", key);
      borrower();
    }
  }
  EXPECT_EQ(At("a/q"), "n") << WhyOf("a/q");
  EXPECT_LE(evictions, 1);
}

TEST_F(SchedulerClaimsTest, WhoIsNotEvictedIsNotTold) {
  Node("n", "4");
  Quota("a", {{"cpu", "2"}});
  Quota("b", {{"cpu", "2"}});
  Pods("b", {"p1", "p2", "p3", "p4"});
  Run();
  api_.intercept = [](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    if (request.method == "PATCH" && request.path.ends_with("a/pods/q/status") &&
        WriteJson(request.body).find("nominatedNodeName") != std::string::npos) {
      answer = Result<kube::ApiResponse>(kube::ApiResponse{500, JsonObject{}, {}, {}});
    }
    return answer;
  };
  Pod("a", "q");
  RunFor(seconds(120));
  EXPECT_EQ(Count({"b/p1", "b/p2", "b/p3", "b/p4"}, "n"), 4);
  int told = 0;
  for (const auto& write : api_.writes) {
    if (write.path.find("/events") != std::string::npos &&
        WriteJson(write.body).find("Preempted by") != std::string::npos) {
      ++told;
    }
  }
  EXPECT_EQ(told, 0) << WhyOf("a/q");
}

TEST_F(SchedulerClaimsTest, PodsOfDaemonSetsLoseNothing) {
  Node("n", "4");
  Quota("a", {{"cpu", "3"}});
  Quota("b", {{"cpu", "1"}});
  Pods("a", {"p1", "p2", "p3"});
  Run();
  Pod("a", "ds");
  Json ds = *api_.Find("pods", "a/ds");
  MakeObject(ds, "metadata")["ownerReferences"] = JsonArray{{{"apiVersion", "apps/v1"},
                                                             {"kind", "DaemonSet"},
                                                             {"name", "agent"},
                                                             {"uid", "1"},
                                                             {"controller", true}}};
  api_.Put(ds);
  Run();
  ASSERT_EQ(At("a/ds"), "n");
  Pod("b", "q");
  Run();
  EXPECT_EQ(At("a/ds"), "n");
}

// Somebody else has evicted one of it.
TEST_F(SchedulerClaimsTest, AGangWithinMinLosesNothingToAnotherQuota) {
  Node("n1", "4");
  Node("n2", "1");
  Quota("a", {{"cpu", "4"}});
  Quota("b", {{"cpu", "1"}});
  Quota("c", {{"cpu", "0"}});
  Group("a", "g", 2);
  for (const char* name : {"g1", "g2"}) {
    PodWith("a", name, {{"cpu", "1"}}, 0, {{"scheduling.x-k8s.io/pod-group", "g"}},
            {{"nodeSelector", {{"name", "n1"}}}});
  }
  Run();
  On("n2", "c", "p", "1");
  Run();
  ASSERT_EQ(Count({"a/g1", "a/g2"}, "n1"), 2);
  ASSERT_EQ(At("c/p"), "n2");
  LetPodsEndSlowly();
  Json pod = *api_.Find("pods", "a/g1");
  MakeObject(pod, "metadata")["deletionTimestamp"] = "2027-01-15T08:00:00Z";
  MakeObject(pod, "status")["conditions"] = JsonArray{
      {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "PreemptionByScheduler"}}};
  api_.Put(pod);
  Run();
  On("n2", "b", "q", "1");
  Run();
  EXPECT_EQ(At("c/p"), "ending");
  EXPECT_EQ(At("a/g2"), "n1") << "min of a covers it";
}

// And where the claimant needs nobody to go.
TEST_F(SchedulerClaimsTest, AGangWithinMinLosesNothingForNothing) {
  Node("n1", "4");
  Node("n2", "1");
  Quota("a", {{"cpu", "4"}});
  Quota("b", {{"cpu", "1"}});
  Group("a", "g", 2);
  for (const char* name : {"g1", "g2"}) {
    PodWith("a", name, {{"cpu", "1"}}, 0, {{"scheduling.x-k8s.io/pod-group", "g"}},
            {{"nodeSelector", {{"name", "n1"}}}});
  }
  Run();
  On("n2", "b", "old", "1");
  Run();
  LetPodsEndSlowly();
  for (const char* key : {"a/g1", "b/old"}) {
    Json pod = *api_.Find("pods", key);
    MakeObject(pod, "metadata")["deletionTimestamp"] = "2027-01-15T08:00:00Z";
    MakeObject(pod, "status")["conditions"] = JsonArray{
        {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "PreemptionByScheduler"}}};
    api_.Put(pod);
  }
  Run();
  On("n2", "b", "q", "1");
  Run();
  EXPECT_EQ(At("a/g2"), "n1") << "min of a covers it, and b/q needs nobody: " << WhyOf("b/q");
}

TEST_F(SchedulerClaimsTest, NobodyGoesForAGangWhileThePartitionerMayCut) {
  framework_ = scheduling::Framework::Default(scheduling::GpusCut::kElsewhere);
  const auto cutting = scheduling::Framework::Default(scheduling::GpusCut::kHere);
  RestartWith(&cutting);
  GpuNode("g", 3);
  Quota("a", {{"nos.nebuly.com/gpu-memory", "0"}});
  Quota("b", {{"nos.nebuly.com/gpu-memory", "120"}});
  Tell("g", {{"nos.nebuly.com/status-layout-0", "3g.20gb@0:free,3g.20gb@4:free"}},
       {{"nvidia.com/mig-3g.20gb", "2"}});
  PodOf("a", "p1", "nvidia.com/mig-3g.20gb", "1");
  PodOf("a", "p2", "nvidia.com/mig-3g.20gb", "1");
  Run();
  Tell("g", {{"nos.nebuly.com/status-layout-0", "3g.20gb@0:used,3g.20gb@4:used"},
             {"nos.nebuly.com/status-holders-0", "3g.20gb@0=a/p1,3g.20gb@4=a/p2"}});
  Run();
  ASSERT_EQ(Count({"a/p1", "a/p2"}, "g"), 2);
  Group("b", "g", 2);
  for (const char* name : {"g1", "g2"}) {
    PodOf("b", name, "nvidia.com/mig-3g.20gb", "1", 0, {{"scheduling.x-k8s.io/pod-group", "g"}});
  }
  Run();
  EXPECT_EQ(Count({"a/p1", "a/p2"}, "g"), 2)
      << "GPUs 1 and 2 are free to be cut: " << WhyOf("b/g1");
}

TEST_F(SchedulerClaimsTest, NobodyGoesForAGangWhileAFreeGpuIsBeingCut) {
  GpuNode("g", 2);
  Quota("a", {{"nos.nebuly.com/gpu-memory", "0"}});
  Quota("b", {{"nos.nebuly.com/gpu-memory", "80"}});
  PodOf("a", "p", "nvidia.com/mig-7g.40gb", "1");
  Run();
  Tell("g",
       {{"nos.nebuly.com/status-layout-0", Spec("g") + ":free"},
        {"nos.nebuly.com/status-partitioning-plan", Plan("g")}},
       {{"nvidia.com/mig-7g.40gb", "1"}});
  Run();
  ASSERT_EQ(At("a/p"), "g");
  Tell("g", {{"nos.nebuly.com/status-layout-0", "7g.40gb@0:used"},
             {"nos.nebuly.com/status-holders-0", "7g.40gb@0=a/p"},
             {"nos.nebuly.com/status-layout-1", ""},
             {"nos.nebuly.com/spec-layout-1", "1g.5gb@0"},
             {"nos.nebuly.com/spec-partitioning-plan", "77"}});
  Group("b", "g", 2);
  for (const char* name : {"g1", "g2"}) {
    PodOf("b", name, "nvidia.com/mig-3g.20gb", "1", 0, {{"scheduling.x-k8s.io/pod-group", "g"}});
  }
  Run();
  EXPECT_EQ(At("a/p"), "g") << WhyOf("b/g1");
}

TEST_F(SchedulerClaimsTest, ASilentAgentCostsAGangsClaimOneVictim) {
  GpuNode("g", 1);
  Quota("a", {{"nos.nebuly.com/gpu-memory", "0"}});
  Quota("b", {{"nos.nebuly.com/gpu-memory", "40"}});
  for (const char* name : {"p1", "p2", "p3"}) PodOf("a", name, "nvidia.com/mig-2g.10gb", "1");
  Run();
  Tell("g",
       {{"nos.nebuly.com/status-layout-0", "2g.10gb@0:free,2g.10gb@2:free,2g.10gb@4:free"},
        {"nos.nebuly.com/status-partitioning-plan", Plan("g")}},
       {{"nvidia.com/mig-2g.10gb", "3"}});
  Run();
  Tell("g", {{"nos.nebuly.com/status-layout-0", "2g.10gb@0:used,2g.10gb@2:used,2g.10gb@4:used"},
             {"nos.nebuly.com/status-holders-0", "2g.10gb@0=a/p1,2g.10gb@2=a/p2,2g.10gb@4=a/p3"}});
  Run();
  ASSERT_EQ(Count({"a/p1", "a/p2", "a/p3"}, "g"), 3);
  Group("b", "g", 2);
  for (const char* name : {"g1", "g2"}) {
    PodOf("b", name, "nvidia.com/mig-1g.5gb", "1", 0, {{"scheduling.x-k8s.io/pod-group", "g"}});
  }
  RunFor(seconds(60));
  RunFor(seconds(600));
  EXPECT_EQ(Count({"a/p1", "a/p2", "a/p3"}, "gone"), 1) << WhyOf("b/g1");
}

TEST_F(SchedulerClaimsTest, NobodyWaitsForCutsForEver) {
  framework_ = scheduling::Framework::Default(scheduling::GpusCut::kElsewhere);
  const auto cutting = scheduling::Framework::Default(scheduling::GpusCut::kHere);
  RestartWith(&cutting);
  GpuNode("ga", 1);
  Cordon("ga");
  GpuNode("gb", 1);
  Quota("a", {{"nos.nebuly.com/gpu-memory", "0"}});
  Quota("b", {{"nos.nebuly.com/gpu-memory", "80"}});
  Tell("gb", {{"nos.nebuly.com/status-layout-0", "7g.40gb@0:free"}},
       {{"nvidia.com/mig-7g.40gb", "1"}});
  PodOf("a", "p", "nvidia.com/mig-7g.40gb", "1");
  Run();
  Tell("gb", {{"nos.nebuly.com/status-layout-0", "7g.40gb@0:used"},
              {"nos.nebuly.com/status-holders-0", "7g.40gb@0=a/p"}});
  Run();
  ASSERT_EQ(At("a/p"), "gb");
  Json node = *api_.Find("nodes", "ga");
  MakeObject(node, "spec")["unschedulable"] = false;
  api_.Put(node);  // its agent is not there: nobody cuts
  Run();
  PodOf("b", "q", "nvidia.com/mig-3g.20gb", "1");
  RunFor(seconds(1800));
  EXPECT_EQ(At("a/p"), "gone") << WhyOf("b/q") << " nominee " << NomineeOf("b/q");
}

}  // namespace
}  // namespace nos::controllers
