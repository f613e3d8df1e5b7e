#include "kubelet/pod_cgroups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kubelet/fixture_test.h"

namespace nos::kubelet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr const char* kUid = "0a2b61f5-8a3d-4d35-9d0e-0a61e6f5a2c1";
constexpr const char* kEscaped = "0a2b61f5_8a3d_4d35_9d0e_0a61e6f5a2c1";

class PodCgroupsTest : public ::testing::Test {
 protected:
  void Write(const std::string& folder, const std::string& file, const std::string& text) {
    std::filesystem::create_directories(Root() / folder);
    std::ofstream(Root() / folder / file) << text;
  }
  std::filesystem::path Root() const { return {folder_.path()}; }
  std::map<std::string, bool> Read() {
    auto pods = CgroupFolder(Root().string()).Read();
    EXPECT_TRUE(pods.ok()) << pods.status().ToString();
    return pods.ok() ? *pods : std::map<std::string, bool>();
  }

  TemporaryFolder folder_;
};

TEST_F(PodCgroupsTest, ReadsNamesOfSystemd) {
  const std::string burstable = "kubepods.slice/kubepods-burstable.slice/";
  Write(burstable + "kubepods-burstable-pod" + kEscaped + ".slice", "cgroup.events",
        "populated 1\nfrozen 0\n");
  Write("kubepods.slice/kubepods-podabc.slice", "cgroup.events", "populated 0\nfrozen 0\n");
  Write("system.slice/kubelet.service", "cgroup.procs", "17\n");
  EXPECT_THAT(Read(), ElementsAre(Pair(kUid, true), Pair("abc", false)));
}

TEST_F(PodCgroupsTest, ReadsNamesOfCgroupfs) {
  Write(std::string("kubepods/besteffort/pod") + kUid, "cgroup.events", "populated 1\n");
  Write("kubepods/podabc", "cgroup.events", "populated 0\n");
  EXPECT_THAT(Read(), ElementsAre(Pair(kUid, true), Pair("abc", false)));
}

// kind and k3s run kubelets with --cgroup-root.
TEST_F(PodCgroupsTest, FindsPodsBelowAnotherRoot) {
  Write(std::string("kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod") + kEscaped +
            ".slice",
        "cgroup.events", "populated 1\n");
  EXPECT_THAT(Read(), ElementsAre(Pair(kUid, true)));
}

TEST_F(PodCgroupsTest, ReadsProcessesOfVersionOne) {
  for (const char* controller : {"memory", "pids"}) {
    const std::string pod = std::string(controller) + "/kubepods/burstable/pod" + kUid;
    Write(pod, "cgroup.procs", "");
    Write(pod + "/c1", "cgroup.procs", "");
  }
  EXPECT_THAT(Read(), ElementsAre(Pair(kUid, false)));
  Write(std::string("pids/kubepods/burstable/pod") + kUid + "/c1", "cgroup.procs", "0\n");
  EXPECT_THAT(Read(), ElementsAre(Pair(kUid, true)))
      << "a process of another PID namespace is listed as 0";
}

TEST_F(PodCgroupsTest, NoPodDiffersFromNoView) {
  EXPECT_EQ(CgroupFolder(Root().string()).Read().status().code(), Code::kNotFound);
  EXPECT_EQ(CgroupFolder("/no/folder").Read().status().code(), Code::kNotFound);
  std::filesystem::create_directories(Root() / "kubepods.slice");
  EXPECT_THAT(Read(), IsEmpty());
}

}  // namespace
}  // namespace nos::kubelet
