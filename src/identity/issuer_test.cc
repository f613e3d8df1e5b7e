#include "identity/issuer.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <future>
#include <semaphore>
#include <set>
#include <thread>

#include "identity/browser_sessions.h"
#include "identity/testing/issuer_double.h"

namespace nos::identity {
namespace {

constexpr int64_t kNow = 1'800'000'000;

class IssuerTest : public ::testing::Test {
 protected:
  IssuerTest() {
    provider_.Publish({&rsa_, &ec_});
    options_.rules = {.issuer = provider_.url(), .client_id = "nos"};
    Make();
  }
  void Make() { issuer_ = std::make_unique<Issuer>(options_, AskOverHttp(""), clock_); }
  JsonObject Claims(const std::string& name = "kim") const {
    return {{"iss", provider_.url()}, {"aud", "nos"},     {"sub", name},
            {"exp", kNow + 600},      {"iat", kNow - 10}, {"groups", {"ml", "system:masters"}}};
  }
  std::string With(const char* claim, const Json& value) const {
    JsonObject claims = Claims();
    claims[claim] = value;
    return rsa_.Sign(claims);
  }
  std::string Without(const char* claim) const {
    JsonObject claims = Claims();
    claims.erase(claim);
    return rsa_.Sign(claims);
  }
  void ExpectRefused(const std::string& token, std::string_view why) {
    const auto subject = issuer_->Verify(token);
    EXPECT_EQ(subject.status().code(), Code::kPermission) << subject.status().ToString();
    EXPECT_NE(subject.status().message().find(why), std::string::npos)
        << subject.status().message() << " instead of " << why;
  }

