// A node with two H100, an API server with claims, the files of a host, and a claim driver that may
// crash at any time.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/claims/driver.h"
#include "base/file.h"
#include "device/sim_gpus.h"
#include "kube/testing/fake_api.h"

namespace nos::agent {

inline constexpr const char* kClaimNode = "gpu-1";

class ClaimTest : public ::testing::Test {
 protected:
  ClaimTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "nos-claims-XXXXXX";
    root_ = mkdtemp(pattern.data());
    File("proc/devices", "Character devices:\n195 nvidia\n235 nvidia-caps\n511 nvidia-uvm\n");
    File("root/usr/lib/libcuda.so.550.54.15");
    std::filesystem::create_symlink("libcuda.so.550.54.15", root_ / "root/usr/lib/libcuda.so.1");
    for (int gpu = 0; gpu < 2; ++gpu) {
      const std::string number = std::to_string(gpu);
      File("proc/driver/nvidia/gpus/0000:0" + number + ":00.0/information",
           "GPU UUID: " + gpus_.Info(gpu).uuid + "\nDevice Minor: " + number + "\n");
      for (int instance = 0; instance < 15; ++instance) {
        const std::string folder = "proc/driver/nvidia/capabilities/gpu" + number + "/mig/gi" +
                                   std::to_string(instance) + "/";
        const int minor = 100 * gpu + 2 * instance;
        File(folder + "access", "DeviceFileMinor: " + std::to_string(minor) + "\n");
        File(folder + "ci0/access", "DeviceFileMinor: " + std::to_string(minor + 1) + "\n");
      }
    }
    Restart();
  }
  ~ClaimTest() override { std::filesystem::remove_all(root_); }

  void File(const std::string& path, const std::string& text = "") const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  ClaimDriverOptions Options() const {
    ClaimDriverOptions options;
    options.node = kClaimNode;
    options.checkpoint = root_ / "claims.json";
    options.cdi_folder = root_ / "cdi";
    options.host = {root_ / "root", "/", root_ / "proc", root_ / "dev"};
    return options;
  }
  ClaimCollaborators Collaborators() {
    ClaimCollaborators others;
    others.call = [this](const std::function<void(kube::Client&)>& call) {
      kube::Client client(api_);
      call(client);
    };
    others.run = [](int, const std::function<void()>& task) {
      task();
      return true;
    };
    others.backend = [this](int) -> device::Backend& { return gpus_; };
    others.held = [this] { return Result<std::set<std::string>>(held_); };
    others.wake = [] {};
    others.daemons = mps_;
    return others;
  }
  std::vector<dra::GpuOfDriver> Facts() {
    std::vector<dra::GpuOfDriver> facts;
    const std::vector<device::GpuInfo> infos = gpus_.ListGpus().value();
    for (const device::GpuInfo& info : infos) {
      dra::GpuOfDriver gpu;
      gpu.index = info.index;
      gpu.uuid = info.uuid;
      gpu.product = info.product;
      gpu.model = model_;
      gpu.shares = share_facts_;
      facts.push_back(std::move(gpu));
    }
    return facts;
  }
  // The agent starts again.
  void Restart() {
    driver_ = std::make_unique<ClaimDriver>(Options(), Collaborators());
    const Status loaded = driver_->Load();
    EXPECT_TRUE(loaded.ok()) << loaded.message();
    driver_->SetGpus(Facts());
  }

