// Control daemons of a node over the doubled tool: daemons that die, hang, or are left behind.
#include "device/mps_control.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace nos::device {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds, std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Phase = MpsState::Phase;

constexpr const char* kA = "GPU-aaaaaaaa-0000-0000-0000-000000000000";
constexpr const char* kB = "GPU-bbbbbbbb-0000-0000-0000-000000000000";

// A process that stands for a client, or for any other long-running process.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    if (pid_ != 0) return;
    for (;;) pause();
  }
  ~Sleeper() { End(); }
  void End() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

class MpsControlTest : public testing::Test {
 protected:
  MpsControlTest() {
    std::string pattern = fs::temp_directory_path() / "nos-mps-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    options_.program = NOS_MPS_DOUBLE;
    options_.folder = folder_ + "/pipe";
    options_.log_folder = folder_ + "/log";
    options_.daemon.look_every = milliseconds(30);
    options_.daemon.pauses = {milliseconds(1), milliseconds(20)};
    options_.daemon.answer_within = seconds(20);
    options_.daemon.start_within = seconds(20);
    options_.daemon.on_change = [this] { Note(); };
    board_.SetListener([this] { Note(); });
  }
  ~MpsControlTest() override {
    if (control_ == nullptr) Start();
    EXPECT_TRUE(control_->Keep({}).ok());
    EXPECT_TRUE(Await([this] { return control_->States().empty(); }));
    control_.reset();
    EXPECT_THAT(board_.Conditions(), IsEmpty());
    fs::remove_all(folder_);
  }

  void Start() { control_ = std::make_unique<MpsControl>(options_, board_); }
  void Serve(const std::string& uuid = kA) {
    if (control_ == nullptr) Start();
    ASSERT_TRUE(control_->Keep({{0, uuid, 39}}).ok());
    ASSERT_TRUE(AwaitServing()) << State().trouble;
  }
  void Note() {
    const std::scoped_lock lock(mutex_);
    for (const HealthCondition& condition : board_.Conditions()) seen_.push_back(condition.message);
    changed_.notify_all();
  }
  bool Await(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(60);
    for (;;) {
      if (done()) return true;
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, milliseconds(20));  // or the change happens outside
    }
  }
  MpsState State() {
    const auto states = control_->States();
    return states.empty() ? MpsState{} : states.front();
  }
  bool AwaitServing(pid_t former = 0) {
    return Await([&] {
      const MpsState state = State();
      return state.phase == Phase::kServing && state.pid != former && board_.Conditions().empty();
    });
  }
  std::vector<std::string> Seen() {
    const std::scoped_lock lock(mutex_);
    return seen_;
  }
  // The condition's message while GPU 0 has this trouble.
  static std::string NotServed(const std::string& trouble) {
    return "MPS does not serve GPU 0: " + trouble;
  }
  bool AwaitTrouble(const std::string& trouble) {
    return Await([&] { return testing::Value(Seen(), Contains(NotServed(trouble))); });
  }
  // Waits until the daemon is gone and has left this server.
  bool AwaitServerLeft(pid_t server) {
    const std::string trouble =
        "the control daemon is gone, and its server (process " + std::to_string(server) +
        ") may still have clients: a new one is started when it has ended; end it if it is not "
        "needed";
    return Await([&] { return State().trouble == trouble; });
  }
  MpsTool Tool(const std::string& uuid = kA) {
    return MpsTool({options_.program, uuid, control_->PipeFolder(uuid),
                    options_.log_folder + "/" + uuid, false});
  }
  std::string Ask(const std::string& command) {
    const auto answer = Tool().Ask(command, seconds(20));
    return answer.ok() ? *answer : answer.status().ToString();
  }
  // Returns the server's process id.
  pid_t StartServer() {
    EXPECT_EQ(Ask("start_server -uid 0"), "");
    EXPECT_TRUE(Await([this] { return State().servers == 1; }));
    const std::vector<pid_t> pids = PidsIn(Ask("get_server_list"));
    return pids.size() == 1 ? pids[0] : 0;
  }
  void AddClient(pid_t pid) {
    std::ofstream(options_.log_folder + "/" + kA + "/clients") << pid << "\n" << pid << "\n";
    EXPECT_TRUE(Await([this] { return State().clients == 1; }));
  }
  void Fault(const std::string& line) {
    fs::create_directories(options_.log_folder + "/" + kA);
    std::ofstream(options_.log_folder + "/" + kA + "/fault") << line << "\n";
  }
  static bool Alive(pid_t pid) { return !ProcessHandle(pid).Ended(); }

  std::string folder_;
  MpsControlOptions options_;
  GpuHealth board_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> seen_;
  std::unique_ptr<MpsControl> control_;
};

