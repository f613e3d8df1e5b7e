// The real NVML backend over a doubled driver that fails, lies, and returns nonsense.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <set>

#include "device/actuator.h"
#include "device/nvml_backend.h"
#include "device/nvml_gpus.h"
#include "device/nvml_status.h"
#include "node.h"

namespace nos::device {
namespace {

using nvml_double::NvmlNode;
using Names = std::vector<std::string>;

class NvmlFaults : public testing::Test {
 protected:
  static JsonObject Scene() {
    return {{"node", "n1"},
            {"gpus", JsonArray{{{"model", "A100-40GB"}}, {{"model", "A100-40GB"}}}}};
  }
  bool Says(const Status& status, std::string_view part) {
    return status.message().find(part) != std::string::npos;
  }
  // Runs in another process, which the fault kills.
  int CreateInAnotherProcess(const std::string& profile, uint8_t start) {
    const pid_t child = fork();
    if (child == 0) {
      const auto own = NvmlLibrary::Open(NvmlNode::library()).value();
      NvmlBackend backend(*own, gpu::Catalogue::Builtin());
      _exit(backend.Create(0, profile, start).ok() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }
  void UseCompute(int gpu, bool in_use) {
    node_.EditGpu(gpu, [&](JsonObject& state) {
      for (Json& instance : state["instances"].as_array()) {
        for (Json& one : instance.at("computeInstances").as_array()) {
          one.as_object()["inUse"] = in_use;
        }
      }
    });
  }

  NvmlNode node_{Scene()};
  std::unique_ptr<NvmlLibrary> library_ = NvmlLibrary::Open(NvmlNode::library()).value();
  NvmlBackend backend_{*library_, gpu::Catalogue::Builtin()};
};

TEST_F(NvmlFaults, DestroysInstanceInUseOnlyAfterRelease) {
  const GpuInstance made = backend_.Create(0, "2g.10gb", 0).value();
  UseCompute(0, true);
  const Status held = backend_.Destroy(0, made.id);
  EXPECT_EQ(held.code(), Code::kUnavailable);
  EXPECT_TRUE(Says(held, "NVML_ERROR_IN_USE: a process")) << held.message();
  EXPECT_EQ(node_.Layout(0), Names{"2g.10gb@0"});
  UseCompute(0, false);
  EXPECT_TRUE(backend_.Destroy(0, made.id).ok());
}

// A failed creation is rolled back, whichever call failed and in whatever way.
TEST_F(NvmlFaults, FailedCreationIsRolledBack) {
  const std::pair<unsigned, Code> codes[] = {
      {2, Code::kInvalid},      {3, Code::kUnimplemented}, {4, Code::kPermission},
      {15, Code::kUnavailable}, {16, Code::kPermission},   {17, Code::kPermission},
      {18, Code::kUnavailable}, {19, Code::kUnavailable},  {20, Code::kUnavailable},
      {23, Code::kExhausted},   {999, Code::kInternal},    {4242, Code::kInternal},
      {10, Code::kDeadline}};
  for (const char* call :
       {"nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceCreateComputeInstance"}) {
    for (const auto& [error, code] : codes) {
      node_.Fault({{"call", call}, {"error", error}});
      const Status status = backend_.Create(0, "1g.5gb", 3).status();
      EXPECT_EQ(status.code(), code) << call << " " << error << ": " << status.message();
      EXPECT_TRUE(Says(status, call)) << status.message();
      EXPECT_TRUE(node_.Layout(0).empty()) << call << " " << error;
    }
  }
  EXPECT_TRUE(backend_.Create(0, "1g.5gb", 3).ok());
}

TEST_F(NvmlFaults, ToleratesFailureOfEveryReadCall) {
  ASSERT_TRUE(backend_.Create(0, "1g.5gb", 0).ok());
  for (const char* call :
       {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID", "nvmlDeviceGetName",
        "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMigMode",
        "nvmlDeviceGetGpuInstances", "nvmlGpuInstanceGetInfo",
        "nvmlGpuInstanceGetComputeInstanceProfileInfo", "nvmlGpuInstanceGetComputeInstances",
        "nvmlComputeInstanceGetInfo_v2"}) {
    node_.Fault({{"call", call}, {"gpu", 0}, {"error", 999}});
    const auto listed = backend_.ListInstances(0);
    EXPECT_EQ(listed.status().code(), Code::kInternal) << call;
    EXPECT_TRUE(Says(listed.status(), call)) << listed.status().message();
    EXPECT_EQ(backend_.ListInstances(0)->size(), 1u) << "the next look is right again";
  }
}

TEST_F(NvmlFaults, ToleratesUnreadableMemory) {
  node_.Fault({{"call", "nvmlDeviceGetMemoryInfo"}, {"error", 4}, {"times", 99}});
  EXPECT_EQ((*backend_.ListGpus())[0].memory_mib, 0);
  EXPECT_TRUE(backend_.Create(0, "1g.5gb", 0).ok());
}

// All processes of the node share one state, like a driver's.
TEST_F(NvmlFaults, ProcessesShareTheDriver) {
  std::array<pid_t, 7> children{};
  for (size_t start = 0; start < children.size(); ++start) {
    children[start] = fork();
    if (children[start] != 0) continue;
    const auto own = NvmlLibrary::Open(NvmlNode::library()).value();
    NvmlBackend backend(*own, gpu::Catalogue::Builtin());
    _exit(backend.Create(0, "1g.5gb", static_cast<uint8_t>(start)).ok() ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  const auto listed = backend_.ListInstances(0);
  std::set<std::string> uuids;
  for (const GpuInstance& instance : *listed) uuids.insert(instance.uuid);
  EXPECT_EQ(uuids.size(), 7u);
}

TEST_F(NvmlFaults, LatencyFollowsEffect) {
  node_.Edit([](Json& state) {
    state.as_object()["latencyMs"] = {{"nvmlGpuInstanceCreateComputeInstance", 20}};
  });
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(backend_.Create(0, "1g.5gb", 0).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(20));
}

TEST_F(NvmlFaults, ReportsFailedRollback) {
  node_.Fault({{"call", "nvmlGpuInstanceCreateComputeInstance"}, {"error", 23}});
  node_.Fault({{"call", "nvmlGpuInstanceDestroy"}, {"error", 19}});
  const Status status = backend_.Create(0, "1g.5gb", 3).status();
  EXPECT_EQ(status.code(), Code::kExhausted);
  EXPECT_TRUE(Says(status, "the incomplete GPU instance remains")) << status.message();
  const auto left = backend_.ListInstances(0);
  ASSERT_EQ(left->size(), 1u);
  EXPECT_FALSE(left->front().complete);
  EXPECT_TRUE(left->front().uuid.empty());
  EXPECT_TRUE(backend_.Destroy(0, left->front().id).ok());
}

TEST_F(NvmlFaults, VerifiesReportedSuccessByListing) {
  node_.Fault({{"call", "nvmlGpuInstanceCreateComputeInstance"}, {"effect", "lie"}});
  const Status unmade = backend_.Create(0, "1g.5gb", 0).status();
  EXPECT_EQ(unmade.code(), Code::kUnavailable);
  EXPECT_TRUE(Says(unmade, "does not list it")) << unmade.message();
  const GpuInstance made = backend_.Create(1, "1g.5gb", 0).value();
  node_.Fault({{"call", "nvmlGpuInstanceDestroy"}, {"effect", "lie"}});
  const Status kept = backend_.Destroy(1, made.id);
  EXPECT_EQ(kept.code(), Code::kUnavailable);
  EXPECT_TRUE(Says(kept, "still lists it")) << kept.message();
}

TEST_F(NvmlFaults, RepairsCrashBetweenCreateCalls) {
  node_.Fault({{"call", "nvmlGpuInstanceCreateComputeInstance"}, {"effect", "exit"}});
  EXPECT_EQ(CreateInAnotherProcess("3g.20gb", 4), 137);
  EXPECT_EQ(node_.Layout(0), Names{"3g.20gb@4!"});
  const gpu::Model& model = *gpu::Catalogue::Builtin().FindByName("A100-40GB");
  const Target target{0, {model.ParsePlacement("3g.20gb@4").value()}};
  for (int i = 0; i < 3; ++i) {
    const ObservedGpu observed{0, &model, true, backend_.ListInstances(0).value()};
    const Progress progress = NextOperation({&target, 1}, {&observed, 1}, {});
    if (!progress.next) break;
    EXPECT_TRUE(Apply(*progress.next, backend_).ok());
  }
  EXPECT_EQ(node_.Layout(0), Names{"3g.20gb@4"});
}

TEST_F(NvmlFaults, FinishesInterruptedDestroy) {
  ASSERT_TRUE(backend_.Create(0, "7g.40gb", 0).ok());
  node_.Fault({{"call", "nvmlGpuInstanceDestroy"}, {"error", 19}});
  const uint32_t id = backend_.ListInstances(0)->front().id;
  EXPECT_EQ(backend_.Destroy(0, id).code(), Code::kUnavailable);
  EXPECT_EQ(node_.Layout(0), Names{"7g.40gb@0!"});
  EXPECT_TRUE(backend_.Destroy(0, id).ok());
}

TEST_F(NvmlFaults, DoesNotConfuseUnreadableGpuAfterIndexChange) {
  const std::string second = backend_.ListGpus()->at(1).uuid;
  JsonObject gone;
  node_.Edit([&](Json& state) {  // the former second GPU is GPU 0 now
    JsonArray& gpus = state.at("gpus").as_array();
    gone = gpus.front().as_object();
    gpus.erase(gpus.begin());
    gpus.front().as_object()["uuid"] = second;
  });
  ASSERT_EQ(backend_.ListGpus()->at(0).uuid, second);
  gone["lost"] = true;  // and the removed GPU returns as that one
  node_.Edit([&](Json& state) {
    JsonArray& gpus = state.at("gpus").as_array();
    gpus.insert(gpus.begin(), gone);
  });
  const auto infos = backend_.ListGpus().value();
  ASSERT_EQ(infos.size(), 2U);
  EXPECT_NE(infos[0].problem, "");
  EXPECT_EQ(infos[0].uuid, "");
  EXPECT_EQ(infos[0].index, 0);
  EXPECT_EQ(infos[1].uuid, second);
  EXPECT_EQ(backend_.ListGpus()->at(0).uuid, "") << "nor later";
}

TEST_F(NvmlFaults, ListsLostGpuAndServesOthers) {
  ASSERT_TRUE(backend_.ListGpus().ok());
  node_.EditGpu(1, [](JsonObject& gpu) { gpu["lost"] = true; });
  const auto infos = backend_.ListGpus();
  ASSERT_EQ(infos->size(), 2u);
  EXPECT_EQ((*infos)[0].problem, "");
  EXPECT_NE((*infos)[1].problem.find("GPU_IS_LOST"), std::string::npos) << (*infos)[1].problem;
  EXPECT_EQ((*infos)[1].product, "NVIDIA A100-40GB") << "as it was known";
  EXPECT_EQ(backend_.ListInstances(1).status().code(), Code::kUnavailable);
  EXPECT_EQ(backend_.Create(1, "1g.5gb", 0).status().code(), Code::kUnavailable);
  EXPECT_TRUE(backend_.Create(0, "1g.5gb", 0).ok());
  node_.Reboot();
  EXPECT_EQ((*backend_.ListGpus())[1].problem, "");
  EXPECT_TRUE(backend_.Create(1, "1g.5gb", 0).ok());
}

TEST_F(NvmlFaults, ReconnectsAfterDriverReload) {
  EXPECT_FALSE(backend_.outdated());
  node_.Fault({{"call", "nvmlInit_v2"}, {"error", 18}});
  const Status mismatch = backend_.ListGpus().status();
  EXPECT_EQ(mismatch.code(), Code::kUnavailable);
  EXPECT_TRUE(Says(mismatch, "different versions: reboot")) << mismatch.message();
  EXPECT_TRUE(backend_.outdated()) << "a new process loads the new library";
  node_.Fault({{"call", "nvmlInit_v2"}, {"error", 9}});
  EXPECT_TRUE(Says(backend_.ListGpus().status(), "kernel module is not loaded"));
  ASSERT_TRUE(backend_.ListGpus().ok());
  node_.Fault({{"call", "nvmlDeviceGetCount_v2"}, {"error", 1}});
  EXPECT_EQ(backend_.ListGpus().status().code(), Code::kUnavailable);
  EXPECT_TRUE(backend_.ListGpus().ok());
}

TEST_F(NvmlFaults, AgentNoticesReplacedDriverWhicheverCallSaysSo) {
  for (const char* call : {"nvmlInit_v2", "nvmlDeviceGetCount_v2"}) {
    GpuHealth health;
    NvmlGpus gpus(*library_, gpu::Catalogue::Builtin(), health);
    ASSERT_TRUE(gpus.Count().ok());
    EXPECT_FALSE(gpus.outdated());
    node_.Fault({{"call", call}, {"error", 18}});
    EXPECT_EQ(gpus.Count().status().code(), Code::kUnavailable) << call;
    EXPECT_TRUE(gpus.outdated()) << call;
  }
}

TEST_F(NvmlFaults, RefusesImpossibleCounts) {
  ASSERT_TRUE(backend_.Create(0, "1g.5gb", 0).ok());
  const JsonObject answers[] = {
      {{"call", "nvmlDeviceGetGpuInstances"}, {"gpu", 0}, {"count", 4000000000u}},
      {{"call", "nvmlGpuInstanceGetComputeInstances"}, {"gpu", 0}, {"count", 129}},
      {{"call", "nvmlGpuInstanceGetComputeInstanceProfileInfo"},
       {"gpu", 0},
       {"count", 4000000000u}},
      {{"call", "nvmlGpuInstanceGetInfo"}, {"gpu", 0}, {"start", 4294967295u}},
      {{"call", "nvmlGpuInstanceGetInfo"}, {"gpu", 0}, {"size", 0}},
      {{"call", "nvmlGpuInstanceGetInfo"}, {"gpu", 0}, {"start", 60}, {"size", 60}}};
  for (const JsonObject& answer : answers) {
    node_.Fault(answer);
    EXPECT_EQ(backend_.ListInstances(0).status().code(), Code::kInternal) << WriteJson(answer);
    EXPECT_TRUE(backend_.ListInstances(0).ok());
  }
  node_.Fault({{"call", "nvmlDeviceGetCount_v2"}, {"count", 4000000000u}});
  EXPECT_EQ(backend_.ListGpus().status().code(), Code::kInternal);
}

// Profiles are cached per session, so each case needs a new session.
TEST_F(NvmlFaults, RefusesImpossibleProfiles) {
  const JsonObject answers[] = {
      {{"call", "nvmlDeviceGetGpuInstanceProfileInfoV"}, {"count", 4000000000u}},
      {{"call", "nvmlDeviceGetGpuInstancePossiblePlacements_v2"}, {"count", 4000000000u}},
      {{"call", "nvmlDeviceGetGpuInstancePossiblePlacements_v2"}, {"after", 1}, {"start", 900}},
      {{"call", "nvmlDeviceGetGpuInstancePossiblePlacements_v2"}, {"after", 1}, {"size", 0}},
      {{"call", "nvmlDeviceGetGpuInstancePossiblePlacements_v2"},
       {"after", 1},
       {"size", 4000000000u}}};
  for (const JsonObject& answer : answers) {
    NvmlBackend fresh(*library_, gpu::Catalogue::Builtin());
    node_.Fault(answer);
    EXPECT_EQ(fresh.Create(0, "1g.5gb", 0).status().code(), Code::kInternal) << WriteJson(answer);
    EXPECT_TRUE(node_.Layout(0).empty());
    node_.ClearFaults();
  }
}

TEST_F(NvmlFaults, TruncatesAndSanitizesUnterminatedStrings) {
  node_.Fault({{"call", "nvmlDeviceGetName"}, {"gpu", 0}, {"unterminated", true}});
  node_.Fault({{"call", "nvmlDeviceGetUUID"}, {"gpu", 1}, {"unterminated", true}});
  node_.Fault({{"call", "nvmlSystemGetDriverVersion"}, {"unterminated", true}});
  const auto infos = backend_.ListGpus();
  EXPECT_EQ((*infos)[0].product, std::string(96, '?'));
  EXPECT_EQ((*infos)[1].uuid, std::string(96, '?'));
  EXPECT_EQ(backend_.DriverVersion(), std::string(80, '?'));
  node_.Fault({{"call", "nvmlDeviceGetGpuInstanceProfileInfoV"}, {"unterminated", true}});
  const auto profiles = backend_.ListProfiles(0);
  ASSERT_TRUE(profiles.ok());
  EXPECT_EQ(profiles->front().name, std::string(96, '?'));
  EXPECT_EQ(profiles->front().canonical, "1g.5gb") << "id and size say which it is";
}

TEST_F(NvmlFaults, MapsRenamedProfilesToCatalogueNames) {
  NvmlNode node(JsonObject{
      {"gpus", JsonArray{{{"model", "A100-80GB"},
                          {"renames", {{"3g.40gb", "3g.39gb"}, {"2g.20gb", "2g.19gb"}}}}}}});
  EXPECT_TRUE(backend_.Create(0, "3g.40gb", 4).ok());
  EXPECT_TRUE(backend_.Create(0, "2g.19gb", 0).ok()) << "no alias says so";
  const auto listed = backend_.ListInstances(0);
  EXPECT_EQ((*listed)[0].profile, "2g.20gb");
  EXPECT_EQ((*listed)[1].profile, "3g.40gb");
}

TEST_F(NvmlFaults, FindsUuidIfComputeInstanceReportsParentDevice) {
  const std::string uuid = backend_.Create(0, "1g.5gb", 2)->uuid;
  node_.EditGpu(0, [](JsonObject& gpu) { gpu["parentHandles"] = true; });
  EXPECT_EQ(backend_.ListInstances(0)->front().uuid, uuid);
  EXPECT_EQ(backend_.Create(0, "1g.5gb", 3)->uuid.substr(0, 4), "MIG-");
}

TEST_F(NvmlFaults, LeavesFurtherPartitionedInstanceAlone) {
  node_.EditGpu(0, [](JsonObject& gpu) {
    const JsonObject half{{"id", 0}, {"profile", 0}, {"slices", 1}};
    JsonObject other = half;
    other["id"] = 1;
    gpu["instances"] = JsonArray{{{"id", 2},
                                  {"profile", "3g.20gb"},
                                  {"start", 4},
                                  {"computeInstances", JsonArray{half, other}}}};
  });
  const auto listed = backend_.ListInstances(0);
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().profile, "1c.3g.20gb");
  EXPECT_TRUE(listed->front().complete);
  EXPECT_EQ(backend_.Destroy(0, 2).code(), Code::kInvalid);
  const gpu::Model& model = *gpu::Catalogue::Builtin().FindByName("A100-40GB");
  const ObservedGpu observed{0, &model, true, *listed};
  const Target nothing{0, {}};
  const Progress progress = NextOperation({&nothing, 1}, {&observed, 1}, {});
  EXPECT_FALSE(progress.next);
  EXPECT_EQ(progress.obstacles.at(0).code, "Foreign");
}

}  // namespace
}  // namespace nos::device
