// Driver and kubelet's part together: what a pod with claims gets.
#include "sim/world/node/claim_driver.h"

#include <gtest/gtest.h>

#include <set>

#include "sim/api_server.h"
#include "sim/world/events/world_clock.h"
#include "sim/world/node/claim_keeper.h"
#include "sim/world/node/claim_manager.h"

namespace nos::sim {
namespace {

Json FromText(std::string_view text) { return ParseJson(text).value(); }

class ClaimDriverTest : public testing::Test {
 protected:
  ClaimDriverTest() { Start("H100-80GB"); }
  void Start(std::string_view model, bool mig = false) {
    const gpu::Model* found = gpu::Catalogue::Builtin().FindByName(model);
    device::SimHooks hooks;
    hooks.spend = [this](Duration time) { driver_->Spend(time); };
    hooks.fault = [this](const device::SimAttempt& attempt) {
      if (attempt.kind == device::SimAttempt::Kind::kDestroy && fail_destructions_ > 0) {
        --fail_destructions_;
        return device::SimFault::kFails;
      }
      if (attempt.kind != fails_ || fail_ == 0) return device::SimFault::kNone;
      --fail_;
      return device::SimFault::kFails;
    };
    gpus_ = std::make_unique<device::SimGpus>(
        std::vector<device::SimGpuSpec>{{found, "NVIDIA", mig}, {found, "NVIDIA", mig}}, "n",
        hooks);
    driver_ = std::make_unique<ClaimDriver>(
        "n", *gpus_, std::vector<const gpu::Model*>{found, found}, api_, clock_, log_,
        [this](std::string problem) { problems_.push_back(std::move(problem)); });
    manager_ = std::make_unique<ClaimManager>(client_);
    manager_->SetDriver(driver_.get());
  }
  // A pod with the claim of its name, which has these devices.
  cluster::Pod Add(const std::string& name, const std::vector<std::string>& devices,
                   const std::string& claim = "") {
    cluster::Pod pod;
    pod.meta.ns = "default";
    pod.meta.name = name;
    const auto made =
        client_.Create(kube::kPods, "default",
                       FromText(R"({"metadata":{"name":")" + name + R"("},"spec":{"nodeName":"n",
            "containers":[{"name":"c","image":"i"}],"resourceClaims":[{"name":"g",
            "resourceClaimName":")" +
                                (claim.empty() ? name : claim) + R"("}]}})"));
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    pod.meta.uid = FindString(*made, "metadata", "uid");
    if (!claim.empty()) return pod;
    EXPECT_TRUE(client_
                    .Create(kResourceClaims, "default",
                            FromText(R"({"metadata":{"name":")" + name + R"("},"spec":{"devices":{
            "requests":[{"name":"r","exactly":{"deviceClassName":"gpu.nvidia.com"}}]}}})"))
                    .ok());
    if (!devices.empty()) Allocate(name, devices, {pod});
    return pod;
  }
  void Allocate(const std::string& claim, const std::vector<std::string>& devices,
                const std::vector<cluster::Pod>& pods) {
    JsonArray results, consumers;
    for (const std::string& device : devices) {
      results.push_back(
          JsonObject{{"request", "r"}, {"driver", kGpuDriver}, {"pool", "n"}, {"device", device}});
    }
    for (const cluster::Pod& pod : pods) {
      consumers.push_back(
          JsonObject{{"resource", "pods"}, {"name", pod.meta.name}, {"uid", pod.meta.uid}});
    }
    const Json patch = JsonObject{
        {"status",
         JsonObject{{"allocation", JsonObject{{"devices", JsonObject{{"results", results}}}}},
                    {"reservedFor", consumers}}}};
    const auto written =
        client_.Patch(kResourceClaims, "default", claim, kube::PatchType::kMerge, patch, "status");
    EXPECT_TRUE(written.ok()) << written.status().ToString();
  }
  void Free(const std::string& claim) {
    EXPECT_TRUE(client_
                    .Patch(kResourceClaims, "default", claim, kube::PatchType::kMerge,
                           FromText(R"({"status":{"allocation":null,"reservedFor":null}})"),
                           "status")
                    .ok());
  }
  std::string Layout(int gpu) {
    std::string text;
    for (const auto& instance : gpus_->Truth(gpu)) {
      text += instance.profile + "@" + std::to_string(instance.start) + " ";
    }
    return text;
  }
  // Lets the driver's current work end.
  void Rest() { clock_.AdvanceTo(clock_.Now() + std::chrono::minutes(1)); }
  Code Prepare(const cluster::Pod& pod) {
    const Code code = manager_->Prepare(pod).status().code();
    Rest();
    return code;
  }
  Code Unprepare(const cluster::Pod& pod) {
    const Code code = manager_->Unprepare(pod.meta.uid).status().code();
    Rest();
    return code;
  }

  WorldClock clock_{Time(std::chrono::seconds(1'767'225'600))};
  ApiServer api_{clock_};
  EventLog log_{clock_, clock_.Now()};
  kube::Client client_{api_};
  std::unique_ptr<device::SimGpus> gpus_;
  std::unique_ptr<ClaimDriver> driver_;
  std::unique_ptr<ClaimManager> manager_;
  device::SimAttempt::Kind fails_ = device::SimAttempt::Kind::kCreate;
  int fail_ = 0;
  int fail_destructions_ = 0;
  std::vector<std::string> problems_;
};

TEST_F(ClaimDriverTest, AnnouncesItsDevicesOnce) {
  EXPECT_TRUE(driver_->Step());
  EXPECT_FALSE(driver_->announced()) << "there is no node yet";
  EXPECT_FALSE(driver_->Step());
  EXPECT_TRUE(client_.Create(kube::kNodes, "", FromText(R"({"metadata":{"name":"n"}})")).ok());
  clock_.AdvanceTo(*driver_->NextWake());
  EXPECT_TRUE(driver_->Step());
  EXPECT_TRUE(driver_->announced());
  EXPECT_FALSE(driver_->Step());
  const kube::Resource slices{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false};
  EXPECT_EQ(client_.List(slices, "", {}).value().items.size(), 3U);
  EXPECT_TRUE(client_.Delete(kube::kNodes, "", "n").ok());
  EXPECT_EQ(client_.List(slices, "", {}).value().items.size(), 0U) << "they go with their node";
}

TEST_F(ClaimDriverTest, CreatesTheInstanceWhereTheNameSays) {
  const cluster::Pod pod = Add("a", {"gpu-1-mig-3g40gb-9-4", "gpu-1-mig-1g10gb-19-2"});
  const auto ready = manager_->Prepare(pod);
  ASSERT_TRUE(ready.ok()) << ready.status().ToString();
  const device::SimLatency latency;
  EXPECT_EQ(*ready, latency.enable_mig + 2 * latency.create);
  EXPECT_EQ(Layout(0), "");
  EXPECT_EQ(Layout(1), "3g.40gb@4 1g.10gb@2 ");
  EXPECT_TRUE(driver_->Holds(gpus_->Truth(1)[0].uuid));
  Rest();
  EXPECT_EQ(manager_->Prepare(pod).value(), Duration{}) << "the call may be repeated";
  EXPECT_EQ(Unprepare(pod), Code::kOk);
  EXPECT_EQ(Layout(1), "");
  EXPECT_FALSE(gpus_->Info(1).mig_enabled);
  EXPECT_EQ(manager_->Unprepare(pod.meta.uid).value(), Duration{});
}

TEST_F(ClaimDriverTest, GpuThatNeedsAResetKeepsMigMode) {
  Start("A100-40GB", true);
  const cluster::Pod pod = Add("a", {"gpu-0-mig-1g5gb-19-0"});
  EXPECT_EQ(Prepare(pod), Code::kOk);
  EXPECT_EQ(Unprepare(pod), Code::kOk);
  EXPECT_TRUE(gpus_->Info(0).mig_enabled);
}

TEST_F(ClaimDriverTest, PodNeedsAnAllocatedClaimReservedForIt) {
  const cluster::Pod pod = Add("a", {});
  EXPECT_NE(Prepare(pod), Code::kOk);
  Allocate("a", {"gpu-0-mig-1g10gb-19-0"}, {});
  EXPECT_NE(Prepare(pod), Code::kOk) << "not reserved";
  EXPECT_EQ(Layout(0), "");
  Free("a");
  Allocate("a", {"gpu-0-mig-1g10gb-19-0"}, {pod});
  EXPECT_EQ(Prepare(pod), Code::kOk);
  EXPECT_NE(Prepare(Add("b", {}, "none")), Code::kOk) << "there is no such claim";
}

TEST_F(ClaimDriverTest, RefusesTheClaimOfAnotherUid) {
  Add("a", {"gpu-0-mig-1g10gb-19-0"});
  EXPECT_NE(driver_->Prepare({"default", "a", "another"}).status().code(), Code::kOk);
}

TEST_F(ClaimDriverTest, RefusesDevicesThatItDoesNotHave) {
  for (const char* device : {"gpu-2", "gpu-0-mig-1g10gb-19-7", "gpu-0-mig-1g10gb-77-0", "nic-0"}) {
    const cluster::Pod pod = Add(std::string("on-") + device, {device});
    EXPECT_NE(Prepare(pod), Code::kOk) << device;
  }
}

TEST_F(ClaimDriverTest, OverlapIsRefusedAndReported) {
  EXPECT_EQ(Prepare(Add("a", {"gpu-0-mig-3g40gb-9-0"})), Code::kOk);
  EXPECT_EQ(Prepare(Add("b", {"gpu-0-mig-1g10gb-19-4"})), Code::kOk);
  EXPECT_TRUE(problems_.empty());
  EXPECT_NE(Prepare(Add("c", {"gpu-0-mig-1g10gb-19-3"})), Code::kOk);
  EXPECT_EQ(problems_.size(), 1U);
  EXPECT_NE(Prepare(Add("d", {"gpu-0"})), Code::kOk) << "the whole GPU overlaps with its parts";
  EXPECT_EQ(problems_.size(), 2U);
  EXPECT_EQ(Layout(0), "3g.40gb@0 1g.10gb@4 ");
}

TEST_F(ClaimDriverTest, OverlapWithADeviceThatIsStillBeingFreedIsNoFault) {
  const cluster::Pod a = Add("a", {"gpu-0"}), b = Add("b", {});
  EXPECT_EQ(Prepare(a), Code::kOk);
  Free("a");  // a was deleted by force, and its containers still run
  Allocate("b", {"gpu-0-mig-1g10gb-19-3"}, {b});
  EXPECT_NE(Prepare(b), Code::kOk);
  EXPECT_TRUE(problems_.empty());
  EXPECT_EQ(Unprepare(a), Code::kOk);
  EXPECT_EQ(Prepare(b), Code::kOk);
}

TEST_F(ClaimDriverTest, ClaimIsPreparedWholeOrNotAtAll) {
  const cluster::Pod pod = Add("a", {"gpu-0-mig-1g10gb-19-0", "gpu-1-mig-1g10gb-19-0"});
  EXPECT_EQ(Prepare(Add("b", {"gpu-0-mig-1g10gb-19-6"})), Code::kOk);
  fail_ = 1;
  EXPECT_NE(Prepare(pod), Code::kOk);
  EXPECT_EQ(Layout(0), "1g.10gb@6 ");
  EXPECT_EQ(Prepare(pod), Code::kOk);
  EXPECT_EQ(Layout(1), "1g.10gb@0 ");
}

// Seeds 46, 60 and 94 of the fault simulation: the instance of the first device stayed for ever.
TEST_F(ClaimDriverTest, WhatCouldNotBeTakenBackDoesNotStay) {
  ASSERT_TRUE(gpus_->EnableMig(1).ok());
  ASSERT_TRUE(gpus_->Create(1, "7g.80gb", 0).ok());
  const cluster::Pod pod = Add("a", {"gpu-0-mig-1g10gb-19-0", "gpu-1-mig-1g10gb-19-0"});
  fail_destructions_ = 1;
  EXPECT_NE(Prepare(pod), Code::kOk) << "the second device has no room";
  Free("a");
  Allocate("a", {"gpu-0-mig-1g10gb-19-0"}, {pod});
  EXPECT_EQ(Prepare(pod), Code::kOk);
  EXPECT_EQ(Layout(0), "1g.10gb@0 ");
}

TEST_F(ClaimDriverTest, FailedDestructionIsRepeated) {
  const cluster::Pod pod = Add("a", {"gpu-0-mig-1g10gb-19-0", "gpu-1-mig-1g10gb-19-0"});
  EXPECT_EQ(Prepare(pod), Code::kOk);
  fails_ = device::SimAttempt::Kind::kDestroy;
  fail_ = 1;
  EXPECT_NE(Unprepare(pod), Code::kOk);
  EXPECT_EQ(Unprepare(pod), Code::kOk);
  EXPECT_EQ(Layout(0) + Layout(1), "");
}

// Seed 1096 of the fault simulation: the next pod of a shared claim ran on what was left.
TEST_F(ClaimDriverTest, ClaimThatIsTakenBackInPartIsPreparedAnew) {
  const cluster::Pod pod = Add("a", {"gpu-0-mig-1g10gb-19-0", "gpu-1-mig-1g10gb-19-0"});
  EXPECT_EQ(Prepare(pod), Code::kOk);
  fails_ = device::SimAttempt::Kind::kDestroy;
  fail_ = 2;
  EXPECT_NE(Unprepare(pod), Code::kOk);
  fail_ = 0;
  EXPECT_EQ(Prepare(pod), Code::kOk);
  EXPECT_EQ(Layout(0) + Layout(1), "1g.10gb@0 1g.10gb@0 ");
}

TEST_F(ClaimDriverTest, CallsTakeTurns) {
  const Duration first = manager_->Prepare(Add("a", {"gpu-0-mig-1g10gb-19-0"})).value();
  const Duration second = manager_->Prepare(Add("b", {"gpu-0-mig-1g10gb-19-1"})).value();
  EXPECT_EQ(second, first + device::SimLatency().create);
  EXPECT_TRUE(manager_->Prepare(Add("c", {"gpu-1-mig-1g10gb-19-0"})).ok());
  EXPECT_EQ(manager_->Prepare(Add("d", {"gpu-1-mig-1g10gb-19-1"})).status().code(), Code::kDeadline)
      << "two changes of the mode take longer than a call waits";
}

TEST_F(ClaimDriverTest, SharedClaimIsFreedWithItsLastPod) {
  const cluster::Pod a = Add("a", {}), b = Add("b", {}, "a");
  Allocate("a", {"gpu-0-mig-1g10gb-19-0"}, {a, b});
  EXPECT_EQ(Prepare(a), Code::kOk);
  EXPECT_EQ(Prepare(b), Code::kOk);
  EXPECT_EQ(Unprepare(a), Code::kOk);
  EXPECT_EQ(Layout(0), "1g.10gb@0 ");
  EXPECT_EQ(Unprepare(b), Code::kOk);
  EXPECT_EQ(Layout(0), "");
}

TEST_F(ClaimDriverTest, RebootForgets) {
  const cluster::Pod pod = Add("a", {"gpu-0-mig-1g10gb-19-0"});
  EXPECT_EQ(Prepare(pod), Code::kOk);
  gpus_->Reboot();
  driver_->Forget();
  manager_->Forget();
  EXPECT_TRUE(driver_->Held().empty());
  EXPECT_EQ(Prepare(pod), Code::kOk);
  EXPECT_EQ(Layout(0), "1g.10gb@0 ");
}

// The pool's slices, by the numbers of their devices, and their generations.
struct Pool {
  std::vector<size_t> devices;
  std::set<int64_t> generations;
};

class PublicationTest : public ClaimDriverTest {
 protected:
  PublicationTest() {
    EXPECT_TRUE(client_.Create(kube::kNodes, "", FromText(R"({"metadata":{"name":"n"}})")).ok());
    Settle();
  }
  void Settle() {
    for (int i = 0; i < 100 && !driver_->announced(); ++i) {
      (void)driver_->Step();
      clock_.AdvanceTo(clock_.Now() + std::chrono::seconds(1));
    }
  }
  Pool Read() {
    Pool pool;
    const kube::Resource slices{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false};
    const auto list = client_.List(slices, "", {});
    for (size_t i = 0; list.ok() && i < list->items.size(); ++i) {
      const Json& slice = list->items[i];
      const Json* devices = Find(slice, "spec", "devices");
      const bool some = devices != nullptr && devices->is_array();
      pool.devices.push_back(some ? devices->get_array().size() : 0);
      pool.generations.insert(Find(slice, "spec", "pool", "generation")->get_int64());
    }
    return pool;
  }
};

TEST_F(PublicationTest, VanishedDriverHasNoSlicesAndRefusesClaims) {
  const Pool before = Read();
  ASSERT_EQ(before.devices.size(), 3U);
  const cluster::Pod pod = Add("p", {"gpu-0"});
  driver_->Vanish();
  Settle();
  EXPECT_TRUE(Read().devices.empty());
  EXPECT_EQ(Prepare(pod), Code::kUnavailable);
  driver_->Return();
  Settle();
  EXPECT_EQ(Read().devices, before.devices);
  EXPECT_GT(*Read().generations.begin(), *before.generations.begin());
  EXPECT_EQ(Prepare(pod), Code::kOk);
  EXPECT_EQ(driver_->PreparedFor(std::string(FindString(
                client_.Get(kResourceClaims, "default", "p").value(), "metadata", "uid"))),
            std::vector<std::string>{"gpu-0"});
}

TEST_F(PublicationTest, HiddenDevicesAreNeitherListedNorPrepared) {
  const cluster::Pod pod = Add("p", {"gpu-1"});
  driver_->Publish({.hidden_gpus = {1}, .tainted_gpus = {}});
  Settle();
  EXPECT_EQ(Read().devices.back(), 0U);
  EXPECT_EQ(Prepare(pod), Code::kUnavailable);
}

TEST_F(PublicationTest, SlowPublicationLeavesTwoGenerationsForAWhile) {
  driver_->Publish({.hidden_gpus = {}, .tainted_gpus = {}, .between = std::chrono::seconds(10)});
  (void)driver_->Step();
  EXPECT_EQ(Read().generations.size(), 2U);
  Settle();
  EXPECT_EQ(Read().generations.size(), 1U);
}

TEST_F(PublicationTest, DefectsContradictThePool) {
  using Defect = ClaimDriver::Publication::Defect;
  const size_t whole = Read().devices.size();
  for (const auto& [defect, slices] :
       {std::pair(Defect::kMissingSlice, whole - 1), std::pair(Defect::kNoCounters, whole - 1),
        std::pair(Defect::kDuplicateDevice, whole + 1), std::pair(Defect::kNone, whole)}) {
    driver_->Publish({.defect = defect, .hidden_gpus = {}, .tainted_gpus = {}});
    Settle();
    EXPECT_EQ(Read().devices.size(), slices);
  }
}

}  // namespace
}  // namespace nos::sim
