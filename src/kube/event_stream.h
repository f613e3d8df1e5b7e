// A server's events over HTTP, read as they come: one request that goes on until the server or we
// end it.
//
//   EventStream stream(connection, request, [&] { bell.Ring(); });
//   while (auto event = stream.Next()) ...
//   if (stream.Ended()) return stream.error();
//
// TLS, token and proxy as HttpTransport. Thread-safe.
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
  // `wake` is called from another thread when there is an event, and at the end.
  EventStream(ConnectionConfig config, const ApiRequest& request, std::function<void()> wake);
  ~EventStream();
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  // Nothing: none has come yet.
  std::optional<ServerEvent> Next();
  // All has been read, and no more comes.
  bool Ended() const;
  // Why it ended: kPermission (401, 403), kUnavailable, kInvalid (another answer), kExhausted (we
  // do not read, or an event is too large); ok: the server closed it.
  Status error() const;

 private:
  bool Take(std::string_view piece);
  void End();

  Connection connection_;
  const std::function<void()> wake_;
  ServerEventReader reader_;  // of the loop's thread
  std::string beginning_;     // of the answer, in case that it is none; the same
  mutable std::mutex mutex_;
  std::deque<ServerEvent> events_;
  size_t bytes_ = 0;  // of these
  bool ended_ = false;
  Status error_;
  std::shared_ptr<class HttpTransfer> transfer_;
  std::unique_ptr<class HttpLoop> loop_;  // last: its thread uses the others
};

// What an answer that is no success says: its {"error"} or {"message"}, else its code. Errors:
// kPermission, kNotFound, kInvalid (other 4xx), kUnavailable.
Status AnswerError(int code, std::string_view body);

}  // namespace nos::kube
