// When the autoscaler requests nodes, and from which pools.
#include "controllers/autoscaler/fixture_test.h"
#include "kube/testing/refuse.h"

namespace nos::controllers {
namespace {

TEST_F(AutoscalerTest, GrowsCheapestPoolFromZeroForUnschedulablePod) {
  Pool("cheap", "1", 5);
  Pool("dear", "9", 5);
  Pod("p", "4");
  Run(seconds(9));
  EXPECT_EQ(Wanted("cheap"), 0) << "the partitioner may still help";
  // Counters start at 0: increase() would miss the first event of a new series.
  EXPECT_THAT(metrics_.Text(), HasSubstr("nos_autoscaler_decisions_total{action=\"close\"} 0"));
  Run(minutes(1));
  EXPECT_EQ(Wanted("cheap"), 1);
  EXPECT_EQ(Wanted("dear"), 0);
  EXPECT_EQ(ScalingCondition("p"), "True NodesComing: Waiting for a new Node of NodePool cheap");
  EXPECT_GE(CountEvents("ScaledUp"), 1);
  EXPECT_GE(CountEvents("NodesComing"), 1);
  ASSERT_EQ(autoscaler_->decisions().size(), 1U);
  EXPECT_EQ(autoscaler_->decisions().front().action, "grow");
  EXPECT_EQ(autoscaler_->decisions().front().pods, std::vector<std::string>{"ml/p"});
  EXPECT_THAT(metrics_.Text(), HasSubstr("nos_pool_nodes{pool=\"cheap\",state=\"coming\"} 1"));
}

TEST_F(AutoscalerTest, PodsWithForgedLabelsCountAsOrdinaryPods) {
  Pool("a", "1", 5, 0, 1);
  Node("a1", "a");
  Pod("liar", "6");
  Bind("liar", "a1");
  Pod("place", "6");
  Change("pods", "ml/liar",
         [](Json& pod) { MakeObject(pod, "metadata", "labels")[kDemandOf] = "a"; });
  Change("pods", "ml/place",
         [](Json& pod) { MakeObject(pod, "metadata", "labels")[kPlaceholder] = "r-1"; });
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 2) << "one uses capacity, the other is pending like any pod";
}

TEST_F(AutoscalerTest, WaitsForStartingNodesBeforeRequestingMore) {
  Pool("a", "1", 5);
  Pod("p", "4");
  Run(seconds(30));
  Pod("q", "4");
  Run(seconds(30));
  EXPECT_EQ(Wanted("a"), 1) << "both fit on the starting node";
  Node("a1", "a", false);
  Run(seconds(50));
  EXPECT_EQ(Wanted("a"), 1) << "it exists and is not ready";
  Node("a1", "a");
  Run(seconds(20));
  Bind("p", "a1");
  Bind("q", "a1");
  Run(minutes(5));
  EXPECT_EQ(Wanted("a"), 1);
  EXPECT_EQ(StatusOf("a", "nodes")->get_int64(), 1);
  EXPECT_EQ(StatusOf("a", "failures")->get_int64(), 0);
  EXPECT_EQ(StatusOf("a", "asked"), nullptr);
  EXPECT_THAT(Ready("a"), HasSubstr("True Ready"));
}

TEST_F(AutoscalerTest, ClosesPoolThatDoesNotDeliverAndUsesNextBest) {
  Pool("cheap", "1", 5);
  Pool("dear", "9", 5);
  Pod("p", "4");
  Run(minutes(3));
  EXPECT_EQ(Wanted("cheap"), 0) << "late nodes must not be added";
  EXPECT_EQ(Wanted("dear"), 1);
  EXPECT_EQ(StatusOf("cheap", "failures")->get_int64(), 1);
  EXPECT_THAT(Ready("cheap"), HasSubstr("False NotDelivered"));
  EXPECT_GE(CountEvents("NotDelivered"), 1);
  EXPECT_EQ(Decisions("close"), 1);
  Restart();
  Node("d1", "dear");
  Run(minutes(1));
  Bind("p", "d1");
  Run(minutes(6));
  EXPECT_EQ(Wanted("cheap"), 0);
  EXPECT_EQ(StatusOf("cheap", "closedUntil"), nullptr);
  EXPECT_THAT(Ready("cheap"), HasSubstr("True Ready"));
}

TEST_F(AutoscalerTest, DoesNotRequestMoreNodesOfPoolThatMadeWrongNode) {
  Pool("a", "1", 5);
  Pod("p", "6");
  Run(seconds(30));
  Node("a1", "a", true, "4");
  Run(minutes(4));
  EXPECT_EQ(Wanted("a"), 1);
  EXPECT_EQ(Ready("a"),
            NotDelivered("a", "node a1 has 4 of cpu for pods, but the pool requires 8"));
  EXPECT_THAT(ScalingCondition("p"), HasSubstr("False PoolClosed"));
}

TEST_F(AutoscalerTest, DoesNotRequestMoreNodesOfPoolWhoseNodeNeverBecomesReady) {
  Pool("a", "1", 5);
  Pod("p", "6");
  Run(seconds(30));
  Node("a1", "a", false);
  Change("nodes", "a1", [](Json& node) {
    MakeObject(node, "spec")["taints"] =
        JsonArray{{{"key", "node.kubernetes.io/not-ready"}, {"effect", "NoSchedule"}}};
  });
  Run(minutes(4));
  EXPECT_EQ(Wanted("a"), 1);
  EXPECT_EQ(Ready("a"), NotDelivered("a", "node a1 is not Ready"));
  EXPECT_THAT(ScalingCondition("p"), HasSubstr("False PoolClosed"));
}

TEST_F(AutoscalerTest, PodThatNoPoolFitsDoesNotUseUpQuotaOfOthers) {
  Pool("a", "1", 5);
  api_.Put({{"apiVersion", "nos.nebuly.com/v1alpha1"},
            {"kind", "ElasticQuota"},
            {"metadata", {{"namespace", "ml"}, {"name", "quota"}, {"uid", "q"}}},
            {"spec", {{"min", {{"cpu", "16"}}}, {"max", {{"cpu", "16"}}}}}});
  Pod("impossible", "16");
  clock_.Advance(seconds(1));
  Pod("p", "8");
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 1);
  EXPECT_THAT(ScalingCondition("p"), HasSubstr("NodesComing"));
  EXPECT_THAT(ScalingCondition("impossible"), HasSubstr("False "));
}

