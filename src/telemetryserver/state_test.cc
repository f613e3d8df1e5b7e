#include "telemetryserver/state.h"

#include <gtest/gtest.h>

#include "telemetry/envelope.h"
#include "telemetry/testing/reports.h"
#include "telemetryserver/state/shares.h"
#include "telemetryserver/views.h"

namespace nos::telemetryserver {
namespace {

class StateTest : public ::testing::Test {
 protected:
  State::Effects Apply(Json body, const std::string& source = "cluster") {
    const auto record = telemetry::ReadRecord(std::move(body));
    EXPECT_TRUE(record.ok()) << record.status().ToString();
    return state_.Apply(*record, source);
  }
  void Report(const telemetry::FleetShape& shape, telemetry::Millis at) {
    for (int n = 0; n < shape.nodes; ++n) {
      const auto envelope =
          telemetry::ReadEnvelope(WriteJson(telemetry::NodeReport(shape, n, at, 1)), at);
      ASSERT_TRUE(envelope.ok());
      for (const telemetry::Record& record : envelope->records)
        state_.Apply(record, envelope->source);
    }
  }
  Shares Now() const { return SharesOf(state_, gpu::Catalogue::Builtin(), 30'000); }
  State state_;
};

TEST_F(StateTest, SharesCoverAllSlots) {
  Report({2, 2, 7}, telemetry::kReportStart);
  const Shares shares = Now();
  EXPECT_EQ(shares.gpus, 4);
  EXPECT_EQ(shares.slots, 32);
  // The GPU has 8 slots: 6 are held; 1g.10gb fits into the others if the free slice gives way.
  EXPECT_DOUBLE_EQ(shares.allocated, 6.0 / 8);
  EXPECT_DOUBLE_EQ(shares.free, 2.0 / 8);
  EXPECT_DOUBLE_EQ(shares.fragmented, 0);
  EXPECT_DOUBLE_EQ(shares.empty, 0);
  EXPECT_DOUBLE_EQ(shares.stranded, 0);
  ASSERT_TRUE(shares.used.has_value());
  EXPECT_DOUBLE_EQ(shares.measured, shares.allocated);
  EXPECT_GT(*shares.used, 0);
  EXPECT_LT(*shares.used, shares.allocated);
}

// A GPU without pods is repartitioned in a second, whatever its layout: only slots beside pods can
// be fragmented.
TEST_F(StateTest, EmptyGpuIsFreeForEveryProfile) {
  const auto gpu = [](int64_t index, const std::string& health, JsonArray instances) {
    return Json{{"index", index},
                {"gpu", "GPU-e" + std::to_string(index)},
                {"product", "NVIDIA A100-SXM4-40GB"},
                {"memory", 40'960},
                {"slots", 8},
                {"mig", true},
                {"health", health},
                {"instances", std::move(instances)}};
  };
  const auto instance = [](const std::string& profile, int64_t start, int64_t size,
                           JsonArray holders) {
    return Json{{"id", start},        {"instance", "MIG-" + profile + std::to_string(start)},
                {"profile", profile}, {"start", start},
                {"size", size},       {"holders", std::move(holders)}};
  };
  const JsonArray held{{{"namespace", "a"}, {"pod", "p"}}};
  const auto layout = [&](const std::string& node, JsonArray gpus) {
    Apply({{"kind", "layout"},
           {"at", telemetry::kReportStart},
           {"node", node},
           {"mode", "mig"},
           {"gpus", std::move(gpus)}});
  };
  layout("empty", JsonArray{gpu(0, "", JsonArray{instance("7g.40gb", 0, 8, {})}), gpu(1, "", {})});
  layout("used",
         JsonArray{
             gpu(2, "", JsonArray{instance("3g.20gb", 0, 4, held), instance("3g.20gb", 4, 4, {})}),
             gpu(3, "", {}), gpu(4, "Xid 79", {})});
  const auto pending = [&](const std::string& name, const std::string& profile, Json reason) {
    Json record = telemetry::PodRecord(telemetry::kReportStart, "a", name, "pending",
                                       "nvidia.com/mig-" + profile);
    record.get_object()["reason"] = std::move(reason);
    Apply(std::move(record));
  };
  EXPECT_DOUBLE_EQ(Now().empty, 24.0 / 40);
  EXPECT_EQ(Now().empty_gpus, 3);
  EXPECT_EQ(Now().empty_nodes, 1);
  EXPECT_DOUBLE_EQ(Now().stranded, 8.0 / 40);
  EXPECT_EQ(Now().models.front().memory, 40'960);
  pending("small", "1g.5gb", "Unschedulable");
  EXPECT_DOUBLE_EQ(Now().fragmented, 1.0 / 40) << "3 of 4 slots beside 3g.20gb take 1g.5gb";
  EXPECT_DOUBLE_EQ(Now().free, 27.0 / 40);
  Apply({{"kind", "removed"},
         {"at", telemetry::kReportStart + 1},
         {"what", "pod"},
         {"id", FindString(telemetry::PodRecord(0, "a", "small", "", ""), "uid")}});
  pending("large", "7g.40gb", "Unschedulable");
  EXPECT_DOUBLE_EQ(Now().fragmented, 4.0 / 40);
  EXPECT_DOUBLE_EQ(Now().free, 24.0 / 40);
  pending("large", "7g.40gb", "SchedulingGated");
  EXPECT_DOUBLE_EQ(Now().fragmented, 0) << "no scheduler looks for room for it";
  pending("large", "1g.10gb", "SchedulingGated");
  pending("other", "1g.12gb", "Unschedulable");
  EXPECT_DOUBLE_EQ(Now().fragmented, 0) << "the model has no such profile";
}

TEST_F(StateTest, FreeSliceWithoutDemandIsFragmented) {
  Report({1, 1, 7}, telemetry::kReportStart);
  Apply(telemetry::PodRecord(telemetry::kReportStart, "a", "big", "pending",
                             "nvidia.com/mig-3g.20gb"));
  EXPECT_DOUBLE_EQ(Now().fragmented, 2.0 / 8);
  Apply(telemetry::PodRecord(telemetry::kReportStart, "a", "small", "pending",
                             "nvidia.com/mig-1g.5gb"));
  EXPECT_DOUBLE_EQ(Now().free, 1.0 / 8);
  EXPECT_EQ(Now().pods_pending, 2);
  Apply(telemetry::PodRecord(telemetry::kReportStart, "a", "web", "pending", "ephemeral-storage"));
  EXPECT_EQ(Now().pods_pending, 2) << "the pod requests no GPU";
}

// Its slots are GiB, and it has the same weight as a GPU partitioned by MIG.
TEST_F(StateTest, MpsGpuCountsLikeMigGpu) {
  Report({1, 1, 7}, telemetry::kReportStart);
  const auto share = [](int64_t number, int64_t gib, const std::string& pod) {
    JsonArray holders;
    if (!pod.empty()) holders.push_back({{"namespace", "a"}, {"pod", pod}});
    return Json{{"id", number},
                {"instance", "GPU-s::" + std::to_string(number)},
                {"profile", std::to_string(gib) + "gb"},
                {"start", number},
                {"size", gib},
                {"holders", std::move(holders)}};
  };
  Apply({{"kind", "layout"},
         {"at", telemetry::kReportStart},
         {"node", "shared"},
         {"mode", "mps"},
         {"gpus", JsonArray{{{"index", 0},
                             {"gpu", "GPU-s"},
                             {"product", "NVIDIA A100-SXM4-40GB"},
                             {"slots", 40},
                             {"mig", false},
                             {"instances", JsonArray{share(0, 20, "p"), share(40, 10, "")}}}}}});
  EXPECT_EQ(Now().slots, 16);
  EXPECT_DOUBLE_EQ(Now().allocated, (6.0 + 4) / 16);
  EXPECT_DOUBLE_EQ(Now().free, (2.0 + 4) / 16);
  EXPECT_EQ(state_.SlicesOf("a", "p").size(), 1U);
  Apply(
      telemetry::PodRecord(telemetry::kReportStart, "a", "waits", "pending", "nvidia.com/gpu-5gb"));
  EXPECT_DOUBLE_EQ(Now().free, (2.0 + 4) / 16)
      << "the rest of the GPU and the free share, which gives way";
  Apply(telemetry::PodRecord(telemetry::kReportStart, "a", "large", "pending",
                             "nvidia.com/gpu-15gb"));
  Apply({{"kind", "removed"},
         {"at", telemetry::kReportStart + 1},
         {"what", "pod"},
         {"id", FindString(telemetry::PodRecord(0, "a", "waits", "", ""), "uid")}});
  EXPECT_DOUBLE_EQ(Now().free, (2.0 + 3) / 16) << "15 of 20 GiB";
  Apply({{"kind", "gpu"},
         {"at", telemetry::kReportStart},
         {"gpu", "GPU-s"},
         {"metrics", {{"utilization", 0.5}}}});
  EXPECT_DOUBLE_EQ(Now().measured, (6.0 + 4) / 16) << "by its GPU";
}

// Half of its time slices are held; the other GPU may change to any sharing mode.
TEST_F(StateTest, TimeSlicedGpuCountsByItsSlots) {
  Report({1, 1, 7}, telemetry::kReportStart);
  const auto turn = [](int64_t start, JsonArray holders) {
    return Json{{"id", start},         {"instance", "GPU-t::time::" + std::to_string(start)},
                {"profile", "shared"}, {"start", start},
                {"size", 4},           {"holders", std::move(holders)}};
  };
  const JsonArray held{{{"namespace", "a"}, {"pod", "p"}}};
  const JsonArray switches{"MIG", "MPS"};
  Apply({{"kind", "layout"},
         {"at", telemetry::kReportStart},
         {"node", "hybrid"},
         {"mode", "hybrid"},
         {"gpus", JsonArray{{{"index", 0},
                             {"gpu", "GPU-t"},
                             {"product", "NVIDIA A100-SXM4-40GB"},
                             {"slots", 8},
                             {"mig", false},
                             {"sharing_mode", "time slices"},
                             {"switches", switches},
                             {"instances", JsonArray{turn(0, held), turn(4, {})}}},
                            {{"index", 1},
                             {"gpu", "GPU-u"},
                             {"product", "NVIDIA A100-SXM4-40GB"},
                             {"way", ""},
                             {"switches", switches}}}}});
  EXPECT_EQ(Now().slots, 24);
  EXPECT_DOUBLE_EQ(Now().allocated, (6.0 + 4) / 24);
  EXPECT_DOUBLE_EQ(Now().free, (2.0 + 4 + 8) / 24);
  Apply(telemetry::PodRecord(telemetry::kReportStart, "a", "waits", "pending",
                             "nvidia.com/mig-4g.20gb"));
  EXPECT_DOUBLE_EQ(Now().free, 8.0 / 24)
      << "time slices do not fit it, a GPU that may be partitioned does";
  Apply(telemetry::PodRecord(telemetry::kReportStart, "a", "turns", "pending",
                             "nvidia.com/gpu.shared"));
  EXPECT_DOUBLE_EQ(Now().free, (4.0 + 8) / 24);
  Apply({{"kind", "gpu"},
         {"at", telemetry::kReportStart},
         {"gpu", "GPU-t"},
         {"metrics", {{"utilization", 0.5}}}});
  EXPECT_DOUBLE_EQ(Now().measured, (6.0 + 4) / 24) << "by its GPU";
}

TEST_F(StateTest, SlotsWithoutCpuOrMemoryAreStranded) {
  Report({1, 1, 7}, telemetry::kReportStart);
  const auto node = [](double cpu) {
    return Json{{"kind", "node"},
                {"at", telemetry::kReportStart},
                {"node", telemetry::NodeName(0)},
                {"ready", true},
                {"allocatable", {{"cpu", 64}, {"memory", 100'000}}},
                {"requested", {{"cpu", cpu}, {"memory", 1000}}}};
  };
  Apply(telemetry::PodRecord(telemetry::kReportStart, "a", "small", "pending",
                             "nvidia.com/mig-1g.5gb"));
  Apply(node(62));
  EXPECT_DOUBLE_EQ(Now().stranded, 0);
  Apply(node(63));
  EXPECT_DOUBLE_EQ(Now().stranded, 2.0 / 8);
  EXPECT_DOUBLE_EQ(Now().free, 0);
}

TEST_F(StateTest, IgnoresStaleMeasurements) {
  Report({1, 1, 7}, telemetry::kReportStart);
  Apply(telemetry::PodRecord(telemetry::kReportStart + 60'000, "a", "p", "pending",
                             "nvidia.com/mig-1g.5gb"));
  EXPECT_FALSE(Now().used.has_value());
  EXPECT_DOUBLE_EQ(Now().allocated, 6.0 / 8);
}

// Readings of unknown GPUs do not displace readings of known ones.
TEST_F(StateTest, BoundsReadingsOutsideLayouts) {
  const auto reading = [](const std::string& gpu) {
    return Json{{"kind", "gpu"},
                {"at", telemetry::kReportStart},
                {"gpu", gpu},
                {"metrics", {{"power", 1}}}};
  };
  Report({1, 1, 7}, telemetry::kReportStart);
  for (int i = 0; i < 20'000; ++i) Apply(reading("invented-" + std::to_string(i)), "node/bad");
  EXPECT_NE(state_.LatestOf("gpu", "invented-0"), nullptr);
  EXPECT_EQ(state_.LatestOf("gpu", "invented-19999"), nullptr);
  Report({3, 2, 7}, telemetry::kReportStart + 300'000);  // with layouts
  Report({3, 2, 7}, telemetry::kReportStart + 310'000);
  for (int n = 0; n < 3; ++n) {
    EXPECT_NE(state_.LatestOf("gpu", telemetry::GpuName(n, 1)), nullptr);
    EXPECT_NE(state_.LatestOf("instance", telemetry::InstanceName(n, 1, 6)), nullptr);
  }
}

TEST_F(StateTest, WritesOnlyChanges) {
  const Json running = telemetry::PodRecord(telemetry::kReportStart, "a", "p", "running",
                                            "nvidia.com/mig-1g.5gb", "n");
  EXPECT_EQ(Apply(running).changes.size(), 1U);
  Json again = running;
  again.get_object()["at"] = telemetry::kReportStart + 10'000;
  EXPECT_EQ(Apply(again).changes.size(), 0U);
  // A late record belongs to history and does not change the state.
  Json late = telemetry::PodRecord(telemetry::kReportStart - 5'000, "a", "p", "pending",
                                   "nvidia.com/mig-1g.5gb");
  const auto changes = Apply(late).changes;
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[1].at, telemetry::kReportStart + 10'000) << "the later record is written again";
  EXPECT_EQ(Apply(late).changes.size(), 1U) << "the late record is written";
  EXPECT_EQ(state_.FindPod("a", "p")->state, "running");
}

TEST_F(StateTest, WritesStartAndEndOfHolds) {
  Report({1, 1, 7}, telemetry::kReportStart);
  EXPECT_EQ(state_.SlicesOf("team-0", "pod-0-0-0").size(), 1U);
  const auto effects = Apply({{"kind", "layout"},
                              {"at", telemetry::kReportStart + 1},
                              {"node", telemetry::NodeName(0)},
                              {"mode", "mig"},
                              {"gpus", JsonArray()}});
  EXPECT_EQ(effects.holds.size(), 6U);
  EXPECT_FALSE(effects.holds.front().begins);
  EXPECT_TRUE(state_.SlicesOf("team-0", "pod-0-0-0").empty());
}

TEST_F(StateTest, RecordsRestoreState) {
  Report({2, 2, 7}, telemetry::kReportStart);
  Apply(
      telemetry::PodRecord(telemetry::kReportStart, "a", "p", "pending", "nvidia.com/mig-1g.5gb"));
  Apply({{"kind", "quota"},
         {"at", telemetry::kReportStart},
         {"type", "ElasticQuota"},
         {"namespace", "a"},
         {"name", "q"},
         {"resources", JsonObject()}});
  State copy;
  for (Json& body : state_.Records()) {
    const auto record = telemetry::ReadRecord(std::move(body));
    ASSERT_TRUE(record.ok());
    copy.Apply(*record, "");
  }
  EXPECT_EQ(copy.Records(), state_.Records());
}

// The node's agent outlives it for a moment, and its spooled reports arrive even later.
TEST_F(StateTest, RemovedNodeReturnsOnlyWithNodeRecord) {
  Report({2, 1, 7}, telemetry::kReportStart);
  const std::string name = state_.nodes().begin()->first;
  const telemetry::Layout layout = state_.nodes().begin()->second.layout;
  const auto node = [&](telemetry::Millis at) {
    return Json{{"kind", "node"}, {"at", at}, {"node", name}, {"ready", true}};
  };
  Apply(node(telemetry::kReportStart));
  Apply(
      {{"kind", "removed"}, {"at", telemetry::kReportStart + 10}, {"what", "node"}, {"id", name}});
  EXPECT_FALSE(state_.nodes().contains(name));
  for (const telemetry::Millis at : {telemetry::kReportStart + 5, telemetry::kReportStart + 20}) {
    Apply(telemetry::LayoutRecord(at, layout));
    EXPECT_FALSE(state_.nodes().contains(name)) << at;
  }
  Apply(node(telemetry::kReportStart + 9));
  EXPECT_FALSE(state_.nodes().contains(name)) << "as it was before";
  State copy;
  for (Json& body : state_.Records()) copy.Apply(*telemetry::ReadRecord(std::move(body)), "");
  EXPECT_EQ(copy.Records(), state_.Records());
  Apply(node(telemetry::kReportStart + 30));
  ASSERT_TRUE(state_.nodes().contains(name));
  EXPECT_EQ(state_.nodes().at(name).layout, layout) << "reported before the node";
}

TEST_F(StateTest, FullListRemovesMissingObjects) {
  Report({2, 1, 7}, telemetry::kReportStart);
  Apply(telemetry::PodRecord(telemetry::kReportStart, "a", "kept", "running",
                             "nvidia.com/mig-1g.5gb"));
  Apply(telemetry::PodRecord(telemetry::kReportStart, "a", "lost", "running",
                             "nvidia.com/mig-1g.5gb"));
  const Pod* kept = state_.FindPod("a", "kept");
  ASSERT_NE(kept, nullptr);
  const auto effects = Apply({{"kind", "present"},
                              {"at", telemetry::kReportStart + 1},
                              {"what", "pod"},
                              {"ids", JsonArray{Json(kept->uid)}}});
  ASSERT_EQ(effects.changes.size(), 2u);
  EXPECT_EQ(effects.changes[0].kind, "removed");
  EXPECT_EQ(effects.changes[1].kind, "gone");
  EXPECT_EQ(state_.FindPod("a", "lost"), nullptr);
  EXPECT_NE(state_.FindPod("a", "kept"), nullptr);
  EXPECT_TRUE(telemetry::ReadRecord(effects.changes[0].body).ok()) << "history is built from it";

  const std::string node = state_.nodes().begin()->first;
  Apply({{"kind", "present"},
         {"at", telemetry::kReportStart},
         {"what", "node"},
         {"ids", JsonArray{Json(node)}}});
  EXPECT_EQ(state_.nodes().size(), 1u);
}

// A former leader's spool is delivered after the next leader has listed all objects.
TEST_F(StateTest, LateRecordsDoNotRestoreRemovedObjects) {
  const auto of = [](const std::string& kind, const std::string& id, telemetry::Millis at) {
    return Json{{"kind", kind},    {"at", telemetry::kReportStart + at},
                {"id", id},        {"namespace", "a"},
                {"name", id},      {"type", "ElasticQuota"},
                {"node", "n" + id}};
  };
  const auto pod = [](const std::string& name, telemetry::Millis at) {
    return telemetry::PodRecord(telemetry::kReportStart + at, "a", name, "running",
                                "nvidia.com/mig-1g.5gb");
  };
  for (const char* what : {"pod", "node", "quota", "job", "queue", "pool"}) {
    Apply({{"kind", "present"},
           {"at", telemetry::kReportStart + 100},
           {"what", what},
           {"ids", JsonArray()}});
  }
  const auto is_late = [&](Json record) {
    const std::string kind(FindString(record, "kind"));
    const auto changes = Apply(std::move(record)).changes;
    ASSERT_EQ(changes.size(), 2u) << kind << ": present until removed";
    const size_t reported = changes[0].kind == kind ? 0 : 1;
    EXPECT_EQ(changes[reported].kind, kind);
    EXPECT_EQ(changes[1 - reported].kind, "removed");
    EXPECT_EQ(changes[1 - reported].at, telemetry::kReportStart + 100);
  };
  is_late(pod("p", 50));
  const auto kinds = {"node", "quota", "job", "queue", "pool"};
  for (const char* kind : kinds) is_late(of(kind, "x", 50));
  is_late(telemetry::LayoutRecord(telemetry::kReportStart + 50, {"other", "mig", {}}));
  EXPECT_EQ(state_.FindPod("a", "p"), nullptr);
  EXPECT_TRUE(state_.nodes().empty());
  EXPECT_TRUE(state_.quotas().empty());
  EXPECT_TRUE(state_.jobs().empty());
  EXPECT_TRUE(state_.queues().empty());
  EXPECT_TRUE(state_.pools().empty());
  // Records with a later time are applied.
  Apply(pod("p", 100));
  for (const char* kind : kinds) Apply(of(kind, "x", 100));
  EXPECT_EQ(state_.pods().size() + state_.nodes().size() + state_.quotas().size() +
                state_.jobs().size() + state_.queues().size() + state_.pools().size(),
            6u);
  // The same is true for single removals.
  const std::string uid = state_.pods().begin()->first;
  Apply({{"kind", "removed"}, {"at", telemetry::kReportStart + 200}, {"what", "pod"}, {"id", uid}});
  Apply({{"kind", "removed"}, {"at", telemetry::kReportStart + 200}, {"what", "job"}, {"id", "x"}});
  EXPECT_EQ(Apply(pod("p", 150)).changes.size(), 1u) << "its removal is written";
  Apply(of("job", "x", 150));
  EXPECT_TRUE(state_.pods().empty());
  EXPECT_TRUE(state_.jobs().empty());
  // A late removal does not delete an object that was reported later.
  Apply(of("job", "x", 300));
  const auto changes = Apply({{"kind", "removed"},
                              {"at", telemetry::kReportStart + 250},
                              {"what", "job"},
                              {"id", "x"}})
                           .changes;
  EXPECT_EQ(state_.jobs().size(), 1u);
  EXPECT_EQ(changes.size(), 1u) << "the later record is written again";
  Apply(of("job", "x", 400));
  const auto late = Apply({{"kind", "removed"},
                           {"at", telemetry::kReportStart + 350},
                           {"what", "job"},
                           {"id", "x"}})
                        .changes;
  EXPECT_EQ(late.back().kind, "job") << "a repeated record was not written";
  EXPECT_EQ(late.back().at, telemetry::kReportStart + 400);
}

TEST_F(StateTest, DecisionKeepsTimeWhenMade) {
  const auto report = [&](telemetry::Millis at, telemetry::Millis made) {
    Json decision{{"kind", "decision"}, {"at", telemetry::kReportStart + at}, {"id", "plan/n/u/1"}};
    if (made > 0) decision.get_object()["made"] = telemetry::kReportStart + made;
    const auto effects = Apply(std::move(decision));
    const Json& stored = state_.decisions().back().second;
    EXPECT_EQ(stored, effects.changes.at(0).body);
    return telemetry::IntegerOr(stored, "made", 0) - telemetry::kReportStart;
  };
  EXPECT_EQ(report(10, 0), 10);
  EXPECT_EQ(report(20, 0), 10) << "repeated";
  EXPECT_EQ(report(30, 7), 7) << "the reporter knows when it was made";
  EXPECT_EQ(report(40, 999), 7) << "a time in the future is ignored";
}

TEST_F(StateTest, ReadersSeeOnlyTheirNamespaces) {
  Report({2, 1, 7}, telemetry::kReportStart);
  for (const char* ns : {"team-0", "team-1"}) {
    Apply(telemetry::PodRecord(telemetry::kReportStart, ns, "secret-of-" + std::string(ns),
                               "pending", "nvidia.com/mig-1g.5gb"));
    Apply({{"kind", "quota"},
           {"at", telemetry::kReportStart},
           {"type", "ElasticQuota"},
           {"namespace", ns},
           {"name", "q"},
           {"resources", JsonObject()}});
  }
  const Reader reader{"kim", false, {"team-1"}};
  const Scope scope(reader, "");
  const std::string gpus = GpusJson(state_, scope, telemetry::kReportStart, nullptr);
  EXPECT_NE(gpus.find("pod-0-0-1"), std::string::npos);
  EXPECT_EQ(gpus.find("team-0"), std::string::npos);
  EXPECT_EQ(gpus.find("pod-0-0-0"), std::string::npos);
  const std::string pods = PodsJson(state_, scope, {}, telemetry::kReportStart);
  EXPECT_NE(pods.find("secret-of-team-1"), std::string::npos);
  EXPECT_EQ(pods.find("secret-of-team-0"), std::string::npos);
  EXPECT_EQ(ChangedPodsJson(state_, scope, 0).find("secret-of-team-0"), std::string::npos);
  EXPECT_EQ(QuotasJson(state_, scope).find("team-0"), std::string::npos);
  // Also not by requesting another namespace.
  EXPECT_EQ(PodsJson(state_, Scope(reader, "team-0"), {}, 0).find("secret"), std::string::npos);
  EXPECT_NE(PodsJson(state_, Scope({"root", true, {}}, "team-0"), {}, 0).find("secret-of-team-0"),
            std::string::npos);
}

TEST_F(StateTest, PagesPods) {
  for (int i = 0; i < 25; ++i) {
    Apply(telemetry::PodRecord(telemetry::kReportStart, "a", "p" + std::to_string(i),
                               i < 5 ? "pending" : "running", "nvidia.com/mig-1g.5gb"));
  }
  const Scope all({"root", true, {}}, "");
  PodQuery query{"", "", 10, ""};
  std::set<std::string> seen;
  for (int page = 0; page < 3; ++page) {
    const auto answer = ParseJson(PodsJson(state_, all, query, 0));
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(telemetry::IntegerOr(*answer, "total", 0), 25);
    for (const Json& pod : Find(*answer, "pods")->get_array()) {
      seen.insert(std::string(FindString(pod, "uid")));
    }
    query.after = std::string(FindString(*answer, "next"));
  }
  EXPECT_EQ(seen.size(), 25U);
  EXPECT_EQ(query.after, "");
}

TEST_F(StateTest, AddsAndRemovesJobsAndQueues) {
  const auto job = [](telemetry::Millis at, int64_t done) {
    return Json{{"kind", "job"}, {"at", at},        {"id", "a/Job/train"}, {"namespace", "a"},
                {"type", "Job"}, {"name", "train"}, {"completions", done}};
  };
  EXPECT_EQ(Apply(job(telemetry::kReportStart, 0)).changes.size(), 1U);
  EXPECT_TRUE(Apply(job(telemetry::kReportStart + 5, 0)).changes.empty()) << "nothing new";
  EXPECT_EQ(Apply(job(telemetry::kReportStart + 9, 1)).changes.size(), 1U);
  EXPECT_EQ(Apply(job(telemetry::kReportStart + 7, 0)).changes.size(), 1U)
      << "late: for history only";
  Apply({{"kind", "queue"},
         {"at", telemetry::kReportStart},
         {"id", "q"},
         {"namespace", "b"},
         {"name", "q"}});
  ASSERT_EQ(state_.jobs().size(), 1U);
  EXPECT_EQ(*Find(state_.jobs().begin()->second.body, "completions"), Json(1));
  const std::string seen = JobsJson(state_, Scope({"kim", false, {"b"}}, ""), 10);
  EXPECT_EQ(seen.find("train"), std::string::npos);
  EXPECT_NE(seen.find("\"id\":\"q\""), std::string::npos);
  // Its records reproduce the state.
  State again;
  for (Json& record : state_.Records()) again.Apply(*telemetry::ReadRecord(std::move(record)), "");
  EXPECT_EQ(again.jobs(), state_.jobs());
  EXPECT_EQ(again.queues(), state_.queues());
  Apply({{"kind", "present"},
         {"at", telemetry::kReportStart + 20},
         {"what", "job"},
         {"ids", JsonArray()}});
  Apply(
      {{"kind", "removed"}, {"at", telemetry::kReportStart + 20}, {"what", "queue"}, {"id", "q"}});
  EXPECT_TRUE(state_.jobs().empty());
  EXPECT_TRUE(state_.queues().empty());
}

TEST_F(StateTest, ListsUnfinishedJobsFirst) {
  const auto job = [&](const std::string& name, int64_t created, int64_t finished) {
    Apply({{"kind", "job"},
           {"at", telemetry::kReportStart},
           {"id", name},
           {"namespace", "a"},
           {"name", name},
           {"created", created},
           {"finished", finished}});
  };
  job("ended", 9, 10);
  job("old", 1, 0);
  job("young", 5, 0);
  Apply({{"kind", "queue"},
         {"at", telemetry::kReportStart},
         {"id", "ClusterQueue/all"},
         {"name", "all"}});
  const Json all = *ParseJson(JobsJson(state_, Scope({"root", true, {}}, ""), 2));
  EXPECT_EQ(*Find(all, "total"), Json(3));
  const JsonArray& jobs = Find(all, "jobs")->get_array();
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(FindString(jobs[0], "name"), "young");
  EXPECT_EQ(FindString(jobs[1], "name"), "old");
  EXPECT_EQ(Find(all, "queues")->get_array().size(), 1U);
  const Json some = *ParseJson(JobsJson(state_, Scope({"kim", false, {"a"}}, ""), 10));
  EXPECT_TRUE(Find(some, "queues")->get_array().empty())
      << "a ClusterQueue belongs to no namespace";
}

}  // namespace
}  // namespace nos::telemetryserver
