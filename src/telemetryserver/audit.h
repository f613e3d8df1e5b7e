// Who did what, from where, and what came of it: a line of JSON each in the log, and in a file if
// wished. No tokens, no pods' contents.
//
//   {"at":1763760000123,"action":"submit","who":"casey","from":"10.0.0.7","cluster":"prod",
//    "what":"team-a/train","outcome":"done","why":""}
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "telemetryserver/api/rate_limit.h"

namespace nos::telemetryserver {

class Audit {
 public:
  struct Entry {
    std::string action;  // submit, what-if, sign-in, sign-out
    std::string who, from, cluster, what;
    std::string outcome;  // done, refused, failed
    std::string why;
  };
  // `path` empty: the log alone. The file is appended to; beyond `most_bytes` it becomes PATH.1 in
  // place of that from before. Error: kInvalid: it cannot be written.
  static Result<std::unique_ptr<Audit>> Open(const std::string& path, uint64_t most_bytes);

  void Write(const Entry& entry, Time now);
  // For what strangers can cause as often as they like: some a second are written, and the next one
  // says how many were left out ("unwritten").
  void WriteBounded(const Entry& entry, Time now);

 private:
  Audit(std::string path, uint64_t most_bytes) : path_(std::move(path)), most_bytes_(most_bytes) {}
  void Write(const Entry& entry, Time now, int64_t unwritten);
  Status Append(const std::string& line);

  const std::string path_;
  const uint64_t most_bytes_;
  std::mutex mutex_;
  RateLimit strangers_{{.per_second = 5, .burst = 50}};
  int64_t unwritten_ = 0;
};

}  // namespace nos::telemetryserver
