// Exports snapshots to a double of a walk:ai backend with the same validation.
#include "exports/walkai.h"

#include <regex>
#include <set>

#include "exports/scene_test.h"

namespace nos::exports {
namespace {

using telemetry::EnvelopeOf, telemetry::kReportStart, telemetry::Millis;

// Validates against the backend's schema: a snapshot that it would reject with 422 fails the test.
void ExpectValid(const Json& snapshot) {
  static const std::set<std::string, std::less<>> kProfiles = {"1g.10gb", "2g.20gb", "3g.40gb",
                                                               "4g.40gb", "7g.79gb"};
  static const std::set<std::string, std::less<>> kStatuses = {
      "Running",   "Pending",          "PodInitializing", "ContainerCreating", "Completed", "Error",
      "Succeeded", "CrashLoopBackOff", "Failed",          "Terminating"};
  const std::regex time(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)");
  const auto is_time = [&](const Json* value) {
    return value->is_string() && std::regex_match(std::string(View(value->get_string())), time);
  };
  ASSERT_TRUE(snapshot.is_object());
  EXPECT_EQ(snapshot.get_object().size(), 3U);
  EXPECT_TRUE(is_time(Find(snapshot, "ts")));
  ASSERT_TRUE(Find(snapshot, "gpus")->is_array());
  ASSERT_TRUE(Find(snapshot, "pods")->is_array());
  for (const Json& gpu : Find(snapshot, "gpus")->get_array()) {
    EXPECT_TRUE(kProfiles.contains(FindString(gpu, "gpu"))) << WriteJson(gpu);
    EXPECT_TRUE(Find(gpu, "allocated")->is_int64());
    EXPECT_TRUE(Find(gpu, "available")->is_int64());
    EXPECT_EQ(gpu.get_object().size(), 3U);
  }
  for (const Json& pod : Find(snapshot, "pods")->get_array()) {
    EXPECT_FALSE(FindString(pod, "name").empty());
    EXPECT_FALSE(FindString(pod, "namespace").empty());
    EXPECT_TRUE(kStatuses.contains(FindString(pod, "status"))) << WriteJson(pod);
    EXPECT_TRUE(kProfiles.contains(FindString(pod, "gpu"))) << WriteJson(pod);
    for (const char* key : {"start_time", "finish_time"}) {
      const Json* value = Find(pod, key);
      ASSERT_NE(value, nullptr);
      EXPECT_TRUE(value->is_null() || is_time(value)) << WriteJson(pod);
    }
    EXPECT_EQ(pod.get_object().size(), 6U);
  }
}

class WalkaiTest : public ExportScene {
 protected:
  void SetUp() override {
    ExportScene::SetUp();
    destination_ = *Destination::For({.url = "http://127.0.0.1:9/cluster/insights"}, "e");
    transport_.answer = [this](const kube::ApiRequest& request) -> Result<kube::ApiResponse> {
      EXPECT_EQ(request.path, "/cluster/insights");
      auto snapshot = ParseJson(request.text);
      EXPECT_TRUE(snapshot.ok());
      ExpectValid(*snapshot);
      if (code_ == 204) taken_ = *snapshot;
      return AnswerOf(code_);
    };
    options_.event_followers = {Walkai::kName};
    Open();
    Start();
  }
  void Start() {
    WalkaiOptions options;
    options.cluster = "prod";
    walkai_ = std::make_unique<Walkai>(options, *recorder_, destination_, transport_, metrics_);
  }
  void Send(JsonArray records) {
    ASSERT_TRUE(Take(EnvelopeOf("cluster", ++sequence_, std::move(records))).status.ok());
    ASSERT_TRUE(recorder_->Settle().ok());
  }
  void Push() {
    steady_ += std::chrono::seconds(10);
    taken_ = nullptr;
    walkai_->Step(steady_);
  }
  Json Pod(const std::string& name, const std::string& state,
           const std::string& resource = "nvidia.com/mig-1g.10gb") {
    Json pod = telemetry::PodRecord(recorder_->Now(), "team", name, state, resource, "n");
    pod.get_object()["started"] = kReportStart;
    pod.get_object()["finished"] =
        state == "succeeded" || state == "failed" ? recorder_->Now() : Millis{0};
    return pod;
  }
  static Json Gone(const std::string& name, Millis at) {
    return {{"kind", "removed"}, {"at", at}, {"what", "pod"}, {"id", "uid-team-" + name}};
  }
  // "name status gpu" per line, from the last accepted snapshot.
  std::string Pods() const {
    std::string text;
    for (const Json& pod : Find(taken_, "pods")->get_array()) {
      text += std::string(FindString(pod, "name")) + " " + std::string(FindString(pod, "status")) +
              " " + std::string(FindString(pod, "gpu")) + "\n";
    }
    return text;
  }

