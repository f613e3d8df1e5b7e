#include "cmd/access/oidc.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <utility>

#include "base/table.h"
#include "base/text.h"
#include "net/same_site.h"
#include "net/url.h"

namespace nos::cmd {
namespace {

constexpr std::string_view kCallback = "/login/callback";
constexpr std::string_view kSession = "nos-session", kLogin = "nos-login";
constexpr Duration kLoginTime = std::chrono::minutes(10);
constexpr size_t kMaxShown = 300;

// "" if the cookie is missing or occurs twice: another site may have added a second one.
std::string CookieOf(const net::HttpRequest& request, std::string_view name) {
  std::string found;
  int count = 0;
  for (const auto& [key, value] : request.headers) {
    if (key != "cookie") continue;
    for (const std::string_view part : Split(value, ';')) {
      const std::string_view pair = Trim(part);
      if (!pair.starts_with(name) || pair.substr(name.size(), 1) != "=") continue;
      found = pair.substr(name.size() + 1);
      ++count;
    }
  }
  return count == 1 ? found : std::string();
}

std::string ParameterOf(const net::HttpRequest& request, std::string_view name) {
  const auto target = net::ParseTarget(request.target);
  if (!target.ok()) return {};
  for (const auto& [key, value] : target->query) {
    if (key == name) return value;
  }
  return {};
}

bool AreSame(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

net::HttpResponse PageOf(int code, std::string_view text) {
  net::HttpResponse response;
  response.code = code;
  response.content_type = "text/plain; charset=utf-8";
  response.body = Printable(Shortened(text, kMaxShown)) + "\n";
  response.headers = {{"Cache-Control", "no-store"}, {"Referrer-Policy", "no-referrer"}};
  return response;
}

}  // namespace

void DescribeOidc(ConfigFields& f, OidcConfig& c) {
  identity::IdTokenRules& rules = c.issuer.rules;
  f.Text("issuer", rules.issuer,
         "URL (https) of an OpenID Connect provider, as in the iss claim of its tokens. Empty: "
         "disabled. Rights are those that the cluster grants to the user and the groups.");
  f.Text("clientID", rules.client_id, "Client ID of this server at the provider (aud).");
  f.Text("clientSecretFile", c.issuer.client_secret_file,
         "File with the client secret, if there is one. Read for each use.");
  f.Text("caFile", c.ca_file,
         "CA certificates (PEM) that verify the provider. Empty: the system's CA certificates.");
  f.Text("redirectURL", c.issuer.redirect_url,
         "URL to which the provider redirects browsers: the dashboard's address and "
         "/login/callback, as the provider knows it. Empty: browsers cannot sign in, programs with "
         "an ID token can.");
  f.Text("scopes", c.issuer.scopes, "Scopes that browsers request; must include openid.");
  f.Text("usernameClaim", rules.username_claim, "Claim that contains the user name.");
  f.Text("usernamePrefix", rules.username_prefix,
         "Prefix of the user name. Empty: the issuer and # unless the claim is email, as in "
         "kube-apiserver; \"-\": nothing.");
  f.Text("groupsClaim", rules.groups_claim, "Claim that contains the groups. Empty: no groups.");
  f.Text("groupsPrefix", rules.groups_prefix, "Prefix of each group.");
  f.Seconds("sessionSeconds", c.session, std::chrono::minutes(1), std::chrono::hours(24 * 7),
            "Time after which browsers must sign in again.");
}

OidcSignIn::OidcSignIn(const OidcConfig& config, const Clock& clock)
    : clock_(clock),
      secure_(config.issuer.redirect_url.starts_with("https://")),
      issuer_(config.issuer, identity::AskOverHttp(config.ca_file), clock),
      sessions_({.lifetime = config.session, .sign_in_time = kLoginTime}) {}

Result<std::unique_ptr<OidcSignIn>> OidcSignIn::Make(const OidcConfig& config, const Clock& clock) {
  NOS_RETURN_IF_ERROR(identity::CheckWebAddress(config.issuer.rules.issuer).Within("issuer"));
  if (config.issuer.rules.client_id.empty()) {
    return Invalid(
        "clientID: required, because tokens for any client would be accepted without it: the ID of "
        "this server at the provider");
  }
  const std::string& redirect = config.issuer.redirect_url;
  if (!redirect.empty()) {
    NOS_RETURN_IF_ERROR(identity::CheckWebAddress(redirect).Within("redirectURL"));
    if (!redirect.ends_with(kCallback)) {
      return Invalid(fmt::format("redirectURL: must end with {}", kCallback));
    }
  }
  return std::unique_ptr<OidcSignIn>(new OidcSignIn(config, clock));
}

std::optional<Result<Json>> OidcSignIn::Identify(const std::string& token) {
  if (!issuer_.MayHaveIssued(token)) return std::nullopt;
  return issuer_.Verify(token);
}

std::optional<Json> OidcSignIn::SubjectOf(const net::HttpRequest& request) const {
  const std::string id = CookieOf(request, NameOf(kSession));
  return id.empty() ? std::nullopt : sessions_.Find(id, clock_.Now());
}

// Prefix "__Host-": browsers accept such a cookie only from this host over TLS (RFC 6265bis).
std::string OidcSignIn::NameOf(std::string_view cookie) const {
  return (secure_ ? "__Host-" : "") + std::string(cookie);
}

std::string OidcSignIn::SetCookie(std::string_view name, std::string_view value,
                                  std::string_view same_site, Duration age) const {
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite={}; Max-Age={}{}", NameOf(name), value,
                     same_site, age / std::chrono::seconds(1), secure_ ? "; Secure" : "");
}

std::optional<net::HttpResponse> OidcSignIn::Answer(const net::HttpRequest& request,
                                                    const Report& report) {
  const std::string path = request.target.substr(0, request.target.find('?'));
  const bool leaves = path == "/logout";
  if (!has_login() || (path != "/login" && path != kCallback && !leaves)) return std::nullopt;
  if (leaves) return Logout(request, report);
  if (request.method != "GET") return PageOf(405, "sign in by GET");
  return path == "/login" ? Login() : Return(request, report);
}

net::HttpResponse OidcSignIn::Login() {
  const identity::SignIn begun = sessions_.Begin(clock_.Now());
  if (begun.state.empty()) return PageOf(503, "this server has no random numbers");
  const auto url = issuer_.SignInUrl(begun);
  if (!url.ok()) return PageOf(503, url.status().message());
  net::HttpResponse response = PageOf(302, "");
  response.headers.emplace_back("Location", *url);
  // Lax: the redirect back comes from another site.
  response.headers.emplace_back("Set-Cookie", SetCookie(kLogin, begun.state, "Lax", kLoginTime));
  return response;
}

// The callback must come from the browser that started the login, and only once. Returns
// kPermission only if a provider's answer was verified and rejected, because other sites can send
// their visitors to the callback.
Result<Json> OidcSignIn::Redeem(const net::HttpRequest& request) {
  const std::string state = ParameterOf(request, "state");
  if (state.empty() || !AreSame(state, CookieOf(request, NameOf(kLogin)))) {
    return Invalid("this browser has not begun to sign in here: start again");
  }
  const auto begun = sessions_.Return(state, clock_.Now());
  if (!begun) return Invalid("signing in took too long: start again");
  const std::string error = ParameterOf(request, "error");
  if (!error.empty()) {
    return Invalid("the identity provider says: " + Shortened(error, 100));
  }
  return issuer_.Redeem(ParameterOf(request, "code"), *begun);
}

net::HttpResponse OidcSignIn::Return(const net::HttpRequest& request, const Report& report) {
  auto subject = Redeem(request);
  const std::string who = subject.ok() ? std::string(FindString(*subject, "user")) : std::string();
  report("sign-in", who, subject.status());
  if (!subject.ok()) {
    const Code code = subject.status().code();
    const int answer = code == Code::kPermission ? 403 : code == Code::kInvalid ? 400 : 503;
    return PageOf(answer, subject.status().message());
  }
  const std::string id = sessions_.Open(*std::move(subject), clock_.Now());
  net::HttpResponse response = PageOf(302, "");
  response.headers.emplace_back("Location", "../");
  response.headers.emplace_back("Set-Cookie",
                                SetCookie(kSession, id, "Strict", sessions_.lifetime()));
  response.headers.emplace_back("Set-Cookie", SetCookie(kLogin, "", "Lax", Duration(0)));
  return response;
}

net::HttpResponse OidcSignIn::Logout(const net::HttpRequest& request, const Report& report) {
  if (request.method != "POST") return PageOf(405, "sign out by POST");
  const Status own = net::CheckSameSite(request);
  if (!own.ok()) return PageOf(403, own.message());
  if (const auto subject = SubjectOf(request)) {
    report("sign-out", std::string(FindString(*subject, "user")), Status::Ok());
  }
  sessions_.Close(CookieOf(request, NameOf(kSession)));
  net::HttpResponse response;
  response.body = "{}\n";
  response.headers.emplace_back("Set-Cookie", SetCookie(kSession, "", "Strict", Duration(0)));
  return response;
}

}  // namespace nos::cmd
