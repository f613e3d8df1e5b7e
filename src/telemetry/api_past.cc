// The routes about the past: series, and one workload with what happened to it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/text.h"
#include "telemetry/api.h"
#include "telemetry/units.h"

namespace nos::telemetry {
namespace {

constexpr Millis kFarAway = 9'999'999'999'999;
constexpr size_t kMostSubjects = 100, kMostPoints = 2000;
constexpr size_t kMostEventsOfPod = 200, kMostDecisions = 1000;
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// At least `step`, so that buckets of rollups fall into one each.
Millis NiceStep(Millis step) {
  const Millis grain = step <= 10'000       ? 10'000
                       : step < 5 * kMinute ? 10'000
                       : step < kHour       ? 5 * kMinute
                                            : kHour;
  return std::max(grain, (step + grain - 1) / grain * grain);
}

// Of several things at once: what counts is added up, a share is a mean.
bool AddsUp(std::string_view metric) {
  const std::string_view unit = UnitOf(metric);
  return unit == "MiB" || unit == "W" || unit == "KiB/s" || unit == "errors";
}

void Combine(const std::vector<Bucket>& other, bool adds, std::vector<Bucket>& sum) {
  for (size_t i = 0; i < sum.size(); ++i) {
    const Bucket& b = other[i];
    Bucket& s = sum[i];
    if (b.count <= 0) continue;
    if (s.count <= 0) {
      s = b;
    } else if (adds) {
      s = {s.at, s.mean + b.mean, s.min + b.min, s.max + b.max, s.count};
    } else {
      const double count = s.count + b.count;
      s = {s.at, (s.mean * s.count + b.mean * b.count) / count, std::min(s.min, b.min),
           std::max(s.max, b.max), count};
    }
  }
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
  return kind == kQuotaSubject || kind == kCompositeQuotaSubject;
}

// A composite quota is also theirs who see one of the namespaces that it is for.
bool SeesCompositeQuota(const Recorder& recorder, const ApiCall& call,
                        const std::vector<std::string_view>& parts) {
  if (parts[0] != kCompositeQuotaSubject || parts.size() < 4) return false;
  const std::string key = fmt::format("{}/{}/{}", kCompositeQuota, parts[1], parts[2]);
  bool sees = false;
  recorder.Look(call.cluster, [&](const Live& live) {
    const auto quota = live.state.quotas().find(key);
    sees = quota != live.state.quotas().end() && QuotaIsIn(quota->second, Scope(call.reader, ""));
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

}  // namespace

Api::Reply Api::Series(const ApiCall& call) {
  const Millis now = parts_.recorder.Now();
  NOS_ASSIGN(const Millis to, call.Number("to", now, 1, kFarAway));
  NOS_ASSIGN(const Millis from, call.Number("from", std::max<Millis>(0, to - kHour), 0, kFarAway));
  NOS_ASSIGN(const int64_t points,
             call.Number("points", 300, 1, static_cast<int64_t>(kMostPoints)));
  const std::string metric = call.Parameter("metric");
  std::vector<std::string> subjects = call.All("subject");
  if (metric.empty()) return Invalid("name a metric, as ?metric=utilization");
  if (from >= to) return Invalid("from lies after to");
  if (subjects.empty()) subjects = {"cluster"};
  if (subjects.size() > kMostSubjects) {
    return Invalid(fmt::format("at most {} subjects at once", kMostSubjects));
  }
  Range range{0, to, NiceStep((to - from + points - 1) / points)};
  range.from = FloorTo(from, range.step);
  JsonText json;
  const bool of_quota = IsOfQuota(subjects.front());
  json.Begin('{').Key("metric").Text(metric);
  json.Key("unit").Text(of_quota ? "" : UnitOf(metric));
  json.Key("step").Number(range.step).Key("series").Begin('[');
  for (const std::string& subject : subjects) {
    NOS_ASSIGN(const std::vector<Bucket> buckets, SeriesOf(call, subject, metric, range));
    AppendSeries(subject, buckets, json);
  }
  json.End(']').End('}');
  return std::move(json.text());
}

// Of a pod: of the slices that it held, while it did.
Result<std::vector<Bucket>> Api::SeriesOf(const ApiCall& call, const std::string& subject,
                                          const std::string& metric, const Range& range) {
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
  std::vector<Bucket> sum = Regrouped({}, range);
  for (const Held& held : holds) {
    const Millis until = held.until == 0 ? range.to : std::min(range.to, held.until);
    const Range within{std::max(range.from, held.since), until, range.step};
    if (within.from >= within.to) continue;
    NOS_ASSIGN(const auto buckets, Samples(call.cluster, held.subject, metric, within));
    Combine(Regrouped(buckets, range), AddsUp(metric), sum);
  }
  return sum;
}

// What is on disk and what is still in memory.
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
  // What was flushed between the two is in both.
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
  bool found = false;
  Millis created = 0;
  parts_.recorder.Look(call.cluster, [&](const Live& live) {
    const Pod* pod = live.state.FindPod(ns, name);
    if (pod == nullptr) return;
    found = true;
    created = pod->created;
    json = JsonText();
    AppendPod(live.state, *pod, json);
  });
  if (!found) {
    return NotFound(fmt::format("there is no pod {} in namespace {}", Shortened(name, 200),
                                Shortened(ns, 100)));
  }
  NOS_ASSIGN(const int64_t id, IdOf(call.cluster));
  Archive& archive = parts_.recorder.archive();
  NOS_ASSIGN(
      const std::vector<Event> events,
      archive.Events(
          id, {0, kFarAway, {"event"}, fmt::format("Pod/{}/{}", ns, name), kMostEventsOfPod}));
  NOS_ASSIGN(const std::vector<Event> decisions,
             archive.Events(id, {created, kFarAway, {"decision"}, "", kMostDecisions}));
  json.Key("events").Begin('[');
  std::set<std::string, std::less<>> seen;  // what has happened again is there as it was last
  for (const Event& event : events) {
    const std::string_view again = FindString(event.body, "id");
    if (again.empty() || seen.emplace(again).second) json.Value(event.body);
  }
  json.End(']').Key("decisions").Begin('[');
  std::set<std::string> told;
  for (const Event& decision : decisions) {
    const bool about =
        NamesPod(decision.body, "pods", ns, name) || NamesPod(decision.body, "victims", ns, name);
    if (about && told.insert(decision.object).second) json.Text(decision.object);
  }
  json.End(']').End('}');
  return std::move(json.text());
}

}  // namespace nos::telemetry
