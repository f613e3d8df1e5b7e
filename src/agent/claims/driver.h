// Makes the devices of ResourceClaims ready on this node, and takes them back.
//
//   ClaimDriver driver(options, collaborators);
//   NOS_RETURN_IF_ERROR(driver.Load());       // what containers use since before a restart
//   driver.SetGpus(gpus);
//   kubelet::DraPluginServer server(plugin, driver);
//
// Prepare: reads the claim from the API server, refuses devices that another prepared claim uses,
// writes the checkpoint, makes the devices, writes the CDI specification and the checkpoint, and
// answers. Unprepare: writes the checkpoint; the instance stays. Each GPU has a queue of its own,
// so that GPUs work at the same time; nothing waits for a driver call while it holds the lock.
//
// Claims that schedulers have allocated, as the API server shows them, get their instances before
// their pods are bound: SetAllocated begins that, and TakeReports has the results.
//
// Devices that claims share stay as long as one of them is prepared or allocated; so does the MPS
// daemon of a device whose shares are memory limits (shares.h).
//
// Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "agent/claims/allocated_claim.h"
#include "agent/claims/checkpoint.h"
#include "agent/claims/device_metadata.h"
#include "agent/claims/known_devices.h"
#include "agent/claims/make_device.h"
#include "agent/claims/shares.h"
#include "base/back_off.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "device/backend.h"
#include "device/cdi_spec.h"
#include "device/driver_files.h"
#include "dra/gpu_slices.h"
#include "kube/client.h"
#include "kubelet/dra_driver.h"

namespace nos::agent {

// The kind of the CDI specification with the devices of claims.
inline constexpr const char* kClaimCdiKind = "nos.nebuly.com/claim";
// The kind of the CDI specification that mounts the files with their metadata. It has a file of its
// own: a former version of the agent does not know these devices, and must not remove them while
// pods run.
inline constexpr const char* kMetadataCdiKind = "nos.nebuly.com/claim-metadata";

struct ClaimDriverOptions {
  std::string node;               // also the name of the pool
  std::string checkpoint;         // path
  std::string metadata_folder{};  // of the files for containers; "": there are none
  std::string cdi_folder = "/var/run/cdi";
  device::HostFolders host{};
  // Transient failures of a creation before it is reported; pauses between them.
  int creation_attempts = 5;
  BackOff creation_pause{std::chrono::milliseconds(500), std::chrono::seconds(30)};
};

struct ClaimCollaborators {
  // Runs a call of the API server; may run it at once.
  std::function<void(std::function<void(kube::Client&)>)> call;
  // Runs a function in the order of the GPU's queue; may run it at once. False: it is full.
  std::function<bool(int gpu, std::function<void()>)> run;
  // The backend of a GPU, for functions in its queue.
  std::function<device::Backend&(int gpu)> backend;
  HeldDevices held;
  ShareDaemons* daemons = nullptr;  // null: there are no shares by MPS
  // Called when TakeReports has something, from any thread.
  std::function<void()> wake;
  Metrics* metrics = nullptr;  // null: nothing is counted
};

// The result of creating the instances of an allocated claim.
struct CreationReport {
  AllocatedClaim claim;
  Status status;
};

class ClaimDriver final : public kubelet::DraDriver {
 public:
  ClaimDriver(ClaimDriverOptions options, ClaimCollaborators collaborators);

  // Reads the checkpoint and writes the CDI specifications of its claims. Error: as ReadCheckpoint;
  // then nothing may be prepared, because the devices in use are not known.
  Status Load();
  // Writes the CDI specification again if it is lost, or if files of the driver have changed:
  // containers may restart.
  Status KeepSpec() const;
  // The GPUs of the node, whenever they were read.
  void SetGpus(std::vector<dra::GpuOfDriver> gpus);

  void Prepare(const kubelet::ClaimReference& claim, Prepared done) override;
  void Unprepare(const kubelet::ClaimReference& claim, Unprepared done) override;

