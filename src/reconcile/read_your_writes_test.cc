#include "reconcile/read_your_writes.h"

#include <gtest/gtest.h>

#include "cluster/objects.h"

namespace nos::reconcile {
namespace {

using Node = std::shared_ptr<const cluster::Node>;

Node NodeAt(const std::string& name, const std::string& version, const std::string& uid = "1") {
  auto node = std::make_shared<cluster::Node>();
  node->meta.name = name;
  node->meta.uid = uid;
  node->meta.resource_version = version;
  return node;
}

class ReadYourWritesTest : public testing::Test {
 protected:
  ReadYourWrites<cluster::Node> nodes_;
  const Node written_ = NodeAt("a", "10");
};

TEST_F(ReadYourWritesTest, ReturnsCachedObjectWithoutWrite) {
  const Node cached = NodeAt("a", "7");
  EXPECT_EQ(nodes_.Newest(cached), cached);
}

TEST_F(ReadYourWritesTest, ReturnsWriteUntilCacheShowsIt) {
  nodes_.Wrote(written_);
  EXPECT_EQ(nodes_.Newest(NodeAt("a", "9")), written_);
  const Node caught_up = NodeAt("a", "10"), older = NodeAt("a", "9");
  EXPECT_EQ(nodes_.Newest(caught_up), caught_up);
  EXPECT_EQ(nodes_.size(), 0U);
  EXPECT_EQ(nodes_.Newest(older), older);
}

TEST_F(ReadYourWritesTest, PrefersSuccessorOfSameName) {
  nodes_.Wrote(written_);
  const Node successor = NodeAt("a", "9", "2");
  EXPECT_EQ(nodes_.Newest(successor), successor);
}

TEST_F(ReadYourWritesTest, ReturnsNullForDeletedObject) {
  nodes_.Wrote(written_);
  EXPECT_EQ(nodes_.Newest(Node()), nullptr);
}

TEST_F(ReadYourWritesTest, ReplacesInListAndForgetsDeletedObjects) {
  nodes_.Wrote(written_);
  nodes_.Wrote(NodeAt("deleted", "11"));
  const Node other = NodeAt("b", "3");
  const std::vector<Node> newest = nodes_.Newest(std::vector<Node>{NodeAt("a", "9"), other});
  EXPECT_EQ(newest, (std::vector<Node>{written_, other}));
  EXPECT_EQ(nodes_.size(), 1U);
}

TEST_F(ReadYourWritesTest, KeepsLastWrite) {
  nodes_.Wrote(written_);
  const Node again = NodeAt("a", "12");
  nodes_.Wrote(again);
  EXPECT_EQ(nodes_.Newest(NodeAt("a", "10")), again);
}

}  // namespace
}  // namespace nos::reconcile
