#include "device/mps_tool.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/fd.h"

namespace nos::device {
namespace {

using std::chrono::seconds;
using testing::IsEmpty;

constexpr const char* kA = "GPU-aaaaaaaa-0000-0000-0000-000000000000";

TEST(MpsTool, ParsesOnlyProcessIds) {
  EXPECT_EQ(PidsIn("123\n 45 0\n"), (std::vector<pid_t>{123, 45, 0}));
  EXPECT_THAT(PidsIn("none -1 1.5 99999999999999999999 4194305 12x"), IsEmpty());
}

TEST(MpsTool, CommandsTimeOut) {
  const MpsTool tool({"sleep", kA, "/tmp", "/tmp", false});
  EXPECT_EQ(tool.Ask("get_server_list", seconds(20)).status().code(), Code::kUnavailable);
  const MpsTool mute({"cat", kA, "/tmp", "/tmp", false});
  EXPECT_EQ(mute.Ask("get_server_list", seconds(20)).value(), "get_server_list");
  const MpsTool endless({"yes", kA, "/tmp", "/tmp", false});
  EXPECT_EQ(endless.Ask("get_server_list", seconds(20)).status().code(), Code::kDeadline);
  EXPECT_EQ(MpsTool({"/nowhere", kA, "/tmp", "/tmp", false}).Ask("x", seconds(1)).status().code(),
            Code::kPermission);
}

// kUnavailable would end the daemon, so a local error must have another code.
TEST(MpsTool, ExhaustedDescriptorsAreNotDaemonFault) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UBSan opens a pipe to look at an object before a virtual call";
#endif
  const MpsTool tool({"cat", kA, "/tmp", "/tmp", false});
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none{0, usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Code code = tool.Ask("get_server_list", seconds(20)).status().code();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_EQ(code, Code::kPermission);
}

// Containers can write into it, and the daemon, running as root, would follow their links.
TEST(MpsTool, ClearPipesRemovesFilesOfContainers) {
  namespace fs = std::filesystem;
  std::string pattern = fs::temp_directory_path() / "nos-mps-XXXXXX";
  const fs::path folder = mkdtemp(pattern.data());
  const fs::path pipes = folder / "pipe", others = folder / "others";
  fs::create_directories(pipes / "log" / "deep");
  fs::create_directory(others);
  std::ofstream(others / "file") << "mine";
  fs::create_symlink(others / "file", pipes / "nvidia-cuda-mps-control.pid");
  fs::create_directory_symlink(others, pipes / "log" / "deep" / "link");
  const MpsTool tool({"nvidia-cuda-mps-control", kA, pipes, folder / "log", false});
  const int before = open(pipes.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(tool.MakeFolders().ok());
  tool.ClearPipes();
  EXPECT_TRUE(fs::is_empty(pipes));
  EXPECT_TRUE(fs::exists(others / "file"));
  struct stat was{}, is{};
  ASSERT_EQ(fstat(before, &was), 0);
  ASSERT_EQ(stat(pipes.c_str(), &is), 0);
  EXPECT_EQ(was.st_ino, is.st_ino) << "containers have this one mounted";
  close(before);
  fs::remove_all(folder);
}

// A process with a server's name, started through `command`; ends with this object.
class Namesake {
 public:
  Namesake(std::vector<std::string> command, const std::string& folder)
      : there_(folder + "/there") {
    const std::string text = "touch " + there_ + "; sleep infinity; :";
    command.insert(command.end(),
                   {"bash", "-c", "exec -a nvidia-cuda-mps-server bash -c '" + text + "'"});
    std::vector<std::string> environment = OwnEnvironment();
    environment.push_back("CUDA_MPS_PIPE_DIRECTORY=" + folder);
    auto started = StartProgram({std::move(command), std::move(environment)});
    if (started.ok()) process_ = std::move(started).value();
  }
  ~Namesake() {
    if (!process_.valid()) return;
    kill(-process_.pid(), SIGKILL);  // it leads a session
    Wait(-1);
    (void)process_.HowItEnded();
    std::filesystem::remove(there_);
  }
  Namesake(const Namesake&) = delete;
  // False: it has ended, for example because `command` is not permitted here.
  bool Runs() const {
    while (process_.valid() && !std::filesystem::exists(there_)) {
      if (Wait(10)) return false;
    }
    return process_.valid();
  }
  pid_t pid() const { return process_.pid(); }

 private:
  bool Wait(int milliseconds) const {
    pollfd ended{process_.fd(), POLLIN, 0};
    return poll(&ended, 1, milliseconds) > 0;
  }

  std::string there_;
  ProcessHandle process_;
};

// A container with a share can see the directory, and may choose any process name.
TEST(MpsTool, IgnoresProcessesOfContainers) {
  namespace fs = std::filesystem;
  std::string pattern = fs::temp_directory_path() / "nos-mps-XXXXXX";
  const std::string folder = mkdtemp(pattern.data());
  const MpsTool tool({"nvidia-cuda-mps-control", kA, folder, folder, false});
  {
    const Namesake here({}, folder);
    ASSERT_TRUE(here.Runs());
    EXPECT_TRUE(tool.FindServer(here.pid()).valid());
    EXPECT_FALSE(tool.FindServer(getpid()).valid());
  }
  const Namesake contained({"unshare", "--user", "--map-root-user", "--pid", "--fork"}, folder);
  const bool runs = contained.Runs();
  const std::vector<ProcessHandle> found = tool.FindServers();
  fs::remove_all(folder);
  if (!runs) GTEST_SKIP() << "needs the right to make process namespaces";
  EXPECT_THAT(found, IsEmpty());
}

// Command and environment of a container's process can be long, and reading them can block while it
// hangs.
TEST(MpsTool, ReadsOnlyNamespaceOfContainerProcesses) {
  namespace fs = std::filesystem;
  std::string pattern = fs::temp_directory_path() / "nos-mps-XXXXXX";
  const fs::path proc = mkdtemp(pattern.data());
  const fs::path process = proc / std::to_string(getpid());
  fs::create_directories(proc / "self/ns");
  fs::create_directories(process / "ns");
  fs::create_symlink("pid:[1]", proc / "self/ns/pid");
  fs::create_symlink("pid:[2]", process / "ns/pid");
  const std::string command("nvidia-cuda-mps-server\0", 23);
  const std::string environment = "CUDA_MPS_PIPE_DIRECTORY=/pipes" + std::string(1, '\0');
  std::ofstream(process / "cmdline") << command;
  std::ofstream(process / "environ") << environment;
  const UniqueFd opened(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  for (const char* file : {"cmdline", "environ"}) {
    ASSERT_GE(inotify_add_watch(opened.get(), (process / file).c_str(), IN_OPEN), 0);
  }
  const auto was_opened = [&] {
    pollfd events{opened.get(), POLLIN, 0};
    return poll(&events, 1, 0) > 0;
  };
  const MpsTool tool({"nvidia-cuda-mps-control", kA, "/pipes", "/logs", false, proc.string()});
  EXPECT_THAT(tool.FindServers(), IsEmpty());
  EXPECT_FALSE(was_opened());
  fs::remove(process / "ns/pid");
  fs::create_symlink("pid:[1]", process / "ns/pid");
  EXPECT_EQ(tool.FindServers().size(), 1U);
  EXPECT_TRUE(was_opened());
  fs::remove_all(proc);
}

}  // namespace
}  // namespace nos::device
