// Authenticates readers of telemetry and determines which objects they may see, by asking the
// cluster's API server: TokenReview for the user of a bearer token, reader_rights.h for its rights.
//
//   ReaderAccess access(transport, clock, [&] { return NamespacesOf(recorder); }, {});
//   NOS_ASSIGN(const telemetryserver::Reader reader, access.Of(request, address));
//
// Answers are cached for a minute, rejections for some seconds, by the hash of the token. An
// address with too many recent failures may only use tokens that were valid before. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "cmd/access/reader_rights.h"
#include "cmd/access/single_flight.h"
#include "codec/json.h"
#include "kube/transport.h"
#include "net/http.h"
#include "telemetryserver/limits.h"
#include "telemetryserver/reader.h"

namespace nos::cmd {

class ReaderAccess {
 public:
  struct Options {
    // Limits of failed sign-ins; null: no limit.
    telemetryserver::Limits* limits = nullptr;
    // True if the right to create pods is needed.
    bool ask_create = false;
    // True if the cluster reviews tokens; false: only `identify` does.
    bool review_tokens = true;
    // Recognizes some tokens itself: user and groups in the form of access reviews. nullopt: not
    // one of these tokens.
    std::function<std::optional<Result<Json>>(const std::string& token)> identify = {};
  };
  // `namespaces`: namespaces with records. The other arguments must outlive it.
  ReaderAccess(kube::Transport& transport, const Clock& clock,
               std::function<std::set<std::string>()> namespaces, Options options)
      : transport_(transport),
        clock_(clock),
        options_(std::move(options)),
        rights_(transport, clock, std::move(namespaces), options_.ask_create) {}

  // Errors: kPermission (no token, or an unknown one), kExhausted (too many failures from the
  // address), kUnavailable and kDeadline (the API server does not answer, or too many requests).
  Result<telemetryserver::Reader> Of(const net::HttpRequest& request, const std::string& address);
  // Rights of a browser's session, whose user is already known.
  Result<telemetryserver::Reader> OfSubject(const Json& subject);
  // See ReaderRights.
  Result<bool> MayCreate(const telemetryserver::Reader& reader, const std::string& ns) {
    return rights_.MayCreate(reader.subject, ns);
  }
  Result<bool> Sees(const telemetryserver::Reader& reader, const std::string& ns) {
    return rights_.Sees(reader.subject, ns);
  }

 private:
  struct Holder {  // the user of a token
    Json subject;
    bool of_cluster = false;
  };
  struct Known {
    Result<Holder> holder;
    Time until{};
  };

  std::optional<Result<Holder>> FindCached(const std::string& key, bool& was_good);
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
  std::map<std::string, Known> known_;  // by hash of the token
};

}  // namespace nos::cmd
