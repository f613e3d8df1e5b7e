// Wraps nvidia-cuda-mps-control for the pipe directory of one GPU: starts the daemon and sends it
// commands.
//
// Facts (docs.nvidia.com/deploy/mps, "Legacy MPS v2 Interface", "Architecture" and the appendices,
// and nvidia-cuda-mps-control(1)):
// - "-f" stays in the foreground, "-d" does not; without either it reads commands from stdin and
//   writes the answers to stdout. "-multiuser-server" lets all users share one server; without it a
//   server belongs to one user, and is replaced if it has no clients and another user connects.
// - It listens on unix sockets in CUDA_MPS_PIPE_DIRECTORY ("control", "control_privileged") and
//   writes its process id into nvidia-cuda-mps-control.pid there. A path too long for a socket (107
//   bytes) makes it unreachable without an error of its own.
// - With CUDA_VISIBLE_DEVICES=<UUID> its GPU is device 0 for servers and clients.
// - It starts nvidia-cuda-mps-server, as its child, when the first client comes.
// - A second daemon in a directory says "An instance of this daemon is already running", a command
//   without a daemon "Cannot find MPS control daemon process"; both exit with 1.
// - Its server needs the rest of the environment: without LD_LIBRARY_PATH of the container it ends
//   at once (NVIDIA/k8s-device-plugin issue 1614).
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/process.h"
#include "base/status.h"

namespace nos::device {

struct MpsToolOptions {
  std::string program = "nvidia-cuda-mps-control";  // a path, or a name searched in $PATH
  std::string gpu_uuid, pipe_folder, log_folder;
  bool multi_user = false;
  std::string proc = "/proc";  // the proc file system
  std::string keeper{};        // socket of the process that starts daemons (mps_keeper.h); "": none
};

// Not thread-safe.
class MpsTool {
 public:
  explicit MpsTool(MpsToolOptions options) : options_(std::move(options)) {}

  // Creates both directories, accessible to other users' servers. Errors: kInvalid (the path is too
  // long), kPermission.
  Status MakeFolders() const;
  // Truncates the daemon's and the servers' logs beyond 8 MiB: every command writes some lines, and
  // MPS does not rotate them.
  void BoundLogs() const;
  // Removes files from the pipe directory, which containers can write to: the daemon runs as root
  // and would follow a link with the name of one of its files. The directory stays, because
  // containers have it mounted. REQUIRES: no daemon is running.
  void ClearPipes() const;
  // REQUIRES: no daemon is running.
  void RemovePipes() const;
  // Starts it in the foreground in its own session, so that it outlives this process: as a child,
  // or by the keeper. Errors: kPermission (the program cannot be started), kUnavailable (no
  // keeper).
  Result<ProcessHandle> StartDaemon() const;
  // Returns the daemon's answer, trimmed. Errors: kUnavailable (the program fails; with its
  // output), kDeadline (no answer in time), kPermission (it cannot be started).
  Result<std::string> Ask(const std::string& command, Duration within) const;

  // Processes of this pipe directory, of all users. Only root finds those of other users.
  // Processes of other namespaces are excluded, because containers can choose any name for theirs.
  // Only the namespace of these is read: command and environment may be long, and reading them can
  // block while the process holds its memory locked in the kernel.
  std::vector<ProcessHandle> FindDaemons() const;
  std::vector<ProcessHandle> FindServers() const;
  // The process if it is an MPS server. Otherwise not valid, even if the daemon's answer names it:
  // containers can replace the daemon's socket and fake answers.
  ProcessHandle FindServer(pid_t pid) const;

  const MpsToolOptions& options() const { return options_; }

 private:
  std::vector<std::string> Environment() const;
  std::vector<ProcessHandle> Find(const std::string& name, bool daemon) const;
  bool IsOurs(const ProcessHandle& process, const std::string& name, bool daemon) const;

  MpsToolOptions options_;
};

// The numbers in an answer, such as process ids. Other text is skipped.
std::vector<pid_t> PidsIn(const std::string& answer);

}  // namespace nos::device
