#include "scheduling/plugins/volume_binding/wanted_volumes.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "base/text.h"
#include "cluster/volumes.h"
#include "scheduling/testing/build.h"
#include "scheduling/testing/volumes.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using cluster::CsiDriver;
using cluster::CsiStorageCapacity;
using cluster::PersistentVolume;
using cluster::PersistentVolumeClaim;
using cluster::Pod;
using testing::BoundClaimOf;
using testing::ClaimOf;
using testing::NodeOf;
using testing::PodOf;
using testing::Put;
using testing::StorageClassOf;
using testing::VolumeOf;
using testing::WithClaims;

constexpr const char* kNoVolume = "node(s) didn't find available persistent volumes to bind";
constexpr const char* kNoReach = "node(s) didn't match PersistentVolume's node affinity";
constexpr const char* kNoSpace = "node(s) did not have enough free storage";
constexpr const char* kGone =
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

std::string Text(const std::map<std::string, std::string>& got) {
  std::vector<std::string> parts;
  parts.reserve(got.size());
  for (const auto& [claim, volume] : got) parts.push_back(fmt::format("{}={}", claim, volume));
  return Join(parts, " ");
}

// The verdict's message, or the volume of each claim: "c=pv d=new".
std::string On(const std::string& zone, const ClusterSnapshot& snapshot, const Pod& pod) {
  const auto found = FindWantedVolumes(pod, snapshot.context());
  if (const auto* verdict = std::get_if<Verdict>(&found)) {
    EXPECT_EQ(verdict->kind, Verdict::Kind::kUnresolvable);
    return verdict->message;
  }
  VolumeChoice choice;
  const auto node = NodeOf("n-" + zone, {}, {{"zone", zone}});
  const Verdict verdict = ChooseVolumes(std::get<WantedVolumes>(found), node, &choice);
  if (!verdict.fits()) {
    EXPECT_EQ(verdict.kind, Verdict::Kind::kUnresolvable);
    std::string text = verdict.message;
    for (const Reason& reason : verdict.more) text += "; " + reason.message;
    return text;
  }
  std::map<std::string, std::string> got;
  for (const auto& [volume, claim] : choice.bindings) got[claim->meta.name] = volume->meta.name;
  for (const auto& claim : choice.provisions) got[claim->meta.name] = "new";
  return Text(got);
}

// Class "local" has no provisioner, "cloud" has d.io, "now" binds immediately.
ClusterSnapshot Classes() {
  ClusterSnapshot snapshot;
  Put(snapshot, StorageClassOf("local", "kubernetes.io/no-provisioner"), StorageClassOf("cloud"),
      StorageClassOf("now", "d.io", false));
  return snapshot;
}

TEST(WantedVolumesTest, RefusesUnusableClaims) {
  auto snapshot = Classes();
  const auto says = [&](const std::string& claim) {
    return On("a", snapshot, WithClaims(PodOf("p"), {claim}));
  };
  EXPECT_EQ(says("c"), "persistentvolumeclaim \"c\" not found");
  auto claim = BoundClaimOf("c", "pv");
  claim.phase = "Lost";
  Put(snapshot, claim);
  EXPECT_EQ(says("c"), "persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"pv\"");
  claim.phase = "Bound";
  claim.meta.deleted = Time();
  Put(snapshot, claim);
  EXPECT_EQ(says("c"), "persistentvolumeclaim \"c\" is being deleted");
  const std::string unbound = "pod has unbound immediate PersistentVolumeClaims";
  for (const char* storage : {"", "gone", "now"}) {
    Put(snapshot, ClaimOf("c", storage));
    EXPECT_EQ(says("c"), unbound) << storage;
  }
  auto prebound = ClaimOf("c", "cloud");
  prebound.volume_name = "pv";
  Put(snapshot, prebound);
  EXPECT_EQ(says("c"), unbound) << "binding is in progress";
  const Pod pod = testing::WithEphemeral(PodOf("p"), "v");
  EXPECT_EQ(On("a", snapshot, pod),
            "waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-v\"");
  Put(snapshot, ClaimOf("p-v", "cloud"));
  EXPECT_EQ(On("a", snapshot, pod), "PVC x/p-v was not created for pod x/p (pod is not owner)");
  Put(snapshot, testing::ClaimFor(pod, "v", "cloud"));
  EXPECT_EQ(On("a", snapshot, pod), "p-v=new");
}

