#include "telemetryserver/savings.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

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
  double waiting_hours = 0, started = 0;
  double gpus = 0;  // needed, on average
  bool enough = true;
};

Spread SpreadOf(std::vector<double> values) {
  std::ranges::sort(values);
  return {values.front(), values[values.size() / 2], values.back()};
}

class Replays {
 public:
  Replays(const Past& past, Devices devices, FunctionRef<bool()> out_of_time)
      : past_(past), devices_(std::move(devices)), out_of_time_(out_of_time) {
    for (size_t i = 0; i < past.pods.size(); ++i) {
      const size_t of = devices_.class_of()[i];
      const bool served = !devices_.static_classes()[of].needs.empty() &&
                          !devices_.whole_classes()[of].needs.empty();
      if (served) order_.push_back(i);
    }
    std::ranges::stable_sort(
        order_, {}, [&](size_t i) { return std::tuple(past.pods[i].asked, past.pods[i].bound); });
    for (const size_t i : order_) waited_ += WaitOf(past.pods[i]);
  }

  Result<Savings> Run() {
    Savings savings{.from = past_.from, .to = past_.to};
    savings.gpus = devices_.MeanOf(past_.gpus.size());
    savings.gpu_hours = savings.gpus * static_cast<double>(past_.to - past_.from) / kMillisPerHour;
    savings.pods = order_.size();
    savings.left_out = past_.left_out + past_.pods.size() - order_.size();
    std::vector<telemetry::Millis> waits;
    for (const size_t i : order_) {
      const PastPod& pod = past_.pods[i];
      savings.started += pod.ran() ? 1 : 0;
      if (pod.ran() && !RanBefore(pod)) waits.push_back(WaitOf(pod));
    }
    savings.unknown_runs = order_.size() - savings.started;
    if (!waits.empty()) {
      std::ranges::sort(waits);
      savings.median_wait = waits[waits.size() / 2];
      savings.p95_wait = waits[waits.size() * 95 / 100];
    }
    savings.waiting_hours = static_cast<double>(waited_) / kMillisPerHour;
    if (order_.empty() || savings.gpu_hours <= 0) return savings;
    for (const std::string_view name : {kWholeGpus, kStaticLayouts}) {
      savings.alternatives.push_back(Replay(name, savings.gpus));
    }
    if (!stopped_) return savings;
    return Invalid("replaying that time takes too long: ask for a shorter time");
  }

 private:
  telemetry::Millis WaitOf(const PastPod& pod) const {
    return std::max<telemetry::Millis>(0, std::min(pod.bound, past_.to) - pod.asked);
  }

  bool RanBefore(const PastPod& pod) const { return pod.bound <= past_.from; }

  telemetry::Millis RunOf(const PastPod& pod, Random& random) const {
    if (pod.ran()) {
      if (pod.ended == kEndless) return kEndless;
      return std::max<telemetry::Millis>(0, pod.ended - std::max(pod.bound, pod.asked));
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
      const QueuedPod queued{devices_.class_of()[i], pod.priority, pod.asked, RunOf(pod, random),
                             RanBefore(pod)};
      draw.pods.push_back(queued);
      const telemetry::Millis in_time =
          std::min(queued.run, std::max<telemetry::Millis>(0, past_.to - queued.asked));
      const double weight = number == 0 ? 1 : random.Exponential(1);
      draw.wanted[queued.pod_class] +=
          weight * static_cast<double>(in_time) / static_cast<double>(past_.to - past_.from);
    }
    return draw;
  }

  QueueResult Run(const std::vector<PodClass>& classes, const std::vector<size_t>& layouts,
                  const Draw& draw, telemetry::Millis max_waited) {
    stopped_ = stopped_ || out_of_time_();
    if (stopped_) return {};
    QueueResult result = RunQueue(draw.pods, classes, devices_.Changes(layouts),
                                  {past_.from, past_.to, max_waited}, out_of_time_);
    stopped_ = result.stopped;
    return result;
  }

