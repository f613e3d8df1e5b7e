// The HTTP API and the dashboard's files; docs/telemetry.md and openapi.json describe them.
//
//   Api api({.recorder = *recorder, ...});
//   net::Listen(options, [&](const net::HttpRequest& request) { return api.Answer(request); });
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "net/http.h"
#include "net/url.h"
#include "telemetryserver/actions.h"
#include "telemetryserver/api/stream.h"
#include "telemetryserver/audit.h"
#include "telemetryserver/concurrency_limiter.h"
#include "telemetryserver/ingest.h"
#include "telemetryserver/limits.h"
#include "telemetryserver/reader.h"
#include "telemetryserver/recorder.h"
#include "telemetryserver/views.h"

namespace nos::telemetryserver {

class AlertReceiver;
class Costs;

// Arguments of a route: reader, cluster and request.
struct ApiCall {
  const Reader& reader;
  std::string cluster;
  const net::Target& target;
  const net::HttpRequest& request;

  // First parameter of this name, or "".
  std::string Parameter(std::string_view name) const;
  std::vector<std::string> All(std::string_view name) const;
  // Error: kInvalid: the parameter exists and is not an integer in the range.
  Result<int64_t> Number(std::string_view name, int64_t fallback, int64_t least,
                         int64_t most) const;
  Scope scope() const { return Scope(reader, Parameter("namespace")); }
};

class Api {
 public:
  struct Parts {
    Recorder& recorder;
    Ingest& ingest;
    StreamHub& hub;
    const gpu::Catalogue& catalogue;
    Metrics& metrics;
    Authenticate authenticate;
    bool sandbox = false;
    std::string version;
    // Null if not configured.
    Actions* actions = nullptr;
    Limits* limits = nullptr;
    Audit* audit = nullptr;
    // Client address of a request; empty: the peer's address.
    std::function<std::string(const net::HttpRequest&)> address = {};
    // Path of the sign-in page, relative to the dashboard: "login"; "": none.
    std::string sign_in = {};
    // Checks whether the reader sees a namespace that is not checked yet (Reader::unasked) or not
    // recently; empty: readers see their own namespaces. Errors: see `authenticate`.
    std::function<Result<bool>(const Reader&, const std::string& ns)> sees = {};
    // The cluster that defines readers' namespaces if several report; "": unknown.
    std::string home = {};
    bool tls = false;                 // it is served over TLS
    Costs* costs = nullptr;           // null: none are computed
    AlertReceiver* alerts = nullptr;  // null: none are received
  };
  explicit Api(Parts parts) : parts_(std::move(parts)) {}

  // Thread-safe.
  net::HttpResponse Answer(const net::HttpRequest& request);
  // All routes, such as "GET /api/v1/gpus".
  static std::vector<std::string> Routes();

 private:
  using Reply = Result<std::string>;  // JSON
  struct Route;
  static const std::map<std::string, Route, std::less<>>& Table();

  net::HttpResponse Dispatch(const net::HttpRequest& request, std::string& route);
  net::HttpResponse Read(const net::HttpRequest& request, const net::Target& target,
                         std::string_view name, const Reader& reader, std::string& route);
  net::HttpResponse Act(const net::HttpRequest& request, std::string_view name,
                        const Reader& reader);
  Reply Do(ActionCall& call, std::string_view name);
  net::HttpResponse Unknown(const net::HttpRequest& request, const Status& why);
  // Writes the refusal of an unauthenticated request to the audit log.
  void WriteRefusal(const net::HttpRequest& request, std::string_view action, const Status& why);
  // 429 if the limit is exceeded; nullopt: the request may continue.
  std::optional<net::HttpResponse> Hold(net::RateLimit Limits::* limit, const std::string& who,
                                        std::string_view what);
  std::string AddressOf(const net::HttpRequest& request) const;
  Time Now() const;
  Result<std::string> ClusterOf(const net::Target& target) const;
  Result<std::string> ClusterNamed(const std::string& name) const;
  // The same reader, with access to the named namespaces checked.
  Result<Reader> WithNamed(const std::set<std::string>& names, const Reader& reader) const;
  // For a reader limited to namespaces: rejects other clusters, whose namespaces belong to other
  // users.
  Status MayLookAt(const std::string& cluster, const Reader& reader) const;
  Reply Session(const ApiCall& call);
  Reply Overview(const ApiCall& call);
  Reply Gpus(const ApiCall& call);
  Reply Workloads(const ApiCall& call);
  Reply Workload(const ApiCall& call, const std::string& ns, const std::string& name);
  Reply Decisions(const ApiCall& call);
  Reply Stories(const ApiCall& call);
  Reply Jobs(const ApiCall& call);
  Reply Quotas(const ApiCall& call);
  Reply Pools(const ApiCall& call);
  Reply History(const ApiCall& call);
  Reply Series(const ApiCall& call);
  Reply Cost(const ApiCall& call);
  Reply CostForecast(const ApiCall& call);
  Reply Saved(const ApiCall& call);
  Reply FiringAlerts(const ApiCall& call);
  Result<std::vector<Bucket>> SeriesOf(const ApiCall& call, const std::string& subject,
                                       const std::string& metric, const Range& range,
                                       size_t& reads);
  Result<std::vector<Bucket>> Samples(const std::string& cluster, const std::string& subject,
                                      const std::string& metric, const Range& range);
  net::HttpResponse Stream(const ApiCall& call);
  net::HttpResponse File(const net::HttpRequest& request, std::string_view path) const;
  // The current state, or the state at parameter "at".
  Reply AtMoment(const ApiCall& call,
                 FunctionRef<std::string(const State&, telemetry::Millis at, NodeTexts*)> write);
  // Error: kNotFound.
  Result<int64_t> IdOf(const std::string& cluster) const;

  Parts parts_;
  OverviewTexts overviews_;
  // Each past state is built from the store; the limit leaves threads for reporters.
  ConcurrencyLimiter pasts_{2, 4};
  ConcurrencyLimiter savings_{1, 2};  // each may take seconds
  ConcurrencyLimiter series_{4, 24};  // leaves threads for reporters
  std::mutex texts_mutex_;
  std::map<std::string, NodeTexts> texts_;  // by cluster
  NodeTexts& TextsOf(const std::string& cluster);
};

// True if a client asks for CSV. Error: kInvalid.
Result<bool> WantsCsv(const ApiCall& call);
// HTTP status code of an error.
int HttpCodeOf(const Status& status);
// 429 with a Retry-After header.
net::HttpResponse TooManyAnswer(std::string_view message, Duration wait);

}  // namespace nos::telemetryserver
