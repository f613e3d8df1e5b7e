// Tests a spool on a failing disk: every record that was appended arrives once, whatever fails
// and whenever the power is cut.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "telemetryreporter/spool.h"

namespace nos::telemetry {
namespace {

// A folder in memory that fails and loses power. Names reach the disk with the next Sync; before
// it, a loss of power keeps any part of the changes.
class FaultFolder final : public SpoolFolder {
 public:
  // This state outlives the process.
  struct Disk {
    explicit Disk(uint64_t seed) : random(seed) {}
    using File = std::shared_ptr<std::string>;
    struct Change {
      std::string gone, name;  // "": none
      File file;               // of `name`
    };
    std::map<std::string, File> names, durable;
    std::vector<Change> pending;
    Random random;
    int64_t operations = 0, cut_at = -1;  // power is cut at this operation
    uint64_t fails = 0;                   // one of so many operations fails; 0: none
    bool cut = false;
    int unreadable = 0;  // reads that fail from now on

    // The power is back.
    void Restart() {
      const uint64_t kept = random.Below(3);  // none, all, any
      for (const Change& change : std::exchange(pending, {})) {
        if (kept == 0 || (kept == 2 && random.Below(2) == 0)) continue;
        if (change.file != nullptr) durable[change.name] = change.file;
        // Some file systems keep both names of a rename that was not synced.
        const bool both = change.file != nullptr && kept == 2 && random.Below(4) == 0;
        if (!change.gone.empty() && !both) durable.erase(change.gone);
      }
      names = durable;
      cut = false;
      cut_at = -1;
    }
  };

  explicit FaultFolder(Disk& disk) : disk_(disk) {}

  Status Write(const std::string& name, std::string_view content) override {
    const bool fails = Fails();
    if (disk_.cut && !fails) return Cut();
    const size_t size = fails ? disk_.random.Below(content.size() + 1) : content.size();
    Put({"", name, std::make_shared<std::string>(content.substr(0, size))});
    return fails ? Status(Code::kUnavailable, "sync: input/output error") : Status::Ok();
  }
  Status Rename(const std::string& from, const std::string& to) override {
    if (Fails() || disk_.cut || !disk_.names.contains(from)) return Cut();
    if (from != to) Put({from, to, disk_.names.at(from)});
    return Status::Ok();
  }
  void Remove(const std::string& name) override {
    if (Fails() || disk_.cut || !disk_.names.contains(name)) return;
    Put({name, "", nullptr});
  }
  Status Sync() override {
    if (Fails() || disk_.cut) return Cut();
    disk_.durable = disk_.names;
    disk_.pending.clear();
    return Status::Ok();
  }
  Result<std::string> Read(const std::string& name, size_t) override {
    if (disk_.cut) return Cut();
    if (disk_.unreadable > 0) {
      --disk_.unreadable;
      return Cut();
    }
    const auto found = disk_.names.find(name);
    return found == disk_.names.end() ? Result<std::string>(NotFound(name))
                                      : Result<std::string>(*found->second);
  }
  Result<std::vector<Listed>> List() override {
    if (disk_.cut) return Cut();
    std::vector<Listed> files;
    for (const auto& [name, file] : disk_.names) files.push_back({name, file->size()});
    return files;
  }

 private:
  bool Fails() {
    if (disk_.operations++ == disk_.cut_at) disk_.cut = true;
    return !disk_.cut && disk_.fails > 0 && disk_.random.Below(disk_.fails) == 0;
  }
  static Status Cut() { return {Code::kUnavailable, "input/output error"}; }
  void Put(Disk::Change change) {
    if (!change.gone.empty()) disk_.names.erase(change.gone);
    if (change.file != nullptr) disk_.names[change.name] = change.file;
    disk_.pending.push_back(std::move(change));
  }

  Disk& disk_;
};

// A server, as far as a spool sees it.
struct Server {
  std::map<std::string, uint64_t> known;  // the last sequence of each boot
  std::map<std::string, int> stored;      // records

  void Take(const std::string& boot, const SpooledEnvelope& envelope) {
    if (envelope.sequence <= known[boot]) return;  // a repetition
    known[boot] = envelope.sequence;
    for (const std::string_view record : Split(envelope.records, ',')) {
      ++stored[std::string(record)];
    }
  }
};

class SpoolFaultTest : public testing::Test {
 protected:
  explicit SpoolFaultTest(uint64_t seed = 1) : disk_(seed) {}
  bool Start() {
    spool_.reset();
    auto opened =
        Spool::Open({.folder = "", .max_bytes = max_bytes_}, std::make_unique<FaultFolder>(disk_));
    if (opened.ok()) spool_ = *std::move(opened);
    return opened.ok();
  }
  void Append() {
    const std::vector<std::string> records{std::to_string(++appended_)};
    if (spool_->Append(records).ok()) kept_.insert(records.front());
  }
  // `answered`: the server's answer arrives.
  bool Send(bool answered = true) {
    const auto envelope = spool_->Oldest();
    if (!envelope) return false;
    server_.Take(spool_->boot(), *envelope);
    if (answered) (void)spool_->Acknowledge(envelope->sequence);
    return true;
  }
  void CutAndRestart() {
    disk_.cut = true;
    spool_.reset();
    disk_.Restart();
    disk_.fails = 0;
    ASSERT_TRUE(Start());
  }
  void ExpectAll() {
    while (Send()) continue;
    for (const std::string& record : kept_) ASSERT_EQ(server_.stored[record], 1) << record;
    for (const auto& [record, times] : server_.stored) ASSERT_EQ(times, 1) << record;
  }

