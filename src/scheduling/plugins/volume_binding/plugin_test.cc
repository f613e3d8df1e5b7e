#include "scheduling/plugins/volume_binding/plugin.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "cluster/volumes.h"
#include "scheduling/testing/build.h"
#include "scheduling/testing/follower.h"
#include "scheduling/testing/volumes.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using cluster::CsiStorageCapacity;
using cluster::PersistentVolume;
using cluster::PersistentVolumeClaim;
using cluster::Pod;
using testing::BoundClaimOf;
using testing::ClaimOf;
using testing::ContextEvent;
using testing::NodeOf;
using testing::PodOf;
using testing::Put;
using testing::Snap;
using testing::StorageClassOf;
using testing::VolumeOf;
using testing::WithClaims;
using Kind = Progress::Kind;

constexpr Time kStart{std::chrono::hours(1)};
constexpr auto kMinute = std::chrono::minutes(1);

TEST(VolumeBindingTest, SkipsPodsWithoutClaimsOrClusterContext) {
  const VolumeBinding plugin;
  Pod pod = PodOf("p");
  pod.volumes = {{"config"}};
  EXPECT_FALSE(plugin.Concerns(pod));
  ClusterSnapshot snapshot = Snap({NodeOf("n")});
  CycleState state;
  EXPECT_TRUE(plugin.PreFilter(WithClaims(pod, {"c"}), snapshot, state).skip)
      << "no cluster context";
  EXPECT_FALSE(plugin.ConcernsIn(snapshot, WithClaims(pod, {"c"})));
  snapshot.ChangeContext();
  EXPECT_TRUE(plugin.ConcernsIn(snapshot, WithClaims(pod, {"c"})));
  EXPECT_TRUE(plugin.PreFilter(pod, snapshot, state).skip);
  EXPECT_EQ(plugin.PreFilter(WithClaims(pod, {"c"}), snapshot, state).verdict.code,
            "ClaimNotFound");
  EXPECT_TRUE(plugin.Filter({}, WithClaims(pod, {"c"}), snapshot.node(0)).fits());
  const uint64_t version = snapshot.context_version();
  EXPECT_TRUE(plugin.Reserve(pod, "n", snapshot, state).fits());
  EXPECT_EQ(plugin.PreBind(pod, "n", snapshot, kStart, state).kind, Kind::kReady);
  plugin.Unreserve(pod, "n", snapshot, state);
  EXPECT_EQ(snapshot.context_version(), version) << "no unneeded change";
}

// One pod with claim "c" of a class, to be bound to node "n" in zone a. Class "local" has a volume
// "pv"; class "cloud" provisions one.
class BindingTest : public ::testing::Test {
 protected:
  BindingTest() {
    Put(snapshot_, StorageClassOf("local", "kubernetes.io/no-provisioner"), StorageClassOf("cloud"),
        VolumeOf("pv", "local", "1Gi", {"a"}));
  }
  void Want(const std::string& storage) { Put(snapshot_, ClaimOf("c", storage)); }
  void Reserve() { ASSERT_TRUE(plugin_.Reserve(pod_, "n", snapshot_, state_).fits()); }
  void Unreserve() { plugin_.Unreserve(pod_, "n", snapshot_, state_); }
  Progress PreBind(Time now = kStart) { return plugin_.PreBind(pod_, "n", snapshot_, now, state_); }
  void WantFailure(const std::string& message) {
    const Progress progress = PreBind();
    EXPECT_EQ(progress.kind, Kind::kFailed);
    EXPECT_EQ(progress.message, "binding volumes: " + message);
    EXPECT_TRUE(progress.writes.empty());
  }
  void WantWaiting() {
    const Progress progress = PreBind();
    EXPECT_EQ(progress.kind, Kind::kWaits) << progress.message;
    EXPECT_TRUE(progress.writes.empty());
  }
  PersistentVolume Volume() { return *snapshot_.context().volumes.Find("pv"); }
  PersistentVolumeClaim Claim() { return *snapshot_.context().claims.Find("x/c"); }
  // Puts an object as the watch would show it.
  template <typename T>
  void Arrives(T object, const std::string& version = "2") {
    object.meta.resource_version = version;
    Put(snapshot_, object);
  }

  const VolumeBinding plugin_;
  ClusterSnapshot snapshot_ = Snap({NodeOf("n", {}, {{"zone", "a"}}), NodeOf("m")});
  Pod pod_ = WithClaims(PodOf("p"), {"c"});
  CycleState state_;
};

