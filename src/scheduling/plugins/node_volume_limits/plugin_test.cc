#include "scheduling/plugins/node_volume_limits/plugin.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "scheduling/testing/build.h"
#include "scheduling/testing/follower.h"
#include "scheduling/testing/volumes.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using cluster::CsiNode;
using cluster::Pod;
using testing::BoundClaimOf;
using testing::ClaimFor;
using testing::ClaimOf;
using testing::ContextEvent;
using testing::NodeOf;
using testing::PodOf;
using testing::Put;
using testing::Snap;
using testing::WithClaims;
using testing::WithEphemeral;

const std::string kFull = "node(s) exceed max volume count";

CsiNode CsiNodeOf(std::string name, std::vector<CsiNode::Driver> drivers) {
  CsiNode node;
  node.meta.name = std::move(name);
  node.drivers = std::move(drivers);
  return node;
}
CsiNode::Driver Limit(std::string name, std::optional<int32_t> count) {
  return {std::move(name), "id", {}, count};
}

// Adds a claim "c<n>" bound to a volume "pv-c<n>" of the driver.
void PutBound(ClusterSnapshot& snapshot, const std::string& claim, std::string driver) {
  auto volume = testing::VolumeOf("pv-" + claim);
  volume.csi_driver = std::move(driver);
  volume.csi_handle = "handle of " + claim;
  Put(snapshot, BoundClaimOf(claim, "pv-" + claim), volume);
}

// Claims d0..d3 of driver d.io and e0..e3 of e.io, and one node with these limits.
ClusterSnapshot Some(const std::vector<Pod>& pods, std::vector<CsiNode::Driver> limits) {
  auto snapshot = Snap({NodeOf("n")}, pods);
  for (const std::string i : {"0", "1", "2", "3"}) {
    PutBound(snapshot, "d" + i, "d.io");
    PutBound(snapshot, "e" + i, "e.io");
  }
  Put(snapshot, CsiNodeOf("n", std::move(limits)));
  return snapshot;
}

std::string Says(const Pod& pod, const ClusterSnapshot& snapshot) {
  const NodeVolumeLimits plugin;
  return testing::Follower<NodeVolumeLimits>(plugin, pod, snapshot).verdicts()[0];
}

cluster::VolumeAttachment Attached(const std::string& volume, std::string attacher = "d.io",
                                   std::string node = "n") {
  cluster::VolumeAttachment attachment;
  attachment.meta.name = "attached " + volume + " " + node;
  attachment.attacher = std::move(attacher);
  attachment.node = std::move(node);
  attachment.volume = volume;
  return attachment;
}

TEST(NodeVolumeLimitsTest, CountsEachVolumeOfDriverOnce) {
  struct Case {
    std::vector<std::string> there, asked;
    std::optional<int32_t> limit;
    bool fits;
  };
  const Case cases[] = {
      {{"d0"}, {"d1"}, 2, true},
      {{"d0"}, {"d1"}, 1, false},
      {{"d0"}, {"d1"}, std::nullopt, true},
      {{"d0"}, {"d0"}, 1, true},        // attached already
      {{"d0", "d1"}, {"d0"}, 1, true},  // over the limit, but nothing is added
      {{"d0"}, {"d1", "d1"}, 2, true},  // one volume twice
      {{"d0"}, {"d1", "d2"}, 2, false},
      {{"e0", "e1", "e2"}, {"d0"}, 1, true},  // of another driver
      {{"e0"}, {"e1"}, 1, true},              // of a driver without a limit
      {{}, {"d0"}, 0, false},
      {{}, {"e0", "d0"}, 1, true},
  };
  for (const Case& c : cases) {
    const auto snapshot =
        Some({WithClaims(PodOf("q", {}, "n"), c.there)}, {Limit("d.io", c.limit)});
    EXPECT_EQ(Says(WithClaims(PodOf("p"), c.asked), snapshot), c.fits ? "" : kFull) << (&c - cases);
  }
}

TEST(NodeVolumeLimitsTest, CountsVolumesToBeProvisioned) {
  auto snapshot = Some({WithClaims(PodOf("q", {}, "n"), {"new0"})}, {Limit("d.io", 2)});
  Put(snapshot, testing::StorageClassOf("fast"), ClaimOf("new0", "fast"), ClaimOf("new1", "fast"),
      ClaimOf("new2", "fast"), ClaimOf("lost class", "gone"), ClaimOf("none"),
      BoundClaimOf("prebound", "not there"));
  const auto says = [&](const std::vector<std::string>& claims) {
    return Says(WithClaims(PodOf("p"), claims), snapshot);
  };
  EXPECT_EQ(says({"new1"}), "");
  EXPECT_EQ(says({"new0", "new1"}), "");
  EXPECT_EQ(says({"new1", "new2"}), kFull);
  EXPECT_EQ(says({"new1", "d0"}), kFull);
  EXPECT_EQ(says({"new1", "e0"}), "");
  EXPECT_EQ(says({"new1", "lost class", "none"}), "") << "no class, no driver";
  EXPECT_EQ(says({"new1", "prebound"}), "");
  auto prebound = BoundClaimOf("prebound", "not there");
  prebound.storage_class = "fast";
  Put(snapshot, prebound);
  EXPECT_EQ(says({"new1", "prebound"}), kFull) << "counted by its class";
}

