#include "controllers/pending/planned_quotas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "codec/json.h"
#include "dra/device_counts.h"
#include "dra/objects.h"
#include "scheduling/framework.h"

namespace nos::controllers {
namespace {

class PlannedQuotasTest : public ::testing::Test {
 protected:
  using Pod = std::shared_ptr<const cluster::Pod>;

  PlannedQuotasTest() {
    node_->meta.name = "n";
    Quota("a", 2);
    Quota("b", 2);
  }
  void Quota(const std::string& ns, int64_t cpu) {
    auto quota = std::make_shared<cluster::ElasticQuota>();
    quota->meta.ns = ns;
    quota->meta.name = "q";
    quota->namespaces = {ns};
    quota->min["cpu"] = Quantity::FromValue(cpu);
    const std::string key = quota->Key();
    context_.quotas.Set(key, std::move(quota));
  }
  static std::shared_ptr<cluster::Pod> PodOf(const std::string& ns, const std::string& name,
                                             int64_t cpu, int32_t priority = 0) {
    auto pod = std::make_shared<cluster::Pod>();
    pod->meta.ns = ns;
    pod->meta.name = name;
    pod->priority = priority;
    pod->containers.emplace_back().requests["cpu"] = Quantity::FromValue(cpu);
    return pod;
  }
  void Runs(const std::string& ns, const std::string& name, int64_t cpu) {
    auto pod = PodOf(ns, name, cpu);
    pod->node_name = "n";
    running_.push_back(std::move(pod));
  }
  // A claim with `devices` devices of class "d".
  void Claim(const std::string& ns, const std::string& name, int devices) {
    JsonArray requests{{{"name", "r"}, {"exactly", {{"deviceClassName", "d"}}}}}, results;
    for (int i = 0; i < devices; ++i) {
      results.push_back(JsonObject{{"request", "r"},
                                   {"driver", "d.io"},
                                   {"pool", "n"},
                                   {"device", "d" + std::to_string(i)}});
    }
    const Json json = {{"metadata", {{"namespace", ns}, {"name", name}, {"uid", ns + name}}},
                       {"spec", {{"devices", {{"requests", requests}}}}},
                       {"status", {{"allocation", {{"devices", {{"results", results}}}}}}}};
    auto claim = std::make_shared<dra::ResourceClaim>();
    ASSERT_TRUE(dra::ReadResourceClaim(json, *claim).ok());
    context_.device_claims.Set(ns + "/" + name, std::move(claim));
  }
  static std::shared_ptr<cluster::Pod> With(std::shared_ptr<cluster::Pod> pod,
                                            const std::string& claim) {
    pod->claims = {{"gpu", claim, "", false}};
    return pod;
  }
  // "planned pods | refused pods"
  std::string Admit(std::vector<Pod> waiting, const std::string& last = "") {
    ganged_.pods = std::move(waiting);
    std::vector<std::shared_ptr<const cluster::Node>> nodes = {node_};
    nodes.insert(nodes.end(), others_.begin(), others_.end());
    const auto snapshot =
        cluster::ClusterSnapshot::Build(nodes, running_, gpu::Catalogue::Builtin());
    const PlannedAdmission admission =
        AdmitByQuota(ganged_, running_, snapshot, context_, *framework_, {last});
    const auto& refused = admission.refused;
    first_ = {admission.first.begin(), admission.first.end()};
    std::string text;
    for (const Pod& pod : ganged_.pods) text += pod->meta.name + " ";
    text += "|";
    for (const auto& [pod, refusal] : refused) text += " " + pod->meta.name;
    return text;
  }

