#include "sim/world/node/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "gpu/modes.h"
#include "gpu/occupancy.h"
#include "sim/world/node/invariants.h"

namespace nos::sim {

Result<std::unique_ptr<Machine>> Machine::Make(const NodeSpec& spec, const Environment& env,
                                               const MachineTimes& times) {
  if (spec.dra && (spec.managed || spec.mps || spec.hybrid)) {
    return Invalid(fmt::format("node {}: its GPUs have two owners", spec.name));
  }
  std::unique_ptr<Machine> machine(new Machine(spec, env, times));
  NOS_RETURN_IF_ERROR(machine->PlaceInstances(spec).Within("node " + spec.name));
  return machine;
}

Machine::Machine(const NodeSpec& spec, const Environment& env, const MachineTimes& times)
    : name_(spec.name),
      env_(env),
      times_(times),
      kubelet_transport_(name_, env.api, env.kubelet_faults, kubelet_life_, env.queue, env.clock,
                         env.log),
      agent_transport_("agent " + name_, env.api, env.faults, agent_life_, env.queue, env.clock,
                       env.log),
      faults_(env, name_, agent_life_),
      kubelet_(std::make_unique<VirtualNode>(spec, kubelet_transport_, env.clock, env.log,
                                             env.random.Fork(), times.kubelet)),
      outages_(env, name_, gpus_, health_, faults_) {
  std::vector<device::SimGpuSpec> gpus;
  for (const GpuSpec& gpu : spec.gpus) {
    const auto model = FindModel(env.catalogue, gpu.model);
    if (!model.ok()) {  // a GPU unknown to the catalogue: a node without usable GPUs
      models_.clear();
      return;
    }
    models_.push_back(*model);
    // GPUs with shares from the start are in exclusive-process mode.
    const bool shared = spec.mps && !gpu.instances.empty();
    const bool mig = spec.dra ? agent::NeedsReset(**model) : !spec.mps && !spec.hybrid;
    gpus.push_back(
        {*model, ProductLabel(gpu.model), mig,
         shared ? device::ComputeMode::kExclusiveProcess : device::ComputeMode::kDefault});
  }
  if (gpus.empty()) return;
  gpus_ = std::make_unique<device::SimGpus>(std::move(gpus), name_,
                                            spec.dra ? DriverHooks() : Hooks(), times.devices);
  if (spec.dra) MakeDriver();
  if (spec.managed) MakeAgent();
}

void Machine::MakeAgent() {
  kubelet_->devices().OnWithdrawal([this](const auto& device) { OnWithdrawal(device); });
  sockets_ =
      std::make_unique<FaultyKubelet>(*kubelet_, *kubelet_, env_.faults, agent_life_, env_.clock);
  agent_ = std::make_unique<Process>(
      "agent " + name_,
      [this] {
        MakeShares();
        agent::AgentExtras extras;
        extras.modes = agent::AllSharingModes({.mps = true,
                                               .whole = true,
                                               .time_slices = kTimeSlices,
                                               .resets = kubelet_->spec().resets,
                                               .reset_pauses = times_.reset_pauses,
                                               .parts = MigPartsHere()});
        extras.health = &health_;
        extras.cgroups = kubelet_.get();
        return std::make_unique<agent::Agent>(times_.agent, name_, env_.catalogue, *layers_.plain,
                                              *sockets_, *sockets_, extras);
      },
      agent_transport_, reconcile::ForNode(name_), agent_life_, env_.clock, env_.log);
}

void Machine::MakeDriver() {
  driver_ = std::make_unique<ClaimDriver>(
      name_, *gpus_, models_, kubelet_transport_, env_.clock, env_.log,
      [this](std::string problem) { env_.violations.Add(std::move(problem)); });
  kubelet_->SetClaimDriver(driver_.get());
}

// The agent keeps its state of shares only in memory, so a new agent starts without any.
void Machine::MakeShares() {
  layers_.plain.reset();
  layers_.shares.reset();
  layers_.parts = std::make_unique<WatchedParts>(*gpus_, env_.catalogue, MigPartsHere(), Hooks());
  layers_.shares = std::make_unique<WatchedShares>(
      *layers_.parts, device::MpsGpusOptions{.max_shares = kubelet_->spec().max_shares}, Hooks());
  layers_.plain = std::make_unique<WatchedPlain>(*layers_.shares, Hooks());
  if (initial_shares_.empty()) return;
  for (size_t i = 0; i < models_.size(); ++i) {
    // already in that mode; registers the GPU
    if (IsShared(i)) (void)layers_.shares->EnableMps(static_cast<int>(i));
  }
  (void)layers_.shares->Adopt(initial_shares_);
  initial_shares_.clear();
}

Status Machine::PlaceInstances(const NodeSpec& spec) {
  for (size_t i = 0; i < models_.size(); ++i) {
    const gpu::Model& model = this->model(i);
    if (spec.dra && (!CanAnnounce(model) || !spec.gpus[i].instances.empty())) {
      return Invalid(fmt::format(
          "GPU {}: a node with dra has GPUs that start empty and whose engines are known", i));
    }
    gpu::Occupancy on(model);
    const int index = static_cast<int>(i);
    for (const InstanceSpec& instance : spec.gpus[i].instances) {
      NOS_ASSIGN(const gpu::Placement placement, model.ParsePlacement(instance.placement));
      const gpu::Profile& profile = model.profile(placement.profile);
      if (!on.Add(placement)) {
        return Invalid(fmt::format("GPU {}: {} does not fit with the instances before it", i,
                                   instance.placement));
      }
      if (model.counted()) {
        initial_shares_.push_back(
            device::MpsShareId({gpus_->Info(index).uuid, profile.slots, placement.start}));
      } else {
        NOS_RETURN_IF_ERROR(gpus_->Place(index, profile.name, placement.start).status());
      }
    }
  }
  return Status::Ok();
}

// The driver knows the mode. If the driver lost it, the agent sets it again.
bool Machine::IsShared(size_t gpu) const {
  return gpus_->Info(static_cast<int>(gpu)).compute_mode == device::ComputeMode::kExclusiveProcess;
}

bool Machine::IsPlain(size_t gpu) const {
  return kubelet_->spec().hybrid && !IsShared(gpu) &&
         !gpus_->Info(static_cast<int>(gpu)).mig_enabled;
}

const gpu::Model* Machine::SharesOf(size_t gpu) const {
  return gpu::SharesOfMemory(gpus_->Info(static_cast<int>(gpu)).memory_mib,
                             kubelet_->spec().max_shares);
}

// If only a reboot changes the MIG mode, the model depends on the current mode.
const gpu::Model* Machine::UnsharedModel(size_t gpu) const {
  const agent::ResetRule resets = kubelet_->spec().resets;
  const bool waits = resets != agent::ResetRule::kGpu && agent::NeedsReset(*models_[gpu]);
  if (waits && gpus_->Info(static_cast<int>(gpu)).mig_enabled) return models_[gpu];
  return FindUnsharedModel(env_.catalogue, *models_[gpu], resets == agent::ResetRule::kGpu);
}

const gpu::Model& Machine::model(size_t gpu) const {
  if (gpus_ == nullptr) return *models_[gpu];
  const gpu::Model* shares = IsShared(gpu) ? SharesOf(gpu) : nullptr;
  if (shares != nullptr) return *shares;
  const gpu::Model* unshared = kubelet_->spec().hybrid ? UnsharedModel(gpu) : nullptr;
  return unshared != nullptr ? *unshared : *models_[gpu];
}

const gpu::Model* Machine::alternative(size_t gpu) const {
  if (gpus_ == nullptr || !kubelet_->spec().hybrid) return nullptr;
  if (IsShared(gpu)) return UnsharedModel(gpu);
  return UnsharedModel(gpu) == models_[gpu] ? nullptr : SharesOf(gpu);  // the MIG mode stays on
}

std::vector<device::GpuInstance> Machine::Instances(size_t gpu) const {
  const int index = static_cast<int>(gpu);
  if (!IsShared(gpu) && !IsPlain(gpu)) return MigInstances(gpu);
  std::vector<device::GpuInstance> instances;
  if (IsShared(gpu)) {
    if (layers_.shares != nullptr) instances = layers_.shares->SharesOn(index);
  } else if (layers_.plain != nullptr) {
    instances = layers_.plain->InstancesOn(gpus_->Info(index).uuid);
  }
  AddHeld(gpu, instances);
  return instances;
}

// A divided instance is replaced by its parts: those known to the agent, and those that pods hold.
std::vector<device::GpuInstance> Machine::MigInstances(size_t gpu) const {
  const int index = static_cast<int>(gpu);
  std::map<std::string, std::vector<device::GpuInstance>> parts;
  if (layers_.parts != nullptr) {
    for (device::GpuInstance& part : layers_.parts->PartsOn(index)) {
      parts[part.part_of].push_back(std::move(part));
    }
  }
  std::vector<device::GpuInstance> instances;
  for (const device::GpuInstance& instance : gpus_->Truth(index)) {
    std::vector<device::GpuInstance>& there = parts[instance.uuid];
    for (const auto& [uid, pod] : kubelet_->pods()) {
      for (const auto& held : pod.devices) {
        const auto part = device::ParseMigPartId(held.device_id);
        const bool known =
            std::ranges::count(there, held.device_id, &device::GpuInstance::uuid) > 0;
        if (!part || part->mig_uuid != instance.uuid || known) continue;
        there.push_back(
            {index, instance.id, held.device_id, gpu::PartName({instance.profile, part->count}), -1,
             static_cast<uint8_t>(instance.start + part->number), 0, true, instance.uuid});
      }
    }
    if (there.empty() || !instance.complete) {
      instances.push_back(instance);
    } else {
      instances.insert(instances.end(), there.begin(), there.end());
    }
  }
  return instances;
}

// Devices that exist only in memory and that pods hold: a new agent may not know them yet.
void Machine::AddHeld(size_t gpu, std::vector<device::GpuInstance>& instances) const {
  const int index = static_cast<int>(gpu);
  const std::string& uuid = gpus_->Info(index).uuid;
  for (const auto& [uid, pod] : kubelet_->pods()) {
    for (const auto& held : pod.devices) {
      const std::string& id = held.device_id;
      if (std::ranges::count(instances, id, &device::GpuInstance::uuid) > 0) continue;
      const auto share = device::ParseMpsShareId(id);
      const auto slice = device::ParseTimeSliceId(id);
      if (share && share->gpu_uuid == uuid) {
        instances.push_back({index, 0, id, device::MpsProfile(share->gib), -1,
                             static_cast<uint8_t>(share->start), static_cast<uint8_t>(share->gib)});
      } else if (slice && slice->gpu_uuid == uuid) {
        instances.push_back({index, 0, id, "shared", -1, static_cast<uint8_t>(slice->start), 0});
      } else if (id == uuid) {
        instances.push_back({index, 0, id, "gpu", -1, 0, 0});
      }
    }
  }
}

device::Backend* Machine::backend() {
  if (layers_.plain == nullptr) return gpus_.get();
  return layers_.plain.get();
}

// True if a pod holds the whole GPU, or a share or time slice of it.
bool Machine::IsBusy(const std::string& uuid) const {
  const auto& pods = kubelet_->pods();
  return std::ranges::any_of(pods, [&](const auto& entry) {
    return std::ranges::any_of(entry.second.devices, [&](const auto& device) {
      return device.device_id == uuid || device.device_id.starts_with(uuid + "::");
    });
  });
}

device::SimHooks Machine::Hooks() {
  return {.spend = [this](Duration time) { agent_->Spend(time); },
          .fault = [this](const auto& attempt) { return faults_.DrawForAgent(attempt); },
          .held = {},
          .busy = [this](const std::string& uuid) { return IsBusy(uuid); },
          .on_destroy = [this](const device::GpuInstance& instance) { OnDestroy(instance); },
          // The kubelet has decided about the pods that are bound meanwhile without this instance.
          .on_late_destroy =
              [this](const device::GpuInstance& instance) {
                env_.violations.Add(CheckDestruction(*this, instance, ApiTruth()));
              },
          .on_hang = [this](int gpu, Duration waited) { outages_.OnHang(gpu, waited); },
          .on_reset = [this](const std::string& uuid) { OnReset(uuid); }};
}

device::SimHooks Machine::DriverHooks() {
  return {.spend = [this](Duration time) { driver_->Spend(time); },
          .fault = [this](const auto& attempt) { return faults_.DrawForDriver(attempt); },
          .held = {},
          .busy = [this](const std::string& uuid) { return driver_->Holds(uuid); },
          .on_destroy = {},
          .on_late_destroy = {},
          .on_hang = {},
          .on_reset = {}};
}

void Machine::OnDestroy(const device::GpuInstance& instance) {
  env_.violations.Add(CheckDestruction(*this, instance, TruthNow()));
}

// The real driver refuses a reset only if a process runs on the GPU.
void Machine::OnReset(const std::string& uuid) {
  if (!IsBusy(uuid)) return;
  env_.violations.Add(fmt::format("{}: {} is reset while a pod has it", name_, uuid));
}

void Machine::OnWithdrawal(const kubelet::OfferedDevice& device) {
  env_.violations.Add(CheckWithdrawal(*this, device, TruthNow()));
}

ApiTruth Machine::TruthNow() const {
  if (kubelet_->spec().forged) return {};
  kube::Client client(env_.api);
  Result<ApiTruth> truth = TruthOf(client, name_);
  return truth.ok() ? std::move(truth).value() : ApiTruth();
}

std::vector<Actor*> Machine::Actors() {
  std::vector<Actor*> actors = {kubelet_.get()};
  if (agent_ != nullptr) actors.push_back(agent_.get());
  if (driver_ != nullptr) actors.push_back(driver_.get());
  return actors;
}

std::optional<Time> Machine::LastDisturbance() const {
  return std::max({env_.faults.last(), env_.kubelet_faults.last(), disturbed_, outages_.last()});
}

void Machine::Reboot() {
  disturbed_ = env_.clock.Now();
  outages_.Forget();
  kubelet_->Reboot();
  if (gpus_ != nullptr) gpus_->Reboot();
  if (driver_ != nullptr) driver_->Forget();
  if (agent_ != nullptr) agent_->Crash(times_.kubelet.boot);
}

void Machine::LoseDaemon(int gpu) {
  disturbed_ = env_.clock.Now();
  env_.log.Note(name_, fmt::format("loses the MPS daemon of GPU {}", gpu));
  lost_daemons_.insert(gpu);
  health_.Add({device::HealthCondition::Kind::kMps, gpu, std::nullopt, 0, "no MPS daemon"});
}

void Machine::RestoreDaemon(int gpu) {
  disturbed_ = env_.clock.Now();
  env_.log.Note(name_, fmt::format("has the MPS daemon of GPU {} again", gpu));
  lost_daemons_.erase(gpu);
  health_.Clear(gpu, device::HealthCondition::Kind::kMps);
}

}  // namespace nos::sim
