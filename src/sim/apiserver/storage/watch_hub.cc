#include "sim/apiserver/storage/watch_hub.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/apiserver/objects/reply.h"
#include "sim/apiserver/objects/tree.h"

namespace nos::sim {
namespace {

// A watch that matches none of this many changes gets a bookmark, so that it can resume from there
// after a disconnect.
constexpr uint64_t kBookmarkEvery = 500;

auto FirstAfter(const std::deque<Change>& changes, uint64_t version) {
  return std::upper_bound(changes.begin(), changes.end(), version,
                          [](uint64_t v, const Change& change) { return v < change.version; });
}

// The object as it left the watch's selection: its former state, at the version of the change.
Json LastSeen(const Change& change) {
  Json object = *change.before;
  MakeObject(object, "metadata")["resourceVersion"] = fmt::to_string(change.version);
  return object;
}

// The current version of an object belongs to the store; a former version is `before` of exactly
// one change. Thus each version is counted once.
size_t KeptAliveBy(const Change& change) {
  const size_t before = change.before == nullptr ? 0 : MemoryOf(*change.before);
  return before + (change.kind == Change::Kind::kDeleted ? MemoryOf(*change.object) : 0);
}

}  // namespace

void WatchHub::Append(const std::string& storage, Change change) {
  change.bytes = KeptAliveBy(change);
  const std::lock_guard lock(mutex_);
  Log& log = logs_[storage];
  log.bytes += change.bytes;
  log.changes.push_back(std::move(change));
  while (log.changes.size() > history_ || (log.bytes > bytes_ && log.changes.size() > 1)) {
    ForgetOldest(log);
  }
  Wake(log);
}

void WatchHub::ForgetOldest(Log& log) {
  log.forgotten = log.changes.front().version;
  log.bytes -= log.changes.front().bytes;
  log.changes.pop_front();
}

void WatchHub::Close(const std::string& storage) {
  const std::lock_guard lock(mutex_);
  Log& log = logs_[storage];
  ++log.epoch;
  if (!log.changes.empty()) log.forgotten = log.changes.back().version;
  log.changes.clear();
  log.bytes = 0;
  Wake(log);
}

void WatchHub::CloseAll() {
  const std::lock_guard lock(mutex_);
  for (auto& [storage, log] : logs_) {
    ++log.epoch;
    Wake(log);
  }
}

void WatchHub::Wake(Log& log) {
  for (WatchSubscription* watch : log.watches) {
    if (watch->wake_) std::exchange(watch->wake_, nullptr)();
  }
}

std::optional<std::map<ObjectKey, ObjectRef>> WatchHub::StateAt(const std::string& storage,
                                                                uint64_t version) const {
  const std::lock_guard lock(mutex_);
  std::map<ObjectKey, ObjectRef> changed;
  const auto found = logs_.find(storage);
  if (found == logs_.end()) return changed;
  const Log& log = found->second;
  if (version < log.forgotten) return std::nullopt;
  for (auto i = FirstAfter(log.changes, version); i != log.changes.end(); ++i) {
    changed.emplace(i->key, i->before);  // the first change has the state before all of them
  }
  return changed;
}

WatchSubscription::WatchSubscription(std::shared_ptr<WatchHub> hub, WatchSpec spec)
    : hub_(std::move(hub)),
      spec_(std::move(spec)),
      log_([this]() -> WatchHub::Log& {
        const std::lock_guard lock(hub_->mutex_);
        WatchHub::Log& log = hub_->logs_[spec_.storage];
        log.watches.insert(this);
        return log;
      }()),
      epoch_([this] {
        const std::lock_guard lock(hub_->mutex_);
        return log_.epoch;
      }()),
      initial_bookmark_due_(spec_.bookmark_after_initial),
      version_(spec_.version),
      last_reported_(spec_.version) {}

WatchSubscription::~WatchSubscription() {
  const std::lock_guard lock(hub_->mutex_);
  log_.watches.erase(this);
}

std::optional<kube::WatchEvent> WatchSubscription::Next() {
  std::unique_lock lock(hub_->mutex_);
  if (failed_) return std::nullopt;
  if (initial_sent_ < spec_.initial.size()) {
    const ObjectRef object = spec_.initial[initial_sent_++];
    lock.unlock();
    return kube::WatchEvent{"ADDED", spec_.present(*object)};
  }
  if (std::exchange(initial_bookmark_due_, false)) return Bookmark(true);
  if (Closed()) return std::nullopt;
  if (version_ < log_.forgotten) return TooOld();
  const auto next = Advance();
  if (!next) return IdleBookmark();
  lock.unlock();
  const auto& [change, type] = *next;
  const bool left = type == "DELETED" && change.kind != Change::Kind::kDeleted;
  return kube::WatchEvent{type, spec_.present(left ? LastSeen(change) : *change.object)};
}

std::optional<std::pair<Change, std::string>> WatchSubscription::Advance() {
  for (auto i = FirstAfter(log_.changes, version_); i != log_.changes.end(); ++i) {
    version_ = i->version;
    if (const auto type = TypeFor(*i)) {
      last_reported_ = version_;
      return std::pair{*i, *type};
    }
  }
  return std::nullopt;
}

std::optional<std::string> WatchSubscription::TypeFor(const Change& change) const {
  const bool was = change.before != nullptr && spec_.matches(*change.before);
  const bool is = change.kind != Change::Kind::kDeleted && spec_.matches(*change.object);
  if (was && is) return "MODIFIED";
  if (is) return "ADDED";
  if (was) return "DELETED";
  return std::nullopt;
}

kube::WatchEvent WatchSubscription::Bookmark(bool after_initial) const {
  Json object = spec_.bookmark;
  JsonObject& metadata = MakeObject(object, "metadata");
  metadata["resourceVersion"] = fmt::to_string(version_);
  if (after_initial) metadata["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  return {"BOOKMARK", std::move(object)};
}

std::optional<kube::WatchEvent> WatchSubscription::IdleBookmark() {
  if (!spec_.bookmarks || version_ < last_reported_ + kBookmarkEvery) return std::nullopt;
  last_reported_ = version_;
  return Bookmark(false);
}

std::optional<kube::WatchEvent> WatchSubscription::Progress() {
  const std::lock_guard lock(hub_->mutex_);
  if (!spec_.bookmarks || failed_ || Closed()) return std::nullopt;
  last_reported_ = version_;
  return Bookmark(false);
}

kube::WatchEvent WatchSubscription::TooOld() {
  failed_ = true;
  return {"ERROR", ToStatus(Expired(fmt::format("too old resource version: {} ({})", version_,
                                                log_.forgotten)))};
}

bool WatchSubscription::Closed() const { return log_.epoch != epoch_; }

bool WatchSubscription::Ready() const {
  return failed_ || Closed() || initial_bookmark_due_ || initial_sent_ < spec_.initial.size() ||
         version_ < log_.forgotten ||
         (!log_.changes.empty() && log_.changes.back().version > version_);
}

bool WatchSubscription::Ended() const {
  const std::lock_guard lock(hub_->mutex_);
  return failed_ || (Closed() && initial_sent_ == spec_.initial.size() && !initial_bookmark_due_);
}

void WatchSubscription::OnReady(std::function<void()> wake) {
  const std::lock_guard lock(hub_->mutex_);
  if (Ready()) return wake();
  wake_ = std::move(wake);
}

}  // namespace nos::sim
