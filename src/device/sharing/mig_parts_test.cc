#include "device/mig_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "device/mps_gpus.h"
#include "device/plain_gpus.h"
#include "device/sim_gpus.h"

namespace nos::device {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const std::vector<gpu::InstancePart> kParts = {{"3g.40gb", 4}, {"3g.40gb", 2}, {"2g.20gb", 2}};

std::vector<SimGpuSpec> Specs() {
  const gpu::Model& h100 = *gpu::Catalogue::Builtin().FindByName("H100-80GB");
  return {{&h100, "", true}, {&h100, "", true}};
}

class MigPartsTest : public testing::Test {
 protected:
  MigPartsTest() { Give(parts_); }
  static void Give(MigParts& gpus) {
    gpus.GiveWhole(true);
    EXPECT_TRUE(gpus.ListGpus().ok());
  }
  GpuInstance Make(const std::string& profile, uint8_t start) {
    const auto made = parts_.Create(0, profile, start);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? *made : GpuInstance{};
  }
  // Instances of GPU 0 in order, such as "3g.40gb.mps4@4".
  static std::vector<std::string> Listed(Backend& gpus) {
    std::vector<std::string> names;
    const auto instances = gpus.ListInstances(0);
    EXPECT_TRUE(instances.ok());
    for (const GpuInstance& instance : *instances) {
      names.push_back(instance.profile + "@" + std::to_string(instance.start));
    }
    std::ranges::sort(names);
    return names;
  }

  SimHooks Hooks() {
    SimHooks hooks;
    hooks.held = [this](const std::string& uuid) { return uuid == held_; };
    hooks.fault = [this](const SimAttempt&) { return std::exchange(fault_, SimFault::kNone); };
    return hooks;
  }

  std::string held_;
  SimFault fault_ = SimFault::kNone;
  SimGpus gpus_{Specs(), "n", Hooks()};
  MigParts parts_{gpus_, gpu::Catalogue::Builtin(), kParts};
};

// Two GPUs that swap their indexes.
class RenumberedGpus final : public Backend {
 public:
  explicit RenumberedGpus(Backend& backend) : backend_(backend) {}
  bool changed = false;

  Result<std::vector<GpuInfo>> ListGpus() override {
    NOS_ASSIGN(std::vector<GpuInfo> infos, backend_.ListGpus());
    if (changed) std::swap(infos.at(0), infos.at(1));
    for (int gpu = 0; gpu < 2; ++gpu) infos[static_cast<size_t>(gpu)].index = gpu;
    return infos;
  }
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override {
    NOS_ASSIGN(std::vector<GpuInstance> instances, backend_.ListInstances(At(gpu)));
    for (GpuInstance& instance : instances) instance.gpu = gpu;
    return instances;
  }
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override {
    return backend_.Create(At(gpu), profile, start);
  }
  Status Destroy(int gpu, uint32_t id) override { return backend_.Destroy(At(gpu), id); }
  Status EnableMig(int gpu) override { return backend_.EnableMig(At(gpu)); }
  Status DisableMig(int gpu) override { return backend_.DisableMig(At(gpu)); }
  Status SetComputeMode(int gpu, ComputeMode mode) override {
    return backend_.SetComputeMode(At(gpu), mode);
  }
  Readings MeasureGpu(int gpu) override { return backend_.MeasureGpu(At(gpu)); }
  Readings MeasureInstance(const GpuInstance& instance) override {
    return backend_.MeasureInstance(instance);
  }

 private:
  int At(int gpu) const { return changed ? 1 - gpu : gpu; }

