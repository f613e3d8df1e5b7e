// Quotas of namespaces whose pods share the devices of claims.
#include "scheduling/claim_charges.h"

#include <gtest/gtest.h>

#include "dra/cel_expressions.h"
#include "dra/context.h"
#include "dra/device_index.h"
#include "scheduling/engine.h"
#include "scheduling/framework.h"
#include "scheduling/reclaim.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterContext;
using testing::NodeOf;
using testing::PodOf;

constexpr const char* kDevices = "d.deviceclass.resource.k8s.io/devices";

template <typename T>
std::shared_ptr<const T> Read(const std::string& json, Status (*read)(JsonSource, T&)) {
  auto object = std::make_shared<T>();
  const Status status = read(*ParseJson(json), *object);
  EXPECT_TRUE(status.ok()) << status.message();
  return object;
}

// Node "n" has four devices. Quotas count devices.
class ClaimChargesTest : public ::testing::Test {
 protected:
  using Pod = std::shared_ptr<const cluster::Pod>;

  ClaimChargesTest() {
    engine_.SetNode(std::make_shared<const cluster::Node>(NodeOf("n")));
    engine_.FollowDevices(std::make_shared<dra::DeviceIndex>(
        dra::Features::Of(37), std::make_shared<const dra::CelExpressions>()));
    engine_.ChangeContext([](ClusterContext& context) {
      context.device_slices.Set("n", Read<dra::ResourceSlice>(
                                         R"({"metadata": {"name": "n"}, "spec": {
          "driver": "d.io", "nodeName": "n",
          "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
          "devices": [{"name": "d0"}, {"name": "d1"}, {"name": "d2"}, {"name": "d3"}]}})",
                                         dra::ReadResourceSlice));
      context.device_classes.Set(
          "d", Read<dra::DeviceClass>(R"({"metadata": {"name": "d"}})", dra::ReadDeviceClass));
    });
  }
  // Of `ns`, in devices.
  void Quota(const std::string& ns, int64_t min, int64_t max) {
    auto quota = std::make_shared<cluster::ElasticQuota>();
    quota->meta.ns = ns;
    quota->meta.name = "q";
    quota->namespaces = {ns};
    quota->min[kDevices] = Quantity::FromValue(min);
    quota->max[kDevices] = Quantity::FromValue(max);
    const std::string key = quota->Key();
    engine_.ChangeContext([&](ClusterContext& context) { context.quotas.Set(key, quota); });
  }
  // Two devices. `user`: the JSON of its user; "": it is not allocated.
  void Claim(const std::string& ns, const std::string& name, const std::string& user = "") {
    std::string status;
    if (!user.empty()) {
      status = R"(, "status": {"reservedFor": [)" + user + R"(], "allocation": {"devices":
          {"results": [{"request": "r", "driver": "d.io", "pool": "n", "device": "d0"},
                       {"request": "r", "driver": "d.io", "pool": "n", "device": "d1"}]}}})";
    }
    const auto claim = Read<dra::ResourceClaim>(
        R"({"metadata": {"namespace": ")" + ns + R"(", "name": ")" + name + R"(", "uid": ")" + ns +
            name + R"("}, "spec": {"devices": {"requests": [{"name": "r", "exactly":
            {"deviceClassName": "d", "allocationMode": "ExactCount", "count": 2}}]}})" +
            status + "}",
        dra::ReadResourceClaim);
    engine_.ChangeContext(
        [&](ClusterContext& context) { context.device_claims.Set(claim->Key(), claim); },
        dra::kClaimKind, claim->Key());
  }
  Pod User(const std::string& ns, const std::string& name, const std::string& claim,
           int32_t priority = 0) {
    auto pod = std::make_shared<cluster::Pod>(PodOf(name));
    pod->meta.ns = ns;
    pod->meta.uid = ns + name;
    pod->meta.created = Time(std::chrono::seconds(++made_));
    pod->priority = priority;
    pod->claims = {{"gpu", claim, "", false}};
    return pod;
  }
  quota::Amount Used(const std::string& ns) {
    const quota::Balance& balance = engine_.ledger().balance();
    return balance.used(*balance.AccountOf(ns)).Get(cluster::InternResource(kDevices));
  }
  bool Admits(const Pod& pod) {
    return !engine_.WhyNotByQuota(framework_, *pod, engine_.snapshot().Find("n"));
  }

  Framework framework_ = Framework::Default();
  Engine engine_{gpu::Catalogue::Builtin()};
  int made_ = 0;
};

