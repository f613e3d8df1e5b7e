#include "device/driver_files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "device/host/fake_host_test.h"

namespace nos::device {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class DriverFilesTest : public HostTest {};

TEST_F(DriverFilesTest, LibrariesHaveEveryNameThatProgramsLoad) {
  Driver();
  const auto files = FindDriverFiles(host_);
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_EQ(files->version, "550.54.15");
  EXPECT_EQ(files->library_folder, "/usr/lib/x86_64-linux-gnu");
  const std::string folder = "/usr/lib/x86_64-linux-gnu/";
  for (const char* name : {"libcuda.so", "libcuda.so.1", "libcuda.so.550.54.15"}) {
    EXPECT_THAT(files->mounts,
                Contains(DriverFile{folder + "libcuda.so.550.54.15", folder + name}));
  }
  EXPECT_THAT(files->mounts, Contains(DriverFile{"/usr/bin/nvidia-smi", "/usr/bin/nvidia-smi"}));
  for (const DriverFile& file : files->mounts) {
    EXPECT_THAT(file.host_path, Not(HasSubstr("libc.so"))) << "the container has its own";
    EXPECT_THAT(file.host_path, Not(HasSubstr("470"))) << "of another driver";
  }
  EXPECT_THAT(files->device_nodes, ElementsAre(DeviceNode{"/dev/nvidiactl", 195, 255},
                                               DeviceNode{"/dev/nvidia-uvm", 511, 0},
                                               DeviceNode{"/dev/nvidia-uvm-tools", 511, 1}));
  EXPECT_EQ(files->missing_node, "");
  EXPECT_EQ(files->hook, "");
}

// Their targets are names on the host, not in this process.
TEST_F(DriverFilesTest, FollowsLinksOfPrograms) {
  Driver("usr/lib/x86_64-linux-gnu/nvidia/current");
  File("root/usr/lib/nvidia/current/nvidia-smi");
  File("root/etc/alternatives/readme");
  Link("root/etc/alternatives/nvidia--nvidia-smi", "/usr/lib/nvidia/current/nvidia-smi");
  std::filesystem::remove(root_ / "root/usr/bin/nvidia-smi");
  Link("root/usr/bin/nvidia-smi", "/etc/alternatives/nvidia--nvidia-smi");
  Link("root/usr/bin/nvidia-debugdump", "../lib/nvidia/current/nvidia-smi");
  Link("root/usr/bin/nvidia-cuda-mps-control", "../../../../outside");
  Link("root/usr/bin/nvidia-cuda-mps-server", "nvidia-cuda-mps-server");
  File("outside");
  const auto files = FindDriverFiles(host_);
  ASSERT_TRUE(files.ok()) << files.status().message();
  for (const char* name : {"nvidia-smi", "nvidia-debugdump"}) {
    EXPECT_THAT(files->mounts, Contains(DriverFile{"/usr/lib/nvidia/current/nvidia-smi",
                                                   std::string("/usr/bin/") + name}));
  }
  for (const DriverFile& file : files->mounts) {
    EXPECT_THAT(file.container_path, Not(HasSubstr("mps"))) << file.host_path;
  }
}

TEST_F(DriverFilesTest, DriverMayLieBelowARootOfItsOwn) {
  Driver("usr/lib64");
  host_.driver_host = "/run/nvidia/driver";
  const auto files = FindDriverFiles(host_);
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_EQ(files->library_folder, "/usr/lib64");
  EXPECT_THAT(files->mounts,
              Contains(DriverFile{"/run/nvidia/driver/usr/lib64/libcuda.so.550.54.15",
                                  "/usr/lib64/libcuda.so.1"}));
}

TEST_F(DriverFilesTest, DriverOfAContainerIsFoundBelowTheHostsRoot) {
  Driver("run/nvidia/driver/usr/lib64");
  File("root/usr/local/nvidia/toolkit/nvidia-cdi-hook");
  const auto files = FindDriverFiles(host_);
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_EQ(files->library_folder, "/usr/lib64");
  EXPECT_THAT(files->mounts,
              Contains(DriverFile{"/run/nvidia/driver/usr/lib64/libcuda.so.550.54.15",
                                  "/usr/lib64/libcuda.so.1"}));
  EXPECT_EQ(files->hook, "/usr/local/nvidia/toolkit/nvidia-cdi-hook");
  EXPECT_EQ(PathOf("libnvidia-ml.so.1", *files, host_),
            host_.driver + "/run/nvidia/driver/usr/lib64/libnvidia-ml.so.550.54.15");
  host_.driver_host = "/opt/driver";
  EXPECT_FALSE(FindDriverFiles(host_).ok()) << "this is not the host's root";
}

TEST_F(DriverFilesTest, LibrariesAreThoseOfTheLoadedModule) {
  Driver("run/nvidia/driver/usr/lib64");
  File("root/usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01");  // left over
  const auto version_of = [&] { return FindDriverFiles(host_).value_or(DriverFiles()).version; };
  EXPECT_EQ(version_of(), "535.183.01") << "it is not known which one is loaded";
  File("proc/driver/nvidia/version",
       "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build\n"
       "GCC version:  gcc version 12.2.0\n");
  EXPECT_EQ(version_of(), "550.54.15");
  File("root/run/nvidia/driver/usr/lib64/libcuda.so.470.1");
  EXPECT_EQ(version_of(), "550.54.15");
  File("proc/driver/nvidia/version",
       "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.2  Tue\n");
  const auto files = FindDriverFiles(host_);
  EXPECT_EQ(files.status().code(), Code::kNotFound);
  EXPECT_THAT(files.status().message(), AllOf(HasSubstr("580.2"), HasSubstr("535.183.01")));
}

TEST_F(DriverFilesTest, SaysWhichModuleIsNotLoaded) {
  Driver();
  File("proc/devices", "Character devices:\n195 nvidia\n");
  auto files = FindDriverFiles(host_);
  ASSERT_TRUE(files.ok());
  EXPECT_THAT(files->missing_node, HasSubstr("/dev/nvidia-uvm"));
  File("dev/nvidia-uvm");
  files = FindDriverFiles(host_);
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->missing_node, "") << "the host has the node";
}

