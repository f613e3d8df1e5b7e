#include "study/scaling/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <utility>

#include "base/random.h"
#include "gpu/fragmentation.h"
#include "study/openb/csv.h"

namespace nos::study {
namespace {

constexpr double kDay = 86'400;
constexpr int64_t kWholeMilli = 1000;
constexpr int64_t kMaxSeconds = 100'000'000'000;
constexpr int64_t kMaxMilli = 100'000'000;  // of cpu
constexpr int64_t kMaxMib = 1'000'000'000;

// All jobs of a burst arrive within this time.
constexpr double kBurstSeconds = 300;
constexpr double kJobsOfABurst = 6;
// Hours: the median, and the standard deviation of the logarithm, so that the mean is 8.7 before
// the longest jobs are limited.
constexpr double kMedianHours = 1, kLogSpread = 2.08;
constexpr double kMaxHours = 120;
constexpr int64_t kCpuOfAGpu = 10'000, kMibOfAGpu = 65'536;

constexpr std::array kGpuCounts = {std::pair{1, 0.5}, std::pair{2, 0.2}, std::pair{4, 0.15},
                                   std::pair{8, 0.15}};
constexpr std::array kSlices = {std::pair{"1g.10gb", 0.4}, std::pair{"2g.20gb", 0.3},
                                std::pair{"3g.40gb", 0.2}, std::pair{"4g.40gb", 0.1}};

template <typename Choices>
auto Draw(const Choices& choices, Random& random) {
  double left = random.Uniform();
  for (const auto& [value, weight] : choices) {
    if (left < weight) return value;
    left -= weight;
  }
  return choices.back().first;
}

double DrawDuration(Random& random) {
  const double angle = 2 * std::numbers::pi * random.Uniform();
  const double normal = std::sqrt(-2 * std::log1p(-random.Uniform())) * std::cos(angle);
  const double hours = kMedianHours * std::exp(kLogSpread * normal);
  return 3600 * std::clamp(hours, 0.01, kMaxHours);
}

void Sort(std::vector<ScalingJob>& jobs) {
  std::ranges::stable_sort(jobs, {}, &ScalingJob::arrival);
}

struct Window {
  double from = 0, to = 0;
};

// Adds the row's job if it runs on GPUs within the window.
Status AddOpenbJob(const CsvRow& row, const Window& window, bool by_memory,
                   std::vector<ScalingJob>& jobs) {
  ScalingJob job;
  NOS_ASSIGN(const int64_t gpus, row.Number("num_gpu", 0, 64));
  NOS_ASSIGN(const int64_t milli, row.Number("gpu_milli", 0, kWholeMilli));
  NOS_ASSIGN(job.cpu_milli, row.Number("cpu_milli", 0, kMaxMilli));
  NOS_ASSIGN(job.memory_mib, row.Number("memory_mib", 0, kMaxMib));
  NOS_ASSIGN(const int64_t created, row.Number("creation_time", 0, kMaxSeconds));
  NOS_ASSIGN(const int64_t deleted, row.Number("deletion_time", 0, kMaxSeconds));
  if (gpus == 0 || row.Optional("scheduled_time").empty()) return Status::Ok();
  NOS_ASSIGN(const int64_t scheduled, row.Number("scheduled_time", 0, kMaxSeconds));
  const auto came = static_cast<double>(created);
  const auto runs = static_cast<double>(deleted - scheduled);
  if (came >= window.to || came + runs <= window.from) return Status::Ok();
  const double begin = std::max(came, window.from);
  job.arrival = begin - window.from;
  job.duration = std::min(came + runs, window.to) - begin;
  if (job.duration <= 0) return Status::Ok();
  if (gpus == 1) job.slice = SliceFor(milli, by_memory);
  job.gpus = job.slice.empty() ? static_cast<int>(gpus) : 0;
  jobs.push_back(std::move(job));
  return Status::Ok();
}

}  // namespace

const gpu::Model& ScalingModel() {
  static const gpu::Model& model = *gpu::Catalogue::Builtin().FindByName("H100-80GB");
  return model;
}

const gpu::Profile& ScalingProfile(std::string_view name) {
  const auto profile = ScalingModel().FindProfile(name);
  if (!profile) std::abort();
  return ScalingModel().profile(*profile);
}

int SlotsOf(const ScalingJob& job) {
  const gpu::Model& model = ScalingModel();
  if (job.slice.empty()) return job.gpus * model.slots();
  const auto profile = model.FindProfile(job.slice);
  return profile ? model.profile(*profile).slots : 0;
}

std::string SliceFor(int64_t milli, bool by_memory) {
  const gpu::Model& model = ScalingModel();
  const std::vector<gpu::ProfileId> plain = gpu::PlainProfiles(model);  // smallest first
  for (const gpu::ProfileId id : plain) {
    const gpu::Profile& profile = model.profile(id);
    if (profile.compute == model.compute_slices()) break;
    const int part = by_memory ? profile.slots : profile.compute;
    const int all = by_memory ? model.slots() : model.compute_slices();
    if (kWholeMilli * part >= milli * all) return profile.name;
  }
  return "";
}

Result<std::vector<ScalingJob>> OpenbJobs(const OpenbFile& pods, const OpenbWindow& window) {
  NOS_ASSIGN(const Csv csv, Csv::Parse(pods.name, pods.text));
  const double from = window.first_day * kDay;
  std::vector<ScalingJob> jobs;
  for (const CsvRow& row : csv.rows()) {
    NOS_RETURN_IF_ERROR(
        AddOpenbJob(row, {from, from + window.days * kDay}, window.by_memory, jobs));
  }
  if (jobs.empty()) {
    return Invalid(fmt::format("{}: no pod with a GPU runs from day {} on for {} days", pods.name,
                               window.first_day, window.days));
  }
  Sort(jobs);
  return jobs;
}

std::vector<ScalingJob> BurstJobs(const BurstOptions& options) {
  Random random(options.seed);
  std::vector<ScalingJob> jobs;
  const double mean_gap = kDay * kJobsOfABurst / options.jobs_a_day;
  double at = 0;
  while (at += random.Exponential(mean_gap), at < options.days * kDay) {
    ScalingJob alike;
    if (random.Chance(options.slices)) {
      alike.slice = Draw(kSlices, random);
    } else {
      alike.gpus = Draw(kGpuCounts, random);
    }
    const int slots = SlotsOf(alike);
    alike.cpu_milli = kCpuOfAGpu * slots / ScalingModel().slots();
    alike.memory_mib = kMibOfAGpu * slots / ScalingModel().slots();
    // Geometric distribution: each job is followed by another one with this probability.
    const double another = 1 - 1 / kJobsOfABurst;
    do {
      alike.arrival = at + random.Uniform() * kBurstSeconds;
      alike.duration = DrawDuration(random);
      jobs.push_back(alike);
    } while (random.Chance(another));
  }
  Sort(jobs);
  return jobs;
}

}  // namespace nos::study
