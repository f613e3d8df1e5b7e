#include "cmd/cost/report.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace nos::cmd {
namespace {

Json Amounts(const Json& cost, const char* hours, const char* unpriced) {
  return {{"cost", cost},
          {"gpu_hours", hours},
          {"unpriced_gpu_hours", unpriced},
          {"borrowed", "1.000000"},
          {"categories",
           {{"used", "1234567.125000"},
            {"idle", "2.500000"},
            {"unknown", "0.000000"},
            {"free", "0.000000"},
            {"unpartitioned", "0.000000"},
            {"fragmented", "0.000000"},
            {"stranded", "0.000000"},
            {"not_reported", "0.000000"}}}};
}

Json Row(const char* kind, const char* ns, const std::string& name) {
  Json row = Amounts("1234567.125000", "12.345678", "0.000000");
  row.get_object()["kind"] = kind;
  row.get_object()["namespace"] = ns;
  row.get_object()["name"] = name;
  return row;
}

Json Answer(const char* by, JsonArray rows) {
  return {{"by", by},
          {"currency", "EUR"},
          {"note", "of last year"},
          {"rows", std::move(rows)},
          {"total", Amounts("2469134.250000", "24.691356", "3.000000")}};
}

TEST(CostReportTest, TableFitsAndEndsWithTheTotal) {
  const Json answer =
      Answer("pod", {Row("pod", "team-a", std::string(60, 'x')), Row("unallocated", "", "")});
  const std::string table = CostTableOf(answer, false).ToString(100);
  EXPECT_EQ(std::ranges::count(table, '\n'), 4);
  EXPECT_NE(table.find("COST (EUR)"), std::string::npos);
  const std::string last = table.substr(table.rfind('\n', table.size() - 2) + 1);
  EXPECT_NE(last.find("TOTAL"), std::string::npos);
  EXPECT_NE(last.find("2,469,134.25"), std::string::npos);
}

TEST(CostReportTest, ForecastHasItsRangeAndItsSource) {
  const Json answer = {{"month", "2026-11"},
                       {"currency", "EUR"},
                       {"so_far", {{"cost", "6000.000000"}}},
                       {"forecast",
                        {{"cost", "12345.678901"},
                         {"low", "11900.000000"},
                         {"high", "12800.500000"},
                         {"per_day", "480.250000"},
                         {"days", 14}}},
                       {"why", ""}};
  EXPECT_EQ(
      ForecastText(answer),
      "forecast of 2026-11: 12,345.68 EUR, 8 of 10 times from 11,900.00 to 12,800.50: 6,000.00 "
      "so far, and 480.25 a day, the mean of the last 14 days\n");
  EXPECT_EQ(ForecastText(Json()), "");
  EXPECT_EQ(ForecastText({{"month", "2026-11"},
                          {"forecast", nullptr},
                          {"why", "history has 0.2 days, and a forecast needs 3"}}),
            "no forecast of 2026-11: history has 0.2 days, and a forecast needs 3\n");
  EXPECT_EQ(
      ForecastText({{"month", "2026-10"}, {"forecast", nullptr}, {"why", "the month has ended"}}),
      "");
}

TEST(CostReportTest, MonthBeforeJanuaryIsDecember) {
  EXPECT_EQ(MonthBefore("2026-11").value_or(""), "2026-10");
  EXPECT_EQ(MonthBefore("2026-01").value_or(""), "2025-12");
  EXPECT_FALSE(MonthBefore("this").ok());
}

TEST(CostReportTest, JobsAndPodsHaveTheirNamespace) {
  for (const char* by : {"job", "pod", "workload"}) {
    const std::string table =
        CostTableOf(Answer(by, {Row("pod", "team-a", "train-0")}), false).ToString(200);
    EXPECT_NE(table.find("NAMESPACE"), std::string::npos) << by;
    EXPECT_NE(table.find("team-a"), std::string::npos) << by;
  }
}

TEST(CostReportTest, NotesNameGpusWithoutPrice) {
  const std::string notes = CostNotes(Answer("model", {}));
  EXPECT_NE(notes.find("3.00"), std::string::npos);
  EXPECT_NE(notes.find("of last year"), std::string::npos);
}

TEST(CostReportTest, AnswerWithoutRowsHasTheTotalOnly) {
  Json answer = Answer("model", {});
  answer.get_object().erase("rows");
  EXPECT_EQ(std::ranges::count(CostTableOf(answer, true).ToString(), '\n'), 2);
}

}  // namespace
}  // namespace nos::cmd
