#include "kube/leadership.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "kube/testing/fake_api.h"

namespace nos::kube {
namespace {

// Makes FakeApi, which is for one thread, usable from several.
class SharedApi final : public Transport {
 public:
  Result<ApiResponse> Do(const ApiRequest& request) override {
    const std::scoped_lock lock(mutex_);
    if (down_) return Status(Code::kUnavailable, "down");
    return api_.Do(request);
  }
  Result<std::unique_ptr<WatchStream>> Watch(const ApiRequest& request) override {
    return api_.Watch(request);
  }
  void SetDown(bool down) {
    const std::scoped_lock lock(mutex_);
    down_ = down;
  }

 private:
  std::mutex mutex_;
  bool down_ = false;
  FakeApi api_;
};

LeaderElectionOptions Fast(const std::string& identity) {
  LeaderElectionOptions options{.ns = "nos", .name = "partitioner", .identity = identity};
  options.lease = std::chrono::seconds(1);
  options.renew = std::chrono::milliseconds(600);
  options.retry = std::chrono::milliseconds(50);
  return options;
}

// Waits for the given state of leadership; false on a time-out.
bool Becomes(const Leadership& leadership, WakeSignal& bell, bool leads) {
  while (leadership.Leads() != leads) {
    if (!bell.Wait(std::chrono::seconds(20))) return false;
  }
  return true;
}

TEST(LeadershipTest, ReleasesLeaseOnDestruction) {
  SharedApi api;
  WakeSignal first_bell, second_bell;
  std::optional<Leadership> first;
  first.emplace(api, Fast("a"), [&] { first_bell.Ring(); });
  ASSERT_TRUE(Becomes(*first, first_bell, true));
  Leadership second(api, Fast("b"), [&] { second_bell.Ring(); });
  EXPECT_FALSE(second.Leads());
  first.reset();
  EXPECT_TRUE(Becomes(second, second_bell, true));
  EXPECT_EQ(second.holder(), "b");
}

TEST(LeadershipTest, LosesLeaseWithoutRenewalAndReacquiresIt) {
  SharedApi api;
  WakeSignal bell;
  Leadership leadership(api, Fast("a"), [&] { bell.Ring(); });
  ASSERT_TRUE(Becomes(leadership, bell, true));
  api.SetDown(true);
  EXPECT_TRUE(Becomes(leadership, bell, false));
  EXPECT_EQ(leadership.error().code(), Code::kUnavailable);
  api.SetDown(false);
  EXPECT_TRUE(Becomes(leadership, bell, true));
}

// The machine sleeps: the election thread does not run meanwhile, and another replica takes the
// lease. The first write after it must not go out.
TEST(LeadershipTest, LeadsNoMoreAfterSuspension) {
  SharedApi api;
  WakeSignal bell;
  std::atomic<Time> now{Time(std::chrono::seconds(1'800'000'000))};
  LeaderElectionOptions options = Fast("a");
  options.renew = std::chrono::hours(1);  // in the time of the test's clock, which stands still
  options.lease = std::chrono::hours(2);
  options.retry = std::chrono::minutes(30);
  Leadership leadership(api, options, [&] { bell.Ring(); }, [&] { return now.load(); });
  ASSERT_TRUE(Becomes(leadership, bell, true));
  api.SetDown(true);
  now = now.load() + std::chrono::hours(8);
  EXPECT_FALSE(leadership.Leads());
}

}  // namespace
}  // namespace nos::kube
