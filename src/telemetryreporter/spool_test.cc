#include "telemetryreporter/spool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/random.h"
#include "telemetry/testing/temp_folder.h"

namespace nos::telemetry {
namespace {

namespace fs = std::filesystem;

// A record that compresses badly, so that file sizes are predictable.
std::string Record(int number, size_t padding = 10) {
  Random random(static_cast<uint64_t>(number));
  std::string text = "{\"n\":" + std::to_string(number) + ",\"x\":\"";
  for (size_t i = 0; i < padding; ++i) text += static_cast<char>('A' + random.Below(26));
  return text + "\"}";
}

class SpoolTest : public testing::Test {
 protected:
  SpoolTest() { Restart(); }
  void Restart() {
    spool_.reset();
    auto opened = Spool::Open(options_);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    spool_ = std::move(opened).value();
  }
  void Append(int number, size_t padding = 10) {
    const std::vector<std::string> records{Record(number, padding)};
    ASSERT_TRUE(spool_->Append(records).ok());
  }
  // Acknowledges all envelopes; returns their sequences.
  std::vector<uint64_t> Drain() {
    std::vector<uint64_t> sequences;
    while (const auto envelope = spool_->Oldest()) {
      sequences.push_back(envelope->sequence);
      EXPECT_TRUE(spool_->Acknowledge(envelope->sequence).ok());
    }
    return sequences;
  }
  std::vector<std::string> Files(const std::string& below = "") const {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(folder_.path() + "/spool" + below)) {
      if (file.path().extension() == ".gz") names.push_back(file.path().string());
    }
    std::ranges::sort(names);
    return names;
  }

