#include "telemetryserver/api/narrow.h"

#include <fmt/format.h>

#include <algorithm>

#include "telemetryserver/stories.h"

namespace nos::telemetryserver {
namespace {

void CopyText(const Json& from, std::string_view key, JsonObject& to) {
  const Json* value = Find(from, key);
  if (value != nullptr && value->is_string()) to[key] = *value;
}

void CopyNumber(const Json& from, std::string_view key, JsonObject& to) {
  const Json* value = Find(from, key);
  if (value != nullptr && value->is_number()) to[key] = *value;
}

const JsonArray& ArrayAt(const Json& object, std::string_view key) {
  static const JsonArray none;
  const Json* value = Find(object, key);
  return value != nullptr && value->is_array() ? value->get_array() : none;
}

// Pods of the scope; names and namespaces of other pods are added to `others`.
JsonArray OwnPods(const JsonArray& pods, const Scope& scope, std::set<std::string>& others) {
  JsonArray own;
  for (const Json& pod : pods) {
    std::string ns(FindString(pod, "namespace")), name(FindString(pod, "name"));
    if (scope.Has(ns)) {
      own.push_back({{"namespace", ns}, {"name", name}});
    } else {
      others.insert(std::move(ns));
      others.insert(std::move(name));
    }
  }
  return own;
}

JsonArray LayoutsOf(const Json& node, std::string_view key) {
  JsonArray layouts;
  for (const Json& gpu : ArrayAt(node, key)) {
    JsonObject layout, counts;
    CopyNumber(gpu, "index", layout);
    const Json* profiles = Find(gpu, "profiles");
    if (profiles != nullptr && profiles->is_object()) {
      for (const auto& [profile, count] : profiles->get_object()) {
        if (count.is_number()) counts[profile] = count;
      }
    }
    layout["profiles"] = std::move(counts);
    layouts.emplace_back(std::move(layout));
  }
  return layouts;
}

JsonArray NodesOf(const Json& decision) {
  JsonArray nodes;
  for (const Json& node : ArrayAt(decision, "nodes")) {
    nodes.push_back({{"node", FindString(node, "node")},
                     {"before", LayoutsOf(node, "before")},
                     {"after", LayoutsOf(node, "after")}});
  }
  return nodes;
}

bool IsOfName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '/';
}

struct Others {
  const Scope& scope;
  const std::set<std::string>& namespaces;  // all known ones, including those of the scope
  std::set<std::string> names;              // of pods of the decision, and their namespaces

  // "team-b/train-0" names a pod, "nvidia.com/gpu" does not: namespaces contain no dots.
  bool AreNamedBy(std::string_view word) const {
    while (word.ends_with('.') || word.ends_with('/')) word.remove_suffix(1);
    const std::string whole(word), head(word.substr(0, word.find('/')));
    if (names.contains(whole) || names.contains(head)) return true;
    if (scope.Has(head)) return false;
    return namespaces.contains(head) || (head.size() < whole.size() && head.find('.') == head.npos);
  }
};

std::string_view TextFor(std::string_view text, const Others& others) {
  for (size_t begin = 0; begin < text.size();) {
    const auto* const at = std::find_if(text.begin() + begin, text.end(), IsOfName);
    const auto* const end = std::find_if_not(at, text.end(), IsOfName);
    if (at != end && others.AreNamedBy({at, end})) return kHiddenText;
    begin = static_cast<size_t>(end - text.begin());
  }
  return text;
}

}  // namespace

std::optional<Json> NarrowedDecision(const Json& decision, const Scope& scope,
                                     const std::set<std::string>& namespaces) {
  if (scope.all()) return decision;
  Others others{scope, namespaces, {}};
  const JsonArray &all_pods = ArrayAt(decision, "pods"),
                  &all_victims = ArrayAt(decision, "victims");
  JsonArray pods = OwnPods(all_pods, scope, others.names);
  JsonArray victims = OwnPods(all_victims, scope, others.names);
  const bool hides_pods = pods.size() < all_pods.size(),
             hides_victims = victims.size() < all_victims.size();
  if (pods.empty() && victims.empty()) return std::nullopt;
  JsonObject own{{"kind", "decision"},
                 {"nodes", NodesOf(decision)},
                 {"pods", std::move(pods)},
                 {"victims", std::move(victims)}};
  if (hides_pods) own[kHiddenPods] = true;
  if (hides_victims) own[kHiddenVictims] = true;
  for (const char* key : {"id", "type", "state", "node"}) CopyText(decision, key, own);
  for (const char* key : {"at", "made", "took_ms"}) CopyNumber(decision, key, own);
  for (const char* key : {"summary", "why"}) {
    own[key] = TextFor(FindString(decision, key), others);
  }
  return Json(std::move(own));
}

Json NarrowedQuota(const Json& quota, const Scope& scope) {
  if (scope.all()) return quota;
  JsonArray namespaces;
  for (const Json& ns : ArrayAt(quota, "namespaces")) {
    if (ns.is_string() && scope.Has(std::string(View(ns.get_string())))) namespaces.push_back(ns);
  }
  JsonObject resources;
  const Json* all = Find(quota, "resources");
  if (all != nullptr && all->is_object()) {
    for (const auto& [resource, amounts] : all->get_object()) {
      JsonObject known;
      for (const char* key : {"min", "max", "used", "guaranteed", "borrowed", "lent"}) {
        CopyNumber(amounts, key, known);
      }
      resources[resource] = std::move(known);
    }
  }
  JsonObject own{{"kind", "quota"},
                 {"namespaces", std::move(namespaces)},
                 {"resources", std::move(resources)}};
  for (const char* key : {"type", "namespace", "name"}) CopyText(quota, key, own);
  CopyNumber(quota, "at", own);
  return Json(std::move(own));
}

}  // namespace nos::telemetryserver
