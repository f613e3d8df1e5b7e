// Starts MPS control daemons for the node's agent, in a process of its own: a daemon and its
// servers end with the container that started them, and the agent's is replaced by every rollout.
//
//   MpsKeeper keeper({.socket = "/run/nos/mps/keeper.sock"});
//   NOS_RETURN_IF_ERROR(keeper.Start());
//   // in the agent:
//   NOS_ASSIGN(ProcessHandle daemon, StartByKeeper(socket, uuid, false, seconds(10)));
//
// The agent decides which daemons run, watches them and ends them (mps_control.h). Both processes
// are in the host's process namespace. The socket is for root only. One request per connection:
// "start UUID\n" or "start UUID multiuser\n", answered by "pid 123\n" or "error TEXT\n".
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/status.h"

namespace nos::device {

struct MpsKeeperOptions {
  std::string socket = "/run/nos/mps/keeper.sock";
  // These have the meaning that they have in MpsControlOptions.
  std::string program = "nvidia-cuda-mps-control";
  std::string folder = "/run/nos/mps";
  std::string log_folder = "/var/log/nos/mps";
};

class MpsKeeper {
 public:
  explicit MpsKeeper(MpsKeeperOptions options) : options_(std::move(options)) {}
  // Its daemons keep running.
  ~MpsKeeper();
  MpsKeeper(const MpsKeeper&) = delete;

  // Creates the folder of the socket and listens, on a thread. Errors: as ListenUnix; kPermission
  // (the folder).
  Status Start();

 private:
  void Run();
  void Serve(const UniqueFd& client);
  std::string Answer(const std::string& request);
  void ReapEnded();

  const MpsKeeperOptions options_;
  UniqueFd listener_;
  WakeUp stop_;
  std::vector<ProcessHandle> daemons_;  // used by the thread only
  std::thread thread_;                  // last: uses the others
};

// Errors: kUnavailable (no keeper answers in time), kPermission (it cannot start the daemon; with
// its reason).
Result<ProcessHandle> StartByKeeper(const std::string& socket, const std::string& uuid,
                                    bool multi_user, Duration within);

}  // namespace nos::device
