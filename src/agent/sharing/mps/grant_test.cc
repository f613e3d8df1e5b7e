#include "agent/mps_grant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nos::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;
using Mount = kubelet::ContainerGrant::Mount;

constexpr const char* kResource = "nvidia.com/gpu-10gb";
constexpr const char* kPipes = "/run/nos/mps/GPU-a";

MpsGrantOptions Options() {
  MpsGrantOptions options;
  options.pipe_folder = [](const std::string& uuid) { return "/run/nos/mps/" + uuid; };
  options.serves = [](const std::string& uuid) { return uuid == "GPU-a"; };
  return options;
}

TEST(MpsGrant, ShareGrantsGpuWithMemoryLimit) {
  const auto grant = GrantMpsShares({kResource, {"GPU-a::10::3"}}, Options());
  ASSERT_TRUE(grant.ok()) << grant.status().message();
  EXPECT_THAT((*grant)->visible, ElementsAre("GPU-a"));
  EXPECT_THAT((*grant)->environment,
              UnorderedElementsAre(Pair("CUDA_MPS_PIPE_DIRECTORY", kPipes),
                                   Pair("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=10G")));
  EXPECT_THAT((*grant)->mounts, ElementsAre(Mount{kPipes, kPipes, false}));
}

TEST(MpsGrant, RefusesShareOfGpuWithoutDaemon) {
  MpsGrantOptions options = Options();
  const auto refused = GrantMpsShares({kResource, {"GPU-b::10::3"}}, options);
  EXPECT_EQ(refused.status().code(), Code::kUnavailable) << "without a daemon there is no limit";
  options.serves = nullptr;
  EXPECT_EQ(GrantMpsShares({kResource, {"GPU-a::10::3"}}, options).status().code(),
            Code::kUnavailable);
}

