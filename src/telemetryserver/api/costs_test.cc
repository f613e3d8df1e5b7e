// Costs by the API: from reports to rows, late reports, rights, CSV.
#include <fmt/format.h>

#include "codec/millionths.h"
#include "telemetryserver/api/cost_rows.h"
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
  for (const std::string_view by : kCostBy) {
    const Json answer =
        Get(fmt::format("/api/v1/cost?by={}&from={}&to={}", by, kStart, kStart + 1'800'000));
    ExpectSum(answer);
    EXPECT_EQ(FindString(answer, "currency"), "EUR");
    // Two GPUs for half an hour.
    EXPECT_EQ(Amount(*Find(answer, "total"), "cost"), 2'500'000) << by;
  }
}

TEST_F(CostApiTest, WorkloadsAreJobsAndPodsWithoutOne) {
  Fill();
  Report({1, 2, 7}, 7, 60);
  const std::string range = fmt::format("&from={}&to={}", kStart, kStart + 600'000);
  const Json pods = Get("/api/v1/cost?by=pod" + range);
  const Json workloads = Get("/api/v1/cost?by=workload" + range);
  ExpectSum(workloads);
  EXPECT_TRUE(Row(workloads, "none").is_null());
  // No pod has a job, so the rows are those of pods.
  EXPECT_EQ(Rows(workloads), Rows(pods));
}

TEST_F(CostApiTest, RowsByPoolHaveTheNodesLabel) {
  JsonArray records;
  records.push_back({{"kind", "node"},
                     {"at", kStart},
                     {"node", telemetry::NodeName(0)},
                     {"ready", true},
                     {"labels", {{"karpenter.sh/nodepool", "spot-a"}}}});
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 1, records)).status.ok());
  Report({2, 1, 7}, 0, 60);
  const Json answer =
      Get(fmt::format("/api/v1/cost?by=pool&from={}&to={}", kStart, kStart + 600'000));
  ExpectSum(answer);
  EXPECT_EQ(Rows(answer).size(), 2U);
  EXPECT_EQ(Amount(Row(answer, "pool", "spot-a"), "gpu_hours"),
            Amount(Row(answer, "none"), "gpu_hours"));
}

TEST_F(CostApiTest, PeriodsAddUpAndAreInOrder) {
  const telemetry::FleetShape shape{1, 2, 7};
  Report(shape, 0, 60);
  clock_.Set(kStart + 50 * kHour);
  const std::string range = fmt::format("&from={}&to={}", kStart + kHour / 4, kStart + 49 * kHour);
  const Json whole = Get("/api/v1/cost?by=category" + range);
  for (const std::string by : {"day", "hour"}) {
    const Json answer = Get("/api/v1/cost?by=" + by + range);
    ExpectSum(answer);
    EXPECT_EQ(*Find(answer, "total"), *Find(whole, "total")) << by;
    // 2025-11-21T21:20Z to 2025-11-23T22:20Z.
    EXPECT_EQ(Rows(answer).size(), by == "day" ? 3U : 50U);
    EXPECT_EQ(FindString(Rows(answer).front(), "name"),
              by == "day" ? "2025-11-21" : "2025-11-21T21:00Z");
    const auto name = [](const Json& row) { return std::string(FindString(row, "name")); };
    EXPECT_TRUE(std::ranges::is_sorted(Rows(answer), {}, name));
  }
  EXPECT_EQ(Amount(Row(Get("/api/v1/cost?by=day" + range), "day", "2025-11-22"), "gpu_hours"),
            48'000'000);
  const Json few = Get("/api/v1/cost?by=hour&limit=5" + range);
  EXPECT_EQ(Rows(few).size(), 6U);
  EXPECT_EQ(FindString(Rows(few).back(), "kind"), "rest");
  ExpectSum(few);
}

TEST_F(CostApiTest, SortsByACategory) {
  Fill();
  Report({1, 2, 7}, 7, 200);
  const std::string range = fmt::format("&from={}&to={}", kStart, kStart + 1'800'000);
  const auto idle = [](const Json& row) { return -Amount(*Find(row, "categories"), "idle"); };
  const Json answer = Get("/api/v1/cost?by=pod&sort=idle" + range);
  ASSERT_GT(Rows(answer).size(), 3U);
  EXPECT_LT(idle(Rows(answer).front()), 0);
  EXPECT_TRUE(std::ranges::is_sorted(Rows(answer), {}, idle));
  Get("/api/v1/cost?sort=name" + range, 400);
}

// Two GPUs that report now and then, for longer than a forecast needs.
TEST_F(CostApiTest, ForecastsTheEndOfTheMonth) {
  Report({1, 2, 7}, 0, 10);
  const telemetry::Millis now = kStart + 5 * kDay + 7 * kHour + 1'234;
  clock_.Set(now);
  const Json answer = Get("/api/v1/cost-forecast");
  EXPECT_EQ(FindString(answer, "month"), "2025-11");
  EXPECT_EQ(FindString(answer, "why"), "");
  EXPECT_EQ(Find(answer, "counted_from")->get_int64(), kStart);
  const Json* forecast = Find(answer, "forecast");
  ASSERT_TRUE(forecast != nullptr && forecast->is_object());
  EXPECT_EQ(Find(*forecast, "days")->get_int64(), 5);
  EXPECT_EQ(Amount(*forecast, "per_day"), 24 * 2 * 2'500'000);
  // The fleet costs the same each day.
  const telemetry::Millis end = Find(answer, "to")->get_int64();
  const double expected = 2 * 2.5e6 * static_cast<double>(end - kStart) / kHour;
  EXPECT_NEAR(static_cast<double>(Amount(*forecast, "cost")), expected, 5);
  EXPECT_EQ(Amount(*forecast, "low"), Amount(*forecast, "cost"));
  EXPECT_EQ(Amount(*forecast, "high"), Amount(*forecast, "cost"));
  // The same as the bill.
  const Json bill =
      Get(fmt::format("/api/v1/cost?from={}&to={}", Find(answer, "from")->get_int64(), now));
  EXPECT_EQ(*Find(answer, "so_far"), *Find(bill, "total"));
}

TEST_F(CostApiTest, ShortHistoryHasNoForecast) {
  Report({1, 2, 7}, 0, 10);
  clock_.Set(kStart + 5 * kHour);
  EXPECT_EQ(FindString(Get("/api/v1/cost-forecast"), "why"),
            "history has 4 h, and a forecast needs 3 days");
  clock_.Set(kStart + 2 * kDay + 23 * kHour);
  const Json answer = Get("/api/v1/cost-forecast");
  EXPECT_TRUE(Find(answer, "forecast")->is_null());
  EXPECT_EQ(FindString(answer, "why"), "history has 2.9 days, and a forecast needs 3 days");
  EXPECT_GT(Amount(*Find(answer, "so_far"), "cost"), 0);
}

TEST_F(CostApiTest, EndedMonthsHaveNoForecast) {
  Report({1, 2, 7}, 0, 10);
  clock_.Set(kStart + 20 * kDay);
  const Json answer = Get("/api/v1/cost-forecast?month=2025-11");
  EXPECT_EQ(FindString(answer, "why"), "the month has ended");
  EXPECT_TRUE(Find(answer, "forecast")->is_null());
  for (const char* month : {"2026-01", "2025-13", "x", "2025-11-01"}) {
    Get(fmt::format("/api/v1/cost-forecast?month={}", month), 400);
  }
  Get("/api/v1/cost-forecast?cluster=other", 404);
}

TEST_F(CostApiTest, ForecastOfOneNamespaceHasItsPartOnly) {
  Fill();
  Report({1, 2, 7}, 7, 60);
  clock_.Set(kStart + 4 * kDay);
  const Json all = Get("/api/v1/cost-forecast");
  const Json own = Get("/api/v1/cost-forecast?namespace=team-0");
  const auto cost = [](const Json& answer) { return Amount(*Find(answer, "forecast"), "cost"); };
  EXPECT_GT(cost(own), 0);
  EXPECT_LT(cost(own), cost(all));
  reader_ = {"kim", false, {"team-0"}};
  EXPECT_EQ(cost(Get("/api/v1/cost-forecast")), cost(all));
  EXPECT_EQ(Get("/api/v1/cost-forecast?namespace=team-0"), own);
  EXPECT_EQ(Amount(*Find(Get("/api/v1/cost-forecast?namespace=team-1"), "so_far"), "cost"), 0);
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

TEST_F(CostApiTest, PriceChangeDoesNotRewriteHistory) {
  Report({1, 2, 7}, 0, 10);
  clock_.Set(kStart + 40 * kHour);
  const std::string range =
      fmt::format("/api/v1/cost?by=day&from={}&to={}", kStart, kStart + 30 * kHour);
  const Json before = Get(range);
  prices_ = {
      "EUR",
      "",
      {{.per_gpu_hour = 10'000'000, .valid_from = "2025-11-22"}, {.per_gpu_hour = 2'500'000}}};
  const Json after = Anew(range);
  EXPECT_EQ(Row(after, "day", "2025-11-21"), Row(before, "day", "2025-11-21"));
  EXPECT_EQ(Amount(Row(after, "day", "2025-11-22"), "cost"),
            4 * Amount(Row(before, "day", "2025-11-22"), "cost"));
  EXPECT_EQ(*Find(after, "total", "gpu_hours"), *Find(before, "total", "gpu_hours"));
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

TEST_F(CostApiTest, LongTimeIsComputedStepByStep) {
  Report({1, 2, 7}, 0, 10);
  clock_.Set(kStart + 30 * kHour);
  const std::string target =
      fmt::format("/api/v1/cost?by=category&from={}&to={}", kStart, kStart + 29 * kHour);
  const Json whole = Get(target);
  api_.reset();
  ingest_.reset();
  Serve("", false, 16);  // eight hours at once
  net::HttpResponse last = Ask(target);
  EXPECT_EQ(last.code, 503);
  EXPECT_NE(last.body.find("% are done: ask again"), std::string::npos) << last.body;
  int asked = 1;
  for (; last.code == 503 && asked < 10; ++asked) last = Ask(target);
  EXPECT_EQ(last.code, 200);
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(ParseJson(last.body).value_or(Json()), whole);
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
