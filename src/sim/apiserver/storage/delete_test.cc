#include "sim/apiserver/storage/api_fixture_test.h"

namespace nos::sim {
namespace {

using DeleteTest = ApiServerTest;

std::string PodPath(const std::string& name) { return "/api/v1/namespaces/default/pods/" + name; }

TEST_F(DeleteTest, RemovesUnboundPodAtOnceAndBoundPodAfterGracePeriod) {
  AddPod("a");
  EXPECT_EQ(Delete(PodPath("a")).code, 200);
  EXPECT_EQ(Get(PodPath("a")).code, 404);
  AddPod("b");
  Bind("b", "n");
  const auto marked = Delete(PodPath("b"));
  EXPECT_EQ(FindString(marked.body, "metadata", "deletionTimestamp"), "2026-01-02T03:04:35Z");
  EXPECT_EQ(*Find(marked.body, "metadata", "deletionGracePeriodSeconds"), 30);
  EXPECT_EQ(Get(PodPath("b")).code, 200);
  const auto again = Delete(PodPath("b"));
  EXPECT_EQ(FindString(again.body, "metadata", "resourceVersion"),
            FindString(marked.body, "metadata", "resourceVersion"));
  EXPECT_EQ(Delete(PodPath("b"), R"({"gracePeriodSeconds":0})").code, 200);
  EXPECT_EQ(Get(PodPath("b")).code, 404);
}

TEST_F(DeleteTest, PreconditionsAreChecked) {
  AddPod("a");
  EXPECT_EQ(Delete(PodPath("a"), R"({"preconditions":{"uid":"x"}})").code, 409);
  EXPECT_EQ(Delete(PodPath("a"), R"({"preconditions":{"resourceVersion":"1"}})").code, 409);
  EXPECT_EQ(Delete(PodPath("a"), R"({"propagationPolicy":"Sideways"})").code, 400);
  EXPECT_EQ(Get(PodPath("a")).code, 200);
}

TEST_F(DeleteTest, FinalizersKeepAnObjectUntilTheLastIsRemoved) {
  const std::string path = kMaps + std::string("/m");
  Post(kMaps, R"({"metadata":{"name":"m","finalizers":["x.y/a","x.y/b"]}})");
  const auto marked = Delete(path);
  EXPECT_FALSE(FindString(marked.body, "metadata", "deletionTimestamp").empty());
  EXPECT_EQ(Patch(path, "merge", R"({"metadata":{"finalizers":["x.y/a","x.y/c"]}})").code, 422);
  EXPECT_EQ(
      Patch(path, "strategic", R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["x.y/a"]}})")
          .code,
      200);
  EXPECT_EQ(Get(path).code, 200);
  auto watch = Watch(std::string(kMaps) + "?resourceVersion=" +
                     std::string(FindString(Get(kMaps).body, "metadata", "resourceVersion")));
  EXPECT_EQ(Patch(path, "merge", R"({"metadata":{"finalizers":null}})").code, 200);
  EXPECT_EQ(Get(path).code, 404);
  EXPECT_EQ(Read(*watch), (std::vector<std::string>{"MODIFIED m", "DELETED m"}));
}

class CascadeTest : public DeleteTest {
 protected:
  // Creates a ConfigMap owned by the ConfigMaps `owners`.
  void Add(const std::string& name, const std::vector<std::string>& owners) {
    JsonArray references;
    for (const std::string& owner : owners) {
      const auto object = Get(kMaps + ("/" + owner));
      references.push_back({{"apiVersion", "v1"},
                            {"kind", "ConfigMap"},
                            {"name", owner},
                            {"uid", FindString(object.body, "metadata", "uid")}});
    }
    ASSERT_EQ(
        Send("POST", kMaps, {{"metadata", {{"name", name}, {"ownerReferences", references}}}}).code,
        201);
  }
  bool Exists(const std::string& name) { return Get(kMaps + ("/" + name)).code == 200; }
};

TEST_F(CascadeTest, DependentsAreDeletedWithTheirLastOwner) {
  Add("a", {});
  Add("b", {});
  Add("of-a", {"a"});
  Add("of-both", {"a", "b"});
  Add("deep", {"of-a"});
  Delete(kMaps + std::string("/a"));
  EXPECT_FALSE(Exists("of-a"));
  EXPECT_FALSE(Exists("deep"));
  ASSERT_TRUE(Exists("of-both"));
  EXPECT_EQ(Find(Get(kMaps + std::string("/of-both")).body, "metadata", "ownerReferences")
                ->get_array()
                .size(),
            1u);
  Delete(kMaps + std::string("/b"));
  EXPECT_FALSE(Exists("of-both"));
}

TEST_F(CascadeTest, OrphansStay) {
  Add("a", {});
  Add("of-a", {"a"});
  Delete(kMaps + std::string("/a"), R"({"propagationPolicy":"Orphan"})");
  ASSERT_TRUE(Exists("of-a"));
  EXPECT_EQ(Find(Get(kMaps + std::string("/of-a")).body, "metadata", "ownerReferences"), nullptr);
}

