#include "reconcile/runner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "kube/testing/fake_api.h"

namespace nos::reconcile {
namespace {

class Counting final : public Reconciler {
 public:
  ReconcileResult Reconcile(const std::string&, const Listers& view, kube::Client&,
                            const Clock&) override {
    ++calls;
    nodes = view.nodes.Snapshot()->size();
    return ReconcileResult::Done();
  }
  int calls = 0;
  size_t nodes = 0;
};

Json Node(const std::string& name) { return {{"kind", "Node"}, {"metadata", {{"name", name}}}}; }

void Settle(Runner& runner, const Clock& clock) {
  while (runner.Step(clock)) {
  }
}

TEST(RunnerTest, StandByKeepsCachesWarmAndTakesOverAtOnce) {
  kube::FakeApi api;
  ManualClock clock(Time(std::chrono::seconds(1'000'000)));
  Runner runner(api);
  api.Put(Node("a"));
  Settle(runner, clock);
  EXPECT_TRUE(runner.synced());
  api.Put(Node("b"));
  Settle(runner, clock);
  EXPECT_EQ(runner.view().nodes.Snapshot()->size(), 2u);
  Counting reconciler;
  runner.Use(&reconciler);
  Settle(runner, clock);
  EXPECT_EQ(reconciler.calls, 1) << "although nothing has changed";
  EXPECT_EQ(reconciler.nodes, 2u);
  runner.Use(nullptr);
  api.Put(Node("c"));
  Settle(runner, clock);
  EXPECT_EQ(reconciler.calls, 1);
}

// A stand-by may wait for weeks.
TEST(RunnerTest, StandByKeepsNoOldObjects) {
  kube::FakeApi api;
  ManualClock clock(Time(std::chrono::seconds(1'000'000)));
  RunnerOptions options;
  options.watch_context = true;
  Runner runner(api, options);
  const Json budget = {{"kind", "PodDisruptionBudget"},
                       {"metadata", {{"namespace", "a"}, {"name", "b"}}}};
  api.Put(budget);
  Settle(runner, clock);
  const auto known = [&] { return runner.view().context->Collect().budgets.Share("a/b"); };
  const std::weak_ptr<const cluster::PodDisruptionBudget> first = known();
  ASSERT_FALSE(first.expired());
  api.Put(budget);
  Settle(runner, clock);
  EXPECT_NE(known(), nullptr);
  EXPECT_TRUE(first.expired());
}

TEST(RunnerTest, RetriesAtTheTimeThatAFailureNames) {
  class Failing final : public Reconciler {
   public:
    ReconcileResult Reconcile(const std::string&, const Listers&, kube::Client&,
                              const Clock&) override {
      ++calls;
      return {{Code::kUnavailable, "not yet"}, std::chrono::seconds(1)};
    }
    int calls = 0;
  };
  kube::FakeApi api;
  ManualClock clock(Time(std::chrono::seconds(1'000'000)));
  Failing reconciler;
  Runner runner(reconciler, api);
  for (int i = 0; i < 20; ++i) {  // each change causes another failure
    api.Put(Node(std::to_string(i)));
    Settle(runner, clock);
  }
  const int calls = reconciler.calls;
  clock.Advance(std::chrono::seconds(1));
  Settle(runner, clock);
  EXPECT_EQ(reconciler.calls, calls + 1);
}

TEST(RunnerTest, RunUntilWaitsForTheBell) {
  kube::FakeApi api;
  api.Put(Node("a"));
  Counting reconciler;
  Runner runner(reconciler, api);
  WakeSignal bell;
  std::atomic<bool> stop{false};
  std::atomic<int> turns{0};
  std::thread loop([&] {
    RunUntil([&] { return stop.load(); }, runner, bell, SystemClock(), [&] { ++turns; });
  });
  stop = true;
  bell.Ring();
  loop.join();
  EXPECT_LE(turns, 10) << "it does not spin";
}

}  // namespace
}  // namespace nos::reconcile
