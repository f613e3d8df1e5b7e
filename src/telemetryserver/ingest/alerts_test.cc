#include "telemetryserver/alerts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "telemetryserver/api/fixture_test.h"

namespace nos::telemetryserver {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr telemetry::Millis kNow = 1'800'000'000'000;  // 2027-01-15T08:00:00Z

// The form is that of Alertmanager's documentation of webhook_config.
Json AlertJson(const std::string& name, const std::string& status = "firing",
               const std::string& ns = "", const std::string& ends = "0001-01-01T00:00:00Z") {
  JsonObject labels{{"alertname", name}, {"severity", "warning"}};
  if (!ns.empty()) labels["namespace"] = ns;
  return JsonObject{{"status", status},
                    {"labels", std::move(labels)},
                    {"annotations", {{"summary", name + " fires"}}},
                    {"startsAt", "2027-01-15T07:00:00.123Z"},
                    {"endsAt", ends},
                    {"generatorURL", "https://prometheus/graph?g0.expr=up"},
                    {"fingerprint", "0011223344556677"}};
}

std::string Payload(JsonArray alerts) {
  return WriteJson(JsonObject{{"version", "4"},
                              {"groupKey", "{}:{}"},
                              {"truncatedAlerts", 0},
                              {"status", "firing"},
                              {"receiver", "nos"},
                              {"groupLabels", JsonObject()},
                              {"commonLabels", JsonObject()},
                              {"commonAnnotations", JsonObject()},
                              {"externalURL", "http://alertmanager:9093"},
                              {"alerts", std::move(alerts)}});
}

std::vector<std::string> NamesOf(const std::vector<Alert>& alerts) {
  std::vector<std::string> names;
  for (const Alert& alert : alerts) names.emplace_back(alert.Label("alertname"));
  return names;
}

TEST(AlertTableTest, ResolvedAlertsGoAway) {
  AlertTable table;
  ASSERT_TRUE(table.Take("prod", Payload({AlertJson("A"), AlertJson("B")}), kNow).ok());
  ASSERT_THAT(NamesOf(table.Firing("prod", kNow)), ElementsAre("A", "B"));
  const Alert first = table.Firing("prod", kNow).front();
  EXPECT_EQ(first.since, kNow - 3'600'000 + 123);
  EXPECT_EQ(first.summary, "A fires");
  EXPECT_EQ(first.url, "https://prometheus/graph?g0.expr=up");
  const auto taken = table.Take("prod", Payload({AlertJson("A", "resolved")}), kNow + 1);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->resolved, 1U);
  EXPECT_THAT(NamesOf(table.Firing("prod", kNow + 1)), ElementsAre("B"));
  EXPECT_THAT(table.Firing("other", kNow), IsEmpty()) << "each cluster has its own";
}

