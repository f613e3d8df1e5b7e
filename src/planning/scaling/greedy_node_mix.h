// Greedy node mix: finds a cheap first mix of new nodes for pods, without moving pods afterwards.
//
//   GreedyNodeMix coverer(types, node_types, states, out_of_time);
//   Bins bins = coverer.Cover(wanted);   // by class
//
// Repeatedly takes the node type with the highest worth per price, filled with unserved pods. The
// worth of a pod is the cost of serving it: at first alone on the cheapest new node, then, round by
// round, its share of the price in the last mix. If the unserved pods fill the same node several
// times, as many nodes are taken at once, so the run time depends on the number of classes. After
// the time limit the result still covers some pods, with bounded work. Deterministic. Not
// thread-safe.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "planning/scaling/bins.h"

namespace nos::planning {

class GreedyNodeMix {
 public:
  // All arguments must outlive this object.
  GreedyNodeMix(const Problem& types, const std::vector<NodeType>& node_types, GpuStates& states,
                const std::function<bool()>& out_of_time);

  // Number of pods of the class that fit on an empty node of the type alone.
  int Alone(int cls, int type) const { return alone_[cls * types_.nodes.size() + type]; }
  bool Fits(int cls) const;
  // The best of several mixes: by served levels, then by price. Includes free nodes with pods.
  Bins Cover(const std::vector<int>& wanted);
  // Assigns these pods to an empty node of the type, in this order. Empty if not all fit.
  std::vector<BinAssignment> Together(int type, const std::vector<int>& pods);
  double WorthOf(int cls) const { return worth_[cls]; }

 private:
  struct Filling {
    Bin bin;
    double worth = 0;
    int version = -1;  // of left_
  };
  void FindAlone();
  int Copies(int shape, int cls, int type);
  int ByResources(const PodClass& cls, int type) const;
  void SetWorths();
  void Relearn(const Bins& bins);
  void Start(const std::vector<int>& wanted);
  Bins CoverOnce(const std::vector<int>& wanted);
  Filling Fill(int type);
  void FillWith(int shape, int type, Filling& filling);
  void Take(const Bin& bin, int times, Bins& bins);
  int Times(const Bin& bin, int most) const;
  double Gain(const Filling& filling) const;
  bool MustStop() const;

  const Problem& types_;
  const std::vector<NodeType>& node_types_;
  const std::function<bool()>& out_of_time_;
  Draft draft_;
  std::vector<int> alone_;                     // class x type
  std::map<std::pair<int, int>, int> copies_;  // by slice list id (GpuStates) and type
  std::vector<double> worth_;
  // State of one mix: unserved pods by class; classes by shape, highest worth first; shapes in that
  // order.
  std::vector<int> left_;
  std::vector<std::vector<int>> queues_;
  std::vector<int> order_;
  int version_ = 0;
  int fills_ = 0;  // number of trial fillings
  std::vector<Device> devices_;
};

}  // namespace nos::planning
