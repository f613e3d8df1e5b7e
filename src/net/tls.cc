#include "net/tls.h"

#include <fmt/core.h>
#include <openssl/ssl.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/context.hpp>

#include "base/file.h"
#include "base/log.h"

namespace nos::net {
namespace {

namespace asio = boost::asio;
namespace ssl = asio::ssl;
using Error = boost::system::error_code;

Status BadFile(std::string_view what, const Error& error) {
  return Invalid(fmt::format("{}: {}", what, error.message()));
}

}  // namespace

Result<std::unique_ptr<TlsIdentity>> TlsIdentity::Read(TlsFiles files) {
  std::unique_ptr<TlsIdentity> identity(new TlsIdentity(std::move(files)));
  NOS_RETURN_IF_ERROR(identity->Look());
  return identity;
}

Result<std::unique_ptr<TlsIdentity>> TlsIdentity::Of(TlsTexts texts) {
  std::unique_ptr<TlsIdentity> identity(new TlsIdentity(TlsFiles()));
  NOS_RETURN_IF_ERROR(identity->Replace(std::move(texts)));
  return identity;
}

Status TlsIdentity::Replace(TlsTexts texts) {
  const std::scoped_lock lock(mutex_);
  return Take(std::move(texts));
}

std::shared_ptr<ssl_ctx_st> TlsIdentity::Current() {
  const std::scoped_lock lock(mutex_);
  if (!files_.certificate.empty() && Steady::now() - looked_ >= files_.look_every) {
    const Status looked = Look();
    if (!looked.ok()) {
      Log(LogLevel::kWarn, "failed to reload TLS certificate, keeping the old one",
          {{"error", looked.ToString()}});
    }
  }
  return context_;
}

Status TlsIdentity::Look() {
  looked_ = Steady::now();
  NOS_ASSIGN(TlsTexts texts, ReadTexts());
  return Take(std::move(texts));
}

Status TlsIdentity::Take(TlsTexts texts) {
  if (context_ != nullptr && texts == texts_) return Status::Ok();
  NOS_ASSIGN(context_, ContextOf(texts));
  texts_ = std::move(texts);
  return Status::Ok();
}

Result<TlsTexts> TlsIdentity::ReadTexts() const {
  TlsTexts texts;
  NOS_ASSIGN(texts.certificate, ReadFile(files_.certificate));
  NOS_ASSIGN(texts.key, ReadFile(files_.key));
  if (!files_.client_ca.empty()) {
    NOS_ASSIGN(texts.client_ca, ReadFile(files_.client_ca));
  }
  return texts;
}

Result<std::shared_ptr<ssl_ctx_st>> TlsIdentity::ContextOf(const TlsTexts& texts) {
  ssl::context context(ssl::context::tls_server);
  SSL_CTX* const handle = context.native_handle();
  SSL_CTX_set_min_proto_version(handle, TLS1_2_VERSION);
  Error error;
  (void)context.use_certificate_chain(asio::buffer(texts.certificate), error);
  if (error) return BadFile("the certificate", error);
  (void)context.use_private_key(asio::buffer(texts.key), ssl::context::pem, error);
  if (error) return BadFile("the key, or its certificate", error);
  if (SSL_CTX_check_private_key(handle) != 1) return Invalid("key and certificate are no pair");
  if (!texts.client_ca.empty()) {
    (void)context.add_certificate_authority(asio::buffer(texts.client_ca), error);
    if (error) return BadFile("the authority of clients", error);
    (void)context.set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, error);
    if (error) return BadFile("the authority of clients", error);
  }
  // Without one OpenSSL refuses a client with a certificate that resumes its session.
  constexpr std::string_view kSessions = "nos";
  SSL_CTX_set_session_id_context(handle, reinterpret_cast<const unsigned char*>(kSessions.data()),
                                 static_cast<unsigned>(kSessions.size()));
  SSL_CTX_up_ref(handle);  // the caller's share: `context` releases its own below
  return std::shared_ptr<ssl_ctx_st>(handle, &SSL_CTX_free);
}

}  // namespace nos::net
