#include "telemetryserver/backup.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <fstream>
#include <limits>

#include "base/file.h"
#include "telemetryserver/store/schema.h"
#include "telemetryserver/store/sqlite.h"
#include "telemetryserver/testing/fault_disk.h"
#include "telemetryserver/testing/fixture.h"

namespace nos::telemetryserver {
namespace {

class BackupTest : public RecorderFixture {
 protected:
  std::string Store() const { return options_.store.path; }
  std::string Backup() const { return folder_ / "backup.db"; }
  size_t Samples() { return Raw("gpu/" + telemetry::GpuName(0, 0), "power").size(); }
  Status BackUpNow(bool replace = false) {
    return BackUp(Store(), Backup(), {.replace = replace}).status();
  }
  Result<Restored> RestoreNow(const std::string& stamp = "1") {
    recorder_.reset();
    return Restore(Backup(), Store(), {.stamp = stamp});
  }
  // Files in the folder, without those that a connection leaves beside the store.
  std::vector<std::string> Others() const {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      const std::string name = file.path().filename();
      const bool beside =
          name == "telemetry.db.lock" || name == "telemetry.db-wal" || name == "telemetry.db-shm";
      if (!beside) names.push_back(name);
    }
    std::ranges::sort(names);
    return names;
  }
  void MakeFileOfVersion1(const std::string& path) {
    auto db = Sqlite::Open(path, Sqlite::Mode::kWrite);
    ASSERT_TRUE(db.ok());
    ASSERT_TRUE(db->Execute(kMigrations[0]).ok());
    ASSERT_TRUE(db->Execute("PRAGMA user_version=1; INSERT INTO clusters VALUES (1, 'prod'); "
                            "INSERT INTO subjects VALUES (7, 1, 'gpu/a')")
                    .ok());
  }
};

TEST_F(BackupTest, BackupOfRunningServerHasAllUntilThen) {
  Open();
  Report({1, 1, 1}, 0, 40);  // in the journal only
  ASSERT_TRUE(BackUpNow().ok());
  Report({1, 1, 1}, 40, 20);
  ASSERT_EQ(Samples(), 60U);
  const auto restored = RestoreNow();
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_TRUE(restored->damaged.empty());
  Open();
  EXPECT_EQ(Samples(), 40U);
  recorder_->Look("prod", [&](const Live& live) { EXPECT_EQ(live.state.nodes().size(), 1U); });
  // Reporters go on where they are, and the history shows that something is missing.
  EXPECT_EQ(
      Take(telemetry::NodeReport({1, 1, 1}, 0, telemetry::kReportStart + 600'000, 61)).sequence,
      61);
  ASSERT_TRUE(recorder_->Settle().ok());
  recorder_->Look("prod", [&](const Live& live) {
    const EventQuery query{0, std::numeric_limits<telemetry::Millis>::max(), {"gap"}, "", 10};
    const auto gaps = recorder_->archive().Events(live.id, query);
    ASSERT_TRUE(gaps.ok());
    ASSERT_EQ(gaps->size(), 1U);
    EXPECT_TRUE(
        FindString(gaps->front().body, "why").starts_with("envelopes 41 to 60 are missing"));
  });
}

TEST_F(BackupTest, RestoreKeepsFormerStore) {
  Open();
  Report({1, 1, 1}, 0, 10);
  ASSERT_TRUE(BackUpNow().ok());
  Report({1, 1, 1}, 10, 10);
  const auto restored = RestoreNow();
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_EQ(restored->previous, Store() + ".before-1");
  EXPECT_EQ(Others(),
            (std::vector<std::string>{"backup.db", "telemetry.db", "telemetry.db.before-1"}));
  const auto back = Restore(restored->previous, Store(), {.stamp = "2"});
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  Open();
  EXPECT_EQ(Samples(), 20U);
}

TEST_F(BackupTest, RestoresOfOneSecondKeepBothFormerStores) {
  Open();
  Report({1, 1, 1}, 0, 10);
  ASSERT_TRUE(BackUpNow().ok());
  for (const std::string suffix : {".before-1", ".before-1-2", ".before-1-3"}) {
    const auto restored = RestoreNow();
    ASSERT_TRUE(restored.ok()) << restored.status().ToString();
    EXPECT_EQ(restored->previous, Store() + suffix);
    EXPECT_TRUE(std::filesystem::exists(Store() + suffix));
  }
}

// The log of a server that was killed belongs to the former store, not to the backup.
TEST_F(BackupTest, RestoreOverCrashedStoreKeepsItsLog) {
  Open();
  Report({1, 1, 1}, 0, 10);
  ASSERT_TRUE(BackUpNow().ok());
  Report({1, 1, 1}, 10, 10);
  Crash();
  ASSERT_GT(std::filesystem::file_size(Store() + "-wal"), 0U);
  const auto restored = RestoreNow();
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  Open();
  EXPECT_EQ(Samples(), 10U);
  recorder_.reset();
  options_.store.path = restored->previous;
  Open();
  EXPECT_EQ(Samples(), 20U);
}

TEST_F(BackupTest, RestoreWithoutStoreMakesOne) {
  Open();
  Report({1, 1, 1}, 0, 10);
  ASSERT_TRUE(BackUpNow().ok());
  recorder_.reset();
  options_.store.path = folder_ / "other.db";
  // A store was removed without its log.
  std::ofstream(Store() + "-wal") << "log";
  const auto restored = RestoreNow();
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_EQ(restored->previous, "");
  Open();
  EXPECT_EQ(Samples(), 10U);
}

TEST_F(BackupTest, RestoreRefusesWhileServerRuns) {
  Open();
  Report({1, 1, 1}, 0, 10);
  ASSERT_TRUE(BackUpNow().ok());
  const auto refused = Restore(Backup(), Store(), {.stamp = "1"});
  EXPECT_EQ(refused.status().code(), Code::kUnavailable);
  EXPECT_NE(refused.status().message().find("another nos telemetry uses"), std::string::npos);
  EXPECT_EQ(Samples(), 10U);
}

TEST_F(BackupTest, ReplacesFileOnlyIfAsked) {
  Open();
  std::ofstream(Backup()) << "mine";
  EXPECT_EQ(BackUpNow().code(), Code::kAlreadyExists);
  EXPECT_EQ(ReadFile(Backup()).value_or(""), "mine");
  EXPECT_TRUE(BackUpNow(true).ok());
  EXPECT_EQ(WorstOf(VerifyStore(Backup(), {}).value_or({})), Harm::kNone);
  EXPECT_EQ(BackUp(Store(), Store(), {.replace = true}).status().code(), Code::kInvalid);
  EXPECT_EQ(BackUp(folder_ / "absent.db", folder_ / "x.db", {}).status().code(), Code::kNotFound);
  struct stat facts{};
  ASSERT_EQ(stat(Backup().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U) << "it has names of all tenants' pods";
}

TEST_F(BackupTest, FailureLeavesNoFile) {
  Open();
  Report({1, 1, 1}, 0, 10);
  recorder_.reset();
  FaultDisk disk;
  disk.FailAt(0, FaultDisk::Fault::kShortWrite, 1000);
  EXPECT_EQ(BackUpNow().code(), Code::kExhausted);
  disk.FailAt(0, FaultDisk::Fault::kWriteFails, 1000);
  EXPECT_EQ(BackUpNow().code(), Code::kUnavailable);
  EXPECT_EQ(Others(), std::vector<std::string>{"telemetry.db"});
}

TEST_F(BackupTest, StopsWhenAsked) {
  Open();
  recorder_.reset();
  {
    auto db = Sqlite::Open(Store(), Sqlite::Mode::kWrite);
    ASSERT_TRUE(db.ok());
    ASSERT_TRUE(
        db->Execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE "
                    "i < 50000) INSERT INTO events SELECT i, 1, i, 'k', 'o', 0, '{}' FROM n")
            .ok());
  }
  int calls = 0;
  const auto stopped = BackUp(Store(), Backup(), {.progress = [&](int64_t done, int64_t total) {
                                EXPECT_LE(done, total);
                                return ++calls < 3;
                              }});
  EXPECT_EQ(stopped.status().code(), Code::kUnavailable);
  EXPECT_GE(calls, 3);
  EXPECT_EQ(Others(), std::vector<std::string>{"telemetry.db"});
  const auto verified = VerifyStore(Store(), [](std::string_view, int64_t) { return false; });
  EXPECT_EQ(verified.status().code(), Code::kUnavailable);
}

TEST_F(BackupTest, BackupOfOlderVersionIsMigratedByServer) {
  MakeFileOfVersion1(Backup());
  const auto restored = RestoreNow();
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_EQ(restored->facts.version, 1);
  Open();
  auto db = Sqlite::Open(Store(), Sqlite::Mode::kRead);
  EXPECT_EQ(db->Number("PRAGMA user_version").value_or(0), int64_t{kMigrations.size()});
  EXPECT_EQ(db->Number("SELECT id FROM subjects WHERE name = 'gpu/a'").value_or(0), 7);
}

// A server migrated its file, and the nos of before shall go on with the copy of then.
TEST_F(BackupTest, CopyFromBeforeMigrationIsWayBack) {
  MakeFileOfVersion1(Store());
  Open();
  Report({1, 1, 1}, 0, 3);
  recorder_.reset();
  const std::string kept = Store() + ".version-1";
  const auto checks = VerifyStore(kept, {});
  ASSERT_TRUE(checks.ok()) << checks.status().ToString();
  EXPECT_EQ(WorstOf(*checks), Harm::kNone) << "tables and columns are those of version 1";
  const auto restored = Restore(kept, Store(), {.stamp = "1"});
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_EQ(restored->facts.version, 1);
  {
    auto db = Sqlite::Open(Store(), Sqlite::Mode::kRead);
    EXPECT_EQ(db->Number("PRAGMA user_version").value_or(0), 1) << "as the nos of before wants it";
    EXPECT_EQ(db->Number("SELECT count(*) FROM pragma_table_info('subjects')").value_or(0), 3);
    EXPECT_EQ(db->Number("SELECT id FROM subjects WHERE name = 'gpu/a'").value_or(0), 7);
    EXPECT_EQ(db->Number("SELECT count(*) FROM journal").value_or(-1), 0);
  }
  Open();  // and forward again
  Report({1, 1, 1}, 3, 3);
  EXPECT_EQ(Samples(), 3U);
}

TEST_F(BackupTest, RestoreRefusesWhatNoServerCanUse) {
  Open();
  Report({1, 1, 1}, 0, 40);
  ASSERT_TRUE(BackUpNow().ok());
  recorder_.reset();
  const std::string good = *ReadFile(Backup());
  std::string newer = good, flipped = good;
  newer[63] = 99;  // the last byte of the user version (SQLite's file format, offset 60)
  for (size_t page = 16384; page < flipped.size(); page += 16384) flipped[page] = '\x77';
  const std::array<std::pair<std::string, std::string>, 5> refused = {
      {{newer, "the file has version 99 and this nos knows up to 2"},
       {flipped, "malformed"},
       {good.substr(0, good.size() / 2), "malformed"},
       {"no database at all, but long enough to be read as the head of one: ......................"
        "....................................................................",
        "not a database"},
       {"", "no database of nos telemetry"}}};
  for (const auto& [bytes, why] : refused) {
    std::filesystem::remove(Backup());
    ASSERT_TRUE(ReplaceFile(Backup(), bytes).ok());
    const auto restored = RestoreNow();
    EXPECT_EQ(restored.status().code(), Code::kInvalid) << restored.status().ToString();
    EXPECT_NE(restored.status().message().find(why), std::string::npos)
        << restored.status().ToString();
    EXPECT_EQ(Others(), (std::vector<std::string>{"backup.db", "telemetry.db"})) << why;
  }
  Open();
  EXPECT_EQ(Samples(), 40U);
}

TEST_F(BackupTest, RestoreTakesDamagedRowsAndNamesThem) {
  Open();
  Report({1, 1, 1}, 0, 10);
  ASSERT_TRUE(BackUpNow().ok());
  {
    auto db = Sqlite::Open(Backup(), Sqlite::Mode::kWrite);
    ASSERT_TRUE(db.ok());
    ASSERT_TRUE(db->Execute("UPDATE journal SET body = x'00' WHERE id = 3").ok());
  }
  const auto restored = RestoreNow();
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  ASSERT_EQ(restored->damaged.size(), 1U);
  EXPECT_EQ(restored->damaged.front().code, "JournalRows");
  Open();
  EXPECT_GE(Samples(), 9U);
}

}  // namespace
}  // namespace nos::telemetryserver
