// Signed tokens and the public keys that they are checked with.
//
//   NOS_ASSIGN(const Jwt jwt, ParseJwt(text));
//   NOS_RETURN_IF_ERROR(keys.Verify(jwt));      // only now its claims mean anything
//
// RSA (PKCS #1 v1.5) and ECDSA, as the key's type has it: a token that names another algorithm than
// its key is for is refused, and so are "none" and all that use a shared secret.
//
// Sources: RFC 7515 (JWS, compact), 7517 and 7518 (keys, algorithms), 7519 (JWT), 8725 (what goes
// wrong with them). Pure.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codec/json.h"

struct evp_pkey_st;

namespace nos::identity {

inline constexpr size_t kMostTokenBytes = size_t{16} * 1024;

struct Jwt {
  Json header, claims;    // objects
  std::string content;    // that is signed
  std::string signature;  // bytes
};
// Error: kInvalid.
Result<Jwt> ParseJwt(std::string_view text);

// Values; a copy shares the keys.
class KeySet {
 public:
  // Of a JWKS document; keys of other types and uses are left out. Error: kInvalid.
  static Result<KeySet> Parse(const Json& document);

  // Errors: kNotFound (none of these keys has the token's name: there may be newer ones),
  // kPermission (its algorithm is not taken, or the signature is wrong).
  Status Verify(const Jwt& jwt) const;
  size_t size() const { return keys_.size(); }

 private:
  struct Key {
    std::string id, algorithm;  // "": any that its type allows
    std::string type, curve;    // RSA; EC, P-256
    std::shared_ptr<evp_pkey_st> handle;
  };
  static Result<Key> ReadKey(const Json& json);

  std::vector<Key> keys_;
};

}  // namespace nos::identity
