// Reads server-sent events over HTTP as they arrive: one request that lasts until either side ends
// it.
//
//   EventStream stream(connection, request, [&] { bell.Ring(); });
//   while (auto event = stream.Next()) ...
//   if (stream.Ended()) return stream.error();
//
// Uses TLS, token and proxy as HttpTransport does. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "codec/server_events.h"
#include "kube/connection.h"
#include "kube/transport.h"

namespace nos::kube {

class EventStream {
 public:
  // `wake` is called from another thread when an event arrives, and at the end.
  EventStream(ConnectionConfig config, const ApiRequest& request, std::function<void()> wake);
  ~EventStream();
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  // The next event; empty if none has arrived yet.
  std::optional<ServerEvent> Next();
  // True after all events were read and no more can arrive.
  bool Ended() const;
  // Reason of the end: kPermission (401, 403), kUnavailable, kInvalid (another answer), kExhausted
  // (the caller does not read, or an event is too large); OK: the server closed it.
  Status error() const;

 private:
  bool Take(std::string_view piece);
  void End();

  Connection connection_;
  const std::function<void()> wake_;
  ServerEventReader reader_;  // used by the loop's thread
  std::string beginning_;     // of the answer, for error texts; same thread
  mutable std::mutex mutex_;
  std::deque<ServerEvent> events_;
  size_t bytes_ = 0;  // bytes in `events_`
  bool ended_ = false;
  Status error_;
  std::shared_ptr<class HttpTransfer> transfer_;
  std::unique_ptr<class HttpLoop> loop_;  // last: its thread uses the others
};

// The error text of an unsuccessful answer: its {"error"} or {"message"}, else its code. Errors:
// kPermission, kNotFound, kInvalid (other 4xx), kUnavailable.
Status AnswerError(int code, std::string_view body);

}  // namespace nos::kube
