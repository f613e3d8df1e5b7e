#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/random.h"
#include "base/status.h"
#include "base/table.h"
#include "base/text.h"

namespace nos {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return Invalid("odd");
  return n / 2;
}
Result<int> Quarter(int n) {
  NOS_ASSIGN(const int half, Half(n));
  return Half(half);
}

TEST(StatusTest, MacrosReturnTheError) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().ToString(), "invalid: odd");
  EXPECT_EQ(Quarter(6).status().Within("quarter").message(), "quarter: odd");
}

TEST(TextTest, ShortenedNeverSplitsUtf8Character) {
  EXPECT_EQ(Shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(Shortened("abcdefg", 6), "abc...");
  EXPECT_EQ(Shortened("ab\u00e4defg", 6), "ab...");
  EXPECT_EQ(Shortened("\u20ac\u20ac\u20ac", 8), "\u20ac...");
}

TEST(QuantityTest, ParsesEveryNotation) {
  const auto value = [](std::string_view text) { return Quantity::Parse(text).value_or({}); };
  EXPECT_EQ(value("500m").MilliValue(), 500);
  EXPECT_EQ(value("500m").Value(), 1);
  EXPECT_EQ(value("16Gi").Value(), int64_t{16} << 30);
  EXPECT_EQ(value("1e3").Value(), 1000);
  EXPECT_EQ(value("1E").Value(), 1'000'000'000'000'000'000);
  EXPECT_EQ(value("0.5").MilliValue(), 500);
  EXPECT_EQ(value("1.5Gi").Value(), int64_t{3} << 29);
  EXPECT_EQ(value("-2").Value(), -2);
  EXPECT_EQ(value("100n").MilliValue(), 1);
  EXPECT_EQ(value("16Gi").ToBinaryString(), "16Gi");
  EXPECT_EQ(value("1500m").ToString(), "1500m");
  EXPECT_EQ(value("575667223685758047.7").ToString(), "575667223685758047700m");
  const Quantity most = value("9223372036854775807");
  EXPECT_EQ((most + most).Value(), 9223372036854775807);
}

TEST(QuantityTest, CapsAndRoundsOutOfRangeAmounts) {
  constexpr int64_t kMaxInt64 = 9223372036854775807;
  for (const char* text : {"100E", "9223372036854775808", "16Ei", "9999999999999999999999", "1e99",
                           "1e19", "9223372036854775807.5", "1e9223372036854775807"}) {
    EXPECT_EQ(Quantity::Parse(text).value_or({}).Value(), kMaxInt64) << text;
    EXPECT_EQ(Quantity::Parse(text).value_or({}), Quantity::FromValue(kMaxInt64)) << text;
  }
  EXPECT_EQ(Quantity::Parse("-100E").value_or({}).Value(), -kMaxInt64);
  EXPECT_EQ(Quantity::Parse("0e99").value_or(Quantity::FromValue(1)), Quantity());
  EXPECT_EQ(Quantity::Parse("0.000001e20").value_or({}).Value(), 100'000'000'000'000);
  EXPECT_EQ(Quantity::Parse("1e-10").value_or({}).ToString(), "1n");
  EXPECT_EQ(Quantity::Parse("0.1n").value_or({}).ToString(), "1n");
  EXPECT_EQ(Quantity::Parse("30e-10").value_or({}).ToString(), "3n");
  EXPECT_EQ(Quantity::Parse("31e-10").value_or({}).ToString(), "4n");
  EXPECT_EQ(Quantity::Parse("1e-99").value_or({}).ToString(), "1n");
}

TEST(QuantityTest, RefusesInvalidKubernetesQuantities) {
  for (const char* text : {"", "m", "1 Gi", "1gi", "0x1", "1..2", "1e", "1e1.5", "1ee3"}) {
    EXPECT_FALSE(Quantity::Parse(text).ok()) << text;
  }
}

TEST(ClockTest, TimesRoundTrip) {
  const auto t = ParseTime("2026-01-02T03:04:05Z");
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(FormatTime(*t), "2026-01-02T03:04:05Z");
  EXPECT_EQ(FormatTime(*ParseTime("2026-01-02T03:04:05.123+02:00")), "2026-01-02T01:04:05Z");
  EXPECT_EQ(FormatTime(*ParseTime("0001-01-01T00:00:00Z")), "1678-01-01T00:00:00Z");
  EXPECT_TRUE(ParseTime("9999-12-31T23:59:60-99:99").ok());
  EXPECT_FALSE(ParseTime("2026-13-02T03:04:05Z").ok());
  EXPECT_FALSE(ParseTime("2026-01-02").ok());
}

TEST(ClockTest, ParsesGoDurations) {
  EXPECT_EQ(*ParseDuration("300ms"), std::chrono::milliseconds(300));
  EXPECT_EQ(*ParseDuration("1h30m"), std::chrono::minutes(90));
  EXPECT_EQ(*ParseDuration("1.5s"), std::chrono::milliseconds(1500));
  EXPECT_FALSE(ParseDuration("5").ok());
  EXPECT_FALSE(ParseDuration("").ok());
  EXPECT_EQ(FormatAge(std::chrono::seconds(192)), "3m12s");
}

TEST(RandomTest, SeedGivesTheSameStreamOnEveryPlatform) {
  Random random(42);
  EXPECT_EQ(random.Next(), 13679457532755275413ULL);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.Below(7), 7u);
}

