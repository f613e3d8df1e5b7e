#include "cmd/daemon/standby_devices.h"

#include <gtest/gtest.h>

#include "controllers/scheduler.h"
#include "kube/testing/fake_api.h"
#include "reconcile/runner.h"
#include "scheduling/configuration.h"

namespace nos::cmd {
namespace {

using std::chrono::seconds;

constexpr const char* kGroup = "resource.k8s.io/v1";

// Nodes with a device each, and a replica that stands by.
class StandbyDevicesTest : public testing::Test {
 protected:
  StandbyDevicesTest() {
    for (int i = 0; i < 60; ++i) AddNode("n" + std::to_string(i));
    api_.Put({{"apiVersion", kGroup},
              {"kind", "DeviceClass"},
              {"metadata", {{"name", "any"}}},
              {"spec", JsonObject{}}});
    runner_.Use(standby_.get());
  }
  void AddNode(const std::string& name) {
    const Json amounts = {{"cpu", "8"}, {"pods", "110"}};
    api_.Put({{"apiVersion", "v1"},
              {"kind", "Node"},
              {"metadata", {{"name", name}}},
              {"status", {{"allocatable", amounts}, {"capacity", amounts}}}});
    api_.Put({{"apiVersion", kGroup},
              {"kind", "ResourceSlice"},
              {"metadata", {{"name", name}}},
              {"spec",
               {{"driver", "d.io"},
                {"nodeName", name},
                {"pool", {{"name", name}, {"generation", 1}, {"resourceSliceCount", 1}}},
                {"devices", JsonArray{JsonObject{{"name", "d0"}}}}}}});
  }
  // A claim for one device and its pod, on any node or on `node`. `on`: the claim has its device.
  void AddPod(const std::string& name, const std::string& node, const std::string& on = "") {
    JsonObject claim = {
        {"apiVersion", kGroup},
        {"kind", "ResourceClaim"},
        {"metadata", {{"namespace", "ml"}, {"name", name}, {"uid", name + "-claim"}}},
        {"spec",
         {{"devices",
           {{"requests", JsonArray{{{"name", "r"},
                                    {"exactly",
                                     {{"deviceClassName", "any"},
                                      {"allocationMode", "ExactCount"},
                                      {"count", 1}}}}}}}}}}};
    if (!on.empty()) {
      const Json result = {{"request", "r"}, {"driver", "d.io"}, {"pool", on}, {"device", "d0"}};
      claim["status"] = {{"allocation", {{"devices", {{"results", JsonArray{result}}}}}}};
    }
    api_.Put(claim);
    JsonObject spec = {
        {"schedulerName", "nos-scheduler"},
        {"containers", JsonArray{{{"name", "main"}, {"image", "app:1"}}}},
        {"nodeSelector", {{"kubernetes.io/hostname", node}}},
        {"resourceClaims", JsonArray{{{"name", "gpu"}, {"resourceClaimName", name}}}}};
    if (node.empty()) spec.erase("nodeSelector");
    api_.Put({{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", {{"namespace", "ml"}, {"name", name}, {"uid", name + "-uid"}}},
              {"spec", std::move(spec)}});
  }
  void Settle() {
    for (int i = 0; i < 1000 && runner_.Step(clock_); ++i) {
    }
  }
  // The replica leads from now on.
  void Lead() {
    scheduler_.emplace(
        controllers::SchedulerConfig(),
        std::vector<controllers::SchedulerProfile>{{"nos-scheduler", framework_.get()}},
        gpu::Catalogue::Builtin(), controllers::SchedulerThreads(), nullptr, standby_->Take());
    runner_.Use(&*scheduler_);
    standby_.reset();
  }
  std::string NodeOf(const std::string& pod) {
    return std::string(FindString(*api_.Find("pods", "ml/" + pod), "spec", "nodeName"));
  }

  kube::FakeApi api_;
  ManualClock clock_{Time(seconds(1'000'000))};
  reconcile::Runner runner_{api_, {.watch_context = true}};
  std::unique_ptr<StandbyDevices> standby_ =
      std::make_unique<StandbyDevices>(gpu::Catalogue::Builtin());
  std::shared_ptr<scheduling::Framework> framework_ =
      scheduling::DefaultConfiguration({.partitioned_by = scheduling::PartitionedBy::kScheduler})
          .profiles.front()
          .framework;
  std::optional<controllers::Scheduler> scheduler_;
};

TEST_F(StandbyDevicesTest, IsReadyOnceTheDevicesOfAllNodesAreAtHand) {
  AddPod("p", "");
  EXPECT_FALSE(standby_->ready());
  EXPECT_TRUE(runner_.Step(clock_));
  EXPECT_FALSE(standby_->ready()) << "events are taken after some of the 60 nodes";
  Settle();
  EXPECT_TRUE(standby_->ready());
  EXPECT_TRUE(api_.writes.empty());
  AddNode("late");
  EXPECT_TRUE(runner_.Step(clock_));
  Settle();
  EXPECT_TRUE(standby_->ready());
}

// Also by what has changed while it stood by.
TEST_F(StandbyDevicesTest, SchedulerAllocatesWhatTheStandByHasFollowed) {
  AddPod("first", "", "n0");
  Settle();
  AddPod("second", "", "n1");
  AddNode("late");
  api_.Remove("resourceslices", "n2");
  Settle();
  AddPod("on-late", "");
  for (int i = 3; i < 60; ++i) api_.Remove("resourceslices", "n" + std::to_string(i));
  Lead();
  Settle();
  EXPECT_EQ(NodeOf("on-late"), "late") << "all others are gone or in use";
  AddPod("none-left", "");
  Settle();
  EXPECT_EQ(NodeOf("none-left"), "");
}

}  // namespace
}  // namespace nos::cmd
