#include "telemetryserver/state/durations.h"

#include <gtest/gtest.h>

namespace nos::telemetryserver {
namespace {

TEST(DurationsTest, RecordRestoresDurations) {
  Durations durations;
  for (int i = 0; i < 300; ++i) durations.AddRun({"a/Job/train", "a"}, i);
  durations.AddRun({"b"}, 7);
  durations.AddWait(1'000, 30);  // two hours before
  durations.AddWait(7'000'000, 50);
  const Json record = durations.ToJson(7'201'000);
  ASSERT_TRUE(Durations::IsRecord(record));
  Durations again;
  again.AddRun({"c"}, 1);
  again.Read(*ParseJson(WriteJson(record)));
  EXPECT_EQ(again.ToJson(7'201'000), record);
  ASSERT_NE(again.RunsOf("a"), nullptr);
  EXPECT_EQ(again.RunsOf("a")->size(), Durations::kMaxRuns);
  EXPECT_EQ(again.RunsOf("a")->back(), 299);
  EXPECT_EQ(again.RunsOf("c"), nullptr) << "it replaces the previous content";
  EXPECT_EQ(again.WaitsSince(0), std::vector<telemetry::Millis>{50});
}

TEST(DurationsTest, DropsOldestKeys) {
  Durations durations;
  for (size_t i = 0; i < Durations::kMaxKeys; ++i) {
    durations.AddRun({"job-" + std::to_string(i)}, 1);
  }
  durations.AddRun({"job-0"}, 2);
  durations.AddRun({"new"}, 3);
  EXPECT_NE(durations.RunsOf("new"), nullptr);
  EXPECT_EQ(durations.RunsOf("job-1"), nullptr);
  ASSERT_NE(durations.RunsOf("job-0"), nullptr) << "the key had recent additions";
  EXPECT_EQ(*durations.RunsOf("job-0"), (std::deque<telemetry::Millis>{1, 2}));
}

TEST(DurationsTest, IgnoresInvalidDurations) {
  Durations durations;
  durations.Read(*ParseJson(R"({"kind":"durations","runs":[["a",5,-1,"x",null,6],[7,8],[],{},"b"],)"
                            R"("waits":[[1],[2,"x"],[3,4],5]})"));
  ASSERT_NE(durations.RunsOf("a"), nullptr);
  EXPECT_EQ(*durations.RunsOf("a"), (std::deque<telemetry::Millis>{5, 6}));
  EXPECT_EQ(durations.WaitsSince(0), std::vector<telemetry::Millis>{4});
  durations.Read(*ParseJson(R"({"kind":"durations","runs":3})"));
  EXPECT_EQ(durations.RunsOf("a"), nullptr);
}

}  // namespace
}  // namespace nos::telemetryserver
