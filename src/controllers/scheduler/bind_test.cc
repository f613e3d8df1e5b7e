// The binding cycle: from the choice of a node until the watch shows the bound pod.
#include <algorithm>
#include <semaphore>
#include <string>

#include "controllers/scheduler/fixture_test.h"

namespace nos::controllers {
namespace {

class SchedulerBindTest : public SchedulerFixture {
 protected:
  void Node(const std::string& name, const std::string& cpu) {
    api_.Put({{"kind", "Node"},
              {"metadata", {{"name", name}}},
              {"status", {{"allocatable", {{"cpu", cpu}, {"pods", "1000"}}}}}});
  }
  void Pod(const std::string& name, const std::string& cpu = "1", int priority = 0) {
    PutPod(name, "cpu", cpu, priority);
  }
  static bool Binds(const kube::ApiRequest& request) {
    return request.path.find("/binding") != std::string::npos;
  }
  int64_t Bindings() { return std::ranges::count_if(api_.writes, Binds); }
  // Answers Bind calls with `status`. `done`: they take effect all the same.
  void AnswerBindings(const Status& status, bool done) {
    api_.intercept =
        [this, status,
         done](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
      if (!Binds(request)) return std::nullopt;
      if (done) {
        auto answers = std::exchange(api_.intercept, nullptr);
        (void)api_.Do(request);
        api_.intercept = std::move(answers);
      }
      return Result<kube::ApiResponse>(status);
    };
  }
  // Steps like the runner, until `time` has passed.
  void RunFor(Duration time) {
    const Time end = clock_.Now() + time;
    for (int i = 0; i < 10'000; ++i) {
      if (runner_->Step(clock_)) continue;
      const auto due = runner_->NextDue();
      if (!due || *due > end) return clock_.AdvanceTo(end);
      clock_.AdvanceTo(*due);
    }
    ADD_FAILURE() << "does not come to rest";
  }
};

// Answers each Bind call when Answer() is called.
class HeldBindings final : public kube::Transport {
 public:
  ~HeldBindings() override { Answer(); }
  Result<kube::ApiResponse> Do(const kube::ApiRequest&) override {
    may_go_.acquire();
    return kube::ApiResponse{201, JsonObject{}, {}, {}};
  }
  Result<std::unique_ptr<kube::WatchStream>> Watch(const kube::ApiRequest&) override {
    return Status(Code::kUnavailable, "it only binds");
  }
  void Answer() { may_go_.release(); }

