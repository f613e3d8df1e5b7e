#include "scheduling/plugins/volume_restrictions/plugin.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "scheduling/testing/build.h"
#include "scheduling/testing/follower.h"
#include "scheduling/testing/volumes.h"

namespace nos::scheduling {
namespace {

using cluster::Pod;
using cluster::Volume;
using testing::NodeOf;
using testing::PodOf;
using testing::Put;
using testing::Snap;
using testing::WithClaims;
using enum Volume::Kind;

Pod With(Pod pod, Volume volume) {
  pod.volumes.push_back(std::move(volume));
  return pod;
}

TEST(VolumeRestrictionsTest, RefusesConflictingDisksOnSameNode) {
  struct Case {
    Volume ours, theirs;
    bool fits;
  };
  const Case cases[] = {
      {{"v", kGcePersistentDisk, "a"}, {"w", kGcePersistentDisk, "a"}, false},
      {{"v", kGcePersistentDisk, "a"}, {"w", kGcePersistentDisk, "b"}, true},
      {{"v", kGcePersistentDisk, "a", true}, {"w", kGcePersistentDisk, "a"}, false},
      {{"v", kGcePersistentDisk, "a", true}, {"w", kGcePersistentDisk, "a", true}, true},
      {{"v", kAwsElasticBlock, "a", true}, {"w", kAwsElasticBlock, "a", true}, false},
      {{"v", kAwsElasticBlock, "a"}, {"w", kGcePersistentDisk, "a"}, true},
      {{"v", kIscsi, "iqn"}, {"w", kIscsi, "iqn", true}, false},
      {{"v", kIscsi, "iqn", true}, {"w", kIscsi, "iqn", true}, true},
      {{"v", kRbd, "pool/image", false, {"a", "b"}},
       {"w", kRbd, "pool/image", false, {"b"}},
       false},
      {{"v", kRbd, "pool/image", false, {"a"}}, {"w", kRbd, "pool/image", false, {"b"}}, true},
      {{"v", kRbd, "pool/image", false, {"a"}}, {"w", kRbd, "pool/other", false, {"a"}}, true},
      {{"v", kRbd, "pool/image", true, {"a"}}, {"w", kRbd, "pool/image", true, {"a"}}, true},
      {{"v", kClaim, "a"}, {"w", kClaim, "a"}, true},
  };
  const VolumeRestrictions plugin;
  for (const Case& c : cases) {
    auto snapshot = Snap({NodeOf("a"), NodeOf("b")}, {With(PodOf("q", {}, "a"), c.theirs)});
    Put(snapshot, testing::ClaimOf("a"));
    const Pod pod = With(PodOf("p"), c.ours);
    const testing::Follower<VolumeRestrictions> follower(plugin, pod, snapshot);
    EXPECT_EQ(follower.verdicts()[0], c.fits ? "" : "node(s) had no available disk")
        << c.ours.source;
    EXPECT_EQ(follower.verdicts()[1], "");
  }
}

TEST(VolumeRestrictionsTest, SkipsPodsWithoutDisksAndClaims) {
  const VolumeRestrictions plugin;
  EXPECT_FALSE(plugin.Concerns(PodOf("p")));
  EXPECT_FALSE(plugin.Concerns(With(PodOf("p"), {"config"})));
  EXPECT_TRUE(plugin.Concerns(With(PodOf("p"), {"v", kIscsi, "iqn"})));
  auto snapshot = Snap({NodeOf("a")});
  EXPECT_FALSE(plugin.ConcernsIn(snapshot, WithClaims(PodOf("p"), {"c"})));
  EXPECT_TRUE(plugin.ConcernsIn(snapshot, With(PodOf("p"), {"v", kIscsi, "iqn"})));
  Put(snapshot, testing::ClaimOf("c"));
  EXPECT_TRUE(plugin.ConcernsIn(snapshot, WithClaims(PodOf("p"), {"c"})));
  CycleState state;
  EXPECT_TRUE(plugin.PreFilter(WithClaims(PodOf("p"), {"c"}), snapshot, state).skip);
  EXPECT_FALSE(plugin.PreFilter(With(PodOf("p"), {"v", kRbd, "r"}), snapshot, state).skip);
}

TEST(VolumeRestrictionsTest, ReadWriteOncePodWaitsForOtherPod) {
  const VolumeRestrictions plugin;
  auto claim = testing::ClaimOf("c");
  claim.access_modes = {"ReadWriteOncePod"};
  Pod elsewhere = WithClaims(PodOf("q", {}, "a"), {"c"});
  elsewhere.meta.ns = "y";
  auto snapshot = Snap({NodeOf("a"), NodeOf("b")}, {elsewhere});
  Put(snapshot, claim);
  testing::Follower<VolumeRestrictions> follower(plugin, WithClaims(PodOf("p"), {"c"}), snapshot);
  EXPECT_EQ(follower.verdicts(), (std::vector<std::string>{"", ""}));
  const auto holder = std::make_shared<const Pod>(WithClaims(PodOf("holder", {}, "a"), {"c"}));
  ASSERT_TRUE(snapshot.Bind(holder, "a").ok());
  EXPECT_EQ(follower.Follow(*holder, true, "a", snapshot), "");
  const std::string in_use =
      "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
      "in-use by another pod";
  EXPECT_EQ(follower.verdicts(), (std::vector<std::string>{in_use, in_use}));
  CycleState state;
  const Pod waits = WithClaims(PodOf("p"), {"c"});
  ASSERT_TRUE(plugin.PreFilter(waits, snapshot, state).verdict.fits());
  EXPECT_EQ(plugin.Filter(state, waits, snapshot.node(1)).kind, Verdict::Kind::kUnschedulable)
      << "preemption helps";
  ASSERT_TRUE(snapshot.Unbind(*holder, "a").ok());
  EXPECT_EQ(follower.Follow(*holder, false, "a", snapshot), "");
  EXPECT_EQ(follower.verdicts(), (std::vector<std::string>{"", ""}));
}

TEST(VolumeRestrictionsTest, MissingClaimIsUnresolvableWithClusterContext) {
  const VolumeRestrictions plugin;
  auto snapshot = Snap({NodeOf("a")});
  const Pod pod = WithClaims(PodOf("p"), {"c"});
  CycleState state;
  EXPECT_TRUE(plugin.PreFilter(pod, snapshot, state).verdict.fits());
  snapshot.ChangeContext();
  const Verdict verdict = plugin.PreFilter(pod, snapshot, state).verdict;
  EXPECT_EQ(verdict.kind, Verdict::Kind::kUnresolvable);
  EXPECT_EQ(verdict.message, "persistentvolumeclaim \"c\" not found");
}

TEST(VolumeRestrictionsTest, IncrementalUpdatesEqualRecomputation) {
  const VolumeRestrictions plugin;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const auto some = [&](std::string name) {
      Pod pod = PodOf(std::move(name));
      if (random.Chance(0.2)) pod.meta.ns = "y";
      if (random.Chance(0.5)) pod = WithClaims(pod, {"c" + std::to_string(random.Below(3))});
      if (random.Chance(0.3)) pod = WithClaims(pod, {"c" + std::to_string(random.Below(3))});
      if (random.Chance(0.5)) {
        pod = With(pod, {"d", kIscsi, std::to_string(random.Below(3)), random.Chance(0.5)});
      }
      return pod;
    };
    auto snapshot = Snap({NodeOf("n0"), NodeOf("n1"), NodeOf("n2")});
    for (int i = 0; i < 3; ++i) {
      auto claim = testing::ClaimOf("c" + std::to_string(i));
      if (i > 0) claim.access_modes = {"ReadWriteOncePod"};
      Put(snapshot, claim);
    }
    Pod pod = some("p");
    pod.meta.ns = "x";
    testing::Follower<VolumeRestrictions> follower(plugin, pod, snapshot);
    std::vector<std::pair<std::shared_ptr<const Pod>, std::string>> placed;
    for (int step = 0; step < 60; ++step) {
      if (placed.empty() || random.Chance(0.55)) {
        const auto other = std::make_shared<const Pod>(some("q" + std::to_string(step)));
        const std::string node = "n" + std::to_string(random.Below(3));
        ASSERT_TRUE(snapshot.Bind(other, node).ok());
        placed.emplace_back(other, node);
        ASSERT_EQ(follower.Follow(*other, true, node, snapshot), "") << "seed " << seed;
      } else {
        random.Shuffle(placed);
        const auto [other, node] = placed.back();
        placed.pop_back();
        ASSERT_TRUE(snapshot.Unbind(*other, node).ok());
        ASSERT_EQ(follower.Follow(*other, false, node, snapshot), "") << "seed " << seed;
      }
    }
    EXPECT_LT(follower.restarts(), 40) << "only the first and last user change all verdicts";
  }
}

TEST(VolumeRestrictionsTest, HintsReportHelpfulEvents) {
  const VolumeRestrictions plugin;
  const Pod pod = With(WithClaims(PodOf("p"), {"c"}), {"d", kIscsi, "iqn"});
  const auto left = [&](Pod other) {
    ClusterEvent event{ClusterEvent::Kind::kPodLeft};
    event.pod_before = std::make_shared<const Pod>(std::move(other));
    return plugin.MayHelp(event, pod);
  };
  EXPECT_FALSE(left(PodOf("q")));
  EXPECT_FALSE(left(WithClaims(PodOf("q"), {"other"})));
  EXPECT_TRUE(left(WithClaims(PodOf("q"), {"c"})));
  Pod elsewhere = WithClaims(PodOf("q"), {"c"});
  elsewhere.meta.ns = "y";
  EXPECT_FALSE(left(elsewhere));
  EXPECT_TRUE(left(With(elsewhere, {"w", kIscsi, "iqn"})));
  EXPECT_FALSE(left(With(PodOf("q"), {"w", kIscsi, "other"})));
  const auto claim = [&](const char* name, bool existed) {
    const auto now = testing::ClaimOf(name);
    return plugin.MayHelp(
        testing::ContextEvent("PersistentVolumeClaim", existed ? &now : nullptr, &now), pod);
  };
  EXPECT_TRUE(claim("c", false));
  EXPECT_FALSE(claim("c", true));
  EXPECT_FALSE(claim("other", false));
  ClusterEvent without_objects{ClusterEvent::Kind::kContext};
  without_objects.context_kind = "PersistentVolumeClaim";
  EXPECT_TRUE(plugin.MayHelp(without_objects, pod));
  without_objects.context_kind = "Namespace";
  EXPECT_FALSE(plugin.MayHelp(without_objects, pod));
  EXPECT_TRUE(plugin.MayHelp({ClusterEvent::Kind::kNodeAdded}, pod));
  EXPECT_FALSE(plugin.MayHelp({ClusterEvent::Kind::kNodeChanged}, pod));
  EXPECT_FALSE(plugin.MayHelp({ClusterEvent::Kind::kPodBound}, pod));
}

}  // namespace
}  // namespace nos::scheduling
