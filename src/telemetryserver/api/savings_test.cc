// GET savings: figures from reports, rights, bad parameters.
#include <fmt/format.h>

#include "codec/millionths.h"
#include "telemetryserver/api/fixture_test.h"

namespace nos::telemetryserver {
namespace {

constexpr telemetry::Millis kStart = telemetry::kReportStart;
constexpr telemetry::Millis kMinutes = 60'000;

class SavingsApiTest : public ApiTest {
 protected:
  Json Pod(telemetry::Millis at, const std::string& name, const std::string& state,
           telemetry::Millis created, telemetry::Millis scheduled = 0,
           telemetry::Millis finished = 0) {
    Json record = telemetry::PodRecord(at, "team", name, state, "nvidia.com/mig-1g.5gb",
                                       scheduled > 0 ? telemetry::NodeName(0) : "");
    record.get_object()["created"] = created;
    record.get_object()["scheduled"] = scheduled;
    record.get_object()["started"] = scheduled;
    record.get_object()["finished"] = finished;
    return record;
  }
  static Json Removal(telemetry::Millis at, const std::string& what, const std::string& id) {
    return {{"kind", "removed"}, {"at", at}, {"what", what}, {"id", id}};
  }
  void Send(JsonArray records) {
    ASSERT_TRUE(
        Take(telemetry::EnvelopeOf("cluster", ++sequence_, std::move(records))).status.ok());
  }
  Json Savings(telemetry::Millis from, telemetry::Millis to) {
    EXPECT_TRUE(recorder_->Settle().ok());
    return Get(fmt::format("/api/v1/savings?from={}&to={}", from, to));
  }
  static double Number(const Json& object, std::string_view key) {
    const Json* value = Find(object, key);
    return value != nullptr && value->is_number() ? value->to_number<double>() : -1;
  }
  const Json& Alternative(const Json& answer, size_t index) {
    return Find(answer, "alternatives")->get_array().at(index);
  }

