// Pending sign-ins and sessions of browsers, identified by random texts in cookies; only hashes are
// stored. Bounded: beyond the limit the oldest are removed.
//
// Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "codec/json.h"
#include "identity/issuer.h"

namespace nos::identity {

class BrowserSessions {
 public:
  struct Options {
    Duration lifetime = std::chrono::hours(8), sign_in_time = std::chrono::minutes(10);
    size_t most_sign_ins = 5000, most_sessions = 10'000;
  };
  explicit BrowserSessions(Options options) : options_(options) {}

  void Begin(const SignIn& sign_in, Time now);
  // Returns a pending sign-in and removes it, so that it is used only once.
  std::optional<SignIn> Return(const std::string& state, Time now);
  // Returns the new session ID for the browser's cookie.
  std::string Open(Json subject, Time now);
  std::optional<Json> Find(const std::string& id, Time now) const;
  void Close(const std::string& id);
  Duration lifetime() const { return options_.lifetime; }

 private:
  template <typename T>
  struct Entry {
    T what;
    Time until{};
  };
  template <typename T>
  using Entries = std::map<std::string, Entry<T>>;  // by hash

  template <typename T>
  static void Add(Entries<T>& entries, const std::string& id, Entry<T> entry, size_t most,
                  Time now);

  const Options options_;
  mutable std::mutex mutex_;
  Entries<SignIn> sign_ins_;
  Entries<Json> sessions_;
};

}  // namespace nos::identity
