// Amounts of money and GPU time by holder and category, and their exact sums.
//
//   Ledger ledger;
//   ledger.Add({.ns = "team-a", .pod = "train-0", .category = Category::kUsed}, {cost, time, 0});
//   ledger.Total().cost
//
// Pure. Internal to this library.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <string>
#include <string_view>

#include "telemetryserver/prices.h"

namespace nos::telemetryserver {

enum class Category {
  kUsed,           // held by a pod, and busy
  kIdle,           // held by a pod, and not busy
  kUnknown,        // held by a pod, and not measured
  kFree,           // in a slice without a pod, or a whole GPU without one
  kUnpartitioned,  // in no slice
  kFragmented,     // free, but of no use for pending pods beside the slices in use
  kStranded,       // free on a node or GPU that cannot take a pod
  kNotReported,    // the node did not report
};
inline constexpr std::array<std::string_view, 8> kCategories = {
    "used", "idle", "unknown", "free", "unpartitioned", "fragmented", "stranded", "not_reported"};
constexpr std::string_view NameOf(Category category) {
  return kCategories.at(static_cast<size_t>(category));
}

struct CostKey {
  std::string ns{}, pod{};  // "": no pod has it
  std::string job{};        // "Job/train"; "": none
  std::string quota{};      // "": none
  std::string model{};
  std::string pool{};  // of the node; "": none
  Category category = Category::kUsed;
  bool borrowed = false;  // the pod is over its quota
  friend auto operator<=>(const CostKey&, const CostKey&) = default;
};

struct CostSums {
  Micros cost = 0;      // of GPUs with a price
  Micros gpu_time = 0;  // of all, in millionths of a GPU hour
  Micros unpriced = 0;  // the GPU time without a price
  friend bool operator==(const CostSums&, const CostSums&) = default;
};

class Ledger {
 public:
  void Add(const CostKey& key, const CostSums& sums);
  void Add(const Ledger& other);
  const std::map<CostKey, CostSums>& rows() const { return rows_; }
  const CostSums& total() const { return total_; }
  // The sums are too large for their type, and wrong.
  bool overflowed() const { return overflowed_; }

 private:
  void AddTo(CostSums& sum, const CostSums& sums);

  std::map<CostKey, CostSums> rows_;
  CostSums total_;
  bool overflowed_ = false;
};

}  // namespace nos::telemetryserver
