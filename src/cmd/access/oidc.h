// Sign-in with OpenID Connect: programs with an ID token, browsers with /login and a cookie.
//
//   GET /login             to the provider, and back to
//   GET /login/callback    which opens a session and goes on to the dashboard
//   POST /logout           ends it
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "cmd/daemon/config_file.h"
#include "identity/browser_sessions.h"
#include "identity/issuer.h"
#include "net/http.h"

namespace nos::cmd {

struct OidcConfig {
  identity::IssuerOptions issuer{};  // empty rules.issuer: disabled
  std::string ca_file{};
  Duration session = std::chrono::hours(1);

  bool on() const { return !issuer.rules.issuer.empty(); }
};
void DescribeOidc(ConfigFields& fields, OidcConfig& config);

class OidcSignIn {
 public:
  // Receives sign-ins, sign-outs and failures, with the reason.
  using Report = std::function<void(const char* action, const std::string& who, const Status& how)>;

  // Error: kInvalid with the problem of the configuration.
  static Result<std::unique_ptr<OidcSignIn>> Make(const OidcConfig& config, const Clock& clock);

  // User and groups of an ID token, in the form of access reviews. nullopt: the token is not from
  // this provider. Errors: kPermission, kUnavailable.
  std::optional<Result<Json>> Identify(const std::string& token);
  // True if the token is only for another client of the provider, such as the cluster's API server.
  bool IsForOthers(const std::string& token) const { return issuer_.MayBeForOthers(token); }
  // User and groups of a browser's session.
  std::optional<Json> SubjectOf(const net::HttpRequest& request) const;
  // nullopt: the request is not for sign-in. Thread-safe, as is the whole class.
  std::optional<net::HttpResponse> Answer(const net::HttpRequest& request, const Report& report);
  // True if browsers can sign in.
  bool has_login() const { return !issuer_.options().redirect_url.empty(); }

 private:
  OidcSignIn(const OidcConfig& config, const Clock& clock);
  net::HttpResponse Login();
  net::HttpResponse Return(const net::HttpRequest& request, const Report& report);
  net::HttpResponse Logout(const net::HttpRequest& request, const Report& report);
  Result<Json> Redeem(const net::HttpRequest& request);
  std::string NameOf(std::string_view cookie) const;
  std::string SetCookie(std::string_view name, std::string_view value, std::string_view same_site,
                        Duration age) const;

  const Clock& clock_;
  const bool secure_;
  identity::Issuer issuer_;
  identity::BrowserSessions sessions_;
};

}  // namespace nos::cmd
