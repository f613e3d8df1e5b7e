#include "scheduling/packing/size_prices.h"

#include <algorithm>
#include <numeric>

#include "scheduling/packing/node.h"

namespace nos::scheduling::packing {
namespace {

constexpr double kTolerance = 1e-9;

// Best filling of 0, 1, 2, ... cells with any number of items, and the last item of each filling.
struct Filling {
  std::vector<double> value;
  std::vector<int> last;  // -1: the last cell stays empty
};

Filling Fill(const std::vector<int>& widths, const std::vector<double>& prices, int cells) {
  Filling best{std::vector<double>(cells + 1, 0), std::vector<int>(cells + 1, -1)};
  for (int c = 1; c <= cells; ++c) {
    best.value[c] = best.value[c - 1];
    for (size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] > c) continue;
      const double value = best.value[c - widths[i]] + prices[i];
      if (value > best.value[c] + kTolerance) {
        best.value[c] = value;
        best.last[c] = static_cast<int>(i);
      }
    }
  }
  return best;
}

// Minimises the sum of y over patterns such that the patterns hold the demand. The basis starts
// with one pattern per size (as many copies as fit). A column enters while its value exceeds its
// cost.
class CuttingStock {
 public:
  CuttingStock(std::vector<int> widths, const std::vector<double>& demand, int cells)
      : widths_(std::move(widths)), rows_(widths_.size()), cells_(cells) {
    inverse_.assign(rows_, std::vector<double>(rows_, 0));
    for (size_t i = 0; i < rows_; ++i) {
      const int copies = cells_ / widths_[i];
      inverse_[i][i] = 1.0 / copies;
      // The small, uneven addition breaks ties between bases, so that the pivots cannot cycle.
      amount_.push_back(inverse_[i][i] * (demand[i] * (1 + 1e-7 * static_cast<double>(i + 1))));
    }
    cost_.assign(rows_, 1);
  }

  // Returns the best filling of each number of cells under dual feasible prices.
  std::vector<double> Solve() {
    const size_t limit = rows_ == 0 ? 0 : 50 * (rows_ + 10);
    for (size_t step = 0; step < limit; ++step) {
      const std::vector<double> prices = Duals();
      const auto lowest = std::min_element(prices.begin(), prices.end());
      if (*lowest < -kTolerance) {
        if (!Enter(Surplus(lowest - prices.begin()), 0)) break;
        continue;
      }
      const Filling best = Fill(widths_, prices, cells_);
      if (best.value[cells_] <= 1 + kTolerance || !Enter(Pattern(best), 1)) break;
    }
    return Feasible();
  }

 private:
  std::vector<double> Duals() const {
    std::vector<double> prices(rows_, 0);
    for (size_t i = 0; i < rows_; ++i) {
      for (size_t j = 0; j < rows_; ++j) prices[j] += cost_[i] * inverse_[i][j];
    }
    return prices;
  }

  std::vector<double> Surplus(size_t row) const {
    std::vector<double> column(rows_, 0);
    column[row] = -1;
    return column;
  }

  std::vector<double> Pattern(const Filling& best) const {
    std::vector<double> column(rows_, 0);
    for (int c = cells_; c > 0;) {
      const int item = best.last[c];
      if (item >= 0) ++column[item];
      c -= item >= 0 ? widths_[item] : 1;
    }
    return column;
  }

  // False: no basic variable limits the column, which only rounding errors can cause.
  bool Enter(const std::vector<double>& column, double cost) {
    std::vector<double> direction(rows_, 0);
    for (size_t i = 0; i < rows_; ++i) {
      for (size_t j = 0; j < rows_; ++j) direction[i] += inverse_[i][j] * column[j];
    }
    size_t leaving = rows_;
    for (size_t i = 0; i < rows_; ++i) {
      if (direction[i] <= kTolerance) continue;
      if (leaving == rows_ || amount_[i] * direction[leaving] < amount_[leaving] * direction[i]) {
        leaving = i;
      }
    }
    if (leaving == rows_) return false;
    Pivot(leaving, direction, cost);
    return true;
  }

  void Pivot(size_t leaving, const std::vector<double>& direction, double cost) {
    amount_[leaving] /= direction[leaving];
    for (double& x : inverse_[leaving]) x /= direction[leaving];
    cost_[leaving] = cost;
    for (size_t i = 0; i < rows_; ++i) {
      if (i == leaving || direction[i] == 0) continue;
      amount_[i] = std::max(0.0, amount_[i] - direction[i] * amount_[leaving]);
      for (size_t j = 0; j < rows_; ++j) inverse_[i][j] -= direction[i] * inverse_[leaving][j];
    }
  }

  // Scaling makes the prices feasible even if the pivots ended early (Farley 1990).
  std::vector<double> Feasible() const {
    std::vector<double> prices = Duals();
    for (double& price : prices) price = std::max(price, 0.0);
    std::vector<double> value = Fill(widths_, prices, cells_).value;
    const double scale = std::max(value[cells_], 1.0);
    for (double& v : value) v /= scale;
    return value;
  }

  std::vector<int> widths_;  // of each size, in cells
  size_t rows_;
  int cells_;                                 // of a whole GPU
  std::vector<std::vector<double>> inverse_;  // of the basis
  std::vector<double> amount_;                // of each basic column
  std::vector<double> cost_;                  // per basic column: 1 for a pattern, 0 for a surplus
};

}  // namespace

int CellMilli(std::span<const SizeDemand> sizes) {
  int cell = kWholeGpu;
  for (const SizeDemand& size : sizes) cell = std::gcd(cell, size.milli);
  return cell;
}

std::vector<double> PriceSizes(std::span<const SizeDemand> sizes) {
  std::vector<SizeDemand> priced;
  for (const SizeDemand& size : sizes) {
    if (size.milli < kWholeGpu) priced.push_back(size);
  }
  std::stable_sort(priced.begin(), priced.end(),
                   [](const SizeDemand& a, const SizeDemand& b) { return a.count > b.count; });
  priced.resize(std::min(priced.size(), kMaxPricedSizes));

  const int cell = CellMilli(sizes);
  std::vector<int> widths;
  std::vector<double> counts;
  for (const SizeDemand& size : priced) {
    widths.push_back(size.milli / cell);
    counts.push_back(size.count);
  }
  const std::vector<double> value =
      CuttingStock(std::move(widths), counts, kWholeGpu / cell).Solve();
  std::vector<double> prices;
  for (const SizeDemand& size : sizes) {
    prices.push_back(size.milli == kWholeGpu ? 1.0 : value[size.milli / cell]);
  }
  return prices;
}

}  // namespace nos::scheduling::packing
