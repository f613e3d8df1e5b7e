// Keeps one MPS control daemon running for one GPU or MIG instance, on its own thread: starts it or
// takes over the one left by a former agent, notices its end at once, checks regularly that it
// answers, and restarts it with growing pauses.
//
// While the daemon does not serve, a condition on the health board keeps the GPU's devices from
// being allocated: a CUDA program that finds no daemon runs without MPS, hence without a limit
// (docs.nvidia.com/deploy/mps, Client Attach/Detach).
//
// A daemon that does not answer is killed. Its server, which clients depend on, is killed only if
// it had no clients at the last check. Otherwise the next daemon starts after the server or its
// clients have ended: two servers cannot use a GPU in EXCLUSIVE_PROCESS mode.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/back_off.h"
#include "device/health.h"
#include "device/mps_tool.h"

namespace nos::device {

struct MpsDaemonOptions {
  Duration answer_within = std::chrono::seconds(5);
  // Interval between two checks of a running daemon.
  Duration look_every = std::chrono::seconds(10);
  // Number of consecutive unanswered commands after which it counts as hung.
  int misses = 2;
  // Time limits for a started daemon to answer, and for one to end after "quit".
  Duration start_within = std::chrono::seconds(10);
  Duration quit_within = std::chrono::seconds(10);
  // Pauses between attempts. The first is used again after `limit` without a fault.
  BackOff pauses{std::chrono::milliseconds(500), std::chrono::seconds(60)};
  // Maximum share of multiprocessors for each new client, per cent; 0: the daemon's default, which
  // is 100. Clients can ask for less, not for more.
  int active_thread_percentage = 0;
  // Called after each change of state, on the daemon's thread or the constructor's. Must not block.
  std::function<void()> on_change{};
};

struct MpsState {
  enum class Phase {
    kStarting,
    kServing,
    kWaiting,  // for the next attempt, or for a former server's clients
    kLeaving,
    kGone,  // nothing of it is left
  };
  int gpu = 0;           // -1: shared by a former agent, index unknown
  std::string gpu_uuid;  // MpsGpu::uuid
  Phase phase = Phase::kStarting;
  pid_t pid = 0;                 // of the daemon; 0: none
  int servers = 0, clients = 0;  // at the last check
  uint64_t starts = 0;           // daemons started or taken over
  std::string trouble;           // the last problem; "" while it serves

  friend bool operator==(const MpsState&, const MpsState&) = default;
};

// The object that one daemon serves: a GPU, or a divided instance of it (device/mig_parts.h).
struct MpsGpu {
  int index = -1;    // GpuInfo::index
  std::string uuid;  // of the GPU or of the instance
  // Memory limit per client, regardless of its environment: GpuInfo::share_gib. 0: no limit.
  int memory_gib = 0;
  int memory_mib = 0;                  // the same for a part of an instance
  std::optional<uint32_t> instance{};  // the driver's id of the instance

  friend bool operator==(const MpsGpu&, const MpsGpu&) = default;
};

// Thread-safe.
class MpsDaemon {
 public:
  // Starts a daemon if it is wanted, else ends the remains of one. `board` must outlive this.
  MpsDaemon(const MpsGpu& gpu, MpsToolOptions tool, MpsDaemonOptions options, GpuHealth& board,
            bool wanted = true);
  // Leaves the daemon running for the next agent: clients depend on it.
  ~MpsDaemon();
  MpsDaemon(const MpsDaemon&) = delete;
  MpsDaemon& operator=(const MpsDaemon&) = delete;

  // Sets whether the daemon is wanted. If not, it is asked to quit, and killed with its servers if
  // it does not; remaining clients lose the GPU. REQUIRES for false: no pod holds a share.
  void Want(bool wanted);
  MpsState State() const;
  // True if index and limits are unchanged.
  bool IsFor(const MpsGpu& gpu) const { return gpu == gpu_; }

 private:
  // A server of the daemon, and its clients as far as this process can see them.
  struct Server {
    ProcessHandle process;
    std::vector<ProcessHandle> clients;
    bool unseen_clients = false;  // in another process namespace, or ended meanwhile
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
  // Waits until a descriptor is readable, the time is up (negative: never), or Want or the
  // destructor is called. Returns whether a descriptor is readable.
  bool Wait(const std::vector<int>& fds, Duration at_most);
  void Enter(MpsState::Phase phase, const std::string& trouble = "");
  void Update(const std::function<void(MpsState&)>& change);

  const MpsGpu gpu_;
  const MpsDaemonOptions options_;
  const MpsTool tool_;
  GpuHealth& board_;
  WakeUp wake_up_;

  mutable std::mutex mutex_;
  bool wanted_, stop_ = false;  // guarded by mutex_
  MpsState state_;              // guarded by mutex_

  // Used by the thread only.
  ProcessHandle daemon_;
  std::vector<Server> servers_;
  int failures_ = 0;    // in a row
  std::thread thread_;  // last: uses the others
};

}  // namespace nos::device
