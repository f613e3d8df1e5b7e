#include "cmd/query/history_report.h"

#include <gtest/gtest.h>

namespace nos::cmd {
namespace {

Json Parsed(std::string_view text) { return ParseJson(text).value(); }

Json Layout(const std::string& at, const std::string& instances) {
  return Parsed(R"({"kind":"layout","at":)" + at +
                R"(,"node":"n-1","gpus":[{"index":0,"instances":[)" + instances + "]}]}");
}

TEST(Moments, ParsesTimesAndDurationsBeforeNow) {
  constexpr int64_t kNow = 1'763'760'000'000;
  EXPECT_EQ(ParseMoment("now", kNow).value(), kNow);
  EXPECT_EQ(ParseMoment("1h30m", kNow).value(), kNow - 5'400'000);
  EXPECT_EQ(ParseMoment("2025-11-21T21:20:00Z", kNow).value(), kNow);
  EXPECT_EQ(ParseMoment("90d", kNow).value(), kNow - int64_t{90} * 86'400'000);
  EXPECT_EQ(ParseMoment("1d12h", kNow).value(), kNow - int64_t{36} * 3'600'000);
  for (const char* bad :
       {"", "yesterday", "-5m", "5", "d", "-1d", "1d-1h", "1.5d", "1d1d", "99999d"})
    EXPECT_FALSE(ParseMoment(bad, kNow).ok()) << bad;
}

TEST(History, ShowsChangesOfLayout) {
  const Json before = Parsed(R"({"nodes":[{"node":"n-1","gpus":[{"index":0,"instances":[
      {"profile":"7g.40gb","start":0,"holders":[{"namespace":"a","pod":"old"}]}]}]}]})");
  const std::string held = R"("holders":[{"namespace":"a","pod":"new"}])";
  const std::string whole =
      R"({"profile":"3g.20gb","start":4,)" + held + R"(},{"profile":"1g.5gb","start":0})";
  const auto rows = HistoryRows({Layout("1000", whole), Layout("2000", whole)}, before);
  ASSERT_EQ(rows.size(), 1U) << "a repeated layout adds no row";
  EXPECT_EQ(rows[0].at, 1000);
  EXPECT_EQ(rows[0].subject, "n-1");
  EXPECT_EQ(rows[0].what,
            "gpu 0 -7g.40gb@0 +1g.5gb@0 +3g.20gb@4; a/old gives back 7g.40gb@0 of gpu 0; a/new "
            "takes 3g.20gb@4 of gpu 0");
}

TEST(History, ShowsChangeOfSharingMode) {
  const auto layout = [](const std::string& at, const std::string& gpu) {
    return Parsed(R"({"kind":"layout","at":)" + at +
                  R"(,"node":"n-1","gpus":[{"index":0,"switches":["MPS"],)" + gpu + "}]}");
  };
  const std::string turns = R"("way":"time slices","instances":[{"profile":"shared","start":2}])";
  const auto rows = HistoryRows(
      {layout("1000", R"("way":"","instances":[])"), layout("2000", turns),
       layout("3000",
              R"("sharing_mode":"whole","instances":[],"holders":[{"namespace":"a","pod":"p"}])"),
       Parsed(R"({"kind":"decision","at":4000,"id":"p","type":"plan","state":"applied",
                  "summary":"repartitioned","pods":[],"victims":[],"nodes":[{"node":"n-1",
                  "before":[{"index":0,"way":"whole"},{"index":1,"way":""}],
                  "after":[{"index":0,"sharing_mode":"MPS"},{"index":1,"sharing_mode":"MIG"}]}]})")},
      {});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].what, "gpu 0 +shared@2 (free -> time slices)");
  EXPECT_EQ(rows[1].what, "gpu 0 -shared@2 (time slices -> whole); a/p takes gpu 0");
  EXPECT_EQ(rows[2].what, "Repartitioned n-1; GPU 0 of n-1 changed from whole to MPS");
}

