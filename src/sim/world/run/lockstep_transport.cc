#include "sim/lockstep_transport.h"

#include <string_view>
#include <utility>

#include "base/wake_signal.h"

namespace nos::sim {
namespace {

// Very long for a local connection: after this time the network has lost the event, and the client
// will find out as on a real network.
constexpr Duration kPatience = std::chrono::seconds(10);
constexpr std::string_view kBookmark = "BOOKMARK";

// Delivers events from the network. The direct watch only determines their number.
class LockstepStream final : public kube::WatchStream {
 public:
  LockstepStream(std::unique_ptr<kube::WatchStream> network,
                 std::unique_ptr<kube::WatchStream> direct)
      : direct_(std::move(direct)), network_(std::move(network)) {}

  std::optional<kube::WatchEvent> Next() override {
    owed_ = owed_ || direct_->Next().has_value();
    std::optional<kube::WatchEvent> event = owed_ ? WaitForNext() : network_->Next();
    if (event && event->type != kBookmark) owed_ = false;
    return event;
  }

  bool Ended() const override { return network_->Ended(); }
  void OnReady(std::function<void()> wake) override { network_->OnReady(std::move(wake)); }

 private:
  std::optional<kube::WatchEvent> WaitForNext() {
    while (true) {
      std::optional<kube::WatchEvent> event = network_->Next();
      if (event || network_->Ended()) return event;
      network_->OnReady([this] { arrived_.Ring(); });
      if (!arrived_.Wait(kPatience)) return std::nullopt;
    }
  }

  WakeSignal arrived_;  // outlives the stream that signals it
  const std::unique_ptr<kube::WatchStream> direct_, network_;
  bool owed_ = false;  // the server has sent an event that has not arrived yet
};

}  // namespace

Result<std::unique_ptr<kube::WatchStream>> LockstepTransport::Watch(
    const kube::ApiRequest& request) {
  kube::ApiRequest without_bookmarks = request;
  std::erase_if(without_bookmarks.query,
                [](const auto& item) { return item.first == "allowWatchBookmarks"; });
  NOS_ASSIGN(std::unique_ptr<kube::WatchStream> direct, server_.Watch(without_bookmarks));
  NOS_ASSIGN(std::unique_ptr<kube::WatchStream> network, network_.Watch(request));
  return std::unique_ptr<kube::WatchStream>(
      std::make_unique<LockstepStream>(std::move(network), std::move(direct)));
}

}  // namespace nos::sim
