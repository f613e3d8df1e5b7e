// Which pods are evicted for the guarantees of elastic quotas, and which are not.
#include <string>

#include "controllers/scheduler/quota_fixture_test.h"

namespace nos::controllers {
namespace {

class SchedulerReclaimTest : public QuotaFixture {};

TEST_F(SchedulerReclaimTest, PodOnMissingNodeBlocksOnlyItsQuota) {
  CpuNode("n", "10");
  Quota("a", {{"cpu", "2"}}, {{"cpu", "3"}});
  Quota("b", {{"cpu", "4"}});
  PodWith("a", "adrift", {{"cpu", "1000000"}}, 0, {}, {{"nodeName", "nowhere"}});
  LetPodsEndSlowly();
  Run();
  Pod("b", "q");
  Run();
  EXPECT_EQ(At("b/q"), "n") << WhyOf("b/q");
  Pod("a", "next");
  Run();
  EXPECT_EQ(At("a/next"), "") << "it counts";
}

TEST_F(SchedulerReclaimTest, ReclaimsBetweenChildAndParent) {
  CpuNode("n", "8");
  Quota("p", {{"cpu", "4"}});
  Quota("c", {{"cpu", "2"}}, {}, "p/quota");
  Quota("r", {{"cpu", "4"}});
  Quota("s", {{"cpu", "2"}}, {}, "r/quota");
  for (const char* name : {"p1", "p2", "p3", "p4"}) {
    Pod("p", name);
    Pod("s", name);
  }
  Run();
  ASSERT_EQ(Count({"p/p1", "p/p2", "p/p3", "p/p4"}, "n"), 4);
  ASSERT_EQ(Count({"s/p1", "s/p2", "s/p3", "s/p4"}, "n"), 4);
  Pod("c", "q");
  Pod("r", "q");
  Run();
  EXPECT_EQ(At("c/q"), "n") << WhyOf("c/q");
  EXPECT_EQ(At("r/q"), "n") << WhyOf("r/q");
  EXPECT_EQ(At("p/p4"), "gone");
  EXPECT_EQ(At("s/p4"), "gone");
}

TEST_F(SchedulerReclaimTest, ReclaimsGuaranteeOnSmallGpu) {
  NodeWith("big", {{"cpu", "64"}, {"nvidia.com/gpu", "1"}}, {{"nvidia.com/gpu.memory", "81920"}});
  NodeWith("small", {{"cpu", "8"}, {"nvidia.com/gpu", "2"}}, {{"nvidia.com/gpu.memory", "16384"}});
  const JsonObject small{{"nodeSelector", {{"nvidia.com/gpu.memory", "16384"}}}};
  Quota("a", {{"nos.nebuly.com/gpu-memory", "16"}});
  Quota("b", {{"nos.nebuly.com/gpu-memory", "16"}});
  PodWith("b", "p1", {{"nvidia.com/gpu", "1"}}, 0, {}, small);
  PodWith("b", "p2", {{"nvidia.com/gpu", "1"}}, 0, {}, small);
  Run();
  ASSERT_EQ(Count({"b/p1", "b/p2"}, "small"), 2);
  PodWith("a", "q", {{"nvidia.com/gpu", "1"}});
  Run();
  EXPECT_EQ(At("a/q"), "small") << WhyOf("a/q");
  EXPECT_EQ(At("b/p2"), "gone");
}

// The deletion may have taken effect although it was not answered.
TEST_F(SchedulerReclaimTest, RepeatsUnansweredEvictionOfSameVictim) {
  CpuNode("n", "8");
  CpuQuotas({{"a", "1"}, {"b", "3"}});
  Pod("a", "p1");
  Pod("a", "p2");
  Pod("a", "p3", "1", 0, {{"app", "x"}});
  Run();
  bool lost = false;
  api_.intercept = [&](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    if (request.method != "DELETE" || std::exchange(lost, true)) return answer;
    api_.Put({{"kind", "PodDisruptionBudget"},  // from now on the pod would not be chosen as victim
              {"metadata", {{"namespace", "a"}, {"name", "x"}}},
              {"spec", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", "x"}}}}}}},
              {"status", {{"disruptionsAllowed", 0}}}});
    answer = Status(Code::kDeadline, "no answer in time");
    return answer;
  };
  Pod("b", "q", "2");
  Run();
  EXPECT_TRUE(lost);
  EXPECT_EQ(At("b/q"), "n") << WhyOf("b/q");
  EXPECT_EQ(At("a/p3"), "gone");
  EXPECT_EQ(At("a/p2"), "n");
}

// Evicting only d/p7, the youngest, brings d within its min of cpu. For the other resource b/q has
// no guarantee from its parent, so no pod may be evicted for it.
TEST_F(SchedulerReclaimTest, ChoosesVictimWithMissingResourceIfYoungestDoesNotHelp) {
  NodeWith("n", {{"cpu", "16"}, {"example.com/g", "8"}});
  Quota("a", {{"cpu", "6"}, {"example.com/g", "4"}});
  Quota("b", {{"cpu", "3"}}, {}, "a/quota");
  Quota("c", {{"cpu", "1"}}, {}, "b/quota");
  Quota("d", {{"cpu", "2"}, {"example.com/g", "1"}});
  PodWith("d", "p0", {{"cpu", "1"}, {"example.com/g", "2"}});
  PodWith("d", "p4", {{"cpu", "1"}, {"example.com/g", "1"}});
  PodWith("d", "p7", {{"cpu", "1"}});
  Run();
  PodWith("a", "own", {{"cpu", "3"}, {"example.com/g", "1"}});
  PodWith("b", "own", {{"cpu", "1"}});
  PodWith("c", "own", {{"cpu", "1"}});
  Run();
  ASSERT_EQ(Count({"d/p0", "d/p4", "d/p7", "a/own", "b/own", "c/own"}, "n"), 6) << WhyOf("a/own");
  PodWith("b", "q", {{"cpu", "1"}, {"example.com/g", "2"}});
  Run();
  EXPECT_EQ(At("b/q"), "n") << WhyOf("b/q");
  EXPECT_EQ(At("d/p4"), "gone");
  EXPECT_EQ(Count({"d/p0", "d/p7"}, "n"), 2);
}

// The tenant creates both pods again at once.
TEST_F(SchedulerReclaimTest, ReclaimsNodeFromPodWithoutRequestsThatRepelsOwner) {
  NodeWith("n", {{"cpu", "4"}, {"nvidia.com/gpu", "1"}}, {{"kubernetes.io/hostname", "n"}});
  Quota("owner", {{"nvidia.com/gpu", "1"}});
  Quota("tenant", {{"nvidia.com/gpu", "0"}});
  const JsonObject repels{
      {"affinity",
       {{"podAntiAffinity",
         {{"requiredDuringSchedulingIgnoredDuringExecution",
           JsonArray{{{"topologyKey", "kubernetes.io/hostname"},
                      {"namespaces", JsonArray{"owner"}},
                      {"labelSelector", {{"matchLabels", {{"app", "owner"}}}}}}}}}}}}};
  PodWith("tenant", "borrower", {{"nvidia.com/gpu", "1"}});
  PodWith("tenant", "repels", {}, 0, {}, repels);
  LetPodsEndSlowly();
  Run();
  ASSERT_EQ(Count({"tenant/borrower", "tenant/repels"}, "n"), 2);
  PodWith("owner", "q", {{"nvidia.com/gpu", "1"}}, 0, {{"app", "owner"}});
  Run();
  EXPECT_EQ(Count({"tenant/borrower", "tenant/repels"}, "ending"), 2) << WhyOf("owner/q");
  PodWith("tenant", "borrower2", {{"nvidia.com/gpu", "1"}});
  PodWith("tenant", "repels2", {}, 0, {}, repels);
  api_.Remove("pods", "tenant/repels");
  Run();
  EXPECT_EQ(Count({"tenant/borrower2", "tenant/repels2"}, ""), 2);
  api_.Remove("pods", "tenant/borrower");
  Run();
  EXPECT_EQ(At("owner/q"), "n") << WhyOf("owner/q");
}
}  // namespace
}  // namespace nos::controllers
