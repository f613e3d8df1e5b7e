#include "cmd/top/screen.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/table.h"
#include "base/text.h"
#include "cmd/terminal.h"

namespace nos::cmd {
namespace {

TopPod Pod(const std::string& name, const std::string& state, const std::string& slice) {
  TopPod pod;
  pod.name = name;
  pod.state = state;
  pod.slice = slice;
  return pod;
}

// `gpus` GPUs, each with a running pod, and two pending pods.
TopData Data(size_t gpus) {
  TopData data;
  data.at = 1'763'760'000'000;
  data.rows.nodes = gpus;
  for (size_t i = 0; i < gpus; ++i) {
    const std::string node = fmt::format("node-{}", i + 1), pod = fmt::format("a/pod-{}", i + 1);
    TopGpu gpu;
    gpu.row = {
        .node = node, .index = 0, .model = "A100", .slots = 8, .spans = {{0, 1, "1g.5gb", pod}}};
    data.rows.gpus.push_back(gpu);
    data.rows.pods.push_back(Pod(pod, "running", "1g.5gb"));
    data.rows.pods.back().where = node + " gpu 0";
  }
  for (const char* name : {"b/big", "b/gated"}) {
    data.rows.pods.push_back(Pod(name, "pending", "7g.40gb"));
    data.rows.pods.back().why = "no node has room for 7g.40gb beside what is in use";
  }
  data.decisions = {
      {data.at - 60'000,
       -1,
       "reclaim",
       "applied",
       "a/pod-1 was evicted from node-1 for b/big",
       "b is owed 20 GB",
       {"e/1"}},
      {data.at - 90'000, 2400, "plan", "applied", "a/pod (2 pods) got 2 × 1g.5gb on node-1 in 2 s",
       "no free slice fitted", std::vector<std::string>(22, "plan/node-1/u/7")}};
  data.quotas = ParseJson(R"({"quotas":[{"type":"ElasticQuota","namespace":"a","name":"q",
      "resources":{"nos.nebuly.com/gpu-memory":{"min":40,"max":80,"used":60,"guaranteed":40,
      "borrowed":20,"lent":0}}}]})")
                    .value();
  return data;
}

std::string Frame(const TopScreen& screen, const TopData& data, ViewSize size = {80, 24}) {
  return screen.Render(data, size, false, "");
}

void Press(TopScreen& screen, const TopData& data, std::initializer_list<int> keys) {
  for (const int key : keys) EXPECT_TRUE(screen.Press(key, data)) << key;
}

bool Has(const std::string& frame, std::string_view text) {
  return frame.find(text) != std::string::npos;
}

