#include "device/bounded_gpus.h"

#include <fmt/core.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/log.h"

namespace nos::device {
namespace {

constexpr int kMaxGpus = 64;
constexpr Duration kAtEnd = std::chrono::seconds(5);  // for a call while the process ends

// "the call 'list instances' has not returned since 2026-01-02T03:04:05Z, longer than 30s".
std::string Describe(const CallThread::Overdue& call) {
  return fmt::format("the call '{}' has not returned since {}, longer than {}", call.name,
                     FormatTime(call.since), FormatAge(call.limit));
}

std::string DescribeGpu(int gpu, const CallThread::Overdue& call) {
  return fmt::format("GPU {} does not answer: {}", gpu, Describe(call));
}

std::string DescribeDriver(const CallThread::Overdue& call) {
  return fmt::format("the driver does not answer: {}", Describe(call));
}

// `call`: of this or an earlier caller; empty if it has returned meanwhile, too late.
Status Unanswered(int gpu, const std::optional<CallThread::Overdue>& call) {
  return {Code::kUnavailable,
          call ? DescribeGpu(gpu, *call) : fmt::format("GPU {} has answered too late", gpu)};
}

void LogChange(const std::string& gpu, const std::optional<CallThread::Overdue>& call) {
  if (call) {
    Log(LogLevel::kWarn, "waiting for a call to the driver",
        {{"gpu", gpu}, {"call", Describe(*call)}});
  } else {
    Log(LogLevel::kInfo, "resuming calls to the driver", {{"gpu", gpu}});
  }
}

// nullopt: the call has not returned in time. Until it returns, only its thread may touch the
// answer.
template <typename T>
std::optional<T> AnswerOf(CallThread& thread, const CallThread::Call& call,
                          std::optional<T>& answer) {
  return thread.Await(call) ? std::move(answer) : std::nullopt;
}

template <typename R>
R Failed(const Status& status) {
  if constexpr (std::is_same_v<R, Readings>) {
    return NothingMeasured(status.message());
  } else {
    return R(status);
  }
}

// The only GPU of the list.
Result<GpuInfo> OnlyOne(int gpu, Result<std::vector<GpuInfo>> listed) {
  if (!listed.ok()) return listed.status();
  if (listed->empty()) return NotFound(fmt::format("there is no GPU {}", gpu));
  GpuInfo info = std::move(listed->front());
  if (!info.problem.empty()) return Status(Code::kUnavailable, info.problem);
  return info;
}

}  // namespace

Duration LimitOf(BoundedCallOptions::Kind kind) {
  return kind == BoundedCallOptions::Kind::kRead ? std::chrono::seconds(30)
                                                 : std::chrono::seconds(120);
}

BoundedGpus::BoundedGpus(std::shared_ptr<GpuDriver> driver, GpuHealth& health, Options options)
    : driver_(std::move(driver)),
      health_(health),
      options_(std::move(options)),
      driver_thread_([this] { NoteDriver(); }) {}

// Each access is closed on its own thread. One whose thread is left behind is closed there, if
// ever.
BoundedGpus::~BoundedGpus() {
  Hurry();
  std::map<int, std::unique_ptr<Slot>> slots;
  {
    const std::lock_guard lock(mutex_);
    slots = std::move(slots_);
    slots_.clear();
  }
  std::vector<std::pair<Slot*, std::shared_ptr<CallThread::Call>>> closing;
  for (auto& [gpu, slot] : slots) {
    auto close = [access = std::move(slot->access)]() mutable { access.reset(); };
    closing.emplace_back(slot.get(), slot->thread.Begin("close", kAtEnd, std::move(close)));
  }
  bool left = !driver_thread_.Await(*driver_thread_.Begin("close", kAtEnd, [] {}));
  for (auto& [slot, call] : closing) left |= !slot->thread.Await(*call);
  if (left && options_.left_behind) options_.left_behind();
}

Duration BoundedGpus::Limit(int gpu, Kind kind) const {
  return options_.limit ? options_.limit(gpu, kind) : LimitOf(kind);
}

BoundedGpus::Slot& BoundedGpus::SlotOf(int gpu) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Slot>& slot = slots_[gpu];
  if (slot == nullptr) {
    slot = std::make_unique<Slot>(driver_->Open(gpu), [this, gpu] { Note(gpu); });
    if (hurry_) slot->thread.Hurry(kAtEnd);
  }
  return *slot;
}

std::vector<std::pair<int, BoundedGpus::Slot*>> BoundedGpus::Slots() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<int, Slot*>> slots;
  for (const auto& [gpu, slot] : slots_) slots.emplace_back(gpu, slot.get());
  return slots;
}