  static std::string Device(int gpu, const std::string& profile, int start) {
    const gpu::Model* model = gpu::Catalogue::Builtin().FindByName("H100-80GB");
    return dra::DeviceNameOf(gpu, model->profile(*model->FindProfile(profile)),
                             static_cast<uint8_t>(start));
  }
  static kubelet::ClaimReference Reference(const std::string& name) {
    return {"team", name, name + "-uid"};
  }
  // Stores a claim as a scheduler allocates it. `share_gib`: memory of each device, which is
  // shared; -1: it is not.
  void Allocate(const std::string& name, const std::vector<std::string>& devices,
                const std::string& driver = "gpu.nos.nebuly.com", int share_gib = -1) {
    JsonArray results;
    for (const std::string& device : devices) {
      JsonObject result{{"request", "slice"},
                        {"driver", driver},
                        {"pool", kClaimNode},
                        {"device", device},
                        {"bindingConditions", JsonArray{"nos.nebuly.com/Created"}}};
      if (share_gib >= 0) {
        result["shareID"] = name + "-share-" + std::to_string(results.size());
        result["consumedCapacity"] = JsonObject{{"memory", std::to_string(share_gib) + "Gi"}};
      }
      results.push_back(std::move(result));
    }
    api_.Put({{"apiVersion", "resource.k8s.io/v1"},
              {"kind", "ResourceClaim"},
              {"metadata", {{"namespace", "team"}, {"name", name}, {"uid", name + "-uid"}}},
              {"spec", JsonObject()},
              {"status", {{"allocation", {{"devices", {{"results", results}}}}}}}});
  }
  void Release(const std::string& name) { api_.Remove("resourceclaims", "team/" + name); }
  // All claims of the API server, as the watch shows them.
  std::map<std::string, AllocatedClaim> Seen() {
    std::map<std::string, AllocatedClaim> seen;
    for (const Json& object : api_.All("resourceclaims")) {
      AllocatedClaim claim;
      EXPECT_TRUE(ReadAllocatedClaim(kClaimNode, JsonSource(object), claim).ok());
      if (!claim.devices.empty()) seen[claim.uid] = claim;
    }
    return seen;
  }

  // "ok" or the error.
  std::string Prepare(const std::string& name) {
    std::string said = "no answer";
    driver_->Prepare(Reference(name), [&](const Result<std::vector<kubelet::PreparedDevice>>& got) {
      said = got.ok() ? "ok" : got.status().message();
      code_ = got.status().code();
      if (got.ok()) answer_ = *got;
    });
    return said;
  }
  // The code of the answer.
  Code Refusal(const std::string& name) {
    Prepare(name);
    return code_;
  }
  std::string Unprepare(const std::string& name) {
    std::string said = "no answer";
    driver_->Unprepare(Reference(name),
                       [&](const Status& status) { said = status.ok() ? "ok" : status.message(); });
    return said;
  }
  // "3g.40gb@4 1g.10gb@0": what the GPU has.
  std::string Instances(int gpu) {
    std::vector<std::string> texts;
    for (const device::GpuInstance& one : gpus_.Truth(gpu)) {
      texts.push_back(one.profile + "@" + std::to_string(one.start) + (one.complete ? "" : "?"));
    }
    std::ranges::sort(texts);
    std::string all;
    for (const std::string& text : texts) all += (all.empty() ? "" : " ") + text;
    return all;
  }
  std::string UuidAt(int gpu, int start) {
    for (const device::GpuInstance& one : gpus_.Truth(gpu)) {
      if (one.start == start) return one.uuid;
    }
    return "";
  }
  std::string Spec() const {
    const auto text = ReadFile(root_ / "cdi/nos.nebuly.com-claim.json");
    return text.ok() ? *text : "";
  }

  device::SimHooks Hooks() {
    device::SimHooks hooks;
    hooks.fault = [this](const device::SimAttempt& attempt) {
      if (attempt.kind == device::SimAttempt::Kind::kCreate) ++created_;
      return fault_ ? fault_(attempt) : device::SimFault::kNone;
    };
    hooks.on_destroy = [this](const device::GpuInstance& instance) {
      ++destroyed_;
      EXPECT_FALSE(in_use_.contains(instance.uuid)) << "destroyed a used instance";
    };
    return hooks;
  }

  std::filesystem::path root_;
  const gpu::Model* model_ = gpu::Catalogue::Builtin().FindByName("H100-80GB");
  std::function<device::SimFault(const device::SimAttempt&)> fault_;
  ShareDaemons* mps_ = nullptr;
  dra::SharesOfGpu share_facts_{};
  std::set<std::string> held_, in_use_;  // UUIDs: by the device plugin; by containers of claims
  int created_ = 0, destroyed_ = 0;
  device::SimGpus gpus_{
      {{model_, "NVIDIA H100 80GB HBM3"}, {model_, "NVIDIA H100 80GB HBM3"}}, kClaimNode, Hooks()};
  kube::FakeApi api_;
  std::vector<kubelet::PreparedDevice> answer_;
  Code code_ = Code::kOk;  // of the last answer
  std::unique_ptr<ClaimDriver> driver_;
};

}  // namespace nos::agent
