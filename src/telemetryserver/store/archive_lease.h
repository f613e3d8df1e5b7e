// Shared by the parts of Archive. Internal to this library.
#pragma once

#include <string_view>
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

// Applies a stored checkpoint. Returns the number of records that cannot be read, which are left
// out. Error: kInvalid (its bytes are damaged), with `state` unchanged.
Result<size_t> ApplyCheckpoint(State& state, std::string_view bytes);

// Time up to which samples are rolled up into the level.
Result<telemetry::Millis> RolledUntil(Sqlite& db, size_t level);

}  // namespace nos::telemetryserver
