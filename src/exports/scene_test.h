// A recorder whose journal is exported to a double of another system, step by step.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exports/exporter.h"
#include "kube/transport.h"
#include "telemetryserver/testing/fixture.h"

namespace nos::exports {

// Answers with the scripted responses.
class ScriptedTransport final : public kube::Transport {
 public:
  Result<kube::ApiResponse> Do(const kube::ApiRequest& request) override {
    requests.push_back(request);
    return answer(request);
  }
  Result<std::unique_ptr<kube::WatchStream>> Watch(const kube::ApiRequest&) override {
    return Status(Code::kUnimplemented, "no watches here");
  }

  std::vector<kube::ApiRequest> requests;
  std::function<Result<kube::ApiResponse>(const kube::ApiRequest&)> answer =
      [](const kube::ApiRequest&) { return kube::ApiResponse(); };
};

inline kube::ApiResponse AnswerOf(int code, std::string text = "") {
  kube::ApiResponse response;
  response.code = code;
  response.text = std::move(text);
  return response;
}

class ExportScene : public telemetryserver::RecorderFixture {
 protected:
  // Opens the recorder and attaches the sink, which has nothing to deliver yet.
  void Begin(const std::string& name, std::unique_ptr<Sink> sink) {
    exporter_.reset();
    options_.followers = {name};
    Open();
    Attach(name, std::move(sink));
  }
  void Attach(const std::string& name, std::unique_ptr<Sink> sink) {
    auto journal = telemetryserver::JournalReader::Open(options_.store.path);
    ASSERT_TRUE(journal.ok()) << journal.status().ToString();
    sink_ = std::move(sink);
    exporter_ =
        std::make_unique<Exporter>(name, *recorder_, std::move(journal).value(), *sink_, metrics_);
  }
  // Steps until nothing more can be delivered at once.
  void Deliver() {
    for (int i = 0; i < 1000; ++i) {
      steady_ += std::chrono::minutes(2);  // let every pause expire
      if (exporter_->Step(steady_) > Duration::zero()) return;
    }
    FAIL() << "it never rests";
  }
  // Value of a line of /metrics, or -1.
  double Metric(const std::string& line) {
    const std::string text = metrics_.Text();
    const size_t at = text.find("\n" + line + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + line.size() + 2));
  }

  ScriptedTransport transport_;
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<Exporter> exporter_;
  Time steady_{std::chrono::hours(1)};
};

}  // namespace nos::exports