std::string EnvironmentOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::replace(text.begin(), text.end(), '\0', '\n');
  return text;
}

TEST_F(MpsControlTest, RunsOneDaemonPerGpu) {
  options_.daemon.active_thread_percentage = 25;
  Start();
  ASSERT_TRUE(control_->Keep({{0, kA, 39}, {3, kB, 0}}).ok());
  ASSERT_TRUE(Await([this] {
    const auto states = control_->States();
    return states.size() == 2 && states[0].phase == Phase::kServing &&
           states[1].phase == Phase::kServing;
  }));
  const auto states = control_->States();
  EXPECT_EQ(states[0].gpu_uuid, kA);
  EXPECT_EQ(states[1].gpu, 3);
  EXPECT_NE(states[0].pid, states[1].pid);
  const std::string environment = EnvironmentOf(states[1].pid);
  EXPECT_THAT(environment, HasSubstr(std::string("\nCUDA_VISIBLE_DEVICES=") + kB + "\n"));
  EXPECT_THAT(environment, HasSubstr("\nCUDA_MPS_PIPE_DIRECTORY=" + control_->PipeFolder(kB)));
  EXPECT_THAT(environment, HasSubstr("PATH=")) << "the rest of ours, too";
  EXPECT_EQ(Ask("get_default_active_thread_percentage"), "25.0");
  EXPECT_EQ(Ask("get_default_device_pinned_mem_limit 0"), "39G");
  EXPECT_EQ(Tool(kB).Ask("get_default_device_pinned_mem_limit 0", seconds(20)).value(), "");
  EXPECT_THAT(board_.Conditions(), IsEmpty());
  EXPECT_THAT(Seen(), Contains("MPS does not serve GPU 3: it is being started"))
      << "nobody is given a share before";
}

TEST_F(MpsControlTest, RunsOneDaemonPerDividedInstance) {
  const std::string first = "MIG-cccccccc-0000-0000-0000-000000000000";
  const std::string second = "MIG-dddddddd-0000-0000-0000-000000000000";
  Start();
  ASSERT_TRUE(control_->Keep({{0, first, 0, 10112, 3}, {0, second, 0, 20224, 5}}).ok());
  ASSERT_TRUE(Await([this] {
    const auto states = control_->States();
    return states.size() == 2 && states[0].phase == Phase::kServing &&
           states[1].phase == Phase::kServing && board_.Conditions().empty();
  }));
  const std::string environment = EnvironmentOf(control_->States()[0].pid);
  EXPECT_THAT(environment, HasSubstr("\nCUDA_VISIBLE_DEVICES=" + first + "\n"));
  EXPECT_EQ(Tool(first).Ask("get_default_device_pinned_mem_limit 0", seconds(20)).value(),
            "10112M");
  EXPECT_EQ(control_->LimitMib(second), 20224);
  EXPECT_EQ(control_->Left(), (std::set<std::string>{first, second}));
  EXPECT_THAT(Seen(), Contains("MPS does not serve GPU 0 (" + first + "): it is being started"));
  kill(control_->States()[0].pid, SIGKILL);
  ASSERT_TRUE(Await([&] {
    const auto states = control_->States();
    return states[0].starts == 2 && states[0].phase == Phase::kServing;
  }));
  ASSERT_TRUE(control_->Keep({{0, first, 0, 10112, 3}}).ok());
  ASSERT_TRUE(Await([this] { return control_->States().size() == 1; }));
  EXPECT_EQ(control_->States()[0].gpu_uuid, first);
  EXPECT_EQ(control_->LimitMib(second), 0) << "nobody is given a part of it";
}

TEST_F(MpsControlTest, RestartsDeadDaemonAtOnce) {
  options_.daemon.look_every = std::chrono::hours(1);
  Serve();
  const pid_t first = State().pid;
  kill(first, SIGKILL);
  ASSERT_TRUE(AwaitServing(first));
  EXPECT_EQ(State().starts, 2u);
  EXPECT_THAT(Seen(), Contains(NotServed("its control daemon has ended (signal 9)")));
  EXPECT_EQ(Ask("get_default_device_pinned_mem_limit 0"), "39G") << "set again";
}

