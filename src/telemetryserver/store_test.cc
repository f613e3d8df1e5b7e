#include "telemetryserver/store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/random.h"
#include "telemetryserver/store/archive.h"
#include "telemetryserver/store/schema.h"

namespace nos::telemetryserver {
namespace {

constexpr telemetry::Millis kBegin = FloorTo(1'763'760'000'000, 5 * kDay);

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = ::testing::TempDir() + "nos-store-" + test->name() + ".db";
    for (const char* suffix : {"", "-wal", "-shm", ".version-1"})
      std::filesystem::remove(path_ + suffix);
    auto store = Store::Open({path_});
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    store_ = std::move(store).value();
  }
  void TearDown() override {
    store_.reset();
    for (const char* suffix : {"", "-wal", "-shm", ".version-1"})
      std::filesystem::remove(path_ + suffix);
  }
  // A sample per minute, a flush per hour.
  void Fill(const std::string& subject, telemetry::Millis from, telemetry::Millis to) {
    for (telemetry::Millis hour = from; hour < to; hour += kHour) {
      Heads heads;
      for (telemetry::Millis at = hour; at < std::min(to, hour + kHour); at += kMinute) {
        const double value = std::round(random_.Uniform() * 1000) / 1000;
        truth_[at] = value;
        (void)heads.Add(at, {subject, {{"utilization", value}, {"constant", 7}}, nullptr, nullptr});
      }
      Write(heads);
    }
  }
  void Write(Heads& heads) {
    const auto write = [&] { return store_->Flush(1, heads); };
    const Status written = store_->Transaction(write);
    ASSERT_TRUE(written.ok()) << written.ToString();
    store_->TakeNumbers(1, heads);
  }
  void RollUp(telemetry::Millis now) {
    for (int i = 0; i < 10'000; ++i) {
      const auto more = store_->RollUp(now);
      ASSERT_TRUE(more.ok()) << more.status().ToString();
      if (!*more) return;
    }
    FAIL() << "it never ends";
  }
  void Expire(telemetry::Millis now, const Retention& keep) {
    for (int i = 0; i < 10'000; ++i) {
      const auto more = store_->Expire(now, keep);
      ASSERT_TRUE(more.ok()) << more.status().ToString();
      if (!*more) return;
    }
    FAIL() << "it never ends";
  }
  // Checks that buckets equal the aggregated samples.
  void ExpectTruth(const Range& range, telemetry::Millis now, const Retention& keep = {}) {
    Archive archive(path_, keep);
    const auto read = archive.Samples(1, "gpu/a", "utilization", range, now);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    const auto buckets = Regrouped(*read, range);
    for (const Bucket& bucket : buckets) {
      double sum = 0, least = 2, most = -1, count = 0;
      for (auto it = truth_.lower_bound(bucket.at);
           it != truth_.end() && it->first < bucket.at + range.step && it->first < range.to; ++it) {
        sum += it->second;
        least = std::min(least, it->second);
        most = std::max(most, it->second);
        ++count;
      }
      ASSERT_EQ(bucket.count, count) << "at " << bucket.at - kBegin << " step " << range.step;
      if (count == 0) continue;
      EXPECT_NEAR(bucket.mean, sum / count, 1e-4);
      EXPECT_EQ(bucket.min, least);
      EXPECT_EQ(bucket.max, most);
    }
  }

  std::string path_;
  std::unique_ptr<Store> store_;
  std::map<telemetry::Millis, double> truth_;
  Random random_{1};
};

TEST_F(StoreTest, RollupsMatchSamples) {
  Fill("gpu/a", kBegin, kBegin + 7 * kDay);
  const telemetry::Millis now = kBegin + 7 * kDay;
  ExpectTruth({kBegin, now, kHour}, now);
  RollUp(now);
  for (const telemetry::Millis step :
       {kMinute, 5 * kMinute, 30 * kMinute, kHour, 6 * kHour, kDay}) {
    ExpectTruth({now - kDay, now, step}, now);
    if (step >= 5 * kMinute) ExpectTruth({kBegin, now, step}, now);
  }
  Expire(now, {});
  ExpectTruth({now - kDay, now, kMinute}, now);
  ExpectTruth({kBegin, now, 5 * kMinute}, now);
  ExpectTruth({kBegin, now, kHour}, now);
}

TEST_F(StoreTest, ReadsCoarserLevelAfterRetention) {
  const Retention keep{12 * kHour, 6 * kDay, 400 * kDay, 400 * kDay};
  Fill("gpu/a", kBegin, kBegin + 12 * kDay);
  const telemetry::Millis now = kBegin + 12 * kDay;
  RollUp(now);
  const auto before = store_->UsedBytes();
  Expire(now, keep);
  EXPECT_LT(*store_->UsedBytes(), *before);
  ExpectTruth({kBegin, now, kHour}, now, keep);
  ExpectTruth({now - 12 * kHour, now, kMinute}, now, keep);
}