 private:
  std::counting_semaphore<> may_go_{0};
};

TEST_F(SchedulerBindTest, IgnoresLateBindAnswerForSuccessorPod) {
  HeldBindings held;
  std::counting_semaphore<> answers{0};
  kube::Workers binder(held, 1);
  UseProfiles({{"default-scheduler", framework_.get()}},
              SchedulerThreads{&binder, nullptr, [&] { answers.release(); }});
  Node("n", "1");
  Pod("p");
  RunFor(seconds(1));
  api_.Remove("pods", "ml/p");
  RunFor(seconds(1));
  ASSERT_EQ(scheduler_->bindings(), 0U);
  Pod("p");
  ChangePod("p", [](Json& pod) { MakeObject(pod, "metadata")["uid"] = "successor"; });
  RunFor(seconds(1));
  ASSERT_EQ(scheduler_->bindings(), 1U);
  for (const bool own : {false, true}) {
    held.Answer();
    answers.acquire();
    runner_->Poke(clock_.Now());
    RunFor(seconds(1));
    EXPECT_EQ(CountEvents("Scheduled"), own ? 1 : 0);
  }
}

TEST_F(SchedulerBindTest, CountsBoundPodUntilWatchShowsIt) {
  Node("n", "1");
  Pod("first", "1", 9);
  Pod("second");
  watches_.pods_silent = false;
  while (Bindings() == 0) ASSERT_TRUE(runner_->Step(clock_));
  watches_.pods_silent = true;
  RunFor(std::chrono::minutes(10));
  EXPECT_EQ(Bindings(), 1);
  EXPECT_NE(api_.Find("pods", "ml/second"), nullptr) << "nobody is evicted for it";
  watches_.pods_silent = false;
  Run();
  EXPECT_EQ(NodeOf("first"), "n");
  EXPECT_EQ(NodeOf("second"), "");
}

// The pod was nominated to the lost node, but may already be bound there.
TEST_F(SchedulerBindTest, DoesNotRebindPodAfterNodeIsLost) {
  Node("n", "1");
  Pod("p");
  ChangePod("p", [](Json& pod) { MakeObject(pod, "status")["nominatedNodeName"] = "n"; });
  AnswerBindings(Status(Code::kDeadline, "no answer"), true);
  while (Bindings() == 0) ASSERT_TRUE(runner_->Step(clock_));
  watches_.pods_silent = true;
  const int64_t sent = Bindings();
  Node("other", "1");
  Json lost = *api_.Find("nodes", "n");
  MakeObject(lost, "spec")["taints"] =
      JsonArray{{{"key", "node.kubernetes.io/unreachable"}, {"effect", "NoExecute"}}};
  api_.Put(lost);
  RunFor(std::chrono::minutes(1));
  EXPECT_EQ(Bindings(), sent);
  EXPECT_EQ(scheduler_->bindings(), 1U);
  watches_.pods_silent = false;
  Run();
  EXPECT_EQ(NodeOf("p"), "n");
  EXPECT_EQ(scheduler_->bindings(), 0U);
}

TEST_F(SchedulerBindTest, IsNotQuietUntilWatchShowsBinding) {
  Node("n", "1");
  Pod("p");
  while (Bindings() == 0) ASSERT_TRUE(runner_->Step(clock_));
  watches_.pods_silent = true;
  scheduler_->Retire();
  RunFor(seconds(100));
  EXPECT_FALSE(scheduler_->IsQuiet()) << "it would give the node away once more";
  watches_.pods_silent = false;
  Run();
  EXPECT_TRUE(scheduler_->IsQuiet());
}

TEST_F(SchedulerBindTest, ReadsPodBackAfterUnansweredBinding) {
  Node("n", "1");
  // The test therefore sees two Bind calls.
  AnswerBindings(Status(Code::kDeadline, "no answer"), true);
  watches_.pods_silent = true;
  Pod("first");
  Restart();  // lists pods again, since the watch is silent
  RunFor(seconds(3));
  api_.intercept = nullptr;
  EXPECT_EQ(Bindings(), 2);
  EXPECT_EQ(NodeOf("first"), "n");
  watches_.pods_silent = false;
  Pod("second");
  Run();
  EXPECT_EQ(NodeOf("second"), "") << "the first holds the node";
  EXPECT_EQ(Bindings(), 2);
}

TEST_F(SchedulerBindTest, RecoversSoonAfterShortApiServerOutage) {
  Node("n", "1000");
  for (int i = 0; i < 300; ++i) Pod("p" + std::to_string(i));
  AnswerBindings(Status(Code::kUnavailable, "HTTP 503"), false);
  RunFor(std::chrono::milliseconds(100));
  api_.intercept = nullptr;
  Pod("urgent", "1", 1'000'000);
  RunFor(seconds(5));
  EXPECT_EQ(NodeOf("urgent"), "n");
  for (int i = 0; i < 300; ++i) EXPECT_EQ(NodeOf("p" + std::to_string(i)), "n");
}

// Another pod of the same name may exist when the request arrives.
TEST_F(SchedulerBindTest, SendsPodUidWithBinding) {
  Node("n", "1");
  Pod("p");
  RunFor(seconds(1));
  const auto bind = std::ranges::find_if(api_.writes, Binds);
  ASSERT_NE(bind, api_.writes.end());
  EXPECT_EQ(FindString(bind->body, "metadata", "uid"), "p-uid");
}

TEST_F(SchedulerBindTest, RetriesReadOfUnconfirmedPod) {
  Node("n", "1");
  Pod("p");
  Pod("second");
  watches_.pods_silent = true;
  Restart();
  int asked = 0;
  api_.intercept =
      [&asked](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
    if (Binds(request)) return Result<kube::ApiResponse>(Status(Code::kDeadline, "no answer"));
    if (request.Query("fieldSelector").empty()) return std::nullopt;
    ++asked;
    return Result<kube::ApiResponse>(Status(Code::kPermission, "HTTP 403"));
  };
  RunFor(seconds(10));
  EXPECT_GT(asked, 1);
  EXPECT_EQ(Bindings(), 1) << "meanwhile it holds its place";
  api_.intercept = nullptr;
  RunFor(std::chrono::minutes(2));
  EXPECT_EQ(NodeOf("p") + NodeOf("second"), "n");
}

TEST_F(SchedulerBindTest, AcceptsBindingByAnotherScheduler) {
  Node("a", "1");
  Node("b", "1");
  AnswerBindings(Status(Code::kConflict, "it is bound"), false);
  Pod("p");
  watches_.pods_silent = true;
  Restart();
  while (Bindings() == 0) ASSERT_TRUE(runner_->Step(clock_));
  Json bound = *api_.Find("pods", "ml/p");
  MakeObject(bound, "spec")["nodeName"] = "b";
  api_.Put(bound);
  RunFor(seconds(5));
  EXPECT_EQ(Bindings(), 1);
  api_.intercept = nullptr;
  watches_.pods_silent = false;
  Run();
  EXPECT_EQ(NodeOf("p"), "b");
}

// Changes on a node while its GPU is being partitioned.
class WhileGpusArePartitionedTest : public SchedulerBindTest {
 protected:
  WhileGpusArePartitionedTest() {
    GpuNode("n", 1);
    PutPod("p", "nvidia.com/mig-3g.20gb", "1", 0);
    SetLimit("p", "cpu", "1");
    Run();
  }
  void Partition() {
    Report("n", "3g.20gb@4:free");
    Run();
  }
};

TEST_F(WhileGpusArePartitionedTest, BindsPodWhenInstanceExists) {
  Partition();
  EXPECT_EQ(NodeOf("p"), "n");
}

TEST_F(WhileGpusArePartitionedTest, IsQuietWithoutBindingInFlight) {
  scheduler_->Retire();
  EXPECT_TRUE(scheduler_->IsQuiet());
}

TEST_F(WhileGpusArePartitionedTest, DoesNotBindToCordonedNode) {
  Cordon("n");
  Run();
  Partition();
  EXPECT_EQ(NodeOf("p"), "");
}

TEST_F(WhileGpusArePartitionedTest, DoesNotBindAfterOtherPodsFillNode) {
  PutPod("other", "cpu", "96", 0);
  BindElsewhere("other", "n");
  Run();
  Partition();
  EXPECT_EQ(NodeOf("p"), "") << "there is no cpu left for it";
}

TEST_F(WhileGpusArePartitionedTest, PlacesPodAgainWhenNodeIsDeleted) {
  api_.Remove("nodes", "n");
  Run();
  EXPECT_EQ(NodeOf("p"), "");
  EXPECT_EQ(Bindings(), 0);
  GpuNode("m", 1);
  Run();
  EXPECT_EQ(Spec("m"), "3g.20gb@4") << "it is placed anew";
}

TEST_F(SchedulerBindTest, PodsInPreBindDoNotBlockOthers) {
  config_.max_preparing = 1;
  Restart();
  GpuNode("n", 4);
  for (const char* name : {"a", "b", "c"}) PutPod(name, "nvidia.com/mig-7g.40gb", "1", 5);
  Pod("plain");
  Run();
  EXPECT_EQ(NodeOf("plain"), "n");
}

}  // namespace
}  // namespace nos::controllers