TEST_F(BindingTest, BindsExistingVolumeToClaim) {
  Want("local");
  Reserve();
  EXPECT_EQ(Volume().claim_ns + "/" + Volume().claim_name, "x/c");
  const Progress first = PreBind();
  EXPECT_EQ(first.kind, Kind::kWaits);
  EXPECT_EQ(first.message, "persistentvolumeclaim \"x/c\" is not bound yet");
  EXPECT_EQ(first.until, kStart + std::chrono::seconds(600));
  ASSERT_EQ(first.writes.size(), 1U);
  EXPECT_EQ(first.writes[0].method, "PATCH");
  EXPECT_EQ(first.writes[0].path, "/api/v1/persistentvolumes/pv");
  EXPECT_EQ(first.writes[0].content_type, "application/merge-patch+json");
  EXPECT_EQ(first.writes[0].body,
            ParseJson(R"({"spec":{"claimRef":{"apiVersion":"v1","kind":"PersistentVolumeClaim",
              "namespace":"x","name":"c","uid":"uid of c","resourceVersion":"1"}},
              "metadata":{"annotations":{"pv.kubernetes.io/bound-by-controller":"yes"},
              "resourceVersion":"1"}})")
                .value());
  WantWaiting();
  Arrives(Volume());
  WantWaiting();
  auto bound = BoundClaimOf("c", "pv");
  Arrives(bound);
  EXPECT_EQ(PreBind().kind, Kind::kReady);
}

TEST_F(BindingTest, ReservedVolumeGetsNoBoundByControllerAnnotation) {
  Want("local");
  auto kept = VolumeOf("pv", "local");
  kept.claim_ns = "x";
  kept.claim_name = "c";
  Put(snapshot_, kept);
  Reserve();
  const Progress first = PreBind();
  ASSERT_EQ(first.writes.size(), 1U);
  EXPECT_EQ(Find(first.writes[0].body, "metadata", "annotations"), nullptr);
  EXPECT_EQ(FindString(first.writes[0].body, "spec", "claimRef", "uid"), "uid of c");
}

TEST_F(BindingTest, WaitsForBindingThatIsAlreadyWritten) {
  Want("local");
  auto given = VolumeOf("pv", "local");
  given.claim_ns = "x";
  given.claim_name = "c";
  given.claim_uid = "uid of c";
  Put(snapshot_, given);
  Reserve();
  WantWaiting();
  Arrives(BoundClaimOf("c", "pv"));
  EXPECT_EQ(PreBind().kind, Kind::kReady);
}

TEST_F(BindingTest, ClaimToBeProvisionedGetsSelectedNode) {
  Want("cloud");
  Reserve();
  EXPECT_EQ(Claim().meta.annotations.at("volume.kubernetes.io/selected-node"), "n");
  const Progress first = PreBind();
  ASSERT_EQ(first.writes.size(), 1U);
  EXPECT_EQ(first.writes[0].path, "/api/v1/namespaces/x/persistentvolumeclaims/c");
  EXPECT_EQ(first.writes[0].body, ParseJson(R"({"metadata":{"resourceVersion":"1",
              "annotations":{"volume.kubernetes.io/selected-node":"n"}}})")
                                      .value());
  auto claim = Claim();
  Arrives(claim);
  WantWaiting();
  claim.volume_name = "made";
  claim.meta.annotations["pv.kubernetes.io/bind-completed"] = "yes";
  Arrives(claim, "3");
  WantWaiting();  // the volume is not in the watch yet
  Arrives(VolumeOf("made", "cloud", "1Gi", {"a"}));
  EXPECT_EQ(PreBind().kind, Kind::kReady);
}

TEST_F(BindingTest, ReservedVolumeIsNotGivenToNextPod) {
  Want("local");
  Put(snapshot_, ClaimOf("d", "local"), VolumeOf("pv2", "local", "2Gi"));
  const Pod other = WithClaims(PodOf("q"), {"d"}), third = WithClaims(PodOf("r"), {"e"});
  CycleState others, thirds;
  Reserve();
  ASSERT_TRUE(plugin_.Reserve(other, "n", snapshot_, others).fits());
  EXPECT_EQ(snapshot_.context().volumes.Find("pv2")->claim_name, "d");
  Put(snapshot_, ClaimOf("e", "local"));
  EXPECT_EQ(plugin_.Reserve(third, "n", snapshot_, thirds).code, "NoVolumeToBind");
  Unreserve();
  Unreserve();
  EXPECT_EQ(Volume().claim_name, "");
  EXPECT_EQ(snapshot_.context().volumes.Find("pv2")->claim_name, "d") << "reserved by another pod";
  EXPECT_TRUE(plugin_.Reserve(third, "n", snapshot_, thirds).fits());
  Unreserve();
  EXPECT_EQ(Volume().claim_name, "e") << "not reserved by this pod any more";
}

