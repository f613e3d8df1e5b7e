#include "sim/apiserver/patching/field_set.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace nos::sim {
namespace {

std::string Join(const std::string& path, std::string_view field) {
  return path.empty() ? std::string(field) : path + "." + std::string(field);
}

std::string_view Text(boost::json::string_view text) { return {text.data(), text.size()}; }

// apiVersion, kind, and fields that the server writes have no manager
// (k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager/stripmeta.go).
bool IsServerKept(const std::string& path) {
  static constexpr std::string_view kKept[] = {"apiVersion",
                                               "kind",
                                               "metadata.name",
                                               "metadata.namespace",
                                               "metadata.uid",
                                               "metadata.resourceVersion",
                                               "metadata.generation",
                                               "metadata.creationTimestamp",
                                               "metadata.selfLink",
                                               "metadata.deletionTimestamp",
                                               "metadata.managedFields",
                                               "metadata.deletionGracePeriodSeconds"};
  return std::find(std::begin(kKept), std::end(kKept), path) != std::end(kKept);
}

bool IsLeaf(const FieldSet& node) { return node.empty(); }
bool HasSelf(const FieldSet& node) { return node.empty() || node.contains("."); }

const FieldSet& Child(const Json& value) {
  static const FieldSet kLeaf;
  const JsonObject* object = value.if_object();
  return object == nullptr ? kLeaf : *object;
}

// The key of a list element in a field set: "k:{...}" or "v:...".
std::string ElementName(const Json& element, const ListRule& rule) {
  if (rule.kind == ListRule::Kind::kSet) return "v:" + WriteJson(element);
  std::map<std::string_view, const Json*> keys;
  for (const std::string_view key : rule.keys) {
    if (const Json* value = Find(element, key)) keys[key] = value;
  }
  JsonObject name;
  for (const auto& [key, value] : keys) name[key] = *value;
  // A port without a protocol has the default protocol in its key.
  if (rule.keys.size() == 2 && rule.keys[1] == "protocol" && !name.contains("protocol")) {
    name["protocol"] = "TCP";
  }
  return "k:" + WriteJson(name);
}

// The index of each element by its key; the first one if a key is repeated.
std::map<std::string, size_t> IndexOf(const JsonArray& list, const ListRule& rule) {
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < list.size(); ++i) index.emplace(ElementName(list[i], rule), i);
  return index;
}

bool IsGranular(const Json& value, const std::string& path, const MergeRules& rules) {
  return value.is_object() && !value.get_object().empty() && !rules.IsAtomic(path);
}

FieldSet Fields(const Json& value, const std::string& path, const MergeRules& rules) {
  FieldSet set;
  if (IsGranular(value, path, rules)) {
    for (const auto& [key, member] : value.get_object()) {
      const std::string child = Join(path, Text(key));
      if (IsServerKept(child)) continue;
      FieldSet fields = Fields(member, child, rules);
      // The member has only fields that the server writes. An empty set would claim the whole
      // member.
      if (fields.empty() && IsGranular(member, child, rules)) continue;
      set["f:" + std::string(key)] = std::move(fields);
    }
  } else if (value.is_array()) {
    const ListRule rule = rules.Apply(path);
    if (rule.kind == ListRule::Kind::kAtomic) return set;
    for (const Json& element : value.get_array()) {
      FieldSet fields;
      if (rule.kind == ListRule::Kind::kMap) {
        fields = Fields(element, path, rules);
        fields["."] = JsonObject();
      }
      set[ElementName(element, rule)] = std::move(fields);
    }
  }
  return set;
}

class Comparison {
 public:
  explicit Comparison(const MergeRules& rules) : rules_(rules) {}

  // nullopt if the two values can be compared only as a whole.
  std::optional<FieldChanges> Compare(const Json& before, const Json& after,
                                      const std::string& path) const {
    if (before.is_object() && after.is_object() && !rules_.IsAtomic(path)) {
      return Members(before.get_object(), after.get_object(), path);
    }
    if (before.is_array() && after.is_array()) {
      const ListRule rule = rules_.Apply(path);
      if (rule.kind != ListRule::Kind::kAtomic) {
        return Elements(before.get_array(), after.get_array(), rule, path);
      }
    }
    return std::nullopt;
  }

 private:
  // Adds the change of one child to the changes of its parent.
  void Record(FieldChanges& into, const std::string& name, const Json* before, const Json* after,
              const std::string& path, bool element) const {
    if (before != nullptr && after != nullptr && *before == *after) return;
    const auto whole = [&](const Json& value) {
      FieldSet fields = Fields(value, path, rules_);
      if (element && value.is_object()) fields["."] = JsonObject();
      return fields;
    };
    if (before == nullptr) {
      into.changed[name] = whole(*after);
    } else if (after == nullptr) {
      into.removed[name] = whole(*before);
    } else {
      std::optional<FieldChanges> inside = Compare(*before, *after, path);
      if (!inside) {
        into.changed[name] = whole(*after);
        return;
      }
      if (!inside->changed.empty()) into.changed[name] = std::move(inside->changed);
      if (!inside->removed.empty()) into.removed[name] = std::move(inside->removed);
    }
  }

