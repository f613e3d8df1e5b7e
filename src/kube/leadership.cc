#include "kube/leadership.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace nos::kube {
namespace {

// Back-stop of the wait; the elector is due more often.
constexpr Duration kLongest = std::chrono::seconds(60);

Status NotLeading() {
  return {Code::kUnavailable, "another replica leads; this one does not write"};
}

}  // namespace

Leadership::Leadership(Transport& transport, LeaderElectionOptions options,
                       std::function<void()> on_change)
    : client_(transport),
      elector_(std::move(options)),
      on_change_(std::move(on_change)),
      thread_([this] { Run(); }) {}

Leadership::~Leadership() {
  stop_ = true;
  bell_.Ring();
  thread_.join();
}

bool Leadership::Leads() const { return clock_.Now() < leads_until_.load(); }

std::string Leadership::holder() const {
  const std::scoped_lock lock(mutex_);
  return holder_;
}

Status Leadership::error() const {
  const std::scoped_lock lock(mutex_);
  return error_;
}

void Leadership::Run() {
  bool told = false;
  while (!stop_) {
    elector_.Step(client_, clock_.Now());
    told = Look(told);
    // Leadership that runs out unrenewed is noticed then, not at the next attempt.
    const Time now = clock_.Now();
    const Time due =
        Leads() ? std::min(elector_.NextDue(), leads_until_.load()) : elector_.NextDue();
    bell_.Wait(std::clamp<Duration>(due - now, std::chrono::milliseconds(1), kLongest));
  }
  leads_until_ = Time{};
  elector_.Release(client_);
}

bool Leadership::Look(bool told) {
  leads_until_ = elector_.LeadsUntil();
  {
    const std::scoped_lock lock(mutex_);
    if (!elector_.error().ok() && elector_.error().message() != error_.message()) {
      Log(LogLevel::kWarn, "cannot ask for leadership", {{"error", elector_.error().ToString()}});
    }
    holder_ = elector_.holder();
    error_ = elector_.error();
  }
  const bool leads = Leads();
  if (leads == told) return leads;
  Log(LogLevel::kInfo, leads ? "leads" : "leads no longer");
  on_change_();
  return leads;
}

Result<ApiResponse> FencedTransport::Do(const ApiRequest& request) {
  if (request.method != "GET" && !may_write_()) return NotLeading();
  return transport_.Do(request);
}

Result<std::unique_ptr<WatchStream>> FencedTransport::Watch(const ApiRequest& request) {
  return transport_.Watch(request);
}

std::vector<Result<ApiResponse>> FencedTransport::DoAll(const std::vector<ApiRequest>& requests) {
  // A few at a time: leadership may be lost while many wait for their turn.
  constexpr size_t kTogether = 20;
  std::vector<Result<ApiResponse>> answers;
  answers.reserve(requests.size());
  for (size_t i = 0; i < requests.size(); i += kTogether) {
    const auto first = requests.begin() + static_cast<std::ptrdiff_t>(i);
    const auto last = first + static_cast<std::ptrdiff_t>(std::min(kTogether, requests.size() - i));
    const bool writes = std::any_of(first, last, [](const auto& r) { return r.method != "GET"; });
    if (writes && !may_write_()) {
      answers.resize(answers.size() + static_cast<size_t>(last - first),
                     Result<ApiResponse>(NotLeading()));
      continue;
    }
    for (auto& answer : transport_.DoAll({first, last})) answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace nos::kube