TEST(NodeVolumeLimitsTest, CountsAttachedVolumesWithoutPod) {
  auto snapshot = Some({WithClaims(PodOf("q", {}, "n"), {"d0"})}, {Limit("d.io", 2)});
  const Pod pod = WithClaims(PodOf("p"), {"d1"});
  Put(snapshot, Attached("pv-d0"), Attached("pv-d2", "e.io"), Attached("pv-d2", "d.io", "m"),
      Attached("pv-gone"), Attached("pv-d3", ""));
  EXPECT_EQ(Says(pod, snapshot), "");
  Put(snapshot, Attached("pv-d3"));
  EXPECT_EQ(Says(pod, snapshot), kFull);
  EXPECT_EQ(Says(WithClaims(PodOf("p"), {"e0"}), snapshot), "");
  // Like kube-scheduler: a requested volume that is attached already counts twice.
  EXPECT_EQ(Says(WithClaims(PodOf("p"), {"d3"}), snapshot), kFull);
}

TEST(NodeVolumeLimitsTest, CountsEphemeralVolumesOfTheirPod) {
  auto snapshot = Some({WithClaims(PodOf("q", {}, "n"), {"d0"})}, {Limit("d.io", 1)});
  Put(snapshot, testing::StorageClassOf("fast"));
  const Pod pod = WithEphemeral(PodOf("p"), "scratch");
  EXPECT_EQ(Says(pod, snapshot),
            "looking up PVC x/p-scratch: persistentvolumeclaim \"p-scratch\" not found");
  Put(snapshot, ClaimOf("p-scratch", "fast"));
  EXPECT_EQ(Says(pod, snapshot), "PVC x/p-scratch was not created for pod x/p (pod is not owner)");
  Put(snapshot, ClaimFor(pod, "scratch", "fast"));
  EXPECT_EQ(Says(pod, snapshot), kFull);
  Put(snapshot, CsiNodeOf("n", {Limit("d.io", 2)}));
  EXPECT_EQ(Says(pod, snapshot), "");
  // Volumes of placed pods count, but not through a claim that was created for another pod.
  ASSERT_TRUE(snapshot.Bind(std::make_shared<const Pod>(pod), "n").ok());
  EXPECT_EQ(Says(WithClaims(PodOf("r"), {"d1"}), snapshot), kFull);
  Put(snapshot, ClaimOf("p-scratch", "fast"));
  EXPECT_EQ(Says(WithClaims(PodOf("r"), {"d1"}), snapshot), "");
}

TEST(NodeVolumeLimitsTest, SkipsPodsWithoutClaimsAndNodesWithoutLimits) {
  const NodeVolumeLimits plugin;
  Pod pod = PodOf("p");
  pod.volumes = {{"config"}};
  EXPECT_FALSE(plugin.Concerns(pod));
  auto snapshot = Some({}, {Limit("d.io", 0)});
  CycleState state;
  EXPECT_TRUE(plugin.PreFilter(pod, snapshot, state).skip);
  EXPECT_FALSE(plugin.PreFilter(WithClaims(pod, {"d0"}), snapshot, state).skip);
  EXPECT_TRUE(plugin.PreFilter(WithClaims(pod, {"c"}), Snap({NodeOf("n")}), state).skip)
      << "no cluster context";
  Put(snapshot, ClaimOf("in-tree", "disk"), testing::StorageClassOf("disk", ""));
  EXPECT_TRUE(plugin.PreFilter(WithClaims(pod, {"in-tree"}), snapshot, state).skip);
  snapshot.ChangeContext().csi_nodes.Set("n", nullptr);
  EXPECT_EQ(Says(WithClaims(pod, {"d0"}), snapshot), "") << "a node without CSINode";
  CycleState none;
  EXPECT_TRUE(plugin.Filter(none, WithClaims(pod, {"d0"}), snapshot.node(0)).fits());
}

