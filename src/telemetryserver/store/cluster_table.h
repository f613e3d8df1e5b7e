// Clusters by name, and how far their derived series are computed (tables `clusters` and `meta`).
//
//   NOS_ASSIGN(int64_t prod, clusters.IdOf("prod"));  // adds it if unknown
//   NOS_ASSIGN(Derived derived, clusters.DerivedOf(prod));
//
// One thread uses it. Errors: see Sqlite; kExhausted for a cluster beyond the limit. Internal to
// this library.
#pragma once

#include <string>

#include "telemetry/records.h"
#include "telemetryserver/store/database.h"

namespace nos::telemetryserver {

inline constexpr size_t kMaxStoredClusters = 100;

// Progress of the derived series: computed until `until`, and to be computed again in [again_from,
// again_to), because some inputs arrived late.
struct Derived {
  telemetry::Millis until = 0, again_from = 0, again_to = 0;
  bool Again() const { return again_from < again_to; }
  friend bool operator==(const Derived&, const Derived&) = default;
};

class ClusterTable {
 public:
  // `db` must outlive this object.
  explicit ClusterTable(Database& db) : db_(db) {}

  // Within a transaction.
  Result<int64_t> IdOf(const std::string& name);
  Status SetDerived(int64_t cluster, const Derived& derived);

  Result<Derived> DerivedOf(int64_t cluster);
  // In order of IDs.
  Status Each(FunctionRef<void(int64_t id, const std::string& name)> visit);

 private:
  Database& db_;
};

}  // namespace nos::telemetryserver
