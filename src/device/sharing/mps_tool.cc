#include "device/mps_tool.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "device/backend/driver_program.h"
#include "device/mps_keeper.h"

namespace nos::device {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxSocketPath = 107;
constexpr int64_t kMaxLog = int64_t{8} << 20;     // bytes on disk
constexpr size_t kMaxProcFile = size_t{1} << 21;  // ARG_MAX
constexpr const char* kServer = "nvidia-cuda-mps-server";

// NUL-terminated words of a /proc file; the process may end meanwhile.
std::vector<std::string> ProcWords(const fs::path& file) {
  std::vector<std::string> words;
  const Result<std::string> text = ReadFile(file.string(), kMaxProcFile);
  if (!text.ok()) return words;
  for (const std::string_view word : Split(*text, '\0')) words.emplace_back(word);
  return words;
}

// "" if the process has ended, or may not be inspected.
std::string NamespaceOf(const fs::path& process) {
  std::error_code fault;
  return fs::read_symlink(process / "ns/pid", fault).string();
}

bool Contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string BaseName(const std::string& path) { return fs::path(path).filename().string(); }

// Matches the command line; a script's command line begins with its interpreter.
bool Runs(const std::vector<std::string>& command, const std::string& name) {
  for (size_t i = 0; i < std::min<size_t>(2, command.size()); ++i) {
    if (BaseName(command[i]) == name) return true;
  }
  return false;
}

}  // namespace

Status MpsTool::MakeFolders() const {
  const std::string longest = options_.pipe_folder + "/control_privileged";
  if (longest.size() > kMaxSocketPath) {
    return Invalid(
        fmt::format("{} has {} bytes, and a socket's path {} at most: choose a shorter "
                    "folder for MPS",
                    longest, longest.size(), kMaxSocketPath));
  }
  for (const std::string& folder : {options_.pipe_folder, options_.log_folder}) {
    std::error_code fault;
    fs::create_directories(folder, fault);
    if (!fault) {
      fs::permissions(folder,
                      fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                          fs::perms::others_read | fs::perms::others_exec,
                      fs::perm_options::add, fault);
    }
    if (fault) {
      return {Code::kPermission,
              fmt::format("cannot make the folder {}: {}", folder, fault.message())};
    }
  }
  return Status::Ok();
}

void MpsTool::ClearPipes() const {
  std::error_code fault;
  std::vector<fs::path> left;
  for (fs::directory_iterator entry(options_.pipe_folder, fault), end; !fault && entry != end;
       entry.increment(fault)) {
    left.push_back(entry->path());
  }
  for (const fs::path& path : left) fs::remove_all(path, fault);  // does not follow links
}

void MpsTool::RemovePipes() const {
  std::error_code fault;
  fs::remove_all(options_.pipe_folder, fault);
}

// Measures disk blocks, because a writer without O_APPEND leaves a hole after truncation.
void MpsTool::BoundLogs() const {
  for (const char* name : {"/control.log", "/server.log"}) {
    const std::string path = options_.log_folder + name;
    struct stat found{};
    constexpr int64_t kBlock = 512;
    if (stat(path.c_str(), &found) != 0 || found.st_blocks * kBlock <= kMaxLog) continue;
    std::error_code fault;
    fs::resize_file(path, 0, fault);
  }
}

std::vector<std::string> MpsTool::Environment() const {
  std::vector<std::string> all;
  for (std::string& text : OwnEnvironment()) {
    if (!text.starts_with("CUDA_VISIBLE_DEVICES=") && !text.starts_with("CUDA_MPS_")) {
      all.push_back(std::move(text));
    }
  }
  all.push_back("CUDA_VISIBLE_DEVICES=" + options_.gpu_uuid);
  all.push_back("CUDA_MPS_PIPE_DIRECTORY=" + options_.pipe_folder);
  all.push_back("CUDA_MPS_LOG_DIRECTORY=" + options_.log_folder);
  return all;
}

Result<ProcessHandle> MpsTool::StartDaemon() const {
  constexpr Duration kKeeperTimeout = std::chrono::seconds(10);
  if (!options_.keeper.empty()) {
    return StartByKeeper(options_.keeper, options_.gpu_uuid, options_.multi_user, kKeeperTimeout);
  }
  std::vector<std::string> arguments{options_.program, "-f"};
  if (options_.multi_user) arguments.emplace_back("-multiuser-server");
  return StartProgram(DriverProgram(std::move(arguments), Environment()));
}

Result<std::string> MpsTool::Ask(const std::string& command, Duration within) const {
  Result<ProgramEnd> end = RunProgram(DriverProgram({options_.program}, Environment()),
                                      {.within = within, .input = command + "\n"});
  const Code code = end.status().code();
  if (code == Code::kDeadline || code == Code::kExhausted) {
    return Status(Code::kDeadline,
                  fmt::format("'{}' was not answered within {} s", command, ToSeconds(within)));
  }
  NOS_RETURN_IF_ERROR(end.status());
  if (end->how == "exit status 0") return std::move(end->output);
  return Status(Code::kUnavailable, fmt::format("'{}' failed ({}): {}", command, end->how,
                                                Shortened(end->output, 200)));
}

std::vector<ProcessHandle> MpsTool::FindDaemons() const {
  return Find(BaseName(options_.program), true);
}

std::vector<ProcessHandle> MpsTool::FindServers() const { return Find(kServer, false); }

ProcessHandle MpsTool::FindServer(pid_t pid) const {
  ProcessHandle process(pid);
  return IsOurs(process, kServer, false) ? std::move(process) : ProcessHandle();
}

bool MpsTool::IsOurs(const ProcessHandle& process, const std::string& name, bool daemon) const {
  if (!process.valid()) return false;
  const fs::path proc = options_.proc, folder = proc / std::to_string(process.pid());
  if (NamespaceOf(folder) != NamespaceOf(proc / "self")) return false;
  const std::vector<std::string> command = ProcWords(folder / "cmdline");
  if (!Runs(command, name)) return false;
  if (daemon && !Contains(command, "-f") && !Contains(command, "-d")) return false;
  const std::string mark = "CUDA_MPS_PIPE_DIRECTORY=" + options_.pipe_folder;
  return Contains(ProcWords(folder / "environ"), mark) && !process.Ended();
}

std::vector<ProcessHandle> MpsTool::Find(const std::string& name, bool daemon) const {
  std::vector<ProcessHandle> found;
  std::error_code fault;
  for (const auto& entry : fs::directory_iterator(options_.proc, fault)) {
    const auto pid = ParseInt(entry.path().filename().string());
    if (!pid) continue;
    ProcessHandle handle(static_cast<pid_t>(*pid));  // before reading its files
    if (IsOurs(handle, name, daemon)) found.push_back(std::move(handle));
  }
  return found;
}

std::vector<pid_t> PidsIn(const std::string& answer) {
  std::vector<pid_t> pids;
  std::string word;
  for (const char c : answer + ' ') {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      word += c;
      continue;
    }
    const auto number = ParseInt(std::exchange(word, ""));
    if (number && *number >= 0 && *number <= 1 << 22) pids.push_back(static_cast<pid_t>(*number));
  }
  return pids;
}

}  // namespace nos::device