TEST(TextTest, SplitsAndParses) {
  EXPECT_EQ(Split("a,,b", ',').size(), 3u);
  EXPECT_EQ(Trim("  x \n"), "x");
  EXPECT_EQ(ParseInt("-12"), -12);
  EXPECT_EQ(ParseInt("12x"), std::nullopt);
}

TEST(TextTest, ComparesNaturally) {
  EXPECT_LT(CompareNaturally("a2", "a10"), 0);
  EXPECT_LT(CompareNaturally("a2b", "a2c"), 0);
  EXPECT_GT(CompareNaturally("a", ""), 0);
  EXPECT_EQ(CompareNaturally("a02", "a2"), 0);
  EXPECT_LT(CompareNaturally("99999999999999999999", "100000000000000000000"), 0);
  EXPECT_TRUE(NaturallyLess()("node-2", "node-10"));
  EXPECT_TRUE(NaturallyLess()("a02", "a2"));
  EXPECT_FALSE(NaturallyLess()("a2", "a2"));
}

TEST(TableTest, ReplacesControlCharactersInCells) {
  TextTable table({"NAME"});
  table.AddRow({"\x1b]0;x\x07"});
  EXPECT_EQ(table.ToString(), "NAME\n?]0;x?\n");
}

TEST(TableTest, AlignsColumnsAndTruncatesToWidth) {
  TextTable table({"NAME", "WHY"});
  table.AddRow({"gpü-1", "because"});
  EXPECT_EQ(table.ToString(), "NAME   WHY\ngpü-1  because\n");
  table.AddRow({"n", std::string(500, 'x')});
  EXPECT_EQ(table.ToString(), "NAME   WHY\ngpü-1  because\nn      " + std::string(500, 'x') + "\n");
  EXPECT_EQ(table.ToString(10), "NAME   WHY\ngpü-1  be…\nn      xx…\n");
}

// Names come from users: they must neither steer a terminal nor reverse the text beside them.
TEST(PrintableTest, ReplacesTerminalControlCharacters) {
  EXPECT_EQ(Printable("a\x1b[31mb\tc\x7f"), "a?[31mb?c?");
  EXPECT_EQ(Printable("a\u0085b\u009bc"), "a?b?c");
  for (const char* turns : {"\u061c", "\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d",
                            "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"}) {
    EXPECT_EQ(Printable(std::string("a") + turns + turns + "b"), "a??b");
  }
  for (const char* stays :
       {"é", "\u00a0", "\u061b", "\u061d", "\u200d", "\u2010", "\u2029", "\u202f", "\u2065",
        "\u206a", "…", "日本", "\xe2", "\xe2\x80", "\xd8", "\xc2"}) {
    EXPECT_EQ(Printable(stays), stays);
  }
}

}  // namespace
}  // namespace nos
