// nos plan and nos explain say the same of a pod that its quota refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmd/daemon/scheduler_file.h"
#include "cmd/query/plan_evictions.h"
#include "cmd/query/plan_pods.h"
#include "cmd/telemetry/explainer.h"
#include "planning/remedies.h"
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
    objects_.context.emplace().quotas.Set(quota->Key(), quota);
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
  // Asks for one of a resource of GPUs, of which the quota admits `max_gb` GB.
  void GpuPod(const std::string& resource, int64_t max_gb) {
    cluster::ElasticQuota quota;
    quota.meta.ns = "a";
    quota.meta.name = "q";
    quota.namespaces = {"a"};
    quota.min = quota.max = {{"nos.nebuly.com/gpu-memory", Quantity::FromValue(max_gb)}};
    objects_.context->quotas.Set(quota.Key(), std::make_shared<cluster::ElasticQuota>(quota));
    Pod("p", 1, kOurScheduler);
    cluster::Pod pod = *objects_.pods.back();
    pod.containers[0].requests[resource] = Quantity::FromValue(1);
    objects_.pods.back() = std::make_shared<const cluster::Pod>(pod);
  }
  // Runs on the node, in a namespace whose quota guarantees it half of its cpu.
  void RunBorrower(int64_t cpu) {
    cluster::ElasticQuota quota;
    quota.meta.ns = "b";
    quota.meta.name = "q";
    quota.namespaces = {"b"};
    quota.min = {{"cpu", Quantity::FromValue(cpu / 2)}};
    objects_.context->quotas.Set(quota.Key(), std::make_shared<cluster::ElasticQuota>(quota));
    cluster::Pod pod;
    pod.meta.ns = "b";
    pod.meta.name = "r";
    pod.phase = "Running";
    pod.node_name = "n";
    pod.scheduler_name = kOurScheduler;
    pod.containers.emplace_back().requests["cpu"] = Quantity::FromValue(cpu);
    objects_.pods.push_back(std::make_shared<const cluster::Pod>(pod));
  }
  // Plans all pending pods together.
  planning::Plan PlanOfAll() const {
    const auto snapshot =
        cluster::ClusterSnapshot::Build(objects_.nodes, objects_.pods, kCatalogue);
    const PlanningFrameworks frameworks;
    std::vector<std::shared_ptr<const cluster::Pod>> pending = objects_.pods;
    std::erase_if(pending, [](const auto& pod) { return !pod->node_name.empty(); });
    controllers::AdmittedPlan admitted = controllers::PlanWithinQuotas(
        {pending, {}}, objects_.pods, snapshot, *objects_.context, frameworks.choice(), {});
    planning::AddRemedies(snapshot, admitted.gangs, frameworks.choice(), admitted.quotas, nullptr,
                          admitted.plan);
    planning::Plan plan = WithRefused(std::move(admitted));
    AskForEvictions(objects_, kCatalogue, nullptr, plan);
    return plan;
  }
  planning::PodOutcome Planned() const { return PlanOfAll().pods.at(0); }
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

TEST_F(QuotaAgreementTest, HigherQuotaDoesNotHelpProfileOfNoModel) {
  GpuPod("nvidia.com/mig-9g.99gb", 10);
  const planning::PodOutcome planned = Planned();
  const scheduling::Explanation why = Explained();
  ASSERT_EQ(planned.reasons.size(), 2U);
  EXPECT_EQ(planned.reasons[0].code, scheduling::codes::kNoModelHasProfile);
  EXPECT_EQ(planned.reasons[1].code, scheduling::codes::kQuota);
  EXPECT_EQ(planned.reasons[1].message, why.quota);
  EXPECT_EQ(planned.remedy_code, scheduling::remedies::kRequestExistingProfile);
  EXPECT_EQ(planned.remedy_code, why.remedy_code);
  EXPECT_EQ(planned.remedy, why.remedy);
}