  uint64_t max_bytes_ = uint64_t{64} << 20;
  FaultFolder::Disk disk_;
  std::unique_ptr<Spool> spool_;
  Server server_;
  int appended_ = 0;
  std::set<std::string> kept_;  // records for which Append returned OK
};

TEST_F(SpoolFaultTest, PowerCutAtAnyOperation) {
  int64_t operations = 0;
  for (int64_t at = -1; at < operations; ++at) {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      SCOPED_TRACE("operation " + std::to_string(at) + ", seed " + std::to_string(seed));
      disk_ = FaultFolder::Disk(seed);
      server_ = {};
      kept_.clear();
      disk_.cut_at = at;
      if (Start()) {
        for (int i = 0; i < 4; ++i) Append();
        Send();
        Send(false);
        Append();
        Send();
        Append();
      }
      if (at < 0) operations = disk_.operations;
      CutAndRestart();
      Append();
      ExpectAll();
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(operations, 20);
}

// Errors at random, power cuts at random, answers that get lost.
TEST_F(SpoolFaultTest, ManyFaultsOneAfterAnother) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    disk_ = FaultFolder::Disk(seed);
    server_ = {};
    kept_.clear();
    Random random(seed);
    ASSERT_TRUE(Start());
    for (int round = 0; round < 5; ++round) {
      disk_.fails = 2 + random.Below(8);
      disk_.cut_at = disk_.operations + static_cast<int64_t>(random.Below(60));
      for (int i = 0; i < 20 && !disk_.cut; ++i) {
        if (random.Below(2) == 0) Append();
        if (random.Below(2) == 0) Send(random.Below(4) != 0);
      }
      CutAndRestart();
      if (random.Below(2) == 0) ExpectAll();
      if (HasFatalFailure()) return;
    }
    ExpectAll();
  }
}

// A full spool drops records, but never gives the number of one to another.
TEST_F(SpoolFaultTest, FullSpoolGivesNoNumberTwice) {
  max_bytes_ = 3 * uint64_t{4096};
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    disk_ = FaultFolder::Disk(seed);
    server_ = {};
    Random random(seed);
    ASSERT_TRUE(Start());
    for (int round = 0; round < 5; ++round) {
      disk_.fails = 2 + random.Below(8);
      for (int i = 0; i < 20; ++i) {
        if (random.Below(3) == 0) Send(random.Below(4) != 0);
        Append();
      }
      CutAndRestart();
      kept_.clear();
      Append();  // the last one is never dropped
      ExpectAll();
      if (HasFatalFailure()) return;
    }
  }
}

// The file got its name, but the folder was not synced: after a power cut it may be there.
TEST_F(SpoolFaultTest, NumberOfAppendThatFailedIsNotGivenAgain) {
  ASSERT_TRUE(Start());
  const std::vector<std::string> two{"x", "y"};
  class FailingSync final : public SpoolFolder {
   public:
    explicit FailingSync(FaultFolder::Disk& disk) : real_(disk) {}
    Status Write(const std::string& n, std::string_view c) override { return real_.Write(n, c); }
    Status Rename(const std::string& a, const std::string& b) override {
      return real_.Rename(a, b);
    }
    void Remove(const std::string& n) override { real_.Remove(n); }
    Status Sync() override {
      return fails-- == 0 ? Status(Code::kUnavailable, "input/output error") : real_.Sync();
    }
    Result<std::string> Read(const std::string& n, size_t m) override { return real_.Read(n, m); }
    Result<std::vector<Listed>> List() override { return real_.List(); }
    int fails = -1;

   private:
    FaultFolder real_;
  };
  auto folder = std::make_unique<FailingSync>(disk_);
  FailingSync& sync = *folder;
  spool_ = Spool::Open({.folder = ""}, std::move(folder)).value();
  sync.fails = 0;
  EXPECT_EQ(spool_->Append(two).code(), Code::kUnavailable);
  EXPECT_EQ(spool_->Stats().lost_records, 2U);
  Append();
  EXPECT_EQ(spool_->Oldest()->sequence, 2U);
}

TEST_F(SpoolFaultTest, ReadErrorOfDiskKeepsEnvelope) {
  ASSERT_TRUE(Start());
  Append();
  Append();
  disk_.unreadable = 3;
  EXPECT_FALSE(Send());
  EXPECT_FALSE(Send());
  EXPECT_FALSE(Send());
  EXPECT_EQ(spool_->Stats().set_aside, 0U);
  ExpectAll();
  // A bad sector for ever must not keep the others back.
  Append();
  Append();
  disk_.unreadable = 5;
  while (disk_.unreadable > 0) (void)Send();
  EXPECT_EQ(spool_->Stats().set_aside, 1U);
  EXPECT_EQ(server_.stored["3"], 0);
  EXPECT_EQ(server_.stored["4"], 1);
}

}  // namespace
}  // namespace nos::telemetry