Result<int> BoundedGpus::CountGpus() {
  auto answer = std::make_shared<std::optional<Result<int>>>();
  const auto call =
      driver_thread_.Begin("count GPUs", Limit(HealthCondition::kNoGpu, Kind::kRead),
                           [driver = driver_, answer] { answer->emplace(driver->Count()); });
  const std::optional<Result<int>> counted = AnswerOf(driver_thread_, *call, *answer);
  if (counted && !counted->ok()) return counted->status();
  if (counted && (counted->value() < 0 || counted->value() > kMaxGpus)) {
    return Internal(fmt::format("the driver says there are {} GPUs", counted->value()));
  }
  const std::lock_guard lock(mutex_);
  if (counted) count_ = counted->value();
  if (count_) return *count_;
  const auto overdue = driver_thread_.overdue();
  return Status(Code::kDeadline,
                overdue ? DescribeDriver(*overdue) : "the driver has answered too late");
}

Result<std::vector<GpuInfo>> BoundedGpus::ListGpus() {
  const std::shared_lock open(gate_);
  NOS_ASSIGN(const int count, CountGpus());
  struct Reading {
    Slot* slot;
    std::shared_ptr<CallThread::Call> call;
    std::shared_ptr<std::optional<Result<std::vector<GpuInfo>>>> answer;
  };
  std::vector<Reading> readings;
  for (int gpu = 0; gpu < count; ++gpu) {
    Slot& slot = SlotOf(gpu);
    auto answer = std::make_shared<std::optional<Result<std::vector<GpuInfo>>>>();
    auto call =
        slot.thread.Begin("read GPU", Limit(gpu, Kind::kRead), [access = slot.access, answer] {
          access->Rest(false);
          answer->emplace(access->backend().ListGpus());
        });
    readings.push_back({&slot, std::move(call), std::move(answer)});
  }
  std::map<int, Result<GpuInfo>> read;
  for (int gpu = 0; gpu < count; ++gpu) {
    const Reading& one = readings[static_cast<size_t>(gpu)];
    if (auto listed = AnswerOf(one.slot->thread, *one.call, *one.answer)) {
      read.emplace(gpu, OnlyOne(gpu, *std::move(listed)));
    } else {
      read.emplace(gpu, Unanswered(gpu, one.slot->thread.overdue()));
    }
  }
  const std::lock_guard lock(mutex_);
  return known_.Complete(read);
}

template <typename R, typename F>
R BoundedGpus::OnGpu(int gpu, Kind kind, std::string name, const F& call) {
  if (gpu < 0 || gpu >= kMaxGpus) {
    return Failed<R>(NotFound(fmt::format("there is no GPU {}", gpu)));
  }
  Slot& slot = SlotOf(gpu);
  auto answer = std::make_shared<std::optional<R>>();
  const auto begun = slot.thread.Begin(
      std::move(name), Limit(gpu, kind),
      [access = slot.access, answer, call] { answer->emplace(call(access->backend())); });
  if (std::optional<R> given = AnswerOf(slot.thread, *begun, *answer)) return *std::move(given);
  return Failed<R>(Unanswered(gpu, slot.thread.overdue()));
}

Result<std::vector<GpuInstance>> BoundedGpus::ListInstances(int gpu) {
  const std::shared_lock open(gate_);
  return OnGpu<Result<std::vector<GpuInstance>>>(
      gpu, Kind::kRead, "list instances",
      [gpu](Backend& backend) { return backend.ListInstances(gpu); });
}

Result<GpuInstance> BoundedGpus::Create(int gpu, const std::string& profile, uint8_t start) {
  const std::shared_lock open(gate_);
  return OnGpu<Result<GpuInstance>>(
      gpu, Kind::kChange, fmt::format("create {}@{}", profile, start),
      [=](Backend& backend) { return backend.Create(gpu, profile, start); });
}

Status BoundedGpus::Destroy(int gpu, uint32_t instance_id) {
  const std::shared_lock open(gate_);
  return OnGpu<Status>(gpu, Kind::kChange, fmt::format("destroy instance {}", instance_id),
                       [=](Backend& backend) { return backend.Destroy(gpu, instance_id); });
}

Status BoundedGpus::EnableMig(int gpu) {
  const std::shared_lock open(gate_);
  return OnGpu<Status>(gpu, Kind::kChange, "enable MIG mode",
                       [gpu](Backend& backend) { return backend.EnableMig(gpu); });
}

Status BoundedGpus::DisableMig(int gpu) {
  const std::shared_lock open(gate_);
  return OnGpu<Status>(gpu, Kind::kChange, "disable MIG mode",
                       [gpu](Backend& backend) { return backend.DisableMig(gpu); });
}

