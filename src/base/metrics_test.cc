#include "base/metrics.h"

#include <gtest/gtest.h>

namespace nos {
namespace {

using Kind = MetricFamily::Kind;
constexpr MetricFamily kPlans{Kind::kCounter, "nos_plans_total", "Plans made."};
constexpr MetricFamily kSlices{Kind::kGauge, "nos_slices", "Slices by GPU."};
constexpr MetricFamily kVictims{Kind::kSize, "nos_victims", "How many."};
constexpr MetricFamily kTook{Kind::kDuration, "nos_took_seconds", "How long it took."};

bool Has(Metrics& metrics, const std::string& line) {
  return ("\n" + metrics.Text()).find("\n" + line + "\n") != std::string::npos;
}

TEST(MetricsTest, ExportsCountersGaugesAndHistograms) {
  Metrics metrics;
  metrics.Count(kPlans, {{"result", "ok"}});
  metrics.Count(kPlans, {{"result", "ok"}}, 2);
  metrics.Set(kSlices, {{"gpu", "a\"\n\\b"}}, 3);
  metrics.Observe(kTook, {}, std::chrono::milliseconds(20));
  metrics.ObserveSize(kVictims, {}, 3);
  EXPECT_TRUE(Has(metrics, R"(nos_victims_bucket{le="2"} 0)")) << metrics.Text();
  EXPECT_TRUE(Has(metrics, R"(nos_victims_bucket{le="4"} 1)")) << metrics.Text();
  EXPECT_TRUE(Has(metrics, "# TYPE nos_plans_total counter"));
  EXPECT_TRUE(Has(metrics, "# HELP nos_plans_total Plans made."));
  EXPECT_TRUE(Has(metrics, R"(nos_plans_total{result="ok"} 3)")) << metrics.Text();
  EXPECT_TRUE(Has(metrics, R"(nos_slices{gpu="a\"\n\\b"} 3)")) << metrics.Text();
  EXPECT_TRUE(Has(metrics, R"(nos_took_seconds_bucket{le="0.01"} 0)")) << metrics.Text();
  EXPECT_TRUE(Has(metrics, R"(nos_took_seconds_bucket{le="0.025"} 1)")) << metrics.Text();
}

TEST(MetricsTest, SetAllRemovesMissingGaugeValues) {
  Metrics metrics;
  metrics.SetAll(kSlices, {{{{"gpu", "0"}}, 1}, {{{"gpu", "1"}}, 2}});
  metrics.SetAll(kSlices, {{{{"gpu", "1"}}, 5}});
  EXPECT_FALSE(Has(metrics, R"(nos_slices{gpu="0"} 1)"));
  EXPECT_TRUE(Has(metrics, R"(nos_slices{gpu="1"} 5)"));
  metrics.SetAll(kSlices, {});
  EXPECT_EQ(metrics.Text().find("nos_slices{"), std::string::npos);
}

TEST(MetricsTest, CountToFollowsExternalTotalAndNeverDecreases) {
  Metrics metrics;
  metrics.CountTo(kPlans, {}, 5);
  metrics.CountTo(kPlans, {}, 7);
  metrics.CountTo(kPlans, {}, 6);
  EXPECT_TRUE(Has(metrics, "nos_plans_total 7")) << metrics.Text();
}

TEST(MetricsTest, ExportsProcessMetrics) {
  Metrics metrics;
  EXPECT_TRUE(Has(metrics, "# TYPE process_cpu_seconds_total counter"));
  EXPECT_NE(metrics.Text().find("\nprocess_resident_memory_bytes "), std::string::npos);
}

TEST(MetricsTest, ExportsOldNameOfRenamedFamily) {
  static constexpr MetricFamily kRenamed{Kind::kGauge, "nos_new_pods", "Pods.", "nos_old_pods"};
  Metrics metrics;
  metrics.SetAll(kRenamed, {{{{"reason", "r"}}, 3}});
  EXPECT_TRUE(Has(metrics, R"(nos_new_pods{reason="r"} 3)")) << metrics.Text();
  EXPECT_TRUE(Has(metrics, R"(nos_old_pods{reason="r"} 3)")) << metrics.Text();
  EXPECT_TRUE(Has(metrics, "# HELP nos_old_pods Deprecated: use nos_new_pods."));
  EXPECT_TRUE(Has(metrics, "# TYPE nos_old_pods gauge"));
}

}  // namespace
}  // namespace nos
