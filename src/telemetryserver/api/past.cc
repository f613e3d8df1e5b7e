// Routes about the past: series, and one workload with its events.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>

#include "base/text.h"
#include "telemetry/units.h"
#include "telemetryserver/api.h"

namespace nos::telemetryserver {
namespace {

constexpr telemetry::Millis kFarAway = 9'999'999'999'999;
constexpr size_t kMaxSubjects = 100, kMaxPoints = 2000;
constexpr size_t kMaxReads = 2000;                 // sample reads per request for series
constexpr telemetry::Millis kLooksApart = 30'000;  // maximum time between two reports of a node
constexpr size_t kMaxEventsOfPod = 200;
constexpr size_t kMaxDecisions = 2000;  // decisions read per time range
// Decisions about a pod are reported within this time, even those of slow plans.
constexpr telemetry::Millis kReportedWithin = 5 * kMinute;
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// At least `step`, rounded up so that each rollup bucket falls into one bucket of the answer.
telemetry::Millis NiceStep(telemetry::Millis step) {
  const telemetry::Millis grain = step <= 10'000       ? 10'000
                                  : step < 5 * kMinute ? 10'000
                                  : step < kHour       ? 5 * kMinute
                                                       : kHour;
  return std::max(grain, (step + grain - 1) / grain * grain);
}

// Aggregation over several subjects: quantities are summed, shares are averaged.
bool AddsUp(std::string_view metric) {
  const std::string_view unit = telemetry::UnitOf(metric);
  return unit == "MiB" || unit == "W" || unit == "KiB/s" || unit == "errors";
}

// Adds the time by which [from, to) covers each bucket of the range.
void AddCovered(telemetry::Millis from, telemetry::Millis to, const Range& range,
                std::vector<telemetry::Millis>& covered) {
  const auto step = range.step;
  for (telemetry::Millis at = FloorTo(std::max(from, range.from), step);
       at < std::min(to, range.to); at += step) {
    const auto i = static_cast<size_t>((at - range.from) / step);
    if (i < covered.size()) covered[i] += std::min(to, at + step) - std::max(from, at);
  }
}

// Aggregates slices that a pod held at the same time or in sequence. Quantities are summed,
// weighted by the part of the holding time for which each slice was held; shares are averaged.
class HeldTogether {
 public:
  HeldTogether(std::span<const Held> holds, const Range& range, bool adds)
      : range_(range),
        adds_(adds),
        sum_(Regrouped({}, range)),
        any_(sum_.size()),
        together_(sum_.size()) {
    std::vector<std::pair<telemetry::Millis, telemetry::Millis>> times;
    for (const Held& held : holds) times.emplace_back(held.since, held.until);
    std::ranges::sort(times);
    telemetry::Millis end = std::numeric_limits<telemetry::Millis>::min();
    for (const auto& [since, until] : times) {
      AddCovered(std::max(since, end), until, range, any_);
      end = std::max(end, until);
    }
  }

  void Add(const Held& held, const std::vector<Bucket>& buckets) {
    std::vector<telemetry::Millis> covered(sum_.size());
    AddCovered(held.since, held.until, range_, covered);
    for (size_t i = 0; i < sum_.size(); ++i) {
      const Bucket& b = buckets[i];
      Bucket& s = sum_[i];
      if (b.count <= 0 || any_[i] <= 0) continue;
      const double part = static_cast<double>(covered[i]) / static_cast<double>(any_[i]);
      if (adds_) {
        together_[i] += b.max * part;
        s = {s.at, s.mean + b.mean * part, s.min + b.min * part,
             s.count <= 0 ? b.max : std::max(s.max, b.max), std::max(s.count, b.count)};
        continue;
      }
      const double count = s.count + b.count;
      if (s.count <= 0) {
        s = b;
      } else {
        s = {s.at, (s.mean * s.count + b.mean * b.count) / count, std::min(s.min, b.min),
             std::max(s.max, b.max), count};
      }
    }
  }
  std::vector<Bucket> Take() && {
    for (size_t i = 0; i < sum_.size() && adds_; ++i) {
      sum_[i].max = std::max(sum_[i].max, together_[i]);
    }
    return std::move(sum_);
  }

