// The part of the sandbox's demonstration that never ends: two teams with elastic quotas.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "cluster/elastic_quota.h"
#include "gpu/modes.h"
#include "sim/workload.h"

namespace nos::sim {
namespace {

using std::chrono::seconds;

constexpr const char* kResearch = "research";
constexpr const char* kProduction = "production";
// Research has its peak in the first half of a cycle, production in the second, and every third
// cycle is quiet, as nights are.
constexpr int64_t kCycle = 8;  // minutes
constexpr int64_t kDay = 3 * kCycle;

Json NamespaceObject(const char* name) {
  return JsonObject{
      {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", JsonObject{{"name", name}}}};
}

Json QuotaObject(const char* ns, int64_t gigabytes) {
  return JsonObject{
      {"apiVersion", fmt::format("{}/{}", cluster::kQuotaGroup, cluster::kQuotaVersion)},
      {"kind", cluster::kElasticQuota},
      {"metadata", JsonObject{{"name", "quota"}, {"namespace", ns}}},
      {"spec", JsonObject{{"min", JsonObject{{"nos.nebuly.com/gpu-memory", gigabytes}}}}}};
}

int64_t MemoryOf(const gpu::Model& model) {
  return model.counted() ? model.slots() : model.memory_gib();
}

}  // namespace

std::vector<Json> TeamsDemand::Objects() const {
  int64_t gigabytes = 0;
  for (const gpu::Model* gpu : gpus_) gigabytes += MemoryOf(*gpu);
  return {NamespaceObject(kResearch), NamespaceObject(kProduction),
          QuotaObject(kResearch, gigabytes / 2), QuotaObject(kProduction, gigabytes / 2)};
}

std::vector<PodSpec> TeamsDemand::Minute(int64_t minute) const {
  std::vector<PodSpec> pods;
  if (gpus_.empty()) return pods;
  Random random(seed_ + static_cast<uint64_t>(minute) * 0x9e3779b97f4a7c15ULL);
  const auto gpus = static_cast<double>(gpus_.size());
  // Parts of a GPU, in thirds of its compute slices.
  const auto add = [&](const char* ns, const std::string& name, int thirds, seconds run) {
    const gpu::Model& model = *gpus_[random.Below(gpus_.size())];
    std::string profile = PlainProfile(model, std::max(1, model.compute_slices() * thirds / 3));
    const bool hybrid = !model.counted() && model.FindProfile(gpu::kWholeGpu).has_value();
    if (hybrid && random.Below(4) == 0) profile = thirds == 3 ? "gpu" : "shared";
    PodSpec& pod = pods.emplace_back();
    pod.ns = ns;
    pod.name = name;
    pod.containers = {{{std::move(profile), 1}}};
    pod.cpu = Quantity::FromMilli(500);
    pod.labels = {{"app", name.substr(0, name.find('-'))}, {"team", ns}};
    pod.arrival = std::chrono::milliseconds(random.Below(60'000));
    pod.run = run + seconds(random.Below(60));
  };
  const double daylight =
      0.8 + 0.2 * std::sin(2 * std::numbers::pi * static_cast<double>(minute % kDay) / kDay);
  const int64_t phase = minute % kCycle;
  const bool first_half = phase < kCycle / 2;
  const auto studies = static_cast<int>(std::lround(gpus * daylight * (first_half ? 1.2 : 0.4)));
  for (int i = 1; i <= studies; ++i) {
    add(kResearch, fmt::format("study-{}-{}", minute, i), random.Below(2) == 0 ? 1 : 0,
        seconds(150));
    pods.back().owner = fmt::format("study-{}-{}", minute, i);  // comes back after an eviction
  }
  const auto serving = static_cast<int>(std::lround(gpus * daylight * (first_half ? 0.1 : 0.5)));
  for (int i = 1; i <= serving; ++i) {
    add(kProduction, fmt::format("serve-{}-{}", minute, i), random.Below(6) == 0 ? 3 : 1,
        seconds(120));
  }
  if (phase == kCycle - 1) {
    add(kProduction, fmt::format("urgent-{}", minute), 1, seconds(60));
    pods.back().priority = 100;
  }
  return pods;
}

}  // namespace nos::sim
