#include "cmd/daemon/pool_webhook.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "kube/http_transport.h"
#include "net/loopback.h"

namespace nos::cmd {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(10);
constexpr size_t kMaxAnswerBytes = 64 << 10;
constexpr size_t kMaxAnswerReported = 200;

// "hooks.example:8443" of "https://hooks.example:8443/nos/"; "" if `url` is not an absolute URL.
std::string_view AuthorityOf(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return {};
  url.remove_prefix(scheme + 3);
  return url.substr(0, url.find_first_of("/?#"));
}

// True if a server may resolve the path outside the folder of its prefix: a part of the path is
// "..", or is ".." after one or more rounds of percent-decoding.
bool LeavesItsFolder(std::string_view url) {
  std::string path(url.substr(0, url.find_first_of("?#")));
  for (size_t at = path.find('%'); at != path.npos; at = path.find('%', at)) {
    const std::string code = ToLower(path.substr(at + 1, 2));
    const char plain = code == "2e"   ? '.'
                       : code == "2f" ? '/'
                       : code == "5c" ? '\\'
                       : code == "25" ? '%'
                                      : '\0';
    if (plain == '\0') {
      ++at;
      continue;
    }
    path.erase(at, 2);
    path[at] = plain;
  }
  std::ranges::replace(path, '\\', '/');
  return std::ranges::any_of(Split(path, '/'), [](std::string_view part) {
    return part.substr(0, part.find(';')) == "..";
  });
}

Status Wrong(std::string_view field, std::string_view what) {
  return Invalid(fmt::format("webhook.{}: {}", field, what));
}

Result<std::string> Call(const PoolWebhookConfig& config, const std::function<bool()>& may_write,
                         std::string_view method, const std::string& url, const std::string& body) {
  if (config.prefix.empty()) {
    return Status(
        Code::kPermission,
        "no address is called, because webhook.urlPrefix is empty in the configuration of "
        "nos autoscaler");
  }
  if (!url.starts_with(config.prefix)) {
    return Status(Code::kPermission,
                  fmt::format("only addresses that begin with {} are called (webhook.urlPrefix)",
                              config.prefix));
  }
  if (LeavesItsFolder(url)) {
    return Status(Code::kPermission, "addresses with '..' are not called (webhook.urlPrefix)");
  }
  kube::ConnectionConfig connection;
  connection.server = url;  // the whole URL, encoded as the NodePool has it
  connection.ca.file = config.ca_file;
  connection.token.file = config.token_file;
  kube::HttpOptions options;
  options.timeout = kTimeout;
  options.max_answer_bytes = kMaxAnswerBytes;
  options.may_write = may_write;
  kube::HttpTransport http(std::move(connection), std::move(options));
  kube::ApiRequest request{.method = std::string(method),
                           .path = "",
                           .query = {},
                           .content_type = "application/json",
                           .accept = "",
                           .body = {}};
  request.text = body;
  NOS_ASSIGN(const kube::ApiResponse answer, http.Do(request));
  const Status status = kube::StatusOf(answer);
  if (status.ok()) return answer.text == "null" ? std::string() : answer.text;
  return Status(status.code(), fmt::format("the webhook answered {}: {}", answer.code,
                                           Shortened(answer.text, kMaxAnswerReported)));
}

}  // namespace

void DescribePoolWebhook(ConfigFields& f, PoolWebhookConfig& c) {
  f.Text("urlPrefix", c.prefix,
         "URL prefix (https://HOST/PATH/) that webhooks of NodePools must have. Empty: none is "
         "called.");
  f.Text(
      "tokenFile", c.token_file,
      "File with the bearer token sent to webhooks; reloaded when it changes. Requires urlPrefix, "
      "because users who can write NodePools could otherwise send it to any URL.");
  f.Text("caFile", c.ca_file,
         "CA certificates (PEM) that verify webhooks. Empty: the system's CA certificates.");
}

Status CheckPoolWebhook(const PoolWebhookConfig& config) {
  if (config.prefix.empty()) {
    return config.token_file.empty()
               ? Status::Ok()
               : Wrong("tokenFile", "requires urlPrefix, the URLs that receive it");
  }
  const std::string_view prefix = config.prefix, host = AuthorityOf(prefix);
  const bool https = prefix.starts_with("https://");
  // Without the slash, https://hooks.example would also match https://hooks.example.org.
  const size_t scheme = https ? 8 : 7;
  if ((!https && !prefix.starts_with("http://")) || host.empty() ||
      host.find('@') != std::string_view::npos || prefix.find('/', scheme) == prefix.npos) {
    return Wrong("urlPrefix", "must be https://HOST/ or http://HOST/, optionally with a path");
  }
  if (!https && !config.token_file.empty() && !net::IsLoopbackAuthority(host)) {
    return Wrong("tokenFile", "a token requires https, or an address on this machine");
  }
  return Status::Ok();
}

controllers::PoolScaling::CallWebhook PoolWebhookCaller(PoolWebhookConfig config,
                                                        std::function<bool()> may_write) {
  return [config = std::move(config), may_write = std::move(may_write)](
             std::string_view method, const std::string& url, const std::string& body) {
    auto answer = Call(config, may_write, method, url, body);
    return answer.ok()
               ? std::move(answer)
               : Result<std::string>(answer.status().Within(std::string(method) + " " + url));
  };
}

}  // namespace nos::cmd
