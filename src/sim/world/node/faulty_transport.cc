#include "sim/world/node/faulty_transport.h"

#include <fmt/format.h>

#include <deque>
#include <string>
#include <utility>

#include "base/text.h"

namespace nos::sim {
namespace {

Json StatusObject(int code, std::string_view reason, std::string_view message) {
  return JsonObject{{"kind", "Status"},   {"apiVersion", "v1"}, {"status", "Failure"},
                    {"message", message}, {"reason", reason},   {"code", code}};
}

// Delivers events in order, each not before its delay has passed.
class FaultyStream final : public kube::WatchStream {
 public:
  FaultyStream(std::unique_ptr<kube::WatchStream> under, Faults& faults, const Life& life,
               EventQueue& queue, const Clock& clock)
      : under_(std::move(under)), faults_(faults), life_(life), queue_(queue), clock_(clock) {}

  std::optional<kube::WatchEvent> Next() override {
    if (!life_.alive) return std::nullopt;
    while (!cut_) {
      std::optional<kube::WatchEvent> event = under_->Next();
      if (!event) break;
      Receive(std::move(*event));
    }
    if (held_.empty() || held_.front().due > clock_.Now()) return std::nullopt;
    kube::WatchEvent event = std::move(held_.front().event);
    held_.pop_front();
    return event;
  }

  bool Ended() const override {
    return !life_.alive || (held_.empty() && (cut_ || under_->Ended()));
  }

  void OnReady(std::function<void()> wake) override { under_->OnReady(std::move(wake)); }

 private:
  struct Held {
    Time due;
    kube::WatchEvent event;
  };

  void Receive(kube::WatchEvent event) {
    const FaultRates& rates = faults_.rates();
    if (faults_.Strike(rates.stream_dropped)) {
      cut_ = true;
      return;
    }
    if (faults_.Strike(rates.stream_expired)) {
      cut_ = true;
      event = {"ERROR", StatusObject(410, "Expired", "too old resource version (injected)")};
    }
    Time due = clock_.Now();
    if (faults_.Strike(rates.event_delayed)) due += faults_.Delay();
    if (!held_.empty()) due = std::max(due, held_.back().due);
    if (due > clock_.Now()) queue_.WakeAt(due);
    if (faults_.Strike(rates.event_repeated)) held_.push_back({due, event});
    held_.push_back({due, std::move(event)});
  }

  std::unique_ptr<kube::WatchStream> under_;
  Faults& faults_;
  const Life& life_;
  EventQueue& queue_;
  const Clock& clock_;
  std::deque<Held> held_;
  bool cut_ = false;
};

bool Writes(const kube::ApiRequest& request) { return request.method != "GET"; }

bool Binds(const kube::ApiRequest& request) {
  return request.method == "POST" && request.path.ends_with("/binding");
}

}  // namespace

Result<kube::ApiResponse> FaultyTransport::Do(const kube::ApiRequest& request) {
  if (on_binding_ && Binds(request)) on_binding_(request.body);
  if (auto fault = Before(request)) return std::move(*fault);
  if (intercept_) {
    if (auto answer = intercept_(request)) return *std::move(answer);
  }
  if (Binds(request) && faults_.Strike(faults_.rates().node_gone_at_binding)) DeleteTarget(request);
  Result<kube::ApiResponse> response = under_.Do(request);
  if (Writes(request) && log_.TakesDetails()) ShowWrite(request, response);
  const FaultRates& rates = faults_.rates();
  if (Writes(request) && faults_.Strike(rates.crash)) return Crash(request, "after");
  if (faults_.Strike(rates.response_lost)) {
    Note(request, "response lost");
    return Status(Code::kDeadline, "no answer in time (injected)");
  }
  return response;
}

Result<std::unique_ptr<kube::WatchStream>> FaultyTransport::Watch(const kube::ApiRequest& request) {
  if (auto fault = Before(request)) return fault->status();
  NOS_ASSIGN(std::unique_ptr<kube::WatchStream> stream, under_.Watch(request));
  return std::unique_ptr<kube::WatchStream>(
      std::make_unique<FaultyStream>(std::move(stream), faults_, life_, queue_, clock_));
}

std::optional<Result<kube::ApiResponse>> FaultyTransport::Before(const kube::ApiRequest& request) {
  if (!life_.alive) return Status(Code::kUnavailable, "the process is dead (injected)");
  const FaultRates& rates = faults_.rates();
  if (Writes(request) && faults_.Strike(rates.crash)) return Crash(request, "before");
  if (faults_.Strike(rates.request_lost)) {
    Note(request, "request lost");
    return Status(Code::kUnavailable, "connection refused (injected)");
  }
  const bool update = request.method == "PUT" || request.method == "PATCH";
  if (update && faults_.Strike(rates.conflict)) {
    Note(request, "conflict");
    return kube::ApiResponse{
        409, StatusObject(409, "Conflict", "the object has been modified (injected)")};
  }
  return std::nullopt;
}

void FaultyTransport::DeleteTarget(const kube::ApiRequest& binding) {
  kube::ApiRequest deletion;
  deletion.method = "DELETE";
  deletion.path = fmt::format("/api/v1/nodes/{}", FindString(binding.body, "target", "name"));
  Note(deletion, "a node goes");
  (void)under_.Do(deletion);  // the node may be deleted already
}

Status FaultyTransport::Crash(const kube::ApiRequest& request, std::string_view when) {
  life_.alive = false;
  Note(request, fmt::format("crash {}", when));
  return {Code::kUnavailable, "the process is dead (injected)"};
}

void FaultyTransport::ShowWrite(const kube::ApiRequest& request,
                                const Result<kube::ApiResponse>& response) {
  constexpr size_t kMaxBody = 1500;  // bytes
  if (request.path.find("/events") != std::string::npos ||
      request.path.find("/leases") != std::string::npos) {
    return;
  }
  const std::string answer =
      response.ok() ? fmt::format("{}", response->code) : response.status().ToString();
  log_.Detail(owner_, fmt::format("write: {} {} {} -> {}", request.method, request.path,
                                  Shortened(WriteJson(request.body), kMaxBody), answer));
}

void FaultyTransport::Note(const kube::ApiRequest& request, std::string_view what) {
  log_.Note(owner_, fmt::format("fault: {}: {} {}", what, request.method, request.path));
}

}  // namespace nos::sim
