// Daemons that a process of its own starts, over the doubled tool.
#include "device/mps_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <filesystem>

#include "base/unix_socket.h"
#include "device/mps_control.h"

namespace nos::device {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using Phase = MpsState::Phase;

constexpr const char* kGpu = "GPU-aaaaaaaa-0000-0000-0000-000000000000";
constexpr seconds kLong{60};  // only reached by a failing test

class MpsKeeperTest : public testing::Test {
 protected:
  MpsKeeperTest() {
    std::string pattern = fs::temp_directory_path() / "nos-mps-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    keeper_options_.program = NOS_MPS_DOUBLE;
    keeper_options_.folder = folder_ + "/pipe";
    keeper_options_.log_folder = folder_ + "/log";
    keeper_options_.socket = folder_ + "/pipe/keeper.sock";
    options_.program = NOS_MPS_DOUBLE;
    options_.folder = keeper_options_.folder;
    options_.log_folder = keeper_options_.log_folder;
    options_.keeper = keeper_options_.socket;
    options_.daemon.pauses = {std::chrono::milliseconds(1), std::chrono::milliseconds(20)};
    options_.daemon.answer_within = options_.daemon.start_within = kLong;
    options_.daemon.on_change = [this] {
      const std::scoped_lock lock(mutex_);
      changed_.notify_all();
    };
  }
  ~MpsKeeperTest() override {
    if (control_ != nullptr) {
      EXPECT_TRUE(control_->Keep({}).ok());
      EXPECT_TRUE(Await([this] { return control_->States().empty(); }));
    }
    control_.reset();
    keeper_.reset();
    fs::remove_all(folder_);
  }
  void StartKeeper() {
    keeper_ = std::make_unique<MpsKeeper>(keeper_options_);
    const Status started = keeper_->Start();
    ASSERT_TRUE(started.ok()) << started.message();
  }
  // A new agent.
  void StartAgent() {
    control_.reset();
    control_ = std::make_unique<MpsControl>(options_, board_);
    ASSERT_TRUE(control_->Keep({{0, kGpu, 39}}).ok());
  }
  bool Await(const std::function<bool()>& done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, done);
  }
  bool AwaitServing() {
    return Await([this] { return control_->Serves(kGpu); });
  }
  MpsState State() {
    const auto states = control_->States();
    return states.empty() ? MpsState() : states.front();
  }
  // The answer to a request of a client that may connect; "": none.
  std::string Ask(const std::string& request) {
    const auto connection = ConnectUnix(keeper_options_.socket);
    if (!connection.ok()) return connection.status().message();
    send(connection->get(), request.data(), request.size(), MSG_NOSIGNAL);
    shutdown(connection->get(), SHUT_WR);
    std::string answer;
    for (;;) {
      char buffer[256];
      const ssize_t got = recv(connection->get(), buffer, sizeof buffer, 0);
      if (got < 0 && errno == EAGAIN) continue;
      if (got <= 0) return answer;
      answer.append(buffer, static_cast<size_t>(got));
    }
  }

  std::string folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  GpuHealth board_;
  MpsKeeperOptions keeper_options_;
  MpsControlOptions options_;
  std::unique_ptr<MpsKeeper> keeper_;
  std::unique_ptr<MpsControl> control_;
};

TEST_F(MpsKeeperTest, DaemonOutlivesTheAgentThatAskedForIt) {
  StartKeeper();
  StartAgent();
  ASSERT_TRUE(AwaitServing()) << State().trouble;
  const pid_t daemon = State().pid;
  StartAgent();
  ASSERT_TRUE(AwaitServing()) << State().trouble;
  EXPECT_EQ(State().pid, daemon);
  EXPECT_EQ(board_.Conditions().size(), 0U);
}

TEST_F(MpsKeeperTest, StartsAnotherDaemonWhenOneHasEnded) {
  StartKeeper();
  StartAgent();
  ASSERT_TRUE(AwaitServing()) << State().trouble;
  const pid_t daemon = State().pid;
  kill(daemon, SIGKILL);
  ASSERT_TRUE(Await([&] { return control_->Serves(kGpu) && State().pid != daemon; }))
      << State().trouble;
  EXPECT_EQ(State().starts, 2U);
}

// The agent's pod may be up before the keeper's.
TEST_F(MpsKeeperTest, AgentWaitsForTheKeeper) {
  StartAgent();
  ASSERT_TRUE(Await([&] { return State().phase == Phase::kWaiting; }));
  StartKeeper();
  EXPECT_TRUE(AwaitServing()) << State().trouble;
}

TEST_F(MpsKeeperTest, SocketIsForRootOnly) {
  StartKeeper();
  struct stat file{};
  ASSERT_EQ(stat(keeper_options_.socket.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600U);
}

TEST_F(MpsKeeperTest, RefusesWhatNamesNoDevice) {
  StartKeeper();
  for (const std::string request :
       {"start ../../etc\n", "start \n", "start\n", "stop GPU-a\n", "\n", "start GPU-a/../b\n",
        "start  multiuser\n", "start GPU-aaaaaaaa-0000-0000-0000-000000000000 other\n"}) {
    EXPECT_TRUE(Ask(request).starts_with("error ")) << request << Ask(request);
  }
  EXPECT_EQ(Ask("start without an end"), "");
  EXPECT_EQ(Ask(std::string(5000, 'a')), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ + "/pipe"), {}), 1) << "only the socket";
  StartAgent();
  EXPECT_TRUE(AwaitServing()) << "it goes on";
}

TEST_F(MpsKeeperTest, SaysWhyNoDaemonStarts) {
  keeper_options_.program = folder_ + "/missing";
  StartKeeper();
  const auto started = StartByKeeper(keeper_options_.socket, kGpu, false, kLong);
  EXPECT_EQ(started.status().code(), Code::kPermission);
  EXPECT_EQ(StartByKeeper(folder_ + "/none.sock", kGpu, false, kLong).status().code(),
            Code::kUnavailable);
}

}  // namespace
}  // namespace nos::device
