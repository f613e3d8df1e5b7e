// An API server whose watches can be muted for a while.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "kube/transport.h"

namespace nos::reconcile::testing {

class SlowWatches final : public kube::Transport {
 public:
  explicit SlowWatches(kube::Transport& api) : api_(api) {}
  Result<kube::ApiResponse> Do(const kube::ApiRequest& request) override {
    return api_.Do(request);
  }
  Result<std::unique_ptr<kube::WatchStream>> Watch(const kube::ApiRequest& request) override {
    NOS_ASSIGN(auto stream, api_.Watch(request));
    const bool* silent = request.path == "/api/v1/nodes"  ? &nodes_silent
                         : request.path == "/api/v1/pods" ? &pods_silent
                                                          : nullptr;
    return std::unique_ptr<kube::WatchStream>(std::make_unique<Stream>(std::move(stream), silent));
  }
  bool nodes_silent = false, pods_silent = false;

 private:
  class Stream final : public kube::WatchStream {
   public:
    Stream(std::unique_ptr<kube::WatchStream> inner, const bool* silent)
        : inner_(std::move(inner)), silent_(silent) {}
    std::optional<kube::WatchEvent> Next() override {
      return silent_ != nullptr && *silent_ ? std::nullopt : inner_->Next();
    }
    bool Ended() const override { return inner_->Ended(); }
    void OnReady(std::function<void()> wake) override { inner_->OnReady(std::move(wake)); }

   private:
    std::unique_ptr<kube::WatchStream> inner_;
    const bool* silent_;
  };
  kube::Transport& api_;
};

}  // namespace nos::reconcile::testing
