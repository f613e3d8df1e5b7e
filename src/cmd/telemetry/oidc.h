// Signing in with OpenID Connect: programs by an ID token, browsers by /login and a cookie.
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
  identity::IssuerOptions issuer{};  // its rules.issuer empty: off
  std::string ca_file{};
  Duration session = std::chrono::hours(8);

  bool on() const { return !issuer.rules.issuer.empty(); }
};
void DescribeOidc(ConfigFields& fields, OidcConfig& config);

class OidcSignIn {
 public:
  // Who signed in or out, or failed to, and why.
  using Tell = std::function<void(const char* action, const std::string& who, const Status& how)>;

  // Error: kInvalid: what is wrong with the configuration.
  static Result<std::unique_ptr<OidcSignIn>> Make(const OidcConfig& config, const Clock& clock);

  // Of an ID token: user and groups as access reviews name them. None: it is no token of this
  // provider. Errors: kPermission, kUnavailable.
  std::optional<Result<Json>> Identify(const std::string& token);
  // Whether it is for another client of the provider alone, such as the cluster's API server.
  bool IsForOthers(const std::string& token) const { return issuer_.MayBeForOthers(token); }
  // Of a browser's session.
  std::optional<Json> SubjectOf(const net::HttpRequest& request) const;
  // None: it asks for something else. Thread-safe, as all of it.
  std::optional<net::HttpResponse> Answer(const net::HttpRequest& request, const Tell& tell);
  // Browsers can sign in.
  bool has_login() const { return !issuer_.options().redirect_url.empty(); }

 private:
  OidcSignIn(const OidcConfig& config, const Clock& clock);
  net::HttpResponse Login();
  net::HttpResponse Return(const net::HttpRequest& request, const Tell& tell);
  net::HttpResponse Logout(const net::HttpRequest& request, const Tell& tell);
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
