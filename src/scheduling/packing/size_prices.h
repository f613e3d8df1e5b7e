// What a share of a GPU is worth in whole GPUs, when the frequencies of the sizes are known.
//
//   PriceSizes({{810, 5}, {480, 5}, {320, 5}});  // 1, 1/2, 1/3: an 810 spoils a GPU, 480s pair up
//
// The prices are the dual of the cutting-stock problem "the fewest GPUs that hold this demand": no
// set of shares that fits into one GPU is worth more than 1 (a dual feasible function), and the
// demand's total worth is the number of GPUs it needs. Solved by column generation (Gilmore and
// Gomory 1961). A size that only ever fills gaps others leave is worth 0.
// Pure.
#pragma once

#include <span>
#include <vector>

namespace nos::scheduling::packing {

struct SizeDemand {
  int milli = 0;  // 1 to 1000
  double count = 0;
};

// The widest step, in milli, that divides a whole GPU and every size: arithmetic in such cells is
// exact. At most 1000 cells.
int CellMilli(std::span<const SizeDemand> sizes);

// Prices in input order, each in [0, 1]. The whole GPU is worth 1. Only the kMaxPricedSizes most
// frequent sizes shape the prices; a further size is worth the best filling of its room by those.
// REQUIRES: sizes distinct and in range, counts positive.
constexpr size_t kMaxPricedSizes = 48;
std::vector<double> PriceSizes(std::span<const SizeDemand> sizes);

}  // namespace nos::scheduling::packing