TEST_F(DriverFilesTest, AgentFindsLibrariesWithoutAContainerRuntime) {
  Driver();
  host_.driver_host = "/run/nvidia/driver";
  const auto files = FindDriverFiles(host_);
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_EQ(PathOf("libnvidia-ml.so.1", *files, host_),
            host_.driver + "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.15");
  EXPECT_EQ(PathOf("libother.so.1", *files, host_), "");
}

TEST_F(DriverFilesTest, SaysWhereNoDriverIs) {
  const auto files = FindDriverFiles(host_);
  EXPECT_EQ(files.status().code(), Code::kNotFound);
  EXPECT_THAT(files.status().message(), HasSubstr(host_.driver));
}

TEST_F(DriverFilesTest, AGpuHasItsOwnNode) {
  Gpu("GPU-a", 0);
  Gpu("GPU-b", 3);
  EXPECT_THAT(DeviceNodesOf("GPU-b", {}, host_).value(),
              ElementsAre(DeviceNode{"/dev/nvidia3", 195, 3}));
  EXPECT_EQ(DeviceNodesOf("GPU-c", {}, host_).status().code(), Code::kNotFound);
}

TEST_F(DriverFilesTest, AnInstanceHasTwoCapabilities) {
  Gpu("GPU-a", 1);
  Instance(1, 5, 75);
  EXPECT_THAT(DeviceNodesOf("GPU-a", 5, host_).value(),
              ElementsAre(DeviceNode{"/dev/nvidia1", 195, 1},
                          DeviceNode{"/dev/nvidia-caps/nvidia-cap75", 235, 75, 0444},
                          DeviceNode{"/dev/nvidia-caps/nvidia-cap76", 235, 76, 0444}))
      << "the nodes need not be on the host";
  EXPECT_EQ(DeviceNodesOf("GPU-a", 6, host_).status().code(), Code::kNotFound);
  File("proc/driver/nvidia/capabilities/gpu1/mig/gi7/access", "DeviceFileMinor: x\n");
  EXPECT_EQ(DeviceNodesOf("GPU-a", 7, host_).status().code(), Code::kNotFound);
}

TEST_F(DriverFilesTest, FindsAddressOnThePciBusAndMinorNumber) {
  Gpu("GPU-a", 1);
  EXPECT_EQ(PciBusIdOf("GPU-a", host_), "0000:01:00.0");
  EXPECT_EQ(PciBusIdOf("GPU-b", host_), "");
  EXPECT_EQ(MinorOf("GPU-a", host_), 1);
  EXPECT_EQ(MinorOf("GPU-b", host_), std::nullopt);
}

TEST_F(DriverFilesTest, NodesWithoutNumbersAreNotFound) {
  Gpu("GPU-a", 0);
  File("proc/devices", "Character devices:\n  1 mem\n");
  const Status status = DeviceNodesOf("GPU-a", {}, host_).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("/dev/nvidia0"));
}

TEST_F(DriverFilesTest, NumbersAreThoseOfTheNodeIfTheKernelListsNone) {
  host_.dev = "/dev";
  Gpu("GPU-a", 0);
  std::filesystem::remove(root_ / "proc/devices");
  EXPECT_EQ(DeviceNodesOf("GPU-a", {}, host_).status().code(), Code::kNotFound);
  host_.dev = root_ / "dev";
  std::filesystem::create_directories(root_ / "dev");
  std::filesystem::create_symlink("/dev/zero", root_ / "dev/nvidia0");
  EXPECT_THAT(DeviceNodesOf("GPU-a", {}, host_).value(),
              ElementsAre(DeviceNode{"/dev/nvidia0", 1, 5}));
}

TEST_F(DriverFilesTest, MakesMissingNodesOnTheHost) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes device nodes";
  std::filesystem::create_directories(root_ / "dev");
  const DeviceNode node{"/dev/nvidia-caps/nvidia-cap75", 1, 3, 0444};
  ASSERT_TRUE(MakeOnHost(node, host_).ok());
  struct stat made{};
  const std::string path = root_ / "dev/nvidia-caps/nvidia-cap75";
  ASSERT_EQ(stat(path.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode, static_cast<mode_t>(S_IFCHR | 0444));
  EXPECT_EQ(made.st_rdev, makedev(1, 3));
  const DeviceNode later{"/dev/nvidia-caps/nvidia-cap75", 1, 5, 0444};
  ASSERT_TRUE(MakeOnHost(later, host_).ok());
  ASSERT_EQ(stat(path.c_str(), &made), 0);
  EXPECT_EQ(made.st_rdev, makedev(1, 5)) << "the driver was loaded again, with another number";
  File("dev/file");
  const Status status = MakeOnHost({"/dev/file/nvidia-cap1", 1, 3}, host_);
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("dev/file/nvidia-cap1"));
}

}  // namespace
}  // namespace nos::device
