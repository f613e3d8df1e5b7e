// Values of GPU slices in whole GPUs, given the frequencies of sizes.
//
//   PriceSizes({{810, 5}, {480, 5}, {320, 5}});  // 1, 1/2, 1/3: 810 fills a GPU, two 480s share
//   one
//
// Prices are the dual of the cutting-stock problem "fewest GPUs that hold this demand": no set of
// slices that fits into one GPU is worth more than 1 (a dual feasible function), and the total
// worth of the demand is the number of GPUs it needs. Solved by column generation (Gilmore and
// Gomory 1961). A size that only fills gaps between other slices is worth 0.
//
// Pure functions.
#pragma once

#include <span>
#include <vector>

namespace nos::scheduling::packing {

struct SizeDemand {
  int milli = 0;  // 1 to 1000
  double count = 0;
};

// The widest step, in milli, that divides a whole GPU and every size. Arithmetic in such cells is
// exact. There are at most 1000 cells per GPU.
int CellMilli(std::span<const SizeDemand> sizes);

// Prices in input order, each in [0, 1]. The whole GPU is worth 1. Only the kMaxPricedSizes most
// frequent sizes determine the prices; any other size is worth the best filling of its width by
// those. REQUIRES: sizes are distinct and in range, counts are positive.
constexpr size_t kMaxPricedSizes = 48;
std::vector<double> PriceSizes(std::span<const SizeDemand> sizes);

}  // namespace nos::scheduling::packing
