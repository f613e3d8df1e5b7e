#include "agent/claims/gpu_queues.h"

#include <utility>
#include <vector>

namespace nos::agent {
namespace {

// Claims of the pods of one node: as many wait at most as a GPU has instances, and some more.
constexpr size_t kMaxWaiting = 64;

}  // namespace

bool GpuQueues::Run(int gpu, std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return false;
  Queue& queue = queues_[gpu];
  if (queue.thread == nullptr) {
    queue.backend = make_();
    queue.thread = std::make_unique<TaskThread>(kMaxWaiting);
  }
  return queue.thread->Post(std::move(task));
}

device::Backend& GpuQueues::BackendOf(int gpu) {
  const std::lock_guard lock(mutex_);
  return *queues_.at(gpu).backend;
}

void GpuQueues::Stop() {
  std::vector<std::unique_ptr<TaskThread>> threads;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (auto& [gpu, queue] : queues_) threads.push_back(std::move(queue.thread));
  }
  threads.clear();  // without the lock: a running function may ask for its backend
}

}  // namespace nos::agent
