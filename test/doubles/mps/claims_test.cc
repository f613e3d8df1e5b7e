// Daemons that ResourceClaims share, beside those of the agent's sharing modes, over the doubled
// tool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "agent/device_plugin.h"
#include "agent/sharing/mps/service.h"

namespace nos::agent {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr const char* kPlugin = "GPU-aaaaaaaa-0000-0000-0000-000000000000";
constexpr const char* kClaims = "GPU-bbbbbbbb-0000-0000-0000-000000000000";
constexpr const char* kInstance = "MIG-cccccccc-0000-0000-0000-000000000000";
constexpr seconds kLong{60};  // only reached by a failing test

// Without an answer nothing is mounted: containers may depend on the folders that they have.
class SilentKubelet final : public kubelet::PodResources {
 public:
  Result<std::vector<kubelet::DeviceAssignment>> List() override {
    return Status(Code::kUnavailable, "away");
  }
  Result<std::vector<kubelet::ClaimAssignment>> ListClaims() override {
    return Status(Code::kUnavailable, "away");
  }
  Result<std::vector<kubelet::OfferedDevice>> Allocatable() override {
    return Status(Code::kUnavailable, "away");
  }
};

class SharedByClaimsTest : public testing::Test {
 protected:
  SharedByClaimsTest() {
    std::string pattern = fs::temp_directory_path() / "nos-mps-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    Restart();
  }
  ~SharedByClaimsTest() override {
    service_->ServeForClaims({});
    Modes({});
    for (const char* uuid : {kPlugin, kClaims, kInstance}) {
      EXPECT_TRUE(service_->AwaitEnd(uuid, kLong)) << uuid;
    }
    service_.reset();
    fs::remove_all(folder_);
  }
  void Restart() {
    service_.reset();
    service_ = std::make_unique<MpsService>(true, nullptr);
    MpsServiceOptions& options = service_->options();
    options.by_memory = true;
    options.control.program = NOS_MPS_DOUBLE;
    options.control.folder = folder_ + "/pipe";
    options.control.log_folder = folder_ + "/log";
    options.control.daemon.answer_within = kLong;
    options.control.daemon.start_within = kLong;
    service_->Start({gpu::Catalogue::Builtin(), plugins_.Choose(modes_), kubelet_, board_, [] {}});
  }
  void Modes(std::vector<device::MpsGpu> served) {
    service_->Request(std::move(served), {});
    service_->Keep();
  }

  pid_t Daemon(const std::string& uuid) {
    for (const device::MpsState& state : service_->control()->States()) {
      if (state.gpu_uuid == uuid) return state.pid;
    }
    return 0;
  }

  std::string folder_;
  SilentKubelet kubelet_;
  device::GpuHealth board_;
  SharingModes modes_ = AllSharingModes({.mps = true});
  DevicePlugins plugins_;
  std::unique_ptr<MpsService> service_;
};

TEST_F(SharedByClaimsTest, ServesClaimsBesideTheModes) {
  Modes({{0, kPlugin, 39}});
  service_->ServeForClaims({{1, kClaims, 79}});
  EXPECT_TRUE(service_->AwaitServing(kPlugin, kLong));
  EXPECT_TRUE(service_->AwaitServing(kClaims, kLong));
  Modes({});
  EXPECT_TRUE(service_->AwaitEnd(kPlugin, kLong));
  EXPECT_TRUE(service_->AwaitServing(kClaims, kLong)) << "the modes do not end it";
  EXPECT_FALSE(service_->AwaitEnd(kClaims, std::chrono::milliseconds(1)));
  service_->ServeForClaims({});
  EXPECT_TRUE(service_->AwaitEnd(kClaims, kLong));
  EXPECT_THAT(service_->Left(), IsEmpty());
}

TEST_F(SharedByClaimsTest, KeepsDaemonsUntilClaimsAreKnown) {
  service_->ServeForClaims({{1, kClaims, 79}});
  ASSERT_TRUE(service_->AwaitServing(kClaims, kLong));
  const pid_t daemon = Daemon(kClaims);
  Restart();
  service_->AwaitClaims();
  Modes({});
  EXPECT_THAT(service_->Left(), ElementsAre(kClaims));
  service_->ServeForClaims({{1, kClaims, 79}});
  EXPECT_TRUE(service_->AwaitServing(kClaims, kLong));
  EXPECT_EQ(Daemon(kClaims), daemon) << "the next agent has taken it over";
  service_->ServeForClaims({});
  EXPECT_TRUE(service_->AwaitEnd(kClaims, kLong));
}

TEST_F(SharedByClaimsTest, ContainersGetTheirLimit) {
  const std::string pipes = folder_ + "/pipe/" + kClaims;
  const auto gpu = service_->AccessTo(kClaims, 20480, 81920);
  EXPECT_THAT(gpu.environment,
              UnorderedElementsAre(Pair("CUDA_MPS_PIPE_DIRECTORY", pipes),
                                   Pair("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=20480M"),
                                   Pair("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "25")));
  EXPECT_THAT(gpu.folders, ElementsAre(device::DriverFile{pipes, pipes}));
  const auto instance = service_->AccessTo(kInstance, 4096, 0);
  EXPECT_EQ(instance.environment.at("CUDA_VISIBLE_DEVICES"), kInstance);
  EXPECT_FALSE(instance.environment.contains("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
}

}  // namespace
}  // namespace nos::agent
