// An OpenID Connect provider: whose ID tokens it has signed, and how browsers get one.
//
//   Issuer issuer(options, AskOverHttp(""), clock);
//   NOS_ASSIGN(const Json subject, issuer.Verify(token));      // {"user", "groups"}
//
//   const SignIn begun = BeginSignIn();                         // kept until the browser is back
//   NOS_ASSIGN(const std::string url, issuer.SignInUrl(begun));
//   NOS_ASSIGN(const Json subject, issuer.Redeem(code, begun));
//
// Its addresses and keys are read when they are first needed, anew after an hour, and when a token
// names a key that is not among them, at most twice a minute. Thread-safe: one asks, the others use
// what there is.
//
// Sources: OpenID Connect Core 1.0 (code flow) and Discovery 1.0; RFC 7636 (PKCE, S256).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "codec/json.h"
#include "identity/id_token.h"
#include "identity/jwt.h"
#include "identity/web_call.h"

namespace nos::identity {

struct IssuerOptions {
  IdTokenRules rules;
  std::string client_secret_file;  // "": there is none: a public client
  std::string redirect_url;
  std::string scopes = "openid profile email groups";
};

struct SignIn {
  std::string state, nonce, verifier;  // 256 random bits each, as text
};
SignIn BeginSignIn();

class Issuer {
 public:
  Issuer(IssuerOptions options, WebAsker ask, const Clock& clock)
      : options_(std::move(options)), ask_(std::move(ask)), clock_(clock) {}

  // Whether the token says that it is this issuer's; nothing is checked.
  bool MayHaveIssued(std::string_view token) const;
  // Whether it says besides that it is for another client of the issuer alone.
  bool MayBeForOthers(std::string_view token) const;
  // Errors: kPermission; kUnavailable: its keys cannot be had.
  Result<Json> Verify(std::string_view token) { return Verify(token, ""); }
  // Where a browser is sent. Error: kUnavailable.
  Result<std::string> SignInUrl(const SignIn& sign_in);
  // Of a browser that is back with a code. Errors: as Verify.
  Result<Json> Redeem(const std::string& code, const SignIn& sign_in);
  const IssuerOptions& options() const { return options_; }

 private:
  struct Known {
    KeySet keys;
    std::string authorization_endpoint, token_endpoint;
    Time read{};
  };
  using Shared = std::shared_ptr<const Known>;

  Result<Json> Verify(std::string_view token, std::string_view nonce);
  Result<Shared> Get(bool anew);
  Result<Shared> Read();
  Shared Current() const;

  const IssuerOptions options_;
  const WebAsker ask_;
  const Clock& clock_;
  std::timed_mutex reading_;  // held while it is asked
  Time tried_{};              // under reading_
  mutable std::mutex mutex_;  // of what follows
  Shared known_;
};

}  // namespace nos::identity