TEST_F(ClaimChargesTest, PodsThatShareAClaimAreChargedOnce) {
  Quota("a", 2, 2);
  Claim("a", "c");
  engine_.Assume(User("a", "p", "c"), "n");
  EXPECT_EQ(Used("a"), 2);
  EXPECT_TRUE(Admits(User("a", "q", "c")));
  engine_.Assume(User("a", "q", "c"), "n");
  EXPECT_EQ(Used("a"), 2);
  Claim("a", "c", R"({"resource": "pods", "name": "p", "uid": "ap"})");
  EXPECT_EQ(Used("a"), 2);
  engine_.Forget("a/p");
  EXPECT_EQ(Used("a"), 2) << "q has the devices";
  engine_.Forget("a/q");
  EXPECT_EQ(Used("a"), 0);
}

TEST_F(ClaimChargesTest, PodsOfAPodGroupAreChargedOnce) {
  Quota("a", 2, 2);
  Claim("a", "c", R"({"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g",
                      "uid": "g"})");
  for (const char* name : {"p", "q", "r"}) {
    auto pod = std::make_shared<cluster::Pod>(*User("a", name, "c"));
    pod->scheduling_group = "g";
    EXPECT_TRUE(Admits(pod));
    engine_.Assume(pod, "n");
    EXPECT_EQ(Used("a"), 2);
  }
}

// The watch may show pods before their claims.
TEST_F(ClaimChargesTest, ClaimCountsWhenItIsSeen) {
  Quota("a", 2, 2);
  engine_.Assume(User("a", "p", "c"), "n");
  EXPECT_EQ(Used("a"), 0);
  Claim("a", "c", R"({"resource": "pods", "name": "p", "uid": "ap"})");
  EXPECT_EQ(Used("a"), 2);
}

// A claim for all devices of a node counts for those of the largest node, also if it was asked for
// before that node was there or had its labels.
TEST_F(ClaimChargesTest, ClaimCountsForDevicesOfNodesThatComeLater) {
  Quota("a", 3, 3);
  const auto slice = [](const std::string& name, const std::string& nodes) {
    return Read<dra::ResourceSlice>(
        R"({"metadata": {"name": ")" + name + R"("}, "spec": {"driver": "d.io", )" + nodes +
            R"(, "pool": {"name": ")" + name + R"(", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0"}, {"name": "d1"}, {"name": "d2"}, {"name": "d3"}]}})",
        dra::ReadResourceSlice);
  };
  engine_.ChangeContext([&](ClusterContext& context) {
    context.device_slices.Set("n", nullptr);
    context.device_slices.Set("m", slice("m", R"("nodeName": "m")"));
    context.device_slices.Set("net", slice("net", R"("nodeSelector": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "net", "operator": "Exists"}]}]})"));
    context.device_claims.Set(
        "a/all",
        Read<dra::ResourceClaim>(
            R"({"metadata": {"namespace": "a", "name": "all", "uid": "all"}, "spec": {"devices": {
            "requests": [{"name": "r", "exactly": {"deviceClassName": "d",
            "allocationMode": "All"}}]}}})",
            dra::ReadResourceClaim));
  });
  const Pod pod = User("a", "p", "all");
  EXPECT_TRUE(Admits(pod)) << "no node has such a device";
  engine_.SetNode(std::make_shared<const cluster::Node>(NodeOf("n", {}, {{"net", ""}})));
  EXPECT_FALSE(Admits(pod));
  engine_.SetNode(std::make_shared<const cluster::Node>(NodeOf("n")));
  EXPECT_TRUE(Admits(pod));
  engine_.SetNode(std::make_shared<const cluster::Node>(NodeOf("m")));
  EXPECT_FALSE(Admits(pod));
  engine_.RemoveNode("m");
  EXPECT_TRUE(Admits(pod));
}

// Pods that wait for their node share the claim, too.
TEST_F(ClaimChargesTest, NominatedPodsThatShareAClaimCountOnce) {
  Quota("a", 4, 4);
  Claim("a", "c");
  Claim("a", "other");
  Claim("a", "third");
  const Pod first = User("a", "p", "c", 9), second = User("a", "q", "c", 8);
  engine_.Nominate(first, "n");
  engine_.Nominate(second, "n");
  EXPECT_TRUE(Admits(User("a", "r", "c"))) << "the same devices";
  EXPECT_TRUE(Admits(User("a", "s", "other"))) << "two devices are promised, and two are left";
  EXPECT_TRUE(engine_.IsGuaranteed(*second, "n"));
  EXPECT_TRUE(engine_.IsGuaranteed(*User("a", "s", "other"), "n"));
  engine_.Nominate(User("a", "s", "other", 7), "n");
  EXPECT_FALSE(Admits(User("a", "t", "third")));
  EXPECT_TRUE(Admits(User("a", "r", "c")));
  EXPECT_FALSE(engine_.IsGuaranteed(*User("a", "t", "third"), "n"));
}

