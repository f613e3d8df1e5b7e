// Victims of preemption for devices, checked by counting: kube-scheduler evicts no pod for a claim,
// so its choice cannot be compared.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/random.h"
#include "dra/cel_expressions.h"
#include "dra/context.h"
#include "dra/device_index.h"
#include "scheduling/engine.h"
#include "scheduling/framework.h"
#include "scheduling/preemption.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterContext;
using testing::NodeOf;
using testing::PodOf;

constexpr int kCores = 6;

template <typename T>
std::shared_ptr<const T> Read(const Json& json, Status (*read)(JsonSource, T&)) {
  auto object = std::make_shared<T>();
  const Status status = read(json, *object);
  EXPECT_TRUE(status.ok()) << status.message();
  return object;
}

// A few nodes with equal devices, and pods that have claims of their own, share one, or have none.
class VictimsTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  using Pod = std::shared_ptr<const cluster::Pod>;
  struct Running {
    Pod pod;
    std::string node, claim;  // "": the pod has none
    int cores = 0;
  };

  VictimsTest() {
    engine_.FollowDevices(std::make_shared<dra::DeviceIndex>(
        dra::Features::Of(37), std::make_shared<const dra::CelExpressions>()));
    engine_.ChangeContext([](ClusterContext& context) {
      context.device_classes.Set(
          "d", Read<dra::DeviceClass>({{"metadata", {{"name", "d"}}}}, dra::ReadDeviceClass));
    });
    const int nodes = 1 + Below(3);
    for (int i = 0; i < nodes; ++i) AddNode("n" + std::to_string(i), 1 + Below(4));
    for (int i = Below(12); i > 0; --i) AddPod();
  }
  int Below(int bound) { return static_cast<int>(random_.Below(static_cast<uint64_t>(bound))); }

  void AddNode(const std::string& name, int devices) {
    engine_.SetNode(std::make_shared<const cluster::Node>(
        NodeOf(name, {{"cpu", std::to_string(kCores)}, {"pods", "100"}})));
    JsonArray list;
    for (int i = 0; i < devices; ++i) {
      list.push_back(JsonObject{{"name", "d" + std::to_string(i)}});
    }
    const Json slice = {{"metadata", {{"name", name}}},
                        {"spec",
                         {{"driver", "d.io"},
                          {"nodeName", name},
                          {"pool", {{"name", name}, {"generation", 1}, {"resourceSliceCount", 1}}},
                          {"devices", list}}}};
    engine_.ChangeContext([&](ClusterContext& context) {
      context.device_slices.Set(name, Read<dra::ResourceSlice>(slice, dra::ReadResourceSlice));
    });
    devices_[name] = devices;
  }
  std::string AddClaim(int count) {
    const std::string name = "c" + std::to_string(++made_);
    const Json exactly = {
        {"deviceClassName", "d"}, {"allocationMode", "ExactCount"}, {"count", count}};
    const JsonArray requests{{{"name", "r"}, {"exactly", exactly}}};
    Put(Read<dra::ResourceClaim>({{"metadata", {{"namespace", "x"}, {"name", name}, {"uid", name}}},
                                  {"spec", {{"devices", {{"requests", requests}}}}}},
                                 dra::ReadResourceClaim));
    counts_[name] = count;
    return name;
  }
  void Put(const std::shared_ptr<const dra::ResourceClaim>& claim) {
    engine_.ChangeContext(
        [&](ClusterContext& context) { context.device_claims.Set(claim->Key(), claim); },
        dra::kClaimKind, claim->Key());
  }
  Pod MakePod(int cores, int priority, const std::string& claim) {
    auto pod = std::make_shared<cluster::Pod>(
        PodOf("p" + std::to_string(++made_), {{"cpu", std::to_string(cores)}}));
    pod->meta.uid = pod->meta.name;
    pod->meta.created = Time(std::chrono::seconds(made_));
    pod->priority = priority;
    if (!claim.empty()) pod->claims = {{"gpu", claim, "", false}};
    return pod;
  }
  // Places a pod as the scheduler does, if some node fits.
  void AddPod() {
    std::string claim;
    const int kind = Below(4);
    if (kind == 0 && !running_.empty()) claim = running_[random_.Below(running_.size())].claim;
    if (kind > 1) claim = AddClaim(1 + Below(2));
    const int cores = 1 + Below(3);
    const Pod pod = MakePod(cores, Below(3), claim);
    const Decision decision = engine_.Schedule(framework_, pod);
    if (decision.node == nullptr) return;
    const std::string node = decision.node->node->meta.name;
    engine_.Assume(pod, node);
    CycleState state;
    ASSERT_TRUE(engine_.Reserve(framework_, *pod, node, state).fits());
    if (!claim.empty()) Store(claim, *pod);
    running_.push_back({pod, node, claim, cores});
  }
  void Store(const std::string& claim, const cluster::Pod& user) {
    const std::string key = "x/" + claim;
    const ClusterContext& context = engine_.snapshot().context();
    auto stored = std::make_shared<dra::ResourceClaim>(*context.device_claims.Find(key));
    if (const auto* assumed = context.devices->FindAssumed(key)) {
      stored->allocation = assumed->allocation;
    }
    stored->reserved_for.push_back({"", "pods", user.meta.name, user.meta.uid});
    Put(stored);
  }

  // True if the node has the devices and cores once these pods have left.
  bool Fits(const std::string& node, int devices, int cores, const std::set<std::string>& gone) {
    int free_devices = devices_.at(node), free_cores = kCores;
    std::set<std::string> used;
    for (const Running& one : running_) {
      if (one.node != node || gone.contains(one.pod->Key())) continue;
      free_cores -= one.cores;
      if (!one.claim.empty() && used.insert(one.claim).second) free_devices -= counts_[one.claim];
    }
    return free_devices >= devices && free_cores >= cores;
  }
  std::set<std::string> LessImportantOn(const std::string& node, int priority) {
    std::set<std::string> keys;
    for (const Running& one : running_) {
      if (one.node == node && one.pod->priority < priority) keys.insert(one.pod->Key());
    }
    return keys;
  }

  Random random_{GetParam()};
  Framework framework_ = Framework::Default();
  Engine engine_{gpu::Catalogue::Builtin()};
  std::vector<Running> running_;
  std::map<std::string, int> devices_, counts_;  // by node; by claim
  int made_ = 0;
};