TEST(MpsGrant, PartGrantsInstanceWithMemoryLimit) {
  MpsGrantOptions options = Options();
  int limit = 10112;
  options.part_mib = [&](const std::string& uuid) { return uuid == "MIG-a" ? limit : 0; };
  const std::string resource = "nvidia.com/mig-3g.40gb.mps4";
  const auto grant = GrantMigParts({resource, {"MIG-a::mps4::3"}}, options, false);
  ASSERT_TRUE(grant.ok()) << grant.status().message();
  EXPECT_THAT((*grant)->visible, ElementsAre("MIG-a"));
  EXPECT_THAT((*grant)->environment,
              UnorderedElementsAre(Pair("CUDA_VISIBLE_DEVICES", "MIG-a"),
                                   Pair("CUDA_MPS_PIPE_DIRECTORY", "/run/nos/mps/MIG-a"),
                                   Pair("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=10112M")));
  EXPECT_THAT((*grant)->mounts,
              ElementsAre(Mount{"/run/nos/mps/MIG-a", "/run/nos/mps/MIG-a", false}));
  options.shm_folder = "/run/nos/mps-shm";
  const auto bounded = GrantMigParts({resource, {"MIG-a::mps4::3"}}, options, true);
  EXPECT_EQ((*bounded)->environment.at("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "25");
  EXPECT_EQ((*bounded)->mounts.size(), 2U);
  const auto several = GrantMigParts({resource, {"MIG-a::mps4::3", "MIG-a::mps4::1"}}, options, {});
  EXPECT_EQ(several.status().code(), Code::kInvalid);
  EXPECT_THAT(several.status().message(), HasSubstr("several containers"));
  limit = 0;
  EXPECT_EQ(GrantMigParts({resource, {"MIG-a::mps4::3"}}, options, false).status().code(),
            Code::kUnavailable)
      << "without a daemon there is no limit";
  EXPECT_FALSE(GrantMigParts({kResource, {"GPU-a::10::3"}}, options, false)->has_value());
  EXPECT_FALSE(GrantMigParts({"nvidia.com/mig-3g.40gb", {"MIG-a"}}, options, false)->has_value());
}

TEST(MpsGrant, LimitsMultiprocessorsInProportionToMemory) {
  MpsGrantOptions options = Options();
  int whole = 39;
  options.share_gib = [&](const std::string&) { return whole; };
  options.shm_folder = "/run/nos/mps-shm";
  const auto bound = [&](const std::string& id) {
    const auto grant = GrantMpsShares({kResource, {id}}, options);
    const auto& environment = (*grant)->environment;
    const auto found = environment.find("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    return found == environment.end() ? "" : found->second;
  };
  EXPECT_EQ(bound("GPU-a::10::3"), "25");
  EXPECT_EQ(bound("GPU-a::39::3"), "100");
  EXPECT_EQ(bound("GPU-a::50::3"), "100");
  whole = 139;
  EXPECT_EQ(bound("GPU-a::1::3"), "1");
  whole = 39;
  EXPECT_THAT(
      (*GrantMpsShares({kResource, {"GPU-a::10::3"}}, options))->mounts,
      ElementsAre(Mount{kPipes, kPipes, false}, Mount{"/run/nos/mps-shm", "/dev/shm", false}));
}

TEST(MpsGrant, RefusesShareIfMultiprocessorLimitIsUnknown) {
  MpsGrantOptions options = Options();
  options.share_gib = [](const std::string&) { return 0; };  // the driver does not answer
  const auto grant = GrantMpsShares({kResource, {"GPU-a::10::3"}}, options);
  EXPECT_EQ(grant.status().code(), Code::kUnavailable);
  EXPECT_THAT(grant.status().message(), HasSubstr("multiprocessors"));
}

TEST(MpsGrant, SeveralSharesOfOneGpuKeepLimitOfOneShare) {
  const auto grant = GrantMpsShares({kResource, {"GPU-a::10::3", "GPU-a::10::0"}}, Options());
  ASSERT_TRUE(grant.ok()) << grant.status().message();
  EXPECT_THAT((*grant)->visible, ElementsAre("GPU-a"));
  EXPECT_EQ((*grant)->environment.at("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), "0=10G");
  EXPECT_EQ((*grant)->mounts.size(), 1u);
}

TEST(MpsGrant, RefusesSharesOfTwoGpusForOneContainer) {
  const auto grant = GrantMpsShares({kResource, {"GPU-a::10::3", "GPU-b::10::0"}}, Options());
  EXPECT_EQ(grant.status().code(), Code::kInvalid);
  EXPECT_EQ(grant.status().message(),
            "2 shares of nvidia.com/gpu-10gb for one container are of GPUs GPU-a and GPU-b, and a "
            "program reaches the MPS daemon of one GPU only: ask for one larger share, or for one "
            "share in each of several containers");
}

TEST(MpsGrant, RefusesDevicesOfDifferentKinds) {
  for (const char* other : {"GPU-a::5::1", "GPU-a", "MIG-abc"}) {
    const auto grant = GrantMpsShares({kResource, {"GPU-a::10::3", other}}, Options());
    EXPECT_EQ(grant.status().code(), Code::kInvalid) << other;
  }
}

TEST(MpsGrant, IgnoresDevicesThatAreNotShares) {
  for (const char* id : {"MIG-abc", "GPU-a", "GPU-a::0", "GPU-a::x::y"}) {
    const auto grant = GrantMpsShares({"nvidia.com/gpu", {id}}, Options());
    ASSERT_TRUE(grant.ok());
    EXPECT_FALSE(grant->has_value()) << id;
  }
}

TEST(MpsGrant, PrefersSharesOfOneGpu) {
  kubelet::Choice choice{kResource,
                         {"GPU-a::10::0", "GPU-b::10::0", "GPU-b::10::1", "GPU-c::10::0",
                          "GPU-c::10::1", "GPU-c::10::2"},
                         {},
                         2};
  EXPECT_THAT(PreferOneGpu(choice), ElementsAre("GPU-b::10::0", "GPU-b::10::1"));
  choice.must_include = {"GPU-c::10::2"};
  EXPECT_THAT(PreferOneGpu(choice), ElementsAre("GPU-c::10::2", "GPU-c::10::0"));
  choice.size = 3;
  EXPECT_EQ(PreferOneGpu(choice).size(), 3u);
  choice.must_include = {"GPU-b::10::0"};
  EXPECT_THAT(PreferOneGpu(choice), ElementsAre()) << "GPU-b has only two";
  choice.must_include = {"GPU-b::10::0", "GPU-c::10::0"};
  choice.size = 2;
  EXPECT_THAT(PreferOneGpu(choice), ElementsAre());
  EXPECT_THAT(PreferOneGpu({kResource, {"GPU-a::10::0"}, {"GPU-a::10::0"}, 0}), ElementsAre());
  EXPECT_THAT(PreferOneGpu({kResource, {"GPU-a::10::0"}, {}, -1}), ElementsAre());
  EXPECT_THAT(PreferOneGpu({kResource, {"MIG-a", "MIG-b"}, {}, 1}), ElementsAre());
}

}  // namespace
}  // namespace nos::agent
