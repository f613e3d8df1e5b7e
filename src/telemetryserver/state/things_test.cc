#include "telemetryserver/state/things.h"

#include <gtest/gtest.h>

namespace nos::telemetryserver {
namespace {

telemetry::Record QuotaAt(telemetry::Millis at, int min) {
  Json body = {{"kind", "quota"}, {"at", at}, {"min", min}};
  return {at, "quota", std::move(body), {}};
}

TEST(ThingTableTest, KeepsTheLatestRecord) {
  Tombstones gone;
  ThingTable quotas("quota", gone);
  Effects effects;
  EXPECT_TRUE(quotas.Apply(QuotaAt(10, 1), "a", effects));
  EXPECT_FALSE(quotas.Apply(QuotaAt(20, 1), "a", effects));  // repeated without a change
  EXPECT_EQ(effects.changes.size(), 1U);
  EXPECT_FALSE(quotas.Apply(QuotaAt(5, 2), "a", effects));  // late: for history
  // The current record follows, because the late one would replace it in history.
  EXPECT_EQ(effects.changes.size(), 3U);
  EXPECT_EQ(telemetry::IntegerOr(quotas.all().at("a").body, "min", 0), 1);
}

TEST(ThingTableTest, LateRecordDoesNotRestoreRemovedObject) {
  Tombstones gone;
  ThingTable quotas("quota", gone);
  Effects effects;
  EXPECT_TRUE(quotas.Apply(QuotaAt(10, 1), "a", effects));
  EXPECT_FALSE(quotas.Remove(5, "a", effects));  // it was reported since
  EXPECT_TRUE(quotas.Remove(30, "a", effects));
  EXPECT_FALSE(quotas.Apply(QuotaAt(20, 1), "a", effects));
  EXPECT_TRUE(quotas.all().empty());
}

TEST(ThingTableTest, ListsObjectsMissingInAList) {
  Tombstones gone;
  ThingTable quotas("quota", gone);
  Effects effects;
  quotas.Apply(QuotaAt(10, 1), "a", effects);
  quotas.Apply(QuotaAt(10, 1), "b", effects);
  quotas.Apply(QuotaAt(40, 1), "c", effects);
  EXPECT_EQ(quotas.Unlisted({"a"}, 20), std::vector<std::string>{"b"});
}

}  // namespace
}  // namespace nos::telemetryserver
