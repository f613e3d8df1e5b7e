#include "telemetryserver/state/tombstones.h"

#include <gtest/gtest.h>

namespace nos::telemetryserver {
namespace {

TEST(GoneTest, RemovedOrUnlistedObjectsAreGone) {
  Tombstones gone;
  EXPECT_EQ(gone.Since("pod", "a"), -1);
  gone.Remove("pod", "a", 20);
  gone.Remove("pod", "a", 10);
  EXPECT_EQ(gone.Since("pod", "a"), 20);
  EXPECT_EQ(gone.Since("job", "a"), -1);
  gone.List("pod", 15);
  EXPECT_EQ(gone.Since("pod", "a"), 20);
  EXPECT_EQ(gone.Since("pod", "b"), 15);
  gone.List("pod", 30);
  gone.List("pod", 25);
  EXPECT_EQ(gone.Since("pod", "a"), 30);
  EXPECT_EQ(gone.ListedAt("pod"), 30);
}

TEST(GoneTest, DropsOldestRemovalsFirst) {
  Tombstones gone;
  const auto count = static_cast<telemetry::Millis>(Tombstones::kMaxRemovalsPerKind) + 5;
  for (telemetry::Millis i = count; i > 0; --i) gone.Remove("pod", std::to_string(i), i);
  EXPECT_EQ(gone.Since("pod", "5"), -1);
  EXPECT_EQ(gone.Since("pod", "6"), 6);
  EXPECT_EQ(gone.Since("pod", std::to_string(count)), count);
}

TEST(GoneTest, RecordRestoresTombstones) {
  Tombstones gone;
  gone.List("pod", 10);
  gone.List("node", 12);
  gone.Remove("pod", "a", 20);
  gone.Remove("job", "b", 5);
  const Json record = gone.ToJson(100);
  EXPECT_TRUE(Tombstones::IsRecord(record));
  Tombstones again;
  again.Read(record);
  again.Read(record);
  EXPECT_EQ(again.ToJson(100), record);
  again.Read(*ParseJson(R"({"kind":"gone","listed":[["pod"],7,["pod","x"]],"removed":{}})"));
  EXPECT_EQ(again.ToJson(100), record) << "damaged entries are skipped";
}

}  // namespace
}  // namespace nos::telemetryserver
