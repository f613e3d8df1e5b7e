// The operator's webhook for pods with GPU requirements, in the virtual cluster: the code of
// controllers/slice_admission.h, which reads nodes and pods through the world's API server.
//
//   SliceWebhook webhook(catalogue, clock, api);
//   api.SetPodWebhook(webhook.Hook());
#pragma once

#include <mutex>

#include "controllers/slice_admission.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "sim/apiserver/server/webhook.h"

namespace nos::sim {

// Thread-safe.
class SliceWebhook {
 public:
  // All arguments must outlive the object. It calls `api` only once a pod with GPU requirements is
  // created.
  SliceWebhook(const gpu::Catalogue& catalogue, const Clock& clock, kube::Transport& api);
  // REQUIRES: the object outlives the hook.
  PodWebhook Hook();

 private:
  controllers::SliceAdmission::Cluster Look();

  const Clock& clock_;
  kube::Client client_;
  std::mutex mutex_;  // guards the caches
  kube::Cache<cluster::Node> nodes_;
  kube::Cache<cluster::Pod> pods_;
  controllers::SliceAdmission admission_;
};

}  // namespace nos::sim
