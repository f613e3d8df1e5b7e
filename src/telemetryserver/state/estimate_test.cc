#include "telemetryserver/estimate.h"

#include <gtest/gtest.h>

#include "telemetry/testing/reports.h"

namespace nos::telemetryserver {
namespace {

constexpr telemetry::Millis kNow = telemetry::kReportStart + 600'000;

// One A100 of which two pods hold half each, and past runs of similar pods.
class EstimateTest : public ::testing::Test {
 protected:
  void Apply(Json body) {
    const auto record = telemetry::ReadRecord(std::move(body));
    ASSERT_TRUE(record.ok()) << record.status().ToString();
    state_.Apply(*record, "cluster");
  }
  JsonObject Pod(const std::string& name, const std::string& state, const JsonObject& more = {}) {
    JsonObject pod = {{"kind", "pod"},
                      {"at", kNow},
                      {"uid", "uid-" + name},
                      {"namespace", "team"},
                      {"name", name},
                      {"state", state},
                      {"created", kNow - 500'000},
                      {"requests", {{"nvidia.com/mig-3g.20gb", 1}}}};
    for (const auto& [key, value] : more) pod[key] = value;
    return pod;
  }
  void Layout(const std::vector<std::string>& holders) {
    JsonArray instances;
    for (const std::string& holder : holders) {
      const auto i = static_cast<int64_t>(instances.size());
      JsonArray held;
      if (!holder.empty()) held.push_back({{"namespace", "team"}, {"pod", holder}});
      instances.push_back({{"id", i},
                           {"instance", "MIG-" + std::to_string(i)},
                           {"profile", "3g.20gb"},
                           {"start", i * 4},
                           {"size", 4},
                           {"holders", std::move(held)}});
    }
    JsonArray gpus;
    gpus.push_back({{"index", 0},
                    {"gpu", "GPU-1"},
                    {"product", "NVIDIA A100-SXM4-40GB"},
                    {"slots", 8},
                    {"mig", true},
                    {"instances", std::move(instances)}});
    Apply({{"kind", "layout"}, {"at", kNow}, {"node", "n"}, {"gpus", std::move(gpus)}});
  }
  // The GPU is shared by MPS: 20 GiB each.
  void Shares(const std::vector<std::string>& holders) {
    JsonArray shares;
    for (const std::string& holder : holders) {
      const auto i = static_cast<int64_t>(shares.size());
      shares.push_back({{"id", i},
                        {"instance", "GPU-1::20::" + std::to_string(i)},
                        {"profile", "20gb"},
                        {"start", i},
                        {"size", 20},
                        {"holders", JsonArray{{{"namespace", "team"}, {"pod", holder}}}}});
    }
    JsonArray gpus;
    gpus.push_back({{"index", 0},
                    {"gpu", "GPU-1"},
                    {"product", "Tesla V100"},
                    {"slots", 50},
                    {"mig", false},
                    {"instances", std::move(shares)}});
    Apply({{"kind", "layout"}, {"at", kNow}, {"node", "n"}, {"gpus", std::move(gpus)}});
  }
  // Two pods share the GPU by time slices; nothing else fits beside them.
  void ConcurrencyLimiter(const std::vector<std::string>& holders) {
    JsonArray turns;
    for (const std::string& holder : holders) {
      const auto i = static_cast<int64_t>(turns.size());
      turns.push_back({{"id", i},
                       {"instance", "GPU-1::time::" + std::to_string(4 * i)},
                       {"profile", "shared"},
                       {"start", 4 * i},
                       {"size", 4},
                       {"holders", JsonArray{{{"namespace", "team"}, {"pod", holder}}}}});
    }
    JsonArray gpus;
    gpus.push_back({{"index", 0},
                    {"gpu", "GPU-1"},
                    {"product", "NVIDIA H100 80GB HBM3"},
                    {"memory", 81'920},
                    {"slots", 8},
                    {"mig", false},
                    {"way", "time slices"},
                    {"instances", std::move(turns)}});
    Apply({{"kind", "layout"}, {"at", kNow}, {"node", "n"}, {"gpus", std::move(gpus)}});
  }
  // Adds ended pods of the job with these run times in seconds.
  void Ran(const std::string& job, const std::vector<int64_t>& seconds) {
    for (const int64_t s : seconds) {
      Apply(Pod(job + "-ran-" + std::to_string(++ran_), "succeeded",
                {{"job", {{"kind", "Job"}, {"name", job}}},
                 {"started", kNow - s * 1000},
                 {"finished", kNow}}));
    }
  }
  JsonObject OfJob(const std::string& job, telemetry::Millis started = 0) {
    return {{"job", {{"kind", "Job"}, {"name", job}}}, {"started", started}};
  }
  Estimate Of(const std::string& name) {
    return EstimateStarts(state_, gpu::Catalogue::Builtin())["uid-" + name];
  }

  State state_;
  int ran_ = 0;
};

TEST(TypicalRun, MedianOfLongerRuns) {
  const std::deque<telemetry::Millis> runs = {10, 20, 30, 40, 50};
  EXPECT_EQ(TypicalRun(runs, 0), 30);
  EXPECT_EQ(TypicalRun(runs, 25), 40);
  EXPECT_EQ(TypicalRun(runs, 50), 0);
}

TEST_F(EstimateTest, EstimatesEndOfMpsShares) {
  Shares({"a", "b"});
  Ran("train", {200, 200, 200, 200, 200});
  Apply(Pod("a", "running", OfJob("train", kNow - 100'000)));
  Apply(Pod("b", "running", OfJob("train", kNow - 50'000)));
  Apply(Pod("waits", "pending", {{"requests", {{"nvidia.com/gpu-15gb", 2}}}}));
  Apply(Pod("small", "pending", {{"requests", {{"nvidia.com/gpu-9gb", 1}}}}));
  Apply(Pod("slice", "pending"));
  EXPECT_EQ(Of("small").at, 0) << "it fits now";
  EXPECT_EQ(Of("waits"), (Estimate{kNow + 150'000, kByHistory}))
      << "21 GiB are not enough for it, 41 are";
  EXPECT_EQ(Of("slice").at, 0) << "the GPU is not partitioned by MIG";
}

TEST_F(EstimateTest, TimeSliceIsFreeWhenHolderEnds) {
  ConcurrencyLimiter({"a", "b"});
  Ran("train", {200, 200, 200, 200, 200});
  Apply(Pod("a", "running", OfJob("train", kNow - 100'000)));
  Apply(Pod("b", "running", OfJob("train", kNow - 50'000)));
  Apply(Pod("waits", "pending", {{"requests", {{"nvidia.com/gpu.shared", 1}}}}));
  Apply(Pod("slice", "pending", {{"requests", {{"nvidia.com/mig-1g.10gb", 1}}}}));
  EXPECT_EQ(Of("waits"), (Estimate{kNow + 100'000, kByHistory}));
  EXPECT_EQ(Of("slice").at, 0) << "the GPU is not partitioned by MIG";
}

TEST_F(EstimateTest, NoEstimateWithoutHistory) {
  Layout({"a", "b"});
  Apply(Pod("a", "running", OfJob("train", kNow - 100'000)));
  Apply(Pod("b", "running", OfJob("train", kNow - 100'000)));
  Apply(Pod("waits", "pending"));
  EXPECT_EQ(Of("waits"), (Estimate{0, kNoHistory}));
  Ran("train", {200, 300});
  EXPECT_EQ(Of("waits"), (Estimate{0, kNoHistory})) << "two runs are not enough";
}

TEST_F(EstimateTest, RunningPodEndsLikeSimilarPods) {
  Layout({"a", "b"});
  Apply(Pod("a", "running", OfJob("train", kNow - 100'000)));
  Apply(Pod("b", "running", OfJob("serve", kNow - 100'000)));
  Ran("train", {20, 200, 300, 400});
  Ran("serve", {110, 120, 130});
  Apply(Pod("first", "pending", {{"created", kNow - 300'000}}));
  Apply(Pod("second", "pending", {{"created", kNow - 200'000}}));
  Apply(Pod("urgent", "pending", {{"created", kNow - 1000}, {"priority", 10}}));
  EXPECT_EQ(Of("urgent"), (Estimate{kNow + 20'000, kByHistory}));
  // Pods of the namespace run for 130 s: the urgent pod ends before the running one.
  EXPECT_EQ(Of("first"), (Estimate{kNow + 150'000, kByHistory}));
  EXPECT_EQ(Of("second"), (Estimate{kNow + 200'000, kByHistory}));
}

TEST_F(EstimateTest, DeletedPodEndsAtItsDeadline) {
  Layout({"a", "b"});
  Apply(Pod("a", "running", OfJob("train", kNow - 100'000)));
  Apply(Pod("b", "terminating", {{"started", kNow - 9000}, {"ends", kNow + 30'000}}));
  Apply(Pod("waits", "pending"));
  EXPECT_EQ(Of("waits"), (Estimate{kNow + 30'000, kByReclaim}));
}

TEST_F(EstimateTest, FreeSlotsAreReadyAfterMedianPlanTime) {
  Layout({"a", ""});
  Apply(Pod("a", "running", OfJob("train", kNow - 100'000)));
  Apply(Pod("waits", "pending"));
  EXPECT_EQ(Of("waits"), (Estimate{0, kNoHistory}));
  for (const int64_t took : {1000, 2000, 9000}) {
    Apply({{"kind", "decision"},
           {"at", kNow - 50'000},
           {"id", "plan/" + std::to_string(took)},
           {"type", "plan"},
           {"state", "applied"},
           {"took_ms", took}});
  }
  EXPECT_EQ(Of("waits"), (Estimate{kNow + 2000, kByPlan}));
  // A profile that no GPU supports never starts.
  Apply(Pod("never", "pending", {{"requests", {{"nvidia.com/mig-9g.90gb", 1}}}}));
  EXPECT_EQ(Of("never").at, 0);
}

TEST_F(EstimateTest, NoEstimateForPodThatNothingHelps) {
  Layout({"a", ""});
  Apply(Pod("a", "running", OfJob("train", kNow - 100'000)));
  Apply({{"kind", "decision"},
         {"at", kNow - 50'000},
         {"id", "plan/1"},
         {"type", "plan"},
         {"state", "applied"},
         {"took_ms", 1000}});
  const auto waits = [&](const std::string& reason, const std::string& message) {
    Apply(Pod("waits", "pending", {{"reason", reason}, {"message", message}}));
    return Of("waits");
  };
  const Estimate soon{kNow + 1000, kByPlan};
  const std::string selector = "node(s) didn't match Pod's node affinity/selector";
  EXPECT_EQ(waits("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu."), soon);
  EXPECT_EQ(waits("SchedulingGated", "waiting for scheduling gates: [kueue]"),
            (Estimate{0, kGated}));
  EXPECT_EQ(waits("Unschedulable", "0/1 nodes are available: 1 " + selector +
                                       ". Remedy: label node n with zone=mars"),
            (Estimate{0, kNoNode}));
  EXPECT_EQ(waits("Unschedulable",
                  "0/2 nodes are available: 1 node(s) had untolerated taint "
                  "{a: b, c}, 1 " +
                      selector + "."),
            (Estimate{0, kNoNode}));
  EXPECT_EQ(waits("Unschedulable",
                  "0/2 nodes are available: 1 Insufficient nvidia.com/mig-3g.20gb,"
                  " 1 " +
                      selector + "."),
            soon)
      << "one node may take it";
  for (const char* other : {"", "0/x nodes are available: 1 node(s)",
                            "0/0 nodes are available: ", "no nodes available to schedule pods"}) {
    EXPECT_EQ(waits("Unschedulable", other), soon) << other;
  }
  // It takes no place from others either.
  Apply(Pod("first", "pending", {{"created", kNow - 900'000}, {"reason", "SchedulingGated"}}));
  EXPECT_EQ(Of("waits"), soon);
}

TEST_F(EstimateTest, SmallerPodStartsInBetween) {
  Layout({"a", "b"});
  Apply(Pod("a", "terminating", {{"ends", kNow + 10'000}}));
  Apply(Pod("b", "terminating", {{"ends", kNow + 90'000}}));
  Apply(Pod("whole", "pending",
            {{"requests", {{"nvidia.com/mig-7g.40gb", 1}}}, {"created", kNow - 300'000}}));
  Apply(Pod("half", "pending", {{"created", kNow - 200'000}}));
  Ran("short", {30, 30, 30});  // as pods of the namespace do
  EXPECT_EQ(Of("half"), (Estimate{kNow + 10'000, kByReclaim}));
  EXPECT_EQ(Of("whole"), (Estimate{kNow + 90'000, kByReclaim}));
}

TEST_F(EstimateTest, RequiresCpuAndMemoryOfHost) {
  Layout({"", "b"});
  Apply(Pod("b", "terminating",
            {{"ends", kNow + 10'000}, {"requests", {{"nvidia.com/mig-3g.20gb", 1}, {"cpu", 4}}}}));
  Apply({{"kind", "node"},
         {"at", kNow},
         {"node", "n"},
         {"allocatable", {{"cpu", 5}, {"memory", 1000}}},
         {"requested", {{"cpu", 4}, {"memory", 0}}}});
  Apply(Pod("waits", "pending", {{"requests", {{"nvidia.com/mig-3g.20gb", 1}, {"cpu", 2}}}}));
  EXPECT_EQ(Of("waits"), (Estimate{kNow + 10'000, kByReclaim})) << "when CPU is free as well";
}

TEST_F(EstimateTest, SeveralSlicesStartWithTheLastRelease) {
  Layout({"a", "b"});
  Apply(Pod("a", "terminating", {{"ends", kNow + 10'000}}));
  Apply(Pod("b", "terminating", {{"ends", kNow + 30'000}}));
  Apply(Pod("both", "pending", {{"requests", {{"nvidia.com/mig-3g.20gb", 2}}}}));
  EXPECT_EQ(Of("both"), (Estimate{kNow + 30'000, kByReclaim}));
  Apply(Pod("whole", "pending", {{"requests", {{"nvidia.com/mig-7g.40gb", 1}}}, {"priority", 1}}));
  EXPECT_EQ(Of("whole"), (Estimate{kNow + 30'000, kByReclaim}));
  EXPECT_EQ(Of("both").at, 0) << "the run time of the pod with the whole GPU is unknown";
}

TEST_F(EstimateTest, PublishesChangedEstimateOnce) {
  Layout({"a", ""});
  Apply(Pod("waits", "pending"));
  const uint64_t before = state_.version();
  state_.SetEstimates(EstimateStarts(state_, gpu::Catalogue::Builtin()));
  EXPECT_GT(state_.version(), before);
  const uint64_t after = state_.version();
  state_.SetEstimates(EstimateStarts(state_, gpu::Catalogue::Builtin()));
  EXPECT_EQ(state_.version(), after);
}

}  // namespace
}  // namespace nos::telemetryserver
