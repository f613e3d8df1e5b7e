#include "agent/device_plugin/host_devices.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/file.h"
#include "device/sim_gpus.h"

namespace nos::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class HostDevicesTest : public ::testing::Test {
 protected:
  HostDevicesTest() {
    std::string pattern = fs::temp_directory_path() / "nos-host-XXXXXX";
    root_ = mkdtemp(pattern.data());
    File("root/usr/lib64/libcuda.so.550.1");
    File("proc/devices", "Character devices:\n195 nvidia\n235 nvidia-caps\n511 nvidia-uvm\n");
    gpu_ = gpus_.ListGpus().value().at(0).uuid;
    File("proc/driver/nvidia/gpus/0000:01:00.0/information",
         "GPU UUID: " + gpu_ + "\nDevice Minor: 4\n");
  }
  ~HostDevicesTest() override { fs::remove_all(root_); }

  void File(const std::string& path, const std::string& text = "") const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  // An instance, which the driver lists as a capability if `listed`.
  device::GpuInstance Place(uint8_t start, bool listed) {
    const auto instance = gpus_.Create(0, "1g.5gb", start).value();
    const std::string folder =
        "proc/driver/nvidia/capabilities/gpu4/mig/gi" + std::to_string(instance.id);
    if (!listed) return instance;
    File(folder + "/access", "DeviceFileMinor: " + std::to_string(30 + 2 * start) + "\n");
    File(folder + "/ci0/access", "DeviceFileMinor: " + std::to_string(31 + 2 * start) + "\n");
    return instance;
  }
  HostDevices Make(const std::string& cdi_folder) {
    return {gpus_, {root_ / "root", "/", root_ / "proc", root_ / "dev"}, cdi_folder};
  }
  std::string Spec() const {
    return ReadFile(root_ / "cdi/nos.nebuly.com-gpu.json").value_or(std::string());
  }

  fs::path root_;
  device::SimGpus gpus_{{{gpu::Catalogue::Builtin().FindByName("A100-40GB"), ""}}, "n"};
  std::string gpu_;
};

TEST_F(HostDevicesTest, ContainersGetTheNodesOfTheirDeviceOnly) {
  const auto a = Place(0, true), b = Place(1, true);
  HostDevices devices = Make("");
  std::vector<kubelet::OfferedDevice> offer{{"nvidia.com/mig-1g.5gb", a.uuid},
                                            {"nvidia.com/mig-1g.5gb", b.uuid}};
  ASSERT_TRUE(devices.Update(offer, true).ok());
  EXPECT_TRUE(offer[0].healthy && offer[1].healthy);
  const auto grant = devices.FilesOf({b.uuid});
  ASSERT_TRUE(grant.ok()) << grant.status().message();
  EXPECT_THAT(
      grant->device_nodes,
      ElementsAre("/dev/nvidia-caps/nvidia-cap32", "/dev/nvidia-caps/nvidia-cap33",
                  "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia4", "/dev/nvidiactl"));
  EXPECT_EQ(grant->environment.at("NVIDIA_VISIBLE_DEVICES"), "void");
  EXPECT_THAT(grant->mounts,
              Contains(kubelet::ContainerGrant::Mount{"/usr/lib64/libcuda.so.550.1",
                                                      "/usr/lib64/libcuda.so.550.1", true}));
  EXPECT_EQ(devices.FilesOf({"MIG-unknown"}).status().code(), Code::kUnavailable);
  EXPECT_FALSE(fs::exists(root_ / "cdi"));
}

TEST_F(HostDevicesTest, KubeletGetsNodesThatAreMissingOnTheHost) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes device nodes";
  const auto a = Place(0, true);
  std::vector<kubelet::OfferedDevice> offer{{"nvidia.com/mig-1g.5gb", a.uuid}};
  HostDevices by_cdi = Make(root_ / "cdi");
  ASSERT_TRUE(by_cdi.Update(offer, true).ok());
  EXPECT_FALSE(fs::exists(root_ / "dev/nvidia-caps")) << "the specification has the numbers";
  HostDevices by_kubelet = Make("");
  ASSERT_TRUE(by_kubelet.Update(offer, true).ok());
  for (const char* node : {"nvidia4", "nvidia-caps/nvidia-cap30", "nvidia-caps/nvidia-cap31",
                           "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"}) {
    EXPECT_TRUE(fs::is_character_file(root_ / "dev" / node)) << node;
  }
}

// The toolkit's hook updates a container's cache of libraries, and only CDI runs it.
TEST_F(HostDevicesTest, KubeletMountsLibrariesWhereLoadersLook) {
  File("root/usr/bin/nvidia-ctk");
  const auto a = Place(0, true);
  HostDevices devices = Make("");
  std::vector<kubelet::OfferedDevice> offer{{"nvidia.com/mig-1g.5gb", a.uuid}};
  ASSERT_TRUE(devices.Update(offer, true).ok());
  const auto grant = devices.FilesOf({a.uuid});
  ASSERT_TRUE(grant.ok()) << grant.status().message();
  for (const char* folder : {"/usr/lib64", "/usr/lib/x86_64-linux-gnu"}) {
    EXPECT_THAT(grant->mounts, Contains(kubelet::ContainerGrant::Mount{
                                   "/usr/lib64/libcuda.so.550.1",
                                   std::string(folder) + "/libcuda.so.550.1", true}));
  }
}

