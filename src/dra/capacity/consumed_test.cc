#include "dra/capacity/consumed.h"

#include <gtest/gtest.h>

namespace nos::dra {
namespace {

Quantity Q(const char* text) { return Quantity::Parse(text).value(); }

RequestPolicy Range(const char* min, const char* step, const char* max, const char* standard) {
  return {Q(standard), {}, RequestPolicy::Range{Q(min), Q(max), Q(step)}};
}

struct Case {
  const char* name;
  std::optional<RequestPolicy> policy;
  const char* request;  // null: none
  bool fractional;
  Consumed::Kind kind;
  const char* amount;
};

TEST(ConsumedByTest, RoundsAsThePolicySays) {
  using Kind = Consumed::Kind;
  const RequestPolicy values{Q("1"), {Q("1"), Q("3"), Q("5")}, std::nullopt};
  const Case cases[] = {
      {"no request, no policy: all of it", {}, nullptr, false, Kind::kOk, "10"},
      {"no policy: the request", {}, "3", false, Kind::kOk, "3"},
      {"no request: the default", Range("2", "2", "6", "2"), nullptr, false, Kind::kOk, "2"},
      {"below the minimum", Range("2", "2", "6", "2"), "1", false, Kind::kOk, "2"},
      {"between two steps", Range("2", "2", "6", "2"), "3", false, Kind::kOk, "4"},
      {"above the maximum", Range("2", "2", "6", "2"), "7", false, Kind::kNo, ""},
      {"next valid value", values, "2", false, Kind::kOk, "3"},
      {"above all valid values", values, "6", false, Kind::kNo, ""},
      {"thousandths", Range("200m", "100m", "4", "200m"), "250m", true, Kind::kOk, "300m"},
      {"whole units where thousandths are off", Range("1", "2", "9", "1"), "1500m", false,
       Kind::kOk, "3"},
      {"beyond 64 bits", Range("2", "2", "6", "2"), "9223372036854775807", false,
       Kind::kNotRepresentable, ""},
      {"negative", {}, "-1", false, Kind::kNegative, ""},
      {"a step of nothing", Range("2", "0", "6", "2"), "3", false, Kind::kNotRepresentable, ""}};
  for (const Case& c : cases) {
    const Capacities capacities = {{Name("memory"), {Q("10"), c.policy}}};
    std::optional<Amounts> request;
    if (c.request != nullptr) request = Amounts{{Name("memory"), Q(c.request)}};
    const Consumed consumed = ConsumedBy(request, capacities, c.fractional);
    EXPECT_EQ(consumed.kind, c.kind) << c.name;
    if (c.kind != Kind::kOk) continue;
    EXPECT_EQ(consumed.amounts.front().second, Q(c.amount)) << c.name;
  }
}

TEST(ConsumedByTest, DeviceWithoutTheCapacityIsNoFault) {
  const Amounts request = {{Name("cores"), Q("1")}};
  EXPECT_EQ(ConsumedBy(request, {}, false).kind, Consumed::Kind::kNo);
}

TEST(FitsTest, SumsShares) {
  const Capacities capacities = {{Name("memory"), {Q("10"), {}}}};
  const Amounts four = {{Name("memory"), Q("4")}}, seven = {{Name("memory"), Q("7")}};
  EXPECT_TRUE(Fits(four, {}, capacities));
  EXPECT_TRUE(Fits(four, four, capacities));
  EXPECT_FALSE(Fits(four, seven, capacities));
}

}  // namespace
}  // namespace nos::dra
