#include "scheduling/pod_names.h"

#include <gtest/gtest.h>

namespace nos::scheduling {
namespace {

TEST(PodNamesTest, CountsPodsOfOtherNamespaces) {
  EXPECT_EQ(NamesOf({"ml/a", "acme/b"}, "ml"), "ml/a, 1 pod of another namespace");
  EXPECT_EQ(NamesOf({"acme/b", "ml/a", "ml-2/c"}, "ml"), "ml/a, 2 pods of other namespaces");
  EXPECT_EQ(NamesOf({"a/1", "b/2", "c/3", "d/4", "e/5"}, "", " and "),
            "a/1 and b/2 and c/3 and 2 more");
}

TEST(PodNamesTest, HidesPodsOfOtherNamespacesInText) {
  const std::string text = "wait for " + PodText("ml/a") + " (1g.5gb@0), " + PodText("acme/b-1.x");
  EXPECT_EQ(NamesOnlyFor("ml", text), "wait for pod ml/a (1g.5gb@0), a pod of another namespace");
  EXPECT_EQ(NamesOnlyFor("x", "the pod may use pod y/z: pod"),
            "the pod may use a pod of another namespace: pod");
}

}  // namespace
}  // namespace nos::scheduling
