// All that keeps a pod from one node. Internal to explanations.
//
// Pure functions.
#pragma once

#include <optional>
#include <tuple>

#include "scheduling/explain.h"

namespace nos::scheduling {

// What cutting the node's GPUs would make and destroy; none: it would not help.
std::optional<Explanation::Cut> CutOn(const cluster::NodeInfo& node,
                                      const cluster::ResourceVector& requests);

bool IsSlice(const Explanation::Lack& lack);

class Obstacles {
 public:
  Obstacles(const Cycle& cycle, const cluster::Pod& pod, const cluster::NodeInfo& node);

  bool none() const { return nearest_.objections.empty() && nearest_.lacks.empty(); }
  size_t objections() const { return nearest_.objections.size(); }
  // Lacks that cutting GPUs does not mend.
  size_t lacks() const;
  // What it lacks beside instances, less important pods hold.
  bool GiveWay() const { return give_way_; }
  // The less, the nearer: down, can never hold it, things in the way, has to be cut, share lacking.
  std::tuple<bool, size_t, size_t, bool, double> Distance() const;
  const Explanation::Nearest& nearest() const { return nearest_; }

 private:
  void Add(const Verdict& verdict, const cluster::NodeInfo& node);
  void AddReason(const Reason& reason, const cluster::NodeInfo& node);

  const cluster::ResourceVector requests_;
  Explanation::Nearest nearest_;
  bool give_way_ = false;
};

}  // namespace nos::scheduling
