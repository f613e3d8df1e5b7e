#include "telemetryserver/savings.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/random.h"
#include "telemetryserver/savings/devices.h"
#include "telemetryserver/savings/queue.h"

namespace nos::telemetryserver {
namespace {

constexpr uint64_t kSeed = 20'261;
constexpr double kMillisPerHour = 3'600'000;

// One replay's run times, and the demand from which it chooses layouts.
struct Draw {
  std::vector<QueuedPod> pods;  // in order of time; classes are those of Devices
  std::vector<double> wanted;   // mean number of pods at once, by class
};

// Result of one replay of an alternative.
struct Outcome {
  double waiting_hours = 0, started = 0, gpus = 0;
  bool enough = true;
};

Spread SpreadOf(std::vector<double> values) {
  std::ranges::sort(values);
  return {values.front(), values[values.size() / 2], values.back()};
}

class Replays {
 public:
  Replays(const Past& past, const gpu::Catalogue& catalogue)
      : past_(past), devices_(past, catalogue) {
    for (size_t i = 0; i < past.pods.size(); ++i) {
      const size_t of = devices_.class_of()[i];
      const bool served = !devices_.static_classes()[of].needs.empty() &&
                          !devices_.whole_classes()[of].needs.empty();
      if (served) order_.push_back(i);
    }
    // Those that ran at the beginning come first, as they were bound.
    std::ranges::stable_sort(order_, {}, [&](size_t i) {
      return std::tuple(past.pods[i].asked, past.pods[i].bound, past.pods[i].priority);
    });
    for (const size_t i : order_) waited_ += WaitOf(past.pods[i]);
  }

  Savings Run() {
    Savings savings{.from = past_.from, .to = past_.to};
    savings.gpus = std::ssize(past_.gpus);
    for (const PastGpu& gpu : past_.gpus) {
      savings.gpu_hours +=
          static_cast<double>(std::min(gpu.to, past_.to) - std::max(gpu.from, past_.from)) /
          kMillisPerHour;
    }
    savings.pods = order_.size();
    savings.left_out = past_.left_out + past_.pods.size() - order_.size();
    std::vector<telemetry::Millis> waits;
    for (const size_t i : order_) {
      if (past_.pods[i].ran()) waits.push_back(WaitOf(past_.pods[i]));
    }
    savings.started = waits.size();
    savings.unknown_runs = order_.size() - waits.size();
    if (!waits.empty()) {
      std::ranges::sort(waits);
      savings.median_wait = waits[waits.size() / 2];
      savings.p95_wait = waits[waits.size() * 95 / 100];
    }
    savings.waiting_hours = static_cast<double>(waited_) / kMillisPerHour;
    if (order_.empty() || past_.gpus.empty()) return savings;
    for (const std::string_view name : {kWholeGpus, kStaticLayouts}) {
      savings.alternatives.push_back(Replay(name));
    }
    return savings;
  }

 private:
  telemetry::Millis WaitOf(const PastPod& pod) const {
    return std::max<telemetry::Millis>(0, std::min(pod.bound, past_.to) - pod.asked);
  }

  telemetry::Millis RunOf(const PastPod& pod, Random& random) const {
    if (pod.ran()) {
      return pod.ended == kEndless ? kEndless : pod.ended - std::max(pod.bound, pod.asked);
    }
    return pod.similar_runs.empty() ? kEndless
                                    : pod.similar_runs[random.Below(pod.similar_runs.size())];
  }

  Draw MakeDraw(int number) const {
    Random random(kSeed + static_cast<uint64_t>(number));
    Draw draw;
    draw.wanted.resize(devices_.static_classes().size());
    for (const size_t i : order_) {
      const PastPod& pod = past_.pods[i];
      const QueuedPod queued{devices_.class_of()[i], pod.priority, pod.asked, RunOf(pod, random)};
      draw.pods.push_back(queued);
      const telemetry::Millis in_time =
          std::min(queued.run, std::max<telemetry::Millis>(0, past_.to - queued.asked));
      const double weight = number == 0 ? 1 : random.Exponential(1);
      draw.wanted[queued.pod_class] +=
          weight * static_cast<double>(in_time) / static_cast<double>(past_.to - past_.from);
    }
    return draw;
  }

  std::vector<size_t> LayoutsOf(std::string_view name, size_t gpus, const Draw& draw) const {
    return name == kWholeGpus ? devices_.WholeLayouts(gpus)
                              : devices_.ChooseLayouts(gpus, draw.wanted);
  }

  QueueResult Queue(std::string_view name, size_t gpus, const Draw& draw,
                    telemetry::Millis most_waited = kEndless) const {
    const auto& classes = name == kWholeGpus ? devices_.whole_classes() : devices_.static_classes();
    return RunQueue(draw.pods, classes, devices_.Changes(LayoutsOf(name, gpus, draw)),
                    {past_.from, past_.to, most_waited});
  }

  Alternative Replay(std::string_view name) const {
    Alternative alternative{.name = name};
    std::vector<double> waiting, started, gpus;
    for (int number = 0; number < kSavingsReplays; ++number) {
      const Draw draw = MakeDraw(number);
      const Outcome outcome = RunOne(name, draw);
      waiting.push_back(outcome.waiting_hours);
      started.push_back(outcome.started);
      gpus.push_back(outcome.gpus);
      alternative.enough = alternative.enough && outcome.enough;
      if (number == 0) alternative.layouts = LayoutNames(LayoutsOf(name, past_.gpus.size(), draw));
    }
    alternative.waiting_hours = SpreadOf(std::move(waiting));
    alternative.started = SpreadOf(std::move(started));
    alternative.gpus = SpreadOf(std::move(gpus));
    return alternative;
  }

  // The number of GPUs is found by bisection, to a hundredth.
  Outcome RunOne(std::string_view name, const Draw& draw) const {
    const size_t had = past_.gpus.size();
    const QueueResult same = Queue(name, had, draw);
    Outcome outcome{static_cast<double>(same.waited) / kMillisPerHour,
                    static_cast<double>(same.started), static_cast<double>(had)};
    if (same.waited <= waited_) return outcome;
    const auto suffices = [&](size_t gpus) {
      return Queue(name, gpus, draw, waited_).waited <= waited_;
    };
    size_t few = had, many = had * 2;
    while (!suffices(many)) {
      few = many;
      many *= 2;
      if (many > had * kMaxGrowth) {
        outcome.gpus = static_cast<double>(few);
        outcome.enough = false;
        return outcome;
      }
    }
    while (many - few > std::max<size_t>(1, had / 100)) {
      const size_t middle = std::midpoint(few, many);
      (suffices(middle) ? many : few) = middle;
    }
    outcome.gpus = static_cast<double>(many);
    return outcome;
  }

  std::vector<std::pair<std::string, int64_t>> LayoutNames(
      const std::vector<size_t>& layouts) const {
    std::map<std::string, int64_t> counts;
    for (size_t gpu = 0; gpu < layouts.size(); ++gpu) {
      ++counts[devices_.layouts(gpu)[layouts[gpu]].name];
    }
    std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
    std::ranges::stable_sort(sorted, std::greater(), [](const auto& each) { return each.second; });
    return sorted;
  }

  const Past& past_;
  const Devices devices_;
  std::vector<size_t> order_;  // of the pods that are replayed
  telemetry::Millis waited_ = 0;
};

}  // namespace

Savings SavingsOf(const Past& past, const gpu::Catalogue& catalogue) {
  return Replays(past, catalogue).Run();
}

}  // namespace nos::telemetryserver