 private:
  const Range range_;
  const bool adds_;
  std::vector<Bucket> sum_;
  std::vector<telemetry::Millis> any_;  // per bucket: time for which any slice was held
  std::vector<double> together_;        // per bucket: maximum of the simultaneous sum
};

// Clips to the range. A slice that is released and held again at once counts as held continuously.
std::vector<Held> United(std::vector<Held> holds, const Range& range) {
  std::map<std::string, std::vector<Held>> by_subject;
  for (Held& held : holds) {
    held.since = std::max(range.from, held.since);
    held.until = held.until == 0 ? range.to : std::min(range.to, held.until);
    if (held.since < held.until) by_subject[held.subject].push_back(std::move(held));
  }
  std::vector<Held> united;
  for (auto& [subject, times] : by_subject) {
    std::ranges::sort(times, {}, &Held::since);
    const size_t first = united.size();
    for (Held& held : times) {
      if (united.size() > first && held.since - united.back().until <= kLooksApart) {
        united.back().until = std::max(united.back().until, held.until);
      } else {
        united.push_back(std::move(held));
      }
    }
  }
  return united;
}

void AppendSeries(const std::string& subject, const std::vector<Bucket>& buckets, JsonText& json) {
  json.Begin('{').Key("subject").Begin('{').Key("id").Text(subject);
  json.Key("kind").Text(std::string_view(subject).substr(0, subject.find('/'))).End('}');
  json.Key("at").Begin('[');
  for (const Bucket& bucket : buckets) json.Number(bucket.at);
  json.End(']');
  const auto column = [&](const char* name, double Bucket::* field) {
    json.Key(name).Begin('[');
    for (const Bucket& bucket : buckets) json.Number(bucket.count > 0 ? bucket.*field : kNothing);
    json.End(']');
  };
  column("mean", &Bucket::mean);
  column("min", &Bucket::min);
  column("max", &Bucket::max);
  json.End('}');
}

bool IsOfQuota(std::string_view subject) {
  const std::string_view kind = subject.substr(0, subject.find('/'));
  return kind == telemetry::kQuotaSubject || kind == telemetry::kCompositeQuotaSubject;
}

// A reader who sees one namespace of a composite quota may see the quota.
bool SeesCompositeQuota(const Recorder& recorder, const ApiCall& call,
                        const std::vector<std::string_view>& parts) {
  if (parts[0] != telemetry::kCompositeQuotaSubject || parts.size() < 4) return false;
  const std::string key = fmt::format("{}/{}/{}", telemetry::kCompositeQuota, parts[1], parts[2]);
  bool sees = false;
  recorder.Look(call.cluster, [&](const Live& live) {
    const auto quota = live.state.quotas().find(key);
    sees =
        quota != live.state.quotas().end() && QuotaIsIn(quota->second.body, Scope(call.reader, ""));
  });
  return sees;
}

bool NamesPod(const Json& decision, std::string_view key, const std::string& ns,
              const std::string& name) {
  const Json* pods = Find(decision, key);
  if (pods == nullptr || !pods->is_array()) return false;
  return std::ranges::any_of(pods->get_array(), [&](const Json& pod) {
    return FindString(pod, "namespace") == ns && FindString(pod, "name") == name;
  });
}

// Time ranges in which decisions that served or evicted the pod were reported; latest first.
std::vector<std::pair<telemetry::Millis, telemetry::Millis>> DecidedWithin(const Pod& pod) {
  if (pod.scheduled <= 0) return {{pod.created, kFarAway}};
  const telemetry::Millis served = pod.scheduled + kReportedWithin;
  const telemetry::Millis end = pod.finished > 0 ? pod.finished : pod.ends;
  if (end <= 0 || pod.state == "succeeded") return {{pod.created, served}};
  return {{served, std::max(served, end + kReportedWithin)}, {pod.created, served}};
}

struct PodTimes {
  std::string ns, name;
  std::vector<std::pair<telemetry::Millis, telemetry::Millis>> decided;
};

// IDs of decisions that name the pod, newest first.
Result<std::vector<std::string>> DecisionsAbout(Archive& archive, int64_t cluster,
                                                const PodTimes& pod) {
  std::vector<std::string> ids;
  std::set<std::string> seen;
  const auto look = [&](const Event& decision) {
    const bool about = NamesPod(decision.body, "pods", pod.ns, pod.name) ||
                       NamesPod(decision.body, "victims", pod.ns, pod.name);
    if (about && seen.insert(decision.object).second) ids.push_back(decision.object);
    return true;
  };
  for (const auto& [from, to] : pod.decided) {
    const EventQuery query{from, to, {"decision"}, "", kMaxDecisions};
    NOS_RETURN_IF_ERROR(archive.Scan(cluster, query, look).status());
  }
  return ids;
}

}  // namespace

Api::Reply Api::Series(const ApiCall& call) {
  const telemetry::Millis now = parts_.recorder.Now();
  NOS_ASSIGN(const telemetry::Millis to, call.Number("to", now, 1, kFarAway));
  NOS_ASSIGN(const telemetry::Millis from,
             call.Number("from", std::max<telemetry::Millis>(0, to - kHour), 0, kFarAway));
  NOS_ASSIGN(const int64_t points, call.Number("points", 300, 1, static_cast<int64_t>(kMaxPoints)));
  const std::string metric = call.Parameter("metric");
  std::vector<std::string> subjects = call.All("subject");
  if (metric.empty()) return Invalid("name a metric, as ?metric=utilization");
  if (from >= to) return Invalid("from lies after to");
  if (subjects.empty()) subjects = {"cluster"};
  std::set<std::string> seen;
  std::erase_if(subjects, [&](const std::string& subject) { return !seen.insert(subject).second; });
  if (subjects.size() > kMaxSubjects) {
    return Invalid(fmt::format("at most {} subjects at once", kMaxSubjects));
  }
  Range range{0, to, NiceStep((to - from + points - 1) / points)};
  range.from = FloorTo(from, range.step);
  JsonText json;
  const bool of_quota = IsOfQuota(subjects.front());
  json.Begin('{').Key("metric").Text(metric);
  json.Key("unit").Text(of_quota ? "" : telemetry::UnitOf(metric));
  json.Key("step").Number(range.step).Key("series").Begin('[');
  const auto turn = series_.Begin();
  if (turn == nullptr) {
    return Status(Code::kUnavailable, "too many requests for series: retry in some seconds");
  }
  size_t reads = 0;
  for (const std::string& subject : subjects) {
    NOS_ASSIGN(const std::vector<Bucket> buckets, SeriesOf(call, subject, metric, range, reads));
    AppendSeries(subject, buckets, json);
  }
  json.End(']').End('}');
  return std::move(json.text());
}

// For a pod: the series of the slices that it held, while it held them.
Result<std::vector<Bucket>> Api::SeriesOf(const ApiCall& call, const std::string& subject,
                                          const std::string& metric, const Range& range,
                                          size_t& reads) {
  const auto parts = Split(subject, '/');
  const bool namespaced =
      (parts[0] == "pod" && parts.size() == 3) || (IsOfQuota(parts[0]) && parts.size() >= 4);
  const bool may = namespaced ? call.reader.May(parts[1]) : call.reader.may_all;
  if (!may && !SeesCompositeQuota(parts_.recorder, call, parts)) {
    return Status(Code::kPermission,
                  fmt::format("{} may not see {}", call.reader.user, Shortened(subject, 200)));
  }
  if (parts[0] != "pod") {
    NOS_ASSIGN(const auto buckets, Samples(call.cluster, subject, metric, range));
    return Regrouped(buckets, range);
  }
  if (!namespaced) return Invalid("a pod is written pod/NAMESPACE/NAME");
  NOS_ASSIGN(const int64_t id, IdOf(call.cluster));
  NOS_ASSIGN(const std::vector<Held> holds,
             parts_.recorder.archive().Holds(id, subject.substr(4), range.from, range.to));
  const std::vector<Held> united = United(holds, range);
  reads += united.size();
  if (reads > kMaxReads) {
    return Invalid(
        fmt::format("{} held slices too often for one answer: ask for a shorter time, or "
                    "for fewer subjects",
                    Shortened(subject, 200)));
  }
  HeldTogether together(united, range, AddsUp(metric));
  for (const Held& held : united) {
    const Range within{held.since, held.until, range.step};
    NOS_ASSIGN(const auto buckets, Samples(call.cluster, held.subject, metric, within));
    together.Add(held, Regrouped(buckets, range));
  }
  return std::move(together).Take();
}

// Samples on disk and samples still in memory.
Result<std::vector<Bucket>> Api::Samples(const std::string& cluster, const std::string& subject,
                                         const std::string& metric, const Range& range) {
  int64_t id = 0;
  std::vector<Sample> heads;
  parts_.recorder.Look(cluster, [&](const Live& live) {
    id = live.id;
    heads = live.heads.Read(subject, metric, range.from, range.to);
  });
  NOS_ASSIGN(auto buckets,
             parts_.recorder.archive().Samples(id, subject, metric, range, parts_.recorder.Now()));
  for (const Sample& sample : heads) {
    buckets.push_back({sample.at, sample.value, sample.value, sample.value, 1});
  }
  // Samples flushed between the two reads occur in both.
  std::ranges::stable_sort(buckets, {}, &Bucket::at);
  const auto again = std::ranges::unique(buckets, [](const Bucket& a, const Bucket& b) {
    return a.at == b.at && a.count == 1 && b.count == 1;
  });
  buckets.erase(again.begin(), again.end());
  return buckets;
}

Api::Reply Api::Workload(const ApiCall& call, const std::string& ns, const std::string& name) {
  if (!call.reader.May(ns)) {
    return Status(Code::kPermission,
                  fmt::format("{} may not see namespace {}", call.reader.user, Shortened(ns, 100)));
  }
  JsonText json;
  json.Begin('{');
  PodTimes times{ns, name, {}};
  parts_.recorder.Look(call.cluster, [&](const Live& live) {
    const Pod* pod = live.state.FindPod(ns, name);
    if (pod == nullptr) return;
    times.decided = DecidedWithin(*pod);
    json = JsonText();
    AppendPod(live.state, *pod, json);
  });
  if (times.decided.empty()) {
    return NotFound(fmt::format("there is no pod {} in namespace {}", Shortened(name, 200),
                                Shortened(ns, 100)));
  }
  NOS_ASSIGN(const int64_t id, IdOf(call.cluster));
  Archive& archive = parts_.recorder.archive();
  NOS_ASSIGN(
      const std::vector<Event> events,
      archive.Events(
          id, {0, kFarAway, {"event"}, fmt::format("Pod/{}/{}", ns, name), kMaxEventsOfPod}));
  NOS_ASSIGN(const std::vector<std::string> decisions, DecisionsAbout(archive, id, times));
  json.Key("events").Begin('[');
  std::set<std::string, std::less<>> seen;  // of repeated events only the last record is included
  for (const Event& event : events) {
    const std::string_view again = FindString(event.body, "id");
    if (again.empty() || seen.emplace(again).second) json.Value(event.body);
  }
  json.End(']').Key("decisions").Begin('[');
  for (const std::string& decision : decisions) json.Text(decision);
  json.End(']').End('}');
  return std::move(json.text());
}

}  // namespace nos::telemetryserver