  // Whole GPUs are static layouts too: the choice with less waiting counts.
  // `layouts`: set to those, if not null.
  QueueResult Queue(std::string_view name, size_t gpus, const Draw& draw,
                    telemetry::Millis max_waited, std::vector<size_t>* layouts) {
    const std::vector<size_t> whole = devices_.WholeLayouts(gpus);
    std::vector<size_t> chosen =
        name == kWholeGpus ? whole : devices_.ChooseLayouts(gpus, draw.wanted);
    const auto& classes = name == kWholeGpus ? devices_.whole_classes() : devices_.static_classes();
    QueueResult result = Run(classes, chosen, draw, max_waited);
    if (result.waited > (max_waited == kEndless ? 0 : max_waited) && name != kWholeGpus) {
      const QueueResult other = Run(devices_.whole_classes(), whole, draw, result.waited);
      if (other.waited < result.waited) {
        result = other;
        chosen = whole;
      }
    }
    if (layouts != nullptr) *layouts = std::move(chosen);
    return result;
  }

  // `mean`: number of GPUs that there were.
  Alternative Replay(std::string_view name, double mean) {
    Alternative alternative{.name = name};
    std::vector<double> waiting, started, gpus;
    // Without unknown run times all replays with whole GPUs are the same.
    const bool alike = name == kWholeGpus &&
                       std::ranges::all_of(order_, [&](size_t i) { return past_.pods[i].ran(); });
    for (int number = 0; number < (alike ? 1 : kSavingsReplays); ++number) {
      const Draw draw = MakeDraw(number);
      std::vector<size_t> layouts;
      const Outcome outcome = RunOne(name, draw, layouts);
      waiting.push_back(outcome.waiting_hours);
      started.push_back(outcome.started);
      gpus.push_back(std::max(mean, outcome.gpus));
      alternative.enough = alternative.enough && outcome.enough;
      if (number == 0) alternative.layouts = LayoutNames(layouts);
    }
    alternative.waiting_hours = SpreadOf(std::move(waiting));
    alternative.started = SpreadOf(std::move(started));
    alternative.gpus = SpreadOf(std::move(gpus));
    return alternative;
  }

  // The number of GPUs is found by bisection.
  Outcome RunOne(std::string_view name, const Draw& draw, std::vector<size_t>& layouts) {
    const size_t had = past_.gpus.size();
    const QueueResult same = Queue(name, had, draw, kEndless, &layouts);
    Outcome outcome{static_cast<double>(same.waited) / kMillisPerHour,
                    static_cast<double>(same.started), devices_.MeanOf(had)};
    if (same.waited <= waited_) return outcome;
    const auto suffices = [&](size_t gpus) {
      return Queue(name, gpus, draw, waited_, nullptr).waited <= waited_;
    };
    size_t few = had, many = had * 2;
    while (!stopped_ && !suffices(many)) {
      few = many;
      many *= 2;
      if (many > had * kMaxGrowth) {
        outcome.gpus = devices_.MeanOf(few);
        outcome.enough = false;
        return outcome;
      }
    }
    while (!stopped_ && many - few > 1) {
      const size_t middle = std::midpoint(few, many);
      (suffices(middle) ? many : few) = middle;
    }
    outcome.gpus = devices_.MeanOf(many);
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
  const FunctionRef<bool()> out_of_time_;
  bool stopped_ = false;
  std::vector<size_t> order_;  // of the pods that are replayed
  telemetry::Millis waited_ = 0;
};

}  // namespace

Result<Savings> SavingsOf(const Past& past, const gpu::Catalogue& catalogue,
                          FunctionRef<bool()> out_of_time) {
  NOS_ASSIGN(Devices devices, Devices::Make(past, catalogue));
  return Replays(past, std::move(devices), out_of_time).Run();
}

}  // namespace nos::telemetryserver
