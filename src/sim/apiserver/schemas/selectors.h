// Label and field selectors in the syntax of the `labelSelector` and `fieldSelector` parameters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// "a=b,c!=d,e in (f,g),h notin (i),j,!k,n>1": all must hold.
class LabelSelector {
 public:
  // Refusal: 400 with the faulty part.
  static Outcome<LabelSelector> Parse(std::string_view text);
  // From a metav1.LabelSelector object ({matchLabels, matchExpressions}). Null selects no object,
  // an empty object selects all. Malformed expressions match nothing.
  static LabelSelector FromJson(const Json* selector);

  bool empty() const { return terms_.empty(); }
  bool Matches(const Json& object) const;  // by metadata.labels

 private:
  enum class Op { kIn, kNotIn, kExists, kAbsent, kGreater, kLess, kNever };
  struct Term {
    std::string key;
    Op op = Op::kExists;
    std::vector<std::string> values;
  };
  static Outcome<Term> ParseTerm(std::string_view text);
  static Term FromExpression(const Json& expression);
  static bool Holds(const Term& term, const Json* value);
  std::vector<Term> terms_;
};

// "spec.nodeName=a,status.phase!=Failed": all must hold. Accepts only fields that the real server
// indexes for a type.
class FieldSelector {
 public:
  // Refusal: 400 for a field that is not selectable for this type.
  static Outcome<FieldSelector> Parse(const ResourceType& type, std::string_view text);

  bool empty() const { return terms_.empty(); }
  bool Matches(const Json& object) const;

 private:
  struct Term {
    std::vector<std::string> path;
    std::string value;
    bool equal = true;
  };
  std::vector<Term> terms_;
};

}  // namespace nos::sim
