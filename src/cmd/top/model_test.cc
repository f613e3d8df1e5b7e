#include "cmd/top/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/table.h"
#include "base/text.h"

namespace nos::cmd {
namespace {

constexpr int64_t kNow = 1'763'760'000'000;

Json Parsed(std::string_view text) { return ParseJson(text).value(); }

Json Gpus() {
  return Parsed(R"({"at":1763760000000,"fresh_at":1763759990000,"nodes":[
    {"node":"n-1","fresh_at":1763759990000,"gpus":[
      {"index":0,"slots":8,"product":"A100","health":"","holders":[],
       "metrics":{"utilization":0.25,"memory_used":2048,"memory_total":40960},
       "instances":[
        {"profile":"3g.20gb","start":4,"size":4,"holders":[{"namespace":"a","pod":"train"}]},
        {"profile":"1g.5gb","start":0,"size":1,"holders":[{"namespace":"b","pod":"web"}]},
        {"profile":"9g","start":7,"size":4,"holders":[]},
        {"profile":"1g.5gb","start":5,"size":1,"holders":[]}]},
      {"index":1,"slots":0,"product":"A100","health":"","metrics":{"utilization":0.75},
       "instances":[],"holders":[{"namespace":"a","pod":"whole\u001b[31m"}]}]}]})");
}

Json Pods() {
  return Parsed(R"({"pods":[
    {"uid":"1","namespace":"a","name":"train","state":"running","node":"n-1",
     "requests":{"nvidia.com/mig-3g.20gb":1,"cpu":4},"created":1763759000000,
     "started":1763759940000,"slices":[{"node":"n-1","gpu":0,"profile":"3g.20gb","start":4,
     "utilization":0.5,"memory_used":1024}]},
    {"uid":"2","namespace":"b","name":"waits","state":"pending","node":"","created":1763759970000,
     "requests":{"nvidia.com/mig-1g.5gb":2},"slices":[],"estimate":1763760060000,
     "why":"no room; wait"},
    {"uid":"3","namespace":"b","name":"done","state":"succeeded","slices":[]}],"next":null})");
}

TopModel Model() {
  TopModel model;
  const Json overview = Parsed(R"({"allocated":0.625,"used":0.25})");
  model.Load(Gpus(), {Pods()}, &overview);
  return model;
}

TEST(TopModel, RowsMatchServerAnswers) {
  const TopRows rows = RowsOf(Model(), {});
  ASSERT_EQ(rows.gpus.size(), 2U);
  ASSERT_EQ(rows.gpus[0].row.spans.size(), 2U) << "shares outside the GPU are omitted";
  EXPECT_EQ(rows.gpus[0].row.spans[1].pod, "a/train");
  EXPECT_EQ(rows.gpus[1].row.slots, 1);
  ASSERT_EQ(rows.pods.size(), 2U) << "ended pods are omitted";
  EXPECT_EQ(rows.pods[0].name, "b/waits");
  EXPECT_EQ(rows.pods[0].slice, "2 x 1g.5gb");
  EXPECT_EQ(rows.pods[0].starts_in, std::chrono::minutes(1));
  EXPECT_EQ(rows.pods[1].where, "n-1 gpu 0");
  EXPECT_EQ(rows.pods[1].age, std::chrono::minutes(1));
  EXPECT_EQ(rows.running, 1U);
  EXPECT_EQ(rows.waiting, 1U);
}

TEST(TopModel, PlacesMpsSharesInSequence) {
  TopModel model;
  model.Load(Parsed(R"({"at":1763760000000,"nodes":[{"node":"n","gpus":[
    {"index":0,"slots":39,"mig":false,"product":"A100","health":"","holders":[],
     "instances":[
      {"profile":"5gb","start":3,"size":5,"holders":[{"namespace":"a","pod":"small"}]},
      {"profile":"20gb","start":0,"size":20,"holders":[{"namespace":"b","pod":"large"}]},
      {"profile":"30gb","start":9,"size":30,"holders":[]}]}]}]})"),
             {Pods()}, nullptr);
  const TopRows rows = RowsOf(model, {});
  ASSERT_EQ(rows.gpus.size(), 1U);
  const std::vector<SlotSpan>& spans = rows.gpus[0].row.spans;
  ASSERT_EQ(spans.size(), 2U) << "and not more than the GPU has";
  EXPECT_EQ(spans[0].pod, "b/large");
  EXPECT_EQ(spans[1].start, 20);
  EXPECT_EQ(spans[1].size, 5);
}