// Devices are free when all pods that share them have left, whichever of them is charged.
TEST_F(ClaimChargesTest, PodsThatShareDevicesAreEvictedTogether) {
  Quota("a", 2, 9);
  Quota("b", 0, 9);
  Claim("b", "c", R"({"resource": "pods", "name": "p", "uid": "bp"})");
  Claim("a", "mine");
  const Pod p = User("b", "p", "c"), q = User("b", "q", "c");
  engine_.Assume(p, "n");
  engine_.Assume(q, "n");
  const Pod owner = User("a", "owner", "mine");
  EXPECT_FALSE(Admits(owner)) << "b has borrowed all";
  QuotaOptions options;
  options.charges = engine_.charge_rules();
  Reclaim reclaim(
      engine_.ledger(), [&](std::string_view) { return engine_.BalanceFor(*owner); }, options,
      [](const Pod& victim) { return EvictionUnit{victim}; });
  const auto found = reclaim.Find(framework_, engine_.snapshot(), owner);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->victims.size(), 2u);
}

// Tenants could otherwise keep devices by deleting one of their users after the other.
TEST_F(ClaimChargesTest, UserThatEndsDoesNotSpareTheOthers) {
  Quota("a", 2, 9);
  Quota("b", 0, 9);
  Claim("b", "c", R"({"resource": "pods", "name": "p", "uid": "bp"})");
  Claim("a", "mine");
  const Time now(std::chrono::hours(1));
  const Pod p = User("b", "p", "c");
  auto ends = std::make_shared<cluster::Pod>(*User("b", "q", "c"));
  ends->meta.deleted = now + std::chrono::seconds(350);
  engine_.Assume(p, "n");
  engine_.Assume(ends, "n");
  const Pod owner = User("a", "owner", "mine");
  QuotaOptions options;
  options.charges = engine_.charge_rules();
  const auto reclaim = [&](const cluster::ClusterSnapshot& snapshot, bool evicted) {
    Reclaim search(
        engine_.ledger(), [&](std::string_view) { return engine_.BalanceFor(*owner); }, options,
        [](const Pod& victim) { return EvictionUnit{victim}; });
    search.SetLatestEnd(now + std::chrono::seconds(360));
    if (evicted) search.CountGone({ends});
    const auto found = search.Find(framework_, snapshot, owner);
    return found ? found->victims : std::vector<Pod>();
  };
  const auto has_p = [&](const std::vector<Pod>& victims) {
    return std::ranges::find(victims, p) != victims.end();
  };
  EXPECT_TRUE(has_p(reclaim(engine_.snapshot(), false)));
  cluster::ClusterSnapshot without = engine_.snapshot();
  ASSERT_TRUE(without.Vacate(*ends, "n").ok());
  EXPECT_EQ(reclaim(without, true), std::vector<Pod>{p}) << "evicted for another pod before";
}

// An evicted pod still runs; the other user keeps the devices.
TEST_F(ClaimChargesTest, EvictionOfOneUserFreesNoDevices) {
  Quota("a", 2, 9);
  Quota("b", 0, 9);
  Claim("b", "c", R"({"resource": "pods", "name": "p", "uid": "bp"})");
  Claim("a", "mine");
  const Pod p = User("b", "p", "c"), q = User("b", "q", "c"), owner = User("a", "owner", "mine");
  engine_.Assume(p, "n");
  engine_.Assume(q, "n");
  const auto free = [&] {
    const quota::Balance balance = engine_.WithoutLeaving(engine_.BalanceFor(*owner), *owner);
    return balance.used(*balance.AccountOf("b")).Get(cluster::InternResource(kDevices));
  };
  engine_.SetLeaving("b/p", true);
  EXPECT_EQ(free(), 2);
  engine_.SetLeaving("b/q", true);
  EXPECT_EQ(free(), 0);
}

}  // namespace
}  // namespace nos::scheduling
