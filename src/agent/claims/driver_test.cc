#include "agent/claims/driver.h"

#include <gmock/gmock.h>

#include <condition_variable>
#include <thread>

#include "agent/claims/fixture_test.h"
#include "base/random.h"
#include "base/task_thread.h"
#include "device/forwarding_backend.h"

namespace nos::agent {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

class ClaimDriverTest : public ClaimTest {};

TEST_F(ClaimDriverTest, CreatesTheAllocatedPlacement) {
  Allocate("a", {Device(0, "3g.40gb", 4)});
  EXPECT_EQ(Prepare("a"), "ok");
  EXPECT_EQ(Instances(0), "3g.40gb@4");
  EXPECT_EQ(Instances(1), "");
  ASSERT_EQ(answer_.size(), 1U);
  EXPECT_THAT(answer_[0].requests, ElementsAre("slice"));
  EXPECT_EQ(answer_[0].pool, kClaimNode);
  EXPECT_EQ(answer_[0].device, "gpu-0-mig-3g40gb-9-4");
  const std::string id = "a-uid-gpu-0-mig-3g40gb-9-4";
  EXPECT_THAT(answer_[0].cdi_ids, ElementsAre("nos.nebuly.com/claim=" + id));
  EXPECT_THAT(Spec(), HasSubstr(id));
  EXPECT_THAT(Spec(), HasSubstr("/dev/nvidia-caps/nvidia-cap2"));
  EXPECT_THAT(Spec(), HasSubstr("libcuda.so.1"));
}

TEST_F(ClaimDriverTest, AnswersTheSameAgainAndAfterARestart) {
  Allocate("a", {Device(0, "1g.10gb", 0), Device(1, "2g.20gb", 4)});
  EXPECT_EQ(Prepare("a"), "ok");
  const auto first = answer_;
  EXPECT_EQ(Prepare("a"), "ok");
  EXPECT_EQ(answer_, first);
  Restart();
  EXPECT_EQ(Prepare("a"), "ok");
  EXPECT_EQ(answer_, first);
  EXPECT_EQ(created_, 2);
  EXPECT_EQ(destroyed_, 0);
}

// Its pod may start again while the API server is away.
TEST_F(ClaimDriverTest, KeepsSpecificationWhilePodsRun) {
  Allocate("a", {Device(0, "1g.10gb", 0)});
  EXPECT_EQ(Prepare("a"), "ok");
  const std::string spec = Spec();
  std::filesystem::remove_all(root_ / "cdi");
  EXPECT_TRUE(driver_->KeepSpec().ok());
  EXPECT_EQ(Spec(), spec);
  // A reboot: the folder is empty, and the driver's container is not up yet.
  std::filesystem::remove_all(root_ / "cdi");
  std::filesystem::rename(root_ / "root", root_ / "later");
  Restart();
  EXPECT_FALSE(driver_->KeepSpec().ok());
  std::filesystem::rename(root_ / "later", root_ / "root");
  EXPECT_TRUE(driver_->KeepSpec().ok());
  EXPECT_EQ(Spec(), spec);
}

TEST_F(ClaimDriverTest, RefusesGpuThatAPodHasThroughAPlugin) {
  ASSERT_TRUE(gpus_.DisableMig(0).ok());
  held_ = {gpus_.Info(0).uuid};
  Allocate("a", {"gpu-0"});
  EXPECT_EQ(Refusal("a"), Code::kConflict);
  held_.clear();
  EXPECT_EQ(Prepare("a"), "ok");
}

TEST_F(ClaimDriverTest, KeepsPreparedClaimWithoutApiServer) {
  Allocate("a", {Device(0, "1g.10gb", 0)});
  EXPECT_EQ(Prepare("a"), "ok");
  Restart();
  api_.intercept = [](const kube::ApiRequest&) {
    return std::optional<Result<kube::ApiResponse>>(Status(Code::kUnavailable, "away"));
  };
  EXPECT_EQ(Prepare("a"), "ok");
  Allocate("b", {Device(0, "1g.10gb", 1)});
  EXPECT_THAT(Prepare("b"), HasSubstr("away"));
}

TEST_F(ClaimDriverTest, RefusesWhatIsNotAllocatedHere) {
  EXPECT_THAT(Prepare("missing"), HasSubstr("not found"));
  Allocate("a", {Device(0, "1g.10gb", 0)});
  std::string said;
  driver_->Prepare({"team", "a", "another"},
                   [&](const auto& got) { said = got.status().message(); });
  EXPECT_THAT(said, HasSubstr("replaced"));
  Allocate("none", {});
  EXPECT_THAT(Prepare("none"), HasSubstr("no device"));
  Allocate("foreign", {"gpu-0-mig-1g10gb-19-0"}, "gpu.nvidia.com");
  EXPECT_THAT(Prepare("foreign"), HasSubstr("no device"));
  for (const char* name : {"gpu-9", "gpu-0-mig-1g10gb-19-7", "../../etc", ""}) {
    Allocate("wrong", {name});
    EXPECT_NE(Prepare("wrong"), "ok") << name;
  }
  EXPECT_EQ(Instances(0), "");
  EXPECT_TRUE(driver_->Idle());
}

// The API server does not check that a device is free.
TEST_F(ClaimDriverTest, RefusesDevicesThatAnotherClaimUses) {
  Allocate("a", {Device(0, "3g.40gb", 0)});
  EXPECT_EQ(Prepare("a"), "ok");
  Allocate("same", {Device(0, "3g.40gb", 0)});
  Allocate("inside", {Device(1, "1g.10gb", 0), Device(0, "1g.10gb", 2)});
  Allocate("around", {Device(0, "7g.80gb", 0)});
  Allocate("whole", {"gpu-0"});
  for (const char* name : {"same", "inside", "around", "whole"}) {
    EXPECT_EQ(Refusal(name), Code::kConflict) << name;
  }
  EXPECT_EQ(Instances(0), "3g.40gb@0");
  EXPECT_EQ(Instances(1), "") << "nothing is made for a claim that is refused";
  Allocate("beside", {Device(0, "3g.40gb", 4)});
  EXPECT_EQ(Prepare("beside"), "ok");
  Restart();
  EXPECT_EQ(Refusal("same"), Code::kConflict) << "also after a restart";
  EXPECT_EQ(Unprepare("a"), "ok");
  EXPECT_EQ(Prepare("same"), "ok");
}

TEST_F(ClaimDriverTest, KeepsInstancesWarm) {
  Allocate("a", {Device(0, "3g.40gb", 4)});
  EXPECT_EQ(Prepare("a"), "ok");
  const std::string uuid = UuidAt(0, 4);
  EXPECT_EQ(Unprepare("a"), "ok");
  EXPECT_EQ(Unprepare("a"), "ok") << "again";
  EXPECT_EQ(Unprepare("unknown"), "ok");
  EXPECT_EQ(Instances(0), "3g.40gb@4");
  EXPECT_EQ(Spec(), "");
  Allocate("b", {Device(0, "3g.40gb", 4)});
  EXPECT_EQ(Prepare("b"), "ok");
  EXPECT_EQ(UuidAt(0, 4), uuid);
  EXPECT_EQ(created_, 1);
  EXPECT_EQ(destroyed_, 0);
}

TEST_F(ClaimDriverTest, DestroysWarmInstancesOnlyForTheirRoom) {
  for (const int start : {0, 1, 4}) {
    const std::string name = "a" + std::to_string(start);
    Allocate(name, {Device(0, "1g.10gb", start)});
    EXPECT_EQ(Prepare(name), "ok");
    EXPECT_EQ(Unprepare(name), "ok");
    Release(name);
  }
  Allocate("b", {Device(0, "2g.20gb", 0)});
  EXPECT_EQ(Prepare("b"), "ok");
  EXPECT_EQ(Instances(0), "1g.10gb@4 2g.20gb@0");
  EXPECT_EQ(destroyed_, 2);
}

TEST_F(ClaimDriverTest, NeverDestroysWhatPodsHoldByTheDevicePlugin) {
  ASSERT_TRUE(gpus_.Place(0, "1g.10gb", 0).ok());
  held_ = {UuidAt(0, 0)};
  in_use_ = held_;
  Allocate("a", {Device(0, "2g.20gb", 0)});
  EXPECT_THAT(Prepare("a"), HasSubstr("in use"));
  EXPECT_EQ(Instances(0), "1g.10gb@0");
  held_.clear();
  in_use_.clear();
  EXPECT_EQ(Prepare("a"), "ok");
  EXPECT_EQ(Instances(0), "2g.20gb@0");
}

TEST_F(ClaimDriverTest, KeepsInstancesOfClaimsThatWaitForTheirPods) {
  Allocate("waits", {Device(0, "1g.10gb", 4)});
  driver_->SetAllocated(Seen(), Time(seconds(100)));
  EXPECT_EQ(Instances(0), "1g.10gb@4");
  Allocate("b", {Device(0, "1g.10gb", 0)});
  EXPECT_EQ(Prepare("b"), "ok");
  EXPECT_EQ(Instances(0), "1g.10gb@0 1g.10gb@4");
  Allocate("whole", {"gpu-1"});
  Allocate("mistake", {Device(1, "1g.10gb", 0)});
  driver_->SetAllocated(Seen(), Time(seconds(100)));
  EXPECT_EQ(Prepare("whole"), "ok") << "two schedulers: whoever is prepared first has it";
  EXPECT_EQ(Refusal("mistake"), Code::kConflict);
}

TEST_F(ClaimDriverTest, SwitchesMigModeForWholeGpus) {
  Allocate("small", {Device(0, "1g.10gb", 0)});
  EXPECT_EQ(Prepare("small"), "ok");
  Allocate("whole", {"gpu-0"});
  EXPECT_NE(Prepare("whole"), "ok");
  EXPECT_EQ(Unprepare("small"), "ok");
  Release("small");
  EXPECT_TRUE(gpus_.Info(0).mig_enabled) << "it stays on without instances in use";
  EXPECT_EQ(Prepare("whole"), "ok");
  EXPECT_FALSE(gpus_.Info(0).mig_enabled);
  EXPECT_THAT(Spec(), HasSubstr("/dev/nvidia0"));
  EXPECT_THAT(Spec(), testing::Not(HasSubstr("nvidia-caps")));
  Allocate("again", {Device(0, "1g.10gb", 3)});
  EXPECT_EQ(Refusal("again"), Code::kConflict);
  EXPECT_EQ(Unprepare("whole"), "ok");
  EXPECT_EQ(Prepare("again"), "ok");
  EXPECT_TRUE(gpus_.Info(0).mig_enabled);
  EXPECT_EQ(Instances(0), "1g.10gb@3");
}

TEST_F(ClaimDriverTest, MonitorsShareADeviceThatExists) {
  Allocate("a", {Device(0, "1g.10gb", 0)});
  Allocate("monitor", {Device(0, "1g.10gb", 0)});
  Json claim = *api_.Find("resourceclaims", "team/monitor");
  claim.at("status")
      .at("allocation")
      .at("devices")
      .at("results")
      .as_array()[0]
      .as_object()["adminAccess"] = true;
  api_.Put(claim);
  EXPECT_NE(Prepare("monitor"), "ok") << "there is nothing to see";
  EXPECT_EQ(Instances(0), "");
  EXPECT_EQ(Prepare("a"), "ok");
  EXPECT_EQ(Prepare("monitor"), "ok");
  EXPECT_EQ(Prepare("a"), "ok");
}

TEST_F(ClaimDriverTest, RepairsAfterACrashAtEveryPoint) {
  for (const auto fault : {device::SimFault::kCrashBetween, device::SimFault::kLateAnswer,
                           device::SimFault::kTimeout, device::SimFault::kBusy}) {
    Allocate("a", {Device(0, "2g.20gb", 0), Device(0, "1g.10gb", 4)});
    int attempts = 0;
    fault_ = [&](const device::SimAttempt&) {
      return ++attempts == 2 ? fault : device::SimFault::kNone;
    };
    EXPECT_NE(Prepare("a"), "ok");
    EXPECT_TRUE(driver_->Idle()) << "nothing was given to a container";
    Restart();
    EXPECT_EQ(Prepare("a"), "ok");
    EXPECT_EQ(Instances(0), "1g.10gb@4 2g.20gb@0");
    EXPECT_EQ(Unprepare("a"), "ok");
    Allocate("all", {Device(0, "7g.80gb", 0)});
    EXPECT_EQ(Prepare("all"), "ok");
    EXPECT_EQ(Unprepare("all"), "ok");
    Release("all");
  }
}

// A crash before the answer leaves the claim in the checkpoint, and its instances.
TEST_F(ClaimDriverTest, AdoptsInstancesFromTheCheckpoint) {
  Allocate("a", {Device(0, "1g.10gb", 0)});
  EXPECT_EQ(Prepare("a"), "ok");
  PreparedClaims claims = driver_->prepared();
  claims.at("a-uid").ready = false;
  ASSERT_TRUE(WriteCheckpoint(root_ / "claims.json", claims).ok());
  in_use_ = {UuidAt(0, 0)};
  Restart();
  Allocate("b", {Device(0, "2g.20gb", 0)});
  EXPECT_EQ(Refusal("b"), Code::kConflict);
  EXPECT_EQ(Prepare("a"), "ok");
  EXPECT_EQ(created_, 1);
}

TEST_F(ClaimDriverTest, PreparesAgainAfterAReboot) {
  Allocate("a", {Device(0, "1g.10gb", 0)});
  EXPECT_EQ(Prepare("a"), "ok");
  gpus_.Reboot();
  std::filesystem::remove_all(root_ / "cdi");
  Restart();
  EXPECT_EQ(Prepare("a"), "ok");
  EXPECT_EQ(Instances(0), "1g.10gb@0");
  EXPECT_THAT(Spec(), HasSubstr("a-uid"));
}

TEST_F(ClaimDriverTest, PreparesNothingWithDamagedCheckpoint) {
  Allocate("a", {Device(0, "1g.10gb", 0)});
  EXPECT_EQ(Prepare("a"), "ok");
  for (const char* text : {"", "{", "[]", R"({"version":2,"claims":[]})", R"({"version":1})",
                           R"({"version":1,"claims":[{"uid":"a"}]})"}) {
    File("claims.json", text);
    ClaimDriver driver(Options(), Collaborators());
    const Status loaded = driver.Load();
    EXPECT_EQ(loaded.code(), Code::kInvalid) << text;
    EXPECT_THAT(loaded.message(), HasSubstr("claims.json"));
    driver.SetGpus(Facts());
    driver.Prepare(Reference("a"), [&](const auto& got) { EXPECT_FALSE(got.ok()) << text; });
    driver.Unprepare(Reference("a"), [&](const Status& got) { EXPECT_FALSE(got.ok()) << text; });
  }
  EXPECT_EQ(Instances(0), "1g.10gb@0");
}

TEST_F(ClaimDriverTest, FailsWithoutDriverFilesOrRoomOnDisk) {
  Allocate("a", {Device(0, "1g.10gb", 0)});
  std::filesystem::remove_all(root_ / "root");
  EXPECT_NE(Prepare("a"), "ok");
  EXPECT_TRUE(driver_->Idle());
  std::filesystem::create_directories(root_ / "root/usr/lib");
  File("root/usr/lib/libcuda.so.550.54.15");
  std::filesystem::create_symlink("libcuda.so.550.54.15", root_ / "root/usr/lib/libcuda.so.1");
  EXPECT_EQ(Prepare("a"), "ok");
  ClaimDriverOptions options = Options();
  options.checkpoint = root_ / "none/claims.json";
  ClaimDriver driver(options, Collaborators());
  EXPECT_THAT(driver.Load().message(), HasSubstr("none/claims.json"));
  std::filesystem::create_directory(root_ / "none");
  ASSERT_TRUE(driver.Load().ok());
  driver.SetGpus(Facts());
  std::filesystem::remove_all(root_ / "none");
  driver.Prepare(Reference("a"), [&](const auto& got) {
    EXPECT_THAT(got.status().message(), HasSubstr("none/claims.json"));
  });
  EXPECT_TRUE(driver.Idle());
}

TEST_F(ClaimDriverTest, CreatesInstancesBeforePodsAreBound) {
  Allocate("a", {Device(0, "3g.40gb", 4)});
  driver_->SetAllocated(Seen(), Time(seconds(100)));
  EXPECT_EQ(Instances(0), "3g.40gb@4");
  auto reports = driver_->TakeReports();
  ASSERT_EQ(reports.size(), 1U);
  ASSERT_TRUE(reports[0].status.ok()) << reports[0].status.message();
  kube::Client client(api_);
  ASSERT_TRUE(
      WriteCreated(client, kClaimNode, reports[0].claim, reports[0].status, Time(seconds(100)))
          .ok());
  const Json claim = *api_.Find("resourceclaims", "team/a");
  const Json& condition =
      claim.at("status").at("devices").as_array().at(0).at("conditions").as_array().at(0);
  EXPECT_EQ(FindString(condition, "type"), "nos.nebuly.com/Created");
  EXPECT_EQ(FindString(condition, "status"), "True");
  EXPECT_FALSE(Seen().at("a-uid").waits);
  driver_->SetAllocated(Seen(), Time(seconds(200)));
  EXPECT_TRUE(driver_->TakeReports().empty());
  EXPECT_EQ(Prepare("a"), "ok");
  EXPECT_EQ(created_, 1);
}

class ClaimMetadataTest : public ClaimTest {
 protected:
  ClaimMetadataTest() {
    std::filesystem::create_directory(root_ / "files");
    Begin();
  }
  // The agent starts (again), with files for containers.
  void Begin() {
    ClaimDriverOptions options = Options();
    options.metadata_folder = root_ / "files/metadata";
    driver_ = std::make_unique<ClaimDriver>(options, Collaborators());
    ASSERT_TRUE(driver_->Load().ok());
    driver_->SetGpus(Facts());
  }
  // `pod_claim`: the annotation of a claim that was made from a template.
  void AllocateFromTemplate(const std::string& name, const std::string& pod_claim) {
    Allocate(name, {Device(0, "3g.40gb", 4)});
    Json claim = *api_.Find("resourceclaims", "team/" + name);
    MakeObject(claim, "metadata", "annotations")["resource.kubernetes.io/pod-claim-name"] =
        pod_claim;
    api_.Put(claim);
  }
  std::string SpecText() const {
    return ReadFile(root_ / "cdi/nos.nebuly.com-claim-metadata.json").value_or("");
  }
  std::filesystem::path FileOf(const std::string& claim) const {
    return root_ / "files/metadata" / (claim + "-uid-slice.json");
  }
};

TEST_F(ClaimMetadataTest, DescribesDevicesToContainers) {
  AllocateFromTemplate("a", "gpu");
  ASSERT_EQ(Prepare("a"), "ok");
  ASSERT_EQ(answer_.size(), 1U);
  EXPECT_EQ(answer_[0].cdi_ids.back(), "nos.nebuly.com/claim-metadata=a-uid-slice");
  EXPECT_THAT(SpecText(), HasSubstr("/var/run/kubernetes.io/dra-device-attributes/"
                                    "resourceclaimtemplates/gpu/slice/"
                                    "gpu.nos.nebuly.com-metadata.json"));
  const std::string text = ReadFile(FileOf("a")).value_or("");
  const auto first = ParseJson(text.substr(0, text.find('\n')));
  ASSERT_TRUE(first.ok()) << text;
  EXPECT_EQ(FindString(*first, "apiVersion"), "metadata.resource.k8s.io/v1beta1");
  EXPECT_EQ(FindString(*first, "podClaimName"), "gpu");
  const Json& device = first->at("requests").as_array()[0].at("devices").as_array()[0];
  EXPECT_EQ(FindString(device, "name"), Device(0, "3g.40gb", 4));
  EXPECT_EQ(FindString(device, "attributes", "profile", "string"), "3g.40gb");
  EXPECT_EQ(FindString(device, "attributes", "uuid", "string"),
            gpus_.ListInstances(0)->front().uuid);
  // Containers may restart after the agent, and after the file was lost.
  std::filesystem::remove(FileOf("a"));
  Begin();
  ASSERT_TRUE(driver_->KeepSpec().ok());
  EXPECT_EQ(ReadFile(FileOf("a")).value_or(""), text);
  EXPECT_EQ(Unprepare("a"), "ok");
  EXPECT_FALSE(std::filesystem::exists(FileOf("a")));
  EXPECT_EQ(SpecText(), "");
}

// After a restart of the node the kubelet prepares the claim again, with another instance.
TEST_F(ClaimMetadataTest, DescribesTheInstanceThatExists) {
  AllocateFromTemplate("a", "gpu");
  ASSERT_EQ(Prepare("a"), "ok");
  const std::string before = ReadFile(FileOf("a")).value_or("");
  ASSERT_TRUE(gpus_.Destroy(0, gpus_.ListInstances(0)->front().id).ok());
  ASSERT_TRUE(gpus_.Create(0, "1g.10gb", 0).ok());  // takes the id
  Begin();
  ASSERT_EQ(Prepare("a"), "ok");
  const std::string after = ReadFile(FileOf("a")).value_or("");
  EXPECT_NE(after, before);
  File("files/metadata/former-claim.json");
  Begin();
  EXPECT_FALSE(std::filesystem::exists(root_ / "files/metadata/former-claim.json"));
  EXPECT_EQ(ReadFile(FileOf("a")).value_or(""), after);
}

// Users may annotate their own claims.
TEST_F(ClaimMetadataTest, TakesNoPathFromAnAnnotation) {
  AllocateFromTemplate("a", "../../../etc");
  ASSERT_EQ(Prepare("a"), "ok");
  EXPECT_THAT(SpecText(), HasSubstr("dra-device-attributes/resourceclaims/a/slice/"));
}

// The API server compares the bytes of opaque parameters: a number that is read and written again
// may have others.
TEST_F(ClaimDriverTest, WritesConditionsWithoutTheAllocation) {
  Allocate("a", {Device(0, "3g.40gb", 4)});
  const AllocatedClaim claim = Seen().at("a-uid");
  kube::Client client(api_);
  ASSERT_TRUE(WriteCreated(client, kClaimNode, claim, Status::Ok(), Time()).ok());
  const Json& written = api_.writes.back().body;
  EXPECT_EQ(written.at("status").as_object().size(), 1U) << WriteJson(written);
  EXPECT_EQ(FindString(written, "metadata", "resourceVersion"), claim.resource_version);
}

TEST_F(ClaimDriverTest, ReportsAnInstanceThatCannotBeCreated) {
  fault_ = [](const device::SimAttempt&) { return device::SimFault::kFails; };
  Allocate("a", {Device(0, "3g.40gb", 4)});
  Time now(seconds(100));
  int rounds = 0;
  std::vector<CreationReport> reports;
  for (; reports.empty() && rounds < 20; ++rounds) {
    driver_->SetAllocated(Seen(), now);
    reports = driver_->TakeReports();
    if (reports.empty()) now = driver_->NextDue().value();
  }
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(rounds, 5) << "a driver may fail for a moment";
  EXPECT_LT(now, Time(seconds(110)));
  kube::Client client(api_);
  ASSERT_TRUE(WriteCreated(client, kClaimNode, reports[0].claim, reports[0].status, now).ok());
  EXPECT_FALSE(Seen().at("a-uid").waits);
  const std::string text = WriteJson(*api_.Find("resourceclaims", "team/a"));
  EXPECT_THAT(text, HasSubstr("nos.nebuly.com/CreationFailed"));
  EXPECT_THAT(text, HasSubstr("NVML_ERROR_UNKNOWN"));
}

TEST_F(ClaimDriverTest, WritesNoConditionOfAFormerAllocation) {
  Allocate("a", {Device(0, "3g.40gb", 4)});
  const AllocatedClaim former = Seen().at("a-uid");
  Allocate("a", {Device(1, "3g.40gb", 4)});
  kube::Client client(api_);
  EXPECT_TRUE(WriteCreated(client, kClaimNode, former, Status::Ok(), Time()).ok());
  EXPECT_TRUE(Seen().at("a-uid").waits);
  Release("a");
  EXPECT_TRUE(WriteCreated(client, kClaimNode, former, Status::Ok(), Time()).ok());
}

// A prepared claim keeps its instance, and no two have the same one, through faults and restarts.
TEST_F(ClaimDriverTest, KeepsItsPromisesAtRandom) {
  const std::vector<std::pair<std::string, std::vector<int>>> profiles = {
      {"1g.10gb", {0, 1, 2, 3, 4, 5, 6}},
      {"2g.20gb", {0, 2, 4}},
      {"3g.40gb", {0, 4}},
      {"7g.80gb", {0}}};
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Random random(seed);
    fault_ = [&](const device::SimAttempt&) {
      const uint64_t kind = random.Below(12);
      if (kind == 0) return device::SimFault::kCrashBetween;
      if (kind == 1) return device::SimFault::kLateAnswer;
      if (kind == 2) return device::SimFault::kBusy;
      return device::SimFault::kNone;
    };
    std::map<std::string, std::string> live;  // claim -> UUID
    for (int step = 0; step < 40; ++step) {
      if (random.Chance(0.15)) Restart();
      if (!live.empty() && random.Chance(0.4)) {
        const auto one = std::next(live.begin(), static_cast<long>(random.Below(live.size())));
        in_use_.erase(one->second);
        EXPECT_EQ(Unprepare(one->first), "ok");
        Release(one->first);
        live.erase(one);
        continue;
      }
      const std::string name = "c" + std::to_string(seed) + "-" + std::to_string(step);
      const auto& [profile, starts] = profiles[random.Below(profiles.size())];
      const int gpu = static_cast<int>(random.Below(2));
      const int start = starts[random.Below(starts.size())];
      Allocate(name,
               {random.Chance(0.1) ? "gpu-" + std::to_string(gpu) : Device(gpu, profile, start)});
      if (Prepare(name) != "ok") {
        EXPECT_EQ(Unprepare(name), "ok");
        Release(name);
        continue;
      }
      const ClaimedDevice device = driver_->prepared().at(name + "-uid").devices.at(0);
      const std::string uuid =
          device.instance_uuid.empty() ? device.gpu_uuid : device.instance_uuid;
      EXPECT_TRUE(in_use_.insert(uuid).second) << uuid << " has two users";
      live[name] = uuid;
    }
    for (const auto& [name, uuid] : live) EXPECT_EQ(Unprepare(name), "ok");
    for (const auto& [name, uuid] : live) Release(name);
    in_use_.clear();
  }
}