TEST(History, ShowsDecisionsEventsAndXids) {
  const auto rows = HistoryRows(
      {Parsed(
           R"({"kind":"decision","at":1,"id":"p","type":"plan","state":"applied","summary":"repartitioned",
                  "nodes":[{"node":"n-1"}],"pods":[{"namespace":"a","name":"p"}],"victims":[],
                  "took_ms":1500,"why":""})"),
       Parsed(
           R"({"kind":"decision","at":2,"id":"r","type":"reclaim","state":"applied","summary":"goes",
                  "nodes":[],"pods":[],"victims":[{"namespace":"a","name":"v"}],"why":"wanted"})"),
       Parsed(R"({"kind":"event","at":3,"object":{"kind":"Pod","namespace":"a","name":"p"},
                  "reason":"Repartitioned","message":"\u001b[2J"})"),
       Parsed(R"({"kind":"xid","at":4,"gpu":"GPU-1","xid":79,"message":"fell off"})"),
       Parsed(R"({"kind":"pod","at":5})"), Parsed("7"),
       Parsed(R"({"kind":"event","at":6,"object":{"kind":"Node","namespace":"","name":"n"},
                  "reason":"NodeNotReady","message":""})"),
       Parsed(R"({"kind":"gap","at":6,"source":"node/n-1","lost":42})"),
       Parsed(R"({"kind":"gap","at":7,"source":"cluster","boot":"b","lost":0})")},
      {});
  ASSERT_EQ(rows.size(), 7U);
  EXPECT_EQ(rows[2].subject, "Pod a/p");
  EXPECT_EQ(rows[4].subject, "Node n");
  EXPECT_EQ(rows[5].subject, "node/n-1");
  EXPECT_EQ(rows[5].what, "42 records were lost before delivery");
  EXPECT_EQ(rows[6].what, "its spool was recreated: undelivered records, if any, are lost");
  EXPECT_EQ(rows[0].what, "a/p got slices on n-1 in 2 s") << "the sentence of the story";
  EXPECT_EQ(rows[1].subject, "a/v");
  EXPECT_EQ(rows[1].what,
            "a/v was evicted for a pod to which an elastic quota guarantees the resources; wanted");
  EXPECT_EQ(rows[3].what, "XID 79: fell off");
  EXPECT_EQ(HistoryTable(rows).ToString(80),
            "TIME                  KIND     OF        WHAT\n"
            "1970-01-01T00:00:00Z  plan     n-1       a/p got slices on n-1 in 2 s\n"
            "1970-01-01T00:00:00Z  reclaim  a/v       a/v was evicted for a pod to which an …\n"
            "1970-01-01T00:00:00Z  event    Pod a/p   Repartitioned: ?[2J\n"
            "1970-01-01T00:00:00Z  xid      GPU-1     XID 79: fell off\n"
            "1970-01-01T00:00:00Z  event    Node n    NodeNotReady:\n"
            "1970-01-01T00:00:00Z  gap      node/n-1  42 records were lost before delivery\n"
            "1970-01-01T00:00:00Z  gap      cluster   its spool was recreated: undelivered r…\n");
}

TEST(History, ShowsDecisionOncePerState) {
  const auto decision = [](const std::string& state, const std::string& pods) {
    return Parsed(
        R"({"kind":"decision","at":1,"id":"p","type":"plan","summary":"repartitioned","state":")" +
        state + R"(","pods":[)" + pods + "]}");
  };
  const std::string a = R"({"namespace":"n","name":"a"})", b = R"({"namespace":"n","name":"b"})";
  const auto rows = HistoryRows({decision("planned", ""), decision("applied", a),
                                 decision("applied", std::string(a).append(",") + b)},
                                {});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].what, "Creating a layout");
  EXPECT_EQ(rows[1].what, "n/a and n/b got slices");
}

TEST(History, DecisionKeepsTimesWhenMadeAndDone) {
  const auto rows = HistoryRows(
      {Parsed(R"({"kind":"xid","at":40,"gpu":"g","xid":79})"),
       Parsed(R"({"kind":"decision","at":50,"made":10,"id":"p","type":"plan","state":"planned"})"),
       Parsed(R"({"kind":"decision","at":99,"made":10,"took_ms":20,"id":"p","type":"plan",
                  "state":"applied"})")},
      {});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].at, 10);
  EXPECT_EQ(rows[1].at, 30);
  EXPECT_EQ(rows[2].kind, "xid");
}

TEST(History, ShowsLayoutTable) {
  const Json gpus = Parsed(R"({"nodes":[{"node":"n-1","gpus":[
      {"index":0,"slots":8,"product":"A100","metrics":{"utilization":0.5,"memory_used":100},
       "instances":[{"profile":"1g.5gb","start":3,"holders":[]}]},
      {"index":1,"slots":8,"product":"A100","instances":[]},
      {"index":2,"slots":0,"holders":[{"namespace":"a","pod":"p"}]}]},
      {"node":"n-2","gpus":[{"index":0}]}]})");
  EXPECT_EQ(LayoutTable(gpus, "n-1").ToString(),
            "NODE  GPU  MODEL  UTIL  MEMORY   SLICES\n"
            "n-1   0    A100   50 %  100 MiB  1g.5gb@3 free\n"
            "n-1   1    A100   -     -        not partitioned\n"
            "n-1   2           -     -        a/p\n");
}

}  // namespace
}  // namespace nos::cmd
