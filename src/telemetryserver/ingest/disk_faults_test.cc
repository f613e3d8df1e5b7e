// Tests a server's store on a failing disk, below SQLite: nothing acknowledged is lost, and
// nothing is stored twice.
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "base/file.h"
#include "base/random.h"
#include "telemetryserver/store/sqlite.h"
#include "telemetryserver/testing/fault_disk.h"
#include "telemetryserver/testing/fixture.h"

namespace nos::telemetryserver {
namespace {

using Fault = FaultDisk::Fault;

class DiskFaultTest : public RecorderFixture {
 protected:
  void SetUp() override {
    RecorderFixture::SetUp();
    options_.flush_every = std::chrono::seconds(30);
  }
  // Opens the store as a new process does.
  Status Start() {
    recorder_.reset();
    auto opened = Recorder::Open(options_, gpu::Catalogue::Builtin(), clock_, metrics_, [] {});
    if (opened.ok()) recorder_ = *std::move(opened);
    return opened.status();
  }
  void Begin() {
    recorder_.reset();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    acknowledged_ = 0;
  }
  // A reporter delivers the next envelopes; it repeats one without an answer a few times.
  void Deliver(int count) {
    for (int i = 0; i < count; ++i) {
      bool taken = false;
      for (int tries = 0; !taken && tries < 6; ++tries) taken = DeliverNext();
      if (!taken) return;
    }
  }
  bool DeliverNext() {
    const int64_t number = acknowledged_ + 1;
    const telemetry::Millis at = TimeOf(number);
    clock_.Set(at);
    const auto receipt = Take(telemetry::EnvelopeOf(
        "reporter", number,
        {{{"kind", "gpu"}, {"at", at}, {"gpu", "a"}, {"metrics", {{"power", number}}}},
         {{"kind", "event"},
          {"at", at},
          {"object", {{"kind", "Pod"}, {"namespace", "n"}, {"name", "p"}}},
          {"reason", std::to_string(number)}}}));
    if (receipt.status.ok()) acknowledged_ = number;
    return receipt.status.ok();
  }
  void ExpectAll() {
    ASSERT_TRUE(recorder_->Settle().ok());
    std::map<telemetry::Millis, int> samples;
    if (acknowledged_ > 0) {
      for (const Bucket& bucket : Raw("gpu/a", "power")) ++samples[bucket.at];
    }
    std::map<std::string, int> events;
    recorder_->Look("prod", [&](const Live& live) {
      const EventQuery query{0, std::numeric_limits<telemetry::Millis>::max(), {"event"}, "", 1000};
      const auto stored = recorder_->archive().Events(live.id, query);
      ASSERT_TRUE(stored.ok()) << stored.status().ToString();
      for (const Event& event : *stored) ++events[std::string(FindString(event.body, "reason"))];
    });
    for (int64_t number = 1; number <= acknowledged_; ++number) {
      ASSERT_EQ(samples[TimeOf(number)], 1) << "sample " << number << " of " << acknowledged_;
      ASSERT_EQ(events[std::to_string(number)], 1) << "event " << number;
    }
    // The next one may be there without its acknowledgement.
    ASSERT_LE(samples.size(), static_cast<size_t>(acknowledged_ + 1));
    ASSERT_LE(events.size(), static_cast<size_t>(acknowledged_ + 1));
  }
  static telemetry::Millis TimeOf(int64_t number) {
    return telemetry::kReportStart + number * 10'000;
  }
  // Number of operations of a run without faults.
  int64_t Operations() {
    FaultDisk disk;
    Begin();
    EXPECT_TRUE(Start().ok());
    Deliver(8);
    recorder_.reset();
    return disk.operations();
  }

