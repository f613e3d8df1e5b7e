#include "kube/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

#include "kube/testing/fake_api.h"

namespace nos::kube {
namespace {

TEST(WorkersTest, RunsCallsConcurrentlyAndLosesNone) {
  FakeApi api;
  Inbox<int> inbox;
  std::latch all(3), done(100);
  Workers workers(api, 3);
  for (int i = 0; i < 3; ++i) {
    workers.Post([&all, &done, &inbox](Client&) {
      all.arrive_and_wait();  // passes only if all run concurrently
      inbox.Put(-1);
      done.count_down();
    });
  }
  for (int i = 0; i < 97; ++i) {
    workers.Post([&, i](Client&) {
      inbox.Put(i);
      done.count_down();
    });
  }
  done.wait();
  EXPECT_EQ(inbox.TakeAll().size(), 100U);
  EXPECT_TRUE(inbox.TakeAll().empty());
}

TEST(WorkersTest, DestructorWaitsForRunningCallsAndDropsQueuedOnes) {
  FakeApi api;
  std::atomic<int> ended = 0;
  std::latch begun(1), go(1);
  auto workers = std::make_unique<Workers>(api, 1);
  workers->Post([&](Client&) {
    begun.count_down();
    go.wait();
    ++ended;
  });
  begun.wait();
  for (int i = 0; i < 10; ++i) workers->Post([&](Client&) { ++ended; });
  EXPECT_EQ(workers->pending(), 11U);
  std::thread opener([&] { go.count_down(); });
  workers.reset();
  opener.join();
  EXPECT_GE(ended.load(), 1);
}

}  // namespace
}  // namespace nos::kube
