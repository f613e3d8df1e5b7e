// The certificate of a webhook that nobody else provides one for: made, kept in a Secret that all
// replicas serve from, replaced in time, and told to API servers in their webhook configurations.
//
//   WebhookCertificate certificate(config, [&] { bell.Ring(); });
//   certificate.Step(client, leads, clock.Now());     // at NextDue, and when woken
//   if (certificate.kept() != nullptr) Serve(*certificate.kept());
//
// A new one is made when a third of the time is left, together with an authority of its own. First
// API servers are told to trust both authorities; when they have had time to hear of it, since the
// leader has seen them told, the new certificate is served. The old authority goes with the next
// rotation. The replica that leads writes, each write only onto what it has seen. One owner thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cluster/objects.h"
#include "kube/cache.h"
#include "kube/client.h"

namespace nos::controllers {

struct WebhookCertificateConfig {
  std::string ns{}, secret{};   // where it is kept
  std::string configuration{};  // the ValidatingWebhookConfiguration that says whom to trust
  bool mutates = false;         // a MutatingWebhookConfiguration of that name does, too
  std::vector<std::string> dns_names{};
  Duration lifetime = std::chrono::hours(24 * 90);
  // After so long all API servers trust a new authority; a tenth of the lifetime if that is less.
  Duration settling = std::chrono::minutes(1);
};

// PEM, all of it.
struct KeptCertificate {
  std::string certificate, key;
  std::string next_certificate, next_key;  // to be served next; empty: there is none
  std::string authorities;                 // of all of them, the newest first
  friend bool operator==(const KeptCertificate&, const KeptCertificate&) = default;
};

// What is to be kept now; as it is, if nothing is to be done. `told`: when API servers were told of
// all authorities; absent: they have not been. Errors: those of net::IssueCertificate.
Result<KeptCertificate> Renewed(const KeptCertificate& kept, const WebhookCertificateConfig& config,
                                std::optional<Time> told, Time now);
// When that will be something else even if nothing happens.
Time RenewalDue(const KeptCertificate& kept, const WebhookCertificateConfig& config,
                std::optional<Time> told);

class WebhookCertificate {
 public:
  // `wake`: called from any thread when Step would find something new.
  WebhookCertificate(WebhookCertificateConfig config, const std::function<void()>& wake);

  // Takes what has arrived, and if it leads, does what is due.
  void Step(kube::Client& client, bool leads, Time now);
  Time NextDue() const;
  // Null: there is none that could be served. Valid until the next Step.
  const KeptCertificate* kept() const;
  // Why the last step failed, or OK.
  const Status& error() const { return error_; }

 private:
  struct Secret {
    cluster::ObjectMeta meta;
    KeptCertificate kept;
  };
  struct Configuration {
    cluster::ObjectMeta meta;
    std::map<std::string, std::string> bundles;  // by webhook: base64
  };
  static Status ReadSecret(JsonSource json, Secret& to);
  static Status ReadConfiguration(JsonSource json, Configuration& to);

  Status Act(kube::Client& client, Time now);
  Status Keep(kube::Client& client, const Secret* before, const KeptCertificate& wanted);
  static Status Tell(kube::Client& client, const kube::Resource& kind,
                     const Configuration& configuration, const std::string& bundle);
  std::shared_ptr<const Secret> KeptSecret() const;
  std::vector<const kube::Reflector*> Reflectors() const;

  const WebhookCertificateConfig config_;
  kube::Cache<Secret> secrets_;
  // Of each kind the one that says whom to trust.
  std::vector<std::pair<kube::Resource, std::unique_ptr<kube::Cache<Configuration>>>>
      configurations_;
  std::shared_ptr<const Secret> served_;
  // What API servers have been told as far as the leader has seen, and since when.
  std::string told_bundle_;
  std::optional<Time> told_since_;
  Status error_;
  int failures_ = 0;  // in a row
  Time retry_ = Time::max();
  Time due_{};
};

}  // namespace nos::controllers
