#include "telemetryserver/derived.h"

#include <fmt/format.h>

#include "telemetryserver/state/shares.h"

namespace nos::telemetryserver {
namespace {

using Metrics = std::vector<std::pair<std::string, double>>;

Metrics MetricsOf(const Node& node, const gpu::Catalogue& catalogue) {
  double slots = 0, held = 0;
  for (const telemetry::Gpu& gpu : node.layout.gpus) {
    const auto size = static_cast<double>(SlotsOf(gpu, catalogue.FindByProduct(gpu.product)));
    slots += size;
    if (!gpu.holders.empty()) held += size;
    for (const telemetry::Instance& instance : gpu.instances) {
      if (instance.holders.empty()) continue;
      held += size * static_cast<double>(instance.size) / static_cast<double>(gpu.slots);
    }
  }
  Metrics metrics;
  if (slots > 0) metrics.emplace_back("allocated", held / slots);
  if (node.record_at < 0) return metrics;
  metrics.emplace_back("cpu_free", node.free_cpu);
  metrics.emplace_back("memory_free", node.free_memory);
  return metrics;
}

void AddQuota(const Json& quota, telemetry::Millis at, JsonArray& records) {
  const Json* resources = Find(quota, "resources");
  if (resources == nullptr || !resources->is_object()) return;
  const bool composite = FindString(quota, "type") == telemetry::kCompositeQuota;
  for (const auto& [key, amounts] : resources->get_object()) {
    Metrics metrics;
    for (const char* name : {"min", "max", "used", "guaranteed", "borrowed", "lent"}) {
      const Json* value = Find(amounts, name);
      if (value != nullptr && value->is_number()) {
        metrics.emplace_back(name, value->to_number<double>());
      }
    }
    const std::string subject = fmt::format(
        "{}/{}/{}/{}", composite ? telemetry::kCompositeQuotaSubject : telemetry::kQuotaSubject,
        FindString(quota, "namespace"), FindString(quota, "name"),
        std::string_view(key.data(), key.size()));
    records.push_back(telemetry::DerivedRecord(at, subject, metrics));
  }
}

}  // namespace

std::string DerivedEnvelope(const std::string& cluster, const State& state,
                            const gpu::Catalogue& catalogue, telemetry::Millis at,
                            telemetry::Millis stale) {
  JsonArray records;
  records.push_back(
      telemetry::DerivedRecord(at, "cluster", MetricsOf(SharesOf(state, catalogue, stale))));
  for (const auto& [name, node] : state.nodes()) {
    records.push_back(telemetry::DerivedRecord(at, "node/" + name, MetricsOf(node, catalogue)));
  }
  for (const auto& [key, quota] : state.quotas()) AddQuota(quota.body, at, records);
  return WriteJson(JsonObject{{"cluster", cluster}, {"records", std::move(records)}});
}

}  // namespace nos::telemetryserver