TEST_F(MpsControlTest, ReportsAndReplacesHungDaemon) {
  Serve();
  const pid_t first = State().pid;
  control_.reset();
  options_.daemon.answer_within = milliseconds(500);
  Serve();
  ASSERT_EQ(State().pid, first);
  kill(first, SIGSTOP);
  ASSERT_TRUE(AwaitServing(first));
  EXPECT_FALSE(Alive(first));
  EXPECT_THAT(Seen(), Contains(NotServed("'get_server_list' was not answered within 0.5 s")));
}

TEST_F(MpsControlTest, KeepsDaemonAfterOneUnansweredCommand) {
  Serve();
  const pid_t first = State().pid;
  Fault("get_server_list refuse");
  ASSERT_TRUE(AwaitTrouble(
      "'get_server_list' failed (exit status 1): Failed to communicate with the daemon"));
  ASSERT_TRUE(AwaitServing());
  EXPECT_EQ(State().pid, first);
  EXPECT_EQ(State().starts, 1u);
}

TEST_F(MpsControlTest, TakesOverDaemonOfFormerAgent) {
  Serve();
  const pid_t daemon = State().pid;
  const pid_t server = StartServer();
  Sleeper client;
  AddClient(client.pid());
  control_.reset();
  EXPECT_TRUE(Alive(daemon)) << "clients depend on it";
  EXPECT_THAT(board_.Conditions(), IsEmpty());
  Serve();
  EXPECT_EQ(State().pid, daemon);
  EXPECT_TRUE(Alive(server));
  EXPECT_TRUE(Await([this] { return State().clients == 1; }));
  kill(daemon, SIGKILL);  // noticed although the first control was its parent
  EXPECT_TRUE(Await([this] { return State().phase == Phase::kWaiting; }));
  client.End();
  EXPECT_TRUE(AwaitServing(daemon));
}

TEST_F(MpsControlTest, ReplacesHungDaemonOfFormerAgent) {
  Serve();
  const pid_t daemon = State().pid;
  control_.reset();
  kill(daemon, SIGSTOP);
  options_.daemon.answer_within = milliseconds(500);
  Start();
  ASSERT_TRUE(control_->Keep({{0, kA, 39}}).ok());
  ASSERT_TRUE(AwaitServing(daemon));
  EXPECT_FALSE(Alive(daemon));
}

TEST_F(MpsControlTest, ServerWithClientsOutlivesItsDaemon) {
  Serve();
  const pid_t server = StartServer();
  Sleeper client;
  AddClient(client.pid());
  const pid_t daemon = State().pid;
  kill(daemon, SIGKILL);
  ASSERT_TRUE(AwaitServerLeft(server));
  EXPECT_TRUE(Alive(server));
  EXPECT_FALSE(board_.Usable(0, 1)) << "nobody new gets a share of it";
  client.End();
  ASSERT_TRUE(AwaitServing(daemon));
  EXPECT_FALSE(Alive(server));
  EXPECT_EQ(Ask("start_server -uid 0"), "") << "the GPU is free";
}

TEST_F(MpsControlTest, KeepsServerWithUnseenClients) {
  Serve();
  const pid_t server = StartServer();
  AddClient(0);
  const pid_t daemon = State().pid;
  kill(daemon, SIGKILL);
  ASSERT_TRUE(AwaitServerLeft(server));
  EXPECT_TRUE(Alive(server));
  fs::remove(options_.log_folder + "/" + kA + "/clients");
  kill(server, SIGKILL);
  EXPECT_TRUE(AwaitServing(daemon));
}

TEST_F(MpsControlTest, KillsIdleServerOfDeadDaemon) {
  Serve();
  const pid_t server = StartServer();
  const pid_t daemon = State().pid;
  kill(daemon, SIGKILL);
  ASSERT_TRUE(AwaitServing(daemon));
  EXPECT_FALSE(Alive(server));
}

// Containers can write to the pipe directory, hence replace the socket and fake answers.
TEST_F(MpsControlTest, DoesNotKillProcessThatIsNoServer) {
  Serve();
  Sleeper stranger;
  std::ofstream(options_.log_folder + "/" + kA + "/servers") << stranger.pid() << "\n";
  ASSERT_EQ(PidsIn(Ask("get_server_list")), std::vector<pid_t>{stranger.pid()});
  EXPECT_EQ(Ask("start_server -uid 0"), "");
  EXPECT_TRUE(Await([this] { return State().servers == 1; }));
  const pid_t daemon = State().pid;
  kill(daemon, SIGKILL);
  EXPECT_TRUE(AwaitServing(daemon));
  EXPECT_TRUE(Alive(stranger.pid()));
}

