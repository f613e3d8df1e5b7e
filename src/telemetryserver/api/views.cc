#include "telemetryserver/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/text.h"
#include "telemetryserver/api/explanation.h"
#include "telemetryserver/api/narrow.h"
#include "telemetryserver/state/shares.h"

namespace nos::telemetryserver {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();  // null in JSON
constexpr telemetry::Millis kOverviewFor = 1000;
constexpr size_t kMaxTexts = 20'000;

bool Sees(const std::vector<telemetry::Holder>& holders, const Scope& scope) {
  return std::ranges::any_of(holders,
                             [&](const telemetry::Holder& holder) { return scope.Has(holder.ns); });
}

bool Sees(const telemetry::Gpu& gpu, const Scope& scope) {
  return Sees(gpu.holders, scope) ||
         std::ranges::any_of(gpu.instances, [&](const telemetry::Instance& instance) {
           return Sees(instance.holders, scope);
         });
}

bool Sees(const Node& node, const Scope& scope) {
  return scope.all() || std::ranges::any_of(node.layout.gpus, [&](const telemetry::Gpu& gpu) {
           return Sees(gpu, scope);
         });
}

void AppendHolders(const State& state, const std::vector<telemetry::Holder>& holders,
                   const Scope& scope, JsonText& json) {
  json.Key("holders").Begin('[');
  for (const telemetry::Holder& holder : holders) {
    if (!scope.Has(holder.ns)) continue;
    const Pod* pod = state.FindPod(holder.ns, holder.pod);
    json.Begin('{').Key("namespace").Text(holder.ns).Key("pod").Text(holder.pod);
    json.Key("container").Text(holder.container);
    json.Key("quota").Text(pod == nullptr ? "" : pod->quota).End('}');
  }
  json.End(']');
}

// Omits processes of pods outside the scope.
void AppendProcesses(const Json& processes, const Scope& scope, JsonText& json) {
  if (!processes.is_array()) return;
  json.Key("processes").Begin('[');
  for (const Json& process : processes.get_array()) {
    const std::string ns(FindString(process, "pod", "namespace"));
    if (scope.Has(ns)) json.Value(process);
  }
  json.End(']');
}

void AppendReadings(const Latest* latest, const Scope& scope, JsonText& json) {
  json.Key("metrics").Begin('{');
  if (latest != nullptr) {
    for (const auto& [name, value] : latest->readings.metrics) json.Key(name).Number(value);
  }
  json.End('}').Key("unmeasured");
  if (latest == nullptr || !latest->readings.unmeasured.is_object()) {
    json.Raw("{}");
  } else {
    json.Value(latest->readings.unmeasured);
  }
  if (latest == nullptr) return;
  json.Key("measured_at").Number(latest->at);
  AppendProcesses(latest->readings.processes, scope, json);
}

void AppendGpu(const State& state, const telemetry::Gpu& gpu, const Scope& scope, JsonText& json) {
  json.Begin('{').Key("index").Number(gpu.index).Key("gpu").Text(gpu.uuid);
  json.Key("product").Text(gpu.product).Key("memory").Number(gpu.memory);
  json.Key("slots").Number(gpu.slots).Key("mig").Bool(gpu.mig).Key("health").Text(gpu.health);
  json.Key("sharing_mode").Text(gpu.sharing_mode);
  json.Key("way").Text(gpu.sharing_mode);  // the old name
  json.Key("switches").Begin('[');
  for (const std::string& mode : gpu.switches) json.Text(mode);
  json.End(']');
  json.Key("instances").Begin('[');
  for (const telemetry::Instance& instance : gpu.instances) {
    if (!scope.all() && !Sees(instance.holders, scope)) continue;
    json.Begin('{').Key("id").Number(instance.id).Key("instance").Text(instance.uuid);
    json.Key("profile").Text(instance.profile).Key("start").Number(instance.start);
    json.Key("size").Number(instance.size);
    AppendHolders(state, instance.holders, scope, json);
    AppendReadings(state.LatestOf("instance", instance.uuid), scope, json);
    json.End('}');
  }
  json.End(']');
  AppendHolders(state, gpu.holders, scope, json);
  AppendReadings(state.LatestOf("gpu", gpu.uuid), scope, json);
  json.End('}');
}

telemetry::Millis FreshAt(const State& state, const Node& node) {
  return std::max(state.FreshAt("node/" + node.name), node.layout_at);
}

void AppendNode(const State& state, const Node& node, const Scope& scope, JsonText& json) {
  json.Begin('{').Key("node").Text(node.name).Key("mode").Text(node.layout.mode);
  json.Key("fresh_at").Number(FreshAt(state, node));
  json.Key("ready").Bool(node.ready).Key("schedulable").Bool(node.schedulable);
  json.Key("gpus").Begin('[');
  for (const telemetry::Gpu& gpu : node.layout.gpus) {
    if (scope.all() || Sees(gpu, scope)) AppendGpu(state, gpu, scope, json);
  }
  json.End(']').End('}');
}

bool IsShown(const Node& node, const Scope& scope) {
  return node.layout_at >= 0 && Sees(node, scope);
}

void AppendNodes(const State& state, const Scope& scope, uint64_t since, NodeTexts* texts,
                 JsonText& json) {
  json.Key("nodes").Begin('[');
  for (const auto& [name, node] : state.nodes()) {
    if (node.version <= since || !IsShown(node, scope)) continue;
    if (texts != nullptr && scope.all()) {
      texts->Append(state, node, json);
    } else {
      AppendNode(state, node, scope, json);
    }
  }
  json.End(']');
}

telemetry::Millis FreshestOf(const State& state) {
  telemetry::Millis fresh = 0;
  for (const auto& [name, node] : state.nodes()) fresh = std::max(fresh, FreshAt(state, node));
  return fresh;
}

const Scope& Everything() {
  static const Scope scope(Reader{"", true, {}}, "");
  return scope;
}

// Pending pods come first, then the youngest pods.
std::string OrderOf(const Pod& pod) {
  constexpr int64_t kEnd = 9'999'999'999'999;
  return fmt::format("{}{:013}{}", pod.state == "pending" ? 0 : 1,
                     std::clamp<int64_t>(kEnd - pod.created, 0, kEnd), pod.uid);
}

bool Matches(const Pod& pod, const PodQuery& query) {
  if (!query.state.empty() && pod.state != query.state) return false;
  if (!query.job.empty() && pod.job != query.job) return false;
  if (query.text.empty()) return true;
  const auto has = [&](std::string_view text) {
    return ToLower(text).find(query.text) != std::string::npos;
  };
  return has(pod.name) || has(pod.ns) || has(pod.node) || has(pod.quota) ||
         has(FindString(pod.body, "owner", "name")) || has(pod.job);
}

void AppendSlices(const State& state, const Pod& pod, JsonText& json) {
  json.Key("slices").Begin('[');
  for (const Slice& slice : state.SlicesOf(pod.ns, pod.name)) {
    const telemetry::Instance* instance = slice.instance;
    const std::string& uuid = instance == nullptr ? slice.gpu->uuid : instance->uuid;
    json.Begin('{').Key("node").Text(slice.node->name).Key("gpu").Number(slice.gpu->index);
    json.Key("profile").Text(instance == nullptr ? "" : instance->profile);
    json.Key("start").Number(instance == nullptr ? 0 : instance->start);
    json.Key("instance").Text(uuid);
    const Latest* latest = state.LatestOf(instance == nullptr ? "gpu" : "instance", uuid);
    double utilization = kNoValue, memory = kNoValue;
    if (latest != nullptr) {
      for (const auto& [name, value] : latest->readings.metrics) {
        if (name == "utilization") utilization = value;
        if (name == "memory_used") memory = value;
      }
    }
    json.Key("utilization").Number(utilization).Key("memory_used").Number(memory).End('}');
  }
  json.End(']');
}

}  // namespace

