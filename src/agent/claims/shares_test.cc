// Claims that share a GPU or an instance.
#include "agent/claims/shares.h"

#include <gmock/gmock.h>

#include <map>

#include "agent/claims/fixture_test.h"

namespace nos::agent {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

constexpr const char* kMps = "gpu-0-mps";
constexpr const char* kSlice = "gpu-0-mig-3g40gb-9-4";

// Daemons that begin and end at once, unless they are broken.
class InstantDaemons final : public ShareDaemons {
 public:
  void AwaitClaims() override {}
  void ServeForClaims(std::vector<device::MpsGpu> devices) override {
    serving.clear();
    for (const device::MpsGpu& one : devices) {
      serving[one.uuid] = one.memory_gib > 0 ? one.memory_gib * 1024 : one.memory_mib;
    }
    if (!stuck) left.clear();
    for (const auto& [uuid, mib] : serving) left.insert(uuid);
  }
  bool AwaitServing(const std::string& uuid, Duration) override {
    return !broken && serving.contains(uuid);
  }
  bool AwaitEnd(const std::string& uuid, Duration) override { return !left.contains(uuid); }
  std::set<std::string> Left() const override { return left; }
  std::map<std::string, std::string> Troubles() const override { return {}; }
  device::ContainerEdits AccessTo(const std::string& uuid, int64_t memory_mib,
                                  int64_t total_mib) const override {
    device::ContainerEdits edits;
    edits.environment["ACCESS"] =
        uuid + " " + std::to_string(memory_mib) + "/" + std::to_string(total_mib);
    return edits;
  }

  std::map<std::string, int> serving;  // MiB of the daemon, by UUID
  std::set<std::string> left;
  bool broken = false, stuck = false;
};

class ClaimSharesTest : public ClaimTest {
 protected:
  ClaimSharesTest() {
    mps_ = &daemons_;
    share_facts_ = {79, 48, 3};
    Restart();
  }
  void Share(const std::string& name, const std::string& device, int gib) {
    Allocate(name, {device}, "gpu.nos.nebuly.com", gib);
  }
  std::string Gpu(int index = 0) { return gpus_.Info(index).uuid; }
  device::ComputeMode Mode(int index = 0) {
    return gpus_.ListGpus()->at(static_cast<size_t>(index)).compute_mode.value();
  }
  // Does the part of the service's Step that concerns the driver.
  void Look() {
    driver_->SetAllocated(Seen(), Time(seconds(1)));
    driver_->EndUnusedDaemons();
  }
  void End(const std::string& name) {
    EXPECT_EQ(Unprepare(name), "ok");
    Release(name);
    Look();
  }

  InstantDaemons daemons_;
};

TEST_F(ClaimSharesTest, ClaimsShareTheMemoryOfAGpu) {
  Share("a", kMps, 20);
  Share("b", kMps, 59);
  EXPECT_EQ(Prepare("a"), "ok");
  EXPECT_EQ(answer_.at(0).share_id, "a-share-0");
  EXPECT_EQ(Prepare("b"), "ok");
  EXPECT_THAT(daemons_.serving, ElementsAre(Pair(Gpu(), 79 * 1024)));
  EXPECT_EQ(Mode(), device::ComputeMode::kExclusiveProcess) << "nothing gets round the limits";
  EXPECT_THAT(Spec(), HasSubstr("ACCESS=" + Gpu() + " 20480/80896"));
  EXPECT_THAT(Spec(), HasSubstr("ACCESS=" + Gpu() + " 60416/80896"));
}

// The API server does not check amounts.
TEST_F(ClaimSharesTest, RefusesMoreThanThereIs) {
  Share("a", kMps, 70);
  Share("b", kMps, 10);
  EXPECT_EQ(Prepare("a"), "ok");
  EXPECT_EQ(Refusal("b"), Code::kConflict);
  End("a");
  EXPECT_EQ(Prepare("b"), "ok");
  Allocate("none", {kMps});
  EXPECT_EQ(Refusal("none"), Code::kInvalid) << "it has no limit";
  Allocate("two", {"gpu-1-mps", "gpu-1-mig-3g40gb-9-4-mps"}, "gpu.nos.nebuly.com", 1);
  EXPECT_EQ(Refusal("two"), Code::kInvalid) << "a program reaches one daemon";
}

TEST_F(ClaimSharesTest, SharedAndOwnDevicesExcludeEachOther) {
  Share("shared", kMps, 5);
  EXPECT_EQ(Prepare("shared"), "ok");
  Allocate("whole", {"gpu-0"});
  Allocate("slice", {kSlice});
  Allocate("turn", {"gpu-0-time-slices"}, "gpu.nos.nebuly.com", 1);
  for (const char* name : {"whole", "slice", "turn"}) {
    EXPECT_EQ(Refusal(name), Code::kConflict) << name;
  }
  End("shared");
  EXPECT_THAT(daemons_.serving, IsEmpty());
  EXPECT_EQ(Mode(), device::ComputeMode::kDefault);
  EXPECT_EQ(Prepare("slice"), "ok");
  Share("shared", kMps, 5);
  EXPECT_EQ(Refusal("shared"), Code::kConflict);
}

TEST_F(ClaimSharesTest, ClaimsShareAnInstance) {
  const std::string device = std::string(kSlice) + "-mps";
  Share("a", device, 10);
  Share("b", device, 20);
  EXPECT_EQ(Prepare("a"), "ok");
  EXPECT_EQ(Prepare("b"), "ok");
  EXPECT_EQ(Instances(0), "3g.40gb@4");
  EXPECT_EQ(created_, 1);
  // 40448 MiB, less what the MPS server needs, in whole GiB.
  EXPECT_THAT(daemons_.serving, ElementsAre(Pair(UuidAt(0, 4), 39 * 1024)));
  EXPECT_THAT(Spec(), HasSubstr("ACCESS=" + UuidAt(0, 4) + " 10240/"));
  EXPECT_EQ(Mode(), device::ComputeMode::kDefault) << "instances have no other";
  Allocate("own", {kSlice});
  EXPECT_EQ(Refusal("own"), Code::kConflict);
  End("a");
  EXPECT_THAT(daemons_.serving, Not(IsEmpty())) << "the other claim has it";
  End("b");
  EXPECT_THAT(daemons_.serving, IsEmpty());
  EXPECT_EQ(Prepare("own"), "ok");
  EXPECT_EQ(created_, 1) << "the instance stays";
}

TEST_F(ClaimSharesTest, ClaimsTakeTurns) {
  for (const char* name : {"a", "b", "c", "d"}) Share(name, "gpu-0-time-slices", 0);
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(Prepare(name), "ok") << name;
  EXPECT_EQ(Refusal("d"), Code::kConflict) << "three at a time";
  EXPECT_THAT(daemons_.serving, IsEmpty());
  EXPECT_EQ(Mode(), device::ComputeMode::kDefault);
  EXPECT_THAT(Spec(), Not(HasSubstr("ACCESS")));
}

TEST_F(ClaimSharesTest, IsReadyBeforeThePodIsBound) {
  Share("a", kMps, 20);
  Look();
  EXPECT_THAT(daemons_.serving, ElementsAre(Pair(Gpu(), 79 * 1024)));
  const auto reports = driver_->TakeReports();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_TRUE(reports[0].status.ok());
  EXPECT_EQ(reports[0].claim.devices.at(0).share_id, "a-share-0");
  Allocate("wrong", {kMps});
  Look();
  const auto refused = driver_->TakeReports();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].status.code(), Code::kInvalid);
}