TEST_F(MpsControlTest, WaitsForServerLeftByFormerAgent) {
  Serve();
  const pid_t daemon = State().pid;
  const pid_t server = StartServer();
  control_.reset();
  kill(daemon, SIGKILL);
  Start();
  ASSERT_TRUE(control_->Keep({{0, kA, 39}}).ok());
  ASSERT_TRUE(AwaitServerLeft(server));
  EXPECT_TRUE(Alive(server));
  kill(server, SIGKILL);
  EXPECT_TRUE(AwaitServing(daemon));
}

TEST_F(MpsControlTest, CleansUpGpuThatLeavesMpsAndServesItAgain) {
  Serve();
  const pid_t daemon = State().pid;
  const pid_t server = StartServer();
  ASSERT_TRUE(control_->Keep({}).ok());
  ASSERT_TRUE(Await([this] { return control_->States().empty(); }));
  EXPECT_FALSE(Alive(daemon));
  EXPECT_FALSE(Alive(server));
  EXPECT_FALSE(fs::exists(control_->PipeFolder(kA)));
  EXPECT_THAT(board_.Conditions(), IsEmpty());
  Serve();
  EXPECT_NE(State().pid, daemon);
}

TEST_F(MpsControlTest, KeepsUndecidedDaemonsRunning) {
  Serve();
  const pid_t daemon = State().pid;
  EXPECT_TRUE(control_->Keep({}, {kA}).ok());
  EXPECT_TRUE(AwaitServing(0));
  control_.reset();
  Start();
  ASSERT_TRUE(control_->Keep({}, {kA}).ok());
  EXPECT_TRUE(control_->HasLeft(kA));
  EXPECT_FALSE(control_->HasLeft(kB));
  EXPECT_TRUE(control_->States().empty()) << "it is not looked after yet";
  ASSERT_TRUE(control_->Keep({{0, kA, 39}}).ok());
  ASSERT_TRUE(AwaitServing());
  EXPECT_EQ(State().pid, daemon);
}

TEST_F(MpsControlTest, KillsDaemonThatDoesNotQuit) {
  options_.daemon.quit_within = milliseconds(500);
  Serve();
  const pid_t daemon = State().pid;
  const pid_t server = StartServer();
  Fault("quit hang");
  ASSERT_TRUE(control_->Keep({}).ok());
  ASSERT_TRUE(Await([this] { return control_->States().empty(); }));
  EXPECT_FALSE(Alive(daemon));
  EXPECT_FALSE(Alive(server));
}

TEST_F(MpsControlTest, EndsDaemonsOfRemovedGpus) {
  Serve(kB);
  const pid_t daemon = State().pid;
  control_.reset();
  Serve(kA);
  ASSERT_TRUE(Await([&] { return !Alive(daemon) && control_->States().size() == 1; }));
  EXPECT_EQ(State().gpu_uuid, kA);
}

TEST_F(MpsControlTest, ServesAgainWithFreshState) {
  Serve();
  EXPECT_TRUE(control_->Keep({}).ok());
  ASSERT_TRUE(Await([this] { return control_->States().empty(); }));
  EXPECT_TRUE(control_->Keep({{0, kA, 39}}).ok());
  EXPECT_THAT(board_.Conditions(), Not(IsEmpty())) << "it does not serve yet";
  ASSERT_TRUE(AwaitServing());
  EXPECT_EQ(State().starts, 1u);
}

TEST_F(MpsControlTest, ReportsNoLimitWhileNotServing) {
  constexpr const char* kMig = "MIG-aaaaaaaa-0000-0000-0000-000000000000";
  options_.daemon.pauses = {seconds(60), seconds(60)};
  Start();
  ASSERT_TRUE(control_->Keep({{0, kMig, 0, 20224, 2}}).ok());
  ASSERT_TRUE(AwaitServing());
  EXPECT_EQ(control_->LimitMib(kMig), 20224);
  EXPECT_TRUE(control_->Serves(kMig));
  ASSERT_EQ(kill(State().pid, SIGKILL), 0);
  ASSERT_TRUE(Await([this] { return State().phase == Phase::kWaiting; }));
  EXPECT_EQ(control_->LimitMib(kMig), 0);
  EXPECT_FALSE(control_->Serves(kMig));
}

