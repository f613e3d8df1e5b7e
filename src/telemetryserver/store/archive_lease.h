// Shared by the parts of Archive. Internal to this library.
#pragma once

#include <utility>

#include "telemetryserver/store/archive.h"

namespace nos::telemetryserver {

// A connection for the duration of a call.
class Archive::Lease {
 public:
  Lease(Archive& archive, Sqlite db) : archive_(archive), db_(std::move(db)) {}
  ~Lease() { archive_.GiveBack(std::move(db_)); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Sqlite& operator*() { return db_; }
  Sqlite* operator->() { return &db_; }

 private:
  Archive& archive_;
  Sqlite db_;
};

// Time up to which samples are rolled up into the level.
Result<telemetry::Millis> RolledUntil(Sqlite& db, size_t level);

}  // namespace nos::telemetryserver
