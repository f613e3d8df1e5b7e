// Who a server is to clients that come over TLS: certificate and key from files, read again when
// they have been rotated, or as somebody hands them over.
//
//   NOS_ASSIGN(auto identity, TlsIdentity::Read({.certificate = "tls.crt", .key = "tls.key"}));
//   NOS_ASSIGN(auto identity, TlsIdentity::Of({.certificate = "-----BEGIN...", .key = "..."}));
//   std::shared_ptr<ssl_ctx_st> context = identity->Current();   // of OpenSSL, for one connection
//
// TLS 1.2 and newer. Thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/status.h"

struct ssl_ctx_st;

namespace nos::net {

struct TlsFiles {
  std::string certificate, key;  // PEM; the certificate with those between it and the root
  std::string client_ca{};       // PEM; not empty: only clients with a certificate of theirs
  Duration look_every = std::chrono::seconds(10);  // for new ones
};

// PEM. No authority: any client may come.
struct TlsTexts {
  std::string certificate, key, client_ca{};
  friend bool operator==(const TlsTexts&, const TlsTexts&) = default;
};

class TlsIdentity {
 public:
  // Error: kInvalid.
  static Result<std::unique_ptr<TlsIdentity>> Of(TlsTexts texts);
  // From the next connection on. Error: kInvalid; what was there before stays.
  Status Replace(TlsTexts texts);
  // Errors: kNotFound (a file), kInvalid (what is in it).
  static Result<std::unique_ptr<TlsIdentity>> Read(TlsFiles files);
  // What cannot be read any more, or is half written, leaves what was there before.
  std::shared_ptr<ssl_ctx_st> Current();

 private:
  using Steady = std::chrono::steady_clock;

  explicit TlsIdentity(TlsFiles files) : files_(std::move(files)) {}
  Status Look();
  Status Take(TlsTexts texts);
  Result<TlsTexts> ReadTexts() const;
  static Result<std::shared_ptr<ssl_ctx_st>> ContextOf(const TlsTexts& texts);

  const TlsFiles files_;  // without names: there are none
  std::mutex mutex_;
  TlsTexts texts_;
  std::shared_ptr<ssl_ctx_st> context_;
  Steady::time_point looked_{};
};

}  // namespace nos::net
