// Prices of GPUs: the first rule of a list that a GPU matches has its price.
//
//   const std::optional<Micros> price = PriceOf(list, {"H100-80GB", product, node_record});
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
};

struct PriceList {
  std::string currency;  // "EUR"
  std::string note;      // shown with every bill
  std::vector<PriceRule> rules;
};

inline constexpr std::string_view kOnDemand = "on-demand", kSpot = "spot", kReserved = "reserved";

// Error: kInvalid, names the rule.
Status CheckPrices(const PriceList& list);

struct PricedGpu {
  std::string_view model;    // in the catalogue; "": unknown product
  std::string_view product;  // as reported
  const Json& node;          // the node's record, with "labels"; or null
};
// nullopt: no rule matches.
std::optional<Micros> PriceOf(const PriceList& list, const PricedGpu& gpu);

// By the labels of Karpenter, EKS, GKE and AKS; "": they do not show it.
std::string_view CapacityTypeOf(const Json& node);

}  // namespace nos::telemetryserver
