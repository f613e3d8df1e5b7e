// Requests that min covers, beside nominations, quota trees and pods that do not end.
#include "controllers/scheduler/quota_fixture_test.h"

namespace nos::controllers {
namespace {

class SchedulerGuaranteesTest : public ClaimsFixture {
 protected:
  // A pod of quota a requests one GPU of `gb` GB, which a's min covers, while b/p is nominated for
  // a share.
  void ClaimAGpu(int gb) {
    const std::string one = std::to_string(gb), two = std::to_string(2 * gb);
    const auto node = [&](const std::string& name, const std::string& gpus) {
      NodeWith(name, {{"cpu", "10"}, {"nvidia.com/gpu", gpus}},
               {{"nvidia.com/gpu.memory", std::to_string(gb * 1024)}, {"name", name}});
    };
    const auto on = [&](const std::string& at, const std::string& ns, const std::string& name) {
      PodWith(ns, name, {{"nvidia.com/gpu", "1"}}, 0, {}, {{"nodeSelector", {{"name", at}}}});
    };
    node("n", "3");
    node("n2", "1");
    Quota("a", {{"nos.nebuly.com/gpu-memory", one}});
    Quota("b", {{"nos.nebuly.com/gpu-memory", two}});
    on("n", "b", "r1");
    on("n", "b", "r2");
    on("n", "other", "x");
    on("n2", "other", "v");
    Run();
    ASSERT_EQ(At("other/x"), "n");
    LetPodsEndSlowly();
    EvictedByAnother("other/v", true);
    on("n2", "b", "p");
    Run();
    ASSERT_EQ(NomineeOf("b/p"), "n2") << WhyOf("b/p");
    on("n", "a", "q");
    Run();
    EXPECT_EQ(At("other/x"), "ending") << WhyOf("a/q");
    EXPECT_EQ(Count({"b/r1", "b/r2"}, "n"), 2);
  }
};

// Quotas a and c each have a pod that is evicted for b. a/p10 is nominated for a share. After the
// evictions c's min covers c/p11 in addition to all running pods.
TEST_F(SchedulerGuaranteesTest, DoesNotEvictPodWithinMinBesideNominatedBorrower) {
  NodeWith("n0", {{"cpu", "4"}, {"example.com/g", "2"}}, {{"name", "n0"}});
  NodeWith("n1", {{"cpu", "6"}, {"example.com/g", "1"}}, {{"name", "n1"}});
  Quota("a", {{"cpu", "2"}, {"example.com/g", "0"}});
  Quota("b", {{"cpu", "4"}, {"example.com/g", "2"}});
  Quota("c", {{"cpu", "2"}, {"example.com/g", "0"}});
  const auto on = [&](const std::string& node, const std::string& ns, const std::string& name,
                      const Amounts& requests) {
    PodWith(ns, name, requests, 0, {}, {{"nodeSelector", {{"name", node}}}});
  };
  const Amounts both{{"cpu", "1"}, {"example.com/g", "1"}};
  on("n1", "a", "p0", {{"cpu", "1"}});
  on("n0", "a", "p1", both);
  on("n0", "a", "p3", {{"cpu", "1"}});
  on("n0", "c", "p4", both);
  on("n1", "c", "p5", {{"cpu", "1"}});
  Run();
  ASSERT_EQ(Count({"a/p1", "a/p3", "c/p4"}, "n0"), 3);
  LetPodsEndSlowly();
  on("n1", "b", "p6", {{"cpu", "3"}, {"example.com/g", "1"}});
  on("n0", "b", "p7", both);
  Run();
  for (const char* key : {"a/p1", "c/p4"}) {
    if (At(key) != "ending") EvictedByAnother(key, true);
  }
  Run();
  Pod("a", "p10", "1");
  Run();
  Pod("c", "p11", "1");
  Run();
  EXPECT_EQ(At("a/p3"), "n0") << "a uses 2 of its 2 without p1, which was evicted";
  EXPECT_EQ(At("a/p0"), "n1");
}

// The min of c covers the whole request. org borrows cpu, which is plentiful, but that must not
// affect the GPU that d uses beyond its min.
TEST_F(SchedulerGuaranteesTest, ParentBorrowingOtherResourceKeepsChildsGuarantee) {
  NodeWith("n0", {{"cpu", "2"}, {"example.com/g", "1"}}, {{"name", "n0"}});
  NodeWith("n1", {{"cpu", "7"}}, {{"name", "n1"}});
  Quota("org", {{"cpu", "4"}, {"example.com/g", "1"}});
  Quota("c", {{"cpu", "4"}, {"example.com/g", "1"}}, {}, "org/quota");
  Quota("d", {{"cpu", "5"}, {"example.com/g", "0"}});
  PodWith("d", "p", {{"cpu", "1"}, {"example.com/g", "1"}});
  for (const char* name : {"o1", "o2", "o3"}) On("n1", "org", name, "1");
  for (const char* name : {"c1", "c2"}) On("n1", "c", name, "1");
  Run();
  ASSERT_EQ(At("d/p"), "n0");
  ASSERT_EQ(Count({"org/o1", "org/o2", "org/o3", "c/c1", "c/c2"}, "n1"), 5);
  LetPodsEndSlowly();
  PodWith("c", "q", {{"cpu", "1"}, {"example.com/g", "1"}});
  Run();
  EXPECT_EQ(At("d/p"), "ending") << WhyOf("c/q");
}

// The GPU counts for its actual memory, less than the assumed default, so min covers the request.
TEST_F(SchedulerGuaranteesTest, GuaranteesSmallGpuAtItsActualMemory) { ClaimAGpu(16); }
TEST_F(SchedulerGuaranteesTest, GuaranteesGpuOfDefaultMemory) { ClaimAGpu(32); }

// An older pod of c starts late, so the younger ones now count as borrowing.
TEST_F(SchedulerGuaranteesTest, WakesGuaranteedPodWhenOthersBeginToBorrow) {
  CpuNodes({{"n1", "4"}, {"n2", "3"}});
  CpuQuotas({{"a", "1"}, {"c", "3"}, {"d", "1"}, {"e", "3"}});
  PodWith("c", "old", {{"cpu", "3"}}, 0, {},
          {{"nodeSelector", {{"name", "n2"}}}, {"schedulingGates", JsonArray{{{"name", "x"}}}}});
  for (const char* name : {"y1", "y2", "y3"}) On("n1", "c", name, "1");
  On("n1", "d", "r", "1");
  Run();
  ASSERT_EQ(At("d/r"), "n1");
  On("n1", "a", "q", "1");
  RunSteps();
  clock_.Advance(seconds(20));
  RunSteps();
  Json pod = *api_.Find("pods", "c/old");
  MakeObject(pod, "spec").erase("schedulingGates");
  api_.Put(pod);
  RunSteps();
  clock_.Advance(seconds(20));
  RunSteps();
  EXPECT_EQ(At("c/old"), "n2");
  clock_.Advance(seconds(20));
  RunSteps();
  EXPECT_EQ(Count({"c/y1", "c/y2", "c/y3"}, "n1"), 2) << WhyOf("a/q");
}

// C has min 0 for the resource that mid does not name. This must not exclude c from borrowing.
TEST_F(SchedulerGuaranteesTest, BorrowsThroughParentThatDoesNotNameResource) {
  NodeWith("n", {{"cpu", "8"}, {"example.com/g", "4"}}, {{"name", "n"}});
  Quota("org", {{"cpu", "4"}, {"example.com/g", "4"}});
  Quota("mid", {{"cpu", "4"}}, {}, "org/quota");
  Quota("c", {{"cpu", "2"}, {"example.com/g", "0"}}, {}, "mid/quota");
  Quota("d", {{"cpu", "4"}, {"example.com/g", "0"}});
  for (const char* ns : {"c", "mid", "d"}) {
    PodWith(ns, "q", {{"cpu", "1"}, {"example.com/g", "1"}});
  }
  Run();
  for (const char* key : {"c/q", "mid/q", "d/q"}) EXPECT_EQ(At(key), "n") << WhyOf(key);
}

// A stuck pod of the same quota keeps the preemptor out, so evicting others is useless.
TEST_F(SchedulerGuaranteesTest, EvictsNothingWhileStuckPodUsesOwnQuota) {
  CpuNodes({{"n0", "2"}, {"n2", "1"}, {"lost", "1"}});
  CpuQuotas({{"a", "1"}, {"c", "2"}});
  On("n2", "a", "x", "1");
  On("lost", "c", "stuck", "1");
  On("n0", "c", "p5", "1");
  On("n0", "other", "o", "1");
  Run();
  EvictedByAnother("c/stuck", true);
  Lose("lost");
  Run();
  LetPodsEndSlowly();
  On("n0", "c", "p11", "1");
  Run();
  EXPECT_EQ(At("other/o"), "n0") << "its end helps nobody";
  Remove("c", {"stuck"});
  Run();
  EXPECT_EQ(At("other/o"), "ending") << WhyOf("c/p11");
}

// Each child names one of two resources. For the other one both depend on what their parent has
// left, which is nothing, so neither pod is guaranteed.
TEST_F(SchedulerGuaranteesTest, ResourceLeftToParentIsNoGuarantee) {
  NodeWith("n", {{"cpu", "8"}, {"example.com/g", "8"}}, {{"name", "n"}});
  Quota("org", {{"cpu", "1"}, {"example.com/g", "1"}});
  Quota("e", {{"cpu", "1"}}, {}, "org/quota");
  Quota("b", {{"example.com/g", "1"}}, {}, "org/quota");
  LetPodsEndSlowly();
  const Amounts both{{"cpu", "1"}, {"example.com/g", "1"}};
  PodWith("e", "p", both);
  Run();
  PodWith("b", "p", both);
  int evictions = 0;
  for (int i = 0; i < 360; ++i) {
    Run();
    for (const char* ns : {"e", "b"}) {
      if (At(std::string(ns) + "/p") != "ending") continue;
      ++evictions;
      Remove(ns, {"p"});
      PodWith(ns, "p", both);
    }
    clock_.Advance(seconds(10));
  }
  EXPECT_LE(evictions, 1);
}

// The max of a parent counts stuck pods, even if the child's min covers the request.
TEST_F(SchedulerGuaranteesTest, EvictsNothingWhileParentMaxIsReached) {
  CpuNodes({{"n0", "2"}, {"lost", "2"}});
  Quota("org", {{"cpu", "3"}}, {{"cpu", "3"}});
  Quota("c", {{"cpu", "2"}}, {}, "org/quota");
  Quota("s", {{"cpu", "1"}}, {}, "org/quota");
  On("lost", "s", "stuck", "2");
  On("n0", "c", "p5", "1");
  On("n0", "other", "o", "1");
  Run();
  EvictedByAnother("s/stuck", true);
  Lose("lost");
  Run();
  LetPodsEndSlowly();
  On("n0", "c", "p11", "1");
  Run();
  EXPECT_EQ(At("other/o"), "n0") << "its end helps nobody";
}

TEST_F(SchedulerGuaranteesTest, ReclaimsShareFromQuotaBeyondItsShare) {
  CpuNodes({{"n", "4"}, {"m", "4"}});
  CpuQuotas({{"a", "2"}, {"b", "2"}});
  Quota("i", {{"cpu", "4"}});  // idle
  PodWith("b", "gated", {{"cpu", "3"}}, 0, {},
          {{"nodeSelector", {{"name", "m"}}}, {"schedulingGates", JsonArray{{{"name", "x"}}}}});
  On("n", "a", "a1", "2");
  On("n", "b", "b1", "1");
  On("n", "b", "b2", "1");
  Run();
  On("n", "a", "q", "1");
  Run();
  ASSERT_EQ(At("a/q"), "") << "no room, and b has no more than its share";
  RunFor(seconds(60));
  Json pod = *api_.Find("pods", "b/gated");
  MakeObject(pod, "spec").erase("schedulingGates");
  api_.Put(pod);
  RunFor(seconds(30));
  EXPECT_EQ(At("a/q"), "n") << WhyOf("a/q");
}

}  // namespace
}  // namespace nos::controllers
