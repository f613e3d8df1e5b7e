#include "telemetryserver/api/fixture_test.h"

namespace nos::telemetryserver {
namespace {

TEST_F(ApiTest, AnswersPastState) {
  Fill();
  clock_.Set(telemetry::kReportStart + 120'000);
  JsonArray gone;
  gone.push_back({{"kind", "removed"},
                  {"at", telemetry::kReportStart + 110'000},
                  {"what", "pod"},
                  {"uid", "uid-team-1-waits"}});
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 2, gone)).status.ok());
  ASSERT_TRUE(recorder_->Settle().ok());
  EXPECT_EQ(telemetry::IntegerOr(Get("/api/v1/workloads"), "total", 0), 1);
  EXPECT_EQ(telemetry::IntegerOr(Get("/api/v1/workloads?at=1763760100000"), "total", 0), 2);
  EXPECT_EQ(telemetry::IntegerOr(Get("/api/v1/workloads?at=1763759999999"), "total", 0), 0);
  EXPECT_EQ(Find(Get("/api/v1/gpus?at=1763760100000"), "nodes")->get_array().size(), 1U);
}

// Memory used by the first GPU and its first instance.
std::pair<double, double> UsedAt(const Json& gpus) {
  const Json& gpu = Find(Find(gpus, "nodes")->get_array()[0], "gpus")->get_array()[0];
  const auto used = [](const Json& what) {
    return telemetry::NumberOr(*Find(what, "metrics"), "memory_used", -1);
  };
  return {used(gpu), used(Find(gpu, "instances")->get_array()[0])};
}

TEST_F(ApiTest, PastStateHasMeasurements) {
  const auto sample = [&](int64_t second, double used) {
    const telemetry::Millis at = telemetry::kReportStart + second * 1000;
    clock_.Set(at);
    JsonArray records;
    for (const auto& [kind, uuid] : {std::pair("gpu", telemetry::GpuName(0, 0)),
                                     std::pair("instance", telemetry::InstanceName(0, 0, 0))}) {
      JsonObject record{
          {"kind", kind}, {"at", at}, {"gpu", telemetry::GpuName(0, 0)}, {"instance", uuid}};
      record["metrics"] = {{"memory_used", used + (*kind == 'g' ? 0 : 0.5)}};
      records.push_back(std::move(record));
    }
    ASSERT_TRUE(
        Take(telemetry::EnvelopeOf("node/" + telemetry::NodeName(0), second + 1, records, "boot-x"))
            .status.ok());
  };
  Report({1, 1, 1}, 0, 1);
  for (int second = 1; second < 1200; second += 20) sample(second, second);
  ASSERT_TRUE(recorder_->Settle().ok());
  const auto at = [&](int64_t second) {
    return UsedAt(
        Get("/api/v1/gpus?at=" + std::to_string(telemetry::kReportStart + second * 1000)));
  };
  EXPECT_EQ(at(109), std::pair(101.0, 101.5)) << "on disk";
  EXPECT_EQ(at(1195), std::pair(1181.0, 1181.5)) << "in memory";
  // An hour-old moment is answered with a mean after raw samples are deleted.
  options_.retention.raw = 12 * kHour;
  clock_.Set(telemetry::kReportStart + 2 * kDay);
  api_.reset();
  Open();
  ASSERT_TRUE(recorder_->Settle().ok());
  Serve();
  const double mean = at(450).first;
  EXPECT_GT(mean, 300);
  EXPECT_LT(mean, 600);
  // Long after the last sample there are no measurements.
  EXPECT_EQ(at(5000), std::pair(-1.0, -1.0));
}

TEST_F(ApiTest, ListsDecisionOnceInFinalState) {
  Fill();
  const Json answer = Get("/api/v1/decisions");
  const JsonArray& decisions = Find(answer, "decisions")->get_array();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(FindString(decisions[0], "state"), "applied");
}

// All pages of a list: values of `field` in order. `pages` counts them.
std::vector<std::string> AllPages(FunctionRef<Json(const std::string&)> get, std::string target,
                                  const char* list, const char* next, const char* field,
                                  int& pages) {
  std::vector<std::string> all;
  std::string after;
  for (pages = 1;; ++pages) {
    const Json page = get(target + (after.empty() ? "" : std::string("&") + next + "=" + after));
    for (const Json& each : Find(page, list)->get_array()) {
      all.emplace_back(FindString(each, field));
    }
    after = FindString(page, "next");
    if (after.empty() || pages > 100) return all;
  }
}

// Most events concern other namespaces, so that a page needs several reads.
TEST_F(ApiTest, FillsPagesWithVisibleEvents) {
  JsonArray records;
  std::vector<std::string> wanted;
  for (int i = 0; i < 700; ++i) {
    const bool ours = i % 100 == 7;
    const char* ns = ours ? "team-1" : "team-0";
    records.push_back({{"kind", "event"},
                       {"at", telemetry::kReportStart + i / 3},  // several at the same time
                       {"object", {{"kind", "Pod"}, {"namespace", ns}, {"name", "pod"}}},
                       {"reason", "reason-" + std::to_string(i)}});
    JsonArray pods;
    pods.push_back({{"namespace", ns}, {"name", "pod"}});
    const std::string id = "plan-" + std::to_string(i);
    for (const char* state : {"planned", "applied"}) {
      records.push_back({{"kind", "decision"},
                         {"at", telemetry::kReportStart + i / 3 + (*state == 'a' ? 100 : 0)},
                         {"id", id},
                         {"state", state},
                         {"pods", pods}});
    }
    if (ours) wanted.insert(wanted.begin(), std::to_string(i));
  }
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 1, records)).status.ok());
  ASSERT_TRUE(recorder_->Settle().ok());
  reader_ = {"kim", false, {"team-1"}};
  const auto get = [&](const std::string& target) { return Get(target); };
  int pages = 0;
  const auto reasons =
      AllPages(get, "/api/v1/history?limit=3&kind=event", "events", "after", "reason", pages);
  ASSERT_EQ(reasons.size(), wanted.size());
  EXPECT_EQ(pages, 3);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(reasons[i], "reason-" + wanted[i]);
  const auto plans = AllPages(get, "/api/v1/decisions?limit=2", "decisions", "before", "id", pages);
  ASSERT_EQ(plans.size(), wanted.size()) << "each once, in its final state";
  EXPECT_EQ(pages, 4);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(plans[i], "plan-" + wanted[i]);
  // Pages of a reader who sees everything are complete too.
  reader_ = {"root", true, {}};
  EXPECT_EQ(
      AllPages(get, "/api/v1/history?limit=300&namespace=team-1", "events", "after", "kind", pages)
          .size(),
      3 * wanted.size());
  EXPECT_EQ(AllPages(get, "/api/v1/decisions?limit=300", "decisions", "before", "id", pages).size(),
            700U);
  Get("/api/v1/decisions?before=yesterday", 400);
  Get("/api/v1/history?after=1.x", 400);
  Get("/api/v1/history?kind='", 400);
}

