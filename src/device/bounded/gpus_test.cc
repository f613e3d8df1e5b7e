#include "device/bounded_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <set>

#include "base/log.h"

namespace nos::device {
namespace {

using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = BoundedCallOptions::Kind;

constexpr int kDriver = HealthCondition::kNoGpu;

// The behaviour of a driver. Its GPUs share it, and so do calls that outlive a test's objects.
class Script {
 public:
  // From now on calls for this GPU do not return, and the time for them is up at once.
  void Hang(int gpu) {
    Change([&] { hanging_.insert(gpu); });
  }
  void Release(int gpu) {
    Change([&] { hanging_.erase(gpu); });
  }
  // A call as the driver makes it.
  void Enter(int gpu) {
    std::unique_lock lock(mutex_);
    ++calls_[gpu];
    ++inside_;
    moved_.notify_all();
    moved_.wait(lock, [&] { return !hanging_.contains(gpu); });
    --inside_;
  }
  Duration LimitOf(int gpu) {
    const std::lock_guard lock(mutex_);
    return hanging_.contains(gpu) ? Duration() : hours(1);
  }
  int Calls(int gpu) {
    const std::lock_guard lock(mutex_);
    return calls_[gpu];
  }
  void AwaitSomebody() {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return inside_ > 0; });
  }
  void Changed() {
    Change([&] { ++changes_; });
  }
  void AwaitChanges(int changes) {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return changes_ >= changes; });
  }
  void Closed() {
    Change([&] { ++closed_; });
  }
  void AwaitClosed(int closed) {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return closed_ >= closed; });
  }
  void Rested(int gpu, bool rest) {
    Change([&] {
      if (rest) resting_.insert(gpu);
    });
  }
  std::set<int> Resting() {
    const std::lock_guard lock(mutex_);
    return resting_;
  }
  int count = 2;

 private:
  template <typename F>
  void Change(const F& change) {
    const std::lock_guard lock(mutex_);
    change();
    moved_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable moved_;
  std::set<int> hanging_, resting_;
  std::map<int, int> calls_;
  int inside_ = 0, changes_ = 0, closed_ = 0;
};

class OneGpu final : public GpuAccess, private Backend {
 public:
  OneGpu(std::shared_ptr<Script> script, int gpu) : script_(std::move(script)), gpu_(gpu) {}
  ~OneGpu() override { script_->Closed(); }
  Backend& backend() override { return *this; }
  void Rest(bool rest) override { script_->Rested(gpu_, rest); }

 private:
  Result<std::vector<GpuInfo>> ListGpus() override {
    script_->Enter(gpu_);
    GpuInfo info;
    info.index = gpu_;
    info.uuid = "GPU-" + std::to_string(gpu_);
    return std::vector<GpuInfo>{info};
  }
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override {
    script_->Enter(gpu);
    return std::vector<GpuInstance>{};
  }
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override {
    script_->Enter(gpu);
    GpuInstance made;
    made.gpu = gpu;
    made.profile = profile;
    made.start = start;
    return made;
  }
  Status Destroy(int gpu, uint32_t /*instance_id*/) override { return Enter(gpu); }
  Status EnableMig(int gpu) override { return Enter(gpu); }
  Status DisableMig(int gpu) override { return Enter(gpu); }
  Status ResetGpu(int gpu) override { return Enter(gpu); }
  Status SetComputeMode(int gpu, ComputeMode /*mode*/) override { return Enter(gpu); }
  Readings MeasureGpu(int gpu) override {
    script_->Enter(gpu);
    Readings readings;
    readings.metrics["power"] = 1;
    return readings;
  }
  Readings MeasureInstance(const GpuInstance& instance) override {
    return MeasureGpu(instance.gpu);
  }
  Status Enter(int gpu) {
    script_->Enter(gpu);
    return Status::Ok();
  }

  const std::shared_ptr<Script> script_;
  const int gpu_;
};

