#include "exports/walkai.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "exports/exporter.h"

namespace nos::exports {
namespace {

using telemetry::Millis;

constexpr Millis kEndedFor = 300'000;
// Maximum number of events read before a snapshot, and of pods whose records are looked up.
constexpr size_t kMaxChanges = 20'000, kMaxLookups = 2000;
constexpr size_t kMaxOfPod = 100;  // maximum number of records of a pod
constexpr size_t kMaxWords = 300, kMaxUnknown = 100;
constexpr std::string_view kMig = "nvidia.com/mig-";
constexpr std::string_view kPodRemoved = "pod/";  // object of a removal
constexpr std::array<std::string_view, 5> kProfiles = {"1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb",
                                                       "7g.79gb"};

// Empty: walk:ai does not know the profile.
std::string ProfileWord(std::string_view profile) {
  profile = profile.substr(0, profile.find('+'));  // media engines
  if (profile == "7g.80gb") profile = "7g.79gb";
  return std::ranges::find(kProfiles, profile) == kProfiles.end() ? "" : std::string(profile);
}

// Maps to the words that walk:ai handles. Failed and PodInitializing have no effect there.
std::string StatusWord(std::string_view state) {
  if (state == "pending") return "Pending";
  if (state == "starting") return "ContainerCreating";
  if (state == "running") return "Running";
  if (state == "succeeded") return "Succeeded";
  if (state == "failed") return "Error";
  return "Terminating";
}

bool HasEnded(std::string_view state) { return state == "succeeded" || state == "failed"; }

Json TimeOrNull(Millis at) {
  if (at <= 0) return nullptr;
  const Time time{std::chrono::milliseconds(at)};
  return FormatTime(time).c_str();
}

// The largest slice that the pod requests. Resource names contain "." in place of "+" of a profile.
std::string ProfileOf(const Json& pod, std::set<std::string>& unknown) {
  std::string word;
  const Json* requests = Find(pod, "requests");
  if (requests == nullptr || !requests->is_object()) return word;
  for (const auto& [key, amount] : requests->get_object()) {
    const std::string_view resource(key.data(), key.size());
    if (!resource.starts_with(kMig)) continue;
    std::string_view profile = resource.substr(kMig.size());
    const size_t gigabytes = profile.find("gb");
    const std::string found =
        ProfileWord(gigabytes == profile.npos ? profile : profile.substr(0, gigabytes + 2));
    if (found.empty() && unknown.size() < kMaxUnknown) unknown.emplace(profile);
    word = std::max(word, found);
  }
  return word;
}

JsonArray SlicesOf(const telemetryserver::State& state, std::set<std::string>& unknown) {
  std::map<std::string, std::pair<int64_t, int64_t>> counts;  // allocated, available
  for (const auto& [name, node] : state.nodes()) {
    for (const telemetry::Gpu& gpu : node.layout.gpus) {
      for (const telemetry::Instance& instance : gpu.instances) {
        const std::string word = ProfileWord(instance.profile);
        if (word.empty() && unknown.size() < kMaxUnknown) unknown.insert(instance.profile);
        if (word.empty()) continue;
        auto& [allocated, available] = counts[word];
        if (!instance.holders.empty()) {
          ++allocated;
        } else if (gpu.health.empty()) {
          ++available;
        }
      }
    }
  }
  JsonArray slices;
  for (const auto& [word, count] : counts) {
    slices.push_back({{"gpu", word}, {"allocated", count.first}, {"available", count.second}});
  }
  return slices;
}

// Order of importance, most important first. `gone`: the pod has ended or vanished.
int RankOf(std::string_view state, bool gone) {
  if (gone) return HasEnded(state) ? 0 : 1;
  const std::string status = StatusWord(state);
  return status == "Terminating" ? 2 : status == "Pending" ? 4 : 3;
}

}  // namespace

Json WalkaiSnapshot(const telemetryserver::State& state, const std::vector<Json>& ended,
                    size_t max_pods, std::set<std::string>& unknown) {
  // By namespace and name, which identify a pod in walk:ai.
  std::map<std::string, std::pair<int, Json>> pods;
  const auto add = [&](const Json& pod, bool gone) {
    const std::string word = ProfileOf(pod, unknown);
    if (word.empty()) return;
    const std::string_view known = FindString(pod, "state");
    const bool over = HasEnded(known);
    const std::string status = gone && !over ? "Terminating" : StatusWord(known);
    const std::string ns(FindString(pod, "namespace")), name(FindString(pod, "name"));
    const Millis started = telemetry::IntegerOr(pod, "started", 0);
    const Millis finished = over ? telemetry::IntegerOr(pod, "finished", 0) : 0;
    pods[ns + "/" + name] = {RankOf(known, gone),
                             {{"name", name},
                              {"namespace", ns},
                              {"status", status},
                              {"gpu", word},
                              {"start_time", TimeOrNull(started)},
                              {"finish_time", TimeOrNull(finished)}}};
  };
  for (const Json& pod : ended) add(pod, true);
  for (const auto& [uid, pod] : state.pods()) {
    if (!HasEnded(pod.state)) add(pod.body, false);  // a newer pod with the same name
  }
  std::map<std::pair<int, std::string>, Json> ordered;
  for (auto& [key, pod] : pods) {
    ordered.emplace(std::make_pair(pod.first, key), std::move(pod.second));
  }
  JsonArray list;
  list.reserve(std::min(ordered.size(), max_pods));
  for (auto& [place, pod] : ordered) {
    if (list.size() < max_pods) list.push_back(std::move(pod));
  }
  return {{"ts", FormatTime(Time{std::chrono::milliseconds(state.now())})},
          {"gpus", SlicesOf(state, unknown)},
          {"pods", std::move(list)}};
}

Walkai::Walkai(WalkaiOptions options, telemetryserver::Recorder& recorder,
               const Destination& destination, kube::Transport& transport, Metrics& metrics)
    : options_(std::move(options)),
      recorder_(recorder),
      destination_(destination),
      transport_(transport),
      metrics_(metrics),
      read_(recorder.PositionOf(kName)),
      pushed_at_(recorder.Now()) {}

Duration Walkai::Step(Time now) {
  if (now < next_) return next_ - now;
  const Millis begin = recorder_.Now();
  auto snapshot = Snapshot();
  Status pushed = snapshot.status();
  if (snapshot.ok() && !snapshot->is_null()) pushed = Push(*snapshot);
  LogOutcome(pushed);
  if (pushed.ok()) {
    pushed_at_ = begin;
    Taken();
  }
  metrics_.Set(kLag, {{"export", kName}}, static_cast<double>(begin - pushed_at_) / 1000);
  next_ = now + options_.interval;
  return options_.interval;
}

Result<Json> Walkai::Snapshot() {
  int64_t id = 0;
  recorder_.Look(options_.cluster, [&](const telemetryserver::Live& live) { id = live.id; });
  if (id == 0) return Json(nullptr);
  NOS_RETURN_IF_ERROR(ReadEnds(id));
  std::vector<Json> ended;
  for (const auto& [key, end] : ends_) ended.push_back(end.pod);
  std::set<std::string> unknown;
  Json snapshot;
  recorder_.Look(options_.cluster, [&](const telemetryserver::Live& live) {
    snapshot = WalkaiSnapshot(live.state, ended, options_.max_pods, unknown);
  });
  for (const std::string& profile : unknown) {
    if (unknown_.size() >= kMaxUnknown || !unknown_.insert(profile).second) continue;
    Log(LogLevel::kWarn, "omitting slices and pods with a profile that walk:ai does not know",
        {{"profile", Shortened(profile, 64)}});
  }
  return snapshot;
}

// Reads events in the order in which they were stored, which is not the order of their times.
// Events beyond the limit are read in a later step.
Status Walkai::ReadEnds(int64_t cluster) {
  const Millis now = recorder_.Now();
  const auto is_reported = [&](const auto& entry) {
    return entry.second.taken > 0 && now - entry.second.taken >= kEndedFor;
  };
  std::erase_if(ends_, is_reported);
  if (ends_.size() >= options_.max_pods) {
    std::erase_if(ends_, [](const auto& entry) { return entry.second.taken > 0; });
  }
  NOS_ASSIGN(const auto following,
             recorder_.archive().EventsAfter(cluster, read_, {"pod", "removed"}, kMaxChanges));
  size_t lookups = 0;
  for (const telemetryserver::Event& event : following.events) {
    const bool over = event.kind == "pod" && HasEnded(FindString(event.body, "state"));
    if (over || event.object.starts_with(kPodRemoved)) {
      if (ends_.size() >= options_.max_pods || ++lookups > kMaxLookups) return Status::Ok();
      NOS_ASSIGN(Json pod, EndOf(cluster, event));
      if (!pod.is_null()) {
        const std::string key =
            std::string(FindString(pod, "namespace")) + "/" + std::string(FindString(pod, "name"));
        ends_[key] = {event.id, std::move(pod), 0};
      }
    }
    read_ = event.id;
  }
  read_ = following.last;
  return Status::Ok();
}

// Record of the pod whose end this event reports. Null: the end was reported before, the pod exists
// again, it has no record, or it requests no slice.
Result<Json> Walkai::EndOf(int64_t cluster, const telemetryserver::Event& event) {
  const bool removed = event.kind == "removed";
  telemetryserver::EventQuery query;
  query.to = std::numeric_limits<Millis>::max();
  query.kinds = {"pod"};
  query.object = removed ? event.object.substr(kPodRemoved.size()) : event.object;
  query.most = kMaxOfPod;
  NOS_ASSIGN(auto records, recorder_.archive().Events(cluster, query));  // newest first
  const auto ends = [](const telemetryserver::Event& each) {
    return HasEnded(FindString(each.body, "state"));
  };
  const auto says_so = [&](const telemetryserver::Event& each) {
    return ends(each) && (removed || each.id < event.id);
  };
  if (records.empty() || std::ranges::any_of(records, says_so)) return Json(nullptr);
  bool there = false;
  recorder_.Look(options_.cluster, [&](const telemetryserver::Live& live) {
    there = live.state.pods().contains(query.object);
  });
  if (removed && there) return Json(nullptr);
  std::set<std::string> unknown;
  Json pod = removed ? records.front().body : event.body;
  return ProfileOf(pod, unknown).empty() ? Json(nullptr) : std::move(pod);
}

// The stored position stays before the oldest ended pod whose five minutes are not over, so that
// all of them are reported again after a restart.
void Walkai::Taken() {
  int64_t had = read_;
  for (auto& [key, end] : ends_) {
    if (end.taken == 0) end.taken = pushed_at_;
    had = std::min(had, end.event - 1);
  }
  recorder_.Advance(kName, had);
}

Status Walkai::Push(const Json& snapshot) {
  kube::ApiRequest request;
  request.method = "POST";
  request.path = destination_.path();
  request.content_type = "application/json";
  request.text = WriteJson(snapshot);
  NOS_ASSIGN(request.headers, destination_.Headers());
  const auto answer = transport_.Do(request);
  const bool taken = answer.ok() && answer->code >= 200 && answer->code < 300;
  const bool refused = answer.ok() && answer->code >= 400 && answer->code < 500;
  metrics_.Count(kRequests, {{"export", kName},
                             {"result", taken     ? "ok"
                                        : refused ? "refused"
                                                  : "failed"}});
  NOS_RETURN_IF_ERROR(answer.status());
  if (taken) return Status::Ok();
  return {Code::kUnavailable, fmt::format("{} answers {}: {}", destination_.connection().server,
                                          answer->code, Shortened(answer->text, kMaxWords))};
}

void Walkai::LogOutcome(const Status& outcome) {
  if (!outcome.ok() && outcome.message() != trouble_.message()) {
    Log(LogLevel::kWarn, "failed to send snapshot to walk:ai, retrying with the next one",
        {{"error", outcome.message()}});
  }
  if (outcome.ok() && !trouble_.ok()) Log(LogLevel::kInfo, "resumed snapshots to walk:ai");
  trouble_ = outcome;
}

}  // namespace nos::exports
