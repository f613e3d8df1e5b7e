#include "agent/sharing/mig/dense.h"

#include <gmock/gmock.h>

namespace nos::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr const char* kSmall = "nvidia.com/mig-1g.5gb";

class DenseChoiceTest : public ::testing::Test {
 protected:
  // An instance "<gpu><letter>" of this profile; held by a pod if `held`.
  void Add(int gpu, const std::string& id, const std::string& profile, bool held = false) {
    if (std::ranges::find(devices_.gpus, gpu, &device::ObservedGpu::index) == devices_.gpus.end()) {
      devices_.gpus.push_back({gpu, gpu::Catalogue::Builtin().FindByName("A100-40GB"), true, {}});
    }
    auto& instances = std::ranges::find(devices_.gpus, gpu, &device::ObservedGpu::index)->instances;
    device::GpuInstance instance;
    instance.gpu = gpu;
    instance.uuid = id;
    instance.profile = profile;
    instance.size = profile == "3g.20gb" ? 4 : 1;
    instances.push_back(instance);
    if (held) devices_.holders[id] = "team/pod";
  }
  std::vector<std::string> Prefer(std::vector<std::string> available, int size,
                                  std::vector<std::string> must = {}) {
    DenseChoice dense;
    dense.Look(devices_);
    return dense.Prefer({kSmall, std::move(available), std::move(must), size});
  }
  NodeDevices devices_;
};

TEST_F(DenseChoiceTest, FillsTheFullestGpu) {
  Add(0, "0a", "1g.5gb");
  Add(0, "0b", "1g.5gb");
  Add(1, "1a", "1g.5gb");
  Add(1, "1b", "3g.20gb", /*held=*/true);
  Add(2, "2a", "1g.5gb");
  Add(2, "2b", "3g.20gb");
  EXPECT_THAT(Prefer({"0a", "0b", "1a", "2a"}, 1), ElementsAre("1a"));
}

TEST_F(DenseChoiceTest, TheKubeletKnowsWhichDevicesOfTheResourceAreFree) {
  Add(0, "0a", "1g.5gb");
  Add(0, "0b", "1g.5gb");
  Add(1, "1a", "1g.5gb");
  Add(1, "1b", "1g.5gb");
  EXPECT_THAT(Prefer({"0a", "0b", "1b"}, 1), ElementsAre("1b")) << "1a has just been given";
}

TEST_F(DenseChoiceTest, FewGpusBeforeFullGpus) {
  Add(0, "0a", "1g.5gb");
  Add(0, "0b", "3g.20gb", /*held=*/true);
  Add(1, "1a", "1g.5gb");
  Add(1, "1b", "1g.5gb");
  Add(2, "2a", "1g.5gb");
  Add(2, "2b", "1g.5gb");
  Add(2, "2c", "1g.5gb");
  EXPECT_THAT(Prefer({"0a", "1a", "1b", "2a", "2b", "2c"}, 2), UnorderedElementsAre("1a", "1b"));
  EXPECT_THAT(Prefer({"0a", "1a", "1b", "2a", "2b", "2c"}, 3),
              UnorderedElementsAre("2a", "2b", "2c"));
  EXPECT_THAT(Prefer({"0a", "1a", "1b", "2a", "2b", "2c"}, 4),
              UnorderedElementsAre("2a", "2b", "2c", "0a"));
}

TEST_F(DenseChoiceTest, StaysOnTheGpuOfRequiredDevices) {
  Add(0, "0a", "1g.5gb");
  Add(0, "0b", "1g.5gb");
  Add(1, "1a", "1g.5gb");
  Add(1, "1b", "3g.20gb", /*held=*/true);
  EXPECT_THAT(Prefer({"0a", "0b", "1a"}, 2, {"0b"}), ElementsAre("0b", "0a"));
  EXPECT_THAT(Prefer({"0a", "0b", "1a"}, 1, {"0b"}), ElementsAre("0b"));
}

TEST_F(DenseChoiceTest, LeavesOtherDevicesToTheKubelet) {
  Add(0, "0a", "1g.5gb");
  EXPECT_THAT(Prefer({"0a", "unknown"}, 1), IsEmpty());
  EXPECT_THAT(Prefer({"0a"}, 1, {"unknown"}), IsEmpty());
  EXPECT_THAT(Prefer({}, 1), IsEmpty());
  EXPECT_THAT(Prefer({"0a"}, 0), IsEmpty());
}

}  // namespace
}  // namespace nos::agent
