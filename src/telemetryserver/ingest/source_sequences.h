// The last sequence on disk of each source and boot, which detects repeated envelopes.
//
//   SourceSequences sequences(max_per_cluster, max_per_source);
//   const int64_t known = sequences.Of(envelope);
//   if (envelope.sequence > known && (known > 0 || sequences.Admits(envelope).ok()))
//   sequences.Set(envelope); committed ? sequences.Commit() : sequences.Discard();
//
// Used by one thread.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "base/status.h"
#include "telemetry/envelope.h"

namespace nos::telemetryserver {

class SourceSequences {
 public:
  // Limits of source boots: one cluster does not exhaust the total, and one source not its cluster.
  SourceSequences(size_t max_per_cluster, size_t max_per_source)
      : max_per_cluster_(max_per_cluster), max_per_source_(max_per_source) {}

  // A sequence that is on disk at the start.
  void Load(const std::string& cluster, const std::string& source, const std::string& boot,
            int64_t sequence);
  // 0: the boot of the source is not known.
  int64_t Of(const telemetry::Envelope& envelope) const;
  // Error: kExhausted: the new boot of the envelope's source would be one too many.
  Status Admits(const telemetry::Envelope& envelope) const;
  // True if a boot of the source is on disk.
  bool KnowsSource(const telemetry::Envelope& envelope) const;

  // Sets the sequence; it counts at once, and is kept by Commit or undone by Discard.
  void Set(const telemetry::Envelope& envelope);
  void Commit();
  void Discard() { uncommitted_.clear(); }

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // cluster, source, boot

  const size_t max_per_cluster_, max_per_source_;
  std::map<Key, int64_t> committed_, uncommitted_;
  std::map<std::string, size_t> boots_of_;  // number of committed boots by cluster
};

}  // namespace nos::telemetryserver
