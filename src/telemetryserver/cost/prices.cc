#include "telemetryserver/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/clock.h"
#include "base/text.h"
#include "codec/millionths.h"
#include "telemetryserver/levels.h"

namespace nos::telemetryserver {
namespace {

// Labels with the name of the node's pool or group.
constexpr std::array<const char*, 4> kPoolLabels = {
    "karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool"};
constexpr size_t kMaxCurrency = 8, kMaxNote = 200, kMaxRules = 1000;

std::string_view LabelOf(const Json& node, std::string_view key) {
  const Json* labels = Find(node, "labels");
  return labels == nullptr ? std::string_view() : FindString(*labels, key);
}

// Products have blanks in NVML and hyphens in labels.
std::string Canonical(std::string_view product) {
  std::string text = ToLower(product);
  std::ranges::replace(text, ' ', '-');
  return text;
}

bool Matches(const PriceRule& rule, const PricedGpu& gpu) {
  const bool model = rule.model.empty() || Canonical(rule.model) == Canonical(gpu.model) ||
                     Canonical(rule.model) == Canonical(gpu.product);
  const bool pool =
      rule.node_pool.empty() || std::ranges::any_of(kPoolLabels, [&](const char* key) {
        return LabelOf(gpu.node, key) == rule.node_pool;
      });
  if (gpu.at < rule.since) return false;
  const bool capacity =
      rule.capacity_type.empty() || CapacityTypeOf(gpu.node) == rule.capacity_type;
  return model && pool && capacity && std::ranges::all_of(rule.node_labels, [&](const auto& label) {
           const Json* labels = Find(gpu.node, "labels");
           const Json* value = labels == nullptr ? nullptr : Find(*labels, label.first);
           return value != nullptr && value->is_string() &&
                  View(value->get_string()) == label.second;
         });
}

// Error: kInvalid: it is no date and no time at a full hour.
Result<telemetry::Millis> SinceOf(std::string_view valid_from) {
  if (valid_from.empty()) return telemetry::Millis{0};
  const std::string text =
      valid_from.size() == 10 ? std::string(valid_from) + "T00:00:00Z" : std::string(valid_from);
  const auto time = ParseTime(text);
  const auto since =
      time.ok() ? std::chrono::floor<std::chrono::milliseconds>(*time).time_since_epoch().count()
                : -1;
  if (since >= 0 && since % kHour == 0) return since;
  return Invalid(
      "validFrom: a date such as 2026-12-01 or a full hour such as "
      "2026-12-01T06:00:00Z is required");
}

Status CheckRule(const PriceRule& rule) {
  if (rule.per_gpu_hour < 0 || rule.per_gpu_hour > kMaxPrice) {
    return Invalid(fmt::format("pricePerGpuHour: a number from 0 to {} is required",
                               MillionthsText(kMaxPrice)));
  }
  NOS_RETURN_IF_ERROR(SinceOf(rule.valid_from).status());
  const std::string& type = rule.capacity_type;
  if (type.empty() || type == kOnDemand || type == kSpot || type == kReserved) return Status::Ok();
  return Invalid(fmt::format("capacityType: expected {}, {} or {}", kOnDemand, kSpot, kReserved));
}

}  // namespace

Status CheckPrices(const PriceList& list) {
  if (list.rules.size() > kMaxRules) return Invalid(fmt::format("prices: at most {}", kMaxRules));
  const bool currency =
      !list.currency.empty() && list.currency.size() <= kMaxCurrency &&
      std::ranges::all_of(list.currency, [](char c) { return c >= 'A' && c <= 'Z'; });
  if (!currency && !(list.currency.empty() && list.rules.empty())) {
    return Invalid("currency: a code of capital letters is required beside prices, such as EUR");
  }
  if (list.note.size() > kMaxNote) return Invalid(fmt::format("note: at most {} bytes", kMaxNote));
  for (size_t i = 0; i < list.rules.size(); ++i) {
    NOS_RETURN_IF_ERROR(CheckRule(list.rules[i]).Within(fmt::format("prices[{}]", i)));
  }
  return Status::Ok();
}

PriceList WithTimes(PriceList list) {
  for (PriceRule& rule : list.rules) rule.since = SinceOf(rule.valid_from).value_or(0);
  return list;
}

std::optional<Micros> PriceOf(const PriceList& list, const PricedGpu& gpu) {
  const auto rule =
      std::ranges::find_if(list.rules, [&](const PriceRule& each) { return Matches(each, gpu); });
  return rule == list.rules.end() ? std::nullopt : std::optional(rule->per_gpu_hour);
}

std::string_view PoolOf(const Json& node) {
  for (const char* key : kPoolLabels) {
    if (const std::string_view pool = LabelOf(node, key); !pool.empty()) return pool;
  }
  return {};
}

std::string_view CapacityTypeOf(const Json& node) {
  const auto is = [&](std::string_view key, std::string_view value) {
    return LabelOf(node, key) == value;
  };
  const std::string_view karpenter = LabelOf(node, "karpenter.sh/capacity-type");
  for (const std::string_view type : {kOnDemand, kSpot, kReserved}) {
    if (karpenter == type) return type;
  }
  const std::string_view eks = LabelOf(node, "eks.amazonaws.com/capacityType");
  if (!eks.empty()) {
    return eks == "SPOT"             ? kSpot
           : eks == "ON_DEMAND"      ? kOnDemand
           : eks == "CAPACITY_BLOCK" ? kReserved
                                     : "";
  }
  // GKE and AKS label nodes that can be taken away; other nodes of their pools are on demand.
  if (!LabelOf(node, "cloud.google.com/gke-nodepool").empty()) {
    const bool spot = is("cloud.google.com/gke-spot", "true") ||
                      is("cloud.google.com/gke-provisioning", "spot") ||
                      is("cloud.google.com/gke-preemptible", "true");
    return spot ? kSpot : kOnDemand;
  }
  if (!LabelOf(node, "kubernetes.azure.com/agentpool").empty()) {
    return is("kubernetes.azure.com/scalesetpriority", "spot") ? kSpot : kOnDemand;
  }
  return {};
}

}  // namespace nos::telemetryserver
