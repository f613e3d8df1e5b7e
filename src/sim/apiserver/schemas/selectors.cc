#include "sim/apiserver/schemas/selectors.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"

namespace nos::sim {
namespace {

// Splits at commas outside parentheses.
std::vector<std::string_view> SplitTerms(std::string_view text) {
  std::vector<std::string_view> terms;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i == text.size() || (text[i] == ',' && depth <= 0)) {
      terms.push_back(Trim(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  return terms;
}

bool IsLabelText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-._/").find(c) != std::string_view::npos;
  });
}

Refusal Unparsable(std::string_view text) {
  return BadRequest(fmt::format("unable to parse requirement: \"{}\"", text));
}

bool IsOneOf(const std::vector<std::string>& values, std::string_view value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// From the SelectableFields of each type in the real server.
struct Selectable {
  std::string_view storage, field;
};
constexpr Selectable kSelectable[] = {
    {"pods", "spec.nodeName"},
    {"pods", "spec.restartPolicy"},
    {"pods", "spec.schedulerName"},
    {"pods", "spec.serviceAccountName"},
    {"pods", "spec.hostNetwork"},
    {"pods", "status.phase"},
    {"pods", "status.podIP"},
    {"pods", "status.nominatedNodeName"},
    {"nodes", "spec.unschedulable"},
    {"namespaces", "status.phase"},
    {"secrets", "type"},
    {"services", "spec.clusterIP"},
    {"services", "spec.type"},
    {"replicasets.apps", "status.replicas"},
    {"replicationcontrollers", "status.replicas"},
    {"jobs.batch", "status.successful"},
    {"resourceslices.resource.k8s.io", "spec.nodeName"},
    {"resourceslices.resource.k8s.io", "spec.driver"},
    {"resourceslices.resource.k8s.io", "spec.pool.name"},
    {"events", "involvedObject.kind"},
    {"events", "involvedObject.namespace"},
    {"events", "involvedObject.name"},
    {"events", "involvedObject.uid"},
    {"events", "involvedObject.apiVersion"},
    {"events", "involvedObject.resourceVersion"},
    {"events", "involvedObject.fieldPath"},
    {"events", "reason"},
    {"events", "reportingComponent"},
    {"events", "source"},
    {"events", "type"},
};

bool IsSelectable(const ResourceType& type, std::string_view field) {
  if (field == "metadata.name" || (field == "metadata.namespace" && type.namespaced)) return true;
  return std::any_of(std::begin(kSelectable), std::end(kSelectable), [&](const Selectable& row) {
    return row.storage == type.storage && row.field == field;
  });
}

// Selectors address fields of the stored form: "regarding" of events.k8s.io is stored as
// "involvedObject", and the source of an event is its component.
std::string StoredField(const ResourceType& type, std::string_view field) {
  if (type.storage != kEventStorage) return std::string(field);
  if (field.starts_with("regarding.")) return "involvedObject." + std::string(field.substr(10));
  if (field == "reportingController") return "reportingComponent";
  return std::string(field);
}

std::string FieldText(const Json& object, const std::vector<std::string>& path) {
  const Json* value = &object;
  for (const std::string& step : path) {
    value = Find(*value, step);
    if (value == nullptr) break;
  }
  const std::string& last = path.back();
  if (value == nullptr || value->is_null()) {
    return last == "unschedulable" || last == "hostNetwork" ? "false" : "";
  }
  if (value->is_string()) return std::string(value->get_string());
  if (value->is_object()) return std::string(FindString(*value, "component"));
  return WriteJson(*value);
}

}  // namespace

Outcome<LabelSelector::Term> LabelSelector::ParseTerm(std::string_view text) {
  Term term;
  const auto finish = [&](std::string_view key, Op op,
                          std::vector<std::string> values) -> Outcome<Term> {
    key = Trim(key);
    if (key.empty() || !IsLabelText(key)) return Unparsable(text);
    for (const std::string& value : values) {
      if (!IsLabelText(value)) return Unparsable(text);
    }
    return Term{std::string(key), op, std::move(values)};
  };
  const auto one = [](std::string_view value) {
    return std::vector<std::string>{std::string(Trim(value))};
  };
  if (text.ends_with(')')) {
    const size_t open = text.find('(');
    const std::string_view head = Trim(text.substr(0, open));
    const size_t space = head.find_last_of(' ');
    if (open == std::string_view::npos || space == std::string_view::npos) return Unparsable(text);
    const std::string_view op = head.substr(space + 1);
    if (op != "in" && op != "notin") return Unparsable(text);
    std::vector<std::string> values;
    for (const std::string_view value : Split(text.substr(open + 1, text.size() - open - 2), ',')) {
      values.emplace_back(Trim(value));
    }
    return finish(head.substr(0, space), op == "in" ? Op::kIn : Op::kNotIn, std::move(values));
  }
  if (text.starts_with('!')) return finish(text.substr(1), Op::kAbsent, {});
  const size_t at = text.find_first_of("=!<>");
  if (at == std::string_view::npos) return finish(text, Op::kExists, {});
  const std::string_view key = text.substr(0, at);
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("==")) return finish(key, Op::kIn, one(rest.substr(2)));
  if (rest.starts_with("!=")) return finish(key, Op::kNotIn, one(rest.substr(2)));
  if (rest.starts_with('=')) return finish(key, Op::kIn, one(rest.substr(1)));
  const Op op = rest.starts_with('>') ? Op::kGreater : Op::kLess;
  if (rest.starts_with('!') || !ParseInt(Trim(rest.substr(1)))) return Unparsable(text);
  return finish(key, op, one(rest.substr(1)));
}

