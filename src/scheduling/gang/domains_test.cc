#include "scheduling/gang_domains.h"

#include <gtest/gtest.h>

namespace nos::scheduling {
namespace {

using Domains = std::vector<std::vector<size_t>>;

cluster::NodeInfo NodeWith(cluster::StringMap labels) {
  auto node = std::make_shared<cluster::Node>();
  node->meta.labels = std::move(labels);
  cluster::NodeInfo info;
  info.node = std::move(node);
  return info;
}

std::shared_ptr<cluster::Pod> PodOf(const std::string& app) {
  auto pod = std::make_shared<cluster::Pod>();
  pod->meta.ns = "default";
  pod->meta.name = app;
  pod->meta.labels["app"] = app;
  return pod;
}

cluster::PodAffinityTerm Near(const std::string& app, const std::string& key) {
  return {cluster::LabelSelector{{{"app", app}}, {}}, {}, std::nullopt, key};
}

class GangTiesTest : public ::testing::Test {
 protected:
  Domains Find(const std::vector<std::shared_ptr<const cluster::Pod>>& members) {
    std::vector<const cluster::NodeInfo*> nodes;
    for (const cluster::NodeInfo& info : nodes_) nodes.push_back(&info);
    return GangTies(members).Domains(nodes, [&](size_t node) { return room_[node]; });
  }

  std::vector<cluster::NodeInfo> nodes_ = {
      NodeWith({{"zone", "1"}, {"rack", "1"}}), NodeWith({{"zone", "2"}, {"rack", "1"}}),
      NodeWith({{"zone", "2"}, {"rack", "2"}}), NodeWith({{"rack", "2"}}),
      NodeWith({{"zone", "2"}, {"rack", "1"}})};
  std::vector<int64_t> room_ = {9, 9, 9, 9, 9};
};

TEST_F(GangTiesTest, SortsDomainsBySize) {
  const auto web = PodOf("web");
  web->pod_affinity.required = {Near("web", "zone")};
  EXPECT_EQ(Find({web, web}), (Domains{{1, 2, 4}, {0}}));
}

TEST_F(GangTiesTest, SortsDomainsByCapacityBeforeSize) {
  const auto web = PodOf("web");
  web->pod_affinity.required = {Near("web", "zone")};
  room_ = {2, 0, 1, 9, 0};
  EXPECT_EQ(Find({web, web}), (Domains{{0}, {1, 2, 4}}));
  room_ = {2, 0, 0, 9, 0};
  EXPECT_EQ(Find({web, web}), (Domains{{0}}));
}

TEST_F(GangTiesTest, CombinesTopologyKeysOfAllTerms) {
  const auto web = PodOf("web"), db = PodOf("db");
  web->pod_affinity.required = {Near("db", "zone")};
  db->pod_affinity.required = {Near("db", "rack")};
  EXPECT_EQ(Find({web, db}), (Domains{{1, 4}, {0}, {2}}));
}

TEST_F(GangTiesTest, HasNoDomainsForAffinityToPodsOutsideGang) {
  const auto web = PodOf("web");
  EXPECT_EQ(Find({web}), Domains{});
  web->pod_affinity.required = {Near("cache", "zone")};
  web->pod_anti_affinity.required = {Near("web", "zone")};
  EXPECT_EQ(Find({web}), Domains{});
}

TEST_F(GangTiesTest, TiesMembersWithAffinityAndTheirTargets) {
  const auto worker = PodOf("worker"), leader = PodOf("leader"), monitor = PodOf("monitor");
  const std::vector<std::shared_ptr<const cluster::Pod>> members{worker, leader, monitor, worker};
  EXPECT_FALSE(GangTies(members).near());
  worker->pod_affinity.required = {Near("cache", "zone")};
  EXPECT_FALSE(GangTies(members).near()) << "no member matches";
  EXPECT_FALSE(GangTies(members).IsTied(0));
  worker->pod_affinity.required = {Near("leader", "zone")};
  const GangTies ties(members);
  EXPECT_TRUE(ties.near());
  EXPECT_TRUE(ties.IsTied(0));
  EXPECT_TRUE(ties.IsTied(1));
  EXPECT_FALSE(ties.IsTied(2));
  EXPECT_TRUE(ties.IsTied(3));
}

TEST(MayFollowTest, TrueForRequiredAffinityAndHardSpread) {
  const auto pod = PodOf("web");
  EXPECT_FALSE(MayFollow(*pod));
  pod->pod_anti_affinity.required = {Near("web", "zone")};
  EXPECT_FALSE(MayFollow(*pod));
  pod->spread.emplace_back().when_unsatisfiable = "ScheduleAnyway";
  EXPECT_FALSE(MayFollow(*pod));
  pod->spread.emplace_back().when_unsatisfiable = "DoNotSchedule";
  EXPECT_TRUE(MayFollow(*pod));
  pod->spread.clear();
  pod->pod_affinity.required = {Near("web", "zone")};
  EXPECT_TRUE(MayFollow(*pod));
}

TEST(CopiesOnTest, CountsFreeAndCreatableSlices) {
  const auto& catalogue = gpu::Catalogue::Builtin();
  auto node = std::make_shared<cluster::Node>();
  node->meta.name = "n";
  node->meta.labels = {{std::string(cluster::kPartitioningLabel), "mig"},
                       {std::string(cluster::kProductLabel), "NVIDIA-A30"},
                       {std::string(cluster::kCountLabel), "1"}};
  node->meta.annotations["nos.nebuly.com/status-layout-0"] = "1g.6gb@0:free,1g.6gb@1:used";
  node->allocatable = {{"cpu", Quantity::FromValue(10)}, {"pods", Quantity::FromValue(110)}};
  const auto snapshot = cluster::ClusterSnapshot::Build({node}, {}, catalogue);
  cluster::ResourceVector asks;
  asks.Set(cluster::InternResource("nvidia.com/mig-1g.6gb"), 1);
  EXPECT_EQ(CopiesOn(snapshot.node(0), asks, true, 9), 3);
  EXPECT_EQ(CopiesOn(snapshot.node(0), asks, true, 2), 2);
  asks.Set(cluster::kCpu, 5000);
  EXPECT_EQ(CopiesOn(snapshot.node(0), asks, true, 9), 2);
}

}  // namespace
}  // namespace nos::scheduling
