// Reads the journal behind the recorder, for whoever takes telemetry on to other systems.
//
//   RecorderOptions options{.followers = {"remoteWrite"}};      // keeps for it what it has not had
//   NOS_ASSIGN(JournalReader journal, JournalReader::Open(options.store.path));
//   NOS_ASSIGN(auto rows, journal.After(recorder.PositionOf("remoteWrite")));
//   ... recorder.Advance("remoteWrite", rows.back().id);        // when somebody else has them
//
// Numbers go up by one; those that are missing were dropped. One owner.
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
  bool derived = false;  // of the server's own making: without source, boot and sequence
  telemetry::Envelope envelope;     // without records where it cannot be read
};

class JournalReader {
 public:
  // Errors: as Sqlite.
  static Result<JournalReader> Open(const std::string& path);
  // In order; at most so many, and no more once they have so many bytes as they are kept.
  Result<std::vector<Journaled>> After(int64_t id, size_t most_rows = 500,
                                       size_t most_bytes = size_t{2} << 20);

 private:
  explicit JournalReader(Sqlite db) : db_(std::move(db)) {}
  Sqlite db_;
};

}  // namespace nos::telemetryserver
