// nvidia-cuda-mps-control for the pipe directory of one GPU: as a daemon, and as the program that
// hands the daemon a command.
//
// Facts (docs.nvidia.com/deploy/mps, "Legacy MPS v2 Interface", "Architecture" and the appendices,
// and nvidia-cuda-mps-control(1)):
// - "-f" stays in the foreground, "-d" does not; without either it reads commands from stdin and
//   writes the answers to stdout. "-multiuser-server" lets all users share one server; without it a
//   server is of one user, and is replaced when it has no clients and another user comes.
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
#include "base/status.h"
#include "device/backend/child_process.h"

namespace nos::device {

struct MpsToolOptions {
  std::string program = "nvidia-cuda-mps-control";  // a path, or a name to be found in $PATH
  std::string gpu_uuid, pipe_folder, log_folder;
  bool multi_user = false;
  std::string proc = "/proc";  // where the kernel tells of processes
};

// Not thread-safe.
class MpsTool {
 public:
  explicit MpsTool(MpsToolOptions options) : options_(std::move(options)) {}

  // Makes both folders, which other users' servers must be able to reach. Errors: kInvalid (the
  // path is too long), kPermission.
  Status MakeFolders() const;
  // Begins the daemon's and the servers' logs anew where they are longer than 8 MiB: every command
  // writes some lines, and nobody else bounds them.
  void BoundLogs() const;
  // Takes away what containers, which can write there, may have left: the daemon, which is root,
  // would follow a link by the name of one of its files. The folder stays, for they have it
  // mounted. REQUIRES: no daemon is there.
  void ClearPipes() const;
  // REQUIRES: no daemon is there.
  void RemovePipes() const;
  // In the foreground, as a child in a session of its own, so that it outlives this process.
  // Error: kPermission: the program cannot be started.
  Result<ProcessHandle> StartDaemon() const;
  // What the daemon answers, trimmed. Errors: kUnavailable (the program fails: what it said),
  // kDeadline (nothing in time), kPermission (it cannot be started).
  Result<std::string> Ask(const std::string& command, Duration within) const;

  // Processes of this pipe directory, whoever started them. Other users' are found by root only.
  // Not those of other process namespaces: containers may call theirs what they like. Of those only
  // the namespace is read: their command and environment are theirs to make long, and cannot be
  // read while they are held up in the kernel with their memory locked.
  std::vector<ProcessHandle> FindDaemons() const;
  std::vector<ProcessHandle> FindServers() const;
  // That server, if it is one. Not valid: it is none, whatever an answer says: containers can put
  // something else in the daemon's place.
  ProcessHandle FindServer(pid_t pid) const;

  const MpsToolOptions& options() const { return options_; }

 private:
  std::vector<std::string> Environment() const;
  std::vector<ProcessHandle> Find(const std::string& name, bool daemon) const;
  bool IsOurs(const ProcessHandle& process, const std::string& name, bool daemon) const;

  MpsToolOptions options_;
};

// The numbers in an answer, such as process ids. Whatever else stands there is passed over.
std::vector<pid_t> PidsIn(const std::string& answer);

}  // namespace nos::device
