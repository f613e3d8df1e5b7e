#include "kube/http_transport.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <random>

#include "kube/http/loop.h"
#include "kube/http/transfer.h"

namespace nos::kube {
namespace {

using Steady = std::chrono::steady_clock;

constexpr size_t kMaxWatchLine = size_t{64} << 20;  // limit in bytes for one watch event
constexpr int kUnauthorized = 401;
// The server ends a watch after five to ten minutes, the range that client-go requests. The random
// spread keeps the watches of a cluster from reconnecting at the same moment.
constexpr int kMinWatchSeconds = 300, kMaxWatchSeconds = 600;
// curl enforces each deadline too; this margin covers a loop that is late itself.
constexpr std::chrono::seconds kGrace{5};

int WatchSeconds() {
  thread_local std::minstd_rand generator{std::random_device{}()};
  return std::uniform_int_distribution(kMinWatchSeconds, kMaxWatchSeconds)(generator);
}

}  // namespace

// Lines arrive on the loop's thread; the owner of the stream reads them.
class HttpTransport::Stream final : public WatchStream {
 public:
  // `max_bytes`: of events that wait to be read.
  Stream(HttpLoop& loop, Connection& connection, std::shared_ptr<HttpTransfer> transfer,
         size_t max_bytes)
      : loop_(loop),
        connection_(connection),
        transfer_(std::move(transfer)),
        max_bytes_(max_bytes) {
    transfer_->StreamTo([this](std::string_view data) { return Take(data); }, [this] { End(); });
    loop_.Submit(transfer_);
  }
  ~Stream() override { loop_.Cancel(transfer_); }

  std::optional<WatchEvent> Next() override {
    const std::scoped_lock lock(mutex_);
    if (events_.empty()) return std::nullopt;
    WatchEvent event = std::move(events_.front());
    events_.pop_front();
    waiting_ -= BytesOf(event);
    return event;
  }
  bool Ended() const override {
    const std::scoped_lock lock(mutex_);
    return ended_ && events_.empty();
  }
  void OnReady(std::function<void()> wake) override {
    const std::scoped_lock lock(mutex_);
    if (ended_ || !events_.empty()) return wake();
    wake_ = std::move(wake);
  }

 private:
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
    WatchEvent event;
    const Status read = ReadJson(line, [&](Cursor& root) {
      if (root.kind() != Cursor::Kind::kObject) return;
      root.Members([&](std::string_view key, Cursor& value) {
        const Cursor::Kind kind = value.kind();
        if (key == "type" && kind == Cursor::Kind::kString) event.type = value.Text();
        if (key == "object" && kind == Cursor::Kind::kObject) event.text = value.Raw();
      });
    });
    if (!read.ok()) return false;
    // An error answer to the watch request itself is a bare metav1.Status.
    if (event.text.empty()) event = {"ERROR", {}, std::string(line)};
    return Push(std::move(event));
  }

  void End() {
    // An answer without a line end is an error, of the server or of a proxy before it.
    if (transfer_->code() >= 400) {
      if (transfer_->code() == kUnauthorized) connection_.Rejected();
      Emit(line_);
    } else if (!transfer_->error().ok()) {
      (void)Push({"ERROR", JsonObject{{"message", transfer_->error().message()}}, {}});
    }
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    if (wake_) std::exchange(wake_, nullptr)();
  }

  static size_t BytesOf(const WatchEvent& event) { return sizeof(event) + event.text.size(); }

  // False: too much waits to be read. The event is dropped, and the transfer ends.
  bool Push(WatchEvent event) {
    const std::scoped_lock lock(mutex_);
    const size_t bytes = BytesOf(event);
    if (!events_.empty() && waiting_ + bytes > max_bytes_) return false;
    waiting_ += bytes;
    events_.push_back(std::move(event));
    if (wake_) std::exchange(wake_, nullptr)();
    return true;
  }

  HttpLoop& loop_;
  Connection& connection_;
  const std::shared_ptr<HttpTransfer> transfer_;
  const size_t max_bytes_;
  std::string line_;  // used by the loop's thread
  mutable std::mutex mutex_;
  std::deque<WatchEvent> events_;
  size_t waiting_ = 0;  // bytes of events_
  std::function<void()> wake_;
  bool ended_ = false;
};