TEST(TopModel, ShowsSharingModeOfEachGpu) {
  TopModel model;
  model.Load(Parsed(R"({"at":1763760000000,"nodes":[{"node":"n","gpus":[
    {"index":0,"slots":8,"mig":false,"sharing_mode":"time slices","switches":["MIG"],"holders":[],
     "instances":[{"profile":"shared","start":4,"size":2,
                   "holders":[{"namespace":"a","pod":"turn"}]}]},
    {"index":1,"slots":0,"mig":false,"sharing_mode":"","switches":["MIG","whole"],"instances":[]},
    {"index":2,"slots":7,"mig":true,"way":"","switches":[],"instances":[]},
    {"index":3,"slots":79,"mig":false,"way":"","switches":[],"instances":[]},
    {"index":4,"slots":0,"mig":false,"way":"","switches":[],"instances":[]}]}]})"),
             {Pods()}, nullptr);
  const TopRows rows = RowsOf(model, {});
  ASSERT_EQ(rows.gpus.size(), 5U);
  ASSERT_EQ(rows.gpus[0].row.spans.size(), 1U);
  EXPECT_EQ(rows.gpus[0].row.spans[0].start, 4) << "a time slice keeps its slots";
  EXPECT_EQ(rows.gpus[0].row.sharing_mode, "time slices");
  EXPECT_EQ(rows.gpus[1].row.sharing_mode, "free");
  EXPECT_EQ(rows.gpus[2].row.sharing_mode, "MIG") << "idle, with a single sharing mode";
  EXPECT_EQ(rows.gpus[3].row.sharing_mode, "MPS");
  EXPECT_EQ(rows.gpus[4].row.sharing_mode, "") << "not managed";
  const std::string frame = RenderTop(rows, {100, 20}, false, "");
  const auto lines = Split(frame, '\n');
  EXPECT_EQ(lines[2], "NODE                  UTIL  MEMORY    MODE        SLICES");
  EXPECT_EQ(lines[3],
            "n gpu 0               -     -         time slices "
            "|.......................|turn shared|...........|");
  for (const auto line : lines) EXPECT_LE(DisplayWidth(line), 100U) << line;
  EXPECT_EQ(RenderTop(RowsOf(Model(), {}), {100, 20}, false, "").find("MODE"), std::string::npos)
      << "an older server reports no sharing modes";
}

TEST(TopModel, NamespaceOptionLimitsRows) {
  const TopRows rows = RowsOf(Model(), {"b", TopSort::kState});
  ASSERT_EQ(rows.gpus.size(), 1U);
  ASSERT_EQ(rows.gpus[0].row.spans.size(), 1U);
  EXPECT_EQ(rows.gpus[0].row.spans[0].pod, "b/web");
  EXPECT_EQ(rows.pods.size(), 1U);
  const Json json = TopJson(Model(), {"b", TopSort::kState});
  EXPECT_EQ(Find(json, "pods")->get_array().size(), 1U);
}

TEST(TopModel, SortsRows) {
  EXPECT_EQ(RowsOf(Model(), {"", TopSort::kUtilization}).gpus[0].row.index, 1);
  EXPECT_EQ(RowsOf(Model(), {"", TopSort::kMemory}).gpus[0].row.index, 0);
  EXPECT_EQ(RowsOf(Model(), {"", TopSort::kName}).pods[0].name, "a/train");
  EXPECT_EQ(RowsOf(Model(), {"", TopSort::kAge}).pods[0].name, "a/train");
  for (const std::string& name : TopSortNames()) EXPECT_TRUE(TopSortNamed(name)) << name;
  EXPECT_FALSE(TopSortNamed("beauty"));
}

TEST(TopModel, CountsInNames) {
  const Json gpus = ParseJson(R"({"at": 1, "nodes": [{"node": "n-10", "gpus": [{"index": 0}]},
                                  {"node": "n-2", "gpus": [{"index": 10}, {"index": 9}]}]})")
                        .value();
  const Json pods = ParseJson(R"({"pods": [{"uid": "a", "namespace": "x", "name": "p-10",
      "state": "running"}, {"uid": "b", "namespace": "x", "name": "p-9", "state": "running"}]})")
                        .value();
  TopModel model;
  model.Load(gpus, {pods}, nullptr);
  const TopRows rows = RowsOf(model, {"", TopSort::kName});
  ASSERT_EQ(rows.gpus.size(), 3U);
  EXPECT_EQ(rows.gpus[0].row.node, "n-2");
  EXPECT_EQ(rows.gpus[0].row.index, 9);
  EXPECT_EQ(rows.gpus[2].row.node, "n-10");
  ASSERT_EQ(rows.pods.size(), 2U);
  EXPECT_EQ(rows.pods[0].name, "x/p-9");
}

