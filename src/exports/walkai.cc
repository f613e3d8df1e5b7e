#include "exports/walkai.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "exports/exporter.h"

namespace nos::exports {
namespace {

using telemetry::Millis;

constexpr Millis kEndedFor = 300'000;
constexpr size_t kMostChanges = 20'000, kMostLookups = 500, kMostWords = 300, kMostUnknown = 100;
constexpr std::string_view kMig = "nvidia.com/mig-";
constexpr std::array<std::string_view, 5> kProfiles = {"1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb",
                                                       "7g.79gb"};

// Empty: it has no word for it.
std::string ProfileWord(std::string_view profile) {
  profile = profile.substr(0, profile.find('+'));  // media engines
  if (profile == "7g.80gb") profile = "7g.79gb";
  return std::ranges::find(kProfiles, profile) == kProfiles.end() ? "" : std::string(profile);
}

// Of its words those that it makes something of; Failed and PodInitializing change nothing there.
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

// The largest slice that it asks for; in resources' names profiles have "." for "+".
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
    if (found.empty() && unknown.size() < kMostUnknown) unknown.emplace(profile);
    word = std::max(word, found);
  }
  return word;
}

JsonArray SlicesOf(const telemetry::State& state, std::set<std::string>& unknown) {
  std::map<std::string, std::pair<int64_t, int64_t>> counts;  // allocated, available
  for (const auto& [name, node] : state.nodes()) {
    for (const telemetry::Gpu& gpu : node.layout.gpus) {
      for (const telemetry::Instance& instance : gpu.instances) {
        const std::string word = ProfileWord(instance.profile);
        if (word.empty() && unknown.size() < kMostUnknown) unknown.insert(instance.profile);
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

// The most important to tell comes first.
int RankOf(std::string_view status) {
  if (status == "Succeeded" || status == "Error") return 0;
  if (status == "Terminating") return 1;
  return status == "Pending" ? 3 : 2;
}

}  // namespace

Json WalkaiSnapshot(const telemetry::State& state, const std::vector<Json>& ended, Millis since,
                    size_t most_pods, std::set<std::string>& unknown) {
  std::map<std::string, Json> pods;  // by namespace and name: that is who they are there
  const auto add = [&](const Json& pod, bool gone) {
    const std::string word = ProfileOf(pod, unknown);
    if (word.empty()) return;
    const std::string_view known = FindString(pod, "state");
    const bool over = HasEnded(known);
    const Millis finished = telemetry::IntegerOr(pod, "finished", 0);
    if (over && finished > 0 && finished < since) return;
    const std::string status = over ? StatusWord(known) : gone ? "Terminating" : StatusWord(known);
    const std::string ns(FindString(pod, "namespace")), name(FindString(pod, "name"));
    pods[ns + "/" + name] = {{"name", name},
                             {"namespace", ns},
                             {"status", status},
                             {"gpu", word},
                             {"start_time", TimeOrNull(telemetry::IntegerOr(pod, "started", 0))},
                             {"finish_time", over ? TimeOrNull(finished) : Json(nullptr)}};
  };
  for (const Json& pod : ended) add(pod, true);
  for (const auto& [uid, pod] : state.pods()) add(pod.body, false);  // a newer one of that name
  std::map<std::pair<int, std::string>, Json> ordered;
  for (auto& [key, pod] : pods) {
    const int rank = RankOf(FindString(pod, "status"));
    ordered.emplace(std::make_pair(rank, key), std::move(pod));
  }
  JsonArray list;
  list.reserve(std::min(ordered.size(), most_pods));
  for (auto& [place, pod] : ordered) {
    if (list.size() < most_pods) list.push_back(std::move(pod));
  }
  return {{"ts", FormatTime(Time{std::chrono::milliseconds(state.now())})},
          {"gpus", SlicesOf(state, unknown)},
          {"pods", std::move(list)}};
}

Walkai::Walkai(WalkaiOptions options, telemetry::Recorder& recorder, const Destination& destination,
               kube::Transport& transport, Metrics& metrics)
    : options_(std::move(options)),
      recorder_(recorder),
      destination_(destination),
      transport_(transport),
      metrics_(metrics),
      pushed_at_(recorder.Now()) {}

Duration Walkai::Step(Time now) {
  if (now < next_) return next_ - now;
  const Millis begin = recorder_.Now();
  auto snapshot = Snapshot();
  Status pushed = snapshot.status();
  if (snapshot.ok() && !snapshot->is_null()) pushed = Push(*snapshot);
  Say(pushed);
  if (pushed.ok()) pushed_at_ = begin;
  metrics_.Set(kLag, {{"export", kName}}, static_cast<double>(begin - pushed_at_) / 1000);
  next_ = now + options_.interval;
  return options_.interval;
}

Result<Json> Walkai::Snapshot() {
  const Millis since = std::min(pushed_at_, recorder_.Now()) - kEndedFor;
  std::set<std::string, std::less<>> present;
  int64_t id = 0;
  recorder_.Look(options_.cluster, [&](const telemetry::Live& live) {
    id = live.id;
    for (const auto& [uid, pod] : live.state.pods()) present.insert(uid);
  });
  if (id == 0) return Json(nullptr);
  NOS_ASSIGN(const std::vector<Json> ended, Ended(since, present, id));
  std::set<std::string> unknown;
  Json snapshot;
  recorder_.Look(options_.cluster, [&](const telemetry::Live& live) {
    snapshot = WalkaiSnapshot(live.state, ended, since, options_.most_pods, unknown);
  });
  for (const std::string& profile : unknown) {
    if (unknown_.size() >= kMostUnknown || !unknown_.insert(profile).second) continue;
    Log(LogLevel::kWarn, "walk:ai has no word for a profile: slices and pods of it are left out",
        {{"profile", Shortened(profile, 64)}});
  }
  return snapshot;
}

// The last that was told of pods that have gone since.
Result<std::vector<Json>> Walkai::Ended(Millis since,
                                        const std::set<std::string, std::less<>>& present,
                                        int64_t id) {
  telemetry::EventQuery query;
  query.from = since;
  query.to = std::numeric_limits<Millis>::max();
  query.kinds = {"pod", "removed"};
  query.most = kMostChanges;
  NOS_ASSIGN(const auto changes, recorder_.archive().Events(id, query));
  std::map<std::string, std::optional<Json>> gone;  // by uid
  for (const telemetry::Event& change : changes) {  // the newest first
    constexpr std::string_view kPod = "pod/";
    const bool removed = change.kind == "removed";
    if (removed && !change.object.starts_with(kPod)) continue;
    const std::string uid = removed ? change.object.substr(kPod.size()) : change.object;
    if (present.contains(uid)) continue;
    std::optional<Json>& last = gone[uid];
    if (!removed && !last) last = change.body;
  }
  std::vector<Json> ended;
  size_t lookups = 0;
  for (auto& [uid, last] : gone) {
    if (!last && ++lookups <= kMostLookups) {
      telemetry::EventQuery before;
      before.to = std::numeric_limits<Millis>::max();
      before.kinds = {"pod"};
      before.object = uid;
      before.most = 1;
      NOS_ASSIGN(const auto found, recorder_.archive().Events(id, before));
      if (!found.empty()) last = found.front().body;
    }
    if (last) ended.push_back(*std::move(last));
  }
  return ended;
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
                                          answer->code, Shortened(answer->text, kMostWords))};
}

void Walkai::Say(const Status& trouble) {
  if (!trouble.ok() && trouble.message() != trouble_.message()) {
    Log(LogLevel::kWarn, "walk:ai does not take what the cluster is like; the next one is tried",
        {{"error", trouble.message()}});
  }
  if (trouble.ok() && !trouble_.ok()) Log(LogLevel::kInfo, "walk:ai is told again");
  trouble_ = trouble;
}

}  // namespace nos::exports
