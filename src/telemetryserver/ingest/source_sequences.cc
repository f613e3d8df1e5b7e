#include "telemetryserver/ingest/source_sequences.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxSources = 400'000;  // boots of sources, over all clusters

}  // namespace

void SourceSequences::Load(const std::string& cluster, const std::string& source,
                           const std::string& boot, int64_t sequence) {
  committed_[{cluster, source, boot}] = sequence;
  ++sources_of_[cluster];
}

int64_t SourceSequences::Of(const telemetry::Envelope& envelope) const {
  const Key key{envelope.cluster, envelope.source, envelope.boot};
  if (const auto found = uncommitted_.find(key); found != uncommitted_.end()) return found->second;
  const auto found = committed_.find(key);
  return found == committed_.end() ? 0 : found->second;
}

bool SourceSequences::HasRoom(const std::string& cluster) const {
  if (committed_.size() + uncommitted_.size() >= kMaxSources) return false;
  const auto count = sources_of_.find(cluster);
  return (count == sources_of_.end() ? 0 : count->second) < max_per_cluster_;
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
    if (committed_.insert_or_assign(key, sequence).second) ++sources_of_[std::get<0>(key)];
  }
  uncommitted_.clear();
}

}  // namespace nos::telemetryserver