  const TestKey rsa_{"r1", true}, ec_{"e1", false};
  TestIssuer provider_;
  ManualClock clock_{Time(std::chrono::seconds(kNow))};
  IssuerOptions options_;
  std::unique_ptr<Issuer> issuer_;
};

TEST_F(IssuerTest, VerifiesTokenAndRecognizesItsIssuer) {
  for (const TestKey* key : {&rsa_, &ec_}) {
    const auto subject = issuer_->Verify(key->Sign(Claims()));
    ASSERT_TRUE(subject.ok()) << subject.status().ToString();
    EXPECT_EQ(FindString(*subject, "user"), provider_.url() + "#kim");
    EXPECT_EQ(WriteJson(*Find(*subject, "groups")), R"(["ml","system:authenticated"])");
  }
  EXPECT_EQ(provider_.asked_for_keys, 1);
  EXPECT_TRUE(issuer_->MayHaveIssued(rsa_.Sign(Claims())));
  EXPECT_FALSE(issuer_->MayHaveIssued(With("iss", "https://other.example")));
  EXPECT_FALSE(issuer_->MayHaveIssued("k8s-token"));
}

TEST_F(IssuerTest, NamesMatchKubeApiserver) {
  const auto user = [&](const JsonObject& claims) {
    const auto subject = issuer_->Verify(rsa_.Sign(claims));
    return subject.ok() ? std::string(FindString(*subject, "user")) : subject.status().message();
  };
  options_.rules.username_claim = "email";
  options_.rules.groups_prefix = "oidc:";
  Make();
  JsonObject claims = Claims();
  claims["email"] = "kim@example.com";
  claims["groups"] = "ml";
  EXPECT_EQ(user(claims), "kim@example.com");
  EXPECT_EQ(WriteJson(*Find(*issuer_->Verify(rsa_.Sign(claims)), "groups")),
            R"(["oidc:ml","system:authenticated"])");
  claims["email_verified"] = false;
  EXPECT_NE(user(claims).find("not verified"), std::string::npos);
  options_.rules.username_claim = "sub";
  options_.rules.username_prefix = "-";
  Make();
  EXPECT_EQ(user(Claims()), "kim");
  EXPECT_NE(user(Claims("system:admin")).find("Kubernetes' own"), std::string::npos);
  for (const char* none : {"", "a\r\nImpersonate-Group: system:masters"}) {
    EXPECT_EQ(user(Claims(none)), "the token has no sub, which is the user's name here") << none;
  }
}

TEST_F(IssuerTest, RejectsInvalidClaims) {
  ExpectRefused(With("iss", "https://evil.example"), "another issuer's");
  ExpectRefused(With("iss", Json(provider_.url() + "/")), "another issuer's");
  ExpectRefused(With("aud", "other"), "not for nos");
  ExpectRefused(With("aud", {"other", 7}), "not for nos");
  ExpectRefused(Without("aud"), "not for nos");
  ExpectRefused(Without("exp"), "exp");
  ExpectRefused(With("exp", kNow - 31), "expired");
  ExpectRefused(With("exp", "never"), "exp");
  ExpectRefused(With("exp", -1e300), "expired");
  ExpectRefused(With("nbf", kNow + 60), "future");
  ExpectRefused(With("nbf", "soon"), "no time");
  ExpectRefused(With("iat", kNow + 60), "future");
  ExpectRefused(With("aud", {"other", "nos"}), "azp");
  JsonObject several = Claims();
  several["aud"] = {"other", "nos"};
  several["azp"] = "other";
  ExpectRefused(rsa_.Sign(several), "azp");
  several["azp"] = "nos";
  EXPECT_TRUE(issuer_->Verify(rsa_.Sign(several)).ok());
  EXPECT_TRUE(issuer_->Verify(With("aud", Json(JsonArray{"nos"}))).ok());
  EXPECT_TRUE(issuer_->Verify(With("exp", kNow - 20)).ok()) << "clocks differ a little";
  EXPECT_TRUE(issuer_->Verify(With("nbf", kNow + 20)).ok());
  EXPECT_EQ(provider_.asked_for_keys, 1);
}

TEST_F(IssuerTest, RejectsForgedSignatures) {
  const Json claims = Claims();
  // Unsigned, or signed with a secret that everyone knows.
  const auto unsigned_by = [&](const Json& header) {
    return EncodeBase64Url(WriteJson(header)) + "." + EncodeBase64Url(WriteJson(claims)) + ".";
  };
  for (const char* none : {"none", "None", "NONE", ""}) {
    ExpectRefused(unsigned_by({{"alg", none}, {"kid", "r1"}}), "is not taken");
  }
  std::string confused = unsigned_by({{"alg", "HS256"}, {"kid", "r1"}});
  const std::string pem = rsa_.PublicPem();
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), pem.data(), static_cast<int>(pem.size()),
       reinterpret_cast<const unsigned char*>(confused.data()), confused.size() - 1, mac, &size);
  confused += EncodeBase64Url({reinterpret_cast<const char*>(mac), size});
  ExpectRefused(confused, "is not taken");
  // Keys of another issuer with the IDs of ours.
  const TestKey other_rsa("r1", true), other_ec("e1", false), unknown("r9", true);
  ExpectRefused(other_rsa.Sign(claims), "signature is wrong");
  ExpectRefused(other_ec.Sign(claims), "signature is wrong");
  ExpectRefused(unknown.Sign(claims), "no key of the issuer");
  // A key of another type, or for another algorithm.
  ExpectRefused(ec_.Sign(claims, {{"alg", "ES256"}, {"kid", "r1"}}), "no key of the issuer");
  ExpectRefused(rsa_.Sign(claims, {{"alg", "RS384"}, {"kid", "r1"}}), "no key of the issuer");
  ExpectRefused(rsa_.Sign(claims, {{"alg", "RS256"}, {"kid", "r1"}, {"crit", {"b64"}}}), "crit");
  // A key that the token contains itself.
  ExpectRefused(unknown.Sign(claims, {{"alg", "RS256"}, {"kid", "r1"}, {"jwk", unknown.Public()}}),
                "signature is wrong");
  // Claims of one token with the signature of another.
  const std::string good = rsa_.Sign(claims), chief = rsa_.Sign(Claims("chief"));
  ExpectRefused(chief.substr(0, chief.rfind('.')) + good.substr(good.rfind('.')),
                "signature is wrong");
  // Without a key ID, any key of the right type is tried, but no other.
  EXPECT_TRUE(issuer_->Verify(rsa_.Sign(claims, {{"alg", "RS256"}})).ok());
  ExpectRefused(other_rsa.Sign(claims, {{"alg", "RS256"}}), "signature is wrong");
}

TEST_F(IssuerTest, RejectsMalformedTokens) {
  for (const std::string& text :
       {std::string(), std::string(".."), std::string("a.b"), std::string("a.b.c.d"),
        std::string("{}.{}.{}"), std::string("e30.W10."), std::string("e30.e30.=="),
        std::string(1 << 20, 'a'), std::string(5000, '.')}) {
    EXPECT_EQ(issuer_->Verify(text).status().code(), Code::kPermission) << text.substr(0, 20);
  }
  EXPECT_EQ(provider_.asked_for_keys, 0);
}

