// Labels that the operator writes onto pods, as pods and quotas change.
#include "controllers/quota/operator_fixture_test.h"

namespace nos::controllers {
namespace {

TEST_F(OperatorTest, LabelsFollowPods) {
  Node("n");
  Quota("a", {{"cpu", "1"}});
  Quota("b", {{"cpu", "1"}});
  Pod("a", "p1");
  Pod("a", "p2");
  Pod("a", "waits", {{"cpu", "1"}}, "", "Pending");
  Start();
  EXPECT_EQ(Label("a/p2"), "over-quota");
  EXPECT_EQ(Label("a/waits"), "");
  // A finished pod keeps its label and no longer counts.
  Change("a/p1", [](Json& pod) { MakeObject(pod, "status")["phase"] = "Succeeded"; });
  Run();
  EXPECT_EQ(Label("a/p1"), "in-quota");
  EXPECT_EQ(Label("a/p2"), "in-quota");
  EXPECT_EQ(StatusList("a/quota", "used"), "cpu=1");
  EXPECT_EQ(StatusList("a/quota", "borrowed"), "");
  EXPECT_NE(reconcile::testing::EventsOf(api_).find("BorrowingEnded"), std::string::npos);
  EXPECT_NE(reconcile::testing::EventsOf(api_).find("LendingEnded"), std::string::npos);
  // The pod is bound but not started: it counts.
  Change("a/waits", [](Json& pod) { MakeObject(pod, "spec")["nodeName"] = "n"; });
  Run();
  EXPECT_EQ(Label("a/waits"), "over-quota");
  api_.Remove("pods", "a/p2");
  Run();
  EXPECT_EQ(Label("a/waits"), "in-quota");
  // Another client changes the label.
  Change("a/waits", [](Json& pod) {
    MakeObject(pod, "metadata", "labels")["nos.nebuly.com/capacity"] = "over-quota";
  });
  Run();
  EXPECT_EQ(Label("a/waits"), "in-quota");
}

TEST_F(OperatorTest, LabelsFollowQuotas) {
  Node("n");
  Pod("a", "p1");
  Pod("a", "p2");
  Start();
  EXPECT_EQ(Label("a/p1"), "");
  Quota("a", {{"cpu", "1"}});
  Quota("b", {{"cpu", "5"}});
  Run();
  EXPECT_EQ(Label("a/p1"), "in-quota");
  EXPECT_EQ(Label("a/p2"), "over-quota");
  Quota("a", {{"cpu", "2"}});
  Run();
  EXPECT_EQ(Label("a/p2"), "in-quota");
  api_.Remove("elasticquotas", "a/quota");
  Run();
  EXPECT_EQ(Label("a/p1"), "");
  EXPECT_EQ(Label("a/p2"), "");
}

TEST_F(OperatorTest, FinishedPodLosesLabelWithItsQuota) {
  Node("n");
  Quota("a", {{"cpu", "1"}});
  Pod("a", "p");
  Start();
  Change("a/p", [](Json& pod) { MakeObject(pod, "status")["phase"] = "Succeeded"; });
  Run();
  ASSERT_EQ(Label("a/p"), "in-quota");
  api_.Remove("elasticquotas", "a/quota");
  Run();
  EXPECT_EQ(Label("a/p"), "");
}

TEST_F(OperatorTest, LabelsFollowSharesOfParent) {
  Node("n");
  Quota("org", {{"cpu", "4"}, {"example.com/g", "1"}});
  PutQuota("ElasticQuota", "t1", "quota",
           {{"min", ListOf({{"cpu", "2"}})}, {"parent", "org/quota"}});
  PutQuota("ElasticQuota", "t2", "quota",
           {{"min", ListOf({{"cpu", "2"}})}, {"parent", "org/quota"}});
  Quota("c", {{"example.com/g", "3"}});
  Pod("t1", "p", {{"cpu", "1"}, {"example.com/g", "1"}});
  Pod("t2", "p", {{"cpu", "1"}, {"example.com/g", "1"}});
  Start();
  EXPECT_EQ(Label("t1/p"), "in-quota");
  EXPECT_EQ(Label("t2/p"), "over-quota");
  api_.Remove("pods", "t1/p");
  Run();
  EXPECT_EQ(Label("t2/p"), "in-quota");
  Pod("org", "older", {{"cpu", "1"}, {"example.com/g", "1"}});
  Change("org/older", [](Json& pod) {
    MakeObject(pod, "metadata")["creationTimestamp"] = "2025-01-01T00:00:00Z";
  });
  Run();
  EXPECT_EQ(Label("t2/p"), "over-quota");
  EXPECT_EQ(OverQuota("t2/quota"), 1);
}

TEST_F(OperatorTest, CompositeQuotaSharesOneAccount) {
  Node("n");
  Composite("team", {"a", "b"}, {{"cpu", "2"}});
  Pod("a", "p1");
  Pod("b", "p2");
  Pod("a", "p3");
  Start();
  EXPECT_EQ(StatusList("default/team", "used", "compositeelasticquotas"), "cpu=3");
  EXPECT_EQ(Label("b/p2"), "in-quota");
  EXPECT_EQ(Label("a/p3"), "over-quota");
}

TEST_F(OperatorTest, ChargesWholeGpuByItsNode) {
  Node("n", "81920");
  Quota("a", {{"nos.nebuly.com/gpu-memory", "100"}});
  Pod("a", "p1", {{"nvidia.com/gpu", "1"}});
  Pod("a", "p2", {{"nvidia.com/gpu", "1"}}, "unknown");
  Start();
  EXPECT_EQ(StatusList("a/quota", "used"), "nos.nebuly.com/gpu-memory=112");
  Node("unknown", "16384");
  Run();
  EXPECT_EQ(StatusList("a/quota", "used"), "nos.nebuly.com/gpu-memory=96");
  EXPECT_EQ(Label("a/p2"), "in-quota");
}

}  // namespace
}  // namespace nos::controllers
