// Answers of the API about a state, as JSON: now, or as it was. Whoever may not see everything gets
// only what their namespaces hold.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codec/json_text.h"
#include "gpu/catalogue.h"
#include "telemetryserver/reader.h"
#include "telemetryserver/state.h"

namespace nos::telemetryserver {

// Which namespaces an answer is about.
class Scope {
 public:
  // `ns`: only that one of those that the reader may see; "": all of them.
  Scope(const Reader& reader, const std::string& ns);
  bool all() const { return !namespaces_; }
  bool Has(const std::string& ns) const { return !namespaces_ || namespaces_->contains(ns); }

 private:
  std::optional<std::set<std::string>> namespaces_;
};

struct PodQuery {
  std::string state, text;  // "": any
  size_t most = 100;
  std::string after;  // as `next` of the answer before; "": from the beginning
  std::string job{};  // "Job/train"; "": any
};

// The JSON of a node's GPUs, kept until the node changes. Thread-safe.
class NodeTexts {
 public:
  // A copy is taken for the caller's text.
  void Append(const State& state, const Node& node, JsonText& json);
  // Bytes of all of them, about.
  size_t size() const { return size_; }

 private:
  struct Entry {
    uint64_t version = 0;
    std::string text;
  };
  std::mutex mutex_;
  std::map<std::string, Entry> texts_;  // by the node's name
  std::atomic<size_t> size_{1000};
};

// Many look at the overview, and it takes a look at every slice: what was true a moment ago will
// do. Thread-safe.
class OverviewTexts {
 public:
  // Of the last second.
  std::string Get(const std::string& cluster, const State& state, const gpu::Catalogue& catalogue,
                  telemetry::Millis now, telemetry::Millis stale);

 private:
  std::mutex mutex_;
  std::map<std::string, std::pair<telemetry::Millis, std::string>> texts_;  // by cluster
};

std::string OverviewJson(const State& state, const gpu::Catalogue& catalogue, telemetry::Millis now,
                         telemetry::Millis stale);
// `texts`: null for a state that is not the one now. `since`: only nodes that changed after that
// version.
std::string GpusJson(const State& state, const Scope& scope, telemetry::Millis at, NodeTexts* texts);
// {"nodes":[..],"all":[name,..]}; "" when there is nothing. `all`: the names of all nodes that the
// reader sees, for whom some may have gone; null: none have.
std::string ChangedGpusJson(const State& state, const Scope& scope, uint64_t since,
                            NodeTexts* texts, const std::vector<std::string>* all);
std::vector<std::string> ShownNodes(const State& state, const Scope& scope);
std::string PodsJson(const State& state, const Scope& scope, const PodQuery& query, telemetry::Millis at);
// {"changed":[..],"removed":[uid,..]}; "" when there is nothing.
std::string ChangedPodsJson(const State& state, const Scope& scope, uint64_t since);
// One pod, without the last bracket: there is more to come.
void AppendPod(const State& state, const Pod& pod, JsonText& json);
// At most so many jobs, those that have not ended first, then the youngest; all queues.
std::string JobsJson(const State& state, const Scope& scope, size_t most);
std::string QuotasJson(const State& state, const Scope& scope);
// Of the whole cluster: for who may see everything.
std::string PoolsJson(const State& state);
bool QuotaIsIn(const Json& quota, const Scope& scope);

}  // namespace nos::telemetryserver
