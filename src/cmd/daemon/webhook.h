// nos operator --webhook: answers admission reviews of quotas, and of pods that request a slice by
// GPU requirements, over TLS.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/metrics.h"
#include "base/wake_signal.h"
#include "cmd/daemon/config_file.h"
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

// Serves as soon as it has a certificate. Its own thread renews the certificate.
class Webhook {
 public:
  // `transport` and `metrics` must outlive it. `leads` is called from any thread. Errors: kInvalid
  // (configuration), kNotFound (a file), kUnavailable (address in use).
  static Result<std::unique_ptr<Webhook>> Start(WebhookConfig config,
                                                std::vector<WebhookRoute> routes,
                                                kube::Transport& transport,
                                                std::function<bool()> leads, Metrics& metrics);
  ~Webhook();
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  // Call when leadership may have changed. Thread-safe.
  void Wake() { bell_.Ring(); }
  // OK while it can answer. Thread-safe.
  Status Ready() const;

 private:
  Webhook(WebhookConfig config, std::vector<WebhookRoute> routes, kube::Transport& transport,
          std::function<bool()> leads, Metrics& metrics);
  Status Listen(net::HttpServerOptions options);
  void Run();
  Status Serve(const controllers::KeptCertificate& kept);
  void SetStatus(const Status& status);
  net::HttpResponse Respond(const net::HttpRequest& request) const;

  const WebhookConfig config_;
  const std::vector<WebhookRoute> routes_;
  kube::Client client_;
  const std::function<bool()> leads_;
  Metrics& metrics_;
  mutable std::mutex mutex_;
  Status status_{Code::kUnavailable, "there is no certificate yet"};  // guarded by mutex_
  std::shared_ptr<net::TlsIdentity> identity_;                        // owned by the thread
  std::string served_;                                                // the certificate in use
  std::unique_ptr<net::HttpServer> server_;
  std::atomic<bool> stop_{false};
  WakeSignal bell_;
  std::thread thread_;  // last: uses the others
};

}  // namespace nos::cmd
