// Finds the holder of a bearer token, by asking a cluster or a provider.
//
//   TokenHolders holders(clock, limits, [&](const std::string& token) { return Ask(token); });
//   NOS_ASSIGN(const TokenHolders::Holder holder, holders.Of(token, address));
//
// Answers are cached for a minute, rejections for some seconds, by the hash of the token. An
// address with too many recent failures may only use tokens that were valid before. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "cmd/reviews/single_flight.h"
#include "codec/json.h"
#include "kube/transport.h"
#include "net/http.h"
#include "telemetryserver/limits.h"

namespace nos::cmd {

// Asks the API server whose token it is (TokenReview): user and groups in the form of an access
// review. `audience`: the token must be for it; "": for the API server. Errors: kPermission
// (unknown, expired, or for another audience), kUnavailable (the API server does not answer).
Result<Json> ReviewToken(kube::Transport& transport, const std::string& token,
                         const std::string& audience = "");
// The token in the header "Authorization: Bearer TOKEN"; absent: there is none, or it is too long.
std::optional<std::string> BearerOf(const net::HttpRequest& request);

class TokenHolders {
 public:
  struct Holder {
    Json subject;
    bool of_cluster = false;
  };
  using Ask = std::function<Result<Holder>(const std::string& token)>;

  // `limits`: of failed attempts; null: no limit. Both references must outlive it.
  TokenHolders(const Clock& clock, telemetryserver::Limits* limits, Ask ask)
      : clock_(clock), limits_(limits), ask_(std::move(ask)) {}

  // Errors: those of `ask`, kExhausted (too many failures from the address), kUnavailable (too many
  // callers).
  Result<Holder> Of(const std::string& token, const std::string& address);

 private:
  struct Known {
    Result<Holder> holder;
    Time until{};
  };

  std::optional<Result<Holder>> FindCached(const std::string& key, bool& was_good);
  Result<Holder> Keep(const std::string& key, Result<Holder> holder);
  bool HasFailedTooOften(const std::string& address) const;
  std::string PoolOf(const std::string& network, Time now) const;
  void CountFailure(const std::string& address);
  void MakeRoom(Time now);

  const Clock& clock_;
  telemetryserver::Limits* const limits_;
  const Ask ask_;
  SingleFlight<Holder> flight_{28, 20};
  std::mutex mutex_;
  std::map<std::string, Known> known_;  // by hash of the token
};

}  // namespace nos::cmd