TEST(TopModel, AppliesEvents) {
  TopModel model = Model();
  EXPECT_TRUE(model.Apply("hello", Parsed(R"({"at":5})")));
  EXPECT_TRUE(model.Apply("workloads", Parsed(R"({"changed":[{"uid":"4","namespace":"a","name":
    "new","state":"running"}],"removed":["1",7]})")));
  EXPECT_TRUE(model.Apply("gpus", Parsed(R"({"nodes":[{"node":"n-2","gpus":[{"index":0}]}]})")));
  EXPECT_TRUE(model.Apply("overview", Parsed(R"({"allocated":1})")));
  EXPECT_TRUE(model.Apply("at", Parsed(R"({"at":1763760030000})")));
  EXPECT_TRUE(model.Apply("of a later version", Parsed("[]")));
  const TopRows rows = RowsOf(model, {"", TopSort::kName});
  EXPECT_EQ(model.at(), kNow + 30'000);
  EXPECT_EQ(rows.gpus.size(), 3U);
  EXPECT_EQ(rows.allocated, 1);
  ASSERT_EQ(rows.pods.size(), 2U);
  EXPECT_EQ(rows.pods[0].name, "a/new");
  EXPECT_TRUE(model.Apply("gpus", Parsed(R"({"nodes":[],"all":["n-2",7]})")));
  EXPECT_EQ(RowsOf(model, {"", TopSort::kName}).gpus.size(), 1U) << "n-1 is gone";
  EXPECT_FALSE(model.Apply("reset", Parsed("{}")));
}

TEST(TopView, FitsAnyTerminalAndEscapesControlCharacters) {
  TopRows rows = RowsOf(Model(), {});
  for (int i = 0; i < 40; ++i) rows.gpus.push_back(rows.gpus[0]), rows.pods.push_back(rows.pods[1]);
  for (const ViewSize size : {ViewSize{100, 24}, {80, 24}, {40, 10}, {10, 5}, {1, 1}, {300, 80}}) {
    const std::string frame = RenderTop(rows, size, false, "q quits");
    const auto lines = Split(frame, '\n');
    EXPECT_LE(lines.size() - 1, size.lines);
    for (const std::string_view line : lines) EXPECT_LE(DisplayWidth(line), size.columns) << line;
    EXPECT_EQ(frame.find('\x1b'), std::string::npos);
  }
  EXPECT_NE(RenderTop(rows, {100, 24}, true, "").find("\x1b[33m"), std::string::npos);
}

TEST(TopView, DrawsWholeFrame) {
  EXPECT_EQ(RenderTop(RowsOf(Model(), {}), {100, 24}, false, "q quits"),
            "nos top   2 GPUs on 1 nodes   allocated 62 %   used 25 %   running 1   waiting 1\n"
            "q quits\n"
            "NODE                  UTIL  MEMORY    SLICES\n"
            "n-1 gpu 0             25 %  2.0/40G   "
            "|web 1…|....................|train 3g.20gb              |\n"
            "n-1 gpu 1             75 %  -         "
            "|whole?[31m                                                  |\n"
            "\n"
            "STATE      POD                           AGE     SLICE         WHERE               "
            "UTIL  MEMORY\n"
            "pending    b/waits                       30s     2 x 1g.5gb    "
            "starts in ~60s: no room; wait\n"
            "running    a/train                       60s     3g.20gb       n-1 gpu 0           "
            "50 %  1.0G\n");
}

// Figures of the whole cluster are not shown when a namespace is selected.
TEST(TopView, ShowsSelectedNamespace) {
  const std::string frame = RenderTop(RowsOf(Model(), {.ns = "nosuch"}), {100, 24}, false, "");
  EXPECT_TRUE(
      frame.starts_with("nos top   namespace nosuch   0 GPUs on 0 nodes   running 0   waiting 0\n"))
      << frame;
}

TEST(TopModel, NotesNamespacesNotCheckedYet) {
  const Json session{{"namespaces", {"a"}}, {"unasked_namespaces", 103}};
  EXPECT_TRUE(UnaskedNote(session, "").starts_with("access to 103 more namespaces"));
  EXPECT_EQ(UnaskedNote(session, "zz"), "");
  EXPECT_EQ(UnaskedNote({{"unasked_namespaces", 0}}, ""), "");
  EXPECT_EQ(UnaskedNote({{"unasked_namespaces", "many"}}, ""), "");
}

}  // namespace
}  // namespace nos::cmd
