#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>

#include "agent/claim_service.h"
#include "agent/claims/fixture_test.h"
#include "device/forwarding_backend.h"
#include "device/mig_parts.h"
#include "device/shared_backend.h"
#include "kubelet/testing/dra_kubelet.h"
#include "kubelet/testing/fake_kubelet.h"
#include "reconcile/testing/scene.h"

namespace nos::agent {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

// One thread at a time in the fake.
class LockedApi final : public kube::Transport {
 public:
  explicit LockedApi(kube::Transport& api) : api_(api) {}
  Result<kube::ApiResponse> Do(const kube::ApiRequest& request) override {
    const std::lock_guard lock(mutex_);
    return api_.Do(request);
  }
  Result<std::unique_ptr<kube::WatchStream>> Watch(const kube::ApiRequest& request) override {
    const std::lock_guard lock(mutex_);
    NOS_ASSIGN(auto stream, api_.Watch(request));
    return std::unique_ptr<kube::WatchStream>(std::make_unique<Stream>(mutex_, std::move(stream)));
  }
  std::mutex& mutex() { return mutex_; }

 private:
  class Stream final : public kube::WatchStream {
   public:
    Stream(std::mutex& mutex, std::unique_ptr<kube::WatchStream> stream)
        : mutex_(mutex), stream_(std::move(stream)) {}
    std::optional<kube::WatchEvent> Next() override {
      const std::lock_guard lock(mutex_);
      return stream_->Next();
    }
    bool Ended() const override {
      const std::lock_guard lock(mutex_);
      return stream_->Ended();
    }
    void OnReady(std::function<void()>) override {}

   private:
    std::mutex& mutex_;
    std::unique_ptr<kube::WatchStream> stream_;
  };

  kube::Transport& api_;
  std::mutex mutex_;
};

// The simulated GPUs, as a backend that a queue owns.
class View final : public device::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
};

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