TEST(WantedVolumesTest, RequiresNodesThatReachBoundVolumes) {
  auto snapshot = Classes();
  Put(snapshot, BoundClaimOf("c", "pv"), VolumeOf("pv", "", "1Gi", {"a", "b"}),
      BoundClaimOf("d", "gone"), BoundClaimOf("e", "pv2"), VolumeOf("pv2", "", "1Gi", {"c"}));
  const auto on = [&](const std::string& zone, const std::vector<std::string>& claims) {
    return On(zone, snapshot, WithClaims(PodOf("p"), claims));
  };
  EXPECT_EQ(on("a", {"c"}), "");
  EXPECT_EQ(on("c", {"c"}), kNoReach);
  EXPECT_EQ(on("a", {"d"}), kGone);
  EXPECT_EQ(on("a", {"c", "d"}), kGone);
  EXPECT_EQ(on("c", {"c", "d"}), kNoReach) << "the first unusable claim decides";
  EXPECT_EQ(on("c", {"d", "c"}), kGone);
  EXPECT_EQ(on("a", {"c", "e"}), kNoReach);
  Put(snapshot, ClaimOf("l", "local"));
  EXPECT_EQ(on("c", {"c", "l"}), std::string(kNoReach) + "; " + kNoVolume);
  EXPECT_EQ(on("a", {"d", "l"}), std::string(kNoVolume) + "; " + kGone);
}

TEST(WantedVolumesTest, ChoosesSmallestFittingVolume) {
  struct Case {
    const char* what;
    void (*change)(PersistentVolume&);
  };
  const Case unfit[] = {
      {"too small", [](PersistentVolume& v) { v.storage = Quantity::FromValue(1); }},
      {"another class", [](PersistentVolume& v) { v.storage_class = "cloud"; }},
      {"another mode", [](PersistentVolume& v) { v.volume_mode = "Block"; }},
      {"not available", [](PersistentVolume& v) { v.phase = "Released"; }},
      {"no labels", [](PersistentVolume& v) { v.meta.labels.clear(); }},
      {"fewer access modes", [](PersistentVolume& v) { v.access_modes.pop_back(); }},
      {"of another", [](PersistentVolume& v) { v.claim_ns = "x", v.claim_name = "other"; }},
      {"of a namesake",
       [](PersistentVolume& v) { v.claim_ns = "x", v.claim_name = "c", v.claim_uid = "?"; }},
      {"going", [](PersistentVolume& v) { v.meta.deleted = Time(); }},
      {"other attributes", [](PersistentVolume& v) { v.attributes_class = "gold"; }},
      {"elsewhere",
       [](PersistentVolume& v) { v.node_terms->front() = {{{"zone", "In", {"b"}}}, {}}; }},
  };
  const Pod pod = WithClaims(PodOf("p"), {"c"});
  auto claim = ClaimOf("c", "local", "2Gi");
  claim.access_modes = {"ReadWriteOnce", "ReadOnlyMany"};
  claim.selector.emplace().match_labels["tier"] = "fast";
  const auto volume = [](std::string name, const std::string& size) {
    auto fit = VolumeOf(std::move(name), "local", size, {"a"});
    fit.meta.labels["tier"] = "fast";
    fit.access_modes = {"ReadOnlyMany", "ReadWriteOnce"};
    return fit;
  };
  for (const Case& c : unfit) {
    auto snapshot = Classes();
    auto changed = volume("pv-1", "2Gi");
    c.change(changed);
    Put(snapshot, claim, changed, volume("pv-0", "4Gi"), volume("pv-2", "3Gi"),
        volume("pv-3", "3Gi"));
    EXPECT_EQ(On("a", snapshot, pod), "c=pv-2") << c.what;
    EXPECT_EQ(On("z", snapshot, pod), kNoVolume) << c.what;
    Put(snapshot, volume("pv-1", "2Gi"));
    EXPECT_EQ(On("a", snapshot, pod), "c=pv-1");
  }
}