TEST_F(AutoscalerTest, RequestsNodesForWholeGangOrNotAtAll) {
  Pool("a", "1", 2);
  Gang(3);
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 0);
  EXPECT_THAT(ScalingCondition("g1"), HasSubstr("False "));
  api_.Put(PoolJson("a", "1", 3));
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 3);
}

TEST_F(AutoscalerTest, RequestsNodesOnlyForGangMembersWithoutCapacity) {
  config_.shrink_after = minutes(1);
  Restart();
  Pool("a", "1", 5, 0, 1);
  Node("a1", "a");
  Gang(2);
  Run(seconds(90));
  EXPECT_EQ(Wanted("a"), 2);
  EXPECT_THAT((std::set{ScalingCondition("g1"), ScalingCondition("g2")}),
              ElementsAre("True NodesComing: Waiting for a new Node of NodePool a",
                          "True NodesComing: Waiting for new Nodes for other Pods of its group; "
                          "this Pod fits on Node a1"));
  EXPECT_EQ(Marked().size(), 0U) << "it is not idle: it waits for the gang";
}

TEST_F(AutoscalerTest, DoesNotOverwriteConcurrentScaleUp) {
  Pool("a", "1", 5);
  int refused = 0;
  api_.intercept =
      [&](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
    if (!IsScale(request) || refused > 0) return std::nullopt;
    ++refused;
    Fleet("a", 1);  // by hand, at the same moment
    return std::nullopt;
  };
  Pod("p", "4");
  Run(minutes(1));
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(Wanted("a"), 1) << "the node requested by hand serves it";
}

