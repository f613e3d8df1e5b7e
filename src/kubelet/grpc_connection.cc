#include "kubelet/grpc_connection.h"

#include <fmt/core.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text.h"

namespace nos::kubelet {
namespace {

constexpr size_t kFrameHeader = 5;  // one byte compressed or not, four bytes length, big-endian
constexpr size_t kMaxText = 1024;   // bytes of a method's name or an error's text

struct Header {
  std::string_view name, value;
};

nghttp2_nv Pair(const Header& header) {
  // nghttp2 copies both and changes neither, although its type is not const.
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(header.name), bytes(header.value), header.name.size(), header.value.size(),
          NGHTTP2_NV_FLAG_NONE};
}

std::vector<nghttp2_nv> Pairs(std::initializer_list<Header> headers) {
  std::vector<nghttp2_nv> pairs;
  for (const Header& header : headers) pairs.push_back(Pair(header));
  return pairs;
}

std::string Frame(std::string_view message) {
  const auto size = static_cast<uint32_t>(message.size());
  std::string framed(kFrameHeader, '\0');
  for (size_t i = 0; i < 4; ++i) framed[1 + i] = static_cast<char>(size >> (24 - 8 * i));
  return framed.append(message);
}

// Encoding of grpc-message: '%' and everything outside printable ASCII as %XX.
std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : text.substr(0, kMaxText)) {
    if (c >= ' ' && c <= '~' && c != '%') {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const char* code = text.data() + i + 1;
    const bool escaped = text[i] == '%' && i + 2 < text.size() &&
                         std::from_chars(code, code + 2, byte, 16).ptr == code + 2;
    plain += escaped ? static_cast<char>(byte) : text[i];
    if (escaped) i += 2;
  }
  return plain;
}

void ReadHeader(GrpcStream& stream, std::string_view name, std::string_view value) {
  value = value.substr(0, kMaxText);
  const auto number = [&] { return static_cast<int>(ParseInt(value).value_or(-1)); };
  if (name == ":path") stream.method = value;
  if (name == ":status") stream.http_status = number();
  if (name == "grpc-status") stream.grpc_status = number();
  if (name == "grpc-message") stream.grpc_message = Unescape(value);
}

}  // namespace

// Callbacks for nghttp2; `self` is the GrpcConnection.
struct GrpcConnection::Callbacks {
  static GrpcConnection& Self(void* self) { return *static_cast<GrpcConnection*>(self); }

