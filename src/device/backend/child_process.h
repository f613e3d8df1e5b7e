// Programs of the driver that this process runs: with a time limit, or for longer than it lives.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

namespace nos::device {

// A process, held by a descriptor: its id cannot come to mean another one.
class ProcessHandle {
 public:
  ProcessHandle() = default;
  // Of a process that is gone already: not valid.
  explicit ProcessHandle(pid_t pid);
  bool valid() const { return fd_.valid(); }
  pid_t pid() const { return pid_; }
  int fd() const { return fd_.get(); }  // readable when it has ended
  bool Ended() const;
  void Kill() const;
  // "exit status 1", "signal 9"; "it is no child of the agent" when that cannot be known. Takes it
  // off the kernel's hands. REQUIRES: Ended().
  std::string HowItEnded() const;

 private:
  pid_t pid_ = 0;
  UniqueFd fd_;
};

struct Program {
  std::vector<std::string> arguments;    // the first: a path, or a name to be found in $PATH
  std::vector<std::string> environment;  // "NAME=value", all of it
};

// This process's own.
std::vector<std::string> OwnEnvironment();

// In a session of its own, so that it outlives this process, without any streams. Error:
// kPermission: it cannot be started.
Result<ProcessHandle> StartProgram(Program program);

struct ProgramEnd {
  std::string how;   // ProcessHandle::HowItEnded
  std::string said;  // both of its outputs, trimmed
};
// Runs it to its end. `input`: what it reads, less than a pipe takes (4 KiB). Errors: kPermission
// (it cannot be started), kDeadline (it has not ended in time, or says more than 64 KiB; it is
// killed), kUnavailable.
Result<ProgramEnd> RunProgram(Program program, const std::string& input, Duration within);

}  // namespace nos::device
