#include "telemetryserver/stories.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"

namespace nos::telemetryserver {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr telemetry::Millis kMinuteOne = 1'763'760'000'000;  // the begin of a period

// "team-a/web-1" for each.
JsonArray Named(const std::vector<std::string>& keys) {
  JsonArray pods;
  for (const std::string& key : keys) {
    const size_t slash = key.find('/');
    pods.push_back({{"namespace", key.substr(0, slash)}, {"name", key.substr(slash + 1)}});
  }
  return pods;
}

Json Layout(int64_t gpu, const std::map<std::string, int64_t>& profiles,
            const std::string& mode = "") {
  JsonObject counts;
  for (const auto& [profile, count] : profiles) counts[profile] = count;
  return {{"index", gpu}, {"profiles", std::move(counts)}, {"sharing_mode", mode}};
}

Json OnNode(const std::string& node, JsonArray before, JsonArray after) {
  return {{"node", node}, {"before", std::move(before)}, {"after", std::move(after)}};
}

// A plan that creates two instances on GPU 0 of the node.
Json Plan(const std::string& id, telemetry::Millis after, const std::vector<std::string>& pods,
          const std::string& node = "n-1", const std::string& state = "applied") {
  JsonObject record{{"kind", "decision"},
                    {"id", id},
                    {"type", "plan"},
                    {"at", kMinuteOne + after},
                    {"made", kMinuteOne + after},
                    {"summary", "repartitioned GPUs of Node " + node},
                    {"nodes", {OnNode(node, {Layout(0, {})}, {Layout(0, {{"2g.20gb", 2}})})}},
                    {"pods", Named(pods)},
                    {"victims", JsonArray()},
                    {"state", state},
                    {"why", ""}};
  if (state == "applied") record["took_ms"] = 2400;
  return record;
}

Json Eviction(const std::string& id, const std::string& type,
              const std::vector<std::string>& victims, const std::vector<std::string>& pods) {
  return {{"kind", "decision"},  {"id", id},
          {"type", type},        {"at", kMinuteOne},
          {"made", kMinuteOne},  {"summary", "evicting Pod"},
          {"node", "n-7"},       {"nodes", JsonArray()},
          {"pods", Named(pods)}, {"victims", Named(victims)},
          {"state", "applied"},  {"why", "an elastic quota guarantees these resources"}};
}

Json Scaling(const std::string& id, telemetry::Millis after, const std::string& summary,
             const std::string& state, const std::string& node, const std::string& why) {
  return {{"kind", "decision"},
          {"id", id},
          {"type", "scale"},
          {"at", kMinuteOne + after},
          {"made", kMinuteOne + after},
          {"summary", summary},
          {"node", node},
          {"nodes", JsonArray()},
          {"pods", JsonArray()},
          {"victims", JsonArray()},
          {"state", state},
          {"why", why}};
}

Json With(Json record, std::string_view key, const Json& value) {
  record.get_object()[key] = value;
  return record;
}

std::string SentenceOf(const Json& record) { return StoryOf(record).sentence; }

std::vector<std::string> Sentences(const std::vector<Json>& records) {
  std::vector<std::string> sentences;
  for (const Story& story : StoriesOf(records)) sentences.push_back(story.sentence);
  return sentences;
}

TEST(StoriesTest, PlansOfOneBatchAreOneStory) {
  const std::vector<Json> plans = {
      Plan("p/a", 1000, {"research/sweep-1", "research/sweep-2"}),
      With(Plan("p/b", 1020, {"research/sweep-3"}, "n-2"), "took_ms", 4100),
      Plan("p/c", 1030, {"ml/web-1"}, "n-3"), Plan("p/d", kStoryPeriod + 10, {"research/sweep-4"})};
  const std::vector<Story> stories = StoriesOf(plans);
  ASSERT_EQ(stories.size(), 3U);
  EXPECT_EQ(stories[0].sentence, "research/sweep-4 got 2 × 2g.20gb on n-1 in 2 s");
  EXPECT_EQ(stories[1].sentence, "ml/web-1 got 2 × 2g.20gb on n-3 in 2 s");
  const Story& batch = stories[2];
  EXPECT_EQ(batch.sentence, "research/sweep (3 pods) got 4 × 2g.20gb on n-1 and n-2 in 4 s");
  EXPECT_EQ(batch.subject, "research/sweep (3 pods)");
  EXPECT_EQ(batch.id, "p/a");
  EXPECT_EQ(batch.from, kMinuteOne + 1000);
  EXPECT_EQ(batch.at, kMinuteOne + 1020);
  EXPECT_EQ(batch.took_ms, 4100);
  EXPECT_EQ(batch.outcome, "applied");
  EXPECT_THAT(batch.decisions, ElementsAre("p/a", "p/b"));
  EXPECT_EQ(batch.created.at("2g.20gb"), 4);
  EXPECT_EQ(batch.reason,
            "research/sweep (3 pods) waited for 4 × 2g.20gb, and no free slice fitted");
}

TEST(StoriesTest, IdsDoNotDependOnOrderOrOnOtherMinutes) {
  std::vector<Json> plans;
  for (int i = 0; i < 40; ++i) {
    plans.push_back(Plan("p/" + std::to_string(100 + i), i * kStoryPeriod / 4, {"a/train-1"}));
  }
  const auto ids = [](const std::vector<Json>& records) {
    std::vector<std::string> found;
    for (const Story& story : StoriesOf(records)) found.push_back(story.id);
    return found;
  };
  const std::vector<std::string> all = ids(plans);
  ASSERT_EQ(all.size(), 10U);
  EXPECT_EQ(all.back(), "p/100");
  std::vector<Json> reversed(plans.rbegin(), plans.rend());
  EXPECT_EQ(ids(reversed), all);
  const std::vector<Json> last(plans.begin() + 20, plans.end());
  EXPECT_EQ(ids(last), std::vector<std::string>(all.begin(), all.begin() + 5));
}

TEST(StoriesTest, ADecisionCountsOnceAsReportedLast) {
  const Json planned = Plan("p/a", 0, {}, "n-1", "planned");
  const Json served = With(Plan("p/a", 0, {"a/web-1"}), "at", kMinuteOne + 9000);
  EXPECT_THAT(Sentences({planned}), ElementsAre("Creating 2 × 2g.20gb on n-1"));
  EXPECT_THAT(Sentences({served, planned}), ElementsAre("a/web-1 got 2 × 2g.20gb on n-1 in 2 s"));
  EXPECT_THAT(Sentences({planned, served}), ElementsAre("a/web-1 got 2 × 2g.20gb on n-1 in 2 s"));
}

TEST(StoriesTest, SayWhatAPlanTookAndGave) {
  const auto plan = [](JsonArray before, JsonArray after, const std::vector<std::string>& pods) {
    return With(Plan("p", 0, pods), "nodes",
                JsonArray{OnNode("n-1", std::move(before), std::move(after))});
  };
  const Json whole = Layout(0, {{"7g.40gb", 1}}, "MIG"),
             halves = Layout(0, {{"3g.20gb", 2}}, "MIG");
  EXPECT_EQ(SentenceOf(plan({whole}, {halves}, {"a/web-1"})),
            "a/web-1 got 2 × 3g.20gb on n-1 in 2 s, in place of free 7g.40gb");
  EXPECT_EQ(SentenceOf(plan({whole}, {halves}, {})),
            "Created 2 × 3g.20gb on n-1 in 2 s, in place of free 7g.40gb");
  EXPECT_EQ(SentenceOf(plan({whole}, {Layout(0, {}, "MIG")}, {})),
            "Removed free 7g.40gb on n-1 in 2 s");
  EXPECT_EQ(SentenceOf(plan({Layout(0, {}, "MIG")}, {Layout(0, {}, "MPS")}, {})),
            "Repartitioned n-1 in 2 s; GPU 0 of n-1 changed from MIG to MPS");
  EXPECT_EQ(
      SentenceOf(plan({}, {Layout(0, {{"shared", 4}}), Layout(1, {{"gpu", 1}})}, {"a/chat-1"})),
      "a/chat-1 got 4 × time slice and whole GPU on n-1 in 2 s");
}

TEST(StoriesTest, SayHowAPlanEnded) {
  EXPECT_EQ(SentenceOf(With(Plan("p", 0, {}, "n-1", "failed"), "why", "GPU 0: in use")),
            "Failed to create 2 × 2g.20gb on n-1: GPU 0: in use");
  EXPECT_EQ(SentenceOf(Plan("p", 0, {}, "n-1", "superseded")),
            "Planned 2 × 2g.20gb on n-1, but a later plan replaced it");
  const std::vector<Json> plans = {Plan("p/a", 0, {}, "n-1", "planned"),
                                   Plan("p/b", 10, {}, "n-2", "planned"),
                                   With(Plan("p/c", 20, {}, "n-3", "failed"), "why", "no memory"),
                                   Plan("p/d", kStoryPeriod, {"a/web-1"}, "n-2")};
  EXPECT_THAT(Sentences(plans),
              ElementsAre("a/web-1 got 2 × 2g.20gb on n-2 in 2 s",
                          "Failed to create 2 × 2g.20gb on n-3: no memory",
                          "Planned 2 × 2g.20gb on n-2, but a later plan replaced it",
                          "Creating 2 × 2g.20gb on n-1"));
}

TEST(StoriesTest, EvictionsNameForWhomAndWhy) {
  EXPECT_EQ(SentenceOf(Eviction("e", "preemption", {"a/train-3"}, {"b/serve-1"})),
            "a/train-3 was evicted from n-7 for b/serve-1, which has a higher priority");
  EXPECT_EQ(
      SentenceOf(Eviction("e", "reclaim", {"a/train-3"}, {"b/serve-1"})),
      "a/train-3 was evicted from n-7 for b/serve-1, within the guarantee of its elastic quota");
  EXPECT_EQ(SentenceOf(Eviction("e", "reclaim", {"a/train-3"}, {})),
            "a/train-3 was evicted from n-7 for a pod to which an elastic quota guarantees the "
            "resources");
  EXPECT_EQ(StoryOf(Eviction("e", "reclaim", {"a/train-3"}, {})).reason,
            "an elastic quota guarantees these resources");
  EXPECT_THAT(
      Sentences({Eviction("e/1", "preemption", {"a/train-3"}, {"b/serve-1"}),
                 Eviction("e/2", "preemption", {"a/x"}, {"b/serve-2"})}),
      ElementsAre("a/train-3 and a/x were evicted from n-7 for b/serve (2 pods), which have "
                  "a higher priority"));
}

TEST(StoriesTest, MovesAndScalingHaveTheWordsOfTheirReporter) {
  Json move = With(Eviction("m", "move", {"a/train-3"}, {}), "node", "");
  move.get_object()["why"] = "its placeholder runs on Node n-2";
  EXPECT_EQ(SentenceOf(move), "a/train-3 was moved: its placeholder runs on Node n-2");
  Json made = With(Eviction("m", "move", {}, {"a/big"}), "node", "");
  made.get_object()["summary"] = "Moved other pods for a/big";
  made.get_object()["why"] = "Moved other Pods to make room for Pod a/big";
  EXPECT_EQ(SentenceOf(made), "Moved other Pods to make room for Pod a/big");
  EXPECT_EQ(SentenceOf(Scaling("s", 0, "Added nodes to pool a100", "applied", "",
                               "Scaling up NodePool a100 to 3 Nodes from 2: for ml/a")),
            "Scaling up NodePool a100 to 3 Nodes from 2: for ml/a");
  EXPECT_EQ(
      SentenceOf(Scaling("s", 0, "Removed node n-9", "applied", "n-9", "Removed by NodePool x")),
      "Removed node n-9: Removed by NodePool x");
  EXPECT_THAT(Sentences({Scaling("s/1", 0, "No nodes arrived in pool a", "failed", "", ""),
                         Scaling("s/2", 9, "No nodes arrived in pool a", "failed", "", "")}),
              ElementsAre("No nodes arrived in pool a (2 times)"));
}

TEST(StoriesTest, ALaterDecisionEndsTheDrainingOfANode) {
  const Json drain = Scaling("s/1", 0, "Draining node n-9", "planned", "n-9", ""),
             gone = Scaling("s/2", 2 * kStoryPeriod, "Removed node n-9", "applied", "n-9", ""),
             other = Scaling("s/3", 0, "Draining node n-8", "planned", "n-8", "");
  std::vector<std::string> outcomes;
  for (const Story& story : StoriesOf(std::vector{drain, gone, other})) {
    outcomes.push_back(story.sentence + " " + story.outcome);
  }
  EXPECT_THAT(outcomes, ElementsAre("Removed node n-9 applied", "Draining node n-8 planned",
                                    "Draining node n-9 applied"));
  const std::vector<Json> shown = WithStories({drain, gone});
  EXPECT_EQ(FindString(shown[0], "state"), "applied");
  EXPECT_EQ(FindString(shown[0], "story", "sentence"), "Draining node n-9");
}

TEST(StoriesTest, SaysThatPodsOfOtherNamespacesAreLeftOut) {
  Json plan = With(Plan("p", 0, {"a/web-1"}), "hidden_pods", true);
  EXPECT_EQ(SentenceOf(plan), "a/web-1 and pods of other namespaces got 2 × 2g.20gb on n-1 in 2 s");
  const Json reclaim = Eviction("e", "reclaim", {"a/train-3"}, {});
  EXPECT_EQ(SentenceOf(With(reclaim, "hidden_pods", true)),
            "a/train-3 was evicted from n-7 for pods of other namespaces, within the guarantee of "
            "their elastic quota");
  const Json gained = Eviction("e", "preemption", {}, {"a/serve-1"});
  const Story story = StoryOf(With(gained, "hidden_victims", true));
  EXPECT_EQ(story.sentence,
            "Pods of other namespaces were evicted from n-7 for a/serve-1, which has a higher "
            "priority");
  EXPECT_EQ(story.subject, "Pods of other namespaces");
  const Json failed = With(Plan("p", 0, {}, "n-1", "failed"), "why", Json(kHiddenText));
  EXPECT_EQ(SentenceOf(failed),
            "Failed to create 2 × 2g.20gb on n-1 (the reason includes data of other namespaces)");
  const Json words =
      Scaling("s", 0, std::string(kHiddenText), "applied", "", std::string(kHiddenText));
  EXPECT_EQ(SentenceOf(words), "A decision of type scale includes data of other namespaces");
}

TEST(StoriesTest, LongListsAreCutWithACount) {
  std::vector<std::string> pods;
  for (int i = 0; i < 300; ++i) pods.push_back(fmt::format("a/job{}-{}", i % 5, i));
  std::vector<Json> plans;
  for (int i = 0; i < 150; ++i) {
    plans.push_back(Plan(fmt::format("p/{:03}", i), i, pods, fmt::format("n-{}", i)));
  }
  const std::vector<Story> stories = StoriesOf(plans);
  ASSERT_EQ(stories.size(), 1U);
  EXPECT_EQ(
      stories[0].sentence,
      "a/job0 (60 pods), a/job1 (60 pods) and 180 more pods got 300 × 2g.20gb on n-0, n-1 and "
      "148 more nodes in 2 s");
  const Json json = StoryJson(stories[0]);
  EXPECT_EQ(Find(json, "pods")->get_array().size(), kMaxStoryPods);
  EXPECT_EQ(telemetry::IntegerOr(json, "more_pods", 0), 300 - int64_t{kMaxStoryPods});
  EXPECT_EQ(Find(json, "nodes")->get_array().size(), kMaxStoryNodes);
  EXPECT_EQ(telemetry::IntegerOr(json, "more_nodes", 0), 150 - int64_t{kMaxStoryNodes});
  EXPECT_EQ(telemetry::IntegerOr(json, "more_decisions", 0), 150 - int64_t{kMaxStoryDecisions});
  EXPECT_EQ(Find(json, "more_victims"), nullptr);
  EXPECT_EQ(SlicesText({{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}}),
            "4 × d, 3 × c, 2 × b and 1 other size");
  EXPECT_EQ(SlicesText({{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}}),
            "5 × e, 4 × d, 3 × c and 2 other sizes");
}

// Records come from reporters that may be broken or hostile.
TEST(StoriesTest, HostileTextIsPrintedAndNothingElse) {
  Json plan = Plan("p", 0, {"a\n/\x1b[2Jweb"}, "n\r1");
  const std::string sentence = SentenceOf(plan);
  EXPECT_EQ(sentence, "a?/?[2Jweb got 2 × 2g.20gb on n?1 in 2 s");
  const std::string longest(100'000, 'x');
  const Story big = StoryOf(Plan("p", 0, {"a/" + longest}, longest));
  EXPECT_LT(big.sentence.size(), 1000U);
  const Json failed = With(Plan("p", 0, {}, "n", "failed"), "why", Json(longest + "\n"));
  EXPECT_LT(SentenceOf(failed).size(), 2000U);
  for (const char* odd :
       {R"({"id":"x","type":"plan","nodes":7,"pods":{},"victims":null,"at":"soon"})",
        R"({"id":"x","type":"plan","nodes":[7,{"node":1,"before":[{"index":1e300,"profiles":[1]}],
            "after":[{"profiles":{"a":1e300,"b":-5,"c":9223372036854775807,"d":"2"}}]}],
            "pods":["p",{"name":5}],"took_ms":-9e18})",
        R"({"id":"x","type":7,"summary":[],"why":{},"state":{}})", R"({})", R"([])", R"("x")"}) {
    const std::vector<Json> records = {ParseJson(odd).value()};
    const std::vector<Story> stories = StoriesOf(records);
    ASSERT_EQ(stories.size(), 1U) << odd;
    EXPECT_FALSE(stories[0].sentence.empty()) << odd;
    EXPECT_FALSE(stories[0].reason.empty()) << odd;
    EXPECT_EQ(WithStories(records).size(), 1U) << odd;
  }
  EXPECT_THAT(StoriesOf({}), IsEmpty());
}

}  // namespace
}  // namespace nos::telemetryserver