  static int BeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    GrpcConnection& connection = Self(self);
    if (connection.side_ == Side::kServer) connection.streams_.try_emplace(frame->hd.stream_id);
    return 0;
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                      void* self) {
    GrpcStream* stream = Self(self).Find(frame->hd.stream_id);
    if (stream == nullptr) return 0;
    ReadHeader(*stream, {reinterpret_cast<const char*>(name), name_size},
               {reinterpret_cast<const char*>(value), value_size});
    return 0;
  }

  static int OnData(nghttp2_session* session, uint8_t, int32_t id, const uint8_t* data, size_t size,
                    void* self) {
    GrpcConnection& connection = Self(self);
    GrpcStream* stream = connection.Find(id);
    if (stream == nullptr || stream->too_big) return 0;
    if (stream->received.size() + size > connection.limits_.max_message + kFrameHeader) {
      stream->too_big = true;
      stream->received.clear();
      return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_ENHANCE_YOUR_CALM);
    }
    stream->received.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    GrpcConnection& connection = Self(self);
    const bool acknowledged = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;
    if (frame->hd.type == NGHTTP2_PING && acknowledged) {
      uint64_t marker = 0;
      std::memcpy(&marker, frame->ping.opaque_data, sizeof marker);
      if (marker == connection.marker_) connection.acknowledged_ = marker;
      return 0;
    }
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    GrpcStream* stream = connection.Find(frame->hd.stream_id);
    if (stream == nullptr || stream->ended) return 0;
    stream->ended = true;
    if (connection.on_request) connection.on_request(frame->hd.stream_id);
    return 0;
  }

  static int OnClose(nghttp2_session*, int32_t id, uint32_t, void* self) {
    GrpcConnection& connection = Self(self);
    if (connection.side_ == Side::kServer) {
      connection.streams_.erase(id);
    } else if (GrpcStream* stream = connection.Find(id)) {
      stream->ended = true;
    }
    return 0;
  }

  // Queues the marker's PING after the data was sent: nghttp2 sends a queued PING before queued
  // data.
  static int OnSent(nghttp2_session* session, const nghttp2_frame* frame, void* self) {
    if (frame->hd.type != NGHTTP2_DATA) return 0;
    GrpcConnection& connection = Self(self);
    GrpcStream* stream = connection.Find(frame->hd.stream_id);
    if (stream == nullptr || stream->marker == 0 || !stream->outgoing.empty()) return 0;
    std::array<uint8_t, sizeof(uint64_t)> opaque{};
    std::memcpy(opaque.data(), &stream->marker, opaque.size());
    connection.marker_ = std::exchange(stream->marker, 0);
    return nghttp2_submit_ping(session, NGHTTP2_FLAG_NONE, opaque.data());
  }

  static ssize_t Provide(nghttp2_session* session, int32_t id, uint8_t* buffer, size_t room,
                         uint32_t* flags, nghttp2_data_source*, void* self) {
    GrpcStream* stream = Self(self).Find(id);
    if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const size_t size = std::min(room, stream->outgoing.size() - stream->sent);
    std::copy_n(stream->outgoing.begin() + static_cast<ptrdiff_t>(stream->sent), size, buffer);
    stream->sent += size;
    if (stream->sent < stream->outgoing.size()) return static_cast<ssize_t>(size);
    stream->outgoing.clear();
    stream->sent = 0;
    if (stream->then == GrpcStream::Then::kWait) {
      return size == 0 ? static_cast<ssize_t>(NGHTTP2_ERR_DEFERRED) : static_cast<ssize_t>(size);
    }
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream->then == GrpcStream::Then::kEndAnswer) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const auto trailer = Pairs({{"grpc-status", "0"}});
      nghttp2_submit_trailer(session, id, trailer.data(), trailer.size());
    }
    return static_cast<ssize_t>(size);
  }

  static constexpr nghttp2_data_provider kSource{{0}, Provide};

  static nghttp2_session* NewSession(Side side, GrpcConnection* self) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, BeginHeaders);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, OnSent);
    nghttp2_session* session = nullptr;
    side == Side::kClient ? nghttp2_session_client_new(&session, callbacks, self)
                          : nghttp2_session_server_new(&session, callbacks, self);
    nghttp2_session_callbacks_del(callbacks);
    return session;
  }
};

GrpcConnection::GrpcConnection(UniqueFd socket, Side side, GrpcLimits limits)
    : socket_(std::move(socket)),
      side_(side),
      limits_(limits),
      session_(Callbacks::NewSession(side, this), nghttp2_session_del) {
  const nghttp2_settings_entry settings{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
                                        limits_.max_streams};
  nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, &settings, 1);
}

GrpcConnection::~GrpcConnection() = default;

Status GrpcConnection::Read() {
  std::array<uint8_t, 16384> buffer;
  for (;;) {
    const ssize_t size = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return Status::Ok();
    if (size <= 0) return {Code::kUnavailable, "the peer has closed the connection"};
    const ssize_t used =
        nghttp2_session_mem_recv(session_.get(), buffer.data(), static_cast<size_t>(size));
    if (used < 0) {
      return {Code::kUnavailable, fmt::format("the peer breaks the HTTP/2 protocol: {}",
                                              nghttp2_strerror(static_cast<int>(used)))};
    }
    NOS_RETURN_IF_ERROR(Flush());
  }
}

