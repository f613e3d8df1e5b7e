#include "telemetryreporter/gpu_metrics.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "device/mig_parts.h"

namespace nos::telemetry {
namespace {

namespace metric = device::metric;

struct Shown {
  MetricFamily family;
  std::string_view metric;
  double factor;   // from our unit to DCGM's
  bool instances;  // DCGM also reports it for MIG devices
};

constexpr auto kGauge = MetricFamily::Kind::kGauge;

constexpr Shown kShown[] = {
    {{kGauge, "DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %)."}, metric::kUtilization, 100, false},
    {{kGauge, "DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %)."},
     metric::kMemoryUtilization,
     100,
     false},
    {{kGauge, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active."},
     metric::kUtilization,
     1,
     true},
    {{kGauge, "DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB)."},
     metric::kMemoryUsed,
     1,
     true},
    {{kGauge, "DCGM_FI_DEV_POWER_USAGE", "Power draw (in W)."}, metric::kPower, 1, false},
    {{kGauge, "DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C)."}, metric::kTemperature, 1, false},
    {{kGauge, "DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz)."}, metric::kSmClock, 1, false},
    {{kGauge, "DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz)."},
     metric::kMemoryClock,
     1,
     false},
};

constexpr MetricFamily kFree{kGauge, "DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB)."};
constexpr MetricFamily kXid{kGauge, "DCGM_FI_DEV_XID_ERRORS",
                            "Value of the last XID error encountered."};

using Values = std::vector<std::pair<MetricLabels, double>>;

// All metrics have all labels; Prometheus treats an empty label as missing.
MetricLabels LabelsOf(const NodeSample& sample, const SampledGpu& gpu,
                      const SampledInstance* sampled) {
  const Holder* holder = SoleHolder(sampled == nullptr ? gpu.holders : sampled->holders);
  static const Holder kNobody;
  if (holder == nullptr) holder = &kNobody;
  return {{"gpu", fmt::to_string(gpu.info.index)},
          {"UUID", gpu.info.uuid},
          {"device", fmt::format("nvidia{}", gpu.info.index)},
          {"modelName", gpu.info.product},
          {"Hostname", sample.node},
          {"GPU_I_ID",
           sampled == nullptr ? "" : fmt::to_string(device::DriverIdOf(sampled->instance.id))},
          {"GPU_I_PROFILE", sampled == nullptr ? "" : sampled->instance.profile},
          {"namespace", holder->ns},
          {"pod", holder->pod},
          {"container", holder->container}};
}

template <typename Visit>
void ForEach(const NodeSample& sample, bool instances, const Visit& visit) {
  for (const SampledGpu& gpu : sample.gpus) {
    visit(LabelsOf(sample, gpu, nullptr), gpu.readings);
    if (!instances) continue;
    for (const SampledInstance& sampled : gpu.instances) {
      visit(LabelsOf(sample, gpu, &sampled), sampled.readings);
    }
  }
}

}  // namespace

void GpuMetrics::Show(const NodeSample& sample, std::span<const XidEvent> xids) {
  for (const Shown& shown : kShown) {
    Values values;
    ForEach(sample, shown.instances, [&](MetricLabels labels, const device::Readings& readings) {
      const auto value = readings.Find(shown.metric);
      if (value) values.emplace_back(std::move(labels), *value * shown.factor);
    });
    metrics_.SetAll(shown.family, values);
  }
  Values free;
  ForEach(sample, true, [&](MetricLabels labels, const device::Readings& readings) {
    const auto total = readings.Find(metric::kMemoryTotal),
               used = readings.Find(metric::kMemoryUsed);
    if (total && used) free.emplace_back(std::move(labels), *total - *used);
  });
  metrics_.SetAll(kFree, free);
  for (const XidEvent& event : xids) last_xid_[event.gpu] = event.xid;
  Values last;
  for (const SampledGpu& gpu : sample.gpus) {
    const auto found = last_xid_.find(gpu.info.index);
    last.emplace_back(LabelsOf(sample, gpu, nullptr),
                      found == last_xid_.end() ? 0 : static_cast<double>(found->second));
  }
  metrics_.SetAll(kXid, last);
}

}  // namespace nos::telemetry