Scope::Scope(const Reader& reader, const std::string& ns) {
  if (reader.may_all && ns.empty()) return;
  if (ns.empty()) {
    namespaces_ = reader.namespaces;
  } else {
    namespaces_.emplace();
    if (reader.May(ns)) namespaces_->insert(ns);
  }
}

void NodeTexts::Append(const State& state, const Node& node, JsonText& json) {
  const std::scoped_lock lock(mutex_);
  if (texts_.size() > kMaxTexts) {
    texts_.clear();
    size_ = 0;
  }
  Entry& entry = texts_[node.name];
  if (entry.version != node.version) {
    JsonText text;
    AppendNode(state, node, Everything(), text);
    size_ += text.text().size() + 1 - entry.text.size();
    entry = {node.version, std::move(text.text())};
  }
  json.Raw(entry.text);
}

std::string OverviewJson(const State& state, const gpu::Catalogue& catalogue, telemetry::Millis now,
                         telemetry::Millis stale) {
  const Shares shares = SharesOf(state, catalogue, stale);
  int64_t stale_nodes = 0;
  for (const auto& [name, node] : state.nodes()) {
    if (now - FreshAt(state, node) > stale) ++stale_nodes;
  }
  std::map<std::string, int64_t> pods = {{"pending", 0}, {"running", 0}};
  for (const auto& [uid, pod] : state.pods()) {
    if (pod.WantsGpu()) ++pods[pod.state];
  }
  JsonText json;
  json.Begin('{').Key("at").Number(now).Key("fresh_at").Number(FreshestOf(state));
  json.Key("gpus").Number(shares.gpus).Key("slots").Number(shares.slots);
  json.Key("allocated").Number(shares.allocated);
  json.Key("used").Number(shares.used.value_or(kNoValue));
  json.Key("idle").Number(shares.used ? shares.idle : kNoValue);
  json.Key("measured").Number(shares.measured);
  json.Key("free").Number(shares.free).Key("fragmented").Number(shares.fragmented);
  json.Key("stranded").Number(shares.stranded);
  json.Key("empty").Number(shares.empty).Key("empty_gpus").Number(shares.empty_gpus);
  json.Key("empty_nodes").Number(shares.empty_nodes);
  json.Key("pods").Value(Json(JsonObject(pods.begin(), pods.end())));
  json.Key("seconds_to_slice").Number(shares.seconds_to_slice.value_or(kNoValue));
  json.Key("nodes").Number(static_cast<int64_t>(state.nodes().size()));
  json.Key("stale_nodes").Number(stale_nodes).Key("models").Begin('[');
  for (const ModelShare& model : shares.models) {
    json.Begin('{').Key("product").Text(model.product).Key("gpus").Number(model.gpus);
    json.Key("allocated").Number(model.allocated).Key("memory").Number(model.memory).End('}');
  }
  json.End(']').End('}');
  return std::move(json.text());
}