Status GrpcConnection::Flush() {
  for (;;) {
    if (out_.empty()) {
      const uint8_t* data = nullptr;
      const ssize_t size = nghttp2_session_mem_send(session_.get(), &data);
      if (size < 0) return Internal(nghttp2_strerror(static_cast<int>(size)));
      if (size == 0) break;
      out_.assign(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
    }
    const ssize_t sent = send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return Status::Ok();
    if (sent < 0) {
      return {Code::kUnavailable, "cannot send: " + std::generic_category().message(errno)};
    }
    out_.erase(0, static_cast<size_t>(sent));
  }
  // After a protocol error or GOAWAY nghttp2 reads nothing more, so the connection is finished.
  if (nghttp2_session_want_read(session_.get()) == 0) {
    return {Code::kUnavailable, "the connection has ended"};
  }
  return Status::Ok();
}

int32_t GrpcConnection::Request(const std::string& method, std::string_view message,
                                const std::string& timeout) {
  const auto headers = Pairs({{":method", "POST"},
                              {":scheme", "http"},
                              {":path", method},
                              {":authority", "localhost"},
                              {"te", "trailers"},
                              {"content-type", "application/grpc"},
                              {"user-agent", "nos"},
                              {"grpc-timeout", timeout}});
  const int32_t id = nghttp2_submit_request(session_.get(), nullptr, headers.data(), headers.size(),
                                            &Callbacks::kSource, nullptr);
  GrpcStream& stream = streams_[id];
  stream.outgoing = Frame(message);
  stream.then = GrpcStream::Then::kEndRequest;
  return id;
}

void GrpcConnection::BeginAnswer(int32_t stream) {
  const auto headers = Pairs({{":status", "200"}, {"content-type", "application/grpc"}});
  nghttp2_submit_response(session_.get(), stream, headers.data(), headers.size(),
                          &Callbacks::kSource);
}

void GrpcConnection::Send(int32_t stream, std::string_view message, uint64_t marker) {
  GrpcStream* found = Find(stream);
  if (found == nullptr) return;
  found->outgoing += Frame(message);
  found->marker = marker;
  nghttp2_session_resume_data(session_.get(), stream);
}

void GrpcConnection::EndAnswer(int32_t stream) {
  GrpcStream* found = Find(stream);
  if (found == nullptr) return;
  found->then = GrpcStream::Then::kEndAnswer;
  nghttp2_session_resume_data(session_.get(), stream);
}

void GrpcConnection::Refuse(int32_t stream, GrpcCode code, std::string_view why) {
  const std::string number = std::to_string(static_cast<int>(code));
  const std::string text = Escape(why);
  const auto headers = Pairs({{":status", "200"},
                              {"content-type", "application/grpc"},
                              {"grpc-status", number},
                              {"grpc-message", text}});
  nghttp2_submit_response(session_.get(), stream, headers.data(), headers.size(), nullptr);
}

GrpcStream* GrpcConnection::Find(int32_t stream) {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? nullptr : &found->second;
}

Result<std::optional<std::string>> TakeMessage(std::string& framed, size_t max_message) {
  if (framed.size() < kFrameHeader) return std::optional<std::string>();
  if (framed[0] != 0) return Invalid("the message is compressed, which was not asked for");
  size_t size = 0;
  for (size_t i = 1; i < kFrameHeader; ++i) size = size << 8 | static_cast<uint8_t>(framed[i]);
  if (size > max_message) {
    return Invalid(fmt::format("the message has {} bytes; {} are taken", size, max_message));
  }
  if (framed.size() < kFrameHeader + size) return std::optional<std::string>();
  std::optional<std::string> message = framed.substr(kFrameHeader, size);
  framed.erase(0, kFrameHeader + size);
  return message;
}

Result<std::string> OnlyMessage(std::string framed, size_t max_message) {
  NOS_ASSIGN(std::optional<std::string> message, TakeMessage(framed, max_message));
  if (!message || !framed.empty()) return Invalid("not exactly one whole message came");
  return std::move(*message);
}

}  // namespace nos::kubelet
