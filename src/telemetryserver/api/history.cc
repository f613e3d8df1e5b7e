// Past events, decisions and stories that the reader may see, one page at a time.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "telemetryserver/api.h"
#include "telemetryserver/api/narrow.h"
#include "telemetryserver/api/story_pages.h"

namespace nos::telemetryserver {
namespace {

constexpr telemetry::Millis kFarAway = 9'999'999'999'999;
constexpr int64_t kMaxHistory = 10'000, kMaxDecisions = 1000, kMaxStories = 1000;
constexpr std::array<std::string_view, 12> kKinds = {"decision", "event", "gap",     "job",
                                                     "layout",   "node",  "pod",     "pool",
                                                     "queue",    "quota", "removed", "xid"};
// Kinds for readers limited to namespaces; the other kinds concern the whole cluster.
constexpr std::array<std::string_view, 6> kKindsOfNamespaces = {"decision", "event", "job",
                                                                "pod",      "queue", "quota"};

// Namespaces with current objects; empty for a scope without limits.
std::set<std::string> NamespacesOf(const ApiCall& call, const Recorder& recorder,
                                   const Scope& scope) {
  std::set<std::string> namespaces;
  if (scope.all()) return namespaces;
  recorder.Look(call.cluster, [&](const Live& live) {
    for (const auto& [uid, pod] : live.state.pods()) namespaces.insert(pod.ns);
  });
  return namespaces;
}

// Removes parts outside the scope. False: nothing is left.
bool Narrow(Json& decision, const Scope& scope, const std::set<std::string>& namespaces) {
  if (scope.all()) return true;
  auto narrowed = NarrowedDecision(decision, scope, namespaces);
  if (!narrowed) return false;
  decision = *std::move(narrowed);
  return true;
}

// True if the scope may see the event, which is narrowed if necessary.
bool NarrowEvent(Event& event, const Scope& scope, const std::set<std::string>& namespaces) {
  if (scope.all()) return true;
  if (event.kind == "pod" || event.kind == "job" || event.kind == "queue")
    return scope.Has(std::string(FindString(event.body, "namespace")));
  if (event.kind == "event") {
    const std::string ns(FindString(event.body, "object", "namespace"));
    return !ns.empty() && scope.Has(ns);
  }
  if (event.kind == "quota") {
    if (!QuotaIsIn(event.body, scope)) return false;
    event.body = NarrowedQuota(event.body, scope);
    return true;
  }
  return event.kind == "decision" && Narrow(event.body, scope, namespaces);
}

// Requested kinds that the scope may see. Error: kInvalid.
Result<std::vector<std::string>> KindsOf(const std::vector<std::string>& asked,
                                         const Scope& scope) {
  std::vector<std::string> kinds;
  for (const std::string& kind : asked) {
    if (std::ranges::find(kKinds, kind) == kKinds.end()) {
      return Invalid(
          fmt::format("kind={} is none of {}", Shortened(kind, 40), fmt::join(kKinds, ", ")));
    }
  }
  for (const std::string_view kind : kKinds) {
    const bool wanted = asked.empty() || std::ranges::find(asked, kind) != asked.end();
    const bool seen =
        scope.all() || std::ranges::find(kKindsOfNamespaces, kind) != kKindsOfNamespaces.end();
    if (wanted && seen) kinds.emplace_back(kind);
  }
  return kinds;
}

// Keeps the members of a node record that a map of the past needs. Most records of a node change
// only the requests of its pods.
void Shorten(Event& event) {
  if (event.kind != "node") return;
  const Json* ready = Find(event.body, "ready");
  event.body = {{"kind", "node"},
                {"at", telemetry::IntegerOr(event.body, "at", 0)},
                {"node", FindString(event.body, "node")},
                {"ready", ready == nullptr ? Json(true) : *ready}};
}

bool IsOf(const Event& event, const std::string& what) {
  return what.empty() || event.kind != "removed" || event.object.starts_with(what + "/");
}

// A node and its current GPUs.
struct OfNode {
  std::string name;  // "": any
  std::set<std::string> gpus;
  bool Has(const Event& event) const {
    if (name.empty()) return true;
    const Json& body = event.body;
    if (event.kind == "removed") return event.object == "node/" + name;
    if (event.kind == "xid") return gpus.contains(std::string(FindString(body, "gpu")));
    if (event.kind == "event") {
      return FindString(body, "object", "kind") == "Node" &&
             FindString(body, "object", "name") == name;
    }
    if (FindString(body, "node") == name) return true;
    const Json* nodes = Find(body, "nodes");
    return nodes != nullptr && nodes->is_array() &&
           std::ranges::any_of(nodes->get_array(),
                               [&](const Json& node) { return FindString(node, "node") == name; });
  }
};

OfNode NodeNamed(const Recorder& recorder, const std::string& cluster, const std::string& name) {
  OfNode node{name, {}};
  recorder.Look(cluster, [&](const Live& live) {
    const auto found = live.state.nodes().find(name);
    if (found == live.state.nodes().end()) return;
    for (const telemetry::Gpu& gpu : found->second.layout.gpus) node.gpus.insert(gpu.uuid);
  });
  return node;
}

Result<EventQuery> QueryOf(const ApiCall& call, const char* before, int64_t most, int64_t limit) {
  EventQuery query;
  NOS_ASSIGN(query.from, call.Number("from", 0, 0, kFarAway));
  NOS_ASSIGN(query.to, call.Number("to", kFarAway, 0, kFarAway));
  NOS_ASSIGN(const int64_t wanted, call.Number("limit", limit, 1, most));
  query.most = static_cast<size_t>(wanted);
  if (const std::string place = call.Parameter(before); !place.empty()) {
    NOS_ASSIGN(query.before, ParseEventPlace(place));
  }
  return query;
}

void EndPage(const std::optional<EventPlace>& next, JsonText& json) {
  json.End(']').Key("next");
  next ? json.Text(ToText(*next)) : json.Null();
  json.End('}');
}

}  // namespace

Api::Reply Api::History(const ApiCall& call) {
  const Scope scope = call.scope();
  NOS_ASSIGN(EventQuery query, QueryOf(call, "after", kMaxHistory, 500));
  NOS_ASSIGN(query.kinds, KindsOf(call.All("kind"), scope));
  NOS_ASSIGN(const int64_t id, IdOf(call.cluster));
  const OfNode node = NodeNamed(parts_.recorder, call.cluster, call.Parameter("node"));
  const std::string what = call.Parameter("what");
  const bool brief = call.Parameter("brief") == "true";
  const std::set<std::string> namespaces = NamespacesOf(call, parts_.recorder, scope);
  JsonText json;
  json.Begin('{').Key("events").Begin('[');
  std::optional<EventPlace> next;
  if (!query.kinds.empty()) {
    NOS_ASSIGN(next, parts_.recorder.archive().Scan(id, query, [&](Event& event) {
      const bool visible =
          node.Has(event) && IsOf(event, what) && NarrowEvent(event, scope, namespaces);
      if (visible && brief) Shorten(event);
      if (visible) json.Value(event.body);
      return visible;
    }));
  }
  EndPage(next, json);
  return std::move(json.text());
}

Api::Reply Api::Decisions(const ApiCall& call) {
  const Scope scope = call.scope();
  NOS_ASSIGN(EventQuery query, QueryOf(call, "before", kMaxDecisions, 50));
  query.kinds = {"decision"};
  query.latest = true;  // a decision has two or three records
  NOS_ASSIGN(const int64_t id, IdOf(call.cluster));
  const std::set<std::string> namespaces = NamespacesOf(call, parts_.recorder, scope);
  std::vector<Json> decisions;
  NOS_ASSIGN(const std::optional<EventPlace> next,
             parts_.recorder.archive().Scan(id, query, [&](Event& event) {
               const bool visible = Narrow(event.body, scope, namespaces);
               if (visible) decisions.push_back(std::move(event.body));
               return visible;
             }));
  JsonText json;
  json.Begin('{').Key("decisions").Begin('[');
  for (const Json& decision : WithStories(std::move(decisions))) json.Value(decision);
  EndPage(next, json);
  return std::move(json.text());
}

Api::Reply Api::Stories(const ApiCall& call) {
  const Scope scope = call.scope();
  StoryQuery query;
  NOS_ASSIGN(query.since, call.Number("since", 0, 0, kFarAway));
  NOS_ASSIGN(const int64_t most, call.Number("limit", 50, 1, kMaxStories));
  query.most = static_cast<size_t>(most);
  if (const std::string place = call.Parameter("before"); !place.empty()) {
    NOS_ASSIGN(query.before, ParseStoryPlace(place));
  }
  NOS_ASSIGN(const int64_t id, IdOf(call.cluster));
  const std::set<std::string> namespaces = NamespacesOf(call, parts_.recorder, scope);
  NOS_ASSIGN(const StoryPage page,
             ReadStories(parts_.recorder.archive(), id, query,
                         [&](Json& decision) { return Narrow(decision, scope, namespaces); }));
  JsonText json;
  json.Begin('{').Key("stories").Begin('[');
  for (const Story& story : page.stories) json.Value(StoryJson(story));
  json.End(']').Key("next");
  page.next ? json.Text(ToText(*page.next)) : json.Null();
  json.End('}');
  return std::move(json.text());
}

}  // namespace nos::telemetryserver
