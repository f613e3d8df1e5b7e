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

class GangDomainsTest : public ::testing::Test {
 protected:
  Domains Find(const std::vector<std::shared_ptr<const cluster::Pod>>& members) {
    std::vector<const cluster::NodeInfo*> nodes;
    for (const cluster::NodeInfo& info : nodes_) nodes.push_back(&info);
    return GangDomains(members, nodes);
  }

  std::vector<cluster::NodeInfo> nodes_ = {
      NodeWith({{"zone", "1"}, {"rack", "1"}}), NodeWith({{"zone", "2"}, {"rack", "1"}}),
      NodeWith({{"zone", "2"}, {"rack", "2"}}), NodeWith({{"rack", "2"}}),
      NodeWith({{"zone", "2"}, {"rack", "1"}})};
};

TEST_F(GangDomainsTest, TheLargestDomainIsFirst) {
  const auto web = PodOf("web");
  web->pod_affinity.required = {Near("web", "zone")};
  EXPECT_EQ(Find({web, web}), (Domains{{1, 2, 4}, {0}}));
}

TEST_F(GangDomainsTest, SeveralKeysAreHeededTogether) {
  const auto web = PodOf("web"), db = PodOf("db");
  web->pod_affinity.required = {Near("db", "zone")};
  db->pod_affinity.required = {Near("db", "rack")};
  EXPECT_EQ(Find({web, db}), (Domains{{1, 4}, {0}, {2}}));
}

TEST_F(GangDomainsTest, WhoHasToBeNearOthersOnlyHasNoChoice) {
  const auto web = PodOf("web");
  EXPECT_EQ(Find({web}), Domains{});
  web->pod_affinity.required = {Near("cache", "zone")};
  web->pod_anti_affinity.required = {Near("web", "zone")};
  EXPECT_EQ(Find({web}), Domains{});
}

TEST_F(GangDomainsTest, WhoNeedsAMemberAndWhomItNeedsAreTied) {
  const auto worker = PodOf("worker"), leader = PodOf("leader"), monitor = PodOf("monitor");
  const std::vector<std::shared_ptr<const cluster::Pod>> members{worker, leader, monitor};
  EXPECT_FALSE(HaveToBeNear(members));
  worker->pod_affinity.required = {Near("cache", "zone")};
  EXPECT_FALSE(HaveToBeNear(members)) << "that is nobody of them";
  EXPECT_FALSE(IsTied(*worker, members));
  worker->pod_affinity.required = {Near("leader", "zone")};
  EXPECT_TRUE(HaveToBeNear(members));
  EXPECT_TRUE(IsTied(*worker, members));
  EXPECT_TRUE(IsTied(*leader, members));
  EXPECT_FALSE(IsTied(*monitor, members));
}

}  // namespace
}  // namespace nos::scheduling
