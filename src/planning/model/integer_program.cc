#include "planning/model/integer_program.h"

#include <CbcEventHandler.hpp>
#include <CbcHeuristic.hpp>
#include <CbcModel.hpp>
#include <CglGomory.hpp>
#include <CglMixedIntegerRounding2.hpp>
#include <ClpSolve.hpp>
#include <OsiClpSolverInterface.hpp>
#include <cmath>

namespace nos::planning {
namespace {

// Ends the search when the time is up.
class Deadline final : public CbcEventHandler {
 public:
  explicit Deadline(const std::function<bool()>& out_of_time) : out_of_time_(&out_of_time) {}
  CbcAction event(CbcEvent) override { return (*out_of_time_)() ? stop : noAction; }
  CbcEventHandler* clone() const override { return new Deadline(*this); }

 private:
  const std::function<bool()>* out_of_time_;
};

// Root cuts beyond these cost more time than the tree they save.
constexpr int kCutPassesAtRoot = 5;

}  // namespace

int IntegerProgram::AddColumn(double most) {
  column_most_.push_back(most);
  return static_cast<int>(column_most_.size()) - 1;
}

int IntegerProgram::AddRow(double most) {
  row_most_.push_back(most);
  return static_cast<int>(row_most_.size()) - 1;
}

void IntegerProgram::Set(int row, int column, double factor) {
  entry_row_.push_back(row);
  entry_column_.push_back(column);
  entry_.push_back(factor);
}

// The solver minimises, so worth is negated on the way in and out.
void IntegerProgram::Load(const std::vector<double>& worth, OsiClpSolverInterface& solver) const {
  CoinPackedMatrix matrix(true, entry_row_.data(), entry_column_.data(), entry_.data(),
                          static_cast<CoinBigIndex>(entry_.size()));
  matrix.setDimensions(static_cast<int>(row_most_.size()), static_cast<int>(column_most_.size()));
  std::vector<double> cost;
  cost.reserve(worth.size());
  for (const double w : worth) cost.push_back(-w);
  const std::vector<double> zero(column_most_.size(), 0.0);
  const std::vector<double> no_least(row_most_.size(), -COIN_DBL_MAX);
  solver.messageHandler()->setLogLevel(0);
  solver.getModelPtr()->messageHandler()->setLogLevel(0);
  solver.loadProblem(matrix, zero.data(), column_most_.data(), cost.data(), no_least.data(),
                     row_most_.data());
}

Relaxation IntegerProgram::Relax(const std::vector<double>& worth) const {
  OsiClpSolverInterface solver;
  Load(worth, solver);
  ClpSolve dual_simplex;  // with presolve: measured fastest, from 500 to 30,000 columns
  dual_simplex.setSolveType(ClpSolve::useDual);
  solver.getModelPtr()->initialSolve(dual_simplex);
  const double *columns = solver.getColSolution(), *prices = solver.getRowPrice();
  Relaxation result{-solver.getObjValue(), {columns, columns + column_most_.size()}, {}};
  result.prices.reserve(row_most_.size());
  for (size_t r = 0; r < row_most_.size(); ++r) result.prices.push_back(-prices[r]);
  return result;
}

std::vector<double> IntegerProgram::Maximise(const std::vector<double>& worth,
                                             const SearchLimits& limits) const {
  OsiClpSolverInterface solver;
  Load(worth, solver);
  for (size_t c = 0; c < column_most_.size(); ++c) solver.setInteger(static_cast<int>(c));
  CbcModel model(solver);
  model.setLogLevel(0);
  model.messageHandler()->setLogLevel(0);
  CglGomory gomory;
  CglMixedIntegerRounding2 rounding_cuts;
  model.addCutGenerator(&gomory, -1, "Gomory");
  model.addCutGenerator(&rounding_cuts, -1, "MIR");
  CbcRounding rounding(model);
  model.addHeuristic(&rounding);
  model.setMaximumNodes(limits.nodes);
  model.setAllowableGap(limits.gap);
  model.setMaximumCutPassesAtRoot(kCutPassesAtRoot);
  if (limits.out_of_time) {
    const Deadline deadline(limits.out_of_time);
    model.passInEventHandler(&deadline);
  }
  model.initialSolve();
  model.branchAndBound();
  std::vector<double> columns;
  if (const double* best = model.bestSolution()) {
    columns.reserve(column_most_.size());
    for (size_t c = 0; c < column_most_.size(); ++c) columns.push_back(std::round(best[c]));
  }
  return columns;
}

}  // namespace nos::planning
