// A thread and a backend for each GPU: operations on one GPU are done in order, and GPUs do not
// wait for each other. Calls of the backends must have a limit (device/bounded_gpus.h), because
// Stop waits for them. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "base/task_thread.h"
#include "device/backend.h"

namespace nos::agent {

class GpuQueues {
 public:
  using MakeBackend = std::function<std::unique_ptr<device::Backend>()>;
  explicit GpuQueues(MakeBackend make) : make_(std::move(make)) {}
  ~GpuQueues() { Stop(); }

  // False: too much waits for this GPU, or the queues have stopped.
  bool Run(int gpu, std::function<void()> task);
  // For functions of this GPU's queue.
  device::Backend& BackendOf(int gpu);
  // Waits for the functions that run and drops those that wait.
  void Stop();

 private:
  struct Queue {
    std::unique_ptr<device::Backend> backend;
    std::unique_ptr<TaskThread> thread;  // last: uses the backend
  };

  const MakeBackend make_;
  std::mutex mutex_;
  bool stopped_ = false;
  std::map<int, Queue> queues_;
};

}  // namespace nos::agent
