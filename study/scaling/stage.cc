#include "study/scaling/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace nos::study {
namespace {

// Limit of Look calls without an event in between: the scaler would never stop.
constexpr int kMaxIdleLooks = 1'000'000;

}  // namespace

Stage::Stage(std::span<const ScalingJob> jobs, const StageOptions& options)
    : jobs_(jobs),
      options_(options),
      counts_(options.pools.size()),
      node_of_(jobs.size(), -1),
      ends_(jobs.size()),
      waits_(jobs.size()) {
  for (size_t j = 0; j < jobs.size(); ++j) {
    events_.emplace(jobs[j].arrival, Happens::kArrival, static_cast<int>(j));
  }
}

Status Stage::Run(Scaler& scaler) {
  int idle = 0;
  while (ended_ < jobs_.size() || !live_.empty()) {
    // Events precede a look at the same time, so that the scaler sees their effects.
    const std::optional<double> look = scaler.NextLook();
    if (!events_.empty() && (!look || std::get<double>(events_.top()) <= *look)) {
      const Event event = events_.top();
      events_.pop();
      now_ = std::get<double>(event);
      NOS_RETURN_IF_ERROR(Handle(event, scaler));
      idle = 0;
      continue;
    }
    if (!look || ++idle > kMaxIdleLooks) {
      return Internal(fmt::format("{} jobs never end, {} nodes never go, after {} s",
                                  jobs_.size() - ended_, live_.size(), now_));
    }
    now_ = std::max(now_, *look);
    NOS_RETURN_IF_ERROR(scaler.Look());
  }
  return Status::Ok();
}

Status Stage::Handle(const Event& event, Scaler& scaler) {
  const auto& [at, what, which] = event;
  switch (what) {
    case Happens::kArrival:
      waiting_.insert(which);
      return scaler.Arrived(which);
    case Happens::kReady:
      return nodes_[which].there(at) ? scaler.Ready(which) : Status::Ok();
    case Happens::kEnd:
      break;
  }
  if (ends_[which] != at || node_of_[which] < 0)
    return Status::Ok();  // it was moved and ends later
  const int node = std::exchange(node_of_[which], -1);
  nodes_[node].jobs.erase(which);
  log_.push_back({StageAction::kEnd, at, which, node});
  ++ended_;
  if (options_.on_progress) options_.on_progress(ended_);
  return scaler.Ended(which, node);
}

int Stage::Ask(int pool) {
  const int node = static_cast<int>(nodes_.size());
  StageNode& asked = nodes_.emplace_back();
  asked.pool = pool;
  asked.asked = now_;
  asked.ready = now_ + options_.start_seconds;
  live_.insert(node);
  ++counts_[pool];
  most_ = std::max(most_, static_cast<int>(live_.size()));
  events_.emplace(asked.ready, Happens::kReady, node);
  log_.push_back({StageAction::kAsk, now_, -1, node, {}, 0, pool});
  return node;
}

void Stage::Start(int job, int node, std::vector<ScalingDevice> devices, double delay) {
  const double from = now_ + delay;
  waiting_.erase(job);
  node_of_[job] = node;
  nodes_[node].jobs.insert(job);
  waits_[job] = from - jobs_[job].arrival;
  ends_[job] = from + jobs_[job].duration;
  events_.emplace(ends_[job], Happens::kEnd, job);
  log_.push_back({StageAction::kStart, now_, job, node, std::move(devices), from});
}

void Stage::Move(int job, int node, std::vector<ScalingDevice> devices) {
  nodes_[node_of_[job]].jobs.erase(job);
  node_of_[job] = node;
  nodes_[node].jobs.insert(job);
  waits_[job] += options_.restart_seconds;
  ends_[job] += options_.restart_seconds;
  events_.emplace(ends_[job], Happens::kEnd, job);
  ++moves_;
  log_.push_back({StageAction::kMove, now_, job, node, std::move(devices)});
}

void Stage::Remove(int node) {
  nodes_[node].gone = now_;
  live_.erase(node);
  --counts_[nodes_[node].pool];
  log_.push_back({StageAction::kRemove, now_, -1, node});
}

}  // namespace nos::study
