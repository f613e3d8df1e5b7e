// API answers about a state, current or past, as JSON. A reader with limited rights receives only
// objects in the reader's namespaces.
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

// Namespaces that an answer covers.
class Scope {
 public:
  // `ns`: only this namespace, if the reader may see it; "": all that the reader may see.
  Scope(const Reader& reader, const std::string& ns);
  bool all() const { return !namespaces_; }
  bool Has(const std::string& ns) const { return !namespaces_ || namespaces_->contains(ns); }

 private:
  std::optional<std::set<std::string>> namespaces_;
};

struct PodQuery {
  std::string state, text;  // "": any
  size_t most = 100;
  std::string after;  // `next` of the previous answer; "": from the beginning
  std::string job{};  // "Job/train"; "": any
};

// Cached JSON of each node's GPUs, until the node changes. Thread-safe.
class NodeTexts {
 public:
  // Appends a copy to `json`.
  void Append(const State& state, const Node& node, JsonText& json);
  // Approximate size of all cached texts in bytes.
  size_t size() const { return size_; }

 private:
  struct Entry {
    uint64_t version = 0;
    std::string text;
  };
  std::mutex mutex_;
  std::map<std::string, Entry> texts_;  // by node name
  std::atomic<size_t> size_{1000};
};

// Caches the overview, because many clients read it and computing it visits every slice.
// Thread-safe.
class OverviewTexts {
 public:
  // Returns a text at most one second old.
  std::string Get(const std::string& cluster, const State& state, const gpu::Catalogue& catalogue,
                  telemetry::Millis now, telemetry::Millis stale);

 private:
  std::mutex mutex_;
  std::map<std::string, std::pair<telemetry::Millis, std::string>> texts_;  // by cluster
};

std::string OverviewJson(const State& state, const gpu::Catalogue& catalogue, telemetry::Millis now,
                         telemetry::Millis stale);
// `texts`: null for a past state. `since`: only nodes that changed after that version.
std::string GpusJson(const State& state, const Scope& scope, telemetry::Millis at,
                     NodeTexts* texts);
// {"nodes":[..],"all":[name,..]}; "" if nothing changed. `all`: names of all nodes that the reader
// sees, if nodes may have been removed; null: none were.
std::string ChangedGpusJson(const State& state, const Scope& scope, uint64_t since,
                            NodeTexts* texts, const std::vector<std::string>* all);
std::vector<std::string> ShownNodes(const State& state, const Scope& scope);
std::string PodsJson(const State& state, const Scope& scope, const PodQuery& query,
                     telemetry::Millis at);
// {"changed":[..],"removed":[uid,..]}; "" if nothing changed.
std::string ChangedPodsJson(const State& state, const Scope& scope, uint64_t since);
// One pod without the closing bracket, so that the caller can add fields.
void AppendPod(const State& state, const Pod& pod, JsonText& json);
// At most `most` jobs, unfinished ones first, then the youngest; all queues.
std::string JobsJson(const State& state, const Scope& scope, size_t most);
std::string QuotasJson(const State& state, const Scope& scope);
// For readers who may see the whole cluster.
std::string PoolsJson(const State& state);
bool QuotaIsIn(const Json& quota, const Scope& scope);

}  // namespace nos::telemetryserver
