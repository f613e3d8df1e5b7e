#include "telemetryserver/api.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "codec/gzip.h"
#include "net/same_site.h"
#include "telemetryserver/alerts.h"
#include "telemetryserver/api/files.h"
#include "telemetryserver/api/point_in_time.h"
#include "telemetryserver/metrics.h"

namespace nos::telemetryserver {
namespace {

constexpr std::string_view kPrefix = "/api/v1/";
constexpr int64_t kLatest = 9'999'999'999'999;  // in the year 2286
constexpr size_t kMaxParameter = 1000;
constexpr size_t kMaxNamed = 30;  // namespaces in one request that have to be asked about
constexpr Duration kUnaskedStreamLimit = std::chrono::minutes(1);
// Smaller answers gain nothing; larger ones would hold a thread for seconds.
constexpr size_t kMinGzip = 2000, kMaxGzip = size_t{256} << 20;

// Returns freed memory to the system, because a past state is large and the thread would keep it.
struct GiveBackMemory {
  GiveBackMemory() = default;
  GiveBackMemory(const GiveBackMemory&) = delete;
  GiveBackMemory& operator=(const GiveBackMemory&) = delete;
  ~GiveBackMemory() { malloc_trim(0); }
};

// Namespaces given as a parameter, in the path of a pod, or in the subject of a series.
std::set<std::string> NamespacesNamed(const net::Target& target,
                                      const std::vector<std::string_view>& path) {
  std::set<std::string> names;
  if (path.size() == 3) names.emplace(path[1]);
  for (const auto& [key, value] : target.query) {
    if (key == "namespace") names.insert(value);
    if (key != "subject") continue;
    const auto parts = Split(value, '/');
    const bool namespaced = parts[0] == "pod" || parts[0] == telemetry::kQuotaSubject ||
                            parts[0] == telemetry::kCompositeQuotaSubject;
    if (parts.size() > 2 && namespaced) names.emplace(parts[1]);
  }
  return names;
}

// RFC 9110, 12.5.3: "br, gzip;q=0.5". A weight of 0 refuses, and "gzip" has precedence over "*".
bool AcceptsGzip(std::string_view accepted) {
  bool any = false;
  for (const std::string_view each : Split(accepted, ',')) {
    const auto parts = Split(each, ';');
    const std::string coding = ToLower(Trim(parts[0]));
    if (coding != "gzip" && coding != "*") continue;
    bool refused = false;
    for (size_t i = 1; i < parts.size(); ++i) {
      const std::string weight = ToLower(Trim(parts[i]));
      refused = weight.starts_with("q=") && ParseDouble(weight.substr(2)).value_or(0) <= 0;
    }
    if (coding == "gzip") return !refused;
    any = !refused;
  }
  return any;
}

void Shrink(const net::HttpRequest& request, net::HttpResponse& response) {
  const size_t size = response.body.size();
  if (response.stream != nullptr || size < kMinGzip || size > kMaxGzip) return;
  response.headers.emplace_back("Vary", "Accept-Encoding");
  if (!AcceptsGzip(request.Header("accept-encoding"))) return;
  response.body = Gzip(response.body, 1);
  response.headers.emplace_back("Content-Encoding", "gzip");
}

}  // namespace

struct Api::Route {
  Reply (Api::*answer)(const ApiCall&) = nullptr;
  bool all_namespaces = false;  // only for readers who may see everything
};

const std::map<std::string, Api::Route, std::less<>>& Api::Table() {
  static const std::map<std::string, Route, std::less<>> table = {
      {"session", {&Api::Session}},     {"overview", {&Api::Overview, true}},
      {"gpus", {&Api::Gpus}},           {"workloads", {&Api::Workloads}},
      {"decisions", {&Api::Decisions}}, {"quotas", {&Api::Quotas}},
      {"pools", {&Api::Pools, true}},   {"series", {&Api::Series}},
      {"history", {&Api::History}},     {"jobs", {&Api::Jobs}},
      {"cost", {&Api::Cost}},           {"cost-forecast", {&Api::CostForecast}},
      {"savings", {&Api::Saved, true}}, {"stories", {&Api::Stories}},
      {"alerts", {&Api::FiringAlerts}}};
  return table;
}

std::vector<std::string> Api::Routes() {
  std::vector<std::string> routes = {"POST /api/v1/ingest",
                                     "POST /api/v1/submit",
                                     "POST /api/v1/alerts",
                                     "POST /api/v1/what-if",
                                     "GET /api/v1/stream",
                                     "GET /api/v1/openapi.json",
                                     "GET /api/v1/workloads/{namespace}/{name}"};
  for (const auto& [name, route] : Table())
    routes.push_back(fmt::format("GET {}{}", kPrefix, name));
  return routes;
}

std::string ApiCall::Parameter(std::string_view name) const {
  for (const auto& [key, value] : target.query) {
    if (key == name) return value.substr(0, kMaxParameter);
  }
  return {};
}

std::vector<std::string> ApiCall::All(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : target.query) {
    if (key == name) values.push_back(value.substr(0, kMaxParameter));
  }
  return values;
}

