// How many GPUs' worth of future pods a node can still serve.
//
//   NodeValue value(demand);
//   double lost = value.Worth(node) - value.AfterPlacing(node, kind).worth;
//
// A pod belongs where the least worth is lost. Worth is V(n) - G(n), both in GPUs:
//
//  V(n)  the best filling of the node's free device shares with the kinds of pods seen so far that
//        still fit its CPU, memory and model. A share of size s counts as its price c_s
//        (size_prices.h), less the CPU and memory it takes at prices mu (a core) and nu (a GiB);
//        what the node has of both counts at the same prices; V is the least over a grid of mu and
//        nu, a Lagrangian bound of the best filling. Rare kinds count less: a hole is worth a
//        kind's net price only with the probability 1 - exp(-share of arrivals / 0.004) that one
//        comes.
//  G(n)  1/30 for each GPU left idle beyond what the node's CPU and memory can feed, at the mean
//        CPU and memory a GPU of the pods seen.
//
// Measured against fragmentation gradient descent (FGD, ATC'23) on the Alibaba openb traces; `nos
// simulate openb` repeats that.
//
// A snapshot of the demand it is made from. Keeps tables of fillings for the node states asked
// about, so the methods are not const; not synchronised.
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
    int device = -1;  // where one device is needed: the best, lowest index first; else -1
  };

  double Worth(const Node& node);
  // What is left once a pod of the kind is placed on its best device. REQUIRES: Fits(node, kind).
  After AfterPlacing(const Node& node, const PodKind& kind);

 private:
  static constexpr std::array kCorePrices = {0.0, 0.03, 0.08, 0.16};  // GPUs a core
  static constexpr std::array kGibPrices = {0.0, 0.008, 0.02};        // GPUs a GiB
  static constexpr size_t kLanes = kCorePrices.size() * kGibPrices.size();
  static constexpr size_t kMaxKinds = 512;  // the most frequent ones that shape the fillings

  static constexpr size_t kMaxTableBytes = size_t{64} << 20;

  // One number for each pair of a core price and a GiB price.
  using Lanes = std::array<double, kLanes>;
  // The best filling of a hole of 0, 1, 2... cells.
  using Table = std::vector<Lanes>;

  struct Kind {
    PodKind pod;
    size_t size = 0;         // index into widths_
    double count = 0;        // seen
    double price = 0;        // c_s
    double probability = 0;  // that one comes in time
  };
  struct Offer {
    size_t kind = 0;
    double net = 0;  // price less CPU and memory, above 0
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

  std::vector<Kind> kinds_;  // of one device
  std::vector<int> widths_;  // distinct sizes of kinds_, in cells
  int cell_ = kWholeGpu;     // milli
  bool models_matter_ = false;
  std::array<std::vector<Offer>, kLanes> offers_;  // grouped by size, best first
  std::vector<int64_t> cpu_steps_, memory_steps_;  // distinct requests of kinds_, ascending
  double gpus_per_core_ = 0, gpus_per_gib_ = 0;    // of GPU pods; 0 = they need none
  // By CPU rank, memory rank and model. Forgotten when they outgrow kMaxTableBytes.
  std::unordered_map<uint64_t, Table> tables_;
};

}  // namespace nos::scheduling::packing
