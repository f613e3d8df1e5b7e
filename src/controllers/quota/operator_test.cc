// Status that the operator writes into quotas, as pods and quotas change.
#include <gmock/gmock.h>

#include "base/text.h"
#include "controllers/quota/operator_fixture_test.h"
#include "kube/testing/refuse.h"
#include "reconcile/condition.h"

namespace nos::controllers {
namespace {

using reconcile::testing::EventsOf;
using ::testing::Contains;
using ::testing::IsSupersetOf;

TEST_F(OperatorTest, WritesUsedBorrowedAndLent) {
  Node("n");
  Quota("a", {{"cpu", "1"}}, {{"cpu", "9"}, {"memory", "1Gi"}});
  Quota("b", {{"cpu", "3"}});
  for (const char* name : {"p1", "p2", "p3"}) Pod("a", name, {{"cpu", "1"}, {"memory", "1Mi"}});
  Start();
  EXPECT_EQ(Label("a/p1"), "in-quota");
  EXPECT_EQ(Label("a/p2"), "over-quota");
  EXPECT_EQ(Label("a/p3"), "over-quota");
  EXPECT_EQ(StatusList("a/quota", "used"), "cpu=3 memory=3Mi");
  EXPECT_EQ(StatusList("a/quota", "borrowed"), "cpu=2");
  EXPECT_EQ(StatusList("a/quota", "lent"), "");
  EXPECT_EQ(OverQuota("a/quota"), 2);
  EXPECT_EQ(InForce("a/quota"), "True InForce: ");
  EXPECT_EQ(StatusList("b/quota", "used"), "cpu=0");
  EXPECT_EQ(StatusList("b/quota", "lent"), "cpu=2");
  EXPECT_THAT(Split(EventsOf(api_), '\n'),
              IsSupersetOf({"Borrowing: Using beyond min of ElasticQuota: 2 of cpu",
                            "Lending: Lending min of ElasticQuota to other quotas: 2 of cpu"}));
  // Without changes the operator writes nothing.
  api_.writes.clear();
  Start();
  EXPECT_TRUE(api_.writes.empty());
}

TEST_F(OperatorTest, CountsDevicesOfClaims) {
  Node("n");
  Quota("a", {{"nos.nebuly.com/gpu-memory", "10"}});
  for (const char* name : {"p1", "p2"}) {
    Pod("a", name, {{"cpu", "1"}});
    Change("a/" + std::string(name), [](Json& pod) {
      MakeObject(pod, "spec")["resourceClaims"] =
          JsonArray{{{"name", "gpu"}, {"resourceClaimName", "shared"}}};
    });
  }
  const auto claim = [this](const Json& status) {
    api_.Put({{"apiVersion", "resource.k8s.io/v1"},
              {"kind", "ResourceClaim"},
              {"metadata", {{"namespace", "a"}, {"name", "shared"}, {"uid", "c"}}},
              {"spec", JsonObject{}},
              {"status", status}});
  };
  const auto user = [](const std::string& name) {
    return JsonObject{{"resource", "pods"}, {"name", name}, {"uid", "a" + name}};
  };
  claim(JsonObject{});
  Start();
  EXPECT_EQ(StatusList("a/quota", "used"), "nos.nebuly.com/gpu-memory=0");
  const Json allocation = {{"devices",
                            {{"results", JsonArray{{{"request", "r"},
                                                    {"driver", "gpu.nvidia.com"},
                                                    {"pool", "n"},
                                                    {"device", "gpu-0-mig-2g20gb-14-0"}}}}}}};
  claim({{"allocation", allocation}, {"reservedFor", JsonArray{user("p1"), user("p2")}}});
  Run();
  EXPECT_EQ(StatusList("a/quota", "used"), "nos.nebuly.com/gpu-memory=20");
  EXPECT_EQ(Label("a/p1"), "over-quota");
  EXPECT_EQ(Label("a/p2"), "over-quota") << "it comes after a pod that is over quota";
  Change("a/p1", [](Json& pod) { MakeObject(pod, "status")["phase"] = "Succeeded"; });
  Run();
  EXPECT_EQ(StatusList("a/quota", "used"), "nos.nebuly.com/gpu-memory=20")
      << "the claim counts for its next user";
  EXPECT_EQ(Label("a/p2"), "over-quota");
  Change("a/p2", [](Json& pod) { MakeObject(pod, "status")["phase"] = "Succeeded"; });
  Run();
  EXPECT_EQ(StatusList("a/quota", "used"), "nos.nebuly.com/gpu-memory=0");
}

// A PodGroup is the user, and not its pods.
TEST_F(OperatorTest, CountsClaimsOfPodGroupsOnce) {
  Node("n");
  Quota("a", {{"nos.nebuly.com/gpu-memory", "10"}});
  for (const char* name : {"p1", "p2", "p3"}) {
    Pod("a", name, {{"cpu", "1"}});
    Change("a/" + std::string(name), [](Json& pod) {
      MakeObject(pod, "spec")["resourceClaims"] =
          JsonArray{{{"name", "gpu"}, {"resourceClaimName", "shared"}}};
      MakeObject(pod, "spec", "schedulingGroup")["podGroupName"] = "g";
    });
  }
  const Json result = {{"request", "r"},
                       {"driver", "gpu.nvidia.com"},
                       {"pool", "n"},
                       {"device", "gpu-0-mig-2g20gb-14-0"}};
  api_.Put({{"apiVersion", "resource.k8s.io/v1"},
            {"kind", "ResourceClaim"},
            {"metadata", {{"namespace", "a"}, {"name", "shared"}, {"uid", "c"}}},
            {"spec", JsonObject{}},
            {"status",
             {{"allocation", {{"devices", {{"results", JsonArray{result}}}}}},
              {"reservedFor", JsonArray{{{"apiGroup", "scheduling.k8s.io"},
                                         {"resource", "podgroups"},
                                         {"name", "g"},
                                         {"uid", "g"}}}}}}});
  Start();
  EXPECT_EQ(StatusList("a/quota", "used"), "nos.nebuly.com/gpu-memory=20");
}

TEST_F(OperatorTest, ExportsQuotaMetricsWhileLeading) {
  Node("n");
  Quota("a", {{"cpu", "1500m"}, {"memory", "1Gi"}}, {{"cpu", "9"}});
  Quota("b", {{"cpu", "3"}});
  Pod("b", "p", {{"cpu", "4"}});
  Pod("a", "fits", {{"cpu", "1"}}, "", "Pending");
  Pod("a", "large", {{"cpu", "2"}}, "", "Pending");
  Start();
  const auto amount = [](const char* what, const char* ns, const char* resource) {
    return std::string("nos_quota_amount{amount=\"") + what + "\",namespace=\"" + ns +
           "\",quota=\"quota\",resource=\"" + resource + "\",type=\"ElasticQuota\"} ";
  };
  const std::string owed =
      "nos_quota_owed_pods{namespace=\"a\",quota=\"quota\",type=\"ElasticQuota\"} ";
  std::string text = metrics_.Text();
  EXPECT_NE(text.find(amount("min", "a", "cpu") + "1.5\n"), std::string::npos) << text;
  EXPECT_NE(text.find(amount("min", "a", "memory") + "1073741824\n"), std::string::npos) << text;
  EXPECT_NE(text.find(amount("max", "a", "cpu") + "9\n"), std::string::npos);
  EXPECT_NE(text.find(amount("borrowed", "b", "cpu") + "1\n"), std::string::npos);
  EXPECT_NE(text.find(amount("lent", "a", "cpu") + "1\n"), std::string::npos);
  EXPECT_NE(text.find(owed + "1\n"), std::string::npos) << text;
  // The pod gets its node, so no pod is owed.
  Change("a/fits", [](Json& pod) { MakeObject(pod, "spec")["nodeName"] = "n"; });
  Run();
  text = metrics_.Text();
  EXPECT_NE(text.find(owed + "0\n"), std::string::npos) << text;
  EXPECT_NE(text.find(amount("used", "a", "cpu") + "1\n"), std::string::npos);
  Pod("a", "late", {{"cpu", "500m"}}, "", "Pending");
  Run();
  EXPECT_NE(metrics_.Text().find(owed + "1\n"), std::string::npos);
  operator_->Lead(false);
  EXPECT_EQ(metrics_.Text().find("nos_quota_amount{"), std::string::npos);
}

// The example of the documentation of the Go version of nos: min 40, 10 and 30, used 40, 40 and 0.
// Their shares of the idle amount are 15, 3 and 11.
TEST_F(OperatorTest, GuaranteedIncludesShareOfIdleAmount) {
  Node("n");
  Quota("a", {{"nos.nebuly.com/gpu-memory", "40"}});
  Quota("b", {{"nos.nebuly.com/gpu-memory", "10"}});
  Quota("c", {{"nos.nebuly.com/gpu-memory", "30"}}, {{"nos.nebuly.com/gpu-memory", "35"}});
  Pod("a", "p", {{"nvidia.com/mig-7g.40gb", "1"}});
  Pod("b", "p", {{"nvidia.com/mig-7g.40gb", "1"}});
  Start();
  EXPECT_EQ(StatusList("a/quota", "guaranteed"), "nos.nebuly.com/gpu-memory=55");
  EXPECT_EQ(StatusList("b/quota", "guaranteed"), "nos.nebuly.com/gpu-memory=13");
  EXPECT_EQ(StatusList("c/quota", "guaranteed"), "nos.nebuly.com/gpu-memory=35");  // at most max
}

TEST_F(OperatorTest, ReportsQuotasNotInForce) {
  Quota("a", {{"cpu", "1"}});
  Quota("b", {{"cpu", "1"}});
  Composite("team", {"a"}, {{"cpu", "2"}});
  PutQuota("ElasticQuota", "c", "quota", {{"parent", "x/y"}});
  Composite("nobody", {}, {{"cpu", "2"}});
  Start();
  EXPECT_EQ(InForce("a/quota"),
            "False NotInForce: not in force in namespace a: composite elastic quota default/team "
            "is");
  EXPECT_EQ(StatusList("a/quota", "guaranteed"), "cpu=0");
  EXPECT_EQ(OverQuota("a/quota"), 0);
  EXPECT_EQ(InForce("b/quota"), "True InForce: ");
  EXPECT_EQ(InForce("c/quota"), "False PartlyInForce: its parent x/y does not exist");
  EXPECT_EQ(
      InForce("default/nobody", "compositeelasticquotas"),
      "False NotInForce: spec.namespaces is empty: name the namespaces that share this quota");
  const std::string since(FindString(
      nos::Find(*api_.Find("elasticquotas", "a/quota"), "status", "conditions")->get_array().at(0),
      "lastTransitionTime"));
  EXPECT_EQ(since, "2027-01-15T08:00:00Z");
  api_.Remove("compositeelasticquotas", "default/team");
  Run();
  EXPECT_EQ(InForce("a/quota"), "True InForce: ");
}

TEST_F(OperatorTest, DeletesOverlappingQuotaIfConfigured) {
  Quota("a", {{"cpu", "1"}});
  Quota("b", {{"cpu", "1"}});
  Composite("team", {"a"}, {{"cpu", "2"}});
  OperatorConfig config;
  config.delete_overlapping = true;
  Start(config);
  EXPECT_EQ(api_.Find("elasticquotas", "a/quota"), nullptr);
  EXPECT_NE(api_.Find("elasticquotas", "b/quota"), nullptr);
  EXPECT_THAT(Split(EventsOf(api_), '\n'),
              Contains("OverlapDeleted: Deleting ElasticQuota a/quota: this quota covers its "
                       "namespace"));
}

TEST_F(OperatorTest, DeletesQuotaWithFinalizerOnce) {
  Node("n");
  Quota("a", {{"cpu", "1"}});
  Composite("team", {"a"}, {{"cpu", "2"}});
  int deletions = 0;
  api_.intercept = [&](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    if (request.method != "DELETE") return answer;
    ++deletions;
    Json object = *api_.Find("elasticquotas", "a/quota");
    MakeObject(object, "metadata")["deletionTimestamp"] = "2027-01-15T08:00:00Z";
    api_.Put(object);
    answer = Result<kube::ApiResponse>(kube::ApiResponse{200, object, {}, {}});
    return answer;
  };
  OperatorConfig config;
  config.delete_overlapping = true;
  Start(config);
  for (const char* pod : {"p1", "p2", "p3"}) {
    Pod("a", pod);
    Run();
  }
  EXPECT_EQ(deletions, 1);
}

TEST_F(OperatorTest, PublishesNamespacesOfCompositeQuotas) {
  const auto listed = [&] {
    return std::string(FindString(*api_.Find("configmaps", "nos/covered"), "data", "namespaces"));
  };
  int patches = 0;
  api_.intercept = [&](const kube::ApiRequest& request) {
    patches += request.path == "/api/v1/namespaces/nos/configmaps/covered";
    return std::optional<Result<kube::ApiResponse>>();
  };
  OperatorConfig config;
  config.namespaces_map_ns = "nos";
  config.namespaces_map = "covered";
  Composite("team", {"b", "a"}, {{"cpu", "2"}});
  // The chart has not created it yet.
  Start(config);
  EXPECT_EQ(patches, 1);
  api_.Put({{"kind", "ConfigMap"}, {"metadata", {{"namespace", "nos"}, {"name", "covered"}}}});
  ASSERT_TRUE(reconcile::testing::RunFor(*runner_, clock_, std::chrono::minutes(2)));
  EXPECT_EQ(listed(), ",a,b,");
  patches = 0;
  Composite("more", {"c", "a"}, {{"cpu", "1"}});
  Run();
  EXPECT_EQ(listed(), ",a,b,c,");
  Pod("a", "p");
  Run();
  EXPECT_EQ(patches, 1);
  api_.Remove("compositeelasticquotas", "default/team");
  Run();
  EXPECT_EQ(listed(), ",a,c,");
  // Somebody else changes it; a new leader does not wait for the next refresh.
  api_.Put({{"kind", "ConfigMap"},
            {"metadata", {{"namespace", "nos"}, {"name", "covered"}}},
            {"data", {{"namespaces", ","}}}});
  operator_->Lead(false);
  operator_->Lead(true);
  runner_->Poke(clock_.Now());
  Run();
  EXPECT_EQ(listed(), ",a,c,");
}

TEST_F(OperatorTest, ReportsBrokenRulesInStatus) {
  Quota("a", {{"cpu", "10"}}, {{"cpu", "2"}});
  PutQuota("ElasticQuota", "b", "quota", {{"min", ListOf({{"cpu", "50"}})}, {"parent", "a/quota"}});
  Start();
  const std::string too_much =
      "the quotas below a/quota are guaranteed 50 of cpu together, and it has 10: lower their "
      "spec.min or raise its";
  EXPECT_EQ(InForce("a/quota"),
            "False PartlyInForce: spec.max of cpu is 2, less than the 10 of spec.min: raise max or "
            "lower min; " +
                too_much);
  EXPECT_EQ(InForce("b/quota"), "False PartlyInForce: " + too_much);
  Quota("a", {{"cpu", "50"}});
  Run();
  EXPECT_EQ(InForce("a/quota"), "True InForce: ");
  EXPECT_EQ(InForce("b/quota"), "True InForce: ");
}

TEST_F(OperatorTest, ReportsUnreadableQuota) {
  Quota("a", {{"cpu", "-1"}});
  Quota("b", {{"cpu", "1"}});
  Start();
  EXPECT_EQ(InForce("a/quota"),
            "False Unreadable: Ignoring invalid quota: spec.min[cpu]: must not be negative");
  EXPECT_THAT(Split(EventsOf(api_), '\n'),
              Contains("Unreadable: Ignoring invalid quota: spec.min[cpu]: must not be negative"));
  Quota("b", {{"cpu", "much"}});
  Run();
  EXPECT_EQ(
      InForce("b/quota"),
      "False PartlyInForce: its last change cannot be read and does not count: spec.min[cpu]: "
      "'much' is not a quantity (examples: 500m, 2, 16Gi)");
  api_.writes.clear();
  Run();
  EXPECT_TRUE(api_.writes.empty());
  Quota("a", {{"cpu", "1"}});
  Quota("b", {{"cpu", "2"}});
  Run();
  EXPECT_EQ(InForce("a/quota"), "True InForce: ");
  EXPECT_EQ(InForce("b/quota"), "True InForce: ");
}

TEST_F(OperatorTest, PublishesReclaimedEvent) {
  Node("n");
  Quota("a", {{"cpu", "1"}});
  Pod("a", "p1");
  Start();
  Change("a/p1", [](Json& pod) {
    MakeObject(pod, "status")["conditions"] =
        JsonArray{{{"type", "DisruptionTarget"},
                   {"status", "True"},
                   {"reason", "PreemptionByScheduler"},
                   {"message", reconcile::ReclaimMessage("nos")}}};
  });
  Run();
  EXPECT_THAT(Split(EventsOf(api_), '\n'),
              Contains("Reclaimed: Evicting Pod a/p1: " + reconcile::ReclaimMessage("nos")));
}

// A permanently failing write does not delay the others.
TEST_F(OperatorTest, FailingWriteDoesNotDelayOthers) {
  Node("n");
  Quota("a", {{"cpu", "1"}});
  Pod("a", "bad");
  Pod("a", "good");
  Refuse(api_, "PATCH", "pods/bad", kube::HttpStatus(403));
  OperatorConfig config;
  config.writes_per_call = 1;
  Start(config);
  EXPECT_EQ(Label("a/bad"), "");
  EXPECT_EQ(Label("a/good"), "over-quota");
  EXPECT_EQ(StatusList("a/quota", "used"), "cpu=2");
  api_.intercept = nullptr;
  ASSERT_TRUE(reconcile::testing::RunFor(*runner_, clock_, std::chrono::minutes(1)));
  EXPECT_EQ(Label("a/bad"), "in-quota");
}

// CRDs of the Go version of nos keep only `used` of a status.
TEST_F(OperatorTest, StopsWritingStatusThatOldCrdDrops) {
  Node("n");
  Quota("a", {{"cpu", "1"}});
  Pod("a", "p1");
  api_.intercept = [&](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    if (request.method != "PATCH" || !request.path.ends_with("/status")) return answer;
    Json object = *api_.Find("elasticquotas", "a/quota");
    const Json before = object;
    MakeObject(object, "status")["used"] = {{"cpu", "1"}};
    if (object != before) api_.Put(object);
    answer = Result<kube::ApiResponse>(kube::ApiResponse{200, object, {}, {}});
    return answer;
  };
  Start();
  EXPECT_EQ(StatusList("a/quota", "used"), "cpu=1");
  EXPECT_LE(api_.writes.size(), 4U);
}

// Events are not repeated for each pod, either.
TEST_F(OperatorTest, PublishesEventOnceWithOldCrd) {
  Node("n");
  Quota("a", {{"cpu", "1"}});
  Quota("b", {{"cpu", "9"}});
  for (const char* pod : {"p1", "p2"}) Pod("a", pod);
  api_.intercept = [&](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    if (request.method != "PATCH" || !request.path.ends_with("/status")) return answer;
    const std::string key = request.path.find("/a/") == std::string::npos ? "b/quota" : "a/quota";
    Json object = *api_.Find("elasticquotas", key);
    const Json before = object;
    if (const Json* used = nos::Find(request.body, "status", "used")) {
      MakeObject(object, "status")["used"] = *used;
    }
    if (object != before) api_.Put(object);
    answer = Result<kube::ApiResponse>(kube::ApiResponse{200, object, {}, {}});
    return answer;
  };
  Start();
  for (const char* pod : {"p3", "p4", "p5"}) {
    Pod("a", pod);
    Run();
  }
  EXPECT_EQ(StatusList("a/quota", "used"), "cpu=5");
  EXPECT_EQ(reconcile::testing::CountEvents(api_, "Borrowing"), 1) << EventsOf(api_);
}

// A pod that starts changes the idle amounts of all quotas. Its own quota is updated at once, the
// others in turn.
TEST_F(OperatorTest, SpreadsShareUpdatesOverTime) {
  Node("n");
  for (int i = 0; i < 60; ++i) Quota("ns" + std::to_string(i), {{"cpu", "10"}});
  Start();
  const auto guaranteed = [&] {
    std::set<std::string> amounts;
    for (int i = 0; i < 60; ++i) {
      amounts.insert(StatusList("ns" + std::to_string(i) + "/quota", "guaranteed"));
    }
    return amounts;
  };
  api_.writes.clear();
  Pod("ns7", "p", {{"cpu", "6"}});
  ASSERT_TRUE(reconcile::testing::RunFor(*runner_, clock_, std::chrono::seconds(2)));
  EXPECT_EQ(StatusList("ns7/quota", "used"), "cpu=6");
  EXPECT_LE(api_.writes.size(), 2U + 3 * OperatorConfig().shares_per_look);
  EXPECT_EQ(guaranteed().size(), 2U);
  // The first quotas do not starve the others.
  for (int i = 0; i < 20; ++i) {
    Pod("ns8", "p" + std::to_string(i), {{"cpu", "1m"}});
    ASSERT_TRUE(reconcile::testing::RunFor(*runner_, clock_, std::chrono::seconds(1)));
  }
  for (int i = 0; i < 60; ++i) {
    EXPECT_NE(StatusList("ns" + std::to_string(i) + "/quota", "guaranteed"), "cpu=20") << i;
  }
  ASSERT_TRUE(reconcile::testing::RunFor(*runner_, clock_, std::chrono::minutes(1)));
  EXPECT_EQ(guaranteed().size(), 1U);
  api_.writes.clear();
  Start();
  EXPECT_TRUE(api_.writes.empty()) << "all of it has been published";
}

TEST_F(OperatorTest, WritesOnlyWhileLeading) {
  Node("n");
  Quota("a", {{"cpu", "1"}});
  Pod("a", "p1");
  Start();
  operator_->Lead(false);
  api_.writes.clear();
  Pod("a", "p2");
  Run();
  EXPECT_TRUE(api_.writes.empty());
  EXPECT_TRUE(operator_->Lead(true));
  runner_->Poke(clock_.Now());
  Run();
  EXPECT_EQ(Label("a/p2"), "over-quota");
}

}  // namespace
}  // namespace nos::controllers
