#include "kube/leadership.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace nos::kube {
namespace {

// Upper bound of the wait; the elector is normally due earlier.
constexpr Duration kMaxWait = std::chrono::seconds(60);

}  // namespace

Leadership::Leadership(Transport& transport, LeaderElectionOptions options,
                       std::function<void()> on_change, std::function<Time()> now)
    : now_(std::move(now)),
      client_(transport),
      elector_(std::move(options)),
      on_change_(std::move(on_change)),
      thread_([this] { Run(); }) {}

Leadership::~Leadership() {
  stop_ = true;
  bell_.Ring();
  thread_.join();
}

bool Leadership::Leads() const { return now_() < leads_until_.load(); }

std::string Leadership::holder() const {
  const std::scoped_lock lock(mutex_);
  return holder_;
}

Status Leadership::error() const {
  const std::scoped_lock lock(mutex_);
  return error_;
}

void Leadership::Run() {
  bool announced = false;
  while (!stop_) {
    elector_.Step(client_, now_());
    announced = Look(announced);
    // Leadership can expire before the next attempt is due; wake up at that time to report it.
    const Time now = now_();
    const Time due =
        Leads() ? std::min(elector_.NextDue(), leads_until_.load()) : elector_.NextDue();
    bell_.Wait(std::clamp<Duration>(due - now, std::chrono::milliseconds(1), kMaxWait));
  }
  leads_until_ = Time{};
  elector_.Release(client_);
}

bool Leadership::Look(bool announced) {
  leads_until_ = elector_.LeadsUntil();
  {
    const std::scoped_lock lock(mutex_);
    if (!elector_.error().ok() && elector_.error().message() != error_.message()) {
      Log(LogLevel::kWarn, "failed to acquire or renew Lease",
          {{"error", elector_.error().ToString()}});
    }
    holder_ = elector_.holder();
    error_ = elector_.error();
  }
  const bool leads = Leads();
  if (leads == announced) return leads;
  Log(LogLevel::kInfo, leads ? "acquired leadership" : "lost leadership");
  on_change_();
  return leads;
}

}  // namespace nos::kube
