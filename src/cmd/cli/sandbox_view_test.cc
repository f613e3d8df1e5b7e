#include "cmd/sandbox_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/table.h"
#include "base/text.h"
#include "cmd/terminal.h"

namespace nos::cmd {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

GpuRow Row() {
  return {"node-1", 0, "A100-40GB", 8, {{0, 1, "1g.5gb", "a/web"}, {4, 4, "3g.20gb", ""}}, false};
}

TEST(SandboxViewTest, DrawsUsedFreeAndEmptySlots) {
  EXPECT_EQ(RenderSlots(Row(), 9, false),
            "|web 1g.…|..........................|3g.20gb free                       |");
}

// The row has the width of eight slots, divided by memory; the last share is too narrow for a
// border.
TEST(SandboxViewTest, DrawsMpsSharesInSequence) {
  GpuRow row{"node-1",
             0,
             "MPS-39GB",
             39,
             {{7, 10, "10gb", "a/web"}, {0, 20, "20gb", ""}, {9, 1, "1gb", "a/x"}},
             false,
             true};
  LayOut(row.spans);
  EXPECT_EQ(RenderSlots(row, 4, false), "|20gb free      |web 10…||......|");
  EXPECT_EQ(DisplayWidth(RenderSlots(row, 1, false)), 9u);
}

TEST(SandboxViewTest, DrawsOneLinePerPool) {
  ViewModel model;
  model.gpus.push_back(Row());
  const std::string without = RenderFrame(model, {100, 20}, false);
  EXPECT_EQ(without.find("pool "), std::string::npos) << without;
  model.pools.push_back({"a100", 2, 1, 0, 1, 4, 3.256});
  const std::string frame = RenderFrame(model, {100, 20}, false);
  EXPECT_THAT(
      Split(frame, '\n'),
      Contains("pool a100               2 nodes   1 coming   0 going   (1 to 4)   cost 3.26"));
  model.pools[0].nodes = 1;
  EXPECT_THAT(
      Split(RenderFrame(model, {100, 20}, false), '\n'),
      Contains("pool a100               1 node    1 coming   0 going   (1 to 4)   cost 3.26"));
  for (int i = 0; i < 50; ++i) model.pools.push_back(model.pools[0]);
  const std::string many = RenderFrame(model, {60, 20}, false);
  EXPECT_LE(std::ranges::count(many, '\n'), 20) << many;
  for (const auto line : Split(many, '\n')) EXPECT_LE(DisplayWidth(line), 60u) << line;
}

// A time slice takes the slots of its placement, a whole GPU takes all slots.
TEST(SandboxViewTest, ShowsSharingModeOfEachGpu) {
  ViewModel model;
  model.gpus.push_back(Row());
  model.gpus[0].sharing_mode = "MIG";
  const std::string only_mig = RenderFrame(model, {100, 20}, false);
  EXPECT_EQ(only_mig.find("MIG"), std::string::npos) << "nothing else is possible: " << only_mig;
  GpuRow turns{"node-2", 0, "H100-80GB", 8, {{2, 2, "shared", "a/x"}, {4, 2, "shared", ""}}, false};
  turns.sharing_mode = "time slices";
  GpuRow whole{"node-2", 1, "H100-80GB", 8, {{0, 8, "gpu", "a/train"}}, false};
  whole.sharing_mode = "whole";
  model.gpus.push_back(turns);
  model.gpus.push_back(whole);
  const std::string frame = RenderFrame(model, {100, 20}, false);
  EXPECT_EQ(frame,
            "nos sandbox   time 0s   speed 1x   running 0   waiting 0   finished 0   "
            "Ctrl-C ends it\n"
            "\n"
            "node-1 gpu 0 A100-40GB   MIG         "
            "|web 1…|....................|3g.20gb free               |\n"
            "node-2 gpu 0 H100-80GB   time slices "
            "|.............|x shared     |shared free  |.............|\n"
            "node-2 gpu 1 H100-80GB   whole       "
            "|train gpu                                              |\n"
            "\n"
            "WAITING\n"
            "  no pod is waiting\n"
            "DECISIONS, newest first\n"
            "\n");
  const std::string narrow = RenderFrame(model, {60, 20}, false);
  EXPECT_EQ(narrow.find("time slices"), std::string::npos) << narrow;
  for (const auto line : Split(frame, '\n')) EXPECT_LE(DisplayWidth(line), 100u) << line;
}

TEST(SandboxViewTest, RowsOfOneModelHaveEqualWidth) {
  GpuRow empty = Row();
  empty.spans.clear();
  for (size_t cell : {2, 5, 9}) {
    EXPECT_EQ(DisplayWidth(RenderSlots(Row(), cell, false)),
              DisplayWidth(RenderSlots(empty, cell, false)));
    EXPECT_EQ(DisplayWidth(RenderSlots(empty, cell, false)), 1 + 8 * cell);
  }
}

TEST(SandboxViewTest, FitsTerminalOfAnySize) {
  ViewModel model;
  for (int i = 0; i < 50; ++i) {
    model.gpus.push_back(Row());
    model.waiting.push_back({"default/pod", "1x7g", std::string(200, 'x'), {}});
    model.decisions.push_back({{}, std::string(200, 'y')});
  }
  model.hint = std::string(200, 'h');
  for (const ViewSize size :
       {ViewSize{100, 40}, ViewSize{100, 12}, ViewSize{60, 24}, ViewSize{33, 40}, ViewSize{20, 40},
        ViewSize{10, 12}, ViewSize{9, 12}, ViewSize{3, 12}}) {
    const std::string frame = RenderFrame(model, size, false);
    const auto lines = Split(frame, '\n');
    EXPECT_LE(lines.size() - 1, size.lines);
    for (const auto line : lines) EXPECT_LE(DisplayWidth(line), size.columns) << line;
  }
}

TEST(SandboxViewTest, TruncatesDecisionsBetweenWords) {
  ViewModel model;
  model.decisions.push_back({{}, "a/web got 1g.5gb on node-1 in 2 s"});
  const auto lines = [&](size_t width) { return RenderFrame(model, {width, 20}, false); };
  EXPECT_THAT(lines(80), HasSubstr("\n      0s ago  a/web got 1g.5gb on node-1 in 2 s\n"));
  EXPECT_THAT(lines(40), HasSubstr("\n      0s ago  a/web got 1g.5gb on …\n"));
}

TEST(SandboxViewTest, TruncatesReasonsBetweenWords) {
  ViewModel model;
  model.waiting.push_back({"default/p", "1x7g", "no room for 1 x 7g.40gb beside the pods", {}});
  const std::string frame = RenderFrame(model, {80, 20}, false);
  EXPECT_THAT(Split(frame, '\n'), Contains("  p                        1x7g                 0s  "
                                           "no room for 1 x 7g.40gb …"));
}

TEST(SandboxViewTest, NamesNamespacesIfPodsOfSeveralWait) {
  ViewModel model;
  model.waiting.push_back({"research/study-1", "1x7g", "no room", {}});
  const auto frame = [&] { return RenderFrame(model, {100, 20}, false); };
  EXPECT_THAT(frame(),
              HasSubstr("\n  study-1                  1x7g                 0s  no room\n"));
  model.waiting.push_back({"production/serve-1", "1x7g", "no room", {}});
  EXPECT_THAT(frame(),
              HasSubstr("\n  research/study-1                 1x7g                 0s  no room\n"
                        "  production/serve-1               1x7g                 0s  no room\n"));
}

TEST(SandboxViewTest, ListsKeysOnRequest) {
  ViewModel model;
  model.gpus.push_back(Row());
  model.keys = true;
  EXPECT_THAT(RenderFrame(model, {100, 20}, false),
              HasSubstr("   ? keys   Ctrl-C ends it\n\nnode"));
  model.help = true;
  const std::string frame = RenderFrame(model, {100, 20}, false);
  EXPECT_THAT(frame, HasSubstr("\n\nKEYS\n  arrows, j, k "));
  EXPECT_THAT(frame, Not(HasSubstr("node-1")));
  EXPECT_EQ(std::ranges::count(RenderFrame(model, {30, 4}, false), '\n'), 4);
}

TEST(SandboxViewTest, NarrowTerminalShrinksLabelsBeforeSlots) {
  ViewModel model;
  model.gpus.push_back(Row());
  EXPECT_THAT(Split(RenderFrame(model, {30, 20}, false), '\n'),
              Contains("node-1 gpu … |…|.....|3g.20g…|"));
  EXPECT_THAT(Split(RenderFrame(model, {20, 20}, false), '\n'), Contains("n… |…|.....|3g.20g…|"));
}

TEST(SandboxViewTest, ShowsRemediesIfLinesAreLeft) {
  ViewModel model;
  for (int i = 0; i < 4; ++i) {
    model.gpus.push_back(Row());
    model.waiting.push_back({"default/p", "1x7g", "no room", {}, "free a GPU"});
    model.decisions.insert(model.decisions.end(), 5, {{}, "a/p got 1g.5gb on n"});
  }
  const std::string pod = "  p                        1x7g                 0s  no room\n";
  const std::string both = pod + "    free a GPU\n";
  EXPECT_THAT(RenderFrame(model, {80, 40}, false),
              HasSubstr("\nWAITING\n" + both + both + both + both + "DECISIONS, newest first\n"));
  const std::string applied = "      0s ago  a/p got 1g.5gb on n\n";
  EXPECT_THAT(RenderFrame(model, {80, 16}, false),
              HasSubstr("\nWAITING\n" + pod + pod + "  … 2 more pods\nDECISIONS, newest first\n" +
                        applied));
}

TEST(SandboxViewTest, ShowsReachedSpeedOfSlowMachine) {
  ViewModel model;
  model.speed = 1000;
  model.reached = 990;
  EXPECT_THAT(RenderFrame(model, {120, 20}, false),
              StartsWith("nos sandbox   time 0s   speed 1000x   running 0   waiting 0   "
                         "finished 0   Ctrl-C ends it\n"));
  model.reached = 3.14;
  EXPECT_THAT(RenderFrame(model, {120, 20}, false),
              StartsWith("nos sandbox   time 0s   speed 1000x asked, 3.1x reached   running 0   "
                         "waiting 0   finished 0   Ctrl-C ends it\n"));
}

TEST(SandboxViewTest, EscapesControlCharactersInNamesAndReasons) {
  ViewModel model;
  model.gpus.push_back(Row());
  model.gpus[0].spans[0].pod = "a/\x1b[2J";
  model.waiting.push_back({"default/\x1b]0;x\a", "1x\n7g", "no\xc2\x9b 2J", {}});
  model.decisions.push_back({{}, "n\x1b[1m got a/b\r"});
  const std::string frame = RenderFrame(model, {}, false);
  for (const char* control : {"\x1b", "\a", "\r", "\xc2\x9b"}) {
    EXPECT_EQ(frame.find(control), std::string::npos) << frame;
  }
}

TEST(TerminalTest, DumbTerminalGetsPlainLines) {
  EXPECT_TRUE(DisplayOf(true, "xterm", nullptr).screen);
  EXPECT_TRUE(DisplayOf(true, "xterm", "").colours);
  EXPECT_FALSE(DisplayOf(true, "xterm", "0").colours);
  EXPECT_TRUE(DisplayOf(true, "xterm", "1").screen);
  for (const char* term : {"dumb", ""}) EXPECT_FALSE(DisplayOf(true, term, nullptr).screen);
  EXPECT_FALSE(DisplayOf(true, nullptr, nullptr).screen);
  EXPECT_FALSE(DisplayOf(false, "xterm", nullptr).screen);
}

TEST(SandboxViewTest, UsesColoursOnlyOnRequest) {
  ViewModel model;
  model.gpus.push_back(Row());
  EXPECT_EQ(RenderFrame(model, {}, false).find('\x1b'), std::string::npos);
  EXPECT_NE(RenderFrame(model, {}, true).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace nos::cmd
