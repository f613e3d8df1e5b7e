#include "controllers/collector/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/log.h"
#include "controllers/pool_standing.h"
#include "kube/reflector.h"

namespace nos::controllers {
namespace {

constexpr std::string_view kKueue = "kueue.x-k8s.io";
// These versions agree in all fields that are read (cluster/work.h).
constexpr std::array<std::string_view, 3> kKueueVersions = {"v1", "v1beta2", "v1beta1"};
constexpr Duration kLookAgain = std::chrono::minutes(1), kLookWhether = std::chrono::minutes(10);
// Relisting would repeat old Events. A broken watch lists them anyway when it restarts.
constexpr Duration kRelistEvents = std::chrono::hours(24);
constexpr BackOff kPatient{std::chrono::seconds(1), std::chrono::minutes(1)};

// The newest served version of Kueue that nos supports; "": none.
std::string VersionOf(const Json& group) {
  const Json* versions = Find(group, "versions");
  if (versions == nullptr || !versions->is_array()) return {};
  for (const std::string_view known : kKueueVersions) {
    for (const Json& served : versions->get_array()) {
      if (FindString(served, "version") == known) return std::string(known);
    }
  }
  return {};
}

}  // namespace

class WorkWatch::Watched {
 public:
  virtual ~Watched() = default;
  virtual void Pump(kube::Client& client, Time now) = 0;
  virtual bool settled() const = 0;
  virtual void Drop() = 0;
};

template <typename T>
class WorkWatch::Follower final : public Watched, private kube::ReflectorSink {
 public:
  using Read = Status (*)(JsonSource, T&);
  using Take = std::function<bool(const T&)>;
  using Gone = std::function<void(const std::string& ns, const std::string& name)>;

  Follower(kube::Resource resource, kube::ReflectorOptions options, Read read, Take take, Gone gone)
      : what_(resource.group.empty() ? resource.plural : resource.plural + "." + resource.group),
        reflector_(std::move(resource), std::move(options)),
        read_(read),
        take_(std::move(take)),
        gone_(std::move(gone)) {}

  void Pump(kube::Client& client, Time now) override {
    reflector_.Pump(client, now, *this);
    const bool denied = reflector_.last_error().code() == Code::kPermission;
    if (denied && !denied_) {
      Log(LogLevel::kInfo,
          "omitting resource from telemetry: it may not be listed and watched (docs/telemetry.md)",
          {{"resource", what_}, {"error", reflector_.last_error().message()}});
    }
    denied_ = denied || (denied_ && !reflector_.last_error().ok());
  }
  bool settled() const override { return reflector_.synced() || denied_; }
  void Drop() override {
    BeginList();
    EndList();
  }

 private:
  using Name = std::pair<std::string, std::string>;  // namespace, name

  void BeginList() override {
    listed_.clear();
    listing_ = true;
  }
  void EndList() override {
    listing_ = false;
    for (const Name& name : std::exchange(known_, std::exchange(listed_, {}))) {
      if (!known_.contains(name)) gone_(name.first, name.second);
    }
  }
  std::string Upsert(JsonSource object) override {
    T fresh;
    const Status read = read_(object, fresh);
    const Name name{fresh.meta.ns, fresh.meta.name};
    std::set<Name>& there = listing_ ? listed_ : known_;
    if (!read.ok()) {  // keep what is known of it
      if (listing_ && known_.contains(name)) there.insert(name);
    } else if (take_(fresh)) {
      there.insert(name);
    } else {
      there.erase(name);
    }
    return std::move(fresh.meta.resource_version);
  }
  std::string Remove(JsonSource object) override {
    T last;
    (void)read_(object, last);  // only the name is needed
    if (known_.erase({last.meta.ns, last.meta.name}) > 0) gone_(last.meta.ns, last.meta.name);
    return std::move(last.meta.resource_version);
  }

  const std::string what_;
  kube::Reflector reflector_;
  const Read read_;
  const Take take_;
  const Gone gone_;
  bool denied_ = false, listing_ = false;
  std::set<Name> known_, listed_;  // names that the sink took
};

template <typename T, typename Take>
std::unique_ptr<WorkWatch::Watched> WorkWatch::Follow(kube::Resource resource,
                                                      Status (*read)(JsonSource, T&),
                                                      std::string_view kind, Take take) const {
  kube::ReflectorOptions options;
  options.back_off = kPatient;
  options.relist_every = kind == "Event" ? kRelistEvents : options_.relist_every;
  options.may_be_unknown = true;
  options.wake = options_.wake;
  auto gone = [this, kind](const std::string& ns, const std::string& name) {
    sink_.gone(kind, ns, name);
  };
  return std::make_unique<Follower<T>>(std::move(resource), std::move(options), read,
                                       std::move(take), std::move(gone));
}

WorkWatch::WorkWatch(WorkSink sink, WorkWatchOptions options)
    : sink_(std::move(sink)), options_(std::move(options)) {
  always_.push_back(
      Follow({"batch", "v1", "jobs", "Job"}, cluster::ReadJob, "Job", sink_.take_job));
  always_.push_back(
      Follow({std::string(cluster::kPoolGroup), std::string(cluster::kPoolVersion),
              std::string(cluster::kNodePools), std::string(cluster::kNodePool), false},
             ReadPoolToReport, cluster::kNodePool, sink_.take_pool));
  if (!sink_.take_event) return;
  always_.push_back(Follow(kube::kEvents, cluster::ReadEvent, "Event",
                           [this](const cluster::KubernetesEvent& event) {
                             sink_.take_event(event);
                             return false;
                           }));
}

WorkWatch::~WorkWatch() = default;

void WorkWatch::Pump(kube::Client& client, Time now) {
  if (now >= kueue_due_) LookForKueue(client, now);
  for (const auto& watched : kueue_) watched->Pump(client, now);
  for (const auto& watched : always_) watched->Pump(client, now);
}

void WorkWatch::LookForKueue(kube::Client& client, Time now) {
  kube::ApiRequest request;
  request.method = "GET";
  request.path = fmt::format("/apis/{}", kKueue);
  const Result<Json> group = client.Send(request);
  const Code code = group.status().code();
  const bool answered = group.ok() || code == Code::kNotFound || code == Code::kPermission;
  kueue_due_ = now + (group.ok() ? kLookWhether : kLookAgain);
  if (!answered) return;
  kueue_known_ = true;
  const std::string version = group.ok() ? VersionOf(*group) : "";
  if (version == kueue_version_) return;
  for (const auto& watched : kueue_) watched->Drop();
  kueue_.clear();
  kueue_version_ = version;
  if (version.empty()) return;
  const auto resource = [&](const char* plural, const char* kind, bool namespaced = true) {
    return kube::Resource{std::string(kKueue), version, plural, kind, namespaced};
  };
  kueue_.push_back(Follow(resource("clusterqueues", "ClusterQueue", false), cluster::ReadKueueQueue,
                          "Queue", sink_.take_queue));
  kueue_.push_back(Follow(resource("localqueues", "LocalQueue"), cluster::ReadKueueQueue, "Queue",
                          sink_.take_queue));
  kueue_.push_back(Follow(resource("workloads", "Workload"), cluster::ReadKueueWorkload, "Workload",
                          sink_.take_workload));
}

bool WorkWatch::settled() const {
  const auto all = [](const auto& list) {
    return std::ranges::all_of(list, [](const auto& watched) { return watched->settled(); });
  };
  return kueue_known_ && all(always_) && all(kueue_);
}

}  // namespace nos::controllers
