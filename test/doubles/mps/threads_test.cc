// Daemon threads: what they block, and that they end.
#include <gtest/gtest.h>

#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "device/mps_control.h"

namespace nos::device {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds, std::chrono::seconds;
using Phase = MpsState::Phase;

constexpr const char* kGpu = "GPU-aaaaaaaa-0000-0000-0000-000000000000";

class MpsThreadsTest : public testing::Test {
 protected:
  MpsThreadsTest() {
    std::string pattern = fs::temp_directory_path() / "nos-mps-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    MpsControlOptions options;
    options.program = NOS_MPS_DOUBLE;
    options.folder = folder_ + "/pipe";
    options.log_folder = folder_ + "/log";
    options.daemon.answer_within = options.daemon.start_within = seconds(20);
    options.daemon.pauses = {seconds(60), seconds(60)};
    options.daemon.on_change = [this] {
      std::unique_lock lock(mutex_);
      changed_.notify_all();
      changed_.wait_for(lock, seconds(60), [this] { return !held_; });
    };
    control_ = std::make_unique<MpsControl>(options, board_);
  }
  ~MpsThreadsTest() override {
    EXPECT_TRUE(control_->Keep({}).ok());
    EXPECT_TRUE(Await([this] { return control_->States().empty(); }));
    control_.reset();
    fs::remove_all(folder_);
  }

  bool Await(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(60);
    for (;;) {
      if (done()) return true;
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, milliseconds(20));
    }
  }
  void Hold(bool held) {
    const std::scoped_lock lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  static std::ptrdiff_t CountThreads() {
    return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
  }

  std::string folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;  // blocks the daemons' threads
  GpuHealth board_;
  std::unique_ptr<MpsControl> control_;
};

TEST_F(MpsThreadsTest, EndingDaemonDoesNotBlockReaders) {
  ASSERT_TRUE(control_->Keep({{0, kGpu, 39}}).ok());
  ASSERT_TRUE(Await([this] { return control_->Serves(kGpu); }));
  const std::vector<MpsState> serving = control_->States();
  Hold(true);
  ASSERT_EQ(kill(serving.at(0).pid, SIGKILL), 0);
  ASSERT_TRUE(Await([this] { return !control_->Serves(kGpu); }));
  std::thread keeps([this] { EXPECT_TRUE(control_->Keep({{0, kGpu, 20}}).ok()); });
  // Waits for the former thread, whose state is no longer reported.
  EXPECT_TRUE(Await([this] { return control_->States().empty(); }));
  EXPECT_FALSE(control_->Serves(kGpu));
  Hold(false);
  keeps.join();
  EXPECT_TRUE(Await([this] { return control_->Serves(kGpu); }));
}

// The daemon runs as root, and writes its process id into a file with that name.
TEST_F(MpsThreadsTest, DaemonFollowsNoLinkLeftByContainer) {
  const std::string pipes = folder_ + "/pipe/" + kGpu;
  fs::create_directories(pipes);
  std::ofstream(folder_ + "/others") << "mine";
  fs::create_symlink(folder_ + "/others", pipes + "/nvidia-cuda-mps-control.pid");
  ASSERT_TRUE(control_->Keep({{0, kGpu, 39}}).ok());
  ASSERT_TRUE(Await([this] { return control_->Serves(kGpu); }));
  std::string text;
  std::ifstream(folder_ + "/others") >> text;
  EXPECT_EQ(text, "mine");
}

TEST_F(MpsThreadsTest, RemovedGpusLeaveNoThreads) {
  const std::ptrdiff_t before = CountThreads();
  for (int i = 0; i < 3; ++i) {
    const std::string uuid = std::string(kGpu) + std::to_string(i);
    ASSERT_TRUE(control_->Keep({{i, uuid, 39}}).ok());
    ASSERT_TRUE(Await([&] { return control_->Serves(uuid); }));
    ASSERT_TRUE(control_->Keep({}).ok());
    ASSERT_TRUE(Await([this] { return control_->States().empty(); }));
  }
  ASSERT_TRUE(control_->Keep({}).ok());
  EXPECT_TRUE(Await([&] { return CountThreads() == before; })) << CountThreads() - before;
}

}  // namespace
}  // namespace nos::device
