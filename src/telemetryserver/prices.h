// Prices of GPUs: the first rule of a list that a GPU matches at a time has its price.
//
//   const std::optional<Micros> price = PriceOf(list, {"H100-80GB", product, node_record, at});
//
// Pure: no input or output. Amounts are millionths of a unit of the list's currency.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codec/json.h"
#include "telemetry/records.h"

namespace nos::telemetryserver {

using Micros = int64_t;
inline constexpr Micros kMicrosPerUnit = 1'000'000;
// Bounds the products of CostOf.
inline constexpr Micros kMaxPrice = 1'000'000 * kMicrosPerUnit;

// Empty conditions match every GPU.
struct PriceRule {
  Micros per_gpu_hour = -1;  // -1: not given, which CheckPrices refuses
  std::string model{};       // name in the catalogue, or product as the node's label has it
  std::string node_pool{};
  std::string capacity_type{};  // see CapacityTypeOf
  std::map<std::string, std::string> node_labels{};
  // "2026-12-01", midnight UTC, or "2026-12-01T06:00:00Z", a full hour; "": always.
  std::string valid_from{};
  telemetry::Millis since = 0;  // of valid_from; see WithTimes
};

struct PriceList {
  std::string currency;  // "EUR"
  std::string note;      // shown with every bill
  std::vector<PriceRule> rules;
};

inline constexpr std::string_view kOnDemand = "on-demand", kSpot = "spot", kReserved = "reserved";

// Error: kInvalid, names the rule.
Status CheckPrices(const PriceList& list);
// Reads valid_from of each rule into `since`. REQUIRES: CheckPrices accepts the list.
PriceList WithTimes(PriceList list);

struct PricedGpu {
  std::string_view model;    // in the catalogue; "": unknown product
  std::string_view product;  // as reported
  const Json& node;          // the node's record, with "labels"; or null
  telemetry::Millis at = 0;  // time of the cost
};
// The price of the first rule that matches and is valid at that time; nullopt: there is none.
// Prices change at full hours only. REQUIRES: WithTimes, if rules have times.
std::optional<Micros> PriceOf(const PriceList& list, const PricedGpu& gpu);

// By the labels of Karpenter, EKS, GKE and AKS; "": they do not show it.
std::string_view CapacityTypeOf(const Json& node);
// The node's pool or group by the same providers' labels; "": none.
std::string_view PoolOf(const Json& node);

}  // namespace nos::telemetryserver
