#include "net/http_server.h"

#include <fmt/core.h>
#include <openssl/ssl.h>

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <optional>
#include <set>
#include <thread>

#include "base/log.h"
#include "base/text.h"
#include "net/request_parser.h"
#include "net/waiting_list.h"

namespace nos::net {
namespace {

namespace asio = boost::asio;
namespace ssl = asio::ssl;
using asio::ip::tcp;
using Error = boost::system::error_code;
using Steady = std::chrono::steady_clock;

// Time for which a closing connection still reads and discards data from the client, so that the
// client can read the answer before the reset.
constexpr std::chrono::seconds kLinger{2};

class Connection;

// State that all connections share with their server.
struct Shared {
  HttpServerOptions options;
  HttpHandler handler;
  WaitingList<Connection> waiting;
  std::atomic<uint64_t> held;        // bytes of requests that have not been answered
  std::shared_ptr<TlsIdentity> tls;  // null: plain HTTP
};

// The TLS part of a connection.
struct TlsLayer {
  TlsLayer(const std::shared_ptr<SSL_CTX>& shared, tcp::socket& socket)
      : context(Ref(shared.get())), stream(socket, context) {}

  ssl::context context;
  ssl::stream<tcp::socket&> stream;

 private:
  static SSL_CTX* Ref(SSL_CTX* handle) {
    SSL_CTX_up_ref(handle);
    return handle;  // ssl::context frees it
  }
};

// One client. Lives while one of its operations is in progress; everything runs on its strand.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Shared& shared)
      : shared_(shared), socket_(std::move(socket)), timer_(socket_.get_executor()) {}

