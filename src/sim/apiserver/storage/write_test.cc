// Creating, changing and reading objects.
#include "sim/apiserver/storage/api_fixture_test.h"

namespace nos::sim {
namespace {

using WriteTest = ApiServerTest;

TEST_F(WriteTest, CreateSetsServerOwnedFields) {
  const auto response = AddPod("a");
  ASSERT_EQ(response.code, 201) << WriteJson(response.body);
  const Json& pod = response.body;
  EXPECT_EQ(FindString(pod, "apiVersion"), "v1");
  EXPECT_EQ(FindString(pod, "metadata", "namespace"), "default");
  EXPECT_EQ(FindString(pod, "metadata", "creationTimestamp"), "2026-01-02T03:04:05Z");
  EXPECT_EQ(FindString(pod, "metadata", "uid").size(), 36u);
  EXPECT_FALSE(FindString(pod, "metadata", "resourceVersion").empty());
  EXPECT_EQ(FindString(pod, "spec", "restartPolicy"), "Always");
  EXPECT_EQ(FindString(pod, "spec", "schedulerName"), "default-scheduler");
  EXPECT_EQ(*Find(pod, "spec", "priority"), 0);
  EXPECT_EQ(FindString(pod, "status", "phase"), "Pending");
  EXPECT_EQ(FindString(pod, "status", "qosClass"), "BestEffort");
}

TEST_F(WriteTest, SameSeedAndRequestsGiveSameObjects) {
  const std::string first = WriteJson(AddPod("a").body);
  const std::string other = WriteJson(
      Post(kPodsPath,
           R"({"metadata":{"generateName":"g-"},"spec":{"containers":[{"name":"c","image":"i"}]}})")
          .body);
  Restart({});
  EXPECT_EQ(WriteJson(AddPod("a").body), first);
  EXPECT_EQ(WriteJson(Post(kPodsPath, R"({"metadata":{"generateName":"g-"},"spec":
                {"containers":[{"name":"c","image":"i"}]}})")
                          .body),
            other);
  Restart({.seed = 2});
  EXPECT_NE(WriteJson(AddPod("a").body), first);
}

TEST_F(WriteTest, RefusalsHaveFieldAndReason) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"metadata":{"name":"A_b"},"spec":{"containers":[{"name":"c","image":"i"}]}})",
       "metadata.name"},
      {R"({"metadata":{"name":"a"},"spec":{}})", "spec.containers"},
      {R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]}})",
       "spec.containers[0].image"},
      {R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i",
          "resources":{"requests":{"cpu":"-1"}}}]}})",
       "spec.containers[0].resources.requests[cpu]"},
      {R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i",
          "resources":{"requests":{"nvidia.com/gpu":"1"}}}]}})",
       "spec.containers[0].resources.limits"},
      {R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i",
          "resources":{"limits":{"nvidia.com/gpu":"500m"}}}]}})",
       "spec.containers[0].resources.limits[nvidia.com/gpu]"},
      {R"({"metadata":{"name":"a","labels":{"x":"-"}},
          "spec":{"containers":[{"name":"c","image":"i"}]}})",
       "metadata.labels"},
      {R"({"metadata":{"name":"a"},"spec":{"restartPolicy":"Maybe",
          "containers":[{"name":"c","image":"i"}]}})",
       "spec.restartPolicy"},
  };
  for (const auto& [body, field] : cases) {
    const auto response = Post(kPodsPath, body);
    EXPECT_EQ(response.code, 422) << body;
    EXPECT_EQ(Reason(response), "Invalid");
    EXPECT_EQ(FindString(Find(response.body, "details", "causes")->at(0), "field"), field);
  }
}

TEST_F(WriteTest, RefusesObjectsThatContradictTheAddress) {
  EXPECT_EQ(Post(kPodsPath, R"({"kind":"Node","metadata":{"name":"a"}})").code, 400);
  EXPECT_EQ(Post(kPodsPath, R"({"metadata":{"name":"a","namespace":"other"}})").code, 400);
  EXPECT_EQ(Post(kPodsPath, R"([1])").code, 400);
  EXPECT_EQ(Post("/api/v1/namespaces/nowhere/pods", R"({"metadata":{"name":"a"}})").code, 404);
  EXPECT_EQ(Post("/api/v1/pods", R"({"metadata":{"name":"a"}})").code, 405);
  EXPECT_EQ(Get("/api/v1/namespaces/default/nodes").code, 404);
  EXPECT_EQ(Get("/api/v1/pods/a").code, 404);
  EXPECT_EQ(Get("/apis/none/v1/things").code, 404);
  EXPECT_EQ(Get("/").code, 200);
  for (const char* path : {"", "api", "/api/", "//", "/api/v1/namespaces//pods", "/api/v1//",
                           "/apis", "/api/v1/namespaces/a/b/c/d/e/f"}) {
    const int code = Get(path).code;
    EXPECT_TRUE(code == 404 || code == 200) << path << " " << code;
  }
}

