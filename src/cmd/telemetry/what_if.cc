#include "cmd/telemetry/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/names.h"
#include "base/table.h"
#include "base/text.h"
#include "codec/json_text.h"
#include "codec/yaml.h"
#include "scheduling/explain.h"
#include "scheduling/pod_names.h"
#include "scheduling/remedies.h"
#include "scheduling/summary.h"

namespace nos::cmd {
namespace {

using scheduling::Explanation;

constexpr size_t kWidth = 100;
constexpr std::string_view kSomebodys = "a pod of another namespace";

// Metadata that the author of a pod writes; the API server sets the other fields.
Json WrittenMetadata(const Json& object) {
  JsonObject metadata;
  for (const char* key : {"name", "generateName", "namespace", "labels", "annotations"}) {
    if (const Json* value = Find(object, "metadata", key)) metadata[key] = *value;
  }
  return metadata;
}

void HidePods(std::optional<Explanation::Victims>& room,
              const std::function<bool(std::string_view)>& may) {
  if (!room) return;
  for (std::vector<std::string>* keys : {&room->pods, &room->coming}) {
    for (std::string& key : *keys) {
      if (!may(std::string_view(key).substr(0, key.find('/')))) key = kSomebodys;
    }
  }
}

// By GPU: instances created and destroyed.
void AppendRepartition(const std::string& node, const Explanation::Repartition& repartition,
                       JsonText& json) {
  std::map<int, std::pair<JsonArray, JsonArray>> gpus;
  for (const auto& made : repartition.made) gpus[made.gpu].first.emplace_back(made.name);
  for (const auto& gone : repartition.destroyed) gpus[gone.gpu].second.emplace_back(gone.name);
  for (auto& [gpu, names] : gpus) {
    json.Begin('{').Key("node").Text(node).Key("gpu").Number(static_cast<int64_t>(gpu));
    json.Key("make").Value(names.first).Key("destroy").Value(names.second).End('}');
  }
}

void AppendVictims(const std::vector<std::string>& pods, JsonText& json) {
  for (const std::string& key : pods) {
    const size_t slash = key.find('/');
    if (slash == std::string::npos) {
      json.Text(key);
      continue;
    }
    json.Begin('{').Key("namespace").Text(key.substr(0, slash));
    json.Key("name").Text(key.substr(slash + 1)).End('}');
  }
}

std::vector<std::string> StepsOf(const Explanation& why, std::string_view note) {
  std::vector<std::string> steps;
  for (const std::string& text : {why.gate, why.gang, why.quota}) {
    if (!text.empty()) steps.push_back(text);
  }
  if (why.impossible) steps.push_back(why.impossible->message);
  if (!why.place) {
    for (const auto& entry : why.diagnosis.entries) {
      steps.push_back(
          fmt::format("{} of {} nodes: {}", entry.nodes, why.diagnosis.nodes, entry.message));
    }
  }
  if (!why.remedy.empty()) steps.push_back("remedy: " + why.remedy);
  if (!note.empty()) steps.emplace_back(note);
  return steps;
}

}  // namespace

Result<WrittenPod> ReadWrittenPod(std::string_view text) {
  NOS_ASSIGN(std::vector<Json> documents, ParseYaml(text));
  if (documents.size() != 1) return Invalid("give one pod: a single document of YAML or JSON");
  Json& object = documents.front();
  if (FindString(object, "kind") != "Pod" || FindString(object, "apiVersion") != "v1") {
    return Invalid("this is no pod: apiVersion: v1 and kind: Pod are expected");
  }
  WrittenPod pod;
  Json metadata = WrittenMetadata(object);
  pod.ns = FindString(metadata, "namespace");
  if (pod.ns.empty()) pod.ns = "default";
  pod.name = FindString(metadata, "name");
  const std::string_view prefix = FindString(metadata, "generateName");
  if (!IsDnsLabel(pod.ns)) {
    return Invalid(fmt::format("metadata.namespace: \"{}\" is no name of a namespace",
                               Shortened(Printable(pod.ns), 80)));
  }
  if (pod.name.empty() ? prefix.empty() : !IsDnsSubdomain(pod.name)) {
    return Invalid(
        fmt::format("metadata.name: \"{}\" is no name of a pod: small letters, digits, - and .",
                    Shortened(Printable(pod.name), 80)));
  }
  metadata.get_object()["namespace"] = pod.ns;
  pod.object = JsonObject{{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", std::move(metadata)}};
  if (const Json* spec = Find(object, "spec")) pod.object.get_object()["spec"] = *spec;
  return pod;
}

std::string WrittenPod::NameOrSo() const {
  if (!name.empty()) return name;
  return std::string(FindString(object, "metadata", "generateName")) + "0";
}

Explanation ForReader(Explanation why, const std::string& own,
                      const std::function<bool(std::string_view)>& may) {
  for (auto* room : {&why.awaited, &why.preemption, &why.in_the_way}) HidePods(*room, may);
  std::vector<std::string*> texts = {&why.gate, &why.gang, &why.quota, &why.for_quota, &why.remedy};
  for (auto& entry : why.diagnosis.entries) texts.push_back(&entry.message);
  for (std::string& other : why.other_remedies) texts.push_back(&other);
  if (why.nearest) {
    for (auto& objection : why.nearest->objections) texts.push_back(&objection.message);
  }
  for (std::string* text : texts) *text = scheduling::NamesOnlyFor(own, std::move(*text));
  return why;
}

std::string WhatIfJson(const Explanation& why, std::string_view note) {
  const bool waits = !why.gate.empty() || !why.gang.empty();
  // The node, and the instances that are created there: by the scheduler, or by the partitioner.
  const bool by_partitioner = why.remedy_code == scheduling::remedies::kPartitionGpus &&
                              why.nearest && why.nearest->repartition;
  std::optional<Explanation::Place> place = why.place;
  if (by_partitioner) place = {why.nearest->node, *why.nearest->repartition};
  const bool placed = place.has_value() && !waits && why.quota.empty();
  const bool evicts = why.preemption.has_value() && !waits;
  JsonText json;
  json.Begin('{').Key("fits").Bool(placed || evicts);
  if (placed) json.Key("node").Text(place->node);
  if (!placed && evicts) json.Key("node").Text(why.preemption->node);
  // "would_cut" is removed in the next minor version.
  for (const char* key : {"would_partition", "would_cut"}) {
    json.Key(key).Begin('[');
    if (place) AppendRepartition(place->node, place->repartition, json);
    json.End(']');
  }
  json.Key("would_evict").Begin('[');
  if (evicts) AppendVictims(why.preemption->pods, json);
  json.End(']').Key("text");
  std::vector<std::string> lines;
  const std::string text = scheduling::ToText(why, kWidth);
  for (const std::string_view line : Split(text, '\n')) {
    if (!line.empty()) lines.push_back(Printable(std::string(line)));
  }
  json.Text(Join(lines, "\n")).Key("steps").Begin('[');
  for (const std::string& step : StepsOf(why, note)) json.Text(Printable(step));
  json.End(']').Key("explanation");
  json.Value(scheduling::ToJson(scheduling::Summarize(scheduling::FactsOf(why)))).End('}');
  return std::move(json.text());
}

}  // namespace nos::cmd