// The driver blocks on one GPU.
class StuckGpu final : public device::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  Result<device::GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override {
    std::unique_lock lock(mutex_);
    entered_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    lock.unlock();
    return ForwardingBackend::Create(gpu, profile, start);
  }
  void WaitUntilStuck() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return entered_; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool entered_ = false, open_ = false;
};

TEST_F(ClaimDriverTest, OtherGpusGoOnWhileOneIsStuck) {
  StuckGpu stuck(gpus_);
  std::vector<std::unique_ptr<TaskThread>> queues;
  for (int i = 0; i < 2; ++i) queues.push_back(std::make_unique<TaskThread>(1));
  ClaimCollaborators others = Collaborators();
  others.backend = [&](int gpu) -> device::Backend& {
    if (gpu == 0) return stuck;
    return gpus_;
  };
  others.run = [&](int gpu, std::function<void()> task) {
    return queues.at(static_cast<size_t>(gpu))->Post(std::move(task));
  };
  ClaimDriver driver(Options(), others);
  ASSERT_TRUE(driver.Load().ok());
  driver.SetGpus(Facts());
  for (const char* name : {"a", "b", "c"}) {
    Allocate(name, {Device(0, "1g.10gb", name[0] - 'a')});
  }
  Allocate("other", {Device(1, "1g.10gb", 0)});
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, bool> answers;
  const auto ask = [&](const std::string& name) {
    driver.Prepare(Reference(name), [&, name](const auto& got) {
      const std::lock_guard lock(mutex);
      answers[name] = got.ok();
      changed.notify_all();
    });
  };
  const auto answered = [&](const std::string& name) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, seconds(20), [&] { return answers.contains(name); }) &&
           answers[name];
  };
  ask("a");
  stuck.WaitUntilStuck();
  ask("other");
  EXPECT_TRUE(answered("other"));
  ask("b");  // waits in the queue
  ask("c");  // which then is full
  EXPECT_FALSE(answered("c")) << "refused at once, for the kubelet to repeat";
  stuck.Open();
  EXPECT_TRUE(answered("a"));
  EXPECT_TRUE(answered("b"));
  queues.clear();
}

}  // namespace
}  // namespace nos::agent
