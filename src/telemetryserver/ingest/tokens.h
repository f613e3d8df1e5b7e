// Tokens of reporters, each for one cluster or for all.
//
// A file has one token per line, "CLUSTER TOKEN"; CLUSTER "*" means any cluster, '#' starts a
// comment.
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
  // Replaces all tokens; on an error the previous tokens stay. Error: kInvalid, with the line and
  // never with a token.
  Status Read(std::string_view text);
  // Checks an Authorization header. Error: kPermission: unknown token.
  Status Check(std::string_view authorization) const;
  // Also kPermission if the token is not for the cluster.
  Status Check(std::string_view authorization, std::string_view cluster) const;
  // Thread-safe, as is the whole class.
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
