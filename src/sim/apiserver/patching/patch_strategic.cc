#include "sim/apiserver/patching/patch_strategic.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

namespace nos::sim {
namespace {

constexpr std::string_view kPatch = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kDeletePrefix = "$deleteFromPrimitiveList/";
constexpr std::string_view kOrderPrefix = "$setElementOrder/";

std::string Join(const std::string& path, std::string_view field) {
  return path.empty() ? std::string(field) : path + "." + std::string(field);
}

bool Contains(const JsonArray& array, const Json& value) {
  return std::find(array.begin(), array.end(), value) != array.end();
}

// The patch without directives, as the value of a field that does not exist yet.
Json WithoutDirectives(const Json& patch) {
  if (patch.is_array()) {
    JsonArray result;
    for (const Json& element : patch.get_array()) {
      if (FindString(element, kPatch).empty()) result.push_back(WithoutDirectives(element));
    }
    return result;
  }
  if (!patch.is_object()) return patch;
  JsonObject result;
  for (const auto& [key, value] : patch.get_object()) {
    if (!std::string_view(key.data(), key.size()).starts_with('$') && !value.is_null()) {
      result[key] = WithoutDirectives(value);
    }
  }
  return result;
}

class Merger {
 public:
  explicit Merger(const MergeRules& rules) : rules_(rules) {}

  Check Merge(Json& target, const Json& patch, const std::string& path) {
    const Json* directive = Find(patch, kPatch);
    if (directive != nullptr && *directive == "replace") {
      target = WithoutDirectives(patch);
      return std::nullopt;
    }
    if (directive != nullptr && *directive == "delete") {
      target = JsonObject();
      return std::nullopt;
    }
    if (directive != nullptr && *directive != "merge") {
      return BadRequest(fmt::format("unknown $patch directive {}", WriteJson(*directive)));
    }
    if (!target.is_object()) target.emplace_object();
    RetainKeys(target.get_object(), patch);
    for (const auto& [key, value] : patch.get_object()) {
      const std::string_view field(key.data(), key.size());
      Check refusal = field.starts_with('$') ? Directive(target.get_object(), field, value)
                                             : Field(target.get_object(), field, value, path);
      if (refusal) return refusal;
    }
    return Orders(target.get_object(), patch, path);
  }

 private:
  static void RetainKeys(JsonObject& target, const Json& patch) {
    const Json* keys = Find(patch, kRetainKeys);
    if (keys == nullptr || !keys->is_array()) return;
    JsonObject kept;
    for (auto& [key, value] : target) {
      if (Contains(keys->get_array(), Json(key))) kept[key] = std::move(value);
    }
    target = std::move(kept);
  }

  static Check Directive(JsonObject& target, std::string_view name, const Json& value) {
    if (name == kPatch || name == kRetainKeys || name.starts_with(kOrderPrefix)) {
      return std::nullopt;
    }
    if (!name.starts_with(kDeletePrefix) || !value.is_array()) {
      return BadRequest(fmt::format("unknown patch directive \"{}\"", name));
    }
    Json* list = target.if_contains(name.substr(kDeletePrefix.size()));
    if (list == nullptr || !list->is_array()) return std::nullopt;
    std::set<std::string> unwanted;
    for (const Json& element : value.get_array()) unwanted.insert(WriteJson(element));
    JsonArray kept;
    for (Json& element : list->get_array()) {
      if (!unwanted.contains(WriteJson(element))) kept.push_back(std::move(element));
    }
    *list = std::move(kept);
    return std::nullopt;
  }

  Check Field(JsonObject& target, std::string_view field, const Json& value,
              const std::string& path) {
    if (value.is_null()) {
      target.erase(field);
      return std::nullopt;
    }
    const std::string child = Join(path, field);
    if (value.is_object()) return Merge(target[field], value, child);
    if (!value.is_array()) {
      target[field] = value;
      return std::nullopt;
    }
    const ListRule rule = rules_.Strategic(child);
    Json* list = target.if_contains(field);
    const bool fresh = list == nullptr || !list->is_array();
    if (rule.kind == ListRule::Kind::kAtomic || (fresh && rule.kind == ListRule::Kind::kSet)) {
      target[field] = WithoutDirectives(value);
      return std::nullopt;
    }
    if (fresh) list = &(target[field] = JsonArray());
    if (rule.kind == ListRule::Kind::kSet) return Unite(list->get_array(), value.get_array());
    return MergeList(list->get_array(), value.get_array(), rule.keys[0], child);
  }