TEST_F(WriteTest, StaleUpdateConflictsAndUnchangedOneIsNotWritten) {
  const Json old = AddPod("a").body;
  Json changed = old;
  MakeObject(changed, "metadata", "labels")["x"] = "1";
  const auto updated = Put(kPodsPath + std::string("/a"), changed);
  ASSERT_EQ(updated.code, 200) << WriteJson(updated.body);
  const auto stale = Put(kPodsPath + std::string("/a"), changed);
  EXPECT_EQ(stale.code, 409);
  EXPECT_EQ(Reason(stale), "Conflict");
  const auto same = Put(kPodsPath + std::string("/a"), updated.body);
  EXPECT_EQ(same.body, updated.body);
  Json no_version = updated.body;
  MakeObject(no_version, "metadata").erase("resourceVersion");
  MakeObject(no_version, "metadata", "labels")["x"] = "2";
  EXPECT_EQ(Put(kPodsPath + std::string("/a"), no_version).code, 200);
  MakeObject(no_version, "metadata")["uid"] = "another";
  EXPECT_EQ(Put(kPodsPath + std::string("/a"), no_version).code, 409);
  EXPECT_EQ(Put(kPodsPath + std::string("/b"), no_version).code, 404);
}

TEST_F(WriteTest, SpecAndStatusAreWrittenSeparately) {
  AddPod("a");
  const std::string path = kPodsPath + std::string("/a");
  const auto main = Patch(path, "merge", R"({"status":{"phase":"Running"},
      "metadata":{"labels":{"x":"1"}}})");
  EXPECT_EQ(FindString(main.body, "status", "phase"), "Pending");
  EXPECT_EQ(FindString(main.body, "metadata", "labels", "x"), "1");
  const auto status = Patch(path + "/status", "merge", R"({"status":{"phase":"Running"},
      "spec":{"nodeName":"n"}})");
  EXPECT_EQ(FindString(status.body, "status", "phase"), "Running");
  EXPECT_EQ(FindString(status.body, "spec", "nodeName"), "");
}

TEST_F(WriteTest, ItemsOfListsHaveTheSpecBeforeTheStatus) {
  AddPod("a");
  const Json list = Get(kPodsPath).body;
  std::vector<std::string> members;
  for (const auto& [name, value] : Find(list, "items")->at(0).get_object()) {
    members.emplace_back(name);
  }
  EXPECT_EQ(members, (std::vector<std::string>{"metadata", "spec", "status"}));
}

TEST_F(WriteTest, GenerationCountsChangesOfTheSpec) {
  const std::string path = "/apis/apps/v1/namespaces/default/deployments";
  const auto created = Post(path, R"({"metadata":{"name":"d"},"spec":{
      "selector":{"matchLabels":{"a":"b"}},
      "template":{"metadata":{"labels":{"a":"b"}},
                  "spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  ASSERT_EQ(created.code, 201) << WriteJson(created.body);
  EXPECT_EQ(*Find(created.body, "metadata", "generation"), 1);
  const auto label = Patch(path + "/d", "merge", R"({"metadata":{"labels":{"x":"y"}}})");
  EXPECT_EQ(*Find(label.body, "metadata", "generation"), 1);
  const auto spec = Patch(path + "/d", "merge", R"({"spec":{"replicas":3}})");
  EXPECT_EQ(*Find(spec.body, "metadata", "generation"), 2);
}

TEST_F(WriteTest, DryRunStoresNothing) {
  const auto dry = Post(kMaps + std::string("?dryRun=All"), R"({"metadata":{"name":"m"}})");
  EXPECT_EQ(dry.code, 201);
  EXPECT_EQ(Get(kMaps + std::string("/m")).code, 404);
}

TEST_F(WriteTest, PodsGetTheirPriority) {
  EXPECT_EQ(Post("/apis/scheduling.k8s.io/v1/priorityclasses",
                 R"({"metadata":{"name":"high"},"value":1000})")
                .code,
            201);
  const auto pod = AddPod("a", R"(,"priorityClassName":"high")");
  EXPECT_EQ(*Find(pod.body, "spec", "priority"), 1000);
  const auto system = AddPod("s", R"(,"priorityClassName":"system-node-critical")");
  EXPECT_EQ(*Find(system.body, "spec", "priority"), 2'000'001'000);
  EXPECT_EQ(AddPod("b", R"(,"priorityClassName":"none")").code, 403);
  EXPECT_EQ(AddPod("c", R"(,"priority":7)").code, 403);
  EXPECT_EQ(Post("/apis/scheduling.k8s.io/v1/priorityclasses",
                 R"({"metadata":{"name":"x"},"value":1000000001})")
                .code,
            422);
}

TEST_F(WriteTest, LimitsBecomeRequests) {
  const auto pod = Post(kPodsPath, R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c",
      "image":"i","resources":{"limits":{"nvidia.com/gpu":1,"cpu":"1"}}}]}})");
  ASSERT_EQ(pod.code, 201) << WriteJson(pod.body);
  const Json& container = Find(pod.body, "spec", "containers")->at(0);
  EXPECT_EQ(FindString(container, "resources", "requests", "nvidia.com/gpu"), "1");
  EXPECT_EQ(FindString(container, "resources", "requests", "cpu"), "1");
}