Status BoundedGpus::SetComputeMode(int gpu, ComputeMode mode) {
  const std::shared_lock open(gate_);
  return OnGpu<Status>(gpu, Kind::kChange, "set compute mode",
                       [=](Backend& backend) { return backend.SetComputeMode(gpu, mode); });
}

Status BoundedGpus::ResetGpu(int gpu) {
  const std::unique_lock alone(gate_);
  Status rests = RestOthers(gpu, true);
  if (rests.ok()) {
    rests = OnGpu<Status>(gpu, Kind::kChange, "reset",
                          [gpu](Backend& backend) { return backend.ResetGpu(gpu); });
  }
  (void)RestOthers(gpu, false);
  return rests;
}

// The driver resets no GPU that a process has open, and a session with it opens all.
Status BoundedGpus::RestOthers(int gpu, bool rest) {
  std::vector<std::pair<Slot*, std::shared_ptr<CallThread::Call>>> begun;
  for (auto& [other, slot] : Slots()) {
    if (other == gpu) continue;
    begun.emplace_back(
        slot, slot->thread.Begin(rest ? "close session" : "watch GPU", Limit(other, Kind::kRead),
                                 [access = slot->access, rest] { access->Rest(rest); }));
  }
  bool all = true;
  for (auto& [slot, call] : begun) all &= slot->thread.Await(*call);
  const std::vector<std::string> hanging = Hanging();
  if (all && hanging.empty()) return Status::Ok();
  return {Code::kUnavailable,
          fmt::format("GPU {} cannot be reset while this process has a call in the driver: {}", gpu,
                      hanging.empty() ? "one has returned late" : hanging.front())};
}

Readings BoundedGpus::MeasureGpu(int gpu) {
  const std::shared_lock open(gate_);
  return OnGpu<Readings>(gpu, Kind::kRead, "measure GPU",
                         [gpu](Backend& backend) { return backend.MeasureGpu(gpu); });
}

Readings BoundedGpus::MeasureInstance(const GpuInstance& instance) {
  const std::shared_lock open(gate_);
  return OnGpu<Readings>(
      instance.gpu, Kind::kRead, "measure instance",
      [instance](Backend& backend) { return backend.MeasureInstance(instance); });
}

std::vector<std::string> BoundedGpus::Hanging() const {
  std::vector<std::string> hanging;
  if (const auto overdue = driver_thread_.overdue()) hanging.push_back(DescribeDriver(*overdue));
  for (const auto& [gpu, slot] : Slots()) {
    if (const auto call = slot->thread.overdue()) hanging.push_back(DescribeGpu(gpu, *call));
  }
  return hanging;
}

bool BoundedGpus::AllHang() const {
  if (driver_thread_.overdue()) return true;
  const auto slots = Slots();
  return !slots.empty() && std::ranges::all_of(slots, [](const auto& entry) {
    return entry.second->thread.overdue().has_value();
  });
}

void BoundedGpus::Hurry() {
  {
    const std::lock_guard lock(mutex_);
    hurry_ = true;
  }
  driver_thread_.Hurry(kAtEnd);
  for (const auto& [gpu, slot] : Slots()) slot->thread.Hurry(kAtEnd);
}

// A call that becomes overdue and its return are noted by two threads. The one that comes last sees
// the present state.
void BoundedGpus::Note(int gpu) {
  {
    const std::lock_guard one(noting_);
    std::optional<CallThread::Overdue> overdue;
    for (const auto& [other, slot] : Slots()) {
      if (other == gpu) overdue = slot->thread.overdue();
    }
    LogChange(std::to_string(gpu), overdue);
    if (overdue) {
      health_.Add({HealthCondition::Kind::kHangs,
                   gpu,
                   {},
                   0,
                   fmt::format("{}; it is not used meanwhile and is read anew when the call "
                               "returns, other GPUs go on; see the kernel log, and reboot the node "
                               "if it does not return",
                               Describe(*overdue))});
    } else {
      health_.Clear(gpu, HealthCondition::Kind::kHangs);
    }
  }
  if (options_.changed) options_.changed();
}

void BoundedGpus::NoteDriver() {
  {
    const std::lock_guard one(noting_);
    const auto overdue = driver_thread_.overdue();
    LogChange("all", overdue);
    if (overdue) {
      health_.Add({HealthCondition::Kind::kDriverHangs,
                   HealthCondition::kNoGpu,
                   {},
                   0,
                   DescribeDriver(*overdue) + "; the GPUs that it has listed last count"});
    } else {
      health_.Clear(HealthCondition::kNoGpu, HealthCondition::Kind::kDriverHangs);
    }
  }
  if (options_.changed) options_.changed();
}

}  // namespace nos::device
