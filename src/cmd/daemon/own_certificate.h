// Has a certificate of the server's own, in a thread that issues and rotates it
// (controllers/webhook_certificate.h), and a TLS identity that always uses the current one.
//
//   OwnCertificate certificate(config, transport, leads, "webhook", kCertificateEnd, metrics,
//                              [&](const auto& identity) { return Listen(identity); });
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/metrics.h"
#include "base/wake_signal.h"
#include "controllers/webhook_certificate.h"
#include "kube/transport.h"
#include "net/tls.h"

namespace nos::cmd {

class OwnCertificate {
 public:
  // Called on the thread as soon as there is a certificate, until it succeeds once.
  using Serve = std::function<Status(const std::shared_ptr<net::TlsIdentity>& identity)>;

  // `of`: whose certificate it is, in logs. `expiry`: the metric with its end. `leads` is called on
  // the thread; only who leads writes. The references must outlive it.
  OwnCertificate(controllers::WebhookCertificateConfig config, kube::Transport& transport,
                 std::function<bool()> leads, std::string of, const MetricFamily& expiry,
                 Metrics& metrics, Serve serve);
  ~OwnCertificate();
  OwnCertificate(const OwnCertificate&) = delete;
  OwnCertificate& operator=(const OwnCertificate&) = delete;

  // Call when leadership may have changed. Thread-safe.
  void Wake() { bell_.Ring(); }
  // OK while there is a certificate, and `serve` has succeeded. Thread-safe.
  Status status() const;

 private:
  void Run();
  Status Use(const controllers::KeptCertificate& kept);

  const controllers::WebhookCertificateConfig config_;
  kube::Client client_;
  const std::function<bool()> leads_;
  const std::string of_;
  const MetricFamily& expiry_;
  Metrics& metrics_;
  const Serve serve_;
  mutable std::mutex mutex_;
  Status status_{Code::kUnavailable, "there is no certificate yet"};  // guarded by mutex_
  // The following are owned by the thread.
  std::shared_ptr<net::TlsIdentity> identity_;
  std::string used_;  // the certificate in use
  bool serves_ = false;
  std::atomic<bool> stop_{false};
  WakeSignal bell_;
  std::thread thread_;  // last: uses the others
};

}  // namespace nos::cmd
