// Runs programs of the driver as child processes: with a time limit, or detached.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

namespace nos::device {

// A process held by a pidfd, so a reused process id cannot be mistaken for it.
class ProcessHandle {
 public:
  ProcessHandle() = default;
  // Not valid if the process does not exist any more.
  explicit ProcessHandle(pid_t pid);
  bool valid() const { return fd_.valid(); }
  pid_t pid() const { return pid_; }
  int fd() const { return fd_.get(); }  // readable after its end
  bool Ended() const;
  void Kill() const;
  // "exit status 1", "signal 9"; "it is no child of the agent" if that cannot be known. Reaps the
  // process. REQUIRES: Ended().
  std::string HowItEnded() const;

 private:
  pid_t pid_ = 0;
  UniqueFd fd_;
};

struct Program {
  std::vector<std::string> arguments;    // the first: a path, or a name searched in $PATH
  std::vector<std::string> environment;  // "NAME=value", the complete environment
};

// The environment of this process.
std::vector<std::string> OwnEnvironment();

// Starts it in its own session without streams, so that it outlives this process. Error:
// kPermission: it cannot be started.
Result<ProcessHandle> StartProgram(Program program);

struct ProgramEnd {
  std::string how;   // ProcessHandle::HowItEnded
  std::string said;  // stdout and stderr, trimmed
};
// Runs the program to its end. `input`: its stdin, at most what a pipe buffers (4 KiB). Errors:
// kPermission (it cannot be started), kDeadline (not finished in time, or more than 64 KiB of
// output; it is killed), kUnavailable.
Result<ProgramEnd> RunProgram(Program program, const std::string& input, Duration within);

}  // namespace nos::device
