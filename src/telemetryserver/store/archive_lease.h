// What the parts of Archive share. Internal to this room.
#pragma once

#include <utility>

#include "telemetryserver/store/archive.h"

namespace nos::telemetryserver {

// A connection for the time of a call.
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

// Until when samples have been rolled up into that level.
Result<telemetry::Millis> RolledUntil(Sqlite& db, size_t level);

}  // namespace nos::telemetryserver
