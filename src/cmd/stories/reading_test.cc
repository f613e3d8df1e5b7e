#include "cmd/stories/reading.h"

#include <gtest/gtest.h>

namespace nos::cmd {
namespace {

TEST(StoryRowsTest, PrintsWhatTheServerComposed) {
  const Json answer = ParseJson(R"({"stories":[
      {"id":"p/1","type":"plan","outcome":"applied","at":1000,"took_ms":2400,
       "sentence":"a/web (2 pods) got 2 × 1g.5gb on n-1 in 2 s","reason":"no free slice fitted",
       "decisions":["p/1","p/2"]},
      {"id":"e/1","type":"reclaim","outcome":"applied","at":0,"took_ms":null,
       "sentence":"a/\u001b[2J was evicted","reason":"","decisions":[]}],"next":null})")
                          .value();
  const std::vector<StoryRow> rows = StoryRows(answer);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].took_ms, 2400);
  EXPECT_EQ(rows[0].reason, "no free slice fitted");
  EXPECT_EQ(rows[0].decisions, (std::vector<std::string>{"p/1", "p/2"}));
  EXPECT_EQ(rows[1].took_ms, -1);
  EXPECT_EQ(StoriesTable(rows).ToString(80),
            "TIME                  KIND     OUTCOME  STORY\n"
            "1970-01-01T00:00:01Z  plan     applied  a/web (2 pods) got 2 × 1g.5gb on n-1 in…\n"
            "1970-01-01T00:00:00Z  reclaim  applied  a/?[2J was evicted\n");
}

// Another server may answer anything.
TEST(StoryRowsTest, TakesOddAnswers) {
  for (const char* odd : {"[]", "7", R"({"stories":7})", R"({"stories":[]})", "{}"}) {
    EXPECT_TRUE(StoryRows(ParseJson(odd).value()).empty()) << odd;
  }
  const auto rows = StoryRows(
      ParseJson(R"({"stories":[7,{"at":"x","type":[],"decisions":{"a":1}},{"decisions":[1]}]})")
          .value());
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[1].at, 0);
  EXPECT_TRUE(rows[2].decisions.empty());
}

}  // namespace
}  // namespace nos::cmd