TEST(AlertTableTest, AppliesEndsAtAndForgetsWhatIsNotRepeated) {
  AlertTable table;
  ASSERT_TRUE(table
                  .Take("prod",
                        Payload({AlertJson("ends", "firing", "", "2027-01-15T08:00:10Z"),
                                 AlertJson("over", "firing", "", "2027-01-15T07:59:59Z"),
                                 AlertJson("stays")}),
                        kNow)
                  .ok());
  EXPECT_THAT(NamesOf(table.Firing("prod", kNow)), ElementsAre("ends", "stays"));
  EXPECT_THAT(NamesOf(table.Firing("prod", kNow + 10'000)), ElementsAre("stays"));
  EXPECT_THAT(NamesOf(table.Firing("prod", kNow + kForgetAlertAfter)), ElementsAre("stays"));
  EXPECT_THAT(table.Firing("prod", kNow + kForgetAlertAfter + 1), IsEmpty());
}

TEST(AlertTableTest, CriticalAlertsComeFirst) {
  AlertTable table;
  Json critical = AlertJson("Z");
  critical.at("labels").as_object()["severity"] = "critical";
  ASSERT_TRUE(table.Take("prod", Payload({AlertJson("A"), critical}), kNow).ok());
  EXPECT_THAT(NamesOf(table.Firing("prod", kNow)), ElementsAre("Z", "A"));
}

TEST(AlertTableTest, RefusesOtherPayloads) {
  AlertTable table;
  for (const char* bad : {"", "[]", "null", "{\"version\":\"4\"}", "{\"version\":4,\"alerts\":[]}",
                          "{\"version\":\"3\",\"alerts\":[]}", "{\"version\":\"4\",\"alerts\":{}}",
                          "{\"version\":\"4\",\"alerts\":["}) {
    EXPECT_FALSE(table.Take("prod", bad, kNow).ok()) << bad;
  }
}

// A bad alert affects no other.
TEST(AlertTableTest, HostileAlertsAreRefusedOneByOne) {
  AlertTable table;
  JsonArray alerts = {nullptr, 7, JsonArray(), JsonObject(), AlertJson("good")};
  Json nameless = AlertJson("x");
  nameless.at("labels").as_object().erase("alertname");
  alerts.push_back(nameless);
  Json number = AlertJson("number");
  number.at("labels").as_object()["value"] = 7;
  alerts.push_back(number);
  Json many = AlertJson("many");
  for (size_t i = 0; i <= kMaxAlertLabels; ++i) {
    many.at("labels").as_object()["l" + std::to_string(i)] = "v";
  }
  alerts.push_back(many);
  alerts.push_back(AlertJson("status", "suppressed"));
  Json wide = AlertJson("wide");
  wide.at("labels").as_object()[std::string(kMaxAlertLabel + 1, 'n')] = "v";
  alerts.push_back(wide);
  const auto taken = table.Take("prod", Payload(alerts), kNow);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->refused, 9U);
  EXPECT_THAT(NamesOf(table.Firing("prod", kNow)), ElementsAre("good"));
}

TEST(AlertTableTest, LongTextsAreShortenedAndAddressesChecked) {
  AlertTable table;
  Json alert = AlertJson("A");
  alert.at("labels").as_object()["pod"] = std::string(100'000, 'p');
  alert.at("annotations").as_object()["description"] = std::string(100'000, 'd');
  for (const char* url : {"javascript:alert(1)", "data:text/html,x", "//evil", " https://x"}) {
    alert.as_object()["generatorURL"] = url;
    ASSERT_TRUE(table.Take("prod", Payload({alert}), kNow).ok());
    const auto firing = table.Firing("prod", kNow);
    ASSERT_EQ(firing.size(), 1U);
    EXPECT_EQ(firing[0].url, "") << url;
    EXPECT_LE(firing[0].Label("pod").size(), kMaxAlertLabel);
    EXPECT_LE(firing[0].description.size(), kMaxAlertText);
  }
  for (const char* time : {"", "x", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"}) {
    alert.as_object()["startsAt"] = time;
    EXPECT_TRUE(table.Take("prod", Payload({alert}), kNow).ok()) << time;
  }
}

TEST(AlertTableTest, IsBounded) {
  AlertTable table;
  JsonArray alerts;
  for (size_t i = 0; i < kMaxAlertsPerRequest + 5; ++i) {
    alerts.push_back(AlertJson("a" + std::to_string(i)));
  }
  const auto taken = table.Take("prod", Payload(alerts), kNow);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->refused, 5U);
  const auto more = table.Take("prod", Payload({AlertJson("more"), AlertJson("a0")}), kNow);
  EXPECT_EQ(more->refused, 1U) << "the known one is kept up to date";
  EXPECT_EQ(table.Firing("prod", kNow).size(), kMaxAlerts);
  ASSERT_TRUE(table.Take("prod", Payload({AlertJson("a0", "resolved")}), kNow).ok());
  EXPECT_EQ(table.Take("prod", Payload({AlertJson("more")}), kNow)->firing, 1U);
  for (size_t i = 1; i < kMaxAlertClusters; ++i) {
    EXPECT_TRUE(table.Take("c" + std::to_string(i), Payload({AlertJson("A")}), kNow).ok());
  }
  EXPECT_EQ(table.Take("one too many", Payload({AlertJson("A")}), kNow).status().code(),
            Code::kExhausted);
}

// The fingerprint is the sender's word: two alerts with one do not replace each other.
TEST(AlertTableTest, LabelsIdentifyAnAlert) {
  AlertTable table;
  ASSERT_TRUE(
      table.Take("prod", Payload({AlertJson("A", "firing", "x"), AlertJson("A")}), kNow).ok());
  EXPECT_EQ(table.Firing("prod", kNow).size(), 2U);
}

class AlertRouteTest : public ApiTest {
 protected:
  static net::HttpHeaders TypeOf(const std::string& type) { return {{"content-type", type}}; }
  int Send(const std::string& body, const std::string& target = "/api/v1/alerts",
           const std::string& type = "application/json") {
    return Ask(target, "POST", body, TypeOf(type)).code;
  }
};

TEST_F(AlertRouteTest, ReadersSeeAlertsOfTheirNamespaces) {
  Fill();
  ASSERT_EQ(Send(Payload({AlertJson("cluster-wide"), AlertJson("mine", "firing", "team-1"),
                          AlertJson("theirs", "firing", "team-0")})),
            200);
  EXPECT_EQ(Get("/api/v1/alerts").at("alerts").as_array().size(), 3U);
  EXPECT_EQ(Get("/api/v1/alerts?namespace=team-0").at("alerts").as_array().size(), 1U);
  reader_ = {"kim", false, {"team-1"}};
  const Json seen = Get("/api/v1/alerts");
  ASSERT_EQ(seen.at("alerts").as_array().size(), 1U);
  EXPECT_EQ(FindString(seen.at("alerts").at(0), "name"), "mine");
  EXPECT_EQ(Get("/api/v1/alerts?namespace=team-0").at("alerts").as_array().size(), 0U);
}

TEST_F(AlertRouteTest, RefusesOthers) {
  Fill();
  const std::string good = Payload({AlertJson("A")});
  EXPECT_EQ(Send(good, "/api/v1/alerts", "text/plain"), 415)
      << "a page of another site may send it";
  EXPECT_EQ(Send("{}"), 400);
  EXPECT_EQ(Send(std::string(kMaxAlertBody + 1, ' ')), 413);
  EXPECT_EQ(Send(good, "/api/v1/alerts?cluster=other"), 401);
  EXPECT_EQ(Send(good, "/api/v1/alerts?cluster=" + std::string(kMaxAlertLabel + 1, 'c')), 400);
  EXPECT_EQ(Get("/api/v1/alerts").at("alerts").as_array().size(), 0U);
  EXPECT_EQ(Send(good), 200);
  EXPECT_EQ(Ask("/api/v1/alerts", "DELETE").code, 405);
}

}  // namespace
}  // namespace nos::telemetryserver
