// Pending sign-ins and sessions of browsers, identified by texts in cookies.
//
//   const SignIn begun = sessions.Begin(now);                  // begun.state goes into a cookie
//   const auto sign_in = sessions.Return(state, now);          // when the browser is back
//   const std::string id = sessions.Open(subject, now);        // goes into the cookie of its
//   session
//
// A pending sign-in takes no memory, so a stranger who begins many does not push out the sign-ins
// of others: its state has its own end and a signature, and nonce and verifier follow from it by a
// key that only this process has. Only hashes of sessions are stored; beyond the limit the oldest
// are removed. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "codec/json.h"
#include "identity/issuer.h"

namespace nos::identity {

class BrowserSessions {
 public:
  struct Options {
    Duration lifetime = std::chrono::hours(8), sign_in_time = std::chrono::minutes(10);
    // States that came back are remembered, so that each is used only once.
    size_t max_returned = 5000, max_sessions = 10'000;
  };
  explicit BrowserSessions(Options options);

  // Its state is empty if there are no random bytes.
  SignIn Begin(Time now) const;
  // The sign-in that began with this state; absent if there is none, or it is over.
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

  std::string Sign(std::string_view use, std::string_view text) const;
  SignIn SignInOf(std::string state) const;

  const Options options_;
  const std::string key_;  // of this process; "": there are no random bytes
  mutable std::mutex mutex_;
  Entries<bool> returned_;
  Entries<Json> sessions_;
};

}  // namespace nos::identity
