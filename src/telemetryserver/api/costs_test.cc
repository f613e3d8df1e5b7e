// Costs by the API: from reports to rows, late reports, rights, CSV.
#include <fmt/format.h>

#include "codec/millionths.h"
#include "telemetryserver/api/fixture_test.h"

namespace nos::telemetryserver {
namespace {

constexpr telemetry::Millis kStart = telemetry::kReportStart;

int64_t Amount(const Json& row, std::string_view key) {
  return ParseMillionths(FindString(row, key)).value_or(-1);
}

class CostApiTest : public ApiTest {
 protected:
  const JsonArray& Rows(const Json& answer) { return Find(answer, "rows")->get_array(); }
  // The row of this kind and name; null if there is none.
  Json Row(const Json& answer, std::string_view kind, std::string_view name = "") {
    for (const Json& row : Rows(answer)) {
      if (FindString(row, "kind") == kind && FindString(row, "name") == name) return row;
    }
    return {};
  }
  void ExpectSum(const Json& answer) {
    const Json& total = *Find(answer, "total");
    for (const char* key : {"cost", "gpu_hours", "unpriced_gpu_hours", "borrowed"}) {
      int64_t sum = 0;
      for (const Json& row : Rows(answer)) sum += std::max<int64_t>(0, Amount(row, key));
      EXPECT_EQ(sum, std::max<int64_t>(0, Amount(total, key))) << key;
    }
  }
  // The answer of a server that has kept no hours.
  Json Anew(const std::string& target) {
    api_.reset();
    ingest_.reset();
    Serve();
    return Get(target);
  }
};

TEST_F(CostApiTest, RowsAddUpForEveryGrouping) {
  Fill();
  Report({1, 2, 7}, 7, 200);
  for (const char* by : {"namespace", "quota", "job", "pod", "model", "category"}) {
    const Json answer =
        Get(fmt::format("/api/v1/cost?by={}&from={}&to={}", by, kStart, kStart + 1'800'000));
    ExpectSum(answer);
    EXPECT_EQ(FindString(answer, "currency"), "EUR");
    // Two GPUs for half an hour.
    EXPECT_EQ(Amount(*Find(answer, "total"), "cost"), 2'500'000) << by;
  }
}

TEST_F(CostApiTest, KeepsClosedHoursUntilLateReportsArrive) {
  const telemetry::FleetShape shape{1, 2, 7};
  Report(shape, 0, 300);
  clock_.Set(kStart + 3 * kHour);
  const std::string target =
      fmt::format("/api/v1/cost?by=category&from={}&to={}", kStart, kStart + 2 * kHour);
  const Json first = Get(target);
  EXPECT_EQ(Get(target), first);
  // A node that was cut off delivers its samples late: its silence ends.
  JsonArray late;
  for (telemetry::Millis at = kStart + 3'200'000; at < kStart + 4'000'000; at += 60'000) {
    late.push_back({{"kind", "gpu"},
                    {"at", at},
                    {"gpu", telemetry::GpuName(0, 0)},
                    {"metrics", {{"memory_used", 1}}}});
  }
  ASSERT_TRUE(
      Take(telemetry::EnvelopeOf("node/" + telemetry::NodeName(0), 1, late, "boot-2")).status.ok());
  ASSERT_TRUE(recorder_->Settle().ok());
  const Json second = Get(target);
  EXPECT_LT(Amount(Row(second, "category", "not_reported"), "cost"),
            Amount(Row(first, "category", "not_reported"), "cost"));
  EXPECT_EQ(Find(second, "total", "cost")->get_string(),
            Find(first, "total", "cost")->get_string());
  EXPECT_EQ(Anew(target), second);
  // A late change of the state: the node was removed after half an hour.
  JsonArray removal;
  removal.push_back(
      {{"kind", "node"}, {"at", kStart}, {"node", telemetry::NodeName(0)}, {"ready", true}});
  removal.push_back({{"kind", "removed"},
                     {"at", kStart + 3'600'000},
                     {"what", "node"},
                     {"node", telemetry::NodeName(0)}});
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 1, removal)).status.ok());
  ASSERT_TRUE(recorder_->Settle().ok());
  const Json third = Get(target);
  EXPECT_LT(Amount(*Find(third, "total"), "cost"), Amount(*Find(second, "total"), "cost"));
  EXPECT_EQ(Anew(target), third);
}

