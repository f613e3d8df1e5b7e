// nos plan and nos explain say the same of a pod that its quota refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/daemon/scheduler_file.h"
#include "cmd/query/plan_pods.h"
#include "cmd/telemetry/explainer.h"
#include "scheduling/remedies.h"

namespace nos::cmd {
namespace {

class QuotaAgreementTest : public ::testing::Test {
 protected:
  QuotaAgreementTest() {
    cluster::Node node;
    node.meta.name = "n";
    node.allocatable = {{"cpu", Quantity::FromValue(64)}, {"pods", Quantity::FromValue(110)}};
    objects_.nodes.push_back(std::make_shared<const cluster::Node>(node));
    auto quota = std::make_shared<cluster::ElasticQuota>();
    quota->meta.ns = "a";
    quota->meta.name = "q";
    quota->namespaces = {"a"};
    quota->min = quota->max = {{"cpu", Quantity::FromValue(1)}};
    objects_.around.emplace().quotas.Set(quota->Key(), quota);
  }
  void Pod(const std::string& name, int64_t cpu, std::string_view scheduler) {
    cluster::Pod pod;
    pod.meta.ns = "a";
    pod.meta.name = name;
    pod.phase = "Pending";
    pod.scheduler_name = scheduler;
    pod.containers.emplace_back().requests["cpu"] = Quantity::FromValue(cpu);
    objects_.pods.push_back(std::make_shared<const cluster::Pod>(pod));
  }
  planning::PodOutcome Planned() const {
    const auto snapshot =
        cluster::ClusterSnapshot::Build(objects_.nodes, objects_.pods, kCatalogue);
    const PlanningFrameworks frameworks;
    const planning::Plan plan = WithRefused(controllers::PlanWithinQuotas(
        {objects_.pods, {}}, objects_.pods, snapshot, *objects_.around, frameworks.choice(), {}));
    return plan.pods.at(0);
  }
  scheduling::Explanation Explained() const {
    const Deciders deciders(
        scheduling::DefaultConfiguration({.default_name = kOurScheduler,
                                          .partitioned_by = scheduling::PartitionedBy::kScheduler}),
        objects_.pods.at(0)->scheduler_name, false);
    return ExplainWaiting(objects_, objects_.pods.at(0), deciders, kCatalogue);
  }

  inline static const gpu::Catalogue& kCatalogue = gpu::Catalogue::Builtin();
  ClusterObjects objects_;
};

TEST_F(QuotaAgreementTest, QuotaRefusesPodOfOurScheduler) {
  Pod("p", 2, kOurScheduler);
  const planning::PodOutcome planned = Planned();
  const scheduling::Explanation why = Explained();
  ASSERT_FALSE(planned.placed);
  EXPECT_EQ(planned.reasons.at(0).code, scheduling::codes::kQuota);
  EXPECT_EQ(planned.reasons.at(0).message, why.quota);
  EXPECT_EQ(planned.remedy_code, scheduling::remedies::kRaiseQuota);
  EXPECT_EQ(planned.remedy_code, why.remedy_code);
  EXPECT_EQ(planned.remedy, why.remedy);
  EXPECT_EQ(planned.remedy, "raise max of cpu in elastic quota a/q to 2");
}

TEST_F(QuotaAgreementTest, OtherSchedulersHaveNoQuotas) {
  Pod("p", 2, "default-scheduler");
  EXPECT_TRUE(Planned().placed);
  EXPECT_TRUE(Explained().place);
}

TEST_F(QuotaAgreementTest, QuotaRefusesGang) {
  auto quota =
      std::make_shared<cluster::ElasticQuota>(*objects_.around->quotas.rows().find("a/q")->second);
  quota->min = quota->max = {{"cpu", Quantity::FromValue(3)}};
  objects_.around->quotas.Set("a/q", quota);
  auto group = std::make_shared<cluster::PodGroup>();
  group->meta.ns = "a";
  group->meta.name = "g";
  group->min_member = 2;
  objects_.around->pod_groups.Set("a/g", group);
  for (const char* name : {"p0", "p1"}) {
    Pod(name, 2, kOurScheduler);
    cluster::Pod member = *objects_.pods.back();
    member.meta.labels["scheduling.x-k8s.io/pod-group"] = "g";
    objects_.pods.back() = std::make_shared<const cluster::Pod>(member);
  }
  const scheduling::Explanation why = Explained();
  EXPECT_FALSE(why.place);
  EXPECT_EQ(why.remedy_code, scheduling::remedies::kRaiseQuota);
  EXPECT_EQ(why.remedy, "raise max of cpu in elastic quota a/q to 4");
}

}  // namespace
}  // namespace nos::cmd
