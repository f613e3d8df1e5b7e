#include "cmd/findings/report.h"

#include <gtest/gtest.h>

#include "base/table.h"
#include "base/text.h"

namespace nos::cmd {
namespace {

constexpr size_t kWidth = 100;

TEST(FindingsReport, FailuresDecideTheExitCodeAndWarningsDoNot) {
  Findings findings;
  findings.Begin("Nodes");
  findings.Warn("Slow", "slow", "wait");
  findings.NotChecked("Unknown", "no right");
  EXPECT_EQ(FindingsExitCode(findings.all()), 0);
  findings.Fail("Broken", "broken", "repair it");
  EXPECT_EQ(FindingsExitCode(findings.all()), 1);
  const Json json = FindingsJson(findings.all());
  EXPECT_EQ(FindString(Find(json, "checks")->get_array().at(2), "verdict"), "Failed");
  EXPECT_EQ(*Find(json, "summary", "warnings"), 1);
  EXPECT_EQ(*Find(json, "summary", "notChecked"), 1);
}

TEST(FindingsReport, HostileNamesDoNotSteerTheTerminalAndLinesStayNarrow) {
  Findings findings;
  findings.Begin("Nodes");
  const std::string evil = "\x1b[2J\x1b]0;owned\x07" + std::string(5000, 'x') + "\n\rnode";
  findings.Fail("Broken", "label " + evil + " is wrong " + evil, "set " + evil, {evil, evil});
  const std::string text = FindingsText(findings.all(), kWidth);
  for (const std::string_view line : Split(text, '\n')) {
    EXPECT_LE(DisplayWidth(line), kWidth);
    for (const char c : line) EXPECT_TRUE(static_cast<unsigned char>(c) >= 32 && c != 127);
  }
  EXPECT_LT(text.size(), 3000u);
}

TEST(FindingsReport, PrintsCountsAndTheFirstNamesOfManyObjects) {
  Findings findings;
  findings.Begin("Nodes");
  std::vector<std::string> nodes;
  for (int i = 0; i < 5000; ++i) nodes.push_back("node-" + std::to_string(i));
  findings.Fail("AgentOnNode", "5000 nodes have no agent", "start it", nodes);
  const std::string text = FindingsText(findings.all(), kWidth);
  EXPECT_NE(text.find("node-4 and 4995 more"), std::string::npos) << text;
  EXPECT_LT(Split(text, '\n').size(), 10u);
  const Json json = FindingsJson(findings.all());
  const Json& check = Find(json, "checks")->get_array().at(0);
  EXPECT_EQ(Find(check, "objects")->get_array().size(), 100u);
  EXPECT_EQ(*Find(check, "objectCount"), 5000);
}

}  // namespace
}  // namespace nos::cmd
