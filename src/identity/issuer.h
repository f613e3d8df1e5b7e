// Client of an OpenID Connect provider: verifies its ID tokens and signs in browsers.
//
//   Issuer issuer(options, AskOverHttp(""), clock);
//   NOS_ASSIGN(const Json subject, issuer.Verify(token));      // {"user", "groups"}
//
//   const SignIn begun = sessions.Begin(now);                   // browser_sessions.h
//   NOS_ASSIGN(const std::string url, issuer.SignInUrl(begun));
//   NOS_ASSIGN(const Json subject, issuer.Redeem(code, begun));
//
// The provider's addresses and keys are read on first use, again after an hour, and again when a
// token names an unknown key, at most twice a minute. Thread-safe: one thread reads, the others use
// the cached keys.
//
// Sources: OpenID Connect Core 1.0 (code flow) and Discovery 1.0; RFC 7636 (PKCE, S256).
#pragma once

#include <atomic>
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
  std::string client_secret_file;  // "": no secret: a public client
  std::string redirect_url;
  std::string scopes = "openid profile email groups";
};

struct SignIn {
  std::string state, nonce, verifier;  // each with 192 random bits or more, as text
};

class Issuer {
 public:
  Issuer(IssuerOptions options, WebAsker ask, const Clock& clock)
      : options_(std::move(options)), ask_(std::move(ask)), clock_(clock) {}

  // True if the token names this issuer; verifies nothing.
  bool MayHaveIssued(std::string_view token) const;
  // True if the token also names only other clients of the issuer.
  bool MayBeForOthers(std::string_view token) const;
  // Errors: kPermission; kUnavailable: the keys cannot be read.
  Result<Json> Verify(std::string_view token) { return Verify(token, ""); }
  // URL to which a browser is redirected. Error: kUnavailable.
  Result<std::string> SignInUrl(const SignIn& sign_in);
  // Exchanges the code of a returning browser. Errors: see Verify.
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
  bool WaitFor(std::unique_lock<std::timed_mutex>& reading);
  Shared Current() const;

  const IssuerOptions options_;
  const WebAsker ask_;
  const Clock& clock_;
  std::timed_mutex reading_;        // held during a request to the issuer
  std::atomic<bool> waits_{false};  // a thread waits for reading_
  Time tried_{};                    // guarded by reading_
  mutable std::mutex mutex_;        // guards the members below
  Shared known_;
};

}  // namespace nos::identity
