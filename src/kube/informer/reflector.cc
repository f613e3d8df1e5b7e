#include "kube/reflector.h"

#include <utility>

#include "base/log.h"

namespace nos::kube {
namespace {

constexpr std::string_view kGone = "410";
// Servers end watches every few minutes; only a watch that ends sooner counts as a failure.
constexpr Duration kLongLife = std::chrono::seconds(30);
// After this many consecutive failures the resume version may be the cause: list again. With the
// usual back-off ten failures take about a minute.
constexpr Duration kUnknownAgain = std::chrono::minutes(1);
constexpr int kBrokenBeforeList = 3, kFailuresBeforeList = 10;

// The fields that the reflector itself reads from a bookmark or a metav1.Status.
struct Glance {
  std::string version, message;
  bool gone = false;  // a metav1.Status with code 410
};

Glance Look(const WatchEvent& event) {
  Glance glance;
  const Status read = ReadJson(event.json(), [&](Cursor& root) {
    if (root.kind() != Cursor::Kind::kObject) return;
    root.Members([&](std::string_view key, Cursor& value) {
      if (key == "metadata" && value.kind() == Cursor::Kind::kObject) {
        value.Members([&](std::string_view name, Cursor& member) {
          if (name == "resourceVersion") glance.version = StringOf(member);
        });
      }
      if (key == "message") glance.message = StringOf(value);
      if (key == "code" && value.kind() == Cursor::Kind::kNumber)
        glance.gone = value.Text() == kGone;
    });
  });
  if (!read.ok()) glance.message = read.message();
  return glance;
}

}  // namespace

Reflector::Reflector(Resource resource, ReflectorOptions options)
    : resource_(std::move(resource)), options_(std::move(options)) {}

bool Reflector::Pump(Client& client, Time now, ReflectorSink& sink) {
  // 1. Deliver events of the open watch.
  bool delivered = stream_ != nullptr && Drain(now, sink);
  // 2. A periodic list starts without version and watch.
  if (synced_ && now - listed_ >= options_.relist_every) {
    stream_ = nullptr;
    version_.clear();
  }
  // 3. List if there is no version to resume from; then watch from that version.
  if (stream_ == nullptr && now >= next_attempt_) {
    if (version_.empty()) delivered |= ListNow(client, now, sink);
    if (!version_.empty()) OpenWatch(client, now);
    if (stream_ != nullptr) delivered |= Drain(now, sink);
  }
  // 4. Ask for the wake call last: draining may have used up the previous one.
  if (stream_ != nullptr && options_.wake) stream_->OnReady(options_.wake);
  return delivered;
}

Time Reflector::NextDue() const {
  return stream_ == nullptr ? next_attempt_ : listed_ + options_.relist_every;
}

bool Reflector::ListNow(Client& client, Time now, ReflectorSink& sink) {
  ListOptions options;
  options.label_selector = options_.label_selector;
  options.field_selector = options_.field_selector;
  const Result<std::string> version = client.ListEach(
      resource_, options_.ns, options, [&] { sink.BeginList(); },
      [&](JsonSource item) { sink.Upsert(item); });
  if (version.status().code() == Code::kNotFound && options_.may_be_unknown) {
    sink.BeginList();
    sink.EndList();
    synced_ = true;
    last_error_ = Status::Ok();
    next_attempt_ = now + kUnknownAgain;
    return true;
  }
  if (!version.ok()) {
    Fail(version.status().Within("list " + resource_.plural), now);
    return false;
  }
  sink.EndList();
  // Without a version in the list, the best possible start is "now" ("0").
  version_ = version->empty() ? "0" : *version;
  listed_ = now;
  synced_ = true;
  broken_watches_ = 0;
  return true;
}

void Reflector::OpenWatch(Client& client, Time now) {
  ListOptions options;
  options.label_selector = options_.label_selector;
  options.field_selector = options_.field_selector;
  options.resource_version = version_;
  Result<std::unique_ptr<WatchStream>> stream = client.Watch(resource_, options_.ns, options);
  if (!stream.ok()) return Fail(stream.status().Within("watch " + resource_.plural), now);
  stream_ = std::move(stream).value();
  opened_ = now;
  last_error_ = Status::Ok();
}

bool Reflector::Drain(Time now, ReflectorSink& sink) {
  bool delivered = false;
  for (size_t i = 0; i < options_.batch && stream_ != nullptr; ++i) {
    const std::optional<WatchEvent> event = stream_->Next();
    if (!event) {
      if (!stream_->Ended()) break;
      Fail(Status(Code::kUnavailable, "the watch has ended"), now);
      break;
    }
    delivered |= Deliver(*event, now, sink);
  }
  return delivered;
}

bool Reflector::Deliver(const WatchEvent& event, Time now, ReflectorSink& sink) {
  const auto advance = [&](std::string version) {
    if (!version.empty()) version_ = std::move(version);
  };
  if (event.type == "ERROR") {
    Glance glance = Look(event);
    if (glance.gone) version_.clear();
    Fail(Status(Code::kUnavailable, std::move(glance.message)), now);
    return false;
  }
  failures_ = broken_watches_ = 0;
  if (event.type == "ADDED" || event.type == "MODIFIED") {
    advance(sink.Upsert(event.json()));
  } else if (event.type == "DELETED") {
    advance(sink.Remove(event.json()));
  } else {  // BOOKMARK: only the version; other events are ignored
    advance(Look(event).version);
    return false;
  }
  return true;
}

// Retries the first failure after a success at once.
void Reflector::Fail(Status error, Time now) {
  const bool opened = stream_ != nullptr;
  if (opened && now - opened_ >= kLongLife) failures_ = broken_watches_ = 0;
  stream_ = nullptr;
  ++failures_;
  // A server that cannot be reached says nothing about the version; one that closes opened watches
  // does.
  if (opened) ++broken_watches_;
  if (broken_watches_ >= kBrokenBeforeList || failures_ >= kFailuresBeforeList) version_.clear();
  next_attempt_ = failures_ == 1 ? now : now + options_.back_off.After(failures_ - 1);
  last_error_ = std::move(error);
  if (failures_ > 1) {
    Log(LogLevel::kDebug, "restarting interrupted watch",
        {{"resource", resource_.plural}, {"error", last_error_.message()}});
  }
}

}  // namespace nos::kube
