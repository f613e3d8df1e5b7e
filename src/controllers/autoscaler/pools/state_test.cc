#include "controllers/autoscaler/pools/state.h"

#include <gtest/gtest.h>

#include "controllers/autoscaler.h"

namespace nos::controllers {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr PoolTimeouts kTimeouts{minutes(2), minutes(5), hours(1)};

class PoolStateTest : public ::testing::Test {
 protected:
  PoolStateTest() {
    pool_.meta.name = "a";
    pool_.max = 10;
    pool_.start_seconds = 240;
    pool_.gpu.count = 0;
    pool_.resources = {{"cpu", Quantity::FromValue(8)}};
  }
  // Derives the state once and stores it in the pool's status, as the API server does.
  PoolState Look(std::optional<int32_t> wanted, Status error = {}) {
    const PoolState state = StateOf(
        {std::make_shared<const cluster::NodePool>(pool_), nodes_, wanted, std::move(error), ""},
        kTimeouts, now_);
    pool_.nodes = state.status.nodes;
    pool_.wanted = state.status.wanted;
    pool_.asked = state.status.asked;
    pool_.failures = state.status.failures;
    pool_.closed_until = state.status.closed_until;
    pool_.conditions = {state.status.ready};
    return state;
  }

  // The message of a pool whose nodes did not arrive.
  std::string NotDelivered(const std::string& why) const {
    return "Pausing requests for Nodes until " + FormatTime(*pool_.closed_until) +
           ": requested Nodes did not arrive; " + why;
  }