  // Replaces the claims that are allocated to this node. This creates the instances for which
  // schedulers wait.
  void SetAllocated(std::map<std::string, AllocatedClaim> claims, Time now);
  std::vector<CreationReport> TakeReports();
  // Ends the MPS daemons of devices of which no claim has a share any more. Call it often.
  void EndUnusedDaemons();
  // When SetAllocated has to be called again although nothing changed.
  std::optional<Time> NextDue() const;

  // Destroys the instance of a device that no claim uses: it has a fault, and another may have
  // none.
  void Discard(const std::string& device);

  // True if schedulers have given away a device of this node.
  bool HasAllocated() const;
  // Removes the checkpoint and prepares nothing until Load(). Error: kUnavailable (a claim is
  // prepared, or the file cannot be removed).
  Status Forget();

  PreparedClaims prepared() const;
  // True if no claim is prepared or being prepared.
  bool Idle() const;

 private:
  using Made = Result<std::vector<ClaimedDevice>>;
  using SteadyTime = std::chrono::steady_clock::time_point;
  struct Preparation {
    SteadyTime began{};
    std::vector<Prepared> waiters;
  };
  struct Creation {
    std::vector<ClaimedDevice> devices;
    bool running = false;
    SteadyTime began{};  // the attempt that runs
    int failures = 0;
    Time next{};  // attempt, unless running
  };

  void Begin(const kubelet::ClaimReference& claim, const Result<Json>& object);
  Status LoadClaims();
  void KnowGpus(std::vector<dra::GpuOfDriver> gpus);
  void RestoreShares();
  std::set<std::string> SharedDevices(const ClaimedDevice* wanted = nullptr) const;
  Result<AllocatedClaim> Allocation(const kubelet::ClaimReference& claim,
                                    const Result<Json>& object) const;
  Status Record(const AllocatedClaim& claim);
  Status Publish(const std::string& uid, std::vector<ClaimedDevice> made);
  void End(const kubelet::ClaimReference& claim, const Made& made);
  void MakeAll(const std::string& uid, const std::vector<ClaimedDevice>& devices,
               std::function<void(Made)> done);
  Result<ClaimedDevice> MakeOne(const std::string& uid, const ClaimedDevice& device);
  Result<DeviceWork> WorkFor(const std::string& uid, const ClaimedDevice& device) const;
  void AddClaimed(const std::vector<ClaimedDevice>& devices, DeviceWork& work) const;
  void Created(const std::string& uid, const AllocatedClaim& claim, const Status& status, Time now);
  void Count(const char* operation, const Status& status, SteadyTime began) const;
  void CountPrepared() const;
  // `complete`: with a device whose nodes cannot be read nothing is written.
  Status WriteSpec(bool complete = false) const;
  Status AddTo(device::CdiSpec& spec, const std::string& name, const ClaimedDevice& device) const;
  std::vector<kubelet::PreparedDevice> AnswerFor(const std::string& uid) const;
  std::vector<MetadataFile> FilesOf(const PreparedClaim& claim) const;
  Status WriteFilesOf(const PreparedClaim& claim) const;
  Status WriteMetadataSpec() const;
  JsonObject AttributesOf(const ClaimedDevice& device) const;

  const ClaimDriverOptions options_;
  const ClaimCollaborators others_;
  mutable std::mutex mutex_;  // guards the rest; not held during calls of driver or API server
  bool loaded_ = false;
  KnownDevices devices_;
  PreparedClaims prepared_;                          // as in the checkpoint
  std::map<std::string, Preparation> preparing_;     // by uid
  std::map<std::string, AllocatedClaim> allocated_;  // by uid
  std::map<std::string, Creation> creations_;        // by uid
  std::vector<CreationReport> reports_;
  bool shares_restored_ = false;
  SharedByMps shared_;  // has a lock of its own
};

}  // namespace nos::agent
