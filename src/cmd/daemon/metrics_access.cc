#include "cmd/daemon/metrics_access.h"

#include <fmt/format.h>

#include <utility>

#include "cmd/reviews/access_review.h"
#include "kube/client.h"

namespace nos::cmd {
namespace {

constexpr Duration kPatience = std::chrono::seconds(5);
constexpr double kRequestsPerSecond = 10;
constexpr int kBurst = 40;

int HttpCodeOf(Code code) {
  if (code == Code::kPermission) return 401;
  return code == Code::kExhausted ? 429 : 503;
}

}  // namespace

std::unique_ptr<MetricsAccess> MetricsAccess::Over(const kube::ConnectionConfig& connection) {
  static const SteadyClock clock;
  kube::HttpOptions options;
  options.timeout = kPatience;
  options.requests_per_second = kRequestsPerSecond;
  options.burst = kBurst;
  options.max_connections = 2;
  auto transport = std::make_unique<kube::HttpTransport>(connection, options);
  auto access = std::make_unique<MetricsAccess>(*transport, clock);
  access->own_ = std::move(transport);
  return access;
}

std::optional<net::HttpResponse> MetricsAccess::Refuse(const net::HttpRequest& request) {
  const auto token = BearerOf(request);
  if (!token) {
    net::HttpResponse response =
        net::PlainText(401, "the header \"Authorization: Bearer TOKEN\" is missing\n");
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
  }
  const auto holder = holders_.Of(*token, request.peer);
  if (!holder.ok()) {
    return net::PlainText(HttpCodeOf(holder.status().code()), holder.status().message() + "\n");
  }
  if (!holder->subject.is_null()) return std::nullopt;
  return net::PlainText(403, "this needs the right to get the path /metrics of the cluster\n");
}

Result<TokenHolders::Holder> MetricsAccess::Ask(const std::string& token) {
  NOS_ASSIGN(Json subject, ReviewToken(transport_, token));
  JsonObject spec = subject.is_object() ? subject.get_object() : JsonObject();
  spec["nonResourceAttributes"] = JsonObject{{"path", "/metrics"}, {"verb", "get"}};
  kube::Client client = kube::Client(transport_).Within(kPatience);
  const auto reviewed = client.Create(kAccessReviews, "", AccessReview(std::move(spec)));
  if (!reviewed.ok()) {
    return Status(Code::kUnavailable,
                  fmt::format("the cluster's API server cannot be asked what you may see: {}",
                              reviewed.status().message()));
  }
  return TokenHolders::Holder{IsAllowed(*reviewed) ? std::move(subject) : Json(), true};
}

}  // namespace nos::cmd
