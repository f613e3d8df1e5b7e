#include "cmd/sandbox_view.h"

#include <gtest/gtest.h>

#include "base/table.h"
#include "base/text.h"

namespace nos::cmd {
namespace {

GpuRow Row() {
  return {"node-1", 0, "A100-40GB", 8, {{0, 1, "1g.5gb", "a/web"}, {4, 4, "3g.20gb", ""}}, false};
}

TEST(SandboxViewTest, DrawsUsedFreeAndEmptySlots) {
  EXPECT_EQ(RenderSlots(Row(), 9, false),
            "|web 1g.…|..........................|3g.20gb free                       |");
}

TEST(SandboxViewTest, EveryRowOfAModelIsEquallyWide) {
  GpuRow empty = Row();
  empty.spans.clear();
  for (size_t cell : {2, 5, 9}) {
    EXPECT_EQ(DisplayWidth(RenderSlots(Row(), cell, false)),
              DisplayWidth(RenderSlots(empty, cell, false)));
    EXPECT_EQ(DisplayWidth(RenderSlots(empty, cell, false)), 1 + 8 * cell);
  }
}

TEST(SandboxViewTest, FitsTheTerminalWhateverItsSize) {
  ViewModel model;
  for (int i = 0; i < 50; ++i) {
    model.gpus.push_back(Row());
    model.waiting.push_back({"default/pod", "1x7g", std::string(200, 'x'), {}});
    model.decisions.push_back({{}, std::string(200, 'y')});
  }
  model.hint = std::string(200, 'h');
  for (const ViewSize size : {ViewSize{100, 40}, ViewSize{100, 12}, ViewSize{60, 24}}) {
    const std::string frame = RenderFrame(model, size, false);
    const auto lines = Split(frame, '\n');
    EXPECT_LE(lines.size() - 1, size.lines);
    for (const auto line : lines) EXPECT_LE(DisplayWidth(line), size.columns) << line;
  }
}

TEST(SandboxViewTest, ColoursOnlyOnRequest) {
  ViewModel model;
  model.gpus.push_back(Row());
  EXPECT_EQ(RenderFrame(model, {}, false).find('\x1b'), std::string::npos);
  EXPECT_NE(RenderFrame(model, {}, true).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace nos::cmd