TEST_F(BindingTest, UnreserveKeepsObjectsFromWatch) {
  Want("cloud");
  Reserve();
  auto written = Claim();
  Arrives(written);
  Unreserve();
  EXPECT_EQ(Claim().meta.annotations.at("volume.kubernetes.io/selected-node"), "n");
  EXPECT_EQ(PreBind().kind, Kind::kReady) << "no binding is left";
  Want("cloud");
  Reserve();
  Unreserve();
  EXPECT_TRUE(Claim().meta.annotations.empty());
}

TEST_F(BindingTest, DetectsAssumptionOverwrittenByWatch) {
  Want("local");
  Reserve();
  Put(snapshot_, VolumeOf("pv", "local", "1Gi", {"a"}));  // an update without changes: still free
  EXPECT_EQ(PreBind().writes.size(), 1U);
  Unreserve();
  Reserve();
  Put(snapshot_, VolumeOf("pv", "local", "1Gi", {"a"}));
  Put(snapshot_, ClaimOf("d", "local"));
  CycleState others;
  ASSERT_TRUE(plugin_.Reserve(WithClaims(PodOf("q"), {"d"}), "n", snapshot_, others).fits());
  WantFailure("pv \"pv\" and persistentvolumeclaim \"x/c\" were bound to others");
  Unreserve();
  EXPECT_EQ(Volume().claim_name, "d");
}

TEST_F(BindingTest, FailsIfVolumeChangedBeforeWrite) {
  Want("local");
  Reserve();
  Arrives(VolumeOf("pv", "local"));
  WantFailure("persistentvolume \"pv\" has changed since it was chosen");
}

TEST_F(BindingTest, ReportsFailedBindingOfVolume) {
  Want("local");
  Reserve();
  (void)PreBind();
  const auto given = Volume();
  auto changed = given;
  changed.claim_uid = "";
  Arrives(changed);
  WantFailure("ClaimRef got reset for pv \"pv\"");
  changed = given;
  changed.claim_name = "other";
  Arrives(changed);
  WantFailure("pv \"pv\" and persistentvolumeclaim \"x/c\" were bound to others");
  changed = given;
  changed.node_terms = VolumeOf("pv", "local", "1Gi", {"b"}).node_terms;
  Arrives(changed);
  WantFailure("pv \"pv\" node affinity doesn't match node \"n\": no matching NodeSelectorTerms");
  Arrives(given);
  auto claim = BoundClaimOf("c", "another");
  Arrives(claim);
  WantFailure("pv \"pv\" and persistentvolumeclaim \"x/c\" were bound to others");
  claim = BoundClaimOf("c", "pv");
  claim.phase = "Lost";
  Arrives(claim);
  WantFailure("persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"pv\"");
  snapshot_.ChangeContext().volumes.Set("pv", nullptr);
  WantFailure("failed to check binding: persistentvolume \"pv\" not found");
  Arrives(given);
  snapshot_.ChangeContext().claims.Set("x/c", nullptr);
  WantFailure("failed to check binding: persistentvolumeclaim \"x/c\" not found");
  snapshot_.RemoveNode("n");
  WantFailure("failed to get node \"n\": it is gone");
}

TEST_F(BindingTest, ReportsFailedProvisioning) {
  Want("cloud");
  Reserve();
  (void)PreBind();
  auto claim = Claim();
  claim.meta.annotations.clear();
  Arrives(claim);
  WantFailure("provisioning failed for PVC \"c\"");
  claim.meta.annotations["volume.kubernetes.io/selected-node"] = "m";
  Arrives(claim);
  WantFailure("provisioning failed for PVC \"c\"");
  claim.meta.annotations["volume.kubernetes.io/selected-node"] = "n";
  claim.volume_name = "made";
  Arrives(claim);
  WantWaiting();
  Arrives(VolumeOf("made", "cloud", "1Gi", {"b"}));
  WantFailure("pv \"made\" node affinity doesn't match node \"n\": no matching NodeSelectorTerms");
  snapshot_.ChangeContext().volumes.Set("made", nullptr);
  claim.phase = "Lost";
  Arrives(claim);
  WantFailure("persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"made\"");
  snapshot_.ChangeContext().claims.Set("x/c", nullptr);
  WantFailure("failed to check provisioning pvc: persistentvolumeclaim \"x/c\" not found");
}

