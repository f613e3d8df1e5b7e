#include "kube/event_stream.h"

#include <fmt/core.h>

#include <utility>

#include "base/text.h"
#include "kube/http/loop.h"
#include "kube/http/transfer.h"

namespace nos::kube {
namespace {

constexpr size_t kMaxEvent = size_t{64} << 20, kMaxWaiting = size_t{256} << 20;
constexpr size_t kMaxBeginning = 4096, kMaxSaid = 300;
// Servers send at least a keep-alive each 15 s.
constexpr Duration kSilence = std::chrono::seconds(60);

}  // namespace

Status AnswerError(int code, std::string_view body) {
  const auto json = ParseJson(body);
  std::string said;
  if (json.ok()) said = FindString(*json, "error");
  if (json.ok() && said.empty()) said = FindString(*json, "message");
  if (said.empty()) said = fmt::format("the answer is HTTP {}", code);
  const Code kind = code == 401 || code == 403  ? Code::kPermission
                    : code == 404               ? Code::kNotFound
                    : code >= 400 && code < 500 ? Code::kInvalid
                                                : Code::kUnavailable;
  return {kind, Shortened(said, kMaxSaid)};
}

EventStream::EventStream(ConnectionConfig config, const ApiRequest& request,
                         std::function<void()> wake)
    : connection_(std::move(config)), wake_(std::move(wake)), reader_(kMaxEvent) {
  auto identity = connection_.Current();
  if (!identity.ok()) {
    error_ = identity.status();
    ended_ = true;
    wake_();
    return;
  }
  transfer_ =
      std::make_shared<HttpTransfer>(connection_.config(), std::move(identity).value(), request);
  transfer_->SetSilence(kSilence);
  transfer_->StreamTo([this](std::string_view piece) { return Take(piece); }, [this] { End(); });
  loop_ = std::make_unique<HttpLoop>(1, 1, 1);
  loop_->Submit(transfer_);
}

EventStream::~EventStream() {
  if (loop_ != nullptr) loop_->Cancel(transfer_);
}

bool EventStream::Take(std::string_view piece) {
  beginning_ += piece.substr(0, kMaxBeginning - beginning_.size());
  std::deque<ServerEvent> events;
  size_t bytes = 0;
  Status taken = reader_.Take(piece, [&](ServerEvent event) {
    bytes += event.data.size();
    events.push_back(std::move(event));
  });
  {
    const std::scoped_lock lock(mutex_);
    bytes_ += bytes;
    if (taken.ok() && bytes_ > kMaxWaiting) {
      taken = Status(Code::kExhausted, "events come faster than they are read");
    }
    error_ = taken;
    if (!taken.ok()) return false;
    for (ServerEvent& event : events) events_.push_back(std::move(event));
  }
  if (!events.empty()) wake_();
  return true;
}

void EventStream::End() {
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    if (transfer_->code() >= 400) {
      error_ = AnswerError(transfer_->code(), beginning_);
    } else if (error_.ok() && !transfer_->error().ok()) {
      error_ = transfer_->error();
    } else if (error_.ok() && transfer_->code() != 200) {
      error_ = Invalid(fmt::format("the answer is HTTP {}, no stream", transfer_->code()));
    }
  }
  wake_();
}

std::optional<ServerEvent> EventStream::Next() {
  const std::scoped_lock lock(mutex_);
  if (events_.empty()) return std::nullopt;
  ServerEvent event = std::move(events_.front());
  events_.pop_front();
  bytes_ -= event.data.size();
  return event;
}

bool EventStream::Ended() const {
  const std::scoped_lock lock(mutex_);
  return ended_ && events_.empty();
}

Status EventStream::error() const {
  const std::scoped_lock lock(mutex_);
  return error_;
}

}  // namespace nos::kube
