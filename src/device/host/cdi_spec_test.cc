#include "device/cdi_spec.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <set>
#include <thread>

#include "base/fd.h"
#include "base/file.h"
#include "device/host/fake_host_test.h"

namespace nos::device {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CdiSpecTest : public HostTest {
 protected:
  CdiSpec Spec() {
    Driver();
    CdiSpec spec{"nos.nebuly.com/gpu", FindDriverFiles(host_).value(), {}};
    spec.devices["MIG-1"] = {{"/dev/nvidia0", 195, 0}, {"/dev/nvidia-caps/nvidia-cap21", 235, 21}};
    return spec;
  }
  static std::string Mounted(const Json& spec, std::string_view container_path) {
    for (const Json& mount : spec.at("containerEdits").at("mounts").as_array()) {
      if (FindString(mount, "containerPath") == container_path) {
        return std::string(FindString(mount, "hostPath"));
      }
    }
    return "";
  }
};

TEST_F(CdiSpecTest, DeviceHasItsNodesAndTheDriverIsShared) {
  const Json spec = ToJson(Spec());
  EXPECT_EQ(FindString(spec, "kind"), "nos.nebuly.com/gpu");
  EXPECT_EQ(WriteJson(spec.at("devices")),
            R"([{"name":"MIG-1","containerEdits":{"deviceNodes":[)"
            R"({"path":"/dev/nvidia0","permissions":"rw","type":"c","major":195,"minor":0},)"
            R"({"path":"/dev/nvidia-caps/nvidia-cap21","permissions":"rw","type":"c",)"
            R"("major":235,"minor":21}]}}])")
      << "with numbers the runtime needs no nodes on the host";
  const Json& edits = spec.at("containerEdits");
  EXPECT_EQ(WriteJson(edits.at("env")), R"(["NVIDIA_VISIBLE_DEVICES=void"])");
  EXPECT_EQ(
      WriteJson(edits.at("deviceNodes")),
      R"([{"path":"/dev/nvidiactl","permissions":"rw","type":"c","major":195,"minor":255},)"
      R"({"path":"/dev/nvidia-uvm","permissions":"rw","type":"c","major":511,"minor":0},)"
      R"({"path":"/dev/nvidia-uvm-tools","permissions":"rw","type":"c","major":511,"minor":1}])");
  const std::string library = "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15";
  EXPECT_EQ(Mounted(spec, "/usr/lib/x86_64-linux-gnu/libcuda.so.1"), library);
  EXPECT_EQ(Mounted(spec, "/usr/lib64/libcuda.so.1"), library) << "no hook updates the cache";
  EXPECT_EQ(Find(edits, "hooks"), nullptr);
}

TEST_F(CdiSpecTest, HookOfTheToolkitUpdatesTheCache) {
  File("root/usr/bin/nvidia-ctk");
  const Json spec = ToJson(Spec());
  EXPECT_EQ(
      WriteJson(spec.at("containerEdits").at("hooks")),
      R"([{"hookName":"createContainer","path":"/usr/bin/nvidia-ctk",)"
      R"("args":["nvidia-ctk","hook","update-ldcache","--folder","/usr/lib/x86_64-linux-gnu"]}])");
  EXPECT_EQ(Mounted(spec, "/usr/lib64/libcuda.so.1"), "");
}

TEST_F(CdiSpecTest, HookGetsTheFolderOfTheContainer) {
  File("root/usr/bin/nvidia-ctk");
  host_.driver_host = "/run/nvidia/driver";
  const Json spec = ToJson(Spec());
  EXPECT_THAT(WriteJson(spec.at("containerEdits").at("hooks")),
              HasSubstr(R"("--folder","/usr/lib/x86_64-linux-gnu"])"));
}

TEST_F(CdiSpecTest, IsReplacedAsAWhole) {
  const std::string folder = root_ / "cdi", file = folder + "/nos.nebuly.com-gpu.json";
  CdiSpec spec = Spec();
  ASSERT_TRUE(WriteCdiSpec(folder, spec).ok());
  EXPECT_THAT(ReadFile(file).value(), HasSubstr("MIG-1"));
  spec.devices.clear();
  ASSERT_TRUE(WriteCdiSpec(folder, spec).ok());
  EXPECT_THAT(ReadFile(file).value(), Not(HasSubstr("MIG-1")));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2)
      << "the specification and the lock; no drafts stay";
  EXPECT_TRUE(RemoveCdiSpec(folder, spec.kind).ok());
  EXPECT_TRUE(RemoveCdiSpec(folder, spec.kind).ok()) << "it is gone already";
  EXPECT_FALSE(ReadFile(file).ok());
}

TEST_F(CdiSpecTest, WritersAtTheSameTimeLeaveAWholeFile) {
  const std::string folder = root_ / "cdi";
  CdiSpec small = Spec();
  CdiSpec large = small;
  for (int i = 2; i < 200; ++i) {
    large.devices[fmt::format("MIG-{}", i)] = small.devices.at("MIG-1");
  }
  const auto write = [&](const CdiSpec& spec) {
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(WriteCdiSpec(folder, spec).ok());
  };
  ASSERT_TRUE(WriteCdiSpec(folder, small).ok());
  std::thread one([&] { write(small); }), other([&] { write(large); });
  const std::set<std::string> whole = {WriteJson(ToJson(small)), WriteJson(ToJson(large))};
  for (int i = 0; i < 400; ++i) {
    EXPECT_TRUE(whole.contains(ReadFile(folder + "/nos.nebuly.com-gpu.json").value()));
  }
  one.join();
  other.join();
}

TEST_F(CdiSpecTest, ReaderOfTheFolderCannotStopTheWriter) {
  const std::string folder = root_ / "cdi";
  const CdiSpec spec = Spec();
  ASSERT_TRUE(WriteCdiSpec(folder, spec).ok());
  const UniqueFd reader(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(flock(reader.get(), LOCK_EX), 0);
  EXPECT_TRUE(WriteCdiSpec(folder, spec).ok());
  struct stat lock{};
  ASSERT_EQ(stat((folder + "/.nos.lock").c_str(), &lock), 0);
  EXPECT_EQ(lock.st_mode & 0777, 0600U) << "others cannot open it";
}

TEST_F(CdiSpecTest, NamesFolderThatCannotBeWritten) {
  File("cdi", "a file, not a folder");
  const CdiSpec spec = Spec();
  const Status status = WriteCdiSpec(root_ / "cdi", spec);
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr((root_ / "cdi").string()));
  EXPECT_EQ(WriteCdiSpec(root_ / "none" / "cdi", spec).code(), Code::kUnavailable);
}

}  // namespace
}  // namespace nos::device
