#include "sim/world/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/world/invariants.h"

namespace nos::sim {
namespace {

using device::SimAttempt;
using device::SimFault;

std::string Describe(const SimAttempt& attempt) {
  switch (attempt.kind) {
    case SimAttempt::Kind::kEnableMig:
      return fmt::format("enable MIG on GPU {}", attempt.gpu);
    case SimAttempt::Kind::kDisableMig:
      return fmt::format("disable MIG on GPU {}", attempt.gpu);
    case SimAttempt::Kind::kSetComputeMode:
      return fmt::format("set the compute mode of GPU {}", attempt.gpu);
    default:
      break;
  }
  const bool create = attempt.kind == SimAttempt::Kind::kCreate;
  return fmt::format("{} {}@{} on GPU {}", create ? "create" : "destroy", attempt.profile,
                     attempt.start, attempt.gpu);
}

}  // namespace

Result<std::unique_ptr<Machine>> Machine::Make(const NodeSpec& spec, const Environment& env,
                                               const MachineTimes& times) {
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
      kubelet_(std::make_unique<VirtualNode>(spec, kubelet_transport_, env.clock, env.log,
                                             env.random.Fork(), times.kubelet)) {
  std::vector<device::SimGpuSpec> gpus;
  for (const GpuSpec& gpu : spec.gpus) {
    const auto model = FindModel(env.catalogue, gpu.model);
    if (!model.ok()) {  // nobody knows how to cut it: a node without usable GPUs
      models_.clear();
      return;
    }
    models_.push_back(*model);
    gpus.push_back({*model, ProductLabel(gpu.model), true});
  }
  if (gpus.empty()) return;
  gpus_ = std::make_unique<device::SimGpus>(std::move(gpus), name_, Hooks(), times.devices);
  if (spec.managed) MakeAgent();
}

void Machine::MakeAgent() {
  kubelet_->OnWithdrawal([this](const auto& device) { OnWithdrawal(device); });
  sockets_ =
      std::make_unique<FaultyKubelet>(*kubelet_, *kubelet_, env_.faults, agent_life_, env_.clock);
  agent_ = std::make_unique<Process>(
      "agent " + name_,
      [this] {
        return std::make_unique<controllers::Agent>(times_.agent, name_, env_.catalogue, *gpus_,
                                                    *sockets_, *sockets_);
      },
      agent_transport_, controllers::ForNode(name_), agent_life_, env_.clock, env_.log);
}

Status Machine::PlaceInstances(const NodeSpec& spec) {
  for (size_t i = 0; i < models_.size(); ++i) {
    for (const InstanceSpec& instance : spec.gpus[i].instances) {
      NOS_ASSIGN(const gpu::Placement placement, models_[i]->ParsePlacement(instance.placement));
      const std::string& profile = models_[i]->profile(placement.profile).name;
      const auto placed = gpus_->Place(static_cast<int>(i), profile, placement.start);
      if (!placed.ok()) {
        return Invalid(fmt::format("GPU {}: {} does not fit with the instances before it", i,
                                   instance.placement));
      }
    }
  }
  return Status::Ok();
}

device::SimHooks Machine::Hooks() {
  return {.spend = [this](Duration time) { agent_->Spend(time); },
          .fault = [this](const SimAttempt& attempt) { return DrawFault(attempt); },
          .held = {},
          .busy = [this](const std::string& uuid) { return kubelet_->Holder(uuid) != nullptr; },
          .on_destroy = [this](const device::GpuInstance& instance) { OnDestroy(instance); }};
}

SimFault Machine::DrawFault(const SimAttempt& attempt) {
  const FaultRates& rates = env_.faults.rates();
  if (!agent_life_.alive) return SimFault::kFails;  // a dead process calls nothing
  const bool create = attempt.kind == SimAttempt::Kind::kCreate;
  const bool destroy = attempt.kind == SimAttempt::Kind::kDestroy;
  SimFault fault = SimFault::kNone;
  int& fail = create ? fail_creates_ : fail_destroys_;
  if ((create || destroy) && fail > 0) {
    --fail;
    fault = create ? SimFault::kFails : SimFault::kBusy;
  } else if (env_.faults.Strike(rates.crash)) {
    fault = env_.random.Chance(0.5) ? SimFault::kCrashBetween : SimFault::kFails;
    agent_life_.alive = false;
  } else if (create && env_.faults.Strike(rates.create_failed)) {
    fault = env_.random.Chance(0.5) ? SimFault::kFails : SimFault::kTimeout;
  } else if (destroy && env_.faults.Strike(rates.destroy_in_use)) {
    fault = SimFault::kBusy;
  }
  const bool noted = fault != SimFault::kNone;
  env_.log.Note("agent " + name_, (noted ? "fault: " : "") + Describe(attempt));
  return fault;
}

void Machine::OnDestroy(const device::GpuInstance& instance) {
  Note(CheckDestruction(*this, instance, TruthNow()));
}

void Machine::OnWithdrawal(const kubelet::OfferedDevice& device) {
  Note(CheckWithdrawal(*this, device, TruthNow()));
}

ApiTruth Machine::TruthNow() const {
  kube::Client client(env_.api);
  Result<ApiTruth> told = TruthOf(client, name_);
  return told.ok() ? std::move(told).value() : ApiTruth();
}

void Machine::Note(std::vector<std::string> problems) {
  for (std::string& problem : problems) {
    env_.log.Note("VIOLATION", problem);
    env_.violations.push_back(std::move(problem));
  }
}

std::optional<Time> Machine::LastDisturbance() const {
  return std::max({env_.faults.last(), env_.kubelet_faults.last(), disturbed_});
}

void Machine::Reboot() {
  disturbed_ = env_.clock.Now();
  lost_gpus_.clear();
  kubelet_->Reboot();
  if (gpus_ != nullptr) gpus_->Reboot();
  if (agent_ != nullptr) agent_->Crash(times_.kubelet.boot);
}

void Machine::LoseGpu(int gpu) {
  disturbed_ = env_.clock.Now();
  env_.log.Note(name_, fmt::format("loses GPU {}", gpu));
  gpus_->Lose(gpu);
  lost_gpus_.emplace(gpu, env_.clock.Now());
}

void Machine::RestoreGpu(int gpu) {
  disturbed_ = env_.clock.Now();
  env_.log.Note(name_, fmt::format("has GPU {} again", gpu));
  gpus_->Restore(gpu);
  lost_gpus_.erase(gpu);
}

void Machine::FailNext(SimAttempt::Kind kind, int count) {
  (kind == SimAttempt::Kind::kCreate ? fail_creates_ : fail_destroys_) += count;
}

}  // namespace nos::sim
