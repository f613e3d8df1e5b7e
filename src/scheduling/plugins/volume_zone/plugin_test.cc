#include "scheduling/plugins/volume_zone/plugin.h"

#include <gtest/gtest.h>

#include "scheduling/testing/build.h"
#include "scheduling/testing/follower.h"
#include "scheduling/testing/volumes.h"

namespace nos::scheduling {
namespace {

using cluster::StringMap;
using testing::BoundClaimOf;
using testing::NodeOf;
using testing::PodOf;
using testing::Put;
using testing::Snap;
using testing::WithClaims;

constexpr const char* kZone = "topology.kubernetes.io/zone";
constexpr const char* kRegion = "topology.kubernetes.io/region";
constexpr const char* kBetaZone = "failure-domain.beta.kubernetes.io/zone";

TEST(VolumeZoneTest, RequiresMatchingZoneLabels) {
  struct Case {
    StringMap volume, node;
    bool fits;
  };
  const Case cases[] = {
      {{}, {{kZone, "a"}}, true},
      {{{kZone, "a"}}, {{kZone, "a"}}, true},
      {{{kZone, "a"}}, {{kZone, "b"}}, false},
      {{{kZone, "a"}}, {}, true},                 // a cluster with one zone
      {{{kZone, "a"}}, {{"zone", "b"}}, true},    // not a zone label
      {{{kZone, "a"}}, {{kRegion, "r"}}, false},  // zone labels, but not this one
      {{{kZone, "a__b"}}, {{kZone, "b"}}, true},
      {{{kZone, "a__ b "}}, {{kZone, "b"}}, true},
      {{{kZone, "a__b"}}, {{kZone, "c"}}, false},
      {{{kZone, "a__"}}, {{kZone, "c"}}, true},  // invalid, ignored
      {{{kZone, "a"}, {kRegion, "r"}}, {{kZone, "a"}, {kRegion, "s"}}, false},
      {{{kZone, "a"}, {kRegion, "r"}}, {{kZone, "a"}, {kRegion, "r"}}, true},
      {{{kBetaZone, "a"}}, {{kBetaZone, "a"}}, true},
      {{{kBetaZone, "a"}}, {{kZone, "a"}}, true},
      {{{kBetaZone, "a"}}, {{kZone, "b"}}, false},
      {{{kBetaZone, "a"}}, {{kBetaZone, "b"}, {kZone, "a"}}, false},
      {{{kZone, "a"}}, {{kBetaZone, "a"}}, false},  // the reverse is not translated
  };
  const VolumeZone plugin;
  const auto pod = WithClaims(PodOf("p"), {"c"});
  for (const Case& c : cases) {
    auto snapshot = Snap({NodeOf("n", {}, c.node)});
    auto volume = testing::VolumeOf("pv");
    volume.meta.labels = c.volume;
    Put(snapshot, BoundClaimOf("c", "pv"), volume);
    const testing::Follower<VolumeZone> follower(plugin, pod, snapshot);
    EXPECT_EQ(follower.verdicts()[0], c.fits ? "" : "node(s) had no available volume zone")
        << (&c - cases);
  }
}

TEST(VolumeZoneTest, MissingObjectsAreUnresolvable) {
  const VolumeZone plugin;
  auto snapshot = Snap({NodeOf("n")});
  CycleState state;
  const auto pod = WithClaims(PodOf("p"), {"c"});
  EXPECT_FALSE(plugin.Concerns(PodOf("p")));
  EXPECT_TRUE(plugin.PreFilter(pod, snapshot, state).skip) << "no cluster context";
  const auto message = [&] {
    const auto outcome = plugin.PreFilter(pod, snapshot, state);
    EXPECT_EQ(outcome.verdict.kind, Verdict::Kind::kUnresolvable);
    return outcome.verdict.message;
  };
  snapshot.ChangeContext();
  EXPECT_EQ(message(), "persistentvolumeclaim \"c\" not found");
  Put(snapshot, testing::ClaimOf("c"));
  EXPECT_EQ(message(), "PersistentVolumeClaim had no pv name and storageClass name");
  Put(snapshot, testing::ClaimOf("c", "fast"));
  EXPECT_EQ(message(), "storageclass.storage.k8s.io \"fast\" not found");
  Put(snapshot, testing::StorageClassOf("fast", "d.io", false));
  EXPECT_EQ(message(), "PersistentVolume had no name");
  Put(snapshot, BoundClaimOf("c", "pv"));
  EXPECT_EQ(message(), "persistentvolume \"pv\" not found");
  Put(snapshot, testing::ClaimOf("c", "fast"), testing::StorageClassOf("fast"));
  EXPECT_TRUE(plugin.PreFilter(pod, snapshot, state).skip) << "chosen with the node";
  const auto unnamed = WithClaims(PodOf("p"), {""});
  EXPECT_EQ(plugin.PreFilter(unnamed, snapshot, state).verdict.message,
            "PersistentVolumeClaim had no name");
}

TEST(VolumeZoneTest, HintsReportHelpfulEvents) {
  const VolumeZone plugin;
  const auto pod = WithClaims(PodOf("p"), {"c"});
  const auto helps = [&](const ClusterEvent& event) { return plugin.MayHelp(event, pod); };
  const auto claim = testing::ClaimOf("c");
  const auto other = testing::ClaimOf("d");
  const auto kind = "PersistentVolumeClaim";
  EXPECT_TRUE(helps(testing::ContextEvent(kind, {}, &claim)));
  EXPECT_TRUE(helps(testing::ContextEvent(kind, &claim, &claim)));
  EXPECT_FALSE(helps(testing::ContextEvent(kind, {}, &other)));
  EXPECT_FALSE(helps(testing::ContextEvent<cluster::PersistentVolumeClaim>(kind, &claim, nullptr)));
  const auto waiting = testing::StorageClassOf("s");
  const auto immediate = testing::StorageClassOf("s", "d.io", false);
  EXPECT_TRUE(helps(testing::ContextEvent("StorageClass", {}, &waiting)));
  EXPECT_FALSE(helps(testing::ContextEvent("StorageClass", {}, &immediate)));
  EXPECT_FALSE(helps(testing::ContextEvent("StorageClass", &immediate, &waiting)));
  const auto plain = testing::VolumeOf("pv");
  auto labelled = plain, zoned = plain;
  labelled.meta.labels["team"] = "a";
  zoned.meta.labels[kZone] = "a";
  EXPECT_TRUE(helps(testing::ContextEvent("PersistentVolume", {}, &plain)));
  EXPECT_FALSE(helps(testing::ContextEvent("PersistentVolume", &plain, &labelled)));
  EXPECT_TRUE(helps(testing::ContextEvent("PersistentVolume", &plain, &zoned)));
  ClusterEvent changed{ClusterEvent::Kind::kNodeChanged};
  changed.node_before = std::make_shared<const cluster::Node>(NodeOf("n"));
  changed.node = std::make_shared<const cluster::Node>(NodeOf("n", {{"cpu", "1"}}));
  EXPECT_FALSE(helps(changed));
  changed.node = std::make_shared<const cluster::Node>(NodeOf("n", {}, {{kZone, "a"}}));
  EXPECT_TRUE(helps(changed));
  EXPECT_TRUE(helps({ClusterEvent::Kind::kNodeAdded}));
  EXPECT_FALSE(helps({ClusterEvent::Kind::kPodLeft}));
  ClusterEvent without_objects{ClusterEvent::Kind::kContext};
  without_objects.context_kind = "PersistentVolume";
  EXPECT_TRUE(helps(without_objects));
}

}  // namespace
}  // namespace nos::scheduling
