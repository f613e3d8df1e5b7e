// Authenticates readers of telemetry and determines which objects they may see, by asking the
// cluster's API server: TokenReview for the user of a bearer token, reader_rights.h for its rights.
// A token for this server's audience is of no use at the API server, so an intruder here cannot act
// with it.
//
//   ReaderAccess access(transport, clock, [&] { return NamespacesOf(recorder); }, {});
//   NOS_ASSIGN(const telemetryserver::Reader reader, access.Of(request, address));
//
// Answers are cached (reviews/token_holders.h). Thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "cmd/access/reader_rights.h"
#include "cmd/reviews/token_holders.h"
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
    // Audience of tokens for this server alone. Not that of reporters, whose tokens read nothing.
    std::string audience = "nos-telemetry-readers";
    // True if tokens for the API server count too.
    bool cluster_tokens = true;
    // Recognizes some tokens itself: user and groups in the form of access reviews. nullopt: not
    // one of these tokens.
    std::function<std::optional<Result<Json>>(const std::string& token)> identify = {};
  };
  // `namespaces`: namespaces with records. The other arguments must outlive it.
  ReaderAccess(kube::Transport& transport, const Clock& clock,
               std::function<std::set<std::string>()> namespaces, Options options)
      : transport_(transport),
        options_(std::move(options)),
        rights_(transport, clock, std::move(namespaces), options_.ask_create),
        holders_(clock, options_.limits, [this](const std::string& token) { return Ask(token); }) {}

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
  Result<TokenHolders::Holder> Ask(const std::string& token);
  Result<TokenHolders::Holder> Review(const std::string& token);

  kube::Transport& transport_;
  const Options options_;
  ReaderRights rights_;
  TokenHolders holders_;
};

}  // namespace nos::cmd
