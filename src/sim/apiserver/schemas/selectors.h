// Label and field selectors as the `labelSelector` and `fieldSelector` parameters carry them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// "a=b,c!=d,e in (f,g),h notin (i),j,!k,n>1": all must hold.
class LabelSelector {
 public:
  // Refusal: 400 with the part that is wrong.
  static Outcome<LabelSelector> Parse(std::string_view text);
  // A metav1.LabelSelector object ({matchLabels, matchExpressions}). Null selects nothing, an empty
  // object everything. What is malformed matches nothing.
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

// "spec.nodeName=a,status.phase!=Failed": all must hold. Only the fields that the real server
// indexes for a type are accepted.
class FieldSelector {
 public:
  // Refusal: 400 for a field that this type does not offer.
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