TEST_F(IssuerTest, FetchesNewKeysAtLimitedRate) {
  ASSERT_TRUE(issuer_->Verify(rsa_.Sign(Claims())).ok());
  const TestKey next("r2", true);
  clock_.Advance(std::chrono::seconds(31));
  provider_.Publish({&next});
  EXPECT_TRUE(issuer_->Verify(next.Sign(Claims())).ok());
  EXPECT_EQ(provider_.asked_for_keys, 2);
  ExpectRefused(rsa_.Sign(Claims()), "no key of the issuer");
  for (int i = 0; i < 50; ++i) {
    ExpectRefused(rsa_.Sign(Claims(), {{"alg", "RS256"}, {"kid", "x" + std::to_string(i)}}),
                  "no key of the issuer");
  }
  EXPECT_EQ(provider_.asked_for_keys, 2);
}

TEST_F(IssuerTest, KeysStayValidForDayWithoutProvider) {
  provider_.down = true;
  EXPECT_EQ(issuer_->Verify(rsa_.Sign(Claims())).status().code(), Code::kUnavailable);
  provider_.down = false;
  clock_.Advance(std::chrono::seconds(31));
  ASSERT_TRUE(issuer_->Verify(rsa_.Sign(Claims())).ok());
  provider_.down = true;
  const auto later = [&](std::chrono::hours by) {
    clock_.Advance(by);
    JsonObject claims = Claims();
    claims["exp"] = kNow + 1'000'000;
    return issuer_->Verify(rsa_.Sign(claims)).status().code();
  };
  EXPECT_EQ(later(std::chrono::hours(20)), Code::kOk);
  EXPECT_EQ(later(std::chrono::hours(5)), Code::kUnavailable);
}

// Threads of a server that has no keys yet. One asks the provider, which hangs.
TEST_F(IssuerTest, OnlyOneThreadWaitsForFirstKeys) {
  constexpr int kThreads = 8;
  std::promise<void> asked, answers;
  const std::shared_future<void> may_answer = answers.get_future().share();
  std::atomic<bool> first{true};
  const WebAsker provider = AskOverHttp("");
  const WebAsker slow = [&](const WebCall& call) {
    if (first.exchange(false)) asked.set_value();
    may_answer.wait();
    return provider(call);
  };
  Issuer issuer(options_, slow, clock_);
  const std::string token = rsa_.Sign(Claims());
  std::atomic<int> verified{0};
  std::counting_semaphore<> ended(0);
  const auto verify = [&] {
    const auto subject = issuer.Verify(token);
    EXPECT_TRUE(subject.ok() || subject.status().code() == Code::kUnavailable);
    verified += subject.ok() ? 1 : 0;
    ended.release();
  };
  std::vector<std::thread> threads;
  threads.emplace_back(verify);
  asked.get_future().wait();
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(verify);
  for (int i = 0; i + 1 < kThreads; ++i) ended.acquire();
  EXPECT_EQ(verified, 0);
  answers.set_value();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(verified, 2) << "the one that asked and the one that waited";
}

TEST_F(IssuerTest, RejectsDocumentOfOtherIssuer) {
  options_.rules.issuer = provider_.url() + "/";
  Make();
  const auto subject = issuer_->Verify(With("iss", Json(provider_.url() + "/")));
  EXPECT_EQ(subject.status().code(), Code::kUnavailable);
  EXPECT_NE(subject.status().message().find("calls itself"), std::string::npos);
}

TEST(WebAddressTest, AllowsOnlyHttpsAndThisMachine) {
  EXPECT_TRUE(CheckWebAddress("https://login.example/realms/x?y=z").ok());
  EXPECT_TRUE(CheckWebAddress("http://127.0.0.1:8080/keys").ok());
  for (const char* wrong :
       {"http://login.example", "https://", "file:///etc/passwd", "", "https://a@b/",
        "https://a.example/\r\nSet-Cookie: x=y", "http://127.0.0.1.evil.example/",
        "https://a.example/#f", "HTTPS://a.example"}) {
    EXPECT_FALSE(CheckWebAddress(wrong).ok()) << wrong;
  }
}

