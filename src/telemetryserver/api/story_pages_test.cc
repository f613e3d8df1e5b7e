// GET stories: pages, ids, rights, and hostile parameters.
#include "telemetryserver/api/story_pages.h"

#include "telemetryserver/api/fixture_test.h"

namespace nos::telemetryserver {
namespace {

class StoryPagesTest : public ApiTest {
 protected:
  static Json Record(const std::string& id, telemetry::Millis made, telemetry::Millis at,
                     const std::string& state, const JsonArray& pods) {
    return {{"kind", "decision"},
            {"id", id},
            {"type", "plan"},
            {"made", telemetry::kReportStart + made},
            {"at", telemetry::kReportStart + at},
            {"state", state},
            {"summary", "repartitioned GPUs"},
            {"why", ""},
            {"nodes",
             {{{"node", "n-" + id},
               {"before", JsonArray()},
               {"after", {{{"index", 0}, {"profiles", {{"1g.5gb", 1}}}}}}}}},
            {"pods", pods},
            {"victims", JsonArray()}};
  }
  static Json PodNamed(const std::string& ns, const std::string& name) {
    return {{"namespace", ns}, {"name", name}};
  }
  // A decision of a namespace, planned, and applied three seconds later.
  static void Add(const std::string& id, telemetry::Millis made, const std::string& ns,
                  const std::string& pod, JsonArray& records) {
    records.push_back(Record(id, made, made, "planned", {}));
    records.push_back(Record(id, made, made + 3000, "applied", {PodNamed(ns, pod)}));
  }
  void Deliver(JsonArray records, telemetry::Millis now) {
    clock_.Set(telemetry::kReportStart + now);
    ASSERT_TRUE(
        Take(telemetry::EnvelopeOf("cluster", ++sequence_, std::move(records))).status.ok());
    ASSERT_TRUE(recorder_->Settle().ok());
  }
  // "id: sentence" of all pages.
  std::vector<std::string> All(const std::string& query, int& pages) {
    std::vector<std::string> all;
    std::string before;
    for (pages = 1; pages < 200; ++pages) {
      const Json page =
          Get("/api/v1/stories?" + query + (before.empty() ? "" : "&before=" + before));
      for (const Json& story : Find(page, "stories")->get_array()) {
        all.push_back(std::string(FindString(story, "id")) + ": " +
                      std::string(FindString(story, "sentence")));
      }
      before = FindString(page, "next");
      if (before.empty()) return all;
    }
    ADD_FAILURE() << "the pages do not end";
    return all;
  }