  // Callable from any thread.
  void Start() {
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      Error ignored;
      self->socket_.set_option(tcp::no_delay(true), ignored);
      self->shared_.tls == nullptr ? self->AwaitRequest(self->shared_.options.request_timeout)
                                   : self->ShakeHands();
    });
  }
  // Callable from any thread.
  void Stop() {
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->Close(); });
  }

 private:
  void ShakeHands() {
    tls_ = std::make_unique<TlsLayer>(shared_.tls->Current(), socket_);
    Wait(false);
    SetDeadline(shared_.options.request_timeout);
    tls_->stream.async_handshake(ssl::stream_base::server,
                                 [self = shared_from_this()](const Error& error) {
                                   if (error || !self->StopWaiting()) return self->Close();
                                   self->AwaitRequest(self->shared_.options.request_timeout);
                                 });
  }

  template <typename Handler>
  void ReadSome(Handler handler) {
    tls_ == nullptr ? socket_.async_read_some(asio::buffer(chunk_), std::move(handler))
                    : tls_->stream.async_read_some(asio::buffer(chunk_), std::move(handler));
  }

  template <typename Handler>
  void Write(Handler handler) {
    tls_ == nullptr ? asio::async_write(socket_, asio::buffer(output_), std::move(handler))
                    : asio::async_write(tls_->stream, asio::buffer(output_), std::move(handler));
  }

  // `patience`: time limit for the first byte.
  void AwaitRequest(Duration patience) {
    parser_ = std::make_unique<RequestParser>(shared_.options.max_header_bytes,
                                              shared_.options.max_body_bytes);
    begun_ = continued_ = false;
    if (input_.empty()) {
      Wait(false);
      SetDeadline(patience);
      Receive();
    } else {
      Begin();
      Take(input_.size());
    }
  }

  void Receive() {
    ReadSome([self = shared_from_this()](const Error& error, size_t size) {
      self->OnReceived(error, size);
    });
  }

  void OnReceived(const Error& error, size_t size) {
    if (error) return Close();
    if (!begun_) {
      if (!StopWaiting()) return Close();
      Begin();
    }
    input_.append(chunk_.data(), size);
    Take(size);
  }

  // The first byte of a request has arrived.
  void Begin() {
    begun_ = true;
    Wait(true);
    SetDeadline(shared_.options.request_timeout);
  }

  void Wait(bool has_begun) { ticket_ = shared_.waiting.Enter(weak_from_this(), has_begun); }

  // False: this connection has been evicted.
  bool StopWaiting() {
    const auto ticket = std::exchange(ticket_, std::nullopt);
    return !ticket || shared_.waiting.Leave(*ticket);
  }

  // `size` more bytes of the current request have arrived.
  void Take(size_t size) {
    if (Hold(size)) return Feed();
    ticket_.reset();
    input_.clear();
    parser_.reset();
    Respond(PlainText(503, "requests under way are too large together: try again\n"), false);
  }

  // Counts the bytes until the request is answered. Beyond the limit, evicts the connections that
  // have waited longest for the rest of a request. False: this connection itself is evicted.
  bool Hold(size_t size) {
    shared_.held += size;  // first, so that a release never subtracts more than was added
    held_ += size;
    while (shared_.held > shared_.options.max_held_bytes) {
      const std::shared_ptr<Connection> other = shared_.waiting.EvictBegun();
      if (other == nullptr) return true;  // every request is being answered
      other->Release();
      if (other.get() == this) return false;
      other->Stop();
    }
    return true;
  }
  // Callable from any thread.
  void Release() { shared_.held -= held_.exchange(0); }

  void Feed() {
    const RequestParser::State state = parser_->Feed(input_);
    if (state != RequestParser::State::kNeedMore && !StopWaiting()) return Close();
    if (state == RequestParser::State::kFailed) {
      return Respond(PlainText(parser_->failure_code(), parser_->failure() + "\n"), false);
    }
    if (state == RequestParser::State::kDone) return Handle();
    if (parser_->header_done() && !continued_ &&
        ToLower(parser_->request().Header("expect")) == "100-continue") {
      continued_ = true;
      output_ = "HTTP/1.1 100 Continue\r\n\r\n";
      return Send([this] {
        SetDeadline(shared_.options.request_timeout);
        Receive();
      });
    }
    Receive();
  }

  std::string Peer() const {
    Error error;
    const auto address = socket_.remote_endpoint(error).address();
    if (error) return {};
    const bool mapped = address.is_v6() && address.to_v6().is_v4_mapped();
    return mapped ? asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string()
                  : address.to_string();
  }

  void Handle() {
    timer_.cancel();
    parser_->request().peer = Peer();
    HttpResponse response;
    try {
      response = shared_.handler(parser_->request());
    } catch (const std::exception& e) {
      Log(LogLevel::kError, "failed to handle HTTP request", {{"error", e.what()}});
      response = PlainText(500, "internal error\n");
    }
    const bool keep_alive = parser_->keep_alive();
    const bool chunked = parser_->http11();
    const bool head = parser_->request().method == "HEAD";
    parser_.reset();
    if (head) response.stream = nullptr;
    if (response.stream != nullptr && !chunked) {
      response = PlainText(400, "streams need HTTP/1.1\n");
    }
    Respond(std::move(response), keep_alive, !head);
  }

  void Respond(HttpResponse response, bool keep_alive, bool with_body = true) {
    Release();
    keep_alive = keep_alive && response.stream == nullptr;
    output_ = HeadOf(response, keep_alive) + (with_body ? response.body : "");
    if (response.stream != nullptr) {
      stream_ = std::move(response.stream);
      stream_idle_ = response.stream_idle;
      return Send([this, limit = response.stream_limit] { BeginStream(limit); });
    }
    Send(
        [this, keep_alive] { keep_alive ? AwaitRequest(shared_.options.idle_timeout) : Linger(); });
  }

  // Sends `output_`, then runs `next` (a member's lambda; the connection lives until then).
  template <typename Next>
  void Send(Next next) {
    sent_ = Steady::now();
    SetDeadline(shared_.options.write_timeout);
    Write([self = shared_from_this(), next = std::move(next)](const Error& error, size_t) {
      if (error) return self->Close();
      self->timer_.cancel();
      next();
    });
  }

  void BeginStream(Duration limit) {
    if (limit > Duration::zero()) {
      stream_end_.emplace(socket_.get_executor());
      stream_end_->expires_after(std::chrono::duration_cast<Steady::duration>(limit));
      stream_end_->async_wait([self = shared_from_this()](const Error& error) {
        if (error) return;
        self->stream_over_ = true;
        self->Wake();
      });
    }
    AwaitLeaving();
    Pump();
  }

  // While streaming, the client sends nothing more, so a read ends only when it disconnects.
  void AwaitLeaving() {
    ReadSome([self = shared_from_this()](const Error& error, size_t) {
      if (error || self->stream_ == nullptr) return self->Close();
      self->AwaitLeaving();
    });
  }

  void Pump() {
    waiting_ = false;
    if (stream_ == nullptr) return;
    std::string text;
    const bool goes_on = stream_->Read(text) && !stream_over_;
    output_ = Chunk(text);
    if (!goes_on) {
      output_ += "0\r\n\r\n";
      return Send([this] { Linger(); });
    }
    if (!output_.empty()) return Send([this] { Pump(); });
    waiting_ = true;
    if (stream_idle_ > Duration::zero()) At(sent_ + stream_idle_, [this] { BreakSilence(); });
    stream_->OnReady([weak = weak_from_this()] {
      if (const auto self = weak.lock()) {
        asio::post(self->socket_.get_executor(), [self] { self->Wake(); });
      }
    });
  }

  void Wake() {
    if (waiting_) Pump();
  }

  void BreakSilence() {
    if (!waiting_ || stream_ == nullptr) return;
    waiting_ = false;
    std::string text;
    stream_->ReadIdle(text);
    output_ = Chunk(text);
    Send([this] { Pump(); });
  }

  static std::string Chunk(std::string_view text) {
    return text.empty() ? "" : fmt::format("{:x}\r\n{}\r\n", text.size(), text);
  }

  // Ends the connection in a way that lets the last answer still arrive.
  void Linger() {
    stream_.reset();
    stream_end_.reset();
    Wait(false);
    SetDeadline(kLinger);
    if (tls_ != nullptr) {
      return tls_->stream.async_shutdown(
          [self = shared_from_this()](const Error&) { self->Close(); });
    }
    Error ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    Drain();
  }

  void Drain() {
    socket_.async_read_some(asio::buffer(chunk_),
                            [self = shared_from_this()](const Error& error, size_t /*size*/) {
                              error ? self->Close() : self->Drain();
                            });
  }

  void Close() {
    (void)StopWaiting();
    Release();
    stream_.reset();
    stream_end_.reset();
    timer_.cancel();
    Error ignored;
    socket_.close(ignored);
  }

  void SetDeadline(Duration after) {
    At(Steady::now() + after, [this] { Close(); });
  }

  // One timer at a time: setting it again drops the previous `act` (a member's lambda).
  template <typename Act>
  void At(Steady::time_point when, Act act) {
    timer_.expires_at(when);
    timer_.async_wait([self = shared_from_this(), act](const Error& error) {
      const bool moved = self->timer_.expiry() > Steady::now();
      if (!error && !moved) act();
    });
  }

  Shared& shared_;
  tcp::socket socket_;
  std::unique_ptr<TlsLayer> tls_;  // null: plain HTTP
  asio::steady_timer timer_;
  std::optional<asio::steady_timer> stream_end_;
  std::unique_ptr<RequestParser> parser_;
  std::array<char, size_t{16} * 1024> chunk_{};
  std::string input_;   // received, not yet parsed
  std::string output_;  // being sent
  std::unique_ptr<BodyStream> stream_;
  Duration stream_idle_{};
  Steady::time_point sent_;                                // time of the last send
  std::optional<WaitingList<Connection>::Ticket> ticket_;  // while it waits for its client
  std::atomic<uint64_t> held_{0};                          // its part of Shared::held
  bool begun_ = false;                                     // a byte of a request has come
  bool continued_ = false;                                 // "100 Continue" has been sent
  bool stream_over_ = false;                               // the stream's time limit has passed
  bool waiting_ = false;                                   // for the stream's wake call
};

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpServerOptions& options, HttpHandler handler)
      : shared_{options, std::move(handler), {}, 0, nullptr} {}

  ~Impl() {
    asio::post(strand_, [this] {
      Error ignored;
      acceptor_.close(ignored);
      StopConnections();
    });
    for (std::thread& thread : threads_) thread.join();
  }

  Status Listen() {
    shared_.tls = shared_.options.identity;
    if (shared_.options.tls) {
      NOS_ASSIGN(shared_.tls, TlsIdentity::Read(*shared_.options.tls));
    }
    Error error;
    const auto address = asio::ip::make_address(shared_.options.address, error);
    if (error) return Invalid(fmt::format("listen address \"{}\"", shared_.options.address));
    const tcp::endpoint endpoint(address, shared_.options.port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return {Code::kUnavailable, fmt::format("listen on {}:{}: {}", shared_.options.address,
                                              shared_.options.port, error.message())};
    }
    port_ = acceptor_.local_endpoint().port();
    Accept();
    for (int i = 0; i < std::max(1, shared_.options.threads); ++i) {
      threads_.emplace_back([this] { io_.run(); });
    }
    return Status::Ok();
  }

  uint16_t port() const { return port_; }

 private:
  void Accept() {
    acceptor_.async_accept(asio::make_strand(io_), [this](const Error& error, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (!error) Admit(std::move(socket));
      if (error == asio::error::no_descriptors) return AcceptLater();
      Accept();
    });
  }

  // File descriptors are exhausted: accepting again at once would spin.
  void AcceptLater() {
    pause_.expires_after(std::chrono::milliseconds(100));
    pause_.async_wait([this](const Error& error) {
      if (!error && acceptor_.is_open()) Accept();
    });
  }

  void Admit(tcp::socket socket) {
    std::erase_if(connections_, [](const auto& weak) { return weak.expired(); });
    if (connections_.size() >= shared_.options.max_connections && !MakeRoom()) {
      return;  // closes the socket
    }
    const auto connection = std::make_shared<Connection>(std::move(socket), shared_);
    connections_.insert(connection);
    connection->Start();
  }

  bool MakeRoom() {
    const std::shared_ptr<Connection> other = shared_.waiting.Evict();
    if (other == nullptr) return false;
    connections_.erase(other);
    other->Stop();
    return true;
  }

  void StopConnections() {
    pause_.cancel();
    for (const auto& weak : connections_) {
      if (const auto connection = weak.lock()) connection->Stop();
    }
    connections_.clear();
  }

  Shared shared_;
  asio::io_context io_;
  asio::strand<asio::io_context::executor_type> strand_{io_.get_executor()};
  tcp::acceptor acceptor_{strand_};
  asio::steady_timer pause_{strand_};
  // Accessed on the strand only.
  std::set<std::weak_ptr<Connection>, std::owner_less<>> connections_;
  std::vector<std::thread> threads_;
  uint16_t port_ = 0;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerOptions& options,
                                                      HttpHandler handler) {
  auto impl = std::make_unique<Impl>(options, std::move(handler));
  NOS_RETURN_IF_ERROR(impl->Listen());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const { return impl_->port(); }

}  // namespace nos::net
