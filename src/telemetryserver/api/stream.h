// GET /api/v1/stream: what changes, as server-sent events.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "net/http.h"
#include "telemetryserver/recorder.h"
#include "telemetryserver/views.h"

namespace nos::telemetryserver {

// Wakes the streams when something has changed, once a second at most.
class StreamHub {
 public:
  explicit StreamHub(Duration pace = std::chrono::seconds(1));
  ~StreamHub();
  StreamHub(const StreamHub&) = delete;
  StreamHub& operator=(const StreamHub&) = delete;

  void Changed();  // from any thread, cheap
  // Goes up with every change that was told.
  uint64_t changes() const { return changes_; }
  // `wake` is called once, when there have been more changes than `seen`, maybe at once. Returns a
  // number to take it back by.
  uint64_t Subscribe(uint64_t seen, std::function<void()> wake);
  // Waits for a call under way.
  void Unsubscribe(uint64_t number);
  // While it lives it is one of its reader's streams. Null: the reader, or all together, have too
  // many: connections have to be left for those who deliver.
  class Place {
   public:
    Place(StreamHub& hub, std::string who) : hub_(hub), who_(std::move(who)) {}
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    StreamHub& hub_;
    const std::string who_;
  };
  std::unique_ptr<Place> Enter(const std::string& who);
  // Of this process: numbers of events are of no use to another one.
  const std::string& epoch() const { return epoch_; }

 private:
  void Run();

  const Duration pace_;
  const std::string epoch_;
  std::mutex mutex_, calling_;
  std::condition_variable wake_;
  bool changed_ = false, stop_ = false;
  std::atomic<uint64_t> changes_{0};
  uint64_t last_ = 0;
  std::map<uint64_t, std::function<void()>> waiting_;
  std::map<std::string, size_t> places_;  // by reader: how many streams
  size_t taken_ = 0;
  std::thread thread_;
};

struct StreamOptions {
  std::string cluster;
  std::string last_event;  // of the request's Last-Event-ID
};

// The recorder, the hub and the rest outlive the stream. Null: there are too many
// (StreamHub::Enter).
std::unique_ptr<net::BodyStream> OpenStream(const Recorder& recorder, StreamHub& hub,
                                            NodeTexts& texts, OverviewTexts& overviews,
                                            const gpu::Catalogue& catalogue, const Reader& reader,
                                            const StreamOptions& options);

inline constexpr size_t kMostStreams = 500, kMostStreamsOfOne = 50;
inline constexpr Duration kStreamIdle = std::chrono::seconds(15);

}  // namespace nos::telemetryserver
