#include "identity/jwt.h"

#include <fmt/core.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "identity/base64url.h"
#include "net/openssl.h"

namespace nos::identity {
namespace {

struct Algorithm {
  std::string_view name, type, curve;
  const EVP_MD* (*digest)();
  size_t coordinate;  // bytes of each half of an ECDSA signature
};
constexpr std::array<Algorithm, 5> kAlgorithms = {{{"RS256", "RSA", "", &EVP_sha256, 0},
                                                   {"RS384", "RSA", "", &EVP_sha384, 0},
                                                   {"RS512", "RSA", "", &EVP_sha512, 0},
                                                   {"ES256", "EC", "P-256", &EVP_sha256, 32},
                                                   {"ES384", "EC", "P-384", &EVP_sha384, 48}}};
constexpr size_t kMaxKeys = 64;
constexpr int kMinRsaBits = 2048, kMaxRsaBits = 8192;

using net::FreeWith;
using BigNumber = std::unique_ptr<BIGNUM, FreeWith<&BN_free>>;
using Signature = std::unique_ptr<ECDSA_SIG, FreeWith<&ECDSA_SIG_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, FreeWith<&EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, FreeWith<&EVP_MD_CTX_free>>;
using ParamBuilder = std::unique_ptr<OSSL_PARAM_BLD, FreeWith<&OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, FreeWith<&OSSL_PARAM_free>>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

BigNumber NumberOf(std::string_view bytes) {
  return BigNumber(BN_bin2bn(Bytes(bytes), static_cast<int>(bytes.size()), nullptr));
}

Result<Json> ReadPart(std::string_view part) {
  NOS_ASSIGN(const std::string text, DecodeBase64Url(part));
  NOS_ASSIGN(Json json, ParseJson(text));
  if (!json.is_object()) return Invalid("a part of it is no object");
  return json;
}

std::shared_ptr<EVP_PKEY> MakeKey(const char* type, OSSL_PARAM_BLD* builder) {
  const Params params(OSSL_PARAM_BLD_to_param(builder));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (params == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    return nullptr;
  }
  std::shared_ptr<EVP_PKEY> owned(key, &EVP_PKEY_free);
  const KeyContext check(EVP_PKEY_CTX_new_from_pkey(nullptr, key, nullptr));
  return check != nullptr && EVP_PKEY_public_check(check.get()) == 1 ? owned : nullptr;
}

std::shared_ptr<EVP_PKEY> RsaKey(std::string_view modulus, std::string_view exponent) {
  const BigNumber n = NumberOf(modulus), e = NumberOf(exponent);
  if (n == nullptr || e == nullptr || BN_num_bits(n.get()) < kMinRsaBits ||
      BN_num_bits(n.get()) > kMaxRsaBits || BN_num_bits(e.get()) > 64) {
    return nullptr;
  }
  const ParamBuilder builder(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get());
  return MakeKey("RSA", builder.get());
}

std::shared_ptr<EVP_PKEY> EcKey(const std::string& curve, const std::string& x,
                                const std::string& y) {
  const auto* algorithm = std::ranges::find(kAlgorithms, curve, &Algorithm::curve);
  if (algorithm == kAlgorithms.end() || curve.empty()) return nullptr;
  if (x.size() != algorithm->coordinate || y.size() != algorithm->coordinate) return nullptr;
  const std::string point = "\x04" + x + y;  // uncompressed point
  const ParamBuilder builder(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, curve.c_str(), 0);
  OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                   point.size());
  return MakeKey("EC", builder.get());
}

// DER encoding of both halves, as OpenSSL expects ECDSA signatures. "": invalid halves.
std::string DerOf(std::string_view halves, size_t coordinate) {
  if (halves.size() != 2 * coordinate) return {};
  BIGNUM* const r = NumberOf(halves.substr(0, coordinate)).release();
  BIGNUM* const s = NumberOf(halves.substr(coordinate)).release();
  const Signature signature(ECDSA_SIG_new());
  if (ECDSA_SIG_set0(signature.get(), r, s) != 1) {  // on success the signature owns r and s
    BN_free(r);
    BN_free(s);
    return {};
  }
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(signature.get(), &der);
  if (size <= 0) return {};
  std::string text(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return text;
}

bool IsSignedBy(EVP_PKEY* key, const Algorithm& algorithm, const Jwt& jwt) {
  const std::string signature =
      algorithm.coordinate == 0 ? jwt.signature : DerOf(jwt.signature, algorithm.coordinate);
  if (signature.empty()) return false;
  const DigestContext context(EVP_MD_CTX_new());
  return EVP_DigestVerifyInit(context.get(), nullptr, algorithm.digest(), nullptr, key) == 1 &&
         EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(jwt.content),
                          jwt.content.size()) == 1;
}

}  // namespace

