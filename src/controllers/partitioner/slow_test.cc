// An API server that takes long over some writes, for example because a webhook does not answer.
// Pods that can be helped must not wait for the publishing of Events and conditions, or for repairs
// of other nodes.
#include <algorithm>

#include "controllers/partitioner/fixture_test.h"

namespace nos::controllers {
namespace {

// Handles up to 50 requests at once, like HttpTransport.
class SlowTransport final : public kube::Transport {
 public:
  using Slowness = std::function<Duration(const kube::ApiRequest&)>;

  SlowTransport(kube::FakeApi& api, ManualClock& clock) : api_(api), clock_(clock) {}
  Result<kube::ApiResponse> Do(const kube::ApiRequest& request) override {
    return std::move(DoAll({request}).front());
  }
  std::vector<Result<kube::ApiResponse>> DoAll(
      const std::vector<kube::ApiRequest>& requests) override {
    std::vector<Result<kube::ApiResponse>> answers;
    Duration longest{};
    for (const kube::ApiRequest& request : requests) {
      const Duration waits = request.patience > Duration::zero() ? request.patience : seconds(30);
      const Duration takes = slow ? slow(request) : Duration::zero();
      longest = std::max(longest, std::min(waits, takes));
      answers.push_back(takes > waits
                            ? Result<kube::ApiResponse>(Status(Code::kDeadline, "no answer"))
                            : api_.Do(request));
    }
    clock_.Advance(longest * static_cast<int>((requests.size() + 49) / 50));
    return answers;
  }
  Result<std::unique_ptr<kube::WatchStream>> Watch(const kube::ApiRequest& request) override {
    return api_.Watch(request);
  }

  Slowness slow;  // how long a request takes

 private:
  kube::FakeApi& api_;
  ManualClock& clock_;
};

class PartitionerSlowTest : public PartitionerTest {
 protected:
  PartitionerSlowTest() {
    runner_ = std::make_unique<reconcile::Runner>(*partitioner_, slow_, reconcile::RunnerOptions());
  }
  ~PartitionerSlowTest() override { runner_.reset(); }

  static bool IsWrite(const kube::ApiRequest& request, std::string_view of) {
    return request.method != "GET" && request.path.find(of) != std::string::npos;
  }
  // Steps in simulated real time: a call may take long. Returns the duration of the step.
  Duration Step() {
    const Time begin = clock_.Now();
    if (!runner_->Step(clock_)) clock_.Advance(milliseconds(100));
    const Duration took = clock_.Now() - begin;
    longest_ = std::max(longest_, took);
    return took;
  }
  // Creates a pod that only a new node can serve, and returns the seconds until its plan.
  double SecondsToServe(const std::string& name) {
    Node(name, {{0, ""}});
    Pod("for-" + name, "7g.40gb");
    Change("pods", "ml/for-" + name, [](Json& pod) { MakeObject(pod, "spec")["priority"] = 100; });
    const Time came = clock_.Now();
    while (PlanOf(name).empty() && clock_.Now() - came < minutes(30)) Step();
    return ToSeconds(clock_.Now() - came);
  }

  SlowTransport slow_{api_, clock_};
  Duration longest_{};  // the longest of all steps
};

TEST_F(PartitionerSlowTest, EventsOfManySilentNodesDoNotDelayPods) {
  constexpr int kSilent = 60;
  for (int i = 0; i < kSilent; ++i) {
    Node("n" + std::to_string(i), {{0, ""}});
    Pod("p" + std::to_string(i), "7g.40gb");
  }
  Run(seconds(10));
  ASSERT_NE(PlanOf("n59"), "");
  slow_.slow = [](const kube::ApiRequest& request) {
    return IsWrite(request, "/events") ? Duration(seconds(10)) : Duration::zero();
  };
  clock_.Advance(seconds(58));
  EXPECT_LT(SecondsToServe("z"), 10);
  const Time begin = clock_.Now();
  while (clock_.Now() - begin < minutes(20)) Step();
  EXPECT_GE(CountEvents("PlanNotAcknowledged"), kSilent) << "all are published in the end";
  EXPECT_LT(ToSeconds(longest_), 31);
}

TEST_F(PartitionerSlowTest, FailingConditionWritesDelayFewPods) {
  Node("a", {{0, "7g.40gb@0:used"}});
  for (int i = 0; i < 500; ++i) Pod("hopeless" + std::to_string(i), "7g.40gb");
  slow_.slow = [](const kube::ApiRequest& request) {
    return IsWrite(request, "/status") ? Duration(minutes(10)) : Duration::zero();
  };
  const Time begin = clock_.Now();
  while (clock_.Now() - begin < minutes(10)) Step();
  std::vector<double> waits;
  for (int i = 0; i < 20; ++i) {
    waits.push_back(SecondsToServe("z" + std::to_string(i)));
    for (int k = 0; k < 70; ++k) Step();
  }
  std::ranges::sort(waits);
  EXPECT_LT(waits[10], 3) << "half of them";
  EXPECT_LT(waits.back(), 20);
  slow_.slow = nullptr;
  const Time healed = clock_.Now();
  while (clock_.Now() - healed < minutes(10)) Step();
  EXPECT_EQ(Condition("hopeless499", "status"), "False") << "all are written in the end";
  EXPECT_GE(CountEvents("SliceNotPlanned"), 500);
}

TEST_F(PartitionerSlowTest, FailingRepairsDoNotDelayPods) {
  for (int i = 0; i < 200; ++i) {
    Node("n" + std::to_string(i), {{0, "7g.40gb@0:used"}});
    Annotate("n" + std::to_string(i), "spec-layout-99", "7g.40gb@0");
  }
  slow_.slow = [](const kube::ApiRequest& request) {
    return IsWrite(request, "/nodes/n") ? Duration(minutes(10)) : Duration::zero();
  };
  EXPECT_LT(SecondsToServe("z"), 10);
  slow_.slow = nullptr;
  const Time healed = clock_.Now();
  while (clock_.Now() - healed < minutes(15)) Step();
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(Annotation("n" + std::to_string(i), "spec-layout-99"), "") << i;
  }
}

// Another client changes the node again and again for a minute.
TEST_F(PartitionerSlowTest, PlansSoonAfterConflictsEnd) {
  Node("a", {{0, ""}});
  Pod("p", "7g.40gb");
  const Time begin = clock_.Now();
  int conflicts = 0;
  api_.intercept = [&](const kube::ApiRequest& request) {
    const bool busy = clock_.Now() - begin < seconds(70);
    if (busy && IsWrite(request, "/nodes/a")) Annotate("a", "other", std::to_string(++conflicts));
    return std::optional<Result<kube::ApiResponse>>();
  };
  while (PlanOf("a").empty() && clock_.Now() - begin < minutes(30)) Step();
  EXPECT_GT(conflicts, 5);
  EXPECT_LT(ToSeconds(clock_.Now() - begin), 85);
}

TEST(PaceTest, PatienceGrowsAndPausesFollow) {
  reconcile::Pace pace;
  Time now{};
  const Duration first = pace.patience();
  pace.Took(milliseconds(900), now);
  EXPECT_EQ(pace.next(), now) << "this is quick";
  EXPECT_EQ(pace.patience(), first);
  now += first;
  pace.Took(first, now);  // the whole patience is used up
  EXPECT_EQ(pace.next(), now + 10 * first);
  EXPECT_EQ(pace.patience(), 2 * first);
  pace.Took(minutes(1), now);
  EXPECT_TRUE(pace.most_patient());
  EXPECT_LT(pace.patience(), seconds(20));
}

}  // namespace
}  // namespace nos::controllers
