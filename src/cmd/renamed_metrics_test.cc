// Metrics are exported under their old names too (docs/upgrading.md, "Metrics").
#include <gtest/gtest.h>

#include <string>

#include "base/metrics.h"
#include "controllers/metrics.h"
#include "telemetryserver/metrics.h"

namespace nos {
namespace {

struct Renamed {
  std::string old_name, name;
  const MetricFamily* family;
};

class RenamedMetricsTest : public ::testing::TestWithParam<Renamed> {};

TEST_P(RenamedMetricsTest, ExportsBothNames) {
  const MetricFamily& family = *GetParam().family;
  Metrics metrics;
  std::string suffix;
  switch (family.kind) {
    case MetricFamily::Kind::kCounter:
      metrics.Count(family, {});
      break;
    case MetricFamily::Kind::kGauge:
      metrics.Set(family, {}, 1);
      break;
    case MetricFamily::Kind::kDuration:
      metrics.Observe(family, {}, std::chrono::seconds(1));
      suffix = "_count";
      break;
    case MetricFamily::Kind::kSize:
      metrics.ObserveSize(family, {}, 1);
      suffix = "_count";
      break;
  }
  const std::string text = "\n" + metrics.Text();
  for (const std::string& name : {GetParam().name, GetParam().old_name}) {
    EXPECT_NE(text.find("\n" + name + suffix + " 1"), std::string::npos) << name << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    , RenamedMetricsTest,
    ::testing::Values(Renamed{"nos_partitioner_unhelped_pods", "nos_partitioner_unplaceable_pods",
                              &controllers::kUnplaceablePods},
                      Renamed{"nos_autoscaler_unserved_pods", "nos_autoscaler_unschedulable_pods",
                              &controllers::kUnschedulablePods},
                      Renamed{"nos_autoscaler_plan_seconds", "nos_autoscaler_plan_duration_seconds",
                              &controllers::kScalingPlan},
                      Renamed{"nos_webhook_certificate_end_seconds",
                              "nos_webhook_certificate_expiration_timestamp_seconds",
                              &controllers::kCertificateEnd},
                      Renamed{"nos_telemetry_unkept_values_total",
                              "nos_telemetry_dropped_values_total",
                              &telemetryserver::kDroppedValues}),
    [](const auto& each) { return each.param.old_name; });

}  // namespace
}  // namespace nos
