#include "agent/nvidia_plugin.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kube/testing/fake_api.h"

namespace nos::agent {
namespace {

using kubelet::OfferedDevice;
using std::chrono::seconds;

class NvidiaPluginTest : public ::testing::Test {
 protected:
  void PutPlugin(const std::string& uid) {
    api_.Put({{"kind", "Pod"},
              {"metadata",
               {{"namespace", "gpu-operator"},
                {"name", "plugin-" + uid},
                {"uid", uid},
                {"labels", {{"app", "nvidia-device-plugin-daemonset"}}}}},
              {"spec", {{"nodeName", "gpu-1"}}}});
  }
  size_t Deletions() const {
    return static_cast<size_t>(std::count_if(api_.writes.begin(), api_.writes.end(),
                                             [](auto& r) { return r.method == "DELETE"; }));
  }

  kube::FakeApi api_;
  ManualClock clock_{Time(seconds(1'000'000))};
  std::vector<OfferedDevice> kubelet_;
  NvidiaPlugin plugin_{{.node = "gpu-1"}, api_, [this] { return kubelet_; }, clock_};
  const std::vector<OfferedDevice> devices_{{"nvidia.com/mig-1g.5gb", "MIG-a"},
                                            {"nvidia.com/mig-2g.10gb", "MIG-b"}};
};

TEST_F(NvidiaPluginTest, DoesNotRestartPluginIfKubeletListsAllDevices) {
  kubelet_ = devices_;
  kubelet_.push_back({"nvidia.com/gpu", "GPU-1"});  // not a MIG device
  PutPlugin("1");
  EXPECT_TRUE(plugin_.Offer(devices_).ok());
  EXPECT_EQ(Deletions(), 0u);
}

TEST_F(NvidiaPluginTest, RestartsPluginOnceAndWaitsForKubelet) {
  PutPlugin("1");
  EXPECT_EQ(plugin_.Offer(devices_).code(), Code::kUnavailable);
  EXPECT_EQ(Deletions(), 1u);
  PutPlugin("2");
  EXPECT_EQ(plugin_.Offer(devices_).code(), Code::kUnavailable);
  EXPECT_EQ(Deletions(), 1u) << "the plugin is still starting";
  kubelet_ = devices_;
  EXPECT_TRUE(plugin_.Offer(devices_).ok());
  EXPECT_EQ(Deletions(), 1u);
}

TEST_F(NvidiaPluginTest, TreatsSameIdWithOtherProfileAsNewDevice) {
  PutPlugin("1");
  kubelet_ = {{"nvidia.com/mig-3g.20gb", "MIG-a"}, {"nvidia.com/mig-2g.10gb", "MIG-b"}};
  EXPECT_EQ(plugin_.Offer(devices_).code(), Code::kUnavailable);
  EXPECT_EQ(Deletions(), 1u);
  kubelet_ = devices_;
  EXPECT_TRUE(plugin_.Offer(devices_).ok());
}

TEST_F(NvidiaPluginTest, RestartsPluginWithGrowingPauses) {
  std::vector<size_t> deletions;
  for (int second = 0; second < 100; ++second) {
    PutPlugin(std::to_string(second));
    EXPECT_FALSE(plugin_.Offer(devices_).ok());
    if (deletions.empty() || Deletions() > deletions.back()) deletions.push_back(Deletions());
    clock_.Advance(seconds(1));
  }
  EXPECT_EQ(deletions.size(), 3u) << "at 0, 20 and 60 seconds";
}

TEST_F(NvidiaPluginTest, RestartsPluginAtOnceWhenDevicesChange) {
  PutPlugin("1");
  EXPECT_FALSE(plugin_.Offer(devices_).ok());
  PutPlugin("2");
  EXPECT_FALSE(plugin_.Offer({devices_.front()}).ok());
  EXPECT_FALSE(api_.Find("pods", "gpu-operator/plugin-2") != nullptr);
}

TEST_F(NvidiaPluginTest, DoesNotRestartPluginForUnhealthyDevice) {
  PutPlugin("1");
  std::vector<OfferedDevice> devices = devices_;
  devices.push_back({"nvidia.com/mig-1g.5gb", "MIG-sick", /*healthy=*/false});
  kubelet_ = devices_;  // the plugin lists healthy devices only
  EXPECT_TRUE(plugin_.Offer(devices).ok());
  kubelet_ = devices;  // or it has not noticed yet
  EXPECT_TRUE(plugin_.Offer(devices).ok());
  EXPECT_EQ(Deletions(), 0u);
}

TEST_F(NvidiaPluginTest, AcceptsUnknownDeviceThatSurvivesARestart) {
  kubelet_ = devices_;
  kubelet_.push_back(
      {"nvidia.com/mig-9g.9gb", "MIG-c"});  // on a GPU that nos does not manage, or destroyed
  for (int second = 0; second < 3600; ++second) {
    PutPlugin("1");
    const bool right = plugin_.Offer(devices_).ok();
    EXPECT_EQ(right, second >= 20) << "time to start";
    clock_.Advance(seconds(1));
  }
  EXPECT_EQ(Deletions(), 1u);
  kubelet_.push_back({"nvidia.com/mig-2g.10gb", "MIG-d"});  // destroyed just now
  EXPECT_FALSE(plugin_.Offer(devices_).ok());
  EXPECT_EQ(Deletions(), 2u);
}

// The plugin's old pod ends slowly (30 s grace period, busy node): the kubelet keeps the old list
// for 25 s. A MIG device gets its old UUID when the same placement is created again.
TEST_F(NvidiaPluginTest, DoesNotAcceptDestroyedDeviceOfOursAsForeign) {
  PutPlugin("1");
  kubelet_ = devices_;
  ASSERT_TRUE(plugin_.Offer(devices_).ok());
  const std::vector<OfferedDevice> less = {devices_[0]};  // MIG-b is destroyed
  for (int second = 0; second < 25; ++second) {
    (void)plugin_.Offer(less);
    clock_.Advance(seconds(1));
  }
  kubelet_ = less;  // the new plugin has started
  EXPECT_TRUE(plugin_.Offer(less).ok());
  PutPlugin("2");
  EXPECT_FALSE(plugin_.Offer(devices_).ok());  // MIG-b is created again, at the same place
  kubelet_ = devices_;
  clock_.Advance(seconds(5));
  EXPECT_TRUE(plugin_.Offer(devices_).ok());
  clock_.Advance(std::chrono::hours(1));
  const size_t before = Deletions();
  PutPlugin("3");
  for (int second = 0; second < 3600; ++second) {  // and destroyed again
    (void)plugin_.Offer(less);
    clock_.Advance(seconds(1));
  }
  EXPECT_GT(Deletions(), before) << "the kubelet would hand out a destroyed device for ever";
}

TEST_F(NvidiaPluginTest, DoesNotAcceptDestroyedUnhealthyDeviceAsForeign) {
  PutPlugin("1");
  std::vector<OfferedDevice> devices = devices_;
  devices.push_back({"nvidia.com/mig-1g.5gb", "MIG-sick", /*healthy=*/false});
  kubelet_ = devices_;
  kubelet_.push_back({"nvidia.com/mig-1g.5gb", "MIG-sick"});
  ASSERT_TRUE(plugin_.Offer(devices).ok());
  for (int second = 0; second < 60; ++second) {  // the kubelet's list does not change
    EXPECT_FALSE(plugin_.Offer(devices_).ok());
    clock_.Advance(seconds(1));
  }
}

TEST_F(NvidiaPluginTest, ReportsMissingPlugin) {
  const Status offered = plugin_.Offer(devices_);
  EXPECT_EQ(offered.message(),
            "no pod of NVIDIA's device plugin on node gpu-1 has the labels "
            "app=nvidia-device-plugin-daemonset: is devicePlugin.selector right?");
  EXPECT_EQ(offered.code(), Code::kNotFound) << "an administrator must act";
}

}  // namespace
}  // namespace nos::agent