TEST(KeySetTest, SkipsInvalidKeys) {
  const TestKey rsa("r", true), ec("e", false);
  JsonObject encrypts = rsa.Public().get_object(), short_rsa = encrypts,
             off_curve = ec.Public().get_object();
  encrypts["use"] = "enc";
  short_rsa["n"] = "AQAB";
  off_curve["x"] = off_curve["y"];
  const auto keys = KeySet::Parse({{"keys",
                                    {rsa.Public(),
                                     ec.Public(),
                                     encrypts,
                                     short_rsa,
                                     off_curve,
                                     {{"kty", "oct"}, {"k", "c2VjcmV0"}},
                                     "x",
                                     JsonObject()}}});
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(keys->size(), 2U);
  EXPECT_FALSE(KeySet::Parse({{"keys", 7}}).ok());
  EXPECT_FALSE(KeySet::Parse("x").ok());
}

TEST(BrowserSessionsTest, SignInReturnsOnceAndInTime) {
  BrowserSessions sessions({});
  const Time now{std::chrono::seconds(kNow)};
  const SignIn begun = sessions.Begin(now), other = sessions.Begin(now);
  EXPECT_EQ(begun.nonce.size(), 43U);
  EXPECT_EQ(begun.verifier.size(), 43U) << "RFC 7636 wants 43 to 128";
  EXPECT_EQ(
      (std::set{begun.state, begun.nonce, begun.verifier, other.state, other.nonce, other.verifier})
          .size(),
      6U);
  EXPECT_FALSE(sessions.Return("guess", now));
  EXPECT_FALSE(sessions.Return("", now));
  const auto returned = sessions.Return(begun.state, now + std::chrono::minutes(9));
  ASSERT_TRUE(returned);
  EXPECT_EQ(returned->state, begun.state);
  EXPECT_EQ(returned->nonce, begun.nonce);
  EXPECT_EQ(returned->verifier, begun.verifier);
  EXPECT_FALSE(sessions.Return(begun.state, now)) << "once";
  EXPECT_FALSE(sessions.Return(other.state, now + std::chrono::minutes(10)));
  BrowserSessions restarted({});
  EXPECT_FALSE(restarted.Return(other.state, now)) << "of another process";
}

TEST(BrowserSessionsTest, NoChangedStateReturns) {
  BrowserSessions sessions({});
  const Time now{std::chrono::seconds(kNow)};
  const std::string state = sessions.Begin(now).state;
  for (size_t i = 0; i < state.size(); ++i) {
    std::string changed = state;
    changed[i] = changed[i] == 'A' ? 'Z' : 'A';
    EXPECT_FALSE(sessions.Return(changed, now)) << i;
  }
  EXPECT_FALSE(sessions.Return(state.substr(0, 43), now)) << "without the signature";
}

// A stranger begins and ends many sign-ins: another user's sign-in still returns.
TEST(BrowserSessionsTest, StrangersPushNoSignInOut) {
  BrowserSessions sessions({.max_returned = 100});
  const Time now{std::chrono::seconds(kNow)};
  const SignIn mine = sessions.Begin(now);
  for (int i = 0; i < 10'000; ++i) (void)sessions.Begin(now);
  for (int i = 0; i < 300; ++i) EXPECT_TRUE(sessions.Return(sessions.Begin(now).state, now));
  EXPECT_TRUE(sessions.Return(mine.state, now));
}

TEST(BrowserSessionsTest, SessionsAreBoundedAndExpire) {
  BrowserSessions sessions({.max_returned = 2, .max_sessions = 2});
  const Time now{std::chrono::seconds(kNow)};
  const std::string a = sessions.Open(Json("a"), now);
  const std::string b = sessions.Open(Json("b"), now + std::chrono::seconds(1));
  EXPECT_EQ(sessions.Find(a, now), Json("a"));
  const std::string c = sessions.Open(Json("c"), now + std::chrono::seconds(2));
  EXPECT_FALSE(sessions.Find(a, now)) << "the oldest was removed";
  EXPECT_TRUE(sessions.Find(b, now));
  sessions.Close(b);
  EXPECT_FALSE(sessions.Find(b, now));
  EXPECT_FALSE(sessions.Find(c, now + std::chrono::hours(9)));
  EXPECT_FALSE(sessions.Find("", now));
}

}  // namespace
}  // namespace nos::identity