Result<int64_t> ApiCall::Number(std::string_view name, int64_t fallback, int64_t least,
                                int64_t most) const {
  const std::string text = Parameter(name);
  if (text.empty()) return fallback;
  const auto number = ParseInt(text);
  if (number && *number >= least && *number <= most) return *number;
  return Invalid(
      fmt::format("{}={} is no integer from {} to {}", name, Shortened(text, 40), least, most));
}

NodeTexts& Api::TextsOf(const std::string& cluster) {
  const std::scoped_lock lock(texts_mutex_);
  return texts_[cluster];  // bounded, because only existing clusters have an entry
}

// --- Routes ---

net::HttpResponse Api::Answer(const net::HttpRequest& request) {
  const SteadyClock steady;
  const Time begin = steady.Now();
  std::string route = "other";
  // Reporters are identified by their tokens, and many may share one address, so no limit per
  // address.
  const bool reports = request.target.starts_with("/api/v1/ingest");
  auto later = reports ? std::nullopt
                       : Hold(&Limits::address, net::NetworkOf(AddressOf(request)), "requests");
  net::HttpResponse response = later ? std::move(*later) : Dispatch(request, route);
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
  response.headers.emplace_back("X-Frame-Options", "DENY");
  if (parts_.tls) {
    response.headers.emplace_back("Strict-Transport-Security", "max-age=31536000");
  }
  Shrink(request, response);
  parts_.metrics.Count(kRequests, {{"route", route}, {"code", std::to_string(response.code)}});
  parts_.metrics.Observe(kRequestDuration, {{"route", route}}, steady.Now() - begin);
  return response;
}

net::HttpResponse Api::Dispatch(const net::HttpRequest& request, std::string& route) {
  const auto target = net::ParseTarget(request.target);
  if (!target.ok()) return ErrorAnswer(400, target.status().message());
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (!target->path.starts_with(kPrefix)) {
    if (!reads) return ErrorAnswer(405, "the dashboard is read by GET");
    route = "file";
    return File(request, std::string_view(target->path).substr(1));
  }
  const std::string_view name = std::string_view(target->path).substr(kPrefix.size());
  if (name == "ingest") {
    route = "ingest";
    if (request.method != "POST") return ErrorAnswer(405, "envelopes come by POST");
    return parts_.ingest.Answer(request);
  }
  if (name == "alerts" && request.method == "POST") {
    route = "alerts";
    return parts_.alerts != nullptr
               ? parts_.alerts->Answer(request, *target)
               : ErrorAnswer(501,
                             "alerts are not set up here: see alerts in the configuration of "
                             "nos telemetry");
  }
  const bool acts = name == "submit" || name == "what-if";
  if (acts) {
    route = std::string(name);
    if (request.method != "POST") return ErrorAnswer(405, "this is asked by POST");
    const Status own = net::CheckSameSite(request);
    if (!own.ok()) {
      WriteRefusal(request, name, own);
      return ErrorAnswer(own.code() == Code::kInvalid ? 415 : 403, own.message());
    }
  } else if (!reads) {
    return ErrorAnswer(405, "this is read by GET");
  }
  if (name == "openapi.json") {
    route = "openapi.json";
    net::HttpResponse response;
    response.body = std::string(OpenApiText());
    return response;
  }
  const auto reader = parts_.authenticate(request);
  if (!reader.ok()) return Unknown(request, reader.status());
  if (auto later = Hold(&Limits::reader, reader->user, "requests")) return std::move(*later);
  return acts ? Act(request, name, *reader) : Read(request, *target, name, *reader, route);
}

