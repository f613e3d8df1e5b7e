#include "kube/http_transport.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

namespace nos::kube {
namespace {

constexpr size_t kMaxBody = size_t{1} << 30;        // of one answer, bytes
constexpr size_t kMaxWatchLine = size_t{64} << 20;  // of one watch event, bytes

void InitOnce() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)code;
}

std::string PercentEncode(CURL* curl, std::string_view text) {
  char* escaped = curl_easy_escape(curl, text.data(), static_cast<int>(text.size()));
  std::string out = escaped == nullptr ? "" : escaped;
  curl_free(escaped);
  return out;
}

// One request: owns the handle, its headers and its body.
class Call {
 public:
  Call(const Endpoint& endpoint, const ApiRequest& request) : curl_(curl_easy_init()) {
    SetUrl(endpoint, request);
    SetIdentity(endpoint);
    curl_easy_setopt(curl_, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl_, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl_, CURLOPT_CONNECTTIMEOUT, 10L);
    curl_easy_setopt(curl_, CURLOPT_USERAGENT, "nos");
    curl_easy_setopt(curl_, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    AddHeader("Accept: " + (request.accept.empty() ? "application/json" : request.accept));
    if (!request.body.is_null()) {
      body_ = WriteJson(request.body);
      AddHeader("Content-Type: " + request.content_type);
      curl_easy_setopt(curl_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_.size()));
      curl_easy_setopt(curl_, CURLOPT_POSTFIELDS, body_.c_str());
    }
  }
  ~Call() {
    curl_slist_free_all(headers_);
    curl_easy_cleanup(curl_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  CURL* handle() { return curl_; }
  CURLcode Perform() {
    curl_easy_setopt(curl_, CURLOPT_HTTPHEADER, headers_);
    curl_easy_setopt(curl_, CURLOPT_ERRORBUFFER, error_);
    return curl_easy_perform(curl_);
  }
  int HttpCode() const {
    long code = 0;
    curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &code);
    return static_cast<int>(code);
  }
  Status Error(CURLcode code) const {
    const Code kind = code == CURLE_OPERATION_TIMEDOUT ? Code::kDeadline : Code::kUnavailable;
    return {kind,
            fmt::format("{}: {}", url_, error_[0] != '\0' ? error_ : curl_easy_strerror(code))};
  }

 private:
  void SetUrl(const Endpoint& endpoint, const ApiRequest& request) {
    url_ = endpoint.server;
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
    curl_easy_setopt(curl_, CURLOPT_PROTOCOLS_STR, "http,https");
  }

  void SetIdentity(const Endpoint& endpoint) {
    SetBlob(CURLOPT_CAINFO_BLOB, endpoint.ca_pem);
    SetBlob(CURLOPT_SSLCERT_BLOB, endpoint.client_certificate_pem);
    SetBlob(CURLOPT_SSLKEY_BLOB, endpoint.client_key_pem);
    if (!endpoint.token.empty()) AddHeader("Authorization: Bearer " + endpoint.token);
  }

  void SetBlob(CURLoption option, const std::string& pem) {
    if (pem.empty()) return;
    curl_blob blob{const_cast<char*>(pem.data()), pem.size(), CURL_BLOB_COPY};
    curl_easy_setopt(curl_, option, &blob);
  }

  void AddHeader(const std::string& line) { headers_ = curl_slist_append(headers_, line.c_str()); }

  CURL* curl_;
  curl_slist* headers_ = nullptr;
  std::string url_, body_;
  char error_[CURL_ERROR_SIZE] = {};
};

size_t AppendBody(char* data, size_t size, size_t count, void* target) {
  auto& body = *static_cast<std::string*>(target);
  if (body.size() + size * count > kMaxBody) return 0;
  body.append(data, size * count);
  return size * count;
}

// Lines arrive on a thread of its own and are read by whoever holds the stream.
class HttpWatch final : public WatchStream {
 public:
  HttpWatch(const Endpoint& endpoint, const ApiRequest& request) : call_(endpoint, request) {
    CURL* curl = call_.handle();
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &HttpWatch::OnData);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &HttpWatch::OnProgress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, this);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    thread_ = std::thread([this] { Run(); });
  }
  ~HttpWatch() override {
    stop_ = true;
    thread_.join();
  }

  std::optional<WatchEvent> Next() override {
    const std::lock_guard lock(mutex_);
    if (events_.empty()) return std::nullopt;
    WatchEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
  }
  bool Ended() const override {
    const std::lock_guard lock(mutex_);
    return ended_ && events_.empty();
  }
  void Wait(Duration at_most) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, at_most, [this] { return ended_ || !events_.empty(); });
  }

 private:
  void Run() {
    (void)call_.Perform();  // however it ends, the reader lists and watches again
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  // libcurl asks at least once a second: a non-zero answer ends the transfer.
  static int OnProgress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<HttpWatch*>(self)->stop_ ? 1 : 0;
  }

  static size_t OnData(char* data, size_t size, size_t count, void* self) {
    return static_cast<HttpWatch*>(self)->Take({data, size * count}) ? size * count : 0;
  }

  bool Take(std::string_view data) {
    line_ += data;
    if (line_.size() > kMaxWatchLine) return false;
    size_t start = 0;
    for (size_t end; (end = line_.find('\n', start)) != std::string::npos; start = end + 1) {
      if (!Emit(std::string_view(line_).substr(start, end - start))) return false;
    }
    line_.erase(0, start);
    return true;
  }

  bool Emit(std::string_view line) {
    auto parsed = ParseJson(line);
    if (!parsed.ok()) return false;
    const Json* object = Find(*parsed, "object");
    // An error answer to the watch itself is a bare metav1.Status.
    WatchEvent event = object != nullptr
                           ? WatchEvent{std::string(FindString(*parsed, "type")), *object}
                           : WatchEvent{"ERROR", *parsed};
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
    return true;
  }

  Call call_;
  std::string line_;  // of the thread
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<WatchEvent> events_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace

HttpTransport::HttpTransport(Endpoint endpoint, Duration timeout)
    : endpoint_(std::move(endpoint)), timeout_(timeout) {
  InitOnce();
}

Result<ApiResponse> HttpTransport::Do(const ApiRequest& request) {
  Call call(endpoint_, request);
  std::string body;
  curl_easy_setopt(call.handle(), CURLOPT_WRITEFUNCTION, &AppendBody);
  curl_easy_setopt(call.handle(), CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(call.handle(), CURLOPT_TIMEOUT_MS,
                   static_cast<long>(timeout_ / std::chrono::milliseconds(1)));
  if (const CURLcode code = call.Perform(); code != CURLE_OK) return call.Error(code);
  ApiResponse response{call.HttpCode(), {}};
  if (auto parsed = ParseJson(body); parsed.ok()) {
    response.body = *std::move(parsed);
  } else if (response.code < 400) {
    return parsed.status().Within("the API server's answer");
  }
  return response;
}

Result<std::unique_ptr<WatchStream>> HttpTransport::Watch(const ApiRequest& request) {
  return std::unique_ptr<WatchStream>(std::make_unique<HttpWatch>(endpoint_, request));
}

}  // namespace nos::kube
