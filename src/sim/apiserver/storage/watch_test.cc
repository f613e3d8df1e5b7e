// Lists, pages and watches.
#include <thread>

#include "base/wake_signal.h"
#include "sim/apiserver/storage/api_fixture_test.h"

namespace nos::sim {
namespace {

class WatchTest : public ApiServerTest {
 protected:
  void AddMap(const std::string& name, const std::string& labels = "{}") {
    ASSERT_EQ(
        Post(kMaps, R"({"metadata":{"name":")" + name + R"(","labels":)" + labels + "}}").code,
        201);
  }
  std::string Version() {
    return std::string(FindString(Get(kMaps).body, "metadata", "resourceVersion"));
  }
  std::string Maps(const std::string& query) { return std::string(kMaps) + "?" + query; }
};

TEST_F(WatchTest, ShowsChangesAfterAVersion) {
  AddMap("a");
  auto watch = Watch(Maps("resourceVersion=" + Version()));
  EXPECT_FALSE(watch->Next().has_value());
  AddMap("b");
  Patch(Maps("x=y").substr(0, Maps("x=y").find('?')) + "/a", "merge", R"({"data":{"k":"v"}})");
  Delete(kMaps + std::string("/b"));
  EXPECT_EQ(Read(*watch), (std::vector<std::string>{"ADDED b", "MODIFIED a", "DELETED b"}));
  EXPECT_FALSE(watch->Ended());
}

TEST_F(WatchTest, WithoutAVersionBeginsWithExistingObjects) {
  AddMap("a");
  auto plain = Watch(Maps("x=y"));
  auto listed =
      Watch(Maps("sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                 "&allowWatchBookmarks=true"));
  AddMap("b");
  EXPECT_EQ(Read(*plain), (std::vector<std::string>{"ADDED a", "ADDED b"}));
  ASSERT_TRUE(listed->Next().has_value());
  const auto bookmark = listed->Next();
  ASSERT_TRUE(bookmark.has_value());
  EXPECT_EQ(bookmark->type, "BOOKMARK");
  EXPECT_EQ(FindString(bookmark->object, "metadata", "annotations", "k8s.io/initial-events-end"),
            "true");
  EXPECT_EQ(Read(*listed), std::vector<std::string>{"ADDED b"});
}

TEST_F(WatchTest, ObjectsEnterAndLeaveASelection) {
  AddMap("a", R"({"x":"1"})");
  auto watch = Watch(Maps("labelSelector=x=1&resourceVersion=" + Version()));
  const std::string path = kMaps + std::string("/a");
  Patch(path, "merge", R"({"data":{"k":"v"}})");
  Patch(path, "merge", R"({"metadata":{"labels":{"x":"2"}}})");
  Patch(path, "merge", R"({"data":{"k":"w"}})");
  Patch(path, "merge", R"({"metadata":{"labels":{"x":"1"}}})");
  EXPECT_EQ(Read(*watch), (std::vector<std::string>{"MODIFIED a", "DELETED a", "ADDED a"}));
}

TEST_F(WatchTest, WatchesOneObjectByName) {
  AddMap("a");
  AddMap("b");
  auto watch = Watch(Maps("fieldSelector=metadata.name=b"));
  Delete(kMaps + std::string("/a"));
  Delete(kMaps + std::string("/b"));
  EXPECT_EQ(Read(*watch), (std::vector<std::string>{"ADDED b", "DELETED b"}));
}

TEST_F(WatchTest, WatchThatFallsBehindEndsWithGone) {
  Restart({.history = 5});
  AddMap("a");
  const std::string old = Version();
  auto slow = Watch(Maps("resourceVersion=" + old));
  for (int i = 0; i < 10; ++i) AddMap("m" + std::to_string(i));
  auto late = Watch(Maps("resourceVersion=" + old));
  for (auto* watch : {slow.get(), late.get()}) {
    const auto event = watch->Next();
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->type, "ERROR");
    EXPECT_EQ(*Find(event->object, "code"), 410);
    EXPECT_TRUE(watch->Ended());
    EXPECT_FALSE(watch->Next().has_value());
  }
}

TEST_F(WatchTest, HistoryIsBoundedByMemory) {
  constexpr size_t kSize = 1'000'000;
  Restart({.history_bytes = 5 * kSize + kSize / 2});
  AddMap("a");
  const auto write = [&](char c) {
    EXPECT_EQ(Send("PATCH", kMaps + std::string("/a"), {{"data", {{"k", std::string(kSize, c)}}}},
                   "application/merge-patch+json")
                  .code,
              200);
  };
  write('0');
  std::vector<std::string> versions;
  for (char c = 'a'; c < 'k'; ++c) {
    versions.push_back(Version());
    write(c);
  }
  // The history reaches back exactly five former versions.
  EXPECT_EQ(Read(*Watch(Maps("resourceVersion=" + versions[4]))),
            std::vector<std::string>{"ERROR Expired"});
  EXPECT_EQ(Read(*Watch(Maps("resourceVersion=" + versions[5]))).size(), 5u);
  // A deletion keeps two versions: the last state, and that state at the version of the deletion.
  Delete(kMaps + std::string("/a"));
  EXPECT_EQ(Read(*Watch(Maps("resourceVersion=" + versions[6]))),
            std::vector<std::string>{"ERROR Expired"});
  EXPECT_EQ(Read(*Watch(Maps("resourceVersion=" + versions[7]))).size(), 4u);
}

TEST_F(WatchTest, TheNewestChangeIsAlwaysKept) {
  Restart({.history_bytes = 0});
  AddMap("a");
  const std::string version = Version();
  Delete(kMaps + std::string("/a"));
  EXPECT_EQ(Read(*Watch(Maps("resourceVersion=" + version))),
            std::vector<std::string>{"DELETED a"});
}

TEST_F(WatchTest, QuietWatchGetsBookmarks) {
  AddMap("a", R"({"x":"1"})");
  auto watch =
      Watch(Maps("labelSelector=x=1&allowWatchBookmarks=true&resourceVersion=" + Version()));
  auto without = Watch(Maps("labelSelector=x=1&resourceVersion=" + Version()));
  for (int i = 0; i < 600; ++i) AddMap("m" + std::to_string(i));
  const auto bookmark = watch->Next();
  ASSERT_TRUE(bookmark.has_value());
  EXPECT_EQ(bookmark->type, "BOOKMARK");
  EXPECT_EQ(FindString(bookmark->object, "metadata", "resourceVersion"), Version());
  EXPECT_FALSE(without->Next().has_value());
}

TEST_F(WatchTest, WaitingEndsWithAnEventFromAnotherThread) {
  auto watch = Watch(Maps("resourceVersion=" + Version()));
  std::thread writer([&] { AddMap("a"); });
  WakeSignal bell;
  watch->OnReady([&] { bell.Ring(); });
  EXPECT_TRUE(bell.Wait(std::chrono::seconds(30)));
  EXPECT_EQ(Read(*watch), std::vector<std::string>{"ADDED a"});
  writer.join();
}

TEST_F(WatchTest, WatchesOutliveTheServerAndEnd) {
  auto watch = Watch(Maps("resourceVersion=" + Version()));
  server_.reset();
  EXPECT_TRUE(watch->Ended());
  EXPECT_FALSE(watch->Next().has_value());
  bool woken = false;
  watch->OnReady([&] { woken = true; });
  EXPECT_TRUE(woken);
}

TEST_F(WatchTest, RefusesMalformedParameters) {
  kube::ApiRequest request;
  request.path = "/api/v1/things";
  EXPECT_EQ(server_->Watch(request).status().code(), Code::kNotFound);
  request.path = "/api/v1/pods";
  request.query = {{"resourceVersion", "x"}};
  EXPECT_EQ(server_->Watch(request).status().code(), Code::kInvalid);
  request.query = {{"fieldSelector", "spec.hostname=x"}};
  EXPECT_EQ(server_->Watch(request).status().code(), Code::kInvalid);
}

TEST_F(WatchTest, RefusesFutureVersions) {
  AddMap("a");
  kube::ApiRequest request;
  request.path = kMaps;
  request.query = {{"resourceVersion", "999999"}};
  auto answer = server_->OpenWatch(request);
  const auto* refused = std::get_if<kube::ApiResponse>(&answer);
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->code, 504);
  EXPECT_EQ(Reason(*refused), "Timeout");
  EXPECT_EQ(FindString(refused->body, "message"),
            "Timeout: Too large resource version: 999999, current: " + Version());
}

TEST_F(WatchTest, RefusesContradictoryVersionParameters) {
  AddMap("a");
  const std::string version = Version();
  for (const char* query :
       {"resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan",
        "resourceVersionMatch=Exact&resourceVersion=0", "resourceVersionMatch=x&resourceVersion=1",
        "resourceVersionMatch=Exact&resourceVersion=1&continue=x", "sendInitialEvents=true"}) {
    EXPECT_EQ(Get(Maps(query)).code, 422) << query;
  }
  EXPECT_EQ(Get(Maps("resourceVersionMatch=NotOlderThan&resourceVersion=" + version)).code, 200);
  EXPECT_EQ(Get(Maps("resourceVersionMatch=NotOlderThan&resourceVersion=0")).code, 200);
  using Query = std::vector<std::pair<std::string, std::string>>;
  for (const Query& query :
       {Query{{"resourceVersionMatch", "NotOlderThan"}, {"resourceVersion", version}},
        Query{{"sendInitialEvents", "true"}},
        Query{{"sendInitialEvents", "true"}, {"resourceVersionMatch", "Exact"}}}) {
    kube::ApiRequest request;
    request.path = kMaps;
    request.query = query;
    auto answer = server_->OpenWatch(request);
    ASSERT_TRUE(std::holds_alternative<kube::ApiResponse>(answer)) << query[0].first;
    EXPECT_EQ(std::get<kube::ApiResponse>(answer).code, 422);
  }
}

TEST_F(WatchTest, PagesShowOneStateDespiteChanges) {
  for (const char* name : {"a", "b", "c", "d"}) AddMap(name);
  const auto first = Get(Maps("limit=2"));
  EXPECT_EQ(Names(first), (std::vector<std::string>{"a", "b"}));
  const std::string token(FindString(first.body, "metadata", "continue"));
  Delete(kMaps + std::string("/c"));
  AddMap("bb");
  Patch(kMaps + std::string("/d"), "merge", R"({"data":{"k":"v"}})");
  const auto second = Get(Maps("limit=2&continue=" + token));
  EXPECT_EQ(Names(second), (std::vector<std::string>{"c", "d"}));
  EXPECT_EQ(Find(Find(second.body, "items")->at(1), "data"), nullptr);
  EXPECT_EQ(FindString(second.body, "metadata", "resourceVersion"),
            FindString(first.body, "metadata", "resourceVersion"));
  EXPECT_EQ(FindString(second.body, "metadata", "continue"), "");
  const auto exact = Get(Maps("resourceVersionMatch=Exact&resourceVersion=" +
                              std::string(FindString(first.body, "metadata", "resourceVersion"))));
  EXPECT_EQ(Names(exact), (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST_F(WatchTest, RefusesOldFutureAndForgedPages) {
  Restart({.history = 5});
  for (const char* name : {"a", "b", "c"}) AddMap(name);
  const auto first = Get(Maps("limit=1"));
  const std::string token(FindString(first.body, "metadata", "continue"));
  for (int i = 0; i < 10; ++i) AddMap("m" + std::to_string(i));
  EXPECT_EQ(Get(Maps("limit=1&continue=" + token)).code, 410);
  EXPECT_EQ(Get(Maps("continue=rubbish")).code, 400);
  EXPECT_EQ(Get(Maps("limit=x")).code, 400);
  EXPECT_EQ(Get(Maps("resourceVersion=999999")).code, 504);
  EXPECT_EQ(Get(Maps("resourceVersion=99999999999999999999")).code, 400);
}

TEST_F(WatchTest, SelectsWithAllKindsOfSelectors) {
  AddMap("a", R"({"x":"1","n":"5"})");
  AddMap("b", R"({"x":"2"})");
  AddMap("c");
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"x", {"a", "b"}},
      {"!x", {"c"}},
      {"x=1", {"a"}},
      {"x==1", {"a"}},
      {"x!=1", {"b", "c"}},
      {"x in (1,2),n", {"a"}},
      {"x notin (1)", {"b", "c"}},
      {"n>4", {"a"}},
      {"n<5", {}},
      {"x in (1, 3) , !y", {"a"}},
  };
  for (const auto& [selector, names] : cases) {
    EXPECT_EQ(Names(Get(Maps(std::string("labelSelector=") + selector))), names) << selector;
  }
  for (const char* bad :
       {"x=", "=1", "x in 1", "x in (1", "x~1", ",", "n>x", "(", ")", "x in ()y"}) {
    const int code = Get(Maps(std::string("labelSelector=") + bad)).code;
    EXPECT_TRUE(code == 400 || (code == 200 && std::string_view(bad) == "x=")) << bad;
  }
}

}  // namespace
}  // namespace nos::sim