size_t CountOf(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class ClaimServiceTest : public ClaimTest {
 protected:
  void StartService(const std::string& extended_resources = "auto") {
    ClaimServiceOptions options;
    options.enabled = true;
    options.extended_resources = extended_resources;
    options.shares = shares_;
    options.time_slices = 3;
    options.node = kClaimNode;
    options.plugins = root_ / "plugins";
    options.registry = root_ / "registry";
    options.cdi_folder = root_ / "cdi";
    options.host = {root_ / "root", "/", root_ / "proc", root_ / "dev"};
    ClaimServiceCollaborators others{locked_, gpu::Catalogue::Builtin(), pods_};
    others.gpus = [this] { return shared_.ListGpus(); };
    others.make_backend = [this] { return std::make_unique<View>(shared_); };
    others.health = &health_;
    others.metrics = &metrics_;
    others.wake = [this] {
      const std::lock_guard lock(woken_mutex_);
      woken_ = true;
      changed_.notify_all();
    };
    service_ = std::make_unique<ClaimService>(options, others);
    registered_ = false;
  }
  // Calls Step, also when it is woken, until the condition holds.
  bool Until(const std::function<bool()>& holds) {
    for (int i = 0; i < 200; ++i) {
      service_->Step(now_);
      if (!registered_) registered_ = kubelet_.Register("gpu.nos.nebuly.com").ok();
      if (holds()) return true;
      std::unique_lock lock(woken_mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(50), [this] { return woken_; });
      woken_ = false;
      now_ += std::chrono::milliseconds(100);
    }
    return false;
  }
  // Calls Step for a minute, in which the condition never holds.
  bool Never(const std::function<bool()>& holds) {
    for (int i = 0; i < 12; ++i) {
      service_->Step(now_);
      if (holds()) return false;
      now_ += seconds(5);
    }
    return true;
  }
  // True if all devices are announced for extended resources.
  bool ForExtendedResources() {
    size_t devices = 0, marked = 0;
    for (const Json& slice : Slices()) {
      const std::string text = WriteJson(slice);
      devices += CountOf(text, "\"productName\"");
      marked += CountOf(text, "\"extendedResources\":{\"bool\":true}");
    }
    return devices > 0 && marked == devices;
  }
  std::vector<Json> Slices() {
    const std::lock_guard lock(locked_.mutex());
    return api_.All("resourceslices");
  }
  std::string ClaimText(const std::string& name) {
    const std::lock_guard lock(locked_.mutex());
    const Json* claim = api_.Find("resourceclaims", "team/" + name);
    return claim == nullptr ? "" : WriteJson(*claim);
  }
  void AllocateLocked(const std::string& name, const std::string& device) {
    const std::lock_guard lock(locked_.mutex());
    Allocate(name, {device});
  }
  // The API server drops fields of features that are off.
  void Drop(const std::set<std::string>& fields) {
    api_.intercept =
        [this,
         fields](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
      const bool writes = request.method == "POST" || request.method == "PUT";
      if (!writes || request.path.find("resourceslices") == std::string::npos) return std::nullopt;
      kube::ApiRequest less = request;
      JsonObject& spec = MakeObject(less.body, "spec");
      if (fields.contains("sharedCounters")) spec.erase("sharedCounters");
      if (Json* devices = spec.if_contains("devices")) {
        for (Json& device : devices->as_array()) {
          for (const std::string& field : fields) device.as_object().erase(field);
        }
      }
      const auto without = std::exchange(api_.intercept, nullptr);
      auto answer = api_.Do(less);
      api_.intercept = without;
      return answer;
    };
  }

  LockedApi locked_{api_};
  device::SharedBackend shared_{gpus_};
  kubelet::FakeKubelet pods_;
  device::GpuHealth health_;
  Metrics metrics_;
  Time now_{seconds(1'000'000)};
  std::mutex woken_mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  std::unique_ptr<ClaimService> service_;
  kubelet::DraKubelet kubelet_{root_ / "registry"};
  bool registered_ = false;
  bool shares_ = false;
};

TEST_F(ClaimServiceTest, ServesClaimsFromAllocationToRelease) {
  StartService();
  EXPECT_TRUE(service_->Released());
  service_->Use(true, "node-uid");
  EXPECT_FALSE(service_->Released());
  ASSERT_TRUE(Until([&] { return Slices().size() == 3; })) << service_->problem().message();
  // 1. The scheduler allocates, and the instance exists before the pod is bound.
  AllocateLocked("a", Device(0, "3g.40gb", 4));
  ASSERT_TRUE(Until([&] { return Has(ClaimText("a"), "DeviceReady"); }));
  EXPECT_EQ(Instances(0), "3g.40gb@4");
  // 2. The kubelet prepares it.
  const auto prepared = kubelet_.Prepare({Reference("a")});
  ASSERT_TRUE(prepared.ok()) << prepared.status().message();
  ASSERT_TRUE(prepared->at("a-uid").ok()) << prepared->at("a-uid").status().message();
  EXPECT_EQ(prepared->at("a-uid")->size(), 1U);
  // 3. The node is to return to the device plugin: nothing is announced, the pod keeps its device.
  service_->Use(false, "node-uid");
  ASSERT_TRUE(Until([&] { return Slices().empty(); }));
  EXPECT_TRUE(Never([&] { return service_->Released(); }));
  EXPECT_TRUE(kubelet_.Unprepare({Reference("a")})->at("a-uid").ok());
  EXPECT_TRUE(Never([&] { return service_->Released(); })) << "the claim is still allocated";
  {
    const std::lock_guard lock(locked_.mutex());
    Release("a");
  }
  EXPECT_TRUE(Until([&] { return service_->Released(); }));
  EXPECT_EQ(Instances(0), "3g.40gb@4");
  // 4. And back.
  service_->Use(true, "node-uid");
  registered_ = false;
  EXPECT_TRUE(Never([&] { return !Slices().empty(); })) << "the kubelet has to know the driver";
  EXPECT_TRUE(Until([&] { return Slices().size() == 3; }));
}

TEST_F(ClaimServiceTest, LeavesSlicesAloneUntilTheAgentHasDecided) {
  StartService();
  service_->Use(true, "node-uid");
  ASSERT_TRUE(Until([&] { return Slices().size() == 3; }));
  const std::vector<Json> before = Slices();
  StartService();
  EXPECT_FALSE(service_->Released()) << "claims may have devices";
  EXPECT_TRUE(Never([&] { return Slices() != before; }));
  service_->Use(true, "node-uid");
  EXPECT_TRUE(Never([&] { return Slices() != before; })) << "nothing differs";
}

TEST_F(ClaimServiceTest, CostsNothingWhereItIsNotUsed) {
  StartService();
  int requests = 0;
  api_.intercept = [&](const kube::ApiRequest&) {
    ++requests;
    return std::nullopt;
  };
  service_->Use(false, "node-uid");
  EXPECT_TRUE(Never([&] { return !service_->Released(); }));
  EXPECT_EQ(requests, 0);
  EXPECT_FALSE(std::filesystem::exists(root_ / "plugins"));
}

TEST_F(ClaimServiceTest, TaintsUnhealthyGpus) {
  StartService();
  service_->Use(true, "node-uid");
  ASSERT_TRUE(Until([&] { return Slices().size() == 3; }));
  device::HealthCondition fault;
  fault.gpu = 1;
  fault.xid = 79;
  health_.Add(fault);
  ASSERT_TRUE(Until([&] { return Has(WriteJson(Slices().back()), "Xid79"); }));
  EXPECT_FALSE(Has(WriteJson(Slices()[1]), "Xid79"));
  health_.ClearGpu(1);
  ASSERT_TRUE(Until([&] { return !Has(WriteJson(Slices().back()), "Xid79"); }));
  gpus_.Lose(1);
  now_ += seconds(60);
  EXPECT_TRUE(Until([&] { return Has(WriteJson(Slices().back()), "NotReadable"); }));
  EXPECT_EQ(Slices().size(), 3U) << "allocated devices stay in the slice";
}

// The instance is not used again: a new one may have no fault.
TEST_F(ClaimServiceTest, ReplacesInstancesWithFaults) {
  StartService();
  service_->Use(true, "node-uid");
  ASSERT_TRUE(Until([&] { return Slices().size() == 3; }));
  const std::string device = Device(0, "3g.40gb", 4);
  AllocateLocked("a", device);
  ASSERT_TRUE(Until([&] { return Has(ClaimText("a"), "DeviceReady"); }));
  ASSERT_TRUE(kubelet_.Prepare({Reference("a")})->at("a-uid").ok());
  const auto unhealthy = [&] {
    std::vector<std::string> names;
    const auto health = kubelet_.Health();
    EXPECT_TRUE(health.ok()) << health.status().message();
    for (const kubelet::DeviceHealth& one : health.value_or({})) {
      if (!one.healthy) names.push_back(one.device + ": " + one.message);
    }
    return names;
  };
  EXPECT_THAT(unhealthy(), testing::IsEmpty());
  const auto instances = gpus_.ListInstances(0);
  ASSERT_EQ(instances->size(), 1U);
  device::HealthCondition fault;
  fault.instance = device::DriverIdOf(instances->front().id);
  fault.xid = 94;
  fault.message = "replace it";
  health_.Add(fault);
  // 1. While a pod uses it, it is unhealthy and no other pod gets it.
  EXPECT_TRUE(Until([&] { return Has(WriteJson(Slices()[1]), "Xid94"); }));
  EXPECT_EQ(CountOf(WriteJson(Slices()[1]), "Xid94"), 1U) << "of this device only";
  EXPECT_THAT(unhealthy(), testing::ElementsAre(device + ": replace it"));
  EXPECT_TRUE(Never([&] { return Instances(0) != "3g.40gb@4"; }));
  // 2. Then it goes, and with it the fault, which the driver's backend clears.
  EXPECT_TRUE(kubelet_.Unprepare({Reference("a")})->at("a-uid").ok());
  EXPECT_TRUE(Until([&] { return Instances(0).empty(); }));
  health_.ClearInstance(0, *fault.instance);
  EXPECT_TRUE(Until([&] { return !Has(WriteJson(Slices()[1]), "Xid94"); }));
  EXPECT_THAT(unhealthy(), testing::IsEmpty());
}

TEST_F(ClaimServiceTest, CountsOperationsAndAnnouncesFailures) {
  StartService();
  service_->Use(true, "node-uid");
  ASSERT_TRUE(Until([&] { return Slices().size() == 3; }));
  fault_ = [](const device::SimAttempt&) { return device::SimFault::kFails; };
  AllocateLocked("a", Device(0, "3g.40gb", 4));
  ASSERT_TRUE(Until([&] { return Has(ClaimText("a"), "CreationFailed"); }));
  const auto events = [this] {
    const std::lock_guard lock(locked_.mutex());
    return reconcile::testing::EventsOf(api_);
  };
  EXPECT_TRUE(Until([&] { return Has(events(), "DeviceNotCreated"); })) << events();
  EXPECT_THAT(events(), testing::MatchesRegex("DeviceNotCreated: Failed to create " +
                                              Device(0, "3g.40gb", 4) +
                                              " on Node gpu-1: create .*NVML_ERROR_UNKNOWN.*\n"));
  fault_ = nullptr;
  AllocateLocked("b", Device(1, "3g.40gb", 4));
  ASSERT_TRUE(kubelet_.Prepare({Reference("b")})->at("b-uid").ok());
  const std::string text = metrics_.Text();
  EXPECT_THAT(text,
              HasSubstr("nos_agent_claim_operations_total{operation=\"prepare\",result=\"ok\"} 1"));
  EXPECT_THAT(
      text, HasSubstr("nos_agent_claim_operations_total{operation=\"create\",result=\"error\"} 5"));
  EXPECT_THAT(text, HasSubstr("nos_agent_prepared_claims 1"));
}

TEST_F(ClaimServiceTest, AnnouncesSharesWhereTheServerStoresThem) {
  const auto has_shares = [this] {
    const auto slices = Slices();
    return std::ranges::any_of(slices, [](const Json& slice) {
      return Has(WriteJson(slice), "gpu-0-mig-3g40gb-9-4-time-slices");
    });
  };
  shares_ = true;
  StartService();
  service_->Use(true, "node-uid");
  ASSERT_TRUE(Until(has_shares));
  {
    const std::lock_guard lock(locked_.mutex());
    Allocate("a", {"gpu-0-time-slices"}, "gpu.nos.nebuly.com", 0);
    Allocate("b", {"gpu-0-time-slices"}, "gpu.nos.nebuly.com", 0);
  }
  for (const std::string name : {"a", "b"}) {
    ASSERT_TRUE(Until([&] { return Has(ClaimText(name), "DeviceReady"); })) << name;
    const Json* claim = api_.Find("resourceclaims", "team/" + name);
    EXPECT_EQ(FindString(Find(*claim, "status", "devices")->as_array().at(0), "shareID"),
              name + "-share-0");
  }
  // The API server has the feature gate DRAConsumableCapacity switched off.
  for (const Json& slice : Slices()) {
    api_.Remove("resourceslices", std::string(FindString(slice, "metadata", "name")));
  }
  Drop({"allowMultipleAllocations"});
  StartService();
  service_->Use(true, "node-uid");
  ASSERT_TRUE(Until([&] { return Slices().size() == 3; }));
  EXPECT_FALSE(has_shares());
}

// Schedulers would give away the GPU as a whole.
TEST_F(ClaimServiceTest, AnnouncesSharesInUseAfterTheyAreSwitchedOff) {
  const auto announced = [this](const std::string& device) -> std::string {
    const auto slices = Slices();
    for (const Json& slice : slices) {
      const Json* devices = Find(slice, "spec", "devices");
      if (devices == nullptr) continue;
      for (const Json& one : devices->get_array()) {
        if (FindString(one, "name") == device) return WriteJson(one);
      }
    }
    return "";
  };
  shares_ = true;
  StartService();
  service_->Use(true, "node-uid");
  ASSERT_TRUE(Until([&] { return !announced("gpu-0-time-slices").empty(); }));
  EXPECT_FALSE(Has(announced("gpu-0-time-slices"), "SharesOff"));
  {
    const std::lock_guard lock(locked_.mutex());
    Allocate("a", {"gpu-0-time-slices"}, "gpu.nos.nebuly.com", 0);
  }
  ASSERT_TRUE(Until([&] { return Has(ClaimText("a"), "DeviceReady"); }));
  shares_ = false;
  StartService();
  service_->Use(true, "node-uid");
  ASSERT_TRUE(Until([&] { return announced("gpu-1-time-slices").empty(); }));
  EXPECT_TRUE(Has(announced("gpu-0-time-slices"), "SharesOff")) << "no other claim gets a share";
  {
    const std::lock_guard lock(locked_.mutex());
    Release("a");
  }
  EXPECT_TRUE(Until([&] { return announced("gpu-0-time-slices").empty(); }));
}

// An older kubelet would start the container without the device.
TEST_F(ClaimServiceTest, AnnouncesForExtendedResourcesIfTheKubeletKnowsThem) {
  const auto kubelet = [this](const char* version) {
    const std::lock_guard lock(locked_.mutex());
    api_.Put({{"kind", "Node"},
              {"metadata", {{"name", kClaimNode}, {"uid", "node-uid"}}},
              {"status", {{"nodeInfo", {{"kubeletVersion", version}}}}}});
    now_ += seconds(60);
  };
  kubelet("v1.35.9");
  StartService();
  service_->Use(true, "node-uid");
  ASSERT_TRUE(Until([&] { return Slices().size() == 3; }));
  EXPECT_TRUE(Never([&] { return ForExtendedResources(); }));
  kubelet("v1.36.0+k3s1");
  EXPECT_TRUE(Until([&] { return ForExtendedResources(); }));
  StartService("never");
  service_->Use(true, "node-uid");
  EXPECT_TRUE(Until([&] { return !ForExtendedResources(); }));
  kubelet("v1.34.0");
  StartService("always");
  service_->Use(true, "node-uid");
  EXPECT_TRUE(Until([&] { return ForExtendedResources(); }));
}

// Otherwise schedulers would give away devices that overlap.
TEST_F(ClaimServiceTest, AnnouncesNothingWithoutCounters) {
  Drop({"sharedCounters", "consumesCounters"});
  StartService();
  service_->Use(true, "node-uid");
  EXPECT_TRUE(Until([&] { return service_->problem().code() == Code::kUnimplemented; }));
  EXPECT_THAT(service_->problem().message(), HasSubstr("DRAPartitionableDevices"));
  EXPECT_TRUE(Slices().empty());
}

TEST_F(ClaimServiceTest, DoesWithoutBindingConditions) {
  Drop({"bindingConditions", "bindingFailureConditions", "bindsToNode"});
  StartService();
  service_->Use(true, "node-uid");
  ASSERT_TRUE(Until([&] { return Slices().size() == 3 && service_->problem().ok(); }));
  const std::vector<Json> before = Slices();
  now_ += seconds(60);
  EXPECT_TRUE(Never([&] { return Slices() != before; })) << "it is not written again and again";
}

TEST_F(ClaimServiceTest, WritesCountersInTheFormThatTheServerTakes) {
  api_.intercept = [](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
    const bool split = Find(request.body, "spec", "devices") == nullptr;
    if (request.method != "POST" || !split) return std::nullopt;
    return Result<kube::ApiResponse>(kube::ApiResponse{
        422, JsonObject{{"kind", "Status"}, {"code", 422}, {"message", "spec.devices: required"}}});
  };
  StartService();
  service_->Use(true, "node-uid");
  ASSERT_TRUE(Until([&] { return Slices().size() == 2; })) << service_->problem().message();
  EXPECT_NE(Find(Slices()[0], "spec", "sharedCounters"), nullptr);
}

}  // namespace
}  // namespace nos::agent