TEST(NodeVolumeLimitsTest, IncrementalUpdatesEqualRecomputation) {
  const NodeVolumeLimits plugin;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    auto snapshot = Snap({NodeOf("n0"), NodeOf("n1"), NodeOf("n2")});
    std::vector<std::string> claims;
    for (int i = 0; i < 8; ++i) {
      claims.push_back("c" + std::to_string(i));
      PutBound(snapshot, claims.back(), i % 2 == 0 ? "d.io" : "e.io");
      if (random.Chance(0.3)) Put(snapshot, ClaimOf(claims.back(), "fast"));
      if (random.Chance(0.3)) {
        Put(snapshot, Attached("pv-" + claims.back(), "d.io", "n" + std::to_string(i % 3)));
      }
    }
    Put(snapshot, testing::StorageClassOf("fast"), CsiNodeOf("n0", {Limit("d.io", 2)}),
        CsiNodeOf("n1", {Limit("d.io", 3), Limit("e.io", 1)}));
    const auto some = [&](std::string name) {
      return WithClaims(PodOf(std::move(name)), {claims[random.Below(8)], claims[random.Below(8)]});
    };
    testing::Follower<NodeVolumeLimits> follower(plugin, some("p"), snapshot);
    std::vector<std::pair<std::shared_ptr<const Pod>, std::string>> placed;
    for (int step = 0; step < 40; ++step) {
      const bool comes = placed.empty() || random.Chance(0.5);
      if (comes) {
        placed.emplace_back(std::make_shared<const Pod>(some("q" + std::to_string(step))),
                            "n" + std::to_string(random.Below(3)));
      } else {
        random.Shuffle(placed);
      }
      const auto [other, node] = placed.back();
      if (comes) {
        ASSERT_TRUE(snapshot.Bind(other, node).ok());
      } else {
        ASSERT_TRUE(snapshot.Unbind(*other, node).ok());
        placed.pop_back();
      }
      ASSERT_EQ(follower.Follow(*other, comes, node, snapshot), "") << "seed " << seed;
    }
    EXPECT_EQ(follower.restarts(), 0);
  }
}

TEST(NodeVolumeLimitsTest, HintsReportHelpfulEvents) {
  const NodeVolumeLimits plugin;
  const Pod pod = WithEphemeral(WithClaims(PodOf("p"), {"c"}), "scratch");
  const auto helps = [&](const ClusterEvent& event) { return plugin.MayHelp(event, pod); };
  const auto node = [&](std::optional<int32_t> before, std::optional<int32_t> after) {
    const auto was = CsiNodeOf("n", {Limit("d.io", before)});
    const auto is = CsiNodeOf("n", {Limit("d.io", after)});
    return helps(ContextEvent("CSINode", &was, &is));
  };
  EXPECT_TRUE(node(1, 2));
  EXPECT_FALSE(node(2, 2));
  EXPECT_FALSE(node(2, 1));
  EXPECT_TRUE(node(2, std::nullopt));
  EXPECT_FALSE(node(std::nullopt, 2));
  const auto empty = CsiNodeOf("n", {}), limited = CsiNodeOf("n", {Limit("d.io", 2)});
  EXPECT_TRUE(helps(ContextEvent("CSINode", &empty, &limited)));
  EXPECT_TRUE(helps(ContextEvent("CSINode", &limited, &empty)));
  EXPECT_TRUE(helps(ContextEvent("CSINode", {}, &empty)));
  const auto left = [&](Pod other) {
    ClusterEvent event{ClusterEvent::Kind::kPodLeft};
    event.pod_before = std::make_shared<const Pod>(std::move(other));
    return helps(event);
  };
  EXPECT_FALSE(left(PodOf("q")));
  EXPECT_TRUE(left(WithClaims(PodOf("q"), {"any"})));
  EXPECT_TRUE(left(WithEphemeral(PodOf("q"), "any")));
  const auto claim = ClaimOf("c"), other = ClaimOf("other"), scratch = ClaimOf("p-scratch");
  EXPECT_TRUE(helps(ContextEvent("PersistentVolumeClaim", {}, &claim)));
  EXPECT_TRUE(helps(ContextEvent("PersistentVolumeClaim", {}, &scratch)));
  EXPECT_FALSE(helps(ContextEvent("PersistentVolumeClaim", {}, &other)));
  EXPECT_FALSE(helps(ContextEvent("PersistentVolumeClaim", &claim, &claim)));
  const auto attachment = Attached("pv");
  EXPECT_TRUE(
      helps(ContextEvent<cluster::VolumeAttachment>("VolumeAttachment", &attachment, nullptr)));
  EXPECT_FALSE(helps(ContextEvent("VolumeAttachment", {}, &attachment)));
  EXPECT_FALSE(helps({ClusterEvent::Kind::kNodeChanged}));
  EXPECT_TRUE(helps({ClusterEvent::Kind::kNodeAdded}));
}

}  // namespace
}  // namespace nos::scheduling
