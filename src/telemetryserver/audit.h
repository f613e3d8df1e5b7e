// Audit log: user, action, address and outcome, one line of JSON each in the log and optionally in
// a file. Contains no tokens and no contents of pods.
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
#include "net/rate_limit.h"

namespace nos::telemetryserver {

class Audit {
 public:
  struct Entry {
    std::string action;  // submit, what-if, sign-in, sign-out
    std::string who, from, cluster, what;
    std::string outcome;  // done, refused, failed
    std::string why;
  };
  // `path` empty: the log only. Lines are appended to the file; beyond `max_bytes` it is renamed
  // to PATH.1, replacing an older one. Error: kInvalid: the file is not writable.
  static Result<std::unique_ptr<Audit>> Open(const std::string& path, uint64_t max_bytes);

  void Write(const Entry& entry, Time now);
  // For actions that unauthenticated clients can repeat without limit: some per second are written,
  // and the next line contains the number of omitted ones ("unwritten").
  void WriteBounded(const Entry& entry, Time now);

 private:
  Audit(std::string path, uint64_t max_bytes) : path_(std::move(path)), max_bytes_(max_bytes) {}
  void Write(const Entry& entry, Time now, int64_t unwritten);
  Status Append(const std::string& line);

  const std::string path_;
  const uint64_t max_bytes_;
  std::mutex mutex_;
  net::RateLimit strangers_{{.per_second = 5, .burst = 50}};
  int64_t unwritten_ = 0;
};

}  // namespace nos::telemetryserver
