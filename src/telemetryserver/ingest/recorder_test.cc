#include "telemetryserver/recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <limits>
#include <sstream>

#include "base/random.h"
#include "telemetryserver/store/sqlite.h"
#include "telemetryserver/testing/fixture.h"

namespace nos::telemetryserver {
namespace {

using RecorderTest = RecorderFixture;

TEST_F(RecorderTest, AcknowledgedRecordsSurviveCrash) {
  Open();
  Report({2, 2, 7}, 0, 40);  // 40 are 400 s: no flush yet
  Crash();
  Open();
  EXPECT_EQ(Raw("gpu/" + telemetry::GpuName(1, 1), "power").size(), 40U);
  EXPECT_EQ(Raw("instance/" + telemetry::InstanceName(0, 1, 3), "utilization").size(), 40U);
  EXPECT_EQ(Raw("cluster", "allocated").size(), 40U);
  recorder_->Look("prod", [&](const Live& live) {
    EXPECT_EQ(live.state.nodes().size(), 2U);
    EXPECT_EQ(live.state.SlicesOf("team-1", "pod-1-1-1").size(), 1U);
    EXPECT_EQ(live.state.LatestOf("gpu", telemetry::GpuName(1, 1))->at,
              telemetry::kReportStart + 390'000);
  });
}

TEST_F(RecorderTest, DamagedRowOfJournalBecomesGap) {
  Open();
  Report({1, 1, 1}, 0, 3);
  Crash();
  {
    auto db = Sqlite::Open(options_.store.path, Sqlite::Mode::kWrite);
    ASSERT_TRUE(db.ok()) << db.status().ToString();
    ASSERT_TRUE(db->Execute("UPDATE journal SET body = x'00' WHERE source != '' AND id = "
                            "(SELECT max(id) FROM journal WHERE source != '' AND id < "
                            "(SELECT max(id) FROM journal WHERE source != ''))")
                    .ok());
  }
  Open();
  EXPECT_EQ(Raw("gpu/" + telemetry::GpuName(0, 0), "power").size(), 2U)
      << "the others are replayed";
  EXPECT_NE(metrics_.Text().find("nos_telemetry_damaged_envelopes_total{cluster=\"prod\"} 1"),
            std::string::npos);
  ASSERT_TRUE(recorder_->Settle().ok());
  recorder_->Look("prod", [&](const Live& live) {
    const EventQuery query{0, std::numeric_limits<telemetry::Millis>::max(), {"gap"}, "", 10};
    const auto gaps = recorder_->archive().Events(live.id, query);
    ASSERT_TRUE(gaps.ok());
    ASSERT_EQ(gaps->size(), 1U);
    EXPECT_EQ(FindString(gaps->front().body, "why"), "an envelope of the journal was damaged");
  });
  EXPECT_EQ(Take(telemetry::NodeReport({1, 1, 1}, 0, telemetry::kReportStart + 30'000, 4)).sequence,
            4);
}

// The disk hangs after the first envelope.
TEST_F(RecorderTest, AnswersWithinItsLimitWhileRoundBlocks) {
  options_.max_wait = std::chrono::milliseconds(100);
  std::promise<void> goes_on;
  const std::shared_future<void> waits = goes_on.get_future().share();
  auto opened = Recorder::Open(options_, gpu::Catalogue::Builtin(), clock_, metrics_,
                               [waits] { waits.wait(); });
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  recorder_ = *std::move(opened);
  clock_.Set(telemetry::kReportStart + 10'000);
  const auto report = [&](int number) {
    return Take(telemetry::NodeReport({1, 1, 1}, 0, telemetry::kReportStart, number));
  };
  EXPECT_TRUE(report(1).status.ok());
  EXPECT_EQ(report(2).status.code(), Code::kUnavailable);
  goes_on.set_value();
}

// A stolen node knows the UUIDs of other nodes' GPUs.
class NodeRecordsTest : public RecorderFixture {
 protected:
  using Refused = std::vector<std::string>;
  static constexpr telemetry::Millis kLater = telemetry::kReportStart + 20'000;

  static Json LayoutWith(const std::string& node, const std::vector<std::string>& gpus) {
    JsonArray all;
    for (const std::string& gpu : gpus) {
      all.push_back({{"gpu", gpu},
                     {"instances",
                      {{{"instance", "MIG-" + gpu},
                        {"profile", "1g.5gb"},
                        {"holders", {{{"namespace", "a"}, {"pod", "p"}}}}}}}});
    }
    return {{"kind", "layout"}, {"at", kLater}, {"node", node}, {"gpus", std::move(all)}};
  }
  static Json Reading(const char* kind, const std::string& key) {
    return {{"kind", kind}, {"at", kLater}, {kind, key}, {"metrics", {{"power", 9999}}}};
  }
  // Delivers and returns the reasons of refusals.
  Refused Deliver(const std::string& node, JsonArray records) {
    clock_.Set(std::max(telemetry::Millis{kLater}, recorder_->Now()));
    const auto receipt =
        Take(telemetry::EnvelopeOf("node/" + node, ++sequences_[node], std::move(records)));
    EXPECT_TRUE(receipt.status.ok()) << receipt.status.ToString();
    EXPECT_TRUE(recorder_->Settle().ok());
    refused_records_ = receipt.refused_records;
    Refused all;
    for (const telemetry::Refused& one : receipt.refused) {
      all.push_back(std::to_string(one.record) + " " + one.why);
    }
    return all;
  }

  std::map<std::string, int64_t> sequences_;
  size_t refused_records_ = 0;  // of the last delivery
};

TEST_F(NodeRecordsTest, NodeChangesNothingOfGpusOfAnother) {
  Open();
  EXPECT_EQ(Deliver("a", {LayoutWith("a", {"GPU-a"}), Reading("gpu", "GPU-a"),
                          Reading("instance", "MIG-GPU-a")}),
            Refused());
  const JsonArray forged = {LayoutWith("thief", {"GPU-thief", "GPU-a"}),
                            Reading("gpu", "GPU-thief"),
                            "invalid",
                            Reading("gpu", "GPU-a"),
                            Reading("instance", "MIG-GPU-a"),
                            {{"kind", "xid"}, {"at", kLater}, {"gpu", "GPU-a"}, {"xid", 79}}};
  const Refused reasons = {"0 layout: node a has reported gpu/GPU-a before",
                           "3 gpu: node a has reported gpu/GPU-a before",
                           "4 instance: node a has reported instance/MIG-GPU-a before",
                           "5 xid: node a has reported gpu/GPU-a before"};
  EXPECT_EQ(Deliver("thief", forged), reasons);
  for (const bool restarted : {false, true}) {
    if (restarted) Crash();
    if (restarted) Open();
    EXPECT_EQ(Raw("gpu/GPU-a", "power").size(), 1U) << restarted;
    EXPECT_EQ(Raw("instance/MIG-GPU-a", "power").size(), 1U);
    EXPECT_EQ(Raw("gpu/GPU-thief", "power").size(), 1U) << "its own are kept";
    recorder_->Look("prod", [&](const Live& live) {
      EXPECT_FALSE(live.state.nodes().contains("thief"));
      EXPECT_EQ(live.state.SlicesOf("a", "p").size(), 1U);
    });
  }
  EXPECT_EQ(Deliver("thief", forged), reasons) << "also after a restart";
}

TEST_F(NodeRecordsTest, GpuMovesWhenItsFormerNodeIsWithoutIt) {
  Open();
  EXPECT_EQ(Deliver("a", {LayoutWith("a", {"GPU-1", "GPU-2"})}), Refused());
  EXPECT_EQ(Deliver("b", {LayoutWith("b", {"GPU-1"})}).size(), 1U);
  // 1. The former node reports without it.
  EXPECT_EQ(Deliver("a", {LayoutWith("a", {"GPU-2"})}), Refused());
  EXPECT_EQ(Deliver("b", {LayoutWith("b", {"GPU-1"})}), Refused());
  EXPECT_EQ(Deliver("a", {Reading("gpu", "GPU-1")}).size(), 1U);
  // 2. It is removed from the cluster.
  EXPECT_EQ(Deliver("b", {LayoutWith("b", {"GPU-1", "GPU-2"})}).size(), 1U);
  ASSERT_TRUE(
      Take(telemetry::EnvelopeOf(
               "cluster", 1,
               {{{"kind", "removed"}, {"at", kLater + 1}, {"what", "node"}, {"node", "a"}}}))
          .status.ok());
  EXPECT_EQ(Deliver("b", {LayoutWith("b", {"GPU-1", "GPU-2"})}), Refused());
  // 3. It is silent for a day.
  EXPECT_EQ(Deliver("c", {LayoutWith("c", {"GPU-2"})}).size(), 1U);
  clock_.Set(kLater + kDay + 1);
  EXPECT_EQ(Deliver("c", {LayoutWith("c", {"GPU-2"})}), Refused());
}

TEST_F(NodeRecordsTest, InventedGpusOfOneNodeAreLimited) {
  Open();
  EXPECT_EQ(Deliver("b", {LayoutWith("b", {"GPU-b"})}), Refused());
  EXPECT_EQ(Deliver("thief", {LayoutWith("thief", {"GPU-own"})}), Refused());
  // 1. Two of the day's subjects are in the layout. Ever new ones follow.
  const auto invented = [](size_t from, size_t to) {
    JsonArray records;
    for (size_t i = from; i < to; ++i) {
      records.push_back(Reading("gpu", "GPU-invented-" + std::to_string(i)));
    }
    return records;
  };
  constexpr size_t kMax = NodeSubjects::kMaxSubjects;
  EXPECT_EQ(Deliver("thief", invented(0, kMax / 2)), Refused());
  EXPECT_EQ(Deliver("thief", invented(kMax / 2, kMax - 2)), Refused());
  const Refused refused = Deliver("thief", invented(kMax - 2, kMax + 998));
  EXPECT_EQ(refused.size(), 100U) << "the first reasons are enough";
  EXPECT_EQ(refused_records_, 1000U) << "but all are counted";
  EXPECT_EQ(refused.front(),
            "0 gpu: node thief has reported 4000 new GPUs and instances within a day");
  EXPECT_EQ(Deliver("thief", {LayoutWith("thief", {"GPU-own", "GPU-more"}),
                              {{"kind", "xid"}, {"at", kLater}, {"gpu", "GPU-no"}, {"xid", 79}}})
                .size(),
            2U);
  recorder_->Look("prod", [&](const Live& live) {
    EXPECT_LE(live.heads.all().size(), kMax);
    EXPECT_EQ(live.state.nodes().at("thief").layout.gpus.size(), 1U);
  });
  // 2. Known ones, and those of other nodes, are recorded.
  EXPECT_EQ(Deliver("thief", {Reading("gpu", "GPU-own"), Reading("gpu", "GPU-invented-7")}),
            Refused());
  EXPECT_EQ(Deliver("b", {LayoutWith("b", {"GPU-b", "GPU-new"}), Reading("gpu", "GPU-b")}),
            Refused());
  // 3. The next day.
  clock_.Set(kLater + kDay + 1);
  EXPECT_EQ(Deliver("thief", {LayoutWith("thief", {"GPU-own", "GPU-more"})}), Refused());
}

TEST_F(RecorderTest, CombinesFlushedAndUnflushedSamples) {
  Open();
  Report({1, 1, 1}, 0, 150);  // 1,500 s: two flushes
  for (int round = 0; round < 2; ++round) {
    const auto power = Raw("gpu/" + telemetry::GpuName(0, 0), "power");
    ASSERT_EQ(power.size(), 150U);
    for (size_t i = 0; i < power.size(); ++i) {
      EXPECT_EQ(power[i].at, telemetry::kReportStart + static_cast<telemetry::Millis>(i) * 10'000);
    }
    if (round == 0) Crash();
    if (round == 0) Open();
  }
}

TEST_F(RecorderTest, AcknowledgesRepeatedEnvelopeWithoutChange) {
  Open();
  Report({1, 1, 1}, 0, 3);
  const Json again = telemetry::NodeReport({1, 1, 1}, 0, telemetry::kReportStart + 10'000, 2);
  EXPECT_EQ(Take(again).sequence, 3);
  Open();
  EXPECT_EQ(Take(again).sequence, 3);
  ASSERT_TRUE(recorder_->Settle().ok());
  EXPECT_EQ(Raw("gpu/" + telemetry::GpuName(0, 0), "power").size(), 3U);
  // A recreated spool counts from 1; gaps in its numbers are allowed.
  EXPECT_EQ(Take(telemetry::NodeReport({1, 1, 1}, 0, telemetry::kReportStart + 30'000, 1, "boot-2"))
                .sequence,
            1);
  EXPECT_EQ(Take(telemetry::NodeReport({1, 1, 1}, 0, telemetry::kReportStart + 40'000, 9, "boot-2"))
                .sequence,
            9);
  ASSERT_TRUE(recorder_->Settle().ok());
  EXPECT_EQ(Raw("gpu/" + telemetry::GpuName(0, 0), "power").size(), 5U);
}

TEST_F(RecorderTest, CountsNodesWhoseAgentsAreSilent) {
  const auto lines = [&] {
    recorder_->Report();
    std::vector<std::string> found;
    std::istringstream text(metrics_.Text());
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("nos_telemetry_nodes{")) found.push_back(line);
    }
    std::ranges::sort(found);
    return found;
  };
  using Lines = std::vector<std::string>;
  Open();
  Report({2, 1, 1}, 0, 1);
  EXPECT_EQ(lines(), (Lines{R"(nos_telemetry_nodes{cluster="prod",state="reporting"} 2)",
                            R"(nos_telemetry_nodes{cluster="prod",state="silent"} 0)"}));
  Report({1, 1, 1}, 1, 4);  // the first node alone, until 40 s
  EXPECT_EQ(lines(), (Lines{R"(nos_telemetry_nodes{cluster="prod",state="reporting"} 1)",
                            R"(nos_telemetry_nodes{cluster="prod",state="silent"} 1)"}));
}

TEST_F(RecorderTest, LimitsSourcesPerCluster) {
  options_.max_sources = 2;
  Open();
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(Take(telemetry::NodeReport({1, 1, 1}, 0, telemetry::kReportStart, 1, "boot-1"))
                    .status.ok());
    EXPECT_TRUE(Take(telemetry::NodeReport({1, 1, 1}, 0, telemetry::kReportStart, 1, "boot-2"))
                    .status.ok());
    EXPECT_EQ(Take(telemetry::NodeReport({1, 1, 1}, 0, telemetry::kReportStart, 1, "boot-3"))
                  .status.code(),
              Code::kExhausted);
    Json other = telemetry::NodeReport({1, 1, 1}, 0, telemetry::kReportStart, 1);
    other.get_object()["cluster"] = "other";
    EXPECT_TRUE(Take(other).status.ok());
    if (round == 0) Crash();
    if (round == 0) Open();
  }
}

TEST_F(RecorderTest, SeparatesClusters) {
  Open();
  for (int i = 0; i < 70; ++i) {  // 700 s: a flush and the rest
    const telemetry::Millis at = telemetry::kReportStart + i * int64_t{10'000};
    clock_.Set(at);
    for (const int slices : {1, 7}) {
      Json report = telemetry::NodeReport({1, 1, slices}, 0, at, i + 1);
      report.get_object()["cluster"] = slices == 1 ? "small" : "large";
      ASSERT_TRUE(Take(report).status.ok());
    }
  }
  ASSERT_TRUE(recorder_->Settle().ok());
  for (int round = 0; round < 2; ++round) {
    for (const auto& [cluster, share] :
         std::map<std::string, double>{{"small", 1.0 / 8}, {"large", 6.0 / 8}}) {
      const auto allocated = Raw("cluster", "allocated", cluster);
      ASSERT_EQ(allocated.size(), 70U) << cluster;
      for (const Bucket& bucket : allocated) EXPECT_DOUBLE_EQ(bucket.mean, share);
    }
    Open();
  }
}

TEST_F(RecorderTest, FullDiskRejectsAndLosesNothing) {
  options_.store.max_bytes = 2 << 20;
  Open();
  int64_t sequence = 1;
  Recorder::Receipt receipt;
  // Reports compress well; random data does not.
  Random random(1);
  while (sequence < 1000) {
    JsonArray records;
    records.push_back({{"kind", "event"},
                       {"at", telemetry::kReportStart + sequence},
                       {"object", {{"kind", "Pod"}, {"namespace", "a"}, {"name", "b"}}}});
    std::string noise;
    for (int i = 0; i < 20'000; ++i) noise += static_cast<char>('a' + random.Below(26));
    records.back().get_object()["message"] = noise;
    receipt = Take(telemetry::EnvelopeOf("cluster", sequence, records));
    if (!receipt.status.ok()) break;
    ++sequence;
  }
  EXPECT_EQ(receipt.status.code(), Code::kExhausted) << receipt.status.ToString();
  EXPECT_GT(sequence, 10);
  EXPECT_FALSE(recorder_->Health().ok());
  options_.store.max_bytes = 0;
  Open();
  EXPECT_EQ(Take(telemetry::EnvelopeOf("cluster", sequence - 1, {})).sequence, sequence - 1)
      << "the envelope is stored";
  EXPECT_EQ(Take(telemetry::EnvelopeOf("cluster", sequence, {})).sequence, sequence);
  ASSERT_TRUE(recorder_->Settle().ok());
  recorder_->Look("prod", [&](const Live& live) {
    const auto events = recorder_->archive().Events(
        live.id, {0, telemetry::kReportStart + kDay, {"event"}, "", 2000});
    ASSERT_TRUE(events.ok());
    EXPECT_EQ(static_cast<int64_t>(events->size()), sequence - 1);
  });
}

TEST_F(RecorderTest, RestoresStateOfAnyTime) {
  Open();
  // More events than between two checkpoints, one per second.
  const int count = 12'000, at_once = 500;
  const auto state_of = [](int i) { return i % 3 == 0 ? "pending" : "running"; };
  for (int i = 0; i < count; i += at_once) {
    JsonArray records;
    for (int j = i; j < i + at_once; ++j) {
      const telemetry::Millis at = telemetry::kReportStart + j * int64_t{1000};
      records.push_back(telemetry::PodRecord(at, "a", "p" + std::to_string(j % 10), state_of(j),
                                             "nvidia.com/mig-1g.5gb"));
    }
    clock_.Set(telemetry::kReportStart + (i + at_once) * int64_t{1000});
    ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", i / at_once + 1, records)).status.ok());
  }
  // A reporter that was offline for hours reports the state of that time.
  JsonArray late;
  late.push_back(telemetry::PodRecord(telemetry::kReportStart + 4'500, "late", "p", "running",
                                      "nvidia.com/gpu"));
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("other", 1, late)).status.ok());
  ASSERT_TRUE(recorder_->Settle().ok());
  for (const int moment : {0, 9, 4321, 7000, 11'999}) {
    State state;
    recorder_->Look("prod", [&](const Live& live) {
      EXPECT_TRUE(recorder_->archive()
                      .StateAt(live.id, telemetry::kReportStart + moment * int64_t{1000}, state)
                      .ok());
    });
    const bool was_late = moment >= 5;
    EXPECT_EQ(state.pods().size(), std::min<size_t>(10, static_cast<size_t>(moment) + 1) + was_late)
        << moment;
    const Pod* pod = state.FindPod("a", "p" + std::to_string(moment % 10));
    ASSERT_NE(pod, nullptr);
    EXPECT_EQ(pod->state, state_of(moment)) << moment;
  }
}

// The pods are deleted and a checkpoint was written since.
TEST_F(RecorderTest, DurationsSurviveRestart) {
  Open();
  JsonArray records;
  for (int i = 0; i < 20; ++i) {
    Json pod = telemetry::PodRecord(telemetry::kReportStart, "a", "job-" + std::to_string(i),
                                    "succeeded", "nvidia.com/mig-1g.5gb");
    pod.get_object()["created"] = telemetry::kReportStart - 300'000;
    pod.get_object()["scheduled"] = telemetry::kReportStart - 200'000;
    pod.get_object()["started"] = telemetry::kReportStart - 150'000;
    pod.get_object()["finished"] = telemetry::kReportStart - 50'000;
    const Json uid = *Find(pod, "uid");
    records.push_back(std::move(pod));
    records.push_back(
        {{"kind", "removed"}, {"at", telemetry::kReportStart + 1}, {"what", "pod"}, {"id", uid}});
  }
  records.push_back({{"kind", "decision"},
                     {"at", telemetry::kReportStart},
                     {"id", "plan-1"},
                     {"type", "plan"},
                     {"state", "applied"},
                     {"took_ms", 7000}});
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 1, std::move(records))).status.ok());
  JsonArray many;  // more than between two checkpoints
  for (int i = 0; i < 6000; ++i) {
    many.push_back(telemetry::PodRecord(telemetry::kReportStart + 10 + i, "b", "p",
                                        i % 2 == 0 ? "pending" : "running",
                                        "nvidia.com/mig-1g.5gb"));
  }
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 2, std::move(many))).status.ok());
  for (const char* when : {"at first", "after a restart", "after another"}) {
    ASSERT_TRUE(recorder_->Settle().ok());
    recorder_->Look("prod", [&](const Live& live) {
      const Durations& durations = live.state.durations();
      ASSERT_NE(durations.RunsOf("a//job"), nullptr) << when;
      EXPECT_EQ(*durations.RunsOf("a//job"), std::deque<telemetry::Millis>(20, 100'000)) << when;
      EXPECT_EQ(durations.WaitsSince(telemetry::kReportStart - 200'000),
                std::vector<telemetry::Millis>(20, 100'000))
          << when;
      ASSERT_EQ(live.state.decisions().size(), 1U) << when;
      EXPECT_EQ(telemetry::IntegerOr(live.state.decisions().front().second, "took_ms", 0), 7000);
    });
    Open();
  }
}

// Removed objects do not come back when events are replayed, nor when they are too old to be
// replayed.
TEST_F(RecorderTest, RemovedObjectsStayRemovedAfterRestart) {
  Open();
  const auto pod = [](const std::string& name, telemetry::Millis at) {
    return telemetry::PodRecord(telemetry::kReportStart + at, "a", name, "running",
                                "nvidia.com/mig-1g.5gb");
  };
  clock_.Set(telemetry::kReportStart + 10'000);
  Json listing{{"kind", "present"},
               {"at", telemetry::kReportStart + 100},
               {"what", "pod"},
               {"ids", JsonArray()}};
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 1, {std::move(listing)})).status.ok());
  const auto names = [&] {
    std::set<std::string> found;
    EXPECT_TRUE(recorder_->Settle().ok());
    recorder_->Look("prod", [&](const Live& live) {
      for (const auto& [uid, known] : live.state.pods()) found.insert(known.name);
    });
    return found;
  };
  int64_t sequence = 0;
  for (const char* when : {"at first", "after a restart", "after a checkpoint", "after both"}) {
    ++sequence;
    ASSERT_TRUE(Take(telemetry::EnvelopeOf("former", sequence,
                                           {pod("gone", sequence), pod("gone", 50 + sequence)}))
                    .status.ok());
    EXPECT_FALSE(names().contains("gone")) << when;
    Open();
    EXPECT_FALSE(names().contains("gone")) << when;
    if (sequence != 2) continue;
    JsonArray many;  // more than between two checkpoints
    for (int i = 0; i < 6000; ++i) {
      many.push_back(telemetry::PodRecord(telemetry::kReportStart + 200 + i, "b", "p",
                                          i % 2 == 0 ? "pending" : "running",
                                          "nvidia.com/mig-1g.5gb"));
    }
    ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 2, std::move(many))).status.ok());
    EXPECT_EQ(names(), std::set<std::string>{"p"});
    Open();
  }
  // It existed until then.
  for (const auto& [at, there] : {std::pair(60, true), std::pair(150, false)}) {
    State state;
    recorder_->Look("prod", [&](const Live& live) {
      ASSERT_TRUE(recorder_->archive().StateAt(live.id, telemetry::kReportStart + at, state).ok());
    });
    EXPECT_EQ(state.FindPod("a", "gone") != nullptr, there) << at;
  }
}

// The clock of one of two operators is a minute ahead until it is corrected.
TEST_F(RecorderTest, SourceClockAheadDoesNotFreezeState) {
  Open();
  int64_t sequence = 0;
  const auto report = [&](const char* boot, telemetry::Millis at, telemetry::Millis ahead,
                          const char* state) {
    clock_.Set(telemetry::kReportStart + at);
    Json envelope = telemetry::EnvelopeOf(
        "cluster", ++sequence,
        {telemetry::PodRecord(telemetry::kReportStart + at + ahead, "a", "p", state, "cpu")}, boot);
    envelope.get_object()["sent_at"] = telemetry::kReportStart + at + ahead;
    EXPECT_TRUE(Take(envelope).status.ok());
  };
  const auto state = [&](telemetry::Millis at) {
    State past;
    EXPECT_TRUE(recorder_->Settle().ok());
    std::string found;
    recorder_->Look("prod", [&](const Live& live) {
      if (at < 0) found = live.state.FindPod("a", "p")->state;
      if (at < 0) return;
      EXPECT_TRUE(recorder_->archive().StateAt(live.id, telemetry::kReportStart + at, past).ok());
      if (const Pod* pod = past.FindPod("a", "p"); pod != nullptr) found = pod->state;
    });
    return found;
  };
  report("ahead", 1000, 60'000, "pending");
  report("right", 2000, 0, "starting");
  EXPECT_EQ(state(-1), "starting");
  report("ahead", 3000, 60'000, "running");
  EXPECT_EQ(state(-1), "running");
  report("ahead", 3500, -4'000, "failed");  // records of one source are ordered as sent
  EXPECT_EQ(state(-1), "failed");
  for (const char* when : {"at first", "after a restart"}) {
    EXPECT_EQ(state(-1), "failed") << when;
    EXPECT_EQ(state(1500), "pending") << when;
    EXPECT_EQ(state(2500), "starting") << when;
    recorder_->Look("prod", [&](const Live& live) {
      EXPECT_LE(live.state.FreshAt("cluster"), telemetry::kReportStart + 3500) << when;
    });
    Open();
  }
}

// A virtual machine resumes with its host's time, on which server and agents run.
TEST_F(RecorderTest, ServerClockAheadDoesNotFreezeState) {
  Open();
  int64_t sequence = 0;
  const auto report = [&](telemetry::Millis clock, telemetry::Millis at, const char* source,
                          const char* state) {
    clock_.Set(telemetry::kReportStart + clock);
    EXPECT_TRUE(Take(telemetry::EnvelopeOf(source, ++sequence,
                                           {telemetry::PodRecord(telemetry::kReportStart + at, "a",
                                                                 "p", state, "cpu"),
                                            telemetry::PodRecord(telemetry::kReportStart + at, "a",
                                                                 source, "running", "cpu")}))
                    .status.ok());
    EXPECT_TRUE(recorder_->Settle().ok());
  };
  report(0, 0, "former", "pending");
  report(kHour, kHour, "next", "starting");
  report(kHour + 1000, kHour - 5000, "former", "pending");  // late
  clock_.Set(telemetry::kReportStart + 10'000);
  ASSERT_TRUE(recorder_->Settle().ok());
  const auto expect = [&](const char* state, telemetry::Millis at, const char* when) {
    recorder_->Look("prod", [&](const Live& live) {
      EXPECT_EQ(live.state.FindPod("a", "p")->state, state) << when;
      EXPECT_LE(live.state.now(), telemetry::kReportStart + at) << when;
      State past;
      EXPECT_TRUE(recorder_->archive().StateAt(live.id, telemetry::kReportStart + at, past).ok());
      EXPECT_EQ(past.FindPod("a", "p")->state, state) << when;
      State before;
      EXPECT_TRUE(
          recorder_->archive().StateAt(live.id, telemetry::kReportStart + 9000, before).ok());
      EXPECT_EQ(before.FindPod("a", "p")->state, "pending") << when;
    });
  };
  expect("starting", 10'000, "as it is set back");
  Open();
  expect("starting", 10'000, "after a restart");
  report(11'000, 11'000, "former", "running");
  expect("running", 11'000, "later");
  Open();
  expect("running", 11'000, "after another");
}

TEST_F(RecorderTest, ClockSetBackDoesNotStopFlush) {
  Open();
  clock_.Set(telemetry::kReportStart + 3'600'000);
  ASSERT_TRUE(Take(telemetry::NodeReport({1, 1, 1}, 0, telemetry::kReportStart + 3'600'000, 1))
                  .status.ok());
  ASSERT_TRUE(recorder_->Settle().ok());
  clock_.Set(telemetry::kReportStart);
  ASSERT_TRUE(Take(telemetry::NodeReport({1, 1, 1}, 0, telemetry::kReportStart, 2)).status.ok());
  ASSERT_TRUE(recorder_->Settle().ok());
  recorder_->Look("prod", [](const Live& live) { EXPECT_EQ(live.heads.samples(), 0U); });
}

TEST_F(RecorderTest, IgnoresDurationRecordsOfReporters) {
  Open();
  Durations durations;
  durations.AddRun({"a"}, 1000);
  ASSERT_TRUE(Take(telemetry::EnvelopeOf("cluster", 1, {durations.ToJson(telemetry::kReportStart)}))
                  .status.ok());
  ASSERT_TRUE(recorder_->Settle().ok());
  recorder_->Look(
      "prod", [&](const Live& live) { EXPECT_EQ(live.state.durations().RunsOf("a"), nullptr); });
}

TEST_F(RecorderTest, RecordsSlicesHeldByPod) {
  Open();
  Report({1, 1, 7}, 0, 2);
  Json gone = telemetry::NodeReport({1, 1, 0}, 0, telemetry::kReportStart + 300'000, 3);
  clock_.Set(telemetry::kReportStart + 300'000);
  ASSERT_TRUE(Take(gone).status.ok());
  ASSERT_TRUE(recorder_->Settle().ok());
  recorder_->Look("prod", [&](const Live& live) {
    const auto holds =
        recorder_->archive().Holds(live.id, "team-2/pod-0-0-2", 0, telemetry::kReportStart + kDay);
    ASSERT_TRUE(holds.ok());
    ASSERT_EQ(holds->size(), 1U);
    EXPECT_EQ(holds->front().subject, "instance/" + telemetry::InstanceName(0, 0, 2));
    EXPECT_EQ(holds->front().since, telemetry::kReportStart);
    EXPECT_EQ(holds->front().until, telemetry::kReportStart + 300'000);
  });
}

}  // namespace
}  // namespace nos::telemetryserver
