// Checks over HTTP that unauthenticated clients, readers and reporters cannot exceed their rights.
// Runs the whole server with doubles of an OpenID Connect provider and an API server behind their
// real protocols.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/fd.h"
#include "base/millis.h"
#include "cmd/telemetry/server.h"
#include "codec/gzip.h"
#include "identity/testing/issuer_double.h"
#include "net/http_server.h"

namespace nos::cmd {
namespace {

// A raw answer, with its header.
struct Answer {
  int code = 0;
  std::string head, body;

  std::string Header(const std::string& name) const {
    const size_t at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const size_t begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

// Sends exactly these bytes.
Answer SendRaw(uint16_t port, const std::string& bytes) {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Answer answer;
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return answer;
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = send(fd.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) break;  // the server has already answered
    sent += static_cast<size_t>(n);
  }
  std::string text;
  char chunk[4096];
  for (ssize_t n = 0; (n = recv(fd.get(), chunk, sizeof chunk, 0)) > 0;) {
    text.append(chunk, static_cast<size_t>(n));
  }
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos) return answer;
  answer.head = text.substr(0, end + 2);
  answer.body = text.substr(end + 4);
  answer.code = std::atoi(text.substr(9, 3).c_str());
  return answer;
}

// Accepts tokens "cluster-USER". User kim may list and create pods in team-a; user chief may do
// everything.
class ApiServerDouble {
 public:
  ApiServerDouble() {
    server_ = std::move(net::HttpServer::Start({}, [this](const net::HttpRequest& request) {
                          return Answer(request);
                        }).value());
  }
  uint16_t port() const { return server_->port(); }
  // Accepts the token for the user, too.
  void Know(const std::string& token, const std::string& user) {
    const std::scoped_lock lock(mutex_);
    users_[token] = user;
  }
  std::vector<net::HttpRequest> created() const {
    const std::scoped_lock lock(mutex_);
    return created_;
  }

 private:
  static bool Allowed(const Json& spec) {
    const std::string_view user = FindString(spec, "user");
    const std::string_view ns = FindString(spec, "resourceAttributes", "namespace");
    return user == "chief" || (user.ends_with("kim") && ns == "team-a") ||
           (user == "zoe" && ns == "zz");
  }
  net::HttpResponse Answer(const net::HttpRequest& request) {
    Json body = ParseJson(request.body).value_or(Json());
    net::HttpResponse response;
    response.code = 201;
    if (request.target.ends_with("/tokenreviews")) {
      const std::string token(FindString(body, "spec", "token"));
      const std::scoped_lock lock(mutex_);
      std::string user = token.starts_with("cluster-") ? token.substr(8) : users_[token];
      body.get_object()["status"] = {{"authenticated", !user.empty()},
                                     {"user", {{"username", user}}}};
    } else if (request.target.ends_with("/subjectaccessreviews")) {
      body.get_object()["status"] = {{"allowed", Allowed(*Find(body, "spec"))}};
    } else {
      const std::scoped_lock lock(mutex_);
      created_.push_back(request);
    }
    response.body = WriteJson(body);
    return response;
  }

