#include "device/mps_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "device/actuator.h"
#include "device/sim_gpus.h"

namespace nos::device {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const gpu::Model& Model(const char* name) { return *gpu::Catalogue::Builtin().FindByName(name); }

// GPU 0 is shared by MPS, GPU 1 is in MIG mode, GPU 2 is whole.
class MpsGpusTest : public testing::Test {
 protected:
  MpsGpusTest() { EXPECT_TRUE(shares_.EnableMps(0).ok()); }

  static std::vector<SimGpuSpec> Specs() {
    const gpu::Model& a100 = Model("A100-40GB");
    return {{&a100, "", false}, {&a100, "", true}, {&a100, "", false}};
  }
  std::string Uuid(int gpu) { return gpus_.ListGpus()->at(static_cast<size_t>(gpu)).uuid; }
  std::string Id(const std::string& rest) { return Uuid(0) + rest; }
  std::vector<std::string> Adopt(std::vector<std::string> ids) { return shares_.Adopt(ids); }
  // {"10gb@0", "5gb@1"}
  std::vector<std::string> Layout(MpsGpus& shares) {
    std::vector<std::string> names;
    const auto instances = shares.ListInstances(0);
    for (const GpuInstance& instance : *instances) {
      names.push_back(instance.profile + "@" + std::to_string(instance.start));
    }
    return names;
  }

  SimGpus gpus_{Specs(), "n"};
  MpsGpus shares_{gpus_};
};

TEST(MpsShare, ParsesOnlyCanonicalIds) {
  const MpsShare share{"GPU-8c41ee42-0b75-5a0e-8a6e-b1d1a3b0c9f1", 10, 3};
  const std::string id = MpsShareId(share);
  EXPECT_EQ(id, "GPU-8c41ee42-0b75-5a0e-8a6e-b1d1a3b0c9f1::10::3");
  EXPECT_LE(MpsShareId({share.gpu_uuid, 9999, 255}).size(), 63u) << "the kubelet's limit";
  EXPECT_EQ(ParseMpsShareId(id), share);
  for (const char* other : {"",
                            "::",
                            "::::",
                            "GPU-a::10",
                            "GPU-a::10::3::",
                            "GPU-a::10::3::4",
                            "GPU-a::010::3",
                            "GPU-a::10::+3",
                            "GPU-a::10::-1",
                            "GPU-a::0::3",
                            "GPU-a::-4::3",
                            "GPU-a::10::256",
                            "GPU-a::99999999999999999999::3",
                            "GPU-a::10000::0",
                            "GPU-a::10:: 3",
                            "GPU-a:10:3",
                            "GPU-a::10:x:3",
                            "GPU-::10::3",
                            "MIG-a::10::3",
                            "GPU-a/../b::10::3",
                            "GPU-a,b::10::3",
                            "GPU-a\n::10::3"}) {
    EXPECT_FALSE(ParseMpsShareId(other)) << other;
  }
  EXPECT_FALSE(ParseMpsShareId("GPU-" + std::string(60, 'a') + "::1::1"));
}

TEST(MpsShare, ProfilesAreWholeNumbersOfGib) {
  EXPECT_EQ(ParseMpsProfile("10gb"), 10);
  EXPECT_EQ(MpsProfile(10), "10gb");
  for (const char* other :
       {"", "gb", "0gb", "010gb", "-1gb", "1g.10gb", "10GB", "10gb ", "1.5gb"}) {
    EXPECT_FALSE(ParseMpsProfile(other)) << other;
  }
}

TEST_F(MpsGpusTest, ListsSharesAsInstances) {
  const auto made = shares_.Create(0, "10gb", 3);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->uuid, Id("::10::3"));
  EXPECT_TRUE(made->complete);
  ASSERT_TRUE(shares_.Create(0, "5gb", 0).ok());
  EXPECT_THAT(Layout(shares_), ElementsAre("5gb@0", "10gb@3"));
  EXPECT_EQ(shares_.ListInstances(0)->at(1).uuid, made->uuid);
  ASSERT_TRUE(shares_.Destroy(0, made->id).ok());
  EXPECT_EQ(shares_.Destroy(0, made->id).code(), Code::kNotFound);
  EXPECT_THAT(Layout(shares_), ElementsAre("5gb@0"));
  EXPECT_THAT(gpus_.Truth(0), IsEmpty()) << "the driver is not asked";
}

