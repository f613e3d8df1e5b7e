// Records of node pools while pools and their nodes are created, changed and deleted.
#include "controllers/autoscaler.h"
#include "controllers/collector/fixture_test.h"
#include "controllers/pool_standing.h"
#include "controllers/relocations.h"

namespace nos::controllers {
namespace {

class CollectorPoolsTest : public CollectorFixture {
 protected:
  void Pool(const JsonObject& status = {}, int max = 4) {
    api_.Put({{"apiVersion", "nos.nebuly.com/v1alpha1"},
              {"kind", "NodePool"},
              {"metadata", {{"name", "a100"}, {"uid", "u"}}},
              {"spec",
               {{"gpu", {{"model", "A100-40GB"}, {"count", 8}, {"partitioning", "mig"}}},
                {"cpu", 90},
                {"memory", "900Gi"},
                {"min", 1},
                {"max", max},
                {"price", "12.25"},
                {"nodeSelector", {{"pool", "a100"}}},
                {"signal", "Pods"}}},
              {"status", status}});
  }
  void Node(const std::string& name, const std::string& pool, const JsonObject& annotations = {}) {
    api_.Put({{"kind", "Node"},
              {"metadata",
               {{"name", name},
                {"uid", "uid-" + name},
                {"labels", {{"pool", pool}}},
                {"annotations", annotations}}}});
  }
  static JsonObject Ready(const char* status, const char* reason, const char* message) {
    return {{"type", kPoolReady}, {"status", status}, {"reason", reason}, {"message", message}};
  }
  std::vector<Json> Records(const std::string& kind) const {
    std::vector<Json> found;
    for (const Json& record : records_) {
      if (FindString(record, "kind") == kind) found.push_back(record);
    }
    return found;
  }
};

TEST_F(CollectorPoolsTest, ReportsPoolWithNodeCountsUntilItIsDeleted) {
  Pool({{"wanted", 4}, {"nodes", 2}, {"conditions", JsonArray{Ready("True", "Ready", "")}}});
  Node("n1", "a100");
  Node("n2", "a100", {{kRemoval, "{}"}});
  Node("n3", "other");
  Run();
  ASSERT_EQ(Records("pool").size(), 1U);
  const Json pool = Records("pool")[0];
  EXPECT_EQ(FindString(pool, "id"), "a100");
  EXPECT_EQ(FindString(pool, "gpu", "model"), "A100-40GB");
  EXPECT_EQ(*Find(pool, "gpu", "count"), Json(8));
  EXPECT_EQ(FindString(pool, "gpu", "partitioning"), "mig");
  EXPECT_EQ(*Find(pool, "nodes"), Json(1));
  EXPECT_EQ(*Find(pool, "going"), Json(1));
  EXPECT_EQ(*Find(pool, "coming"), Json(3));
  EXPECT_EQ(*Find(pool, "min"), Json(1));
  EXPECT_EQ(*Find(pool, "max"), Json(4));
  EXPECT_EQ(*Find(pool, "price"), Json(12.25));
  EXPECT_EQ(FindString(pool, "state"), "ready");
  EXPECT_EQ(Find(pool, "closed_until"), nullptr);
  EXPECT_EQ(FindString(Records("present").back(), "what"), "pool");
  EXPECT_EQ(WriteJson(*Find(Records("present").back(), "ids")), R"(["a100"])");

  Node("n3", "other", {{"x", "y"}});
  Run();
  EXPECT_TRUE(Records("pool").empty()) << "the pool has not changed";
  Node("n4", "a100");
  Run();
  ASSERT_EQ(Records("pool").size(), 1U) << "a node was added";
  EXPECT_EQ(*Find(Records("pool")[0], "nodes"), Json(2));
  EXPECT_EQ(*Find(Records("pool")[0], "coming"), Json(2));

  api_.Remove("nodepools", "a100");
  Run();
  ASSERT_EQ(Records("removed").size(), 1U);
  EXPECT_EQ(FindString(Records("removed")[0], "what"), "pool");
  EXPECT_EQ(FindString(Records("removed")[0], "id"), "a100");
}

TEST_F(CollectorPoolsTest, ReportsClosedPoolAgainWhenItsPauseEnds) {
  Pool({{"closedUntil", "2027-01-15T08:05:00Z"},
        {"failures", 2},
        {"conditions", JsonArray{Ready("False", "NotDelivered", "2 nodes did not come")}}});
  Run();
  ASSERT_EQ(Records("pool").size(), 1U);
  EXPECT_EQ(FindString(Records("pool")[0], "state"), "closed");
  EXPECT_EQ(FindString(Records("pool")[0], "why"), "2 nodes did not come");
  EXPECT_EQ(*Find(Records("pool")[0], "failures"), Json(2));
  EXPECT_EQ(*Find(Records("pool")[0], "closed_until"), Json(1'800'000'300'000));
  clock_.Advance(std::chrono::minutes(6));
  Run();
  ASSERT_EQ(Records("pool").size(), 1U) << "without any change in the cluster";
  EXPECT_EQ(FindString(Records("pool")[0], "state"), "failing");
}

TEST_F(CollectorPoolsTest, ReportsUnreadablePoolAsInvalid) {
  Pool({}, -1);
  api_.Put({{"apiVersion", "nos.nebuly.com/v1alpha1"},
            {"kind", "NodePool"},
            {"metadata", {{"name", "odd"}}},
            {"spec", "nothing"}});
  Run();
  ASSERT_EQ(Records("pool").size(), 2U);
  for (const Json& pool : Records("pool")) {
    EXPECT_EQ(FindString(pool, "state"), "invalid");
    EXPECT_NE(FindString(pool, "why").find("spec"), std::string_view::npos);
  }
  Pool();
  Run();
  ASSERT_EQ(Records("pool").size(), 1U);
  EXPECT_EQ(FindString(Records("pool")[0], "state"), "unknown")
      << "no autoscaler has written its status";
}

TEST_F(CollectorPoolsTest, NewLeaderReportsPoolsAgain) {
  Pool();
  Run();
  Start();
  Run();
  EXPECT_EQ(Records("pool").size(), 1U);
  collector_->ReportAgain();
  Node("n1", "other");  // causes a reconciliation
  Run();
  EXPECT_EQ(Records("pool").size(), 1U);
}

TEST_F(CollectorPoolsTest, ReportsOtherKindsWithoutNodePoolApiOrPermission) {
  for (const int code : {404, 403}) {
    api_.intercept =
        [code](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
      if (!request.path.ends_with("/nodepools")) return std::nullopt;
      return kube::ApiResponse{code,
                               {{"kind", "Status"}, {"code", code}, {"message", "no nodepools"}}};
    };
    Start();
    Node("n", "a100");
    Run();
    EXPECT_EQ(Records("node").size(), 1U) << code;
    EXPECT_EQ(Records("present").size(), 6U) << code << ": everything readable is known";
  }
}

TEST_F(CollectorPoolsTest, ReportsEventsOfKnownNodePoolsOnly) {
  Pool();
  for (const char* of : {"a100", "of-another"}) {
    api_.Put({{"kind", "Event"},
              {"metadata", {{"namespace", "default"}, {"name", of}, {"uid", of}}},
              {"involvedObject", {{"kind", "NodePool"}, {"name", of}}},
              {"reason", "ScaledUp"},
              {"message", "2 nodes"},
              {"lastTimestamp", "2027-01-15T07:00:00Z"}});
  }
  Run();
  ASSERT_EQ(Records("event").size(), 1U);
  EXPECT_EQ(FindString(Records("event")[0], "object", "name"), "a100");
}

TEST_F(CollectorPoolsTest, ReportsAutoscalerEventsAsDecisions) {
  const auto event = [&](const std::string& reason, const char* source, int count) {
    api_.Put({{"kind", "Event"},
              {"metadata", {{"namespace", "default"}, {"name", reason}, {"uid", "uid-" + reason}}},
              {"involvedObject", {{"kind", "NodePool"}, {"name", "a100"}}},
              {"source", {{"component", source}}},
              {"reason", reason},
              {"message", "3 nodes are wanted, and were 2: for ml/p"},
              {"count", count},
              {"lastTimestamp", "2027-01-15T07:00:00Z"}});
  };
  Pool();
  event("ScaledUp", kAutoscalerName, 1);
  event("ScaledDown", "somebody-else", 1);
  event("Other", kAutoscalerName, 1);
  Run();
  ASSERT_EQ(Records("decision").size(), 1U);
  const Json decision = Records("decision")[0];
  EXPECT_EQ(FindString(decision, "id"), "scaling/uid-ScaledUp/1");
  EXPECT_EQ(FindString(decision, "type"), "scale");
  EXPECT_EQ(FindString(decision, "state"), "applied");
  EXPECT_EQ(FindString(decision, "summary"), "Added nodes to pool a100");
  EXPECT_EQ(FindString(decision, "why"), "3 nodes are wanted, and were 2: for ml/p");
  EXPECT_EQ(*Find(decision, "at"), Json(1'800'000'000'000 - 3'600'000));
  Run();
  EXPECT_TRUE(Records("decision").empty()) << "reported once";
  event("ScaledUp", kAutoscalerName, 2);
  Run();
  ASSERT_EQ(Records("decision").size(), 1U) << "it has happened again";
  EXPECT_EQ(FindString(Records("decision")[0], "id"), "scaling/uid-ScaledUp/2");
}

TEST(ScalingRecordTest, MovedPodIsVictimAndPodWithFreedCapacityIsServed) {
  cluster::KubernetesEvent event;
  event.source = kAutoscalerName;
  event.kind = "Pod";
  event.ns = "ml";
  event.name = std::string(5000, 'p');
  event.message = std::string(5000, 'm');
  event.reason = "MovedAway";
  const auto moved = ScalingRecord(event);
  event.reason = "MadeRoom";
  const auto served = ScalingRecord(event);
  ASSERT_TRUE(moved && served);
  EXPECT_EQ(moved->at("type"), "move");
  EXPECT_EQ(moved->at("victims").as_array().size(), 1U);
  EXPECT_TRUE(moved->at("pods").as_array().empty());
  EXPECT_EQ(served->at("pods").as_array().size(), 1U);
  EXPECT_LT(WriteJson(Json(*moved)).size(), 3000U) << "no longer than an Event may be";
  event.reason = "ScaledUp";
  EXPECT_FALSE(ScalingRecord(event)) << "this reason is for pools only";
}

TEST(PoolStandingTest, ClampsImplausibleCounts) {
  auto pool = std::make_shared<cluster::NodePool>();
  pool->node_selector = {{"pool", "a"}};
  auto node = std::make_shared<cluster::Node>();
  node->meta.labels = {{"pool", "a"}};
  for (const auto& [wanted, coming] : {std::pair(INT32_MIN, 0), {INT32_MAX, 10'000}, {1, 0}}) {
    pool->wanted = wanted;
    EXPECT_EQ(CountPools({node}, {pool}).at(0).coming, coming) << wanted;
  }
}

}  // namespace
}  // namespace nos::controllers
