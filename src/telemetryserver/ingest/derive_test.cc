// Derived series equal the values computed from the state of each moment, in any order of arrival.
#include <gtest/gtest.h>

#include "telemetryserver/api/point_in_time.h"
#include "telemetryserver/state/shares.h"
#include "telemetryserver/testing/fixture.h"

namespace nos::telemetryserver {
namespace {

constexpr telemetry::FleetShape kFleet{2, 1, 7};

class RecorderDeriveTest : public RecorderFixture {
 protected:
  // Delivers reports [first, last) of one node, a minute per envelope.
  void Deliver(int node, int first, int last) {
    for (int i = first; i < last; i += 6) {
      JsonArray records;
      for (int j = i; j < std::min(i + 6, last); ++j) {
        Json report =
            telemetry::NodeReport(kFleet, node, telemetry::kReportStart + j * int64_t{10'000}, 1);
        for (Json& record : report.at("records").get_array()) records.push_back(std::move(record));
      }
      const auto receipt = Take(telemetry::EnvelopeOf("node/" + telemetry::NodeName(node), 1000 + i,
                                                      std::move(records), "boot-1"));
      ASSERT_TRUE(receipt.status.ok()) << receipt.status.ToString();
    }
  }
  void InTime(int node, int first, int last) {
    for (int i = first; i < last; ++i) {
      clock_.Set(telemetry::kReportStart + i * int64_t{10'000});
      const auto receipt = Take(telemetry::NodeReport(
          kFleet, node, telemetry::kReportStart + i * int64_t{10'000}, i + 1));
      ASSERT_TRUE(receipt.status.ok()) << receipt.status.ToString();
    }
  }
  void Later(int look) {
    clock_.Set(telemetry::kReportStart + look * int64_t{10'000});
    ASSERT_TRUE(recorder_->Settle().ok());
  }
  Shares At(telemetry::Millis at) {
    State state;
    int64_t id = 0;
    recorder_->Look("prod", [&](const Live& live) { id = live.id; });
    EXPECT_TRUE(recorder_->archive().StateAt(id, at, state).ok());
    EXPECT_TRUE(AddMeasured(*recorder_, "prod", at, state).ok());
    return SharesOf(state, gpu::Catalogue::Builtin(), recorder_->stale());
  }
  void ExpectLines(int first, int last) {
    std::map<telemetry::Millis, double> used, allocated;
    for (const Bucket& bucket : Raw("cluster", "used")) used[bucket.at] = bucket.mean;
    for (const Bucket& bucket : Raw("cluster", "allocated")) {
      EXPECT_TRUE(allocated.emplace(bucket.at, bucket.mean).second) << "twice at " << bucket.at;
    }
    for (int i = first; i < last; ++i) {
      const telemetry::Millis at = telemetry::kReportStart + i * int64_t{10'000};
      const Shares shares = At(at);
      ASSERT_TRUE(allocated.contains(at) && used.contains(at)) << "look " << i;
      EXPECT_DOUBLE_EQ(allocated[at], shares.allocated) << "look " << i;
      EXPECT_DOUBLE_EQ(used[at], *shares.used) << "look " << i;
      EXPECT_DOUBLE_EQ(shares.allocated, 6.0 / 8) << "look " << i;
    }
  }
};

// The server was down for an hour: the first reporter to deliver moves the time forward.
TEST_F(RecorderDeriveTest, DerivesBacklogsOfTwoNodes) {
  Open();
  Report(kFleet, 0, 10);
  clock_.Set(telemetry::kReportStart + 3'600'000);
  Deliver(0, 10, 360);
  Deliver(1, 10, 360);
  Later(500);
  ExpectLines(10, 356);
}

TEST_F(RecorderDeriveTest, DerivesCurrentTicksBeforeBacklogs) {
  Open();
  Report(kFleet, 0, 10);
  clock_.Set(telemetry::kReportStart + 3'600'000);
  const telemetry::Millis now = telemetry::kReportStart + 3'600'000;
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 1,
                                         {telemetry::PodRecord(now, "a", "p", "pending", "cpu")}))
                  .status.ok());
  Deliver(1, 10, 360);
  Deliver(0, 10, 360);
  Later(500);
  ExpectLines(10, 356);
}

TEST_F(RecorderDeriveTest, DerivesBacklogOfOneNode) {
  Open();
  Report(kFleet, 0, 10);
  InTime(0, 10, 100);
  Later(200);  // samples of the other nodes are flushed
  Deliver(1, 10, 100);
  Later(300);
  ExpectLines(10, 96);
}

// Its clock is behind, or its envelopes arrive only when they are retried.
TEST_F(RecorderDeriveTest, DerivesAgainForNodeThatIsAlwaysLate) {
  Open();
  Report(kFleet, 0, 10);
  for (int i = 10; i < 400; ++i) {
    clock_.Set(telemetry::kReportStart + i * int64_t{10'000});
    ASSERT_TRUE(
        Take(telemetry::NodeReport(kFleet, 0, telemetry::kReportStart + i * int64_t{10'000}, i + 1))
            .status.ok());
    if (i < 19) continue;
    const telemetry::Millis late = telemetry::kReportStart + (i - 9) * int64_t{10'000};
    ASSERT_TRUE(Take(telemetry::NodeReport(kFleet, 1, late, i + 1)).status.ok());
    if (i % 100 != 0) continue;
    ASSERT_TRUE(recorder_->Settle().ok());
  }
  Later(500);
  ExpectLines(10, 385);
  recorder_->Look("prod", [](const Live& live) { EXPECT_FALSE(live.derived.Again()); });
}

// Ticks to recompute survive a crash, and a source that stays away meanwhile.
TEST_F(RecorderDeriveTest, ContinuesBackfillAfterCrash) {
  Open();
  Report(kFleet, 0, 10);
  Crash();
  clock_.Set(telemetry::kReportStart + 3'600'000);
  Open();
  Deliver(0, 10, 360);
  Deliver(1, 10, 360);
  Crash();
  Open();
  Later(500);
  ExpectLines(10, 356);
}

// Hours without any report have no derived values.
TEST_F(RecorderDeriveTest, DerivesNothingForTimeWithoutReports) {
  Open();
  Report(kFleet, 0, 10);
  clock_.Set(telemetry::kReportStart + 3'600'000);
  Deliver(0, 360, 361);
  Deliver(1, 360, 361);
  Later(500);
  for (const Bucket& bucket : Raw("cluster", "allocated")) {
    EXPECT_TRUE(bucket.at < telemetry::kReportStart + 150'000 ||
                bucket.at >= telemetry::kReportStart + 3'600'000)
        << bucket.at - telemetry::kReportStart;
  }
}

}  // namespace
}  // namespace nos::telemetryserver
