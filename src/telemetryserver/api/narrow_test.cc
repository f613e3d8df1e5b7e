// Records about several namespaces, as seen by readers of some of them.
#include "telemetryserver/api/narrow.h"
#include "telemetryserver/api/fixture_test.h"
#include "telemetryserver/stories.h"

namespace nos::telemetryserver {
namespace {

JsonArray Pods(const std::vector<std::string>& keys) {
  JsonArray pods;
  for (const std::string& key : keys) {
    const size_t slash = key.find('/');
    pods.push_back({{"namespace", key.substr(0, slash)},
                    {"name", key.substr(slash + 1)},
                    {"secret", "of-a-reporter"}});
  }
  return pods;
}

Json Decision(const std::string& summary, const std::string& why) {
  return {{"kind", "decision"},
          {"at", telemetry::kReportStart},
          {"id", "plan-2"},
          {"type", "plan"},
          {"state", "applied"},
          {"made", telemetry::kReportStart - 7},
          {"took_ms", 12},
          {"summary", summary},
          {"why", why},
          {"for", Pods({"team-0/hidden"})},
          {"nodes",
           {{{"node", "n"},
             {"before", JsonArray()},
             {"after", {{{"index", 0}, {"profiles", {{"1g.5gb", 7}}}, {"by", "team-0"}}}},
             {"note", "team-0"}}}},
          {"pods", Pods({"team-0/trains-there", "team-1/waits"})},
          {"victims", Pods({"team-0/gone"})}};
}

Scope ScopeOf(const std::set<std::string>& namespaces) {
  return {Reader{"kim", false, namespaces}, ""};
}

TEST(NarrowTest, CopiesOnlyKnownFieldsOfDecision) {
  const auto own =
      NarrowedDecision(Decision("repartitioned GPUs of Node n", "asked for nvidia.com/gpu"),
                       ScopeOf({"team-1"}), {"team-0", "team-1"});
  ASSERT_TRUE(own.has_value());
  const std::string text = WriteJson(*own);
  for (const char* hidden : {"team-0", "trains-there", "gone", "secret", "note", "for\"", "by\""}) {
    EXPECT_EQ(text.find(hidden), std::string::npos) << hidden << " in " << text;
  }
  EXPECT_EQ(FindString(*own, "summary"), "repartitioned GPUs of Node n");
  EXPECT_EQ(FindString(*own, "why"), "asked for nvidia.com/gpu");
  EXPECT_EQ(WriteJson(*Find(*own, "pods")), R"([{"namespace":"team-1","name":"waits"}])");
  EXPECT_EQ(WriteJson(*Find(*own, "nodes")),
            R"([{"node":"n","before":[],"after":[{"index":0,"profiles":{"1g.5gb":7}}]}])");
  EXPECT_EQ(*Find(*own, kHiddenPods), Json(true));
  EXPECT_EQ(*Find(*own, kHiddenVictims), Json(true));
  EXPECT_EQ(telemetry::IntegerOr(*own, "took_ms", 0), 12);
  EXPECT_EQ(telemetry::IntegerOr(*own, "made", 0), telemetry::kReportStart - 7);
  EXPECT_FALSE(NarrowedDecision(*own, ScopeOf({"team-2"}), {}).has_value());
  const auto whole = NarrowedDecision(Decision("", ""), ScopeOf({"team-0", "team-1"}), {});
  EXPECT_EQ(Find(*whole, kHiddenPods), nullptr) << "all of its pods are seen";
  EXPECT_EQ(Find(*whole, kHiddenVictims), nullptr);
}

TEST(NarrowTest, KeepsFreeTextThatNamesNoOtherPod) {
  const auto keeps = [](const std::string& text) {
    const auto own =
        NarrowedDecision(Decision(text, text), ScopeOf({"team-1"}), {"team-0", "team-1", "ml"});
    EXPECT_EQ(FindString(*own, "why"), FindString(*own, "summary"));
    return FindString(*own, "why") == text;
  };
  EXPECT_TRUE(keeps(""));
  EXPECT_TRUE(keeps("team-1/waits has waited for 1g.5gb (nvidia.com/mig-1g.5gb) on node n-1."));
  for (const char* text :
       {"because team-0/x", "because \"team-0/x\".", "because of team-0.", "(team-0)",
        "trains-there is in the way", "unknown-team/x", "asked by ml, too", "team-0/", "x:ml/y"}) {
    EXPECT_FALSE(keeps(text)) << text;
  }
}

using QuotaApiTest = ApiTest;

Json QuotaRecordOf(const std::string& type, double used, const std::vector<std::string>& members) {
  JsonArray namespaces;
  for (const std::string& ns : members) namespaces.emplace_back(ns);
  return {{"kind", "quota"},
          {"at", telemetry::kReportStart},
          {"type", type},
          {"namespace", "team-0"},
          {"name", "gpus"},
          {"namespaces", std::move(namespaces)},
          {"note", "secret"},
          {"resources", {{"nvidia.com/gpu", {{"min", 50}, {"used", used}, {"by", "secret"}}}}}};
}

TEST_F(QuotaApiTest, BothKindsWithSameNameAreSeparateAndMembersSeeTotals) {
  Fill();
  JsonArray records;
  records.push_back(QuotaRecordOf("ElasticQuota", 2, {"team-0"}));
  records.push_back(
      QuotaRecordOf("CompositeElasticQuota", 40, {"team-0", "team-1", "team-secret"}));
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 2, records)).status.ok());
  Report({1, 2, 7}, 7, 3);
  const auto used = [&](const std::string& kind, int code) {
    const Json answer =
        Get("/api/v1/series?metric=used&points=1&subject=" + kind + "/team-0/gpus/nvidia.com/gpu",
            code);
    const Json* series = Find(answer, "series");
    EXPECT_EQ(series == nullptr, code != 200);
    if (code != 200) return std::string();
    return WriteJson(Find(series->get_array()[0], "mean")->get_array().back());
  };
  EXPECT_EQ(used("quota", 200), "2");
  EXPECT_EQ(used("composite-quota", 200), "40");
  reader_ = {"kim", false, {"team-1"}};
  EXPECT_EQ(used("composite-quota", 200), "40") << "visible as well";
  used("quota", 403);
  Get("/api/v1/series?metric=used&subject=composite-quota/team-0/other/nvidia.com/gpu", 403);
  for (const char* target : {"/api/v1/quotas", "/api/v1/history?kind=quota"}) {
    const std::string body = Ask(target).body;
    EXPECT_EQ(body.find("secret"), std::string::npos) << body;
    EXPECT_EQ(body.find("\"ElasticQuota"), std::string::npos) << body;
    EXPECT_NE(body.find(R"("namespaces":["team-1"],"resources":{"nvidia.com/gpu":{"min":)"),
              std::string::npos)
        << body;
  }
  reader_ = {"lee", false, {"team-2"}};
  used("composite-quota", 403);
  EXPECT_EQ(Ask("/api/v1/quotas").body, R"({"quotas":[]})");
}

}  // namespace
}  // namespace nos::telemetryserver
