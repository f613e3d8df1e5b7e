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
  EXPECT_EQ(NamesOnlyFor("ml", text), "wait for pod ml/a (1g.5gb@0), 1 pod of another namespace");
  EXPECT_EQ(NamesOnlyFor("x", "the pod may use pod y/z: pod"),
            "the pod may use 1 pod of another namespace: pod");
}

TEST(PodNamesTest, CountsHiddenNeighbours) {
  EXPECT_EQ(NamesOnlyFor("ml", "pod x/a, pod y/b, pod ml/c and pod x/d and pod x/e, pod ml/f end"),
            "2 pods of other namespaces, pod ml/c and 2 pods of other namespaces, pod ml/f end");
  EXPECT_EQ(NamesOnlyFor("ml", "pod x/a; pod x/b"),
            "1 pod of another namespace; 1 pod of another namespace");
  EXPECT_EQ(NamesOnlyFor("ml", "no pods, a pod, pod ml/a"), "no pods, a pod, pod ml/a");
  EXPECT_EQ(NamesOnlyFor("ml", "pod x/a"), "1 pod of another namespace");
}

TEST(PodNamesTest, ListsPodsForReader) {
  const std::vector<std::string> keys = {"a/1", "ml/2", "b/3", "ml/4", "c/5"};
  EXPECT_EQ(PodsText(keys, ""), "pod a/1, pod ml/2, pod b/3, 2 more");
  EXPECT_EQ(PodsText(keys, "ml"),
            "1 pod of another namespace, pod ml/2, 1 pod of another namespace, 2 more");
  EXPECT_EQ(PodsText({"a/1", "a/2"}, "ml", " and "), "2 pods of other namespaces");
}

}  // namespace
}  // namespace nos::scheduling