TEST_F(MpsControlTest, ReportsAndRetriesFailedStart) {
  Fault("start fail");
  Serve();
  EXPECT_THAT(Seen(), Contains(NotServed("it ended when it was started (exit status 1); see " +
                                         options_.log_folder + "/" + kA + "/control.log")));
  EXPECT_EQ(State().starts, 2u);
}

TEST_F(MpsControlTest, KillsAndRetriesHungStart) {
  Fault("start hang");
  options_.daemon.start_within = milliseconds(500);
  Start();
  ASSERT_TRUE(control_->Keep({{0, kA, 39}}).ok());
  ASSERT_TRUE(AwaitTrouble(
      "'get_default_active_thread_percentage' failed (exit status 1): Cannot find MPS control "
      "daemon process"));
  control_.reset();
  options_.daemon.start_within = seconds(20);
  Serve();
}

TEST_F(MpsControlTest, ReportsMissingProgram) {
  options_.program = folder_ + "/nvidia-cuda-mps-control";
  Start();
  ASSERT_TRUE(control_->Keep({{0, kA, 39}}).ok());
  EXPECT_TRUE(AwaitTrouble("cannot start " + options_.program +
                           ": No such file or directory; NVIDIA's container runtime puts it into "
                           "the agent's container: set "
                           "gpuPartitioner.migAgent.runtimeClassName=nvidia, or make that runtime "
                           "the node's default"));
}

TEST_F(MpsControlTest, ReportsPathTooLongForSocket) {
  options_.folder = folder_ + "/" + std::string(60, 'x');
  Start();
  ASSERT_TRUE(control_->Keep({{0, kA, 39}}).ok());
  const std::string longest = control_->PipeFolder(kA) + "/control_privileged";
  EXPECT_TRUE(AwaitTrouble(longest + " has " + std::to_string(longest.size()) +
                           " bytes, and a socket's path 107 at most: choose a shorter folder for "
                           "MPS"));
}

TEST_F(MpsControlTest, ServesDespiteRefusedLimit) {
  options_.daemon.active_thread_percentage = 101;
  Serve();
  EXPECT_EQ(Ask("get_default_active_thread_percentage"), "100.0");
  EXPECT_EQ(State().starts, 1u);
}

TEST_F(MpsControlTest, TruncatesLongLogs) {
  Serve();
  const std::string log = options_.log_folder + "/" + kA + "/control.log";
  const std::string line(1 << 20, 'x');
  std::ofstream file(log, std::ios::app);
  for (int i = 0; i < 9; ++i) file << line;
  file.close();
  EXPECT_TRUE(Await([&] { return fs::file_size(log) < line.size(); }));
}

TEST_F(MpsControlTest, DaemonInheritsNoFileDescriptors) {
  const std::string path = folder_ + "/secret";
  const int fd = open(path.c_str(), O_CREAT | O_RDWR, 0600);  // NOLINT: as a library may do
  ASSERT_GE(fd, 0);
  Serve();
  const std::string files = "/proc/" + std::to_string(State().pid) + "/fd";
  for (const auto& entry : fs::directory_iterator(files)) {
    std::error_code gone;
    EXPECT_NE(fs::read_symlink(entry.path(), gone), path);
  }
  close(fd);
}

TEST_F(MpsControlTest, AppliesNewIndexOrLimit) {
  Serve();
  const pid_t daemon = State().pid;
  ASSERT_TRUE(control_->Keep({{2, kA, 20}}).ok());
  ASSERT_TRUE(Await([this] { return State().gpu == 2 && State().phase == Phase::kServing; }));
  EXPECT_EQ(State().pid, daemon);
  EXPECT_EQ(Ask("get_default_device_pinned_mem_limit 0"), "20G");
}

TEST_F(MpsControlTest, RefusesUuidUnfitForDirectoryName) {
  Start();
  for (const char* uuid : {"", "GPU-", "..", "GPU-../../etc", "MIG-", "MIG-GPU-a/1/0", "GPU-a b"}) {
    EXPECT_EQ(control_->Keep({{0, uuid, 0}}).code(), Code::kInvalid) << uuid;
  }
  EXPECT_THAT(control_->States(), IsEmpty());
}

}  // namespace
}  // namespace nos::device
