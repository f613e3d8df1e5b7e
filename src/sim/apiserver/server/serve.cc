#include "sim/serve.h"

#include <fmt/format.h>

#include "base/text.h"
#include "codec/yaml.h"
#include "net/loopback.h"
#include "net/url.h"
#include "sim/apiserver/objects/api_path.h"
#include "sim/apiserver/objects/reply.h"
#include "sim/apiserver/printing/log.h"
#include "sim/apiserver/schemas/unknown.h"
#include "sim/protobuf.h"

namespace nos::sim {
namespace {

using kube::ApiRequest;
using kube::ApiResponse;
using net::HttpRequest;
using net::HttpResponse;

constexpr std::string_view kOpenApiV2Type =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
constexpr size_t kReadBytes = size_t{64} * 1024;
// Limit of a watch without a timeout of its own, as on a real server.
constexpr Duration kMaxWatch = std::chrono::hours(1);

void AppendLine(kube::WatchEvent event, std::string& out) {
  out += WriteJson({{"type", event.type}, {"object", std::move(event.object)}});
  out += '\n';
}

// A watch as lines of JSON.
class WatchBody final : public net::BodyStream {
 public:
  explicit WatchBody(std::unique_ptr<WatchSubscription> watch) : watch_(std::move(watch)) {}

  bool Read(std::string& out) override {
    while (out.size() < kReadBytes) {
      auto event = watch_->Next();
      if (!event) return !watch_->Ended();
      AppendLine(std::move(*event), out);
    }
    return true;
  }
  void ReadIdle(std::string& out) override {
    if (auto bookmark = watch_->Progress()) AppendLine(std::move(*bookmark), out);
  }
  void OnReady(std::function<void()> wake) override { watch_->OnReady(std::move(wake)); }

 private:
  std::unique_ptr<WatchSubscription> watch_;
};

// A container's log as it grows, from the events of its pod.
class LogBody final : public net::BodyStream {
 public:
  LogBody(std::unique_ptr<WatchSubscription> watch, LogOptions options)
      : watch_(std::move(watch)), options_(std::move(options)) {}

  bool Read(std::string& out) override {
    while (auto event = watch_->Next()) {
      if (event->type == "DELETED" || event->type == "ERROR") return false;
      const auto log = LogOf(event->object, options_);
      if (!log.ok()) continue;
      if (!next_) next_ = FirstLine(*log, options_);
      out += LogText(*log, *next_, options_);
      next_ = std::max(*next_, log->lines.size());
      // A pod without a node has an empty log, which ends.
      if (log->ended || log->lines.empty()) return false;
    }
    return !watch_->Ended();
  }
  void OnReady(std::function<void()> wake) override { watch_->OnReady(std::move(wake)); }

