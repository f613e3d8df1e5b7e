#include "identity/web_call.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "kube/http_transport.h"
#include "net/loopback.h"
#include "net/url.h"

namespace nos::identity {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);
constexpr size_t kMaxAnswer = size_t{1} << 20;

// Splits a URL into "https://host:port" and "/path?query".
std::pair<std::string, std::string> Halves(const std::string& url) {
  const size_t host = url.find("://") + 3;
  const size_t path = std::min(url.find_first_of("/?#", host), url.size());
  return {url.substr(0, path), path == url.size() ? "/" : url.substr(path)};
}

Result<std::string> Ask(const std::string& ca_file, const WebCall& call) {
  NOS_RETURN_IF_ERROR(CheckWebAddress(call.url));
  const auto [server, rest] = Halves(call.url);
  NOS_ASSIGN(net::Target target, net::ParseTarget(rest));
  kube::ConnectionConfig connection;
  connection.server = server;
  connection.ca.file = ca_file;
  kube::HttpTransport transport(
      std::move(connection),
      {.timeout = kPatience, .max_answer_bytes = kMaxAnswer, .max_connections = 1});
  kube::ApiRequest request;
  request.method = call.form.empty() ? "GET" : "POST";
  request.path = std::move(target.path);
  request.query = std::move(target.query);
  request.text = call.form;
  if (!call.form.empty()) request.content_type = "application/x-www-form-urlencoded";
  auto answer = transport.Do(request);
  if (!answer.ok()) return answer.status();
  std::string text = answer->text.empty() ? WriteJson(answer->body) : std::move(answer->text);
  if (answer->code == 200) return text;
  const bool wrong = answer->code >= 400 && answer->code < 500;
  return Status(wrong ? Code::kInvalid : Code::kUnavailable,
                fmt::format("{} answers {}: {}", server, answer->code, Shortened(text, 200)));
}

}  // namespace

Status CheckWebAddress(const std::string& url) {
  const bool https = url.starts_with("https://") && url.size() > 8;
  const bool local =
      url.starts_with("http://") && net::IsLoopbackAuthority(Halves(url).first.substr(7));
  const bool plain = std::ranges::all_of(url, [](char c) {
    return c > ' ' && c <= '~' && c != '@' && c != '#' && c != '\\' && c != '"';
  });
  if ((https || local) && plain) return Status::Ok();
  return Invalid(fmt::format("\"{}\" is no https address", Shortened(url, 200)));
}

WebAsker AskOverHttp(std::string ca_file) {
  return [ca_file = std::move(ca_file)](const WebCall& call) { return Ask(ca_file, call); };
}

}  // namespace nos::identity
