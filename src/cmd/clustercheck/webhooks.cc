#include <fmt/format.h>

#include <algorithm>

#include "cmd/clustercheck/topics.h"

namespace nos::cmd {
namespace {

bool HasReadyEndpoint(const Snapshot& snapshot, const WebhookFacts& webhook) {
  return std::ranges::any_of(snapshot.endpoints.items, [&](const EndpointFacts& slice) {
    return slice.ns == webhook.service_ns && slice.service == webhook.service && slice.ready > 0;
  });
}

// True if the operator is started with --webhook.
bool ExpectsWebhook(const Snapshot& snapshot) {
  return std::ranges::any_of(snapshot.Running("operator"), [](const WorkloadFacts* one) {
    return std::ranges::any_of(one->containers, [](const ContainerFacts& container) {
      return std::ranges::find(container.arguments, "--webhook") != container.arguments.end();
    });
  });
}

}  // namespace

void CheckWebhooks(const Snapshot& snapshot, Findings& findings) {
  findings.Begin("Webhooks");
  if (!snapshot.webhooks.status.ok()) {
    return findings.Unread("WebhookConfiguration", "webhook configurations",
                           snapshot.webhooks.status);
  }
  const auto& webhooks = snapshot.webhooks.items;
  const bool expected = ExpectsWebhook(snapshot);
  if (webhooks.empty() && !expected) {
    return findings.NotChecked("WebhookConfiguration", "no webhook of nos is configured");
  }
  if (webhooks.empty()) {
    return findings.Fail("WebhookConfiguration",
                         "the operator serves a webhook, and no configuration names it",
                         "install the chart's ValidatingWebhookConfiguration again: helm upgrade");
  }
  findings.Ok("WebhookConfiguration", Count(webhooks.size(), "webhook") + " configured");

  std::vector<std::string> without_ca, silent, refusing;
  for (const WebhookFacts& webhook : webhooks) {
    const std::string name = fmt::format("{}/{}", webhook.configuration, webhook.name);
    if (!webhook.has_ca) without_ca.push_back(name);
    if (webhook.service.empty() || HasReadyEndpoint(snapshot, webhook)) continue;
    silent.push_back(fmt::format("{} (Service {}/{})", name, webhook.service_ns, webhook.service));
    if (webhook.failure_policy == "Fail") refusing.push_back(webhook.name);
  }
  findings.FailIfAny(
      "WebhookCertificate", without_ca, "the certificate authority is missing",
      "the operator's leader writes it: kubectl -n NAMESPACE logs deploy/nos-operator has the "
      "reason if it cannot",
      "the certificate authority is there");
  if (!snapshot.endpoints.status.ok()) {
    return findings.Unread("WebhookEndpoints", "EndpointSlices", snapshot.endpoints.status);
  }
  std::string effect = "no ready pod answers the webhook";
  if (!refusing.empty()) effect += "; requests that need it are refused";
  findings.FailIfAny("WebhookEndpoints", silent, effect,
                     "start the operator: kubectl -n NAMESPACE describe deploy/nos-operator",
                     "ready pods answer");
}

}  // namespace nos::cmd
