#include "telemetryserver/ingest/source_sequences.h"

#include <fmt/format.h>

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxSources = 400'000;  // boots of sources, over all clusters

}  // namespace

void SourceSequences::Load(const std::string& cluster, const std::string& source,
                           const std::string& boot, int64_t sequence) {
  committed_[{cluster, source, boot}] = sequence;
  ++boots_of_[cluster];
}

int64_t SourceSequences::Of(const telemetry::Envelope& envelope) const {
  const Key key{envelope.cluster, envelope.source, envelope.boot};
  if (const auto found = uncommitted_.find(key); found != uncommitted_.end()) return found->second;
  const auto found = committed_.find(key);
  return found == committed_.end() ? 0 : found->second;
}

Status SourceSequences::Admits(const telemetry::Envelope& envelope) const {
  const auto count = boots_of_.find(envelope.cluster);
  const size_t of_cluster = count == boots_of_.end() ? 0 : count->second;
  if (committed_.size() + uncommitted_.size() >= kMaxSources || of_cluster >= max_per_cluster_) {
    return {Code::kExhausted, fmt::format("cluster {} has too many sources already: each spool "
                                          "that began anew within 90 days is one",
                                          envelope.cluster)};
  }
  size_t of_source = 0;
  for (const auto* each : {&committed_, &uncommitted_}) {
    for (auto boot = each->lower_bound({envelope.cluster, envelope.source, ""});
         boot != each->end() && std::get<0>(boot->first) == envelope.cluster &&
         std::get<1>(boot->first) == envelope.source;
         ++boot) {
      ++of_source;
    }
  }
  if (of_source < max_per_source_) return Status::Ok();
  return {Code::kExhausted,
          fmt::format("{} has begun {} spools within 90 days already", envelope.source, of_source)};
}

bool SourceSequences::KnowsSource(const telemetry::Envelope& envelope) const {
  const auto first = committed_.lower_bound({envelope.cluster, envelope.source, ""});
  return first != committed_.end() && std::get<0>(first->first) == envelope.cluster &&
         std::get<1>(first->first) == envelope.source;
}

void SourceSequences::Set(const telemetry::Envelope& envelope) {
  uncommitted_[{envelope.cluster, envelope.source, envelope.boot}] = envelope.sequence;
}

void SourceSequences::Commit() {
  for (const auto& [key, sequence] : uncommitted_) {
    if (committed_.insert_or_assign(key, sequence).second) ++boots_of_[std::get<0>(key)];
  }
  uncommitted_.clear();
}

}  // namespace nos::telemetryserver