  Backend& backend_;
};

TEST_F(MigPartsTest, KeepsDivisionWhenGpuIndexesChange) {
  RenumberedGpus gpus(gpus_);
  MigParts parts(gpus, gpu::Catalogue::Builtin(), kParts);
  Give(parts);
  ASSERT_TRUE(parts.Create(0, "3g.40gb.mps4", 0).ok());
  gpus.changed = true;
  ASSERT_TRUE(parts.ListGpus().ok());
  EXPECT_THAT(Listed(parts), IsEmpty());
  const auto moved = parts.ListInstances(1);
  ASSERT_TRUE(moved.ok());
  ASSERT_THAT(*moved, SizeIs(1));
  EXPECT_EQ(moved->front().profile, "3g.40gb.mps4");
  EXPECT_EQ(moved->front().gpu, 1);
}

TEST(MigPartTest, ParsesOnlyCanonicalIds) {
  const MigPart part{"MIG-8c41ee42-0b75-5a0e-8a6e-b1d1a3b0c9f1", 4, 3};
  const std::string id = MigPartId(part);
  EXPECT_EQ(id, "MIG-8c41ee42-0b75-5a0e-8a6e-b1d1a3b0c9f1::mps4::3");
  EXPECT_LE(id.size(), 63U) << "the kubelet's limit";
  EXPECT_EQ(ParseMigPartId(id), part);
  EXPECT_EQ(MigOf(id), part.mig_uuid);
  EXPECT_EQ(MigOf("GPU-a::10::0"), "GPU-a::10::0");
  for (const char* other :
       {"", "MIG-a", "MIG-a::mps4", "MIG-a::mps4::4", "MIG-a::mps1::0", "MIG-a::mps9::0",
        "MIG-a::mps04::0", "MIG-a::mps4::00", "MIG-a::mps4::-1", "MIG-a::mps4::1::x",
        "MIG-a:mps4::1", "GPU-a::mps4::1", "MIG-::mps4::1", "MIG-a/b::mps4::1", "MIG-a::4::1",
        "MIG-GPU-a/1/0::mps4::1"}) {
    EXPECT_EQ(ParseMigPartId(other), std::nullopt) << other;
  }
}

TEST_F(MigPartsTest, FirstPartCreatesInstanceAndLastDestroysIt) {
  const GpuInstance first = Make("3g.40gb.mps4", 5);
  ASSERT_THAT(gpus_.Truth(0), SizeIs(1));
  EXPECT_EQ(gpus_.Truth(0)[0].profile, "3g.40gb");
  EXPECT_EQ(gpus_.Truth(0)[0].start, 4);
  EXPECT_EQ(first.uuid, gpus_.Truth(0)[0].uuid + "::mps4::1");
  EXPECT_EQ(first.part_of, gpus_.Truth(0)[0].uuid);
  EXPECT_EQ(first.size, 1);
  EXPECT_EQ(DriverIdOf(first.id), gpus_.Truth(0)[0].id);
  const GpuInstance second = Make("3g.40gb.mps4", 7);
  EXPECT_THAT(gpus_.Truth(0), SizeIs(1));
  EXPECT_NE(first.id, second.id);
  EXPECT_THAT(Listed(parts_), ElementsAre("3g.40gb.mps4@5", "3g.40gb.mps4@7"));
  EXPECT_TRUE(parts_.Destroy(0, first.id).ok());
  EXPECT_EQ(parts_.Destroy(0, first.id).code(), Code::kNotFound);
  EXPECT_THAT(Listed(parts_), ElementsAre("3g.40gb.mps4@7"));
  EXPECT_THAT(gpus_.Truth(0), SizeIs(1));
  EXPECT_TRUE(parts_.Destroy(0, second.id).ok());
  EXPECT_THAT(gpus_.Truth(0), IsEmpty());
  EXPECT_THAT(Listed(parts_), IsEmpty());
}

TEST_F(MigPartsTest, RefusesInstancesBesidePartsOfDividedInstance) {
  const GpuInstance part = Make("3g.40gb.mps4", 5);
  EXPECT_EQ(parts_.Create(0, "3g.40gb.mps4", 5).status().code(), Code::kExhausted);
  EXPECT_EQ(parts_.Create(0, "3g.40gb.mps2", 4).status().code(), Code::kExhausted);
  EXPECT_EQ(parts_.Create(0, "3g.40gb", 4).status().code(), Code::kExhausted);
  EXPECT_EQ(parts_.Create(0, "2g.20gb.mps2", 4).status().code(), Code::kExhausted);
  EXPECT_EQ(parts_.Destroy(0, DriverIdOf(part.id)).code(), Code::kUnavailable) << "it has parts";
  EXPECT_TRUE(parts_.Create(0, "2g.20gb.mps2", 3).ok());
  EXPECT_TRUE(parts_.Create(0, "2g.20gb", 0).ok());
  EXPECT_EQ(parts_.Create(0, "2g.20gb.mps2", 0).status().code(), Code::kExhausted)
      << "an instance that is there as a whole is not divided by itself";
  EXPECT_THAT(Listed(parts_), ElementsAre("2g.20gb.mps2@3", "2g.20gb@0", "3g.40gb.mps4@5"));
}

TEST_F(MigPartsTest, RefusesImpossibleParts) {
  for (const auto& [profile, start] :
       std::vector<std::pair<const char*, uint8_t>>{{"3g.40gb.mps3", 0},     // not configured
                                                    {"3g.40gb.mps2", 2},     // no part there
                                                    {"3g.40gb.mps4", 8},     // no instance
                                                    {"3g.20gb.mps2", 0},     // another GPU
                                                    {"1g.10gb.mps2", 0}}) {  // too small
    EXPECT_EQ(parts_.Create(0, profile, start).status().code(), Code::kInvalid) << profile;
  }
  parts_.GiveWhole(false);
  EXPECT_EQ(parts_.Create(0, "3g.40gb.mps4", 0).status().code(), Code::kInvalid);
  EXPECT_THAT(gpus_.Truth(0), IsEmpty());
}

TEST_F(MigPartsTest, RestoresPartsHeldByPods) {
  const GpuInstance held = Make("3g.40gb.mps4", 5);
  Make("3g.40gb.mps4", 6);
  Make("3g.40gb.mps4", 0);
  MigParts next(gpus_, gpu::Catalogue::Builtin(), kParts);
  Give(next);
  EXPECT_THAT(Listed(next), ElementsAre("3g.40gb@0", "3g.40gb@4"));
  const std::vector<std::string> ids = {held.uuid, "GPU-a::10::0", "MIG-unknown::mps4::0"};
  EXPECT_THAT(next.Adopt(ids), IsEmpty());
  EXPECT_THAT(Listed(next), ElementsAre("3g.40gb.mps4@5", "3g.40gb@0"));
  EXPECT_THAT(next.Adopt(ids), IsEmpty()) << "once more";
  EXPECT_THAT(Listed(next), ElementsAre("3g.40gb.mps4@5", "3g.40gb@0"));
  const auto again = next.ListInstances(0);
  ASSERT_TRUE(again.ok());
  const auto same = std::ranges::find(*again, held.uuid, &GpuInstance::uuid);
  ASSERT_NE(same, again->end());
  EXPECT_EQ(same->id, held.id);
  next.GiveWhole(false);
  EXPECT_THAT(Listed(next), ElementsAre("3g.40gb@0", "3g.40gb@4")) << "none are here";
  EXPECT_THAT(next.Adopt(ids), IsEmpty());
  EXPECT_THAT(Listed(next), ElementsAre("3g.40gb@0", "3g.40gb@4"));
}

TEST_F(MigPartsTest, RefusesContradictoryPartIds) {
  const GpuInstance held = Make("3g.40gb.mps4", 5);
  const std::string mig = held.part_of;
  MigParts next(gpus_, gpu::Catalogue::Builtin(), {{"3g.40gb", 2}});
  Give(next);
  const auto refused = [&](const std::string& part, const std::string& why) {
    return ElementsAre("a pod holds '" + mig + part + "', " + why +
                       ": its instance counts as held as a whole");
  };
  EXPECT_THAT(next.Adopt(std::vector{held.uuid}),
              refused("::mps4::1", "but no 3g.40gb is divided into 4 parts here"));
  EXPECT_THAT(next.Adopt(std::vector{mig + "::mps2::0", mig}),
              refused("::mps2::0", "and a pod the whole of it"));
  EXPECT_THAT(Listed(next), ElementsAre("3g.40gb@4"));
  EXPECT_THAT(next.Adopt(std::vector{mig + "::mps2::0", mig + "::mps4::1"}),
              refused("::mps4::1", "but the instance is divided into 2 parts"));
  EXPECT_THAT(Listed(next), ElementsAre("3g.40gb.mps2@4"));
}

TEST_F(MigPartsTest, ToleratesDriverFaults) {
  const GpuInstance part = Make("3g.40gb.mps4", 4);
  held_ = part.part_of;  // held, for example, by its MPS daemon
  EXPECT_EQ(parts_.Destroy(0, part.id).code(), Code::kUnavailable);
  EXPECT_THAT(Listed(parts_), ElementsAre("3g.40gb.mps4@4"));
  held_.clear();
  fault_ = SimFault::kLateAnswer;
  EXPECT_EQ(parts_.Destroy(0, part.id).code(), Code::kDeadline);
  EXPECT_THAT(Listed(parts_), IsEmpty());
  fault_ = SimFault::kLateAnswer;
  EXPECT_EQ(parts_.Create(0, "3g.40gb.mps4", 4).status().code(), Code::kDeadline);
  EXPECT_THAT(Listed(parts_), ElementsAre("3g.40gb@4")) << "as anybody's";
  EXPECT_TRUE(parts_.Destroy(0, gpus_.Truth(0)[0].id).ok());
  fault_ = SimFault::kCrashBetween;
  EXPECT_FALSE(parts_.Create(0, "3g.40gb.mps4", 4).ok());
  const auto left = parts_.ListInstances(0);
  ASSERT_TRUE(left.ok());
  ASSERT_THAT(*left, SizeIs(1));
  EXPECT_FALSE(left->front().complete);
  EXPECT_EQ(parts_.Create(0, "3g.40gb.mps4", 5).status().code(), Code::kExhausted);
  EXPECT_TRUE(parts_.Destroy(0, left->front().id).ok());
  EXPECT_THAT(gpus_.Truth(0), IsEmpty());
}

TEST_F(MigPartsTest, RebootRemovesAllParts) {
  const GpuInstance part = Make("3g.40gb.mps4", 4);
  gpus_.Reboot();
  ASSERT_TRUE(gpus_.EnableMig(0).ok());
  EXPECT_THAT(Listed(parts_), IsEmpty());
  const GpuInstance whole = Make("3g.40gb", 4);
  EXPECT_EQ(whole.uuid, part.part_of) << "which comes back";
  EXPECT_THAT(Listed(parts_), ElementsAre("3g.40gb@4"));
}

TEST_F(MigPartsTest, PartHasNoReadings) {
  const GpuInstance part = Make("3g.40gb.mps4", 4), whole = Make("2g.20gb", 0);
  EXPECT_THAT(parts_.MeasureInstance(part).metrics, IsEmpty());
  EXPECT_THAT(parts_.MeasureInstance(whole).metrics, Not(IsEmpty()));
}

// The stack of decorators that the agent builds.
TEST_F(MigPartsTest, WorksBelowOtherDecorators) {
  MpsGpus shares(parts_);
  PlainGpus all(shares);
  all.GiveWhole(true);
  ASSERT_TRUE(all.ListGpus().ok());
  const auto made = all.Create(0, "3g.40gb.mps4", 6);
  ASSERT_TRUE(made.ok());
  EXPECT_THAT(Listed(all), ElementsAre("3g.40gb.mps4@6"));
  MigParts next(gpus_, gpu::Catalogue::Builtin(), kParts);
  MpsGpus next_shares(next);
  PlainGpus next_all(next_shares);
  next_all.GiveWhole(true);
  ASSERT_TRUE(next_all.ListGpus().ok());
  EXPECT_THAT(next_all.Adopt(std::vector{made->uuid}), IsEmpty());
  EXPECT_THAT(Listed(next_all), ElementsAre("3g.40gb.mps4@6"));
  EXPECT_FALSE(IsMigProfile("3g.40gb.mps4"));
  EXPECT_TRUE(IsMigProfile("3g.40gb"));
}

}  // namespace
}  // namespace nos::device
