// A thread for calls that may never return. Callers wait for a limited time.
//
//   CallThread thread([] { ... });  // notes thread.overdue()
//   auto answer = std::make_shared<std::optional<int>>();
//   auto call = thread.Begin("read", std::chrono::seconds(30), [answer] { *answer = Read(); });
//   if (thread.Await(*call)) Use(**answer);
//
// Calls run one after the other. The limit of a call counts from its start. When it has passed, the
// call is overdue: Await gives up, and until the call returns, no other is begun. A function that
// is overdue goes on, so it must own what it uses.
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"

namespace nos::device {

class CallThread {
 public:
  class Call;
  struct Overdue {
    std::string name;
    Duration limit{};
    Time since{};  // start of the call
    friend bool operator==(const Overdue&, const Overdue&) = default;
  };

  // `changed`: called when a call has become overdue (on the thread that waited for it), and when
  // an overdue call has returned (on the thread of the calls). Without a lock held; it must not
  // destroy the object.
  explicit CallThread(std::function<void()> changed = {});
  // Waits for the running call until its limit, and drops those that wait. A thread whose call is
  // overdue is left behind; it ends when the call returns.
  ~CallThread();
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  // Never blocks. While a call is overdue, the new one is refused: its Await returns false at once.
  std::shared_ptr<Call> Begin(std::string name, Duration limit, std::function<void()> function);
  // True once the call has returned; false if it or one before it is overdue.
  bool Await(const Call& call);
  // From now on, no call is waited for longer than this.
  void Hurry(Duration most);
  // The call that has not returned in time, if any.
  std::optional<Overdue> overdue() const;

 private:
  struct Shared;
  static void Run(const std::shared_ptr<Shared>& shared);
  static void GiveUp(Shared& shared);

  const std::shared_ptr<Shared> shared_;  // with the thread, which may outlive this
};

}  // namespace nos::device
