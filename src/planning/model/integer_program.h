// A small integer program, solved by CBC (branch and cut over Clp's simplex).
//
//   IntegerProgram program;
//   const int x = program.AddColumn(10), row = program.AddRow(4.5);   // 0 <= x <= 10, row <= 4.5
//   program.Set(row, x, 2.0);                                        // 2 x <= 4.5
//   program.Maximise({1.0}, {.nodes = 100});                         // x = 2
//
// Single-threaded. Deterministic unless out_of_time stops it.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

class OsiClpSolverInterface;

namespace nos::planning {

struct Relaxation {
  double best = 0;              // upper limit of the worth of all solutions, integer or not
  std::vector<double> columns;  // of that solution; mostly integers
  std::vector<double> prices;   // by row: gain in worth per unit of its limit
};

// Limits of the search for an integer solution.
struct SearchLimits {
  int nodes = 0;     // of the search tree
  double gap = 0.0;  // a solution within this distance of the best is accepted
  std::function<bool()> out_of_time{};
};

class IntegerProgram {
 public:
  // An integer from 0 to `most`.
  int AddColumn(double most);
  // The sum of its entries is at most `most`.
  int AddRow(double most);
  // REQUIRES: each entry is set once.
  void Set(int row, int column, double factor);

  size_t columns() const { return column_most_.size(); }

  // The best solution with fractional columns. REQUIRES: a solution exists. `worth`: by column.
  Relaxation Relax(const std::vector<double>& worth) const;
  // The integer columns with the highest worth found within the limits; empty if none was found.
  std::vector<double> Maximise(const std::vector<double>& worth, const SearchLimits& limits) const;

 private:
  void Load(const std::vector<double>& worth, OsiClpSolverInterface& solver) const;

  std::vector<double> column_most_, row_most_;
  std::vector<int> entry_row_, entry_column_;
  std::vector<double> entry_;
};

}  // namespace nos::planning
