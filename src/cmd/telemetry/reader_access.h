// Who reads telemetry, and what of the cluster they may see, as its API server says: whom a bearer
// token belongs to (TokenReview), and what is theirs (reader_rights.h).
//
//   ReaderAccess access(transport, clock, [&] { return NamespacesOf(recorder); }, {});
//   NOS_ASSIGN(const telemetryserver::Reader reader, access.Of(request, address));
//
// Answers are kept for a minute, refusals for some seconds, by the token's hash. From an address
// that has failed too often lately only tokens are asked about that were good before. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "cmd/telemetry/reader_rights.h"
#include "cmd/telemetry/single_flight.h"
#include "codec/json.h"
#include "kube/transport.h"
#include "net/http.h"
#include "telemetryserver/limits.h"
#include "telemetryserver/reader.h"

namespace nos::cmd {

class ReaderAccess {
 public:
  struct Options {
    // Failed attempts to sign in; null: as many as they like.
    telemetryserver::Limits* limits = nullptr;
    // Whether it matters who may create pods.
    bool ask_create = false;
    // Whether the cluster knows tokens; false: `identify` alone does.
    bool review_tokens = true;
    // Knows some tokens itself: user and groups as access reviews name them. None: not one of
    // those.
    std::function<std::optional<Result<Json>>(const std::string& token)> identify = {};
  };
  // `namespaces`: those that anything is known of. The others must outlive it.
  ReaderAccess(kube::Transport& transport, const Clock& clock,
               std::function<std::set<std::string>()> namespaces, Options options)
      : transport_(transport),
        clock_(clock),
        options_(std::move(options)),
        rights_(transport, clock, std::move(namespaces), options_.ask_create) {}

  // Errors: kPermission (no token, or one that nobody knows), kExhausted (too many failures from
  // there), kUnavailable and kDeadline (the API server does not answer, or too many ask).
  Result<telemetryserver::Reader> Of(const net::HttpRequest& request, const std::string& address);
  // Of a browser's session, in which it is known who it is.
  Result<telemetryserver::Reader> OfSubject(const Json& subject);
  // As ReaderRights.
  Result<bool> MayCreate(const telemetryserver::Reader& reader, const std::string& ns) {
    return rights_.MayCreate(reader.subject, ns);
  }
  Result<bool> Sees(const telemetryserver::Reader& reader, const std::string& ns) {
    return rights_.Sees(reader.subject, ns);
  }

 private:
  struct Holder {  // of a token
    Json subject;
    bool of_cluster = false;
  };
  struct Known {
    Result<Holder> holder;
    Time until{};
  };

  std::optional<Result<Holder>> Recall(const std::string& key, bool& was_good);
  Result<Holder> Keep(const std::string& key, Result<Holder> holder);
  Result<Holder> HolderOf(const std::string& token, const std::string& address);
  Result<Holder> Ask(const std::string& token);
  Result<Json> Review(const std::string& token);
  bool HasFailedTooOften(const std::string& address) const;
  std::string PoolOf(const std::string& network, Time now) const;
  void CountFailure(const std::string& address);
  void MakeRoom(Time now);

  kube::Transport& transport_;
  const Clock& clock_;
  const Options options_;
  ReaderRights rights_;
  SingleFlight<Holder> flight_{28, 20};
  std::mutex mutex_;
  std::map<std::string, Known> known_;  // by the token's hash
};

}  // namespace nos::cmd
