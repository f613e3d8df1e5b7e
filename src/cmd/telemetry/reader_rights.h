// In which namespaces somebody may list pods, as the cluster's API server says
// (SubjectAccessReview). Whoever may list those of all namespaces sees everything.
//
// Many namespaces are asked about at once, so many of them in one go; the next ones are those of
// the next go, seconds later, until all have had their turn (Reader::unasked). What somebody sees
// is asked again every minute, so that what is taken away is gone by then; of the others some, so
// that what is granted shows within minutes. A namespace that somebody names is asked about at
// once.
//
//   ReaderRights rights(transport, clock, [&] { return NamespacesOf(recorder); }, true);
//   NOS_ASSIGN(const telemetryserver::Reader reader, rights.Of(subject));
//   NOS_ASSIGN(const bool sees, rights.Sees(subject, "team-a"));
//
// Thread-safe; whoever wants to know the same at once waits for one answer.
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
#include "cmd/telemetry/single_flight.h"
#include "codec/json.h"
#include "kube/transport.h"
#include "telemetryserver/reader.h"
#include "telemetryserver/turns.h"

namespace nos::cmd {

class ReaderRights {
 public:
  // How many namespaces one go asks about, while some have had no turn and when all have; how many
  // somebody may see that are not all, and may name in a minute.
  static constexpr size_t kAskFirst = 500, kAskAgain = 100, kMostSeen = 1000, kMostNamed = 100;

  // `namespaces`: those that anything is known of. `ask_create`: whether it matters who may create
  // pods. The others must outlive it.
  ReaderRights(kube::Transport& transport, const Clock& clock,
               std::function<std::set<std::string>()> namespaces, bool ask_create)
      : transport_(transport),
        clock_(clock),
        namespaces_(std::move(namespaces)),
        ask_create_(ask_create) {}

  // Of who is named so in access reviews. Errors: kUnavailable (the API server does not answer, or
  // many ask).
  Result<telemetryserver::Reader> Of(const Json& subject);
  // Asked now, if not within the last minute. Errors: as above; kExhausted: too many were named.
  Result<bool> Sees(const Json& subject, const std::string& ns);
  // Asked anew each time. Errors: kUnavailable.
  Result<bool> MayCreate(const Json& subject, const std::string& ns);

 private:
  struct Named {
    std::optional<bool> sees;  // nothing: nobody could tell
    Time until{};
  };
  struct Known {
    telemetryserver::Reader reader;
    Time until{};
    std::string last;   // that had its turn
    size_t turned = 0;  // how many turns there were
    std::map<std::string, Named> named;
  };

  std::optional<telemetryserver::Reader> Recall(const std::string& key);
  void Keep(const std::string& key, Known known, Time asked);
  Result<telemetryserver::Reader> Ask(const std::string& key, const Json& subject);
  Status AskAboutSome(const Json& subject, Known& known);
  std::vector<std::string> TakeTurns(const std::set<std::string>& before, Known& known) const;
  Status AskToCreate(const Json& subject, telemetryserver::Reader& reader);
  Result<bool> AskAboutNamed(const std::string& key, const Json& subject, const std::string& ns);
  // Of each: whether the verb is allowed on pods there ("": of all namespaces).
  Result<std::vector<bool>> May(const Json& subject, std::string_view verb,
                                const std::vector<std::string>& namespaces);

  kube::Transport& transport_;
  const Clock& clock_;
  const std::function<std::set<std::string>()> namespaces_;
  const bool ask_create_;
  SingleFlight<telemetryserver::Reader> readers_{28, 20};  // a page asks nine times at once
  // Of those who have to be asked about many namespaces: the others do not wait behind them.
  telemetryserver::Turns goes_{4, 4};
  SingleFlight<bool> named_{6, 2};
  std::mutex mutex_;
  std::map<std::string, Known> known_;  // by who it is
};

}  // namespace nos::cmd
