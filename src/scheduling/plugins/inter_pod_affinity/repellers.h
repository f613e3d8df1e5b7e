// Index of required anti-affinity terms of many pods: finds out quickly whether any of them
// excludes a given pod. Terms are indexed by a label that they require.
//
//   Repellers repellers(snapshot.context());
//   repellers.Add(db);            // its anti-affinity excludes pods of web
//   repellers.Repel(*web);        // true
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/context.h"

namespace nos::scheduling {

class Repellers {
 public:
  // The cluster context must outlive it.
  explicit Repellers(const cluster::ClusterContext& context) : context_(context) {}

  void Add(const std::shared_ptr<const cluster::Pod>& pod);
  bool Repel(const cluster::Pod& pod) const;

 private:
  struct Term {
    std::shared_ptr<const cluster::Pod> owner;
    const cluster::PodAffinityTerm* term;  // of the owner
  };
  using Terms = std::vector<Term>;

  static void AddOnce(Term term, Terms& to);
  bool AnyMeans(const Terms& terms, const cluster::Pod& pod) const;

  const cluster::ClusterContext& context_;
  // Terms by key and value of a label that they require. Terms without one are in others_.
  std::map<std::string, std::map<std::string, Terms, std::less<>>, std::less<>> by_label_;
  Terms others_;
};

}  // namespace nos::scheduling
