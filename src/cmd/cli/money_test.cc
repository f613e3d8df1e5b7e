#include "cmd/cli/money.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nos::cmd {
namespace {

TEST(MoneyTest, WritesAmounts) {
  const auto text = [](const char* amount) {
    const Json value(amount);
    return MoneyText(&value);
  };
  EXPECT_EQ(text("0.000000"), "0.0000");
  EXPECT_EQ(text("9.999949"), "9.9999");
  EXPECT_EQ(text("1234567.125000"), "1,234,567.13");
  EXPECT_EQ(text("999.999999"), "1,000.00");
  EXPECT_EQ(text("much"), "-");
  EXPECT_EQ(MoneyText(nullptr), "-");
  const Json null;
  EXPECT_EQ(MoneyText(&null), "-");
}

// The same amounts as in web/test/unit/costs.test.ts.
TEST(MoneyTest, PartsAddUpToTheCent) {
  const Json amounts = {{"cost", "1235.567000"},
                        {"categories",
                         {{"used", "1000.004000"},
                          {"idle", "234.004000"},
                          {"unknown", "0.001000"},
                          {"free", "0.004000"},
                          {"not_reported", "0.554000"}}}};
  const auto parts = CentPartsOf(amounts);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->cost, "1,235.57");
  EXPECT_THAT(parts->parts, testing::ElementsAre("1,000.00 used", "234.01 idle",
                                                 "0.56 not reported", "1.00 not visible to you"));
}

TEST(MoneyTest, UnknownCostHasNoParts) {
  EXPECT_FALSE(CentPartsOf({{"cost", nullptr}, {"categories", {{"used", "0.000000"}}}}));
  EXPECT_FALSE(CentPartsOf(Json()));
}

}  // namespace
}  // namespace nos::cmd