 private:
  std::unique_ptr<WatchSubscription> watch_;
  const LogOptions options_;
  std::optional<size_t> next_;  // the line that is sent next
};

// Header format of RFC 7234 section 5.5; characters that a header cannot contain are replaced.
std::string WarningHeader(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c >= ' ' && c <= '~' ? c : '?';
  }
  return fmt::format("299 - \"{}\"", quoted);
}

HttpResponse ToHttp(const ApiResponse& answer) {
  HttpResponse response;
  response.code = answer.code;
  for (const std::string& warning : answer.warnings) {
    response.headers.emplace_back("Warning", WarningHeader(warning));
  }
  if (answer.body.is_string()) {  // health checks
    response.content_type = "text/plain; charset=utf-8";
    response.body = answer.body.get_string();
  } else {
    response.body = WriteJson(answer.body) + "\n";
  }
  return response;
}

HttpResponse Refuse(const Refusal& refusal) { return ToHttp(ToResponse(refusal)); }

// The program name in "kubectl/v1.32.4 (linux/amd64)": the default field manager.
std::string ManagerFrom(std::string_view user_agent) {
  const std::string name(user_agent.substr(0, user_agent.find_first_of("/ ")));
  return name.empty() ? "unknown" : name;
}

Outcome<Json> ParseYamlBody(const std::string& body) {
  auto documents = ParseYaml(body);
  if (!documents.ok()) return BadRequest(documents.status().message());
  if (documents->size() != 1) return BadRequest("the body must be one YAML document");
  return std::move(documents->front());
}

Refusal UnknownFormat(std::string_view type) {
  return MakeRefusal(
      415, "UnsupportedMediaType",
      fmt::format("the body of the request was in an unknown format ({}); send application/json",
                  type));
}

enum class Format { kJson, kYaml, kProtobuf };

// The format of a media type (lower case, without parameters).
std::optional<Format> FormatOf(std::string_view type) {
  constexpr std::pair<std::string_view, Format> kFormats[] = {
      {"application/json", Format::kJson},
      {"application/json-patch+json", Format::kJson},
      {"application/merge-patch+json", Format::kJson},
      {"application/strategic-merge-patch+json", Format::kJson},
      {"application/apply-patch+json", Format::kJson},
      {"application/apply-patch+yaml", Format::kYaml},
      {"application/yaml", Format::kYaml},
      {"application/vnd.kubernetes.protobuf", Format::kProtobuf}};
  for (const auto& [name, format] : kFormats) {
    if (type == name) return format;
  }
  return std::nullopt;
}

// A body without a content type counts as JSON, as on a real server (kubectl 1.20 sends none on
// create). Exception: requests from browsers, where any web page can cause such a request without
// the user's consent.
std::string TypeOfBody(const HttpRequest& http) {
  const std::string_view named = http.Header("content-type");
  const std::string type = ToLower(Trim(named.substr(0, named.find(';'))));
  const bool browser = !http.Header("origin").empty() || !http.Header("sec-fetch-site").empty();
  return named.empty() && !browser ? "application/json" : type;
}

Check ReadBody(const HttpRequest& http, ApiRequest& request) {
  if (http.body.empty()) return std::nullopt;
  const std::string type = TypeOfBody(http);
  const auto format = FormatOf(type);
  if (!format) return UnknownFormat(type);
  if (format == Format::kProtobuf) {
    auto decoded = DecodeProtobuf(http.body);
    if (!decoded.ok()) return BadRequest(decoded.status().message());
    request.body = std::move(*decoded);
  } else if (format == Format::kJson) {
    auto parsed = ParseJson(http.body);
    if (!parsed.ok()) return BadRequest(parsed.status().message());
    request.body = std::move(*parsed);
    request.duplicate_keys = DuplicateKeys(http.body);
  } else {
    auto parsed = ParseYamlBody(http.body);
    if (!parsed.ok()) return parsed.status();
    request.body = std::move(*parsed);
  }
  return std::nullopt;
}

// Everything but the body.
Outcome<ApiRequest> ToApi(const HttpRequest& http) {
  auto target = net::ParseTarget(http.target);
  if (!target.ok()) return BadRequest(target.status().message());
  ApiRequest request;
  // The connection omits the body of the answer to a HEAD request.
  request.method = http.method == "HEAD" ? "GET" : http.method;
  request.path = std::move(target->path);
  request.query = std::move(target->query);
  request.content_type = http.Header("content-type");
  request.accept = http.Header("accept");
  const bool apply = request.content_type.find("apply-patch") != std::string::npos;
  if (!apply && request.Query("fieldManager").empty()) {
    std::erase_if(request.query, [](const auto& pair) { return pair.first == "fieldManager"; });
    request.query.emplace_back("fieldManager", ManagerFrom(http.Header("user-agent")));
  }
  return request;
}

Duration LimitOf(const ApiRequest& request) {
  const auto seconds = ParseInt(request.Query("timeoutSeconds"));
  if (!seconds || *seconds <= 0 || *seconds > 3600) return kMaxWatch;
  return std::chrono::seconds(*seconds);
}

HttpResponse ServeWatch(ApiServer& server, const ApiRequest& request, Duration bookmarks) {
  auto watch = server.OpenWatch(request);
  if (const auto* refused = std::get_if<ApiResponse>(&watch)) return ToHttp(*refused);
  HttpResponse response;
  response.stream_limit = LimitOf(request);
  response.stream_idle = bookmarks;
  response.stream =
      std::make_unique<WatchBody>(std::move(std::get<std::unique_ptr<WatchSubscription>>(watch)));
  return response;
}

bool FollowsLog(const ApiRequest& request) {
  const auto path = ParseApiPath(request.path);
  const std::string follow = request.Query("follow");
  return path && path->plural == "pods" && path->subresource == "log" && request.method == "GET" &&
         (follow == "true" || follow == "1");
}

// Refusals are those of the log so far. Without one, the pod exists; its lines follow.
HttpResponse ServeLog(ApiServer& server, const ApiRequest& request) {
  const auto now = server.Do(request);
  const auto path = ParseApiPath(request.path);
  if (now->code != 200 || !path) return ToHttp(*now);
  ApiRequest pod;
  pod.method = "GET";
  pod.path = fmt::format("/api/v1/namespaces/{}/pods", path->ns);
  pod.query = {{"fieldSelector", "metadata.name=" + path->name}};
  auto watch = server.OpenWatch(pod);
  if (const auto* refused = std::get_if<ApiResponse>(&watch)) return ToHttp(*refused);
  auto options = ParseLogOptions(request, server.Now());
  if (!options.ok()) return Refuse(options.status());
  HttpResponse response;
  response.content_type = "text/plain; charset=utf-8";
  response.stream_limit = kMaxWatch;
  response.stream = std::make_unique<LogBody>(
      std::move(std::get<std::unique_ptr<WatchSubscription>>(watch)), std::move(*options));
  return response;
}

HttpResponse Serve(ApiServer& server, const HttpRequest& http, Duration bookmarks) {
  if (const Status local = net::CheckLocal(http); !local.ok()) {
    return Refuse(Forbidden(local.message()));
  }
  auto request = ToApi(http);
  if (!request.ok()) return Refuse(request.status());
  if (const auto refused = server.CheckAddress(*request)) return ToHttp(*refused);
  if (auto refusal = ReadBody(http, *request)) return Refuse(*refusal);
  const std::string watch = request->Query("watch");
  if (request->method == "GET" && (watch == "true" || watch == "1")) {
    return ServeWatch(server, *request, bookmarks);
  }
  if (FollowsLog(*request)) return ServeLog(server, *request);
  const auto answer = server.Do(*request);
  HttpResponse response = ToHttp(*answer);
  if (request->path == "/openapi/v2") response.content_type = std::string(kOpenApiV2Type);
  return response;
}

}  // namespace