net::HttpResponse Api::Read(const net::HttpRequest& request, const net::Target& target,
                            std::string_view name, const Reader& reader, std::string& route) {
  const auto parts = Split(name, '/');
  const auto found = Table().find(parts[0]);
  const bool stream = name == "stream";
  const bool one = parts.size() == 3 && parts[0] == "workloads";
  if (!stream && !one && (found == Table().end() || parts.size() != 1)) {
    return ErrorAnswer(404, fmt::format("there is no {}{}: see {}openapi.json", kPrefix,
                                        Shortened(name, 100), kPrefix));
  }
  route = std::string(parts[0]);
  const auto cluster = name == "session" ? Result<std::string>("") : ClusterOf(target);
  if (!cluster.ok()) return ErrorAnswer(HttpCodeOf(cluster.status()), cluster.status().message());
  const Status may = name == "session" ? Status::Ok() : MayLookAt(*cluster, reader);
  if (!may.ok()) return ErrorAnswer(HttpCodeOf(may), may.message());
  const auto asking = WithNamed(NamespacesNamed(target, parts), reader);
  if (!asking.ok()) return ErrorAnswer(HttpCodeOf(asking.status()), asking.status().message());
  const ApiCall call{*asking, *cluster, target, request};
  if (stream) return Stream(call);
  if (!one && found->second.all_namespaces && !reader.may_all) {
    return ErrorAnswer(403, fmt::format("{} is about the whole cluster, and {} may see only some "
                                        "namespaces: ask for a role that sees all of them",
                                        name, reader.user));
  }
  Reply reply = one ? Workload(call, std::string(parts[1]), std::string(parts[2]))
                    : (this->*found->second.answer)(call);
  if (!reply.ok()) return ErrorAnswer(HttpCodeOf(reply.status()), reply.status().message());
  net::HttpResponse response;
  response.headers.emplace_back("Cache-Control", "no-store");
  if (name == "cost" && WantsCsv(call).value_or(false)) {
    response.content_type = "text/csv; charset=utf-8; header=present";
    response.headers.emplace_back("Content-Disposition", "attachment; filename=\"gpu-costs.csv\"");
  }
  response.body = std::move(reply).value();
  return response;
}

Result<Reader> Api::WithNamed(const std::set<std::string>& names, const Reader& reader) const {
  Reader with = reader;
  if (reader.may_all || !parts_.sees) return with;
  size_t asked = 0;
  for (const std::string& ns : names) {
    if (with.May(ns) || ++asked > kMaxNamed) continue;
    NOS_ASSIGN(const bool sees, parts_.sees(reader, ns));
    if (sees) with.namespaces.insert(ns);
  }
  return with;
}

Status Api::MayLookAt(const std::string& cluster, const Reader& reader) const {
  const bool only = parts_.home.empty() && parts_.recorder.Clusters().size() == 1;
  if (reader.may_all || cluster == parts_.home || only) return Status::Ok();
  return {Code::kPermission,
          fmt::format(
              "{} may see namespaces of {} only, and this is another cluster: ask for a role that "
              "sees all namespaces",
              reader.user,
              parts_.home.empty() ? "the cluster that actions.cluster names" : parts_.home)};
}

// The only cluster if the request names none.
Result<std::string> Api::ClusterOf(const net::Target& target) const {
  for (const auto& [key, value] : target.query) {
    if (key == "cluster" && !value.empty()) return ClusterNamed(value);
  }
  return ClusterNamed("");
}

Result<std::string> Api::ClusterNamed(const std::string& name) const {
  const std::vector<std::string> clusters = parts_.recorder.Clusters();
  if (std::ranges::find(clusters, name) != clusters.end()) return name;
  if (!name.empty()) {
    return NotFound(fmt::format("no records of cluster \"{}\" have arrived", Shortened(name, 100)));
  }
  if (clusters.size() == 1) return clusters.front();
  if (clusters.empty()) {
    return NotFound("no records of any cluster have arrived: set the endpoint of the agents");
  }
  return Invalid("there are several clusters: name one, as ?cluster=" + clusters.front());
}

Result<int64_t> Api::IdOf(const std::string& cluster) const {
  int64_t id = 0;
  if (parts_.recorder.Look(cluster, [&](const Live& live) { id = live.id; })) return id;
  return NotFound(fmt::format("there is no cluster \"{}\"", cluster));
}

Api::Reply Api::Session(const ApiCall& call) {
  const Reader& reader = call.reader;
  JsonText json;
  json.Begin('{').Key("user").Text(reader.user).Key("sandbox").Bool(parts_.sandbox);
  json.Key("clusters").Begin('[');
  for (const std::string& cluster : parts_.recorder.Clusters()) {
    if (MayLookAt(cluster, reader).ok()) json.Text(cluster);
  }
  const Actions::Can can = parts_.actions == nullptr ? Actions::Can() : parts_.actions->Of(reader);
  json.End(']').Key("can").Begin('{').Key("submit").Bool(can.submit);
  json.Key("what_if")
      .Bool(can.what_if)
      .Key("all_namespaces")
      .Bool(reader.may_all)
      .End('}')
      .Key("namespaces");
  if (reader.may_all) {
    json.Null();
  } else {
    json.Begin('[');
    for (const std::string& ns : reader.namespaces) json.Text(ns);
    json.End(']');
  }
  json.Key("unasked_namespaces").Number(static_cast<int64_t>(reader.unasked));
  if (reader.has_session) json.Key("sign_out").Text("logout");
  json.Key("now").Number(parts_.recorder.Now()).Key("version").Text(parts_.version).End('}');
  return std::move(json.text());
}