  TempFolder folder_;
  SpoolOptions options_{.folder = folder_.path() + "/spool"};
  std::unique_ptr<Spool> spool_;
};

using Numbers = std::vector<uint64_t>;

TEST_F(SpoolTest, KeepsOrderAcrossRestarts) {
  EXPECT_FALSE(spool_->Oldest());
  const std::string boot = spool_->boot();
  EXPECT_EQ(boot.size(), 36u);
  Append(1);
  Append(2);
  Restart();
  Append(3);
  EXPECT_EQ(spool_->Stats().envelopes, 3u);
  EXPECT_EQ(spool_->Oldest()->records, Record(1));
  EXPECT_EQ(Drain(), (Numbers{1, 2, 3}));
  Restart();
  EXPECT_EQ(spool_->boot(), boot);
  EXPECT_FALSE(spool_->Oldest());
  Append(4);
  EXPECT_EQ(Drain(), Numbers{4}) << "the sequence continues although the spool was empty";
  EXPECT_TRUE(Files().empty());
}

TEST_F(SpoolTest, ReturnsUnacknowledgedEnvelopeAgain) {
  Append(1);
  Append(2);
  EXPECT_EQ(spool_->Oldest()->sequence, 1u);
  Restart();  // killed while the envelope was sent
  EXPECT_EQ(spool_->Oldest()->sequence, 1u);
  EXPECT_EQ(spool_->Acknowledge(7).code(), Code::kNotFound) << "never handed out";
  EXPECT_EQ(Drain(), (Numbers{1, 2}));
}

TEST_F(SpoolTest, SplitsOneAppendOnlyAtLimit) {
  options_.envelope_bytes = 1000;
  Restart();
  std::vector<std::string> records;
  for (int i = 0; i < 10; ++i) records.push_back(Record(i, 300));
  ASSERT_TRUE(spool_->Append(records).ok());
  std::string all;
  for (int i = 0; i < 10; ++i) all += (i == 0 ? "" : ",") + records[i];
  std::string got;
  while (const auto envelope = spool_->Oldest()) {
    EXPECT_LE(envelope->records.size(), 1000u);
    got += (got.empty() ? "" : ",") + envelope->records;
    ASSERT_TRUE(spool_->Acknowledge(envelope->sequence).ok());
  }
  EXPECT_EQ(got, all);
  EXPECT_EQ(spool_->Append(std::vector<std::string>{Record(1, 5000)}).code(), Code::kExhausted);
  Append(2);
  EXPECT_EQ(spool_->Oldest()->lost, 1u);
}

TEST_F(SpoolTest, FullSpoolDropsAndCountsOldest) {
  options_.max_bytes = 5 * uint64_t{4096};
  Restart();
  for (int i = 1; i <= 8; ++i) Append(i);
  EXPECT_EQ(Files().size(), 5u);
  EXPECT_EQ(spool_->Stats().bytes, 5u * 4096);
  EXPECT_EQ(spool_->Stats().lost_records, 3u);
  Restart();
  const auto oldest = spool_->Oldest();
  ASSERT_TRUE(oldest);
  EXPECT_EQ(oldest->sequence, 4u);
  EXPECT_EQ(oldest->lost, 3u) << "across the restart";
  ASSERT_TRUE(spool_->Acknowledge(4).ok());
  EXPECT_EQ(spool_->Oldest()->lost, 0u) << "reported once";
  EXPECT_EQ(Drain(), (Numbers{5, 6, 7, 8}));
}

TEST_F(SpoolTest, EnvelopeDroppedInFlightIsNotLostIfAcknowledged) {
  options_.max_bytes = 2 * uint64_t{4096};
  Restart();
  for (int i = 1; i <= 3; ++i) Append(i);
  ASSERT_EQ(spool_->Oldest()->sequence, 2u);
  ASSERT_EQ(spool_->Oldest()->lost, 1u);
  Append(4);  // drops envelope 2
  ASSERT_TRUE(spool_->Acknowledge(2).ok());
  EXPECT_EQ(spool_->Oldest()->sequence, 3u);
  EXPECT_EQ(spool_->Oldest()->lost, 0u);
}

TEST_F(SpoolTest, SetsAsideDamagedFiles) {
  for (int i = 1; i <= 5; ++i) Append(i, 400);
  const std::vector<std::string> files = Files();
  fs::resize_file(files[0], 100);  // a torn write
  fs::resize_file(files[1], 0);
  std::ofstream(files[3]) << "no gzip";
  std::ofstream(folder_.path() + "/spool/unfinished") << "half";
  std::ofstream(folder_.path() + "/spool/notes-of-somebody.gz") << "?";
  Restart();
  EXPECT_EQ(spool_->Oldest()->sequence, 3u);
  EXPECT_EQ(spool_->Oldest()->lost, 2u);
  EXPECT_EQ(Drain(), (Numbers{3, 5}));
  EXPECT_EQ(spool_->Stats().set_aside, 3u);
  EXPECT_EQ(Files("/refused").size(), 3u);
  Append(6);
  EXPECT_EQ(Drain(), Numbers{6});
}

TEST_F(SpoolTest, SetAsideEnvelopeIsKeptAndCounted) {
  for (int i = 1; i <= 30; ++i) Append(i);
  for (uint64_t i = 1; i <= 29; ++i) {
    ASSERT_EQ(spool_->Oldest()->sequence, i);
    ASSERT_TRUE(spool_->SetAside(i).ok());
  }
  EXPECT_EQ(spool_->Oldest()->lost, 29u);
  EXPECT_EQ(Files("/refused").size(), 20u) << "bounded";
}

TEST_F(SpoolTest, MissingPositionStartsNewSpoolWithoutLoss) {
  Append(1);
  Append(2);
  for (const char* name : {"position", "position.x", "position..1.2", "position.b.-1.0",
                           "position.b.9", "position.b.99999999999999999999.0"}) {
    const std::string boot = spool_->boot();
    for (const auto& file : fs::directory_iterator(folder_.path() + "/spool")) {
      if (!file.path().filename().string().starts_with("position")) continue;
      fs::rename(file.path(), folder_.path() + "/spool/" + name);
    }
    Restart();
    EXPECT_NE(spool_->boot(), boot);
    EXPECT_EQ(spool_->Oldest()->sequence, 1u);
  }
  EXPECT_EQ(Drain(), (Numbers{1, 2}));
}

// A damaged folder: a server takes each number once, and no number of more than 63 bits.
TEST_F(SpoolTest, EachNumberOfFilesIsUsedOnce) {
  Append(1);
  Append(2);
  const std::string folder = folder_.path() + "/spool/";
  const std::string second = Files().back();
  for (const char* name : {"00000000000000000002-2.gz", "18446744073709551615-1.gz",
                           "00000000000000000003-18446744073709551615.gz", "7-1.gz"}) {
    fs::copy_file(second, folder + name);
  }
  Restart();
  EXPECT_EQ(spool_->Stats().set_aside, 2u);
  Append(3);
  EXPECT_EQ(Drain(), (Numbers{1, 2, 3}));
  EXPECT_EQ(Files("/refused").size(), 2u) << "the number that was there, and the one too far ahead";
}

TEST_F(SpoolTest, DamagedPositionStartsNewSpool) {
  const std::string boot = spool_->boot();
  for (const char* name : {"position.b.18446744073709551615.0", "position.b.1.18446744073709551615",
                           "position.\xff.1.0", "position.a b.1.0"}) {
    for (const auto& file : fs::directory_iterator(folder_.path() + "/spool")) {
      if (!file.path().filename().string().starts_with("position")) continue;
      fs::rename(file.path(), folder_.path() + "/spool/" + name);
    }
    Restart();
    EXPECT_EQ(spool_->boot().size(), 36u) << name;
    EXPECT_NE(spool_->boot(), boot);
    Append(1);
    EXPECT_EQ(Drain(), Numbers{1});
  }
}

TEST_F(SpoolTest, LocksFolderForOneProcess) {
  const auto second = Spool::Open(options_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kUnavailable);
  EXPECT_NE(second.status().message().find("another process"), std::string::npos);
  const auto nowhere = Spool::Open({.folder = "/proc/self/status/spool"});
  ASSERT_FALSE(nowhere.ok());
  EXPECT_NE(nowhere.status().message().find("/proc/self/status/spool"), std::string::npos);
}

TEST_F(SpoolTest, FullDiskDropsOldest) {
  for (int i = 1; i <= 3; ++i) Append(i);
  fs::create_symlink("/dev/full", folder_.path() + "/spool/unfinished");  // fails one write
  Append(4);
  EXPECT_EQ(spool_->Stats().disk_errors, 1u);
  EXPECT_EQ(spool_->Oldest()->lost, 1u);
  EXPECT_EQ(Drain(), (Numbers{2, 3, 4}));
}

TEST_F(SpoolTest, CountsRecordsThatCannotBeWritten) {
  Append(1);
  fs::create_directories(folder_.path() + "/spool/unfinished/in/the/way");
  EXPECT_EQ(spool_->Append(std::vector<std::string>{Record(2), Record(3)}).code(),
            Code::kUnavailable);
  EXPECT_EQ(spool_->Stats().lost_records, 2u);
  EXPECT_EQ(Drain(), Numbers{1}) << "existing envelopes can still be sent";
  fs::remove_all(folder_.path() + "/spool/unfinished");
  Append(4);
  EXPECT_EQ(Drain(), Numbers{2});
}

TEST_F(SpoolTest, DeliversOrCountsEveryRecordOnFullDisk) {
  const std::string disk = folder_.path() + "/disk";
  fs::create_directory(disk);
  if (mount("none", disk.c_str(), "tmpfs", 0, "size=128k") != 0) {
    GTEST_SKIP() << "needs the right to mount a small disk (root)";
  }
  const std::unique_ptr<const char, void (*)(const char*)> mounted(
      disk.c_str(), [](const char* path) { umount2(path, MNT_DETACH); });
  {
    auto spool = Spool::Open({.folder = disk + "/spool"}).value();
    std::ofstream(disk + "/others") << std::string(64 << 10, 'x');
    uint64_t failed = 0;
    for (int i = 1; i <= 40; ++i) {
      if (!spool->Append(std::vector<std::string>{Record(i, 4000)}).ok()) ++failed;
    }
    EXPECT_GT(spool->Stats().disk_errors, 0u);
    const auto oldest = spool->Oldest();
    ASSERT_TRUE(oldest);
    EXPECT_GT(oldest->lost, failed);
    uint64_t arrived = 0, lost = 0, last = 0;
    while (const auto envelope = spool->Oldest()) {
      EXPECT_GT(envelope->sequence, last);
      last = envelope->sequence;
      lost += envelope->lost;
      ++arrived;
      ASSERT_TRUE(spool->Acknowledge(envelope->sequence).ok());
    }
    EXPECT_EQ(arrived + lost, 40u) << "every record arrives or is counted";
  }
}

// Appends until it is killed, and reports each record for which Append has returned.
[[noreturn]] void AppendForEver(const SpoolOptions& options, int report) {
  auto spool = Spool::Open(options);
  for (int i = 1; spool.ok(); ++i) {
    const std::vector<std::string> records{Record(i, 2000)};
    if (!(*spool)->Append(records).ok()) break;
    if (write(report, &i, sizeof i) != sizeof i) break;
  }
  _exit(1);
}

TEST_F(SpoolTest, KillAtAnyTimeLosesNoAppendedRecord) {
  spool_.reset();
  int reported = 0;
  for (int round = 1; round <= 5; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) AppendForEver(options_, ends[1]);
    close(ends[1]);
    int number = 0, here = 0;
    while (here < 5 * round && read(ends[0], &number, sizeof number) == sizeof number) ++here;
    kill(child, SIGKILL);
    while (read(ends[0], &number, sizeof number) == sizeof number) ++here;
    waitpid(child, nullptr, 0);
    close(ends[0]);
    ASSERT_GE(here, 5 * round);
    reported += here;
  }
  Restart();
  int found = 0;
  for (uint64_t next = 1; const auto envelope = spool_->Oldest(); ++next) {
    EXPECT_EQ(envelope->sequence, next) << "no gap and no duplicate";
    ASSERT_TRUE(spool_->Acknowledge(envelope->sequence).ok());
    ++found;
  }
  EXPECT_GE(found, reported);
  EXPECT_LE(found, reported + 5) << "at most one unreported append per kill";
  EXPECT_EQ(spool_->Stats().set_aside, 0u);
}

}  // namespace
}  // namespace nos::telemetry
