// GET /api/v1/stream: changes as server-sent events.
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

// Wakes the streams after changes, at most once a second.
class StreamHub {
 public:
  explicit StreamHub(Duration pace = std::chrono::seconds(1));
  ~StreamHub();
  StreamHub(const StreamHub&) = delete;
  StreamHub& operator=(const StreamHub&) = delete;

  void Changed();  // from any thread, cheap
  // Increases with every published change.
  uint64_t changes() const { return changes_; }
  // `wake` is called once, when there are more changes than `seen`, possibly before Subscribe
  // returns. Returns a number for Unsubscribe.
  uint64_t Subscribe(uint64_t seen, std::function<void()> wake);
  // Waits for a running call of `wake`.
  void Unsubscribe(uint64_t number);
  // Counts as one stream of its reader while it lives. Null: the limit of the reader or of all
  // readers is reached; it leaves connections for reporters.
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
  // ID of this process: event numbers are not valid in another process.
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
  std::map<std::string, size_t> places_;  // number of streams by reader
  size_t taken_ = 0;
  std::thread thread_;
};

struct StreamOptions {
  std::string cluster;
  std::string last_event;  // the request's Last-Event-ID header
};

// All references must outlive the stream. Null: too many streams (StreamHub::Enter).
std::unique_ptr<net::BodyStream> OpenStream(const Recorder& recorder, StreamHub& hub,
                                            NodeTexts& texts, OverviewTexts& overviews,
                                            const gpu::Catalogue& catalogue, const Reader& reader,
                                            const StreamOptions& options);

inline constexpr size_t kMaxStreams = 500, kMaxStreamsOfOne = 50;
inline constexpr Duration kStreamIdle = std::chrono::seconds(15);

}  // namespace nos::telemetryserver