// It asks for two, and the quota has less than that, too.
TEST_F(QuotaAgreementTest, HigherQuotaDoesNotHelpSeveralSharesInOneContainer) {
  GpuPod("nvidia.com/gpu-10gb", 5);
  cluster::Pod pod = *objects_.pods.back();
  pod.containers[0].requests["nvidia.com/gpu-10gb"] = Quantity::FromValue(2);
  objects_.pods.back() = std::make_shared<const cluster::Pod>(pod);
  const planning::PodOutcome planned = Planned();
  ASSERT_FALSE(planned.reasons.empty());
  EXPECT_EQ(planned.reasons[0].code, scheduling::codes::kSeveralShares);
  EXPECT_EQ(planned.remedy_code, scheduling::remedies::kRequestOneShare);
}

TEST_F(QuotaAgreementTest, NodeOfWholeGpuDecidesItsCharge) {
  cluster::Node node = *objects_.nodes[0];
  node.meta.labels["nvidia.com/gpu.memory"] = "40960";
  node.allocatable["nvidia.com/gpu"] = Quantity::FromValue(1);
  objects_.nodes[0] = std::make_shared<const cluster::Node>(node);
  GpuPod("nvidia.com/gpu", 32);
  const planning::PodOutcome planned = Planned();
  const scheduling::Explanation why = Explained();
  ASSERT_FALSE(planned.placed);
  EXPECT_EQ(planned.reasons.at(0).code, scheduling::codes::kQuota);
  EXPECT_EQ(planned.reasons.at(0).message, why.quota);
  EXPECT_EQ(planned.remedy_code, why.remedy_code);
}

TEST_F(QuotaAgreementTest, OtherSchedulersHaveNoQuotas) {
  Pod("p", 2, "default-scheduler");
  EXPECT_TRUE(Planned().placed);
  EXPECT_TRUE(Explained().place);
}

TEST_F(QuotaAgreementTest, BorrowerIsEvictedForPodThatItsQuotaCovers) {
  cluster::ElasticQuota quota = *objects_.context->quotas.rows().begin()->second;
  quota.min = quota.max = {{"cpu", Quantity::FromValue(32)}};
  objects_.context->quotas.Set(quota.Key(), std::make_shared<cluster::ElasticQuota>(quota));
  Pod("p", 32, kOurScheduler);
  RunBorrower(64);
  EXPECT_EQ(Planned().remedy_code, scheduling::remedies::kNoneNeeded);
  EXPECT_EQ(Planned().remedy, Explained().remedy);
}

TEST_F(QuotaAgreementTest, LessImportantPodIsEvictedOnceOnly) {
  Pod("p", 64, "default-scheduler");
  Pod("o", 64, "default-scheduler");
  RunBorrower(64);
  for (size_t i = 0; i < 2; ++i) {
    cluster::Pod pod = *objects_.pods[i];
    pod.priority = i == 0 ? 5 : 9;
    objects_.pods[i] = std::make_shared<const cluster::Pod>(pod);
  }
  const planning::Plan plan = PlanOfAll();
  EXPECT_EQ(plan.pods.at(0).remedy_code, scheduling::remedies::kWaitForPods);
  EXPECT_EQ(plan.pods.at(1).remedy_code, scheduling::remedies::kNoneNeeded);
}

// Only its port keeps the pod away; the planner says that it waits for the other's end.
TEST_F(QuotaAgreementTest, PodWithSamePortIsEvicted) {
  Pod("p", 1, "default-scheduler");
  RunBorrower(1);
  for (size_t i = 0; i < 2; ++i) {
    cluster::Pod pod = *objects_.pods[i];
    pod.priority = i == 0 ? 100 : 0;
    pod.containers[0].host_ports.push_back({80, "", "TCP"});
    objects_.pods[i] = std::make_shared<const cluster::Pod>(pod);
  }
  EXPECT_EQ(Planned().remedy_code, scheduling::remedies::kNoneNeeded);
  EXPECT_EQ(Planned().remedy, Explained().remedy);
}

TEST_F(QuotaAgreementTest, QuotaRefusesGang) {
  auto quota =
      std::make_shared<cluster::ElasticQuota>(*objects_.context->quotas.rows().find("a/q")->second);
  quota->min = quota->max = {{"cpu", Quantity::FromValue(3)}};
  objects_.context->quotas.Set("a/q", quota);
  auto group = std::make_shared<cluster::PodGroup>();
  group->meta.ns = "a";
  group->meta.name = "g";
  group->min_member = 2;
  objects_.context->pod_groups.Set("a/g", group);
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