  std::shared_ptr<cluster::Node> node_ = std::make_shared<cluster::Node>();
  std::vector<std::shared_ptr<const cluster::Node>> others_;
  std::vector<Pod> running_;
  cluster::ClusterContext context_;
  GangedPods ganged_;
  std::vector<std::string> first_;  // PlannedAdmission::first
  std::unique_ptr<scheduling::Framework> framework_ =
      std::make_unique<scheduling::Framework>(scheduling::Framework::Default());
};

TEST_F(PlannedQuotasTest, AdmitsNoMoreThanQuotasHave) {
  Runs("a", "r", 2);
  EXPECT_EQ(Admit({PodOf("a", "p1", 1), PodOf("b", "p2", 1), PodOf("a", "p3", 1),
                   PodOf("other", "p4", 100)}),
            "p1 p2 p4 | p3");
}

// The scheduler and the operator count them, too.
TEST_F(PlannedQuotasTest, CountsDevicesOfClaims) {
  Quota("c", 4);
  auto quota = std::make_shared<cluster::ElasticQuota>(*context_.quotas.Find("c/q"));
  quota->max[dra::ResourceOfClass("d")] = Quantity::FromValue(3);
  context_.quotas.Set("c/q", quota);
  Claim("c", "held", 2);
  Claim("c", "large", 2);
  Claim("c", "small", 1);
  auto runs = With(PodOf("c", "r", 1), "held");
  runs->node_name = "n";
  running_.push_back(runs);
  EXPECT_EQ(Admit({With(PodOf("c", "p1", 1), "large"), PodOf("c", "p2", 1)}), "p2 | p1");
  EXPECT_EQ(Admit({With(PodOf("c", "p1", 1), "small"), With(PodOf("c", "p2", 1), "small")}),
            "p1 p2 |")
      << "a claim that pods share counts once";
  EXPECT_EQ(Admit({With(PodOf("c", "p1", 1), "held"), With(PodOf("c", "p2", 1), "small")}),
            "p1 p2 |")
      << "the running pod is charged for its claim";
}

TEST_F(PlannedQuotasTest, AdmitsGuaranteedPodsBeforeBorrowers) {
  EXPECT_EQ(Admit({PodOf("a", "p1", 3, 9), PodOf("b", "p2", 2)}), "p2 | p1");
}

TEST_F(PlannedQuotasTest, GuaranteedPodsGoFirstIfABorrowerWouldGoBeforeThem) {
  for (const int priority : {0, 9}) {
    EXPECT_EQ(Admit({PodOf("a", "borrows", 3, priority), PodOf("b", "p", 1)}), "borrows p |");
    EXPECT_THAT(first_, testing::ElementsAre("b/p"));
  }
  EXPECT_EQ(Admit({PodOf("a", "borrows", 3, -1), PodOf("b", "p", 1)}), "borrows p |");
  EXPECT_THAT(first_, testing::IsEmpty()) << "its priority decides";
  EXPECT_EQ(Admit({PodOf("a", "p1", 1, 9), PodOf("b", "p2", 1)}), "p1 p2 |");
  EXPECT_THAT(first_, testing::IsEmpty()) << "nobody borrows";
}

// The node is being emptied for a pod that min covers.
TEST_F(PlannedQuotasTest, BorrowersHoldNoSlicesWhereOthersGetTheirShareBack) {
  const auto owner = PodOf("b", "owner", 2), borrower = PodOf("a", "borrower", 3, 9);
  owner->nominated_node = "n";
  SliceReservations reservations{BackOff{}};
  const auto beyond = [&](const std::string& node) {
    reservations.Add(borrower, node, Time{});
    return FindReservationsBeyondQuota(
        reservations, {owner, borrower},
        cluster::ClusterSnapshot::Build({node_}, {}, gpu::Catalogue::Builtin()), context_,
        *framework_);
  };
  Quota("b", 3);
  EXPECT_THAT(beyond("n"), testing::ElementsAre("a/borrower"));
  EXPECT_THAT(beyond("m"), testing::IsEmpty());
  borrower->nominated_node = "n";
  EXPECT_THAT(beyond("n"), testing::ElementsAre("a/borrower"));
}

TEST_F(PlannedQuotasTest, AdmitsPodsByPriority) {
  EXPECT_EQ(Admit({PodOf("a", "low", 3), PodOf("a", "high", 3, 5)}), "high | low");
}

// The scheduler would evict a pod of lower priority for it again.
TEST_F(PlannedQuotasTest, AdmitsNominatedBorrowerBeforeLowerPriorityOfItsQuota) {
  const auto nominated = PodOf("a", "high", 3, 9);
  nominated->nominated_node = "n";
  EXPECT_EQ(Admit({PodOf("a", "low", 2), nominated}), "high | low");
  EXPECT_EQ(Admit({PodOf("a", "equal", 2, 9), nominated}), "equal | high");
  EXPECT_EQ(Admit({PodOf("b", "other", 2), nominated}), "other | high");
}

// Pods that their quota covers come next, before others borrow what it has.
TEST_F(PlannedQuotasTest, AdmitsGuaranteedPodsBehindNominatedBorrower) {
  const auto nominated = PodOf("b", "beyond", 5, 9);
  nominated->nominated_node = "n";
  EXPECT_EQ(Admit({PodOf("a", "borrows", 3, 5), PodOf("b", "covered", 2), nominated}),
            "covered | borrows beyond");
}

// The node of the younger pod is not free yet, so that nothing is planned for it.
TEST_F(PlannedQuotasTest, AdmitsNominatedPodBeforeYoungerOneThatIsNotPlannedFor) {
  Runs("b", "r", 2);
  const auto nominated = [](const std::string& name, std::chrono::seconds created) {
    auto pod = PodOf("a", name, 2);
    pod->nominated_node = "n";
    pod->meta.created = Time(created);
    return pod;
  };
  running_.push_back(nominated("other", std::chrono::seconds(2)));
  EXPECT_EQ(Admit({nominated("older", std::chrono::seconds(1))}), "older |");
  EXPECT_EQ(Admit({nominated("younger", std::chrono::seconds(3))}), "| younger");
}

// Its scheduler would not charge it, because it has no node.
TEST_F(PlannedQuotasTest, UnplaceablePodDoesNotBlockOthers) {
  EXPECT_EQ(Admit({PodOf("a", "hopeless", 4, 9), PodOf("a", "p", 2)}, "a/hopeless"),
            "p | hopeless");
}

TEST_F(PlannedQuotasTest, UnplaceablePodComesLastEvenIfGuaranteed) {
  EXPECT_EQ(Admit({PodOf("a", "hopeless", 2, 9), PodOf("b", "p", 4)}, "a/hopeless"),
            "p | hopeless");
}

TEST_F(PlannedQuotasTest, AdmitsAllPodsOfSchedulerWithoutQuotas) {
  framework_ = std::make_unique<scheduling::Framework>(std::vector<scheduling::Framework::Entry>());
  EXPECT_EQ(Admit({PodOf("a", "p", 100)}), "p |");
}

TEST_F(PlannedQuotasTest, AdmitsGangIfEnoughMembersFit) {
  ganged_.gangs.push_back({"pod group a/g", 2, 0, {0, 1, 2}, ""});
  EXPECT_EQ(Admit({PodOf("a", "g1", 2), PodOf("a", "g2", 2), PodOf("a", "g3", 2)}), "g1 g2 | g3");
  EXPECT_EQ(ganged_.gangs[0].members, (std::vector<int>{0, 1}));
  EXPECT_EQ(ganged_.gangs[0].problem, "");
}

TEST_F(PlannedQuotasTest, RefusedGangUsesNoQuota) {
  ganged_.gangs.push_back({"pod group a/g", 2, 0, {0, 1}, ""});
  EXPECT_EQ(Admit({PodOf("a", "g1", 3, 9), PodOf("a", "g2", 3, 9), PodOf("a", "p", 3)}),
            "g1 g2 p | g1 g2");
  EXPECT_NE(ganged_.gangs[0].problem, "");
}

TEST_F(PlannedQuotasTest, RefusesWholeGangIfTooFewMembersFit) {
  ganged_.gangs.push_back({"pod group a/g", 2, 0, {1, 2}, ""});
  EXPECT_EQ(Admit({PodOf("a", "single", 2, 9), PodOf("a", "g1", 1), PodOf("a", "g2", 2),
                   PodOf("a", "more", 5)}),
            "single g1 g2 | g1 g2 more");
  EXPECT_EQ(ganged_.gangs[0].members, (std::vector<int>{1, 2}));
  EXPECT_EQ(ganged_.gangs[0].problem,
            "elastic quota a/q asks for 2 of cpu: with it 3 would be borrowed, and 2 is idle");
}

// The charge of a whole GPU depends on the node, which is not chosen yet.
TEST_F(PlannedQuotasTest, ChargesWholeGpuAsSmallestOfHybridNodes) {
  node_->meta.labels = {{"nos.nebuly.com/gpu-partitioning", "hybrid"},
                        {"nvidia.com/gpu.memory", "81920"}};
  node_->meta.annotations = {{"nos.nebuly.com/status-model-0", "H100-80GB+GPU+TIME-4"},
                             {"nos.nebuly.com/status-other-model-0", "MPS-79GB"},
                             {"nos.nebuly.com/status-layout-0", ""}};
  auto quota = std::make_shared<cluster::ElasticQuota>();
  quota->meta.ns = quota->meta.name = "c";
  quota->namespaces = {"c"};
  quota->min["nos.nebuly.com/gpu-memory"] = Quantity::FromValue(79);
  quota->max = quota->min;
  const std::string key = quota->Key();
  context_.quotas.Set(key, quota);
  const auto pod = PodOf("c", "p", 1);
  pod->containers[0].requests["nvidia.com/gpu"] = Quantity::FromValue(1);
  EXPECT_EQ(Admit({pod}), "| p");
  auto more = std::make_shared<cluster::ElasticQuota>(*quota);
  more->min["nos.nebuly.com/gpu-memory"] = Quantity::FromValue(80);
  more->max = more->min;
  context_.quotas.Set(key, more);
  EXPECT_EQ(Admit({pod}), "p |");
  // Four time slices of 20 GB each.
  const auto turn = [&](const char* name) {
    const auto slice = PodOf("c", name, 1);
    slice->containers[0].requests["nvidia.com/gpu.shared"] = Quantity::FromValue(1);
    return slice;
  };
  EXPECT_EQ(Admit({turn("t1"), turn("t2"), turn("t3"), turn("t4"), turn("t5")}),
            "t1 t2 t3 t4 | t5");
  // GPUs that only MIG partitions offer neither time slices nor whole GPUs.
  auto ampere = std::make_shared<cluster::Node>();
  ampere->meta.name = "ampere";
  ampere->meta.labels = {{"nos.nebuly.com/gpu-partitioning", "hybrid"},
                         {"nvidia.com/gpu.memory", "163840"}};
  ampere->meta.annotations = {{"nos.nebuly.com/status-model-0", "A100-80GB"},
                              {"nos.nebuly.com/status-other-model-0", ""},
                              {"nos.nebuly.com/status-layout-0", ""}};
  others_.push_back(ampere);
  EXPECT_EQ(Admit({turn("t1"), turn("t2"), turn("t3"), turn("t4"), turn("t5")}),
            "t1 t2 t3 t4 | t5");
  EXPECT_EQ(Admit({pod}), "p |");
  // A stolen node reports larger GPUs than there are.
  auto forged = std::make_shared<cluster::Node>();
  forged->meta.name = "forged";
  forged->meta.labels = {{"nos.nebuly.com/gpu-partitioning", "hybrid"}};
  forged->meta.annotations = {{"nos.nebuly.com/status-model-0", "GPU-1024GB+GPU+TIME-2"},
                              {"nos.nebuly.com/status-other-model-0", ""},
                              {"nos.nebuly.com/status-layout-0", ""}};
  others_.push_back(forged);
  EXPECT_EQ(Admit({turn("t1"), turn("t2"), turn("t3"), turn("t4"), turn("t5")}),
            "t1 t2 t3 t4 | t5");
  EXPECT_EQ(Admit({pod}), "p |");
}

// The scheduler charges it by the label of the node, and refuses it only if its quota refuses it on
// every node that is large enough.
TEST_F(PlannedQuotasTest, ChargesWholeGpuAsSmallestOfPlainNodes) {
  const auto plain = [&](const std::string& name, const std::string& mib, int64_t gpus) {
    auto node = std::make_shared<cluster::Node>();
    node->meta.name = name;
    node->meta.labels = {{"nvidia.com/gpu.memory", mib}};
    for (const char* resource : {"cpu", "pods"}) {
      node->allocatable[resource] = Quantity::FromValue(64);
    }
    node->allocatable["nvidia.com/gpu"] = Quantity::FromValue(gpus);
    others_.push_back(node);
  };
  auto quota = std::make_shared<cluster::ElasticQuota>();
  quota->meta.ns = quota->meta.name = "c";
  quota->namespaces = {"c"};
  quota->min["nos.nebuly.com/gpu-memory"] = Quantity::FromValue(40);
  quota->max = quota->min;
  context_.quotas.Set(quota->Key(), quota);
  const auto pod = PodOf("c", "p", 1);
  pod->containers[0].requests["nvidia.com/gpu"] = Quantity::FromValue(1);
  EXPECT_EQ(Admit({pod}), "p |");  // no node: 32 GB
  plain("large", "81920", 1);
  EXPECT_EQ(Admit({pod}), "| p");
  plain("none", "16384", 0);
  EXPECT_EQ(Admit({pod}), "| p");
  plain("small", "40960", 1);
  EXPECT_EQ(Admit({pod}), "p |");
}

}  // namespace
}  // namespace nos::controllers