TEST_F(BindingTest, FailsAfterBindTimeout) {
  Want("cloud");
  Reserve();
  EXPECT_EQ(PreBind(kStart).kind, Kind::kWaits);
  EXPECT_EQ(PreBind(kStart + 9 * kMinute).kind, Kind::kWaits);
  const Progress late = PreBind(kStart + 10 * kMinute);
  EXPECT_EQ(late.kind, Kind::kFailed);
  EXPECT_EQ(late.code, "VolumeBindingTimeout");
  EXPECT_EQ(late.message,
            "binding volumes: context deadline exceeded (600 s): persistentvolumeclaim \"x/c\" is "
            "not bound yet");
  Unreserve();
  Reserve();
  EXPECT_EQ(PreBind(kStart + 20 * kMinute).until, kStart + 30 * kMinute)
      << "each attempt has its own deadline";
}

TEST_F(BindingTest, ReserveReportsChangesSinceFilter) {
  Want("local");
  EXPECT_EQ(plugin_.Reserve(pod_, "m", snapshot_, state_).code, "NoVolumeToBind");
  EXPECT_EQ(plugin_.Reserve(pod_, "gone", snapshot_, state_).code, "NodeNotFound");
  snapshot_.ChangeContext().claims.Set("x/c", nullptr);
  EXPECT_EQ(plugin_.Reserve(pod_, "n", snapshot_, state_).code, "ClaimNotFound");
  Unreserve();
  EXPECT_EQ(PreBind().kind, Kind::kReady);
}

TEST(VolumeBindingTest, IncrementalUpdatesEqualRecomputation) {
  const VolumeBinding plugin;
  int restarts = 0, steps = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const auto zone = [&] { return std::string(1, static_cast<char>('a' + random.Below(3))); };
    auto snapshot = Snap({NodeOf("n0", {}, {{"zone", "a"}}), NodeOf("n1", {}, {{"zone", "b"}}),
                          NodeOf("n2", {}, {{"zone", "c"}})});
    Put(snapshot, StorageClassOf("local", "kubernetes.io/no-provisioner"), StorageClassOf("cloud"),
        VolumeOf("bound", "", "1Gi", {zone()}));
    const auto number = [](uint64_t i) { return std::to_string(i); };
    for (uint64_t i = 0; i < random.Below(6); ++i) {
      Put(snapshot, VolumeOf("pv" + number(i), random.Chance(0.7) ? "local" : "cloud",
                             number(1 + random.Below(3)) + "Gi", {zone()}));
    }
    for (uint64_t i = 0; i < 6; ++i) {
      Put(snapshot, ClaimOf("c" + number(i), random.Chance(0.5) ? "local" : "cloud",
                            number(1 + random.Below(2)) + "Gi"));
    }
    Put(snapshot, BoundClaimOf("c6", "bound"));
    const auto some = [&](std::string name) {
      Pod pod = PodOf(std::move(name));
      if (random.Chance(0.8)) pod = WithClaims(pod, {"c" + number(random.Below(7))});
      if (random.Chance(0.3)) pod = WithClaims(pod, {"c" + number(random.Below(7))});
      return pod;
    };
    struct Placed {
      std::shared_ptr<const Pod> pod;
      std::string node;
      CycleState state;
    };
    std::vector<Placed> placed;
    testing::Follower<VolumeBinding> follower(plugin, WithClaims(some("p"), {"c0"}), snapshot);
    for (int step = 0; step < 30; ++step, ++steps) {
      if (placed.empty() || random.Chance(0.6)) {
        Placed next{std::make_shared<const Pod>(some("q" + number(step))),
                    "n" + number(random.Below(3)),
                    {}};
        if (!plugin.Reserve(*next.pod, next.node, snapshot, next.state).fits()) continue;
        ASSERT_TRUE(snapshot.Bind(next.pod, next.node).ok());
        ASSERT_EQ(follower.Follow(*next.pod, true, next.node, snapshot), "") << "seed " << seed;
        placed.push_back(std::move(next));
      } else {
        random.Shuffle(placed);
        Placed last = std::move(placed.back());
        placed.pop_back();
        plugin.Unreserve(*last.pod, last.node, snapshot, last.state);
        ASSERT_TRUE(snapshot.Unbind(*last.pod, last.node).ok());
        ASSERT_EQ(follower.Follow(*last.pod, false, last.node, snapshot), "") << "seed " << seed;
      }
    }
    restarts += follower.restarts();
  }
  EXPECT_LT(restarts, steps * 3 / 4);
}