Result<Jwt> ParseJwt(std::string_view text) {
  if (text.size() > kMaxTokenBytes) return Invalid("the token is too long");
  const auto parts = Split(text, '.');
  if (parts.size() != 3) return Invalid("the token is no JWT: it has not three parts");
  Jwt jwt;
  NOS_ASSIGN(jwt.header, ReadPart(parts[0]));
  NOS_ASSIGN(jwt.claims, ReadPart(parts[1]));
  NOS_ASSIGN(jwt.signature, DecodeBase64Url(parts[2]));
  jwt.content = text.substr(0, parts[0].size() + 1 + parts[1].size());
  return jwt;
}

Result<KeySet::Key> KeySet::ReadKey(const Json& json) {
  const auto bytes = [&](const char* name) {
    return DecodeBase64Url(FindString(json, name)).value_or("");
  };
  Key key{std::string(FindString(json, "kid")), std::string(FindString(json, "alg")),
          std::string(FindString(json, "kty")), std::string(FindString(json, "crv")), nullptr};
  const std::string_view use = FindString(json, "use");
  if (!use.empty() && use != "sig") return NotFound("it is for something else");
  if (key.type == "RSA") key.handle = RsaKey(bytes("n"), bytes("e"));
  if (key.type == "EC") key.handle = EcKey(key.curve, bytes("x"), bytes("y"));
  if (key.handle == nullptr) return NotFound("it cannot be used");
  return key;
}

Result<KeySet> KeySet::Parse(const Json& document) {
  const Json* keys = Find(document, "keys");
  if (keys == nullptr || !keys->is_array()) return Invalid("keys: there is no such list");
  KeySet set;
  for (const Json& json : keys->get_array()) {
    auto key = ReadKey(json);
    if (!key.ok() || set.keys_.size() >= kMaxKeys) continue;
    set.keys_.push_back(*std::move(key));
  }
  return set;
}

Status KeySet::Verify(const Jwt& jwt) const {
  const std::string_view name = FindString(jwt.header, "alg");
  const auto* algorithm = std::ranges::find(kAlgorithms, name, &Algorithm::name);
  if (algorithm == kAlgorithms.end()) {
    return {Code::kPermission,
            fmt::format("the token is signed by \"{}\", which is not taken: RS256, RS384, RS512, "
                        "ES256 and ES384 are",
                        Shortened(name, 20))};
  }
  if (Find(jwt.header, "crit") != nullptr) {
    return {Code::kPermission, "the token wants something understood that is not (crit)"};
  }
  const std::string_view id = FindString(jwt.header, "kid");
  bool found = false;
  for (const Key& key : keys_) {
    const bool named = id.empty() || key.id == id;
    const bool fits = key.type == algorithm->type &&
                      (algorithm->curve.empty() || key.curve == algorithm->curve) &&
                      (key.algorithm.empty() || key.algorithm == name);
    if (!named || !fits) continue;
    found = true;
    if (IsSignedBy(key.handle.get(), *algorithm, jwt)) return Status::Ok();
  }
  if (!found) return NotFound("no key of the issuer is the one that the token names");
  return {Code::kPermission, "the token's signature is wrong"};
}

}  // namespace nos::identity
