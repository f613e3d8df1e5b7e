// Who may deliver telemetry: tokens, each for one cluster or for all.
//
// A file has one token a line, "CLUSTER TOKEN", CLUSTER "*" for any; '#' begins a comment.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace nos::telemetryserver {

class Tokens {
 public:
  // Takes the place of what was read before; on an error that stays. Error: kInvalid, with the line
  // and never with a token.
  Status Read(std::string_view text);
  // Of an Authorization header. Error: kPermission: there is no such token.
  Status Check(std::string_view authorization) const;
  // Also kPermission: it is not for that cluster.
  Status Check(std::string_view authorization, std::string_view cluster) const;
  // Thread-safe, as all of it.
  bool empty() const;

 private:
  struct Entry {
    std::string cluster;
    std::array<unsigned char, 32> digest{};  // SHA-256
  };
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace nos::telemetryserver