  int sequence_ = 0;
};

TEST_F(StoryPagesTest, PagesHaveTheSameStoriesWhateverTheirSize) {
  JsonArray records;
  // Several decisions of several jobs in each of thirty minutes.
  for (int minute = 0; minute < 30; ++minute) {
    for (int i = 0; i < 6; ++i) {
      const std::string id = std::to_string(1000 + minute * 10 + i);
      Add(id, minute * kMinute + i * 9000, "team-1", "job" + std::to_string(i % 3) + "-" + id,
          records);
    }
  }
  Deliver(std::move(records), 3 * kHour);
  int pages = 0;
  const std::vector<std::string> all = All("limit=1000", pages);
  ASSERT_EQ(all.size(), 90U);
  EXPECT_EQ(pages, 1);
  EXPECT_EQ(all.front(), "1292: team-1/job2 (2 pods) got 2 × 1g.5gb on n-1292 and n-1295");
  EXPECT_EQ(all.back(), "1000: team-1/job0 (2 pods) got 2 × 1g.5gb on n-1000 and n-1003");
  for (const int limit : {1, 2, 7, 89, 90}) {
    EXPECT_EQ(All("limit=" + std::to_string(limit), pages), all) << limit;
    EXPECT_EQ(pages, (90 + limit - 1) / limit) << limit;
  }
  // A range that begins within a minute keeps the ids of its stories.
  const std::string since = std::to_string(telemetry::kReportStart + 29 * kMinute + 30'000);
  EXPECT_EQ(All("limit=2&since=" + since, pages),
            std::vector<std::string>(all.begin(), all.begin() + 2));
  const std::string time = std::to_string(telemetry::kReportStart + kMinute);
  const Json first = Get("/api/v1/stories?limit=1000&before=" + time);
  EXPECT_EQ(Find(first, "stories")->get_array().size(), 3U);
}

TEST_F(StoryPagesTest, IdsStayTheSameAfterARestartAndWhenDecisionsJoin) {
  JsonArray records;
  Add("100", 0, "team-1", "train-1", records);
  Add("101", 5000, "team-1", "train-2", records);
  Deliver(std::move(records), 10'000);
  int pages = 0;
  const std::vector<std::string> before = All("", pages);
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before[0], "100: team-1/train (2 pods) got 2 × 1g.5gb on n-100 and n-101");
  api_.reset();
  Open();
  ASSERT_TRUE(recorder_->Settle().ok());
  Serve();
  EXPECT_EQ(All("", pages), before);
  JsonArray more;
  Add("102", 20'000, "team-1", "train-3", more);
  Deliver(std::move(more), 30'000);
  const std::vector<std::string> after = All("", pages);
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0], "100: team-1/train (3 pods) got 3 × 1g.5gb on n-100, n-101 and 1 more node");
}

// The reports of a decision may lie on both sides of a page's end.
TEST_F(StoryPagesTest, LaterReportsBelongToThePageOfTheirDecision) {
  JsonArray records;
  records.push_back(Record("100", 59'000, 59'000, "planned", {}));
  records.push_back(Record("100", 59'000, 30 * kMinute, "applied", {PodNamed("team-1", "late-1")}));
  Add("200", 10 * kMinute, "team-1", "other-1", records);
  Deliver(std::move(records), 3 * kHour);
  int pages = 0;
  EXPECT_EQ(All("limit=1", pages),
            (std::vector<std::string>{"200: team-1/other-1 got 1g.5gb on n-200",
                                      "100: team-1/late-1 got 1g.5gb on n-100"}));
}

TEST_F(StoryPagesTest, ReadersLearnNothingAboutPodsOfOtherNamespaces) {
  JsonArray records;
  Json both = Record("100", 0, 0, "applied",
                     {PodNamed("team-0", "hidden-1"), PodNamed("team-1", "seen-1")});
  both.get_object()["why"] = "team-0/hidden-1 waits for long";
  records.push_back(std::move(both));
  Add("200", kMinute, "team-0", "hidden-2", records);
  Json evicts =
      Record("300", 2 * kMinute, 2 * kMinute, "applied", {PodNamed("team-0", "hidden-3")});
  evicts.get_object()["type"] = "preemption";
  evicts.get_object()["summary"] = "evicting Pod team-1/seen-2 for team-0/hidden-3";
  evicts.get_object()["nodes"] = JsonArray();
  evicts.get_object()["victims"] = JsonArray{PodNamed("team-1", "seen-2")};
  records.push_back(std::move(evicts));
  Deliver(std::move(records), kHour);
  reader_ = {"kim", false, {"team-1"}};
  const std::string body = Ask("/api/v1/stories").body;
  for (const char* secret : {"hidden", "team-0"}) {
    EXPECT_EQ(body.find(secret), std::string::npos) << body;
  }
  int pages = 0;
  EXPECT_EQ(All("", pages),
            (std::vector<std::string>{
                "300: team-1/seen-2 was evicted for pods of other namespaces, which have a higher "
                "priority",
                "100: team-1/seen-1 and pods of other namespaces got 1g.5gb on n-100"}));
  EXPECT_EQ(All("namespace=team-1", pages).size(), 2U);
  EXPECT_TRUE(All("namespace=team-0", pages).empty());
  const Json decisions = Get("/api/v1/decisions");
  EXPECT_EQ(FindString(Find(decisions, "decisions")->get_array()[1], "story", "reason"),
            kHiddenText);
  reader_ = {"root", true, {}};
  EXPECT_EQ(All("namespace=team-1", pages).size(), 2U);
  EXPECT_EQ(All("", pages).size(), 3U);
}

TEST_F(StoryPagesTest, RefusesBadParameters) {
  Fill();
  for (const char* query : {"before=yesterday", "before=-1", "before=99999999999999999999",
                            "limit=0", "limit=1001", "since=now"}) {
    Get(std::string("/api/v1/stories?") + query, 400);
  }
  Get("/api/v1/stories?before=1763760000000.%27%3Bplan/../%F0%9F%92%A9");
  EXPECT_EQ(ToText(*ParseStoryPlace("17.plan/n.1/7")), "17.plan/n.1/7");
  EXPECT_EQ(ToText(*ParseStoryPlace("17")), "17");
}

}  // namespace
}  // namespace nos::telemetryserver
