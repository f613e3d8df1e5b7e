#include "reconcile/context_caches.h"

#include <algorithm>
#include <utility>

#include "dra/context.h"

namespace nos::reconcile {

using cluster::ClusterContext;

class ContextCaches::Watched {
 public:
  virtual ~Watched() = default;
  virtual bool Pump(kube::Client& client, Time now) = 0;
  virtual const kube::Reflector& reflector() const = 0;
  virtual uint64_t Version() const = 0;
  virtual void AddTo(ClusterContext& context) const = 0;
  virtual std::string_view kind() const = 0;
  virtual std::map<std::string, std::string> Problems() const = 0;
};

template <typename T>
class ContextCaches::WatchedTable final : public Watched {
 public:
  using Member = cluster::Table<T> ClusterContext::*;
  using Object = std::shared_ptr<const T>;

  WatchedTable(const kube::ReflectorOptions& options, kube::Resource resource,
               Status (*read)(JsonSource, T&), Member table, std::vector<ContextChange>& changes)
      : kind_(resource.kind), table_(table), cache_(std::move(resource), read, options) {
    cache_.AddHandler(
        [this, &changes](const std::string& key, const Object& before, const Object& after) {
          auto apply = [table = table_, key, after](ClusterContext& to) {
            (to.*table).Set(key, after);
          };
          ContextChange& change = changes.emplace_back();
          change.kind = kind_;
          change.key = key;
          if (before != nullptr) change.before = before;
          if (after != nullptr) change.after = after;
          change.apply = std::move(apply);
        });
  }
  bool Pump(kube::Client& client, Time now) override { return cache_.Pump(client, now); }
  const kube::Reflector& reflector() const override { return cache_.reflector(); }
  uint64_t Version() const override { return cache_.Version(); }
  void AddTo(ClusterContext& context) const override {
    for (const auto& object : *cache_.Snapshot()) {
      (context.*table_).Set(kube::KeyOf(*object), object);
    }
  }
  std::string_view kind() const override { return kind_; }
  std::map<std::string, std::string> Problems() const override { return cache_.Problems(); }

 private:
  const std::string kind_;
  const Member table_;
  kube::Cache<T> cache_;
};

template <typename T>
void ContextCaches::Watch(const kube::ReflectorOptions& options, kube::Resource resource,
                          Status (*read)(JsonSource, T&),
                          cluster::Table<T> cluster::ClusterContext::* table) {
  caches_.push_back(
      std::make_unique<WatchedTable<T>>(options, std::move(resource), read, table, changes_));
}

ContextCaches::ContextCaches(const kube::ReflectorOptions& options,
                             const std::vector<std::string_view>& kinds, bool devices) {
  kube::ReflectorOptions all = options;
  all.may_be_unknown = true;
  const auto watch = [&](const cluster::ContextKind& kind, auto read, auto table) {
    if (!kinds.empty() && std::ranges::find(kinds, kind.kind) == kinds.end()) return;
    Watch(all,
          {std::string(kind.group), std::string(kind.version), std::string(kind.plural),
           std::string(kind.kind), kind.namespaced},
          read, table);
  };
  cluster::ForEachContextKind(watch);
  if (devices) dra::ForEachDeviceKind(watch);
}

ContextCaches::~ContextCaches() = default;

bool ContextCaches::Pump(kube::Client& client, Time now) {
  bool changed = false;
  for (const auto& cache : caches_) changed |= cache->Pump(client, now);
  return changed;
}

bool ContextCaches::synced() const {
  return std::ranges::all_of(caches_, [](const auto& c) { return c->reflector().synced(); });
}

uint64_t ContextCaches::Version() const {
  uint64_t version = 0;
  for (const auto& cache : caches_) version += cache->Version();
  return version;
}

Time ContextCaches::NextDue() const {
  Time due = Time::max();
  for (const auto& cache : caches_) due = std::min(due, cache->reflector().NextDue());
  return due;
}

Status ContextCaches::ReadError() const {
  for (const auto& cache : caches_) {
    if (!cache->reflector().last_error().ok()) return cache->reflector().last_error();
  }
  return Status::Ok();
}

std::map<std::string, std::string> ContextCaches::Problems(std::string_view kind) const {
  const auto found =
      std::ranges::find_if(caches_, [&](const auto& cache) { return cache->kind() == kind; });
  return found == caches_.end() ? std::map<std::string, std::string>() : (*found)->Problems();
}

std::vector<ContextChange> ContextCaches::Take() { return std::exchange(changes_, {}); }

ClusterContext ContextCaches::Collect() const {
  ClusterContext context;
  for (const auto& cache : caches_) cache->AddTo(context);
  return context;
}

}  // namespace nos::reconcile