TEST(VolumeBindingTest, HintsReportHelpfulEvents) {
  const VolumeBinding plugin;
  const Pod pod = testing::WithEphemeral(WithClaims(PodOf("p"), {"c"}), "scratch");
  const auto helps = [&](const ClusterEvent& event) { return plugin.MayHelp(event, pod); };
  const auto claim = ClaimOf("c"), scratch = ClaimOf("p-scratch"), other = ClaimOf("other");
  const char* kind = "PersistentVolumeClaim";
  EXPECT_TRUE(helps(ContextEvent(kind, {}, &claim)));
  EXPECT_TRUE(helps(ContextEvent(kind, &claim, &claim)));
  EXPECT_TRUE(helps(ContextEvent(kind, {}, &scratch)));
  EXPECT_FALSE(helps(ContextEvent(kind, {}, &other)));
  EXPECT_FALSE(helps(ContextEvent<PersistentVolumeClaim>(kind, &claim, nullptr)));
  const auto volume = VolumeOf("pv");
  EXPECT_TRUE(helps(ContextEvent("PersistentVolume", {}, &volume)));
  EXPECT_TRUE(helps(ContextEvent("PersistentVolume", &volume, &volume)));
  EXPECT_FALSE(helps(ContextEvent<PersistentVolume>("PersistentVolume", &volume, nullptr)));
  const auto storage = StorageClassOf("s");
  auto allowed = storage;
  allowed.allowed_topologies = {{{"zone", "In", {"a"}}}};
  EXPECT_TRUE(helps(ContextEvent("StorageClass", {}, &storage)));
  EXPECT_FALSE(helps(ContextEvent("StorageClass", &storage, &storage)));
  EXPECT_FALSE(helps(ContextEvent("StorageClass", &allowed, &allowed)));
  EXPECT_TRUE(helps(ContextEvent("StorageClass", &storage, &allowed)));
  cluster::CsiDriver plain, tracking;
  tracking.tracks_capacity = true;
  EXPECT_TRUE(helps(ContextEvent("CSIDriver", &tracking, &plain)));
  EXPECT_FALSE(helps(ContextEvent("CSIDriver", &plain, &tracking)));
  EXPECT_FALSE(helps(ContextEvent("CSIDriver", {}, &tracking)));
  CsiStorageCapacity none, small, large;
  small.capacity = Quantity::FromValue(1);
  large.capacity = Quantity::FromValue(9);
  EXPECT_TRUE(helps(ContextEvent("CSIStorageCapacity", {}, &none)));
  EXPECT_TRUE(helps(ContextEvent("CSIStorageCapacity", &none, &small)));
  EXPECT_TRUE(helps(ContextEvent("CSIStorageCapacity", &small, &large)));
  EXPECT_FALSE(helps(ContextEvent("CSIStorageCapacity", &large, &small)));
  EXPECT_FALSE(helps(ContextEvent("CSIStorageCapacity", &large, &large)));
  large.maximum_volume_size = small.capacity;
  EXPECT_FALSE(helps(ContextEvent("CSIStorageCapacity", &small, &large)));
  ClusterEvent event{ClusterEvent::Kind::kNodeChanged};
  event.node_before = std::make_shared<const cluster::Node>(NodeOf("n"));
  event.node = std::make_shared<const cluster::Node>(NodeOf("n", {{"cpu", "1"}}));
  EXPECT_FALSE(helps(event));
  event.node = std::make_shared<const cluster::Node>(NodeOf("n", {}, {{"zone", "a"}}));
  EXPECT_TRUE(helps(event));
  EXPECT_TRUE(helps({ClusterEvent::Kind::kNodeAdded}));
  EXPECT_FALSE(helps({ClusterEvent::Kind::kPodBound}));
  ClusterEvent left{ClusterEvent::Kind::kPodLeft};
  left.pod_before = std::make_shared<const Pod>(PodOf("q"));
  EXPECT_FALSE(helps(left));
  left.pod_before = std::make_shared<const Pod>(WithClaims(PodOf("q"), {"any"}));
  EXPECT_TRUE(helps(left));
  for (const char* context : {"PersistentVolumeClaim", "PersistentVolume", "StorageClass",
                              "CSIDriver", "CSIStorageCapacity"}) {
    ClusterEvent without_objects{ClusterEvent::Kind::kContext};
    without_objects.context_kind = context;
    EXPECT_TRUE(helps(without_objects)) << context;
  }
  ClusterEvent of_another_kind{ClusterEvent::Kind::kContext};
  of_another_kind.context_kind = "CSINode";
  EXPECT_FALSE(helps(of_another_kind));
}

}  // namespace
}  // namespace nos::scheduling