TEST_F(HostDevicesTest, SpecificationThatIsLostIsWrittenAgain) {
  const auto a = Place(0, true);
  HostDevices devices = Make(root_ / "cdi");
  std::vector<kubelet::OfferedDevice> offer{{"nvidia.com/mig-1g.5gb", a.uuid}};
  ASSERT_TRUE(devices.Update(offer, true).ok());
  EXPECT_FALSE(devices.IsStale());
  fs::remove_all(root_ / "cdi");
  EXPECT_TRUE(devices.IsStale());
  ASSERT_TRUE(devices.Update(offer, false).ok());
  EXPECT_THAT(Spec(), HasSubstr(a.uuid));
  File("cdi/nos.nebuly.com-gpu.json", "{}");
  EXPECT_TRUE(devices.IsStale()) << "another program wrote it";
}

TEST_F(HostDevicesTest, SpecificationFollowsTheDriver) {
  const auto a = Place(0, true);
  HostDevices devices = Make(root_ / "cdi");
  std::vector<kubelet::OfferedDevice> offer{{"nvidia.com/mig-1g.5gb", a.uuid}};
  ASSERT_TRUE(devices.Update(offer, true).ok());
  EXPECT_THAT(Spec(), Not(HasSubstr("/dev/nvidia-modeset")));
  File("dev/nvidia-modeset");
  EXPECT_TRUE(devices.IsStale());
  ASSERT_TRUE(devices.Update(offer, false).ok());
  EXPECT_FALSE(devices.IsStale());
  EXPECT_THAT(Spec(), HasSubstr("/dev/nvidia-modeset"));
  fs::rename(root_ / "root/usr/lib64/libcuda.so.550.1", root_ / "root/usr/lib64/libcuda.so.580.2");
  EXPECT_TRUE(devices.IsStale());
  ASSERT_TRUE(devices.Update(offer, false).ok());
  EXPECT_THAT(Spec(), HasSubstr("libcuda.so.580.2"));
  fs::remove_all(root_ / "root");
  EXPECT_TRUE(devices.IsStale()) << "no pod may start until the driver is back";
}

TEST_F(HostDevicesTest, NothingIsOfferedWhileAModuleIsNotLoaded) {
  File("proc/devices", "Character devices:\n195 nvidia\n235 nvidia-caps\n");
  const auto a = Place(0, true);
  HostDevices devices = Make(root_ / "cdi");
  std::vector<kubelet::OfferedDevice> offer{{"nvidia.com/mig-1g.5gb", a.uuid}};
  EXPECT_EQ(devices.Update(offer, true).code(), Code::kNotFound);
  ASSERT_TRUE(devices.problem());
  EXPECT_EQ(devices.problem()->reason, "DriverNotLoaded");
  EXPECT_THAT(devices.problem()->message, HasSubstr("nvidia-uvm"));
  EXPECT_EQ(Spec(), "");
}

TEST_F(HostDevicesTest, SpecificationFollowsTheOffer) {
  const auto a = Place(0, true);
  HostDevices devices = Make(root_ / "cdi");
  std::vector<kubelet::OfferedDevice> offer{{"nvidia.com/mig-1g.5gb", a.uuid}};
  ASSERT_TRUE(devices.Update(offer, true).ok());
  EXPECT_THAT(Spec(), HasSubstr(a.uuid));
  EXPECT_THAT(Spec(), HasSubstr(gpu_)) << "MPS shares make their whole GPU visible";
  ASSERT_TRUE(gpus_.Destroy(0, a.id).ok());
  ASSERT_TRUE(devices.Update(offer, true).ok());
  EXPECT_THAT(Spec(), HasSubstr(a.uuid)) << "the kubelet may still hand it out";
  ASSERT_TRUE(devices.Update(offer, false).ok());
  EXPECT_THAT(Spec(), Not(HasSubstr(a.uuid)));
}

TEST_F(HostDevicesTest, DeviceWithoutNodesIsUnhealthy) {
  const auto a = Place(0, true), lost = Place(1, false);
  HostDevices devices = Make(root_ / "cdi");
  std::vector<kubelet::OfferedDevice> offer{{"nvidia.com/mig-1g.5gb", a.uuid},
                                            {"nvidia.com/mig-1g.5gb", lost.uuid},
                                            {"nvidia.com/gpu-10gb", gpu_ + "::10::0"}};
  ASSERT_TRUE(devices.Update(offer, true).ok());
  EXPECT_TRUE(offer[0].healthy);
  EXPECT_FALSE(offer[1].healthy);
  EXPECT_TRUE(offer[2].healthy);
  ASSERT_TRUE(devices.problem());
  EXPECT_EQ(devices.problem()->reason, "DeviceNodesNotFound");
  EXPECT_TRUE(devices.IsStale()) << "the driver may list it later";
  ASSERT_TRUE(gpus_.Destroy(0, lost.id).ok());
  ASSERT_TRUE(devices.Update(offer, true).ok());
  EXPECT_FALSE(devices.problem() || devices.IsStale()) << "the device is gone";
}

TEST_F(HostDevicesTest, NothingIsOfferedWithoutDriverOrFolder) {
  File("file", "no folder");
  std::vector<kubelet::OfferedDevice> offer;
  HostDevices unwritable = Make(root_ / "file/cdi");
  const Status status = unwritable.Update(offer, true);
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("file/cdi"));
  EXPECT_EQ(unwritable.problem()->reason, "SpecificationNotWritten");
  fs::remove_all(root_ / "root");
  HostDevices without = Make("");
  EXPECT_EQ(without.Update(offer, true).code(), Code::kNotFound);
  EXPECT_EQ(without.problem()->reason, "DriverFilesNotFound");
}

}  // namespace
}  // namespace nos::agent
