#include "cmd/access/oidc.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "identity/testing/issuer_double.h"

namespace nos::cmd {
namespace {

constexpr int64_t kNow = 1'800'000'000;

class OidcTest : public ::testing::Test {
 protected:
  OidcTest() {
    provider_.Publish({&key_});
    const auto file = std::filesystem::path(::testing::TempDir()) / "nos-oidc-secret";
    std::ofstream(file) << provider_.secret << "\n";
    config_.issuer.rules = {.issuer = provider_.url(), .client_id = "nos"};
    config_.issuer.client_secret_file = file;
    config_.issuer.redirect_url = "https://nos.example/gpus/login/callback";
    Make();
  }
  void Make() {
    auto made = OidcSignIn::Make(config_, clock_);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    oidc_ = *std::move(made);
  }
  net::HttpResponse Ask(const std::string& target, const std::string& cookie = "",
                        const std::string& method = "GET", net::HttpHeaders more = {}) {
    if (!cookie.empty()) more.emplace_back("cookie", cookie);
    auto answer =
        oidc_->Answer({method, target, more, ""},
                      [&](const char* action, const std::string& who, const Status& how) {
                        reported_.push_back(std::string(action) + " " + who + " " + how.message());
                      });
    EXPECT_TRUE(answer.has_value()) << target;
    return answer ? std::move(*answer) : net::HttpResponse();
  }
  static std::string HeaderOf(const net::HttpResponse& response, std::string_view name) {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return "";
  }
  struct Begun {
    std::string cookie, state, nonce, challenge;
  };
  Begun Begin() {
    const auto response = Ask("/login");
    EXPECT_EQ(response.code, 302) << response.body;
    Begun begun;
    const std::string set = HeaderOf(response, "Set-Cookie");
    begun.cookie = set.substr(0, set.find(';'));
    const std::string location = HeaderOf(response, "Location");
    EXPECT_TRUE(location.starts_with(provider_.url() + "/authorize?")) << location;
    const net::Target target =
        net::ParseTarget(location.substr(provider_.url().size())).value_or(net::Target());
    for (const auto& [key, value] : target.query) {
      if (key == "state") begun.state = value;
      if (key == "nonce") begun.nonce = value;
      if (key == "code_challenge") begun.challenge = value;
    }
    return begun;
  }
  std::string TokenWith(const std::string& nonce, const std::string& name = "kim") const {
    return key_.Sign({{"iss", provider_.url()},
                      {"aud", "nos"},
                      {"sub", name},
                      {"exp", kNow + 600},
                      {"nonce", nonce}});
  }
  std::optional<Json> SubjectOf(const std::string& cookie) {
    return oidc_->SubjectOf({"GET", "/", {{"cookie", cookie}}, ""});
  }