Result<std::unique_ptr<net::HttpServer>> ServeApi(ApiServer& server, const std::string& address,
                                                  uint16_t port, Duration bookmarks, Reach reach) {
  const bool v6 = address.find(':') != std::string::npos;
  if (reach == Reach::kThisMachine &&
      !net::IsLoopbackAuthority(v6 ? "[" + address + "]" : address)) {
    return Invalid(
        fmt::format("the API server has no authentication and listens on this machine "
                    "only: {} is not a loopback address",
                    address));
  }
  net::HttpServerOptions options;
  options.address = address == "localhost" ? "127.0.0.1" : address;
  options.port = port;
  return net::HttpServer::Start(options, [&server, bookmarks](const HttpRequest& request) {
    HttpResponse response = Serve(server, request, bookmarks);
    // A real server sends this header, too. Clients compute ages with it, because the simulated
    // time may run faster than their clocks.
    response.headers.emplace_back("Date", net::HttpDate(server.Now()));
    return response;
  });
}

std::string KubeconfigFor(const std::string& address, uint16_t port) {
  const bool v6 = address.find(':') != std::string::npos;
  return fmt::format(
      "apiVersion: v1\nkind: Config\ncurrent-context: nos-sandbox\n"
      "clusters:\n- name: nos-sandbox\n  cluster:\n    server: http://{}:{}\n"
      "contexts:\n- name: nos-sandbox\n  context:\n    cluster: nos-sandbox\n"
      "    user: nos-sandbox\nusers:\n- name: nos-sandbox\n  user: {{}}\n",
      v6 ? "[" + address + "]" : address, port);
}

}  // namespace nos::sim