  int64_t sequence_ = 0;
};

// Seven pods share one GPU for ten minutes.
TEST_F(SavingsApiTest, SharedGpuSavesSixWholeOnes) {
  Report({1, 1, 7}, 0, 1);
  JsonArray records;
  for (int i = 0; i < 7; ++i) {
    records.push_back(
        Pod(kStart + 1'000, fmt::format("pod-{}", i), "running", kStart, kStart + 1'000));
  }
  clock_.Set(kStart + 1'000);
  Send(std::move(records));
  clock_.Set(kStart + 10 * kMinutes);
  const Json answer = Savings(kStart, kStart + 10 * kMinutes);
  EXPECT_EQ(Number(answer, "gpus"), 1);
  EXPECT_EQ(Number(answer, "pods"), 7);
  EXPECT_EQ(Number(answer, "started"), 7);
  EXPECT_EQ(Number(answer, "median_wait_ms"), 1'000);
  EXPECT_EQ(FindString(answer, "currency"), "EUR");
  const Json& whole = Alternative(answer, 0);
  EXPECT_EQ(FindString(whole, "name"), "whole");
  EXPECT_EQ(Number(*Find(whole, "gpus"), "low"), 7);
  EXPECT_EQ(Number(*Find(whole, "started"), "middle"), 1);  // they still run
  // Six GPUs more at 2.50 an hour, for ten minutes.
  EXPECT_EQ(ParseMillionths(FindString(answer, "cost")), 416'667);
  EXPECT_NEAR(static_cast<double>(*ParseMillionths(FindString(whole, "saved", "middle"))),
              6 * 416'667, 1);
  EXPECT_EQ(Number(*Find(Alternative(answer, 1), "gpus"), "high"), 1);
}

TEST_F(SavingsApiTest, PodsAreReadFromTheirRecords) {
  Report({1, 1, 7}, 0, 1);
  const telemetry::Millis from = kStart + kMinutes;
  Send({Pod(kStart, "before", "running", kStart - kMinutes, kStart),  // runs at the beginning
        Pod(kStart, "ended", "succeeded", kStart - kMinutes, kStart, kStart + 1),  // before it
        Pod(kStart, "waits", "pending", kStart), Pod(kStart, "cancelled", "pending", kStart)});
  Json gated = Pod(kStart, "gated", "pending", kStart);
  gated.get_object()["reason"] = "SchedulingGated";
  Send({gated});
  clock_.Set(kStart + 10 * kMinutes);
  Send({Pod(from + kMinutes, "before", "succeeded", kStart - kMinutes, kStart, from + kMinutes),
        Pod(from + 2 * kMinutes, "waits", "running", kStart, from + 2 * kMinutes),
        Removal(from + 3 * kMinutes, "pod", "uid-team-cancelled"),
        Pod(from + 4 * kMinutes, "gated", "pending", kStart),  // its gates are gone
        Pod(from + 5 * kMinutes, "gated", "running", kStart, from + 5 * kMinutes)});
  const Json answer = Savings(from, from + 6 * kMinutes);
  EXPECT_EQ(Number(answer, "pods"), 3);
  EXPECT_EQ(Number(answer, "started"), 3);
  EXPECT_EQ(Number(answer, "left_out"), 1);  // cancelled
  // "waits" from the beginning for two minutes, "gated" for one.
  EXPECT_NEAR(Number(answer, "waiting_hours"), 3.0 / 60, 0.001);
}

TEST_F(SavingsApiTest, GpusEndWithTheirNode) {
  Report({2, 1, 7}, 0, 1);
  Send({Pod(kStart, "pod", "running", kStart, kStart)});
  clock_.Set(kStart + 60 * kMinutes);
  Send({Removal(kStart + 30 * kMinutes, "node", telemetry::NodeName(1))});
  const Json answer = Savings(kStart, kStart + 60 * kMinutes);
  EXPECT_EQ(Number(answer, "gpus"), 1.5);
  EXPECT_NEAR(Number(answer, "gpu_hours"), 1.5, 0.001);
}

TEST_F(SavingsApiTest, PodsOfNodesThatReportNoGpuAreLeftOut) {
  Report({1, 1, 7}, 0, 1);
  Json elsewhere = Pod(kStart, "elsewhere", "running", kStart, kStart);
  elsewhere.get_object()["node"] = "unmanaged";
  Json placeholder = Pod(kStart, "placeholder", "running", kStart, kStart);
  placeholder.get_object()["placeholder"] = true;
  Send({Pod(kStart, "here", "running", kStart, kStart), elsewhere, placeholder,
        Pod(kStart, "failed", "pending", kStart)});
  clock_.Set(kStart + 10 * kMinutes);
  Send({Pod(kStart + kMinutes, "failed", "failed", kStart)});
  const Json answer = Savings(kStart, kStart + 10 * kMinutes);
  EXPECT_EQ(Number(answer, "pods"), 1);
  EXPECT_EQ(Number(answer, "left_out"), 2);  // a placeholder is no demand
}

// The agent reports for the first time when pods run already: its GPU was there.
TEST_F(SavingsApiTest, GpuExistsFromItsFirstPodOn) {
  Send({Pod(kStart, "pod", "running", kStart, kStart)});
  clock_.Set(kStart + 30 * kMinutes);
  Report({1, 1, 7}, 180, 1);
  clock_.Set(kStart + 60 * kMinutes);
  const Json answer = Savings(kStart, kStart + 60 * kMinutes);
  EXPECT_NEAR(Number(answer, "gpu_hours"), 1, 0.001);
}

// The agent of a node that returns reports before the operator has seen the node, and then the
// same.
TEST_F(SavingsApiTest, NodeThatReturnsHasItsGpusAgain) {
  const auto node = [](telemetry::Millis at) {
    return Json({{"kind", "node"}, {"at", at}, {"node", telemetry::NodeName(0)}, {"ready", true}});
  };
  Report({1, 1, 7}, 0, 1);
  Send({node(kStart)});
  clock_.Set(kStart + 60 * kMinutes);
  Send({Removal(kStart + 10 * kMinutes, "node", telemetry::NodeName(0))});
  Report({1, 1, 7}, 90, 1);  // after 15 minutes
  clock_.Set(kStart + 60 * kMinutes);
  Send({node(kStart + 20 * kMinutes)});
  Report({1, 1, 7}, 180, 1);
  clock_.Set(kStart + 60 * kMinutes);
  Send({Pod(kStart + 30 * kMinutes, "pod", "running", kStart, kStart + 30 * kMinutes)});
  const Json answer = Savings(kStart, kStart + 60 * kMinutes);
  EXPECT_EQ(Number(answer, "pods"), 1);
  EXPECT_GE(Number(answer, "gpus"), 0.8);
  EXPECT_LE(Number(answer, "gpus"), 0.95);
}

// A record may say that a pod ended before anything else happened.
TEST_F(SavingsApiTest, TimesOutOfOrderCostNothing) {
  Report({1, 1, 7}, 0, 1);
  Send({Pod(kStart, "pod", "running", kStart, kStart), Pod(kStart, "later", "pending", kStart)});
  clock_.Set(kStart + 60 * kMinutes);
  Send({Pod(kStart + 20 * kMinutes, "pod", "succeeded", kStart, kStart, 1),
        Pod(kStart + 20 * kMinutes, "later", "running", 9'000'000'000'000, 9'000'000'000'000)});
  const Json answer = Savings(kStart + 10 * kMinutes, kStart + 60 * kMinutes);
  for (const Json& each : Find(answer, "alternatives")->get_array()) {
    EXPECT_GE(Number(*Find(each, "waiting_hours"), "low"), 0);
  }
}

TEST_F(SavingsApiTest, DecisionsAreCountedOnce) {
  Fill();
  clock_.Set(kStart + 10 * kMinutes);
  const Json answer = Savings(kStart, kStart + 5 * kMinutes);
  ASSERT_EQ(Find(answer, "decisions")->get_array().size(), 1U);
  const Json& plans = Find(answer, "decisions")->get_array().front();
  EXPECT_EQ(FindString(plans, "type"), "plan");
  EXPECT_EQ(Number(plans, "count"), 1);  // it was reported twice
}

TEST_F(SavingsApiTest, TimeWithoutHistoryIsEmpty) {
  Fill();
  const Json answer = Savings(kStart - 10 * kDay, kStart - 9 * kDay);
  EXPECT_EQ(Number(answer, "pods"), 0);
  EXPECT_TRUE(Find(answer, "alternatives")->get_array().empty());
}

TEST_F(SavingsApiTest, RefusesReadersOfSomeNamespacesAndBadTimes) {
  Fill();
  Get("/api/v1/savings?from=5&to=4", 400);
  Get(fmt::format("/api/v1/savings?from=0&to={}", 93 * kDay), 400);
  Get("/api/v1/savings?from=x", 400);
  reader_ = {"ann", false, {"team-0"}};
  Get("/api/v1/savings", 403);
}

}  // namespace
}  // namespace nos::telemetryserver
