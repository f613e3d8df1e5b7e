// nos operator --webhook: answers admission reviews of quotas, and of pods that request a slice by
// GPU requirements, over TLS.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "cmd/daemon/config_file.h"
#include "cmd/daemon/own_certificate.h"
#include "controllers/admission_review.h"
#include "controllers/webhook_certificate.h"
#include "kube/transport.h"
#include "net/http_server.h"

namespace nos::cmd {

struct WebhookConfig {
  std::string address = ":9443";
  // Files of a certificate that another component rotates; empty: the operator's own certificate.
  std::string certificate_file, key_file;
  std::string service = "nos-operator-webhook", host_name = {};  // names in its own certificate
  controllers::WebhookCertificateConfig own{.secret = "nos-operator-webhook",
                                            .configuration = "nos-operator"};
  bool slices = false;  // also choose slices for pods
};
void DescribeWebhook(ConfigFields& fields, WebhookConfig& config);

// Handler of one path. Both functions are called from any thread.
struct WebhookRoute {
  std::string path;  // "/validate-quotas"
  std::function<controllers::AdmissionAnswer(std::string_view body)> review;
  std::function<Status()> ready;
};

// Serves as soon as it has a certificate.
class Webhook {
 public:
  // `transport` and `metrics` must outlive it. `leads` is called from any thread. Errors: kInvalid
  // (configuration), kNotFound (a file), kUnavailable (address in use).
  static Result<std::unique_ptr<Webhook>> Start(WebhookConfig config,
                                                std::vector<WebhookRoute> routes,
                                                kube::Transport& transport,
                                                std::function<bool()> leads, Metrics& metrics);
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  // Call when leadership may have changed. Thread-safe.
  void Wake() {
    if (certificate_ != nullptr) certificate_->Wake();
  }
  // OK while it can answer. Thread-safe.
  Status Ready() const;

 private:
  Webhook(WebhookConfig config, std::vector<WebhookRoute> routes, Metrics& metrics)
      : config_(std::move(config)), routes_(std::move(routes)), metrics_(metrics) {}
  Status Listen(net::HttpServerOptions options);
  net::HttpResponse Respond(const net::HttpRequest& request) const;

  const WebhookConfig config_;
  const std::vector<WebhookRoute> routes_;
  Metrics& metrics_;
  std::unique_ptr<net::HttpServer> server_;  // set once, before the certificate is in use
  std::unique_ptr<OwnCertificate>
      certificate_;  // null: from files. Last: its thread uses the others
};

}  // namespace nos::cmd
