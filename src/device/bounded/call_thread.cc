#include "device/bounded/call_thread.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace nos::device {
namespace {

using Steady = std::chrono::steady_clock;

}  // namespace

class CallThread::Call {
 public:
  enum class State { kWaits, kRuns, kReturned, kRefused };

  std::string name;
  Duration limit{};
  std::function<void()> function;
  // Guarded by Shared::mutex.
  State state = State::kWaits;
  Time began{};
  Steady::time_point deadline{};
};

struct CallThread::Shared {
  std::mutex mutex;
  std::condition_variable moved;  // a call has begun, has returned, or is refused
  // Guarded by the mutex.
  std::deque<std::shared_ptr<Call>> waiting;
  std::shared_ptr<Call> running;
  bool overdue = false;  // the running call
  bool stop = false;
  std::optional<Duration> most;
  std::thread thread;

  std::mutex changed_mutex;  // held while `changed` runs
  std::function<void()> changed;

  void Changed() {
    const std::lock_guard lock(changed_mutex);
    if (changed) changed();
  }
};

CallThread::CallThread(std::function<void()> changed) : shared_(std::make_shared<Shared>()) {
  shared_->changed = std::move(changed);
  shared_->thread = std::thread([shared = shared_] { Run(shared); });
}

CallThread::~CallThread() {
  {
    const std::lock_guard lock(shared_->changed_mutex);
    shared_->changed = nullptr;
  }
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  for (const auto& call : shared_->waiting) call->state = Call::State::kRefused;
  shared_->waiting.clear();
  shared_->moved.notify_all();
  while (shared_->running != nullptr && !shared_->overdue) {
    const auto deadline = shared_->running->deadline;
    if (Steady::now() >= deadline) break;
    shared_->moved.wait_until(lock, deadline);
  }
  const bool left_behind = shared_->running != nullptr;
  std::thread thread = std::move(shared_->thread);
  lock.unlock();
  left_behind ? thread.detach() : thread.join();
}

std::shared_ptr<CallThread::Call> CallThread::Begin(std::string name, Duration limit,
                                                    std::function<void()> function) {
  auto call = std::make_shared<Call>();
  call->name = std::move(name);
  call->limit = limit;
  call->function = std::move(function);
  const std::lock_guard lock(shared_->mutex);
  if (shared_->overdue) {
    call->state = Call::State::kRefused;
  } else {
    shared_->waiting.push_back(call);
  }
  shared_->moved.notify_all();
  return call;
}

// The running call is overdue: nothing that waits behind it is begun.
void CallThread::GiveUp(Shared& shared) {
  shared.overdue = true;
  for (const auto& call : shared.waiting) call->state = Call::State::kRefused;
  shared.waiting.clear();
  shared.moved.notify_all();
}

bool CallThread::Await(const Call& call) {
  std::unique_lock lock(shared_->mutex);
  for (;;) {
    using State = Call::State;
    if (call.state == State::kReturned) return true;
    if (call.state == State::kRefused) return false;
    if (call.state == State::kRuns && shared_->overdue) return false;
    if (shared_->running == nullptr || shared_->overdue) {
      shared_->moved.wait(lock);
      continue;
    }
    const auto deadline = shared_->running->deadline;
    if (Steady::now() < deadline) {
      shared_->moved.wait_until(lock, deadline);
      continue;
    }
    GiveUp(*shared_);
    lock.unlock();
    shared_->Changed();
    lock.lock();
  }
}

void CallThread::Hurry(Duration most) {
  const std::lock_guard lock(shared_->mutex);
  shared_->most = most;
  if (shared_->running != nullptr) {
    shared_->running->deadline = std::min(shared_->running->deadline, Steady::now() + most);
  }
  shared_->moved.notify_all();
}

std::optional<CallThread::Overdue> CallThread::overdue() const {
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->overdue) return std::nullopt;
  const Call& call = *shared_->running;
  return Overdue{call.name, call.limit, call.began};
}

void CallThread::Run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->moved.wait(lock, [&] { return shared->stop || !shared->waiting.empty(); });
    if (shared->stop) return;
    const std::shared_ptr<Call> call = std::move(shared->waiting.front());
    shared->waiting.pop_front();
    call->state = Call::State::kRuns;
    call->began = SystemClock().Now();
    if (shared->most) call->limit = std::min(call->limit, *shared->most);
    call->deadline = Steady::now() + call->limit;
    shared->running = call;
    shared->moved.notify_all();
    lock.unlock();
    call->function();
    call->function = nullptr;  // with what it owns, on this thread
    lock.lock();
    call->state = Call::State::kReturned;
    shared->running = nullptr;
    const bool late = std::exchange(shared->overdue, false);
    shared->moved.notify_all();
    if (!late) continue;
    lock.unlock();
    shared->Changed();
    lock.lock();
  }
}

}  // namespace nos::device
