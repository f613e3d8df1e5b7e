// An agent with two slices that may be in use.
#pragma once

#include "agent/loop/fixture_test.h"

namespace nos::agent {

inline constexpr const char* kSlice = "nvidia.com/mig-1g.5gb";

// Two slices on GPU 0.
class AgentUseTest : public AgentTest {
 protected:
  AgentUseTest()
      : first_(gpus_.Place(0, "1g.5gb", 0).value()), second_(gpus_.Place(0, "1g.5gb", 1).value()) {
    Run();
  }
  void Condition(const std::string& pod, const std::string& type, const std::string& status) {
    Json object = *api_.Find("pods", "ml/" + pod);
    object.at("status")
        .at("conditions")
        .get_array()
        .push_back(JsonObject{{"type", type}, {"status", status}});
    api_.Put(object);
  }
  // A plan that keeps only the free slice.
  void PlanWithoutTheHeld() {
    Plan("7", {{0, kubelet_.Holds(first_.uuid) ? "1g.5gb@1" : "1g.5gb@0"}});
  }
  // An init container of pod "a" runs with a slice. The pod's main container needs none.
  void AnInitContainerRuns() {
    api_.Put(BoundPod("a", "u1", JsonArray{Asking("init", "1")},
                      JsonArray{JsonObject{{"name", "main"}}}));
    ASSERT_TRUE(kubelet_.Admit("ml", "a", kSlice, "init").ok());
    Admitted("a");
    Condition("a", "Initialized", "False");
    Run();
  }
  // True if the node reports a layout of GPU 0.
  bool HasStatus() const {
    const Json& annotations = api_.Find("nodes", kNode)->at("metadata").at("annotations");
    return annotations.as_object().contains("nos.nebuly.com/status-layout-0");
  }
  // Makes the plugin behave like NVIDIA's.
  void PluginThatCannotWithdraw() {
    kubelet_.withdraws = false;
    kubelet_.on_offer = nullptr;
    expect_withdrawn_ = false;
  }

  device::GpuInstance first_, second_;
};

}  // namespace nos::agent