Outcome<LabelSelector> LabelSelector::Parse(std::string_view text) {
  LabelSelector selector;
  if (Trim(text).empty()) return selector;
  for (const std::string_view part : SplitTerms(text)) {
    NOS_ASSIGN(Term term, ParseTerm(part));
    selector.terms_.push_back(std::move(term));
  }
  return selector;
}

LabelSelector::Term LabelSelector::FromExpression(const Json& expression) {
  Term term;
  term.key = FindString(expression, "key");
  const std::string_view op = FindString(expression, "operator");
  term.op = op == "In"             ? Op::kIn
            : op == "NotIn"        ? Op::kNotIn
            : op == "Exists"       ? Op::kExists
            : op == "DoesNotExist" ? Op::kAbsent
                                   : Op::kNever;
  const Json* values = Find(expression, "values");
  if (values != nullptr && values->is_array()) {
    for (const Json& value : values->get_array()) {
      if (value.is_string()) term.values.emplace_back(value.get_string());
    }
  }
  return term;
}

LabelSelector LabelSelector::FromJson(const Json* selector) {
  LabelSelector result;
  if (selector == nullptr || !selector->is_object()) {
    result.terms_.push_back({"", Op::kNever, {}});
    return result;
  }
  if (const Json* labels = Find(*selector, "matchLabels"); labels && labels->is_object()) {
    for (const auto& [key, value] : labels->get_object()) {
      const bool text = value.is_string();
      result.terms_.push_back({std::string(key),
                               text ? Op::kIn : Op::kNever,
                               {text ? std::string(value.get_string()) : ""}});
    }
  }
  if (const Json* rules = Find(*selector, "matchExpressions"); rules && rules->is_array()) {
    for (const Json& rule : rules->get_array()) result.terms_.push_back(FromExpression(rule));
  }
  return result;
}

bool LabelSelector::Holds(const Term& term, const Json* value) {
  const bool present = value != nullptr && value->is_string();
  const std::string_view text = present ? View(value->get_string()) : std::string_view();
  switch (term.op) {
    case Op::kIn:
      return present && IsOneOf(term.values, text);
    case Op::kNotIn:
      return !present || !IsOneOf(term.values, text);
    case Op::kExists:
      return present;
    case Op::kAbsent:
      return !present;
    case Op::kGreater:
    case Op::kLess: {
      const auto number = ParseInt(text);
      const int64_t bound = ParseInt(term.values[0]).value_or(0);
      return present && number && (term.op == Op::kGreater ? *number > bound : *number < bound);
    }
    case Op::kNever:
      return false;
  }
  return false;
}

bool LabelSelector::Matches(const Json& object) const {
  if (terms_.empty()) return true;
  const Json* labels = Find(object, "metadata", "labels");
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    return Holds(term, labels == nullptr ? nullptr : Find(*labels, term.key));
  });
}

Outcome<FieldSelector> FieldSelector::Parse(const ResourceType& type, std::string_view text) {
  FieldSelector selector;
  for (const std::string_view part : Split(text, ',')) {
    if (Trim(part).empty()) continue;
    const size_t at = part.find('=');
    if (at == std::string_view::npos || at == 0) {
      return BadRequest(fmt::format("invalid field selector \"{}\"", part));
    }
    Term term;
    term.equal = part[at - 1] != '!';
    const std::string_view name = Trim(part.substr(0, term.equal ? at : at - 1));
    std::string_view value = part.substr(at + 1);
    if (term.equal && value.starts_with('=')) value.remove_prefix(1);
    term.value = Trim(value);
    const std::string field = StoredField(type, name);
    if (!IsSelectable(type, field)) {
      return BadRequest(fmt::format("field label not supported: {}", name));
    }
    for (const std::string_view step : Split(field, '.')) term.path.emplace_back(step);
    selector.terms_.push_back(std::move(term));
  }
  return selector;
}

bool FieldSelector::Matches(const Json& object) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    return (FieldText(object, term.path) == term.value) == term.equal;
  });
}

}  // namespace nos::sim
