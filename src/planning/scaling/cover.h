// Which new nodes serve pods for little money: a first mix, made without moving anything.
//
//   Coverer coverer(types, node_types, states, out_of_time);
//   Bins bins = coverer.Cover(wanted);   // by class
//
// Node after node the type is taken that gives most for its price, filled with what is left. What a
// pod is worth is what serving it costs: at first alone on the new node that is cheapest for its
// kind, then, round by round, its part of what the last mix paid for. Where all that is put on a
// node is there many times over, as many nodes are taken at once: cost follows the number of
// classes. When the time is up something is covered still, of bounded work. Deterministic; one
// owner thread.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "planning/scaling/bins.h"

namespace nos::planning {

class Coverer {
 public:
  // All of these must outlive it.
  Coverer(const Problem& types, const std::vector<NodeType>& node_types, GpuStates& states,
          const std::function<bool()>& out_of_time);

  // Of the class, pods that an empty node of the type takes if nothing else is there.
  int Alone(int cls, int type) const { return alone_[cls * types_.nodes.size() + type]; }
  bool Fits(int cls) const;
  // Of several mixes the one that serves best by levels, then the cheapest. Free nodes that hold
  // something are among them.
  Bins Cover(const std::vector<int>& wanted);
  // These pods on an empty node of the type, in this order; none: they do not all fit.
  std::vector<Seat> Together(int type, const std::vector<int>& pods);
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
  std::map<std::pair<int, int>, int> copies_;  // by number of the slices (GpuStates), and type
  std::vector<double> worth_;
  // Of one mix: what is left, by class; which classes these are, by shape, most worth first; and
  // the shapes in that order.
  std::vector<int> left_;
  std::vector<std::vector<int>> queues_;
  std::vector<int> order_;
  int version_ = 0;
  int fills_ = 0;  // nodes that were filled on trial
  std::vector<Device> devices_;
};

}  // namespace nos::planning