  FieldChanges Members(const JsonObject& before, const JsonObject& after,
                       const std::string& path) const {
    FieldChanges changes;
    for (const auto& [key, value] : after) {
      const std::string child = Join(path, Text(key));
      if (IsServerKept(child)) continue;
      Record(changes, "f:" + std::string(key), before.if_contains(key), &value, child, false);
    }
    for (const auto& [key, value] : before) {
      const std::string child = Join(path, Text(key));
      if (after.contains(key) || IsServerKept(child)) continue;
      Record(changes, "f:" + std::string(key), &value, nullptr, child, false);
    }
    return changes;
  }

  FieldChanges Elements(const JsonArray& before, const JsonArray& after, const ListRule& rule,
                        const std::string& path) const {
    FieldChanges changes;
    std::map<std::string, const Json*> old;
    for (const Json& element : before) old[ElementName(element, rule)] = &element;
    for (const Json& element : after) {
      const std::string name = ElementName(element, rule);
      const auto found = old.find(name);
      Record(changes, name, found == old.end() ? nullptr : found->second, &element, path, true);
      if (found != old.end()) old.erase(found);
    }
    for (const auto& [name, element] : old) {
      Record(changes, name, element, nullptr, path, true);
    }
    return changes;
  }

  const MergeRules& rules_;
};

// "[name=\"a\"]" for the key of a list element.
std::string ElementStep(std::string_view name) {
  if (name.starts_with("v:")) return fmt::format("[={}]", name.substr(2));
  std::string step = "[";
  const auto keys = ParseJson(name.substr(2));
  if (keys.ok() && keys->is_object()) {
    for (const auto& [field, id] : keys->get_object()) {
      step += fmt::format("{}{}={}", step.size() > 1 ? "," : "", Text(field), WriteJson(id));
    }
  }
  return step + "]";
}

void AddPaths(const FieldSet& node, const std::string& path, std::vector<std::string>& out) {
  if (HasSelf(node)) out.push_back(path.empty() ? "." : path);
  for (const auto& [key, value] : node) {
    const std::string_view name = Text(key);
    if (name == "." || name.size() < 2) continue;
    const std::string step =
        name.starts_with("f:") ? "." + std::string(name.substr(2)) : ElementStep(name);
    AddPaths(Child(value), path + step, out);
  }
}