// The content of a spool that was deleted with its pod is unknown; only the loss is.
TEST_F(ApiTest, RecreatedSpoolShowsAsGap) {
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 1, {}, "boot-1")).status.ok());
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 2, {}, "boot-1")).status.ok());
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster-2", 1, {}, "boot-3")).status.ok());
  EXPECT_TRUE(Find(Get("/api/v1/history?kind=gap"), "events")->get_array().empty());
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 1, {}, "boot-2")).status.ok());
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 2, {}, "boot-2")).status.ok());
  const Json answer = Get("/api/v1/history?kind=gap");
  const JsonArray& events = Find(answer, "events")->get_array();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(FindString(events[0], "source"), "cluster");
  EXPECT_EQ(FindString(events[0], "boot"), "boot-2");
}

TEST_F(ApiTest, LostRecordsShowAsGap) {
  Json envelope = telemetry::EnvelopeOf("cluster", 1, {});
  envelope.get_object()["lost"] = 42;
  ASSERT_TRUE(Take(envelope).status.ok());
  ASSERT_TRUE(recorder_->Settle().ok());
  const Json answer = Get("/api/v1/history?kind=gap");
  const JsonArray& events = Find(answer, "events")->get_array();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(FindString(events[0], "source"), "cluster");
  EXPECT_EQ(telemetry::IntegerOr(events[0], "lost", 0), 42);
  reader_ = {"kim", false, {"team-1"}};
  EXPECT_TRUE(Find(Get("/api/v1/history?kind=gap"), "events")->get_array().empty());
}

TEST_F(ApiTest, FiltersHistoryByNode) {
  Fill();
  JsonArray records;
  records.push_back({{"kind", "xid"},
                     {"at", telemetry::kReportStart},
                     {"gpu", telemetry::GpuName(0, 0)},
                     {"xid", 79}});
  records.push_back(
      {{"kind", "xid"}, {"at", telemetry::kReportStart}, {"gpu", "GPU-other"}, {"xid", 79}});
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 2, records)).status.ok());
  ASSERT_TRUE(recorder_->Settle().ok());
  const auto count = [&](const std::string& query) {
    return Find(Get("/api/v1/history?" + query), "events")->get_array().size();
  };
  EXPECT_EQ(count("kind=xid"), 2U);
  EXPECT_EQ(count("kind=xid&node=" + telemetry::NodeName(0)), 1U);
  EXPECT_EQ(count("kind=layout&node=" + telemetry::NodeName(0)), 1U);
  EXPECT_EQ(count("kind=layout&node=other"), 0U);
}

