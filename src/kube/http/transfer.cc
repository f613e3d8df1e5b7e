#include "kube/http/transfer.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>

namespace nos::kube {
namespace {

using Steady = std::chrono::steady_clock;

constexpr curl_off_t kMaxWish = 3600;  // seconds; limit for a server's Retry-After
constexpr int kMaxRepetitions = 8;

std::string PercentEncode(CURL* curl, std::string_view text) {
  if (text.empty()) return {};  // curl would take 0 as "until the end"
  char* escaped = curl_easy_escape(curl, text.data(), static_cast<int>(text.size()));
  std::string out = escaped == nullptr ? "" : escaped;
  curl_free(escaped);
  return out;
}

// Random jitter, so that clients do not all retry at the same moment.
Duration Jittered(Duration time) {
  thread_local std::minstd_rand generator{std::random_device{}()};
  return FromSeconds(ToSeconds(time) * std::uniform_real_distribution<double>(1.0, 1.3)(generator));
}

long Milliseconds(Duration time) {
  return std::max(1L, static_cast<long>(time / std::chrono::milliseconds(1)));
}

}  // namespace

HttpTransfer::HttpTransfer(const ConnectionConfig& config, std::shared_ptr<const Identity> identity,
                           const ApiRequest& request)
    : identity_(std::move(identity)), curl_(curl_easy_init()) {
  SetUrl(config, request);
  SetIdentity();
  if (!config.as_user.empty()) AddHeader("Impersonate-User: " + config.as_user);
  for (const std::string& group : config.as_groups) AddHeader("Impersonate-Group: " + group);
  curl_easy_setopt(curl_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl_, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(curl_, CURLOPT_CONNECTTIMEOUT, 10L);
  curl_easy_setopt(curl_, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl_, CURLOPT_TCP_KEEPIDLE, 30L);
  curl_easy_setopt(curl_, CURLOPT_TCP_KEEPINTVL, 10L);
  curl_easy_setopt(curl_, CURLOPT_USERAGENT, "nos");
  curl_easy_setopt(curl_, CURLOPT_ACCEPT_ENCODING, "gzip");
  curl_easy_setopt(curl_, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  curl_easy_setopt(curl_, CURLOPT_ERRORBUFFER, message_);
  curl_easy_setopt(curl_, CURLOPT_WRITEFUNCTION, &HttpTransfer::OnData);
  curl_easy_setopt(curl_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(curl_, CURLOPT_PRIVATE, this);
  AddHeader("Accept: " + (request.accept.empty() ? "application/json" : request.accept));
  for (const auto& [name, value] : request.headers) AddHeader(fmt::format("{}: {}", name, value));
  if (!request.text.empty() || !request.body.is_null()) {
    sent_ = request.text.empty() ? WriteJson(request.body) : request.text;
    if (!request.content_encoding.empty()) {
      AddHeader("Content-Encoding: " + request.content_encoding);
    }
    AddHeader("Content-Type: " + request.content_type);
    AddHeader("Expect:");
    curl_easy_setopt(curl_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(sent_.size()));
    curl_easy_setopt(curl_, CURLOPT_POSTFIELDS, sent_.c_str());
  }
  curl_easy_setopt(curl_, CURLOPT_HTTPHEADER, headers_);
}

HttpTransfer::~HttpTransfer() {
  curl_easy_cleanup(curl_);
  curl_slist_free_all(headers_);
  curl_slist_free_all(connect_to_);
}

// A configured TLS server name replaces the address in the URL, so that curl verifies that name;
// CURLOPT_CONNECT_TO still connects to the address.
std::string HttpTransfer::ServerUrl(const ConnectionConfig& config) {
  if (config.tls_server_name.empty()) return config.server;
  CURLU* url = curl_url();
  char *host = nullptr, *port = nullptr, *whole = nullptr;
  std::string result = config.server;
  if (curl_url_set(url, CURLUPART_URL, config.server.c_str(), 0) == CURLUE_OK &&
      curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
      curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
      curl_url_set(url, CURLUPART_HOST, config.tls_server_name.c_str(), 0) == CURLUE_OK &&
      curl_url_get(url, CURLUPART_URL, &whole, 0) == CURLUE_OK) {
    const std::string route = fmt::format("{}:{}:{}:{}", config.tls_server_name, port, host, port);
    connect_to_ = curl_slist_append(nullptr, route.c_str());
    curl_easy_setopt(curl_, CURLOPT_CONNECT_TO, connect_to_);
    result = whole;
  }
  for (char* each : {host, port, whole}) curl_free(each);
  curl_url_cleanup(url);
  while (result.ends_with('/')) result.pop_back();
  return result;
}

void HttpTransfer::SetUrl(const ConnectionConfig& config, const ApiRequest& request) {
  url_ = ServerUrl(config);
  std::string_view path = request.path;
  while (!path.empty()) {  // segment by segment: '/' separates and is not encoded
    path.remove_prefix(1);
    const size_t end = std::min(path.find('/'), path.size());
    url_ += "/" + PercentEncode(curl_, path.substr(0, end));
    path.remove_prefix(end);
  }
  char separator = '?';
  for (const auto& [key, value] : request.query) {
    url_ += separator + PercentEncode(curl_, key) + "=" + PercentEncode(curl_, value);
    separator = '&';
  }
  curl_easy_setopt(curl_, CURLOPT_URL, url_.c_str());
  curl_easy_setopt(curl_, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl_, CURLOPT_PROTOCOLS_STR, "http,https");
  if (!config.proxy_url.empty()) curl_easy_setopt(curl_, CURLOPT_PROXY, config.proxy_url.c_str());
}

void HttpTransfer::SetIdentity() {
  const auto set = [&](CURLoption option, const std::string& pem) {
    if (pem.empty()) return;
    curl_blob blob{const_cast<char*>(pem.data()), pem.size(), CURL_BLOB_NOCOPY};
    curl_easy_setopt(curl_, option, &blob);
  };
  set(CURLOPT_CAINFO_BLOB, identity_->ca_pem);
  set(CURLOPT_SSLCERT_BLOB, identity_->client_certificate_pem);
  set(CURLOPT_SSLKEY_BLOB, identity_->client_key_pem);
  if (!identity_->token.empty()) AddHeader("Authorization: Bearer " + identity_->token);
}

void HttpTransfer::AddHeader(const std::string& line) {
  headers_ = curl_slist_append(headers_, line.c_str());
}

void HttpTransfer::StreamTo(Receive receive, std::function<void()> ended) {
  receive_ = std::move(receive);
  ended_ = std::move(ended);
}

void HttpTransfer::SetDeadline(Steady::time_point deadline) { deadline_ = deadline; }

void HttpTransfer::Prepare() {
  if (!deadline_) return;
  curl_easy_setopt(curl_, CURLOPT_TIMEOUT_MS, Milliseconds(*deadline_ - Steady::now()));
}

void HttpTransfer::SetSilence(Duration most) {
  curl_easy_setopt(curl_, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl_, CURLOPT_LOW_SPEED_TIME,
                   std::max(1L, static_cast<long>(most / std::chrono::seconds(1))));
}

void HttpTransfer::SendOnlyIf(const std::function<bool()>* may_send) {
  may_send_ = may_send;
  curl_easy_setopt(curl_, CURLOPT_PREREQFUNCTION, &HttpTransfer::OnSend);
  curl_easy_setopt(curl_, CURLOPT_PREREQDATA, this);
}

// Called after the connection and TLS are established, immediately before the request is sent.
int HttpTransfer::OnSend(void* self, char*, char*, int, int) {
  auto& transfer = *static_cast<HttpTransfer*>(self);
  transfer.forbidden_ = !(*transfer.may_send_)();
  return transfer.forbidden_ ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

size_t HttpTransfer::OnData(char* data, size_t size, size_t count, void* self) {
  auto& transfer = *static_cast<HttpTransfer*>(self);
  const std::string_view text(data, size * count);
  if (transfer.receive_) return transfer.receive_(text) ? text.size() : 0;
  if (transfer.body_.size() + text.size() > transfer.max_bytes_) return 0;
  transfer.body_ += text;
  return text.size();
}

// A server that closes a connection ends TLS first. curl 7.88 takes that for a sign of life and
// tries the next kept connection, six in all; after many concurrent requests it keeps more dead
// ones.
bool HttpTransfer::WantsNewConnection(CURLcode result) {
  long made = 0, code = 0;
  curl_easy_getinfo(curl_, CURLINFO_NUM_CONNECTS, &made);
  curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &code);
  const bool closed =
      result == CURLE_SEND_ERROR || result == CURLE_RECV_ERROR || result == CURLE_GOT_NOTHING;
  if (!closed || made > 0 || code > 0 || on_new_connection_) return false;
  on_new_connection_ = true;
  curl_easy_setopt(curl_, CURLOPT_FRESH_CONNECT, 1L);
  return true;
}

std::optional<Steady::time_point> HttpTransfer::RepeatAt(CURLcode result) {
  long code = 0;
  curl_off_t seconds = 0;
  curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &code);
  curl_easy_getinfo(curl_, CURLINFO_RETRY_AFTER, &seconds);
  // Without Retry-After it is no overload: a disruption budget that refuses an eviction is a 429
  // too.
  const bool busy = result == CURLE_OK && (code == 429 || code == 503) && seconds > 0;
  if (!busy || !deadline_ || repetitions_ == kMaxRepetitions) return std::nullopt;
  const auto wish = std::chrono::seconds(std::min(seconds, kMaxWish));
  const Steady::time_point due = Steady::now() + Jittered(wish);
  if (due >= *deadline_) return std::nullopt;
  ++repetitions_;
  body_.clear();
  return due;
}

void HttpTransfer::Complete(CURLcode result) {
  if (forbidden_) {
    error_ = {Code::kUnavailable,
              url_ + ": not sent: another replica leads, this one does not write"};
  } else if (result != CURLE_OK) {
    const Code kind = result == CURLE_OPERATION_TIMEDOUT ? Code::kDeadline : Code::kUnavailable;
    error_ = {kind, fmt::format("{}: {}", url_,
                                message_[0] != '\0' ? message_ : curl_easy_strerror(result))};
  }
  long code = 0;
  curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &code);
  code_ = static_cast<int>(code);
  curl_off_t wish = 0;
  curl_easy_getinfo(curl_, CURLINFO_RETRY_AFTER, &wish);
  retry_after_ = std::chrono::seconds(std::clamp<curl_off_t>(wish, 0, kMaxWish));
  if (ended_) ended_();
  done_.Ring();
}

std::optional<Time> HttpTransfer::Date() const {
  constexpr time_t kMaxSeconds = 9'000'000'000;  // the year 2255; Time ends in 2262
  curl_header* date = nullptr;
  if (curl_easy_header(curl_, "Date", 0, CURLH_HEADER, -1, &date) != CURLHE_OK) return std::nullopt;
  const time_t seconds = curl_getdate(date->value, nullptr);
  if (seconds <= 0 || seconds > kMaxSeconds) return std::nullopt;
  return Time(std::chrono::seconds(seconds));
}

bool HttpTransfer::WaitUntil(std::chrono::steady_clock::time_point deadline) {
  return done_.Wait(std::max(Duration(0), Duration(deadline - std::chrono::steady_clock::now())));
}

}  // namespace nos::kube
