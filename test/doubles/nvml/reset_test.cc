// GPUs that change MIG mode with a reset: the real backend, with doubles of the driver and
// nvidia-smi.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "device/nvml_backend.h"
#include "node.h"

namespace nos::device {
namespace {

using nvml_double::NvmlNode;
using testing::IsEmpty;

JsonObject Gpu(const char* model, bool mig) { return {{"model", model}, {"mig", mig}}; }

struct Machine {
  explicit Machine(JsonArray gpus) : node(JsonObject{{"node", "n1"}, {"gpus", std::move(gpus)}}) {}
  GpuInfo Info(int gpu) { return backend.ListGpus()->at(static_cast<size_t>(gpu)); }

  NvmlNode node;
  std::unique_ptr<NvmlLibrary> library = NvmlLibrary::Open(NvmlNode::library()).value();
  GpuHealth board;
  NvmlEvents events{*library, board};
  NvmlBackend backend{*library, gpu::Catalogue::Builtin(), &events, {NvmlNode::nvidia_smi()}};
};

TEST(NvmlReset, ActivatesPendingMode) {
  Machine m({Gpu("A100-40GB", false), Gpu("A100-40GB", false)});
  ASSERT_TRUE(m.backend.SetComputeMode(1, ComputeMode::kExclusiveProcess).ok());
  EXPECT_EQ(m.backend.EnableMig(0).code(), Code::kPermission);
  EXPECT_FALSE(m.Info(0).mig_enabled);
  EXPECT_TRUE(m.Info(0).mig_pending);
  const Status reset = m.backend.ResetGpu(0);
  ASSERT_TRUE(reset.ok()) << reset.ToString();
  EXPECT_TRUE(m.Info(0).mig_enabled);
  EXPECT_TRUE(m.backend.Create(0, "3g.20gb", 4).ok());
  EXPECT_FALSE(m.Info(1).mig_enabled) << "the other one is not touched";
  EXPECT_EQ(m.Info(1).compute_mode, ComputeMode::kExclusiveProcess);
}

// This process's own sessions, including the event watcher's, would block the reset.
TEST(NvmlReset, SuspendsEventWatcherDuringReset) {
  Machine m({Gpu("A100-40GB", false)});
  ASSERT_TRUE(m.events.Start().ok());
  (void)m.backend.MeasureGpu(0);
  m.board.Add({HealthCondition::Kind::kXid, 0, {}, 79, "it fell off"});
  EXPECT_EQ(m.backend.EnableMig(0).code(), Code::kPermission);
  const Status reset = m.backend.ResetGpu(0);
  EXPECT_TRUE(reset.ok()) << reset.ToString();
  EXPECT_TRUE(m.Info(0).mig_enabled);
  EXPECT_THAT(m.board.Conditions(), IsEmpty()) << "a reset cures it";
}

TEST(NvmlReset, ReportsOtherClientHoldingGpu) {
  Machine m({Gpu("A100-40GB", false)});
  EXPECT_EQ(m.backend.EnableMig(0).code(), Code::kPermission);
  m.node.EditGpu(0, [](JsonObject& gpu) { gpu["inUse"] = true; });
  const Status held = m.backend.ResetGpu(0);
  EXPECT_EQ(held.code(), Code::kUnavailable);
  const std::string uuid = m.Info(0).uuid;
  EXPECT_EQ(held.message(),
            "GPU 0: " + NvmlNode::nvidia_smi() + " --gpu-reset -i " + uuid +
                " failed (exit status 255): The following GPUs could not be reset:   GPU " + uuid +
                ": In use by another client  1 device is currently being used by one or more other "
                "processes (e.g., Fabric Manager, CUDA application, graphics application such as "
                "an X server, or a monitoring application such as another instance of "
                "nvidia-smi).");
  EXPECT_FALSE(m.Info(0).mig_enabled);
  {
    NvmlSession session(*m.library);  // such as DCGM's
    ASSERT_TRUE(session.Open().ok());
    m.node.EditGpu(0, [](JsonObject& gpu) { gpu["inUse"] = false; });
    EXPECT_EQ(m.backend.ResetGpu(0).code(), Code::kUnavailable);
  }
  EXPECT_TRUE(m.backend.ResetGpu(0).ok());
  EXPECT_TRUE(m.Info(0).mig_enabled);
}

TEST(NvmlReset, ReportsUnsupportedReset) {
  Machine m({Gpu("A100-40GB", false), Gpu("A100-40GB", false)});
  m.node.EditGpu(0, [](JsonObject& gpu) {
    gpu["noReset"] = "Resetting GPU is not supported:\nit is linked to others";
  });
  const Status linked = m.backend.ResetGpu(0);
  EXPECT_EQ(linked.code(), Code::kUnimplemented);
  EXPECT_EQ(linked.message(),
            "GPU 0: " + NvmlNode::nvidia_smi() + " --gpu-reset -i " + m.Info(0).uuid +
                " failed (exit status 3): Resetting GPU is not supported: it is linked to others");
  m.node.Edit([](Json& state) { state.as_object()["root"] = false; });
  EXPECT_EQ(m.backend.ResetGpu(1).code(), Code::kPermission);
  EXPECT_EQ(m.backend.ResetGpu(7).code(), Code::kNotFound);
}

TEST(NvmlReset, ReportsMissingOrHungProgram) {
  Machine m({Gpu("A100-40GB", false)});
  NvmlBackend without(*m.library, gpu::Catalogue::Builtin(), nullptr, {"/nowhere/nvidia-smi"});
  const Status none = without.ResetGpu(0);
  EXPECT_EQ(none.code(), Code::kPermission);
  EXPECT_EQ(
      none.message(),
      "GPU 0: cannot start /nowhere/nvidia-smi: No such file or directory; NVIDIA's container "
      "runtime puts it into the agent's container: set "
      "gpuPartitioner.migAgent.runtimeClassName=nvidia, or make that runtime the node's "
      "default");
  const std::string slow = m.node.state_path() + ".sh";
  {
    std::ofstream script(slow);
    script << "#!/bin/sh\nexec tail -f /dev/null\n";
  }
  std::filesystem::permissions(slow, std::filesystem::perms::owner_all);
  NvmlBackend hangs(*m.library, gpu::Catalogue::Builtin(), nullptr,
                    {slow, std::chrono::milliseconds(200)});
  const Status late = hangs.ResetGpu(0);
  EXPECT_EQ(late.code(), Code::kDeadline);
  EXPECT_EQ(late.message(), "GPU 0: " + slow + " has not ended within 0.2 s");
  EXPECT_EQ(ResetGpu({}, "--id=0; reboot").code(), Code::kInvalid);
}

TEST(NvmlReset, CancelsPendingMode) {
  Machine m({Gpu("A100-40GB", false), Gpu("A100-40GB", true)});
  EXPECT_EQ(m.backend.EnableMig(0).code(), Code::kPermission);
  EXPECT_EQ(m.backend.DisableMig(1).code(), Code::kPermission);
  EXPECT_TRUE(m.backend.DisableMig(0).ok());
  EXPECT_TRUE(m.backend.EnableMig(1).ok());
  EXPECT_FALSE(m.Info(0).mig_pending);
  EXPECT_TRUE(m.Info(1).mig_pending);
  m.node.Reboot();
  EXPECT_FALSE(m.Info(0).mig_enabled);
  EXPECT_TRUE(m.Info(1).mig_enabled);
}

TEST(NvmlReset, AmpereKeepsModeOverReboots) {
  Machine m({Gpu("A100-40GB", false), Gpu("H200-141GB", false)});
  EXPECT_EQ(m.backend.EnableMig(0).code(), Code::kPermission);
  EXPECT_TRUE(m.backend.EnableMig(1).ok());
  m.node.Reboot();
  EXPECT_TRUE(m.Info(0).mig_enabled) << "a reboot is a reset, too";
  EXPECT_FALSE(m.Info(1).mig_enabled);
  m.node.Reboot();
  EXPECT_TRUE(m.Info(0).mig_enabled);
}

}  // namespace
}  // namespace nos::device