TEST_F(ApiTest, BriefHistoryHasOnlyReadinessOfNodes) {
  Fill();
  const Json node{{"kind", "node"},        {"at", telemetry::kReportStart},
                  {"node", "n"},           {"ready", false},
                  {"schedulable", true},   {"allocatable", {{"cpu", 8}, {"memory", 1000}}},
                  {"labels", {{"a", "b"}}}};
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 2, {node})).status.ok());
  ASSERT_TRUE(recorder_->Settle().ok());
  const auto events = [&](const std::string& query) {
    return *Find(Get("/api/v1/history?" + query), "events");
  };
  const Json brief{
      {"kind", "node"}, {"at", telemetry::kReportStart}, {"node", "n"}, {"ready", false}};
  EXPECT_EQ(events("kind=node&brief=true"), Json(JsonArray{brief}));
  EXPECT_NE(Find(events("kind=node").get_array()[0], "allocatable"), nullptr);
  EXPECT_EQ(events("kind=layout&brief=true"), events("kind=layout"));
}

TEST_F(ApiTest, ListsRepeatedEventOnce) {
  Fill();
  const auto event = [](int64_t count, telemetry::Millis at) {
    return Json{{"kind", "event"},
                {"at", telemetry::kReportStart + at},
                {"id", "u"},
                {"type", "Warning"},
                {"object", {{"kind", "Pod"}, {"namespace", "team-1"}, {"name", "waits"}}},
                {"reason", "BackOff"},
                {"message", "again"},
                {"count", count}};
  };
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 2, {event(1, 10), event(2, 20)})).status.ok());
  // Another reporter becomes leader and reports the existing Events again.
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 3, {event(2, 20), event(4, 40)})).status.ok());
  ASSERT_TRUE(recorder_->Settle().ok());
  const auto counts = [&](const Json& answer) {
    std::string found;
    for (const Json& each : Find(answer, "events")->get_array()) {
      if (FindString(each, "id") == "u") found += WriteJson(*Find(each, "count")) + " ";
    }
    return found;
  };
  EXPECT_EQ(counts(Get("/api/v1/history?kind=event")), "4 2 1 ");
  EXPECT_EQ(counts(Get("/api/v1/workloads/team-1/waits")), "4 ");
  reader_ = {"kim", false, {"team-0"}};
  EXPECT_EQ(counts(Get("/api/v1/history?kind=event")), "") << "it is of another namespace";
}

// Independent of the number of later decisions about other pods.
TEST_F(ApiTest, WorkloadListsDecisionsOfItsTime) {
  constexpr telemetry::Millis kLater = 3 * int64_t{3'600'000};
  const auto decision = [](telemetry::Millis at, const std::string& id, const char* role) {
    Json record{{"kind", "decision"}, {"at", at}, {"id", id}, {"type", "plan"}};
    record.get_object()[role] = JsonArray{{{"namespace", "a"}, {"name", "p"}}};
    return record;
  };
  const auto others = [](telemetry::Millis at, JsonArray& records) {
    for (int i = 0; i < 2500; ++i) {
      const std::string id = "other-" + std::to_string(at + i);
      records.push_back({{"kind", "decision"}, {"at", at + i}, {"id", id}, {"type", "plan"}});
    }
  };
  Json pod = telemetry::PodRecord(telemetry::kReportStart, "a", "p", "failed",
                                  "nvidia.com/mig-1g.5gb", "n");
  pod.get_object()["created"] = telemetry::kReportStart - 60'000;
  pod.get_object()["scheduled"] = telemetry::kReportStart;
  pod.get_object()["finished"] = telemetry::kReportStart + kLater;
  JsonArray records = {decision(telemetry::kReportStart - 70'000, "of a former one", "pods"),
                       std::move(pod), decision(telemetry::kReportStart + 5'000, "serves", "pods")};
  others(telemetry::kReportStart + 3'600'000, records);
  records.push_back(decision(telemetry::kReportStart + kLater - 1'000, "evicts", "victims"));
  others(telemetry::kReportStart + 2 * kLater, records);
  clock_.Set(telemetry::kReportStart + 3 * kLater);
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 1, std::move(records))).status.ok());
  ASSERT_TRUE(recorder_->Settle().ok());
  EXPECT_EQ(*Find(Get("/api/v1/workloads/a/p"), "decisions"), (JsonArray{"evicts", "serves"}));
}

}  // namespace
}  // namespace nos::telemetryserver