std::string OverviewTexts::Get(const std::string& cluster, const State& state,
                               const gpu::Catalogue& catalogue, telemetry::Millis now,
                               telemetry::Millis stale) {
  const std::scoped_lock lock(mutex_);
  auto& [made_at, text] = texts_[cluster];
  if (text.empty() || now < made_at || now - made_at >= kOverviewFor) {
    text = OverviewJson(state, catalogue, now, stale);
    made_at = now;
  }
  return text;
}

std::string GpusJson(const State& state, const Scope& scope, telemetry::Millis at,
                     NodeTexts* texts) {
  JsonText json;
  if (texts != nullptr && scope.all()) json.text().reserve(texts->size());
  json.Begin('{').Key("at").Number(at).Key("fresh_at").Number(FreshestOf(state));
  AppendNodes(state, scope, 0, texts, json);
  json.End('}');
  return std::move(json.text());
}

std::vector<std::string> ShownNodes(const State& state, const Scope& scope) {
  std::vector<std::string> names;
  for (const auto& [name, node] : state.nodes()) {
    if (IsShown(node, scope)) names.push_back(name);
  }
  return names;
}

std::string ChangedGpusJson(const State& state, const Scope& scope, uint64_t since,
                            NodeTexts* texts, const std::vector<std::string>* all) {
  JsonText json;
  json.Begin('{');
  AppendNodes(state, scope, since, texts, json);
  if (all != nullptr) {
    json.Key("all").Begin('[');
    for (const std::string& name : *all) json.Text(name);
    json.End(']');
  }
  json.End('}');
  return json.text() == "{\"nodes\":[]}" ? std::string() : std::move(json.text());
}

void AppendPod(const State& state, const Pod& pod, JsonText& json) {
  std::string body = WriteJson(pod.body);
  body.pop_back();  // the closing bracket
  json.Raw(body);
  AppendSlices(state, pod, json);
  const bool waits = pod.state == "pending";
  json.Key("estimate");
  waits&& pod.estimate.at > 0 ? json.Number(pod.estimate.at) : json.Null();
  json.Key("estimate_by").Text(waits ? pod.estimate.by : std::string_view());
  const std::string_view message = FindString(pod.body, "message");
  json.Key("why").Text(waits ? message : std::string_view()).Key("explanation");
  AppendExplanation(state, pod, json);
}

