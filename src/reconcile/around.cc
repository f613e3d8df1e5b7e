#include "reconcile/around.h"

#include <algorithm>
#include <utility>

namespace nos::reconcile {

using cluster::Surroundings;

class AroundCaches::Watched {
 public:
  virtual ~Watched() = default;
  virtual bool Pump(kube::Client& client, Time now) = 0;
  virtual const kube::Reflector& reflector() const = 0;
  virtual uint64_t Version() const = 0;
  virtual void AddTo(Surroundings& around) const = 0;
  virtual std::string_view kind() const = 0;
  virtual std::map<std::string, std::string> Problems() const = 0;
};

template <typename T>
class AroundCaches::WatchedTable final : public Watched {
 public:
  using Member = cluster::Table<T> Surroundings::*;
  using Object = std::shared_ptr<const T>;

  WatchedTable(const kube::ReflectorOptions& options, kube::Resource resource,
               Status (*read)(JsonSource, T&), Member table, std::vector<AroundChange>& changes)
      : kind_(resource.kind), table_(table), cache_(std::move(resource), read, options) {
    cache_.AddHandler([this, &changes](const std::string& key, const Object& before,
                                       const Object& after) {
      auto apply = [table = table_, key, after](Surroundings& to) { (to.*table).Set(key, after); };
      AroundChange& change = changes.emplace_back();
      change.kind = kind_;
      if (before != nullptr) change.before = before;
      if (after != nullptr) change.after = after;
      change.apply = std::move(apply);
    });
  }
  bool Pump(kube::Client& client, Time now) override { return cache_.Pump(client, now); }
  const kube::Reflector& reflector() const override { return cache_.reflector(); }
  uint64_t Version() const override { return cache_.Version(); }
  void AddTo(Surroundings& around) const override {
    for (const auto& object : *cache_.Snapshot()) {
      (around.*table_).Set(kube::KeyOf(object->meta.ns, object->meta.name), object);
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
void AroundCaches::Watch(const kube::ReflectorOptions& options, kube::Resource resource,
                         Status (*read)(JsonSource, T&),
                         cluster::Table<T> cluster::Surroundings::* table) {
  caches_.push_back(
      std::make_unique<WatchedTable<T>>(options, std::move(resource), read, table, changes_));
}

AroundCaches::AroundCaches(const kube::ReflectorOptions& options,
                           const std::vector<std::string_view>& kinds) {
  kube::ReflectorOptions all = options;
  all.may_be_unknown = true;
  cluster::ForEachAroundKind([&](const cluster::AroundKind& kind, auto read, auto table) {
    if (!kinds.empty() && std::ranges::find(kinds, kind.kind) == kinds.end()) return;
    Watch(all,
          {std::string(kind.group), std::string(kind.version), std::string(kind.plural),
           std::string(kind.kind), kind.namespaced},
          read, table);
  });
}

AroundCaches::~AroundCaches() = default;

bool AroundCaches::Pump(kube::Client& client, Time now) {
  bool changed = false;
  for (const auto& cache : caches_) changed |= cache->Pump(client, now);
  return changed;
}

bool AroundCaches::synced() const {
  return std::ranges::all_of(caches_, [](const auto& c) { return c->reflector().synced(); });
}

uint64_t AroundCaches::Version() const {
  uint64_t version = 0;
  for (const auto& cache : caches_) version += cache->Version();
  return version;
}

Time AroundCaches::NextDue() const {
  Time due = Time::max();
  for (const auto& cache : caches_) due = std::min(due, cache->reflector().NextDue());
  return due;
}

Status AroundCaches::ReadError() const {
  for (const auto& cache : caches_) {
    if (!cache->reflector().last_error().ok()) return cache->reflector().last_error();
  }
  return Status::Ok();
}

std::map<std::string, std::string> AroundCaches::Problems(std::string_view kind) const {
  const auto found =
      std::ranges::find_if(caches_, [&](const auto& cache) { return cache->kind() == kind; });
  return found == caches_.end() ? std::map<std::string, std::string>() : (*found)->Problems();
}

std::vector<AroundChange> AroundCaches::Take() { return std::exchange(changes_, {}); }

Surroundings AroundCaches::Collect() const {
  Surroundings around;
  for (const auto& cache : caches_) cache->AddTo(around);
  return around;
}

}  // namespace nos::reconcile