TEST(TopScreenTest, EveryOfTwoThousandGpusCanBeReachedAtEightyColumns) {
  const TopData data = Data(2'000);
  TopScreen screen(TopSort::kState);
  Press(screen, data, {'2', kEnd});
  EXPECT_TRUE(Has(Frame(screen, data), "node-2000 gpu 0"));
  Press(screen, data, {kPageUp, kPageUp, kPageUp});
  EXPECT_TRUE(Has(Frame(screen, data), "node-1970 gpu 0"));
  Press(screen, data, {kHome, 'j', 'j'});
  EXPECT_TRUE(Has(Frame(screen, data), "node-3 gpu 0"));
  EXPECT_TRUE(Has(Frame(screen, data), "of 2000"));
}

TEST(TopScreenTest, OverviewScrollsFromGpusToPods) {
  const TopData data = Data(100);
  TopScreen screen(TopSort::kState);
  Press(screen, data, {kEnd});
  EXPECT_TRUE(Has(Frame(screen, data), "b/gated"));
  EXPECT_TRUE(Has(Frame(screen, data), "node-1 gpu 0")) << "GPUs stay at their first page";
}

TEST(TopScreenTest, FilterHidesOtherRowsUntilEscape) {
  const TopData data = Data(30);
  TopScreen screen(TopSort::kState);
  Press(screen, data, {'3', '/', 'B', 'I', 'G'});
  EXPECT_TRUE(Has(Frame(screen, data), "/BIG_"));
  EXPECT_TRUE(Has(Frame(screen, data), "b/big")) << "upper and lower case are the same";
  EXPECT_FALSE(Has(Frame(screen, data), "a/pod-1"));
  Press(screen, data, {'\r'});
  EXPECT_TRUE(Has(Frame(screen, data), "only rows with 'BIG'"));
  Press(screen, data, {kEscape});
  EXPECT_TRUE(Has(Frame(screen, data), "a/pod-1"));
}

TEST(TopScreenTest, KeysOfCommandsAreTextWhileAFilterIsTyped) {
  const TopData data = Data(3);
  TopScreen screen(TopSort::kState);
  Press(screen, data, {'/', 'q', 's', '?', 127});
  EXPECT_TRUE(Has(Frame(screen, data), "/qs_"));
  EXPECT_EQ(screen.sort(), TopSort::kState);
}

TEST(TopScreenTest, EnterShowsDetailsOfTheSelectedRow) {
  const TopData data = Data(3);
  TopScreen screen(TopSort::kState);
  Press(screen, data, {'4', '\r'});
  const std::string pod = Frame(screen, data);
  EXPECT_TRUE(Has(pod, "pod           b/big\n")) << pod;
  EXPECT_TRUE(Has(pod, "no node has room for 7g.40gb beside what is in use\n")) << pod;
  EXPECT_TRUE(Has(pod, "nos explain b/big")) << pod;
  Press(screen, data, {kEscape, '2', '\r'});
  EXPECT_TRUE(Has(Frame(screen, data), "slots 0 to 0: 1g.5gb used by a/pod-1\n"));
  Press(screen, data, {'\r', '5'});
  EXPECT_TRUE(
      Has(Frame(screen, data), "60s     reclaim     a/pod-1 was evicted from node-1 for b/big\n"))
      << Frame(screen, data);
  Press(screen, data, {kDown, kDown, '\r'});
  const std::string plan = Frame(screen, data, {80, 40});
  EXPECT_TRUE(Has(plan, "decision      plan, applied\n")) << plan;
  EXPECT_TRUE(Has(plan, "took          2.4 s\n")) << plan;
  EXPECT_TRUE(Has(plan, "id            and 2 more\n")) << plan;
  EXPECT_TRUE(Has(plan, "a/pod (2 pods) got 2 × 1g.5gb on node-1 in 2 s\n")) << plan;
  EXPECT_TRUE(Has(plan, "Why: no free slice fitted\n")) << plan;
  Press(screen, data, {'\r', '6', '\r'});
  EXPECT_TRUE(Has(Frame(screen, data), "gpu-memory: uses 60, guaranteed 40, borrows 20, max 80\n"));
}

TEST(TopScreenTest, WaitingShowsPendingPodsOnly) {
  const TopData data = Data(3);
  TopScreen screen(TopSort::kState);
  Press(screen, data, {'4'});
  EXPECT_TRUE(Has(Frame(screen, data), "b/gated"));
  EXPECT_FALSE(Has(Frame(screen, data), "a/pod-1"));
}

TEST(TopScreenTest, TabAndBackTabGoThroughTheViews) {
  const TopData data = Data(1);
  TopScreen screen(TopSort::kState);
  Press(screen, data, {'\t'});
  EXPECT_EQ(screen.view(), TopView::kGpus);
  Press(screen, data, {kBackTab, kBackTab});
  EXPECT_EQ(screen.view(), TopView::kQuotas);
  Press(screen, data, {'\t'});
  EXPECT_EQ(screen.view(), TopView::kOverview);
}

TEST(TopScreenTest, HelpAndQuit) {
  const TopData data = Data(1);
  TopScreen screen(TopSort::kState);
  Press(screen, data, {'?'});
  EXPECT_TRUE(Has(Frame(screen, data), "this help"));
  Press(screen, data, {'?', 'u'});
  EXPECT_FALSE(Has(Frame(screen, data), "this help"));
  EXPECT_EQ(screen.sort(), TopSort::kUtilization);
  EXPECT_FALSE(screen.Press('q', data));
}

TEST(TopScreenTest, RowsMayGoWhileTheyAreSelected) {
  TopScreen screen(TopSort::kState);
  Press(screen, Data(50), {'2', kEnd});
  EXPECT_TRUE(Has(Frame(screen, Data(1)), "node-1 gpu 0"));
  Press(screen, TopData(), {kDown, '\r', kUp, '5', '\r', '6', kEnd});
  EXPECT_FALSE(Frame(screen, TopData()).empty());
}

TEST(TopScreenTest, FitsAnyTerminal) {
  const TopData data = Data(40);
  for (const ViewSize size : {ViewSize{80, 24}, {40, 10}, {10, 5}, {1, 1}, {300, 80}}) {
    for (const int view : {'1', '2', '3', '4', '5', '6', '?'}) {
      TopScreen screen(TopSort::kState);
      Press(screen, data, {view, kEnd});
      for (const bool details : {false, true}) {
        if (details) Press(screen, data, {'\r'});
        const std::string frame = Frame(screen, data, size);
        const auto lines = Split(frame, '\n');
        EXPECT_LE(lines.size() - 1, size.lines);
        for (const auto line : lines) EXPECT_LE(DisplayWidth(line), size.columns) << line;
      }
    }
  }
}

TEST(TakeKeysTest, ReadsCharactersAndSequences) {
  std::string bytes = "a\x1b[A\x1bOB\x1b[5~\x1b[99~q";
  EXPECT_EQ(TakeKeys(bytes, false), (std::vector<int>{'a', kUp, kDown, kPageUp, 'q'}))
      << "an unknown sequence is skipped";
  EXPECT_EQ(bytes, "");
}

TEST(TakeKeysTest, WaitsForTheRestOfASequence) {
  std::string bytes = "x\x1b[";
  EXPECT_EQ(TakeKeys(bytes, false), (std::vector<int>{'x'}));
  bytes += "B";
  EXPECT_EQ(TakeKeys(bytes, false), (std::vector<int>{kDown}));
}

TEST(TakeKeysTest, ALoneEscapeIsAKey) {
  std::string bytes = "\x1b";
  EXPECT_TRUE(TakeKeys(bytes, false).empty());
  EXPECT_EQ(TakeKeys(bytes, true), (std::vector<int>{kEscape}));
  bytes = "\x1bq";
  EXPECT_EQ(TakeKeys(bytes, false), (std::vector<int>{kEscape, 'q'}));
}

}  // namespace
}  // namespace nos::cmd
