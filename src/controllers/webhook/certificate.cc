#include "controllers/webhook_certificate.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/back_off.h"
#include "base/log.h"
#include "codec/base64.h"
#include "net/certificate.h"

namespace nos::controllers {
namespace {

const kube::Resource kSecrets{"", "v1", "secrets", "Secret"};
const kube::Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
constexpr const char* kBundleKey = "ca.crt";
const kube::Resource kValidating{"admissionregistration.k8s.io", "v1",
                                 "validatingwebhookconfigurations",
                                 "ValidatingWebhookConfiguration", false};
const kube::Resource kMutating{"admissionregistration.k8s.io", "v1",
                               "mutatingwebhookconfigurations", "MutatingWebhookConfiguration",
                               false};

// Clocks of API servers may be behind.
constexpr Duration kSkew = std::chrono::minutes(5);

// Keys in the Secret. The first two are those of a kubernetes.io/tls Secret.
struct Part {
  const char* name;
  std::string KeptCertificate::* text;
};
constexpr std::array<Part, 5> kParts{{{"tls.crt", &KeptCertificate::certificate},
                                      {"tls.key", &KeptCertificate::key},
                                      {"next.crt", &KeptCertificate::next_certificate},
                                      {"next.key", &KeptCertificate::next_key},
                                      {"ca.crt", &KeptCertificate::authorities}}};

kube::ReflectorOptions Only(const std::string& ns, const std::string& name,
                            const std::function<void()>& wake) {
  kube::ReflectorOptions options;
  options.ns = ns;
  options.field_selector = "metadata.name=" + name;
  options.wake = wake;
  return options;
}

cluster::ObjectMeta MetaOf(const Json& object) {
  cluster::ObjectMeta meta;
  meta.ns = FindString(object, "metadata", "namespace");
  meta.name = FindString(object, "metadata", "name");
  meta.uid = FindString(object, "metadata", "uid");
  meta.resource_version = FindString(object, "metadata", "resourceVersion");
  return meta;
}

// When the certificate was issued and when it expires. Absent: it cannot be served.
struct Life {
  Time made, until;
};
std::optional<Life> LifeOf(const std::string& certificate, const std::string& key,
                           const std::string& authorities, const WebhookCertificateConfig& config) {
  if (!net::CheckCertificate(certificate, key, authorities).ok()) return std::nullopt;
  const auto facts = net::ReadCertificate(certificate);
  if (!facts.ok() || facts->dns_names != config.dns_names) return std::nullopt;
  return Life{facts->from + kSkew, facts->until};
}

std::optional<Life> LifeNow(const KeptCertificate& kept, const WebhookCertificateConfig& config) {
  return LifeOf(kept.certificate, kept.key, kept.authorities, config);
}

std::optional<Life> LifeNext(const KeptCertificate& kept, const WebhookCertificateConfig& config) {
  if (kept.next_certificate.empty()) return std::nullopt;
  return LifeOf(kept.next_certificate, kept.next_key, kept.authorities, config);
}

Time RenewAt(const Life& life) { return life.until - (life.until - life.made) / 3; }

Time ServeAt(const Life& next, const WebhookCertificateConfig& config, Time published_since) {
  return published_since + std::min(config.settling, (next.until - next.made) / 10);
}

}  // namespace

Result<KeptCertificate> Renewed(const KeptCertificate& kept, const WebhookCertificateConfig& config,
                                std::optional<Time> published_since, Time now) {
  const auto life = LifeNow(kept, config), next = LifeNext(kept, config);
  KeptCertificate wanted = kept;
  if (next && next->until > now) {
    // An expired certificate is worse than one that not all API servers trust yet.
    const bool ended = !life || life->until <= now;
    if (!ended && (!published_since || now < ServeAt(*next, config, *published_since)))
      return wanted;
    wanted.certificate = std::exchange(wanted.next_certificate, "");
    wanted.key = std::exchange(wanted.next_key, "");
    return wanted;
  }
  if (life && now < RenewAt(*life)) return wanted;
  NOS_ASSIGN(net::IssuedCertificate issued,
             net::IssueCertificate(config.dns_names, now - kSkew, now + config.lifetime));
  const std::vector<std::string> known = net::SplitCertificates(kept.authorities);
  wanted.authorities = issued.authority + (known.empty() ? "" : known.front());
  const bool serves = life && life->until > now;
  (serves ? wanted.next_certificate : wanted.certificate) = std::move(issued.certificate);
  (serves ? wanted.next_key : wanted.key) = std::move(issued.key);
  return wanted;
}

Time RenewalDue(const KeptCertificate& kept, const WebhookCertificateConfig& config,
                std::optional<Time> published_since) {
  const auto life = LifeNow(kept, config), next = LifeNext(kept, config);
  if (!life) return Time{};
  if (!next) return RenewAt(*life);
  return published_since ? std::min(ServeAt(*next, config, *published_since), life->until)
                         : life->until;
}

WebhookCertificate::WebhookCertificate(WebhookCertificateConfig config,
                                       const std::function<void()>& wake)
    : config_(std::move(config)),
      secrets_(kSecrets, &ReadSecret, Only(config_.ns, config_.secret, wake)) {
  const auto add = [&](const kube::Resource& kind, auto* read, const std::string& ns,
                       const std::string& name) {
    places_.push_back(
        {kind, ns, std::make_unique<kube::Cache<Configuration>>(kind, read, Only(ns, name, wake))});
  };
  if (!config_.configuration.empty()) {
    add(kValidating, &ReadConfiguration, "", config_.configuration);
    if (config_.mutates) add(kMutating, &ReadConfiguration, "", config_.configuration);
  }
  for (const std::string& ns : config_.config_map_namespaces) {
    add(kConfigMaps, &ReadConfigMap, ns, config_.config_map);
  }
}

Status WebhookCertificate::ReadSecret(JsonSource json, Secret& to) {
  NOS_ASSIGN(const Json object, TreeOf(json));
  to.meta = MetaOf(object);
  for (const Part& part : kParts) {
    const auto text = DecodeBase64(FindString(object, "data", part.name));
    to.kept.*part.text = text.ok() ? *text : "";  // it will be issued again
  }
  return Status::Ok();
}

Status WebhookCertificate::ReadConfiguration(JsonSource json, Configuration& to) {
  NOS_ASSIGN(const Json object, TreeOf(json));
  to.meta = MetaOf(object);
  const Json* webhooks = Find(object, "webhooks");
  if (webhooks == nullptr || !webhooks->is_array()) return Status::Ok();
  for (const Json& webhook : webhooks->get_array()) {
    to.bundles[std::string(FindString(webhook, "name"))] =
        FindString(webhook, "clientConfig", "caBundle");
  }
  return Status::Ok();
}

Status WebhookCertificate::ReadConfigMap(JsonSource json, Configuration& to) {
  NOS_ASSIGN(const Json object, TreeOf(json));
  to.meta = MetaOf(object);
  to.bundles[kBundleKey] = EncodeBase64(FindString(object, "data", kBundleKey));
  return Status::Ok();
}

std::shared_ptr<const WebhookCertificate::Configuration> WebhookCertificate::At(
    const Place& place) const {
  return place.cache->Get(
      kube::KeyOf(place.ns, place.ns.empty() ? config_.configuration : config_.config_map));
}

std::shared_ptr<const WebhookCertificate::Secret> WebhookCertificate::KeptSecret() const {
  return secrets_.Get(kube::KeyOf(config_.ns, config_.secret));
}

std::vector<const kube::Reflector*> WebhookCertificate::Reflectors() const {
  std::vector<const kube::Reflector*> all = {&secrets_.reflector()};
  for (const Place& place : places_) all.push_back(&place.cache->reflector());
  return all;
}

const KeptCertificate* WebhookCertificate::kept() const {
  return served_ == nullptr ? nullptr : &served_->kept;
}

void WebhookCertificate::Step(kube::Client& client, bool leads, Time now) {
  secrets_.Pump(client, now);
  bool synced = secrets_.synced();
  for (const Place& place : places_) {
    place.cache->Pump(client, now);
    synced = synced && place.cache->synced();
  }
  for (const kube::Reflector* reflector : Reflectors()) {
    error_ = reflector->last_error();
    if (!error_.ok()) break;
  }
  // A deleted or broken Secret does not replace the served certificate.
  if (const auto secret = KeptSecret(); secret != nullptr && secret != served_) {
    const KeptCertificate& kept = secret->kept;
    if (net::CheckCertificate(kept.certificate, kept.key, kept.authorities).ok()) served_ = secret;
  }
  retry_ = due_ = Time::max();
  if (!leads || !synced) return;
  const Status acted = Act(client, now);
  if (acted.ok()) {
    failures_ = 0;
    return;
  }
  error_ = acted;
  retry_ = now + BackOff().After(++failures_);
}

Status WebhookCertificate::Act(kube::Client& client, Time now) {
  const auto secret = KeptSecret();
  const KeptCertificate kept = secret == nullptr ? KeptCertificate() : secret->kept;
  const std::string bundle = EncodeBase64(kept.authorities);
  std::vector<std::pair<const Place*, std::shared_ptr<const Configuration>>> outdated;
  for (const Place& place : places_) {
    const auto configuration = At(place);
    const bool knows = configuration == nullptr ||
                       std::ranges::all_of(configuration->bundles, [&](const auto& webhook) {
                         return webhook.second == bundle;
                       });
    if (!knows) outdated.emplace_back(&place, configuration);
  }
  const bool trusted = outdated.empty();
  if (!trusted || bundle != published_bundle_) published_since_.reset();
  published_bundle_ = bundle;
  if (trusted && !published_since_) published_since_ = now;
  NOS_ASSIGN(const KeptCertificate wanted, Renewed(kept, config_, published_since_, now));
  if (wanted != kept) return Keep(client, secret.get(), wanted);
  for (const auto& [place, configuration] : outdated) {
    NOS_RETURN_IF_ERROR(PublishBundle(client, *place, *configuration, kept.authorities));
  }
  if (!trusted) return Status::Ok();
  due_ = RenewalDue(kept, config_, published_since_);
  return Status::Ok();
}

// The watch shows the result, also if another replica was faster.
Status WebhookCertificate::Keep(kube::Client& client, const Secret* before,
                                const KeptCertificate& wanted) {
  JsonObject data;
  for (const Part& part : kParts) {
    const std::string& text = wanted.*part.text;
    if (!text.empty()) data[part.name] = EncodeBase64(text);
    if (text.empty() && before != nullptr) data[part.name] = nullptr;
  }
  Log(LogLevel::kInfo, "renewing serving certificate", {{"secret", config_.secret}});
  Status written;
  if (before == nullptr) {
    const Json secret{{"apiVersion", "v1"},
                      {"kind", "Secret"},
                      {"type", "kubernetes.io/tls"},
                      {"metadata", {{"namespace", config_.ns}, {"name", config_.secret}}},
                      {"data", std::move(data)}};
    written = client.Create(kSecrets, config_.ns, secret).status();
  } else {
    const Json patch{{"metadata", {{"resourceVersion", before->meta.resource_version}}},
                     {"data", std::move(data)}};
    written =
        client.Patch(kSecrets, config_.ns, config_.secret, kube::PatchType::kMerge, patch).status();
  }
  const bool other = written.code() == Code::kConflict || written.code() == Code::kAlreadyExists;
  return other ? Status::Ok() : written.Within("Secret " + config_.secret);
}

Status WebhookCertificate::PublishBundle(kube::Client& client, const Place& place,
                                         const Configuration& configuration,
                                         const std::string& authorities) {
  Json patch;
  if (place.kind.kind == kConfigMaps.kind) {
    patch = {{"data", {{kBundleKey, authorities}}}};
  } else {
    JsonArray webhooks;
    for (const auto& [name, known] : configuration.bundles) {
      webhooks.emplace_back(
          JsonObject{{"name", name}, {"clientConfig", {{"caBundle", EncodeBase64(authorities)}}}});
    }
    patch = {{"webhooks", std::move(webhooks)}};
  }
  return client
      .Patch(place.kind, place.ns, configuration.meta.name, kube::PatchType::kStrategic, patch)
      .status()
      .Within(place.kind.kind + " " + configuration.meta.name);
}

Time WebhookCertificate::NextDue() const {
  Time next = std::min(retry_, due_);
  for (const kube::Reflector* reflector : Reflectors()) next = std::min(next, reflector->NextDue());
  return next;
}

}  // namespace nos::controllers
