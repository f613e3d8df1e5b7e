#include "reconcile/node_write.h"

#include <gtest/gtest.h>

#include "kube/testing/fake_api.h"

namespace nos::reconcile {
namespace {

constexpr const char* kSlice = "nvidia.com/mig-1g.5gb";

class NodeWriteTest : public ::testing::Test {
 protected:
  void PutNode(const std::string& uid, const std::string& devices) {
    api_.Put({{"kind", "Node"},
              {"metadata", {{"name", "gpu-1"}, {"uid", uid}}},
              {"status",
               {{"allocatable", {{"cpu", "96"}, {kSlice, devices}}},
                {"capacity", {{"cpu", "96"}, {kSlice, devices}}}}}});
  }
  cluster::Node Node() const { return cluster::DecodeNode(*api_.Find("nodes", "gpu-1")).value(); }

  kube::FakeApi api_;
  kube::Client client_{api_};
};

TEST_F(NodeWriteTest, RaisesCapacityToAllocatableAndNeverLowersIt) {
  PutNode("u1", "1");
  const auto more = PatchNodeDevices(client_, Node(), {{kSlice, 3}, {"nvidia.com/mig-7g.40gb", 1}});
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(AllocatableOf(*more, kSlice), 3);
  EXPECT_EQ(more->capacity.at(kSlice), Quantity::FromValue(3));
  EXPECT_EQ(more->capacity.at("nvidia.com/mig-7g.40gb"), Quantity::FromValue(1));
  ASSERT_TRUE(PatchNodeDevices(client_, Node(), {{kSlice, 2}}).ok());
  EXPECT_EQ(AllocatableOf(Node(), kSlice), 2);
  EXPECT_EQ(Node().capacity.at(kSlice), Quantity::FromValue(3)) << "the devices still exist";
  EXPECT_EQ(Node().capacity.at("cpu"), Quantity::FromValue(96));
}

TEST_F(NodeWriteTest, DoesNotWriteAnotherNodeOfTheSameName) {
  PutNode("u1", "1");
  const cluster::Node known = Node();
  PutNode("u2", "7");
  EXPECT_EQ(PatchNodeDevices(client_, known, {{kSlice, 0}}).status().code(), Code::kConflict);
  EXPECT_EQ(AllocatableOf(Node(), kSlice), 7);
}

}  // namespace
}  // namespace nos::reconcile
