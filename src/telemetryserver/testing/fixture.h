// A recorder with its own store file and a clock that tests set.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "codec/gzip.h"
#include "telemetry/testing/reports.h"
#include "telemetryserver/recorder.h"

namespace nos::telemetryserver {

class RecorderFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("nos-") + test->test_suite_name() + "-" + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    options_.store.path = folder_ / "telemetry.db";
  }
  void TearDown() override {
    recorder_.reset();
    std::filesystem::remove_all(folder_);
  }
  void Open() {
    recorder_.reset();
    auto opened = Recorder::Open(options_, gpu::Catalogue::Builtin(), clock_, metrics_,
                                 [this] { ++changes_; });
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    recorder_ = std::move(opened).value();
  }
  Recorder::Receipt Take(const Json& envelope) {
    const std::string text = WriteJson(envelope);
    auto read = telemetry::ReadEnvelope(text, recorder_->Now());
    EXPECT_TRUE(read.ok()) << read.status().ToString();
    return recorder_->Take(*std::move(read), Gzip(text, 1));
  }
  // Reports of all nodes for `count` intervals of 10 s.
  void Report(const telemetry::FleetShape& shape, int first, int count) {
    for (int i = first; i < first + count; ++i) {
      clock_.Set(telemetry::kReportStart + i * telemetry::Millis{10'000});
      for (int n = 0; n < shape.nodes; ++n) {
        const auto receipt = Take(telemetry::NodeReport(
            shape, n, telemetry::kReportStart + i * telemetry::Millis{10'000}, i + 1));
        ASSERT_TRUE(receipt.status.ok()) << receipt.status.ToString();
        ASSERT_EQ(receipt.sequence, i + 1);
      }
    }
    ASSERT_TRUE(recorder_->Settle().ok());
  }
  // Copies the file as a crash would leave it now.
  void Crash() {
    const std::filesystem::path copy = folder_ / ("crashed" + std::to_string(++crashes_) + ".db");
    for (const char* suffix : {"", "-wal"}) {
      const std::filesystem::path from = options_.store.path + suffix;
      if (std::filesystem::exists(from)) {
        std::filesystem::copy_file(from, copy.string() + suffix,
                                   std::filesystem::copy_options::overwrite_existing);
      }
    }
    recorder_.reset();
    options_.store.path = copy;
  }
  std::vector<Bucket> Raw(const std::string& subject, const std::string& metric,
                          const std::string& cluster = "prod") {
    const Range range{telemetry::kReportStart - kDay, telemetry::kReportStart + kDay, 1};
    std::vector<Bucket> buckets;
    recorder_->Look(cluster, [&](const Live& live) {
      const auto stored =
          recorder_->archive().Samples(live.id, subject, metric, range, recorder_->Now());
      EXPECT_TRUE(stored.ok()) << stored.status().ToString();
      if (stored.ok()) buckets = *stored;
      for (const Sample& s : live.heads.Read(subject, metric, range.from, range.to)) {
        buckets.push_back({s.at, s.value, s.value, s.value, 1});
      }
    });
    return buckets;
  }

  std::filesystem::path folder_;
  int crashes_ = 0;
  RecorderOptions options_;
  telemetry::SetClock clock_;
  Metrics metrics_;
  std::atomic<int> changes_{0};
  std::unique_ptr<Recorder> recorder_;
};

}  // namespace nos::telemetryserver