  static Check Unite(JsonArray& target, const JsonArray& patch) {
    std::set<std::string> present;
    for (const Json& element : target) present.insert(WriteJson(element));
    for (const Json& element : patch) {
      if (present.insert(WriteJson(element)).second) target.push_back(element);
    }
    return std::nullopt;
  }

  Check MergeList(JsonArray& target, const JsonArray& patch, std::string_view key,
                  const std::string& path) {
    const bool replaces = std::any_of(patch.begin(), patch.end(), [](const Json& element) {
      return FindString(element, kPatch) == "replace";
    });
    if (replaces) {
      target = WithoutDirectives(patch).get_array();
      return std::nullopt;
    }
    std::map<std::string, size_t> index;
    for (size_t i = 0; i < target.size(); ++i) {
      if (const Json* id = Find(target[i], key)) index.emplace(WriteJson(*id), i);
    }
    std::set<size_t> deleted;
    for (const Json& element : patch) {
      const Json* id = Find(element, key);
      if (id == nullptr) {
        return BadRequest(fmt::format("an element of {} in the patch lacks its merge key {}: {}",
                                      path, key, WriteJson(element)));
      }
      const auto found = index.find(WriteJson(*id));
      if (FindString(element, kPatch) == "delete") {
        if (found != index.end()) deleted.insert(found->second);
        continue;
      }
      if (found == index.end()) {
        index.emplace(WriteJson(*id), target.size());
        target.emplace_back(JsonObject());
      }
      Json& place = found == index.end() ? target.back() : target[found->second];
      if (auto refusal = Merge(place, element, path)) return refusal;
    }
    Drop(target, deleted);
    return std::nullopt;
  }

  static void Drop(JsonArray& list, const std::set<size_t>& places) {
    if (places.empty()) return;
    JsonArray kept;
    for (size_t i = 0; i < list.size(); ++i) {
      if (!places.contains(i)) kept.push_back(std::move(list[i]));
    }
    list = std::move(kept);
  }

  Check Orders(JsonObject& target, const Json& patch, const std::string& path) {
    for (const auto& [key, order] : patch.get_object()) {
      const std::string_view name(key.data(), key.size());
      if (!name.starts_with(kOrderPrefix)) continue;
      const std::string_view field = name.substr(kOrderPrefix.size());
      Json* list = target.if_contains(field);
      if (!order.is_array()) return BadRequest(fmt::format("{} is not a list", name));
      if (list == nullptr || !list->is_array()) continue;
      const ListRule rule = rules_.Strategic(Join(path, field));
      const std::string_view id = rule.keys.empty() ? std::string_view() : rule.keys[0];
      Reorder(list->get_array(), order.get_array(), id);
    }
    return std::nullopt;
  }

  // Elements in `order` are sorted by it, within the positions that they occupy together. Other
  // elements, which only the server knows, keep their positions.
  static void Reorder(JsonArray& list, const JsonArray& order, std::string_view key) {
    const auto id_of = [&](const Json& element) {
      const Json* id = key.empty() ? &element : Find(element, key);
      return id == nullptr ? std::string() : WriteJson(*id);
    };
    std::map<std::string, size_t> ranks;
    for (size_t i = 0; i < order.size(); ++i) ranks.emplace(id_of(order[i]), i);
    std::vector<std::pair<size_t, Json>> named;
    std::vector<size_t> places;
    for (size_t i = 0; i < list.size(); ++i) {
      const auto rank = ranks.find(id_of(list[i]));
      if (rank == ranks.end()) continue;
      places.push_back(i);
      named.emplace_back(rank->second, std::move(list[i]));
    }
    std::stable_sort(named.begin(), named.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < places.size(); ++i) list[places[i]] = std::move(named[i].second);
  }

  const MergeRules& rules_;
};

}  // namespace

Check StrategicPatch(Json& target, const Json& patch, const MergeRules& rules) {
  if (!patch.is_object()) return BadRequest("a strategic merge patch is an object");
  return Merger(rules).Merge(target, patch, "");
}

}  // namespace nos::sim