// `path` selects the merge rules, `shown` is the path for messages.
std::string Duplicate(const Json& value, const std::string& path, const std::string& shown,
                      const MergeRules& rules) {
  if (IsGranular(value, path, rules)) {
    for (const auto& [key, member] : value.get_object()) {
      std::string found =
          Duplicate(member, Join(path, Text(key)), fmt::format("{}.{}", shown, Text(key)), rules);
      if (!found.empty()) return found;
    }
  }
  const ListRule rule = value.is_array() ? rules.Apply(path) : ListRule{};
  if (rule.kind == ListRule::Kind::kAtomic) return "";
  std::set<std::string> seen;
  for (const Json& element : value.get_array()) {
    const std::string name = ElementName(element, rule);
    const std::string step = ElementStep(name);
    if (!seen.insert(name).second) {
      return fmt::format("{}: duplicate entries for key {}", shown, step);
    }
    std::string found = Duplicate(element, path, shown + step, rules);
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace

FieldSet FieldsOf(const Json& object, const MergeRules& rules) { return Fields(object, "", rules); }

FieldChanges CompareFields(const Json& before, const Json& after, const MergeRules& rules) {
  return Comparison(rules).Compare(before, after, "").value_or(FieldChanges());
}

FieldSet Unite(const FieldSet& a, const FieldSet& b) {
  FieldSet result = a;
  for (const auto& [key, value] : b) {
    Json* own = result.if_contains(key);
    if (own == nullptr) {
      result[key] = value;
      continue;
    }
    const FieldSet& theirs = Child(value);
    const bool self = HasSelf(Child(*own)) || HasSelf(theirs);
    FieldSet both = Unite(Child(*own), theirs);
    if (self && !both.empty()) both["."] = JsonObject();
    *own = std::move(both);
  }
  return result;
}

FieldSet Subtract(const FieldSet& a, const FieldSet& b) {
  FieldSet result;
  for (const auto& [key, value] : a) {
    if (Text(key) == ".") continue;
    const Json* other = b.if_contains(key);
    if (other == nullptr) {
      result[key] = value;
      continue;
    }
    const FieldSet& mine = Child(value);
    const FieldSet& theirs = Child(*other);
    if (IsLeaf(mine) || IsLeaf(theirs)) continue;  // a leaf covers all fields below it
    FieldSet rest = Subtract(mine, theirs);
    if (!rest.empty()) result[key] = std::move(rest);
  }
  if (a.contains(".") && !b.contains(".")) result["."] = JsonObject();
  return result;
}

FieldSet Intersect(const FieldSet& a, const FieldSet& b) {
  FieldSet result;
  for (const auto& [key, value] : a) {
    const Json* other = b.if_contains(key);
    if (other == nullptr || Text(key) == ".") continue;
    const FieldSet& mine = Child(value);
    const FieldSet& theirs = Child(*other);
    if (IsLeaf(mine) || IsLeaf(theirs)) {
      result[key] = IsLeaf(mine) ? theirs : mine;
      continue;
    }
    FieldSet common = Intersect(mine, theirs);
    if (!common.empty()) result[key] = std::move(common);
  }
  return result;
}

std::string DuplicateElement(const Json& config, const MergeRules& rules) {
  return Duplicate(config, "", "", rules);
}

std::vector<std::string> FieldPaths(const FieldSet& set) {
  std::vector<std::string> paths;
  if (!set.empty()) AddPaths(set, "", paths);
  return paths;
}

namespace {

void MergeAt(Json& live, const Json& config, const std::string& path, const MergeRules& rules) {
  if (config.is_object() && live.is_object() && !rules.IsAtomic(path)) {
    for (const auto& [key, value] : config.get_object()) {
      MergeAt(live.get_object()[key], value, Join(path, Text(key)), rules);
    }
    return;
  }
  const ListRule rule = config.is_array() ? rules.Apply(path) : ListRule{};
  if (rule.kind == ListRule::Kind::kAtomic || !live.is_array()) {
    live = config;
    return;
  }
  JsonArray& list = live.get_array();
  const auto index = IndexOf(list, rule);
  for (const Json& element : config.get_array()) {
    const auto found = index.find(ElementName(element, rule));
    if (found == index.end()) {
      list.push_back(element);
    } else if (rule.kind == ListRule::Kind::kMap) {
      MergeAt(list[found->second], element, path, rules);
    }
  }
}

const FieldSet& Inside(const FieldSet& set, boost::json::string_view key) {
  static const FieldSet kNothing;
  const Json* child = set.if_contains(key);
  return child == nullptr ? kNothing : Child(*child);
}

bool IsVoid(const Json& value) {
  return (value.is_object() && value.get_object().empty()) ||
         (value.is_array() && value.get_array().empty());
}

void RemoveAt(Json& value, const FieldSet& set, const FieldSet& kept, const std::string& path,
              const MergeRules& rules);

void RemoveMember(JsonObject& object, std::string_view field, const FieldSet& fields,
                  const FieldSet* kept, const std::string& path, const MergeRules& rules) {
  static const FieldSet kNothing;
  Json* member = object.if_contains(field);
  if (member == nullptr) return;
  if (!IsLeaf(fields)) {
    RemoveAt(*member, fields, kept == nullptr ? kNothing : *kept, path, rules);
  }
  if (kept == nullptr && (IsLeaf(fields) || IsVoid(*member))) object.erase(field);
}

void RemoveElements(JsonArray& list, const FieldSet& set, const FieldSet& kept,
                    const std::string& path, const MergeRules& rules) {
  const ListRule rule = rules.Apply(path);
  JsonArray rest;
  for (Json& element : list) {
    const std::string name = ElementName(element, rule);
    const Json* node = set.if_contains(name);
    if (node != nullptr && HasSelf(Child(*node)) && !kept.contains(name)) continue;
    if (node != nullptr) {
      FieldSet fields = Child(*node);
      for (const std::string_view key : rule.keys) fields.erase("f:" + std::string(key));
      if (!fields.empty()) RemoveAt(element, fields, Inside(kept, name), path, rules);
    }
    rest.push_back(std::move(element));
  }
  list = std::move(rest);
}

void RemoveAt(Json& value, const FieldSet& set, const FieldSet& kept, const std::string& path,
              const MergeRules& rules) {
  if (value.is_array()) return RemoveElements(value.get_array(), set, kept, path, rules);
  if (!value.is_object()) return;
  for (const auto& [key, node] : set) {
    if (!Text(key).starts_with("f:")) continue;
    const std::string_view field = Text(key).substr(2);
    const Json* also = kept.if_contains(key);
    const FieldSet* inside = also == nullptr ? nullptr : &Child(*also);
    RemoveMember(value.get_object(), field, Child(node), inside, Join(path, field), rules);
  }
}

}  // namespace

void MergeApplied(Json& live, const Json& config, const MergeRules& rules) {
  MergeAt(live, config, "", rules);
}

void RemoveFields(Json& object, const FieldSet& set, const FieldSet& kept,
                  const MergeRules& rules) {
  RemoveAt(object, set, kept, "", rules);
}

}  // namespace nos::sim