TEST_P(VictimsTest, AreAllowedEnoughAndAllNeeded) {
  for (int i = 0; i < 5; ++i) {
    const int devices = 1 + Below(3), cores = 1 + Below(4), priority = 1 + Below(3);
    const Pod pod = MakePod(cores, priority, AddClaim(devices));
    const auto fits = [&](const auto& node) { return Fits(node.first, devices, cores, {}); };
    const bool has_room = std::ranges::any_of(devices_, fits);
    ASSERT_EQ(engine_.Schedule(framework_, pod).node != nullptr, has_room);
    if (has_room) continue;
    const auto found = FindPreemption(framework_, engine_.snapshot(), *pod, {});
    if (!found) {
      for (const auto& [node, count] : devices_) {
        EXPECT_FALSE(Fits(node, devices, cores, LessImportantOn(node, priority)))
            << "pods of " << node << " would help";
      }
      continue;
    }
    const std::set<std::string> may_go = LessImportantOn(found->node, priority);
    std::set<std::string> gone;
    for (const Pod& victim : found->victims) gone.insert(victim->Key());
    EXPECT_TRUE(std::ranges::includes(may_go, gone)) << "all have a lower priority and are there";
    EXPECT_TRUE(Fits(found->node, devices, cores, gone));
    for (const std::string& victim : gone) {
      std::set<std::string> others = gone;
      others.erase(victim);
      EXPECT_FALSE(Fits(found->node, devices, cores, others)) << victim << " could have stayed";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, VictimsTest, ::testing::Range(uint64_t{1}, uint64_t{200}));

}  // namespace
}  // namespace nos::scheduling
