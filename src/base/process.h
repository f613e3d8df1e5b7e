// Runs programs as child processes: to their end within a time limit, or detached.
//
//   Program program{{"nvidia-smi", "--gpu-reset"}, OwnEnvironment()};
//   NOS_ASSIGN(const ProgramEnd end, RunProgram(program, {.within = std::chrono::seconds(30)}));
//   if (end.how != "exit status 0") log::Warning(end.output);
//
// A child inherits no descriptor beside its three streams, blocks no signal and handles each in the
// default way, although this process may do otherwise.
//
// Functions may be called by any thread. A ProcessHandle has one owner.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

namespace nos {

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
  // "exit status 1", "signal 9"; "it is no child of this process" if that cannot be known. Reaps
  // the process. REQUIRES: Ended().
  std::string HowItEnded() const;

 private:
  pid_t pid_ = 0;
  UniqueFd fd_;
};

struct Program {
  std::vector<std::string> arguments;    // the first: a path, or a name searched in $PATH
  std::vector<std::string> environment;  // "NAME=value", the complete environment
  std::string origin = {};               // added to the error if the program cannot be started
};

// The environment of this process.
std::vector<std::string> OwnEnvironment();

// Starts it in its own session without streams, so that it outlives this process. Error:
// kPermission: it cannot be started.
Result<ProcessHandle> StartProgram(Program program);

enum class Stderr { kCapture, kInherit };

struct RunOptions {
  Duration within;
  std::string input = {};  // stdin, at most what a pipe buffers (4 KiB); empty: /dev/null
  size_t max_output = size_t{1} << 16;     // bytes
  Stderr error_output = Stderr::kCapture;  // kInherit: it also stays in the session of this process
};
struct ProgramEnd {
  std::string how;     // ProcessHandle::HowItEnded
  std::string output;  // stdout, and stderr if captured; trimmed
};
// Runs the program to its end; it is killed if an error is returned. Errors: kPermission (it cannot
// be started), kDeadline (not finished in time), kExhausted (too much output), kUnavailable.
Result<ProgramEnd> RunProgram(Program program, const RunOptions& options);

}  // namespace nos
