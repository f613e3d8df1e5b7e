#include "sim/apiserver/patching/managed_fields.h"

#include <fmt/core.h>

#include <algorithm>

namespace nos::sim {
namespace {

struct Entry {
  std::string manager, operation, subresource, api_version, time;
  FieldSet fields;

  bool IsOf(const FieldManager& who, std::string_view op) const {
    return manager == who.name && operation == op && subresource == who.subresource;
  }
};

std::vector<Entry> ReadEntries(const Json& object) {
  std::vector<Entry> entries;
  const Json* list = Find(object, "metadata", "managedFields");
  if (list == nullptr || !list->is_array()) return entries;
  for (const Json& json : list->get_array()) {
    const Json* fields = Find(json, "fieldsV1");
    if (fields == nullptr || !fields->is_object()) continue;
    Entry entry;
    entry.manager = FindString(json, "manager");
    entry.operation = FindString(json, "operation");
    entry.subresource = FindString(json, "subresource");
    entry.api_version = FindString(json, "apiVersion");
    entry.time = FindString(json, "time");
    entry.fields = fields->get_object();
    entries.push_back(std::move(entry));
  }
  return entries;
}

void WriteEntries(Json& object, std::vector<Entry> entries) {
  JsonArray list;
  for (Entry& entry : entries) {
    if (entry.fields.empty()) continue;
    JsonObject json{{"manager", entry.manager},        {"operation", entry.operation},
                    {"apiVersion", entry.api_version}, {"time", entry.time},
                    {"fieldsType", "FieldsV1"},        {"fieldsV1", entry.fields}};
    if (!entry.subresource.empty()) json["subresource"] = entry.subresource;
    list.push_back(std::move(json));
  }
  JsonObject& metadata = MakeObject(object, "metadata");
  if (list.empty()) {
    metadata.erase("managedFields");
  } else {
    metadata["managedFields"] = std::move(list);
  }
}

Entry NewEntry(const FieldManager& manager, std::string_view operation, FieldSet fields) {
  return {manager.name,        std::string(operation),  manager.subresource,
          manager.api_version, FormatTime(manager.now), std::move(fields)};
}

Refusal ConflictRefusal(const ResourceType& type, const Json& config, std::vector<Cause> causes) {
  Refusal refusal = ObjectConflict(type, FindString(config, "metadata", "name"), "");
  std::string list;
  for (const Cause& cause : causes) {
    list += fmt::format("\n{}: {}", cause.message, cause.field);
  }
  refusal.message = fmt::format("Apply failed with {} conflict{}:{}", causes.size(),
                                causes.size() == 1 ? "" : "s", list);
  refusal.causes = std::move(causes);
  return refusal;
}

void AddConflicts(const Entry& entry, const FieldSet& fields, std::vector<Cause>& causes) {
  for (const std::string& path : FieldPaths(fields)) {
    causes.push_back(
        {"FieldManagerConflict", path,
         fmt::format("conflict with \"{}\" using {}", entry.manager, entry.api_version)});
  }
}

// A null in an applied configuration counts as absent.
Json WithoutNulls(const Json& value) {
  if (value.is_array()) {
    JsonArray result;
    for (const Json& element : value.get_array()) result.push_back(WithoutNulls(element));
    return result;
  }
  if (!value.is_object()) return value;
  JsonObject result;
  for (const auto& [key, member] : value.get_object()) {
    if (!member.is_null()) result[key] = WithoutNulls(member);
  }
  return result;
}

}  // namespace

Refusal UntypedConfig(const ResourceType& type, const Json& config, std::string_view why) {
  return MakeRefusal(
      500, "",
      fmt::format("failed to create typed patch object ({}/{}; {}, Kind={}): {}",
                  FindString(config, "metadata", "namespace"),
                  FindString(config, "metadata", "name"), type.ApiVersion(), type.kind, why));
}

void RecordUpdate(const Json& before, Json& after, const FieldManager& manager,
                  const MergeRules& rules) {
  const Json nothing = JsonObject();
  const FieldChanges changes = CompareFields(before.is_object() ? before : nothing, after, rules);
  std::vector<Entry> entries =
      ReadEntries(Find(after, "metadata", "managedFields") != nullptr ? after : before);
  bool recorded = changes.changed.empty();
  if (recorded && changes.removed.empty()) return WriteEntries(after, std::move(entries));
  for (Entry& entry : entries) {
    const bool mine = entry.IsOf(manager, "Update") && entry.api_version == manager.api_version;
    entry.fields = Subtract(entry.fields, changes.removed);
    if (!mine) {
      entry.fields = Subtract(entry.fields, changes.changed);
    } else if (!changes.changed.empty()) {
      entry.fields = Unite(entry.fields, changes.changed);
      entry.time = FormatTime(manager.now);
      recorded = true;
    }
  }
  if (!recorded) entries.push_back(NewEntry(manager, "Update", changes.changed));
  WriteEntries(after, std::move(entries));
}

Outcome<Json> ApplyConfig(const ResourceType& type, const Json& live, const Json& config_in,
                          bool force, const FieldManager& manager, const MergeRules& rules) {
  const Json config = WithoutNulls(config_in);
  if (const std::string twice = DuplicateElement(config, rules); !twice.empty()) {
    return UntypedConfig(type, config, twice);
  }
  // 1. Collect the fields of this manager's last apply and those of all other managers.
  std::vector<Entry> entries = ReadEntries(live);
  const auto mine = std::find_if(entries.begin(), entries.end(),
                                 [&](const Entry& entry) { return entry.IsOf(manager, "Apply"); });
  const FieldSet applied_before = mine == entries.end() ? FieldSet() : mine->fields;
  FieldSet others;
  for (auto i = entries.begin(); i != entries.end(); ++i) {
    if (i != mine) others = Unite(others, i->fields);
  }
  // 2. Merge the configuration, then remove fields that it no longer has and no other manager owns.
  const FieldSet applied = FieldsOf(config, rules);
  Json merged = live.is_object() ? live : Json(JsonObject());
  const Json before = merged;
  MergeApplied(merged, config, rules);
  RemoveFields(merged, Subtract(Subtract(applied_before, applied), others), Unite(applied, others),
               rules);

  // 3. Find conflicts after the merge: a field with the same value in both is none. With `force`
  //    the other managers lose the contested fields.
  const FieldSet contested = Intersect(applied, CompareFields(before, merged, rules).changed);
  std::vector<Cause> conflicts;
  for (auto i = entries.begin(); i != entries.end(); ++i) {
    if (i == mine) continue;
    const FieldSet conflict = Intersect(i->fields, contested);
    if (conflict.empty()) continue;
    AddConflicts(*i, conflict, conflicts);
    i->fields = Subtract(i->fields, conflict);
  }
  if (!conflicts.empty() && !force) return ConflictRefusal(type, config, std::move(conflicts));

  // 4. Record the applied fields for this manager.
  Entry entry = NewEntry(manager, "Apply", applied);
  if (mine == entries.end()) {
    entries.push_back(std::move(entry));
  } else {
    // An apply without changes keeps the time of its entry, so that it causes no write.
    if (mine->fields == applied && merged == before) entry.time = mine->time;
    *mine = std::move(entry);
  }
  WriteEntries(merged, std::move(entries));
  return merged;
}

}  // namespace nos::sim
