#include "device/driver_files.h"

#include <gmock/gmock.h>

#include "device/host/fake_host_test.h"

namespace nos::device {
namespace {

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
  EXPECT_THAT(files->device_nodes, ElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm"));
  EXPECT_EQ(files->hook, "");
}

TEST_F(DriverFilesTest, DriverMayLieBelowARootOfItsOwn) {
  Driver("usr/lib64");
  host_.driver_host = "/run/nvidia/driver";
  const auto files = FindDriverFiles(host_);
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_EQ(files->library_folder, "/run/nvidia/driver/usr/lib64");
  EXPECT_THAT(files->mounts,
              Contains(DriverFile{"/run/nvidia/driver/usr/lib64/libcuda.so.550.54.15",
                                  "/usr/lib64/libcuda.so.1"}));
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
  EXPECT_THAT(DeviceNodesOf("GPU-b", {}, host_).value(), ElementsAre("/dev/nvidia3"));
  EXPECT_EQ(DeviceNodesOf("GPU-c", {}, host_).status().code(), Code::kNotFound);
}

TEST_F(DriverFilesTest, AnInstanceHasTwoCapabilities) {
  Gpu("GPU-a", 1);
  Instance(1, 5, 75);
  EXPECT_THAT(DeviceNodesOf("GPU-a", 5, host_).value(),
              ElementsAre("/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap75",
                          "/dev/nvidia-caps/nvidia-cap76"));
  EXPECT_EQ(DeviceNodesOf("GPU-a", 6, host_).status().code(), Code::kNotFound);
  File("proc/driver/nvidia/capabilities/gpu1/mig/gi7/access", "DeviceFileMinor: x\n");
  EXPECT_EQ(DeviceNodesOf("GPU-a", 7, host_).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace nos::device