class ScriptedDriver final : public GpuDriver {
 public:
  explicit ScriptedDriver(std::shared_ptr<Script> script) : script_(std::move(script)) {}
  Result<int> Count() override {
    script_->Enter(kDriver);
    return script_->count;
  }
  std::unique_ptr<GpuAccess> Open(int gpu) override {
    return std::make_unique<OneGpu>(script_, gpu);
  }

 private:
  const std::shared_ptr<Script> script_;
};

class BoundedGpusTest : public ::testing::Test {
 protected:
  BoundedGpusTest() {
    SetLogLevel(LogLevel::kError);
    gpus_ = std::make_unique<BoundedGpus>(
        std::make_shared<ScriptedDriver>(script_), health_,
        BoundedCallOptions{
            .limit = [script = script_](int gpu, Kind) { return script->LimitOf(gpu); },
            .changed = [script = script_] { script->Changed(); },
            .left_behind = [this] { left_behind_ = true; }});
  }
  ~BoundedGpusTest() override {
    for (int gpu = kDriver; gpu < script_->count; ++gpu) script_->Release(gpu);
    gpus_.reset();
  }
  // Problems by GPU.
  std::vector<std::string> Problems() {
    std::vector<std::string> problems;
    const auto listed = gpus_->ListGpus();
    EXPECT_TRUE(listed.ok()) << listed.status().message();
    for (const GpuInfo& info : listed.value_or({})) problems.push_back(info.problem);
    return problems;
  }
  std::vector<std::string> Reasons() const {
    std::vector<std::string> reasons;
    for (const auto& condition : health_.Conditions()) {
      reasons.push_back(condition.Reason() + " " + std::to_string(condition.gpu));
    }
    return reasons;
  }

  const std::shared_ptr<Script> script_ = std::make_shared<Script>();
  GpuHealth health_;
  bool left_behind_ = false;
  std::unique_ptr<BoundedGpus> gpus_;
};

TEST_F(BoundedGpusTest, ListsOthersWhileOneGpuHangs) {
  EXPECT_THAT(Problems(), ElementsAre("", ""));
  script_->Hang(0);
  EXPECT_THAT(Problems(),
              ElementsAre(HasSubstr("GPU 0 does not answer: the call 'read GPU' has not"), ""));
  EXPECT_THAT(Reasons(), ElementsAre("GpuHangs 0"));
  EXPECT_EQ(gpus_->ListGpus()->front().uuid, "GPU-0") << "the last known state";
  EXPECT_FALSE(health_.Usable(0, 1));
  EXPECT_FALSE(gpus_->AllHang());
  EXPECT_TRUE(gpus_->Create(1, "1g.5gb", 0).ok());
  EXPECT_TRUE(gpus_->Destroy(1, 1).ok());
  EXPECT_TRUE(gpus_->MeasureGpu(1).Find("power"));
}

TEST_F(BoundedGpusTest, QueuesNothingForAGpuThatHangs) {
  ASSERT_THAT(Problems(), ElementsAre("", ""));
  script_->Hang(0);
  const Status created = gpus_->Create(0, "1g.5gb", 3).status();
  EXPECT_EQ(created.code(), Code::kUnavailable);
  EXPECT_THAT(created.message(), HasSubstr("'create 1g.5gb@3'"));
  script_->AwaitSomebody();
  const int calls = script_->Calls(0);
  EXPECT_THAT(gpus_->Destroy(0, 1).message(), HasSubstr("'create 1g.5gb@3'"));
  EXPECT_FALSE(gpus_->ListInstances(0).ok());
  EXPECT_FALSE(gpus_->MeasureGpu(0).unmeasured.empty());
  EXPECT_FALSE(gpus_->EnableMig(0).ok());
  script_->Release(0);
  script_->AwaitChanges(2);
  EXPECT_EQ(script_->Calls(0), calls) << "refused calls are not made later";
  EXPECT_THAT(Problems(), ElementsAre("", "")) << "it is read anew";
  EXPECT_EQ(script_->Calls(0), calls + 1);
  EXPECT_THAT(Reasons(), IsEmpty());
}

