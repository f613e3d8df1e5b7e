// Value of a node's free resources for future pods, in GPUs.
//
//   NodeValue value(demand);
//   double lost = value.Worth(node) - value.AfterPlacing(node, kind).worth;
//
// A pod should be placed where the least worth is lost. Worth is V(n) - G(n), both in GPUs:
//
//  V(n)  the best filling of the node's free parts of devices with kinds of pods seen so far that
//        fit its CPU, memory and model. A slice of size s counts its price c_s (size_prices.h)
//        minus the CPU and memory it takes at prices mu (per core) and nu (per GiB). The node's
//        free CPU and memory are added at the same prices. V is the minimum over a grid of mu and
//        nu: a Lagrangian bound of the best filling. Rare kinds count less: a kind's net price is
//        weighted with the probability 1 - exp(-share of arrivals / 0.004) that one arrives.
//  G(n)  1/30 for each GPU left idle beyond the number that the node's CPU and memory can supply,
//  at
//        the mean CPU and memory per GPU of the pods seen.
//
// Evaluated against fragmentation gradient descent (FGD, USENIX ATC'23) on the Alibaba openb
// traces; `nos simulate openb` repeats the measurement.
//
// Copies the demand it is built from. Methods are not const because they cache fillings by node
// state; not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "scheduling/packing/demand.h"
#include "scheduling/packing/node.h"

namespace nos::scheduling::packing {

class NodeValue {
 public:
  explicit NodeValue(const Demand& demand);

  struct After {
    double worth = 0;
    int device = -1;  // best device for a pod with one device, lowest index first; else -1
  };

  double Worth(const Node& node);
  // Worth after placing a pod of the kind on its best device. REQUIRES: Fits(node, kind).
  After AfterPlacing(const Node& node, const PodKind& kind);

 private:
  static constexpr std::array kCorePrices = {0.0, 0.03, 0.08, 0.16};  // GPUs per core
  static constexpr std::array kGibPrices = {0.0, 0.008, 0.02};        // GPUs per GiB
  static constexpr size_t kLanes = kCorePrices.size() * kGibPrices.size();
  static constexpr size_t kMaxKinds = 512;  // the most frequent kinds, which determine the fillings

  static constexpr size_t kMaxTableBytes = size_t{64} << 20;

  // One number per pair of a core price and a GiB price.
  using Lanes = std::array<double, kLanes>;
  // Best filling of a hole of 0, 1, 2, ... cells.
  using Table = std::vector<Lanes>;

  struct Kind {
    PodKind pod;
    size_t size = 0;         // index into widths_
    double count = 0;        // pods seen
    double price = 0;        // c_s
    double probability = 0;  // that one arrives in time
  };
  struct Offer {
    size_t kind = 0;
    double net = 0;  // price minus CPU and memory, positive
  };

  void LearnBalance(const Demand& demand);
  void PickKinds(const Demand& demand);
  void PriceKinds();
  void RankOffers();
  const Table& TableFor(int64_t cpu_milli, int64_t memory_mib, int model);
  Table MakeTable(int64_t cpu_milli, int64_t memory_mib, int model) const;
  std::vector<Lanes> SizeValues(int64_t cpu_milli, int64_t memory_mib, int model) const;
  const Lanes& Hole(const Table& table, int milli) const { return table[milli / cell_]; }
  double Total(int64_t cpu_milli, int64_t memory_mib, int64_t idle_milli, const Lanes& sum) const;

  std::vector<Kind> kinds_;  // kinds with one device
  std::vector<int> widths_;  // distinct sizes of kinds_, in cells
  int cell_ = kWholeGpu;     // milli
  bool models_matter_ = false;
  std::array<std::vector<Offer>, kLanes> offers_;  // grouped by size, best first
  std::vector<int64_t> cpu_steps_, memory_steps_;  // distinct requests of kinds_, ascending
  double gpus_per_core_ = 0, gpus_per_gib_ = 0;    // of GPU pods; 0: they request none
  // Keyed by CPU rank, memory rank and model. Cleared when larger than kMaxTableBytes.
  std::unordered_map<uint64_t, Table> tables_;
};

}  // namespace nos::scheduling::packing
