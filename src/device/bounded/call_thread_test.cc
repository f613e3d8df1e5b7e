#include "device/bounded/call_thread.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

namespace nos::device {
namespace {

using std::chrono::hours;
using Call = std::shared_ptr<CallThread::Call>;

// Holds the calls that pass it while it is closed.
class Gate {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    ++inside_;
    moved_.notify_all();
    moved_.wait(lock, [this] { return open_; });
    --inside_;
  }
  void AwaitSomebody() {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [this] { return inside_ > 0; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    moved_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable moved_;
  bool open_ = false;
  int inside_ = 0;
};

// Counts calls of a function, and waits for them.
class Count {
 public:
  void Add() {
    const std::lock_guard lock(mutex_);
    ++count_;
    moved_.notify_all();
  }
  void Await(int count) {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return count_ >= count; });
  }
  int now() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable moved_;
  int count_ = 0;
};

TEST(CallThread, RunsCallsInOrder) {
  CallThread thread;
  std::string order;
  const Call first = thread.Begin("first", hours(1), [&] { order += "a"; });
  const Call second = thread.Begin("second", hours(1), [&] { order += "b"; });
  EXPECT_TRUE(thread.Await(*second));
  EXPECT_TRUE(thread.Await(*first));
  EXPECT_EQ(order, "ab");
  EXPECT_FALSE(thread.overdue());
}

TEST(CallThread, BeginsNothingUntilAnOverdueCallReturns) {
  auto gate = std::make_shared<Gate>();
  Count changes;
  CallThread thread([&] { changes.Add(); });
  bool ran = false;
  const Call stuck = thread.Begin("read", Duration(), [gate] { gate->Pass(); });
  const Call behind = thread.Begin("list", hours(1), [&] { ran = true; });
  EXPECT_FALSE(thread.Await(*stuck));
  EXPECT_FALSE(thread.Await(*behind)) << "it waited behind the call";
  EXPECT_FALSE(thread.Await(*thread.Begin("list", hours(1), [&] { ran = true; })));
  EXPECT_EQ(changes.now(), 1);
  ASSERT_TRUE(thread.overdue());
  EXPECT_EQ(thread.overdue()->name, "read");
  EXPECT_EQ(thread.overdue()->limit, Duration());
  gate->Open();
  changes.Await(2);
  EXPECT_FALSE(thread.overdue());
  EXPECT_FALSE(ran) << "a refused call is not made later";
  EXPECT_TRUE(thread.Await(*thread.Begin("list", hours(1), [&] { ran = true; })));
  EXPECT_TRUE(ran);
}

TEST(CallThread, EndsWithoutAnOverdueCall) {
  auto gate = std::make_shared<Gate>();
  auto ended = std::make_shared<Count>();
  {
    Count changes;
    CallThread thread([&] { changes.Add(); });
    EXPECT_FALSE(thread.Await(*thread.Begin("read", Duration(), [gate, ended] {
      gate->Pass();
      ended->Add();
    })));
  }
  EXPECT_EQ(ended->now(), 0) << "the destructor has not waited for it";
  gate->Open();
  ended->Await(1);
}

TEST(CallThread, HurriesARunningCall) {
  auto gate = std::make_shared<Gate>();
  CallThread thread;
  const Call stuck = thread.Begin("read", hours(1), [gate] { gate->Pass(); });
  gate->AwaitSomebody();
  thread.Hurry(Duration());
  EXPECT_FALSE(thread.Await(*stuck));
  gate->Open();
}

TEST(CallThread, HurriesLaterCalls) {
  auto gate = std::make_shared<Gate>();
  CallThread thread;
  thread.Hurry(Duration());
  EXPECT_FALSE(thread.Await(*thread.Begin("read", hours(1), [gate] { gate->Pass(); })));
  gate->Open();
}

}  // namespace
}  // namespace nos::device