TEST_F(CostApiTest, ReadersOfSomeNamespacesSeeOneSumOfTheOthers) {
  Fill();
  Report({1, 2, 7}, 7, 60);
  const std::string range = fmt::format("&from={}&to={}", kStart, kStart + 600'000);
  const Json all = Get("/api/v1/cost?by=pod" + range);
  reader_ = {"kim", false, {"team-0"}};
  const Json some = Get("/api/v1/cost?by=pod" + range);
  ExpectSum(some);
  EXPECT_EQ(Find(some, "total", "cost")->get_string(), Find(all, "total", "cost")->get_string());
  int others = 0;
  for (const Json& row : Rows(some)) {
    others += FindString(row, "kind") == "others" ? 1 : 0;
    EXPECT_TRUE(FindString(row, "kind") == "others" || FindString(row, "namespace") == "team-0");
  }
  EXPECT_EQ(others, 1);
  const Json own = Get("/api/v1/cost?by=pod&namespace=team-0" + range);
  ExpectSum(own);
  EXPECT_TRUE(Row(own, "others").is_null());
  const Json foreign = Get("/api/v1/cost?namespace=team-1" + range);
  EXPECT_TRUE(Rows(foreign).empty());
}

TEST_F(CostApiTest, GpusWithoutPriceAreNotFree) {
  prices_ = {"EUR", "", {{.per_gpu_hour = 1'000'000, .model = "no such GPU"}}};
  api_.reset();
  ingest_.reset();
  Serve();
  Fill();
  Report({1, 2, 7}, 7, 60);
  const Json answer = Get("/api/v1/cost");
  EXPECT_TRUE(Find(answer, "total", "cost")->is_null());
  const Json& total = *Find(answer, "total");
  EXPECT_GT(Amount(total, "gpu_hours"), 0);
  EXPECT_EQ(Amount(total, "gpu_hours"), Amount(total, "unpriced_gpu_hours"));
}

TEST_F(CostApiTest, RowsBeyondTheLimitAreOne) {
  Fill();
  Report({1, 2, 7}, 7, 60);
  const Json answer = Get("/api/v1/cost?by=pod&limit=2");
  EXPECT_EQ(Rows(answer).size(), 3U);
  EXPECT_EQ(FindString(Rows(answer)[2], "kind"), "rest");
  ExpectSum(answer);
}

TEST_F(CostApiTest, AnswersCsv) {
  Fill();
  Report({1, 2, 7}, 7, 60);
  const net::HttpResponse csv = Ask("/api/v1/cost?by=pod&format=csv");
  EXPECT_EQ(csv.code, 200);
  EXPECT_TRUE(csv.content_type.starts_with("text/csv"));
  const net::HttpResponse accepted =
      Ask("/api/v1/cost?by=pod", "GET", "", {{"accept", "text/csv, */*"}});
  EXPECT_EQ(accepted.body, csv.body);
  const Json json = Get("/api/v1/cost?by=pod");
  const auto lines = static_cast<size_t>(std::ranges::count(csv.body, '\n'));
  EXPECT_EQ(lines, Rows(json).size() + 2);
  EXPECT_NE(
      csv.body.find("total,,," + std::string(View(Find(json, "total", "cost")->get_string()))),
      std::string::npos);
}

TEST_F(CostApiTest, RefusesWrongParameters) {
  Fill();
  for (const char* query :
       {"by=colour", "from=5&to=5", "from=x", "format=xml", "limit=0", "from=0&to=9000000000000"}) {
    Get(std::string("/api/v1/cost?") + query, 400);
  }
  Get("/api/v1/cost?cluster=other", 404);
}

TEST_F(CostApiTest, MetricsCountClosedHoursOnce) {
  Report({1, 2, 7}, 0, 10);
  costs_->Count(metrics_);
  EXPECT_EQ(metrics_.Text().find("nos_cost_total{"), std::string::npos);
  clock_.Set(kStart + 3 * kHour);
  costs_->Count(metrics_);
  const auto lines = [&] {
    std::string found;
    const std::string text = metrics_.Text();
    for (size_t at = text.find("\nnos_cost_total{"); at != std::string::npos;
         at = text.find("\nnos_cost_total{", at + 1)) {
      found += text.substr(at, text.find('\n', at + 1) - at);
    }
    return found;
  };
  const std::string once = lines();
  EXPECT_NE(once.find("currency=\"EUR\""), std::string::npos) << once;
  costs_->Count(metrics_);
  EXPECT_EQ(lines(), once);
}

}  // namespace
}  // namespace nos::telemetryserver