Api::Reply Api::AtMoment(
    const ApiCall& call,
    FunctionRef<std::string(const State&, telemetry::Millis, NodeTexts*)> write) {
  const telemetry::Millis now = parts_.recorder.Now();
  NOS_ASSIGN(const telemetry::Millis at, call.Number("at", -1, 0, kLatest));
  std::string text;
  if (at < 0 || at >= now) {
    NodeTexts& texts = TextsOf(call.cluster);
    parts_.recorder.Look(call.cluster,
                         [&](const Live& live) { text = write(live.state, now, &texts); });
    return text;
  }
  const auto turn = pasts_.Begin();
  if (turn == nullptr) {
    return Status(Code::kUnavailable, "too many requests for past moments: retry in some seconds");
  }
  NOS_ASSIGN(const int64_t id, IdOf(call.cluster));
  const GiveBackMemory after;
  State state;
  NOS_RETURN_IF_ERROR(parts_.recorder.archive().StateAt(id, at, state).status());
  NOS_RETURN_IF_ERROR(AddMeasured(parts_.recorder, call.cluster, at, state));
  return write(state, at, nullptr);
}

Api::Reply Api::Overview(const ApiCall& call) {
  return AtMoment(call, [&](const State& state, telemetry::Millis at, NodeTexts* texts) {
    const telemetry::Millis stale = parts_.recorder.stale();
    return texts == nullptr ? OverviewJson(state, parts_.catalogue, at, stale)
                            : overviews_.Get(call.cluster, state, parts_.catalogue, at, stale);
  });
}

Api::Reply Api::Gpus(const ApiCall& call) {
  return AtMoment(call, [&](const State& state, telemetry::Millis at, NodeTexts* texts) {
    return GpusJson(state, call.scope(), at, texts);
  });
}

Api::Reply Api::Workloads(const ApiCall& call) {
  NOS_ASSIGN(const int64_t most, call.Number("limit", 100, 1, 1000));
  const PodQuery query{call.Parameter("state"), ToLower(call.Parameter("q")),
                       static_cast<size_t>(most), call.Parameter("after"), call.Parameter("job")};
  return AtMoment(call, [&](const State& state, telemetry::Millis at, NodeTexts*) {
    return PodsJson(state, call.scope(), query, at);
  });
}

Api::Reply Api::Jobs(const ApiCall& call) {
  NOS_ASSIGN(const int64_t most, call.Number("limit", 1000, 1, 10'000));
  return AtMoment(call, [&](const State& state, telemetry::Millis, NodeTexts*) {
    return JobsJson(state, call.scope(), static_cast<size_t>(most));
  });
}

Api::Reply Api::Quotas(const ApiCall& call) {
  return AtMoment(call, [&](const State& state, telemetry::Millis, NodeTexts*) {
    return QuotasJson(state, call.scope());
  });
}

Api::Reply Api::Pools(const ApiCall& call) {
  return AtMoment(
      call, [](const State& state, telemetry::Millis, NodeTexts*) { return PoolsJson(state); });
}

net::HttpResponse Api::Stream(const ApiCall& call) {
  net::HttpResponse response;
  if (call.request.method == "HEAD") return response;
  response.content_type = "text/event-stream";
  response.headers.emplace_back("X-Accel-Buffering", "no");
  response.stream_idle = kStreamIdle;
  response.stream =
      OpenStream(parts_.recorder, parts_.hub, TextsOf(call.cluster), overviews_, parts_.catalogue,
                 call.reader, {call.cluster, std::string(call.request.Header("last-event-id"))});
  // The reader will see more namespaces soon, and a stream keeps its scope.
  if (call.reader.unasked > 0) response.stream_limit = kUnaskedStreamLimit;
  if (response.stream == nullptr) {
    return TooManyAnswer("too many streams are open: close some", std::chrono::seconds(30));
  }
  return response;
}

net::HttpResponse Api::File(const net::HttpRequest&, std::string_view path) const {
  const EmbeddedFile* file = FindDashboardFile(path.empty() ? "index.html" : path);
  if (file == nullptr) return ErrorAnswer(404, "there is no such file");
  net::HttpResponse response;
  response.content_type = std::string(file->type);
  response.body = std::string(file->bytes);
  response.headers = {
      {"Content-Security-Policy",
       "default-src 'self'; img-src 'self' data:; object-src 'none'; "
       "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"},
      // Names below assets/ contain a hash of the content.
      {"Cache-Control",
       path.starts_with("assets/") ? "public, max-age=31536000, immutable" : "no-cache"}};
  return response;
}

}  // namespace nos::telemetryserver
