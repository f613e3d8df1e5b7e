#include "telemetryserver/cost/gpu_parts.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

namespace nos::telemetryserver {
namespace {

constexpr CostSums kSums{8'000'000, 1'000'000, 0};

class GpuPartsTest : public ::testing::Test {
 protected:
  static telemetry::Gpu Mig(std::vector<telemetry::Instance> instances) {
    telemetry::Gpu gpu;
    gpu.uuid = "GPU-1";
    gpu.slots = 8;
    gpu.mig = true;
    gpu.instances = std::move(instances);
    return gpu;
  }
  static telemetry::Instance Slice(const std::string& uuid, int64_t size,
                                   std::vector<telemetry::Holder> holders = {}) {
    telemetry::Instance slice;
    slice.uuid = uuid;
    slice.size = size;
    slice.holders = std::move(holders);
    return slice;
  }
  // Cost by "pod category".
  std::map<std::string, Micros> Of(const telemetry::Gpu& gpu, std::optional<int64_t> usable = {},
                                   bool reported = true, bool stranded = false) {
    const auto utilization = [&](const std::string& subject) -> std::optional<double> {
      const auto found = measured_.find(subject);
      return found == measured_.end() ? std::nullopt : std::optional(found->second);
    };
    std::map<std::string, Micros> costs;
    Micros sum = 0;
    for (const GpuPart& part :
         PartsOf(gpu, GpuUse{reported, stranded, usable, utilization}, kSums)) {
      const std::string pod = part.holder == nullptr ? "" : part.holder->pod;
      costs[pod + " " + std::string(NameOf(part.category))] += part.sums.cost;
      sum += part.sums.cost;
    }
    EXPECT_EQ(sum, kSums.cost);
    return costs;
  }
  using Costs = std::map<std::string, Micros>;
  std::map<std::string, double> measured_;
};

TEST_F(GpuPartsTest, SliceHasTheShareOfItsSlots) {
  measured_["instance/a"] = 0.75;
  const auto gpu = Mig({Slice("a", 4, {{"team", "train", "c"}}),
                        Slice("b", 1, {{"team", "web", "c"}}), Slice("c", 1)});
  EXPECT_EQ(Of(gpu), (Costs{{"train used", 3'000'000},
                            {"train idle", 1'000'000},
                            {"web unknown", 1'000'000},
                            {" free", 1'000'000},
                            {" unpartitioned", 2'000'000}}));
}

TEST_F(GpuPartsTest, UselessSlotsAreFragmentedFromTheRestFirst) {
  const auto gpu = Mig({Slice("a", 4, {{"team", "train", "c"}}), Slice("c", 2)});
  EXPECT_EQ(
      Of(gpu, 1),
      (Costs{{"train unknown", 4'000'000}, {" free", 1'000'000}, {" fragmented", 3'000'000}}));
  EXPECT_EQ(
      Of(gpu, 99),
      (Costs{{"train unknown", 4'000'000}, {" free", 2'000'000}, {" unpartitioned", 2'000'000}}));
  EXPECT_EQ(Of(gpu, 0, true, true),
            (Costs{{"train unknown", 4'000'000}, {" stranded", 4'000'000}}));
}

TEST_F(GpuPartsTest, SilentNodeKeepsItsPods) {
  measured_["instance/a"] = 0.5;
  const auto gpu = Mig({Slice("a", 4, {{"team", "train", "c"}})});
  EXPECT_EQ(Of(gpu, {}, false),
            (Costs{{"train not_reported", 4'000'000}, {" not_reported", 4'000'000}}));
}

TEST_F(GpuPartsTest, PodsThatShareSplitEqually) {
  measured_["gpu/GPU-1"] = 1;
  telemetry::Gpu gpu;
  gpu.uuid = "GPU-1";
  gpu.holders = {{"t", "a", "x"}, {"t", "a", "y"}, {"t", "b", "x"}};
  EXPECT_EQ(Of(gpu), (Costs{{"a used", 4'000'000}, {"b used", 4'000'000}}));
  gpu.holders.clear();
  EXPECT_EQ(Of(gpu), (Costs{{" free", 8'000'000}}));
  gpu.mig = true;
  EXPECT_EQ(Of(gpu), (Costs{{" unpartitioned", 8'000'000}}));
}

TEST_F(GpuPartsTest, SharesOfMpsCountWithTheirGpu) {
  measured_["gpu/GPU-1"] = 0.5;
  telemetry::Gpu gpu;
  gpu.uuid = "GPU-1";
  gpu.slots = 40;
  gpu.instances = {Slice("s", 10, {{"t", "a", "c"}})};
  EXPECT_EQ(Of(gpu),
            (Costs{{"a used", 1'000'000}, {"a idle", 1'000'000}, {" unpartitioned", 6'000'000}}));
}

TEST_F(GpuPartsTest, HostileSizesStillAddUp) {
  measured_["instance/a"] = 1e300;
  measured_["instance/b"] = -5;
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  const auto of = [&](int64_t slots, int64_t a, int64_t b) {
    auto gpu = Mig({Slice("a", a, {{"t", "a", "c"}}), Slice("b", b, {{"t", "b", "c"}})});
    gpu.slots = slots;
    return Of(gpu, -3).size();
  };
  EXPECT_GE(of(kHuge, kHuge, kHuge), 2U);
  EXPECT_GE(of(-kHuge, -1, 0), 1U);
  EXPECT_GE(of(1, 7, 7), 2U);
}

}  // namespace
}  // namespace nos::telemetryserver