TEST_F(WriteTest, ServicesGetAnAddressAndKeepIt) {
  const std::string services = "/api/v1/namespaces/default/services";
  const std::string spec = R"("spec":{"ports":[{"port":80}]})";
  const auto a = Post(services, R"({"metadata":{"name":"a"},)" + spec + "}");
  const auto b = Post(services, R"({"metadata":{"name":"b"},)" + spec + "}");
  const std::string_view address = FindString(a.body, "spec", "clusterIP");
  EXPECT_TRUE(address.starts_with("10.")) << WriteJson(a.body);
  EXPECT_NE(address, FindString(b.body, "spec", "clusterIP"));
  const auto put = Put(services + "/a", FromText(R"({"metadata":{"name":"a"},)" + spec + "}"));
  EXPECT_EQ(FindString(put.body, "spec", "clusterIP"), address);
  const auto none = Post(services, R"({"metadata":{"name":"c"},"spec":{"clusterIP":"None"}})");
  EXPECT_EQ(FindString(none.body, "spec", "clusterIP"), "None");
}

TEST_F(WriteTest, BothEventGroupsShareOneCollection) {
  const std::string core = "/api/v1/namespaces/default/events";
  const std::string renamed = "/apis/events.k8s.io/v1/namespaces/default/events";
  EXPECT_EQ(Post(renamed, R"({"metadata":{"name":"e"},"regarding":{"kind":"Pod","name":"p"},
      "note":"hello","reportingController":"nos","type":"Normal","reason":"R"})")
                .code,
            201);
  const auto read = Get(core + "/e");
  EXPECT_EQ(FindString(read.body, "involvedObject", "name"), "p");
  EXPECT_EQ(FindString(read.body, "message"), "hello");
  EXPECT_EQ(FindString(read.body, "apiVersion"), "v1");
  const auto back = Get(renamed + "/e");
  EXPECT_EQ(FindString(back.body, "regarding", "name"), "p");
  EXPECT_EQ(FindString(back.body, "apiVersion"), "events.k8s.io/v1");
  EXPECT_EQ(Names(Get(core + "?fieldSelector=involvedObject.name=p")).size(), 1u);
  EXPECT_EQ(Names(Get(core + "?fieldSelector=involvedObject.name=q")).size(), 0u);
}

TEST_F(WriteTest, PodIsBoundOnlyOnce) {
  AddPod("a");
  Bind("a", "n1");
  const auto pod = Get(kPodsPath + std::string("/a"));
  EXPECT_EQ(FindString(pod.body, "spec", "nodeName"), "n1");
  const auto again = Post(kPodsPath + std::string("/a/binding"), R"({"target":{"name":"n2"}})");
  EXPECT_EQ(again.code, 409);
  EXPECT_EQ(Post(kPodsPath + std::string("/b/binding"), R"({"target":{"name":"n2"}})").code, 404);
  AddPod("gated", R"(,"schedulingGates":[{"name":"x.y/z"}])");
  EXPECT_EQ(Post(kPodsPath + std::string("/gated/binding"), R"({"target":{"name":"n2"}})").code,
            409);
}

