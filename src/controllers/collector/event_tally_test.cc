#include "controllers/collector/event_tally.h"

#include <gtest/gtest.h>

namespace nos::controllers {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const Time kNow{std::chrono::hours(500'000)};

cluster::KubernetesEvent EventOf(const std::string& uid, int32_t count = 1, Time last = kNow) {
  cluster::KubernetesEvent event;
  event.meta.uid = uid;
  event.kind = "Pod";
  event.ns = "team";
  event.name = "p";
  event.reason = "FailedScheduling";
  event.message = "no room";
  event.type = "Warning";
  event.count = count;
  event.last = last;
  return event;
}

int64_t CountOf(const std::vector<JsonObject>& records) {
  return records.empty() ? 0 : records[0].if_contains("count")->as_int64();
}

TEST(EventTally, ReportsRepeatedEventLessAndLessOften) {
  EventTally events;
  events.Put(EventOf("u"));
  EXPECT_EQ(CountOf(events.Take(kNow)), 1);
  std::string counts;
  for (int32_t count = 1; count <= 1000; ++count) {
    events.Put(EventOf("u", count, kNow + seconds(count)));
    if (const int64_t said = CountOf(events.Take(kNow))) counts += std::to_string(said) + " ";
  }
  EXPECT_EQ(counts, "2 4 8 16 32 64 128 256 512 ");
  events.Put(EventOf("u", 1001, kNow + minutes(70)));
  EXPECT_EQ(CountOf(events.Take(kNow)), 1001) << "an hour has passed";
}

TEST(EventTally, RecordHasTimeOfEventAndBoundedSize) {
  EventTally events;
  cluster::KubernetesEvent event = EventOf("u", 1, kNow - minutes(5));
  event.message = std::string(5000, 'x');
  event.reason = std::string(5000, 'y');
  event.type = "<script>";
  events.Put(event);
  const auto records = events.Take(kNow);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].if_contains("at")->as_int64(), int64_t{500'000} * 3'600'000 - 300'000);
  EXPECT_LE(WriteJson(records[0]).size(), 2000U);
  EXPECT_EQ(*records[0].if_contains("type"), Json("Normal"));
  EXPECT_EQ(WriteJson(*records[0].if_contains("object")),
            R"({"kind":"Pod","namespace":"team","name":"p"})");
}

TEST(EventTally, DropsOldestEventsAndCountsThem) {
  EventTally events;
  const size_t many = EventTally::kMaxWaiting + 100;
  for (size_t i = 0; i < many; ++i) events.Put(EventOf("u" + std::to_string(i)));
  EXPECT_EQ(events.dropped(), 100U);
  auto records = events.Take(kNow);
  EXPECT_EQ(records.size(), static_cast<size_t>(EventTally::kBurst));
  EXPECT_EQ(*records[0].if_contains("id"), Json("u100"));
  EXPECT_TRUE(events.Take(kNow).empty());
  EXPECT_EQ(events.Take(kNow + seconds(2)).size(), static_cast<size_t>(2 * EventTally::kPerSecond));
  EXPECT_TRUE(events.Take(kNow + seconds(1)).empty()) << "a clock that jumps back gives no tokens";
}

TEST(EventTally, QueuedEventIsReportedInItsLatestState) {
  EventTally events;
  for (size_t i = 0; i < static_cast<size_t>(EventTally::kBurst); ++i) {
    events.Put(EventOf("u" + std::to_string(i)));
  }
  (void)events.Take(kNow);
  events.Put(EventOf("late", 1));
  events.Put(EventOf("late", 5));
  const auto records = events.Take(kNow + minutes(1));
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(CountOf(records), 5);
}

}  // namespace
}  // namespace nos::controllers
