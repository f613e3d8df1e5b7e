#include "telemetryserver/savings/queue.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <tuple>

namespace nos::telemetryserver {
namespace {

class PodQueue {
 public:
  PodQueue(const std::vector<QueuedPod>& pods, const std::vector<PodClass>& classes,
           FunctionRef<bool()> out_of_time)
      : pods_(pods), classes_(classes), out_of_time_(out_of_time), waiting_(classes.size()) {
    size_t devices = 0;
    for (const PodClass& each : classes) {
      for (const auto& need : each.needs) {
        for (const DeviceOption& option : need) devices = std::max(devices, option.device + 1);
      }
    }
    free_.resize(devices);
    users_.resize(devices);
    dirty_.resize(classes.size());
    for (size_t c = 0; c < classes.size(); ++c) {
      for (const auto& need : classes[c].needs) {
        for (const DeviceOption& option : need) users_[option.device].push_back(c);
      }
    }
  }

  QueueResult Run(const std::vector<CapacityChange>& changes, const QueueTimes& times) {
    size_t next_pod = 0, next_change = 0;
    now_ = times.from;
    while (true) {
      const telemetry::Millis at =
          std::min({next_pod < pods_.size() ? pods_[next_pod].asked : kEndless,
                    next_change < changes.size() ? changes[next_change].at : kEndless,
                    running_.empty() ? kEndless : running_.top().first});
      if (at >= times.to) break;
      constexpr size_t kOften = 256;
      if (++rounds_ % kOften == 0 && out_of_time_()) {
        result_.stopped = true;
        return result_;
      }
      AdvanceTo(at);
      if (result_.waited > times.max_waited) return result_;
      for (; next_change < changes.size() && changes[next_change].at <= at; ++next_change) {
        if (changes[next_change].device >= free_.size()) continue;  // no pod can use it
        Free(changes[next_change].device, changes[next_change].by);
      }
      while (!running_.empty() && running_.top().first <= at) {
        for (const DeviceOption& taken : taken_[running_.top().second]) {
          Free(taken.device, taken.count);
        }
        taken_.erase(running_.top().second);
        running_.pop();
      }
      for (; next_pod < pods_.size() && pods_[next_pod].asked <= at; ++next_pod) {
        const QueuedPod& pod = pods_[next_pod];
        waiting_[pod.pod_class].emplace(!pod.ran, -pod.priority, next_pod);
        ++waiting_count_;
        Mark(pod.pod_class);
      }
      StartPods();
    }
    AdvanceTo(times.to);
    return result_;
  }

 private:
  using Place = std::tuple<bool, int64_t, size_t>;  // late, priority, negative, index of the pod

  // A class is tried again only if a pod joined it or a device that it can use became free.
  void Mark(size_t pod_class) {
    if (dirty_[pod_class] || waiting_[pod_class].empty()) return;
    dirty_[pod_class] = true;
    marked_.push_back(pod_class);
  }
  void Free(size_t device, int64_t count) {
    free_[device] += count;
    if (count <= 0) return;
    for (const size_t c : users_[device]) Mark(c);
  }

  void AdvanceTo(telemetry::Millis at) {
    result_.waited += static_cast<telemetry::Millis>(waiting_count_) * (at - now_);
    now_ = at;
  }

  // A class whose first pod does not fit has no other that fits now.
  void StartPods() {
    std::set<std::pair<Place, size_t>> first;
    for (const size_t c : marked_) {
      dirty_[c] = false;
      first.emplace(*waiting_[c].begin(), c);
    }
    marked_.clear();
    while (!first.empty()) {
      const auto [place, c] = *first.begin();
      first.erase(first.begin());
      if (!Start(std::get<size_t>(place))) continue;
      waiting_[c].erase(waiting_[c].begin());
      --waiting_count_;
      if (!waiting_[c].empty()) first.emplace(*waiting_[c].begin(), c);
    }
  }

  bool Start(size_t index) {
    const QueuedPod& pod = pods_[index];
    const PodClass& of = classes_[pod.pod_class];
    if (of.needs.empty()) return false;
    std::vector<DeviceOption> taken;
    for (const auto& need : of.needs) {
      const auto option = std::ranges::find_if(
          need, [&](const DeviceOption& each) { return free_[each.device] >= each.count; });
      if (option == need.end()) {
        for (const DeviceOption& each : taken) free_[each.device] += each.count;
        return false;
      }
      free_[option->device] -= option->count;
      taken.push_back(*option);
    }
    ++result_.started;
    if (pod.run > kEndless - now_) return true;
    running_.emplace(now_ + pod.run, index);
    taken_.emplace(index, std::move(taken));
    return true;
  }

  const std::vector<QueuedPod>& pods_;
  const std::vector<PodClass>& classes_;
  const FunctionRef<bool()> out_of_time_;
  size_t rounds_ = 0;
  std::vector<int64_t> free_;               // by device; negative: taken away in use
  std::vector<std::vector<size_t>> users_;  // classes by device
  std::vector<std::set<Place>> waiting_;    // by class
  std::vector<bool> dirty_;                 // by class: in marked_
  std::vector<size_t> marked_;
  size_t waiting_count_ = 0;
  std::priority_queue<std::pair<telemetry::Millis, size_t>,
                      std::vector<std::pair<telemetry::Millis, size_t>>, std::greater<>>
      running_;  // end, and index of the pod
  std::map<size_t, std::vector<DeviceOption>> taken_;
  telemetry::Millis now_ = 0;
  QueueResult result_;
};

}  // namespace

QueueResult RunQueue(const std::vector<QueuedPod>& pods, const std::vector<PodClass>& classes,
                     const std::vector<CapacityChange>& changes, const QueueTimes& times,
                     FunctionRef<bool()> out_of_time) {
  return PodQueue(pods, classes, out_of_time).Run(changes, times);
}

}  // namespace nos::telemetryserver