TEST_F(WriteTest, PodWithSchedulingGatesSaysThatItWaitsForThem) {
  AddPod("plain");
  EXPECT_EQ(Find(Get(kPodsPath + std::string("/plain")).body, "status", "conditions"), nullptr);
  AddPod("gated", R"(,"schedulingGates":[{"name":"x.y/z"}])");
  const auto pod = Get(kPodsPath + std::string("/gated"));
  const Json* conditions = Find(pod.body, "status", "conditions");
  ASSERT_NE(conditions, nullptr);
  EXPECT_EQ(*conditions, FromText(R"([{"type":"PodScheduled","status":"False",
      "lastTransitionTime":"2026-01-02T03:04:05Z","reason":"SchedulingGated",
      "message":"Scheduling is blocked due to non-empty scheduling gates"}])"));
}

TEST_F(WriteTest, ObjectsAreBoundedInSizeDepthAndNumber) {
  JsonObject data;
  data["a"] = std::string(2'000'000, 'x');
  EXPECT_EQ(Send("POST", kMaps, {{"metadata", {{"name", "m"}}}, {"data", data}}).code, 413);
  Json deep = "x";
  for (int i = 0; i < 150; ++i) deep = {{"a", deep}};
  EXPECT_EQ(Send("POST", kMaps, {{"metadata", {{"name", "m"}}}, {"data", deep}}).code, 413);
  Restart({.max_objects = 12});
  int code = 201;
  for (int i = 0; i < 20 && code == 201; ++i) {
    code = Post(kMaps, R"({"metadata":{"name":"m)" + std::to_string(i) + R"("}})").code;
  }
  EXPECT_EQ(code, 403);
}

TEST_F(WriteTest, RefusesUnsupportedSubresourcesWithClearMessage) {
  AddPod("a");
  const auto logs = Get(kPodsPath + std::string("/a/ephemeralcontainers"));
  EXPECT_EQ(logs.code, 404);
  EXPECT_EQ(FindString(logs.body, "message"),
            "this simulated API server does not serve pods/ephemeralcontainers: it stores "
            "objects and runs no containers and no controllers");
  EXPECT_EQ(FindString(logs.body, "details", "name"), "a");
  EXPECT_EQ(FindString(logs.body, "details", "kind"), "pods");
}

TEST_F(WriteTest, EveryRefusalHasDetails) {
  for (const char* path : {"/api/v1/nothing", "/nothing", "/api/v1/namespaces/default/pods/a/x",
                           "/api/v1/pods?limit=x", "/api/v1/pods?resourceVersion=999999"}) {
    const auto refused = Get(path);
    EXPECT_GE(refused.code, 400);
    ASSERT_NE(Find(refused.body, "details"), nullptr) << path;
    EXPECT_TRUE(Find(refused.body, "details")->is_object()) << path;
  }
}

TEST_F(ApiServerTest, EventsExpireAnHourAfterTheirLastWrite) {
  const std::string events = "/api/v1/namespaces/default/events";
  const auto add = [&](const std::string& name) {
    return Post(events, R"({"metadata":{"name":")" + name +
                            R"(","finalizers":["example.com/x"]},"involvedObject":{"kind":"Pod",)"
                            R"("namespace":"default","name":"a"},"reason":"R","message":"m"})")
        .code;
  };
  ASSERT_EQ(add("a"), 201);
  ASSERT_EQ(add("b"), 201);
  const auto watch =
      Watch("/api/v1/events?resourceVersion=" +
            std::string(FindString(Get("/api/v1/events").body, "metadata", "resourceVersion")));
  clock_.Advance(std::chrono::minutes(59));
  ASSERT_EQ(Patch(events + "/b", "merge", R"({"count":2})").code, 200);
  EXPECT_EQ(Names(Get("/api/v1/events")), (std::vector<std::string>{"a", "b"}));
  clock_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(Names(Get("/api/v1/events")), (std::vector<std::string>{"b"}));
  EXPECT_EQ(Get(events + "/a").code, 404);
  EXPECT_EQ(Read(*watch), (std::vector<std::string>{"MODIFIED b", "DELETED a"}));
  ASSERT_EQ(add("a"), 201) << "its name is free again, and its time begins anew";
  clock_.Advance(std::chrono::minutes(59));
  EXPECT_EQ(Names(Get("/api/v1/events")), (std::vector<std::string>{"a"}));
  EXPECT_EQ(Delete(events + "/a").code, 200);
  EXPECT_EQ(AddPod("stays").code, 201);
  clock_.Advance(std::chrono::hours(24));
  EXPECT_EQ(Names(Get(kPodsPath)), (std::vector<std::string>{"stays"}));
}

}  // namespace
}  // namespace nos::sim
