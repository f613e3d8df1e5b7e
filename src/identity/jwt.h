// Signed tokens (JWT) and the public keys that verify them.
//
//   NOS_ASSIGN(const Jwt jwt, ParseJwt(text));
//   NOS_RETURN_IF_ERROR(keys.Verify(jwt));      // claims are valid only after this
//
// Supports RSA (PKCS #1 v1.5) and ECDSA, as determined by the key's type. A token with an algorithm
// that does not match its key is rejected, as are "none" and all algorithms with a shared secret.
//
// Sources: RFC 7515 (JWS, compact), 7517 and 7518 (keys, algorithms), 7519 (JWT), 8725 (best
// current practices). Pure functions.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codec/json.h"

struct evp_pkey_st;

namespace nos::identity {

inline constexpr size_t kMaxTokenBytes = size_t{16} * 1024;

struct Jwt {
  Json header, claims;    // objects
  std::string content;    // the signed content
  std::string signature;  // bytes
};
// Error: kInvalid.
Result<Jwt> ParseJwt(std::string_view text);

// A value type; copies share the keys.
class KeySet {
 public:
  // Parses a JWKS document; keys of other types and uses are skipped. Error: kInvalid.
  static Result<KeySet> Parse(const Json& document);

  // Errors: kNotFound (no key has the token's key ID; the issuer may have newer keys), kPermission
  // (the algorithm is not supported, or the signature is invalid).
  Status Verify(const Jwt& jwt) const;
  size_t size() const { return keys_.size(); }

 private:
  struct Key {
    std::string id, algorithm;  // "": any algorithm of its type
    std::string type, curve;    // RSA; EC, P-256
    std::shared_ptr<evp_pkey_st> handle;
  };
  static Result<Key> ReadKey(const Json& json);

  std::vector<Key> keys_;
};

}  // namespace nos::identity
