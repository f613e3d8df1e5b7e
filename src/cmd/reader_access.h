// Who reads telemetry, and what of the cluster they may see, as its API server says: whom a bearer
// token belongs to (TokenReview), and in which namespaces they may list pods
// (SubjectAccessReview). Whoever may list the pods of all namespaces sees everything.
//
//   ReaderAccess access(transport, clock, [&] { return NamespacesOf(recorder); });
//   NOS_ASSIGN(const telemetry::Reader reader, access.Of(request));
//
// Answers are kept for a minute, refusals for some seconds, by the token's hash. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "base/clock.h"
#include "codec/json.h"
#include "kube/transport.h"
#include "net/http.h"
#include "telemetry/reader.h"

namespace nos::cmd {

class ReaderAccess {
 public:
  // `namespaces`: those that anything is known of. The others must outlive it.
  ReaderAccess(kube::Transport& transport, const Clock& clock,
               std::function<std::set<std::string>()> namespaces)
      : transport_(transport), clock_(clock), namespaces_(std::move(namespaces)) {}

  // Errors: kPermission (no token, or one that the API server does not know), kUnavailable and
  // kDeadline (it does not answer).
  Result<telemetry::Reader> Of(const net::HttpRequest& request);

 private:
  struct Known {
    Result<telemetry::Reader> reader;
    Time until{};
  };

  Result<telemetry::Reader> Ask(const std::string& token);
  Result<bool> MayList(const Json& user, const std::string& ns);
  void MakeRoom(Time now);

  kube::Transport& transport_;
  const Clock& clock_;
  const std::function<std::set<std::string>()> namespaces_;
  std::mutex mutex_;
  std::map<std::string, Known> known_;  // by the token's hash
};

}  // namespace nos::cmd
