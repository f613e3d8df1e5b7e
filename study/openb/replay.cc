#include "study/openb/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "study/openb/arrivals.h"
#include "study/openb/scheduler_placer.h"
#include "study/openb/trace.h"

namespace nos::study {
namespace {

using scheduling::packing::Choice;
using scheduling::packing::Fits;
using scheduling::packing::kWholeGpu;
using scheduling::packing::Node;
using scheduling::packing::PodKind;

constexpr double kMaxInflation = 100;

int64_t IdleMilli(const std::vector<Node>& nodes) {
  int64_t idle = 0;
  for (const Node& node : nodes) {
    for (const int left : node.gpu_milli) idle += left;
  }
  return idle;
}

// Averages the allocated share over the arrivals of each whole percent.
class Curve {
 public:
  void Add(double arrived_share, double allocated_share) {
    const int percent = static_cast<int>(std::lround(100 * arrived_share));
    if (percent != percent_) Close();
    percent_ = percent;
    sum_ += allocated_share;
    ++count_;
  }
  std::vector<OpenbReport::Point> Points() && {
    Close();
    return std::move(points_);
  }

 private:
  void Close() {
    if (count_ > 0) points_.push_back({percent_, sum_ / count_});
    sum_ = 0;
    count_ = 0;
  }

  std::vector<OpenbReport::Point> points_;
  int percent_ = 0;
  double sum_ = 0;
  int count_ = 0;
};

// One run: the cluster, the policy, and the records for checks.
class Run {
 public:
  Run(std::vector<Node> nodes, std::span<const PodKind> trace, OpenbPolicy policy, Random random)
      : initial_(std::move(nodes)),
        nodes_(initial_),
        capacity_(IdleMilli(initial_)),
        placer_(MakeOpenbPlacer(policy, nodes_, trace, random)) {}

  Status Arrive(const PodKind& pod) {
    arrived_ += RequestedMilli(pod);
    const std::optional<Choice> choice = placer_->Choose(pod);
    if (choice) {
      NOS_RETURN_IF_ERROR(Place(pod, *choice));
    } else {
      NOS_RETURN_IF_ERROR(Drop(pod));
    }
    curve_.Add(Share(arrived_), Share(allocated_));
    return Status::Ok();
  }

  // Recomputes the state of every node from the pods placed on it.
  Status CheckBooks() const {
    std::vector<Node> expected = initial_;
    for (const auto& [pod, choice] : placed_) Take(expected[choice.node], pod, choice.devices);
    if (expected != nodes_) return Internal("a node's books differ from the pods placed there");
    if (capacity_ - IdleMilli(nodes_) != allocated_) {
      return Internal("the allocated GPU differs from the sum of the pods placed");
    }
    const auto overused = [](const Node& node) {
      return node.cpu_milli < 0 || node.memory_mib < 0 || node.pods < 0 ||
             std::any_of(
                 node.gpu_milli.begin(), node.gpu_milli.end(),
                 [](int left) { return left < 0 || left > kWholeGpu; });
    };
    if (std::any_of(nodes_.begin(), nodes_.end(), overused)) return Internal("a node is overused");
    return Status::Ok();
  }

  void Fill(OpenbReport& report) && {
    report.nodes = nodes_.size();
    report.gpus = capacity_ / kWholeGpu;
    report.placed_pods = placed_.size();
    report.arrived_share = Share(arrived_);
    report.allocated_share = Share(allocated_);
    report.first_dropped_at = first_dropped_at_;
    report.curve = std::move(curve_).Points();
  }

 private:
  double Share(int64_t milli) const {
    return static_cast<double>(milli) / static_cast<double>(capacity_);
  }

  Status Place(const PodKind& pod, const Choice& choice) {
    if (!Fits(nodes_[choice.node], pod)) return Internal("a pod was placed where it does not fit");
    Take(nodes_[choice.node], pod, choice.devices);
    placer_->Placed(pod, choice);
    placed_.emplace_back(pod, choice);
    allocated_ += RequestedMilli(pod);
    return Status::Ok();
  }

  Status Drop(const PodKind& pod) {
    if (first_dropped_at_ == 0) first_dropped_at_ = Share(arrived_);
    const bool fits = std::any_of(nodes_.begin(), nodes_.end(),
                                  [&](const Node& node) { return Fits(node, pod); });
    return fits ? Internal("a pod was dropped that fits a node") : Status::Ok();
  }

  const std::vector<Node> initial_;
  std::vector<Node> nodes_;
  int64_t capacity_;  // milli-GPU, like the next two
  int64_t arrived_ = 0;
  int64_t allocated_ = 0;
  double first_dropped_at_ = 0;
  std::vector<std::pair<PodKind, Choice>> placed_;
  Curve curve_;
  std::unique_ptr<OpenbPlacer> placer_;  // refers to nodes_
};

}  // namespace

Result<OpenbReport> RunOpenb(const OpenbOptions& options) {
  if (!(options.inflation > 0 && options.inflation <= kMaxInflation)) {
    return Invalid(fmt::format("inflation: {} is not above 0 and at most {}", options.inflation,
                               kMaxInflation));
  }
  NOS_ASSIGN(OpenbTrace trace, ParseOpenb({options.nodes_name, options.nodes_text},
                                          {options.pods_name, options.pods_text}));
  if (options.policy == OpenbPolicy::kNosScheduler) {
    const auto finer = std::ranges::find_if(
        trace.pods, [](const PodKind& pod) { return pod.milli % kShareMilli != 0; });
    if (finer != trace.pods.end()) {
      return Invalid(
          fmt::format("{}: a pod asks for {} thousandths of a GPU; the scheduler's shares "
                      "are multiples of {}",
                      options.pods_name, finer->milli, kShareMilli));
    }
  }
  Random random(options.seed);
  const Random arrivals_random = random.Fork();
  random.Shuffle(trace.nodes);
  const auto target =
      static_cast<int64_t>(options.inflation * static_cast<double>(IdleMilli(trace.nodes)));
  NOS_ASSIGN(const std::vector<PodKind> arrivals,
             ArrangeArrivals(trace.pods, target, arrivals_random));

  Run run(std::move(trace.nodes), trace.pods, options.policy, random.Fork());
  for (const PodKind& pod : arrivals) NOS_RETURN_IF_ERROR(run.Arrive(pod));
  NOS_RETURN_IF_ERROR(run.CheckBooks());

  OpenbReport report;
  report.policy = OpenbPolicyName(options.policy);
  report.inflation = options.inflation;
  report.seed = options.seed;
  report.arrived_pods = arrivals.size();
  std::move(run).Fill(report);
  return report;
}

}  // namespace nos::study
