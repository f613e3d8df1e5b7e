#include "device/nebuly_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/sim_gpus.h"

namespace nos::device {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class NebulyGpusTest : public testing::Test {
 protected:
  static std::vector<SimGpuSpec> Specs() {
    const gpu::Model& a100 = *gpu::Catalogue::Builtin().FindByName("A100-40GB");
    return {{&a100, "", false}, {&a100, "", false}};
  }
  std::string Id(const std::string& rest) { return gpus_.ListGpus()->at(0).uuid + rest; }
  void Adopt(std::vector<std::string> ids) { EXPECT_THAT(shares_.Adopt(ids), IsEmpty()); }
  // Instances with their ids, such as "10gb@0 ::10::3".
  std::vector<std::string> Listed() {
    std::vector<std::string> listed;
    const auto instances = shares_.ListInstances(0).value();
    for (const GpuInstance& instance : instances) {
      listed.push_back(instance.profile + "@" + std::to_string(instance.start) + " " +
                       instance.uuid.substr(instance.uuid.find("::")));
    }
    return listed;
  }

  SimGpus gpus_{Specs(), "node"};
  std::vector<std::string> offered_;
  Status trouble_;
  NebulyGpus shares_{gpus_, {}, [this]() -> Result<std::vector<std::string>> {
                       if (!trouble_.ok()) return trouble_;
                       return offered_;
                     }};
};

TEST_F(NebulyGpusTest, NumbersEachSizeFromZero) {
  ASSERT_TRUE(shares_.EnableMps(0).ok());
  EXPECT_TRUE(shares_.AnyShared());
  EXPECT_EQ(shares_.Create(0, "10gb", 4)->uuid, Id("::10::0"));
  EXPECT_EQ(shares_.Create(0, "20gb", 2)->uuid, Id("::20::0"));
  EXPECT_EQ(shares_.Create(0, "5gb", 0)->uuid, Id("::5::0"));
  EXPECT_THAT(Listed(), ElementsAre("5gb@0 ::5::0", "20gb@2 ::20::0", "10gb@4 ::10::0"));
}

TEST_F(NebulyGpusTest, ReusesFreeNumbers) {
  ASSERT_TRUE(shares_.EnableMps(0).ok());
  const GpuInstance first = shares_.Create(0, "10gb", 0).value();
  ASSERT_TRUE(shares_.Create(0, "10gb", 1).ok());
  ASSERT_TRUE(shares_.Destroy(0, first.id).ok());
  EXPECT_THAT(Listed(), ElementsAre("10gb@1 ::10::1"));
  EXPECT_EQ(shares_.Create(0, "10gb", 5)->uuid, Id("::10::0"));
}

TEST_F(NebulyGpusTest, AdoptsOfferedSharesOnEnable) {
  offered_ = {Id("::10::0"), Id("::10::1"), Id("::5::0"), "GPU-other::5::0", "MIG-1", "rubbish"};
  ASSERT_TRUE(shares_.EnableMps(0).ok());
  EXPECT_THAT(Listed(), ElementsAre("5gb@0 ::5::0", "10gb@1 ::10::0", "10gb@2 ::10::1"));
  // Not adopted again: the removed share is about to leave the offer.
  ASSERT_TRUE(shares_.Destroy(0, shares_.ListInstances(0)->front().id).ok());
  ASSERT_TRUE(shares_.EnableMps(0).ok());
  EXPECT_THAT(Listed(), ElementsAre("10gb@1 ::10::0", "10gb@2 ::10::1"));
}

TEST_F(NebulyGpusTest, EnableFailsWhileKubeletDoesNotAnswer) {
  trouble_ = {Code::kUnavailable, "not now"};
  EXPECT_EQ(shares_.EnableMps(0).code(), Code::kUnavailable);
  EXPECT_FALSE(shares_.AnyShared());
}

TEST_F(NebulyGpusTest, HeldShareKeepsLowerNumbers) {
  ASSERT_TRUE(shares_.EnableMps(0).ok());
  Adopt({Id("::10::2")});
  EXPECT_THAT(Listed(), ElementsAre("10gb@0 ::10::2", "10gb@1 ::10::0", "10gb@2 ::10::1"));
  ASSERT_TRUE(shares_.Destroy(0, shares_.ListInstances(0)->at(1).id).ok());
  Adopt({Id("::10::2")});
  EXPECT_EQ(Listed().size(), 3u);
}

TEST_F(NebulyGpusTest, AdoptsLowerNumbersOnlyAsFarAsTheyFit) {
  ASSERT_TRUE(shares_.EnableMps(0).ok());
  Adopt({Id("::10::2"), Id("::15::0")});
  EXPECT_THAT(Listed(), ElementsAre("10gb@0 ::10::2", "15gb@1 ::15::0", "10gb@2 ::10::0"));
  // Shares that no pod has held are removed for it.
  Adopt({Id("::10::1")});
  EXPECT_THAT(Listed(), ElementsAre("10gb@0 ::10::2", "15gb@1 ::15::0", "10gb@3 ::10::1"));
  Adopt({Id("::10::1"), Id("::10::2"), Id("::15::0")});
  EXPECT_EQ(Listed().size(), 3U) << "nor does it come back";
}

TEST_F(NebulyGpusTest, RestoresHeldSharesBeyondCapacity) {
  ASSERT_TRUE(shares_.EnableMps(0).ok());
  Adopt({Id("::20::0"), Id("::20::1")});
  EXPECT_THAT(Listed(), ElementsAre("20gb@0 ::20::0", "20gb@1 ::20::1"));
}

TEST_F(NebulyGpusTest, AdoptsOfferedSharesOnlyAsFarAsTheyFit) {
  offered_ = {Id("::15::0"), Id("::10::2"), Id("::10::1"), Id("::10::0")};
  ASSERT_TRUE(shares_.EnableMps(0).ok());
  EXPECT_THAT(Listed(), ElementsAre("10gb@0 ::10::0", "10gb@1 ::10::1", "10gb@2 ::10::2"));
  // The shares held by pods are reported afterwards.
  Adopt({Id("::10::2"), Id("::15::0")});
  EXPECT_THAT(Listed(), ElementsAre("10gb@0 ::10::0", "10gb@2 ::10::2", "15gb@3 ::15::0"));
}

// Such a share may still be offered when another GPU enters MPS mode.
TEST_F(NebulyGpusTest, DoesNotAdoptOfferedSharesOfOtherGpusAgain) {
  offered_ = {Id("::10::0")};
  ASSERT_TRUE(shares_.EnableMps(0).ok());
  ASSERT_TRUE(shares_.Destroy(0, shares_.ListInstances(0)->front().id).ok());
  ASSERT_TRUE(shares_.EnableMps(1).ok());
  EXPECT_THAT(Listed(), IsEmpty());
}

TEST_F(NebulyGpusTest, KeepsSharesThatWereHeldBefore) {
  ASSERT_TRUE(shares_.EnableMps(0).ok());
  ASSERT_TRUE(shares_.Create(0, "20gb", 0).ok());
  Adopt({Id("::20::0")});
  Adopt({});  // a kubelet that has just started reports no assignments
  Adopt({Id("::15::0"), Id("::10::0")});
  EXPECT_THAT(Listed(), ElementsAre("20gb@0 ::20::0", "10gb@1 ::10::0", "15gb@2 ::15::0"));
}

// Lacks the first GPU until it is `whole`.
class LateFirst final : public Backend {
 public:
  explicit LateFirst(Backend& backend) : backend_(backend) {}
  bool whole = false;

