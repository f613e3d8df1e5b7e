// Namespaces in which a user may list pods, determined by SubjectAccessReview. A user who may list
// pods of all namespaces sees everything.
//
// Reviews run in rounds: each round asks about a limited number of namespaces, and the next round
// follows seconds later until all had a turn (Reader::unasked). Visible namespaces are reviewed
// again every minute, so that a revoked right ends within a minute. Some of the others are reviewed
// again in each round, so that a new right takes effect within minutes. A namespace that the user
// names is reviewed at once.
//
//   ReaderRights rights(transport, clock, [&] { return NamespacesOf(recorder); }, true);
//   NOS_ASSIGN(const telemetryserver::Reader reader, rights.Of(subject));
//   NOS_ASSIGN(const bool sees, rights.Sees(subject, "team-a"));
//
// Thread-safe; concurrent callers with the same question wait for one answer.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cmd/reviews/single_flight.h"
#include "codec/json.h"
#include "kube/transport.h"
#include "telemetryserver/concurrency_limiter.h"
#include "telemetryserver/reader.h"

namespace nos::cmd {

class ReaderRights {
 public:
  // Namespaces reviewed per round, while some had no turn and after all had one. Maximum number of
  // visible namespaces for a user who does not see all, and of names that a user may give per
  // minute.
  static constexpr size_t kAskFirst = 500, kAskAgain = 100, kMaxSeen = 1000, kMaxNamed = 100;

  // `namespaces`: namespaces with records. `ask_create`: whether the right to create pods is
  // needed. The other arguments must outlive it.
  ReaderRights(kube::Transport& transport, const Clock& clock,
               std::function<std::set<std::string>()> namespaces, bool ask_create)
      : transport_(transport),
        clock_(clock),
        namespaces_(std::move(namespaces)),
        ask_create_(ask_create) {}

  // Rights of a user in the form of access reviews. Errors: kUnavailable (the API server does not
  // answer, or too many requests).
  Result<telemetryserver::Reader> Of(const Json& subject);
  // Reviewed now, unless cached within the last minute. Errors: as above; kExhausted: too many
  // names.
  Result<bool> Sees(const Json& subject, const std::string& ns);
  // Reviewed at each call. Errors: kUnavailable.
  Result<bool> MayCreate(const Json& subject, const std::string& ns);

 private:
  struct Named {
    std::optional<bool> sees;  // nullopt: the review failed
    Time until{};
  };
  struct Known {
    telemetryserver::Reader reader;
    Time until{};
    std::string last;   // last namespace that had its turn
    size_t turned = 0;  // number of turns so far
    std::map<std::string, Named> named;
  };

  std::optional<telemetryserver::Reader> FindCached(const std::string& key);
  void Keep(const std::string& key, Known known, Time asked);
  Result<telemetryserver::Reader> Ask(const std::string& key, const Json& subject);
  Status AskAboutSome(const Json& subject, Known& known);
  std::vector<std::string> TakeTurns(const std::set<std::string>& before, Known& known) const;
  Status AskToCreate(const Json& subject, telemetryserver::Reader& reader);
  Result<bool> AskAboutNamed(const std::string& key, const Json& subject, const std::string& ns);
  // For each namespace, whether the verb is allowed on pods in it; "" means all namespaces.
  Result<std::vector<bool>> May(const Json& subject, std::string_view verb,
                                const std::vector<std::string>& namespaces);

  kube::Transport& transport_;
  const Clock& clock_;
  const std::function<std::set<std::string>()> namespaces_;
  const bool ask_create_;
  SingleFlight<telemetryserver::Reader> readers_{28,
                                                 20};  // the dashboard sends nine requests at once
  // Limits readers with many namespaces, so that other readers do not queue behind them.
  telemetryserver::ConcurrencyLimiter goes_{4, 4};
  SingleFlight<bool> named_{6, 2};
  std::mutex mutex_;
  std::map<std::string, Known> known_;  // by user
};

}  // namespace nos::cmd
