// Keeps one MPS control daemon running for one GPU or MIG instance, on a thread of its own: starts
// it or takes over the one that a former agent has left, sees at once when it ends, asks it now and
// then whether it answers, and starts it again with growing pauses.
//
// Whenever the daemon does not serve, a condition stands on the health board that keeps the GPU's
// devices from being given to anybody: a CUDA program that finds no daemon goes on without MPS,
// hence without a limit (docs.nvidia.com/deploy/mps, Client Attach/Detach).
//
// A daemon that does not answer is killed. Its server, which clients depend on, is killed only when
// it had no clients at the last look; else the next daemon waits until it has ended, or the clients
// have: two servers cannot have a GPU in EXCLUSIVE_PROCESS mode.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "device/health.h"
#include "device/mps_tool.h"

namespace nos::device {

struct MpsDaemonOptions {
  Duration answer_within = std::chrono::seconds(5);
  // Between two looks at a daemon that runs.
  Duration look_every = std::chrono::seconds(10);
  // After so many commands in a row without an answer it counts as hung.
  int misses = 2;
  // Until a daemon that was started answers, and until one that was told to quit has ended.
  Duration start_within = std::chrono::seconds(10);
  Duration quit_within = std::chrono::seconds(10);
  // Between attempts; doubled from first to longest, and first again after as long without fault.
  Duration first_pause = std::chrono::milliseconds(500);
  Duration longest_pause = std::chrono::seconds(60);
  // What each new client may use at most of the multiprocessors, per cent; 0: the daemon's default,
  // which is 100. Clients can ask for less, not for more.
  int active_thread_percentage = 0;
  // After each change of state, on the daemon's thread or the constructor's. Must not block.
  std::function<void()> on_change{};
};

struct MpsState {
  enum class Phase {
    kStarting,
    kServing,
    kWaiting,  // for the next attempt, or for a former server's clients
    kLeaving,
    kGone,  // nothing is left of it
  };
  int gpu = 0;           // -1: of a former agent, which shared it
  std::string gpu_uuid;  // MpsGpu::uuid
  Phase phase = Phase::kStarting;
  pid_t pid = 0;                 // of the daemon; 0: none
  int servers = 0, clients = 0;  // at the last look
  uint64_t starts = 0;           // daemons started or taken over
  std::string trouble;           // what was wrong last; "" while it serves

  friend bool operator==(const MpsState&, const MpsState&) = default;
};

// What one daemon serves: a GPU, or an instance of it that is divided (device/mig_parts.h).
struct MpsGpu {
  int index = -1;    // GpuInfo::index
  std::string uuid;  // of the GPU or of the instance
  // What no client gets more of, whatever its environment says: GpuInfo::share_gib. 0: no limit.
  int memory_gib = 0;
  int memory_mib = 0;                  // the same, of a part of an instance
  std::optional<uint32_t> instance{};  // the driver's id of the instance

  friend bool operator==(const MpsGpu&, const MpsGpu&) = default;
};

// Thread-safe.
class MpsDaemon {
 public:
  // Starts if it is wanted, else ends what is left of one. `board` must outlive this.
  MpsDaemon(const MpsGpu& gpu, MpsToolOptions tool, MpsDaemonOptions options, HealthBoard& board,
            bool wanted = true);
  // Leaves the daemon running for who comes next: clients depend on it.
  ~MpsDaemon();
  MpsDaemon(const MpsDaemon&) = delete;
  MpsDaemon& operator=(const MpsDaemon&) = delete;

  // Whether there shall be one. Not wanted: it is told to quit, and ended with its servers if it
  // does not; clients that are still there lose the GPU, so nobody may hold a share.
  void Want(bool wanted);
  MpsState State() const;
  // Whether index and limit are still these.
  bool IsFor(const MpsGpu& gpu) const { return gpu == gpu_; }

 private:
  // A server of the daemon, and its clients as far as they can be seen from here.
  struct Server {
    ProcessHandle process;
    std::vector<ProcessHandle> clients;
    bool unseen_clients = false;  // of another process namespace, or ended while looking
    bool idle() const { return clients.empty() && !unseen_clients; }
  };

  void Run();
  bool GoesOn();
  Status Begin();
  Status Configure();
  void Fail(const Status& why);
  void Serve();
  Status Look();
  Result<Server> ReadServer(pid_t pid);
  void EndHung(const std::string& why);
  void AwaitServers();
  void Pause();
  void End();
  bool WaitForEnd(const ProcessHandle& process, Duration at_most);
  // Until one of them is readable, the time is up (negative: never) or Want or the destructor call.
  // Returns whether one of them is.
  bool Wait(const std::vector<int>& fds, Duration at_most);
  void Enter(MpsState::Phase phase, const std::string& trouble = "");
  void Update(const std::function<void(MpsState&)>& change);

  const MpsGpu gpu_;
  const MpsDaemonOptions options_;
  const MpsTool tool_;
  HealthBoard& board_;
  WakeUp wake_up_;

  mutable std::mutex mutex_;
  bool wanted_, stop_ = false;  // guarded by mutex_
  MpsState state_;              // guarded by mutex_

  // The thread's own.
  ProcessHandle daemon_;
  std::vector<Server> servers_;
  Duration pause_;
  std::thread thread_;  // last: uses the others
};

}  // namespace nos::device
