#include "study/churn/simulation.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <queue>
#include <utility>

#include "base/random.h"
#include "study/churn/host.h"
#include "study/churn/mix.h"

namespace nos::study {
namespace {

constexpr std::array kPolicies = {
    std::pair{ChurnPolicy::kNos, "nos"},
    std::pair{ChurnPolicy::kFirstFit, "first-fit"},
    std::pair{ChurnPolicy::kBestFit, "best-fit"},
    std::pair{ChurnPolicy::kLargestFreeRun, "largest-free-run"},
    std::pair{ChurnPolicy::kPlacementsLost, "placements-lost"},
    std::pair{ChurnPolicy::kRepack, "repack"},
};

Status Check(const ChurnOptions& options) {
  if (options.model == nullptr) return Invalid("churn: no GPU model");
  if (options.gpus < 1 || options.gpus > 100'000) return Invalid("gpus must be 1 to 100000");
  if (!(options.load > 0 && options.load <= 100))
    return Invalid("load must be above 0, at most 100");
  if (options.arrivals < 6 || options.arrivals > 100'000'000) {
    return Invalid("arrivals must be 6 to 100000000");
  }
  if (options.moves < 0 || options.moves > 2) return Invalid("moves must be 0, 1 or 2");
  if (options.moves > 0 && options.policy != ChurnPolicy::kNos) {
    return Invalid(
        fmt::format("moves: only policy nos moves instances, not {}", PolicyName(options.policy)));
  }
  if (!options.claims) return Status::Ok();
  if (options.policy != ChurnPolicy::kNos && options.policy != ChurnPolicy::kFirstFit) {
    return Invalid(
        fmt::format("claims: policies are nos and first-fit, not {}", PolicyName(options.policy)));
  }
  if (options.moves > 0) return Invalid("claims: instances do not move");
  if (options.node_gpus < 1 || options.node_gpus > 16) {
    return Invalid("GPUs of a node must be 1 to 16");
  }
  if (options.model->counted()) return Invalid("claims: the model has no MIG instances");
  return Status::Ok();
}

struct Arrival {
  double time = 0, service = 0;
  size_t entry = 0;  // index into the mix
};

// The stream of requests. The mean service time is 1.
class Arrivals {
 public:
  Arrivals(const ChurnOptions& options, const Mix& mix) : random_(options.seed) {
    double total = 0;
    double slots = 0;
    for (const MixEntry& entry : mix) {
      total += entry.weight;
      slots += entry.weight * options.model->profile(entry.profile).slots;
      up_to_.push_back(total);
    }
    const double capacity = static_cast<double>(options.gpus) * options.model->slots();
    mean_gap_ = (slots / total) / (options.load * capacity);
  }

  Arrival Next() {
    now_ += random_.Exponential(mean_gap_);
    const double drawn = random_.Uniform() * up_to_.back();
    size_t entry = 0;
    while (entry + 1 < up_to_.size() && drawn >= up_to_[entry]) ++entry;
    return {now_, random_.Exponential(1), entry};
  }

 private:
  Random random_;
  std::vector<double> up_to_;  // cumulative weights
  double mean_gap_ = 0;
  double now_ = 0;
};

// The running jobs, by end time. Job ids are reused.
class Running {
 public:
  JobId NewId() {
    if (free_ids_.empty()) return next_id_++;
    const JobId id = free_ids_.back();
    free_ids_.pop_back();
    return id;
  }
  void Refused(JobId id) { free_ids_.push_back(id); }
  void Start(JobId id, double end) { queue_.emplace(end, id); }
  void EndUntil(double now, Host& host) {
    while (!queue_.empty() && queue_.top().first <= now) {
      host.Release(queue_.top().second);
      free_ids_.push_back(queue_.top().second);
      queue_.pop();
    }
  }

 private:
  using End = std::pair<double, JobId>;
  std::priority_queue<End, std::vector<End>, std::greater<>> queue_;
  std::vector<JobId> free_ids_;
  JobId next_id_ = 0;
};

void Count(ChurnReport& report, size_t entry, int compute, bool accepted) {
  const auto add = [accepted](ChurnCount& count, int weight) {
    count.offered += weight;
    count.accepted += accepted ? weight : 0;
  };
  add(report.requests, 1);
  add(report.compute, compute);
  add(report.by_profile[entry], 1);
}

ChurnReport EmptyReport(const ChurnOptions& options, const Mix& mix) {
  ChurnReport report;
  report.options = options;
  report.by_profile.resize(mix.size());
  for (const MixEntry& entry : mix) {
    report.profiles.push_back(options.model->profile(entry.profile).name);
  }
  return report;
}

}  // namespace

std::string_view PolicyName(ChurnPolicy policy) {
  for (const auto& [known, name] : kPolicies) {
    if (known == policy) return name;
  }
  return "unknown";
}

Result<ChurnPolicy> ParsePolicy(std::string_view name) {
  std::string names;
  for (const auto& [policy, known] : kPolicies) {
    if (known == name) return policy;
    names += std::string(names.empty() ? "" : ", ") + known;
  }
  return Invalid(fmt::format("unknown policy \"{}\"; there are {}", name, names));
}

std::optional<double> ChurnCount::Share() const {
  if (offered == 0) return std::nullopt;
  return static_cast<double>(accepted) / static_cast<double>(offered);
}

double ChurnReport::MovesPerAccepted() const {
  const int64_t accepted = std::max<int64_t>(requests.accepted, 1);
  return static_cast<double>(moves) / static_cast<double>(accepted);
}

Result<ChurnReport> RunChurn(const ChurnOptions& options) {
  NOS_RETURN_IF_ERROR(Check(options));
  NOS_ASSIGN(const Mix mix, LoadMix(options.mix, *options.model));
  NOS_ASSIGN(const std::unique_ptr<Host> host, MakeHost(options, mix));
  ChurnReport report = EmptyReport(options, mix);
  Arrivals arrivals(options, mix);
  Running running;
  int64_t warm_moves = 0;
  const int64_t warm_up = options.arrivals / 6;
  for (int64_t i = 0; i < options.arrivals; ++i) {
    if (i == warm_up) warm_moves = host->moves();
    const Arrival arrival = arrivals.Next();
    running.EndUntil(arrival.time, *host);
    const JobId job = running.NewId();
    const gpu::ProfileId profile = mix[arrival.entry].profile;
    NOS_ASSIGN(const bool accepted, host->Admit(job, profile));
    if (accepted) {
      running.Start(job, arrival.time + arrival.service);
    } else {
      running.Refused(job);
    }
    if (i >= warm_up)
      Count(report, arrival.entry, options.model->profile(profile).compute, accepted);
  }
  report.moves = host->moves() - warm_moves;
  return report;
}

}  // namespace nos::study
