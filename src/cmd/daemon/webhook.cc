#include "cmd/daemon/webhook.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "cmd/daemon/leader.h"
#include "controllers/metrics.h"
#include "net/listen.h"
#include "reconcile/metrics.h"

namespace nos::cmd {
namespace {

// Two objects of the maximum size in etcd (1.5 MiB), plus the AdmissionReview around them.
constexpr uint64_t kMaxBody = uint64_t{4} << 20;
// Any client in the cluster can send requests; this bounds their total memory.
constexpr uint64_t kMaxHeld = uint64_t{32} << 20;

Result<net::HttpServerOptions> OptionsOf(const WebhookConfig& config) {
  NOS_ASSIGN(net::HttpServerOptions options, net::ParseListenAddress(config.address));
  options.threads = 16;  // reviews of slices wait for each other
  options.max_connections = 200;
  options.max_body_bytes = kMaxBody;
  options.max_held_bytes = kMaxHeld;
  options.request_timeout = std::chrono::seconds(5);  // API servers do not wait longer
  return options;
}

}  // namespace

void DescribeWebhook(ConfigFields& f, WebhookConfig& c) {
  using std::chrono::hours, std::chrono::minutes;
  f.Text("bindAddress", c.address, "Address that serves admission reviews over TLS.");
  f.Text(
      "tlsCertFile", c.certificate_file,
      "Certificate (PEM) that another component such as cert-manager rotates. Empty: the operator "
      "creates its own and publishes its CA to API servers.");
  f.Text("tlsKeyFile", c.key_file, "Private key of the certificate (PEM).");
  f.Text("serviceName", c.service, "Service through which API servers reach the webhook.");
  f.Text("hostName", c.host_name,
         "Host name in the operator's own certificate. Empty: SERVICE.NAMESPACE.svc, with the "
         "namespace of this pod.");
  f.Text("secretName", c.own.secret, "Secret that stores the operator's own certificate.");
  f.Text("secretNamespace", c.own.ns,
         "Namespace of the Secret. Empty: the namespace of this pod, else default.");
  f.Text("configurationName", c.own.configuration,
         "ValidatingWebhookConfiguration that receives the CA certificate, and the "
         "MutatingWebhookConfiguration of the same name if `slices` is true.");
  f.Flag("slices", c.slices,
         "Also choose slices for pods that state GPU requirements (nos.nebuly.com/need-memory).");
  f.Seconds("certificateLifetimeSeconds", c.own.lifetime, minutes(1), hours(24 * 3650),
            "Lifetime of the operator's own certificate. It is renewed when a third is left.");
  f.Retired("port", "see webhook.bindAddress");
  f.Retired("certDir", "see webhook.tlsCertFile");
}

Result<std::unique_ptr<Webhook>> Webhook::Start(WebhookConfig config,
                                                std::vector<WebhookRoute> routes,
                                                kube::Transport& transport,
                                                std::function<bool()> leads, Metrics& metrics) {
  const bool own = config.certificate_file.empty();
  if (own != config.key_file.empty()) {
    return Invalid("webhook: tlsCertFile and tlsKeyFile must be set together");
  }
  if (config.own.ns.empty()) config.own.ns = OwnNamespace();
  if (config.host_name.empty()) {
    config.host_name = fmt::format("{}.{}.svc", config.service, OwnNamespace());
  }
  config.own.dns_names = {config.host_name};
  config.own.mutates = config.slices;
  NOS_ASSIGN(net::HttpServerOptions options, OptionsOf(config));
  std::unique_ptr<Webhook> webhook(new Webhook(std::move(config), std::move(routes), metrics));
  Webhook* const self = webhook.get();
  if (own) {
    webhook->certificate_ = std::make_unique<OwnCertificate>(
        self->config_.own, transport, std::move(leads), "webhook", controllers::kCertificateEnd,
        metrics, [self, options](const std::shared_ptr<net::TlsIdentity>& identity) {
          net::HttpServerOptions with = options;
          with.identity = identity;
          return self->Listen(std::move(with));
        });
    return webhook;
  }
  options.tls = net::TlsFiles{self->config_.certificate_file, self->config_.key_file};
  NOS_RETURN_IF_ERROR(webhook->Listen(std::move(options)));
  return webhook;
}

Status Webhook::Ready() const {
  if (certificate_ != nullptr) NOS_RETURN_IF_ERROR(certificate_->status());
  for (const WebhookRoute& route : routes_) NOS_RETURN_IF_ERROR(route.ready());
  return Status::Ok();
}

Status Webhook::Listen(net::HttpServerOptions options) {
  auto server = net::Listen(std::move(options),
                            [this](const net::HttpRequest& request) { return Respond(request); });
  if (!server.ok()) return server.status().Within("webhook.bindAddress " + config_.address);
  server_ = std::move(server).value();
  Log(LogLevel::kInfo, "serving the webhook",
      {{"address", config_.address}, {"port", std::to_string(server_->port())}});
  return Status::Ok();
}

net::HttpResponse Webhook::Respond(const net::HttpRequest& request) const {
  // API servers append ?timeout=5s.
  const auto route = std::ranges::find(routes_, request.target.substr(0, request.target.find('?')),
                                       &WebhookRoute::path);
  if (route == routes_.end()) {
    std::string known = "there is:";
    for (const WebhookRoute& one : routes_) known += " " + one.path;
    return net::PlainText(404, known + "\n");
  }
  if (request.method != "POST") return net::PlainText(405, "only POST is possible\n");
  const SteadyClock clock;
  const Time begin = clock.Now();
  controllers::AdmissionAnswer answer = route->review(request.body);
  metrics_.Observe(controllers::kAdmissionDuration, {}, clock.Now() - begin);
  const char* const result = answer.code != 200 ? "error" : answer.allowed ? "allowed" : "refused";
  metrics_.Count(controllers::kAdmissions, {{"result", result}});
  if (answer.code != 200) return net::PlainText(answer.code, std::move(answer.body));
  net::HttpResponse response;
  response.body = std::move(answer.body);
  return response;
}

}  // namespace nos::cmd