TEST_F(BoundedGpusTest, StartsWhileAGpuHangs) {
  script_->Hang(1);
  EXPECT_THAT(Problems(), ElementsAre("", HasSubstr("GPU 1 does not answer")));
  EXPECT_TRUE(gpus_->Create(0, "1g.5gb", 0).ok());
  script_->Release(1);
  script_->AwaitChanges(2);
  EXPECT_THAT(Problems(), ElementsAre("", ""));
}

TEST_F(BoundedGpusTest, KeepsListOfGpusWhileDriverHangs) {
  EXPECT_THAT(Problems(), ElementsAre("", ""));
  script_->Hang(kDriver);
  EXPECT_THAT(Problems(), ElementsAre("", "")) << "the GPUs themselves answer";
  EXPECT_THAT(Reasons(), ElementsAre("DriverHangs -1"));
  EXPECT_TRUE(health_.Usable(0, 1));
  EXPECT_TRUE(gpus_->AllHang());
  EXPECT_THAT(gpus_->Hanging(), ElementsAre(HasSubstr("the driver does not answer")));
  script_->Release(kDriver);
  script_->AwaitChanges(2);
  EXPECT_THAT(Problems(), ElementsAre("", ""));
  EXPECT_THAT(Reasons(), IsEmpty());
  EXPECT_FALSE(gpus_->AllHang());
}

TEST_F(BoundedGpusTest, KnowsNoGpuBeforeDriverAnswers) {
  script_->Hang(kDriver);
  EXPECT_EQ(gpus_->ListGpus().status().code(), Code::kDeadline);
  EXPECT_EQ(gpus_->ListGpus().status().code(), Code::kDeadline);
  script_->Release(kDriver);
  script_->AwaitChanges(2);
  EXPECT_THAT(Problems(), ElementsAre("", ""));
}

TEST_F(BoundedGpusTest, ResetsOnlyWhileNoOtherThreadIsInTheDriver) {
  ASSERT_THAT(Problems(), ElementsAre("", ""));
  EXPECT_TRUE(gpus_->ResetGpu(1).ok());
  EXPECT_THAT(script_->Resting(), ElementsAre(0)) << "others have closed their sessions before";
  script_->Hang(0);
  (void)gpus_->ListInstances(0);
  const int calls = script_->Calls(1);
  const Status reset = gpus_->ResetGpu(1);
  EXPECT_EQ(reset.code(), Code::kUnavailable);
  EXPECT_THAT(reset.message(), HasSubstr("GPU 0 does not answer"));
  EXPECT_EQ(script_->Calls(1), calls);
}

TEST_F(BoundedGpusTest, RefusesImpossibleCounts) {
  script_->count = 65;
  EXPECT_EQ(gpus_->ListGpus().status().code(), Code::kInternal);
  script_->count = 2;
  EXPECT_THAT(Problems(), ElementsAre("", ""));
  EXPECT_EQ(gpus_->ListInstances(64).status().code(), Code::kNotFound);
  EXPECT_EQ(gpus_->ListInstances(-1).status().code(), Code::kNotFound);
}

TEST_F(BoundedGpusTest, EndsWhileAGpuHangs) {
  ASSERT_THAT(Problems(), ElementsAre("", ""));
  script_->Hang(0);
  (void)gpus_->ListGpus();
  gpus_.reset();
  EXPECT_TRUE(left_behind_);
  script_->AwaitClosed(1);  // GPU 1
  script_->Release(0);
  script_->AwaitClosed(2);
}

TEST_F(BoundedGpusTest, ClosesAllGpusAtItsEnd) {
  ASSERT_THAT(Problems(), ElementsAre("", ""));
  gpus_.reset();
  EXPECT_FALSE(left_behind_);
  script_->AwaitClosed(2);
}

TEST(BoundedCallLimits, AreBelowTheTimeAfterWhichALoopCountsAsDead) {
  EXPECT_EQ(LimitOf(Kind::kRead), std::chrono::seconds(30));
  EXPECT_EQ(LimitOf(Kind::kChange), std::chrono::minutes(2));
}

}  // namespace
}  // namespace nos::device
