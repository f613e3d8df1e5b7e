// The required anti-affinity of many pods, for asking of many others whether any of it means them:
// terms are found by a label that they ask for.
//
//   Repellers repellers(snapshot.around());
//   repellers.Add(db);            // which does not want web's pods beside it
//   repellers.Repel(*web);        // true
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/surroundings.h"

namespace nos::scheduling {

class Repellers {
 public:
  // The surroundings must outlive it.
  explicit Repellers(const cluster::Surroundings& around) : around_(around) {}

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

  const cluster::Surroundings& around_;
  // By key and value of a label without which none of them means a pod; the others ask for none.
  std::map<std::string, std::map<std::string, Terms, std::less<>>, std::less<>> by_label_;
  Terms others_;
};

}  // namespace nos::scheduling
