#include "cmd/telemetry/missing_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nos::cmd {
namespace {

using cluster::ClusterContext;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

cluster::Pod PodWith(const std::vector<std::string>& claims) {
  cluster::Pod pod;
  pod.meta.ns = "x";
  pod.meta.name = "p";
  for (const std::string& claim : claims) {
    pod.volumes.push_back({claim, cluster::Volume::Kind::kClaim, claim});
  }
  return pod;
}

TEST(MissingKindsTest, ReportsOnlyReferencedKinds) {
  cluster::Pod pod = PodWith({});
  EXPECT_THAT(MissingKinds(pod, {}), IsEmpty());
  pod.meta.labels["scheduling.x-k8s.io/pod-group"] = "g";
  EXPECT_THAT(MissingKinds(pod, {}), ElementsAre("PodGroup"));
  pod.workload = cluster::WorkloadRef{"w", "workers", ""};
  EXPECT_THAT(MissingKinds(pod, {}), ElementsAre("Workload"));
  pod.workload.reset();
  pod.scheduling_group = "g";
  EXPECT_THAT(MissingKinds(pod, {}), ElementsAre("PodGroup"));
}

TEST(MissingKindsTest, FollowsVolumesFromClaimToClass) {
  const auto pod = std::make_shared<const cluster::Pod>(PodWith({"bound", "open"}));
  ClusterContext context;
  EXPECT_THAT(MissingKinds(*pod, context), ElementsAre("PersistentVolumeClaim"));
  EXPECT_THAT(LeaveOutMissing(pod, std::nullopt)->volumes, IsEmpty());
  cluster::PersistentVolumeClaim claim;
  claim.storage_class = "fast";
  context.claims.Set("x/open", std::make_shared<const cluster::PersistentVolumeClaim>(claim));
  claim.volume_name = "pv";
  claim.meta.annotations["pv.kubernetes.io/bind-completed"] = "yes";
  context.claims.Set("x/bound", std::make_shared<const cluster::PersistentVolumeClaim>(claim));
  EXPECT_THAT(MissingKinds(*pod, context), ElementsAre("PersistentVolume", "StorageClass"));
  context.volumes.Set("pv", std::make_shared<const cluster::PersistentVolume>());
  context.storage_classes.Set("fast", std::make_shared<const cluster::StorageClass>());
  EXPECT_THAT(MissingKinds(*pod, context), IsEmpty());
  EXPECT_EQ(LeaveOutMissing(pod, context), pod);
}

}  // namespace
}  // namespace nos::cmd
