#include "telemetryserver/api/stream.h"

#include <fmt/core.h>

#include <functional>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/text.h"
#include "telemetryserver/stories.h"

namespace nos::telemetryserver {
namespace {

std::string NewEpoch() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

// "all", or a hash of the visible namespaces.
std::string WhatIsSeen(const Reader& reader) {
  if (reader.may_all) return "all";
  std::string names;
  for (const std::string& ns : reader.namespaces) names += ns + "/";
  return fmt::format("{:016x}", std::hash<std::string>()(names));
}

// JSON text contains no line breaks.
void AppendEvent(std::string_view name, const std::string& id, const std::string& data,
                 std::string& out) {
  if (data.empty()) return;
  out += fmt::format("event: {}\n", name);
  if (!id.empty()) out += fmt::format("id: {}\n", id);
  out += fmt::format("data: {}\n\n", data);
}

class Stream final : public net::BodyStream {
 public:
  Stream(const Recorder& recorder, StreamHub& hub, NodeTexts& texts, OverviewTexts& overviews,
         const gpu::Catalogue& catalogue, const Reader& reader, const StreamOptions& options,
         std::unique_ptr<StreamHub::Place> place)
      : recorder_(recorder),
        hub_(hub),
        texts_(texts),
        overviews_(overviews),
        catalogue_(catalogue),
        reader_(reader),
        scope_(reader, ""),
        whose_(WhatIsSeen(reader)),
        options_(options),
        place_(std::move(place)) {}
  ~Stream() override {
    if (subscription_ != 0) hub_.Unsubscribe(subscription_);
  }

  bool Read(std::string& out) override {
    changes_ = hub_.changes();
    return recorder_.Look(options_.cluster, [&](const Live& live) {
      if (!begun_) Begin(live.state, out);
      if (live.state.version() > seen_) SendChanges(live.state, out);
    });
  }
  void ReadIdle(std::string& out) override { out += ": still here\n\n"; }
  void OnReady(std::function<void()> wake) override {
    if (subscription_ != 0) hub_.Unsubscribe(subscription_);
    subscription_ = hub_.Subscribe(changes_, std::move(wake));
  }

 private:
  void Begin(const State& state, std::string& out) {
    begun_ = true;
    const uint64_t resumed = Resumed(state);
    seen_ = resumed == 0 ? state.version() : resumed;
    AppendEvent("hello", Id(), fmt::format("{{\"at\":{}}}", recorder_.Now()), out);
    if (resumed == 0 && !options_.last_event.empty()) AppendEvent("reset", Id(), "{}", out);
  }

  // The version from which the client can continue; 0: it needs the full state.
  uint64_t Resumed(const State& state) const {
    const auto parts = Split(options_.last_event, '.');
    if (parts.size() != 3 || parts[0] != hub_.epoch() || parts[2] != whose_) return 0;
    const auto version = ParseInt(parts[1]);
    if (!version || *version <= 0) return 0;
    const auto since = static_cast<uint64_t>(*version);
    if (since > state.version()) return 0;
    // Removals and decisions since then must still be in memory.
    const auto& removed = state.removed_pods();
    const auto& decisions = state.decisions();
    const bool forgotten = (removed.size() >= kMaxRecent && removed.front().first > since) ||
                           (decisions.size() >= kMaxRecent && decisions.front().first > since);
    return forgotten ? 0 : since;
  }

  // The ID contains the scope: only a client with the same scope may continue from it.
  std::string Id() const { return fmt::format("{}.{}.{}", hub_.epoch(), seen_, whose_); }