  mutable std::mutex mutex_;
  std::vector<net::HttpRequest> created_;
  std::map<std::string, std::string> users_;  // by token
  std::unique_ptr<net::HttpServer> server_;   // last: uses the other members
};

const std::string kPod =
    R"({"pod":"{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team-a}, spec: {}}"})";

class TelemetrySecurityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("nos-telemetry-security-") + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    provider_.Publish({&key_});
    provider_.secret = "";
    config_.address = "127.0.0.1:0";
    config_.recorder.store.path = folder_ / "telemetry.db";
    config_.token_file = Write("tokens", "prod 0123456789abcdef\nlab fedcba9876543210\n");
    config_.readers.kubernetes = true;
    config_.readers.kubeconfig = Write("kubeconfig", Kubeconfig());
    config_.readers.audit_file = folder_ / "audit.log";
    config_.readers.actions = {.submit = true, .impersonate = true};
    config_.readers.oidc.issuer.rules = {.issuer = provider_.url(), .client_id = "nos"};
    config_.readers.oidc.issuer.redirect_url = "http://127.0.0.1:1/login/callback";
    Start();
    ASSERT_EQ(Deliver(Envelope("prod", 1, "p-1")).code, 200);
    ASSERT_TRUE(server_->recorder().Settle().ok());
  }
  void Start() {
    server_.reset();
    auto server = TelemetryServer::Start(config_, gpu::Catalogue::Builtin(), clock_, metrics_);
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
  }
  void TearDown() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  std::string Kubeconfig() const {
    return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: "
           "{cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: "
           "\"http://127.0.0.1:" +
           std::to_string(api_.port()) + "\"}}]\nusers: [{name: u, user: {token: servers-own}}]\n";
  }
  Answer Ask(const std::string& method, const std::string& target, const std::string& headers = "",
             const std::string& body = "") {
    return SendRaw(server_->port(),
                   method + " " + target +
                       " HTTP/1.1\r\nHost: nos.example\r\nConnection: close\r\nContent-Length: " +
                       std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body);
  }
  Answer Get(const std::string& target, const std::string& headers = "") {
    return Ask("GET", target, headers);
  }
  Answer Deliver(const std::string& envelope, const std::string& token = "0123456789abcdef",
                 const std::string& headers = "") {
    return Ask("POST", "/api/v1/ingest", "Authorization: Bearer " + token + "\r\n" + headers,
               envelope);
  }
  // An envelope with a pod of team-a and a pod of team-b.
  std::string Envelope(const std::string& cluster, int sequence, const std::string& name,
                       const std::vector<std::string>& namespaces = {"team-a", "team-b"}) {
    const int64_t now = ToMillis(clock_.Now());
    JsonArray records;
    for (const std::string& ns : namespaces) {
      records.push_back({{"kind", "pod"},
                         {"at", now},
                         {"uid", ns + name},
                         {"namespace", ns},
                         {"name", name},
                         {"node", ""},
                         {"state", "pending"},
                         {"requests", {{"nvidia.com/gpu", 1}}},
                         {"created", now}});
    }
    return WriteJson({{"schema", 1},
                      {"cluster", cluster},
                      {"source", "cluster"},
                      {"boot", "b"},
                      {"sequence", sequence},
                      {"sent_at", now},
                      {"lost", 0},
                      {"records", std::move(records)}});
  }
  std::string IdToken(const std::string& nonce = "", const std::string& audience = "nos") const {
    const int64_t now = ToMillis(clock_.Now()) / 1000;
    return key_.Sign({{"iss", provider_.url()},
                      {"aud", audience},
                      {"sub", "kim"},
                      {"exp", now + 600},
                      {"nonce", nonce},
                      {"groups", {"ml"}}});
  }
  // Signs in a browser and returns its cookie.
  std::string SignIn() {
    const Answer login = Get("/login");
    EXPECT_EQ(login.code, 302) << login.body;
    const std::string set = login.Header("Set-Cookie"), to = login.Header("Location");
    std::map<std::string, std::string> asked;
    const auto target = net::ParseTarget(to.substr(provider_.url().size()));
    for (const auto& [key, value] : target->query) asked[key] = value;
    provider_.Grant("code", asked["code_challenge"], IdToken(asked["nonce"]));
    const Answer back = Get("/login/callback?code=code&state=" + asked["state"],
                            "Cookie: " + set.substr(0, set.find(';')) + "\r\n");
    EXPECT_EQ(back.code, 302) << back.body;
    const std::string session = back.Header("Set-Cookie");
    return "Cookie: " + session.substr(0, session.find(';')) + "\r\n";
  }
  static std::string Bearer(const std::string& token) {
    return "Authorization: Bearer " + token + "\r\n";
  }

  static constexpr const char* kOwn = "X-Nos-Csrf: 1\r\nContent-Type: application/json\r\n";
  const identity::TestKey key_{"r1", true};
  identity::TestIssuer provider_;
  ApiServerDouble api_;
  std::filesystem::path folder_;
  TelemetryServerConfig config_;
  SystemClock clock_;
  Metrics metrics_;
  std::unique_ptr<TelemetryServer> server_;
};

