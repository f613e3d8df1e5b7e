#include "agent/loop/device_offer.h"

#include <gmock/gmock.h>

#include "kube/testing/fake_api.h"
#include "kubelet/testing/fake_kubelet.h"

namespace nos::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kSlice = "nvidia.com/mig-1g.5gb";

// Two free instances, of which "MIG-b" is unwanted.
class DeviceOfferTest : public ::testing::Test {
 protected:
  DeviceOfferTest() {
    api_.Put({{"kind", "Node"},
              {"metadata", {{"name", "n"}}},
              {"status", {{"allocatable", {{kSlice, "2"}}}}}});
    device::ObservedGpu& gpu = round_.devices.gpus.emplace_back();
    gpu.model = gpu::Catalogue::Builtin().FindByName("A100-40GB");
    gpu.instances = {{0, 1, "MIG-a", "1g.5gb", 19, 0, 1}, {0, 2, "MIG-b", "1g.5gb", 19, 1, 1}};
    ReadNode();
  }
  void ReadNode() {
    round_.node = std::make_shared<const cluster::Node>(
        cluster::DecodeNode(*api_.Find("nodes", "n")).value());
  }
  // One reconciliation. Returns true if the node was written.
  bool Step() {
    offer_.Track(round_);
    EXPECT_TRUE(offer_.Publish(round_, clock_.Now()).ok());
    const auto written = offer_.UpdateAllocatable(round_, client_, clock_);
    EXPECT_TRUE(written.ok());
    ReadNode();
    return written.ok() && *written != nullptr;
  }

  ManualClock clock_{Time(seconds(1'000'000))};
  kube::FakeApi api_;
  kube::Client client_{api_};
  kubelet::FakeKubelet kubelet_;
  ObservedState round_;
  DeviceOffer offer_{
      {{milliseconds(200), seconds(15)}, {milliseconds(10), seconds(1)}}, kubelet_, kubelet_};
};

TEST_F(DeviceOfferTest, WithdrawsInstanceAfterNodeStoppedCountingIt) {
  EXPECT_FALSE(Step());
  round_.unwanted = {{"MIG-b", kSlice}};
  EXPECT_TRUE(Step());
  EXPECT_TRUE(kubelet_.Offers("MIG-b"));
  EXPECT_TRUE(offer_.IsDraining("MIG-b", clock_.Now()));
  EXPECT_EQ(offer_.NextDrained(round_, clock_.Now()), clock_.Now() + milliseconds(200));
  clock_.Advance(milliseconds(200));
  EXPECT_TRUE(offer_.WillWithdraw(round_, clock_.Now()));
  Step();
  EXPECT_FALSE(kubelet_.Offers("MIG-b"));
  EXPECT_FALSE(offer_.IsDraining("MIG-b", clock_.Now()));
}

TEST_F(DeviceOfferTest, AwaitsPodsThatWereBeingAdmittedAtTheWithdrawal) {
  Step();
  round_.unwanted = {{"MIG-b", kSlice}};
  Step();
  clock_.Advance(milliseconds(200));
  Step();
  round_.pending_admission[kSlice] = {"ml/a 1"};
  offer_.RecordAdmissions(round_);
  EXPECT_TRUE(offer_.IsAwaited("MIG-b", round_, clock_.Now()));
  round_.pending_admission[kSlice] = {"ml/later 2"};
  EXPECT_FALSE(offer_.IsAwaited("MIG-b", round_, clock_.Now()));
}

TEST_F(DeviceOfferTest, ClearsAllocatableOfOfferedResources) {
  Step();
  EXPECT_TRUE(offer_.ClearAllocatable(*round_.node, client_).ok());
  ReadNode();
  EXPECT_EQ(round_.node->allocatable.at(kSlice), Quantity::FromValue(0));
}

// Offers to the fake kubelet what `stale` says has to be offered again.
class StalePlugin final : public kubelet::DevicePlugin {
 public:
  explicit StalePlugin(kubelet::FakeKubelet& kubelet) : kubelet_(kubelet) {}
  Status Offer(const std::vector<kubelet::OfferedDevice>& devices) override {
    ++offers;
    return kubelet_.Offer(devices);
  }
  bool IsStale() const override { return stale; }

  bool stale = false;
  int offers = 0;

 private:
  kubelet::FakeKubelet& kubelet_;
};

TEST_F(DeviceOfferTest, MakesAStaleOfferAgain) {
  StalePlugin plugin(kubelet_);
  DeviceOffer offer({{milliseconds(200), seconds(15)}, {milliseconds(10), seconds(1)}}, plugin,
                    kubelet_);
  const auto publish = [&] { EXPECT_TRUE(offer.Publish(round_, clock_.Now()).ok()); };
  publish();
  publish();
  EXPECT_EQ(plugin.offers, 1) << "nothing has changed";
  EXPECT_TRUE(offer.UpdateAllocatable(round_, client_, clock_).ok());
  plugin.stale = true;
  publish();
  EXPECT_EQ(plugin.offers, 2) << "what containers need of the devices is missing";
  EXPECT_TRUE(offer.UpdateAllocatable(round_, client_, clock_).ok());
  EXPECT_FALSE(offer.look_again()) << "the kubelet has the same devices";
}

}  // namespace
}  // namespace nos::agent
