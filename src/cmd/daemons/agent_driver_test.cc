#include "cmd/daemons/agent_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>

#include "base/log.h"

namespace nos::cmd {
namespace {

using device::Backend;
using ::testing::HasSubstr;

// Keeps calls for GPU 0, or for all, until it is opened.
struct Gate {
  std::mutex mutex;
  std::condition_variable moved;
  bool open = false, all = false;
  int inside = 0;

  void Pass(int gpu) {
    std::unique_lock lock(mutex);
    if (gpu != 0 && !all) return;
    ++inside;
    moved.notify_all();
    moved.wait(lock, [&] { return open; });
  }
  void AwaitSomebody() {
    std::unique_lock lock(mutex);
    moved.wait(lock, [&] { return inside > 0; });
  }
  void Open() {
    const std::lock_guard lock(mutex);
    open = true;
    moved.notify_all();
  }
};

class GatedGpu final : public device::GpuAccess, private Backend {
 public:
  GatedGpu(std::shared_ptr<Gate> gate, int gpu) : gate_(std::move(gate)), gpu_(gpu) {}
  Backend& backend() override { return *this; }
  void Rest(bool /*rest*/) override {}

 private:
  Result<std::vector<device::GpuInfo>> ListGpus() override {
    gate_->Pass(gpu_);
    device::GpuInfo info;
    info.index = gpu_;
    return std::vector<device::GpuInfo>{info};
  }
  Result<std::vector<device::GpuInstance>> ListInstances(int) override {
    gate_->Pass(gpu_);
    return std::vector<device::GpuInstance>{};
  }
  Result<device::GpuInstance> Create(int, const std::string&, uint8_t) override {
    return device::GpuInstance{};
  }
  Status Destroy(int, uint32_t) override { return Status::Ok(); }
  Status EnableMig(int) override { return Status::Ok(); }
  Status DisableMig(int) override { return Status::Ok(); }
  Status SetComputeMode(int, device::ComputeMode) override { return Status::Ok(); }
  device::Readings MeasureGpu(int) override { return {}; }
  device::Readings MeasureInstance(const device::GpuInstance&) override { return {}; }

  const std::shared_ptr<Gate> gate_;
  const int gpu_;
};

class GatedDriver final : public device::GpuDriver {
 public:
  explicit GatedDriver(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}
  Result<int> Count() override { return 2; }
  std::unique_ptr<device::GpuAccess> Open(int gpu) override {
    return std::make_unique<GatedGpu>(gate_, gpu);
  }

 private:
  const std::shared_ptr<Gate> gate_;
};

// The time for calls that hang is up at once; for others it is never up.
device::BoundedCallOptions Impatient(const std::shared_ptr<Gate>& gate) {
  return {.limit = [gate](int gpu, auto) {
    const bool hangs = gpu == 0 || (gate->all && gpu > 0);
    return hangs ? Duration() : Duration(std::chrono::hours(1));
  }};
}

// The ends of a process, in a process of their own.
[[noreturn]] void End(bool hangs, bool ended) {
  SetLogLevel(LogLevel::kError);
  {
    auto gate = std::make_shared<Gate>();
    if (!hangs) gate->Open();
    device::GpuHealth health;
    AgentDriver driver(std::make_shared<GatedDriver>(gate), health,
                       hangs ? Impatient(gate) : device::BoundedCallOptions());
    (void)driver.gpus().ListGpus();
    if (ended) driver.Ended();
  }
  std::_Exit(17);  // nothing ended the process
}

TEST(AgentDriverDeathTest, EndsTheProcessWithAThreadLeftBehind) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(End(true, true), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(End(true, false), testing::ExitedWithCode(1), "");
  EXPECT_EXIT(End(false, true), testing::ExitedWithCode(17), "") << "an orderly end";
}

TEST(AgentDriver, IsReadyWhileOneGpuAnswers) {
  SetLogLevel(LogLevel::kError);
  auto gate = std::make_shared<Gate>();
  device::GpuHealth health;
  device::BoundedCallOptions options = Impatient(gate);
  options.changed = [gate] {
    const std::lock_guard lock(gate->mutex);
    gate->moved.notify_all();
  };
  AgentDriver driver(std::make_shared<GatedDriver>(gate), health, std::move(options));
  ASSERT_TRUE(driver.gpus().ListGpus().ok());
  EXPECT_TRUE(driver.Answers().ok());
  {
    const std::lock_guard lock(gate->mutex);
    gate->all = true;
  }
  (void)driver.gpus().ListInstances(1);
  const Status answers = driver.Answers();
  EXPECT_EQ(answers.code(), Code::kUnavailable);
  EXPECT_THAT(answers.message(), HasSubstr("GPU 0 does not answer"));
  EXPECT_THAT(answers.message(), HasSubstr("GPU 1 does not answer"));
  // The driver ends the process if a call is still under way at its end.
  gate->Open();
  std::unique_lock lock(gate->mutex);
  gate->moved.wait(lock, [&] { return driver.gpus().Hanging().empty(); });
}

}  // namespace
}  // namespace nos::cmd
