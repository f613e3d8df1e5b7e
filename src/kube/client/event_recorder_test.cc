#include "kube/event_recorder.h"

#include <gtest/gtest.h>

#include <map>

#include "kube/testing/fake_api.h"

namespace nos::kube {
namespace {

const ObjectReference kPod{"Pod", "default", "a", "uid-a"};

class EventRecorderTest : public testing::Test {
 protected:
  void Record(std::string_view message) {
    events_.Record(client_, kPod, EventType::kNormal, "Because", message, now_);
    now_ += std::chrono::minutes(1);
  }
  int64_t Count(const Json& event) { return Find(event, "count")->to_number<int64_t>(); }

  FakeApi api_;
  Client client_{api_};
  EventRecorder events_{"test"};
  Time now_{std::chrono::seconds(1'767'225'600)};
};

TEST_F(EventRecorderTest, CountsRepeatedEvents) {
  Record("one");
  Record("one");
  Record("two");
  const std::vector<Json> all = api_.All("events");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(Count(all[0]) + Count(all[1]), 3);
}

TEST_F(EventRecorderTest, CreatesNewEventAfterExpiry) {
  Record("one");
  Record("one");
  api_.Remove("events",
              "default/" + std::string(FindString(api_.All("events")[0], "metadata", "name")));
  Record("one");
  const std::vector<Json> all = api_.All("events");
  ASSERT_EQ(all.size(), 1U) << "what is said must not get lost";
  EXPECT_EQ(Count(all[0]), 1);
}

TEST_F(EventRecorderTest, CountsRepetitionsWithinOneCall) {
  const EventNote one{kPod, EventType::kNormal, "Because", "one"};
  const EventNote two{kPod, EventType::kWarning, "Because", "two"};
  events_.RecordAll(client_, {one, two, one}, now_);
  std::map<std::string, int64_t> counts;
  for (const Json& event : api_.All("events")) {
    counts[std::string(FindString(event, "message"))] = Count(event);
  }
  EXPECT_EQ(counts, (std::map<std::string, int64_t>{{"one", 2}, {"two", 1}}));
}

TEST_F(EventRecorderTest, CountsRepetitionsAcrossCalls) {
  const EventNote one{kPod, EventType::kNormal, "Because", "one"};
  events_.RecordAll(client_, {one}, now_);
  events_.RecordAll(client_, {one, one}, now_);
  EXPECT_EQ(Count(api_.All("events")[0]), 3);
}

TEST_F(EventRecorderTest, ForgetsOldestEventsBeyondCapacity) {
  events_ = EventRecorder("test", 8);
  Record("first");
  for (int i = 0; i < 20; ++i) Record(std::to_string(i));
  Record("19");
  EXPECT_EQ(api_.All("events").size(), 21U);
  Record("first");
  EXPECT_EQ(api_.All("events").size(), 22U) << "that one was forgotten";
}

TEST_F(EventRecorderTest, ReturnsStatusOfEachNote) {
  const EventNote one{kPod, EventType::kNormal, "Because", "one"};
  const EventNote two{kPod, EventType::kNormal, "Because", "two"};
  const EventNote three{kPod, EventType::kNormal, "Because", "three"};
  ASSERT_TRUE(events_.RecordAll(client_, {one, three}, now_)[0].ok());
  api_.Remove("events",
              "default/" + std::string(FindString(api_.All("events")[0], "metadata", "name")));
  api_.intercept = [](const ApiRequest& request) {
    std::optional<Result<ApiResponse>> answer;
    const bool second = request.method == "POST" && FindString(request.body, "message") == "two";
    if (second) answer = Status(Code::kPermission, "");
    return answer;
  };
  now_ += std::chrono::minutes(1);
  const std::vector<Status> written = events_.RecordAll(client_, {two, one, three, two}, now_);
  ASSERT_EQ(written.size(), 4U);
  EXPECT_EQ(written[0].code(), Code::kPermission);
  EXPECT_TRUE(written[1].ok());
  EXPECT_TRUE(written[2].ok());
  EXPECT_EQ(written[3].code(), Code::kPermission);
  const std::vector<Json> all = api_.All("events");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(Count(all[0]) + Count(all[1]), 3) << "one had expired";
}

TEST_F(EventRecorderTest, CreatesNewEventAfterFailedWrite) {
  api_.intercept = [](const ApiRequest&) {
    return Result<ApiResponse>(Status(Code::kPermission, ""));
  };
  Record("one");
  api_.intercept = nullptr;
  Record("one");
  ASSERT_EQ(api_.All("events").size(), 1U);
  EXPECT_EQ(Count(api_.All("events")[0]), 1);
}

}  // namespace
}  // namespace nos::kube