TEST(WantedVolumesTest, PrefersVolumeReservedForClaim) {
  auto snapshot = Classes();
  auto kept = VolumeOf("pv-9", "local", "9Gi", {"a"});
  kept.claim_ns = "x";
  kept.claim_name = "c";
  kept.phase = "Released";  // phase, access modes and selector do not matter for a reserved volume
  kept.access_modes.clear();
  Put(snapshot, ClaimOf("c", "local"), kept, VolumeOf("pv-1", "local"));
  const Pod pod = WithClaims(PodOf("p"), {"c"});
  EXPECT_EQ(On("a", snapshot, pod), "c=pv-9");
  EXPECT_EQ(On("b", snapshot, pod), kNoVolume) << "no other volume is considered";
  kept.storage = Quantity();
  Put(snapshot, kept);
  EXPECT_EQ(On("b", snapshot, pod), "c=pv-1") << "a volume that is too small is ignored";
}

TEST(WantedVolumesTest, GivesEachClaimItsOwnVolume) {
  auto snapshot = Classes();
  Put(snapshot, ClaimOf("big", "local", "2Gi"), ClaimOf("small", "local", "1Gi"),
      VolumeOf("pv-1", "local", "2Gi"), VolumeOf("pv-2", "local", "3Gi"));
  const Pod pod = WithClaims(PodOf("p"), {"big", "small"});
  EXPECT_EQ(On("a", snapshot, pod), "big=pv-2 small=pv-1") << "the small claim chooses first";
  EXPECT_EQ(On("a", snapshot, WithClaims(pod, {"small"})), "big=pv-2 small=pv-1");
  Put(snapshot, ClaimOf("third", "local"));
  EXPECT_EQ(On("a", snapshot, WithClaims(pod, {"third"})), kNoVolume);
}

TEST(WantedVolumesTest, ProvisionsMissingVolumes) {
  auto snapshot = Classes();
  const Pod pod = WithClaims(PodOf("p"), {"c", "d"});
  Put(snapshot, ClaimOf("c", "cloud"), ClaimOf("d", "cloud", "2Gi"),
      VolumeOf("pv", "cloud", "1Gi", {"a"}));
  EXPECT_EQ(On("a", snapshot, pod), "c=pv d=new");
  EXPECT_EQ(On("b", snapshot, pod), "c=new d=new");
  auto storage = StorageClassOf("cloud");
  storage.allowed_topologies = {{}, {{"zone", "In", {"b", "c"}}}};
  Put(snapshot, storage);
  EXPECT_EQ(On("a", snapshot, pod), kNoVolume);
  EXPECT_EQ(On("c", snapshot, pod), "c=new d=new");
  storage.allowed_topologies = {{{"zone", "In", {"b"}}, {"rack", "In", {"1"}}}};
  Put(snapshot, storage);
  EXPECT_EQ(On("b", snapshot, pod), kNoVolume) << "all labels of one term";
  Put(snapshot, StorageClassOf("cloud", ""));
  EXPECT_EQ(On("b", snapshot, pod), kNoVolume);
}

TEST(WantedVolumesTest, ClaimBeingProvisionedTiesPodToNode) {
  auto snapshot = Classes();
  auto claim = ClaimOf("c", "cloud");
  claim.meta.annotations[std::string(cluster::kSelectedNode)] = "n-a";
  Put(snapshot, claim, ClaimOf("d", "local"), VolumeOf("pv", "cloud"), VolumeOf("l", "local"));
  const Pod pod = WithClaims(PodOf("p"), {"d", "c"});
  EXPECT_EQ(On("a", snapshot, pod), "c=new d=l") << "existing volumes are not considered";
  EXPECT_EQ(On("b", snapshot, pod), kNoVolume);
}