TEST_F(CascadeTest, ForegroundDeletionRemovesTheOwnerLast) {
  Add("a", {});
  const std::string uid(FindString(Get(kMaps + std::string("/a")).body, "metadata", "uid"));
  AddPod("p", "", "{}",
         R"(,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":")" + uid +
             R"("}])");
  Bind("p", "n");
  Delete(kMaps + std::string("/a"), R"({"propagationPolicy":"Foreground"})");
  EXPECT_TRUE(Exists("a"));
  EXPECT_FALSE(FindString(Get(PodPath("p")).body, "metadata", "deletionTimestamp").empty());
  Delete(PodPath("p"), R"({"gracePeriodSeconds":0})");
  EXPECT_FALSE(Exists("a"));
}

TEST_F(CascadeTest, LongChainsNeedNoRecursion) {
  Add("m0", {});
  for (int i = 1; i < 3000; ++i) {
    Add("m" + std::to_string(i), {"m" + std::to_string(i - 1)});
  }
  Delete(kMaps + std::string("/m0"));
  EXPECT_TRUE(Names(Get(kMaps)).empty());
}

TEST_F(DeleteTest, NamespaceDeletesItsContentAndWaitsForIt) {
  Post("/api/v1/namespaces", R"({"metadata":{"name":"team"}})");
  const std::string inside = "/api/v1/namespaces/team/configmaps";
  Post(inside, R"({"metadata":{"name":"m"}})");
  Post(inside, R"({"metadata":{"name":"held","finalizers":["x.y/z"]}})");
  const auto marked = Delete("/api/v1/namespaces/team");
  EXPECT_EQ(FindString(marked.body, "status", "phase"), "Terminating");
  EXPECT_EQ(Get(inside + "/m").code, 404);
  EXPECT_EQ(Post(inside, R"({"metadata":{"name":"late"}})").code, 403);
  Patch(inside + "/held", "merge", R"({"metadata":{"finalizers":null}})");
  EXPECT_EQ(Get("/api/v1/namespaces/team").code, 404);
  EXPECT_EQ(Delete("/api/v1/namespaces/kube-system").code, 403);
}

TEST_F(DeleteTest, DeletesCollectionBySelector) {
  AddPod("a", "", R"({"x":"1"})");
  AddPod("b", "", R"({"x":"2"})");
  EXPECT_EQ(Delete(std::string(kPodsPath) + "?labelSelector=x=1").code, 200);
  EXPECT_EQ(Names(Get(kPodsPath)), std::vector<std::string>{"b"});
}

class EvictionTest : public DeleteTest {
 protected:
  void AddReady(const std::string& name) {
    AddPod(name, "", R"({"app":"x"})");
    Bind(name, "n");
    Patch(PodPath(name) + "/status", "merge",
          R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})");
  }
  kube::ApiResponse Evict(const std::string& name) {
    return Post(PodPath(name) + "/eviction", R"({"deleteOptions":{"gracePeriodSeconds":0}})");
  }
  void Budget(const std::string& spec) {
    ASSERT_EQ(Post("/apis/policy/v1/namespaces/default/poddisruptionbudgets",
                   R"({"metadata":{"name":"b"},"spec":{"selector":{"matchLabels":{"app":"x"}},)" +
                       spec + "}}")
                  .code,
              201);
  }
};

TEST_F(EvictionTest, BudgetsAreEnforced) {
  for (const char* name : {"a", "b", "c"}) AddReady(name);
  Budget(R"("minAvailable":2)");
  EXPECT_EQ(Evict("a").code, 201);
  EXPECT_EQ(Get(PodPath("a")).code, 404);
  const auto refused = Evict("b");
  EXPECT_EQ(refused.code, 429);
  EXPECT_EQ(Get(PodPath("b")).code, 200);
}

TEST_F(EvictionTest, DoesNotEvictAnotherPodOfTheSameName) {
  AddReady("a");
  const auto refused =
      Post(PodPath("a") + "/eviction", R"({"deleteOptions":{"preconditions":{"uid":"another"}}})");
  EXPECT_EQ(refused.code, 409);
  const std::string text = WriteJson(*Find(Get(PodPath("a")).body, "status", "conditions"));
  EXPECT_EQ(text.find("EvictionByEvictionAPI"), std::string::npos) << text;
}

TEST_F(EvictionTest, EvictedPodHasDisruptionTargetCondition) {
  AddReady("a");
  ASSERT_EQ(Post(PodPath("a") + "/eviction", R"({"deleteOptions":{"gracePeriodSeconds":30}})").code,
            201);
  const Json pod = Get(PodPath("a")).body;
  EXPECT_NE(Find(pod, "metadata", "deletionTimestamp"), nullptr);
  const std::string text = WriteJson(*Find(pod, "status", "conditions"));
  EXPECT_NE(text.find("EvictionByEvictionAPI"), std::string::npos) << text;
}

TEST_F(EvictionTest, BudgetMayBeAPercentageOrAMaximum) {
  for (const char* name : {"a", "b", "c", "d"}) AddReady(name);
  Budget(R"("maxUnavailable":"25%")");
  Patch(PodPath("a") + "/status", "merge",
        R"({"status":{"conditions":[{"type":"Ready","status":"False"}]}})");
  EXPECT_EQ(Evict("b").code, 429);
  EXPECT_EQ(Evict("a").code, 201);
  EXPECT_EQ(Evict("zz").code, 404);
}

}  // namespace
}  // namespace nos::sim