TEST_F(StoreTest, RollupsIncludeLateSamples) {
  Fill("gpu/a", kBegin, kBegin + kDay);
  Fill("gpu/a", kBegin + 2 * kDay, kBegin + 7 * kDay);
  const telemetry::Millis now = kBegin + 7 * kDay;
  RollUp(now);
  Fill("gpu/a", kBegin + kDay, kBegin + 2 * kDay);
  RollUp(now);
  Expire(now, {});
  ExpectTruth({kBegin, now, 5 * kMinute}, now);
  ExpectTruth({kBegin, now, kHour}, now);
}

TEST_F(StoreTest, RejectsSecondProcessOnFile) {
  const auto second = Store::Open({path_});
  EXPECT_EQ(second.status().code(), Code::kUnavailable) << second.status().ToString();
  store_.reset();
  EXPECT_TRUE(Store::Open({path_}).ok());
}

TEST_F(StoreTest, RollsUpManySubjectsInSteps) {
  for (telemetry::Millis hour = kBegin; hour < kBegin + 12 * kHour; hour += kHour) {
    Heads heads;
    for (int i = 0; i < 700; ++i) {
      (void)heads.Add(hour, {"gpu/" + std::to_string(i), {{"power", i}}, nullptr, nullptr});
    }
    Write(heads);
  }
  RollUp(kBegin + 13 * kHour);
  Archive archive(path_, {});
  for (const int i : {0, 255, 256, 511, 512, 699}) {
    const auto read = archive.Samples(1, "gpu/" + std::to_string(i), "power",
                                      {kBegin, kBegin + 12 * kHour, kHour}, kBegin + 13 * kHour);
    ASSERT_TRUE(read.ok());
    ASSERT_EQ(read->size(), 12U) << i;
    for (const Bucket& bucket : *read) EXPECT_EQ(bucket.mean, i);
  }
}

// A node that was offline for a day delivers its samples before the next flush.
TEST_F(StoreTest, KeepsMoreSamplesThanOneBlock) {
  Heads heads;
  constexpr telemetry::Millis kStep = 10'000;
  constexpr int kCount = 9000;
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(heads.Add(kBegin + i * kStep, {"gpu/a", {{"power", i}}, nullptr, nullptr}), 0U);
  }
  const telemetry::Millis end = kBegin + kCount * kStep;
  EXPECT_EQ(heads.Read("gpu/a", "power", kBegin, end).size(), size_t{kCount});
  Write(heads);
  Archive archive(path_, {});
  const auto read = archive.Samples(1, "gpu/a", "power", {kBegin, end, kStep}, end);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  ASSERT_EQ(read->size(), size_t{kCount});
  for (int i = 0; i < kCount; ++i) EXPECT_EQ((*read)[static_cast<size_t>(i)].mean, i);
}

TEST_F(StoreTest, ManyMetricsOfSubjectDoNotStopRollups) {
  for (const char* kind : {"a", "b"}) {
    Heads heads;
    telemetry::Readings readings{"gpu/a", {}, nullptr, nullptr};
    for (int i = 0; i < 60; ++i) readings.metrics.emplace_back(kind + std::to_string(i), i);
    (void)heads.Add(kBegin, readings);
    Write(heads);
  }
  RollUp(kBegin + kDay);
  Archive archive(path_, {});
  const auto read =
      archive.Samples(1, "gpu/a", "a7", {kBegin, kBegin + kHour, kHour}, kBegin + kDay);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->size(), 1U);
}

// Invented metrics displace neither the cluster's known metrics nor those of other clusters.
TEST_F(StoreTest, InventedMetricsDisplaceNoOthers) {
  Heads heads;
  size_t left_out = 0;
  for (int i = 0; i < 500; ++i) {
    left_out += heads.Add(kBegin + i, {"gpu/" + std::to_string(i),
                                       {{"x" + std::to_string(i), 1}, {"power", i}},
                                       nullptr,
                                       nullptr});
  }
  EXPECT_EQ(left_out, 500 - kMaxClusterMetrics);
  EXPECT_EQ(heads.Read("gpu/499", "power", kBegin, kBegin + kHour).size(), 1U);
  Write(heads);
  Heads other;
  EXPECT_EQ(other.Add(kBegin, {"gpu/a", {{"y", 1}}, nullptr, nullptr}), 0U);
  ASSERT_TRUE(store_->Transaction([&] { return store_->Flush(2, other); }).ok());
  Archive archive(path_, {});
  const auto read = archive.Samples(2, "gpu/a", "y", {kBegin, kBegin + kHour, kMinute}, kHour);
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->empty());
}

