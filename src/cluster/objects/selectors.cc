#include "cluster/selectors.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"

namespace nos::cluster {
namespace {

bool Contains(const std::vector<std::string>& values, std::string_view value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool Compares(const SelectorRequirement& requirement, std::string_view label) {
  if (requirement.values.size() != 1) return false;
  const auto bound = ParseInt(requirement.values.front());
  const auto number = ParseInt(label);
  if (!bound || !number) return false;
  return requirement.op == "Gt" ? *number > *bound : *number < *bound;
}

bool MatchesField(const SelectorRequirement& requirement, const Node& node) {
  if (requirement.key != "metadata.name" || requirement.values.size() != 1) return false;
  const bool same = requirement.values.front() == node.meta.name;
  return requirement.op == "In" ? same : requirement.op == "NotIn" && !same;
}

// Splits a query at commas outside parentheses.
std::vector<std::string_view> SplitRequirements(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.push_back(Trim(text.substr(start, i - start)));
      start = i + 1;
    } else if (text[i] == '(') {
      ++depth;
    } else if (text[i] == ')') {
      --depth;
    }
  }
  return parts;
}

bool IsName(std::string_view text) {
  return !text.empty() && text.find_first_of(" \t()=!<>,") == std::string_view::npos;
}

// "env in (a,b)", "env notin (a,b)".
bool ParseSet(std::string_view text, SelectorRequirement& to) {
  const size_t open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')') return false;
  const std::string_view head = Trim(text.substr(0, open));
  const size_t blank = head.find_first_of(" \t");
  if (blank == std::string_view::npos) return false;
  const std::string_view op = Trim(head.substr(blank));
  if (op != "in" && op != "notin") return false;
  to.key = head.substr(0, blank);
  to.op = op == "in" ? "In" : "NotIn";
  for (std::string_view value : Split(text.substr(open + 1, text.size() - open - 2), ',')) {
    if (!Trim(value).empty() && !IsName(Trim(value))) return false;
    to.values.emplace_back(Trim(value));
  }
  return IsName(to.key);
}

bool ParseRequirement(std::string_view text, SelectorRequirement& to) {
  if (text.find('(') != std::string_view::npos) return ParseSet(text, to);
  if (text.starts_with('!')) {
    to = {std::string(Trim(text.substr(1))), "DoesNotExist", {}};
    return IsName(to.key);
  }
  const size_t at = text.find_first_of("=!<>");
  to.key = Trim(text.substr(0, at));
  if (at == std::string_view::npos) {
    to.op = "Exists";
    return IsName(to.key);
  }
  const bool twice = text.substr(at).starts_with("==") || text.substr(at).starts_with("!=");
  const std::string_view value = Trim(text.substr(at + (twice ? 2 : 1)));
  if (text[at] == '!' && !twice) return false;
  to.op = text[at] == '=' ? "In" : text[at] == '!' ? "NotIn" : text[at] == '>' ? "Gt" : "Lt";
  to.values.emplace_back(value);
  const bool compares = to.op == "Gt" || to.op == "Lt";
  return IsName(to.key) &&
         (compares ? ParseInt(value).has_value() : value.empty() || IsName(value));
}

}  // namespace

bool Matches(const SelectorRequirement& requirement, const StringMap& labels) {
  const auto label = labels.find(requirement.key);
  const bool exists = label != labels.end();
  const std::string& op = requirement.op;
  if (op == "Exists") return exists && requirement.values.empty();
  if (op == "DoesNotExist") return !exists && requirement.values.empty();
  if (op == "Gt" || op == "Lt") return exists && Compares(requirement, label->second);
  if (requirement.values.empty()) return false;
  if (op == "In") return exists && Contains(requirement.values, label->second);
  if (op == "NotIn") return !exists || !Contains(requirement.values, label->second);
  return false;
}

bool Matches(const NodeSelectorTerm& term, const Node& node) {
  if (term.match_expressions.empty() && term.match_fields.empty()) return false;
  return std::all_of(term.match_expressions.begin(), term.match_expressions.end(),
                     [&](const auto& r) { return Matches(r, node.meta.labels); }) &&
         std::all_of(term.match_fields.begin(), term.match_fields.end(),
                     [&](const auto& r) { return MatchesField(r, node); });
}

bool MatchesAny(const std::vector<NodeSelectorTerm>& terms, const Node& node) {
  return std::any_of(terms.begin(), terms.end(),
                     [&](const NodeSelectorTerm& term) { return Matches(term, node); });
}

bool SelectsNode(const Pod& pod, const Node& node) {
  const bool selected =
      std::all_of(pod.node_selector.begin(), pod.node_selector.end(), [&](const auto& wanted) {
        const auto label = node.meta.labels.find(wanted.first);
        return label != node.meta.labels.end() && label->second == wanted.second;
      });
  if (!selected || !pod.node_affinity || !pod.node_affinity->required) return selected;
  return MatchesAny(*pod.node_affinity->required, node);
}

bool Matches(const LabelSelector& selector, const StringMap& labels) {
  return std::all_of(selector.match_labels.begin(), selector.match_labels.end(),
                     [&](const auto& wanted) {
                       const auto label = labels.find(wanted.first);
                       return label != labels.end() && label->second == wanted.second;
                     }) &&
         std::all_of(selector.match_expressions.begin(), selector.match_expressions.end(),
                     [&](const auto& requirement) { return Matches(requirement, labels); });
}

Result<LabelSelector> ParseLabelSelector(std::string_view text) {
  LabelSelector selector;
  if (Trim(text).empty()) return selector;
  for (const std::string_view part : SplitRequirements(text)) {
    if (!ParseRequirement(part, selector.match_expressions.emplace_back())) {
      return Invalid(fmt::format(
          "label selector: '{}' is not a requirement (examples: app=web, tier!=db, env in (a,b), "
          "gpu, !legacy)",
          part));
    }
  }
  return selector;
}

bool Tolerates(const Toleration& toleration, const Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  if (toleration.op == "Exists") return true;
  if (!toleration.op.empty() && toleration.op != "Equal") return false;
  return !toleration.key.empty() && toleration.value == taint.value;
}

bool Tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(),
                     [&](const Toleration& toleration) { return Tolerates(toleration, taint); });
}

}  // namespace nos::cluster
