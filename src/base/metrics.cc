#include "base/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <fstream>
#include <mutex>
#include <sstream>
#include <utility>
#include <vector>

namespace nos {
namespace {

// Names and meaning: prometheus.io/docs/instrumenting/writing_clientlibs, "Process metrics".
constexpr MetricFamily kMemory{MetricFamily::Kind::kGauge, "process_resident_memory_bytes",
                               "Resident memory of this process in bytes."};
constexpr MetricFamily kCpu{MetricFamily::Kind::kCounter, "process_cpu_seconds_total",
                            "Total user and system CPU time of this process."};
constexpr MetricFamily kStart{MetricFamily::Kind::kGauge, "process_start_time_seconds",
                              "Start time of this process in seconds since the Unix epoch."};

const prometheus::Histogram::BucketBoundaries& Buckets(MetricFamily::Kind kind) {
  static const prometheus::Histogram::BucketBoundaries sizes{1, 2, 4, 8, 16, 32, 64};
  if (kind == MetricFamily::Kind::kSize) return sizes;
  static const prometheus::Histogram::BucketBoundaries buckets{
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
  return buckets;
}

// 0 if /proc cannot be read.
double ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  long total = 0, resident = 0;
  file >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double CpuSeconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

}  // namespace

class Metrics::Impl {
 public:
  prometheus::Counter& Counter(const MetricFamily& family, const MetricLabels& labels) {
    KeepOldName(family);
    return prometheus::BuildCounter()
        .Name(family.name)
        .Help(family.help)
        .Register(registry_)
        .Add(labels);
  }
  prometheus::Histogram& Histogram(const MetricFamily& family, const MetricLabels& labels) {
    KeepOldName(family);
    return prometheus::BuildHistogram()
        .Name(family.name)
        .Help(family.help)
        .Register(registry_)
        .Add(labels, Buckets(family.kind));
  }
  void CountTo(const MetricFamily& family, const MetricLabels& labels, double total) {
    const std::scoped_lock lock(mutex_);
    prometheus::Counter& counter = Counter(family, labels);
    if (total > counter.Value()) counter.Increment(total - counter.Value());
  }
  void SetAll(const MetricFamily& family,
              const std::vector<std::pair<MetricLabels, double>>& values) {
    const std::scoped_lock lock(mutex_);
    auto& gauges = Gauges(family);
    auto& known = known_[family.name];
    std::map<MetricLabels, prometheus::Gauge*> kept;
    for (const auto& [labels, value] : values) {
      prometheus::Gauge& gauge = gauges.Add(labels);
      gauge.Set(value);
      kept[labels] = &gauge;
      known.erase(labels);
    }
    for (const auto& [labels, gauge] : known) gauges.Remove(gauge);
    known = std::move(kept);
  }
  void Set(const MetricFamily& family, const MetricLabels& labels, double value) {
    const std::scoped_lock lock(mutex_);
    prometheus::Gauge& gauge = Gauges(family).Add(labels);
    gauge.Set(value);
    known_[family.name][labels] = &gauge;
  }
  std::string Text() {
    std::vector<prometheus::MetricFamily> families = registry_.Collect();
    AddOldNames(families);
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, families);
    return out.str();
  }
  const double started = ToSeconds(SystemClock().Now().time_since_epoch());

 private:
  prometheus::Family<prometheus::Gauge>& Gauges(const MetricFamily& family) {
    KeepOldName(family);
    return prometheus::BuildGauge().Name(family.name).Help(family.help).Register(registry_);
  }

  void KeepOldName(const MetricFamily& family) {
    if (family.deprecated_name == nullptr) return;
    const std::scoped_lock lock(names_mutex_);
    old_names_.emplace(family.name, family.deprecated_name);
  }
  void AddOldNames(std::vector<prometheus::MetricFamily>& families) {
    const std::scoped_lock lock(names_mutex_);
    const size_t count = families.size();
    for (size_t i = 0; i < count; ++i) {
      const auto old = old_names_.find(families[i].name);
      if (old == old_names_.end()) continue;
      prometheus::MetricFamily copy = families[i];
      copy.name = old->second;
      copy.help = "Deprecated: use " + families[i].name + ".";
      families.push_back(std::move(copy));
    }
  }

  prometheus::Registry registry_;
  std::mutex names_mutex_;
  std::map<std::string, std::string> old_names_;  // by today's; guarded by names_mutex_
  std::mutex mutex_;
  std::map<std::string, std::map<MetricLabels, prometheus::Gauge*>> known_;  // guarded by mutex_
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::Count(const MetricFamily& counter, const MetricLabels& labels, double by) {
  impl_->Counter(counter, labels).Increment(by);
}
void Metrics::CountTo(const MetricFamily& counter, const MetricLabels& labels, double total) {
  impl_->CountTo(counter, labels, total);
}
void Metrics::Set(const MetricFamily& gauge, const MetricLabels& labels, double value) {
  impl_->Set(gauge, labels, value);
}
void Metrics::SetAll(const MetricFamily& gauge,
                     const std::vector<std::pair<MetricLabels, double>>& values) {
  impl_->SetAll(gauge, values);
}
void Metrics::Observe(const MetricFamily& duration, const MetricLabels& labels, Duration value) {
  impl_->Histogram(duration, labels).Observe(ToSeconds(value));
}

void Metrics::ObserveSize(const MetricFamily& size, const MetricLabels& labels, size_t value) {
  impl_->Histogram(size, labels).Observe(static_cast<double>(value));
}

std::string Metrics::Text() {
  Set(kMemory, {}, ResidentBytes());
  CountTo(kCpu, {}, CpuSeconds());
  Set(kStart, {}, impl_->started);
  return impl_->Text();
}

}  // namespace nos