  const identity::TestKey key_{"r1", true};
  identity::TestIssuer provider_;
  ManualClock clock_{Time(std::chrono::seconds(kNow))};
  OidcConfig config_;
  std::unique_ptr<OidcSignIn> oidc_;
  std::vector<std::string> reported_;
};

TEST_F(OidcTest, BrowserSignsInAndOut) {
  const Begun begun = Begin();
  EXPECT_TRUE(begun.cookie.starts_with("__Host-nos-login="));
  provider_.Grant("code-1", begun.challenge, TokenWith(begun.nonce));
  const auto back = Ask("/login/callback?code=code-1&state=" + begun.state, begun.cookie);
  ASSERT_EQ(back.code, 302) << back.body;
  EXPECT_EQ(HeaderOf(back, "Location"), "../");
  const std::string set = HeaderOf(back, "Set-Cookie");
  EXPECT_TRUE(set.starts_with("__Host-nos-session=")) << set;
  EXPECT_TRUE(set.ends_with("; Path=/; HttpOnly; SameSite=Strict; Max-Age=3600; Secure")) << set;
  const std::string cookie = set.substr(0, set.find(';'));
  const auto subject = SubjectOf("theme=dark; " + cookie);
  ASSERT_TRUE(subject.has_value());
  EXPECT_EQ(FindString(*subject, "user"), provider_.url() + "#kim");
  EXPECT_EQ(reported_.back(), "sign-in " + provider_.url() + "#kim ");
  EXPECT_FALSE(SubjectOf(cookie + "; __Host-nos-session=other"))
      << "a duplicate cookie is ambiguous";
  EXPECT_FALSE(SubjectOf("x" + cookie));
  // Sign-out, which requires a header that other sites cannot send.
  EXPECT_EQ(Ask("/logout", cookie, "POST").code, 403);
  EXPECT_EQ(Ask("/logout", cookie).code, 405);
  EXPECT_TRUE(SubjectOf(cookie));
  const net::HttpHeaders own = {{"x-nos-csrf", "1"}, {"content-type", "application/json"}};
  EXPECT_EQ(Ask("/logout", cookie, "POST", own).code, 200);
  EXPECT_FALSE(SubjectOf(cookie));
}

TEST_F(OidcTest, SessionsExpire) {
  const Begun begun = Begin();
  provider_.Grant("c", begun.challenge, TokenWith(begun.nonce));
  const std::string set =
      HeaderOf(Ask("/login/callback?code=c&state=" + begun.state, begun.cookie), "Set-Cookie");
  const std::string cookie = set.substr(0, set.find(';'));
  EXPECT_TRUE(SubjectOf(cookie));
  clock_.Advance(std::chrono::hours(1));
  EXPECT_FALSE(SubjectOf(cookie));
}

TEST_F(OidcTest, RejectsCallbackOfOtherBrowserOrCode) {
  const auto refused = [&](const std::string& query, const std::string& cookie) {
    const auto response = Ask("/login/callback?" + query, cookie);
    EXPECT_TRUE(response.code == 403 || response.code == 400) << response.body;
    EXPECT_EQ(response.content_type, "text/plain; charset=utf-8");
    EXPECT_EQ(HeaderOf(response, "Set-Cookie"), "");
    return response.body;
  };
  const Begun mine = Begin(), other = Begin();
  provider_.Grant("c", mine.challenge, TokenWith(mine.nonce));
  refused("code=c&state=" + mine.state, "");  // an attacker's link in a victim's browser
  refused("code=c&state=" + mine.state, other.cookie);
  refused("code=c", mine.cookie);
  refused("code=c&state=", "__Host-nos-login=");
  // The code of another sign-in fails because its verifier differs.
  refused("code=c&state=" + other.state, other.cookie);
  const Begun third = Begin();
  provider_.Grant("d", third.challenge, TokenWith("another-nonce"));
  EXPECT_NE(refused("code=d&state=" + third.state, third.cookie).find("nonce"), std::string::npos);
  refused("code=d&state=" + third.state, third.cookie);  // a state is valid once only
  const Begun denied = Begin();
  const std::string said =
      refused("error=%3Cscript%3E%0d%0aX:y&state=" + denied.state, denied.cookie);
  EXPECT_EQ(said.find('\r'), std::string::npos);
  const Begun late = Begin();
  provider_.Grant("e", late.challenge, TokenWith(late.nonce));
  clock_.Advance(std::chrono::minutes(11));
  refused("code=e&state=" + late.state, late.cookie);
  EXPECT_EQ(reported_.size(), 9U);
}

TEST_F(OidcTest, ReportsUnreachableProvider) {
  provider_.down = true;
  EXPECT_EQ(Ask("/login").code, 503);
}

TEST_F(OidcTest, IdentifiesProgramsByIdToken) {
  const auto subject = oidc_->Identify(TokenWith("any"));
  ASSERT_TRUE(subject.has_value());
  EXPECT_TRUE(subject->ok()) << subject->status().ToString();
  EXPECT_FALSE(oidc_->Identify("some-other-token").has_value()) << "the cluster may accept it";
  config_.issuer.redirect_url = "";
  Make();
  EXPECT_FALSE(oidc_->Answer({"GET", "/login", {}, ""}, {}).has_value());
}

TEST_F(OidcTest, RejectsInvalidConfiguration) {
  const auto wrong = [&](auto change) {
    OidcConfig config = config_;
    change(config);
    return OidcSignIn::Make(config, clock_).status().code() == Code::kInvalid;
  };
  EXPECT_TRUE(wrong([](OidcConfig& c) { c.issuer.rules.issuer = "http://login.example"; }));
  EXPECT_TRUE(wrong([](OidcConfig& c) { c.issuer.rules.client_id = ""; }));
  EXPECT_TRUE(wrong([](OidcConfig& c) { c.issuer.redirect_url = "https://nos.example/"; }));
  EXPECT_TRUE(
      wrong([](OidcConfig& c) { c.issuer.redirect_url = "http://nos.example/login/callback"; }));
}

}  // namespace
}  // namespace nos::cmd