TEST(WantedVolumesTest, RespectsStorageCapacityOfDriver) {
  auto snapshot = Classes();
  const Pod pod = WithClaims(PodOf("p"), {"c"});
  CsiDriver driver;
  driver.meta.name = "d.io";
  Put(snapshot, ClaimOf("c", "cloud", "2Gi"), driver);
  EXPECT_EQ(On("a", snapshot, pod), "c=new") << "the driver does not track capacity";
  driver.tracks_capacity = true;
  Put(snapshot, driver);
  EXPECT_EQ(On("a", snapshot, pod), kNoSpace);
  const auto capacity = [](std::string name, const std::string& size) {
    CsiStorageCapacity object;
    object.meta.name = std::move(name);
    object.storage_class = "cloud";
    object.capacity = Quantity::Parse(size).value();
    object.node_topology.emplace().match_labels["zone"] = "a";
    return object;
  };
  Put(snapshot, capacity("small", "1Gi"));
  EXPECT_EQ(On("a", snapshot, pod), kNoSpace);
  auto large = capacity("large", "2Gi");
  Put(snapshot, large);
  EXPECT_EQ(On("a", snapshot, pod), "c=new");
  EXPECT_EQ(On("b", snapshot, pod), kNoSpace);
  large.maximum_volume_size = Quantity::FromValue(1);
  Put(snapshot, large);
  EXPECT_EQ(On("a", snapshot, pod), kNoSpace) << "the more precise limit";
  large = capacity("large", "2Gi");
  large.node_topology = {{}, {{"zone", "NotIn", {"a"}}}};
  Put(snapshot, large);
  EXPECT_EQ(On("a", snapshot, pod), kNoSpace);
  EXPECT_EQ(On("b", snapshot, pod), "c=new");
  large.node_topology.reset();
  Put(snapshot, large);
  EXPECT_EQ(On("b", snapshot, pod), kNoSpace) << "no topology: no node";
  large.node_topology.emplace();
  Put(snapshot, large);
  EXPECT_EQ(On("b", snapshot, pod), "c=new") << "an empty one: any node";
  large.storage_class = "other";
  Put(snapshot, large);
  EXPECT_EQ(On("b", snapshot, pod), kNoSpace);
}

// The result of ChooseVolumes by linear search instead of the index.
std::string Naive(const std::string& zone, const ClusterSnapshot& snapshot, const Pod& pod) {
  std::vector<const PersistentVolumeClaim*> claims;
  claims.reserve(pod.volumes.size());
  for (const auto& volume : pod.volumes) {
    claims.push_back(snapshot.context().claims.Find("x/" + volume.source));
  }
  std::ranges::stable_sort(claims, {}, [](const auto* claim) { return claim->storage; });
  std::set<const PersistentVolume*> taken;
  std::map<std::string, std::string> got;
  for (const auto* claim : claims) {
    const PersistentVolume* best = nullptr;
    for (const auto& [name, volume] : snapshot.context().volumes.rows()) {
      if (volume->storage < claim->storage || volume->storage_class != claim->storage_class ||
          taken.contains(volume.get()) || !cluster::Reaches({{"zone", zone}}, *volume)) {
        continue;
      }
      if (best == nullptr || volume->storage < best->storage) best = volume.get();
    }
    if (best == nullptr && claim->storage_class == "local") return kNoVolume;
    if (best != nullptr) taken.insert(best);
    got[claim->meta.name] = best == nullptr ? "new" : best->meta.name;
  }
  return Text(got);
}

TEST(WantedVolumesTest, IndexEqualsLinearSearch) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    auto snapshot = Classes();
    const auto zone = [&] { return std::string(1, static_cast<char>('a' + random.Below(4))); };
    const auto storage = [&] { return random.Chance(0.5) ? "local" : "cloud"; };
    const auto size = [&] { return std::to_string(1 + random.Below(4)) + "Gi"; };
    for (uint64_t i = 0; i < random.Below(12); ++i) {
      auto volume = VolumeOf("pv-" + std::to_string(i), storage(), size());
      if (random.Chance(0.7)) volume.node_terms = {{{{{"zone", "In", {zone(), zone()}}}, {}}}};
      if (random.Chance(0.2)) volume.node_terms = {{{{{"zone", "NotIn", {zone()}}}, {}}}};
      if (random.Chance(0.2)) {
        volume.node_terms = {{{{{"zone", "In", {zone()}}}, {}}, {{{"zone", "In", {zone()}}}, {}}}};
      }
      Put(snapshot, volume);
    }
    std::vector<std::string> claims;
    for (uint64_t i = 0; i <= random.Below(3); ++i) {
      claims.push_back("c" + std::to_string(i));
      Put(snapshot, ClaimOf(claims.back(), storage(), size()));
    }
    const Pod pod = WithClaims(PodOf("p"), claims);
    for (const std::string z : {"a", "b", "c", "d", "e"}) {
      ASSERT_EQ(On(z, snapshot, pod), Naive(z, snapshot, pod)) << "seed " << seed << " " << z;
    }
  }
}

}  // namespace
}  // namespace nos::scheduling
