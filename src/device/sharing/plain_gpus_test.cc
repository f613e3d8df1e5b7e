#include "device/plain_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/mps_gpus.h"
#include "device/sim_gpus.h"

namespace nos::device {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// GPU 0 uses neither MIG nor MPS, GPU 1 is in MIG mode.
class PlainGpusTest : public testing::Test {
 protected:
  PlainGpusTest() { Give(plain_); }

  static std::vector<SimGpuSpec> Specs() {
    const gpu::Model& h100 = *gpu::Catalogue::Builtin().FindByName("H100-80GB");
    return {{&h100, "", false}, {&h100, "", true}};
  }
  static void Give(PlainGpus& gpus) {
    gpus.GiveWhole(true);
    EXPECT_TRUE(gpus.ListGpus().ok());
  }
  std::string Uuid(int gpu) { return gpus_.ListGpus()->at(static_cast<size_t>(gpu)).uuid; }
  std::vector<std::string> Ids(PlainGpus& gpus) {
    EXPECT_TRUE(gpus.ListGpus().ok());
    std::vector<std::string> ids;
    const auto instances = gpus.ListInstances(0);
    for (const GpuInstance& instance : *instances) ids.push_back(instance.uuid);
    return ids;
  }

  SimGpus gpus_{Specs(), "n"};
  MpsGpus shares_{gpus_};
  PlainGpus plain_{shares_};
};

TEST(TimeSliceTest, ParsesOnlyCanonicalIds) {
  const TimeSlice slice{"GPU-8c41ee42-0b75-5a0e-8a6e-b1d1a3b0c9f1", 6};
  const std::string id = TimeSliceId(slice);
  EXPECT_EQ(id, "GPU-8c41ee42-0b75-5a0e-8a6e-b1d1a3b0c9f1::time::6");
  EXPECT_LE(id.size(), 63u) << "the kubelet's limit";
  EXPECT_EQ(ParseTimeSliceId(id), slice);
  for (const char* other :
       {"", "::time::", "GPU-a", "GPU-a::time::", "GPU-a::time::01", "GPU-a::time::-1",
        "GPU-a::time::64", "GPU-a::time::1::time::1", "MIG-a::time::1", "GPU-a::10::1"}) {
    EXPECT_EQ(ParseTimeSliceId(other), std::nullopt) << other;
  }
}

TEST_F(PlainGpusTest, RefusesTimeSlicesBesideWholeGpu) {
  EXPECT_TRUE(plain_.Create(0, "shared", 0).ok());
  EXPECT_TRUE(plain_.Create(0, "shared", 4).ok());
  EXPECT_EQ(plain_.Create(0, "shared", 4).status().code(), Code::kExhausted);
  EXPECT_EQ(plain_.Create(0, "gpu", 0).status().code(), Code::kExhausted);
  EXPECT_THAT(Ids(plain_), ElementsAre(Uuid(0) + "::time::0", Uuid(0) + "::time::4"));
  const auto instances = plain_.ListInstances(0);
  for (const GpuInstance& instance : *instances) {
    EXPECT_TRUE(plain_.Destroy(0, instance.id).ok());
  }
  EXPECT_EQ(plain_.Create(0, "gpu", 0)->uuid, Uuid(0));
  EXPECT_EQ(plain_.Create(0, "shared", 1).status().code(), Code::kExhausted);
  EXPECT_EQ(plain_.Create(0, "gpu", 1).status().code(), Code::kInvalid);
  EXPECT_EQ(plain_.Create(1, "gpu", 0).status().code(), Code::kInvalid) << "in MIG mode";
}

TEST_F(PlainGpusTest, RefusesModeChangeWithInstances) {
  const GpuInstance whole = *plain_.Create(0, "gpu", 0);
  EXPECT_EQ(plain_.EnableMig(0).code(), Code::kUnavailable);
  EXPECT_EQ(plain_.ResetGpu(0).code(), Code::kUnavailable);
  EXPECT_EQ(plain_.EnableMps(0).code(), Code::kUnavailable);
  EXPECT_EQ(plain_.SetComputeMode(0, ComputeMode::kExclusiveProcess).code(), Code::kUnavailable);
  EXPECT_THAT(plain_.EnableMps(0).message(), HasSubstr(Uuid(0)));
  EXPECT_TRUE(plain_.Destroy(0, whole.id).ok());
  EXPECT_TRUE(plain_.ResetGpu(0).ok());
  EXPECT_TRUE(plain_.EnableMps(0).ok());
  EXPECT_EQ(plain_.ResetGpu(0).code(), Code::kUnavailable) << "it is shared";
  EXPECT_THAT(Ids(plain_), IsEmpty());
  EXPECT_TRUE(plain_.Create(0, "10gb", 0).ok());
  EXPECT_EQ(plain_.Create(0, "gpu", 0).status().code(), Code::kInvalid);
}

TEST_F(PlainGpusTest, RestoresInstancesHeldByPods) {
  PlainGpus next(shares_);
  const std::vector<std::string> held = {Uuid(0) + "::time::4", Uuid(1), "GPU-of-another-node",
                                         "MIG-x"};
  Give(next);
  EXPECT_THAT(next.Adopt(held), IsEmpty());
  EXPECT_THAT(Ids(next), ElementsAre(Uuid(0) + "::time::4"));
  EXPECT_THAT(next.Adopt(held), IsEmpty());
  EXPECT_EQ(Ids(next).size(), 1u) << "once";
  EXPECT_EQ(next.EnableMig(0).code(), Code::kUnavailable);
  next.GiveWhole(false);
  EXPECT_TRUE(next.EnableMps(0).ok()) << "whose business it is then";
}

TEST_F(PlainGpusTest, ForwardsAllCallsUnlessEnabled) {
  plain_.GiveWhole(false);
  EXPECT_EQ(plain_.ListInstances(0).status().code(), Code::kUnimplemented);
  EXPECT_EQ(plain_.Create(0, "gpu", 0).status().code(), Code::kInvalid);
  EXPECT_TRUE(plain_.EnableMig(0).ok());
}

}  // namespace
}  // namespace nos::device
