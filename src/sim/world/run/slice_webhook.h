// The operator's webhook for pods that ask for a slice by need, in the virtual cluster: the very
// code of controllers/slice_admission.h, which looks at nodes and pods by the world's API server.
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
  // All must outlive it. Nothing is asked of `api` before somebody asks by need.
  SliceWebhook(const gpu::Catalogue& catalogue, const Clock& clock, kube::Transport& api);
  // May be used as long as this is there.
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
