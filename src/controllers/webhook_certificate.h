// Manages the serving certificate of a webhook or another server: issues it, keeps it in a Secret
// from which all replicas serve, rotates it in time and writes its CA bundle where its clients
// look: into webhook configurations, or ConfigMaps (key ca.crt).
//
//   WebhookCertificate certificate(config, [&] { wake.Ring(); });
//   certificate.Step(client, leads, clock.Now());     // at NextDue, and when woken
//   if (certificate.kept() != nullptr) Serve(*certificate.kept());
//
// A new certificate with its own authority is issued when a third of the lifetime is left. First
// the CA bundle gets both authorities. After `settling`, counted from when the leader has seen the
// new bundle in the API server, the new certificate is served. The next rotation drops the old
// authority. Only the leader writes, and each write fails if the object has changed. Owned by one
// thread.
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
  std::string ns{}, secret{};  // where the certificate is kept
  // The ValidatingWebhookConfiguration with the CA bundle; "": none.
  std::string configuration{};
  bool mutates = false;  // a MutatingWebhookConfiguration of that name has it, too
  // ConfigMaps of this name with the CA bundle, in these namespaces.
  std::string config_map{};
  std::vector<std::string> config_map_namespaces{};
  std::vector<std::string> dns_names{};
  Duration lifetime = std::chrono::hours(24 * 90);
  // Time until all clients trust a new authority; at most a tenth of the lifetime.
  Duration settling = std::chrono::minutes(1);
};

// All in PEM.
struct KeptCertificate {
  std::string certificate, key;
  std::string next_certificate, next_key;  // served next; empty: none
  std::string authorities;                 // CA certificates of both, the newest first
  friend bool operator==(const KeptCertificate&, const KeptCertificate&) = default;
};

// The certificates to keep now; `kept` itself if nothing is due. `published_since`: since when all
// API servers have had the whole CA bundle; absent: they do not have it. Errors: those of
// net::IssueCertificate.
Result<KeptCertificate> Renewed(const KeptCertificate& kept, const WebhookCertificateConfig& config,
                                std::optional<Time> published_since, Time now);
// When Renewed would return something else without any further event.
Time RenewalDue(const KeptCertificate& kept, const WebhookCertificateConfig& config,
                std::optional<Time> published_since);

class WebhookCertificate {
 public:
  // `wake`: called from any thread when Step has something to do.
  WebhookCertificate(WebhookCertificateConfig config, const std::function<void()>& wake);

  // Takes watch events in and, if leading, does what is due.
  void Step(kube::Client& client, bool leads, Time now);
  Time NextDue() const;
  // Null: no certificate can be served. Valid until the next Step.
  const KeptCertificate* kept() const;
  // The error of the last step, or OK.
  const Status& error() const { return error_; }

 private:
  struct Secret {
    cluster::ObjectMeta meta;
    KeptCertificate kept;
  };
  struct Configuration {
    cluster::ObjectMeta meta;
    std::map<std::string, std::string> bundles;  // by webhook, or by key of a ConfigMap: base64
  };
  // An object with the CA bundle.
  struct Place {
    kube::Resource kind;
    std::string ns;
    std::unique_ptr<kube::Cache<Configuration>> cache;
  };
  static Status ReadSecret(JsonSource json, Secret& to);
  static Status ReadConfiguration(JsonSource json, Configuration& to);
  static Status ReadConfigMap(JsonSource json, Configuration& to);

  Status Act(kube::Client& client, Time now);
  Status Keep(kube::Client& client, const Secret* before, const KeptCertificate& wanted);
  static Status PublishBundle(kube::Client& client, const Place& place,
                              const Configuration& configuration, const std::string& authorities);
  std::shared_ptr<const Configuration> At(const Place& place) const;
  std::shared_ptr<const Secret> KeptSecret() const;
  std::vector<const kube::Reflector*> Reflectors() const;

  const WebhookCertificateConfig config_;
  kube::Cache<Secret> secrets_;
  std::vector<Place> places_;
  std::shared_ptr<const Secret> served_;
  // The bundle that the leader has seen in the API server, and since when.
  std::string published_bundle_;
  std::optional<Time> published_since_;
  Status error_;
  int failures_ = 0;  // consecutive
  Time retry_ = Time::max();
  Time due_{};
};

}  // namespace nos::controllers