  Result<std::vector<GpuInfo>> ListGpus() override {
    NOS_ASSIGN(std::vector<GpuInfo> infos, backend_.ListGpus());
    if (whole) return infos;
    infos.erase(infos.begin());
    for (GpuInfo& info : infos) --info.index;
    return infos;
  }
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override {
    return backend_.ListInstances(At(gpu));
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
  int At(int gpu) const { return whole ? gpu : gpu + 1; }
  Backend& backend_;
};

TEST_F(NebulyGpusTest, AdoptsOfferedSharesOfLateGpu) {
  LateFirst late(gpus_);
  NebulyGpus shares(late, {}, [this]() -> Result<std::vector<std::string>> { return offered_; });
  ASSERT_TRUE(shares.EnableMps(0).ok());
  late.whole = true;  // the former GPU 0 is GPU 1 now
  offered_ = {Id("::10::0")};
  ASSERT_TRUE(shares.EnableMps(0).ok());
  EXPECT_EQ(shares.ListInstances(0)->size(), 1U);
}

TEST_F(NebulyGpusTest, DisablesMpsMode) {
  ASSERT_TRUE(shares_.EnableMps(0).ok());
  ASSERT_TRUE(shares_.DisableMps(0).ok());
  EXPECT_FALSE(shares_.AnyShared());
}

}  // namespace
}  // namespace nos::device
