#include "cluster/resource_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/snapshot.h"

namespace nos::cluster {
namespace {

Pod PodThatAsks(const std::string& prefix, int names, const std::string& amount) {
  Pod pod;
  pod.meta.ns = "ml";
  pod.meta.name = prefix;
  pod.containers.resize(1);
  for (int i = 0; i < names; ++i) {
    pod.containers[0].requests[prefix + std::to_string(i)] = *Quantity::Parse(amount);
  }
  return pod;
}

std::shared_ptr<const Node> NodeThatOffers(const std::string& name) {
  auto node = std::make_shared<Node>();
  node->meta.name = "n";
  node->allocatable = {{name, *Quantity::Parse("4")}};
  return node;
}

TEST(ResourceNamesTest, ZeroRequestsGetNoId) {
  const size_t before = CountOfResourceNames();
  (void)RequestsOf(PodThatAsks("a.b/none-", 100, "0"));
  EXPECT_EQ(CountOfResourceNames(), before);
}

TEST(ResourceNamesTest, PodsCannotExhaustTheIds) {
  const size_t before = CountOfResourceNames();
  for (int i = 0; i < 7; ++i) {
    (void)RequestsOf(PodThatAsks("a.b/" + std::to_string(i) + "-", 10'000, "1"));
  }
  EXPECT_LT(CountOfResourceNames(), before + 5000);
  const Pod late = PodThatAsks("late.com/fpga", 1, "1");
  EXPECT_EQ(RequestsOf(late).Get(kUnknownResource), 1);
  EXPECT_THAT(UnknownResourcesOf(late), ::testing::ElementsAre("late.com/fpga0"));
  // Another scheduler binds the pod before any node offers the resource: the pod's requests are
  // still counted correctly.
  auto snapshot = ClusterSnapshot::Build({NodeThatOffers("cpu")}, {}, gpu::Catalogue::Builtin());
  ASSERT_TRUE(snapshot.Bind(std::make_shared<const Pod>(late), "n").ok());
  snapshot.SetNode(NodeThatOffers("late.com/fpga0"));
  const ResourceId id = InternResource("late.com/fpga0");
  EXPECT_NE(id, kUnknownResource);
  EXPECT_EQ(RequestsOf(late).Get(id), 1);
  EXPECT_EQ(snapshot.node(0).requested.Get(id), 1);
  ASSERT_TRUE(snapshot.Unbind(late, "n").ok());
  EXPECT_EQ(snapshot.node(0).requested.Get(id), 0);
}

TEST(ResourceNamesTest, SumsStayCorrectWhenAResourceGetsItsIdLate) {
  (void)RequestsOf(PodThatAsks("a.b/more-", 10'000, "1"));
  const Pod late = PodThatAsks("late.com/nic", 1, "1");
  auto snapshot = ClusterSnapshot::Build({NodeThatOffers("cpu")}, {}, gpu::Catalogue::Builtin());
  ASSERT_TRUE(snapshot.Bind(std::make_shared<const Pod>(late), "n").ok());
  const ResourceId id = InternResource("late.com/nic0");  // another node offers it by now
  ASSERT_TRUE(snapshot.Unbind(late, "n").ok());
  EXPECT_EQ(snapshot.node(0).requested.Get(id), 0);
  EXPECT_EQ(snapshot.node(0).requested.Get(kUnknownResource), 0);
}

}  // namespace
}  // namespace nos::cluster