  cluster::NodePool pool_;
  PoolNodes nodes_;
  Time now_{seconds(1'800'000'000)};
};

TEST_F(PoolStateTest, MissingNodesCountAsComing) {
  nodes_.there = 1;
  const PoolState state = Look(3);
  EXPECT_EQ(state.now.nodes, 1);
  EXPECT_EQ(state.now.coming, 2);
  EXPECT_EQ(state.now.closed, "");
  EXPECT_EQ(state.status.asked, now_);
  EXPECT_EQ(state.status.ready.status, "True");
}

TEST_F(PoolStateTest, ClampsNodesThatAreComing) {
  EXPECT_EQ(Look(INT32_MAX).now.coming, cluster::kMaxPoolNodes);
}

TEST_F(PoolStateTest, StartingNodesCountAsComing) {
  nodes_.starting = 2;
  const PoolState state = Look(2);
  EXPECT_EQ(state.now.nodes, 0);
  EXPECT_EQ(state.now.coming, 2);
  EXPECT_EQ(state.status.nodes, 2);
}

TEST_F(PoolStateTest, LateNodesClosePoolOnceAndReduceWantedCount) {
  nodes_.there = 1;
  Look(3);
  now_ += minutes(8);
  EXPECT_FALSE(Look(3).write_back);
  now_ += seconds(1);
  const PoolState late = Look(3);
  EXPECT_TRUE(late.failed);
  EXPECT_EQ(late.write_back, 1);
  EXPECT_EQ(late.status.failures, 1);
  EXPECT_EQ(late.status.closed_until, now_ + minutes(5));
  EXPECT_EQ(late.now.coming, 0);
  EXPECT_NE(late.now.closed, "");
  EXPECT_EQ(late.status.ready.reason, "NotDelivered");
  // A crash happened before the wanted count was reduced.
  now_ += seconds(30);
  const PoolState again = Look(3);
  EXPECT_FALSE(again.failed);
  EXPECT_EQ(again.write_back, 1);
  EXPECT_EQ(again.status.failures, 1);
  // The reduced count does not count as a delivery.
  const PoolState back = Look(1);
  EXPECT_EQ(back.status.failures, 1);
  EXPECT_FALSE(back.status.asked);
  EXPECT_FALSE(back.write_back);
}

TEST_F(PoolStateTest, PausesDoubleUntilPoolDelivers) {
  const Duration pauses[] = {minutes(5), minutes(10), minutes(20), minutes(40), hours(1), hours(1)};
  for (const Duration pause : pauses) {
    Look(1);
    now_ += minutes(9);
    const PoolState late = Look(1);
    ASSERT_TRUE(late.failed);
    EXPECT_EQ(late.status.closed_until, now_ + pause);
    Look(0);
    now_ += pause;
    EXPECT_EQ(Look(0).now.closed, "");
  }
  Look(1);
  nodes_.there = 1;
  EXPECT_EQ(Look(1).status.failures, 0);
}

TEST_F(PoolStateTest, MinimumStaysWantedAndIsRetried) {
  pool_.min = 2;
  Look(3);
  now_ += minutes(9);
  EXPECT_EQ(Look(3).write_back, 2);
  EXPECT_FALSE(Look(2).write_back);
  now_ += minutes(5);
  const PoolState again = Look(2);
  EXPECT_EQ(again.now.closed, "");
  EXPECT_EQ(again.now.coming, 2);
  EXPECT_FALSE(again.failed);
}

TEST_F(PoolStateTest, AcceptsWantedCountRaisedByOthers) {
  Look(1);
  now_ += minutes(7);
  EXPECT_EQ(Look(4).now.coming, 4);
  nodes_.there = 12;
  const PoolState above = Look(12);
  EXPECT_FALSE(above.write_back);
  EXPECT_EQ(above.status.ready.reason, "AboveMaximum");
}

TEST_F(PoolStateTest, DeliveryRestartsTimeLimitForFurtherNodes) {
  Look(2);
  now_ += minutes(5);
  nodes_.there = 1;
  nodes_.newest = now_;
  now_ += minutes(2);
  EXPECT_EQ(Look(4).status.asked, now_);
  now_ += minutes(7);
  EXPECT_EQ(Look(4).now.coming, 3);
}

TEST_F(PoolStateTest, FurtherRequestsDoNotExtendTimeLimitWithoutDelivery) {
  Look(1);
  for (int wanted = 2; wanted <= 5; ++wanted) {
    now_ += minutes(2);
    EXPECT_FALSE(Look(wanted).failed);
  }
  now_ += minutes(2);
  const PoolState late = Look(6);
  EXPECT_TRUE(late.failed);
  EXPECT_EQ(late.write_back, 0);
}

TEST_F(PoolStateTest, AwaitsReplacementOfLostNodeAsLongAsNewNode) {
  nodes_.there = 2;
  Look(2);
  now_ += hours(100);
  nodes_.there = 1;
  const PoolState state = Look(2);
  EXPECT_FALSE(state.failed);
  EXPECT_EQ(state.now.coming, 1);
  EXPECT_EQ(state.status.asked, now_);
}

TEST_F(PoolStateTest, NodeBeingRemovedCountsAgainstMissingNodes) {
  nodes_.there = 1;
  nodes_.going = 1;
  Look(2);
  now_ += hours(1);
  EXPECT_FALSE(Look(2).write_back);
  EXPECT_EQ(Look(2).now.coming, 1);
  now_ += hours(1);
  pool_.wanted = 4;
  EXPECT_EQ(Look(4).write_back, 2);
}

TEST_F(PoolStateTest, WrongNodeCountsAndClosesItsPoolOnce) {
  Look(1);
  nodes_.there = 1;
  nodes_.wrong = {{"n", "has 4 of cpu for pods, but the pool requires 8", now_ + seconds(60)}};
  now_ += minutes(8);
  const PoolState state = Look(1);
  EXPECT_TRUE(state.failed);
  EXPECT_EQ(state.now.nodes, 1);
  EXPECT_NE(state.now.closed, "");
  EXPECT_EQ(state.status.ready.message,
            NotDelivered("node n has 4 of cpu for pods, but the pool requires 8"));
  now_ += minutes(6);
  const PoolState later = Look(1);
  EXPECT_EQ(later.now.closed, "") << "one node closes it once";
  EXPECT_EQ(later.status.ready.reason, "WrongNodes");
  EXPECT_FALSE(later.failed);
}

TEST_F(PoolStateTest, WrongNodeClosesPoolDespiteLaterRequests) {
  Look(1);
  const Time created = now_ + seconds(60);
  now_ = created;
  nodes_.starting = 1;
  nodes_.newest = created;
  Look(1);
  now_ += minutes(4);
  ASSERT_EQ(Look(2).status.asked, now_);
  now_ += minutes(1);
  nodes_.starting = 2;
  nodes_.newest = now_;
  EXPECT_FALSE(Look(2).failed);
  now_ = created + minutes(8);
  nodes_.there = nodes_.starting = 1;
  nodes_.wrong = {{"n", "has 4 of cpu for pods, but the pool requires 8", created}};
  const PoolState state = Look(2);
  EXPECT_TRUE(state.failed) << "no third node may be requested";
  EXPECT_EQ(state.now.coming, 1);
  EXPECT_FALSE(state.write_back);
  now_ += minutes(6);
  EXPECT_EQ(Look(2).now.closed, "") << "one node closes it once";
}

TEST_F(PoolStateTest, NodeThatNeverBecomesReadyClosesItsPool) {
  Look(1);
  nodes_.there = 1;
  nodes_.closed = {{"n", "is not Ready", now_ + seconds(60)}};
  now_ += minutes(9);
  const PoolState state = Look(1);
  EXPECT_TRUE(state.failed);
  EXPECT_EQ(state.status.ready.message, NotDelivered("node n is not Ready"));
  now_ += minutes(6);
  EXPECT_EQ(Look(1).status.ready.reason, "Ready");
}

TEST_F(PoolStateTest, RequestsNothingWhileScaleCannotBeRead) {
  Look(3);
  nodes_.there = 1;
  now_ += hours(5);
  const PoolState state = Look(std::nullopt, Status(Code::kPermission, "no"));
  EXPECT_EQ(state.now.coming, 2) << "as last read";
  EXPECT_NE(state.now.closed, "");
  EXPECT_FALSE(state.write_back);
  EXPECT_EQ(state.status.wanted, 3);
  EXPECT_EQ(state.status.ready.reason, "ScaleFailed");
  EXPECT_EQ(state.status.ready.message,
            "Failed to read the desired number of Nodes: permission denied: no");
}

TEST_F(PoolStateTest, ImplausibleStatusIsClamped) {
  pool_.closed_until = Time::max();
  pool_.failures = -7;
  pool_.asked = Time::max();
  pool_.wanted = -1;
  pool_.nodes = -5;
  EXPECT_EQ(Look(1).status.closed_until, now_ + hours(1));
  EXPECT_LE(*pool_.asked, now_);
  now_ += hours(1);
  const PoolState open = Look(1);
  EXPECT_EQ(open.now.closed, "");
  EXPECT_EQ(open.now.coming, 1);
  pool_.failures = INT32_MAX;
  now_ += minutes(9);
  EXPECT_EQ(Look(1).status.closed_until, now_ + hours(1));
  pool_.wanted = INT32_MAX;
  pool_.asked = Time{};
  nodes_.there = 1;
  now_ += hours(2);
  Look(1);
  EXPECT_EQ(pool_.failures, 0);
}

TEST_F(PoolStateTest, ClockThatJumpsBackDoesNotKeepPoolClosed) {
  Look(1);
  now_ += minutes(9);
  Look(1);
  Look(0);
  now_ -= hours(1000);
  Look(0);
  now_ += hours(1);
  EXPECT_EQ(Look(0).now.closed, "");
}

TEST_F(PoolStateTest, PatchContainsOnlyChangedFields) {
  const PoolState first =
      StateOf({std::make_shared<const cluster::NodePool>(pool_), nodes_, 0, Status::Ok(), ""},
              kTimeouts, now_);
  const Json patch = PoolStatusPatch(pool_, first.status);
  EXPECT_NE(Find(patch, "status", "nodes"), nullptr) << "zeros are shown, too";
  Look(0);
  EXPECT_TRUE(PoolStatusPatch(pool_, Look(0).status).is_null());
  cluster::NodePool asked = pool_;
  asked.asked = now_;
  PoolStatus none = Look(0).status;
  EXPECT_TRUE(Find(PoolStatusPatch(asked, none), "status", "asked")->is_null());
  asked = pool_;
  asked.conditions.push_back({"Other", "True", "Because", "", now_});
  none.ready.reason = "Changed";
  const Json conditions = *Find(PoolStatusPatch(asked, none), "status", "conditions");
  EXPECT_EQ(conditions.as_array().size(), 2U) << "others' conditions stay";
}

TEST_F(PoolStateTest, DoesNotWriteSameErrorWithOtherText) {
  Look(1, Status(Code::kUnavailable, "port 1"));
  const PoolState other = StateOf({std::make_shared<const cluster::NodePool>(pool_), nodes_, 1,
                                   Status(Code::kUnavailable, "port 2"), ""},
                                  kTimeouts, now_);
  EXPECT_TRUE(PoolStatusPatch(pool_, other.status).is_null());
}

class MissingRequirementsTest : public ::testing::Test {
 protected:
  MissingRequirementsTest() {
    pool_.resources = {{"cpu", Quantity::FromValue(8)}};
    pool_.taints = {{"nvidia.com/gpu", "", "NoSchedule"}};
    node_.conditions = {{"Ready", "True", "", "", {}}};
    node_.taints = pool_.taints;
    node_.allocatable = {{"cpu", Quantity::FromValue(8)}};
  }
  MissingRequirements ResourceShortfall() const {
    return MissingRequirementsOf(node_, pool_, gpu::Catalogue::Builtin());
  }

  cluster::NodePool pool_;
  cluster::Node node_;
};

TEST_F(MissingRequirementsTest, NoneIfNodeMatchesPool) {
  EXPECT_FALSE(ResourceShortfall().Any())
      << ResourceShortfall().readiness << ResourceShortfall().substance;
  node_.taints.push_back({"node.kubernetes.io/unschedulable", "", "NoSchedule"});
  EXPECT_FALSE(ResourceShortfall().Any()) << "a cordon does not make it a wrong node";
}

TEST_F(MissingRequirementsTest, ReportsTaintAndMissingReadiness) {
  node_.taints.push_back({"example.com/starting", "", "NoSchedule"});
  EXPECT_EQ(ResourceShortfall().readiness, "has the taint example.com/starting");
  node_.taints.pop_back();
  node_.conditions[0].status = "Unknown";
  EXPECT_EQ(ResourceShortfall().readiness, "is not Ready");
  EXPECT_EQ(ResourceShortfall().substance, "");
}

TEST_F(MissingRequirementsTest, ReportsMissingResourcesAndGpus) {
  node_.allocatable["cpu"] = Quantity::FromValue(4);
  EXPECT_EQ(ResourceShortfall().substance, "has 4 of cpu for pods, but the pool requires 8");
  node_.allocatable["cpu"] = Quantity::FromValue(8);
  pool_.gpu.model = "A100-40GB";
  pool_.gpu.count = 2;
  EXPECT_EQ(ResourceShortfall().substance, "has 0 of nvidia.com/gpu, but the pool requires 2");
  node_.allocatable["nvidia.com/gpu"] = Quantity::FromValue(2);
  EXPECT_FALSE(ResourceShortfall().Any());
  node_.meta.labels["nvidia.com/gpu.product"] = "NVIDIA-A30";
  EXPECT_EQ(ResourceShortfall().substance, "has NVIDIA-A30, but the pool requires A100-40GB");
}

TEST_F(MissingRequirementsTest, ReportsGpusThatNoAgentHasReported) {
  pool_.gpu.model = "A100-40GB";
  pool_.gpu.count = 1;
  pool_.gpu.partitioning = cluster::SharingMode::kMig;
  node_.meta.labels = {{"nos.nebuly.com/gpu-partitioning", "mig"},
                       {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                       {"nvidia.com/gpu.count", "1"}};
  EXPECT_EQ(ResourceShortfall().substance,
            "has 0 GPUs with sharing mode mig, but the pool requires 1");
  node_.meta.annotations["nos.nebuly.com/status-layout-0"] = "";
  EXPECT_FALSE(ResourceShortfall().Any()) << ResourceShortfall().substance;
}

TEST_F(MissingRequirementsTest, AreComputedOncePerVersionOfNodeAndPool) {
  MissingRequirementsCache known(gpu::Catalogue::Builtin());
  const auto as_it_is = [](const auto& object) {
    return std::make_shared<const std::decay_t<decltype(object)>>(object);
  };
  const auto node = as_it_is(node_);
  const auto pool = as_it_is(pool_);
  for (int look = 0; look < 3; ++look) {
    EXPECT_FALSE(known.Of(node, pool).Any());
    known.Forget();
  }
  EXPECT_EQ(known.reads(), 1U);
  node_.conditions.clear();
  EXPECT_TRUE(known.Of(as_it_is(node_), pool).Any()) << "the node has changed";
  pool_.resources["cpu"] = Quantity::FromValue(1000);
  EXPECT_NE(known.Of(node, as_it_is(pool_)).substance, "") << "the pool has changed";
  EXPECT_EQ(known.reads(), 3U);
  known.Forget();
  known.Forget();  // the entry is dropped after a call without a request
  EXPECT_FALSE(known.Of(node, pool).Any());
  EXPECT_EQ(known.reads(), 4U);
}

}  // namespace
}  // namespace nos::controllers
