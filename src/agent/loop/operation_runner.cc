#include "agent/loop/operation_runner.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "agent/metrics.h"
#include "device/plain_gpus.h"

namespace nos::agent {
namespace {

using Kind = device::Operation::Kind;

// Removes a GPU instance that a crash left incomplete.
bool IsRepair(const device::Operation& operation) {
  return operation.kind == Kind::kDestroy && operation.uuid.empty();
}

// An incomplete instance may be work in progress of another tool, so it is left alone on nodes that
// nos does not manage and on unhealthy GPUs.
bool IsLeftAlone(const device::Operation& operation, const ObservedState& round) {
  return IsRepair(operation) && (!round.managed || round.devices.broken.contains(operation.gpu));
}

// True if the operation still means the same device: GPU indices change when a GPU disappears.
bool IsThere(const device::Operation& operation, const NodeDevices& devices) {
  if (operation.Switches()) {
    return std::ranges::any_of(devices.infos, [&](const device::GpuInfo& info) {
      return info.index == operation.gpu && info.uuid == operation.uuid;
    });
  }
  return std::ranges::any_of(devices.gpus, [&](const device::ObservedGpu& gpu) {
    return gpu.index == operation.gpu &&
           std::ranges::any_of(gpu.instances, [&](const device::GpuInstance& instance) {
             return instance.id == operation.instance_id && instance.uuid == operation.uuid;
           });
  });
}

std::string NameOf(Kind kind) {
  switch (kind) {
    case Kind::kCreate:
      return "create";
    case Kind::kDestroy:
      return "destroy";
    case Kind::kEnableMig:
      return "enable";
    case Kind::kDisableMig:
      return "disable";
    case Kind::kEnableMps:
      return "share";
    case Kind::kDisableMps:
      return "unshare";
  }
  return "";
}

}  // namespace

OperationRunner::OperationRunner(Options options, device::Backend& backend, DeviceOffer& offer,
                                 const SharingModes& modes)
    : backend_(backend),
      offer_(offer),
      modes_(modes),
      metrics_(options.metrics),
      failures_(options.retries, options.failures_before_giving_up) {}

bool OperationRunner::Any(FunctionRef<bool(SharingModeStrategy&)> answer) const {
  return std::ranges::any_of(modes_, [&](const auto& mode) { return answer(*mode); });
}

bool OperationRunner::IsHarmless(const device::Operation& operation,
                                 const ObservedState& round) const {
  return Any([&](auto& mode) { return mode.IsHarmless(operation, round.devices.gpus); });
}

bool OperationRunner::NeedsUncachedState(const device::Operation& operation) {
  return operation.kind != Kind::kCreate && !IsRepair(operation);
}

device::Progress OperationRunner::Decide(ObservedState& round, Time now) {
  std::set<std::string> asked;
  const auto deferred = [&](const device::Operation& operation) {
    if (IsLeftAlone(operation, round)) return true;
    asked.insert(operation.ToString());
    return MustWait(operation, round, now) || failures_.Pausing(operation, now);
  };
  const auto delayed = [&](const device::GpuInfo& gpu) {
    return Any([&](auto& mode) { return mode.Delays(gpu, now); });
  };
  // 1. Operations that the specs request.
  device::Progress progress =
      device::NextOperation(round.targets, round.devices.gpus, round.keep, deferred);
  // 2. Operations that the node's label requests, or leftovers of an earlier agent.
  for (const auto& mode : modes_) {
    if (!progress.next) progress.next = mode->Next(round, {deferred, delayed});
  }
  if (!progress.next) failures_.Keep(asked);
  return progress;
}

bool OperationRunner::MustWait(const device::Operation& operation, ObservedState& round,
                               Time now) const {
  if (IsHarmless(operation, round)) return false;
  const bool unshares = operation.kind == Kind::kDisableMps;
  // Operations on devices that exist only in the agent's memory (shares, time slices, whole GPUs),
  // or that replace them. They wait while pods hold such devices that the agent cannot list.
  const bool in_memory = unshares || operation.ChangesMig() ||
                         (operation.Switches() && round.mode.per_gpu) ||
                         !device::IsMigProfile(operation.profile);
  if (in_memory && round.devices.unseen_shares) return round.waits = true;
  if (!NeedsUncachedState(operation)) return false;
  const bool switches = operation.Switches();
  // A daemon may still serve the device, also one of an earlier agent. A GPU that a daemon has open
  // cannot be reset either.
  const bool serves = unshares || operation.ChangesMig() || operation.kind == Kind::kDestroy;
  const auto is_served = [&](auto& mode) { return mode.IsServed(operation.uuid); };
  if (serves && Any(is_served)) return round.waits = true;
  if (!switches && offer_.IsDraining(operation.uuid, now)) return true;
  // With a mode per GPU whole GPUs are instances, so IsAwaited covers pods that are being admitted
  // for them.
  const bool whole =
      !round.mode.per_gpu && (round.pending_admission.contains(kWholeGpu) ||
                              round.pending_admission.contains(std::string(gpu::kTimeSlice)));
  const bool awaited = switches ? whole : offer_.IsAwaited(operation.uuid, round, now);
  round.waits |= awaited;
  return awaited;
}

bool OperationRunner::MayPerform(const device::Operation& operation, ObservedState& round,
                                 Time now) {
  if (!IsThere(operation, round.devices)) return false;
  if (IsHarmless(operation, round)) return true;
  offer_.RecordAdmissions(round);
  const bool destroys = operation.kind == Kind::kDestroy;
  if (destroys && !round.unwanted.contains(operation.uuid)) return false;
  if (round.keep.contains(operation.uuid) || MustWait(operation, round, now)) return false;
  if (!destroys) return true;
  return offer_.RefuseAllocation(operation.uuid) &&
         !Any([&](auto& mode) { return !mode.MayDestroy(operation, round); });
}

Status OperationRunner::Perform(const device::Operation& operation, const ObservedState& round,
                                const Clock& clock) {
  const SteadyClock stopwatch;
  const Time begun = stopwatch.Now();
  Status done = Apply(operation, round);
  if (metrics_ != nullptr) {
    const std::string name = NameOf(operation.kind);
    metrics_->Observe(kDeviceOperationDuration, {{"operation", name}}, stopwatch.Now() - begun);
    metrics_->Count(kDeviceOperations,
                    {{"operation", name}, {"result", done.ok() ? "ok" : "error"}});
  }
  if (done.ok()) {
    failures_.Succeeded(operation);
    return done;
  }
  failures_.Record(operation, done, clock.Now());
  // A GPU that cannot be reset keeps its mode; no retry before a new plan requests the change.
  const auto delays = [&](auto& mode) {
    return mode.Delay(operation, done, round.devices.gpus, clock.Now());
  };
  if (failures_.GivenUp(operation) && Any(delays)) failures_.Succeeded(operation);
  return done;
}

Status OperationRunner::Apply(const device::Operation& operation, const ObservedState& round) {
  for (const auto& mode : modes_) {
    if (auto done = mode->Apply(operation, round.devices.gpus, backend_)) return *std::move(done);
  }
  return device::Apply(operation, backend_);
}

}  // namespace nos::agent
