#include "cluster/volumes.h"

#include <gtest/gtest.h>

namespace nos::cluster {
namespace {

PersistentVolumeClaim Claim(const std::string& ns, const std::string& name,
                            const std::string& uid = "") {
  PersistentVolumeClaim claim;
  claim.meta.ns = ns;
  claim.meta.name = name;
  claim.meta.uid = uid;
  return claim;
}

TEST(VolumesTest, EphemeralVolumesUseClaimsOfTheirPod) {
  Pod pod;
  pod.meta.ns = "x";
  pod.meta.name = "p";
  pod.meta.uid = "u";
  EXPECT_FALSE(UsesClaims(pod));
  pod.volumes = {{"config"}, {"scratch", Volume::Kind::kEphemeral}};
  EXPECT_TRUE(UsesClaims(pod));
  auto claim = Claim("x", "p-scratch");
  EXPECT_TRUE(UsesClaim(pod, claim));
  EXPECT_FALSE(UsesClaim(pod, Claim("y", "p-scratch")));
  EXPECT_FALSE(UsesClaim(pod, Claim("x", "scratch")));
  EXPECT_FALSE(IsMadeFor(claim, pod));
  claim.meta.owners = {{"v1", "Pod", "p", "u", false}};
  EXPECT_FALSE(IsMadeFor(claim, pod)) << "an owner that does not control";
  claim.meta.owners[0].controller = true;
  EXPECT_TRUE(IsMadeFor(claim, pod));
  claim.meta.owners[0].uid = "of the pod's namesake";
  EXPECT_FALSE(IsMadeFor(claim, pod));
  pod.volumes = {{"data", Volume::Kind::kClaim, "data"}};
  EXPECT_TRUE(UsesClaim(pod, Claim("x", "data")));
}

TEST(VolumesTest, OldAnnotationDeterminesTheStorageClass) {
  auto claim = Claim("x", "c");
  EXPECT_EQ(ClassOf(claim), "");
  claim.storage_class = "fast";
  EXPECT_EQ(ClassOf(claim), "fast");
  claim.meta.annotations["volume.beta.kubernetes.io/storage-class"] = "old";
  EXPECT_EQ(ClassOf(claim), "old");
  PersistentVolume volume;
  volume.storage_class = "fast";
  EXPECT_EQ(ClassOf(volume), "fast");
  volume.meta.annotations["volume.beta.kubernetes.io/storage-class"] = "";
  EXPECT_EQ(ClassOf(volume), "");
}

TEST(VolumesTest, VolumesAreReservedForOneClaimUid) {
  PersistentVolume volume;
  EXPECT_FALSE(IsFor(volume, Claim("x", "c", "u")));
  volume.claim_ns = "x";
  volume.claim_name = "c";
  EXPECT_TRUE(IsFor(volume, Claim("x", "c", "u"))) << "kept for any claim of this name";
  EXPECT_FALSE(IsFor(volume, Claim("y", "c", "u")));
  volume.claim_uid = "u";
  EXPECT_TRUE(IsFor(volume, Claim("x", "c", "u")));
  EXPECT_FALSE(IsFor(volume, Claim("x", "c", "later")));
  auto claim = Claim("x", "c");
  claim.volume_name = "pv";
  EXPECT_FALSE(IsBound(claim));
  claim.meta.annotations[std::string(kBindCompleted)] = "yes";
  EXPECT_TRUE(IsBound(claim));
}

TEST(VolumesTest, VolumeTermsMatchLabelsOnly) {
  PersistentVolume volume;
  const StringMap a = {{"zone", "a"}};
  EXPECT_TRUE(Reaches({}, volume));
  volume.node_terms.emplace();
  EXPECT_FALSE(Reaches(a, volume)) << "no alternative matches nothing";
  volume.node_terms->emplace_back();
  EXPECT_FALSE(Reaches(a, volume)) << "an empty term matches nothing";
  volume.node_terms->push_back({{{"zone", "In", {"a"}}}, {}});
  EXPECT_TRUE(Reaches(a, volume));
  EXPECT_FALSE(Reaches({{"zone", "b"}}, volume));
  volume.node_terms->back().match_fields = {{"metadata.name", "In", {"n"}}};
  EXPECT_TRUE(Reaches(a, volume));
}

}  // namespace
}  // namespace nos::cluster
