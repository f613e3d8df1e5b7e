// Which pods a term of affinity between pods means.
//
// Pure functions of values; may be called from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/surroundings.h"

namespace nos::scheduling {

// A term of a pod that is to be placed, with its namespaces looked up: for asking about many pods.
class TermMatcher {
 public:
  TermMatcher(const cluster::PodAffinityTerm& term, const cluster::Pod& owner,
              const cluster::Surroundings& around);

  const std::string& key() const { return key_; }
  bool Matches(const cluster::Pod& other) const;

 private:
  std::string key_;
  std::optional<cluster::LabelSelector> selector_;
  bool every_namespace_ = false;
  std::vector<std::string> namespaces_;  // sorted
};

// Whether `pod` is to run near others, and all that it asks for of them means this one.
bool IsAttractedBy(const cluster::Pod& pod, const cluster::Pod& other,
                   const cluster::Surroundings& around);

// Empty when the namespace is not known.
const cluster::StringMap& NamespaceLabels(const cluster::Surroundings& around, std::string_view ns);

// Whether the term of `owner` means `pod`, whose namespace has these labels.
bool Selects(const cluster::PodAffinityTerm& term, const cluster::Pod& owner,
             const cluster::Pod& pod, const cluster::StringMap& namespace_labels);
// The same where no namespace's labels are known: a selector may pick any.
bool MaySelect(const cluster::PodAffinityTerm& term, const cluster::Pod& owner,
               const cluster::Pod& pod);

}  // namespace nos::scheduling