// 40960 MiB minus 512 MiB are 39.5 GiB.
TEST_F(MpsGpusTest, SubtractsOverheadFromMemoryAndRoundsDown) {
  EXPECT_EQ(shares_.ListGpus()->at(0).share_gib, 39);
  EXPECT_EQ(shares_.ListGpus()->at(1).share_gib, 0);
  const Status whole = shares_.Create(0, "40gb", 0).status();
  EXPECT_EQ(whole.code(), Code::kInvalid);
  EXPECT_EQ(whole.message(),
            "GPU 0 has 39 GiB for shares (40960 MiB less 512 MiB overhead): 40gb does not fit");
  ASSERT_TRUE(shares_.Create(0, "20gb", 0).ok());
  const Status second = shares_.Create(0, "20gb", 1).status();
  EXPECT_EQ(second.code(), Code::kExhausted);
  EXPECT_TRUE(shares_.Create(0, "19gb", 1).ok());
  EXPECT_EQ(shares_.Create(0, "1gb", 2).status().code(), Code::kExhausted);

  MpsGpus exact(gpus_, {.overhead_mib = 1024});
  ASSERT_TRUE(exact.EnableMps(0).ok());
  EXPECT_EQ(exact.ListGpus()->at(0).share_gib, 39);
  MpsGpus none(gpus_, {.overhead_mib = 50'000});
  EXPECT_EQ(none.EnableMps(0).code(), Code::kInvalid);
  EXPECT_EQ(none.ListGpus()->at(0).share_gib, 0);
  EXPECT_FALSE(none.Create(0, "1gb", 0).ok());
}

TEST_F(MpsGpusTest, LimitsSharesToNumberOfClients) {
  const gpu::Model& h200 = Model("H200-141GB");
  SimGpus large({{&h200, "", false}}, "large");
  MpsGpus shares(large, {.max_shares = 48});
  ASSERT_TRUE(shares.EnableMps(0).ok());
  std::set<std::string> ids;
  for (uint8_t start = 0; start < 48; ++start) {
    const auto made = shares.Create(0, "1gb", start);
    ASSERT_TRUE(made.ok()) << made.status().message();
    ids.insert(made->uuid);
  }
  EXPECT_EQ(ids.size(), 48u);
  const Status more = shares.Create(0, "1gb", 48).status();
  EXPECT_EQ(more.code(), Code::kExhausted);
  EXPECT_EQ(shares.Create(0, "1gb", 60).status().code(), Code::kInvalid);
  EXPECT_EQ(shares.ListGpus()->at(0).max_shares, 48);
}

// The limit was lowered while pods ran.
TEST_F(MpsGpusTest, KeepsHeldSharesBeyondLoweredLimit) {
  MpsGpus shares(gpus_, {.max_shares = 2});
  const std::string uuid = shares.ListGpus()->at(0).uuid;
  ASSERT_TRUE(shares.EnableMps(0).ok());
  const std::vector<std::string> held = {uuid + "::1::0", uuid + "::1::30", uuid + "::1::59"};
  EXPECT_THAT(shares.Adopt(held), IsEmpty());
  EXPECT_EQ(shares.SharesOn(0).size(), 3u);
  EXPECT_EQ(shares.Create(0, "1gb", 1).status().code(), Code::kExhausted);
}

TEST_F(MpsGpusTest, RefusesSecondShareWithSameNumber) {
  ASSERT_TRUE(shares_.Create(0, "5gb", 2).ok());
  EXPECT_EQ(shares_.Create(0, "5gb", 2).status().code(), Code::kExhausted);
  EXPECT_EQ(shares_.Create(0, "7gb", 2).status().code(), Code::kExhausted);
}

TEST_F(MpsGpusTest, ForwardsGpusInOtherModes) {
  ASSERT_TRUE(shares_.Create(1, "3g.20gb", 4).ok());
  EXPECT_EQ(gpus_.Truth(1).size(), 1u);
  EXPECT_EQ(shares_.ListInstances(1)->at(0).profile, "3g.20gb");
  EXPECT_TRUE(shares_.Destroy(1, shares_.ListInstances(1)->at(0).id).ok());
  EXPECT_EQ(shares_.Create(1, "10gb", 0).status().code(), Code::kInvalid);
  EXPECT_EQ(shares_.Create(0, "3g.20gb", 4).status().code(), Code::kInvalid);
  EXPECT_EQ(shares_.ListInstances(2).status().code(), Code::kUnimplemented) << "MIG is off there";
  EXPECT_EQ(shares_.Create(7, "10gb", 0).status().code(), Code::kNotFound);
  EXPECT_EQ(shares_.EnableMps(7).code(), Code::kNotFound);
}

TEST_F(MpsGpusTest, RefusesSecondModeOnOneGpu) {
  EXPECT_EQ(shares_.EnableMps(1).code(), Code::kInvalid);
  EXPECT_EQ(shares_.EnableMig(0).code(), Code::kUnavailable);
  const uint32_t id = shares_.Create(0, "5gb", 0)->id;
  EXPECT_TRUE(shares_.EnableMps(0).ok()) << "again";
  EXPECT_THAT(Layout(shares_), ElementsAre("5gb@0"));
  const Status leaves = shares_.DisableMps(0);
  EXPECT_EQ(leaves.code(), Code::kUnavailable);
  EXPECT_THAT(leaves.message(), HasSubstr(Id("::5::0")));
  ASSERT_TRUE(shares_.Destroy(0, id).ok());
  EXPECT_TRUE(shares_.DisableMps(0).ok());
  EXPECT_TRUE(shares_.DisableMps(0).ok()) << "again";
  EXPECT_EQ(shares_.ListInstances(0).status().code(), Code::kUnimplemented);
}

TEST_F(MpsGpusTest, SetsExclusiveProcessMode) {
  const auto mode = [&] { return *gpus_.ListGpus()->at(0).compute_mode; };
  EXPECT_EQ(mode(), ComputeMode::kExclusiveProcess);
  EXPECT_EQ(shares_.SetComputeMode(0, ComputeMode::kDefault).code(), Code::kUnavailable);
  gpus_.Reboot();
  EXPECT_EQ(mode(), ComputeMode::kDefault);
  EXPECT_TRUE(shares_.EnableMps(0).ok());
  EXPECT_EQ(mode(), ComputeMode::kExclusiveProcess);
  EXPECT_TRUE(shares_.DisableMps(0).ok());
  EXPECT_EQ(mode(), ComputeMode::kDefault);
  EXPECT_TRUE(shares_.SetComputeMode(0, ComputeMode::kExclusiveProcess).ok());
  EXPECT_TRUE(shares_.SetComputeMode(0, ComputeMode::kDefault).ok());
}

TEST(MpsGpus, RefusesSharesOutsideMpsMode) {
  bool fails = true;
  SimHooks hooks;
  hooks.fault = [&](const SimAttempt&) { return fails ? SimFault::kFails : SimFault::kNone; };
  SimGpus gpus({{&Model("A100-40GB"), "", false}}, "n", hooks);
  MpsGpus shares(gpus);
  EXPECT_EQ(shares.EnableMps(0).code(), Code::kInternal);
  EXPECT_EQ(shares.ListGpus()->at(0).share_gib, 0);
  fails = false;
  ASSERT_TRUE(shares.EnableMps(0).ok());
  fails = true;
  EXPECT_EQ(shares.DisableMps(0).code(), Code::kInternal);
  EXPECT_EQ(shares.ListGpus()->at(0).share_gib, 39) << "it has not left";
}

TEST_F(MpsGpusTest, RestoresHeldSharesAfterRestart) {
  EXPECT_THAT(Adopt({Id("::10::0"), "MIG-abc", "0", Uuid(1) + "::5::0", Id("::5::2"), Uuid(0)}),
              IsEmpty());
  EXPECT_THAT(Layout(shares_), ElementsAre("10gb@0", "5gb@2"));
  EXPECT_EQ(shares_.ListInstances(0)->at(0).uuid, Id("::10::0"));
  EXPECT_THAT(Adopt({Id("::10::0"), Id("::5::2")}), IsEmpty());
  EXPECT_THAT(Layout(shares_), ElementsAre("10gb@0", "5gb@2")) << "known before";
  EXPECT_EQ(shares_.Create(0, "25gb", 1).status().code(), Code::kExhausted) << "15 are taken";
  EXPECT_TRUE(shares_.Create(0, "24gb", 1).ok());
  EXPECT_EQ(shares_.DisableMps(0).code(), Code::kUnavailable);
}

TEST_F(MpsGpusTest, RestoresHeldShareWithoutCapacity) {
  ASSERT_TRUE(shares_.Create(0, "39gb", 0).ok());
  EXPECT_THAT(Adopt({Id("::10::0")}), IsEmpty()) << "made anew before the kubelet listed it";
  const auto both = shares_.ListInstances(0);
  ASSERT_EQ(both->size(), 2u);
  EXPECT_NE(both->at(0).id, both->at(1).id);
  EXPECT_NE(both->at(0).uuid, both->at(1).uuid);
  EXPECT_EQ(shares_.Create(0, "1gb", 1).status().code(), Code::kExhausted);
  const uint32_t free = both->at(0).profile == "39gb" ? both->at(0).id : both->at(1).id;
  ASSERT_TRUE(shares_.Destroy(0, free).ok());
  EXPECT_THAT(Layout(shares_), ElementsAre("10gb@0"));
}

// Its GPU had more memory when the share was created: without ECC, before a reboot.
TEST_F(MpsGpusTest, RestoresHeldShareLargerThanGpuMemory) {
  EXPECT_THAT(Adopt({Id("::41::0")}), IsEmpty());
  EXPECT_THAT(Layout(shares_), ElementsAre("41gb@0"));
  EXPECT_EQ(shares_.Create(0, "1gb", 1).status().code(), Code::kExhausted);
  EXPECT_EQ(shares_.DisableMps(0).code(), Code::kUnavailable) << "a pod holds it";
}

TEST_F(MpsGpusTest, RefusesInvalidIds) {
  for (const char* rest : {"::0::0", "::-1::0", "::256::0", "::9999::0", "::99999999999::0",
                           "::10::60", "::10::256", "::10::", "::10", "::10::0::0", "::1e1::0"}) {
    const auto refused = Adopt({Id(rest)});
    ASSERT_EQ(refused.size(), 1u) << rest;
    EXPECT_THAT(refused[0], HasSubstr(Id(rest)));
  }
  EXPECT_THAT(Adopt({"GPU-00000000-0000-0000-0000-000000000000::10::0"}), IsEmpty());
  EXPECT_THAT(Layout(shares_), IsEmpty());
  std::vector<std::string> many;
  for (int gib = 1; gib <= 20; ++gib) {
    for (int start = 0; start < 48; ++start) many.push_back(MpsShareId({Uuid(0), gib, start}));
  }
  EXPECT_EQ(Adopt(many).size(), many.size() - 60);
  EXPECT_EQ(shares_.ListInstances(0)->size(), 60u);
}

TEST_F(MpsGpusTest, KeepsSharesOfUnreadableGpu) {
  class Broken final : public ForwardingBackend {
   public:
    using ForwardingBackend::ForwardingBackend;
    Result<std::vector<GpuInfo>> ListGpus() override {
      auto infos = backend().ListGpus();
      if (broken) (*infos)[0].problem = "it has fallen off the bus";
      return infos;
    }
    bool broken = false;
  } broken(gpus_);
  MpsGpus shares(broken);
  ASSERT_TRUE(shares.EnableMps(0).ok());
  ASSERT_TRUE(shares.Create(0, "10gb", 0).ok());
  broken.broken = true;
  ASSERT_TRUE(shares.ListGpus().ok());
  EXPECT_EQ(shares.ListInstances(0).status().code(), Code::kUnavailable);
  EXPECT_EQ(shares.Create(0, "5gb", 1).status().code(), Code::kUnavailable);
  EXPECT_EQ(shares.DisableMps(0).code(), Code::kUnavailable);
  broken.broken = false;
  ASSERT_TRUE(shares.ListGpus().ok());
  EXPECT_THAT(Layout(shares), ElementsAre("10gb@0"));
}

TEST_F(MpsGpusTest, ShareHasNoReadings) {
  const GpuInstance share = shares_.Create(0, "10gb", 0).value();
  EXPECT_FALSE(shares_.MeasureInstance(share).Find(metric::kUtilization));
  EXPECT_TRUE(shares_.MeasureGpu(0).Find(metric::kUtilization));
}

// Follows a plan operation by operation, and keeps shares held by pods.
TEST_F(MpsGpusTest, AppliesLayoutOfShares) {
  ASSERT_THAT(Adopt({Id("::10::0"), Id("::20::1")}), IsEmpty());
  const int gib = shares_.ListGpus()->at(0).share_gib;
  const gpu::Model& model = gpu::SharesOf(gib);
  Target target{0, {}};
  for (const char* name : {"10gb@0", "7gb@2", "12gb@3"}) {
    target.placements.push_back(model.ParsePlacement(name).value());
  }
  const std::set<std::string> used = {Id("::10::0")};
  for (int step = 0; step < 10; ++step) {
    const std::vector<ObservedGpu> gpus = {{0, &model, true, *shares_.ListInstances(0), Uuid(0)}};
    const Progress progress = NextOperation(std::vector{target}, gpus, used);
    if (!progress.next) {
      EXPECT_THAT(progress.obstacles, IsEmpty());
      break;
    }
    EXPECT_TRUE(Apply(*progress.next, shares_).ok()) << progress.next->ToString();
  }
  EXPECT_THAT(Layout(shares_), testing::UnorderedElementsAre("10gb@0", "7gb@2", "12gb@3"));
}

TEST_F(MpsGpusTest, ReportsObstacleForShareWithoutCapacity) {
  ASSERT_THAT(Adopt({Id("::30::0")}), IsEmpty());
  const gpu::Model& model = gpu::SharesOf(shares_.ListGpus()->at(0).share_gib);
  const Target target{0, {model.ParsePlacement("20gb@1").value()}};
  const std::vector<ObservedGpu> gpus = {{0, &model, true, *shares_.ListInstances(0), Uuid(0)}};
  const Progress progress = NextOperation(std::vector{target}, gpus, {Id("::30::0")});
  EXPECT_FALSE(progress.next);
  ASSERT_FALSE(progress.obstacles.empty());
  EXPECT_EQ(progress.obstacles[0].code, "InUse");
}

TEST(SharesModel, ContainsAllExistingShares) {
  GpuInfo info;
  info.share_gib = 34;
  info.max_shares = 2;
  GpuInstance share;
  share.profile = "10gb";
  const std::vector<GpuInstance> two(2, share), four(4, share);
  EXPECT_EQ(&SharesModel(info, {}), &gpu::SharesOf(34, 2));
  EXPECT_EQ(&SharesModel(info, two), &gpu::SharesOf(34, 2));
  EXPECT_EQ(&SharesModel(info, four), &gpu::SharesOf(40, 4));
}

}  // namespace
}  // namespace nos::device