TEST_F(AutoscalerTest, AwaitsNodesRequestedByOthersAboveMaximum) {
  Pool("a", "1", 2);
  Run(seconds(10));
  Fleet("a", 3);
  Run(seconds(60));
  EXPECT_EQ(Wanted("a"), 3) << "above the maximum, but requested by others";
  EXPECT_THAT(Ready("a"), HasSubstr("AboveMaximum"));
  EXPECT_NE(StatusOf("a", "asked"), nullptr);
}

TEST_F(AutoscalerTest, DoesNotRepeatRequestAfterCrash) {
  Pool("a", "1", 5);
  Run(seconds(5));
  api_.intercept =
      [&](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
    const bool status = request.path.ends_with("/nodepools/a/status");
    return status && Wanted("a") > 0
               ? std::optional<Result<kube::ApiResponse>>(kube::HttpStatus(500))
               : std::nullopt;
  };
  Pod("p", "4");
  Run(seconds(12));
  ASSERT_EQ(Wanted("a"), 1);
  api_.intercept = nullptr;
  Restart();
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 1);
  EXPECT_NE(StatusOf("a", "asked"), nullptr);
}

TEST_F(AutoscalerTest, DoesNotAskAnotherPoolAfterRequestWithoutAnswer) {
  Pool("cheap", "1", 5);
  Pool("dear", "9", 5);
  api_.intercept =
      [&](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
    if (!IsScale(request) || Wanted("cheap") > 0) return std::nullopt;
    Fleet("cheap", 1);  // the write took effect
    return Result<kube::ApiResponse>(Status(Code::kDeadline, "no answer"));
  };
  Pod("p", "4");
  Run(minutes(1));
  EXPECT_EQ(Wanted("cheap"), 1);
  EXPECT_EQ(Wanted("dear"), 0);
}

TEST_F(AutoscalerTest, ReportsPoolThatRefusesScaleAndUsesNextBest) {
  Pool("cheap", "1", 5);
  Pool("dear", "9", 5);
  Refuse(api_, "PUT", "/cheap/scale", kube::HttpStatus(403));
  Pod("p", "4");
  Run(minutes(1));
  EXPECT_EQ(Wanted("dear"), 1);
  EXPECT_THAT(Ready("cheap"), HasSubstr("False ScaleFailed"));
  EXPECT_GE(CountEvents("ScaleFailed"), 1);
}

TEST_F(AutoscalerTest, ReportsPoolWhoseScaleAlwaysFailsAndUsesNextBest) {
  Pool("cheap", "1", 5);
  Pool("dear", "9", 5);
  // An admission webhook for this kind is down.
  const auto asked = Refuse(api_, "PUT", "/cheap/scale", kube::HttpStatus(500));
  Pod("p", "4");
  Run(minutes(2));
  EXPECT_EQ(Wanted("dear"), 1);
  EXPECT_LT(*asked, 10);
  EXPECT_THAT(Ready("cheap"), HasSubstr("False ScaleFailed"));
}

TEST_F(AutoscalerTest, UnreadablePoolDoesNotAffectOthers) {
  Pool("a", "9", 5);
  api_.Put(PoolJson("cheap", "1", 5));  // its Fleet does not exist
  Json bad = PoolJson("bad", "1", 5);
  MakeObject(bad, "spec")["max"] = "many";
  api_.Put(bad);
  Pod("p", "4");
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 1);
  EXPECT_THAT(Ready("cheap"), HasSubstr("False ScaleFailed"));
  EXPECT_GE(CountEvents("Unreadable"), 1);
  EXPECT_EQ(Ready("bad"), "False Invalid: spec.max: must be a whole number, not a string");
}

