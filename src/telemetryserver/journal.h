// Reads the recorder's journal, for exporters to other systems.
//
//   RecorderOptions options{.followers = {"remoteWrite"}};      // keeps undelivered rows for it
//   NOS_ASSIGN(JournalReader journal, JournalReader::Open(options.store.path));
//   NOS_ASSIGN(auto rows, journal.After(recorder.PositionOf("remoteWrite")));
//   ... recorder.Advance("remoteWrite", rows.back().id);        // after delivery
//
// Row IDs increase by one; missing IDs were dropped. Used by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "telemetry/envelope.h"
#include "telemetryserver/store/sqlite.h"

namespace nos::telemetryserver {

struct Journaled {
  int64_t id = 0;
  telemetry::Millis received = 0;
  bool derived = false;          // by this server: without source, boot and sequence
  telemetry::Envelope envelope;  // without records if it cannot be parsed
};

class JournalReader {
 public:
  // Errors: see Sqlite.
  static Result<JournalReader> Open(const std::string& path);
  // Rows in order: at most `max_rows`, and none after their stored size exceeds `max_bytes`.
  Result<std::vector<Journaled>> After(int64_t id, size_t max_rows = 500,
                                       size_t max_bytes = size_t{2} << 20);

 private:
  explicit JournalReader(Sqlite db) : db_(std::move(db)) {}
  Sqlite db_;
};

}  // namespace nos::telemetryserver