  void SendChanges(const State& state, std::string& out) {
    const uint64_t since = std::exchange(seen_, state.version());
    const std::string id = Id();
    std::vector<std::string> shown = ShownNodes(state, scope_);
    const bool same = shown_ == shown;
    AppendEvent("gpus", "", ChangedGpusJson(state, scope_, since, &texts_, same ? nullptr : &shown),
                out);
    shown_ = std::move(shown);
    AppendEvent("workloads", "", ChangedPodsJson(state, scope_, since), out);
    if (state.quotas_version() > since) {
      AppendEvent("quotas", "", QuotasJson(state, scope_), out);
    }
    if (reader_.may_all && state.pools_version() > since) {
      AppendEvent("pools", "", PoolsJson(state), out);
    }
    if (reader_.may_all) {
      for (const auto& [version, decision] : state.decisions()) {
        if (version <= since) continue;
        for (const Json& each : WithStories({decision})) {
          AppendEvent("decision", "", WriteJson(each), out);
        }
      }
      AppendEvent(
          "overview", "",
          overviews_.Get(options_.cluster, state, catalogue_, recorder_.Now(), recorder_.stale()),
          out);
    }
    // Sent last: a client that has received this event has all of them.
    AppendEvent("at", id, fmt::format("{{\"at\":{}}}", recorder_.Now()), out);
  }

  const Recorder& recorder_;
  StreamHub& hub_;
  NodeTexts& texts_;
  OverviewTexts& overviews_;
  const gpu::Catalogue& catalogue_;
  const Reader reader_;
  const Scope scope_;
  const std::string whose_;
  const StreamOptions options_;
  const std::unique_ptr<StreamHub::Place> place_;
  bool begun_ = false;
  // Nodes sent to the client; nullopt: a client that reconnects may have other ones.
  std::optional<std::vector<std::string>> shown_;
  uint64_t seen_ = 0, subscription_ = 0, changes_ = 0;
};

}  // namespace

StreamHub::StreamHub(Duration pace) : pace_(pace), epoch_(NewEpoch()), thread_([this] { Run(); }) {}

StreamHub::~StreamHub() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

void StreamHub::Changed() {
  const std::scoped_lock lock(mutex_);
  changed_ = true;
  wake_.notify_all();
}

uint64_t StreamHub::Subscribe(uint64_t seen, std::function<void()> wake) {
  const std::scoped_lock lock(mutex_);
  ++last_;
  if (changes_ > seen) {
    wake();
  } else {
    waiting_.emplace(last_, std::move(wake));
  }
  return last_;
}

void StreamHub::Unsubscribe(uint64_t number) {
  const std::scoped_lock calls(calling_);
  const std::scoped_lock lock(mutex_);
  waiting_.erase(number);
}

std::unique_ptr<StreamHub::Place> StreamHub::Enter(const std::string& who) {
  const std::scoped_lock lock(mutex_);
  const auto own = places_.find(who);
  if (taken_ >= kMaxStreams || (own != places_.end() && own->second >= kMaxStreamsOfOne)) {
    return nullptr;
  }
  auto place = std::make_unique<Place>(*this, who);
  ++places_[who];
  ++taken_;
  return place;
}

StreamHub::Place::~Place() {
  const std::scoped_lock lock(hub_.mutex_);
  --hub_.taken_;
  const auto own = hub_.places_.find(who_);
  if (--own->second == 0) hub_.places_.erase(own);
}

void StreamHub::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return changed_ || stop_; });
    if (stop_) return;
    changed_ = false;
    lock.unlock();
    {
      const std::scoped_lock calls(calling_);
      std::map<uint64_t, std::function<void()>> waiting;
      {
        const std::scoped_lock again(mutex_);
        ++changes_;
        waiting.swap(waiting_);
      }
      for (const auto& [number, wake] : waiting) wake();
    }
    lock.lock();
    wake_.wait_for(lock, pace_, [this] { return stop_; });
  }
}

std::unique_ptr<net::BodyStream> OpenStream(const Recorder& recorder, StreamHub& hub,
                                            NodeTexts& texts, OverviewTexts& overviews,
                                            const gpu::Catalogue& catalogue, const Reader& reader,
                                            const StreamOptions& options) {
  auto place = hub.Enter(reader.user);
  if (place == nullptr) return nullptr;
  return std::make_unique<Stream>(recorder, hub, texts, overviews, catalogue, reader, options,
                                  std::move(place));
}

}  // namespace nos::telemetryserver