TEST_F(AutoscalerTest, DoesNotRetryRefusedStatusOfUnreadablePoolOnEveryCall) {
  Json bad = PoolJson("bad", "1", 5);
  MakeObject(bad, "spec")["max"] = "many";
  api_.Put(bad);
  const auto asked = Refuse(api_, "", "/nodepools/bad/status", kube::HttpStatus(422));
  for (int i = 0; i < 20; ++i) {
    Pod("p" + std::to_string(i), "1");
    Run(seconds(1));
  }
  EXPECT_EQ(*asked, 1);
  Run(minutes(1));
  EXPECT_GE(*asked, 2);
}

TEST_F(AutoscalerTest, KeepsPoolWhoseSpecBecameInvalidAndReportsIt) {
  Pool("a", "1", 5);
  Pod("p", "4");
  Run(seconds(30));
  ASSERT_EQ(Wanted("a"), 1);
  Change("nodepools", "a", [](Json& pool) { MakeObject(pool, "spec")["max"] = "many"; });
  Run(seconds(30));
  EXPECT_EQ(
      Ready("a"),
      "False Invalid: Ignoring change of NodePool, keeping last valid state: spec.max: must be a "
      "whole number, not a string");
  EXPECT_EQ(Wanted("a"), 1);
  const auto version = [&] {
    return std::string(FindString(*api_.Find("nodepools", "a"), "metadata", "resourceVersion"));
  };
  const std::string before = version();
  Run(seconds(30));
  EXPECT_EQ(version(), before) << "what is known is not written again";
  Change("nodepools", "a", [](Json& pool) { MakeObject(pool, "spec")["max"] = 5; });
  Run(seconds(15));
  EXPECT_THAT(Ready("a"), Not(HasSubstr("Invalid")));
}

TEST_F(AutoscalerTest, ReportsSignalThatCannotBePublishedAndUsesNextBestPool) {
  config_.signal.provisioning_requests = false;
  Restart();
  Json asking = PoolJson("asking", "1", 5);
  JsonObject& spec = MakeObject(asking, "spec");
  spec.erase("scaleTargetRef");
  spec.erase("deleteAnnotation");
  spec["signal"] = "ProvisioningRequest";
  api_.Put(asking);
  Pool("dear", "9", 5);
  Pod("p", "4");
  Run(minutes(1));
  EXPECT_EQ(Ready("asking"),
            "False ScaleFailed: Failed to read the desired number of Nodes: invalid: spec.signal: "
            "ProvisioningRequests are switched off here (provisioningRequests of the "
            "configuration, autoscaler.provisioningRequests of the chart): switch them on, or use "
            "Pods");
  EXPECT_GE(CountEvents("ScaleFailed"), 1);
  EXPECT_EQ(Wanted("dear"), 1);
}

TEST_F(AutoscalerTest, ReopensPoolOnceItCanBeReadAfterItsPause) {
  Pool("a", "1", 5);
  Pod("p", "4");
  Run(minutes(3));
  ASSERT_THAT(Ready("a"), HasSubstr("False NotDelivered"));
  Refuse(api_, "", "/scale", kube::HttpStatus(503));
  Restart();         // so the pool has never been read
  Run(minutes(30));  // it becomes idle
  EXPECT_THAT(Ready("a"), HasSubstr("False ScaleFailed"));
  api_.intercept = nullptr;
  Run(minutes(2));
  EXPECT_EQ(Wanted("a"), 1) << "the next attempt";
}

TEST_F(AutoscalerTest, ReportsPoolWithUnknownGpuAsInvalid) {
  Pool("a", "1", 5);
  Change("nodepools", "a", [](Json& pool) {
    MakeObject(pool, "spec")["gpu"] = {{"model", "Unheard"}, {"count", 1}, {"partitioning", "mig"}};
  });
  Run(minutes(1));
  EXPECT_EQ(Ready("a"),
            "False Invalid: NodePool a: spec.gpu.model: 'Unheard' is not in the catalogue: add it "
            "to the catalogue file (docs/catalogue.md)");
}

