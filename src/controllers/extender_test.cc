#include "controllers/extender.h"

#include <gtest/gtest.h>

#include "kube/testing/fake_api.h"
#include "reconcile/runner.h"

namespace nos::controllers {
namespace {

using std::chrono::seconds;

constexpr const char* kSlice = "nvidia.com/mig-1g.5gb";

class ExtenderTest : public testing::Test {
 protected:
  void Run() {
    while (runner_.Step(clock_)) {
    }
  }
  void Node(const std::string& name, int slices) {
    api_.Put(
        {{"kind", "Node"},
         {"metadata", {{"name", name}}},
         {"status",
          {{"allocatable", {{"cpu", "1"}, {"pods", "1"}, {kSlice, std::to_string(slices)}}}}}});
  }
  static Json PodJson(const std::string& name, int slices, const std::string& node = "") {
    return {{"kind", "Pod"},
            {"metadata", {{"namespace", "ml"}, {"name", name}, {"uid", "uid-" + name}}},
            {"spec",
             {{"nodeName", node},
              {"containers",
               JsonArray{{{"name", "main"},
                          {"resources",
                           {{"requests", {{"cpu", "64"}, {kSlice, std::to_string(slices)}}}}}}}}}},
            {"status", {{"phase", node.empty() ? "Pending" : "Running"}}}};
  }
  Json Ask(std::string_view verb, const Json& args) {
    const Extender::Answer answer = extender_.Handle(verb, WriteJson(args), client_, clock_);
    EXPECT_EQ(answer.code, 200) << answer.body;
    auto json = ParseJson(answer.body);
    EXPECT_TRUE(json.ok()) << answer.body;
    return std::move(json).value();
  }
  Json Filter(const Json& pod, const JsonArray& names) {
    return Ask("filter", {{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", names}});
  }
  std::string Bind(const std::string& pod, const std::string& node) {
    const Json answer =
        Ask("bind",
            {{"PodNamespace", "ml"}, {"PodName", pod}, {"PodUID", "uid-" + pod}, {"Node", node}});
    return std::string(FindString(answer, "Error"));
  }
  static JsonArray Names(std::initializer_list<const char*> names) {
    JsonArray array;
    for (const char* name : names) array.emplace_back(name);
    return array;
  }

  ManualClock clock_{Time(seconds(1'800'000'000))};
  kube::FakeApi api_;
  kube::Client client_{api_};
  Extender extender_{gpu::Catalogue::Builtin()};
  reconcile::Runner runner_{extender_, api_, reconcile::RunnerOptions()};
};

TEST_F(ExtenderTest, FiltersNodesByGpuCapacity) {
  Node("free", 1);
  Node("full", 1);
  Node("none", 0);
  api_.Put(PodJson("holder", 1, "full"));
  Run();
  const Json answer = Filter(PodJson("p", 1), Names({"none", "full", "free", "new"}));
  // kube-scheduler checks cpu and the number of pods itself.
  EXPECT_EQ(*Find(answer, "NodeNames"), Json(Names({"free"})));
  EXPECT_EQ(FindString(answer, "FailedNodes", "full"), std::string("Insufficient ") + kSlice);
  // Partitioning could help there, so the refusal is not unresolvable.
  EXPECT_EQ(FindString(answer, "FailedNodes", "none"), std::string("Insufficient ") + kSlice);
  EXPECT_EQ(FindString(answer, "FailedNodes", "new"), "nos does not know this node yet");
  EXPECT_EQ(FindString(answer, "Error"), "");
}

TEST_F(ExtenderTest, FilterReportsNodeThatPreemptionCannotHelp) {
  Node("n", 1);
  Run();
  Json pod = PodJson("p", 0);
  MakeObject(pod.get_object()["spec"].get_object()["containers"].get_array()[0], "resources",
             "requests")["nvidia.com/gpu"] = "1";
  const Json answer = Filter(pod, Names({"n"}));
  EXPECT_EQ(FindString(answer, "FailedAndUnresolvableNodes", "n"), "Insufficient nvidia.com/gpu");
  EXPECT_EQ(*Find(answer, "NodeNames"), Json(JsonArray()));
}

TEST_F(ExtenderTest, FilterReturnsWholeNodesUnchanged) {
  Node("free", 1);
  Node("none", 0);
  Run();
  const Json free = {{"metadata", {{"name", "free"}, {"labels", {{"a", "b"}}}}}};
  const Json none = {{"metadata", {{"name", "none"}}}};
  const Json answer = Ask("filter", {{"Pod", PodJson("p", 1)},
                                     {"Nodes", {{"items", JsonArray{free, none}}}},
                                     {"NodeNames", nullptr}});
  EXPECT_EQ(*Find(answer, "Nodes", "items"), Json(JsonArray{free}));
  EXPECT_TRUE(Find(answer, "NodeNames")->is_null());
}

TEST_F(ExtenderTest, FilterPassesAllNodesForPodWithoutGpus) {
  Node("none", 0);
  Run();
  const Json answer = Filter(PodJson("p", 0), Names({"none", "new"}));
  EXPECT_EQ(*Find(answer, "NodeNames"), Json(Names({"none", "new"})));
}

TEST_F(ExtenderTest, RefusesRequestsBeforeCachesAreSynced) {
  const char* const not_read = "nos has not read the cluster yet";
  EXPECT_EQ(FindString(Filter(PodJson("p", 1), Names({"a"})), "Error"), not_read);
  api_.Put(PodJson("p", 1));
  EXPECT_EQ(Bind("p", "a"), not_read);
}

TEST_F(ExtenderTest, AssumesBoundPodAtOnce) {
  Node("n", 1);
  api_.Put(PodJson("p", 1));
  api_.Put(PodJson("q", 1));
  Run();
  EXPECT_EQ(Bind("p", "n"), "");
  EXPECT_EQ(FindString(*api_.Find("pods", "ml/p"), "spec", "nodeName"), "n");
  // The runner has read no watch event since.
  EXPECT_EQ(FindString(Filter(PodJson("q", 1), Names({"n"})), "FailedNodes", "n"),
            std::string("Insufficient ") + kSlice);
  EXPECT_EQ(Bind("q", "n"), std::string("n: Insufficient ") + kSlice);
  Run();
  EXPECT_EQ(Bind("q", "n"), std::string("n: Insufficient ") + kSlice);
}

TEST_F(ExtenderTest, ReleasesPodWhenBindingIsRefused) {
  Node("n", 1);
  api_.Put(PodJson("p", 1));
  Run();
  api_.Put(PodJson("p", 1, "elsewhere"));
  EXPECT_NE(Bind("p", "n"), "");
  EXPECT_EQ(*Find(Filter(PodJson("q", 1), Names({"n"})), "NodeNames"), Json(Names({"n"})));
  EXPECT_NE(Bind("gone", "n"), "");
}

TEST_F(ExtenderTest, DoesNotBindPodWithOtherUid) {
  Node("n", 1);
  api_.Put(PodJson("p", 1));
  Run();
  const Json answer =
      Ask("bind",
          {{"PodNamespace", "ml"}, {"PodName", "p"}, {"PodUID", "uid-of-before"}, {"Node", "n"}});
  EXPECT_EQ(FindString(answer, "Error"), "it is another pod by now");
}

TEST_F(ExtenderTest, PrioritizesNodeThatStrandsLeastCapacity) {
  // "whole" has a GPU of seven slots that nos partitions; "partitioned" has one with a single free
  // slot.
  const auto node = [&](const std::string& name, const std::string& status) {
    Json annotations = JsonObject{{"nos.nebuly.com/status-gpu-0-1g.5gb-free", status}};
    api_.Put({{"kind", "Node"},
              {"metadata",
               {{"name", name},
                {"labels",
                 {{"nos.nebuly.com/gpu-partitioning", "mig"},
                  {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                  {"nvidia.com/gpu.count", "1"}}},
                {"annotations", annotations}}},
              {"status", {{"allocatable", {{"pods", "9"}, {kSlice, status}}}}}});
  };
  node("whole", "7");
  node("partitioned", "7");
  for (int i = 0; i < 6; ++i) api_.Put(PodJson("r" + std::to_string(i), 1, "partitioned"));
  for (int i = 0; i < 3; ++i) {
    Json large = PodJson("large" + std::to_string(i), 0);
    MakeObject(large.get_object()["spec"].get_object()["containers"].get_array()[0], "resources",
               "requests")["nvidia.com/mig-3g.20gb"] = "1";
    api_.Put(large);
  }
  Run();
  const Json scores = Ask("prioritize", {{"Pod", PodJson("p", 1)},
                                         {"NodeNames", Names({"whole", "partitioned", "new"})}});
  const auto score = [&](size_t i) {
    return Find(scores.get_array()[i], "Score")->to_number<int64_t>();
  };
  EXPECT_EQ(FindString(scores.get_array()[1], "Host"), "partitioned");
  EXPECT_EQ(score(1), 10);
  EXPECT_LT(score(0), 10);
  EXPECT_GE(score(0), 0);
  EXPECT_EQ(score(2), 0);
}

TEST_F(ExtenderTest, PreemptKeepsNodesWhereVictimsFreeEnough) {
  Node("a", 1);
  Node("b", 1);
  api_.Put(PodJson("on-a", 1, "a"));
  api_.Put(PodJson("on-b", 1, "b"));
  api_.Put(PodJson("idle", 0, "b"));
  Run();
  const Json meta = {{"a", {{"Pods", JsonArray{{{"UID", "uid-on-a"}}}}, {"NumPDBViolations", 2}}},
                     {"b", {{"Pods", JsonArray{{{"UID", "uid-idle"}}}}, {"NumPDBViolations", 0}}}};
  const Json answer = Ask("preempt", {{"Pod", PodJson("p", 1)}, {"NodeNameToMetaVictims", meta}});
  const Json only = {{"a", *Find(meta, "a")}};
  EXPECT_EQ(*Find(answer, "NodeNameToMetaVictims"), only);
  const Json whole = {{"b", {{"Pods", JsonArray{PodJson("on-b", 1, "b")}}}}};
  const Json other = Ask("preempt", {{"Pod", PodJson("p", 1)}, {"NodeNameToVictims", whole}});
  EXPECT_NE(Find(other, "NodeNameToMetaVictims", "b"), nullptr);
}

TEST_F(ExtenderTest, ReleasesAssumedPodAfterTimeout) {
  Node("n", 1);
  api_.Put(PodJson("p", 1));
  Run();
  // The outcome of the binding is unknown.
  api_.intercept = [](const kube::ApiRequest& request) -> std::optional<Result<kube::ApiResponse>> {
    if (!request.path.ends_with("/binding")) return std::nullopt;
    return Status{Code::kDeadline, "no answer came"};
  };
  EXPECT_EQ(Bind("p", "n"), "deadline exceeded: no answer came");
  runner_.Poke(clock_.Now());
  Run();
  EXPECT_NE(Find(Filter(PodJson("q", 1), Names({"n"})), "FailedNodes", "n"), nullptr);
  // The pod's own assumption does not count against it.
  EXPECT_EQ(*Find(Filter(PodJson("p", 1), Names({"n"})), "NodeNames"), Json(Names({"n"})));
  EXPECT_NE(Find(Filter(PodJson("q", 1), Names({"n"})), "FailedNodes", "n"), nullptr);
  clock_.Advance(seconds(31));
  Run();
  EXPECT_EQ(Find(Filter(PodJson("q", 1), Names({"n"})), "FailedNodes", "n"), nullptr);
}

TEST_F(ExtenderTest, RejectsMalformedRequests) {
  const auto code = [&](std::string_view verb, std::string_view body) {
    const Extender::Answer answer = extender_.Handle(verb, body, client_, clock_);
    EXPECT_FALSE(answer.body.empty());
    return answer.code;
  };
  for (const char* verb : {"filter", "prioritize", "bind", "preempt"}) {
    for (const char* body : {"", "{", "[]", "7", "{}", R"({"Pod":7})", R"({"Pod":{"spec":[]}})"}) {
      EXPECT_EQ(code(verb, body), 400) << verb << " " << body;
    }
  }
  EXPECT_EQ(code("filter", R"({"Pod":{},"NodeNames":[1]})"), 400);
  EXPECT_EQ(code("filter", R"({"Pod":{},"Nodes":{"items":[{}]}})"), 400);
  EXPECT_EQ(code("preempt", R"({"Pod":{},"NodeNameToMetaVictims":{"a":{"Pods":[{}]}}})"), 400);
  EXPECT_EQ(code("delete", "{}"), 404);
}

// kube-scheduler timed out, but the binding took effect, and it tries again.
TEST_F(ExtenderTest, BoundPodStillCountsWhenBoundAgain) {
  Node("a", 1);
  Node("b", 1);
  api_.Put(PodJson("p", 1));
  Run();
  EXPECT_EQ(Bind("p", "a"), "");
  Run();  // the watch has shown it
  for (const char* node : {"b", "a"}) {
    EXPECT_NE(Bind("p", node), "");
    EXPECT_NE(Find(Filter(PodJson("q", 1), Names({"a"})), "FailedNodes", "a"), nullptr)
        << "p has the slice of a";
  }
}

TEST_F(ExtenderTest, RefusedBindingKeepsEarlierAssumption) {
  Node("a", 1);
  Node("b", 1);
  api_.Put(PodJson("p", 1));
  Run();
  EXPECT_EQ(Bind("p", "a"), "");  // the watch has not shown it
  EXPECT_NE(Bind("p", "b"), "");
  EXPECT_NE(Find(Filter(PodJson("q", 1), Names({"a"})), "FailedNodes", "a"), nullptr);
}

}  // namespace
}  // namespace nos::controllers
