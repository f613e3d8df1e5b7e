#include "cmd/report/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/table.h"
#include "base/text.h"

namespace nos::cmd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Json SpreadOf(double low, double middle, double high) {
  return JsonObject{{"low", low}, {"middle", middle}, {"high", high}};
}

Json SavingsAnswer() {
  return JsonObject{
      {"cluster", "prod"},
      {"from", 1'763'760'000'000},
      {"to", 1'764'364'800'000},
      {"gpus", 96},
      {"gpu_hours", 16'128.0},
      {"pods", 1230},
      {"started", 1204},
      {"waiting_hours", 312.4},
      {"median_wait_ms", 12'000},
      {"p95_wait_ms", 2'460'000},
      {"left_out", 3},
      {"currency", "EUR"},
      {"cost", "40320.000000"},
      {"decisions",
       {{{"type", "plan"}, {"count", 220}, {"victims", 0}},
        {{"type", "reclaim"}, {"count", 20}, {"victims", 31}},
        {{"type", "move"}, {"count", 1}, {"victims", 1}}}},
      {"alternatives",
       {{{"name", "whole"},
         {"waiting_hours", SpreadOf(9100, 9120, 9200)},
         {"started", SpreadOf(801, 801, 801)},
         {"gpus", SpreadOf(1536, 1536, 1536)},
         {"enough", false},
         {"saved_gpu_hours", SpreadOf(241'920, 241'920, 241'920)},
         {"saved",
          {{"low", "604800.000000"}, {"middle", "604800.000000"}, {"high", "604800.000000"}}}},
        {{"name", "static"},
         {"waiting_hours", SpreadOf(640, 800, 1100)},
         {"started", SpreadOf(1180, 1190, 1195)},
         {"gpus", SpreadOf(104, 112, 121)},
         {"enough", true},
         {"saved_gpu_hours", SpreadOf(1344, 2688, 4200)},
         {"saved",
          {{"low", "3360.000000"}, {"middle", "6720.000000"}, {"high", "10500.000000"}}}}}}};
}

Json CostAnswer() {
  const Json categories = {{"used", "300.000000"}, {"idle", "98.000000"}, {"free", "2.000000"}};
  return JsonObject{
      {"configured", true},
      {"currency", "EUR"},
      {"note", "list prices <2026>"},
      {"total", {{"cost", "400.000000"}, {"borrowed", "100.000000"}, {"categories", categories}}},
      {"rows",
       {{{"kind", "namespace"},
         {"name", "<b>team</b>"},
         {"cost", "390.000000"},
         {"borrowed", "100.000000"},
         {"categories", categories}},
        {{"kind", "unallocated"},
         {"name", ""},
         {"cost", "10.000000"},
         {"borrowed", "0.000000"},
         {"categories", categories}}}}};
}

TEST(ReportTest, TextSaysWhatHappenedAndWhatWasSaved) {
  const ReportAnswers answers{SavingsAnswer(), CostAnswer()};
  ASSERT_TRUE(CheckAnswers(answers).ok());
  EXPECT_EQ(ReportText(answers, 100),
            R"(prod, 2025-11-21T21:20Z to 2025-11-28T21:20Z

Served     1,204 of 1,230 pods got GPUs: 96 GPUs on average, 16,128 GPU hours; 3 more left out
Waited     312 h together; of the pods that started, half waited at most 12 s, 95 % at most 41 min
Cost       400.00 EUR: 75 % used, 24 % held and idle, <1 % free
Decided    220 repartitioning plans, 31 pods evicted for elastic quotas, 1 pod moved
Borrowed   pods beyond their guarantee had 100.00 EUR of GPUs, 25 % of the bill

WITHOUT         WAITING (h)          STARTED              GPUS NEEDED    SAVED (EUR)
(as it was)     312                  1,204                96             -
whole GPUs      9,120 (9,100–9,200)  801                  over 1,536     over 604,800
static layouts  800 (640–1,100)      1,190 (1,180–1,195)  112 (104–121)  6,720 (3,360–10,500)

Without repartitioning, the same pods wait in one queue on the same GPUs at the same times. An
estimate: starts cost no time there, CPU and memory of nodes never end, and nothing is evicted.
Ranges are those of several replays, with unknown run times drawn from similar pods.

TEAM         COST (EUR)  USED    IDLE   BORROWED
<b>team</b>  390.00      300.00  98.00  100.00
(no pod)     10.00       300.00  98.00  0.0000
)");
}

TEST(ReportTest, LinesFitNarrowTerminals) {
  for (const std::string_view line : Split(ReportText({SavingsAnswer(), CostAnswer()}, 60), '\n')) {
    EXPECT_LE(DisplayWidth(line), 60U) << line;
  }
}

TEST(ReportTest, PageEscapesNames) {
  const std::string html = ReportHtml({SavingsAnswer(), CostAnswer()});
  EXPECT_THAT(html, HasSubstr("<td>&lt;b&gt;team&lt;/b&gt;</td>"));
  EXPECT_THAT(html, HasSubstr("&lt;2026&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("<b>team")));
}

TEST(ReportTest, ServerWithoutPricesHasNoMoney) {
  Json savings = SavingsAnswer();
  savings.get_object()["cost"] = nullptr;
  for (Json& each : savings.get_object()["alternatives"].get_array()) {
    each.get_object()["saved"] = nullptr;
  }
  Json cost = CostAnswer();
  cost.get_object()["configured"] = false;
  for (const ReportAnswers& answers :
       {ReportAnswers{savings, cost}, ReportAnswers{savings, Json()}}) {
    ASSERT_TRUE(CheckAnswers(answers).ok());
    const std::string text = ReportText(answers, 100);
    EXPECT_THAT(text, Not(HasSubstr("EUR")));
    EXPECT_THAT(text, HasSubstr("(GPU h)"));
    EXPECT_THAT(ReportHtml(answers), Not(HasSubstr("<h2>Teams</h2>")));
  }
}

TEST(ReportTest, EmptyTimeHasNoAlternatives) {
  Json savings = SavingsAnswer();
  savings.get_object()["alternatives"] = JsonArray();
  const ReportAnswers answers{savings, Json()};
  ASSERT_TRUE(CheckAnswers(answers).ok());
  EXPECT_THAT(ReportText(answers, 100), Not(HasSubstr("WITHOUT")));
  EXPECT_THAT(ReportHtml(answers), Not(HasSubstr("<table>")));
}

TEST(ReportTest, OtherServersAreRefused) {
  EXPECT_EQ(CheckAnswers({Json(JsonObject()), Json()}).code(), Code::kInvalid);
  Json savings = SavingsAnswer();
  savings.get_object()["alternatives"].get_array()[0].get_object().erase("gpus");
  EXPECT_EQ(CheckAnswers({savings, Json()}).code(), Code::kInvalid);
  EXPECT_EQ(CheckAnswers({SavingsAnswer(), JsonObject{{"rows", 1}}}).code(), Code::kInvalid);
}

TEST(ReportTest, JsonHasBothAnswers) {
  const Json json = ReportJson({SavingsAnswer(), CostAnswer()});
  EXPECT_EQ(FindString(json, "cluster"), "prod");
  EXPECT_EQ(*Find(json, "savings"), SavingsAnswer());
  EXPECT_EQ(*Find(json, "cost"), CostAnswer());
}

}  // namespace
}  // namespace nos::cmd
