// Delivers records of a daemon to a telemetry server, if one is configured: a spool on disk, and a
// thread that sends its contents, so that neither a slow server nor a slow disk blocks the
// reporting thread.
//
//   NOS_ASSIGN(const auto delivery, Delivery::For(config, "node/gpu-17", metrics));
//   NOS_RETURN_IF_ERROR(delivery->Add(records));   // on disk when it returns
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "base/metrics.h"
#include "base/wake_signal.h"
#include "cmd/daemon/config_file.h"
#include "kube/http_transport.h"
#include "telemetryreporter/sender.h"
#include "telemetryreporter/spool.h"

namespace nos::cmd {

// Connection to a telemetry server and its spool; all reporting daemons use these fields.
struct DeliveryConfig {
  std::string endpoint, cluster;
  std::string token_file, ca_file, certificate_file, key_file;
  std::string spool_folder = "/var/lib/nos/telemetry";
  int64_t spool_mib = 64;
  bool spool_shared = false;  // several processes use the folder, each one subfolder
};
void DescribeDelivery(ConfigFields& fields, DeliveryConfig& config);
// Error: kInvalid with the field.
Result<kube::ConnectionConfig> ConnectionOf(const DeliveryConfig& config);

class Delivery {
 public:
  // `source`: see EnvelopeHead. REQUIRES: an endpoint. `metrics` must outlive this object. Error:
  // kInvalid (configuration).
  static Result<std::unique_ptr<Delivery>> For(const DeliveryConfig& config, std::string source,
                                               Metrics& metrics);
  // Waits for a request in flight, at most until its timeout. Unsent records stay on disk.
  ~Delivery();
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  // Opens the spool if it is not open. Errors: see Spool::Open; the caller retries.
  Status Open();
  // Opens the spool if needed. Errors: see Open and Spool::Append; the records are not stored.
  Status Add(std::span<const std::string> records);

 private:
  Delivery(DeliveryConfig config, std::string source, kube::ConnectionConfig connection,
           Metrics& metrics);
  Result<std::unique_ptr<telemetry::Spool>> OpenSpool() const;
  void SendAgainAndAgain();
  void Show();

  const DeliveryConfig config_;
  const std::string source_;
  Metrics& metrics_;
  kube::HttpTransport transport_;
  std::unique_ptr<telemetry::Spool> spool_;
  std::unique_ptr<telemetry::Sender> sender_;
  std::atomic<bool> stop_ = false;
  WakeSignal bell_;
  std::thread sending_;  // runs once the spool is open
};

}  // namespace nos::cmd
