#include "telemetryserver/prices.h"

#include <gtest/gtest.h>

namespace nos::telemetryserver {
namespace {

Json NodeWith(const JsonObject& labels) { return {{"kind", "node"}, {"labels", labels}}; }

TEST(PricesTest, FirstMatchingRuleCounts) {
  const PriceList list{"EUR",
                       "",
                       {{.per_gpu_hour = 1, .model = "H100-80GB", .capacity_type = "spot"},
                        {.per_gpu_hour = 2, .model = "H100-80GB"},
                        {.per_gpu_hour = 3, .node_pool = "gpus"},
                        {.per_gpu_hour = 4, .node_labels = {{"zone", "a"}, {"tier", ""}}}}};
  ASSERT_TRUE(CheckPrices(list).ok());
  const Json spot = NodeWith({{"karpenter.sh/capacity-type", "spot"}});
  const Json pool = NodeWith({{"karpenter.sh/nodepool", "gpus"}, {"zone", "a"}});
  const Json zone = NodeWith({{"zone", "a"}, {"tier", ""}});
  EXPECT_EQ(PriceOf(list, {"H100-80GB", "NVIDIA H100 80GB HBM3", spot}), 1);
  EXPECT_EQ(PriceOf(list, {"H100-80GB", "NVIDIA H100 80GB HBM3", pool}), 2);
  EXPECT_EQ(PriceOf(list, {"A100-40GB", "NVIDIA A100-SXM4-40GB", pool}), 3);
  EXPECT_EQ(PriceOf(list, {"A100-40GB", "NVIDIA A100-SXM4-40GB", zone}), 4);
  EXPECT_EQ(PriceOf(list, {"A100-40GB", "NVIDIA A100-SXM4-40GB", spot}), std::nullopt);
  EXPECT_EQ(PriceOf(list, {"A100-40GB", "", Json()}), std::nullopt);
}

TEST(PricesTest, LabelThatIsMissingIsNotEmpty) {
  const PriceList list{"EUR", "", {{.per_gpu_hour = 4, .node_labels = {{"tier", ""}}}}};
  EXPECT_EQ(PriceOf(list, {"L4", "", NodeWith({{"zone", "a"}})}), std::nullopt);
}

TEST(PricesTest, ModelIsAlsoAProduct) {
  const PriceList list{"EUR", "", {{.per_gpu_hour = 5, .model = "NVIDIA-Odd-9000"}}};
  EXPECT_EQ(PriceOf(list, {"", "NVIDIA Odd 9000", Json()}), 5);
  EXPECT_EQ(PriceOf(list, {"", "NVIDIA-Odd-9000", Json()}), 5);
  EXPECT_EQ(PriceOf(list, {"", "NVIDIA Odd 900", Json()}), std::nullopt);
}

TEST(PricesTest, LaterPriceLeavesTheTimeBeforeItAlone) {
  const PriceList list = WithTimes({"EUR",
                                    "",
                                    {{.per_gpu_hour = 3, .valid_from = "2026-12-01T06:00:00Z"},
                                     {.per_gpu_hour = 2, .valid_from = "2026-07-01"},
                                     {.per_gpu_hour = 1, .model = "L4"}}});
  ASSERT_TRUE(CheckPrices(list).ok());
  constexpr telemetry::Millis kJuly = 1'782'864'000'000, kDecember = 1'796'104'800'000;
  const auto at = [&](telemetry::Millis time) { return PriceOf(list, {"L4", "", Json(), time}); };
  EXPECT_EQ(at(kJuly - 1), 1);
  EXPECT_EQ(at(kJuly), 2);
  EXPECT_EQ(at(kDecember - 1), 2);
  EXPECT_EQ(at(kDecember), 3);
  EXPECT_EQ(PriceOf(list, {"A10", "", Json(), kJuly - 1}), std::nullopt);
}

TEST(PricesTest, PriceOfZeroIsAPrice) {
  const PriceList list{"EUR", "", {{.per_gpu_hour = 0}}};
  ASSERT_TRUE(CheckPrices(list).ok());
  EXPECT_EQ(PriceOf(list, {"L4", "", Json()}), 0);
}

TEST(PricesTest, ReadsCapacityTypesOfProviders) {
  const std::vector<std::pair<JsonObject, std::string_view>> cases = {
      {{}, ""},
      {{{"karpenter.sh/capacity-type", "reserved"}}, kReserved},
      {{{"karpenter.sh/capacity-type", "odd"}}, ""},
      {{{"eks.amazonaws.com/capacityType", "SPOT"}}, kSpot},
      {{{"eks.amazonaws.com/capacityType", "ON_DEMAND"}}, kOnDemand},
      {{{"eks.amazonaws.com/capacityType", "CAPACITY_BLOCK"}}, kReserved},
      {{{"cloud.google.com/gke-nodepool", "a"}}, kOnDemand},
      {{{"cloud.google.com/gke-nodepool", "a"}, {"cloud.google.com/gke-spot", "true"}}, kSpot},
      {{{"kubernetes.azure.com/agentpool", "a"}}, kOnDemand},
      {{{"kubernetes.azure.com/agentpool", "a"}, {"kubernetes.azure.com/scalesetpriority", "spot"}},
       kSpot}};
  for (const auto& [labels, type] : cases) {
    EXPECT_EQ(CapacityTypeOf(NodeWith(labels)), type) << WriteJson(labels);
  }
  EXPECT_EQ(CapacityTypeOf(Json()), "");
  EXPECT_EQ(CapacityTypeOf({{"labels", 7}}), "");
}

TEST(PricesTest, RefusesInvalidLists) {
  EXPECT_TRUE(CheckPrices({}).ok());
  EXPECT_FALSE(CheckPrices({"", "", {{.per_gpu_hour = 1}}}).ok()) << "no currency";
  EXPECT_FALSE(CheckPrices({"eur", "", {{.per_gpu_hour = 1}}}).ok());
  EXPECT_FALSE(CheckPrices({"EUR", std::string(1000, 'x'), {}}).ok());
  EXPECT_FALSE(CheckPrices({"EUR", "", {{.per_gpu_hour = kMaxPrice + 1}}}).ok());
  const Status missing = CheckPrices({"EUR", "", {{.per_gpu_hour = 1}, {.model = "L4"}}});
  EXPECT_NE(missing.message().find("prices[1]"), std::string::npos) << missing.message();
  EXPECT_FALSE(CheckPrices({"EUR", "", {{.per_gpu_hour = 1, .capacity_type = "cheap"}}}).ok());
  for (const char* time : {"2026-12-01", "2026-12-01T06:00:00Z", "2026-12-01T08:00:00+02:00"}) {
    EXPECT_TRUE(CheckPrices({"EUR", "", {{.per_gpu_hour = 1, .valid_from = time}}}).ok()) << time;
  }
  for (const char* time : {"2026-12", "2026-13-01", "01.12.2026", "tomorrow", "1969-12-31",
                           "2026-12-01T06:30:00Z", "2026-12-01T06:00:01Z"}) {
    EXPECT_FALSE(CheckPrices({"EUR", "", {{.per_gpu_hour = 1, .valid_from = time}}}).ok()) << time;
  }
}

}  // namespace
}  // namespace nos::telemetryserver
