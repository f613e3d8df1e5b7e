// Health conditions of doubled GPUs from the real event watcher.
#include <gtest/gtest.h>

#include <condition_variable>

#include "device/nvml_backend.h"
#include "device/nvml_events.h"
#include "node.h"

namespace nos::device {
namespace {

using nvml_double::NvmlNode;
using std::chrono::milliseconds;

class NvmlEventsTest : public testing::Test {
 protected:
  NvmlEventsTest() {
    board_.SetListener([this] {
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    });
    EXPECT_TRUE(events_.Start().ok());
  }
  // Waits until the board has exactly these reasons; false on a time-out.
  bool Becomes(const std::vector<std::string>& reasons) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return Reasons() == reasons; });
  }
  std::vector<std::string> Reasons() const {
    std::vector<std::string> reasons;
    for (const HealthCondition& condition : board_.Conditions()) {
      reasons.push_back(condition.Reason());
    }
    return reasons;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  NvmlNode node_{JsonObject{
      {"gpus", JsonArray{{{"model", "H100-80GB"}}, {{"model", "H100-80GB"}, {"mig", false}}}}}};
  std::unique_ptr<NvmlLibrary> library_ = NvmlLibrary::Open(NvmlNode::library()).value();
  GpuHealth board_;
  std::vector<uint64_t> xids_;  // guarded by mutex_
  NvmlEvents events_{*library_,
                     board_,
                     {.wait = milliseconds(50),
                      .probe = milliseconds(20),
                      .harmless_xids = {31},
                      .on_xid = [this](int, uint64_t xid, auto) {
                        const std::lock_guard lock(mutex_);
                        xids_.push_back(xid);
                      }}};
  NvmlBackend backend_{*library_, gpu::Catalogue::Builtin(), &events_};
};

TEST_F(NvmlEventsTest, KeepsXidConditionUntilInstanceIsDestroyed) {
  const GpuInstance made = backend_.Create(0, "1g.10gb", 0).value();
  node_.Event({{"gpu", 0}, {"data", 31}});  // caused by a program
  node_.Event({{"gpu", 0}, {"data", 63}, {"instance", made.id}});
  ASSERT_TRUE(Becomes({"Xid63"}));
  const HealthCondition condition = board_.Conditions().front();
  EXPECT_EQ(condition.gpu, 0);
  EXPECT_EQ(condition.instance, made.id);
  {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(xids_, (std::vector<uint64_t>{31, 63})) << "all are reported";
  }
  EXPECT_EQ(condition.message,
            "the driver reported Xid 63 on instance 1 of GPU 0: look it up at "
            "docs.nvidia.com/deploy/xid-errors, reset the GPU if it says so, then restart the "
            "agent");
  EXPECT_FALSE(board_.Usable(0, made.id));
  EXPECT_TRUE(board_.Usable(0, made.id + 1));
  ASSERT_TRUE(backend_.Destroy(0, made.id).ok());
  EXPECT_TRUE(board_.Conditions().empty()) << "a new instance may get this id";
}

TEST_F(NvmlEventsTest, ErrorOfWholeGpuDisablesAllInstances) {
  node_.Event({{"gpu", 1}, {"type", 2}});
  node_.Event({{"gpu", 1}, {"data", 79}});
  ASSERT_TRUE(Becomes({"Xid79", "MemoryError"}));
  EXPECT_FALSE(board_.Usable(1, 5));
  EXPECT_TRUE(board_.Usable(0, 5));
  board_.ClearGpu(1);
  EXPECT_TRUE(board_.Usable(1, 5));
}

TEST_F(NvmlEventsTest, ReportsLostGpuAndItsReturn) {
  node_.EditGpu(1, [](JsonObject& gpu) { gpu["lost"] = true; });
  ASSERT_TRUE(Becomes({"GpuLost"}));
  EXPECT_EQ(board_.Conditions().front().gpu, 1);
  node_.Event({{"gpu", 0}, {"data", 48}});  // the other GPU is still watched
  ASSERT_TRUE(Becomes({"Xid48", "GpuLost"}));
  node_.EditGpu(1, [](JsonObject& gpu) { gpu["lost"] = false; });
  ASSERT_TRUE(Becomes({"Xid48"}));
  node_.Event({{"gpu", 1}, {"data", 62}});
  EXPECT_TRUE(Becomes({"Xid48", "Xid62"}));
}

TEST_F(NvmlEventsTest, ReportsUnwatchableGpu) {
  // More than once, because the watcher may be registering right now.
  node_.Fault({{"call", "nvmlDeviceRegisterEvents"}, {"gpu", 1}, {"error", 3}, {"times", 99}});
  {
    const NvmlEvents::Suspended again(&events_);
  }
  ASSERT_TRUE(Becomes({"HealthNotWatched"}));
  EXPECT_TRUE(board_.Usable(1, 1));
}

TEST_F(NvmlEventsTest, ReleasesGpusWhileSuspended) {
  ASSERT_TRUE(backend_.EnableMig(1).ok());
  node_.Event({{"gpu", 1}, {"data", 79}});
  EXPECT_TRUE(Becomes({"Xid79"})) << "and takes hold again afterwards";
}

TEST_F(NvmlEventsTest, ResumesAfterDriverReload) {
  node_.Fault({{"call", "nvmlEventSetWait_v2"}, {"error", 1}, {"times", 3}});
  node_.Event({{"gpu", 0}, {"data", 79}});
  EXPECT_TRUE(Becomes({"Xid79"}));
}

TEST(NvmlEventsOfOldDrivers, AreUnimplemented) {
  const auto old = NvmlLibrary::Open(NvmlNode::old_library()).value();
  GpuHealth board;
  NvmlEvents events(*old, board);
  EXPECT_EQ(events.Start().code(), Code::kUnimplemented);
}

}  // namespace
}  // namespace nos::device