TEST_F(StoreTest, FailedTransactionWritesNothing) {
  Heads heads;
  (void)heads.Add(kBegin, {"gpu/a", {{"power", 1}}, nullptr, nullptr});
  const auto fails = [&]() -> Status {
    const Status written = store_->Flush(1, heads);
    return written.ok() ? Internal("on purpose") : written;
  };
  EXPECT_EQ(store_->Transaction(fails).code(), Code::kInternal);
  Write(heads);
  Archive archive(path_, {});
  const auto read = archive.Samples(1, "gpu/a", "power", {kBegin, kBegin + 1, 1}, kBegin);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->size(), 1U);
}

TEST_F(StoreTest, RejectsFileOfNewerVersion) {
  store_.reset();
  {
    auto db = Sqlite::Open(path_, Sqlite::Mode::kWrite);
    ASSERT_TRUE(db.ok());
    ASSERT_TRUE(db->Execute("PRAGMA user_version=99").ok());
  }
  EXPECT_EQ(Store::Open({path_}).status().code(), Code::kInvalid);
}

// A subject is deleted with its last samples, and the number of subjects per cluster is limited.
TEST_F(StoreTest, BoundsAndExpiresSubjects) {
  const auto subjects = [&](const std::string& of = "") {
    const auto db = Sqlite::Open(path_, Sqlite::Mode::kRead);
    return const_cast<Sqlite&>(*db).Number("SELECT count(*) FROM subjects" + of).value_or(-1);
  };
  const auto write = [&](int64_t cluster, const std::string& subject, telemetry::Millis at) {
    Heads heads;
    (void)heads.Add(at, {subject, {{"utilization", 1}, {"power", 2}}, nullptr, nullptr});
    const auto flush = [&] { return store_->Flush(cluster, heads); };
    EXPECT_TRUE(store_->Transaction(flush).ok());
  };
  store_.reset();
  auto store = Store::Open({.path = path_, .most_subjects = 3});
  ASSERT_TRUE(store.ok()) << store.status().ToString();
  store_ = *std::move(store);
  for (const char* subject : {"gpu/a", "gpu/b", "gpu/c", "gpu/d", "gpu/e"}) {
    write(1, subject, kBegin);
  }
  EXPECT_EQ(store_->TakeUnkept(1), 4) << "two subjects with two values each";
  EXPECT_EQ(store_->TakeUnkept(1), 0);
  write(2, "gpu/other", kBegin);
  EXPECT_EQ(store_->TakeUnkept(2), 0) << "another cluster has its own limit";
  EXPECT_EQ(subjects(), 4);
  // One subject has new samples and stays; the others are removed over time.
  const Retention keep;
  write(1, "gpu/a", kBegin + 100 * kDay);
  RollUp(kBegin + 101 * kDay);
  const auto expire = [&](telemetry::Millis now) {
    for (int i = 0; i < 1000; ++i) {
      const auto more = store_->Expire(now, keep);
      ASSERT_TRUE(more.ok()) << more.status().ToString();
      if (!*more) return;
    }
  };
  expire(kBegin + keep.rollups_1h);
  EXPECT_EQ(subjects(), 4);
  expire(kBegin + keep.rollups_1h + 8 * kDay);
  EXPECT_EQ(subjects(" WHERE name = 'gpu/a'"), 1);
  EXPECT_EQ(subjects(), 1);
  write(1, "gpu/e", kBegin + keep.rollups_1h + 8 * kDay);
  EXPECT_EQ(store_->TakeUnkept(1), 0);
}

TEST_F(StoreTest, MigrationKeepsSubjects) {
  store_.reset();
  std::filesystem::remove(path_);
  {
    auto db = Sqlite::Open(path_, Sqlite::Mode::kWrite);
    ASSERT_TRUE(db.ok());
    ASSERT_TRUE(db->Execute(kMigrations[0]).ok());
    ASSERT_TRUE(
        db->Execute("PRAGMA user_version=1; INSERT INTO subjects VALUES (7, 1, 'gpu/a')").ok());
  }
  auto store = Store::Open({path_});
  ASSERT_TRUE(store.ok()) << store.status().ToString();
  store_ = *std::move(store);
  const auto more = store_->Expire(kBegin + 500 * kDay, Retention());
  ASSERT_TRUE(more.ok()) << more.status().ToString();
  auto db = Sqlite::Open(path_, Sqlite::Mode::kRead);
  EXPECT_EQ(db->Number("SELECT id FROM subjects WHERE name = 'gpu/a'").value_or(0), 7);
  // The previous nos can go on with the copy.
  const std::string kept = path_ + ".version-1";
  auto copy = Sqlite::Open(kept, Sqlite::Mode::kRead);
  ASSERT_TRUE(copy.ok()) << copy.status().ToString();
  EXPECT_EQ(copy->Number("PRAGMA user_version").value_or(0), 1);
  EXPECT_EQ(copy->Number("SELECT id FROM subjects WHERE name = 'gpu/a'").value_or(0), 7);
}

TEST_F(StoreTest, NewFileHasNoCopy) { EXPECT_FALSE(std::filesystem::exists(path_ + ".version-1")); }

}  // namespace
}  // namespace nos::telemetryserver