HttpTransport::HttpTransport(ConnectionConfig config, HttpOptions options)
    : connection_(std::move(config)),
      options_(std::move(options)),
      loop_(std::make_unique<HttpLoop>(options_.requests_per_second, options_.burst,
                                       options_.max_connections)) {}

HttpTransport::~HttpTransport() = default;

Result<ApiResponse> HttpTransport::Do(const ApiRequest& request) {
  const Deadline deadline = DeadlineOf(request);
  return Finish(request, Start(request, deadline), deadline);
}

HttpTransport::Deadline HttpTransport::DeadlineOf(const ApiRequest& request) const {
  const bool less = request.patience > Duration::zero() && request.patience < options_.timeout;
  return Steady::now() + (less ? request.patience : options_.timeout);
}

std::vector<Result<ApiResponse>> HttpTransport::DoAll(const std::vector<ApiRequest>& requests) {
  struct Begun {
    Result<std::shared_ptr<HttpTransfer>> transfer;
    Deadline deadline;
  };
  std::vector<Result<ApiResponse>> answers;
  answers.reserve(requests.size());
  std::deque<Begun> begun;
  for (size_t i = 0; i < requests.size(); ++i) {
    const size_t ahead = std::min(requests.size(), i + options_.max_connections);
    while (i + begun.size() < ahead) {
      const ApiRequest& next = requests[i + begun.size()];
      const Deadline deadline = DeadlineOf(next);
      begun.push_back({Start(next, deadline), deadline});
    }
    answers.push_back(
        Finish(requests[i], std::move(begun.front().transfer), begun.front().deadline));
    begun.pop_front();
  }
  return answers;
}

Result<std::shared_ptr<HttpTransfer>> HttpTransport::Start(const ApiRequest& request,
                                                           Deadline deadline) {
  NOS_ASSIGN(auto identity, connection_.Current());
  auto transfer =
      std::make_shared<HttpTransfer>(connection_.config(), std::move(identity), request);
  transfer->SetDeadline(deadline);
  transfer->SetMaxBytes(options_.max_answer_bytes);
  if (request.method != "GET" && options_.may_write) transfer->SendOnlyIf(&options_.may_write);
  loop_->Submit(transfer);
  return transfer;
}

Result<ApiResponse> HttpTransport::Finish(const ApiRequest& request,
                                          Result<std::shared_ptr<HttpTransfer>> transfer,
                                          Deadline deadline) {
  for (bool renewed = false;; renewed = true) {
    if (!transfer.ok()) return transfer.status();
    if (!(*transfer)->WaitUntil(deadline + kGrace)) {
      loop_->Cancel(*transfer);
      return Status(Code::kDeadline,
                    fmt::format("{} {}: no answer in time", request.method, request.path));
    }
    NOS_RETURN_IF_ERROR((*transfer)->error());
    if (const auto date = (*transfer)->Date()) {
      const std::scoped_lock lock(mutex_);
      last_ = {*date, Steady::now()};
    }
    if ((*transfer)->code() != kUnauthorized || renewed) {
      ApiResponse response{
          (*transfer)->code(), {}, {}, (*transfer)->TakeBody(), (*transfer)->retry_after()};
      if (response.text.empty()) response.text = "null";
      return response;
    }
    connection_.Rejected();
    transfer = Start(request, deadline);
  }
}

std::optional<Time> HttpTransport::ServerTime() const {
  const std::scoped_lock lock(mutex_);
  if (!last_) return std::nullopt;
  return last_->date + std::chrono::duration_cast<Duration>(Steady::now() - last_->at);
}

Result<std::unique_ptr<WatchStream>> HttpTransport::Watch(const ApiRequest& request) {
  ApiRequest watch = request;
  if (watch.Query("timeoutSeconds").empty()) {
    watch.query.emplace_back("timeoutSeconds", std::to_string(WatchSeconds()));
  }
  NOS_ASSIGN(auto identity, connection_.Current());
  auto transfer = std::make_shared<HttpTransfer>(connection_.config(), std::move(identity), watch);
  transfer->SetSilence(options_.watch_silence);
  return std::unique_ptr<WatchStream>(
      std::make_unique<Stream>(*loop_, connection_, std::move(transfer), options_.max_watch_bytes));
}

}  // namespace nos::kube
