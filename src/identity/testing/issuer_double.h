// An OpenID Connect provider on this machine for tests: real keys, real HTTP, and arbitrary valid
// or forged tokens.
#pragma once

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codec/json.h"
#include "identity/base64url.h"
#include "net/http_server.h"
#include "net/url.h"

namespace nos::identity {

// A key pair for RS256 or ES256.
class TestKey {
 public:
  TestKey(std::string id, bool rsa)
      : id_(std::move(id)),
        rsa_(rsa),
        key_(rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256"), &EVP_PKEY_free) {}

  Json Public() const {
    if (rsa_) {
      return {{"kty", "RSA"},   {"kid", id_},          {"use", "sig"},
              {"alg", "RS256"}, {"n", Number("n", 0)}, {"e", Number("e", 0)}};
    }
    return {{"kty", "EC"},           {"kid", id_},           {"crv", "P-256"}, {"alg", "ES256"},
            {"x", Number("qx", 32)}, {"y", Number("qy", 32)}};
  }
  // PEM, which an attacker would try to use as a shared secret.
  std::string PublicPem() const {
    BIO* out = BIO_new(BIO_s_mem());
    PEM_write_bio_PUBKEY(out, key_.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(out, &data);
    std::string text(data, static_cast<size_t>(size));
    BIO_free(out);
    return text;
  }
  std::string Sign(const Json& claims) const {
    return Sign(claims, {{"alg", rsa_ ? "RS256" : "ES256"}, {"kid", id_}});
  }
  std::string Sign(const Json& claims, const Json& header) const {
    const std::string content =
        EncodeBase64Url(WriteJson(header)) + "." + EncodeBase64Url(WriteJson(claims));
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    const auto* bytes = reinterpret_cast<const unsigned char*>(content.data());
    size_t size = 0;
    EVP_DigestSignInit(context, nullptr, EVP_sha256(), nullptr, key_.get());
    EVP_DigestSign(context, nullptr, &size, bytes, content.size());
    std::string signature(size, '\0');
    EVP_DigestSign(context, reinterpret_cast<unsigned char*>(signature.data()), &size, bytes,
                   content.size());
    signature.resize(size);
    EVP_MD_CTX_free(context);
    return content + "." + EncodeBase64Url(rsa_ ? signature : Halves(signature));
  }

 private:
  std::string Number(const char* name, int width) const {
    BIGNUM* number = nullptr;
    EVP_PKEY_get_bn_param(key_.get(), name, &number);
    std::string bytes(static_cast<size_t>(width > 0 ? width : BN_num_bytes(number)), '\0');
    BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()),
                 static_cast<int>(bytes.size()));
    BN_free(number);
    return EncodeBase64Url(bytes);
  }
  static std::string Halves(const std::string& der) {
    const auto* from = reinterpret_cast<const unsigned char*>(der.data());
    ECDSA_SIG* signature = d2i_ECDSA_SIG(nullptr, &from, static_cast<long>(der.size()));
    std::string bytes(64, '\0');
    auto* to = reinterpret_cast<unsigned char*>(bytes.data());
    BN_bn2binpad(ECDSA_SIG_get0_r(signature), to, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(signature), to + 32, 32);
    ECDSA_SIG_free(signature);
    return bytes;
  }

  const std::string id_;
  const bool rsa_;
  const std::shared_ptr<EVP_PKEY> key_;
};

class TestIssuer {
 public:
  TestIssuer() {
    server_ = std::move(net::HttpServer::Start({}, [this](const net::HttpRequest& request) {
                          return Answer(request);
                        }).value());
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  void Publish(const std::vector<const TestKey*>& keys) {
    const std::scoped_lock lock(mutex_);
    keys_.clear();
    for (const TestKey* key : keys) keys_.push_back(key->Public());
  }
  // The token endpoint returns `token` for `code` to a client that knows the verifier of
  // `challenge`.
  void Grant(const std::string& code, const std::string& challenge, const std::string& token) {
    const std::scoped_lock lock(mutex_);
    grants_[code] = {challenge, token};
  }
  std::atomic<int> asked_for_keys{0};
  std::atomic<bool> down{false};
  std::string secret = "client-secret";

 private:
  static net::HttpResponse Say(int code, const Json& body) {
    net::HttpResponse response;
    response.code = code;
    response.body = WriteJson(body);
    return response;
  }
  net::HttpResponse Answer(const net::HttpRequest& request) {
    const std::scoped_lock lock(mutex_);
    if (down) return Say(500, {{"error", "down"}});
    if (request.target == "/.well-known/openid-configuration") {
      return Say(200, {{"issuer", url()},
                       {"authorization_endpoint", url() + "/authorize"},
                       {"token_endpoint", url() + "/token"},
                       {"jwks_uri", url() + "/keys?v=1"}});
    }
    if (request.target == "/keys?v=1") {
      ++asked_for_keys;
      return Say(200, {{"keys", keys_}});
    }
    if (request.target == "/token" && request.method == "POST") return Token(request.body);
    return Say(404, {{"error", "not_found"}});
  }
  net::HttpResponse Token(const std::string& form) {
    std::map<std::string, std::string> fields;
    const net::Target target = net::ParseTarget("/?" + form).value_or(net::Target());
    for (const auto& [key, value] : target.query) fields[key] = value;
    const auto grant = grants_.extract(fields["code"]);
    unsigned char digest[SHA256_DIGEST_LENGTH];
    const std::string& verifier = fields["code_verifier"];
    SHA256(reinterpret_cast<const unsigned char*>(verifier.data()), verifier.size(), digest);
    const std::string challenge =
        EncodeBase64Url({reinterpret_cast<const char*>(digest), sizeof digest});
    if (fields["grant_type"] != "authorization_code" || fields["client_secret"] != secret ||
        grant.empty() || grant.mapped().first != challenge) {
      return Say(400, {{"error", "invalid_grant"}});
    }
    return Say(200, {{"id_token", grant.mapped().second}, {"token_type", "Bearer"}});
  }

  std::mutex mutex_;
  JsonArray keys_;
  std::map<std::string, std::pair<std::string, std::string>> grants_;
  std::unique_ptr<net::HttpServer> server_;  // last: uses the other members
};

}  // namespace nos::identity