TEST_F(TelemetrySecurityTest, UnauthenticatedClientsSeeNothing) {
  for (const char* route :
       {"session", "overview", "gpus", "workloads", "workloads/team-a/p-1", "decisions", "quotas",
        "series?metric=used", "history", "stories", "stream"}) {
    const Answer answer = Get(std::string("/api/v1/") + route);
    EXPECT_EQ(answer.code, 401) << route;
    EXPECT_EQ(answer.body.find("team-"), std::string::npos) << route;
    EXPECT_NE(answer.body.find(R"("sign_in":"login")"), std::string::npos) << route;
  }
  EXPECT_EQ(Ask("POST", "/api/v1/submit", kOwn, kPod).code, 401);
  EXPECT_EQ(Ask("POST", "/api/v1/ingest", "", Envelope("prod", 2, "x")).code, 401);
  for (const std::string& token : {std::string("forged"), std::string("0123456789abcdef"),
                                   std::string("..."), std::string(20'000, 'x')}) {
    EXPECT_EQ(Get("/api/v1/session", Bearer(token)).code, 401) << token.substr(0, 20);
  }
  EXPECT_EQ(Get("/api/v1/session", "Cookie: nos-session=guess\r\n").code, 401);
  EXPECT_EQ(Get("/api/v1/session", "Authorization: Basic a2ltOg==\r\n").code, 401);
}

TEST_F(TelemetrySecurityTest, ReadersSeeAndSubmitOnlyInTheirNamespaces) {
  for (const std::string& credentials : {Bearer("cluster-kim"), Bearer(IdToken()), SignIn()}) {
    const Answer pods = Get("/api/v1/workloads", credentials);
    EXPECT_EQ(pods.code, 200) << pods.body;
    EXPECT_NE(pods.body.find("team-a"), std::string::npos);
    EXPECT_EQ(pods.body.find("team-b"), std::string::npos);
    EXPECT_EQ(Get("/api/v1/workloads/team-b/p-1", credentials).code, 403);
    EXPECT_EQ(Get("/api/v1/overview", credentials).code, 403);
    std::string other = kPod;
    other.replace(other.find("team-a"), 6, "team-b");
    EXPECT_EQ(Ask("POST", "/api/v1/submit", kOwn + credentials, other).code, 403);
    other.replace(other.find("team-b"), 6, "team-a/../../namespaces/team-b");
    EXPECT_EQ(Ask("POST", "/api/v1/submit", kOwn + credentials, other).code, 400);
    EXPECT_EQ(Ask("POST", "/api/v1/what-if", kOwn + credentials, kPod).code, 501);
  }
  EXPECT_TRUE(api_.created().empty());
  EXPECT_EQ(Get("/api/v1/overview", Bearer("cluster-chief")).code, 200);
}

TEST_F(TelemetrySecurityTest, ReviewsNamedNamespaceAmongVeryMany) {
  std::vector<std::string> namespaces = {"zz"};
  for (int i = 0; i < 600; ++i) namespaces.push_back("aaa-" + std::to_string(1000 + i));
  ASSERT_EQ(Deliver(Envelope("prod", 2, "p-2", namespaces)).code, 200);
  ASSERT_TRUE(server_->recorder().Settle().ok());
  const std::string zoe = Bearer("cluster-zoe");
  const Answer session = Get("/api/v1/session", zoe);
  EXPECT_NE(session.body.find(R"("namespaces":[],"unasked_namespaces":103)"), std::string::npos)
      << session.body;
  EXPECT_EQ(Get("/api/v1/workloads", zoe).body.find("p-2"), std::string::npos);
  EXPECT_EQ(Get("/api/v1/workloads/zz/p-2", zoe).code, 200);
  const Answer pods = Get("/api/v1/workloads?namespace=zz", zoe);
  EXPECT_NE(pods.body.find("\"zzp-2\""), std::string::npos) << pods.body;
  EXPECT_NE(Get("/api/v1/session", zoe).body.find(R"("namespaces":["zz"])"), std::string::npos);
  for (const char* not_theirs : {"workloads/team-a/p-1", "workloads/aaa-1000/p-2",
                                 "series?metric=used&subject=pod/team-a/p-1",
                                 "series?metric=used&subject=quota/team-a/q/x"}) {
    EXPECT_EQ(Get(std::string("/api/v1/") + not_theirs, zoe).code, 403) << not_theirs;
  }
  EXPECT_EQ(Get("/api/v1/workloads?namespace=team-a", zoe).body.find("p-1"), std::string::npos);
}

TEST_F(TelemetrySecurityTest, ClusterReviewsTokensIssuedForIt) {
  const std::string token = IdToken("", "kubernetes");
  api_.Know(token, "kim");
  EXPECT_NE(Get("/api/v1/session", Bearer(token)).body.find(R"("user":"kim")"), std::string::npos);
  ASSERT_EQ(Ask("POST", "/api/v1/submit", kOwn + Bearer(token), kPod).code, 200);
  EXPECT_EQ(api_.created().back().Header("authorization"), "Bearer " + token)
      << "with the reader's own token";
  EXPECT_EQ(Get("/api/v1/session", Bearer(IdToken("", "grafana"))).code, 401);
  // Without reviews by the cluster, the token is not valid.
  config_.readers.kubernetes = false;
  config_.readers.actions = {};
  Start();
  const Answer refused = Get("/api/v1/session", Bearer(token));
  EXPECT_EQ(refused.code, 401);
  EXPECT_NE(refused.body.find("(aud)"), std::string::npos) << refused.body;
}

TEST_F(TelemetrySecurityTest, SubmitUsesReadersOwnRights) {
  const std::string session = SignIn();
  EXPECT_NE(Get("/api/v1/session", session).body.find(R"("sign_out":"logout")"), std::string::npos);
  ASSERT_EQ(Ask("POST", "/api/v1/submit", kOwn + Bearer("cluster-kim"), kPod).code, 200);
  ASSERT_EQ(Ask("POST", "/api/v1/submit", kOwn + session, kPod).code, 200);
  const auto created = api_.created();
  ASSERT_EQ(created.size(), 2U);
  EXPECT_EQ(created[0].target, "/api/v1/namespaces/team-a/pods");
  EXPECT_EQ(created[0].Header("authorization"), "Bearer cluster-kim");
  EXPECT_EQ(created[0].Header("impersonate-user"), "");
  EXPECT_EQ(created[1].Header("authorization"), "Bearer servers-own");
  EXPECT_EQ(created[1].Header("impersonate-user"), provider_.url() + "#kim");
  EXPECT_EQ(created[1].Header("impersonate-group"), "ml");
  EXPECT_EQ(std::ranges::count(created[1].headers, "impersonate-group",
                               &net::HttpHeaders::value_type::first),
            1);
  // The audit log contains the user but not the token.
  std::stringstream audit;
  audit << std::ifstream(config_.readers.audit_file).rdbuf();
  EXPECT_NE(audit.str().find(R"("action":"submit","who":")" + provider_.url() + "#kim\""),
            std::string::npos);
  EXPECT_EQ(audit.str().find("cluster-kim"), std::string::npos);
  // Sign-out.
  EXPECT_EQ(Ask("POST", "/logout", kOwn + session, "{}").code, 200);
  EXPECT_EQ(Get("/api/v1/session", session).code, 401);
}

TEST_F(TelemetrySecurityTest, RejectsRequestsOfOtherSites) {
  const std::string session = SignIn();
  for (const char* headers :
       {"Content-Type: application/json\r\n", "X-Nos-Csrf: 1\r\nContent-Type: text/plain\r\n",
        "X-Nos-Csrf: 1\r\nContent-Type: application/json\r\nOrigin: https://evil.example\r\n",
        "X-Nos-Csrf: 1\r\nContent-Type: application/json\r\nSec-Fetch-Site: cross-site\r\n",
        "X-Nos-Csrf: 1\r\nContent-Type: application/json\r\nOrigin: null\r\n"}) {
    for (const char* route : {"/api/v1/submit", "/api/v1/what-if", "/logout"}) {
      const int code = Ask("POST", route, headers + session, kPod).code;
      EXPECT_TRUE(code == 403 || code == 415) << route << " " << headers << code;
    }
  }
  EXPECT_TRUE(api_.created().empty());
  EXPECT_EQ(Get("/api/v1/session", session).code, 200) << "still signed in";
  EXPECT_EQ(Get("/api/v1/session", session).Header("Access-Control-Allow-Origin"), "");
}

TEST_F(TelemetrySecurityTest, ReportersSendOnlyForTheirCluster) {
  const auto names = [&] {
    return Get("/api/v1/workloads?cluster=prod", Bearer("cluster-chief")).body;
  };
  EXPECT_EQ(Deliver(Envelope("prod", 2, "forged"), "fedcba9876543210").code, 403);
  EXPECT_EQ(Deliver(Envelope("prod", 1, "rewound")).body, R"({"sequence":1,"refused":[]})")
      << "a stored envelope is acknowledged again";
  ASSERT_EQ(Deliver(Envelope("lab", 1, "of-lab"), "fedcba9876543210").code, 200);
  ASSERT_EQ(Deliver(Envelope("prod", 5, "later")).code, 200);
  EXPECT_EQ(Deliver(Envelope("prod", 3, "rewound")).code, 200);
  ASSERT_TRUE(server_->recorder().Settle().ok());
  const std::string now = names();
  EXPECT_NE(now.find("later"), std::string::npos);
  for (const char* not_there : {"forged", "rewound", "of-lab"}) {
    EXPECT_EQ(now.find(not_there), std::string::npos) << not_there;
  }
}

TEST_F(TelemetrySecurityTest, RejectsLargeBodiesUnread) {
  const std::string large(9 << 20, ' ');
  EXPECT_EQ(Deliver(large).code, 413);
  const std::string bomb = Gzip(std::string(64 << 20, ' '), 9);
  EXPECT_LT(bomb.size(), 100'000U);
  EXPECT_EQ(Deliver(bomb, "0123456789abcdef", "Content-Encoding: gzip\r\n").code, 413);
  const std::string chief = kOwn + Bearer("cluster-chief");
  EXPECT_EQ(Ask("POST", "/api/v1/submit", chief, std::string(1 << 20, 'x')).code, 413);
  EXPECT_EQ(Get("/" + std::string(40'000, 'x')).code, 431);
  EXPECT_EQ(Deliver("[" + std::string(100'000, '[')).code, 400);
  EXPECT_EQ(Get("/healthz").code, 404) << "it still answers";
}

TEST_F(TelemetrySecurityTest, RejectsPathTraversal) {
  for (const char* path :
       {"/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/assets/..%2f..%2fetc/passwd",
        "/assets/%00", "/./etc/passwd", "//etc/passwd", "/api/v1/workloads/..%2f..", "/%zz",
        "http://evil.example/api/v1/session", "/api/v1//session", "/api/v1/session/",
        "/login/callback/../../api", "/login/../api/v1/session"}) {
    const Answer answer = Get(path);
    EXPECT_TRUE(answer.code == 400 || answer.code == 401 || answer.code == 404)
        << path << answer.code;
    EXPECT_EQ(answer.body.find("root:"), std::string::npos) << path;
  }
}

TEST_F(TelemetrySecurityTest, EscapesHostileNames) {
  const std::string hostile = "</script><img src=x onerror=alert(1)>\r\nSet-Cookie: x=y\x1b[31m";
  const Answer delivered = Deliver(Envelope("prod", 2, hostile));
  ASSERT_EQ(delivered.code, 200) << delivered.body;
  ASSERT_TRUE(server_->recorder().Settle().ok());
  const Answer pods = Get("/api/v1/workloads", Bearer("cluster-chief"));
  EXPECT_EQ(pods.Header("Content-Type"), "application/json");
  EXPECT_EQ(pods.Header("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(pods.Header("Set-Cookie"), "");
  EXPECT_TRUE(ParseJson(pods.body).ok());
  EXPECT_EQ(pods.body.find('\x1b'), std::string::npos);
  const Answer page = Get("/");
  EXPECT_EQ(page.code, 200);
  EXPECT_NE(page.Header("Content-Security-Policy").find("default-src 'self'"), std::string::npos);
  EXPECT_EQ(page.Header("X-Frame-Options"), "DENY");
}

TEST_F(TelemetrySecurityTest, IgnoresForgedHeaders) {
  for (const char* target :
       {"/login?x=%0d%0aSet-Cookie:%20a=b", "/login/callback?state=%0d%0aSet-Cookie:%20a=b",
        "/login/callback?error=%0d%0aSet-Cookie:%20a=b",
        "/api/v1/workloads?cluster=%0d%0aSet-Cookie:%20a=b"}) {
    const Answer answer = Get(target, Bearer("cluster-chief"));
    EXPECT_EQ(answer.head.find("a=b"), std::string::npos) << answer.head;
  }
  EXPECT_EQ(Get("/api/v1/session", Bearer("cluster-kim\nX: y")).code, 400);
  // Headers that name a user do not change the authenticated user.
  const Answer answer =
      Get("/api/v1/session", Bearer("cluster-kim") +
                                 "Impersonate-User: chief\r\nX-Remote-User: chief\r\n"
                                 "X-Forwarded-User: chief\r\n");
  EXPECT_NE(answer.body.find(R"("user":"kim")"), std::string::npos) << answer.body;
}

TEST_F(TelemetrySecurityTest, LimitsFailedSignIns) {
  config_.readers.limits.failures_per_minute = 1;
  Start();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Get("/login/callback?code=x&state=y").code, 400)
        << "any site may redirect a browser there";
  }
  EXPECT_EQ(Get("/api/v1/session", Bearer("forged")).code, 401);
  const Answer later = Get("/api/v1/session", Bearer("forged-2"));
  EXPECT_EQ(later.code, 429);
  EXPECT_EQ(Get("/login").code, 429);
  EXPECT_NE(later.Header("Retry-After"), "");
}

}  // namespace
}  // namespace nos::cmd
