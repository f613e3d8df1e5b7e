// Matching of pods by the terms of inter-pod affinity.
//
// Pure functions of values; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/context.h"

namespace nos::scheduling {

// A compiled term of a pending pod with resolved namespaces, for matching many pods.
class TermMatcher {
 public:
  TermMatcher(const cluster::PodAffinityTerm& term, const cluster::Pod& owner,
              const cluster::ClusterContext& context);

  const std::string& key() const { return key_; }
  bool Matches(const cluster::Pod& other) const;

 private:
  std::string key_;
  std::optional<cluster::LabelSelector> selector_;
  bool every_namespace_ = false;
  std::vector<std::string> namespaces_;  // sorted
};

// True if `pod` has required affinity terms and `other` matches all of them.
bool IsAttractedBy(const cluster::Pod& pod, const cluster::Pod& other,
                   const cluster::ClusterContext& context);

// Empty if the namespace is unknown.
const cluster::StringMap& NamespaceLabels(const cluster::ClusterContext& context,
                                          std::string_view ns);

// True if the term of `owner` selects `pod`, whose namespace has these labels.
bool Selects(const cluster::PodAffinityTerm& term, const cluster::Pod& owner,
             const cluster::Pod& pod, const cluster::StringMap& namespace_labels);
// The same with unknown namespace labels: assumes that a namespace selector may match.
bool MaySelect(const cluster::PodAffinityTerm& term, const cluster::Pod& owner,
               const cluster::Pod& pod);

}  // namespace nos::scheduling