  int64_t acknowledged_ = 0;
};

TEST_F(DiskFaultTest, PowerCutAtAnyOperationLosesNothing) {
  const int64_t operations = Operations();
  ASSERT_GT(operations, 50);
  Random random(7);
  for (int64_t at = 0; at < operations; ++at) {
    SCOPED_TRACE("power cut at operation " + std::to_string(at));
    FaultDisk disk;
    Begin();
    disk.FailAt(at, Fault::kPowerCut);
    if (Start().ok()) Deliver(8);
    recorder_.reset();
    disk.Restart(random);
    const Status started = Start();
    ASSERT_TRUE(started.ok()) << started.ToString();
    ExpectAll();
    Deliver(2);
    ExpectAll();
    recorder_.reset();
    if (HasFatalFailure()) return;
  }
}

TEST_F(DiskFaultTest, ErrorAtAnyOperationPassesAndLosesNothing) {
  const int64_t operations = Operations();
  Random random(7);
  for (const Fault fault : {Fault::kWriteFails, Fault::kShortWrite, Fault::kSyncFails}) {
    for (int64_t at = 0; at < operations; at += 2) {
      SCOPED_TRACE("fault " + std::to_string(static_cast<int>(fault)) + " at operation " +
                   std::to_string(at));
      FaultDisk disk;
      Begin();
      disk.FailAt(at, fault, 1 + at % 3);
      Status started = Start();
      if (!started.ok()) started = Start();  // the kubelet starts the process again
      if (!started.ok()) started = Start();
      if (!started.ok()) started = Start();
      ASSERT_TRUE(started.ok()) << started.ToString();
      Deliver(8);
      EXPECT_GE(acknowledged_, 6) << "writing resumes by itself";
      disk.CutPower();
      recorder_.reset();
      disk.Restart(random);
      started = Start();
      ASSERT_TRUE(started.ok()) << started.ToString();
      ExpectAll();
      recorder_.reset();
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(DiskFaultTest, ManyFaultsOneAfterAnother) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    FaultDisk disk;
    Begin();
    for (int round = 0; round < 10; ++round) {
      disk.FailAt(disk.operations() + static_cast<int64_t>(random.Below(60)),
                  static_cast<Fault>(random.Below(4)), 1 + static_cast<int64_t>(random.Below(4)));
      Status started = Start();
      for (int tries = 0; !started.ok() && !disk.CutOff() && tries < 5; ++tries) started = Start();
      if (started.ok()) Deliver(12);
      if (random.Below(2) == 0) disk.CutPower();
      recorder_.reset();
      if (disk.CutOff()) disk.Restart(random);
      disk.FailAt(-1, Fault::kWriteFails);
      started = Start();
      ASSERT_TRUE(started.ok()) << started.ToString();
      ExpectAll();
      if (HasFatalFailure()) break;
    }
    recorder_.reset();
    if (HasFatalFailure()) return;
  }
}

// The file after a crash, with its write-ahead log.
struct Crashed {
  std::string store, log;
};

class FlippedBitTest : public DiskFaultTest {
 protected:
  Crashed MakeCrashed() {
    EXPECT_TRUE(Start().ok());
    Deliver(15);
    EXPECT_TRUE(Start().ok());  // the end of the first one writes its log into the file
    Deliver(15);
    Crash();
    return {ReadFile(options_.store.path).value_or(""),
            ReadFile(options_.store.path + "-wal").value_or("")};
  }
  void Write(const Crashed& files) {
    recorder_.reset();
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove(options_.store.path + suffix);
    }
    ASSERT_TRUE(ReplaceFile(options_.store.path, files.store).ok());
    ASSERT_TRUE(ReplaceFile(options_.store.path + "-wal", files.log).ok());
  }
};

// Either the server starts and takes records, or it says what is wrong.
TEST_F(FlippedBitTest, FlippedBitAnywhereEndsInAnswerOrError) {
  const Crashed good = MakeCrashed();
  ASSERT_GT(good.store.size(), 100'000U);
  ASSERT_GT(good.log.size(), 10'000U);
  Random random(3);
  int started = 0, refused = 0;
  for (int i = 0; i < 150; ++i) {
    Crashed files = good;
    std::string& where = i % 2 == 0 ? files.store : files.log;
    const uint64_t at = random.Below(where.size());
    where[at] = static_cast<char>(where[at] ^ (1 << random.Below(8)));
    SCOPED_TRACE("byte " + std::to_string(at) + (i % 2 == 0 ? " of the file" : " of the log"));
    Write(files);
    const Status opened = Start();
    if (opened.ok()) {
      ++started;
      (void)DeliverNext();
      (void)recorder_->Settle();
    } else {
      ++refused;
      EXPECT_NE(opened.code(), Code::kInternal) << opened.ToString();
    }
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(started, 100);
  recorder_.reset();
}

// The log has a checksum for each page: SQLite goes back to the commit before the damage.
TEST_F(FlippedBitTest, FlippedBitInLogShowsGapInHistory) {
  Crashed files = MakeCrashed();
  files.log[files.log.size() / 2] = static_cast<char>(files.log[files.log.size() / 2] ^ 1);
  Write(files);
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(DeliverNext());
  ASSERT_TRUE(recorder_->Settle().ok());
  recorder_->Look("prod", [&](const Live& live) {
    const EventQuery query{0, std::numeric_limits<telemetry::Millis>::max(), {"gap"}, "", 10};
    const auto gaps = recorder_->archive().Events(live.id, query);
    ASSERT_TRUE(gaps.ok());
    ASSERT_EQ(gaps->size(), 1U);
    EXPECT_TRUE(FindString(gaps->front().body, "why").ends_with("or the disk lost them"));
  });
}

class DamagedRowTest : public FlippedBitTest {
 protected:
  void Change(const std::string& sql) {
    recorder_.reset();
    auto db = Sqlite::Open(options_.store.path, Sqlite::Mode::kWrite);
    ASSERT_TRUE(db.ok()) << db.status().ToString();
    const Status changed = db->Execute(sql);
    ASSERT_TRUE(changed.ok()) << changed.ToString();
  }
  void ReportPod(int64_t number, const std::string& name) {
    const telemetry::Millis at = TimeOf(number);
    clock_.Set(at);
    ASSERT_TRUE(Take(telemetry::EnvelopeOf(
                         "operator", number,
                         {telemetry::PodRecord(at, "n", name, "running", "nvidia.com/gpu", "a")}))
                    .status.ok());
    ASSERT_TRUE(recorder_->Settle().ok());
  }
  bool Knows(const std::string& name) const {
    bool known = false;
    recorder_->Look("prod",
                    [&](const Live& live) { known = live.state.FindPod("n", name) != nullptr; });
    return known;
  }
};

TEST_F(DamagedRowTest, DamagedHistoryRowCostsOnlyItself) {
  ASSERT_TRUE(Start().ok());
  ReportPod(1, "a");
  ReportPod(2, "b");
  ReportPod(3, "c");
  Change(
      "UPDATE events SET body = x'1f8b00' WHERE kind = 'pod' AND "
      "CAST(body AS TEXT) LIKE '%\"b\"%'");
  const Status started = Start();
  ASSERT_TRUE(started.ok()) << started.ToString();
  EXPECT_TRUE(Knows("a"));
  EXPECT_TRUE(Knows("c"));
}

TEST_F(DamagedRowTest, CheckpointIsReplacedByTheOneBefore) {
  ASSERT_TRUE(Start().ok());
  ReportPod(1, "a");
  clock_.Set(TimeOf(1) - 3'600'000);  // the clock was set back: a checkpoint is written
  ASSERT_TRUE(recorder_->Settle().ok());
  ReportPod(2, "p2");
  ReportPod(3, "p3");
  Change(
      "INSERT OR REPLACE INTO checkpoints SELECT cluster, max(at) + 1, 1000000, x'1f8b00' FROM "
      "events");
  const Status started = Start();
  ASSERT_TRUE(started.ok()) << started.ToString();
  EXPECT_TRUE(Knows("a"));
  EXPECT_TRUE(Knows("p3"));
}

TEST_F(DamagedRowTest, DamagedRowOfUnknownClusterMakesNoCluster) {
  ASSERT_TRUE(Start().ok());
  Deliver(2);
  Crash();
  Change("UPDATE journal SET body = x'00', cluster = 77");
  const Status started = Start();
  ASSERT_TRUE(started.ok()) << started.ToString();
  ASSERT_TRUE(recorder_->Settle().ok());
  EXPECT_EQ(recorder_->Clusters(), std::vector<std::string>{"prod"});
}

}  // namespace
}  // namespace nos::telemetryserver