TEST_F(AutoscalerTest, FillsMinimumOfPoolWithoutPods) {
  Pool("a", "1", 5, 2);
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 2);
}

TEST_F(AutoscalerTest, RequestsNodesFromWebhook) {
  int replicas = 0;
  std::vector<std::string> posted;
  webhook_ = [&](std::string_view method, const std::string&,
                 const std::string& body) -> Result<std::string> {
    if (method == "GET") return fmt::format(R"({{"replicas":{}}})", replicas);
    posted.push_back(body);
    ++replicas;
    return std::string();
  };
  Restart();
  HookedPool("hooked");
  Pod("p", "4");
  Run(minutes(1));
  ASSERT_EQ(posted.size(), 1U);
  EXPECT_EQ(posted[0], R"({"pool":"hooked","replicas":1,"from":0,"remove":[]})");
}

class AutoscalerDeadHooksTest : public AutoscalerTest {
 protected:
  AutoscalerDeadHooksTest() {
    webhook_ = [this](std::string_view, const std::string&,
                      const std::string&) -> Result<std::string> {
      asked_.push_back(clock_.Now());
      if (answers_) return std::string(R"({"replicas":0})");
      return Status(Code::kDeadline, "no answer");
    };
    Restart();
  }

  bool answers_ = false;
  std::vector<Time> asked_;
};

TEST_F(AutoscalerDeadHooksTest, SilentWebhookIsReadLessOftenUntilItAnswers) {
  HookedPool("a");
  Run(minutes(30));
  EXPECT_GE(asked_.size(), 6U);
  EXPECT_LE(asked_.size(), 11U);
  EXPECT_THAT(
      Ready("a"),
      MatchesRegex(
          "False ScaleFailed: Failed to read the desired number of Nodes: deadline exceeded: "
          "webhook of the pool: no answer; it has not answered since 2027-01-15T08:00:0[0-9]Z, "
          R"(and is asked less and less often \(after 5m at most\))"));
  answers_ = true;
  Run(minutes(6));
  EXPECT_THAT(Ready("a"), HasSubstr("True Ready"));
  asked_.clear();
  Run(minutes(5));
  EXPECT_GE(asked_.size(), 9U) << "as often as others";
}

TEST_F(AutoscalerDeadHooksTest, SilentWebhookIsReadAtOnceUnderNewUrl) {
  HookedPool("a");
  Run(minutes(30));
  asked_.clear();
  Change("nodepools", "a", [](Json& pool) {
    MakeObject(pool, "spec")["webhook"] = {{"url", "http://other.example/"}};
  });
  Run(seconds(2));
  EXPECT_EQ(asked_.size(), 1U);
}

TEST_F(AutoscalerDeadHooksTest, SilentWebhooksAreReadOneAtATime) {
  for (const char* name : {"a", "b", "c"}) HookedPool(name);
  Run(seconds(20));
  ASSERT_EQ(asked_.size(), 3U);
  asked_.clear();
  Run(minutes(30));
  const std::set<Time> times(asked_.begin(), asked_.end());
  EXPECT_GE(asked_.size(), 15U);
  EXPECT_EQ(times.size(), asked_.size()) << "other work runs in between";
}

TEST_F(AutoscalerTest, WritesNothingMoreWhenNoPoolFits) {
  Pool("a", "1", 1);
  Pod("impossible", "100");
  Run(minutes(1));
  EXPECT_THAT(ScalingCondition("impossible"), HasSubstr("False NoPoolFits"));
  const size_t before = api_.writes.size();
  Run(minutes(30));
  EXPECT_EQ(api_.writes.size(), before);
}

}  // namespace
}  // namespace nos::controllers