TEST_F(ClaimSharesTest, RefusesWithoutDaemon) {
  daemons_.broken = true;
  Share("a", kMps, 20);
  EXPECT_EQ(Refusal("a"), Code::kUnavailable);
  EXPECT_EQ(Spec(), "");
  daemons_.broken = false;
  EXPECT_EQ(Prepare("a"), "ok");
}

TEST_F(ClaimSharesTest, RestartedAgentKeepsDaemons) {
  Share("a", kMps, 20);
  Share("b", "gpu-1-mig-3g40gb-9-4-mps", 10);
  EXPECT_EQ(Prepare("a"), "ok");
  EXPECT_EQ(Prepare("b"), "ok");
  const auto serving = daemons_.serving;
  const std::string spec = Spec();
  Restart();
  EXPECT_EQ(daemons_.serving, serving);
  EXPECT_TRUE(driver_->KeepSpec().ok());
  EXPECT_EQ(Spec(), spec);
  Look();
  EXPECT_EQ(daemons_.serving, serving);
  EXPECT_EQ(Prepare("a"), "ok");
}

// A container that starts without its limit would take the memory of others.
TEST_F(ClaimSharesTest, ContainersDoNotStartWithoutTheirLimit) {
  Share("a", kMps, 20);
  EXPECT_EQ(Prepare("a"), "ok");
  mps_ = nullptr;  // mps.enabled was set to false
  share_facts_ = {};
  Restart();
  EXPECT_FALSE(driver_->KeepSpec().ok());
  EXPECT_THAT(Spec(), Not(HasSubstr("a-uid-gpu-0-mps")));
}

// The agent ended after the last claim, before it put the compute mode back.
TEST_F(ClaimSharesTest, RestartedAgentEndsWhatNobodyShares) {
  Share("a", kMps, 20);
  EXPECT_EQ(Prepare("a"), "ok");
  EXPECT_EQ(Unprepare("a"), "ok");
  Release("a");
  Restart();
  EXPECT_EQ(driver_->Forget().code(), Code::kUnavailable) << "the GPU is not ready for a plugin";
  Look();
  EXPECT_THAT(daemons_.left, IsEmpty());
  EXPECT_EQ(Mode(), device::ComputeMode::kDefault);
  EXPECT_TRUE(driver_->Forget().ok());
}

TEST_F(ClaimSharesTest, DaemonThatDoesNotEndIsInTheWay) {
  Share("a", kMps, 20);
  EXPECT_EQ(Prepare("a"), "ok");
  daemons_.stuck = true;
  EXPECT_EQ(Unprepare("a"), "ok");
  Release("a");
  Allocate("slice", {kSlice});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Refusal("slice"), Code::kUnavailable);
  EXPECT_EQ(Instances(0), "");
  daemons_.stuck = false;
  EXPECT_EQ(Prepare("slice"), "ok");
}

TEST_F(ClaimSharesTest, CheckpointHasTheShares) {
  Share("a", kMps, 20);
  EXPECT_EQ(Prepare("a"), "ok");
  const auto stored = ReadCheckpoint(root_ / "claims.json");
  ASSERT_TRUE(stored.ok());
  const ClaimedDevice& device = stored->at("a-uid").devices.at(0);
  EXPECT_EQ(device.share_id, "a-share-0");
  EXPECT_EQ(device.memory_mib, 20 * 1024);
}

}  // namespace
}  // namespace nos::agent