  Destination destination_;
  std::unique_ptr<Walkai> walkai_;
  int code_ = 204;
  int64_t sequence_ = 0;
  Json taken_;
};

TEST_F(WalkaiTest, ListsAreEmptyNotNullWithoutGpus) {
  Send({{{"kind", "node"}, {"at", kReportStart}, {"node", "n"}, {"ready", true}}});
  Push();
  EXPECT_EQ(WriteJson(taken_), R"({"ts":"2025-11-21T21:20:00Z","gpus":[],"pods":[]})");
}

TEST_F(WalkaiTest, UsesOnlyWordsOfBackend) {
  JsonArray instances;
  const auto add = [&](const char* profile, bool held) {
    JsonArray holders;
    if (held) holders.push_back({{"namespace", "a"}, {"pod", "p"}, {"container", "c"}});
    instances.push_back({{"id", static_cast<int>(instances.size())},
                         {"instance", "M" + std::to_string(instances.size())},
                         {"profile", profile},
                         {"start", 0},
                         {"size", 1},
                         {"holders", std::move(holders)}});
  };
  add("1g.10gb", true);
  add("1g.10gb+me", false);
  add("7g.80gb", true);
  add("1g.18gb", true);  // a profile of H200
  Send({{{"kind", "layout"},
         {"at", kReportStart},
         {"node", "n"},
         {"mode", "mig"},
         {"gpus", JsonArray{{{"index", 0}, {"gpu", "G"}, {"instances", instances}}}}},
        Pod("a-runs", "running"),
        Pod("b-waits", "pending", "nvidia.com/mig-7g.80gb"),
        Pod("c-starts", "starting", "nvidia.com/mig-1g.10gb.me"),
        Pod("d-strange", "of another version"),
        Pod("e-whole", "running", "nvidia.com/gpu"),
        Pod("f-h200", "running", "nvidia.com/mig-1g.18gb"),
        Pod("g-failed", "failed")});
  Push();
  EXPECT_EQ(WriteJson(*Find(taken_, "gpus")), R"([{"gpu":"1g.10gb","allocated":1,"available":1},)"
                                              R"({"gpu":"7g.79gb","allocated":1,"available":0}])");
  EXPECT_EQ(Pods(),
            "g-failed Error 1g.10gb\nd-strange Terminating 1g.10gb\na-runs Running 1g.10gb\n"
            "c-starts ContainerCreating 1g.10gb\nb-waits Pending 7g.79gb\n");
}

// Pods of Jobs are deleted seconds after they end; their end must still be reported.
TEST_F(WalkaiTest, ReportsEndedPodsUntilAccepted) {
  Send({Pod("quick", "running"), Pod("evicted", "running")});
  Push();
  clock_.Set(kReportStart + 2'000);
  Send({Pod("quick", "succeeded")});
  Send({Gone("quick", kReportStart + 2'500), Gone("evicted", kReportStart + 2'500)});
  code_ = 503;
  Push();
  EXPECT_FALSE(walkai_->trouble().ok());
  // The exporter was away for twenty minutes and restarts.
  clock_.Set(kReportStart + 1'200'000);
  Push();
  code_ = 204;
  Push();
  EXPECT_TRUE(walkai_->trouble().ok());
  EXPECT_EQ(Pods(), "quick Succeeded 1g.10gb\nevicted Terminating 1g.10gb\n");
  const Json& quick = Find(taken_, "pods")->get_array()[0];
  EXPECT_EQ(FindString(quick, "finish_time"), "2025-11-21T21:20:02Z");
  // They stay in snapshots for five minutes, because the backend may read a snapshot late.
  clock_.Set(kReportStart + 1'700'000);
  Push();
  Push();
  EXPECT_EQ(Pods(), "");
}

TEST_F(WalkaiTest, RestartReportsRecentlyEndedPods) {
  Send({Pod("quick", "running")});
  clock_.Set(kReportStart + 2'000);
  Send({Pod("quick", "failed"), Gone("quick", kReportStart + 2'000)});
  walkai_.reset();
  Crash();
  Open();
  clock_.Set(kReportStart + 60'000);
  Start();
  Push();
  EXPECT_EQ(Pods(), "quick Error 1g.10gb\n");
}

// A former leader's spool is delivered after another replica leads.
TEST_F(WalkaiTest, ReportsEndThatArrivesLate) {
  Send({Pod("late", "running"), Pod("removed", "running"), Pod("stays", "running")});
  const Json late = Pod("late", "succeeded"), removed = Pod("removed", "failed");
  const Json stays = Pod("stays", "succeeded");
  Push();
  clock_.Set(kReportStart + 3'600'000);
  Push();
  EXPECT_EQ(Pods(), "late Running 1g.10gb\nremoved Running 1g.10gb\nstays Running 1g.10gb\n");
  Send({late, Gone("late", kReportStart + 1000), Gone("removed", kReportStart + 1000), stays});
  Push();
  EXPECT_EQ(Pods(),
            "late Succeeded 1g.10gb\nstays Succeeded 1g.10gb\nremoved Terminating 1g.10gb\n");
  Send({removed});
  Push();
  EXPECT_EQ(Pods(), "late Succeeded 1g.10gb\nremoved Error 1g.10gb\nstays Succeeded 1g.10gb\n");
  clock_.Set(kReportStart + 2 * int64_t{3'600'000});
  Push();
  EXPECT_EQ(Pods(), "");
  // Reported once: not again after its removal, nor after another change.
  Json changed = stays;
  changed.get_object()["message"] = "x";
  changed.get_object()["at"] = recorder_->Now();
  Send({changed});
  Push();
  Send({Gone("stays", recorder_->Now())});
  Push();
  EXPECT_EQ(Pods(), "");
}

TEST_F(WalkaiTest, ReportsPodsBeyondLimitInLaterSnapshots) {
  WalkaiOptions options;
  options.cluster = "prod";
  options.max_pods = 2;
  walkai_ = std::make_unique<Walkai>(options, *recorder_, destination_, transport_, metrics_);
  Send({Pod("a", "failed"), Pod("b", "failed"), Pod("c", "failed"), Pod("d", "running")});
  code_ = 503;
  Push();
  Push();
  code_ = 204;
  Push();
  EXPECT_EQ(Pods(), "a Error 1g.10gb\nb Error 1g.10gb\n");
  Push();
  EXPECT_EQ(Pods(), "c Error 1g.10gb\nd Running 1g.10gb\n");
}

// After a restart, an end that was accepted before is not reported again; a late one is.
TEST_F(WalkaiTest, RestartReportsLateEndsNotYetAccepted) {
  Send({Pod("old", "succeeded")});
  Push();
  const Json late = Pod("late", "succeeded");
  clock_.Set(kReportStart + 3'600'000);
  Push();
  Send({late});
  walkai_.reset();
  Crash();
  Open();
  Start();
  Push();
  EXPECT_EQ(Pods(), "late Succeeded 1g.10gb\n");
}

TEST_F(WalkaiTest, BoundsSnapshotWithEndedPodsFirst) {
  Send({Pod("a", "pending"), Pod("b", "running")});
  std::set<std::string> unknown;
  recorder_->Look("prod", [&](const telemetryserver::Live& live) {
    taken_ = WalkaiSnapshot(live.state, {Pod("z", "succeeded")}, 2, unknown);
  });
  ExpectValid(taken_);
  EXPECT_EQ(Pods(), "z Succeeded 1g.10gb\nb Running 1g.10gb\n");
  EXPECT_TRUE(unknown.empty());
}

TEST_F(WalkaiTest, SendsNothingForUnknownCluster) {
  Push();
  EXPECT_TRUE(transport_.requests.empty());
  EXPECT_TRUE(walkai_->trouble().ok());
}

}  // namespace
}  // namespace nos::exports
