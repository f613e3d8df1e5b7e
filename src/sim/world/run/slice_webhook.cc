#include "sim/world/run/slice_webhook.h"

#include <algorithm>

namespace nos::sim {
namespace {

constexpr std::string_view kNeeds = "nos.nebuly.com/need-";

// The chart's matchConditions.
bool AsksByNeed(const Json& pod) {
  const Json* annotations = Find(pod, "metadata", "annotations");
  return annotations != nullptr && annotations->is_object() &&
         std::ranges::any_of(annotations->get_object(), [](const auto& annotation) {
           const std::string_view key(annotation.key().data(), annotation.key().size());
           return key.starts_with(kNeeds);
         });
}

// In process a list completes within two calls of Pump, and a watch delivers everything in one.
template <typename T>
bool Refresh(kube::Cache<T>& cache, kube::Client& client, Time now) {
  cache.Pump(client, now);
  if (!cache.synced()) cache.Pump(client, now);
  return cache.synced();
}

}  // namespace

SliceWebhook::SliceWebhook(const gpu::Catalogue& catalogue, const Clock& clock,
                           kube::Transport& api)
    : clock_(clock),
      client_(api),
      nodes_(kube::kNodes, cluster::ReadNode),
      pods_(kube::kPods, cluster::ReadPod),
      admission_(catalogue, clock, [this] { return Look(); }) {}

controllers::SliceAdmission::Cluster SliceWebhook::Look() {
  const std::scoped_lock lock(mutex_);
  const Time now = clock_.Now();
  const bool nodes = Refresh(nodes_, client_, now), pods = Refresh(pods_, client_, now);
  if (!nodes || !pods) return {};
  return {nodes_.Snapshot(), pods_.Snapshot()};
}

PodWebhook SliceWebhook::Hook() {
  return {"slices.nos.nebuly.com", AsksByNeed, [this](const std::string& review) {
            controllers::AdmissionAnswer answer = admission_.Review(review);
            return std::pair(answer.code, std::move(answer.body));
          }};
}

}  // namespace nos::sim
