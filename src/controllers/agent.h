// The agent of one node: offers its MIG devices to the kubelet, cuts the GPUs as the node's spec
// asks, and reports what is there.
//
// One device operation a call, everything observed afresh before it. An instance is destroyed only
// after it has been withdrawn from the kubelet's offer, the node object shows that (or a time has
// passed), and then neither the kubelet's pod-resources nor a pod bound to this node needs it. The
// plan id is acknowledged when the plan is applied or has come to an end otherwise; what could not
// be applied is in cluster::kPlanResult and in an Event. One owner thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controllers/reconciler.h"
#include "device/actuator.h"
#include "device/backend.h"
#include "gpu/catalogue.h"
#include "kube/event_recorder.h"
#include "kubelet/device_plugin.h"
#include "kubelet/pod_resources.h"

namespace nos::controllers {

struct AgentConfig {
  // Looks at devices and kubelet this often even if no event calls: neither of them notifies.
  Duration poll = std::chrono::seconds(10);
  // How long to wait for the node's allocatable to show a withdrawal before going on without.
  Duration withdraw_timeout = std::chrono::seconds(15);
  // And then still, for schedulers that have not seen it yet.
  Duration settle = std::chrono::milliseconds(500);
  // A failing operation is retried with growing pauses; after so many failures the plan counts as
  // ended without it (retries go on).
  int failures_before_giving_up = 5;
  Duration first_pause = std::chrono::milliseconds(500);
  Duration longest_pause = std::chrono::seconds(60);
};

class Agent final : public Reconciler {
 public:
  // All references must outlive this.
  Agent(AgentConfig config, std::string node, const gpu::Catalogue& catalogue,
        device::Backend& backend, kubelet::PodResources& pod_resources,
        kubelet::DevicePlugin& device_plugin);

  // Key: the node's name. Needs a view of this node and of the pods bound to it (ForNode).
  Outcome Reconcile(const std::string& key, const View& view, kube::Client& client,
                    const Clock& clock) override;
};

}  // namespace nos::controllers
