// The TLS identity of a server: certificate and key, either from files, which are read again after
// rotation, or handed over as text.
//
//   NOS_ASSIGN(auto identity, TlsIdentity::Read({.certificate = "tls.crt", .key = "tls.key"}));
//   NOS_ASSIGN(auto identity, TlsIdentity::Of({.certificate = "-----BEGIN...", .key = "..."}));
//   std::shared_ptr<ssl_ctx_st> context = identity->Current();   // OpenSSL's, for one connection
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
  std::string certificate, key;  // PEM; the certificate with its intermediates
  std::string client_ca{};       // PEM; if not empty, clients need a certificate of this CA
  Duration look_every = std::chrono::seconds(10);  // interval for checking the files for changes
};

// PEM. Without `client_ca` any client may connect.
struct TlsTexts {
  std::string certificate, key, client_ca{};
  friend bool operator==(const TlsTexts&, const TlsTexts&) = default;
};

class TlsIdentity {
 public:
  // Error: kInvalid.
  static Result<std::unique_ptr<TlsIdentity>> Of(TlsTexts texts);
  // Applies from the next connection on. Error: kInvalid; the old identity stays in use.
  Status Replace(TlsTexts texts);
  // Errors: kNotFound (a missing file), kInvalid (its content).
  static Result<std::unique_ptr<TlsIdentity>> Read(TlsFiles files);
  // Returns the current identity. If the files cannot be read or are half written, the old one
  // stays.
  std::shared_ptr<ssl_ctx_st> Current();

 private:
  using Steady = std::chrono::steady_clock;

  explicit TlsIdentity(TlsFiles files) : files_(std::move(files)) {}
  Status Look();
  Status Take(TlsTexts texts);
  Result<TlsTexts> ReadTexts() const;
  static Result<std::shared_ptr<ssl_ctx_st>> ContextOf(const TlsTexts& texts);

  const TlsFiles files_;  // empty names: not from files
  std::mutex mutex_;
  TlsTexts texts_;
  std::shared_ptr<ssl_ctx_st> context_;
  Steady::time_point looked_{};
};

}  // namespace nos::net