std::string PodsJson(const State& state, const Scope& scope, const PodQuery& query,
                     telemetry::Millis at) {
  std::vector<std::pair<std::string, const Pod*>> found;
  for (const auto& [uid, pod] : state.pods()) {
    if (scope.Has(pod.ns) && Matches(pod, query)) found.emplace_back(OrderOf(pod), &pod);
  }
  const size_t total = found.size();
  std::erase_if(found, [&](const auto& entry) { return entry.first <= query.after; });
  const size_t shown = std::min(found.size(), query.most);
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(shown), found.end());
  JsonText json;
  json.Begin('{').Key("at").Number(at).Key("total").Number(static_cast<int64_t>(total));
  json.Key("pods").Begin('[');
  for (size_t i = 0; i < shown; ++i) {
    AppendPod(state, *found[i].second, json);
    json.End('}');
  }
  json.End(']').Key("next");
  shown > 0 && shown < found.size() ? json.Text(found[shown - 1].first) : json.Null();
  json.End('}');
  return std::move(json.text());
}

std::string ChangedPodsJson(const State& state, const Scope& scope, uint64_t since) {
  JsonText json;
  bool any = false;
  json.Begin('{').Key("changed").Begin('[');
  for (const auto& [uid, pod] : state.pods()) {
    if (pod.version <= since || !scope.Has(pod.ns)) continue;
    AppendPod(state, pod, json);
    json.End('}');
    any = true;
  }
  json.End(']').Key("removed").Begin('[');
  for (const auto& [version, pod] : state.removed_pods()) {
    if (version <= since || !scope.Has(pod.ns)) continue;
    json.Text(pod.uid);
    any = true;
  }
  json.End(']').End('}');
  return any ? std::move(json.text()) : std::string();
}

bool QuotaIsIn(const Json& quota, const Scope& scope) {
  if (scope.Has(std::string(FindString(quota, "namespace")))) return true;
  const Json* namespaces = Find(quota, "namespaces");
  if (namespaces == nullptr || !namespaces->is_array()) return false;
  return std::ranges::any_of(namespaces->get_array(), [&](const Json& ns) {
    return ns.is_string() && scope.Has(std::string(View(ns.get_string())));
  });
}

std::string JobsJson(const State& state, const Scope& scope, size_t most) {
  using Place = std::tuple<bool, int64_t, std::string_view>;  // ended, age, id
  std::vector<std::pair<Place, const Json*>> found;
  for (const auto& [id, thing] : state.jobs()) {
    const Json& job = thing.body;
    if (!scope.Has(std::string(FindString(job, "namespace")))) continue;
    const Place place{telemetry::IntegerOr(job, "finished", 0) > 0,
                      -telemetry::IntegerOr(job, "created", 0), id};
    found.emplace_back(place, &job);
  }
  const size_t shown = std::min(found.size(), most);
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(shown), found.end());
  JsonText json;
  json.Begin('{').Key("total").Number(static_cast<int64_t>(found.size()));
  json.Key("jobs").Begin('[');
  for (size_t i = 0; i < shown; ++i) json.Value(*found[i].second);
  json.End(']').Key("queues").Begin('[');
  for (const auto& [id, queue] : state.queues()) {
    if (scope.Has(std::string(FindString(queue.body, "namespace")))) json.Value(queue.body);
  }
  json.End(']').End('}');
  return std::move(json.text());
}

std::string QuotasJson(const State& state, const Scope& scope) {
  JsonText json;
  json.Begin('{').Key("quotas").Begin('[');
  for (const auto& [key, quota] : state.quotas()) {
    if (!QuotaIsIn(quota.body, scope)) continue;
    scope.all() ? json.Value(quota.body) : json.Value(NarrowedQuota(quota.body, scope));
  }
  json.End(']').End('}');
  return std::move(json.text());
}

std::string PoolsJson(const State& state) {
  JsonText json;
  json.Begin('{').Key("pools").Begin('[');
  for (const auto& [id, pool] : state.pools()) json.Value(pool.body);
  json.End(']').End('}');
  return std::move(json.text());
}

}  // namespace nos::telemetryserver
